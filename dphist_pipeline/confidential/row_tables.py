"""Exact numbers about the first T rows of each unit: what the bound cuts, and what fails to be a declared value."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.confidential.bounding import count_bounded, kept_rows, staged_rows
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.reading.positions import MARKS, UNDECLARED, UNPARSED
from dphist_pipeline.confidential.row_questions import ObservedRows

Numbers = NDArray[np.int64]

FILE = "quality.npz"


def observe_rows(plan: CountingPlan, seen: int, staged: Path, cube: Numbers, key: bytes) -> ObservedRows:
    """Counts the first `seen` rows of each unit in the order of the key.

    Args:
        plan: with the bound and the grid.
        seen: T, at least the bound.
        staged: Parquet with `code`, null for rows in no cell, `marks`, and `unit` unless each row is its own.
        cube: the counts that the bound leaves, by the same key.
        key: of bounding.
    """
    cells = plan.domain.cells
    if plan.privacy_unit == "row":
        units, cut = np.zeros(seen, dtype=np.int64), np.zeros(cells, dtype=np.int64)
        import polars as pl

        marked = (
            pl.scan_parquet(staged, glob=False).group_by("marks").agg(pl.col("rows").sum()).collect(engine="streaming")
        )
        kept = iter([(marked["marks"].to_numpy(), marked["rows"].to_numpy())])
    else:
        units = _units_by_rows(staged, seen)
        # The first R rows of a unit are among its first T, so this is how many of the latter the bound cuts.
        cut = count_bounded(staged, cells, seen, key) - cube
        kept = kept_rows(staged, "marks", seen, key)
    return ObservedRows(units, cut, *_failures(plan, kept))


def _units_by_rows(staged: Path, seen: int) -> Numbers:
    """Units that hold 1, 2, …, `seen` or more rows in declared cells."""
    held = "SELECT least(count(*), $seen) AS held FROM staged GROUP BY unit"
    with staged_rows(staged, ["code"]) as connection:
        found = connection.execute(f"SELECT held, count(*) FROM ({held}) GROUP BY held", {"seen": seen}).fetchall()
    units = dict(found)
    return np.array([units.get(rows, 0) for rows in range(1, seen + 1)])


def _failures(plan: CountingPlan, kept: Iterator[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    """Rows by place and failures by axis, from pairs of marks and numbers of rows."""
    axes = plan.domain.axes
    places, failures = np.zeros(3, dtype=np.int64), np.zeros((len(axes), 2), dtype=np.int64)
    for marks, rows in kept:
        place = np.zeros(marks.size, dtype=np.int64)
        for number, axis in enumerate(axes):
            digit = marks // MARKS**number % MARKS
            for failure in (UNPARSED, UNDECLARED):
                failures[number, failure - 1] += rows[digit == failure].sum()
            place = np.maximum(place, np.where(digit == 0, 0, 2 if axis.other_cell is None else 1))
        np.add.at(places, place, rows)
    return places, failures


def save(observed: ObservedRows, folder: Path) -> None:
    """Leaves the numbers in a private folder."""
    np.savez(folder / FILE, **vars(observed))


def load(folder: Path) -> ObservedRows:
    """The numbers that `save` left, and deletes their file."""
    with np.load(folder / FILE, allow_pickle=False) as arrays:
        observed = ObservedRows(**{name: arrays[name] for name in arrays.files})
    (folder / FILE).unlink()
    return observed
