"""Groups sorted numbers so that the relative error stays small: by the two greedy rules of SReB_GCA, or at best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function
from dphist_pipeline.solvers.groups.segmentation import group_numbers

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def relative_groups(sorted_values: Reals, scale: float) -> Numbers:
    """Groups sorted numbers from left to right, as GGS does (Chen et al. 2024, equations 25 to 27 and 31).

    With H a value, C a group and H* = max(H, 1), the error of a group is
        err(C) = the sum over H in C of (|H - mean(C)| + scale / |C|) / H*.
    Value number j of n joins the group before it where err(C + H_j) < err(C) + scale / ((n - j + 1) · H_j*), and opens
    the next group elsewhere. (The paper divides both sides by |C| + 1.)

    The mean never falls as a group grows, so the values below it are a growing prefix: O(n) steps in all. Sums are
    taken around the first value of the group, so nothing cancels. Where both sides are equal, rounding decides, since
    the groups of earlier releases must stay.

    Args:
        sorted_values: rising, shape (n,), n >= 1.
        scale: of the noise in the sum of a group, in records.

    Returns:
        Group number of each value, shape (n,), starting at 0 and never falling.
    """
    values = np.ascontiguousarray(sorted_values, dtype=np.float64)
    alone = float(scale) * (1.0 / np.maximum(values, 1.0))
    return np.cumsum(_relative_starts(values, float(scale), alone / np.arange(values.size, 0, -1))) - 1


def relative_groups_of_gp(sorted_values: Reals, scale: float) -> Numbers:
    """Groups sorted numbers from left to right, as the greedy problem GP says (Chen et al. 2024, equations 24 to 28).

    As `relative_groups`, with the least error of H_j in a group with values after it in the place of its bound,
        min over e of (mean(H_j … H_e) - H_j + scale / (e - j + 1)) / H_j*.
    As printed, e is at least j + 1: a group of H_j alone is not among them, but for the last value.

    The e that is least never falls as j grows: O(n) steps in all. Where both sides are equal, rounding decides.

    Args:
        sorted_values: rising, shape (n,), n >= 1.
    """
    values = np.ascontiguousarray(sorted_values, dtype=np.float64)
    return np.cumsum(_relative_starts(values, float(scale), _least_in_new_groups(values, float(scale)))) - 1


def least_relative_groups(sorted_values: Reals, scale: float) -> Numbers:
    """Finds the grouping of sorted numbers with the least relative error, over every number of groups.

    This is the problem OP of Chen et al. 2024, section 5.1: the sum over all groups of err(C), see `relative_groups`,
    whose arguments and result are the same. Exact, O(n²) time, O(n) memory: for every end, the group grows to the left,
    and its mean falls.

    Args:
        sorted_values: rising, shape (n,), n >= 1.
    """
    return group_numbers(_cheapest_last_starts(np.ascontiguousarray(sorted_values, dtype=np.float64), float(scale)))


@compile_function
def _least_in_new_groups(values: Reals, scale: float) -> Reals:
    """The least error of each value as the first of a new group, shape (n,)."""
    n = values.size
    least = np.empty(n)
    end, total = 0, 0.0  # the group holds the values from `place` to before `end`, which lie `total` above the first
    for place in range(n):
        if end <= place:
            end, total = place + 1, 0.0
        while end < n and (end < place + 2 or values[end] - values[place] < (total + scale) / (end - place)):
            total += values[end] - values[place]
            end += 1
        least[place] = (total + scale) / (end - place) / max(values[place], 1.0)
        if place + 1 < n:
            total -= (values[place + 1] - values[place]) * (end - place - 1)
    return least


@compile_function
def _cheapest_last_starts(values: Reals, scale: float) -> Numbers:
    """For every k, where the last group starts in the cheapest grouping of k values; shape (n + 1,)."""
    n = values.size
    last_starts, least = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1)
    for end in range(1, n + 1):
        anchor, total, split, best = values[end - 1], 0.0, end, np.inf
        # Sums over the group of 1 / H* and (H - anchor) / H*, for its values below the mean and for the others.
        weight_below, moment_below, weight_above, moment_above = 0.0, 0.0, 0.0, 0.0
        for start in range(end - 1, -1, -1):
            off, weight = values[start] - anchor, 1.0 / max(values[start], 1.0)
            total += off
            weight_below += weight
            moment_below += off * weight
            size = float(end - start)
            mean = total / size
            while split > start and values[split - 1] - anchor >= mean:
                split -= 1
                moved = 1.0 / max(values[split], 1.0)
                weight_below -= moved
                moment_below -= (values[split] - anchor) * moved
                weight_above += moved
                moment_above += (values[split] - anchor) * moved
            apart = mean * weight_below - moment_below + moment_above - mean * weight_above
            cost = least[start] + max(apart, 0.0) + scale * (weight_below + weight_above) / size
            if cost < best:
                best, last_starts[end] = cost, start
        least[end] = best
    return last_starts


@compile_function
def _relative_starts(values: Reals, scale: float, bounds: Reals) -> Numbers:
    """1 where a group starts, else 0; shape (n,). `bounds` say what each value costs at least in a new group."""
    n = values.size
    first = np.zeros(n, dtype=np.int64)
    anchor, total, size, split, error = values[0], 0.0, 0.0, 0, 0.0
    # Sums over the group of 1 / H* and (H - anchor) / H*, for its values below the mean and for the others.
    weight_below, moment_below, weight_above, moment_above = 0.0, 0.0, 0.0, 0.0
    for place in range(n):
        value = values[place]
        weight = 1.0 / max(value, 1.0)
        off = value - anchor
        total += off
        size += 1.0
        weight_above += weight
        moment_above += off * weight
        mean = total / size
        while split < place and values[split] - anchor < mean:
            moved = 1.0 / max(values[split], 1.0)
            weight_below += moved
            moment_below += (values[split] - anchor) * moved
            weight_above -= moved
            moment_above -= (values[split] - anchor) * moved
            split += 1
        grown = mean * weight_below - moment_below + moment_above - mean * weight_above
        grown += scale * (weight_below + weight_above) / size
        if place == 0 or not grown < error + bounds[place]:
            first[place] = 1
            anchor, total, size, split, error = value, 0.0, 1.0, place, scale * weight
            weight_below, moment_below, weight_above, moment_above = 0.0, 0.0, weight, 0.0
        else:
            error = grown
    return first
