"""Certified thresholds, and the draws that rest on them, compared with decimal arithmetic of 150 digits and more."""

from __future__ import annotations

import math
from collections import deque
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dphist_pipeline.confidential import noise
from dphist_pipeline.estimates import certified
from dphist_pipeline.estimates.certified import Interval, Law, exp_interval
from examples import examples

SCALES = [
    *(Fraction(1, part) for part in (50, 49, 7, 3, 2)),
    *map(Fraction, ("3/10", "2/3", "1", "13/11", "3/2", "7/3", "10", "355/113", "1234/567", "1000")),
    *map(Fraction, ("4095", "4096", "4097", "20000/3", "100000", "1000000")),
]
SMALL = [scale for scale in SCALES if scale <= 1000]
BITS = (63, 127, 191, 319)


def below_of(scale: Fraction) -> int:
    return max(2, math.isqrt(int(44 * scale)))


def laws(scale: Fraction) -> list[Law]:
    return [
        Law("laplace_magnitude", 1 / scale),
        Law("geometric", 1 / scale),
        Law("geometric", below_of(scale) / scale),
        Law("truncated", 1 / scale, below=below_of(scale)),
    ]


def survival(law: Law, k: int) -> Decimal:
    """P(M >= k), from the definitions and not from the module's formula, in the context's precision."""
    q = (Decimal(-law.rate.numerator) / law.rate.denominator).exp()
    if law.kind == "laplace_magnitude":
        # Both sides of a two-sided geometric series: 2 · sum over j >= k of (1 - q) / (1 + q) · q^j.
        return 2 * (1 - q) / (1 + q) * (q**k / (1 - q))
    if law.kind == "geometric":
        return q**k
    mass = (1 - q ** (law.below - k)) * q**k if k < law.below else Decimal(0)
    return mass / (1 - q**law.below)


def exact_floor(law: Law, k: int, bits: int) -> int:
    """The floor of 2^bits · P(M >= k), which must be clear of every integer by far more than rounding moves it."""
    with localcontext(Context(prec=150 + bits)):
        value = survival(law, k) * 2**bits
        floor = int(value)
        assert law.kind == "truncated" or min(value - floor, 1 - (value - floor)) > Decimal(10) ** -100 or floor == 0
        return floor


def places(law: Law, scale: Fraction) -> list[int]:
    """Steps over the whole table, its last entries, and the end of the law."""
    end = int(Fraction(437, 10) / law.rate) + 1
    ks = {1, 2, 3, 5, *(max(1, end * part // 13) for part in range(1, 15)), end - 1, end, end + 1, 3 * end}
    if law.kind == "truncated":
        ks |= {law.below - 1, law.below, law.below + 1}
    return sorted(k for k in ks if k >= 1)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_thresholds_are_the_exact_floors(scale: Fraction) -> None:
    for law in laws(scale):
        for k in places(law, scale):
            for bits in BITS if k % 2 or scale < 10 else BITS[:1]:
                assert law.threshold(k, bits) == exact_floor(law, k, bits), (law, k, bits)


@pytest.mark.parametrize("scale", SMALL, ids=str)
def test_the_table_is_the_thresholds_one_by_one(scale: Fraction) -> None:
    for law in laws(scale):
        table = list(law.thresholds(63))
        step = max(1, len(table) // 200)
        chosen = [*range(1, len(table) + 1, step), len(table)]
        assert [table[k - 1] for k in chosen] == [law.threshold(k, 63) for k in chosen]


@pytest.mark.parametrize("scale", SMALL, ids=str)
def test_the_table_falls_and_ends_with_its_first_zero(scale: Fraction) -> None:
    for law in laws(scale):
        table = list(law.thresholds(63))
        assert all(above >= below for above, below in pairwise(table))
        assert table.index(0) == len(table) - 1
        assert table[0] < 1 << 63


@pytest.mark.parametrize("first_precision", [1, 40, 64, 70, 100])
def test_entries_that_the_table_leaves_open_are_computed_on_their_own(
    monkeypatch: pytest.MonkeyPatch, first_precision: int
) -> None:
    expected = [list(law.thresholds(63)) for law in laws(Fraction(7, 3))]
    monkeypatch.setattr(certified, "FIRST_PRECISION", first_precision)
    assert [list(law.thresholds(63)) for law in laws(Fraction(7, 3))] == expected


def test_precision_is_doubled_until_both_ends_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    precisions = []

    def blurred(exponent: Fraction, precision: int) -> Interval:
        precisions.append(precision)
        low, high = exp_interval(exponent, precision)
        blur = 1 << max(0, precision - 50) if precision < 1000 else 0
        return max(0, low - blur), high + blur

    monkeypatch.setattr(certified, "exp_interval", blurred)
    law = Law("laplace_magnitude", Fraction(3, 7))
    assert law.threshold(4, 63) == exact_floor(law, 4, 63)
    assert {192, 384, 768, 1536} == set(precisions)


@pytest.mark.parametrize("precision", range(2, 60, 3))
def test_ends_enclose_the_exact_floor_at_any_precision(precision: int) -> None:
    for law in laws(Fraction(7, 3)):
        coefficients = law._coefficients(precision)
        for k in range(1, law.below or 30):
            if coefficients[2][0] > 0:
                low, high = law._survival(exp_interval(law.rate * k, precision), coefficients, precision, 64)
                assert low <= exact_floor(law, k, 64) <= high


def test_ends_that_are_one_apart_do_not_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    apart = []

    def blurred(exponent: Fraction, precision: int) -> Interval:
        low, high = exp_interval(exponent, precision)
        blur = 1 << (precision - 65) if precision < 1000 else 0
        return max(0, low - blur), high + blur

    def noted(*given: Any) -> Interval:
        low, high = survival(*given)
        apart.append(high - low)
        return low, high

    survival = Law._survival
    monkeypatch.setattr(certified, "exp_interval", blurred)
    monkeypatch.setattr(Law, "_survival", staticmethod(noted))
    law = Law("laplace_magnitude", Fraction(3, 7))
    for k in range(1, 40):
        assert law.threshold(k, 63) == exact_floor(law, k, 63)
    assert apart.count(1) > 10


@pytest.mark.slow
@examples(150)
@given(st.fractions(0, 2000, max_denominator=10**8), st.integers(1, 700))
def test_an_enclosure_of_exp_encloses_it_and_is_narrow(exponent: Fraction, precision: int) -> None:
    low, high = exp_interval(exponent, precision)
    with localcontext(Context(prec=1200)):
        value = (Decimal(-exponent.numerator) / exponent.denominator).exp() * 2**precision
        assert low <= value <= high
        assert high - low <= 3


@examples(150)
@given(st.fractions(0, Fraction(1, 2), max_denominator=10**8), st.integers(1, 400))
@example(Fraction(1, 2), 1)
@example(Fraction(1, 2), 3)
def test_an_enclosure_of_the_series_encloses_it(exponent: Fraction, precision: int) -> None:
    low, high = certified._series(exponent, precision)
    with localcontext(Context(prec=400)):
        value = (Decimal(-exponent.numerator) / exponent.denominator).exp() * 2**precision
        assert low <= value <= high


@examples(200)
@given(st.sampled_from(SCALES), st.integers(0, 3), st.data())
def test_any_threshold_is_the_exact_floor(scale: Fraction, number: int, data: st.DataObject) -> None:
    law = laws(scale)[number]
    k = data.draw(st.integers(1, 1 + int(60 / law.rate)))
    bits = data.draw(st.integers(1, 400))
    assert law.threshold(k, bits) == exact_floor(law, k, bits)


@examples(200)
@given(st.sampled_from(SCALES), st.integers(0, 3), st.data())
def test_at_most_compares_without_rounding(scale: Fraction, number: int, data: st.DataObject) -> None:
    law = laws(scale)[number]
    k = data.draw(st.integers(1, 1 + int(20 / law.rate)))
    with localcontext(Context(prec=300)):
        near = Fraction(survival(law, k))
    away = data.draw(st.sampled_from([Fraction(0), Fraction(1, 1000), Fraction(1, 10**90)])) * near
    if away:
        assert law.at_most(k, near + away)
        assert not law.at_most(k, near - away)
    if 0 < near < Fraction(1, 2):
        assert not law.at_most(k, near / 2) and law.at_most(k, near * 2)


def test_equal_ends_of_a_comparison_are_decided_by_the_strict_inequality() -> None:
    law = Law("geometric", Fraction(1))
    floor = law.threshold(2, 64)
    assert not law.at_most(2, Fraction(floor, 1 << 64))
    assert law.at_most(2, Fraction(floor + 1, 1 << 64))


def test_the_law_below_n_has_nothing_from_n_on() -> None:
    law = Law("truncated", Fraction(1, 5), below=4)
    assert law.threshold(3, 63) > 0
    assert [law.threshold(k, bits) for k in (4, 5, 400) for bits in (63, 1000)] == [0] * 6
    assert len(list(law.thresholds(63))) == 4


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(355, 113)], ids=str)
def test_a_step_of_one_changes_a_probability_by_what_the_scale_allows(scale: Fraction) -> None:
    # The promise itself, P(k) <= exp(1 / scale) · P(k + 1), as far as floors at 400 bits show it.
    law = Law("laplace_magnitude", 1 / scale)
    q, _ = exp_interval(1 / scale, 400)
    survivals = [1 << 400, *(law.threshold(k, 400) for k in range(1, 40))]
    masses = [above - below for above, below in pairwise(survivals)]
    two_sided = [2 * masses[0], *masses[1:]]
    for here, following in pairwise(two_sided):
        assert abs((following << 400) - here * q) <= 8 << 400


# Undecided words: the words are given, through the only seam.


class Words:
    """Stands in for `random_words`: gives out a list, once, in order."""

    def __init__(self, *words: int) -> None:
        self.left = deque(words)

    def __call__(self, size: int) -> NDArray[np.uint64]:
        return np.array([self.left.popleft() for _ in range(size)], dtype=np.uint64)


def magnitude(law: Law, words: list[int]) -> int:
    """The number of k with U < P(M >= k), for U with the 63 bits words[0] followed by 64-bit words; by bisection."""
    prefix, bits = words[0], 63
    for word in words[1:]:
        prefix, bits = prefix << 64 | word, bits + 64

    def reached(k: int) -> bool:
        return prefix < exact_floor(law, k, bits)

    low, high = 0, 1
    while reached(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reached(middle) else (low, middle)
    return low


LAWS = [
    *(Law("laplace_magnitude", 1 / scale) for scale in (Fraction(1, 50), Fraction(1, 2), Fraction(3), Fraction(300))),
    Law("geometric", Fraction(1, 9)),
    Law("truncated", Fraction(1, 70), below=55),
]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_word_on_a_threshold_is_refined_both_ways(monkeypatch: pytest.MonkeyPatch, law: Law) -> None:
    table = noise._table(law)
    for k in sorted({1, 2, table.rising.size // 2, table.rising.size - 1} & set(range(1, table.rising.size))):
        threshold = int(table.rising[-k])
        exact = law.threshold(k, 127) & (2**64 - 1)
        for beside in (-1, 1):
            words = Words(exact + beside)
            monkeypatch.setattr(noise, "random_words", words)
            expected = magnitude(law, [threshold, exact + beside])
            assert table.magnitudes(np.array([threshold], dtype=np.uint64)).tolist() == [expected]
            assert not words.left
            assert expected < k if beside > 0 else expected >= k
        deeper = law.threshold(k, 191) & (2**64 - 1)
        for beside in (-1, 1):
            monkeypatch.setattr(noise, "random_words", Words(exact, deeper + beside))
            assert table.refine(threshold, 0) == magnitude(law, [threshold, exact, deeper + beside])


@pytest.mark.slow
@examples(150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(LAWS), st.data())
def test_draws_agree_with_exact_comparisons(monkeypatch: pytest.MonkeyPatch, law: Law, data: st.DataObject) -> None:
    table = noise._table(law)
    near = st.sampled_from(table.rising.tolist()).flatmap(lambda t: st.sampled_from([max(0, t - 1), t, t + 1]))
    prefix = data.draw(st.integers(0, 2**63 - 1) | near)
    word = data.draw(st.integers(0, 2**64 - 1))
    monkeypatch.setattr(noise, "random_words", Words(word, 2**63))
    expected = magnitude(law, [prefix, word, 2**63])
    assert table.magnitudes(np.array([prefix], dtype=np.uint64)).tolist() == [expected]


@pytest.mark.slow
@pytest.mark.parametrize("law", [*LAWS, Law("laplace_magnitude", Fraction(1, 4096))], ids=str)
def test_a_word_of_zero_walks_the_tail(monkeypatch: pytest.MonkeyPatch, law: Law) -> None:
    table = noise._table(law)
    for word in (2**64 - 2, 2**63 + 12345, 2**62 + 1):
        monkeypatch.setattr(noise, "random_words", Words(word))
        assert table.magnitudes(np.zeros(1, dtype=np.uint64)).tolist() == [magnitude(law, [0, word])]
    if law.rate > Fraction(1, 500):
        monkeypatch.setattr(noise, "random_words", Words(0, 2**63))
        assert table.magnitudes(np.zeros(1, dtype=np.uint64)).tolist() == [magnitude(law, [0, 0, 2**63])]


def test_the_last_bit_of_a_word_is_the_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    law = Law("laplace_magnitude", Fraction(1, 3))
    word = 2**60 + 77
    size = magnitude(law, [word])
    monkeypatch.setattr(noise, "random_words", Words(word << 1, word << 1 | 1, 2**64 - 2, 2**64 - 1))
    assert noise._signed_value(Fraction(3), 4).tolist() == [size, -size, 0, 0] and size > 0


def test_beyond_the_largest_table_a_draw_is_a_difference_of_split_geometrics(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scale = noise.LARGEST_TABLE * 9
    n = math.isqrt(int(44 * scale))
    whole, rest = Law("geometric", n / scale), Law("truncated", 1 / scale, below=n)
    prefixes = [2**61 + 5, 2**62 + 9, 3 * 2**60 + 1, 2**59 + 3]
    monkeypatch.setattr(noise, "random_words", Words(*(prefix << 1 for prefix in prefixes)))
    first, first_rest, second, second_rest = (
        magnitude(law, [prefix]) for law, prefix in zip((whole, rest) * 2, prefixes, strict=True)
    )
    assert noise._difference(scale, 1).tolist() == [first * n + first_rest - second * n - second_rest]
