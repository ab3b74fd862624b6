"""Half widths of simultaneous intervals for linear estimates, by Chernoff's inequality.

P(|S| > c) <= 2·E[exp(t·S)]·exp(-t·c) for every t > 0. Let S be a sum of draws with weights of at most 1 and with
variance V. Then log E[exp(t·S)] <= V/σ² · log M(t), where σ² and M belong to one draw: log M(√v·t) is convex in v and 0
at 0, because log M(t) = -log(1 - 2σ²·sinh²(t/2)) is a series of t² without negative terms. So every t gives
    c = (log(2/missed) + V/σ²·log M(t)) / t,
and the smallest c over a fixed list of t is used, here and in the macros. The result is 11 to 39 % larger than a normal
law would give, and up to twice the exact quantile for a single draw; it needs no table.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates import noise_law

# Values of t as fractions of 1/scale, where M becomes infinite. Dense near 0 for many draws, and near 1 for one draw.
TRIALS = np.concatenate([0.9 ** np.arange(1, 151), 1 - 0.8 ** np.arange(1, 41)])


def chernoff_reach(scale: Fraction, variance: NDArray[np.float64], missed: float) -> NDArray[np.float64]:
    """Half widths by Chernoff's inequality for sums of weighted draws, in records, shape (sums,).

    Args:
        scale: of the discrete Laplace noise in each draw; no draw may have a weight above 1.
        variance: of the sums, in records squared, shape (sums,).
        missed: probability that a sum lies farther away, for each sum; above 0, at most 1.
    """
    decay, one = float(1 / scale), noise_law.variance(scale)
    log_m = -np.log(1 - 2 * one * np.sinh(TRIALS * decay / 2) ** 2)
    reach = np.full(variance.shape, math.inf)
    for rate, grows in zip(TRIALS * decay, log_m, strict=True):
        np.minimum(reach, (math.log(2 / missed) + variance / one * grows) / rate, out=reach)
    return np.where(variance > 0, reach, 0.0)
