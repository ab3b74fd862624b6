"""What is asked of a law of noise: of one draw, which each law says for itself, and of sums of draws, which follows.

The sum S of r independent draws has the characteristic function φ(t)^r, where φ is that of a draw. So
    P(|S| <= c) = 1/(2π) ∫ φ(t)^r · sin((c + 1/2)·t) / sin(t/2) dt    over one turn.
The trapezoid rule with step h has an error of at most P(|S| > 2π/h - c). The integral is cut off where φ^r is below
10^-17, which costs less than SLACK. Both errors are too small to change a quantile.

A linear estimate is a sum of draws with weights of at most 1. Its variance V is known, but its distribution is not
simple. Among such sums, the one with the fewest draws has the heaviest tails; if V is r times the variance of a draw,
there are at least r draws. So the half width of the sum is taken as half_width(r) + 1 (one record for rounding to whole
numbers), times the root of V over the variance of r draws. If Chebyshev's inequality gives less, it is used instead.
This is calibrated, not proven: in an exact computation of thousands of weighted sums of discrete Laplace draws, with
scales from 0.1 to 100, all intervals held with a probability of at least 0.95 (or 0.975).

Simultaneous intervals are those of Chernoff's inequality: P(|S| > c) <= 2·E[exp(t·S)]·exp(-t·c) for every t > 0. Then
log E[exp(t·S)] <= V/σ² · log M(t), where σ² and M belong to one draw, if log M(√v·t) is convex in v and 0 at 0. So
every t gives
    c = (log(2/missed) + V/σ²·log M(t)) / t,
and the smallest c over a fixed list of t is used, here and in the macros. It needs no table. For discrete Laplace noise
it is 11 to 39 % larger than a normal law would give, and up to twice the exact quantile for a single draw.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

LEVEL = Fraction(95, 100)
LEVEL_OF_TWO = Fraction(975, 1000)  # two intervals of this level hold together with LEVEL, however they depend
# Half the width of a 95 % interval, in standard deviations: 2.12 for one Laplace variable, less for sums of several;
# the rest is for the ratios of noisy numbers.
SURE = 2.2
SLACK = 1e-9
GRID_RATIO = 1.05


def chebyshev(level: Fraction) -> float:
    """Half the width of the interval of any law by Chebyshev's inequality, in standard deviations."""
    return math.sqrt(1 / (1 - level))


@dataclass(frozen=True)
class Tail:
    """A bound on noise for every c >= 0: P(|noise| > c) <= factor · exp(-rate · c).

    Attributes:
        rate: per record.
        factor: of a sum of draws at least 1.
    """

    rate: float
    factor: float


@dataclass(frozen=True)
class NoiseLaw(ABC):
    """The law of a draw of noise: whole numbers, symmetric and unimodal.

    A weighted sum is told by each absolute weight, and by how many draws have it. A sum has at least one draw. Levels
    lie between 0 and 1; those of sums go up to 0.999999.

    Attributes:
        scale: of the noise, in records; published files name the law by it.
    """

    scale: Fraction

    @property
    def scale_text(self) -> str:
        """The scale as published files have it."""
        return str(self.scale)

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of one draw, in records squared."""

    @abstractmethod
    def half_width(self, level: Fraction) -> float:
        """The smallest c with P(|noise| <= c) >= level, exactly, in records."""

    @abstractmethod
    def characteristic(self, turn: Reals) -> Reals:
        """φ, the characteristic function of a draw, at angles between 0 and π."""

    @abstractmethod
    def cut_off(self, draws: int) -> float:
        """The angle above which φ^draws is below 10^-17; π if there is none."""

    @property
    @abstractmethod
    def extent(self) -> float:
        """How far a draw reaches, in records: a sum of draws lies hardly ever farther than 80 deviations beyond it."""

    @property
    @abstractmethod
    def moments(self) -> tuple[Reals, Reals]:
        """The values of t that Chernoff's inequality tries, and log M(t) of a draw, shape (values,) each."""

    @abstractmethod
    def tail_of_sum(self, weights: Sequence[tuple[float, int]]) -> Tail | None:
        """A bound on a weighted sum of draws, nearly exact where one draw has the largest weight; else None."""

    @abstractmethod
    def bound_of_sum(self, weights: Sequence[tuple[float, int]], aim: float = 1e-6) -> Tail:
        """A bound on a weighted sum of draws, even if several have the largest weight, chosen for a probability."""

    def half_width_of_sum(self, draws: int, level: Fraction = LEVEL) -> float:
        """Half the width of the interval for a sum of independent draws, in records, as in the catalogue's table.

        It is the exact half width for the next number of draws in the table. A sum of more draws has a wider
        distribution (draws are symmetric and unimodal), so it is never too narrow; it is at most about 2.5 % too wide.
        """
        return self.exact_half_width(_grid(draws)[-1], level)

    def exact_half_width(self, draws: int, level: Fraction = LEVEL) -> float:
        """The smallest c with P(|S| <= c) >= level, in records, where S is a sum of independent draws.

        The result is at most 1 too large; above 10^7 records it may be a few parts in 10^8 too large.
        """
        return _exact_half_width(self, draws, level)

    def half_width_grid(self, draws: int, level: Fraction = LEVEL) -> list[tuple[int, float]]:
        """The catalogue's table of `half_width_of_sum`: (most draws of a sum, half width in records), rising."""
        return [(number, self.exact_half_width(number, level)) for number in _grid(draws)]

    def half_width_of_linear(self, variance: float, level: Fraction = LEVEL) -> float:
        """Half width of the interval for a linear estimate, in records, by its variance; no draw weighs above 1."""
        # SQL adds in another order, so a rounding error must not decide which entry of the table is used.
        draws = max(1.0, variance / self.variance * (1 + 1e-9))
        last = max(number for number in _grid(math.ceil(draws)) if number <= draws)
        return math.sqrt(variance) * self.linear_reach(last, level)

    def linear_reach(self, draws: int, level: Fraction = LEVEL) -> float:
        """Half the width of the interval for a linear estimate, in standard deviations of the estimate.

        The estimate has at least the variance of as many independent draws.
        """
        calibrated = (self.exact_half_width(draws, level) + 1) / math.sqrt(draws * self.variance)
        return min(calibrated, chebyshev(level))

    def linear_reach_grid(self, draws: int, level: Fraction = LEVEL) -> list[tuple[int, float]]:
        """The catalogue's table of `linear_reach`: (fewest draws, half width in standard deviations), rising."""
        return [(number, self.linear_reach(number, level)) for number in _grid(draws)]

    def chernoff_reach(self, variance: Reals, missed: float) -> Reals:
        """Half widths by Chernoff's inequality for sums of draws with weights of at most 1, in records, shape (sums,).

        Args:
            variance: of the sums, in records squared, shape (sums,).
            missed: probability that a sum lies farther away, for each sum; above 0, at most 1.
        """
        reach, draws, least = np.full(variance.shape, math.inf), variance / self.variance, math.log(2 / missed)
        for rate, grows in zip(*self.moments, strict=True):
            np.minimum(reach, (least + draws * grows) / rate, out=reach)
        return np.where(variance > 0, reach, 0.0)


@lru_cache(maxsize=65536)
def _exact_half_width(law: NoiseLaw, draws: int, level: Fraction) -> float:
    if draws == 1:
        return law.half_width(level)
    sigma = math.sqrt(draws * law.variance)
    wanted = float(level) + SLACK
    low, high = -1, max(1, math.ceil(sigma))
    inside = _ProbabilityWithin(law, draws)
    while inside(high) < wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if inside(middle) >= wanted else (middle, high)
    return high


@lru_cache
def _grid(most: int) -> Sequence[int]:
    """Numbers of draws from 1 to the first that is at least `most`, in steps of 5 % or 1."""
    numbers = [1]
    while numbers[-1] < most:
        numbers.append(max(numbers[-1] + 1, math.floor(numbers[-1] * GRID_RATIO)))
    return numbers


class _ProbabilityWithin:
    """The function c -> P(|S| <= c)."""

    def __init__(self, law: NoiseLaw, draws: int) -> None:
        sigma, reach = math.sqrt(draws * law.variance), law.cut_off(draws)
        # The period of the trapezoid rule must be longer than the noise and the interval together.
        points = math.ceil(reach / (2 * math.pi) * (80 * sigma + law.extent + 200)) + 64
        self._t = (np.arange(points, dtype=np.float64) + 0.5) * (reach / points)
        self._weights = law.characteristic(self._t) ** draws / np.sin(self._t / 2) * (reach / points / math.pi)

    def __call__(self, c: int) -> float:
        return float(self._weights @ np.sin((c + 0.5) * self._t))
