"""Bands that hold many counts at once: exact for independent cells, by Chernoff's inequality for linear estimates, by
Bernstein's for estimates from reports.

Chernoff: P(|S| > c) <= 2·E[exp(t·S)]·exp(-t·c) for every t > 0. For S a sum of draws with weights of at most 1 and the
variance V, log E[exp(t·S)] <= V/σ² · log M(t) with σ² and M of one draw, because log M(√v·t) is convex in v and 0 at 0
(log M(t) = -log(1 - 2σ²·sinh²(t/2)) is a series of t² without negative terms). So every t gives
    c = (log(2/missed) + V/σ²·log M(t)) / t,
and the least of some is taken: the same in SQL. It is 11 to 39 % above what a normal law asks for, for single draws up
to twice the exact quantile, and needs no table.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.report_intervals import bernstein_factor, half_widths_of_cells
from dphist_pipeline.estimates import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, ReportedCells, Unbiased

# Shares of 1/scale, beyond which M is infinite; close together near 0 for many draws, near 1 for one.
TRIALS = np.concatenate([0.9 ** np.arange(1, 151), 1 - 0.8 ** np.arange(1, 41)])


def chernoff_reach(scale: Fraction, variance: NDArray[np.float64], missed: float) -> NDArray[np.float64]:
    """How far sums of weighted draws reach, none with a weight above 1, but for a probability of at most `missed` each.

    Args:
        scale: of the discrete Laplace noise in each draw.
        variance: of the sums, in records squared, shape (sums,).
        missed: above 0, at most 1.
    """
    decay, one = float(1 / scale), noise_law.variance(scale)
    log_m = -np.log(1 - 2 * one * np.sinh(TRIALS * decay / 2) ** 2)
    reach = np.full(variance.shape, math.inf)
    for rate, grows in zip(TRIALS * decay, log_m, strict=True):
        np.minimum(reach, (math.log(2 / missed) + variance / one * grows) / rate, out=reach)
    return np.where(variance > 0, reach, 0.0)


def band_half_widths(unbiased: Unbiased, cells: int, level: float) -> NDArray[np.float64]:
    """Half the width, in each cell, of a band that holds so many cells at once with the probability `level`.

    Independent cells: each holds with level^(1/cells). Others: each misses with (1 - level) / cells at most.

    Returns:
        Shape of the cells of reports; of others, whose cells are alike, one number without a side.
    """
    if isinstance(unbiased, ReportedCells):
        return half_widths_of_cells(unbiased, bernstein_factor((1 - level) / cells))
    if isinstance(unbiased, NestedCells):
        return chernoff_reach(unbiased.scale, np.asarray(unbiased.variance), (1 - level) / cells)
    missed, decay = _missed(level, cells), float(1 / unbiased.scale)
    # P(|draw| > c) = 2·q^(c+1) / (1+q), q = exp(-decay); rounded towards the wider band.
    return np.asarray(max(0.0, math.ceil(math.log(2 / (missed * (1 + math.exp(-decay)))) / decay - 1 + 1e-9)))


def _missed(level: float, cells: int) -> float:
    """1 - level^(1/cells), with all its digits where it is small."""
    return -math.expm1(math.log(level) / cells)
