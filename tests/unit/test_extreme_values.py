"""Every extreme of a type in one file gives what each of its rows gives alone, for every pair of uses of one column."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from extreme_values import (
    COPIES,
    KINDS,
    LAYOUTS,
    OUTCOMES,
    PAIRS,
    SOME_KINDS,
    Layout,
    counted,
    counted_alone,
    fits,
    ordinary,
    records,
    spec_of,
)
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from one_engine import one_engine
from row_query_scenario import TYPES, expressions
from spark_scenario import counted_by_both
from spark_servers import sail

from dphist_pipeline.confidential.plan import SourcePlan
from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.confidential.reading._source_files import open_files
from dphist_pipeline.confidential.reading.source import ColumnRefused, Source
from dphist_pipeline.reading import Reading
from dphist_pipeline.spec._row_nodes import NotAccepted
from dphist_pipeline.spec._row_queries import judged_query
from dphist_pipeline.spec.sources import Source as Written
from examples import mostly_soaked

EXPRESSIONS, AT_ONCE = 230_000, 60  # drawn; somewhat less than half of them may be asked

NOT_TO_ITS_END = "could not be read to its end"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that fails is not helped by reading row by row."""

    def fail(*given: object) -> None:
        raise AssertionError("the engine failed on what a row holds")

    monkeypatch.setattr(ingest, "_stage_apart", fail)


@pytest.fixture(scope="module")
def spark() -> Iterator[str]:
    with sail() as address:
        yield address


@cache
def said_of_twin(kind: str, uses: tuple[str, ...], path: str, outcome: str) -> list[int] | str:
    """What comes of the same file without extremes, however it is laid out."""
    return counted(ordinary(KINDS[kind]), uses, Layout(path), outcome)


@cache
def of_rows_alone(kind: str, uses: tuple[str, ...], path: str, outcome: str) -> list[int]:
    """The sum of what comes of each row alone, however its file is laid out."""
    return counted_alone(KINDS[kind], uses, Layout(path), outcome)


def check(kind: str, uses: tuple[str, ...], layout: Layout, outcome: str = OUTCOMES[0], alone: bool = True) -> bool:
    """Whether the type serves so; then the extremes gave a cube as each of their rows alone does."""
    values = KINDS[kind]
    case = (kind, uses, layout, outcome)
    found, twin = counted(values, uses, layout, outcome), said_of_twin(kind, uses, layout.path, outcome)
    assert isinstance(found, str) == isinstance(twin, str), (case, found, twin)
    if isinstance(found, str):
        assert found == twin and NOT_TO_ITS_END not in found, (case, found, twin)
        return False
    assert not alone or found == of_rows_alone(kind, uses, layout.path, outcome), case
    return True


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOME_KINDS)
def test_extremes_of_a_type_fail_nothing_however_its_column_is_used_twice(kind: str) -> None:
    # Every pair with this type in a dictionary and, over all types, other layouts; `make soak` tries all of them.
    first, possible = list(KINDS).index(kind), [layout for layout in LAYOUTS if fits(kind, layout)]
    served = 0
    for number, uses in enumerate(PAIRS):
        place = first + number
        others = [possible[place % len(possible)]] if place % 2 else []
        for turn, layout in enumerate([Layout(), *others]):
            # An engine that serves many readings keeps what one of them attached.
            with nullcontext() if layout.path == "duckdb" else one_engine():
                # Many values take as many readings: of these one pair is compared with rows alone, of others three.
                alone = turn == 0 and number % (15 if len(KINDS[kind]) > 20 else 5) == first % 5
                served += check(kind, uses, layout, OUTCOMES[place % 4], alone)
    assert served or kind == "nothing"


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_extremes_of_a_type_fail_nothing_in_any_layout(kind: str) -> None:
    for layout in (layout for layout in LAYOUTS if fits(kind, layout)):
        for uses in PAIRS:
            for outcome in OUTCOMES if "outcome" in uses else OUTCOMES[:1]:
                check(kind, uses, layout, outcome)


@pytest.mark.outside
@pytest.mark.parametrize("kind", mostly_soaked([kind for kind in KINDS if kind != "nothing"], range(0, 23, 3)))
def test_extremes_of_a_type_are_counted_by_spark_as_by_duckdb(spark: str, kind: str) -> None:
    files = {"seen.parquet": records(KINDS[kind], COPIES)}
    for uses in PAIRS:
        if "outcome" not in uses:
            changes = spec_of("*.parquet", uses) | {"time_zone": "UTC"}
            # Sail fails on text that is not UTF-8, which Spark reads.
            with suppress(ColumnRefused):
                here, there = counted_by_both(
                    spark, files, "2026-01-05" if "period" in uses else "all", vouched=kind != "bytes", **changes
                )
                assert here.tolist() == there.tolist(), (kind, uses)


@pytest.mark.soak
def test_no_expression_of_a_row_query_fails_on_any_extreme(tmp_path: Path) -> None:
    texts, seed = KINDS["text"].drop_null(), secrets.randbits(32)
    kept = [text for text in texts.to_pylist() if len(text) < 10_000]
    of = {"d": "double", "b": "int64", "t": "time", "z": "zoned time", "day": "date", "yes": "bool"}
    columns = {name: KINDS[kind].take(pa.array(np.arange(len(kept)) % len(KINDS[kind]))) for name, kind in of.items()}
    table = pa.table({**columns, "s": kept, 'a "b': kept, "i": np.arange(len(kept))})
    rows = [table.slice(row, 1) for row in range(table.num_rows)]
    pq.write_table(pa.concat_tables([table] * COPIES), tmp_path / "all.parquet")
    for number, row in enumerate(rows):
        pq.write_table(row, tmp_path / f"{number}.parquet")
    together = opened(tmp_path / "all.parquet")
    alone = [opened(tmp_path / f"{number}.parquet") for number in range(len(rows))]
    judged = 0

    @seeded(seed)
    @settings(
        **{"max_examples": EXPRESSIONS // AT_ONCE, "deadline": None, "database": None, "phases": [Phase.generate]},
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.lists(st.sampled_from(TYPES).flatmap(lambda kind: expressions(kind, 3)), min_size=AT_ONCE, max_size=AT_ONCE)
    )
    def none_fails(drawn: list[str]) -> None:
        nonlocal judged
        items = [f"{text} AS c{number}" for number, text in enumerate(drawn) if is_judged(text, table.column_names)]
        judged += len(items)
        if items:
            query = judged_query(f"SELECT {', '.join(['i', *items])} FROM source", "").text
            found = asked(*together, query)
            assert found == sorted(COPIES * [row for one in alone for row in asked(*one, query)]), (seed, query)

    none_fails()
    assert judged >= 100_000
    print(f"\n{judged:,} expressions, seed {seed}")


def is_judged(expression: str, columns: Collection[str]) -> bool:
    """Whether it may stand in a query of these columns that nobody needs to allow."""
    try:
        query = judged_query(f"SELECT {expression} AS c FROM source", "")
    except NotAccepted:
        return False
    return not query.needs_decision and query.columns <= {*columns}


def opened(file: Path) -> tuple[duckdb.DuckDBPyConnection, Source]:
    """A file as reading has DuckDB open it."""
    settings: dict[str, Any] = {"disabled_optimizers": "statistics_propagation,common_subexpressions", "threads": 1}
    connection = duckdb.connect(config=settings)
    return connection, open_files(
        connection, (file,), SourcePlan(Written(file.name), Reading(file.name, None, "parquet"), str(file))
    )


def asked(connection: duckdb.DuckDBPyConnection, source: Source, query: str) -> list[str]:
    """The rows that a query gives over an opened file; of times and days the stored numbers, as staging leaves them."""
    query = f"WITH source AS NOT MATERIALIZED ({source.relation}) {query}"
    found = connection.sql(query, params=source.parameters).to_arrow_table().combine_chunks()
    stored = {name: _stored(column) for name, column in zip(found.column_names, found.columns, strict=True)}
    return sorted(map(str, pa.table(stored).to_pylist()))


def _stored(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of times or days as numbers: Python's types hold fewer years than DuckDB's."""
    width = {pa.types.is_timestamp: pa.int64(), pa.types.is_date32: pa.int32(), pa.types.is_time64: pa.int64()}
    kind = next((kind for is_one, kind in width.items() if is_one(column.type)), None)
    return column if kind is None else pa.chunked_array([chunk.view(kind) for chunk in column.chunks], kind)
