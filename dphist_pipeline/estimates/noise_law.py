"""The variance, the exact quantiles and the tails of discrete Laplace noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dphist_pipeline.estimates.certified import Law


def variance(scale: Fraction) -> float:
    """Variance of one draw, 1 / (2·sinh²(1 / (2·scale))), in records squared.

    Args:
        scale: of the noise, in records.
    """
    return float(1 / (2 * math.sinh(1 / (2 * scale)) ** 2))


def half_width(scale: Fraction, level: Fraction) -> int:
    """The smallest c with P(|noise| <= c) >= level, exactly, in records.

    Args:
        scale: of the noise, in records.
        level: between 0 and 1.
    """
    law, outside = Law("laplace_magnitude", 1 / scale), 1 - level
    c = max(0, int(scale * math.log(1 / outside)) - 1)
    while c > 0 and law.at_most(c, outside):
        c -= 1
    while not law.at_most(c + 1, outside):
        c += 1
    return c


@dataclass(frozen=True)
class Tail:
    """A bound on noise for every c >= 0: P(|noise| > c) <= factor · exp(-rate · c).

    Attributes:
        rate: per record.
        factor: at least 1.
    """

    rate: float
    factor: float


def tail_of_sum(scale: Fraction, weights: Sequence[tuple[float, int]]) -> Tail | None:
    """A bound on a weighted sum of draws, nearly exact where one draw has the largest weight.

    Let w be that weight, D its draw, q = exp(-1/scale), and R the sum of the others. For every x, whole or not,
    P(D > x) <= exp(-x/scale) / (1 + q): equality at whole x >= 0, and the right side is above 1 - P(D >= -x) below 0.
    R is independent, so P(w·D + R > c) = E[P(D > (c - R)/w)] <= exp(-rate·c) · E[exp(rate·R)] / (1 + q) with
    rate = 1/(scale·w), and the expected value is the product of the moment generating functions. The factor is twice
    that, for both sides.

    Args:
        scale: of each draw.
        weights: absolute weight and number of draws that have it.

    Returns:
        None if several draws have the largest weight, since the expected value is infinite then.
    """
    (most, number), *others = sorted(weights, reverse=True)
    if number != 1 or (others and others[0][0] > (1 - 1e-9) * most):
        return None
    q, rate = math.exp(-1 / scale), 1 / (float(scale) * most)
    log = math.fsum(count * _log_moment(q, rate * weight) for weight, count in others)
    return Tail(rate, 2 / (1 + q) * math.exp(log) * (1 + 1e-9))


def bound_of_sum(scale: Fraction, weights: Sequence[tuple[float, int]], aim: float = 1e-6) -> Tail:
    """A bound on a weighted sum of draws of one scale, also where several draws have the largest weight.

    Args:
        scale: of each draw.
        weights: absolute weight and number of draws that have it.
        aim: see `bound_of_draws`.
    """
    return bound_of_draws([(scale, weight, number) for weight, number in weights], aim)


def bound_of_draws(draws: Sequence[tuple[Fraction, float, int]], aim: float = 1e-6) -> Tail:
    """A bound on a weighted sum of draws, each with its own scale.

    Chernoff's: P(|S| > c) <= 2 · exp(-rate·c) · E[exp(rate·S)] for every rate below each 1/(scale · weight). Of 99
    such rates, the one is taken that gives the smallest c at the probability `aim`.

    Args:
        draws: scale, absolute weight, and number of draws that have both.
        aim: the probability for which the rate is chosen.
    """
    most = max(float(scale) * weight for scale, weight, _ in draws)
    return _chernoff(
        most,
        lambda rate: math.fsum(count * _log_moment(_q(scale), rate * weight) for scale, weight, count in draws),
        aim,
    )


def bound_of_variance(total: float, draws: Sequence[tuple[Fraction, float]], aim: float = 1e-6) -> Tail:
    """A bound on a weighted sum of draws of which only the variance is known, and the largest weight at each scale.

    The logarithm f of the moment generating function of a draw of variance v is convex in the square of its argument
    and 0 at 0. So a draw of weight w <= W has f(w·t) <= w²·f(W·t)/W², and the sum over all draws is at most the
    variance of the sum times the largest f(W·t) / (v·W²).

    Args:
        total: variance of the sum, in records squared.
        draws: scale, and the largest absolute weight at this scale, above 0.
        aim: see `bound_of_draws`.
    """
    most = max(float(scale) * weight for scale, weight in draws)
    known = [(_q(scale), weight, variance(scale) * weight**2) for scale, weight in draws]
    return _chernoff(most, lambda rate: total * max(_log_moment(q, rate * w) / square for q, w, square in known), aim)


def _q(scale: Fraction) -> float:
    return math.exp(-1 / scale)


def _chernoff(most: float, log_moment: Callable[[float], float], aim: float) -> Tail:
    """Of 99 rates below 1/most, the one that gives the smallest c at the probability `aim`."""
    tails = []
    for step in range(1, 100):
        rate = step / 100 / most
        log = log_moment(rate)
        tails.append(((log + math.log(2 / aim)) / rate, Tail(rate, 2 * math.exp(log) * (1 + 1e-9))))
    return min(tails, key=lambda found: found[0])[1]


def _log_moment(q: float, t: float) -> float:
    """log E[exp(t · draw)] = log((1-q)² / ((1 - q·e^t) · (1 - q·e^-t))), written so that small values keep digits."""
    return -math.log1p(-4 * q * math.sinh(t / 2) ** 2 / (1 - q) ** 2)
