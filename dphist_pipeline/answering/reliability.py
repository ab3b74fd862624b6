"""How far a reader may trust an estimate: one word for each, and what the words mean."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

MOST_GOOD, MOST_CAUTION = 1 / 6, 1 / 3
LEGEND = {
    "good": "the standard error is at most a sixth of the estimate",
    "caution": "the standard error is between a sixth and a third of the estimate: use with caution",
    "weak": "the standard error is more than a third of the estimate",
    "reaches 0": "the 95 % interval reaches 0: the true number may be 0",
    "noise": "the standard error is larger than the estimate: the number says nothing by itself",
    "": "nothing is known of the error of this estimate",
}


def reliability(unbiased: NDArray[np.float64], error: NDArray[np.float64], lower: NDArray[np.float64]) -> pa.Array:
    """A word of `LEGEND` for every estimate.

    Args:
        unbiased: the numbers that the intervals belong to; nan where there is no interval.
        error: their standard errors.
        lower: lower ends of their 95 % intervals.
    """
    words = np.array(list(LEGEND))
    share = error / np.maximum(np.abs(unbiased), 1e-300)
    conditions = [np.isnan(lower), share > 1, lower <= 0, share > MOST_CAUTION, share > MOST_GOOD]
    return pa.array(words[np.select(conditions, [5, 4, 3, 2, 1], 0)])
