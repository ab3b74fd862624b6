"""What an answer says of itself where its numbers alone would surprise: the same words in SQL and in Python."""

from __future__ import annotations

import math

NO_INTERVAL = "no interval: the mechanism paid for no noisy cells"
SMOOTHED = "the interval is that of the noisy cells alone; the mechanism smooths them, so its estimate lies outside"
BELOW = "the estimate is below 0 by its noise; the interval is cut off at 0"
NO_WHOLE = "no share: the whole is estimated at 0 or below"
NO_SHARE = "the estimate is no share, by the noise of a small whole or part; the interval is cut off at 0 and 1"
CUT = "ends cut bins of {axes}: the estimate spreads their rows evenly, the interval holds however they lie"
OPEN_BIN = "the bin is open, so nothing is known of where in it the quantile lies"

ROUNDING = 1e-6


def note_of(estimate: float, unbiased: float, reach: float) -> str:
    """Why an estimate lies outside of its interval, or has none; empty where there is nothing to say.

    Args:
        estimate: the mechanism's, records.
        unbiased: the middle of the interval, before it is cut off at 0.
        reach: half the width of the interval; nan where there is none.
    """
    if math.isnan(reach):
        return NO_INTERVAL
    if abs(estimate - unbiased) > reach + ROUNDING:
        return SMOOTHED
    return BELOW if estimate < 0 else ""
