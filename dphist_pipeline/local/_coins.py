"""Exact coins: P(1) = weight / (weight + e^exponent), which is irrational; and exact uniform whole numbers.

A coin compares a uniform real U, whose binary digits are random bits, with P digit by digit: at the first digit in
which they differ, the coin is 1 if U has the 0. Many coins are tossed at once, one in each bit of a word: a coin is
undecided as long as the digits of U and P agree, which after eight digits is one coin in 256. Undecided coins compare
64 digits more, and so on, so a rounded number never decides a coin. P's digits are certified: interval arithmetic
encloses e^-exponent (`estimates.certified`), and a digit is used only if both ends of the enclosure have it. This ends,
because e^exponent is irrational for a rational exponent that is not 0 (Lindemann).

Random bits are ChaCha20 under a fresh key from the operating system; see `random_words`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.random_words import NoiseSelfTestFailed, check_random_words, random_words
from dphist_pipeline.estimates.certified import FIRST_PRECISION, exp_interval

Bytes = NDArray[np.uint8]

DIGITS = 8  # of P, which are compared for all coins at once
BLOCK = 4096  # words


@dataclass(frozen=True)
class Chance:
    """P = weight / (weight + e^exponent).

    Attributes:
        weight: at least 1.
        exponent: above 0.
    """

    weight: int
    exponent: Fraction

    def floor(self, bits: int) -> int:
        """The exact floor of 2^bits · P: its first binary digits."""
        return _floor(self, bits)

    def __float__(self) -> float:
        return self.weight / (self.weight + math.exp(self.exponent))


@lru_cache(maxsize=4096)
def _floor(chance: Chance, bits: int) -> int:
    for precision in (FIRST_PRECISION << doubled for doubled in count()):
        one = 1 << precision
        low, high = (
            ((chance.weight * end) << bits) // (chance.weight * end + one)
            for end in exp_interval(chance.exponent, precision)
        )
        if low == high:
            return low
    raise AssertionError("unreachable")


def coins(chance: Chance, size: int) -> Bytes:
    """Independent exact coins, eight in each byte; uint8, shape (size,)."""
    _self_test()
    return _coins(chance, size)


def uniform_below(bound: int, size: int) -> NDArray[np.int64]:
    """Independent exact uniform whole numbers below a bound of 1 to 2^62, shape (size,)."""
    check_random_words()
    fair = (1 << 64) - (1 << 64) % bound  # a multiple of the bound: below it, every remainder is equally frequent
    words = random_words(size)
    if fair < 1 << 64:
        words = words.copy()
        while (again := np.flatnonzero(words >= np.uint64(fair))).size:
            words[again] = random_words(again.size)
    return (words % np.uint64(bound)).astype(np.int64)


def _coins(chance: Chance, size: int) -> Bytes:
    tossed = np.empty(-(-size // 8), dtype=np.uint64)
    for start in range(0, tossed.size, BLOCK):
        part = tossed[start : start + BLOCK]
        part[:] = _block(chance, part.size)
    return tossed.view(np.uint8)[:size]


def _block(chance: Chance, words: int) -> NDArray[np.uint64]:
    first = chance.floor(DIGITS)
    tossed = np.zeros(words, dtype=np.uint64)
    undecided = np.full(words, ~np.uint64(0))
    for place, random in enumerate(random_words(DIGITS * words).reshape(DIGITS, words), start=1):
        if first >> (DIGITS - place) & 1:
            tossed |= undecided & ~random
            undecided &= random
        else:
            undecided &= ~random
    # Few bytes hold an undecided bit; in `tossed` such a bit is still 0.
    bits, packed = undecided.view(np.uint8), tossed.view(np.uint8)
    places = np.flatnonzero(bits)
    still_open = np.unpackbits(bits[places])
    at = np.flatnonzero(still_open)
    still_open[at] = _toss_remaining_digits(chance, at.size)
    packed[places] |= np.packbits(still_open)
    return tossed


def _toss_remaining_digits(chance: Chance, size: int, known_bits: int = DIGITS) -> NDArray[np.bool_]:
    """Tosses coins whose U shares the first `known_bits` digits with P; shape (size,)."""
    known_digits, digits = chance.floor(known_bits), known_bits + 64
    next_digits = np.uint64(chance.floor(digits) - (known_digits << 64))
    words = random_words(size)
    tossed: NDArray[np.bool_] = words < next_digits
    still_open = np.flatnonzero(words == next_digits)
    if still_open.size:
        tossed[still_open] = _toss_remaining_digits(chance, still_open.size, digits)
    return tossed


@lru_cache(maxsize=1)
def _self_test() -> None:
    """Refuses to toss if coins come up too often or too rarely; a false alarm has a probability below 10^-14."""
    check_random_words()
    tossed = 1 << 20
    for chance in (Chance(1, Fraction(1, 2)), Chance(3, Fraction(4))):
        p = float(chance)
        ones = int(np.unpackbits(_coins(chance, tossed // 8)).sum())
        if abs(ones - tossed * p) > 8 * math.sqrt(tossed * p * (1 - p)):
            raise NoiseSelfTestFailed("coins of the local model do not come up as often as they should")
