"""Whole numbers from 0 that add up to the published total: for reading, never in place of the estimates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PARTS = 1024


def whole_counts(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Non-negative whole numbers near the estimates, whose sum is the sum of all estimates, rounded.

    The nearest numbers from 0 with that sum: all are lowered by the same amount, and those below 0 are 0. Then the last
    records go to the largest remainders, of equal ones to the first cell. In 1024ths of a record, in whole numbers, so
    that SQL finds the same. It is post-processing: no error bar belongs to it, and empty cells keep what noise left
    above 0.

    Args:
        values: estimates, any shape.
    """
    parts = np.floor(values.ravel() * PARTS + 0.5).astype(np.int64)
    total = max(0, (int(parts.sum()) + PARTS // 2) // PARTS)
    largest = np.sort(parts)[::-1]
    number = np.arange(1, largest.size + 1)
    over = np.cumsum(largest) - PARTS * total
    kept = np.flatnonzero(largest > over // number)
    if not kept.size:
        return np.zeros(values.shape, dtype=np.int64)
    last = kept[-1]
    parts = np.maximum(0, parts + -over[last] // number[last])
    counts, remainders = parts // PARTS, parts % PARTS
    first = np.lexsort((np.arange(parts.size), parts == 0, -remainders))[: total - int(counts.sum())]
    counts[first] += 1
    return np.asarray(counts.reshape(values.shape), dtype=np.int64)
