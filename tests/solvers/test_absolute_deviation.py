"""Absolute deviations from medians against brute force, and how far they move."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.groups.absolute_deviation import deviations, deviations_of_cuts, imbalances
from examples import examples

CONSTANTS = {"median": 1, "mean": 2}
LINES = st.lists(st.integers(0, 3), min_size=1, max_size=9) | st.lists(st.integers(-99, 99), min_size=1, max_size=9)


def whole(counts):
    """The table of all stretches."""
    return np.concatenate([*deviations(counts)])


def deviation(part):
    """In Python's integers: any value of the part may be the centre, and one of them is best."""
    return min(sum(abs(int(value) - int(centre)) for value in part) for centre in part) if part else 0


def deviation_from_mean(part):
    """In fractions, rounded down."""
    return floor(sum(abs(value - Fraction(sum(part), len(part))) for value in part)) if part else 0


@pytest.mark.slow
@examples(200)
@given(LINES | st.lists(st.integers(0, 50), min_size=20, max_size=40))
def test_deviations_are_those_of_every_stretch_of_cells(line):
    table = whole(np.array(line))
    for start in range(len(line)):
        for last in range(len(line)):
            assert table[start, last] == (deviation(line[start : last + 1]) if last >= start else 0)


@examples(300)
@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-3, 3)), min_size=1, max_size=30))
def test_no_deviation_moves_further_than_the_counts_do_together(pairs):
    line, moved = np.array(pairs).T
    assert np.abs(whole(line + moved) - whole(line)).max() <= np.abs(moved).sum()


@examples(300)
@given(LINES | st.lists(st.integers(0, 50), min_size=20, max_size=40), st.sampled_from(["median", "mean"]))
def test_a_cut_costs_what_its_two_sides_deviate(line, centre):
    cost = {"median": deviation, "mean": deviation_from_mean}[centre]
    expected = [cost(line[:cut]) + cost(line[cut:]) for cut in range(len(line))]
    assert deviations_of_cuts(np.array(line), centre).tolist() == expected


@examples(500)
@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(-3, 3)), min_size=1, max_size=30),
    st.sampled_from(["median", "mean"]),
)
def test_no_cut_moves_further_than_its_constant_times_the_counts(pairs, centre):
    line, moved = np.array(pairs).T
    apart = deviations_of_cuts(line + moved, centre) - deviations_of_cuts(line, centre)
    assert np.abs(apart).max() <= CONSTANTS[centre] * np.abs(moved).sum()


@pytest.mark.parametrize("centre", ["median", "mean"])
def test_some_cut_moves_by_exactly_its_constant(centre):
    # From means, 1 - 1/s and s - 1 times 1/s are 2 - 2/s, and rounding down makes it 2.
    line = np.zeros(40, dtype=np.int64)
    moves = [
        np.abs(deviations_of_cuts(np.eye(1, 40, k, dtype=int)[0], centre) - deviations_of_cuts(line, centre))
        for k in range(40)
    ]
    two = np.array([5] + [0] * 39)
    moves.append(
        np.abs(deviations_of_cuts(two + np.eye(1, 40, dtype=int)[0], centre) - deviations_of_cuts(two, centre))
    )
    assert np.max(moves) == CONSTANTS[centre]


def test_a_line_cut_by_hand():
    # 1, 3, 8: from the median 3, 2 + 5; 3, 8 alone deviate by 5; 1, 3 alone by 2.
    assert deviations_of_cuts(np.array([1, 3, 8]), "median").tolist() == [7, 5, 2]
    # From the mean 4, 3 + 1 + 4; two cells deviate from theirs as from any place between them.
    assert deviations_of_cuts(np.array([1, 3, 8]), "mean").tolist() == [8, 5, 2]


@pytest.mark.parametrize("centre", ["median", "mean"])
def test_the_largest_counts_do_not_wrap_around(centre):
    n = 1 << 12
    line = np.tile([1 << 52, -(1 << 52)], n // 2)
    costs = deviations_of_cuts(line, centre)
    # Cut off at 2^60 / n: every cell is that far from 0, the centre of each side of an even cut.
    assert int(costs[0]) == int(costs[n // 2]) == 1 << 60
    assert costs.min() > 0


@examples(200)
@given(st.lists(st.integers(-20, 20), min_size=1, max_size=20))
def test_gives_the_difference_of_both_sides_for_every_cut(line):
    assert imbalances(np.array(line)).tolist() == [
        abs(sum(line[:cut]) - sum(line[cut:])) for cut in range(1, len(line))
    ]


@examples(300)
@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-3, 3)), min_size=2, max_size=30))
def test_no_imbalance_moves_further_than_the_counts_do_together(pairs):
    line, moved = np.array(pairs).T
    assert np.abs(imbalances(line + moved) - imbalances(line)).max() <= np.abs(moved).sum()


def test_imbalances_of_the_largest_counts_do_not_wrap_around():
    n = 1 << 13
    assert imbalances(np.full(n, 1 << 52)).min() == 0
    whole = imbalances(np.append(np.full(n - 1, 1 << 52), 0))
    assert int(whole[-1]) == (n - 1) * ((1 << 60) // n)
