"""Hierarchical kd-tree: halve boxes at private medians, level by level, and make noisy sums of all boxes agree.

Paper:    Inan, Kantarcioglu, Ghinita, Bertino. Private record matching using differential privacy. EDBT 2010: the
          baseline that Xiao et al. (DPCube, 2012) compare with, and name without details. The share of medians and
          least squares over all sums, as by Hay et al. (PVLDB 2010), are choices of this package.
          Every box is cut across its longest side (the first of equal ones). A median is chosen among the cells in
          order along that side; the box is cut at the border of slabs nearest to it. Choices add geometric noise to
          the scores and take the largest (permute-and-flip, but for ties), in place of the exponential mechanism.
Privacy:  structure_share of epsilon on `choose`, an equal share a level: the boxes of a level are disjoint. The score
          of a place is minus |count before - count after|, of sensitivity 1. The rest on `noisy_tree`: every box of
          every level, an equal share a level. The share of a level is forfeited if no box of it needs a median; if no
          level can have such a box, all of epsilon goes to the sums.
Domain:   1 to 6 axes, ordered as declared.
Cost:     O(cells · depth) time and memory.
Bars:     none for cells; sums of whole boxes have those of the fewest draws that make them up. Least squares and the
          error of spreading a box evenly are not covered, and may exceed a count: with one cell of 100,000 among 63
          empty ones, some of 180 runs told it more than 95,000 too low, and a box of two cells tells the empty one
          50,000 too high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.confidential.scores import CutByBalance
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NestedSums
from dphist_pipeline.mechanisms import DomainRefused, Mechanism, Setting

MOST_AXES = 6
MOST_AUTO = 10


@dataclass(frozen=True)
class Box:
    """Cells from `low` up to, but not, `high` along each axis."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def axis(self) -> int:
        """The axis of the longest side; the first of equal ones."""
        return int(np.argmax(self.sides))

    @property
    def sides(self) -> tuple[int, ...]:
        """Cells along each axis."""
        return tuple(high - low for low, high in zip(self.low, self.high, strict=True))

    @property
    def longest(self) -> int:
        """Cells along the longest side."""
        return max(self.sides)

    def of(self, cube: NDArray[np.int64]) -> NDArray[np.int64]:
        """The view of the box in an array of the domain's shape."""
        return cube[tuple(slice(low, high) for low, high in zip(self.low, self.high, strict=True))]

    def halves(self, slabs: int) -> tuple[Box, Box]:
        """The parts of a box cut across its longest side; some slabs lie before the cut, and some after it."""
        middle = self.low[self.axis] + slabs
        until = (*self.high[: self.axis], middle, *self.high[self.axis + 1 :])
        after = (*self.low[: self.axis], middle, *self.low[self.axis + 1 :])
        return Box(self.low, until), Box(after, self.high)


@dataclass(frozen=True)
class KDHierarchy(Mechanism):
    """Settings:"""

    depth: Annotated[
        Literal["auto"] | Annotated[int, Field(ge=1, le=16)],
        Setting(
            "how many times a box is halved; `auto` is the number of halvings to single cells, at most 10.",
            paper="not told",
            why="`auto` had the lower error of ranges and boxes in 35 of 42 settings beside 5 and in 25 of 42 settings "
            "beside 8, of real and invented counts.",
        ),
    ] = "auto"
    structure_share: Annotated[
        Fraction,
        Field(gt=0, lt=1),
        Setting(
            "the part of epsilon that finds medians.",
            paper="not told",
            why="Beside 1/2, 3/10 had the lower error of boxes in 9 of 12 settings, of real and invented counts.",
        ),
    ] = Fraction(3, 10)

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than six axes, and shares outside the sampler's range."""
        if len(domain.axes) > MOST_AXES:
            raise DomainRefused("kd_hierarchy", f"serves up to {MOST_AXES} axes, not {len(domain.axes)}")
        levels, tree = self._shares(Budget(epsilon), domain)
        for level in levels:
            level.scale(CutByBalance().sensitivity(sensitivity))
        Budget(tree.epsilon / (self._depth(domain) + 1), "each level of sums").scale(sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Boxes, level by level; noisy sums of all boxes; least squares; the leaves' sums, spread evenly over cells."""
        from dphist_pipeline.solvers.trees.tree_consistency import consistent

        medians, tree = self._shares(budget, counts.domain)
        levels, parents = self._levels(counts, medians)
        measured = counts.noisy_tree(levels, tree)
        leaves = consistent([level.values for level in measured], parents)[-1]
        values = (leaves / measured[-1].sizes)[levels[-1]]
        sums = NestedSums.of_levels(measured, parents)
        return Estimate(counts.domain, values, budget.charges, groups=levels[-1], sums=sums)

    def _depth(self, domain: Domain) -> int:
        """How many times boxes are halved; at most until single cells are left."""
        declared = min(MOST_AUTO, (domain.cells - 1).bit_length()) if self.depth == "auto" else self.depth
        return min(declared, sum(side - 1 for side in domain.shape))

    def _shares(self, budget: Budget, domain: Domain) -> tuple[tuple[Budget, ...], Budget]:
        """The budgets of the levels of medians, and of the tree."""
        # Every choice takes at least one cell off a side of three or more; a side of two has only one cut.
        many = min(self._depth(domain), sum(max(side - 2, 0) for side in domain.shape))
        if many == 0:
            return (), budget
        structure, tree = budget.split(structure=self.structure_share, counts=1 - self.structure_share)
        return structure.split(**{f"median_{number}": Fraction(1, many) for number in range(1, many + 1)}), tree

    def _levels(
        self, counts: PrivateCounts, medians: Sequence[Budget]
    ) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
        """For each level, the box number of every cell; and for each level but the first, the parent of each box."""
        shape = counts.domain.shape
        boxes = [Box((0,) * len(shape), shape)]
        levels, parents = [np.zeros(shape, dtype=np.int64)], []
        for number in range(self._depth(counts.domain)):
            cuts = _cuts(counts, boxes, medians[number] if number < len(medians) else None)
            parts = [box.halves(cut) if cut else (box,) for box, cut in zip(boxes, cuts, strict=True)]
            boxes = [part for some in parts for part in some]
            if any(cuts):
                parents.append(np.repeat(np.arange(len(parts)), [len(some) for some in parts]))
                levels.append(_box_numbers(boxes, shape))
        return levels, parents


def _cuts(counts: PrivateCounts, boxes: Sequence[Box], budget: Budget | None) -> list[int]:
    """How many slabs of each box lie before its cut; 0 for a single cell, which stays."""
    cuts = [box.longest // 2 for box in boxes]
    wide = [number for number, box in enumerate(boxes) if box.longest > 2]
    if budget is None or not wide:
        if budget is not None:
            budget.forfeit()
        return cuts
    numbers = np.arange(counts.domain.cells).reshape(counts.domain.shape)
    groups = [np.moveaxis(boxes[number].of(numbers), boxes[number].axis, 0).ravel() for number in wide]
    chosen = counts.choose(groups, CutByBalance(), budget)
    for number, group, choice in zip(wide, groups, chosen.tolist(), strict=True):
        slabs = boxes[number].longest
        nearest = (2 * (choice + 1) * slabs + group.size) // (2 * group.size)
        cuts[number] = min(max(nearest, 1), slabs - 1)
    return cuts


def _box_numbers(boxes: Sequence[Box], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Box number of every cell."""
    numbers = np.empty(shape, dtype=np.int64)
    for number, box in enumerate(boxes):
        box.of(numbers)[...] = number
    return numbers
