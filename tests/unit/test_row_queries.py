"""What is observed of rows, against a plain reading, and how far one unit moves it, over all small tables."""

from __future__ import annotations

import itertools
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from one_engine import one_engine
from spec_scenario import spec

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import _bounding as bounding
from dphist_pipeline.confidential import row_tables
from dphist_pipeline.confidential._bounding import KEY_BYTES, count_bounded
from dphist_pipeline.confidential._plain_values import MeasurementMisuse
from dphist_pipeline.confidential.plan import CountingPlan, Marginal
from dphist_pipeline.confidential.row_queries import (
    FailuresByAxis,
    Limits,
    ObservedRows,
    RowQuery,
    RowsByPlace,
    RowsCut,
    RowsCutBy,
    UnitsByRows,
)
from dphist_pipeline.releasing._plans import plan_of
from examples import SOAKING, mostly_soaked

KEY = bytes(range(KEY_BYTES))
KEPT, SEEN = 1, 3
# Two categories and `other`, then two categories without it.
AXES = [
    {"column": "ward", "values": ["surgery", "medicine"], "other": True},
    {"column": "kind", "values": ["new", "old"]},
]
SPEC = spec(axes=AXES, max_rows_per_unit=KEPT, quality={"rows": SEEN}, period=..., period_column=...)
PLAN = plan_of(SPEC, SPEC.period_named("all"))
# A row is its cell and its marks: declared twice over, undeclared on `ward`, then in no cell for want of both values.
Row = tuple[int | None, int]
ROWS: list[Row] = [(0, 0), (3, 0), (5, 2), (None, 1 + 3), (None, 2 + 6)]
QUERIES: list[RowQuery] = [
    UnitsByRows(),
    RowsCut(),
    RowsCutBy(0, (3, 2)),
    RowsCutBy(1, (3, 2)),
    RowsByPlace(),
    FailuresByAxis(2),
]
Table = Mapping[str, tuple[Row, ...]]


def observed(table: Table) -> ObservedRows:
    """What is observed of staged rows, in a shuffled order."""
    rows = [(unit, *row) for unit, held in table.items() for row in held]
    random.Random(len(rows)).shuffle(rows)
    frame = pl.DataFrame(rows, {"unit": pl.String, "code": pl.Int32, "marks": pl.Int64}, orient="row")
    with tempfile.TemporaryDirectory() as folder, one_engine():
        staged = Path(folder) / "rows.parquet"
        frame.write_parquet(staged)
        cube = count_bounded(staged, PLAN.domain.cells, KEPT, KEY)
        return row_tables.observe_rows(PLAN, SEEN, staged, cube, KEY)


def answers(table: Table) -> list[np.ndarray]:
    """The exact answers to all questions."""
    seen = observed(table)
    return [question.answers(seen) for question in QUERIES]


@cache
def parts(name: str) -> list[list[np.ndarray]]:
    """What one unit alone adds to all answers, for every set of rows that it may hold, one row more than is seen."""
    held = [rows for size in range(SEEN + 2) for rows in itertools.combinations_with_replacement(ROWS, size)]
    return [answers({name: rows}) for rows in held]


def furthest(substitute: bool) -> list[int]:
    """How far one unit moves the answers to each question, at most."""
    found = []
    for number in range(len(QUERIES)):
        here = np.unique([part[number] for part in parts("a")], axis=0)
        there = np.unique([part[number] for part in parts("b")], axis=0) if substitute else np.zeros_like(here[:1])
        found.append(int(np.abs(here[:, None] - there[None]).sum(axis=2).max()))
    return found


def declared(substitute: bool) -> list[int]:
    return [question.sensitivity(Limits(KEPT, SEEN, substitute)) for question in QUERIES]


@pytest.mark.slow
@pytest.mark.parametrize("substitute", [False, True], ids=["a unit more", "another unit"])
def test_one_unit_moves_answers_by_the_declared_sensitivity_and_no_further(substitute: bool) -> None:
    assert furthest(substitute) == declared(substitute)


def test_with_rows_as_units_one_row_moves_its_axes_and_one_place() -> None:
    limits = [Limits(1, 1, substitute) for substitute in (False, True)]
    assert [RowsByPlace().sensitivity(limit) for limit in limits] == [1, 2]
    assert [FailuresByAxis(3).sensitivity(limit) for limit in limits] == [3, 6]


def some_tables() -> Iterator[dict[str, tuple[Row, ...]]]:
    for seed in range(30 if SOAKING else 12):
        choice = random.Random(seed)
        yield {
            unit: tuple(choice.choices(ROWS, k=choice.randrange(7))) for unit in choice.sample("abcdef", k=seed % 5 + 1)
        }


@pytest.mark.slow
def test_units_add_up_whatever_the_others_hold() -> None:
    for table in some_tables():
        alone = [answers({unit: rows}) for unit, rows in table.items()]
        for together, *apart in zip(answers(table), *alone, strict=True):
            assert together.tolist() == sum(apart).tolist()


@pytest.mark.slow
def test_answers_say_of_rows_what_a_plain_reading_says() -> None:
    for table in some_tables():
        seen = observed(table)
        held = [sum(code is not None for code, _ in rows) for rows in table.values()]
        assert seen.units.tolist() == [
            sum(min(rows, SEEN) == many for rows in held if rows) for many in range(1, SEEN + 1)
        ]
        assert seen.cut.min() >= 0
        assert seen.cut.sum() == sum(max(0, min(rows, SEEN) - KEPT) for rows in held)
        assert seen.places.sum() == sum(min(len(rows), SEEN) for rows in table.values())
        few = {unit: rows[:SEEN] for unit, rows in table.items()}  # of which all rows are seen
        rows = [row for held in few.values() for row in held]
        whole = observed(few)
        assert whole.places.tolist() == [
            sum(marks == 0 for _, marks in rows),
            sum(code is not None and marks > 0 for code, marks in rows),
            sum(code is None for code, _ in rows),
        ]
        digits = [(marks % 3, marks // 3) for _, marks in rows]
        assert whole.failures.tolist() == [
            [sum(digit[axis] == failure for digit in digits) for failure in (1, 2)] for axis in (0, 1)
        ]


def test_every_row_beyond_the_bound_has_the_same_chance_to_be_seen() -> None:
    """Of 600 units with two undeclared rows among four, half of the three rows seen are undeclared: 6.5 deviations."""
    rows: tuple[Row, ...] = ((0, 0), (0, 0), (5, 2), (5, 2))
    seen = observed({f"unit {number}": rows for number in range(600)})
    spread = 6.5 * (600 * 0.25) ** 0.5  # of three out of four without return: hypergeometric, variance 1/4
    assert abs(seen.places[1] - 900) < spread < 0.3 * 900
    assert abs(seen.cut_by[2] - 600) < 6.5 * (600 * 1 / 3) ** 0.5  # of two rows cut, one is expected


def beyond(staged: Path, column: str, max_rows: int, key: bytes) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    rows = pl.scan_parquet(staged).select(code=column).drop_nulls()
    per_code = rows.group_by("code").agg(rows=pl.len().cast(pl.Int64)).collect()
    yield per_code["code"].to_numpy(), per_code["rows"].to_numpy()


def beyond_words(
    staged: Path, words: Sequence[str], max_rows: int, key: bytes, distinct: bool = False
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for codes, rows in beyond(staged, words[0], max_rows, key):
        yield codes[None], rows


def any_number_held(plan: CountingPlan, staged: Path, seen: int, key: bytes) -> np.ndarray:
    rows = pl.read_parquet(staged).filter(pl.col("code").is_not_null())
    held = rows.group_by("unit").agg(rows=pl.len())["rows"].to_numpy()
    return np.array([(held == 1).sum(), (held == 2).sum(), held[held > 2].sum()])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "name", "fault"),
    mostly_soaked(
        [
            (row_tables, "kept_words", beyond_words),
            (bounding, "kept_words", beyond_words),
            (row_tables, "_units_by_rows", any_number_held),
        ],
        [1],
    ),
)
def test_a_count_of_rows_beyond_those_that_are_seen_is_noticed(where: object, name: str, fault: object) -> None:
    parts.cache_clear()
    with patch.object(where, name, fault):
        found = furthest(substitute=False)
    parts.cache_clear()
    assert found != declared(substitute=False)


def test_limits_that_see_less_than_is_kept_are_refused() -> None:
    for kept, seen in ((3, 2), (0, 2)):
        with pytest.raises(MeasurementMisuse):
            Limits(kept, seen, substitute=False)


def test_what_is_left_in_a_folder_is_read_once(tmp_path: Path) -> None:
    left = observed({"a": (ROWS[0], ROWS[2])})
    row_tables.save(left, tmp_path)
    read = row_tables.load(tmp_path)
    assert {name: value.tolist() for name, value in vars(read).items()} == {
        name: value.tolist() for name, value in vars(left).items()
    }
    assert list(tmp_path.iterdir()) == []


def test_every_row_as_its_own_unit_is_seen_and_none_is_cut(tmp_path: Path) -> None:
    frame = pl.DataFrame(ROWS * 2, {"code": pl.Int32, "marks": pl.Int64}, orient="row")
    frame = frame.group_by("code", "marks").agg(rows=pl.len().cast(pl.Int64))
    frame.write_parquet(tmp_path / "rows.parquet")
    cube = bounding.count_rows(tmp_path / "rows.parquet", PLAN.domain.cells)
    assert cube.tolist() == [2, 0, 0, 2, 0, 2]
    seen = row_tables.observe_rows(replace(PLAN, privacy_unit="row"), 1, tmp_path / "rows.parquet", cube, KEY)
    assert (seen.places.tolist(), seen.failures.tolist()) == ([4, 2, 4], [[2, 4], [2, 2]])
    assert seen.cut.sum() == seen.units.sum() == 0


def test_of_a_family_the_rows_between_bound_and_seen_are_cut(tmp_path: Path) -> None:
    axes = tuple(Marginal((axis,), (None,), (size,)) for axis, size in enumerate(PLAN.domain.shape))
    alike, alone = 2 + 1 * 3, 0  # positions along both axes in one word
    rows = [("a", alike, 0)] * 5 + [("b", alone, 0)]
    frame = pl.DataFrame(rows, {"unit": pl.String, "word_0": pl.Int64, "marks": pl.Int64}, orient="row")
    frame.write_parquet(tmp_path / "rows.parquet")
    seen = row_tables.observe_rows(
        replace(PLAN, marginals=axes), SEEN, tmp_path / "rows.parquet", np.zeros(0, dtype=np.int64), KEY
    )
    assert (seen.cut_by.tolist(), seen.cut.tolist(), seen.units.tolist()) == ([0, 0, 2, 0, 2], [2], [1, 0, 1])


def test_failures_of_many_axes_are_those_of_each() -> None:
    """Of 45 axes, the last ones have their marks in a second word."""
    many = replace(PLAN, domain=Domain(tuple(replace(PLAN.domain.axes[0], name=f"a{number}") for number in range(45))))
    marks = np.array([[2 * 3**7, 0], [0, 1 * 3**3]])
    places, failures = row_tables._failures(many, iter([(marks, np.array([5, 11]))]))
    expected = np.zeros((45, 2), dtype=np.int64)
    expected[7, 1], expected[39 + 3, 0] = 5, 11
    assert failures.tolist() == expected.tolist() and places.sum() == 16
