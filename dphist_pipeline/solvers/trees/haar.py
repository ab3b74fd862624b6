"""The inverse of the unnormalised Haar transform of a grid: of totals, and of left halves minus right ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


def inverse_haar(wavelet: Reals, shape: Sequence[int]) -> Reals:
    """The cells that have these totals and differences (Xiao, Wang, Gehrke 2010, without their scaling).

    Along each axis stand the total, then for every level from the top the left half minus the right half of each node
    that holds a cell; lines are padded to a power of two. Any numbers serve, e.g. noisy ones: exact while the sums are
    below 2^53 times the smallest fraction that occurs, 1/(padded cells) or more for whole numbers. O(cells · axes)
    time, O(cells) memory.

    Args:
        wavelet: shape of the numbers along each axis, 1 + nodes of all levels.

    Returns:
        float64, shape `shape`; what belongs to padding is left out.
    """
    values = wavelet
    for axis, cells in enumerate(shape):
        values = np.moveaxis(_inverse_of_lines(np.moveaxis(values, axis, 0), cells), 0, axis)
    return np.ascontiguousarray(values)


def _inverse_of_lines(numbers: Reals, cells: int) -> Reals:
    """The inverse along the first axis: halves each node's sum by its difference, from the top down."""
    sums, offset = numbers[:1], 1
    for level in range((cells - 1).bit_length(), 0, -1):
        nodes = -(-cells >> level)
        left = (sums + numbers[offset : offset + nodes]) / 2
        offset += nodes
        halves = np.stack([left, sums - left], axis=1).reshape(2 * nodes, *sums.shape[1:])
        sums = halves[: -(-cells >> (level - 1))]
    if offset != len(numbers):
        raise ValueError(f"{cells} cells have {offset} totals and differences, not {len(numbers)}")
    return sums
