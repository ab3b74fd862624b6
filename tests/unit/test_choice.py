"""The measurement that chooses: exact law, disjoint groups, and everything that it refuses.

Most tests plant scores of their own in the closed set, to choose by the counts themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from recorded_words import RecordedWords

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import noise, scores
from dphist_pipeline.confidential._queries import Choice
from dphist_pipeline.confidential.measurements import MeasurementMisuse, PrivateCounts
from dphist_pipeline.confidential.scores import CutByBalance, CutByDeviations, NextByNearness, Score
from dphist_pipeline.estimates.budget import Budget, BudgetMisuse

COUNTS = np.array([5, 3, 0, 9, 1, 4])
FIRST, SECOND = np.array([0, 1, 2]), np.array([3, 4, 5])


def private_counts(sensitivity: int = 1) -> PrivateCounts:
    return PrivateCounts(Domain.from_shape((6,)), sensitivity, lambda: COUNTS.copy())


@dataclass(frozen=True)
class OwnCounts(Score):
    """The counts of the group are its scores."""

    constant: int = 1

    def candidates(self, size: int) -> int:
        return size

    def scores(self, exact: np.ndarray) -> np.ndarray:
        SEEN.append(exact.tolist())
        return exact


class TooFew(OwnCounts):
    def scores(self, exact: np.ndarray) -> np.ndarray:
        return exact[:2]


class Halves(OwnCounts):
    def scores(self, exact: np.ndarray) -> np.ndarray:
        return exact / 2


SEEN: list[list[int]] = []


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    SEEN.clear()
    monkeypatch.setattr(scores, "SCORES", (*scores.SCORES, OwnCounts, TooFew, Halves))


def winning_law(scores: np.ndarray, scale: Fraction) -> np.ndarray:
    """Probability of every winner, summed over the noise of the winner and of all others; ties to the first."""
    reach = int(60 * scale + 60 + np.ptp(scores))
    support = np.arange(reach)
    q = np.exp(-1 / float(scale))
    mass = (1 - q) * q**support
    law = np.zeros(scores.size)
    for candidate, score in enumerate(scores):
        total = score + support
        below = np.ones(reach)
        for other, rival in enumerate(scores):
            if other != candidate:
                room = total - rival + (candidate < other)  # how many values of the rival's noise lose
                below *= np.where(room > 0, 1 - q ** np.maximum(room, 0), 0.0)
        law[candidate] = (mass * below).sum()
    return law


@pytest.mark.slow
@pytest.mark.parametrize(("constant", "sensitivity"), [(1, 1), (2, 1), (1, 3)])
def test_winners_follow_the_law_of_report_noisy_max_with_geometric_noise(constant: int, sensitivity: int) -> None:
    runs = 40_000
    # As many independent choices in one call as there are copies of the group; each costs the same epsilon.
    domain = Domain.from_shape((3 * runs,))
    exact = np.tile(COUNTS[:3], runs)
    groups = list(np.arange(3 * runs).reshape(runs, 3))
    counts = PrivateCounts(domain, sensitivity, lambda: exact)
    chosen = counts.choose(groups, OwnCounts(constant), Budget(Fraction(1)))
    found = np.bincount(chosen, minlength=3) / runs
    scale = Fraction(2 * constant * sensitivity)
    expected = winning_law(COUNTS[:3], scale)
    assert expected.sum() == pytest.approx(1, abs=1e-9)
    # 6.5 standard errors: one false alarm in 10^9; a scale off by 30 % lies outside.
    error = np.sqrt(expected * (1 - expected) / runs)
    assert (np.abs(found - expected) < 6.5 * error).all()
    for wrong in (Fraction(7, 10), Fraction(13, 10)):
        assert (np.abs(found - winning_law(COUNTS[:3], wrong * scale)) > 6.5 * error).any()


def test_neighbours_change_the_exact_law_by_at_most_epsilon_times_distance() -> None:
    scale = Fraction(2)  # epsilon 1, constant 1, sensitivity 1
    for moved in ([6, 3, 0], [5, 4, 0], [5, 3, 1], [5, 2, 0], [4, 3, 0]):
        ratio = np.log(winning_law(np.array(moved), scale) / winning_law(COUNTS[:3], scale))
        assert np.abs(ratio).max() <= 1 + 1e-9


def test_geometric_noise_has_its_exact_law_on_both_sides_of_the_largest_table() -> None:
    for scale in (Fraction(1, 3), Fraction(5), Fraction(5000)):
        drawn = noise.geometric(scale, 200_000)
        assert drawn.min() >= 0
        q = np.exp(-1 / float(scale))
        mean, sigma = q / (1 - q), np.sqrt(q) / (1 - q)
        assert abs(drawn.mean() - mean) < 6.5 * sigma / np.sqrt(drawn.size)
        for least in (1, ceil(scale), 3 * ceil(scale)):
            share = q**least
            assert abs((drawn >= least).mean() - share) < 6.5 * np.sqrt(share * (1 - share) / drawn.size)


def test_a_clear_winner_is_chosen_in_every_group() -> None:
    far = PrivateCounts(Domain.from_shape((6,)), 1, lambda: COUNTS * 10**6)
    assert far.choose([FIRST, SECOND], OwnCounts(), Budget(Fraction(1))).tolist() == [0, 0]


def test_a_score_sees_the_cells_of_its_group_alone() -> None:
    private_counts().choose([FIRST, SECOND], OwnCounts(), Budget(Fraction(1)))
    assert SEEN == [[5, 3, 0], [9, 1, 4]]


@pytest.mark.parametrize(
    ("groups", "score", "problem"),
    [
        ([FIRST, FIRST], OwnCounts(), "twice"),
        ([np.array([0, 0, 1])], OwnCounts(), "twice"),
        ([np.array([0, 6, 7])], OwnCounts(), "cells of the domain"),
        ([np.array([0, -1])], OwnCounts(), "cells of the domain"),
        ([np.array([0, 2**64 - 1], dtype=np.uint64)], OwnCounts(), "cells of the domain"),
        ([np.array([0.0, 1.0])], OwnCounts(), "whole numbers"),
        ([np.array([True, False])], OwnCounts(), "whole numbers"),
        ([[0, 1, 2]], OwnCounts(), "NumPy array"),
        ([FIRST.reshape(1, 3)], OwnCounts(), "line of cell numbers"),
        ([np.array([], dtype=np.int64)], OwnCounts(), "line of cell numbers"),
        ([], OwnCounts(), "at least one"),
        (FIRST, OwnCounts(), "list or tuple"),
        ([FIRST[:1]], OwnCounts(), "at least two candidates"),
        ([FIRST, SECOND[:2]], CutByBalance(), "at least two candidates"),
        ([FIRST], NextByNearness(np.arange(3)), "one step for every cell"),
        ([FIRST], OwnCounts(0), "at least 1"),
    ],
)
def test_a_choice_that_its_budget_would_not_cover_is_refused_unspent(groups, score, problem) -> None:
    def load() -> np.ndarray:
        raise AssertionError("exact counts were loaded")

    budget = Budget(Fraction(1))
    with pytest.raises(MeasurementMisuse, match=problem):
        PrivateCounts(Domain.from_shape((6,)), 1, load).choose(groups, score, budget)
    assert budget.charges == ()


@pytest.mark.parametrize(("score", "problem"), [(TooFew(), "every declared candidate"), (Halves(), "int64")])
def test_a_wrong_class_among_the_scores_is_noticed(score, problem) -> None:
    with pytest.raises(MeasurementMisuse, match=problem):
        private_counts().choose([FIRST], score, Budget(Fraction(1)))


def test_groups_and_steps_that_change_while_counts_are_loaded_change_nothing() -> None:
    group, steps = np.array([0, 1, 2]), np.array([0, 10**9])

    def load() -> np.ndarray:
        group.fill(3)
        steps.fill(0)
        score.steps.flags.writeable = True
        score.steps.fill(0)
        return COUNTS

    score = NextByNearness(steps)
    chosen = PrivateCounts(Domain.from_shape((6,)), 1, load).choose([group], score, Budget(Fraction(50)))
    # By counts alone the second candidate is as far as 5 and the first as far as 2; steps decide for the first.
    assert chosen.tolist() == [0] and steps.tolist() == [0, 0]


@pytest.mark.parametrize(("constant", "sensitivity"), [(1, 10), (2, 7), (1_999_999, 1)])
def test_a_choice_of_a_scale_beyond_ten_million_is_refused_before_anything_is_spent(
    constant: int, sensitivity: int
) -> None:
    def load() -> np.ndarray:
        raise AssertionError("exact counts were loaded")

    least = Fraction(2 * constant * sensitivity, 10**7)
    private_counts(sensitivity).choose([FIRST], OwnCounts(constant), Budget(least))
    budget = Budget(least * Fraction(10**9 - 1, 10**9))
    with pytest.raises(MeasurementMisuse, match=r"10\^7: raise its epsilon"):
        PrivateCounts(Domain.from_shape((6,)), sensitivity, load).choose([FIRST], OwnCounts(constant), budget)
    assert budget.charges == ()


@pytest.mark.parametrize("top", [1 << 52, -(1 << 52), 1 << 61])
def test_scores_and_noise_at_their_ends_never_wrap(monkeypatch: pytest.MonkeyPatch, top: int) -> None:
    from dphist_pipeline.confidential.measurements import _noisy_winners

    monkeypatch.setattr(noise, "geometric", lambda scale, size: np.full(size, noise.LARGEST_GEOMETRIC))
    assert _noisy_winners([np.array([top - 1, top, top])], Fraction(1)).tolist() == [1]
    beyond = [np.array([-(1 << 63), 0, (1 << 63) - 1]), np.array([0, -(1 << 63)])]
    assert _noisy_winners(beyond, Fraction(1)).tolist() == [2, 0]


def test_questions_about_other_groups_or_candidates_have_other_digests() -> None:
    whole, may_keep = [np.arange(6)], CutByDeviations("median", 0, True)
    asked = [
        *(Choice(groups, CutByBalance(), 6) for groups in (whole, [FIRST, SECOND], [SECOND, FIRST], [FIRST])),
        Choice(whole, may_keep, 6),
    ]
    assert len({question.digest for question in asked}) == len(asked)
    # Answers of earlier versions lie in journals under this digest.
    assert asked[1].digest == "658101d6742a9c9657a0df32df713e52673bb8972d8dd635c171b01dfd35e629"


def test_a_choice_spends_its_budget_once() -> None:
    budget = Budget(Fraction(1), "cuts")
    private_counts().choose([FIRST], OwnCounts(), budget)
    assert budget.charges == (("cuts", Fraction(1)),)
    with pytest.raises(BudgetMisuse):
        private_counts().choose([FIRST], OwnCounts(), budget)


def test_a_tree_with_one_level_too_noisy_is_refused_before_any_level_is_drawn() -> None:
    budget, loads = Budget(Fraction(1), "tree"), []
    counts = PrivateCounts(Domain.from_shape((6,)), 20_000, lambda: loads.append(1) or COUNTS)
    levels = [np.zeros(6, dtype=np.int64), np.arange(6) // 3]
    with pytest.raises(MeasurementMisuse, match="10\\^7"):
        counts.noisy_tree(levels, budget, [Fraction(999, 1000), Fraction(1, 1000)])
    assert (budget.charges, loads) == ((), [])


def test_a_tree_charges_every_level_and_draws_one_number_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    words = RecordedWords()
    monkeypatch.setattr(noise, "random_words", words)
    levels = [np.zeros(6, dtype=np.int64), np.arange(6) // 3]
    budget = Budget(Fraction(1), "tree")
    sums = private_counts().noisy_tree(levels, budget, [Fraction(1, 4), Fraction(3, 4)])
    assert [level.values.size for level in sums] == [1, 2] and words.given == 3
    assert [level.scale for level in sums] == [4, Fraction(4, 3)]
    assert budget.charges == (("tree_level_1", Fraction(1, 4)), ("tree_level_2", Fraction(3, 4)))
