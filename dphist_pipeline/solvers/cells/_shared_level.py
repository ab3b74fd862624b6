"""A level that cells share, from the signs of their distances to the median.

Laplace noise of scale b has the variance 2b². A mean of n noisy cells has 2b²/n, but the level that makes n equal cells
most likely has b²/n. One step from the median gets there: on whole numbers, with a = exp(-1/b), the sign of a noisy
count has the expected value 1 - a^x, i.e. about (1 - a)·x for counts x well below b.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

DOUBT = 3.0  # variances of a level, by which its square is lowered


def sign_unit(scale: float) -> float:
    """The records that a mean sign of 1 stands for."""
    return -1.0 / math.expm1(-1.0 / scale)


def sure_level(noisy: Reals, scale: float) -> float:
    """The common count of cells, at least 0; drawn to 0 as far as noise explains it.

    Args:
        noisy: whole noisy counts, at least one, shape (n,).
    """
    middle, unit = float(np.rint(np.median(noisy))), sign_unit(scale)
    level = max(0.0, middle + unit * float(np.sign(noisy - middle).mean()))
    error = DOUBT * unit**2 / noisy.size
    return level * max(0.0, 1.0 - error / max(level**2, error))
