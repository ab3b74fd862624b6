"""Mean counts of cells given noisy sums of a tree of boxes, where halves of a box may be even, uneven or empty.

Model. Every box is halved, axis by axis, down to its cells. How a count N is split is drawn from a mixture of laws:
even up to chance, uneven by some part, any split alike, or all on one side. The weights of the mixture depend on the
size class of N alone and are learned from the noisy sums by expectation and maximisation: nothing is assumed of where
counts lie or how smooth they are. The noise of the sums is the discrete Laplace law that was drawn, and given all of
them the mean of each cell is exact up to the grid of counts and the windows below.

Grid and windows. Counts stand in steps of a third of the least noise scale (one record where that is narrow). Of each
box, counts around its least squares estimate are looked at, as far as the noise can explain, and from 0 on where that
is near.

Cost. A box takes the product of its halves' windows, about 3,000 multiplications whatever the number of cells: about a
second for 4,096 cells, 8 to 25 for 10^6. Weights are learned on at most `LEARNED_ON` cells, whole boxes that lie evenly
over the grid.

Source: Kolaczyk. Bayesian multiscale models for Poisson processes. JASA 1999, and Crouse, Nowak, Baraniuk.
Wavelet-based statistical signal processing using hidden Markov models. 1998, for models of splits; the mixture with its
exact messages for noisy counts is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.trees import _split_kernels as kernels
from dphist_pipeline.solvers.trees.regular_tree import RegularTree, Widths, covariance
from dphist_pipeline.solvers.trees.tree_consistency import consistent_cells

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
Singles = NDArray[np.float32]

ROUNDS = 8
LEARNED_ON = 1 << 14
STEPS_A_SCALE = 3
DEVIATIONS, SCALES = 4.5, 3.0  # of the noise: how far a window reaches
NEAR_EMPTY = 40  # steps: a window that begins below begins at 0
PRIOR = 2.0  # uses of each law, before any is seen
BESIDE = 0.2  # of what the classes beside one have seen


@dataclass(frozen=True)
class _Level:
    """The boxes of a level, in C order of their grid.

    Attributes:
        low: the first count of each box's window, in steps.
        starts: where its entries begin; shape (boxes + 1,).
        noisy: what was measured; empty if nothing was.
        scale: of its noise in records; 0 if nothing was measured.
    """

    low: Numbers
    starts: Numbers
    noisy: Reals
    scale: float

    @property
    def parts(self) -> tuple[Numbers, Numbers, Reals, float]:
        """As the kernels take them."""
        return self.low, self.starts, self.noisy, self.scale


@dataclass(frozen=True)
class _Halved:
    """A grid that is halved from one box to its cells, with what was measured of it.

    Attributes:
        levels: from the one box to the cells.
        halves: for each level but the last, the numbers of each box's halves; -1 for one that holds no cell.
        step: records a step.
        cells: their least squares estimates, in records, shape of the grid.
    """

    levels: list[_Level]
    halves: list[tuple[Numbers, Numbers]]
    step: float
    cells: Reals

    @classmethod
    def of(cls, tree: RegularTree, noisy: Sequence[Reals], scales: Sequence[float]) -> _Halved:
        """From noisy sums of a tree whose widths are powers of two."""
        variances = [2.0 * scale**2 for scale in scales]
        cells = sums = consistent_cells(tree, noisy, variances)
        parts = covariance(tree, variances)
        step = float(max(1, int(min(scales) / STEPS_A_SCALE)))
        measured = dict(zip(tree.widths, zip(noisy, scales, strict=True), strict=True))
        chain = _halvings(tree)
        windows: list[tuple[Numbers, Numbers]] = []
        for number in range(len(chain) - 1, -1, -1):
            if number < len(chain) - 1:
                sums = _pair_sums(sums, _halved_axis(chain, number))
            reach = DEVIATIONS * _deviation(tree, parts, chain[number]) + SCALES * min(scales)
            windows.insert(0, _window(sums.ravel(), reach, step))
        halves = [_numbers_of_halves(tree.shape, chain, number) for number in range(len(chain) - 1)]
        for number in range(len(halves) - 1, -1, -1):
            windows[number] = _fitting(windows[number], windows[number + 1], halves[number])
        nothing = (np.empty(0), 0.0)
        levels = []
        for (low, high), widths in zip(windows, chain, strict=True):
            values, scale = measured.get(widths, nothing)
            starts = np.concatenate([[0], np.cumsum(high - low + 1)])
            levels.append(_Level(low, starts, np.ascontiguousarray(values, dtype=np.float64).ravel(), float(scale)))
        return cls(levels, halves, step, cells)

    def upwards(self, table: Reals, weights: Reals) -> tuple[list[Singles], list[Reals]]:
        """Messages of all levels from below, and what they were divided by; none for the cells."""
        law = (table, weights, self.step)
        messages = [np.empty(0, dtype=np.float32)]
        peaks: list[Reals] = []
        for number in range(len(self.halves) - 1, -1, -1):
            level, children = self.levels[number], self.levels[number + 1]
            above, peak = np.empty(level.starts[-1], dtype=np.float32), np.empty(level.low.size)
            kernels.upwards(level.parts, children.parts, self.halves[number], law, messages[0], above, peak)
            messages.insert(0, above)
            peaks.insert(0, peak)
        return messages, peaks

    def passes(self, table: Reals, weights: Reals, learns: bool) -> tuple[Reals, Reals, Reals]:
        """Both passes: means of cells in steps, expected pairs, and uses of laws by large counts; see the kernels."""
        messages, peaks = self.upwards(table, weights)
        law = (table, weights, self.step)
        pairs, uses = np.zeros(table.shape), np.zeros(weights.shape)
        rest = np.ones(self.levels[0].starts[-1], dtype=np.float32)
        means = np.empty(0)
        for number, halves in enumerate(self.halves):
            level, children = self.levels[number], self.levels[number + 1]
            last = number == len(self.halves) - 1
            said = np.empty(0 if last else children.starts[-1], dtype=np.float32)
            means = np.empty(children.low.size if last else 0)
            above = (messages[number], rest, peaks[number])
            results = (said, means, pairs, uses)
            kernels.downwards(level.parts, children.parts, halves, law, messages[number + 1], above, results, learns)
            messages[number] = rest  # its room is free now
            rest = said
        return means, pairs, uses


def split_means(tree: RegularTree, noisy: Sequence[Reals], scales: Sequence[float]) -> Reals:
    """The mean count of every cell, given noisy sums of the boxes of a tree.

    Args:
        tree: its widths are powers of two.
        noisy: for each level, from the top, a noisy count of every box that holds a cell, in C order.
        scales: of each level's discrete Laplace noise, in records.

    Returns:
        float64, shape of the grid; not below 0.
    """
    whole = _Halved.of(tree, noisy, scales)
    if whole.cells.size == 1:
        return np.maximum(whole.cells, 0.0)
    tables = kernels.law_tables(whole.step)
    weights = _learned(_pieces(tree, noisy, scales, whole), tables)
    means, _, _ = whole.passes(kernels.mixed_table(tables, weights), weights, False)
    means = means.reshape(tree.shape) * whole.step
    return np.where(np.isnan(means), np.maximum(whole.cells, 0.0), means)


def _learned(pieces: Sequence[_Halved], tables: Reals) -> Reals:
    """The weights of the laws by size class, from equal ones, by expectation and maximisation."""
    weights = np.full((kernels.CLASSES, kernels.LAWS), 1.0 / kernels.LAWS)
    row = np.searchsorted(kernels.LARGEST_OF_A_CLASS, np.arange(kernels.TABLED + 1))
    for _ in range(ROUNDS):
        table = kernels.mixed_table(tables, weights)
        uses = np.zeros(weights.shape)
        for piece in pieces:
            _, pairs, large = piece.passes(table, weights, True)
            uses += large
            pairs[:2] = 0.0  # one step goes to one side by every law
            for law in range(kernels.LAWS):
                uses[:, law] += np.bincount(row, (pairs * tables[law]).sum(axis=1) * weights[row, law], len(weights))
        seen = uses + PRIOR
        beside = np.zeros(weights.shape)
        beside[1:] += seen[:-1]
        beside[:-1] += seen[1:]
        seen += BESIDE * beside
        weights = seen / seen.sum(axis=1, keepdims=True)
    return weights


def _pieces(tree: RegularTree, noisy: Sequence[Reals], scales: Sequence[float], whole: _Halved) -> list[_Halved]:
    """What weights are learned on: the whole grid, or boxes of it that lie evenly over it if it is large."""
    if whole.cells.size <= LEARNED_ON:
        return [whole]
    volumes = tree.volumes
    top = next((level for level, volume in enumerate(volumes) if volume * 4 <= LEARNED_ON), len(volumes) - 1)
    boxes = int(np.prod(tree.grid(top)))
    wanted = np.unique(np.linspace(0, boxes - 1, max(1, LEARNED_ON // volumes[top])).astype(np.int64))
    pieces = []
    for box in wanted:
        at = np.unravel_index(box, tree.grid(top))
        ranges = [
            (place * width, min((place + 1) * width, size))
            for place, width, size in zip(at, tree.widths[top], tree.shape, strict=True)
        ]
        shape = tuple(int(end - start) for start, end in ranges)
        levels = range(top, len(tree.widths))
        cropped = [
            noisy[level].reshape(tree.grid(level))[
                tuple(
                    slice(start // width, -(-end // width))
                    for (start, end), width in zip(ranges, tree.widths[level], strict=True)
                )
            ]
            for level in levels
        ]
        if shape != (1,) * len(shape):
            pieces.append(
                _Halved.of(RegularTree(shape, tree.widths[top:]), cropped, [scales[level] for level in levels])
            )
    return pieces


def _halvings(tree: RegularTree) -> list[Widths]:
    """Widths of the boxes from one that holds all cells to the cells: each has half the next larger one's cells."""
    widths = list(tree.widths[-1])
    chain = [tuple(widths)]
    for above in [*tree.widths[-2::-1], None]:
        while True:
            room = [
                (-(-size // width) if above is None else above[axis] // width, axis)
                for axis, (size, width) in enumerate(zip(tree.shape, widths, strict=True))
            ]
            most, axis = max(room)
            if most <= 1:
                break
            widths[axis] *= 2
            chain.insert(0, tuple(widths))
    return chain


def _halved_axis(chain: Sequence[Widths], number: int) -> int:
    """The axis along which the boxes of a level are halved."""
    return next(
        axis for axis, (wide, narrow) in enumerate(zip(chain[number], chain[number + 1], strict=True)) if wide != narrow
    )


def _pair_sums(sums: Reals, axis: int) -> Reals:
    """The sums of neighbours along an axis; the last one stays alone if their number is odd."""
    return np.add.reduceat(sums, np.arange(0, sums.shape[axis], 2), axis=axis)


def _numbers_of_halves(shape: Sequence[int], chain: Sequence[Widths], number: int) -> tuple[Numbers, Numbers]:
    """The numbers of the halves of each box of a level; -1 for a half that holds no cell."""
    grids = [
        tuple(-(-size // width) for size, width in zip(shape, chain[level], strict=True))
        for level in (number, number + 1)
    ]
    axis = _halved_axis(chain, number)
    numbers = np.arange(int(np.prod(grids[1]))).reshape(grids[1])
    left = np.take(numbers, np.arange(0, grids[1][axis], 2), axis=axis)
    right = np.full(grids[0], -1, dtype=np.int64)
    whole = [slice(None)] * len(grids[0])
    whole[axis] = slice(grids[1][axis] // 2)
    right[tuple(whole)] = np.take(numbers, np.arange(1, grids[1][axis], 2), axis=axis)
    return left.ravel(), right.ravel()


def _deviation(tree: RegularTree, parts: Sequence[float], widths: Widths) -> float:
    """Standard deviation of the least squares estimate of a box, in records."""
    variance = 0.0
    for part, level in zip(parts, tree.widths, strict=True):
        variance += part * float(np.prod([width * min(width, wide) for width, wide in zip(widths, level, strict=True)]))
    return math.sqrt(max(variance, 0.0))


def _window(sums: Reals, reach: float, step: float) -> tuple[Numbers, Numbers]:
    """The first and the last count of each box's window, in steps."""
    low = np.maximum(0.0, np.floor((sums - reach) / step)).astype(np.int64)
    high = np.maximum(np.maximum(low, 2), np.ceil((sums + reach) / step).astype(np.int64))
    return np.where(low <= NEAR_EMPTY, 0, low), high


def _fitting(
    parents: tuple[Numbers, Numbers], children: tuple[Numbers, Numbers], halves: tuple[Numbers, Numbers]
) -> tuple[Numbers, Numbers]:
    """The windows of a level, within what its halves' windows can add up to."""
    left, right = halves
    low = children[0][left] + np.where(right >= 0, children[0][right], 0)
    high = children[1][left] + np.where(right >= 0, children[1][right], 0)
    least, most = np.maximum(parents[0], low), np.minimum(parents[1], high)
    apart = most < least
    return np.where(apart, low, least), np.where(apart, high, most)
