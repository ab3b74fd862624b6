"""Distributions on the integers with certified thresholds: exact floors of 2^bits · P(M >= k), by interval arithmetic.

The sampler needs three distributions. With q = exp(-rate) and a rational rate, each has the survival function

    S(k) = P(M >= k) = (alpha · q^k - beta) / gamma        for k = 1, 2, …;  S(0) = 1

    magnitude of discrete Laplace   alpha = 2   beta = 0     gamma = 1 + q
    geometric                       alpha = 1   beta = 0     gamma = 1
    geometric below n               alpha = 1   beta = q^n   gamma = 1 - q^n    (k < n; S(n) = 0)

Every number is a pair of integers (low, high) with low <= value · 2^precision <= high. Each operation rounds low down
and high up, so the pair always encloses the value. A threshold is returned only when both ends have the same floor;
otherwise the precision is doubled. The doubling ends: q is transcendental (Lindemann: the rate is rational and not 0),
so S(k) is never a dyadic rational, and some precision separates it from every integer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Literal

Interval = tuple[int, int]

FIRST_PRECISION = 192


def _ceil_divide(value: int, by: int) -> int:
    return -(-value // by)


@lru_cache(maxsize=4096)
def exp_interval(exponent: Fraction, precision: int) -> Interval:
    """Encloses exp(-exponent) · 2^precision between two integers, for an exponent of at least 0.

    Halves the exponent until it is at most 1/2, sums the alternating series until the next term is below one unit, and
    squares the result as often as it halved.
    """
    halvings = max(0, int(exponent).bit_length() + 1)
    working = precision + halvings + 16
    low, high = _series(exponent / (1 << halvings), working)
    for _ in range(halvings):
        low = (low * low) >> working
        high = _ceil_divide(high * high, 1 << working)
    surplus = working - precision
    return low >> surplus, _ceil_divide(high, 1 << surplus)


def _series(exponent: Fraction, precision: int) -> Interval:
    """Encloses exp(-exponent) · 2^precision for 0 <= exponent <= 1/2.

    The terms decrease, so the remainder lies between plus and minus the first omitted term.
    """
    low = high = term_low = term_high = 1 << precision
    for order in count(1):
        divisor = exponent.denominator * order
        term_low = term_low * exponent.numerator // divisor
        term_high = _ceil_divide(term_high * exponent.numerator, divisor)
        if order % 2:
            low, high = low - term_high, high - term_low
        else:
            low, high = low + term_low, high + term_high
        if term_high <= 1:
            break
    return max(0, low - term_high), high + term_high


@dataclass(frozen=True)
class Law:
    """A distribution on 0, 1, 2, … whose survival function can be computed to any precision.

    Attributes:
        kind: one of the three distributions of this module.
        rate: q = exp(-rate); above 0.
        below: for `truncated` only: the values are 0 … below - 1.
    """

    kind: Literal["laplace_magnitude", "geometric", "truncated"]
    rate: Fraction
    below: int = 0

    def threshold(self, k: int, bits: int) -> int:
        """The exact floor of 2^bits · P(M >= k), for k from 1."""
        if self._beyond(k):
            return 0
        precision = max(FIRST_PRECISION, bits + 64)
        while True:
            power = exp_interval(self.rate * k, precision)
            low, high = self._survival(power, self._coefficients(precision), precision, bits)
            if low == high:
                return low
            precision *= 2

    def thresholds(self, bits: int) -> Iterator[int]:
        """The exact floors of 2^bits · P(M >= k) for k = 1, 2, …, up to and including the first 0.

        Computes powers of q by repeated multiplication of enclosures. Where an enclosure is too wide to fix the floor,
        calls `threshold`.
        """
        precision = FIRST_PRECISION
        step_low, step_high = exp_interval(self.rate, precision)
        coefficients = self._coefficients(precision)
        low = high = 1 << precision
        for k in count(1):
            low = (low * step_low) >> precision
            high = _ceil_divide(high * step_high, 1 << precision)
            floor, ceiling = self._survival((low, high), coefficients, precision, bits)
            exact = floor if floor == ceiling and not self._beyond(k) else self.threshold(k, bits)
            yield exact
            if exact == 0:
                return

    def at_most(self, k: int, probability: Fraction) -> bool:
        """Whether P(M >= k) <= probability, for k from 1, decided without rounding errors."""
        for bits in count(64, 64):
            threshold = self.threshold(k, bits)
            bound = probability * (1 << bits)
            if not threshold < bound < threshold + 1:
                return threshold < bound
        raise AssertionError("unreachable")

    def _beyond(self, k: int) -> bool:
        return self.kind == "truncated" and k >= self.below

    def _coefficients(self, precision: int) -> tuple[int, Interval, Interval]:
        one = 1 << precision
        if self.kind == "laplace_magnitude":
            low, high = exp_interval(self.rate, precision)
            return 2, (0, 0), (one + low, one + high)
        if self.kind == "geometric":
            return 1, (0, 0), (one, one)
        low, high = exp_interval(self.rate * self.below, precision)
        return 1, (low, high), (one - high, one - low)

    @staticmethod
    def _survival(power: Interval, coefficients: tuple[int, Interval, Interval], precision: int, bits: int) -> Interval:
        """Floors of both ends of an enclosure of 2^bits · S(k), from one of q^k."""
        alpha, beta, gamma = coefficients
        low = max(0, alpha * power[0] - beta[1])
        high = alpha * power[1] - beta[0]
        return (low << bits) // gamma[1], (high << bits) // gamma[0]
