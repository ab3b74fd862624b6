"""Estimates from reports: unbiased, and with the variance that their law says, by counting out every outcome."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.estimates.randomized_response import Encoding, Odds, odds
from dphist_pipeline.local.encoding import encode, sent_reports
from dphist_pipeline.local.law import estimates, law_of, project
from dphist_pipeline.local.question import Part, Question
from dphist_pipeline.local.tally import Tally

ENCODINGS: list[Encoding] = ["symmetric", "optimized", "grr"]
# How often each count comes up among contributors, for one interval or a union.
Law = dict[int, float]


def part(intervals: int, kind: Encoding, epsilon: str = "1") -> Part:
    return Part(tuple(map(Fraction, range(intervals + 1))), Fraction(epsilon), kind)


def ask(kind: Encoding, intervals: int = 3, epsilon: str = "1", **facts: Any) -> Question:
    return Question("hours", (part(intervals, kind, epsilon),), **facts)


def by_definition(asked: Part) -> tuple[float, float]:
    """p and q as the encodings define them."""
    e, k = math.exp(float(asked.epsilon)), asked.intervals
    root = math.sqrt(e)
    return {
        "symmetric": (root / (1 + root), 1 / (1 + root)),
        "optimized": (0.5, 1 / (1 + e)),
        "grr": (e / (e + k), 1 / (e + k)),
    }[asked.encoding]


def ones_of(asked: Part, place: int | None, union: range) -> Law:
    """How many ones one vector has in a union of intervals, over all vectors or numbers."""
    p, q = by_definition(asked)
    law: Counter[int] = Counter()
    if asked.encoding == "grr":
        for said in range(asked.intervals + 1):
            true = asked.intervals if place is None else place
            law[int(said in union)] += p if said == true else q  # type: ignore[assignment]
        return dict(law)
    for bits in itertools.product((0, 1), repeat=asked.intervals):
        chances = [p if number == place else q for number in range(asked.intervals)]
        likely = math.prod(chance if bit else 1 - chance for bit, chance in zip(bits, chances, strict=True))
        law[sum(bits[number] for number in union)] += likely  # type: ignore[assignment]
    return dict(law)


def moments(question: Question, places: list[int | None], union: range) -> tuple[float, float]:
    """Mean and variance of the estimate of how many of the values lie in a union, over all that can be sent."""
    asked, share = question.parts[0], float(question.participation)
    outcomes: dict[tuple[int, int], float] = {(0, 0): 1.0}  # ones and vectors that are sent
    for place in places:
        law = ones_of(asked, place, union)
        after: Counter[tuple[int, int]] = Counter()
        for (ones, vectors), likely in outcomes.items():
            after[ones, vectors] += likely * (1 - share)  # type: ignore[assignment]
            for more, chance in law.items():
                after[ones + more, vectors + 1] += likely * share * chance  # type: ignore[assignment]
        outcomes = dict(after)
    found = {}
    for (ones, vectors), likely in outcomes.items():
        tally = Tally(question, reports=vectors)
        tally.ones[0][union.start] = ones  # an estimate of a union adds up those of its intervals
        found[ones, vectors] = (float(estimates(tally, 0)[list(union)].sum()), likely)
    assert sum(likely for _, likely in found.values()) == pytest.approx(1)
    mean = sum(estimate * likely for estimate, likely in found.values())
    return mean, sum((estimate - mean) ** 2 * likely for estimate, likely in found.values())


CASES = [([0], 3), ([None], 3), ([0, 0, 1, None, 2], 3), ([1, 1, 1, 1], 2), ([2, 3, 3, None], 4), ([0, None], 1)]


@pytest.mark.parametrize("share", ["1", "1/3", "9/10"])
@pytest.mark.parametrize("epsilon", ["1/10", "1", "4"])
@pytest.mark.parametrize("kind", ENCODINGS)
def test_estimates_are_unbiased_and_vary_as_their_law_says(kind: Encoding, epsilon: str, share: str) -> None:
    for places, intervals in CASES:
        question = ask(kind, intervals, epsilon, participation=Fraction(share))
        # A law is for the vectors that came; of so many contributors this is their expectation.
        law = law_of(question, question.parts[0], 1)
        vectors = len(places) * float(Fraction(share))
        law = replace(law, alpha=law.alpha * vectors, beta=law.beta * vectors)
        for start, end in itertools.combinations(range(intervals + 1), 2):
            union = range(start, end)
            count = sum(place in union for place in places if place is not None)
            mean, variance = moments(question, places, union)
            assert mean == pytest.approx(count, abs=1e-9 * math.sqrt(variance + 1))
            expected = law.alpha * len(union) - law.beta * len(union) ** 2
            expected += (law.gamma + law.delta * len(union)) * count
            assert variance == pytest.approx(expected, rel=1e-9)
            assert float(law.variance(np.array(len(union)), np.array(float(count)))) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ENCODINGS)
def test_a_law_grows_with_the_vectors_and_one_bit_moves_an_estimate_by_its_step(kind: Encoding) -> None:
    question = ask(kind, participation=Fraction(1, 4))
    one, many = (law_of(question, question.parts[0], vectors) for vectors in (1, 1000))
    assert (many.alpha, many.beta) == pytest.approx((1000 * one.alpha, 1000 * one.beta))
    assert (many.gamma, many.delta, many.step) == (one.gamma, one.delta, one.step)
    tally = Tally(question, reports=10)
    before = estimates(tally, 0)
    tally.ones[0][1] += 1
    assert estimates(tally, 0) - before == pytest.approx([0, many.step, 0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "combine"), [(kind, "separate") for kind in ENCODINGS] + [(kind, "summed") for kind in ENCODINGS[:2]]
)
def test_what_encoders_send_is_estimated_with_the_spread_of_the_law(kind: Encoding, combine: str) -> None:
    share = Fraction(1) if combine == "summed" else Fraction(1, 2)
    question = ask(kind, 3, "3/2", values=2, combine=combine, participation=share)
    people, runs = 40, 6_000
    values = np.tile([[0.5, 0.5]] * 10 + [[1.5, 2.5]] * 20 + [[math.nan, 9.0]] * 10, (runs, 1))
    true = np.array([20, 20, 20])
    bodies = encode(question, values).reshape(runs, -1, question.report_bytes)
    kept = sent_reports(question, bodies.shape[0] * bodies.shape[1]).reshape(bodies.shape[:2])
    found = []
    for run, came in zip(bodies, kept, strict=True):
        tally = Tally(question)
        tally.add(run[came])
        found.append(estimates(tally, 0))
    errors = np.array(found) - true
    law = law_of(question, question.parts[0], round(people * question.values * float(share)))
    variances = law.variance(np.ones(3, dtype=np.int64), true.astype(float))
    # The mean of the squares of 6,000 nearly normal errors varies by sqrt(2/6000) = 1.8 %: eight of them are 15 %.
    assert np.all(np.abs(errors.mean(axis=0)) < 8 * np.sqrt(variances / runs))
    assert np.all(np.abs((errors**2).mean(axis=0) / variances - 1) < 0.15)


@pytest.mark.parametrize("kind", ENCODINGS)
def test_odds_are_those_of_the_encodings(kind: Encoding) -> None:
    for epsilon in ("1/1000", "1/2", "1", "3", "12"):
        p, q = by_definition(part(5, kind, epsilon))
        found = odds(kind, 5, Fraction(epsilon))
        assert (found.there, found.elsewhere, found.gap) == pytest.approx((p, q, p - q), rel=1e-12)


@pytest.mark.parametrize("kind", ENCODINGS)
def test_the_smallest_epsilon_loses_no_digits(kind: Encoding) -> None:
    # To first order, d = epsilon/4, epsilon/4 and epsilon/(K + 1).
    found = odds(kind, 3, Fraction("1/1000000"))
    assert found.gap == pytest.approx(0.25e-6, rel=2e-6)
    law = law_of(ask(kind, 3, "1/1000000"), part(3, kind, "1/1000000"), 1)
    assert all(math.isfinite(number) for number in (law.alpha, law.beta, law.gamma, law.delta))
    assert law.alpha == pytest.approx((3 / 16 + (kind == "grr") / 16 if kind == "grr" else 0.25) / 0.25e-6**2, rel=1e-5)


def test_the_largest_epsilon_has_hardly_any_error() -> None:
    for kind in ("symmetric", "grr"):
        law = law_of(ask(kind, 3, "50"), part(3, kind, "50"), 10**6)
        assert float(law.variance(np.array(2), np.array(1000.0))) < 1e-3


def test_there_is_the_sum_of_elsewhere_and_the_gap() -> None:
    assert Odds(0.25, 0.5).there == 0.75


def nearest_by_search(values: np.ndarray, total: float) -> np.ndarray:
    """Of all choices which values stay above 0, the nearest point; each choice lowers what stays alike."""
    best, least = np.zeros_like(values), math.inf
    for size in range(1, values.size + 1):
        for kept in map(list, itertools.combinations(range(values.size), size)):
            found = np.zeros_like(values)
            found[kept] = values[kept] - (values[kept].sum() - total) / size
            distance = float(((found - values) ** 2).sum())
            if found.min() >= 0 and distance < least:
                best, least = found, distance
    return best


numbers = st.integers(-200, 200).map(lambda number: number / 8)


@settings(deadline=None)
@given(st.lists(numbers, min_size=1, max_size=7), st.integers(0, 300).map(lambda number: number / 8))
def test_projected_values_are_the_nearest(values: list[float], total: float) -> None:
    found = project(np.array(values), total)
    assert found == pytest.approx(nearest_by_search(np.array(values), total), abs=1e-9)


@settings(deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=200), st.floats(0, 1e9))
def test_projected_values_add_up_and_are_lowered_alike(values: list[float], total: float) -> None:
    # What makes a point the nearest: none is negative, the sum is right, all above 0 are lowered by the same, and those
    # at 0 would not be above it (Karush, Kuhn, Tucker).
    given_values = np.array(values)
    before = given_values.copy()
    found = project(given_values, total)
    scale = 1e-6 * (1 + total + np.abs(given_values).max())
    assert np.array_equal(given_values, before)
    assert (found >= 0).all() and found.sum() == pytest.approx(total, abs=scale)
    lowered = (given_values - found)[found > 0]
    if lowered.size:
        assert np.ptp(lowered) <= scale
        assert (given_values[found == 0] <= lowered.max() + scale).all()


@pytest.mark.parametrize("total", [0.0, 5.0])
def test_projected_values_of_one_interval_or_all_alike(total: float) -> None:
    assert project(np.array([-3.0]), total).tolist() == [total]
    assert project(np.array([7.0, 7.0]), total).tolist() == [total / 2] * 2
    assert project(np.array([1e20, 0.0]), total)[1] == 0


def test_projected_values_to_nothing_are_nothing() -> None:
    assert not project(np.array([3.0, 1.0, -2.0, 3.0]), 0.0).any()
