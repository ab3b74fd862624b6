"""A query over the source: what it gives is counted, whatever the records hold, and nothing of them is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from office import Office
from source_scenario import AGE, SECRET, WARD, counted, refused, spec, written

from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused
from dphist_pipeline.spec.mistakes import SpecError

PEOPLE = pa.table({"person": ["a", "b", "b"], "years": ["5", "15", "x"], "ward": ["SURGERY ", None, "medicine"]})
CLEANED = b"""
SELECT person, TRY_CAST(years AS DOUBLE) AS age, lower(trim(TRY_CAST(ward AS VARCHAR))) AS ward
FROM source
WHERE person IS NOT NULL
"""
ALL_OF_IT = b"SELECT * FROM source"


def by_query(table: pa.Table | bytes, sql: bytes, **changes: Any) -> list[int]:
    files = {"people.csv" if isinstance(table, bytes) else "people.parquet": table, "people.sql": sql}
    source = {"source": "people.csv"} if isinstance(table, bytes) else {}
    return counted(files, source_sql="people.sql", **{**source, **changes})


def refused_query(table: pa.Table | bytes, sql: bytes, error: Any, **changes: Any) -> str:
    files = {"people.csv" if isinstance(table, bytes) else "people.parquet": table, "people.sql": sql}
    source = {"source": "people.csv"} if isinstance(table, bytes) else {}
    return refused(files, error, source_sql="people.sql", **{**source, **changes})


def test_what_a_query_gives_is_counted():
    axes = [{"column": "age", "edges": [0, 10, 20], "other": True}, WARD]
    assert by_query(PEOPLE, CLEANED, axes=axes) == [1, 0, 0, 0, 0, 1, 0, 1, 0]
    assert by_query(b"person,years,ward\na,5,SURGERY \nb,15,\nb,x,medicine\n", CLEANED, axes=axes) == [
        *[1, 0, 0, 0, 0, 1, 0, 1, 0]
    ]


def test_a_query_may_leave_rows_out_and_name_units_and_periods():
    sql = b"""
        SELECT TRY_CAST(person AS VARCHAR) AS unit, TRY_CAST(years AS DOUBLE) AS age,
            try_strptime(TRY_CAST(day AS VARCHAR), '%d.%m.%Y') AS at
        FROM source WHERE TRY_CAST(years AS DOUBLE) < 20
    """
    table = pa.table({"person": [1, 1, 2], "years": [5, 25, 15], "day": ["02.03.2026", "02.03.2026", "31.02.2026"]})
    periods = {"period": "week", "period_column": "at", "at": "2026-03-02"}
    assert by_query(table, sql, privacy_unit="unit", **periods) == [1, 0, 0, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        [],
        [None],
        ["", "x", "\0", "1e999", "-0", SECRET * 1000, "infinity", "9" * 99, "2026-02-30", "é" * 70_000],
        [float("nan"), float("inf"), -0.0, 5e-324, 1e308],
        [2**63 - 1, -(2**63)],
    ],
    ids=["none", "null", "text", "numbers", "whole numbers"],
)
def test_no_record_makes_an_item_of_a_query_fail(values: list[Any]):
    sql = b"""
        SELECT person, CAST(years AS DOUBLE) * 1e308 / 0 AS age, CAST(years AS VARCHAR) || 'x' AS ward,
            date_trunc('month', CAST(CAST(years AS VARCHAR) AS TIMESTAMP)) AS at
        FROM source WHERE length(TRY_CAST(years AS VARCHAR)) >= 0 OR years IS NULL
    """
    table = pa.table({"person": range(len(values)), "years": values})
    assert sum(by_query(table, sql, axes=[AGE, WARD])) == len(values)
    yearly = {"period": "year", "period_column": "at", "at": "2026-01-01"}
    assert sum(by_query(table, sql, axes=[AGE, WARD], **yearly)) == 0


def test_a_query_that_does_not_fit_the_columns_is_refused_before_a_row_is_read():
    assert "does not fit the columns of the source" in refused_query(
        PEOPLE, b"SELECT person, TRY_CAST(yeers AS DOUBLE) AS age FROM source", SourceRefused
    )
    message = refused_query(
        b"Zacharias,61\n", b"SELECT person, TRY_CAST(years AS DOUBLE) AS age FROM source", SourceRefused
    )
    assert "does not fit" in message and "61" not in message
    assert "does not fit" in refused_query(PEOPLE, b"SELECT * EXCLUDE (nobody) FROM source", SourceRefused)
    assert "column 'age' is not in the source" in refused_query(PEOPLE, b"SELECT person FROM source", ColumnRefused)


@pytest.mark.parametrize("name", ["source", "current_date", "a b", 'a"b', "TRY", "select", "é"])
def test_columns_of_any_name_are_read_where_they_can_be(name: str):
    quoted = '"' + name.replace('"', '""') + '"'
    sql = f"SELECT person, TRY_CAST({quoted} AS DOUBLE) AS age FROM source".encode()
    table = pa.table({"person": [1, 2], name: ["5", "15"]})
    if name == "current_date":
        assert "is no column of a record" in refused_query(table, sql, SpecError)
    else:
        assert by_query(table, sql) == [1, 1, 0, 0, 0]


def test_time_stamps_that_may_fail_the_reader_are_refused_through_any_query():
    table = pa.table({"person": [1], "age": [5], "at": pa.array([2**63 - 1], pa.int64()).view(pa.timestamp("ms"))})
    periods = {"period": "week", "period_column": "at", "at": "2026-03-02"}
    for trusted in (False, True):
        message = refused_query(table, ALL_OF_IT, ColumnRefused, trusted_sql=trusted, **periods)
        assert "TIMESTAMP_MS, which cannot serve as a period column" in message


def undecodable(*values: bytes) -> pa.Array:
    offsets = pa.array(np.cumsum([0, *map(len, values)]), pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), len(values), [None, offsets, pa.py_buffer(b"".join(values))])


@pytest.mark.parametrize("sql", [b"SELECT unit, age FROM source", ALL_OF_IT])
def test_units_that_differ_in_bytes_alone_never_share_a_bound_through_a_query(sql: bytes):
    counts = [
        sum(by_query(pa.table({"unit": undecodable(*people), "age": [5] * len(people)}), sql, **UNIT))
        for people in ([b"a\xff-123"], [b"a\xff-123", b"b\xfe-123"], [b"a\xff-123", b"b\xfe-123", b"c--123"])
    ]
    assert counts == [0, 0, 1]


UNIT = {"privacy_unit": "unit", "max_rows_per_unit": 1}


def test_a_query_that_was_allowed_may_put_rows_together():
    sql = b"SELECT person, count(*) AS age FROM source GROUP BY person"
    assert by_query(PEOPLE, sql, axes=[{"column": "age", "edges": [1, 2, 3]}]) == [1, 1]


def test_no_query_reaches_another_file(tmp_path: Path):
    (tmp_path / "other.csv").write_text("x\n1\n")
    for reading in (f"'{tmp_path}/other.csv'", f"read_csv('{tmp_path}/other.csv')"):
        sql = f"SELECT person, x AS age FROM source, {reading}".encode()
        assert "source" in refused_query(PEOPLE, sql, SpecError)


def test_a_query_that_fails_shows_nothing_of_the_records():
    table = pa.table({"person": [SECRET], "age": [SECRET]})
    sql = b"SELECT person, age FROM source WHERE CAST(age AS INTEGER) > 3"
    assert "or a row on which the allowed query fails" in refused_query(table, sql, SourceRefused)


def test_an_item_that_raises_is_null_unless_the_query_was_signed_before():
    table = pa.table({"person": ["a", SECRET], "age": ["5", SECRET]})
    sql = b"SELECT person, CAST(age AS DOUBLE) AS age, CAST(age AS DOUBLE) + 1 AS older FROM source"
    axes = [{"column": "age", "edges": [0, 10], "other": True}, {**AGE, "column": "older", "name": "older"}]
    assert sum(by_query(table, sql, axes=axes[:1])) == 2
    assert by_query(table, sql, axes=axes[:1]) == [1, 1]
    message = refused_query(table, sql, SourceRefused, axes=axes[:1], tries=False)
    assert "or a row on which the allowed query fails" in message and SECRET not in message


def test_a_query_that_duckdb_does_not_bind_within_try_runs_as_it_was_signed():
    sql = b"SELECT person, sum(1) OVER w + 1 AS n, CAST(years AS VARCHAR) AS age FROM source WINDOW w AS ()"
    assert by_query(PEOPLE, sql, axes=[{"column": "age", "values": ["5", "15", "x"]}]) == [1, 1, 1]
    geometric = b"SELECT person, geometric_mean(CAST(person = 'a' AS INTEGER)) + 1 AS age FROM source GROUP BY person"
    assert sum(by_query(PEOPLE, geometric, axes=[{"column": "age", "edges": [0, 1, 3]}])) == 2


def test_what_the_query_says_is_part_of_the_digest_and_where_it_lies_is_not(tmp_path: Path):
    written(tmp_path, {"a.sql": CLEANED, "b.sql": CLEANED, "c.sql": CLEANED + b"-- so", "d.sql": ALL_OF_IT})
    plain = spec(tmp_path)
    digests = {name: spec(tmp_path, source_sql=f"{name}.sql").digest for name in "abcd"}
    assert digests["a"] == digests["b"] and len({plain.digest, *digests.values()}) == 4
    assert spec(tmp_path, source_sql="d.sql", trusted_sql=True).digest not in {plain.digest, *digests.values()}


def test_trust_without_a_query_is_refused(tmp_path: Path):
    with pytest.raises(SpecError, match="source_sql: is required with `trusted_sql: true`"):
        spec(tmp_path, trusted_sql=True)


@pytest.mark.slow
def test_a_release_by_query_says_in_its_audit_what_the_promise_rests_on(office: Office):
    office.opened()
    (office.folder / "q.sql").write_text("SELECT * FROM source")
    office.write_spec(source_sql="q.sql")
    office.released()
    audit = json.loads((office.published() / "audit.json").read_bytes())
    assert (audit["query"]["by_row"], len(audit["allowed"])) == (False, 2)
    assert "rests on a query that an operator allowed" in (office.published() / "card.html").read_text()
    (office.folder / "q.sql").write_text("SELECT * FROM source -- changed")
    ran = office.release()
    assert ran.code == 1 and "--revise" in ran.err
