"""How far a reader may trust a count: one word, and what the words mean. The macros use the same words and limits."""

from __future__ import annotations

import math

MOST_GOOD, MOST_FAIR = 0.1, 0.25
LEGEND = {
    "good": "the standard deviation of the noise is at most 10 % of the count",
    "fair": "the standard deviation of the noise is between 10 and 25 % of the count",
    "poor": "the standard deviation of the noise is more than 25 % of the count, or the interval reaches 0",
    "": "nothing is known of the error of this estimate",
}


def reliability(unbiased: float, error: float, lower: float) -> str:
    """A word of `LEGEND` for a count.

    Args:
        unbiased: the number that the interval belongs to.
        error: standard deviation of its noise.
        lower: lower end of its 95 % interval; nan if there is none.
    """
    if math.isnan(lower):
        return ""
    if lower <= 0 or error > MOST_FAIR * unbiased:
        return "poor"
    return "fair" if error > MOST_GOOD * unbiased else "good"
