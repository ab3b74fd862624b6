"""The cube: exact counts of every declared cell, zeros included, in a private file."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.guarded_polars import guarded_polars
from dphist_pipeline.confidential import _table_counts as table_counts
from dphist_pipeline.confidential import row_tables
from dphist_pipeline.confidential._bounding import KEY_BYTES, count_amounts, count_bounded, count_rows
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.confidential.reading.source import withheld
from dphist_pipeline.confidential.row_queries import ObservedRows

UNCOUNTED = "its rows could not be counted: no memory or disk left? Nothing was charged for it."


def write_cube(plan: CountingPlan, staged: Path, folder: Path) -> Path:
    """Bounds the staged rows and counts them into `cube.npy`: int64, shape (cells,), in declared order; or the cells of
    the plan's marginals, one marginal after the other.

    Where the plan asks for it, numbers for a quality table are left beside it.

    Args:
        staged: that `stage_rows` wrote; deleted once its rows are counted.

    Raises:
        SourceRefused: the rows cannot be counted, mostly for lack of memory or disk.
        Halted: `DPHIST_MEMORY` in the environment is no size.
    """
    key = secrets.token_bytes(KEY_BYTES)
    with guarded_polars():
        counted = withheld(plan.source.written, UNCOUNTED, lambda: _count(plan, staged, key))
    cube, (counts, observed) = folder / "cube.npy", counted
    np.save(cube, counts)
    if observed is not None:
        observed = replace(observed, misfiled=_count_misfiled(plan.misfiled, folder, UNCOUNTED, key))
        row_tables.save(observed, folder)
    staged.unlink()
    return cube


def count_each(plan: CountingPlan, staged: Mapping[int, Path]) -> NDArray[np.int64]:
    """Bounds and counts several staged files, or folders of them, of which each has a bound of its own; shape (cells,).

    Args:
        staged: by the number of rows that is kept of each unit there.
    """
    cells = sum(table.cells for table in plan.marginals) if plan.marginals else plan.domain.cells
    counts, key = np.zeros(cells, dtype=np.int64), secrets.token_bytes(KEY_BYTES)

    def count() -> None:
        for rows, file in staged.items():
            counts[:] += _count(replace(plan, max_rows_per_unit=rows), file, key)[0]

    with guarded_polars():
        withheld(plan.source.written, UNCOUNTED, count)
    return counts


def _count(plan: CountingPlan, staged: Path, key: bytes) -> tuple[NDArray[np.int64], ObservedRows | None]:
    if plan.marginals:
        rows = counts = table_counts.count_marginals(plan, staged, key)
    elif plan.domain.amount is not None:
        rows, counts = _amount_counts(plan, plan.domain.amount, staged, key)
    elif plan.privacy_unit == "row":
        rows = counts = count_rows(staged, plan.domain.cells)
    else:
        rows = counts = count_bounded(staged, plan.domain.cells, plan.max_rows_per_unit, key, plan.distinct)
    if plan.rows_seen is None:
        return counts, None
    return counts, row_tables.observe_rows(plan, plan.rows_seen, staged, rows, key)


def _amount_counts(
    plan: CountingPlan, axis: int, staged: Path, key: bytes
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Kept rows of the cells of the grid without its amount, and the parts of rows in all cells.

    Privacy. A kept row of k parts adds k to its cell at the upper end and M - k to the one at the lower, both from 0
    to M: in L1 that is M, whatever its amount. What is kept of a unit is at most R rows, a function of its own rows and
    the key. So one unit moves the parts by at most R·M, and where another one takes its place by at most 2·R·M: Δ·M.

    Args:
        axis: the number of the amount.
    """
    grid = plan.domain.of_rows
    if plan.privacy_unit == "row":
        rows, upper = count_rows(staged, grid.cells), count_rows(staged, grid.cells, "amount")
    else:
        rows, upper = count_amounts(staged, grid.cells, plan.max_rows_per_unit, key)
    ends = [part.reshape(grid.shape) for part in (rows * plan.parts - upper, upper)]
    return rows, np.stack(ends, axis=axis).ravel()


def _count_misfiled(plan: CountingPlan | None, folder: Path, problem: str, key: bytes) -> NDArray[np.int64]:
    """Counts the rows that a plan of misfiled rows takes, at most T of each unit, shape (1,); 0 without one."""
    if plan is None or plan.rows_seen is None:
        return np.zeros(1, dtype=np.int64)
    apart = folder / "misfiled"
    apart.mkdir(mode=0o700, exist_ok=True)
    outside, seen = stage_rows(plan, apart), plan.rows_seen
    with guarded_polars():
        rows = withheld(plan.source.written, problem, lambda: row_tables.first_rows(plan, seen, outside, key))
    outside.unlink()
    return np.array([rows], dtype=np.int64)


def load_cube(cube: Path) -> NDArray[np.int64]:
    """The counts that `write_cube` wrote, by either engine: int64, shape (cells,); of marginals, (cells of all,)."""
    counts: NDArray[np.int64] = np.load(cube, allow_pickle=False)
    return counts


def read_and_count(plan: CountingPlan, folder: Path) -> NDArray[np.int64]:
    """Exact counts of a plan, straight from the source, shape (cells,); they stay in the run's private folder."""
    return load_cube(write_cube(plan, stage_rows(plan, folder), folder))
