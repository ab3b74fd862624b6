"""Notes that explain unexpected answers. SQL and Python use the same texts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

NO_INTERVAL = "no interval: the mechanism paid for no noisy cells"
SMOOTHED = "the interval is that of the noisy cells alone; the mechanism smooths them, so its estimate lies outside"
BELOW = "the estimate is below 0 by its noise; no true count is"
NOTES_OF_COUNTS = ("", NO_INTERVAL, SMOOTHED, BELOW)
NO_WHOLE = "no share: the whole is estimated at 0 or below"
NO_SHARE = "the estimate is no share, by the noise of a small whole or part; the interval is cut off at 0 and 1"
NO_MEAN = "no mean: the rows of the box are estimated at 0 or below"
NO_RATIO = "no ratio: the second count is estimated at 0 or below"
NO_LAW = "no interval: this question has none for estimates from reports"
CUT = "ends cut bins of {axes}: the estimate spreads their rows evenly, the interval holds however they lie"
OPEN_BIN = "the bin is open, so nothing is known of where in it the quantile lies"

ROUNDING = 1e-6


def numbers_of_notes(estimate: ArrayLike, unbiased: ArrayLike, reach: ArrayLike) -> NDArray[np.int64]:
    """The note of each estimated count, as its number in `NOTES_OF_COUNTS`.

    Args:
        estimate: estimates of the mechanism in records, any shape.
        unbiased: middles of the intervals, same shape.
        reach: half the widths of the intervals, same shape; nan if there is none.
    """
    estimate, reach = np.asarray(estimate), np.asarray(reach)
    outside = np.abs(estimate - unbiased) > reach + ROUNDING
    return np.select([np.isnan(reach), outside, estimate < 0], [1, 2, 3], 0)


def note_of(estimate: float, unbiased: float, reach: float) -> str:
    """Why there is no interval, or why an estimate lies outside it; else empty.

    Args:
        estimate: see `numbers_of_notes`, as are the others.
        unbiased: middle of the interval.
        reach: half the width of the interval.
    """
    return NOTES_OF_COUNTS[int(numbers_of_notes(estimate, unbiased, reach))]
