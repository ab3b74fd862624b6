"""Coins come up with exactly their probability: digit by digit, and as often as they should.

Draws are recorded, but for tests with the marker. By Bernstein's inequality a binomial number of standard deviation s
is more than t·s off with a probability of at most 2·exp(-t²/2 / (1 + t/(3·s))); a test sums it over its comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from dphist_pipeline.base.random_words import NoiseSelfTestFailed
from dphist_pipeline.local import _coins as module
from dphist_pipeline.local._coins import Chance, coins, uniform_below

Words = NDArray[np.uint64]
CHANCES = [
    Chance(weight, Fraction(exponent))
    for weight, exponent in (
        (1, "1/2"),
        (1, "1/2000000"),  # nearly 1/2
        (1, "50"),  # 2·10^-22
        (1, "25/1"),
        (3, "4"),
        (10_000, "1/1000000"),  # 0.9999
        (10_000, "50"),
        (7, "355/113"),
        (4, "1"),
    )
]
FREQUENT = [chance for chance in CHANCES if 1e-3 < float(chance) < 0.9]
MANY = 2_000_000


def digits_of(chance: Chance, bits: int) -> int:
    """floor(2^bits · P) by decimal arithmetic of 400 digits."""
    with localcontext(Context(prec=400)):
        power = (Decimal(chance.exponent.numerator) / Decimal(chance.exponent.denominator)).exp()
        scaled = Decimal(2) ** bits * chance.weight / (chance.weight + power)
        return int(scaled.to_integral_value(rounding="ROUND_FLOOR"))


@pytest.mark.parametrize("chance", CHANCES, ids=str)
@pytest.mark.parametrize("bits", [1, 8, 63, 72, 136, 200, 520])
def test_the_first_digits_of_a_probability_are_exact(chance: Chance, bits: int) -> None:
    assert chance.floor(bits) == digits_of(chance, bits)


@pytest.mark.parametrize("chance", CHANCES, ids=str)
def test_the_double_is_near_the_probability(chance: Chance) -> None:
    assert float(chance) == pytest.approx(digits_of(chance, 300) / 2**300, rel=1e-14)


class Given:
    """Random words as a test wants them, in order, and no others."""

    def __init__(self, *words: list[int]) -> None:
        self._words = list(words)

    def __call__(self, size: int) -> Words:
        given = self._words.pop(0)
        assert len(given) == size
        return np.array(given, dtype=np.uint64)

    def used(self) -> bool:
        return not self._words


@pytest.fixture
def give(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Given]]:
    module._self_test()
    monkeypatch.setattr(module, "check_random_words", lambda: None)
    given: list[Given] = []

    def replaced(*words: list[int]) -> Given:
        given.append(Given(*words))
        monkeypatch.setattr(module, "random_words", given[-1])
        return given[-1]

    yield replaced
    assert all(words.used() for words in given)


def word_of(bits: list[int]) -> int:
    """A word whose bytes, in memory, hold these 64 bits, each byte from its largest."""
    return int(np.packbits(np.array(bits, dtype=np.uint8)).view(np.uint64)[0])


@pytest.mark.parametrize("chance", CHANCES, ids=str)
def test_every_first_eight_digits_of_u_are_compared_with_those_of_p(chance: Chance, give: Callable[..., Given]) -> None:
    # 256 coins at once, one for each beginning of U; the one that is P's own is decided by 64 digits more.
    beginnings = np.arange(256)
    first = digits_of(chance, 8)
    planes = [(beginnings >> (7 - place)) & 1 for place in range(8)]
    words = [word_of(plane[start : start + 64].tolist()) for plane in planes for start in range(0, 256, 64)]
    more = digits_of(chance, 72) - (first << 64)
    for word, decided in ((more - 1, 1), (more + 1, 0)):
        if not 0 <= word < 2**64:
            continue
        give(words, [word])
        tossed = np.unpackbits(coins(chance, 32))
        assert tossed.tolist() == [1] * first + [decided] + [0] * (255 - first)


@pytest.mark.parametrize("chance", CHANCES, ids=str)
@pytest.mark.parametrize("further", [-1, 1])
def test_digits_that_agree_again_and_again_are_compared_further(
    chance: Chance, further: int, give: Callable[..., Given]
) -> None:
    # All 64 coins share 8 digits with P, then 64, then 64 more; the last 64 are one above P's or one below.
    known = [digits_of(chance, bits) for bits in (8, 72, 136, 200)]
    words = [more - (less << 64) for less, more in pairwise(known)]
    if not 0 <= words[2] + further < 2**64:
        pytest.skip("P's digits there are all alike")
    start = [2**64 - 1 if known[0] >> (7 - place) & 1 else 0 for place in range(8)]
    give(start, [words[0]] * 64, [words[1]] * 64, [words[2] + further] * 64)
    assert np.unpackbits(coins(chance, 8)).tolist() == [int(further < 0)] * 64


def test_only_coins_that_are_open_are_compared_further(give: Callable[..., Given]) -> None:
    chance = Chance(1, Fraction(1, 2))
    first, more = digits_of(chance, 8), digits_of(chance, 72) - (digits_of(chance, 8) << 64)
    # In each digit, coin 5 and coin 40 have P's; all others have the opposite of P's first, and so are decided.
    place_bits = []
    for place in range(8):
        digit = first >> (7 - place) & 1
        place_bits.append([digit if at in (5, 40) else 1 - digit for at in range(64)])
    give([word_of(bits) for bits in place_bits], [more - 1, more + 1])
    tossed = np.unpackbits(coins(chance, 8))
    others = digits_of(chance, 1)  # U begins with the other digit: below P if P's is 1
    assert tossed[5] == 1 and tossed[40] == 0
    assert set(np.delete(tossed, [5, 40]).tolist()) == {others}


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 8 * module.BLOCK, 8 * module.BLOCK + 3, 17 * module.BLOCK])
def test_as_many_bytes_come_as_are_asked_for(size: int) -> None:
    tossed = coins(Chance(1, Fraction(2)), size)
    assert tossed.shape == (size,) and tossed.dtype == np.uint8 and tossed.flags.writeable


def surprise(ones: int, tossed: int, p: float) -> float:
    """By how many standard errors a number of ones is off."""
    return abs(ones - tossed * p) / math.sqrt(tossed * p * (1 - p))


# t = 8, s > 300: below 10^-13. Off by 30 %, the smallest chance, 0.052, is more than 80 standard errors away.
@pytest.mark.draws("binomial, 1e-12")
@pytest.mark.parametrize("chance", FREQUENT, ids=str)
def test_coins_come_up_as_often_as_they_should(chance: Chance) -> None:
    tossed = np.unpackbits(coins(chance, MANY // 8))
    assert surprise(int(tossed.sum()), MANY, float(chance)) < 8
    for off in (0.7, 1.3):
        assert surprise(int(tossed.sum()), MANY, min(float(chance) * off, 0.999)) > 16


# t = 8, s > 100: below 10^-13 for each of 16 comparisons.
@pytest.mark.draws("binomial, 1e-11")
@pytest.mark.parametrize("chance", FREQUENT, ids=str)
def test_each_bit_of_a_byte_and_each_place_of_a_block_comes_up_as_often(chance: Chance) -> None:
    tossed = coins(chance, MANY // 8)
    for bit in range(8):
        assert surprise(int((tossed >> bit & 1).sum()), MANY // 8, float(chance)) < 8
    for place in range(8):
        assert surprise(int(np.unpackbits(tossed[place::8]).sum()), MANY // 8, float(chance)) < 8


@pytest.mark.parametrize("chance", FREQUENT, ids=str)
def test_coins_do_not_depend_on_each_other(chance: Chance) -> None:
    p = float(chance)
    tossed = (np.unpackbits(coins(chance, MANY // 8)) - p) / math.sqrt(p * (1 - p))
    for lag in (1, 2, 8, 64, 64 * module.BLOCK):
        assert abs(float(np.mean(tossed[:-lag] * tossed[lag:]))) < 8 / math.sqrt(MANY - lag), lag


def test_a_coin_that_nobody_will_see_come_up_does_not() -> None:
    assert not coins(Chance(1, Fraction(50)), MANY // 8).any()  # P < 10^-21


@pytest.mark.draws("binomial, 1e-12")  # t = 9, s = 14: below 10^-13
def test_a_coin_that_is_nearly_sure_comes_up() -> None:
    misses = MANY - int(np.unpackbits(coins(Chance(10_000, Fraction(1, 10**6)), MANY // 8)).sum())
    assert surprise(misses, MANY, 1e-4) < 9  # about 200


# t = 8, s > 140: below 10^-13 for each of 8 parts.
@pytest.mark.draws("uniform whole numbers, binomial in each part, 1e-12")
@pytest.mark.parametrize("bound", [1, 2, 3, 5, 256, 1000, 2**32 + 1])
def test_whole_numbers_are_uniform(bound: int) -> None:
    drawn = uniform_below(bound, 200_000)
    assert drawn.dtype == np.int64 and drawn.min() >= 0 and drawn.max() < bound
    parts = min(bound, 8)
    for part in range(parts):
        low, high = -(-part * bound // parts), -(-(part + 1) * bound // parts)
        share = (high - low) / bound
        if share < 1:
            assert surprise(int(((drawn >= low) & (drawn < high)).sum()), drawn.size, share) < 8


@pytest.mark.parametrize("bound", [3, 5, 10_000, 2**62 - 1])
def test_words_at_the_end_are_drawn_again_so_that_every_number_is_as_likely(
    bound: int, give: Callable[..., Given]
) -> None:
    fair = 2**64 // bound * bound
    last = 2**64 - 1
    give([0, fair - 1, fair, last, bound], [last, fair], [fair - 1, 1])
    assert uniform_below(bound, 5).tolist() == [0, bound - 1, bound - 1, 1 % bound, 0]


@pytest.mark.parametrize("bound", [1, 2, 2**40, 2**62])
def test_a_power_of_two_needs_no_word_twice(bound: int, give: Callable[..., Given]) -> None:
    give([2**64 - 1, 0, 2**63])
    assert uniform_below(bound, 3).tolist() == [bound - 1, 0, 0]


def test_nothing_is_tossed_where_coins_come_up_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    power = module.exp_interval
    monkeypatch.setattr(module, "exp_interval", lambda exponent, precision: power(exponent * 29 / 30, precision))
    module._self_test.cache_clear()
    module._floor.cache_clear()
    try:
        with pytest.raises(NoiseSelfTestFailed, match="coins of the local model"):
            coins(Chance(1, Fraction(1)), 1)
    finally:
        module._floor.cache_clear()


@pytest.mark.parametrize("ask", [lambda: coins(Chance(1, Fraction(1)), 1), lambda: uniform_below(3, 1)])
def test_nothing_is_drawn_where_the_operating_system_repeats_itself(
    ask: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.urandom", bytes)
    module._self_test.cache_clear()
    with pytest.raises(NoiseSelfTestFailed, match="repeats"):
        ask()
