"""Buckets of a line whose ends lie at halves, quarters, eighths, …: what they cost, and the cheapest split into them.

Cells are joined to pairs, pairs to fours, and so on. A level joins the nodes of the level below two by two, and a last
one without a partner goes up as it is. So n cells have n buckets of one cell and n - 1 larger ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function

Numbers = NDArray[np.int64]


def levels_of(cells: int) -> int:
    """How many times the nodes of a line of one cell or more are joined until one is left."""
    return (cells - 1).bit_length()


def bucket_deviations(counts: Numbers) -> list[Numbers]:
    """Sums of absolute deviations from the median, of every bucket.

    Counts are first clipped to ±2^60 / n, which brings two lines no further apart and keeps every sum below 2^60. Then
    a step of one in one count changes the entry of every bucket that holds it by at most 1, and no other: see
    `absolute_deviation.deviations`. All numbers are whole. O(n log n) time, O(n) memory: a merge sort.

    Args:
        counts: shape (n,), n at least 1.

    Returns:
        For single cells, which deviate by 0, then for each level the buckets that it joins, from the left.
    """
    reach = (1 << 60) // counts.size
    line = np.clip(counts, -reach, reach).astype(np.int64)
    costs, width = [np.zeros(line.size, dtype=np.int64)], 1
    while width < line.size:
        deviations = np.empty(-(-line.size // width) // 2, dtype=np.int64)
        line = _join_pairs(line, width, deviations)
        costs.append(deviations)
        width *= 2
    return costs


@compile_function
def _join_pairs(line: Numbers, width: int, costs: Numbers) -> Numbers:
    """The line with its sorted nodes merged two by two; writes the deviations of each new node."""
    merged = line.copy()
    for node in range(costs.size):
        start = 2 * width * node
        middle, end = start + width, min(start + 2 * width, line.size)
        left, right, half = start, middle, (end - start) // 2
        above = 0
        for place in range(start, end):
            if right >= end or (left < middle and line[left] <= line[right]):
                merged[place] = line[left]
                left += 1
            else:
                merged[place] = line[right]
                right += 1
            if place < start + half:
                above -= merged[place]
            elif place >= end - half:
                above += merged[place]
        costs[node] = above
    return merged


def bucket_prices(cells: int, savings: Sequence[int]) -> list[Numbers]:
    """A price for every bucket, as `bucket_deviations`: 0 for a cell, else its parts' minus what the level saves."""
    nodes = np.zeros(cells, dtype=np.int64)
    prices = [nodes]
    for saving in savings:
        pairs = nodes.size // 2
        prices.append(nodes[: 2 * pairs : 2] + nodes[1 : 2 * pairs : 2] - saving)
        nodes = np.concatenate([prices[-1], nodes[2 * pairs :]])
    return prices


def cheapest_buckets(costs: Sequence[NDArray[np.int64]]) -> Numbers:
    """The first cells, rising, of the buckets of the cheapest split. O(n log n).

    Equal splits are ordered: whole before split at the top, then by the left part, then by the right one.

    Args:
        costs: as from `bucket_deviations`, of any whole numbers: int64, or Python's, where sums of costs are larger.
    """
    best, cells = costs[0], costs[0].size
    starts = np.ones(cells, dtype=np.bool_)
    for level, cost in enumerate(costs[1:], 1):
        pairs = 2 * cost.size
        apart = best[:pairs:2] + best[1:pairs:2]
        whole = (cost <= apart).astype(np.bool_)
        best = np.concatenate([np.where(whole, cost, apart), best[pairs:]])
        inside = np.repeat(whole, 1 << level)[:cells]
        inside[:: 1 << level] = False
        starts[: inside.size] &= ~inside
    return np.flatnonzero(starts)
