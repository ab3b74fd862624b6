"""Groups sorted numbers from left to right so that the relative error stays small (GGS)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def relative_groups(sorted_values: Reals, scale: float) -> Numbers:
    """Groups sorted numbers from left to right, as GGS does (Chen et al. 2024, equations 25 to 27 and 31).

    With H a value, C a group and H* = max(H, 1), the error of a group is
        err(C) = the sum over H in C of (|H - mean(C)| + scale / |C|) / H*.
    Value number j of n joins the group before it where err(C + H_j) < err(C) + scale / ((n - j + 1) · H_j*), and opens
    the next group elsewhere. (The paper divides both sides by |C| + 1.)

    The mean never falls as a group grows, so the values below it are a growing prefix: O(n) steps in all. Sums are
    taken around the first value of the group, so nothing cancels.

    Args:
        sorted_values: rising, shape (n,), n >= 1.
        scale: of the noise in the sum of a group, in records.

    Returns:
        Group number of each value, shape (n,), starting at 0 and never falling.
    """
    first = _relative_starts(np.ascontiguousarray(sorted_values, dtype=np.float64), float(scale))
    return np.cumsum(first) - 1


@compiled
def _relative_starts(values: Reals, scale: float) -> Numbers:
    """1 where a group starts, else 0; shape (n,)."""
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
        if place == 0 or not grown < error + scale * weight / (n - place):
            first[place] = 1
            anchor, total, size, split, error = value, 0.0, 1.0, place, scale * weight
            weight_below, moment_below, weight_above, moment_above = 0.0, 0.0, weight, 0.0
        else:
            error = grown
    return first
