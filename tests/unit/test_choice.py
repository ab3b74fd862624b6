"""The door that chooses: exact law, disjoint groups, and everything that it refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential.doors import DoorMisuse, PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.budget import Budget, BudgetMisuse

COUNTS = np.array([5, 3, 0, 9, 1, 4])
FIRST, SECOND = np.array([0, 1, 2]), np.array([3, 4, 5])


def doors(sensitivity: int = 1) -> PrivateCounts:
    return PrivateCounts(Domain.from_shape((6,)), sensitivity, lambda: COUNTS.copy())


def own_counts(counts: np.ndarray) -> np.ndarray:
    return counts


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


@pytest.mark.parametrize(("constant", "sensitivity"), [(1, 1), (2, 1), (1, 3)])
def test_winners_follow_the_law_of_report_noisy_max_with_geometric_noise(constant: int, sensitivity: int) -> None:
    runs = 40_000
    # As many independent choices in one call as there are copies of the group; each costs the same epsilon.
    domain = Domain.from_shape((3 * runs,))
    exact = np.tile(COUNTS[:3], runs)
    groups = list(np.arange(3 * runs).reshape(runs, 3))
    counts = PrivateCounts(domain, sensitivity, lambda: exact)
    chosen = counts.choose(groups, own_counts, [3] * runs, constant, Budget(Fraction(1)))
    found = np.bincount(chosen, minlength=3) / runs
    scale = Fraction(2 * constant * sensitivity)
    expected = winning_law(COUNTS[:3], scale)
    assert expected.sum() == pytest.approx(1, abs=1e-9)
    # 6.5 standard errors: one false alarm in 10^9; a scale off by 30 % lies outside.
    error = np.sqrt(expected * (1 - expected) / runs)
    assert (np.abs(found - expected) < 6.5 * error).all()
    for wrong in (Fraction(7, 10), Fraction(13, 10)):
        assert (np.abs(found - winning_law(COUNTS[:3], wrong * scale)) > 6.5 * error).any()


def test_neighbours_change_the_exact_law_by_no_more_than_epsilon_times_their_distance() -> None:
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


def test_a_clear_winner_is_chosen_in_every_group() -> None:
    far = PrivateCounts(Domain.from_shape((6,)), 1, lambda: COUNTS * 10**6)
    assert far.choose([FIRST, SECOND], own_counts, [3, 3], 1, Budget(Fraction(1))).tolist() == [0, 0]


def test_a_score_sees_the_cells_of_its_group_alone() -> None:
    seen = []

    def score(counts: np.ndarray) -> np.ndarray:
        seen.append(counts.tolist())
        return counts

    doors().choose([FIRST, SECOND], score, [3, 3], 1, Budget(Fraction(1)))
    assert seen == [[5, 3, 0], [9, 1, 4]]


@pytest.mark.parametrize(
    ("groups", "score", "candidates", "constant", "problem"),
    [
        ([FIRST, FIRST], own_counts, [3, 3], 1, "twice"),
        ([np.array([0, 6, 7])], own_counts, [3], 1, "cells of the domain"),
        ([FIRST], own_counts, [1], 1, "at least two candidates"),
        ([FIRST], own_counts, [3, 3], 1, "at least two candidates"),
        ([FIRST], own_counts, [3], 0, "at least 1"),
        ([FIRST], lambda counts: counts[:2], [3], 1, "every declared candidate"),
        ([FIRST], lambda counts: counts / 2, [3], 1, "int64"),
    ],
)
def test_a_choice_that_its_budget_would_not_cover_is_refused(groups, score, candidates, constant, problem) -> None:
    with pytest.raises(DoorMisuse, match=problem):
        doors().choose(groups, score, candidates, constant, Budget(Fraction(1)))


def test_a_choice_spends_its_budget_once() -> None:
    budget = Budget(Fraction(1), "cuts")
    doors().choose([FIRST], own_counts, [3], 1, budget)
    assert budget.charges == (("cuts", Fraction(1)),)
    with pytest.raises(BudgetMisuse):
        doors().choose([FIRST], own_counts, [3], 1, budget)


def test_a_tree_charges_every_level_and_draws_one_number_a_node() -> None:
    levels = [np.zeros(6, dtype=np.int64), np.arange(6) // 3]
    budget = Budget(Fraction(1), "tree")
    sums = doors().noisy_tree(levels, budget, [Fraction(1, 4), Fraction(3, 4)])
    assert [level.values.size for level in sums] == [1, 2]
    assert [level.scale for level in sums] == [4, Fraction(4, 3)]
    assert budget.charges == (("tree_level_1", Fraction(1, 4)), ("tree_level_2", Fraction(3, 4)))
