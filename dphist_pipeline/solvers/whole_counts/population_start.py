"""Records to begin a fit with: drawn along a tree of tables, then weighted until their tables have wanted sums.

The first table gives the values of its axes; then, again and again, the table that tells most about axes without
values, given those that have some, gives these. Records with the same values so far get their shares of the new ones,
in an order that looks like chance and follows from the numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.whole_counts.marginal_fit import on_simplex
from dphist_pipeline.solvers.whole_counts.population_moves import Layout, Places, Reals, Wholes

Axes = tuple[int, ...]

_MOST_PASSES, _FEWEST_PASSES, _MOST_LOOKS = 60, 4, 3e8
_ENOUGH = 0.02
_LEAST = 1e-6


def drawn_records(
    shape: Sequence[int], tables: Mapping[Axes, tuple[Reals, float]], given: Mapping[int, Wholes], many: int
) -> Places:
    """Records whose tables are near to given ones along a tree of them.

    Args:
        shape: positions along each axis.
        tables: by rising axes: estimates, and one over the variance of each; every axis alone is among them.
        given: positions of all records on some axes, shape (many,) each.
        many: records.

    Returns:
        Positions, shape (many, axes).
    """
    places = np.zeros((many, len(shape)), dtype=np.int32)
    for axis, along in given.items():
        places[:, axis] = along
    known, told = set(given), {}
    while len(known) < len(shape):
        best: tuple[float, Axes] = (-math.inf, ())
        for axes in tables:
            old = tuple(axis for axis in axes if axis in known)
            if len(old) == len(axes):
                continue
            if (axes, old) not in told:
                told[axes, old] = _told(*tables[axes], [axes.index(axis) for axis in old])
            # A table that hangs on to nothing known comes only where no other can.
            best = max(best, (told[axes, old] if old or not known else -1e300 + told[axes, old], axes))
        axes = best[1]
        _draw(places, axes, [axis for axis in axes if axis in known], np.maximum(tables[axes][0], 0.0), shape)
        known |= set(axes)
    return places


def _told(table: Reals, precision: float, old: Sequence[int]) -> float:
    """What a table tells about its other axes given the old ones: misfit of independence beyond that of noise."""
    split = _split(np.maximum(table, 0.0), old)
    total = max(split.sum(), _LEAST)
    apart = split - split.sum(axis=1, keepdims=True) * split.sum(axis=0, keepdims=True) / total
    return float((apart**2).sum() * precision - split.size)


def _split(table: Reals, old: Sequence[int]) -> Reals:
    """A table by its old axes and by its others, shape (old cells, other cells)."""
    others = [axis for axis in range(table.ndim) if axis not in old]
    return table.transpose([*old, *others]).reshape(math.prod(table.shape[axis] for axis in old), -1)


def _draw(places: Places, axes: Axes, old: Sequence[int], table: Reals, shape: Sequence[int]) -> None:
    """Values on the other axes of a table, in quotas for each combination of old values."""
    new = [axis for axis in axes if axis not in old]
    split = _split(table, [axes.index(axis) for axis in old])
    empty = split.sum(axis=1) <= 0
    split[empty] = split.sum(axis=0) if split.sum() > 0 else 1.0
    ends = np.cumsum(split, axis=1)
    ends = ends / ends[:, -1:] + np.arange(len(split))[:, None]
    before = np.zeros(len(places), dtype=np.int64)
    for axis in old:
        before = before * shape[axis] + places[:, axis]
    order = np.lexsort((mixed(len(places), new[0]), before))
    sorted_before = before[order]
    starts = np.searchsorted(sorted_before, np.arange(len(split) + 1))
    held = np.diff(starts)[sorted_before]
    rank = np.arange(len(places)) - starts[sorted_before]
    cells = np.searchsorted(ends.ravel(), sorted_before + (rank + 0.5) / held, side="right")
    cells = np.minimum(cells - sorted_before * split.shape[1], split.shape[1] - 1)
    for axis in reversed(new):
        places[order, axis] = cells % shape[axis]
        cells = cells // shape[axis]


def mixed(many: int, number: int) -> NDArray[np.uint64]:
    """Words whose order looks like chance, another one for each number; shape (many,).

    Args:
        many: words.
        number: of the order.
    """
    words = np.arange(many, dtype=np.uint64) + np.uint64(((number + 1) * 0x9E3779B97F4A7C15) % (1 << 64))
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def weighted(
    layout: Layout, records: Places, rows: Wholes, targets: Reals, importance: Reals, groups: Wholes
) -> Wholes:
    """Whole rows of records, whose tables are near to given ones: proportional fitting, the surest tables last.

    Args:
        layout: of the tables.
        records: positions, shape (records, axes).
        rows: of each record, positive.
        targets: wanted cells of all tables.
        importance: of each table.
        groups: label of every record, from 0; the rows of each label stay as many.

    Returns:
        Rows, of which some may be 0, shape (records,). O(records · tables) for each of a few dozen passes.
    """
    held, total, before = rows.astype(np.float64), float(rows.sum()), np.inf
    cells = [layout.cells(table, records) - layout.starts[table] for table in range(len(layout.tables))]
    wanted = [
        np.maximum(on_simplex(targets[start:end], total), _LEAST * total / (end - start))
        for start, end in zip(layout.starts[:-1], layout.starts[1:], strict=True)
    ]
    passes = int(min(_MOST_PASSES, max(_FEWEST_PASSES, _MOST_LOOKS / (len(rows) * len(cells)))))
    for _ in range(passes):
        missed = 0.0
        for table in np.argsort(importance, kind="stable").tolist():
            found = np.bincount(cells[table], weights=held, minlength=wanted[table].size)
            missed += importance[table] * float(((found - wanted[table]) ** 2).sum())
            held *= (wanted[table] / np.maximum(found, _LEAST))[cells[table]]
        if missed > before * (1 - _ENOUGH):
            break
        before = missed
    wholes = np.zeros(len(rows), dtype=np.int64)
    for label in range(int(groups.max()) + 1):
        mine = np.flatnonzero(groups == label)
        ends = np.cumsum(held[mine])
        if mine.size:
            wholes[mine] = np.diff(np.round(ends * (rows[mine].sum() / ends[-1])).astype(np.int64), prepend=0)
    return wholes
