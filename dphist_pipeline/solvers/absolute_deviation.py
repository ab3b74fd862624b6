"""Costs of stretches and cuts of a line of counts, in whole numbers: absolute deviations, and halves that differ."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

Numbers = NDArray[np.int64]


def deviations(counts: Numbers) -> Numbers:
    """[start, last] -> sum of absolute deviations from the median of the cells start … last; 0 where last < start.

    A step of one in one count moves every entry by at most 1: a sum of |count - centre| does for a fixed centre, the
    median is the centre with the least sum, and a minimum moves no further than what it is taken of. Whole numbers
    throughout, which stay below 2^63 for up to 2,000 counts within ±2^52. O(n²) time and memory.
    """
    line = np.ascontiguousarray(counts, dtype=np.int64)
    return _deviations(line, np.argsort(line, kind="stable"))


def deviations_of_cuts(counts: Numbers, centre: Literal["median", "mean"]) -> Numbers:
    """For every cut of a line, the summed deviations of the cells before it and of those after it, each from its own.

    The centre is the median, or the mean with what it gives rounded down. Counts are first cut off at ±2^60 / n, which
    brings two lines no further apart and keeps every sum below 2^61. Then a step of one in one count moves every entry
    by at most 1 with medians, by at most 2 with means: it changes one side alone, from its median by at most 1 (see
    `deviations`), and from its mean, with s cells on that side, by at most 1 - 1/s for the count itself and 1/s for
    each of the others; two numbers no further apart than 2 are still so when rounded down. Whole numbers throughout.
    O(n log n) time, O(n) memory.

    Args:
        counts: shape (n,), n at least 1.
        centre: of each side.

    Returns:
        Shape (n,): the deviations of the whole line, then those for a cut after the first cell, the second, ….
    """
    reach = (1 << 60) // counts.size
    line = np.clip(counts, -reach, reach).astype(np.int64)
    order = np.argsort(line, kind="stable")
    sums = _of_first_from_medians if centre == "median" else _of_first_from_means
    after = sums(np.ascontiguousarray(line[::-1]), counts.size - 1 - order)[:0:-1]
    cuts: Numbers = sums(line, order)[:-1] + after
    return cuts


def imbalances(counts: Numbers) -> Numbers:
    """|count before - count after| for a cut after the first cell, the second, …; shape (n - 1,).

    Counts are first cut off at ±2^60 / n, which brings two lines no further apart and keeps every sum within 2^60. Then
    a step of one in one count moves every entry by at most 1, for the count lies on one side alone. O(n).

    Args:
        counts: shape (n,), n at least 1.
    """
    reach = (1 << 60) // counts.size
    before = np.cumsum(np.clip(counts, -reach, reach), dtype=np.int64)
    apart: Numbers = np.abs(2 * before[:-1] - before[-1])
    return apart


@compiled
def _deviations(counts: Numbers, order: Numbers) -> Numbers:
    n = counts.size
    costs = np.zeros((n, n), dtype=np.int64)
    rank, links = _ranks(order), np.empty((2, n + 1), dtype=np.int64)
    for start in range(n):
        _of_stretches_from(start, counts, order, rank, links, costs[start])
    return costs


@compiled
def _of_first_from_medians(counts: Numbers, order: Numbers) -> Numbers:
    """Deviations of the first 0, 1, …, n cells from their medians; shape (n + 1,)."""
    n = counts.size
    costs = np.zeros(n + 1, dtype=np.int64)
    _of_stretches_from(0, counts, order, _ranks(order), np.empty((2, n + 1), dtype=np.int64), costs[1:])
    return costs


@compiled
def _ranks(order: Numbers) -> Numbers:
    rank = np.empty(order.size, dtype=np.int64)
    for place in range(order.size):
        rank[order[place]] = place
    return rank


@compiled
def _of_stretches_from(
    start: int, counts: Numbers, order: Numbers, rank: Numbers, links: Numbers, costs: Numbers
) -> None:
    """Fills in the cost of every stretch that begins at `start`: O(n).

    Cells are taken away from the end while a pointer stays at the (lower) median. They are known by their rank.
    `middle` is the last of the lower half, which holds the odd cell; `above` is the sum of the upper half less that of
    the lower.
    """
    n = counts.size
    before, after = links[0], links[1]
    size, latest, middle, above = n - start, n, n, 0  # n stands for both ends of the list
    lower, seen = (size + 1) // 2, 0
    for place in range(n):
        if order[place] < start:
            continue
        before[place], after[latest], latest = latest, place, place
        seen += 1
        above += -counts[order[place]] if seen <= lower else counts[order[place]]
        if seen == lower:
            middle = place
    before[n], after[latest] = latest, n
    for last in range(n - 1, start - 1, -1):
        median = counts[order[middle]]
        costs[last] = above + median if size % 2 == 1 else above
        gone = rank[last]
        below = gone <= middle
        above += counts[last] if below else -counts[last]
        if size % 2 == 0 and below:
            middle = after[middle]
            above -= 2 * counts[order[middle]]
        elif size % 2 == 1 and not below:
            above += 2 * median
            middle = before[middle]
        elif gone == middle:
            middle = before[middle]
        after[before[gone]], before[after[gone]] = after[gone], before[gone]
        size -= 1
        if size == 0:
            break


@compiled
def _of_first_from_means(counts: Numbers, order: Numbers) -> Numbers:
    """Deviations of the first 0, 1, …, n cells from their means, rounded down; shape (n + 1,).

    They are twice what the counts above the mean exceed it by. Those are found by rank in a tree of partial counts and
    sums (Fenwick 1994): O(n log n).
    """
    n = counts.size
    costs, rank, rising = np.zeros(n + 1, dtype=np.int64), _ranks(order), counts[order]
    tree = np.zeros((n + 1, 2), dtype=np.int64)
    total = 0
    for last in range(n):
        size = last + 1
        total += counts[last]
        place = rank[last] + 1
        while place <= n:
            tree[place, 0] += 1
            tree[place, 1] += counts[last]
            place += place & -place
        mean, rest = total // size, total % size
        above, exceeding = size, total
        place = np.searchsorted(rising, mean, side="right")
        while place > 0:
            above -= tree[place, 0]
            exceeding -= tree[place, 1]
            place -= place & -place
        costs[size] = 2 * (exceeding - above * mean) - (2 * above * rest + size - 1) // size
    return costs
