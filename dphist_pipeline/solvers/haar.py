"""The Haar transform of a line: its total, and left half minus right half for every node of a binary tree."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
Line = TypeVar("Line", Numbers, Reals)


def haar(values: Line) -> Line:
    """The total of a line, and S_left - S_right of every node (Xiao, Wang, Gehrke 2010, without their scaling). O(m).

    Exact in int64 while the sum of absolute values is below 2^63 (10^6 cells of 10^12 sum to 10^18), and for whole
    numbers in float64 while it is below 2^53.

    Args:
        values: shape (m,), m a power of two.

    Returns:
        Shape (m,): the total at 0, the root at 1, and the halves of node v at 2v and 2v + 1.
    """
    if values.ndim != 1 or values.size & (values.size - 1) or not values.size:
        raise ValueError(f"a line of a power of two cells is needed, not shape {values.shape}")
    coefficients = np.empty_like(values)
    _transform(values, np.empty_like(values, shape=(values.size // 2 + 1,)), coefficients)
    return coefficients


def inverse_haar(coefficients: Line) -> Line:
    """The line that has these coefficients, numbered as `haar` numbers them. O(m).

    In int64, coefficients must come from `haar` of whole numbers: the exact inverse while the sum of absolute values is
    below 2^62. In float64 they may be any numbers, e.g. noisy ones: exact while the sums are below 2^53 times the
    smallest fraction that occurs, which is at least 1/m for whole coefficients.
    """
    line = np.empty_like(coefficients)
    _restore(coefficients, line, coefficients.dtype.kind == "i")
    return line


@compiled
def _transform(values: Line, sums: Line, coefficients: Line) -> None:
    """Writes the coefficients, shape (m,), level by level from the leaves up; `sums` is room, shape (m // 2 + 1,)."""
    below, half = values, values.size // 2
    while half > 0:
        for node in range(half):
            left, right = below[2 * node], below[2 * node + 1]
            coefficients[half + node] = left - right
            sums[node] = left + right
        below, half = sums, half // 2
    coefficients[0] = below[0]


@compiled
def _restore(coefficients: Line, line: Line, whole: bool) -> None:
    """Writes the line, shape (m,), level by level from the root down, and from right to left within a level: so every
    sum is read before it is overwritten.
    """
    line[0], nodes = coefficients[0], 1
    while nodes < line.size:
        for node in range(nodes - 1, -1, -1):
            both, twice = line[node], line[node] + coefficients[nodes + node]
            if whole:
                line[2 * node] = twice // 2
            else:
                line[2 * node] = twice / 2
            line[2 * node + 1] = both - line[2 * node]
        nodes *= 2
