"""Trees of equal boxes over a grid: their nodes, and the covariance of their least squares estimate in closed form.

A level cuts the grid into boxes of equal widths, one width an axis; the widths of a level divide those of the level
above, and the last level is the cells. The top may be one node or many. Where a width does not divide the grid, the
last nodes reach beyond it, into padding without cells: that is counted as 0, never measured, and weighted as if it
were.

Covariance. Let B_l be 1 for two cells of the same node of level l, N_l the cells of a node, v_l the variance of a
measurement. P_l = B_l / N_l projects on what is constant in every node, so the E_l = P_l - P_(l-1) are orthogonal, and
the normal equations have the matrix Σ B_l / v_l = Σ p_l E_l with p_l = Σ_(k >= l) N_k / v_k. Its inverse, the
covariance of the cells, is Σ E_l / p_l = Σ c_l B_l with c_l = (1/p_l - 1/p_(l+1)) / N_l, and 1/p = 0 below the cells.
So the sum over a box of cells has the variance Σ c_l Q_l, where Q_l is the sum over the nodes of level l of (cells of
the box in the node)², a product over the axes. With padding this is an upper bound: it counts noise that the padding
does not carry.

Weights. A measurement y of node v weighs in the estimate of a sum s as cov(s, v) / var(y). Cells of one node have a
covariance that only falls with cells outside it (c_l < 0 above the cells) while cov(all cells, v) >= 0; so the weight
lies between those of all of v and of nothing but the rest, within ±var(v) / var(y), and var(v) <= var(y): at most 1.

Halving trees have widths that are powers of two, so that each box can be halved down to its cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Widths = tuple[int, ...]
BRANCHINGS = (2, 4, 8, 16, 32, 64)
LEVELS, LARGE, CELLS_OF_A_BOX = 3, 1024, 16


@dataclass(frozen=True)
class RegularTree:
    """A grid cut into boxes, level by level.

    Attributes:
        shape: cells along each axis.
        widths: for each level, from the top, the cells along each axis of a node; the last are 1.
    """

    shape: tuple[int, ...]
    widths: tuple[Widths, ...]

    def __post_init__(self) -> None:
        if any(width != 1 for width in self.widths[-1]):
            raise ValueError("the last level of a tree is its cells")
        if any(
            wide % narrow for above, below in pairwise(self.widths) for wide, narrow in zip(above, below, strict=True)
        ):
            raise ValueError("a node of a tree is cut into whole nodes")

    @property
    def volumes(self) -> list[int]:
        """Cells of a whole node of each level, from the top."""
        return [math.prod(widths) for widths in self.widths]

    def grid(self, level: int) -> tuple[int, ...]:
        """How many nodes of a level, counted from 0 at the top, hold a cell; along each axis."""
        return tuple(-(-size // width) for size, width in zip(self.shape, self.widths[level], strict=True))

    def padded_grid(self, level: int) -> tuple[int, ...]:
        """How many nodes a level, counted from 0 at the top, has along each axis, padding included."""
        tops = zip(self.grid(0), self.widths[0], self.widths[level], strict=True)
        return tuple(nodes * wide // width for nodes, wide, width in tops)

    @property
    def nodes(self) -> Sequence[NDArray[np.int64]]:
        """For each level, the node number of every cell, shape of the grid; each is made when it is asked for."""
        return _Nodes(self)


@dataclass(frozen=True)
class _Nodes(Sequence[NDArray[np.int64]]):
    tree: RegularTree

    def __len__(self) -> int:
        return len(self.tree.widths)

    def __getitem__(self, level: Any) -> Any:
        numbers = np.zeros((), dtype=np.int64)
        axes = zip(self.tree.shape, self.tree.widths[level], self.tree.grid(level), strict=True)
        for size, width, nodes in axes:
            numbers = numbers[..., None] * nodes + np.repeat(np.arange(nodes), min(width, size))[:size]
        return numbers


def branching_tree(shape: Sequence[int], branching: int) -> RegularTree:
    """The tree whose nodes are cut into `branching` parts along every axis, from one node that holds all cells.

    Widths are powers of `branching` from the cells upwards; an axis that one node holds is not cut above, and that node
    is no wider than the nodes below it need.

    Args:
        branching: parts of a node along each axis, at least 2.
    """
    widths = [tuple(1 for _ in shape)]
    while any(width < size for width, size in zip(widths[0], shape, strict=True)):
        above = (width * min(branching, -(-size // width)) for width, size in zip(widths[0], shape, strict=True))
        widths.insert(0, tuple(above))
    return RegularTree(tuple(shape), tuple(widths))


@lru_cache(maxsize=64)
def best_tree(shape: tuple[int, ...], most_branching: int = 16) -> RegularTree:
    """The tree of least mean variance over all boxes of cells, where its levels share epsilon alike.

    Trees that branch in 2 to `most_branching` are compared, with any number of their upper levels left out; the last
    of these is no tree but the cells alone. A function of the shape; ties go to fewer levels.

    Args:
        most_branching: parts of a node along each axis, at least 2; the cost grows with it.
    """
    found: list[tuple[float, int, RegularTree]] = []
    for branching in range(2, most_branching + 1):
        whole = branching_tree(shape, branching)
        for top in range(len(whole.widths)):
            tree = RegularTree(whole.shape, whole.widths[top:])
            levels = len(tree.widths)
            # Noise has a scale in proportion to the number of levels, and a variance to its square.
            found.append((mean_variance(tree, covariance(tree, [levels**2] * levels)), levels, tree))
    least = min(variance for variance, _, _ in found)
    return min((found_at for found_at in found if found_at[0] <= least * (1 + 1e-9)), key=lambda one: one[1])[2]


def covariance(tree: RegularTree, variances: Sequence[float]) -> list[float]:
    """c_l of each level, from the top: two cells have the covariance Σ c_l over the levels whose node they share.

    Args:
        variances: of the measurement of a node of each level, in records squared; infinite where there is none.
    """
    rates = [volume / variance for volume, variance in zip(tree.volumes, variances, strict=True)]
    return shared_noise(tree.volumes, np.cumsum(rates[::-1])[::-1].tolist())


def shared_noise(volumes: Sequence[int], precisions: Sequence[float]) -> list[float]:
    """c_l of each level, where what a level adds to the one above is known with a precision of p_l a unit vector.

    Args:
        volumes: cells of a node of each level, from the top; the last are 1.
        precisions: p_l of each level, one over records squared.
    """
    spreads = [*(1 / precision for precision in precisions), 0.0]
    return [(wide - narrow) / cells for (wide, narrow), cells in zip(pairwise(spreads), volumes, strict=True)]


def weights_in_a_cell(
    volumes: Sequence[int], coefficients: Sequence[float], variance: float
) -> list[tuple[float, int]]:
    """The weights of all measurements in the estimate of one cell: absolute weight, and number of nodes that have it.

    A measurement of node v weighs cov(cell, v) / variance; two cells whose lowest common node is of level j have the
    covariance Σ c_l over l <= j. Padding has no noise: beside it, some of these draws are absent. O(levels²) pairs.

    Args:
        volumes: cells of a node of each level, from the top; the last are 1.
        coefficients: c_l of each level; see `covariance`.
        variance: of the measurement of a node, the same on each level.
    """
    together = np.cumsum(coefficients)
    ends = [*volumes[1:], 0]
    weights = []
    for level, cells in enumerate(volumes):
        inside = math.fsum((volumes[j] - ends[j]) * together[j] for j in range(level, len(volumes)))
        weights.append((abs(inside) / variance, 1))
        beside = ((cells * together[j], (volumes[j] - ends[j]) // cells) for j in range(level))
        weights += [(abs(covariance) / variance, number) for covariance, number in beside]
    return weights


def mean_variance(tree: RegularTree, coefficients: Sequence[float]) -> float:
    """Mean variance of the sum over a box, over all boxes of adjacent cells.

    Args:
        coefficients: c_l of each level, in records squared; see `covariance`.
    """
    squares = [
        math.prod(mean_square(size, width) for size, width in zip(tree.shape, widths, strict=True))
        for widths in tree.widths
    ]
    return math.fsum(part * square for part, square in zip(coefficients, squares, strict=True))


def mean_square(size: int, width: int) -> float:
    """Mean over all ranges of a line of `size` cells of Σ (cells of the range in a node)², nodes `width` cells wide.

    Two cells at places x <= y, from 1, are both in x·(size + 1 - y) ranges; summed over pairs in a node in closed form.
    The last node may have fewer cells.
    """

    def pairs(nodes: int, start: int, width: int) -> int:
        """Σ over nodes at start, start + width, … of the ranges that hold two cells of a node, in both orders."""
        least, both = width * (width + 1) * (2 * width + 1) // 6, width * width * (width + 1)  # Σ min, Σ min + max
        places = nodes * start + width * nodes * (nodes - 1) // 2
        squares = nodes * start**2 + start * width * nodes * (nodes - 1)
        squares += width**2 * (nodes - 1) * nodes * (2 * nodes - 1) // 6
        alone = (size + 1) * least - (width * (width + 1) // 2) ** 2
        return ((size + 1) * width**2 - both) * places - width**2 * squares + nodes * alone

    whole = size // width
    ranges = size * (size + 1) // 2
    return (pairs(whole, 0, width) + pairs(1, whole * width, size % width)) / ranges


@lru_cache(maxsize=64)
def halving_tree(shape: tuple[int, ...]) -> RegularTree:
    """The tree for means of cells given noisy sums; a function of the shape.

    That of least variance of boxes by least squares is too low for a large grid of several axes: means of cells need
    fewer draws below, where counts are drawn together, and large boxes need them above.
    """
    best = least_variance(shape)
    low = len(best.widths) < LEVELS and math.prod(shape) >= LARGE
    return over_boxes(shape, CELLS_OF_A_BOX) if low else best


def least_variance(shape: tuple[int, ...]) -> RegularTree:
    """The tree of least mean variance over all boxes of cells, where its levels share epsilon alike.

    Trees that branch in 2 to 64 are compared, with any number of their upper levels left out; the top may branch more
    than the levels below. Ties go to fewer levels.
    """
    found: list[tuple[float, int, RegularTree]] = []
    for tree in _candidates(shape):
        levels = len(tree.widths)
        # Noise has a scale in proportion to the number of levels, and a variance to its square.
        found.append((mean_variance(tree, covariance(tree, [levels**2] * levels)), levels, tree))
    least = min(variance for variance, _, _ in found)
    return min((one for one in found if one[0] <= least * (1 + 1e-9)), key=lambda one: one[1])[2]


def over_boxes(shape: tuple[int, ...], cells: int) -> RegularTree:
    """The tree of least variance over small boxes of a grid, and the grid's cells below.

    Args:
        cells: of a small box, a power of two and at most those of the grid; the axis that has most boxes is halved
            first.
    """
    widths = [1] * len(shape)
    while math.prod(widths) < cells:
        boxes = [-(-size // width) for size, width in zip(shape, widths, strict=True)]
        widths[boxes.index(max(boxes))] *= 2
    above = least_variance(tuple(-(-size // width) for size, width in zip(shape, widths, strict=True))).widths
    levels = (tuple(wide * width for wide, width in zip(level, widths, strict=True)) for level in above)
    return RegularTree(shape, (*levels, (1,) * len(shape)))


def _candidates(shape: tuple[int, ...]) -> Sequence[RegularTree]:
    """Whole trees, and trees without upper levels or with other tops; an axis that one box holds may end inside it."""
    most = tuple(1 << (size - 1).bit_length() for size in shape)
    trees = []
    for branching in BRANCHINGS:
        widths = [tuple(1 for _ in shape)]
        while widths[0] != most:
            widths.insert(0, tuple(min(width * branching, wide) for width, wide in zip(widths[0], most, strict=True)))
        for top in range(len(widths)):
            below = widths[top:]
            tops = {
                tuple(min(width << more, wide) for width, wide in zip(below[0], most, strict=True))
                for more in range(1, max(most).bit_length())
            }
            trees += [RegularTree(shape, (top, *below)) for top in sorted(tops - {below[0]})]
            trees.append(RegularTree(shape, tuple(below)))
    return trees
