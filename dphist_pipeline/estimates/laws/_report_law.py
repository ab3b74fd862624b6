"""Half widths of intervals for counts that are estimated from contributors' randomised reports (local model).

The error of an estimate R of n true values is a sum of independent parts. Each part changes R by at most a step b. The
variance is V + v·n (see `ReportLaw`). With a probability that depends on z,
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
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist_pipeline.estimates.laws._interface import LEVEL

Reals = NDArray[np.float64]


WeightedCount = tuple[float, NDArray[np.int64], Reals]


@lru_cache
def normal_factor(level: Fraction) -> float:
    """The z of a normal distribution for a two-sided interval of a level between 0 and 1."""
    return NormalDist().inv_cdf(float(1 + level) / 2)


def bernstein_factor(missed: float) -> float:
    """The z of Bernstein's inequality for a two-sided interval that misses with a probability between 0 and 1."""
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


@dataclass(frozen=True)
class ReportLaw:
    """The error law of counts that are estimated from contributors' randomised reports (local model).

    An atom is an interval that a report can name. If a set has n true values and s atoms, the variance of its estimated
    count is alpha·s - beta·s² + (gamma + delta·s)·n. The estimates of two disjoint sets are correlated only by the beta
    and delta terms. Below, atoms and counts (true or estimated ones) are arrays of one shape, a number for each set.

    Attributes:
        alpha: variance per atom, from reports of other values.
        beta: variance per pair of atoms, because a report names one atom at most; 0 if each atom has its own bit.
        gamma: variance per true value, from its own report and from whether it was sent.
        delta: variance per true value and atom; 0 if each atom has its own bit.
        step: largest change of an estimate by one bit or one report, in records.
    """

    alpha: float
    beta: float
    gamma: float
    delta: float
    step: float

    def slope(self, atoms: NDArray[np.int64]) -> Reals:
        """Variance that each true value adds to an estimated count, in records squared."""
        return self.gamma + self.delta * np.asarray(atoms, dtype=np.float64)

    def variance(self, atoms: NDArray[np.int64], count: Reals) -> Reals:
        """Variance of estimated counts, in records squared; negative counts count as 0."""
        return self.weighted_variance([(1.0, atoms, count)])

    def reach(self, atoms: NDArray[np.int64], count: Reals, level: Fraction = LEVEL) -> Reals:
        """Half widths of intervals, each by itself, for estimated counts, in records; negative counts count as 0."""
        return report_reach(normal_factor(level), self.variance(atoms, count), self.slope(atoms), self.step)

    def weighted_variance(self, parts: Sequence[WeightedCount]) -> Reals:
        """Variance of sums of weighted counts of disjoint sets (weight, atoms, count of each), in records squared."""
        pairs = [
            (weight, np.asarray(atoms, dtype=np.float64), np.maximum(count, 0.0)) for weight, atoms, count in parts
        ]
        atoms_squared = sum(weight**2 * atoms for weight, atoms, _ in pairs)
        counts_squared = sum(weight**2 * count for weight, _, count in pairs)
        atoms_once = sum(weight * atoms for weight, atoms, _ in pairs)
        counts_once = sum(weight * count for weight, _, count in pairs)
        variance = self.alpha * atoms_squared - self.beta * atoms_once**2
        return np.maximum(0.0, variance + self.gamma * counts_squared + self.delta * atoms_once * counts_once)
