"""Every extreme of a type in one file gives what each of its rows gives alone, for every pair of uses of one column."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import cache

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
from one_engine import one_engine
from spark_scenario import counted_by_both
from spark_servers import sail

from dphist_pipeline.confidential.reading import ingest
from dphist_pipeline.confidential.reading.source import ColumnRefused
from examples import mostly_soaked

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
