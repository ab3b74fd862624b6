"""Non-negative whole counts that add up to the published total: for readers, not a substitute for the estimates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PARTS = 1024


def whole_counts(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Non-negative whole numbers near the estimates; their sum is the rounded sum of all estimates.

    Projects the estimates on the non-negative numbers with that sum: lowers all cells by the same amount, and sets
    negative ones to 0. Then rounds down, and adds the missing records to the cells with the largest remainders, the
    first cell first. Computes in 1024ths of a record with integers, so that SQL gets the same result. This is
    post-processing: it has no intervals, and empty cells keep positive noise.

    Args:
        values: estimates in records, any shape.

    Returns:
        int64, shape of `values`.
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
