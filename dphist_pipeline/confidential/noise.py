"""Discrete Laplace noise, drawn exactly: P(k) proportional to exp(-|k| / scale), scale rational.

How. A draw turns a uniform real U in [0, 1), known by its first 63 bits w, into the magnitude
M = number of k >= 1 with U < S(k), where S(k) = P(M >= k). With the exact floor t = floor(2^63 · S(k)):
    w < t  means U < S(k);        (w + 1) / 2^63 <= t / 2^63 <= S(k)
    w > t  means U >= S(k);        w / 2^63 >= (t + 1) / 2^63 > S(k)
    w = t  leaves it open: more bits of U are drawn and compared with the exact floor at that many bits.
So a draw has exactly the stated law, tails included: the table ends at the first threshold that is 0, and a word
of 0 goes the same way as every undecided word. The 64th bit is the sign, which does not matter at M = 0. Most words are
decided by their first 16 bits: where no threshold begins with the same bits, they alone tell how many are below.
Above `LARGEST_TABLE` the draw is a difference of two geometric numbers (that is discrete Laplace), each split as
G = A·n + R: by the memoryless law A = G div n and R = G mod n are independent, A is geometric with q^n
and R is geometric below n. The floors are certified in `estimates/certified.py`.
int64 has to end somewhere. Discrete Laplace noise is cut off at ±2^53, which measurements make a post-processing of
noise without an end (see `measurements`). Geometric numbers, also those whose difference is taken, end at 2^62: at the
largest scale, 10^7, one reaches that with probability exp(-2^62 / 10^7) < 10^(-10^11), and only after 10^14 steps of a
refinement, so no run that ends has seen it. (Ending them at 2^53 would not do: the difference of two numbers that are
both cut off is 0, whatever it was.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.random_words import NoiseSelfTestFailed, check_random_words, random_words
from dphist_pipeline.estimates.certified import Law
from dphist_pipeline.estimates.laws import noise_law

WORD_BITS = 63
GUIDE_SHIFT = np.uint64(WORD_BITS - 16)
BLOCK = 1 << 16
LARGEST_TABLE = Fraction(4096)
LARGEST_NOISE = 1 << 53
LARGEST_GEOMETRIC = 1 << 62


@dataclass(frozen=True, eq=False)
class _ThresholdTable:
    """A law with its 63-bit thresholds, rising; the first is 0."""

    law: Law
    rising: NDArray[np.uint64]
    guide: NDArray[np.int64]  # by a word's first bits: how many thresholds are below, or -1 where one begins with them

    def magnitudes(self, prefixes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """One draw per 63-bit prefix, shape of `prefixes`."""
        not_above = self.guide[prefixes >> GUIDE_SHIFT]
        places = np.flatnonzero(not_above < 0)
        words = prefixes[places]
        not_above[places] = found = np.searchsorted(self.rising, words, side="right")
        drawn: NDArray[np.int64] = self.rising.size - not_above
        for place in places[self.rising[found - 1] == words]:  # the first threshold is 0, so some is not above
            drawn[place] = self.refine(int(prefixes[place]), int(drawn[place]))
        return drawn

    def refine(self, prefix: int, decided: int) -> int:
        """Finishes a draw whose first 63 bits are `prefix`, known to be at least `decided`."""
        bits, drawn = WORD_BITS, decided
        while True:
            prefix = (prefix << 64) | int(random_words(1)[0])
            bits += 64
            while prefix < (threshold := self.law.threshold(drawn + 1, bits)):
                drawn += 1
            if prefix > threshold:
                return min(drawn, LARGEST_GEOMETRIC)


@lru_cache(maxsize=64)
def _table(law: Law) -> _ThresholdTable:
    falling = np.fromiter(law.thresholds(WORD_BITS), dtype=np.uint64)
    rising = falling[::-1].copy()
    firsts = np.arange(1 << 16, dtype=np.uint64) << GUIDE_SHIFT
    below = np.searchsorted(rising, firsts)
    up_to = np.searchsorted(rising, firsts + (firsts[1] - np.uint64(1)), "right")
    rising.flags.writeable = False
    return _ThresholdTable(law, rising, np.where(below == up_to, below, -1))


def discrete_laplace(scale: Fraction, size: int) -> NDArray[np.int64]:
    """Independent exact draws with P(k) proportional to exp(-|k| / scale).

    Args:
        scale: sensitivity over epsilon, at most 10^7.

    Returns:
        int64 noise, shape (size,), each within ±2^53.
    """
    _self_test()
    return _draw(scale, size)


def geometric(scale: Fraction, size: int) -> NDArray[np.int64]:
    """Independent exact draws on 0, 1, 2, … with P(M >= k) = exp(-k / scale); int64, shape (size,), at most 2^62.

    One-sided, for choices and buckets. The mechanism `geometric` draws `discrete_laplace`, which has both signs.

    Args:
        scale: sensitivity over epsilon, in the unit of the scores or costs that it covers; at most 10^7.
    """
    _self_test()
    noise = np.empty(size, dtype=np.int64)
    for start in range(0, size, BLOCK):
        part = noise[start : start + BLOCK]
        part[:] = _geometric(scale, part.size)
    return noise


def _draw(scale: Fraction, size: int) -> NDArray[np.int64]:
    noise = np.empty(size, dtype=np.int64)
    sampler = _signed_value if scale <= LARGEST_TABLE else _difference
    for start in range(0, size, BLOCK):
        part = noise[start : start + BLOCK]
        np.clip(sampler(scale, part.size), -LARGEST_NOISE, LARGEST_NOISE, out=part)
    return noise


def _signed_value(scale: Fraction, size: int) -> NDArray[np.int64]:
    words = random_words(size)
    drawn = _table(Law("laplace_magnitude", 1 / scale)).magnitudes(words >> np.uint64(1))
    drawn[(words & np.uint64(1)).astype(bool)] *= -1
    return drawn


def _difference(scale: Fraction, size: int) -> NDArray[np.int64]:
    return _geometric(scale, size) - _geometric(scale, size)


def _geometric(scale: Fraction, size: int) -> NDArray[np.int64]:
    if scale <= LARGEST_TABLE:
        return _table(Law("geometric", 1 / scale)).magnitudes(random_words(size) >> np.uint64(1))
    # Both tables are about equally long when n² is the length of the undivided one, 63·ln 2 scales.
    n = math.isqrt(int(44 * scale))
    high = _table(Law("geometric", n / scale)).magnitudes(random_words(size) >> np.uint64(1))
    low = _table(Law("truncated", 1 / scale, below=n)).magnitudes(random_words(size) >> np.uint64(1))
    whole: NDArray[np.int64] = np.minimum(high, LARGEST_GEOMETRIC // n - 1) * n + low
    return whole


@lru_cache(maxsize=1)
def _self_test() -> None:
    """Refuses to draw on a machine where the installed sampler is wrong; some milliseconds, once a process.

    Its false alarms have a probability below 10^-12; a scale that is off by 10 % fails.
    """
    check_random_words()
    for scale in (Fraction(2), Fraction(20_000)):
        _check_law(scale, _draw(scale, BLOCK))


def _check_law(scale: Fraction, noise: NDArray[np.int64]) -> None:
    """Compares mean, spread and zeros of many draws with the law, each within eight standard errors."""
    sigma = math.sqrt(noise_law(scale).variance)
    root = math.sqrt(noise.size)
    q = math.exp(-1 / scale)
    zero = (1 - q) / (1 + q)
    spread = float(np.mean(np.abs(noise)))
    expected = 2 * q / (1 - q * q)
    if abs(float(noise.mean())) > 8 * sigma / root:
        raise NoiseSelfTestFailed(f"noise of scale {scale} is not centred")
    if abs(spread - expected) > 8 * sigma / root:
        raise NoiseSelfTestFailed(f"noise of scale {scale} has another spread")
    if abs(float(np.mean(noise == 0)) - zero) > 8 * math.sqrt(zero / noise.size) + 8 / noise.size:
        raise NoiseSelfTestFailed(f"noise of scale {scale} has another share of zeros")
