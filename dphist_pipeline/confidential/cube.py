"""The cube: exact counts of every declared cell, zeros included, in a private file."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dphist_pipeline.confidential import _table_counts as table_counts
from dphist_pipeline.confidential import row_tables
from dphist_pipeline.confidential._bounding import KEY_BYTES, count_bounded, count_rows
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.confidential.reading.source import withheld
from dphist_pipeline.confidential.row_queries import ObservedRows

# A process has one environment and one standard error.
ONE_AT_A_TIME = threading.Lock()
UNCOUNTED = "its rows could not be counted: no memory or disk left? Nothing was charged for it."
UNLIMITED = {"POLARS_OOC_MEMORY_BUDGET_MB": str(1 << 40), "POLARS_OOC_MEMORY_BUDGET_FRACTION": str(1 << 20)}


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
    problem = UNCOUNTED
    key = secrets.token_bytes(KEY_BYTES)
    with _guarded():
        counted = withheld(plan.source.written, problem, lambda: _counted(plan, staged, key))
    cube, (counts, observed) = folder / "cube.npy", counted
    np.save(cube, counts)
    if observed is not None:
        observed = replace(observed, misfiled=_misfiled(plan.misfiled, folder, problem, key))
        row_tables.save(observed, folder)
    staged.unlink()
    return cube


def write_granted_cube(plan: CountingPlan, granted: Mapping[int, Path], folder: Path) -> Path:
    """Bounds and counts the rows of an individual account into `cube.npy`, as `write_cube` does.

    Args:
        granted: staged rows in folders, by the number of rows that is kept of each unit there.
    """
    cells = sum(table.cells for table in plan.marginals) if plan.marginals else plan.domain.cells
    counts, key = np.zeros(cells, dtype=np.int64), secrets.token_bytes(KEY_BYTES)

    def count() -> None:
        for rows, staged in granted.items():
            counts[:] += _counted(replace(plan, max_rows_per_unit=rows), staged, key)[0]

    with _guarded():
        withheld(plan.source.written, UNCOUNTED, count)
    np.save(folder / "cube.npy", counts)
    return folder / "cube.npy"


@contextmanager
def _guarded() -> Iterator[None]:
    """Polars works for one caller at a time, in memory alone, and shows nothing."""
    with ONE_AT_A_TIME, _nothing_spilled(), _silence():
        yield


@contextmanager
def _nothing_spilled() -> Iterator[None]:
    """Polars keeps what it works on in memory, which is bounded: else it may write some to `/var/tmp`."""
    before = {name: os.environ.get(name) for name in UNLIMITED}
    pl.Config.load(json.dumps({"environment": UNLIMITED}))
    try:
        yield
    finally:
        pl.Config.load(json.dumps({"environment": before}))


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing reaches this process's standard error: Polars writes there what it panics about, and plans if asked to.

    Its panics go past Python, so the file descriptor itself is led elsewhere.
    """
    try:
        before = os.dup(2)
    except OSError:  # a process without a standard error shows nothing
        before = -1
    if before == -1:
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _counted(plan: CountingPlan, staged: Path, key: bytes) -> tuple[NDArray[np.int64], ObservedRows | None]:
    if plan.marginals:
        counts = table_counts.count_marginals(plan, staged, key)
    elif plan.privacy_unit == "row":
        counts = count_rows(staged, plan.domain.cells)
    else:
        counts = count_bounded(staged, plan.domain.cells, plan.max_rows_per_unit, key)
    if plan.rows_seen is None:
        return counts, None
    return counts, row_tables.observe_rows(plan, plan.rows_seen, staged, counts, key)


def _misfiled(plan: CountingPlan | None, folder: Path, problem: str, key: bytes) -> NDArray[np.int64]:
    """How many rows a plan of misfiled rows takes, at most T of each unit, shape (1,); 0 without one."""
    if plan is None or plan.rows_seen is None:
        return np.zeros(1, dtype=np.int64)
    apart = folder / "misfiled"
    apart.mkdir(mode=0o700, exist_ok=True)
    outside, seen = stage_rows(plan, apart), plan.rows_seen
    with _guarded():
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
