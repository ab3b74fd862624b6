"""The functions of row queries: each one over every value that breaks others, in every kind that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import duckdb
import pytest
from row_query_scenario import PLACES, nasty

from dphist_pipeline.confidential.reading._derived import READ_BY_QUERIES
from dphist_pipeline.spec import _row_queries
from dphist_pipeline.spec._row_functions import (
    FUNCTIONS,
    KINDS,
    MORE_PARTS,
    TRUNCATING,
    TRUNCATION,
    Constant,
    Function,
    is_time_format,
)

COLUMNS = ["d", "s", "t", "z", "day"]
ZONES = ["UTC", "Pacific/Apia", "America/Sao_Paulo"]
CONSTANTS = {"VARCHAR": ["a", "é%", "_", *MORE_PARTS, "%d/%m/%Y", "%Y-%m-%d %H:%M:%S.%f"], "BIGINT": PLACES}
WRITTEN = {"~~": "LIKE", "!~~": "NOT LIKE"}
EVERY = {**FUNCTIONS, TRUNCATING: TRUNCATION}


def calls(name: str, function: Function) -> Iterator[str]:
    """Calls of a function with every kind and many constants that it takes, over columns of any type."""
    ways = [list(given(takes)) for takes in function.takes]
    for count in {len(ways), len(ways) - function.optional}:
        for arguments in product(*ways[:count]):
            if name.isidentifier():
                yield f"{name}({', '.join(arguments)})"
            else:
                yield f"({' '.join([*arguments[:-1], WRITTEN.get(name, name), arguments[-1]])})"


def given(takes: tuple[str, ...] | Constant) -> Iterator[str]:
    if isinstance(takes, Constant):
        for constant in filter(takes.fits, CONSTANTS[takes.kind]):
            yield f"'{constant}'" if takes.kind == "VARCHAR" else constant
    else:
        for kind, column in product(takes, COLUMNS):
            yield f"TRY_CAST({column} AS {kind})"


def batched(texts: list[str]) -> Iterator[str]:
    for start in range(0, len(texts), 100):
        yield ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts[start : start + 100]))


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_no_function_raises_on_any_value(nasty: duckdb.DuckDBPyConnection, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_row_queries, "kept_from_raising", lambda node: node)
    made = list(calls(name, EVERY[name]))
    made = made if name != "replace" else [call for call in made if "'a', 'a'" in call or "'day', '_'" in call]
    assert made
    for items in batched(made):
        query = _row_queries.judged_query(f"SELECT {items} FROM source", "")
        assert not query.needs_decision
        for zone in ZONES if "TRY_CAST(day AS DATE)" in items or "TIMESTAMP" in items else ZONES[:1]:
            nasty.execute(f"SET TimeZone = '{zone}'")
            nasty.execute(f"WITH source AS NOT MATERIALIZED (FROM people) {query.text}").fetchall()


def test_no_cast_raises_on_any_value(nasty: duckdb.DuckDBPyConnection):
    casts = [f"TRY_CAST({column} AS {kind})" for column in [*COLUMNS, "b", "yes"] for kind in KINDS]
    again = [f"TRY_CAST({cast} AS {kind})" for cast in casts for kind in KINDS]
    for zone in ZONES:
        nasty.execute(f"SET TimeZone = '{zone}'")
        for items in batched([*casts, *again]):
            nasty.execute(f"CREATE OR REPLACE TEMP TABLE cast_all AS SELECT {items} FROM people")


EXTREMES = {
    "TIMESTAMP_NS": ["'infinity'", "'-infinity'", "'1677-09-22'", "'2262-04-11 23:47:16.854775806'"],
    "TIMESTAMPTZ_NS": ["'infinity'", "'-infinity'", "'1677-09-22'", "'2262-04-11 23:47:16.854775806+00'"],
    "FLOAT": ["'nan'", "'inf'", "'-inf'", "3.4028235e38", "1e-45"],
    "HUGEINT": ["170141183460469231731687303715884105727", "-170141183460469231731687303715884105728"],
    "UHUGEINT": ["340282366920938463463374607431768211455"],
    "UBIGINT": ["18446744073709551615"],
    "TINYINT": ["-128", "127"],
    "DECIMAL(38, 0)": ["99999999999999999999999999999999999999"],
    "DECIMAL(38, 38)": ["'0.99999999999999999999999999999999999999'"],
    "DECIMAL(4, 1)": ["-999.9"],
    "UUID": ["'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    "ENUM ('', 'x', '2026-03-02')": ["''", "'x'", "'2026-03-02'"],
    "BOOLEAN": ["true"],
}


@pytest.mark.parametrize("kind", EXTREMES)
def test_no_cast_raises_on_any_column_that_a_query_may_read(nasty: duckdb.DuckDBPyConnection, kind: str):
    described = nasty.execute(f"SELECT typeof(NULL::{kind})").fetchone()
    assert described is not None and described[0].partition("(")[0] in READ_BY_QUERIES
    rows = ", ".join(f"(CAST({value} AS {kind}))" for value in [*EXTREMES[kind], "NULL"])
    casts = [f"TRY_CAST(x AS {into})" for into in KINDS]
    for zone in ZONES:
        nasty.execute(f"SET TimeZone = '{zone}'")
        for items in batched([*casts, *(f"TRY_CAST({cast} AS {into})" for cast in casts for into in KINDS)]):
            nasty.execute(f"CREATE OR REPLACE TEMP TABLE cast_all AS SELECT {items} FROM (VALUES {rows}) AS v (x)")


@pytest.mark.parametrize("text", ["%d/%m/%Y", "%Y%m%d", "%-d.%-m.%y", "day %j of %Y", "%% %Y"])
def test_formats_of_dates_are_told_from_others(text: str):
    assert is_time_format(text)
    assert duckdb.sql("SELECT try_strptime('x', $format)", params={"format": text}).fetchall() == [(None,)]


@pytest.mark.parametrize("text", ["", "Y-m-d", "%", "%q", "%Y %z", "%Y %Z", "%-Y", "%Y %", "%Y" * 101, "%c", "%s"])
def test_what_is_no_format_of_dates_is_refused(text: str):
    assert not is_time_format(text)
