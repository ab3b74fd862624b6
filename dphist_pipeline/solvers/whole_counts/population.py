"""A population of whole records whose tables are near to given ones: drawn, weighted, and moved one value at a time.

*Start.* Records are drawn along a tree of tables, then weighted until their tables have the wanted sums. The first
table gives the values of its axes; then, again and again, the table that tells most about axes without values, given
those that have some, gives these. Records with the same values so far get their shares of the new ones, in an order
that looks like chance and follows from the numbers alone.

*Moves.* A population is a list of records with whole weights. Taking weight d from a record and giving it another value
on one axis changes two cells of each table that has the axis; the weighted sum of squared misfits is a parabola in d,
so the best whole d is known. Records are visited in turn, each axis with all its values, and the best move is made at
once. Of long axes some values are tried; of those with levels most of these lie near by, in the same region of one
level or another, since what leaves a region that has its sum is lost however much its place would gain. The sum never
grows, and the number of steps is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function
from dphist_pipeline.solvers.whole_counts.marginal_fit import on_simplex

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]
Places = NDArray[np.int32]
Axes = tuple[int, ...]

# Limits of fitting the start:
_MOST_PASSES, _FEWEST_PASSES, _MOST_LOOKS = 60, 4, 3e8
_NEAR_ENOUGH = 0.02
_LEAST_WEIGHT = 1e-6
# Limits of moving records between values:
MOST_TRIED = 48  # values of an axis that one visit looks at
_ENOUGH = 0.002
_MOST_VISITS = 60


@dataclass(frozen=True, eq=False)
class CellLayout:
    """Where the cells of all tables lie, one table after another.

    Attributes:
        sizes: positions along each axis of a record, shape (axes,).
        tables: for each table its axes and, for each axis, what a position adds to the number of the cell.
        starts: the number of the first cell of each table, and of all cells, shape (tables + 1,).
    """

    sizes: tuple[int, ...]
    tables: tuple[tuple[tuple[int, Wholes], ...], ...]
    starts: Wholes

    @classmethod
    def of(
        cls, sizes: Sequence[int], tables: Sequence[tuple[tuple[int, Wholes], ...]], cells: Sequence[int]
    ) -> CellLayout:
        """The tables one after another, by the cells of each."""
        return cls(tuple(sizes), tuple(tables), np.cumsum([0, *cells]))

    def cells(self, table: int, records: Places) -> Wholes:
        """The cell of each record, shape (records, axes), in a table; counted from the first cell of all."""
        places = np.full(len(records), self.starts[table], dtype=np.int64)
        for axis, steps in self.tables[table]:
            places += steps[records[:, axis]]
        return places

    def sums(self, records: Places, weights: Wholes) -> Wholes:
        """All tables of a population, shape (cells,), by positions, shape (records, axes), and weights of records."""
        sums = np.zeros(int(self.starts[-1]), dtype=np.int64)
        for table in range(len(self.tables)):
            np.add.at(sums, self.cells(table, records), weights)
        return sums


def improve(
    layout: CellLayout,
    records: Places,
    weights: Wholes,
    targets: Reals,
    importance: Reals,
    labels: Sequence[Wholes],
    most_records: int,
    most_steps: float,
) -> tuple[Places, Wholes, float]:
    """Moves records until no single move helps much, or the steps are used up.

    Args:
        records: positions along the axes, shape (records, axes).
        weights: of the records, positive, shape (records,).
        targets: wanted cells of all tables, shape (cells,).
        importance: of a squared misfit in a cell of each table, shape (tables,).
        labels: for each axis a label of every position; a record keeps its labels.
        most_records: that the population may grow to when weights are split.
        most_steps: how many cells may be looked at; 10^8 take some seconds.

    Returns:
        Records and weights, whose total is as before, and the weighted sum of squared misfits.
    """
    room, used = max(most_records, len(records)), len(records)
    places, held = np.zeros((room, len(layout.sizes)), dtype=np.int32), np.zeros(room, dtype=np.int64)
    places[:used], held[:used] = records, weights
    misfit = layout.sums(records, weights) - targets
    packed, now = _pack(layout, importance, labels), np.inf
    looks = sum(min(layout.sizes[axis], MOST_TRIED) + len(table) for table in layout.tables for axis, _ in table)
    for number in range(_MOST_VISITS):
        most_steps -= used * float(looks)  # a visit of one record looks at so many cells
        if most_steps < 0 and number > 1:
            break
        used, before = _visit(places, held, used, misfit, number, packed), now
        now = float(np.add.reduceat(misfit * misfit, layout.starts[:-1]) @ importance)
        if now > before * (1 - _ENOUGH):
            break
    return places[:used], held[:used], now


class _Packed(NamedTuple):
    """The layout as flat arrays.

    Attributes:
        sizes: of the axes.
        tables: the tables that have the first axis, then those that have the second one, …
        tables_at: where those of an axis start.
        axes: the axes of the first table, then those of the second one, …
        axes_at: where those of a table start.
        steps: what positions add to the number of a cell, for each of `axes` in turn.
        steps_at: where those of each of `axes` start.
        cells_at: the first cell of each table.
        labels: of the positions of the first axis, then of the second one, …
        labels_at: where those of an axis start.
        order: the positions of the first axis, groups of its levels together, then those of the second one, …
        place: of each position in that order, counted from the first of its axis.
        nested: whether an axis has levels.
        importance: of each table.
    """

    sizes: Wholes
    tables: Wholes
    tables_at: Wholes
    axes: Wholes
    axes_at: Wholes
    steps: Wholes
    steps_at: Wholes
    cells_at: Wholes
    labels: Wholes
    labels_at: Wholes
    order: Wholes
    place: Wholes
    nested: NDArray[np.bool_]
    importance: Reals


def _pack(layout: CellLayout, importance: Reals, labels: Sequence[Wholes]) -> _Packed:
    every = range(len(layout.sizes))
    by_axis = [[number for number, table in enumerate(layout.tables) if axis in dict(table)] for axis in every]
    parts = [part for table in layout.tables for part in table]
    levels = [_levels_of(layout, axis) for axis in every]
    orders = [np.lexsort((np.arange(size), *of)) for of, size in zip(levels, layout.sizes, strict=True)]
    return _Packed(
        np.array(layout.sizes, dtype=np.int64),
        np.array([number for numbers in by_axis for number in numbers], dtype=np.int64),
        _starts(by_axis),
        np.array([axis for axis, _ in parts], dtype=np.int64),
        _starts(layout.tables),
        np.concatenate([steps for _, steps in parts]),
        _starts([steps for _, steps in parts]),
        layout.starts,
        np.concatenate(labels),
        _starts(labels),
        np.concatenate(orders),
        np.concatenate([np.argsort(order) for order in orders]),
        np.array([bool(of) for of in levels]),
        importance,
    )


def _levels_of(layout: CellLayout, axis: int) -> list[Wholes]:
    """What positions on an axis add in tables that tell only groups of them apart, the smallest groups first."""
    levels = {}
    for table in layout.tables:
        steps = dict(table).get(axis)
        if steps is not None and (groups := np.unique(steps, return_inverse=True)[1]).max() + 1 < steps.size:
            levels[groups.tobytes()] = groups
    return sorted(levels.values(), key=lambda groups: -int(groups.max()))


def _starts(parts: Sequence[Sequence[object] | Wholes]) -> Wholes:
    return np.cumsum([0, *map(len, parts)])


@compile_function
def _visit(places: Places, weights: Wholes, used: int, misfit: Reals, number: int, of: _Packed) -> int:
    """Visits every record once; how many records there are afterwards."""
    most = np.diff(of.tables_at).max()
    rest, along = np.empty(most, np.int64), np.empty(most, np.int64)
    tried, gains, curves = np.empty(MOST_TRIED, np.int64), np.empty(MOST_TRIED), np.empty(MOST_TRIED)
    for record in range(used):
        for axis in range(of.sizes.size):
            many = _look_around(places[record], axis, rest, along, of)
            count = _choose_values(places[record, axis], axis, record, number, tried, of)
            _weigh(places[record, axis], axis, many, rest, along, tried[:count], gains, curves, misfit, of)
            spare = used < weights.size
            chosen, moved = _best(weights[record], spare, tried[:count], gains, curves)
            if moved == 0:
                continue
            for place in range(many):
                misfit[rest[place] + of.steps[along[place] + places[record, axis]]] -= moved
                misfit[rest[place] + of.steps[along[place] + chosen]] += moved
            if moved == weights[record]:
                places[record, axis] = chosen
                continue
            weights[record] -= moved
            weights[used] = moved
            places[used] = places[record]
            places[used, axis] = chosen
            used += 1
    return used


@compile_function
def _look_around(record: Places, axis: int, rest: Wholes, along: Wholes, of: _Packed) -> int:
    """For each table with the axis: the cell but for that axis, and where the axis's steps start; how many tables."""
    first = of.tables_at[axis]
    many = of.tables_at[axis + 1] - first
    for place in range(many):
        table = of.tables[first + place]
        rest[place] = of.cells_at[table]
        for part in range(of.axes_at[table], of.axes_at[table + 1]):
            if of.axes[part] == axis:
                along[place] = of.steps_at[part]
            else:
                rest[place] += of.steps[of.steps_at[part] + record[of.axes[part]]]
    return int(many)


@compile_function
def _choose_values(old: int, axis: int, record: int, number: int, tried: Wholes, of: _Packed) -> int:
    """The values that are tried instead of the old one; how many. On a long axis some, by a fixed mixing of numbers."""
    size, start, count = of.sizes[axis], of.labels_at[axis], 0
    bits = np.int64(np.log2(size))
    state = np.uint64(record) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(number * 1009 + axis)
    for one in range(min(size, MOST_TRIED)):
        value = np.int64(one)
        if size > MOST_TRIED:
            state = (state ^ (state >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9) + np.uint64(1)
            drawn = state >> np.uint64(20)
            value = np.int64(drawn % np.uint64(size))
            if of.nested[axis] and one % 4 != 0:
                # A neighbour at most 2, 4, 8, … places away, so that some lie in the same group of every level.
                within = min(size, 2 << (one * bits // MOST_TRIED))
                first = max(0, min(of.place[start + old] - within // 2, size - within))
                value = of.order[start + first + np.int64(drawn % np.uint64(within))]
        if value != old and of.labels[start + value] == of.labels[start + old]:
            tried[count] = value
            count += 1
    return count


@compile_function
def _weigh(
    old: int,
    axis: int,
    many: int,
    rest: Wholes,
    along: Wholes,
    tried: Wholes,
    gains: Reals,
    curves: Reals,
    misfit: Reals,
    of: _Packed,
) -> None:
    """For each value: moving weight d there changes the misfit by -2·d·gain + 2·d²·curve."""
    gains[:], curves[:] = 0.0, 0.0
    for place in range(many):
        weight = of.importance[of.tables[of.tables_at[axis] + place]]
        here = rest[place] + of.steps[along[place] + old]
        for one in range(tried.size):
            there = rest[place] + of.steps[along[place] + tried[one]]
            if there != here:
                gains[one] += weight * (misfit[here] - misfit[there])
                curves[one] += weight


@compile_function
def _best(weight: int, spare: bool, tried: Wholes, gains: Reals, curves: Reals) -> tuple[int, int]:
    """The best value, and how much of the record's weight to move there; 0 where no whole number helps."""
    best, chosen, most = 0.0, 0, 0
    for one in range(tried.size):
        if gains[one] > curves[one]:
            moved = min(weight, int(np.floor(gains[one] / (2 * curves[one]) + 0.5)))
            if not spare or moved < 1:  # all of the record, or the least part
                moved = weight if not spare else 1
            gain = moved * (gains[one] - moved * curves[one])
            if gain > best:
                best, chosen, most = gain, int(tried[one]), moved
    return chosen, most


def drawn_records(
    shape: Sequence[int], tables: Mapping[Axes, tuple[Reals, float]], given: Mapping[int, Wholes], many: int
) -> Places:
    """Records, as positions of shape (many, axes), whose tables are near to given ones along a tree of them.

    Args:
        tables: by rising axes: estimates, and one over the variance of each; every axis alone is among them.
        given: positions of all records on some axes, shape (many,) each.
    """
    places = np.zeros((many, len(shape)), dtype=np.int32)
    for axis, along in given.items():
        places[:, axis] = along
    known, tells = set(given), {}
    while len(known) < len(shape):
        best: tuple[float, Axes] = (-math.inf, ())
        for axes in tables:
            old = tuple(axis for axis in axes if axis in known)
            if len(old) == len(axes):
                continue
            if (axes, old) not in tells:
                tells[axes, old] = _dependence(*tables[axes], [axes.index(axis) for axis in old])
            # A table that hangs on to nothing known comes only where no other can.
            best = max(best, (tells[axes, old] if old or not known else -1e300 + tells[axes, old], axes))
        axes = best[1]
        _draw(places, axes, [axis for axis in axes if axis in known], np.maximum(tables[axes][0], 0.0), shape)
        known |= set(axes)
    return places


def _dependence(table: Reals, precision: float, old: Sequence[int]) -> float:
    """What a table tells about its other axes given the old ones: misfit of independence beyond that of noise."""
    split = _matrix_of(np.maximum(table, 0.0), old)
    total = max(split.sum(), _LEAST_WEIGHT)
    apart = split - split.sum(axis=1, keepdims=True) * split.sum(axis=0, keepdims=True) / total
    return float((apart**2).sum() * precision - split.size)


def _matrix_of(table: Reals, old: Sequence[int]) -> Reals:
    """A table by its old axes and by its others, shape (old cells, other cells)."""
    others = [axis for axis in range(table.ndim) if axis not in old]
    return table.transpose([*old, *others]).reshape(math.prod(table.shape[axis] for axis in old), -1)


def _draw(places: Places, axes: Axes, old: Sequence[int], table: Reals, shape: Sequence[int]) -> None:
    """Values on the other axes of a table, in quotas for each combination of old values."""
    new = [axis for axis in axes if axis not in old]
    split = _matrix_of(table, [axes.index(axis) for axis in old])
    empty = split.sum(axis=1) <= 0
    split[empty] = split.sum(axis=0) if split.sum() > 0 else 1.0
    ends = np.cumsum(split, axis=1)
    ends = ends / ends[:, -1:] + np.arange(len(split))[:, None]
    before = np.zeros(len(places), dtype=np.int64)
    for axis in old:
        before = before * shape[axis] + places[:, axis]
    order = np.lexsort((mix_words(len(places), new[0]), before))
    sorted_before = before[order]
    starts = np.searchsorted(sorted_before, np.arange(len(split) + 1))
    sizes = np.diff(starts)[sorted_before]
    rank = np.arange(len(places)) - starts[sorted_before]
    cells = np.searchsorted(ends.ravel(), sorted_before + (rank + 0.5) / sizes, side="right")
    cells = np.minimum(cells - sorted_before * split.shape[1], split.shape[1] - 1)
    for axis in reversed(new):
        places[order, axis] = cells % shape[axis]
        cells = cells // shape[axis]


def mix_words(many: int, number: int) -> NDArray[np.uint64]:
    """Words whose order looks like chance, another one for each number; shape (many,)."""
    words = np.arange(many, dtype=np.uint64) + np.uint64(((number + 1) * 0x9E3779B97F4A7C15) % (1 << 64))
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def fit_rows(
    layout: CellLayout, records: Places, rows: Wholes, targets: Reals, importance: Reals, groups: Wholes
) -> Wholes:
    """Whole rows of records, whose tables are near to given ones: proportional fitting, the surest tables last.

    Args:
        records: positions, shape (records, axes).
        rows: of each record, positive.
        targets: wanted cells of all tables.
        importance: of each table.
        groups: label of every record, from 0; the rows of each label stay as many.

    Returns:
        Rows, of which some may be 0, shape (records,). O(records · tables) for each of a few dozen passes.
    """
    amounts, total, before = rows.astype(np.float64), float(rows.sum()), np.inf
    cells = [layout.cells(table, records) - layout.starts[table] for table in range(len(layout.tables))]
    wanted = [
        np.maximum(on_simplex(targets[start:end], total), _LEAST_WEIGHT * total / (end - start))
        for start, end in zip(layout.starts[:-1], layout.starts[1:], strict=True)
    ]
    passes = int(min(_MOST_PASSES, max(_FEWEST_PASSES, _MOST_LOOKS / (len(rows) * len(cells)))))
    for _ in range(passes):
        missed = 0.0
        for table in np.argsort(importance, kind="stable").tolist():
            sums = np.bincount(cells[table], weights=amounts, minlength=wanted[table].size)
            missed += importance[table] * float(((sums - wanted[table]) ** 2).sum())
            amounts *= (wanted[table] / np.maximum(sums, _LEAST_WEIGHT))[cells[table]]
        if missed > before * (1 - _NEAR_ENOUGH):
            break
        before = missed
    wholes = np.zeros(len(rows), dtype=np.int64)
    # One sort, since there may be a million labels.
    for mine in np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1]):
        ends = np.cumsum(amounts[mine])
        if mine.size:
            wholes[mine] = np.diff(np.round(ends * (rows[mine].sum() / ends[-1])).astype(np.int64), prepend=0)
    return wholes
