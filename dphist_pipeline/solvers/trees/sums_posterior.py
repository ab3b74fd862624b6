"""Mean counts of cells given noisy weighted sums along all axes of a grid, with halves as in `_line_posterior`.

A line is served there. On a grid the first step is the same: single cells as they were measured, and stand-ins for the
sums on a tree of halved boxes, with the noisy total. Covariances are products over the axes, so the variance of any box
or difference of halves is one, too.

In the second step a grid has thousands of sums, too many for a column each. So the mean by the normal law on the tree,
with stand-ins divided out and the sums multiplied in, is the solution of linear equations that are never written down:
conjugate gradients, O(cells · sums along an axis) a step, with the law on the tree and its stand-ins as a guess of the
inverse. 20 to 90 steps are enough. Where stand-ins tell more of a split than the law and they together know, what is
left of the tree is no law by itself. Here nothing is kept of them, unlike on a line: the sums are multiplied in before
anything is solved, and tell about as much.

Source: ours; see `_line_posterior`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.trees import _line_posterior
from dphist_pipeline.solvers.trees._halved_boxes import NOTHING, Evidence, HalvedBoxes, box_sums
from dphist_pipeline.solvers.trees._line_posterior import WeighedAxis, moments_on_tree, stand_ins
from dphist_pipeline.solvers.trees.regular_tree import Widths, halving_tree
from dphist_pipeline.solvers.trees.split_posterior import LEARNED_ON, halvings

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
Solver = Callable[[Reals], Reals]

NEAR_ENOUGH, MOST_STEPS = 1e-8, 300  # of conjugate gradients


@dataclass(frozen=True, eq=False)
class WeighedGrid:
    """Weighted sums along every axis of a grid.

    Attributes:
        axes: their weights; a number of the grid is weighted along all axes at once.
        measured: the noisy numbers, first of every position by itself, then of each sum, along each axis.
        scale: of the discrete Laplace noise in each number.
        cells: their least squares estimates, shape of the grid.
        total: a noisy count of all cells besides, and the scale of its noise; None on a line.
    """

    axes: Sequence[WeighedAxis]
    measured: Reals
    scale: float
    cells: Reals
    total: tuple[float, float] | None

    @classmethod
    def of(
        cls,
        weights: Sequence[Reals],
        taken: Sequence[Reals],
        noisy: Reals,
        scale: float,
        cells: Reals,
        total: tuple[float, float] | None = None,
    ) -> WeighedGrid:
        """From the numbers in C order.

        Args:
            weights: of each axis, in row 0 of every position by itself, in others of the positions in a sum.
            taken: see `WeighedAxis`.
        """
        axes = [WeighedAxis(own[0], own[1:], each) for own, each in zip(weights, taken, strict=True)]
        measured = noisy.reshape([axis.own.size + len(axis.sums) for axis in axes])
        return cls(axes, measured, scale, cells, total)

    @property
    def variance(self) -> float:
        """About that of the noise in each number."""
        return 2.0 * self.scale**2

    @property
    def own(self) -> Reals:
        """The weight of every cell by itself, shape of the grid."""
        own = np.ones(())
        for axis in self.axes:
            own = own[..., None] * axis.own
        return own

    def weighted(self, cells: Reals) -> Reals:
        """All numbers without their noise, shape of `measured`."""
        for number, axis in enumerate(self.axes):
            along = np.moveaxis(cells, number, -1)
            cells = np.moveaxis(np.concatenate([along * axis.own, along @ axis.sums.T], axis=-1), -1, number)
        return cells

    def gathered(self, numbers: Reals) -> Reals:
        """For each cell, the sum of all numbers times its weight in them: the transpose of `weighted`."""
        for number, axis in enumerate(self.axes):
            along, size = np.moveaxis(numbers, number, -1), axis.own.size
            numbers = np.moveaxis(along[..., :size] * axis.own + along[..., size:] @ axis.sums, -1, number)
        return numbers

    def variances_of_boxes(self, widths: Widths) -> tuple[float, float]:
        """Variance of the estimate of a box, the mean over all of some widths; and the mean of it by cells."""
        whole = by_cells = self.variance
        for axis, width in zip(self.axes, widths, strict=True):
            low, high = axis.stretches(width)
            variances = axis.variances(low, high, high)
            whole *= float(variances.mean())
            by_cells *= float((variances / (high - low)).mean())
        return whole, by_cells

    def variance_of_halves(self, wide: Widths, narrow: Widths) -> float:
        """Variance of the difference of the halves of a box by its cells, the mean over all."""
        by_cells = self.variance
        for axis, width, half in zip(self.axes, wide, narrow, strict=True):
            low, high = axis.stretches(width)
            middle = np.minimum(low + half, high)
            by_cells *= float((axis.variances(low, middle, high) / (high - low)).mean())
        return by_cells


def weighted_means(grid: WeighedGrid) -> Reals:
    """The mean count of every cell, given noisy weighted sums along the axes of a grid of two cells or more.

    Returns:
        float64, shape of the grid; some may lie below 0, so that sums over boxes are not drawn upwards.
    """
    if grid.total is None:
        (axis,) = grid.axes
        return _line_posterior.weighted_means(_line_posterior.Weighed(axis, grid.measured, grid.scale, grid.cells))
    total, scale_of_total = grid.total
    chain = halvings(halving_tree(grid.cells.shape))
    deviations = [math.sqrt(grid.variances_of_boxes(widths)[0]) for widths in chain]
    halved = [grid.variance_of_halves(wide, narrow) for wide, narrow in pairwise(chain)]
    precisions = [1.0 / each for each in (grid.variances_of_boxes(chain[0])[1], *halved)]
    replaced = [NOTHING, *stand_ins(chain, grid.cells, precisions)[1:]]
    own = grid.own
    alone = grid.measured[tuple(map(slice, grid.cells.shape))]
    of_all = Evidence(np.array([total]), np.array([scale_of_total]))
    evidence = [of_all, *replaced[1:-1], Evidence((alone / own).ravel(), (grid.scale / own).ravel())]
    boxes = HalvedBoxes.around(chain, grid.cells, deviations, evidence, float(np.median(grid.scale / own)))
    means, spread, least = moments_on_tree(boxes, boxes.pieces(LEARNED_ON), deviations)
    means = means.reshape(grid.cells.shape)
    told = [float(one.spreads[0] ** -2) if one.spreads.size else 0.0 for one in replaced]
    law = _SplitLaw.of(boxes.halves, spread, told, least)

    def equations(away: Reals) -> Reals:
        cells = away.reshape(own.shape)
        sums = grid.gathered(grid.weighted(cells)) - own**2 * cells
        return law.times(away) + sums.ravel() / grid.variance

    lacking = grid.measured - grid.weighted(means)
    lacking[tuple(map(slice, own.shape))] = 0.0  # cells by themselves are in the law on the tree
    offsets = [
        -precision * (one.noisy - about.ravel()) if precision else np.zeros(about.size)
        for one, about, precision in zip(replaced, box_sums(chain, means), told, strict=True)
    ]
    right = law.spread_down(offsets) + grid.gathered(lacking).ravel() / grid.variance
    return means + _solve(equations, right, law.inverse_with_stand_ins).reshape(own.shape)


@dataclass(frozen=True, eq=False)
class _SplitLaw:
    """A normal law on a tree of halved boxes, with stand-ins that are to be divided out.

    A count is `part` of its whole, with the precision `sure`, in the left half, and the rest in the right one.

    Attributes:
        halves: see `HalvedBoxes`.
        part, sure: of each box of each level but the last.
        whole: the precision of the count of all cells.
        told: the precision of the stand-ins of each level, 0 for none.
    """

    halves: list[tuple[Numbers, Numbers]]
    part: list[Reals]
    sure: list[Reals]
    whole: float
    told: Sequence[float]

    @classmethod
    def of(
        cls, halves: list[tuple[Numbers, Numbers]], spread: Sequence[Reals], told: Sequence[float], least: float
    ) -> _SplitLaw:
        """The law of the variances of all boxes, each of which is at least `least`."""
        parts, sures = [], []
        for (left, right), wide, below in zip(halves, spread, spread[1:], strict=False):
            one, two = below[left], below[right] * (right >= 0)
            part = np.where(right >= 0, (wide + one - two) / (2.0 * wide), 1.0)
            parts.append(part)
            sures.append(1.0 / np.maximum(one - part**2 * wide, least / 4.0))
        return cls(halves, parts, sures, 1.0 / float(spread[0][0]), told)

    def times(self, cells: Reals) -> Reals:
        """The precision matrix, without stand-ins, times numbers for the cells, in C order."""
        sums = [cells]
        for left, right in reversed(self.halves):
            sums.insert(0, sums[0][left] + sums[0][right] * (right >= 0))
        pulls = [-told * each for told, each in zip(self.told, sums, strict=True)]
        pulls[0] = pulls[0] + self.whole * sums[0]
        for number, (left, right) in enumerate(self.halves):
            away = self.sure[number] * (sums[number + 1][left] - self.part[number] * sums[number]) * (right >= 0)
            pulls[number + 1][left] += away
            pulls[number] -= self.part[number] * away
        return self.spread_down(pulls)

    def spread_down(self, pulls: Sequence[Reals]) -> Reals:
        """For each cell, the sum of numbers over the boxes that hold it, one of each level."""
        total = pulls[0]
        for (left, right), own in zip(self.halves, pulls[1:], strict=True):
            pair, below = right >= 0, own.copy()
            below[left] += total
            below[right[pair]] += total[pair]
            total = below
        return total

    def inverse_with_stand_ins(self, cells: Reals) -> Reals:
        """The covariance matrix of the law with its stand-ins times numbers for the cells."""
        apart: list[Reals] = []
        pull = cells
        for (left, right), part in zip(reversed(self.halves), reversed(self.part), strict=True):
            pair, of_right = right >= 0, pull[right]
            apart.insert(0, (pull[left] - of_right) * pair)
            pull = np.where(pair, part * pull[left] + (1.0 - part) * of_right, pull[left])
        away = pull / self.whole
        for (left, right), part, sure, each in zip(self.halves, self.part, self.sure, apart, strict=True):
            pair, of_left = right >= 0, part * away + each / sure
            below: Reals = np.empty(left.size + int(pair.sum()))
            below[left], below[right[pair]] = of_left, (away - of_left)[pair]
            away = below
        return away


def _solve(equations: Solver, right: Reals, guess: Solver) -> Reals:
    """The solution of linear equations by conjugate gradients; as far as they go where these are not positive."""
    found, rest = np.zeros_like(right), right
    step = near = guess(rest)
    size = first = float(rest @ near)
    for _ in range(MOST_STEPS):
        image = equations(step)
        if not (curved := float(step @ image)) > 0.0 or size <= NEAR_ENOUGH * first:
            break
        found = found + size / curved * step
        rest = rest - size / curved * image
        near = guess(rest)
        size, before = float(rest @ near), size
        step = near + size / before * step
    return found
