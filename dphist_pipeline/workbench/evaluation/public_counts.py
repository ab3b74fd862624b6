"""Reads public counts from a file, or makes synthetic ones by name."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import Refused
from dphist_pipeline.workbench.evaluation.synthetic_sets import synthetic_counts

if TYPE_CHECKING:
    import pyarrow as pa

Numbers = NDArray[np.int64]
SYNTHETIC = "synthetic:"
MOST_CELLS = 10_000_000
MOST_AXES = 16
MOST_RECORDS = 1 << 52


def counts_refused(source: str, problem: str) -> Refused:
    """The file does not hold a table of counts."""
    return Refused(f"{source}: {problem}", code="counts_refused")


def read_counts(source: str, shape: tuple[int, ...] | None = None) -> Numbers:
    """The counts of a cube, int64, one per cell.

    Args:
        source: `synthetic:NAME`, or a Parquet or CSV file with whole-number columns: `count`, and for every axis the
            cell's position along it, from 0. Cells that are left out are empty.
        shape: cells along each axis; None for the smallest shape that holds all positions.
    """
    if source.startswith(SYNTHETIC):
        counts = synthetic_counts(source.removeprefix(SYNTHETIC))
        if shape not in (None, counts.shape):
            raise counts_refused(source, f"has {counts.size} cells on one axis: leave --shape out")
        return counts
    table = _read_table(source)
    columns = {name: _whole_numbers(source, table, name) for name in table.column_names}
    counts, places = columns.pop("count"), list(columns.values())
    if counts.size == 0:
        raise counts_refused(source, "has no rows; it needs one row for every cell that is not empty")
    # Both sides are divided by 2^26, so that the sum cannot overflow.
    if int((counts >> 26).sum()) >= MOST_RECORDS >> 26:
        raise counts_refused(source, "the counts add up to more than 2^52, beyond which they are not exact")
    sides = _shape(source, list(columns), places, shape)
    cells = np.ravel_multi_index(tuple(places), sides)
    if np.unique(cells).size < cells.size:
        raise counts_refused(source, "has two rows for one cell")
    cube = np.zeros(math.prod(sides), dtype=np.int64)
    cube[cells] = counts
    return cube.reshape(sides)


def _read_table(source: str) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv, parquet

    path = Path(source)
    if path.suffix.lower() not in (".parquet", ".csv"):
        raise counts_refused(source, "is neither `.parquet` nor `.csv`, nor `synthetic:NAME`")
    if not path.is_file():
        raise counts_refused(source, "there is no such file")
    try:
        table = csv.read_csv(path) if path.suffix.lower() == ".csv" else parquet.read_table(path)
    except (OSError, pa.ArrowException):
        table = None
    if table is None:
        raise counts_refused(source, f"cannot be read as {path.suffix[1:].upper()}")
    names = table.column_names
    if len(set(names)) != len(names):
        raise counts_refused(source, "has two columns of one name")
    if "count" not in names or not 2 <= len(names) <= MOST_AXES + 1:
        raise counts_refused(
            source,
            f"needs a column `count` and one column for each of 1 to {MOST_AXES} axes; it has {', '.join(names)[:200]}",
        )
    return table


def _whole_numbers(source: str, table: pa.Table, name: str) -> Numbers:
    import pyarrow as pa

    column = table.column(name)
    if column.null_count:
        raise counts_refused(source, f"column '{name}' has gaps")
    if column.length() and not pa.types.is_integer(column.type):
        raise counts_refused(source, f"column '{name}' must hold whole numbers, not {column.type}")
    values: NDArray[np.integer[Any]] = column.to_numpy()
    if values.size and values.min() < 0:
        raise counts_refused(source, f"column '{name}' holds numbers below 0")
    if values.size and values.max() > MOST_RECORDS:
        raise counts_refused(source, f"column '{name}' holds numbers above 2^52")
    return values.astype(np.int64)


def _shape(source: str, names: list[str], places: list[Numbers], shape: tuple[int, ...] | None) -> tuple[int, ...]:
    sides = tuple(int(place.max()) + 1 for place in places)
    if shape is not None and len(shape) != len(sides):
        raise counts_refused(source, f"has {len(sides)} axes ({', '.join(names)}); --shape names {len(shape)}")
    wanted = sides if shape is None else shape
    for name, side, needed in zip(names, wanted, sides, strict=True):
        if side < needed:
            raise counts_refused(source, f"axis '{name}' has a cell {needed - 1}; --shape ends it before {side}")
    if math.prod(wanted) > MOST_CELLS:
        grid = " × ".join(f"{side:,}" for side in wanted)
        raise counts_refused(source, f"{grid} = {math.prod(wanted):,} cells are too many; the most is {MOST_CELLS:,}")
    return wanted
