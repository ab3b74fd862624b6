"""Merging neighbours on a line, the closest pair first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

BLOCK = 16
Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def closest_neighbours(values: Reals, cell_variance: float) -> Numbers:
    """Merges the adjacent buckets whose squared error grows least, until one is left, and gives the best stage.

    Starts with a bucket a cell. Of equally close pairs, the leftmost is merged; in whole numbers that are not huge
    equal pairs compare as equal. The best stage has the least SSE + (2 · buckets - cells) · cell_variance, of equal
    ones the one with the most buckets. O(n log n) time, O(n) memory.

    Args:
        values: one number per cell, shape (n,), n >= 1.
        cell_variance: of the noise in a cell, at least 0.

    Returns:
        Bucket number per cell, shape (n,), starting at 0 and never falling.
    """
    line = np.ascontiguousarray(values, dtype=np.float64)
    # Centred, so that a large common part does not eat the digits of the rest; on a value, so whole numbers stay whole.
    centred = line - np.partition(line, line.size // 2)[line.size // 2]
    gone = _merged_starts(centred, float(cell_variance))
    first = np.ones(line.size, dtype=np.int64)
    first[gone] = 0
    return np.cumsum(first) - 1


@compiled
def _merged_starts(values: Reals, cell_variance: float) -> Numbers:
    """The starts of the buckets that were merged into the one on their left, up to the best stage, in that order.

    A bucket is known by its first cell, and a pair by its left bucket. The increases of the pairs lie in blocks of 16,
    read at once, and the blocks wait in a tournament: node v holds the least increase below it, its children are 2v and
    2v + 1, the root is node 1. A pair never changes its place, so the leftmost of equal pairs is found by going left.
    """
    n = values.size
    blocks = 1
    while blocks * BLOCK < n:
        blocks *= 2
    parts = np.ones((n, 2))  # sum and size
    parts[:, 0] = values
    links = np.empty((n, 2), dtype=np.int64)  # the buckets before and after
    links[:, 0], links[:, 1] = np.arange(-1, n - 1), np.arange(1, n + 1)
    increases, least = np.full(blocks * BLOCK, np.inf), np.full(2 * blocks, np.inf)
    for left in range(n - 1):
        increases[left] = _increase(parts, left, left + 1)
    for block in range((n + BLOCK - 1) // BLOCK):
        _renew(least, increases, blocks, block)
    gone = np.empty(n, dtype=np.int64)
    change, best_change, best = 0.0, 0.0, 0
    for merges in range(1, n):
        increase, node = least[1], 1
        while node < blocks:
            node *= 2
            if least[node] != increase:
                node += 1
        left = (node - blocks) * BLOCK
        while increases[left] != increase:
            left += 1
        # From one stage to the next: nothing large is ever subtracted.
        change += increase - 2.0 * cell_variance
        if change < best_change:
            best_change, best = change, merges
        right = links[left, 1]
        gone[merges - 1] = right
        parts[left] += parts[right]
        before, after = links[left, 0], links[right, 1]
        links[left, 1] = after
        increases[left] = increases[right] = np.inf
        if after < n:
            links[after, 0] = left
            increases[left] = _increase(parts, left, after)
        block = left // BLOCK
        if before >= 0:
            increases[before] = _increase(parts, before, left)
            if before // BLOCK != block:
                _renew(least, increases, blocks, before // BLOCK)
        _renew(least, increases, blocks, block)
        if right // BLOCK != block:
            _renew(least, increases, blocks, right // BLOCK)
    return gone[:best]


@compiled
def _increase(parts, left, right):  # type: ignore[no-untyped-def]
    """By how much the squared error grows: n1 · n2 / (n1 + n2) · (mean1 - mean2)², with a single division."""
    both = parts[left, 1] * parts[right, 1]
    apart = parts[left, 0] * parts[right, 1] - parts[right, 0] * parts[left, 1]
    return apart * apart / (both * (parts[left, 1] + parts[right, 1]))


@compiled
def _renew(least, increases, blocks, block):  # type: ignore[no-untyped-def]
    """Finds a block's least increase anew, and those of the nodes above it, as far as they change."""
    winner = np.inf
    for pair in range(block * BLOCK, (block + 1) * BLOCK):
        winner = min(winner, increases[pair])
    node = blocks + block
    while node > 0 and least[node] != winner:
        least[node] = winner
        node //= 2
        winner = min(least[2 * node], least[2 * node + 1])
