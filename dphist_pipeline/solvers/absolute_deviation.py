"""Splits of a line of whole numbers into buckets, by their absolute deviations from the median of each bucket."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

Numbers = NDArray[np.int64]


def costs_of_last_starts(counts: Numbers, buckets: int) -> Numbers:
    """For every place where the last bucket can start, the cheapest split into that many buckets.

    The cost of a bucket is the sum of |count - median of the bucket|. Each cost moves by at most the L1 distance
    between two lines of counts: for a fixed split and fixed centres a sum of |count - centre| does, the median is the
    centre with the least sum, and a minimum moves no further than what it is taken of. Whole numbers throughout, which
    stay below 2^63 for up to 2,000 counts within ±2^52. O(n² · buckets) time, O(n²) memory.

    Args:
        counts: shape (n,).
        buckets: from 2 to n; none is empty.

    Returns:
        The costs for a last bucket that starts at cell buckets - 1, …, n - 1.
    """
    bucket_costs = deviations(counts)
    cheapest = bucket_costs[0]
    for used in range(1, buckets - 1):
        cheapest = _one_more_bucket(cheapest, bucket_costs, used)
    costs: Numbers = cheapest[buckets - 2 : -1] + bucket_costs[buckets - 1 :, -1]
    return costs


def deviations(counts: Numbers) -> Numbers:
    """[start, last] -> sum of absolute deviations from the median of the cells start … last; 0 where last < start."""
    line = np.ascontiguousarray(counts, dtype=np.int64)
    return _deviations(line, np.argsort(line, kind="stable"))


@compiled
def _one_more_bucket(cheapest: Numbers, bucket_costs: Numbers, used: int) -> Numbers:
    """The cheapest split of the cells 0 … last into used + 1 buckets, from those into `used`; 0 where there is none."""
    n = cheapest.size
    more = np.zeros(n, dtype=np.int64)
    for start in range(used, n):
        before = cheapest[start - 1]
        for last in range(start, n):
            cost = before + bucket_costs[start, last]
            if start == used or cost < more[last]:
                more[last] = cost
    return more


@compiled
def _deviations(counts: Numbers, order: Numbers) -> Numbers:
    """For each start, cells are taken away from the end while a pointer stays at the (lower) median: O(n²).

    Cells are known by their rank. `middle` is the last of the lower half, which holds the odd cell; `above` is the sum
    of the upper half less that of the lower.
    """
    n = counts.size
    costs = np.zeros((n, n), dtype=np.int64)
    rank = np.empty(n, dtype=np.int64)
    for place in range(n):
        rank[order[place]] = place
    before, after = np.empty(n + 1, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    for start in range(n):
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
            costs[start, last] = above + median if size % 2 == 1 else above
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
    return costs
