"""Exact numbers about the first T rows of each unit: what the bound cuts, and what fails to be a declared value."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dphist_pipeline.confidential.bounding import count_bounded, in_passes, kept_rows
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
    cells, rows = plan.domain.cells, pl.scan_parquet(staged, glob=False)
    if plan.privacy_unit == "row":
        units, cut = np.zeros(seen, dtype=np.int64), np.zeros(cells, dtype=np.int64)
        marked = rows.group_by("marks").agg(rows=pl.len().cast(pl.Int64)).collect(engine="streaming")
        kept = [(marked["marks"].to_numpy(), marked["rows"].to_numpy())]
    else:
        units = _units_by_rows(rows, seen)
        # The first R rows of a unit are among its first T, so this is how many of the latter the bound cuts.
        cut = count_bounded(staged, cells, seen, key) - cube
        kept = list(kept_rows(rows.select("unit", code="marks"), seen, key))
    return ObservedRows(units, cut, *_failures(plan, kept))


def _units_by_rows(rows: pl.LazyFrame, seen: int) -> Numbers:
    """Units that hold 1, 2, …, `seen` or more rows in declared cells."""
    units = np.zeros(seen, dtype=np.int64)
    for part in in_passes(rows.filter(pl.col("code").is_not_null())):
        held = part.group_by("unit").agg(held=pl.len()).collect(engine="streaming")["held"].to_numpy()
        units += np.bincount(np.minimum(held, seen) - 1, minlength=seen)
    return units


def _failures(plan: CountingPlan, kept: list[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
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
