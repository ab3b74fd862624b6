"""The closed set of scores: on neighbours, none moves further than its constant times what the counts do.

Everything here runs over `scores.SCORES`: a new class needs a line in `DRAWN` and one in `SMALLEST`.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import scores
from dphist_pipeline.confidential.measurements import MeasurementMisuse, PrivateCounts
from dphist_pipeline.confidential.scores import (
    SCORES,
    CutByBalance,
    CutByDeviations,
    LastStartByDeviations,
    LastStartBySquares,
    NextByNearness,
)
from dphist_pipeline.estimates.budget import Budget, BudgetMisuse
from dphist_pipeline.mechanisms import build
from examples import examples

HUGE = 1 << 52
CENTRES = st.sampled_from(["median", "mean"])
CUTS = st.builds(CutByDeviations, CENTRES, st.sampled_from([0, 1, 7, HUGE]), st.booleans())
STEPS = st.lists(st.integers(0, 40), min_size=1, max_size=12).map(lambda steps: NextByNearness(np.array(steps)))


def sized(drawn, low, high):
    """Scores, each with a number of cells that it serves."""
    return st.tuples(drawn, st.integers(low, high))


# Of every class: scores with a size of group.
DRAWN = {
    LastStartByDeviations: sized(st.builds(LastStartByDeviations, st.integers(2, 5)), 5, 12),
    LastStartBySquares: sized(st.builds(LastStartBySquares, st.integers(2, 5), st.sampled_from([1, 2, 3, 9])), 5, 12),
    CutByDeviations: sized(CUTS, 2, 20),
    CutByBalance: sized(st.just(CutByBalance()), 2, 20),
    NextByNearness: STEPS.map(lambda score: (score, score.steps.size + 1)),
}
# Scores with a line of few small counts on which a step of one moves a score as far as the constant says.
SMALLEST = {
    LastStartByDeviations: [(LastStartByDeviations(2), 3, 2), (LastStartByDeviations(3), 4, 2)],
    LastStartBySquares: [(LastStartBySquares(2, 1), 3, 1), (LastStartBySquares(2, 2), 6, 2)],
    CutByDeviations: [
        (CutByDeviations(centre, price, keep), 4, 3)
        for centre, price, keep in [("median", 0, False), ("median", 5, True), ("mean", 0, False), ("mean", 3, True)]
    ],
    CutByBalance: [(CutByBalance(), 3, 2)],
    NextByNearness: [(NextByNearness(np.array([0, 9])), 3, 2)],
}
CHOOSING = [
    ("structure_first", {"buckets": 4}),
    ("structure_first", {"buckets": 4, "score": "squared", "count_ceiling": 1}),
    ("structure_first", {"buckets": 3, "score": "squared", "count_ceiling": 9}),
    ("ihp", {"depth": 3}),
    ("ihp", {"depth": 3, "centre": "mean"}),
    ("p_hpartition", {"depth": 3}),
    ("p_hpartition", {"depth": 3, "centre": "mean"}),
    ("kd_hierarchy", {"depth": 3}),
    ("dphr", {"order": "exponential", "order_share": "1/3"}),
]
NAMES = [kind.__name__ for kind in SCORES]


def test_every_score_of_the_closed_set_is_tested_here():
    assert set(DRAWN) == set(SMALLEST) == set(SCORES)


@st.composite
def lines(draw, size):
    """Counts with a few peaks among equal cells, or any: there a score moves furthest."""
    count = st.integers(-2, 12) | st.sampled_from([0, 1000, HUGE - 3, 3 - HUGE])
    if draw(st.booleans()):
        return np.array(draw(st.lists(count, min_size=size, max_size=size)), dtype=np.int64)
    line = np.full(size, draw(st.sampled_from([0, 0, 3])), dtype=np.int64)
    for place in draw(st.lists(st.integers(0, size - 1), max_size=3)):
        line[place] = draw(count)
    return line


@st.composite
def moves(draw, size):
    """A row more or less in one cell, several rows in one cell, or rows anywhere."""
    if draw(st.booleans()):
        moved = np.zeros(size, dtype=np.int64)
        moved[draw(st.integers(0, size - 1))] = draw(st.sampled_from([1, -1, 3, -3]))
        return moved
    return np.array(draw(st.lists(st.integers(-2, 2), min_size=size, max_size=size)), dtype=np.int64)


@pytest.mark.parametrize("kind", SCORES, ids=NAMES)
@examples(300)
@given(data=st.data())
def test_no_score_moves_by_more_than_its_constant_times_the_distance(kind, data):
    score, size = data.draw(DRAWN[kind])
    exact = data.draw(lines(size))
    moved = np.clip(exact + data.draw(moves(size)), -HUGE, HUGE)
    kept = exact.copy()
    before, after, distance = score.scores(exact), score.scores(moved), int(np.abs(moved - exact).sum())
    assert before.dtype == np.int64 and before.shape == (score.candidates(size),)
    assert np.array_equal(exact, kept) and np.array_equal(before, score.scores(exact))  # pure
    shifts = [int(b) - int(a) for a, b in zip(before, after, strict=True)]
    assert max(map(abs, shifts)) <= score.constant * distance
    assert max(shifts) - min(shifts) <= score.sensitivity(distance)


def steps_of_one(size, most):
    """Every line of counts from 0 to `most`, with every step of one."""
    for line in itertools.product(range(most + 1), repeat=size):
        for place in range(size):
            yield np.array(line), np.array(line) + np.eye(size, dtype=np.int64)[place]


@pytest.mark.parametrize("kind", SCORES, ids=NAMES)
def test_each_constant_is_reached_so_no_smaller_one_would_do(kind):
    for score, size, most in SMALLEST[kind]:
        shifts = [np.abs(score.scores(there) - score.scores(here)).max() for here, there in steps_of_one(size, most)]
        assert max(shifts) == score.constant, score


def test_the_constants_are_these():
    assert LastStartByDeviations(2).constant == CutByBalance().constant == NextByNearness(np.array([1])).constant == 1
    assert [LastStartBySquares(2, ceiling).constant for ceiling in (1, 2, 1_000_000)] == [1, 3, 1_999_999]
    assert [CutByDeviations(centre, 0, True).constant for centre in ("median", "mean")] == [1, 2]
    assert CutByDeviations("mean", 0, True).sensitivity(3) == 2 * 2 * 3


@pytest.mark.parametrize("kind", SCORES, ids=NAMES)
@examples(50)
@given(data=st.data())
def test_scores_of_the_largest_counts_stay_within_what_the_measurement_takes(kind, data):
    score, size = data.draw(DRAWN[kind])
    exact = np.resize(np.array([HUGE, -HUGE, 0]), size)
    assert max(abs(int(value)) for value in score.scores(exact)) <= 1 << 61


def test_scores_of_long_lines_do_not_wrap():
    exact = np.tile([HUGE, -HUGE], 2048)
    lines = LastStartByDeviations(2).scores(exact)
    # Half of the cells of each bucket are two reaches away from a median of the other half, two by two.
    reach = (2**63 - 1) // exact.size
    assert int(lines[-1]) == -reach * 2 * (exact.size // 2 - 1) and lines.max() <= 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: LastStartByDeviations(1),
        lambda: LastStartByDeviations(2.0),
        lambda: LastStartByDeviations(True),
        lambda: LastStartByDeviations(np.int64(3)),
        lambda: LastStartBySquares(2, 0),
        lambda: LastStartBySquares(2, 1_000_001),
        lambda: LastStartBySquares(2, None),
        lambda: CutByDeviations("mode", 0, True),
        lambda: CutByDeviations("mean", -1, True),
        lambda: CutByDeviations("mean", HUGE + 1, True),
        lambda: CutByDeviations("mean", Fraction(1, 2), True),
        lambda: CutByDeviations("mean", 0, 1),
        lambda: NextByNearness([1, 2]),
        lambda: NextByNearness(np.array([])),
        lambda: NextByNearness(np.array([1.0])),
        lambda: NextByNearness(np.array([-1])),
        lambda: NextByNearness(np.array([HUGE + 1])),
        lambda: NextByNearness(np.array([[1]])),
        lambda: LastStartByDeviations(2).candidates(scores.MOST_CELLS + 1),
        lambda: LastStartBySquares(2, 5).candidates(scores.MOST_CELLS + 1),
    ],
)
def test_parameters_outside_their_ranges_or_of_other_types_are_refused(make):
    with pytest.raises(MeasurementMisuse, match=r"must|has|needs|chosen"):
        make()


class Watched:
    """Measurements that pass every query on and keep what was asked of `choose`."""

    def __init__(self, private_counts):
        self.private_counts, self.asked = private_counts, []

    def __getattr__(self, name):
        return getattr(self.private_counts, name)

    def choose(self, groups, score, budget):
        self.asked.append((groups, score))
        return self.private_counts.choose(groups, score, budget)


def asked_by(name, given_settings, exact):
    watched = Watched(PrivateCounts(Domain.from_shape(exact.shape), 1, lambda: exact))
    build(name, given_settings).release(watched, Budget(Fraction(20)))
    return watched.asked


def test_mechanisms_use_every_score_of_the_closed_set():
    used = {type(score) for way in CHOOSING for _, score in asked_by(*way, np.arange(30))}
    assert used == set(SCORES)


class Chosen(Exception):
    """A choice was admitted."""


class StopsAtChoices:
    """A journal that stops a mechanism at its first choice, before anything is drawn."""

    def answer(self, step, question, draw):
        assert question["door"] == "choose"
        raise Chosen


@pytest.mark.parametrize(("name", "given_settings"), CHOOSING, ids=str)
def test_the_early_check_and_the_measurements_agree_on_the_largest_scale_of_a_choice(name, given_settings):
    mechanism, domain, epsilon = build(name, given_settings), Domain.from_shape((30,)), Fraction(1)

    def passes(sensitivity):
        try:
            mechanism.check(domain, sensitivity, epsilon)
        except BudgetMisuse:
            return False
        return True

    def load():
        raise AssertionError("exact counts were loaded")

    most, beyond = 1, 10**7
    assert passes(most) and not passes(beyond)
    while beyond - most > 1:
        middle = (most + beyond) // 2
        most, beyond = (middle, beyond) if passes(middle) else (most, middle)
    with pytest.raises(Chosen):
        mechanism.release(PrivateCounts(domain, most, load, StopsAtChoices()), Budget(epsilon))
    budget = Budget(epsilon)
    with pytest.raises(MeasurementMisuse, match=r"10\^7: raise its epsilon"):
        mechanism.release(PrivateCounts(domain, most + 1, load, StopsAtChoices()), budget)
    assert budget.charges == ()
