"""The cheapest splits of a line into a given number of buckets, from the cost of every stretch as one bucket."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

Numbers = NDArray[np.int64]

LARGEST_CEILING = 1_000_000
MOST_CELLS = 3000  # (cells · ceiling)² stays below 2^63


def costs_of_last_starts(bucket_costs: Numbers, buckets: int) -> Numbers:
    """The cost of the cheapest split into that many buckets, for every place where the last bucket can start.

    If a step of one in one count changes the cost of every stretch that holds it by at most c, it changes each of these
    costs by at most c: in a fixed split one bucket holds the count, and a minimum changes by no more than its terms do.
    O(n² · buckets) time, O(n) memory.

    Args:
        bucket_costs: [start, last] -> cost of the cells start … last as one bucket; shape (n, n). The cost of
            every split must be below 2^63.
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


def squared_errors(counts: Numbers, ceiling: int) -> Numbers:
    """Squared errors around the mean, rounded up, for every stretch of cells.

    Counts are first clipped to 0 … `ceiling`, which brings two lines no further apart. Then a step of one in one count
    changes every entry by at most 2 · ceiling - 1. For a stretch of n counts of sum S, let one of them go from a to
    a + 1: its squared error changes by (2a + 1) - (2S + 1) / n. With a <= ceiling - 1 and S >= a this is at most
    (2a + 1)(1 - 1/n) <= 2 · ceiling - 1; with S <= a + (n - 1) · ceiling it is at least (2a + 1 - 2 · ceiling)(1 - 1/n)
    >= 1 - 2 · ceiling. This bound is a whole number, so it also holds for the rounded numbers. Sums of squares are
    whole, so rounding up takes the floor of S²/n: no float takes part. O(n²) time and memory.

    Args:
        counts: shape (n,), n up to 3,000.
        ceiling: from 1 to 1,000,000.

    Returns:
        Shape (n, n), entry [start, last] for the cells start … last; 0 where last < start.
    """
    if not 1 <= ceiling <= LARGEST_CEILING or counts.size > MOST_CELLS:
        raise ValueError(f"squares stay below 2^63 for a ceiling from 1 to {LARGEST_CEILING} and {MOST_CELLS} counts")
    return _squared_errors(np.clip(counts, 0, ceiling).astype(np.int64))


@compiled
def _squared_errors(counts: Numbers) -> Numbers:
    """The table of `squared_errors` for clipped counts."""
    n = counts.size
    costs = np.zeros((n, n), dtype=np.int64)
    for start in range(n):
        total, squares = 0, 0
        for last in range(start, n):
            total += counts[last]
            squares += counts[last] * counts[last]
            costs[start, last] = squares - total * total // (last - start + 1)
    return costs
