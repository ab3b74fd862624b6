"""Boxes by two rules at once, counted anew, and joined again where the new counts show no difference."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.boxes.kd_boxes import Numbers, Reals, greedy_boxes
from dphist_pipeline.solvers.boxes.pruned_boxes import pruned_boxes, tail_variance


@dataclass(frozen=True, eq=False)
class TwofoldBoxes:
    """The common refinement of two partitions into boxes, and which of its boxes lie in one box of either.

    Attributes:
        boxes: box number of every cell, shape of the cells.
        blocks: block number of every box, shape (boxes,). In each block, one of the two partitions has a single box.
    """

    boxes: Numbers
    blocks: Numbers

    @classmethod
    def of(cls, boxes: Numbers) -> TwofoldBoxes:
        """The boxes of one partition, each a block; `boxes` counts from 0 without gaps."""
        return cls(boxes, np.arange(boxes.max() + 1))


def twofold_boxes(cells: Reals, cell_variance: float, box_variance: float, max_depth: int) -> TwofoldBoxes:
    """The boxes that `greedy_boxes` or `pruned_boxes` tell apart. O(cells · depth) time, O(cells) memory.

    Args:
        cells, cell_variance, box_variance, max_depth: see `kd_boxes`.
    """
    rule = (cells, cell_variance, box_variance, max_depth)
    one, two = (find(*rule)[0].ravel() for find in (greedy_boxes, pruned_boxes))
    boxes, blocks = _common_refinement(one, two)
    return TwofoldBoxes(boxes.reshape(cells.shape), blocks)


def _common_refinement(one: Numbers, two: Numbers) -> tuple[Numbers, Numbers]:
    """Box number of every cell, and block number of every box.

    Both partitions prune one tree, so of two boxes with a common cell, one lies in the other. Only where `max_depth` is
    too small for the tree, boxes may cross; all are one block then.
    """
    sizes = np.bincount(one)[one], np.bincount(two)[two]
    others = two + one.max() + 1
    boxes = _renumber(np.where(sizes[0] <= sizes[1], one, others))
    larger = _renumber(np.where(sizes[0] >= sizes[1], one, others))
    if all(np.array_equal(_of_groups(boxes, part)[boxes], part) for part in (one, two, larger)):
        return boxes, _of_groups(boxes, larger)
    boxes = np.unique(one * (two.max() + 1) + two, return_inverse=True)[1]
    return boxes, np.zeros(boxes.max() + 1, dtype=np.int64)


def _of_groups(groups: Numbers, part: Numbers) -> Numbers:
    """The number that a partition gives to a cell of each group; to all of them if no group is cut."""
    places = np.empty(groups.max() + 1, dtype=np.int64)
    places[groups] = part
    return places


def _renumber(numbers: Numbers) -> Numbers:
    """The same groups, numbered without gaps."""
    used = np.bincount(numbers) > 0
    return (np.cumsum(used) - 1)[numbers]


@dataclass(frozen=True, eq=False)
class Noise:
    """The noise of the cells by which boxes were found, and of the sums that were drawn for the boxes.

    Attributes:
        cell_variance, box_variance: of one cell and of one sum, in records squared.
    """

    cell_variance: float
    box_variance: float

    @property
    def is_none(self) -> bool:
        """Whether hardly one draw in 10^12 differs from 0."""
        return min(self.cell_variance, self.box_variance) < 1e-12

    @property
    def doubt(self) -> float:
        """Variance of the square of a sum's noise, in box_variance squared; by the fourth moment of its law."""
        return 5 + 1 / self.box_variance

    @property
    def cell_scale(self) -> float:
        """Noise of a cell is beyond k scales with odds of e^-k."""
        return math.sqrt(tail_variance(self.cell_variance) / 2)

    @property
    def box_scale(self) -> float:
        """Noise of a sum is beyond k scales with odds of e^-k."""
        return math.sqrt(tail_variance(self.box_variance) / 2)


def joined_means(cells: Reals, found: TwofoldBoxes, sums: Reals, noise: Noise) -> tuple[Reals, NDArray[np.bool_]]:
    """The mean of every box; the boxes of a block share one mean if nothing shows that they differ.

    Boxes were found by looking for differences in noisy cells, so these show too much of a difference. Their sums were
    drawn afterwards, so these do not. The boxes of a block stay apart if the sum of one of them is as far from the mean
    of the block as noise is in one of √(e^L · cells) draws, and its noisy cells, too; or if all sums together are
    farther from it than noise is with odds of e^-L, and by more than it costs to keep them apart. The costlier a
    difference that is none, the surer it must be: L = ln(1 + 6 · cost / rest), where `cost` is the noise of the boxes,
    and `rest` that of all blocks with their boxes joined, and the errors within boxes as far as noisy cells show them.
    So bad luck with equal cells costs little, and boxes among others are kept if they pay. Judged by
    benchmarks/dpcube_boxes.py.

    The shared mean is that of least variance, so a box weighs as much as the square of its cells.

    Args:
        cells: noisy counts by which the boxes were found.
        sums: noisy sum of every box, drawn afterwards, shape (boxes,).

    Returns:
        The means in records, and which blocks keep their boxes apart; shapes (boxes,) and (blocks,).
    """
    where, blocks = found.boxes.ravel(), found.blocks
    sizes = np.bincount(where).astype(np.float64)
    new, old = sums / sizes, np.bincount(where, weights=cells.ravel()) / sizes
    if noise.is_none:
        return new, np.ones(blocks.max() + 1, dtype=np.bool_)
    size, weight = np.bincount(blocks, weights=sizes), np.bincount(blocks, weights=sizes**2)
    joined = np.bincount(blocks, weights=sizes * sums) / weight
    old_gap = np.sqrt(sizes) * (old - (np.bincount(blocks, weights=sizes * old) / size)[blocks])
    new_gap = sums - sizes * joined[blocks]
    cost, squares = np.bincount(blocks, weights=1 / sizes), np.bincount(blocks, weights=1 / sizes**2)
    farthest, largest = np.zeros(cost.size), np.zeros(cost.size)
    nearer = np.minimum(np.abs(old_gap) / noise.cell_scale, np.abs(new_gap) / noise.box_scale)
    np.maximum.at(farthest, blocks, np.where(old_gap * new_gap > 0, nearer, 0.0))
    np.maximum.at(largest, blocks, 1 / sizes)
    rest = (size / weight).sum() + _within(cells.ravel() - old[where], sizes.size, noise)
    sure = np.log1p(6 * cost / rest)
    together = np.bincount(blocks, weights=new_gap**2 / sizes) / noise.box_variance
    luck = (noise.box_scale * sure) ** 2 / noise.box_variance * largest + np.sqrt(2 * noise.doubt * sure * squares)
    apart = np.bincount(blocks) == 1
    apart |= (2 * farthest > sure + math.log(cells.size)) | (together > 2 * cost + luck)
    return np.where(apart[blocks], new, joined[blocks]), apart


def _within(apart: Reals, boxes: int, noise: Noise) -> float:
    """The squared error within boxes, less three standard deviations of what noise adds to it; in box_variance."""
    variance = noise.cell_variance
    luck = 3 * math.sqrt(apart.size * (5 * variance**2 + variance))
    return max(0.0, float(apart @ apart) - (apart.size - boxes) * variance - luck) / noise.box_variance
