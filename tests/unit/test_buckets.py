"""The measurement that cuts a line into buckets: noise on every cost, none of it cut off, and all that it refuses."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from recorded_words import RecordedWords

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential._queries import MOST_IN_A_LINE, Buckets
from dphist_pipeline.confidential.measurements import MeasurementMisuse, PrivateCounts
from dphist_pipeline.estimates.budget import Budget

EXACT = np.array([5, 5, 0, 9, 9, 9])
LINE = np.array([3, 4, 5, 2, 1, 0])  # 9 9 9 0 5 5
SAVINGS = (2, 1, 0)


def private_counts(sensitivity: int = 1, answers: Any = None) -> PrivateCounts:
    return PrivateCounts(Domain.from_shape((6,)), sensitivity, lambda: EXACT.copy(), answers)


def drawing(monkeypatch: pytest.MonkeyPatch, drawn: list[int]) -> list[tuple[Fraction, int]]:
    """Makes the sampler give these numbers; what it is asked for."""
    asked: list[tuple[Fraction, int]] = []

    def geometric(scale: Fraction, size: int) -> NDArray[np.int64]:
        asked.append((scale, size))
        return np.array(drawn, dtype=np.int64)

    monkeypatch.setattr(noise, "geometric", geometric)
    return asked


# Costs: cells 0; pairs 9 9 | 9 0 | 5 5 deviate by 0, 9, 0; fours 9 9 9 0 by 9; all six by 9 + 4 + 4 = 17.
CUT = [0, 2, 3, 4]


@pytest.mark.parametrize(
    ("drawn", "starts"),
    [
        ([0] * 11, CUT),
        ([2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], CUT),  # a pair is preferred among equals
        ([3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 1, 2, 3, 4]),
        ([0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0], [0, 2, 4]),  # prices: a pair is 2 cheaper than its cells
        ([0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0], CUT),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0], [0, 4]),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 14], [0]),
        ([1 << 62] * 6 + [0] * 5, [0, 1, 2, 3, 4, 5]),
        ([1 << 62] * 11, [0, 1, 2, 3, 4, 5]),
    ],
    ids=str,
)
def test_the_cheapest_buckets_after_noise_are_chosen(
    drawn: list[int], starts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = drawing(monkeypatch, drawn)
    assert private_counts(3).choose_buckets(LINE, SAVINGS, Budget(Fraction(1, 2))).tolist() == cheapest(drawn)
    assert asked == [(Fraction(12), 11)]  # 2·3 / (1/2), one draw for each of 6 + 5 buckets
    assert cheapest(drawn) == starts


def cheapest(drawn: list[int]) -> list[int]:
    """By hand, in Python's whole numbers: prices are -2 for pairs, -5 for the four, -7 for the six."""
    cells = [-less for less in drawn[:6]]
    pairs = [cost - less for cost, less in zip([-2, 7, -2], drawn[6:9], strict=True)]
    best = [min((pairs[at], 0), (cells[2 * at] + cells[2 * at + 1], 1)) for at in range(3)]
    two = [[2 * at] if not best[at][1] else [2 * at, 2 * at + 1] for at in range(3)]
    four = 9 - 5 - drawn[9]
    left, cost = ([0], four) if four <= best[0][0] + best[1][0] else (two[0] + two[1], best[0][0] + best[1][0])
    return [0] if 17 - 7 - drawn[10] <= cost + best[2][0] else left + two[2]


def test_the_journal_keeps_the_question_and_the_places_where_buckets_start() -> None:
    asked = []

    class Answers:
        def answer(
            self, step: str, question: Mapping[str, str], draw: Callable[[], NDArray[np.int64]]
        ) -> NDArray[np.int64]:
            asked.append((step, dict(question)))
            return np.array([0, 4])

    assert private_counts(2, Answers()).choose_buckets(LINE, SAVINGS, Budget(Fraction(1), "structure")).tolist() == [
        0,
        4,
    ]
    digest = hashlib.sha256(np.array([*SAVINGS, *LINE], dtype="<i8").tobytes()).hexdigest()
    assert asked == [("structure", {"door": "choose_buckets", "epsilon": "1", "scale": "4", "partition": digest})]


def test_the_same_words_give_the_same_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    words = RecordedWords()
    monkeypatch.setattr(noise, "random_words", words)
    first = private_counts().choose_buckets(LINE, SAVINGS, Budget(Fraction(1)))
    words.rewind()
    assert private_counts().choose_buckets(LINE, SAVINGS, Budget(Fraction(1))).tolist() == first.tolist()


class Own(int):
    """A number that could carry methods of its own."""


@pytest.mark.parametrize(
    ("line", "savings", "problem"),
    [
        (LINE[:5], SAVINGS, "every cell"),
        (np.array([0, 1, 2, 3, 4, 4]), SAVINGS, "every cell"),
        (np.array([0, 1, 2, 3, 4, -5]), SAVINGS, "every cell"),
        (np.array([0, 1, 2, 3, 4, 6]), SAVINGS, "every cell"),
        (LINE[None], SAVINGS, "every cell"),
        (LINE.astype(float), SAVINGS, "whole numbers"),
        (LINE.tolist(), SAVINGS, "NumPy array"),
        (LINE, (2, 1), "one for each level"),
        (LINE, (2, 1, 0, 0), "one for each level"),
        (LINE, [2, 1, 0], "tuple"),
        (LINE, (2, 1, -1), "whole number"),
        (LINE, (2, 1, 0.5), "whole number"),
        (LINE, (2, 1, Own(1)), "plain int"),
        (LINE, (2, 1, 1 << 37), "whole number"),
    ],
    ids=str,
)
def test_a_line_or_savings_that_are_not_plain_are_refused_unspent(line: Any, savings: Any, problem: str) -> None:
    budget = Budget(Fraction(1))
    with pytest.raises(MeasurementMisuse, match=problem):
        private_counts().choose_buckets(line, savings, budget)
    assert budget.charges == ()


def test_one_cell_leaves_nothing_to_choose_and_a_line_may_not_be_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MeasurementMisuse, match="2 to"):
        Buckets(np.array([0]), (), 1)
    monkeypatch.setattr("dphist_pipeline.confidential._queries.MOST_IN_A_LINE", 5)
    with pytest.raises(MeasurementMisuse, match="2 to 5"):
        Buckets(LINE, SAVINGS, 6)
    assert MOST_IN_A_LINE == 1 << 24
