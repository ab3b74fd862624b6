"""Boxes that are halved down to the cells of a grid, the laws of how counts are split, and messages between them.

See `split_posterior` for the model. What is known of a box besides its halves is its evidence: a noisy count with
discrete Laplace or with normal noise, or nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.trees import _split_kernels as kernels
from dphist_pipeline.solvers.trees.regular_tree import Widths

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
Singles = NDArray[np.float32]

ROUNDS = 8
STEPS_A_SCALE = 3
DEVIATIONS, SCALES = 4.5, 3.0  # of the noise: how far a window reaches
NEAR_EMPTY = 40  # steps: a window that begins below begins at 0
PRIOR = 2.0  # uses of each law, before any is seen
BESIDE = 0.2  # of what the classes beside one have seen
SMALLEST = 1e-290  # likelihood of what no count explains


@dataclass(frozen=True)
class Evidence:
    """What was measured of the boxes of a level.

    Attributes:
        noisy: a count of every box, in records, in C order.
        spreads: scale of each one's discrete Laplace noise, or standard deviation of its normal noise, in records.
        normal: which of the two.
    """

    noisy: Reals
    spreads: Reals
    normal: bool = False


NOTHING = Evidence(np.empty(0), np.empty(0))


@dataclass(frozen=True)
class _Level:
    """The boxes of a level, in C order of their grid.

    Attributes:
        low: the first count of each box's window, in steps.
        starts: where its entries begin; shape (boxes + 1,).
        evidence: of the boxes; `NOTHING` if none was measured.
    """

    low: Numbers
    starts: Numbers
    evidence: Evidence

    @property
    def parts(self) -> kernels.Nodes:
        """As the kernels take them."""
        return self.low, self.starts, self.evidence.noisy, self.evidence.spreads, self.evidence.normal


@dataclass(frozen=True)
class HalvedBoxes:
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
    def around(
        cls,
        chain: Sequence[Widths],
        cells: Reals,
        deviations: Sequence[float],
        evidence: Sequence[Evidence],
        scale: float,
    ) -> HalvedBoxes:
        """Boxes with windows around least squares estimates.

        Args:
            chain: widths of the boxes of each level; each has half the next larger one's cells.
            cells: least squares estimates, in records, shape of the grid.
            deviations: standard deviation of the estimate of a box of each level, in records.
            evidence: of each level.
            scale: the least one of the noise.
        """
        halves = [numbers_of_halves(cells.shape, chain, number) for number in range(len(chain) - 1)]
        sums = [level.ravel() for level in box_sums(chain, cells)]
        return cls.on(halves, sums, deviations, evidence, scale, cells)

    @classmethod
    def on(
        cls,
        halves: list[tuple[Numbers, Numbers]],
        sums: Sequence[Reals],
        deviations: Sequence[Reals | float],
        evidence: Sequence[Evidence],
        scale: float,
        cells: Reals,
    ) -> HalvedBoxes:
        """A tree of boxes with windows around least squares estimates.

        Args:
            halves, cells: see the class; here a cell is a box of the last level, whatever it holds.
            sums: least squares estimates of the boxes of each level, in records, one an entry.
            deviations: their standard deviations, of a level or one for each box, in records.
            evidence, scale: see `around`.
        """
        step = float(max(1, int(scale / STEPS_A_SCALE)))
        windows = [
            _window(each, DEVIATIONS * deviation + SCALES * scale, step)
            for each, deviation in zip(sums, deviations, strict=True)
        ]
        for number in range(len(halves) - 1, -1, -1):
            windows[number] = _fitting(windows[number], windows[number + 1], halves[number])
        levels = []
        for (low, high), measured in zip(windows, evidence, strict=True):
            levels.append(_Level(low, np.concatenate([[0], np.cumsum(high - low + 1)]), measured))
        return cls(levels, halves, step, cells)

    def pieces(self, most: int) -> list[HalvedBoxes]:
        """All of it, or boxes that lie evenly over the grid if it has more than `most` cells: some `most` in all."""
        cells = self.cells.size
        top = next((number for number, level in enumerate(self.levels) if cells <= level.low.size * most // 4), 0)
        if cells <= most or top == len(self.halves):
            return [self]
        boxes = self.levels[top].low.size
        wanted = np.unique(np.linspace(0, boxes - 1, max(1, most * boxes // cells)).astype(np.int64))
        return [self._piece(top, box) for box in wanted.tolist()]

    def _piece(self, top: int, box: int) -> HalvedBoxes:
        """A box of a level, and all below it."""
        levels, halves, chosen = [], [], np.array([box])
        for number in range(top, len(self.levels)):
            level, sizes = self.levels[number], np.diff(self.levels[number].starts)[chosen]
            own = level.evidence
            evidence = Evidence(own.noisy[chosen], own.spreads[chosen], own.normal) if own.noisy.size else own
            levels.append(_Level(level.low[chosen], np.concatenate([[0], np.cumsum(sizes)]), evidence))
            if number < len(self.halves):
                left, right = (each[chosen] for each in self.halves[number])
                chosen = np.sort(np.concatenate([left, right[right >= 0]]))
                beside = np.where(right >= 0, np.searchsorted(chosen, right), -1)
                halves.append((np.searchsorted(chosen, left), beside))
        return HalvedBoxes(levels, halves, self.step, self.cells.ravel()[chosen])

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

    def passes(
        self, table: Reals, weights: Reals, learns: bool, moments: list[Reals] | None = None
    ) -> tuple[Reals, Reals, Reals]:
        """Both passes; see the kernels.

        Args:
            table, weights: of the mixed laws, and of the laws by size class.
            learns: whether the last two results are wanted.
            moments: is filled, unless left out, with means and variances of the boxes of each level but the last, in
                steps, shape (boxes, 2).

        Returns:
            Means and variances of cells in steps, expected pairs, and uses of laws by large counts.
        """
        messages, peaks = self.upwards(table, weights)
        law = (table, weights, self.step)
        pairs, uses = np.zeros(table.shape), np.zeros(weights.shape)
        rest = np.ones(self.levels[0].starts[-1], dtype=np.float32)
        means = np.empty((0, 2))
        for number, halves in enumerate(self.halves):
            level, children = self.levels[number], self.levels[number + 1]
            last = number == len(self.halves) - 1
            children_rest = np.empty(0 if last else children.starts[-1], dtype=np.float32)
            means = np.empty((children.low.size if last else 0, 2))
            above = (messages[number], rest, peaks[number])
            results = (children_rest, means, pairs, uses)
            kernels.downwards(level.parts, children.parts, halves, law, messages[number + 1], above, results, learns)
            if moments is not None:
                moments.append(_moments(level, messages[number], rest))
            messages[number] = rest  # its room is free now
            rest = children_rest
        return means, pairs, uses

    def outside(self, table: Reals, weights: Reals, first: Reals) -> tuple[Singles, float]:
        """What all but its own evidence says of each cell's count, and how likely all evidence is.

        Args:
            first: the law of the count of all cells, for each entry of its window, shape (entries,).

        Returns:
            For each entry of the cells' windows, up to a factor for each cell; and the logarithm of the likelihood up
            to that of evidence that fits exactly, where the best count of each cell's window does.
        """
        messages, peaks = self.upwards(table, weights)
        law, unused = (table, weights, self.step), (np.zeros(table.shape), np.zeros(weights.shape))
        likely = float(np.log(max(SMALLEST, float((first * messages[0]).sum()))))
        likely += sum(float(np.log(np.where(peak > 0.0, peak, SMALLEST)).sum()) for peak in peaks)
        rest: Singles = (first / first.max()).astype(np.float32)
        for number, halves in enumerate(self.halves):
            level, children = self.levels[number], self.levels[number + 1]
            children_rest = np.empty(children.starts[-1], dtype=np.float32)
            above = (messages[number], rest, peaks[number])
            results = (children_rest, np.empty((0, 2)), *unused)
            kernels.downwards(level.parts, children.parts, halves, law, messages[number + 1], above, results, False)
            messages[number] = rest  # its room is free now
            rest = children_rest
        return rest, likely


def learned_weights(pieces: Sequence[HalvedBoxes], tables: Reals) -> Reals:
    """The weights of the laws by size class, from equal ones, by expectation and maximisation.

    Args:
        pieces: what they are learned on, all of one step.
        tables: the laws; see `_split_kernels.law_tables`.
    """
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
        counts = uses + PRIOR
        beside = np.zeros(weights.shape)
        beside[1:] += counts[:-1]
        beside[:-1] += counts[1:]
        counts += BESIDE * beside
        weights = counts / counts.sum(axis=1, keepdims=True)
    return weights


def learned_means(boxes: HalvedBoxes, pieces: Sequence[HalvedBoxes], moments: list[Reals] | None = None) -> Reals:
    """The mean count of every cell given all evidence, in records, in C order, by laws that are learned from it.

    Where no count fits, the least squares estimate, at least 0.

    Args:
        pieces: of the boxes, or all of them, from which the laws are learned.
        moments: is filled, unless left out, with means and variances of the boxes of each level, in steps, shape
            (boxes, 2); NaN where no count fits.
    """
    tables = kernels.law_tables(boxes.step)
    weights = learned_weights(pieces, tables)
    of_cells, _, _ = boxes.passes(kernels.mixed_table(tables, weights), weights, False, moments)
    if moments is not None:
        moments.append(of_cells)
    means = of_cells[:, 0] * boxes.step
    return np.where(np.isnan(means), np.maximum(boxes.cells.ravel(), 0.0), means)


def _moments(level: _Level, below: Singles, rest: Singles) -> Reals:
    """Means and variances of the boxes of a level, in steps; NaN where no count fits."""
    starts, box = level.starts[:-1], np.repeat(np.arange(level.low.size), np.diff(level.starts))
    chance = below.astype(np.float64) * rest
    counts = np.arange(chance.size) - starts[box] + level.low[box]
    whole = np.add.reduceat(chance, starts)
    whole = np.where(whole > 0.0, whole, np.nan)
    means = np.add.reduceat(chance * counts, starts) / whole
    return np.stack([means, np.add.reduceat(chance * (counts - means[box]) ** 2, starts) / whole], axis=1)


def box_sums(chain: Sequence[Widths], cells: Reals) -> list[Reals]:
    """Sums over the boxes of each level.

    Args:
        cells: shape of the grid.
    """
    sums = [cells]
    for number in range(len(chain) - 2, -1, -1):
        axis = _halved_axis(chain, number)
        # Pairs of neighbours; the last one stays alone if their number is odd.
        sums.insert(0, np.add.reduceat(sums[0], np.arange(0, sums[0].shape[axis], 2), axis=axis))
    return sums


def _halved_axis(chain: Sequence[Widths], number: int) -> int:
    """The axis along which the boxes of a level are halved."""
    return next(
        axis for axis, (wide, narrow) in enumerate(zip(chain[number], chain[number + 1], strict=True)) if wide != narrow
    )


def numbers_of_halves(shape: Sequence[int], chain: Sequence[Widths], number: int) -> tuple[Numbers, Numbers]:
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


def _window(sums: Reals, reach: Reals | float, step: float) -> tuple[Numbers, Numbers]:
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
