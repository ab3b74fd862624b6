"""Boxes of a grid that are measured, then cut where much was counted, and measured again: mean counts given all draws.

A grid is halved, axis by axis, down to its cells. At first all boxes of one level are measured. Then each box is halved
as many times as the caller asks, and what comes of it is measured anew, so a box that is not cut has two draws. After
the last draws, the mean of every last box given all of them follows the model of `split_posterior`: laws of how counts
are split, learned from the draws by size class. It is spread evenly over the cells of the box, since the laws favour no
half.

Cost. Numbers of boxes: O(cells · levels). Means: as in `split_posterior`, with last boxes for cells.

Source: ours. Cutting a box by its noisy count is Qardaji, Yang, Li. Differentially private grids for geospatial data.
ICDE 2013; see `split_posterior` for the laws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.trees._halved_boxes import (
    NOTHING,
    Evidence,
    HalvedBoxes,
    learned_means,
    numbers_of_halves,
)
from dphist_pipeline.solvers.trees.regular_tree import RegularTree, halving_tree
from dphist_pipeline.solvers.trees.split_posterior import LEARNED_ON, halvings
from dphist_pipeline.solvers.trees.tree_consistency import consistent

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Draw:
    """Noisy counts of all boxes there were at a time.

    Attributes:
        noisy: of each box, in records, shape (boxes,).
        scale: of the discrete Laplace noise in each, in records.
        parents: for each box that of the draw before which holds it, shape (boxes,); of the first draw, 0.
    """

    noisy: Reals
    scale: float
    parents: Numbers


@dataclass(frozen=True, eq=False)
class RefinedBoxes:
    """Boxes of a grid, and how they came about.

    Attributes:
        tree: all boxes that there could be; each level has halves of the boxes above.
        levels, numbers: for each box its level there, and its number on it, shape (boxes,).
        parents: for each box that of the last draw which holds it, shape (boxes,).
        halves: from the box of all cells down to these; see `HalvedBoxes`. A box that stays is its own left half.
        evidence: what was drawn of the boxes of each of these levels.
        draws: all of them, from the total on.
    """

    tree: RegularTree
    levels: Numbers
    numbers: Numbers
    parents: Numbers
    halves: list[tuple[Numbers, Numbers]]
    evidence: list[Evidence]
    draws: list[Draw]

    @classmethod
    def of_total(cls, shape: Sequence[int], noisy: Reals, scale: float, parts: float) -> RefinedBoxes:
        """All boxes of the level that has about as many as are asked for: the nearest logarithm.

        Args:
            shape: cells along each axis.
            noisy: a noisy count of all cells, shape (1,).
            scale: of its discrete Laplace noise, in records.
            parts: how many boxes, at least 1.
        """
        tree = RegularTree(tuple(shape), tuple(halvings(halving_tree(shape))))
        sizes = [math.prod(tree.grid(level)) for level in range(len(tree.widths))]
        first = int(np.argmin([abs(math.log(size / parts)) for size in sizes]))
        numbers = np.arange(sizes[first])
        none = np.zeros_like(numbers)
        halves = [numbers_of_halves(tree.shape, tree.widths, level) for level in range(first)]
        evidence = [Evidence(noisy, np.array([scale])), *[NOTHING] * first]
        return cls(tree, none + first, numbers, none, halves, evidence, [Draw(noisy, scale, none[:1])])

    @cached_property
    def groups(self) -> Numbers:
        """The number of the box that holds each cell, shape of the grid. Parts of a box follow each other."""
        found = np.full(self.tree.shape, -1)
        for level in np.unique(self.levels).tolist():
            own, table = self.levels == level, np.full(math.prod(self.tree.grid(level)), -1)
            table[self.numbers[own]] = np.flatnonzero(own)
            found = np.maximum(found, table[self.tree.nodes[level]])
        return found

    def measured(self, noisy: Reals, scale: float) -> RefinedBoxes:
        """The same boxes, each with another noisy count.

        Args:
            noisy: of each box, in records, shape (boxes,).
            scale: of the discrete Laplace noise in each, in records.
        """
        same = np.arange(noisy.size)
        halves = [*self.halves, (same, np.full(noisy.size, -1))]
        evidence = [*self.evidence, Evidence(noisy, np.full(noisy.size, scale))]
        draws = [*self.draws, Draw(noisy, scale, self.parents)]
        return replace(self, parents=same, halves=halves, evidence=evidence, draws=draws)

    def cut(self, times: Numbers) -> RefinedBoxes:
        """Each box halved so many times, or down to its cells.

        Args:
            times: of each box, shape (boxes,).
        """
        boxes, left_over = self, np.minimum(times, len(self.tree.widths) - 1 - self.levels)
        while (left_over > 0).any():
            boxes, held = boxes._halved(left_over > 0)
            left_over = (left_over - 1)[held]
        return boxes

    def _halved(self, chosen: NDArray[np.bool_]) -> tuple[RefinedBoxes, Numbers]:
        """Some boxes halved once; and for each box that of before which holds it."""
        left, right = self.numbers.copy(), np.full(self.numbers.size, -1)
        for level in np.unique(self.levels[chosen]).tolist():
            own, whole = chosen & (self.levels == level), numbers_of_halves(self.tree.shape, self.tree.widths, level)
            left[own], right[own] = whole[0][self.numbers[own]], whole[1][self.numbers[own]]
        pair = right >= 0
        held = np.repeat(np.arange(left.size), 1 + pair)
        first = np.searchsorted(held, np.arange(left.size))
        numbers = left[held]
        numbers[first[pair] + 1] = right[pair]
        return replace(
            self,
            levels=(self.levels + chosen)[held],
            numbers=numbers,
            parents=self.parents[held],
            halves=[*self.halves, (first, np.where(pair, first + 1, -1))],
            evidence=[*self.evidence, NOTHING],
        ), held

    def means(self) -> Reals:
        """The mean count of every box given all draws, the last of which is of these boxes; shape (boxes,)."""
        boxes = self._with_windows()
        return learned_means(boxes, boxes.pieces(LEARNED_ON))

    def _with_windows(self) -> HalvedBoxes:
        """All boxes with windows around least squares estimates."""
        scales = [draw.scale for draw in self.draws]
        cells = consistent(
            [draw.noisy for draw in self.draws],
            [draw.parents for draw in self.draws[1:]],
            [2.0 * scale**2 for scale in scales],
        )[-1]
        sums, variances = [cells], [np.full(cells.size, 2.0 * scales[-1] ** 2)]
        for (left, right), measured in zip(reversed(self.halves), reversed(self.evidence[:-1]), strict=True):
            one, two = (below[0][left] + below[0][right] * (right >= 0) for below in (sums, variances))
            if measured.noisy.size:
                two = 1.0 / (1.0 / two + 0.5 / measured.spreads**2)
            sums.insert(0, one)
            variances.insert(0, two)
        deviations = [np.sqrt(each) for each in variances]
        return HalvedBoxes.on(self.halves, sums, deviations, self.evidence, min(scales), cells)
