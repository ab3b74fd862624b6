"""The encoder: which interval a value lies in, what its bits become under given coins, and how they are packed.

That reports tell no more than epsilon is shown in `audits/test_local_likelihood.py`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dphist_pipeline.estimates.randomized_response import Encoding
from dphist_pipeline.local import encoding as module
from dphist_pipeline.local._coins import Chance
from dphist_pipeline.local.encoding import NONE, chance_of, choose_values, encode, places_of, report_ids, sent_reports
from dphist_pipeline.local.question import Part, Question

ENCODINGS: list[Encoding] = ["symmetric", "optimized", "grr"]
UNARY: list[Encoding] = ["symmetric", "optimized"]
NOT_VALUES = [math.nan, math.inf, -math.inf, -1e-300, np.nextafter(1.0, 2.0), 1e308, -5.0]


def part(edges: Sequence[str | Fraction], kind: Encoding = "symmetric", epsilon: str = "1") -> Part:
    return Part(tuple(map(Fraction, edges)), Fraction(epsilon), kind)


def even(intervals: int, kind: Encoding = "symmetric", epsilon: str = "1") -> Part:
    return part([Fraction(edge, intervals) for edge in range(intervals + 1)], kind, epsilon)


def ask(*parts: Part, **facts: Any) -> Question:
    return Question("hours", parts, **facts)


TENTHS = part(["0", "1/10", "2/10", "3/10", "1"])


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (0.0, 0),
        (-0.0, 0),
        (np.nextafter(0.1, 0.0), 0),
        (0.1, 1),
        (0.2, 2),
        (0.3, 3),
        (np.nextafter(0.3, 0.0), 2),
        (0.1 + 0.2, 3),  # a little above 0.3
        (np.nextafter(1.0, 0.0), 3),
        (1.0, 3),
        *((value, NONE) for value in NOT_VALUES),
    ],
)
def test_intervals_are_half_open_and_the_last_is_closed(value: float, place: int) -> None:
    assert places_of(TENTHS, np.array([[value]])).tolist() == [[place]]


def test_an_edge_between_two_doubles_goes_to_the_nearest() -> None:
    third = part(["0", "1/3", "1"])
    assert places_of(third, np.array([1 / 3, np.nextafter(1 / 3, 0)])).tolist() == [1, 0]


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(st.fractions(-1000, 1000, max_denominator=50), min_size=2, max_size=9, unique=True),
    st.lists(st.floats(-1100, 1100) | st.sampled_from(NOT_VALUES) | st.integers(-1000, 1000).map(float), max_size=20),
)
def test_every_value_lies_in_one_interval_or_none(edges: list[Fraction], values: list[float]) -> None:
    asked = Part(tuple(sorted(edges)), Fraction(1), "symmetric")
    values = [*values, *asked.doubles]
    for value, place in zip(values, places_of(asked, np.array(values)), strict=True):
        within = [low <= value < high for low, high in zip(asked.doubles, asked.doubles[1:], strict=False)]
        within[-1] |= value == asked.doubles[-1]
        assert within == [number == place for number in range(asked.intervals)]


def repr_of(value: object) -> str:
    """Short, for the names of tests."""
    return repr(value)[:12]


class Recorded:
    """Coins, whole numbers and fair coins as they were wanted; what is asked is remembered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, coins: int | bytes = 0, fair: int = 0, other: int = 0) -> None:
        self._coins, self.asked = coins, list[tuple[Any, ...]]()
        monkeypatch.setattr(module, "coins", self.coins)
        monkeypatch.setattr(module, "_fair", lambda size: np.full(size, fair, dtype=np.uint8))
        monkeypatch.setattr(module, "uniform_below", lambda bound, size: np.full(size, other % bound))

    def coins(self, chance: Chance, size: int) -> NDArray[np.uint8]:
        self.asked.append((chance, size))
        drawn = self._coins if isinstance(self._coins, bytes) else bytes([self._coins]) * size
        self._coins = drawn[size:] if isinstance(self._coins, bytes) else self._coins
        return np.frombuffer(drawn[:size], dtype=np.uint8).copy()


def test_the_chances_of_the_three_encodings() -> None:
    assert chance_of(even(5, "symmetric", "3/7")) == Chance(1, Fraction(3, 14))
    assert chance_of(even(5, "optimized", "3/7")) == Chance(1, Fraction(3, 7))
    assert chance_of(even(5, "grr", "3/7")) == Chance(5, Fraction(3, 7))


@pytest.mark.parametrize("intervals", [1, 2, 7, 8, 9, 16, 17, 100])
def test_a_symmetric_vector_is_the_one_where_the_value_lies_turned_by_coins(
    intervals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = even(intervals)
    drawn = np.random.default_rng(intervals).integers(0, 256, (intervals + 1) * asked.vector_bytes, dtype=np.uint8)
    recorded = Recorded(monkeypatch, drawn.tobytes())
    values = np.array([[(place + 0.5) / intervals] for place in range(intervals)] + [[math.nan]])
    bits = np.unpackbits(encode(ask(asked), values), axis=1)
    turned = np.unpackbits(drawn.reshape(intervals + 1, -1), axis=1)[:, :intervals]
    assert np.array_equal(bits[:, :intervals], turned ^ np.eye(intervals + 1, intervals, dtype=np.uint8))
    assert not bits[:, intervals:].any()
    assert recorded.asked == [(Chance(1, Fraction(1, 2)), drawn.size)]


@pytest.mark.parametrize("intervals", [1, 2, 7, 8, 9, 17])
@pytest.mark.parametrize("fair", [0, 1])
def test_an_optimized_vector_has_coins_and_where_the_value_lies_a_fair_one(
    intervals: int, fair: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = even(intervals, "optimized")
    drawn = np.random.default_rng(intervals).integers(0, 256, (intervals + 1) * asked.vector_bytes, dtype=np.uint8)
    Recorded(monkeypatch, drawn.tobytes(), fair)
    values = np.array([[(place + 0.5) / intervals] for place in range(intervals)] + [[math.nan]])
    bits = np.unpackbits(encode(ask(asked), values), axis=1)
    expected = np.unpackbits(drawn.reshape(intervals + 1, -1), axis=1)
    expected[:, intervals:] = 0
    expected[np.arange(intervals), np.arange(intervals)] = fair
    assert np.array_equal(bits, expected)


@pytest.mark.parametrize("intervals", [1, 2, 255, 256, 10_000])
def test_a_number_is_kept_or_another_is_sent(intervals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = even(intervals, "grr")
    places = [0, intervals // 2, intervals - 1, intervals]
    values = np.array([[(place + 0.5) / intervals] for place in places[:3]] + [[math.nan]])

    def numbers(coin: int, other: int) -> list[int]:
        Recorded(monkeypatch, coin, other=other)
        return [int.from_bytes(body.tobytes(), "big") for body in encode(ask(asked), values)]

    assert numbers(0, 0) == places
    for other in {0, intervals // 2, intervals - 1}:
        rest = [[number for number in range(intervals + 1) if number != place] for place in places]
        assert numbers(0xFF, other) == [others[other] for others in rest]


@pytest.mark.parametrize("kind", ENCODINGS)
@pytest.mark.parametrize("intervals", [1, 7, 8, 9, 255, 256])
def test_values_outside_and_none_are_encoded_alike_and_as_long_as_any(
    kind: Encoding, intervals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ask(even(intervals, kind))
    values = np.array([*NOT_VALUES, 0.5])[:, None]
    recorded = Recorded(monkeypatch, 0)
    bodies = encode(asked, values)
    assert bodies.shape == (values.size, asked.report_bytes) and bodies.dtype == np.uint8
    assert {body.tobytes() for body in bodies[:-1]} == {bodies[0].tobytes()}
    numbers = {int.from_bytes(body.tobytes(), "big") for body in bodies[:-1]}
    assert numbers == ({intervals} if kind == "grr" else {0})
    monkeypatch.undo()
    for value in values.ravel():
        encode(asked, np.array([[value]]))
    assert len(recorded.asked) == 1


@pytest.mark.parametrize("kind", UNARY)
def test_bits_beyond_the_last_interval_are_0_whatever_comes_up(kind: Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    for intervals in range(1, 18):
        Recorded(monkeypatch, 0xFF, fair=1)
        bits = np.unpackbits(encode(ask(even(intervals, kind)), np.array([[math.nan]])), axis=1)[0]
        assert bits.tolist() == [1] * intervals + [0] * (-intervals % 8)


@pytest.mark.parametrize("kind", UNARY)
@pytest.mark.parametrize("values", [1, 2, 3, 4, 7, 8, 100, 255])
def test_a_sum_is_that_of_the_separate_vectors_of_a_contributor(
    kind: Encoding, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, people = even(11, kind), 3
    own = np.random.default_rng(values).uniform(-0.2, 1.2, (people, values))
    drawn = np.random.default_rng(1).integers(0, 256, people * values * asked.vector_bytes, dtype=np.uint8).tobytes()
    Recorded(monkeypatch, drawn, fair=1)
    separate = encode(ask(asked, values=values), own)
    Recorded(monkeypatch, drawn, fair=1)
    question = ask(asked, values=values, combine="summed")
    summed = encode(question, own)
    assert separate.shape == (people * values, 2) and summed.shape == (people, 2 * values.bit_length())
    planes = np.unpackbits(summed.reshape(people, -1, 2), axis=2).astype(int)
    weights = 1 << np.arange(planes.shape[1])
    expected = np.unpackbits(separate.reshape(people, values, 2), axis=2).astype(int).sum(axis=1)
    assert np.array_equal(np.tensordot(planes, weights, (1, 0)), expected)


def test_parts_lie_one_after_the_other_and_have_coins_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = even(3, "symmetric"), even(300, "grr", "2"), even(9, "optimized", "1/2")
    recorded = Recorded(monkeypatch, 0, fair=1)
    bodies = encode(ask(*parts, values=2), np.array([[0.0, 1.0], [0.5, math.nan]]))
    assert [body.tobytes().hex() for body in bodies] == ["8000008000", "20012b0080", "4000960800", "00012c0000"]
    assert [chance for chance, _ in recorded.asked] == [chance_of(each) for each in parts]


def test_reports_of_many_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    question = ask(even(11, "optimized"), even(5, "symmetric"), values=2)
    values = np.random.default_rng(5).uniform(-0.2, 1.2, (6, 2))
    Recorded(monkeypatch, 0b10011010, fair=1)
    assert np.array_equal(encode(question, values), np.vstack([encode(question, row[None, :]) for row in values]))


def test_nobody_to_encode_gives_no_report() -> None:
    for kind in ENCODINGS:
        assert encode(ask(even(4, kind)), np.empty((0, 1))).shape == (0, 1)
    for kind in UNARY:
        assert encode(ask(even(9, kind), values=3, combine="summed"), np.empty((0, 3))).shape == (0, 4)


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros((3, 1)), np.zeros((3, 3)), np.zeros((1, 2, 1))])
def test_values_need_a_column_for_each_that_is_asked(values: NDArray[np.float64]) -> None:
    with pytest.raises(ValueError, match="column for each"):
        encode(ask(even(4), values=2), values)


def test_fair_coins_are_the_bits_of_random_words(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.array([0x0123456789ABCDEF, 5], dtype=np.uint64)
    monkeypatch.setattr(module, "random_words", lambda size: words[:size])
    assert np.array_equal(module._fair(70), np.unpackbits(words.view(np.uint8))[:70])
    assert module._fair(64).size == 64 and module._fair(0).size == 0


def test_fewer_values_are_filled_up_and_all_are_reported() -> None:
    assert np.array_equal(choose_values([], 2), [math.nan] * 2, equal_nan=True)
    assert np.array_equal(choose_values([3.5], 3), [3.5, math.nan, math.nan], equal_nan=True)
    assert sorted(choose_values([1, 2, 3], 3)) == [1, 2, 3]


def test_a_missing_value_never_takes_the_place_of_one_that_is_there() -> None:
    for _ in range(50):
        assert choose_values([math.nan, None, 3.5, math.nan], 1).tolist() == [3.5]
        assert math.inf in choose_values([math.nan, math.inf, None], 2)  # outside the range, but a value


@pytest.mark.parametrize(
    "wrong", ["", "abc", None, object(), 10**400, -(10**400), [1.0], [[1], [2, 3]], 1j, Decimal("sNaN")], ids=repr_of
)
def test_what_is_no_number_is_reported_as_none_and_names_nothing(wrong: object) -> None:
    assert np.array_equal(choose_values([1.5, wrong], 3), [1.5, math.nan, math.nan], equal_nan=True)
    assert encode(ask(even(4)), choose_values([wrong], 1)[None, :]).shape == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("values", [np.arange(4.0), [Decimal(0), Fraction(1), 2, np.float32(3)], ("0", "1", "2", "3")])
def test_of_more_values_each_choice_is_as_likely(values: Sequence[object]) -> None:
    drawn = 12_000
    counts = Counter(tuple(sorted(choose_values(values, 2).tolist())) for _ in range(drawn))
    assert len(counts) == 6
    deviation = math.sqrt(drawn * 5) / 6
    assert all(abs(count - drawn / 6) < 8 * deviation for count in counts.values())
    assert 0.3 * drawn / 6 > 8 * deviation  # so 30 % more or less would be noticed


def test_each_report_is_sent_with_the_declared_probability_and_its_own_draw() -> None:
    question = ask(even(3), values=2, participation=Fraction(1, 3))
    kept = sent_reports(question, 400_000)
    deviation = math.sqrt(400_000 * 2) / 3
    assert kept.dtype == np.bool_ and abs(int(kept.sum()) - 400_000 / 3) < 8 * deviation
    assert abs(int((kept[:-1] & kept[1:]).sum()) - 400_000 / 9) < 9 * math.sqrt(400_000 / 9)
    assert 16 * deviation < 0.3 * 400_000 / 9
    assert sent_reports(replace(question, participation=Fraction(1)), 1000).all()


@pytest.mark.parametrize(("drawn", "kept"), [(0, True), (2, True), (3, False), (6, False)])
def test_participation_is_exact(drawn: int, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(module, "uniform_below", lambda bound, size: asked.append(bound) or np.full(size, drawn))
    assert sent_reports(ask(even(3), participation=Fraction(3, 7)), 2).tolist() == [kept] * 2
    assert asked == [7]


def test_ids_are_sixteen_bytes_and_never_the_same() -> None:
    ids = report_ids(1000)
    assert ids.shape == (1000, 16) and ids.dtype == np.uint8
    assert len({name.tobytes() for name in ids} | {name.tobytes() for name in report_ids(1000)}) == 2000


@pytest.mark.parametrize("kind", ENCODINGS)
def test_reports_come_up_as_their_law_says(kind: Encoding) -> None:
    people, intervals = 300_000, 9
    bodies = encode(ask(even(intervals, kind, "3/2")), np.full((people, 1), 4.5 / 9))
    e = math.e**1.5
    if kind == "grr":
        counts = np.bincount(bodies[:, 0], minlength=intervals + 1)
        there, elsewhere = e / (e + intervals), 1 / (e + intervals)
    else:
        counts = np.unpackbits(bodies, axis=1)[:, :intervals].sum(axis=0, dtype=np.int64)
        root = math.sqrt(e)
        there, elsewhere = (root / (1 + root), 1 / (1 + root)) if kind == "symmetric" else (0.5, 1 / (1 + e))
    for number, count in enumerate(counts):
        p = there if number == 4 else elsewhere
        assert abs(count - people * p) < 8 * math.sqrt(people * p * (1 - p))
        assert 0.3 * people * p > 16 * math.sqrt(people * p * (1 - p))
