"""Discrete Laplace noise: P(k) proportional to exp(-|k| / scale). Its variance, quantiles, and tails of its sums.

With q = exp(-1/scale), φ(t) = (1-q)² / (1 - 2q·cos t + q²). For Chernoff's inequality, log M(√v·t) is convex in v and 0
at 0, because log M(t) = -log(1 - 2σ²·sinh²(t/2)) is a series of t² without negative terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.languages.texts import mark_text
from dphist_pipeline.estimates.certified import Law
from dphist_pipeline.estimates.laws._interface import LEVEL, NoiseLaw, Reals, Tail

# Values of t as fractions of 1/scale, where M becomes infinite. Dense near 0 for many draws, and near 1 for one draw.
TRIALS = np.concatenate([0.9 ** np.arange(1, 151), 1 - 0.8 ** np.arange(1, 41)])


class DiscreteLaplace(NoiseLaw):
    """Two-sided geometric noise."""

    @property
    def variance(self) -> float:
        """Variance of one draw, 1 / (2·sinh²(1 / (2·scale))), in records squared."""
        return float(1 / (2 * math.sinh(1 / (2 * self.scale)) ** 2))

    @property
    def q(self) -> float:
        """exp(-1/scale), the ratio of the probabilities of neighbouring numbers."""
        return math.exp(-1 / self.scale)

    def half_width(self, level: Fraction) -> float:
        """The smallest c with P(|noise| <= c) >= level, decided by certified enclosures."""
        law, outside = Law("laplace_magnitude", 1 / self.scale), 1 - level
        c = max(0, int(self.scale * math.log(1 / outside)) - 1)
        while c > 0 and law.at_most(c, outside):
            c -= 1
        while not law.at_most(c + 1, outside):
            c += 1
        return c

    def characteristic(self, turn: Reals) -> Reals:
        """φ, written so that small angles keep digits."""
        q = self.q
        phi: Reals = (1 - q) ** 2 / ((1 - q) ** 2 + 4 * q * np.sin(turn / 2) ** 2)
        return phi

    def cut_off(self, draws: int) -> float:
        """The angle above which φ^draws is below 10^-17; π if there is none."""
        q, least = self.q, 10 ** (-17 / draws)
        square = (1 - q) ** 2 * (1 / least - 1) / (4 * q) if q > 0 else math.inf
        return 2 * math.asin(math.sqrt(square)) if square < 1 else math.pi

    @property
    def extent(self) -> float:
        """A draw lies farther with a probability of about exp(-400)."""
        return 400 * float(self.scale)

    @property
    def moments(self) -> tuple[Reals, Reals]:
        """The tried values, and log M there."""
        rates: Reals = TRIALS * float(1 / self.scale)
        return rates, -np.log(1 - 2 * self.variance * np.sinh(rates / 2) ** 2)

    def tail_of_sum(self, weights: Sequence[tuple[float, int]]) -> Tail | None:
        """A bound on a weighted sum of draws, nearly exact where one draw has the largest weight.

        Let w be that weight, D its draw, q = exp(-1/scale), and R the sum of the others. For every x, whole or not,
        P(D > x) <= exp(-x/scale) / (1 + q): equality at whole x >= 0, and the right side is above 1 - P(D >= -x) below
        0. R is independent, so P(w·D + R > c) = E[P(D > (c - R)/w)] <= exp(-rate·c) · E[exp(rate·R)] / (1 + q) with
        rate = 1/(scale·w), and the expected value is the product of the moment generating functions. The factor is
        twice that, for both sides.

        Returns:
            None if several draws have the largest weight, since the expected value is infinite then.
        """
        (most, number), *others = sorted(weights, reverse=True)
        if number != 1 or (others and others[0][0] > (1 - 1e-9) * most):
            return None
        q, rate = self.q, 1 / (float(self.scale) * most)
        log = math.fsum(count * _log_moment(q, rate * weight) for weight, count in others)
        return Tail(rate, 2 / (1 + q) * math.exp(log) * (1 + 1e-9))

    def bound_of_sum(self, weights: Sequence[tuple[float, int]], aim: float = 1e-6) -> Tail:
        """A bound on a weighted sum of draws, also where several draws have the largest weight."""
        return Scales.bound_of_draws([(self.scale, weight, number) for weight, number in weights], aim)


@dataclass(frozen=True)
class LaplaceInParts(DiscreteLaplace):
    """Discrete Laplace noise that was drawn in parts of a record, as where amounts split rows.

    Its widths are those in parts, divided by `parts`; in deviations they are the same.
    """

    parts: int

    @property
    def in_parts(self) -> NoiseLaw:
        """The law of the same noise, counted in parts."""
        return noise_law(self.scale * self.parts)

    @property
    def scale_text(self) -> str:
        """The scale as published files have it: a fraction that `parts` would reduce, so that it names them, too."""
        return f"{self.scale.numerator * self.parts}/{self.scale.denominator * self.parts}"

    @property
    def variance(self) -> float:
        """Variance of one draw, in records squared."""
        return self.in_parts.variance / self.parts**2

    def half_width(self, level: Fraction) -> float:
        """The smallest whole number c of parts with P(|noise| <= c) >= level, in records."""
        return self.in_parts.half_width(level) / self.parts

    def exact_half_width(self, draws: int, level: Fraction = LEVEL) -> float:
        """As `half_width`, of a sum of draws."""
        return self.in_parts.exact_half_width(draws, level) / self.parts

    def linear_reach(self, draws: int, level: Fraction = LEVEL) -> float:
        """As in parts: it is in deviations."""
        return self.in_parts.linear_reach(draws, level)

    @property
    def moments(self) -> tuple[Reals, Reals]:
        """The tried values, per record, and log M there."""
        rates, logs = self.in_parts.moments
        return rates * self.parts, logs

    def tail_of_sum(self, weights: Sequence[tuple[float, int]]) -> Tail | None:
        """As in parts."""
        tail = self.in_parts.tail_of_sum(weights)
        return None if tail is None else Tail(tail.rate * self.parts, tail.factor)

    def bound_of_sum(self, weights: Sequence[tuple[float, int]], aim: float = 1e-6) -> Tail:
        """As in parts."""
        bound = self.in_parts.bound_of_sum(weights, aim)
        return Tail(bound.rate * self.parts, bound.factor)


@lru_cache(maxsize=4096, typed=True)  # by a whole number's or fraction's law, never by that of an equal float
def noise_law(scale: Fraction, parts: int = 1) -> NoiseLaw:
    """The law of the noise that a scale, in records, names in measurements' answers and in published files.

    Args:
        parts: of a record, in which noise was drawn.
    """
    return DiscreteLaplace(scale) if parts == 1 else LaplaceInParts(scale, parts)


def named_law(scale: str) -> NoiseLaw:
    """The law that the text of a scale names in published files; see `LaplaceInParts.scale_text`."""
    return noise_law(Fraction(scale), parts_named(scale))


def parts_named(scale: str) -> int:
    """The parts of a record that the text of a scale names; 1 where noise was drawn in records."""
    numerator, _, denominator = scale.partition("/")
    return math.gcd(int(numerator), int(denominator)) if denominator else 1


# Shares are calibrated for draws that vary as much as those of scale 1; those of less are mostly 0.
LEAST_VARIANCE_OF_SHARES = noise_law(Fraction(1)).variance
NOISE = mark_text(
    "discrete Laplace, P(k) proportional to exp(-|k| / noise_scale); for choices the one-sided half of it"
)


@dataclass(frozen=True, eq=False)
class Scales:
    """Scales of noise in floating point, shape (scales,) each.

    Attributes:
        scale: in records.
        q: exp(-1 / scale).
        variance: of a draw.
    """

    scale: Reals
    q: Reals
    variance: Reals

    @classmethod
    def of(cls, scales: Sequence[Fraction]) -> Scales:
        """The law of some scales, in the same order."""
        laws = [DiscreteLaplace(scale) for scale in scales]
        scale, q = [float(law.scale) for law in laws], [law.q for law in laws]
        return cls(np.array(scale), np.array(q), np.array([law.variance for law in laws]))

    @staticmethod
    def bound_of_draws(draws: Sequence[tuple[Fraction, float, int]], aim: float = 1e-6) -> Tail:
        """A bound on a weighted sum of draws, each with its own scale.

        Chernoff's: P(|S| > c) <= 2 · exp(-rate·c) · E[exp(rate·S)] for every rate below each 1/(scale · weight). Of 99
        such rates, the one is taken that gives the smallest c at the probability `aim`.

        Args:
            draws: scale, absolute weight, and number of draws that have both.
        """
        scales, weights, counts = zip(*draws, strict=True)
        places = np.arange(len(scales))
        return Scales.of(scales).bound_of_weights(places, np.array(weights), np.array(counts, dtype=np.float64), aim)

    def bound_of_weights(self, places: NDArray[np.int64], weights: Reals, counts: Reals, aim: float = 1e-6) -> Tail:
        """As `bound_of_draws`, for many draws.

        Args:
            places: which scale draws have, shape (kinds of draws,).
            weights: absolute weight, likewise.
            counts: number of draws that have both, likewise.
        """
        q, most = self.q[places], float((self.scale[places] * weights).max())
        return _chernoff(most, lambda rate: float(counts @ _log_moment(q, rate * weights)), aim)

    def bound_of_variance(self, total: float, weights: Reals, aim: float = 1e-6) -> Tail:
        """A bound on a weighted sum of draws of which only the variance is known, and the largest weight at each scale.

        The logarithm f of the moment generating function of a draw of variance v is convex in the square of its
        argument and 0 at 0. So a draw of weight w <= W has f(w·t) <= w²·f(W·t)/W², and the sum over all draws is at
        most the variance of the sum times the largest f(W·t) / (v·W²).

        Args:
            total: variance of the sum, in records squared.
            weights: the largest absolute weight of a draw of each scale, above 0.
        """
        squares, most = self.variance * weights**2, float((self.scale * weights).max())
        return _chernoff(most, lambda rate: total * float((_log_moment(self.q, rate * weights) / squares).max()), aim)


def _chernoff(most: float, log_moment: Callable[[float], float], aim: float) -> Tail:
    """The bound by that of 99 rates below 1/most which gives the smallest c at the probability `aim`.

    That c is (log moment + a constant) / rate, and log moments are convex: it falls, then rises.
    """

    @lru_cache
    def tried(step: int) -> tuple[float, Tail]:
        rate = step / 100 / most
        log = log_moment(rate)
        return (log + math.log(2 / aim)) / rate, Tail(rate, 2 * math.exp(log) * (1 + 1e-9))

    low, high = 1, 99
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if tried(middle)[0] <= tried(middle + 1)[0] else (middle + 1, high)
    return tried(low)[1]


def _log_moment(q: Any, t: Any) -> Any:
    """log E[exp(t · draw)] = log((1-q)² / ((1 - q·e^t) · (1 - q·e^-t))), written so that small values keep digits."""
    return -np.log1p(-4 * q * np.sinh(t / 2) ** 2 / (1 - q) ** 2)
