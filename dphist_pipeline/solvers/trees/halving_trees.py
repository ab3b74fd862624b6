"""Trees over a grid whose widths are powers of two, so that each box can be halved down to its cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from dphist_pipeline.solvers.trees.regular_tree import RegularTree, covariance, mean_variance

BRANCHINGS = (2, 4, 8, 16, 32, 64)
LEVELS, LARGE, CELLS_OF_A_BOX = 3, 1024, 16


@lru_cache(maxsize=64)
def halving_tree(shape: tuple[int, ...]) -> RegularTree:
    """The tree for means of cells given noisy sums; a function of the shape.

    That of least variance of boxes by least squares is too low for a large grid of several axes: means of cells need
    fewer draws below, where counts are drawn together, and large boxes need them above.

    Args:
        shape: cells along each axis.
    """
    best = least_variance(shape)
    low = len(best.widths) < LEVELS and math.prod(shape) >= LARGE
    return over_boxes(shape, CELLS_OF_A_BOX) if low else best


def least_variance(shape: tuple[int, ...]) -> RegularTree:
    """The tree of least mean variance over all boxes of cells, where its levels share epsilon alike.

    Trees that branch in 2 to 64 are compared, with any number of their upper levels left out; the top may branch more
    than the levels below. Ties go to fewer levels.

    Args:
        shape: cells along each axis.
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
        shape: cells along each axis.
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
    found = []
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
            found += [RegularTree(shape, (top, *below)) for top in sorted(tops - {below[0]})]
            found.append(RegularTree(shape, tuple(below)))
    return found
