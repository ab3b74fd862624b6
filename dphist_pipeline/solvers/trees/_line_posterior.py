"""Mean counts of cells given noisy weighted sums of a line, where halves of a stretch may be even, uneven or empty.

The counts follow the model of `split_posterior`. The sums overlap, so they fit no tree, and the mean is found in two
steps.

1. *On a tree.* Single cells are taken as they were measured, with discrete Laplace noise. In the place of the weighted
   sums stand stand-ins: least squares estimates of the stretches of cells that are halved, with normal noise. Their
   precisions are chosen level by level, so that least squares of cells and stand-ins has the mean variances that least
   squares of the weighted sums has for differences of halves. The laws of splits are learned on this tree.
2. *Stand-ins for sums.* The outcome is taken for a normal law with the same mean, and the same variances of all
   stretches: a stretch given the one that it is half of is normal. Stand-ins are divided out, the weighted sums
   multiplied in, and the mean of the product is the estimate. On a tree that is elimination from the cells upwards,
   with a column for each sum, and the formula of Woodbury: O(cells · sums).

Where the laws say nothing of the counts the second step gives the least squares estimate back, whatever the stand-ins.
Where most cells are known to be empty, the sums tell of the few others, as no tree of least squares estimates can: in
the first step the ranges of a line with 80 cells that are not empty had twice the error.

A split that stand-ins tell more of than the law keeps `KEPT` of what they told: otherwise the rest would be a law of no
variance or of a negative one.

Source: ours; the second step is one of expectation propagation (Minka. Expectation propagation for approximate Bayesian
inference. UAI 2001) between the tree and all sums together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.trees._halved_boxes import NOTHING, Evidence, HalvedBoxes, box_sums, learned_means
from dphist_pipeline.solvers.trees.regular_tree import Widths

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]

KEPT = 0.6  # of what stand-ins told of a split, where the law and they together know less than they do
TELLING = 1e-3  # of what is known of a level: stand-ins that tell less are left out
FLOOR = 0.1  # steps: least standard deviation of a stretch


@dataclass(frozen=True, eq=False)
class WeighedAxis:
    """What is measured along an axis, with noise of variance 1 in each number.

    Attributes:
        own: the weight of every position by itself, shape (positions,).
        sums: weights of the positions in each sum, shape (sums, positions).
        taken: what sums take off: least squares estimates of positions have the covariance diag(1 / own²) -
            takenᵀ·taken; shape (sums, positions).
    """

    own: Reals
    sums: Reals
    taken: Reals

    def stretches(self, width: int) -> tuple[Numbers, Numbers]:
        """Where whole stretches of so many positions begin and end; of an axis that is shorter, all of it."""
        low = np.arange(0, max(1, self.own.size - width + 1), width)
        return low, np.minimum(low + width, self.own.size)

    def variances(self, low: Numbers, middle: Numbers, high: Numbers) -> Reals:
        """Variance of estimates of [low, middle) less [middle, high), for each triple."""
        taken = np.pad(np.cumsum(self.taken, axis=1), ((0, 0), (1, 0)))
        alone = np.append(0.0, np.cumsum(1.0 / self.own**2))
        difference = 2.0 * taken[:, middle] - taken[:, low] - taken[:, high]
        spread: Reals = alone[high] - alone[low] - np.einsum("ij,ij->j", difference, difference)
        return spread


@dataclass(frozen=True, eq=False)
class Weighed:
    """Weighted sums of a line.

    Attributes:
        axis: their weights, with at least one sum.
        measured: the noisy numbers, first of every cell by itself, then of each sum; shape (cells + sums,).
        scale: of the discrete Laplace noise in each number.
        cells: their least squares estimates, shape (cells,).
    """

    axis: WeighedAxis
    measured: Reals
    scale: float
    cells: Reals

    @property
    def variance(self) -> float:
        """About that of the noise in each number."""
        return 2.0 * self.scale**2

    def variances(self, low: Numbers, middle: Numbers, high: Numbers) -> Reals:
        """Variance of estimates of [low, middle) less [middle, high), in records squared, for each triple."""
        spread: Reals = self.variance * self.axis.variances(low, middle, high)
        return spread


def weighted_means(weighed: Weighed) -> Reals:
    """The mean count of every cell, given noisy weighted sums of a line of two cells or more.

    Returns:
        float64, shape (cells,); some may lie below 0, so that sums over ranges are not drawn upwards.
    """
    size = weighed.cells.size
    chain: list[Widths] = [(1 << level,) for level in range((size - 1).bit_length(), -1, -1)]
    deviations = [_deviation(weighed, width) for (width,) in chain]
    own, sums = weighed.axis.own, weighed.axis.sums
    scales = weighed.scale / own
    replaced = stand_ins(chain, weighed.cells, _precisions(weighed, chain))
    evidence = [*replaced[:-1], Evidence(weighed.measured[:size] / own, scales)]
    boxes = HalvedBoxes.around(chain, weighed.cells, deviations, evidence, float(np.median(scales)))
    means, spread, least = moments_on_tree(boxes, [boxes], deviations)
    offsets = [
        one.noisy - about if one.noisy.size else one.noisy
        for one, about in zip(replaced, box_sums(chain, means), strict=True)
    ]
    precisions = [1.0 / one.spreads**2 for one in replaced]
    rest = _without_stand_ins(boxes.halves, spread, offsets, precisions, sums, least)
    shift, answers = rest[:, 0], rest[:, 1:]
    lacking = weighed.measured[size:] - sums @ (means + shift)
    known = sums @ answers + weighed.variance * np.eye(len(sums))
    estimates: Reals = means + shift + answers @ np.linalg.solve(known, lacking)
    return estimates


def moments_on_tree(
    boxes: HalvedBoxes, pieces: Sequence[HalvedBoxes], deviations: Sequence[float]
) -> tuple[Reals, list[Reals], float]:
    """What all evidence on a tree says of the counts, by laws of splits that are learned from it.

    Args:
        pieces: of the tree, or all of it, from which the laws are learned.
        deviations: standard deviation of the least squares estimate of a box of each level, in records.

    Returns:
        Mean counts of the cells in C order; variances of the boxes of each level; the least that a variance can be.
    """
    moments: list[Reals] = []
    means = learned_means(boxes, pieces, moments)
    least = (FLOOR * boxes.step) ** 2
    spread = [
        np.maximum(least, np.where(np.isnan(level[:, 1]), deviation**2, level[:, 1] * boxes.step**2))
        for level, deviation in zip(moments, deviations, strict=True)
    ]
    return means, spread, least


def _deviation(weighed: Weighed, width: int) -> float:
    """Standard deviation of the least squares estimate of a stretch, the mean over all whole ones of a level."""
    low, high = weighed.axis.stretches(width)
    return math.sqrt(max(0.0, float(weighed.variances(low, high, high).mean())))


def stand_ins(chain: Sequence[Widths], cells: Reals, precisions: Sequence[float]) -> list[Evidence]:
    """Least squares estimates of boxes, level by level, with normal noise; of cells nothing.

    On a tree with measured sums, the difference of the halves of a box of N cells has a variance of N / p, where p
    is the sum of cells times precision over this level and all below, see `regular_tree`. So p follows from variances,
    and precisions from its fall; p that rises on the way down is taken for constant.

    Args:
        cells: least squares estimates, shape of the grid.
        precisions: p of each level.
    """
    known = np.minimum.accumulate(precisions).tolist()
    found = []
    for widths, sums, more, less in zip(chain[:-1], box_sums(chain, cells), known, known[1:], strict=False):
        telling = more - less > TELLING * more
        spread = math.sqrt(math.prod(widths) / (more - less)) if telling else 0.0
        found.append(Evidence(sums.ravel(), np.full(sums.size, spread), normal=True) if telling else NOTHING)
    return [*found, NOTHING]


def _precisions(weighed: Weighed, chain: list[Widths]) -> list[float]:
    """The p of each level follows from the variances that least squares has for differences of halves."""
    size = weighed.cells.size
    whole = float(weighed.variances(np.array([0]), np.array([size]), np.array([size]))[0])
    precisions = [size / whole]
    for (wide,), (width,) in pairwise(chain):
        low, high = weighed.axis.stretches(wide)
        precisions.append(1.0 / float((weighed.variances(low, low + width, high) / (high - low)).mean()))
    return precisions


def _without_stand_ins(
    halves: list[tuple[Numbers, Numbers]],
    spread: list[Reals],
    offsets: list[Reals],
    precisions: list[Reals],
    sums: Reals,
    least: float,
) -> Reals:
    """What is left of the normal law on the tree if stand-ins are divided out.

    Up the tree, what lies below a stretch is a quadratic in how far it is from its mean: -bend/2 · d² + lines · d. The
    left half of one that is d away is normal around part · d with the precision `sure`, and the right half is the rest.

    Args:
        halves: of each level but the last; see `HalvedBoxes`.
        spread: variance of the stretches of each level.
        offsets: of stand-ins from the mean, by level; empty where there are none.
        precisions: of stand-ins, likewise.
        sums: weights of the cells in each sum, shape (sums, cells).
        least: variance that a stretch has anyhow.

    Returns:
        How far the mean moves, then the law's covariance times each sum's weights; shape (cells, 1 + sums).
    """
    bend, lines = np.zeros(sums.shape[1]), np.hstack([np.zeros((sums.shape[1], 1)), sums.T])
    splits: list[tuple[Numbers, Numbers, Reals, Reals]] = []
    for number in range(len(halves) - 1, -1, -1):
        left, right = halves[number]
        pair, other = right >= 0, np.maximum(right, 0)
        wide, one, two = spread[number], spread[number + 1][left], spread[number + 1][other] * pair
        part = (wide + one - two) / (2.0 * wide)
        of_left, of_right = bend[left], bend[other] * pair
        precision = -(of_left + of_right)
        sure = np.maximum(1.0 / np.maximum(one - part**2 * wide, least / 4.0), (1.0 + KEPT) * precision)
        pivot, slope = sure - precision, part * sure + of_right
        apart = lines[left] - lines[other] * pair[:, None]
        follows, moves = slope / pivot, apart / pivot[:, None]
        # A stretch whose second half holds no cell is its first half.
        follows, moves = np.where(pair, follows, 1.0), moves * pair[:, None]
        splits.append((left, right, follows, moves))
        bend = np.where(pair, part**2 * sure + of_right - slope * follows, of_left)
        lines = np.where(pair[:, None], lines[other] + follows[:, None] * apart, lines[left])
        if offsets[number].size:
            bend = bend - precisions[number]
            lines[:, 0] -= precisions[number] * offsets[number]
    away: Reals = lines / (max(1.0 / spread[0][0], -(1.0 + KEPT) * bend[0]) + bend[0])
    for left, right, follows, moves in reversed(splits):
        of_left = follows[:, None] * away + moves
        below: Reals = np.empty((left.size + int((right >= 0).sum()), away.shape[1]))
        below[left], below[right[right >= 0]] = of_left, (away - of_left)[right >= 0]
        away = below
    return away
