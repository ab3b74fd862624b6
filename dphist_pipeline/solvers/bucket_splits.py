"""The cheapest splits of a line of cells into so many buckets, from what every stretch of cells costs as one bucket."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

Numbers = NDArray[np.int64]


def costs_of_last_starts(bucket_costs: Numbers, buckets: int) -> Numbers:
    """For every place where the last bucket can start, the cheapest split into that many buckets.

    If a step of one in one count moves the cost of every stretch that holds it by at most c, it moves each of these
    by at most c: in a fixed split one bucket holds the count, and a minimum moves no further than what it is taken of.
    O(n² · buckets) time, O(n) memory.

    Args:
        bucket_costs: [start, last] -> cost of the cells start … last as one bucket; shape (n, n). The dearest split
            must stay below 2^63.
        buckets: from 2 to n; none is empty.

    Returns:
        The costs for a last bucket that starts at cell buckets - 1, …, n - 1.
    """
    cheapest = bucket_costs[0]
    for used in range(1, buckets - 1):
        cheapest = _one_more_bucket(cheapest, bucket_costs, used)
    costs: Numbers = cheapest[buckets - 2 : -1] + bucket_costs[buckets - 1 :, -1]
    return costs


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
