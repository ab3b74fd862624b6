"""The cheapest groups of neighbours on a line whose values need not rise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function
from dphist_pipeline.solvers.groups.segmentation import group_numbers

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def cheapest_line_groups(line: Reals, price: float, price_per_group: float) -> Numbers:
    """Finds the cheapest split of a line into groups of neighbours.

    The cost of a group is its squared error around its mean plus `price` / size plus `price_per_group`. Exact, over
    every number of groups at once; the values need not rise. Squared errors grow from each group's end by Welford's
    update, so nothing cancels. O(n²) time, O(n) memory.

    Args:
        line: shape (n,), n >= 1.
        price, price_per_group: records squared.

    Returns:
        Group number of each value, shape (n,), starting at 0 and never falling; of equally cheap splits, one whose
        last group is the shortest.
    """
    return group_numbers(
        _last_starts(np.ascontiguousarray(line, dtype=np.float64), float(price), float(price_per_group))
    )


@compile_function
def _last_starts(line: Reals, price: float, price_per_group: float) -> Numbers:
    """For each prefix, where its last group starts in the cheapest split; shape (n + 1,)."""
    n = line.size
    least, starts = np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)
    for end in range(1, n + 1):
        least[end] = np.inf
        mean, error, size = 0.0, 0.0, 0.0
        for start in range(end - 1, -1, -1):
            size += 1.0
            off = line[start] - mean
            mean += off / size
            error += off * (line[start] - mean)
            cost = least[start] + error + price / size + price_per_group
            if cost < least[end]:
                least[end], starts[end] = cost, start
    return starts
