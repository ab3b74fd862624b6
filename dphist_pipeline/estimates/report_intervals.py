"""Half widths of intervals for counts that are estimated from contributors' randomised reports (local model).

The error of an estimate R of n true values is a sum of independent parts. Each part changes R by at most a step b. The
variance is V + v·n (see `estimates.noisy.ReportLaw`). With a probability that depends on z,
    |R - n| <= z²·b/6 + √((z²·b/6)² + z²·(V + v·n)),
and with a = z²·(|v| + b/3)/2 this implies
    |R - n| <= a + √(a² + z²·(V + v·max(R, 0))).

Bands and quantiles use z² = 2·log(2/missed): this is Bernstein's inequality, which holds for every distribution. Single
intervals use the normal quantile as z. That is calibrated, not proven; the term with b covers sums of a few bits, which
are not normal. In an exact computation for all encodings, from 1 to 10,000 reports and epsilon from 0.1 to 15, every
interval held with a probability of at least its level (0.95, 0.975, 0.999). With b/2 instead of b, the smallest
probability at level 0.95 was 0.925. With Chebyshev's factor for variances below 100 b², level 0.999 was still missed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist_pipeline.estimates.noisy import ReportedCells

Reals = NDArray[np.float64]


@lru_cache
def normal_factor(level: Fraction) -> float:
    """The z of a normal distribution for a two-sided interval.

    Args:
        level: of the interval, between 0 and 1.
    """
    return NormalDist().inv_cdf(float(1 + level) / 2)


def bernstein_factor(missed: float) -> float:
    """The z of Bernstein's inequality for a two-sided interval.

    Args:
        missed: probability that the interval does not hold, between 0 and 1.
    """
    return math.sqrt(2 * math.log(2 / missed))


def report_reach(factor: float, variance: ArrayLike, slope: ArrayLike, step: float) -> Reals:
    """Half widths of intervals, in records, shape of `variance`.

    Args:
        variance: at the estimated counts, in records squared, any shape.
        slope: change of the variance per record in the estimate, same shape.
        step: largest change of an estimate by one report, in records.
    """
    half = factor**2 * (np.abs(slope) + step / 3) / 2
    return np.asarray(half + np.sqrt(half**2 + factor**2 * np.asarray(variance)), dtype=np.float64)


def half_width_of_reports(cells: ReportedCells, chosen: Sequence[NDArray[np.int64]], level: Fraction) -> float:
    """Half the width of the interval for a sum of cells, in records.

    Args:
        chosen: one array, the positions along the only axis, shape (positions,); at least one position.
    """
    atoms, count = cells.sum_of(chosen)
    law = cells.law
    return float(report_reach(normal_factor(level), law.variance(atoms, count), law.slope(atoms), law.step))


def half_widths_of_cells(cells: ReportedCells, factor: float) -> Reals:
    """Half the width of each cell's interval, in records, shape (cells,)."""
    return report_reach(factor, cells.variances, cells.law.slope(cells.atoms), cells.law.step)
