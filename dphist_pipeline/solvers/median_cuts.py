"""How far every cut of a line is from parting its count in half."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


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
