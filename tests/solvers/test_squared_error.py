"""Squared errors in whole numbers: against exact fractions, how far a step moves them, and where they end."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.solvers.squared_error import LARGEST_CEILING, MOST_CELLS, squared_errors


def squared_error(part):
    mean = Fraction(sum(part), len(part))
    return sum((value - mean) ** 2 for value in part)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(-3, 12), min_size=1, max_size=12), st.integers(1, 9))
def test_entries_are_the_squared_errors_of_every_stretch_rounded_up(line, ceiling):
    table = squared_errors(np.array(line), ceiling)
    cut = [min(max(value, 0), ceiling) for value in line]
    for start in range(len(line)):
        for last in range(len(line)):
            assert table[start, last] == (ceil(squared_error(cut[start : last + 1])) if last >= start else 0)


def test_a_line_worked_by_hand():
    # Cut off at 5: 1, 2, 5. Means 3/2 and 7/2 leave 1/2 and 9/2; 8/3 leaves 30 - 64/3 = 26/3.
    assert squared_errors(np.array([1, 2, 9]), 5).tolist() == [[0, 1, 9], [0, 0, 5], [0, 0, 0]]


@settings(max_examples=500, deadline=None)
@given(
    st.integers(1, 7).flatmap(lambda f: st.tuples(st.just(f), st.lists(st.integers(-1, f + 1), min_size=1))), st.data()
)
def test_a_step_in_one_count_moves_no_entry_by_more_than_twice_the_ceiling_less_one(bounded, data):
    ceiling, line = bounded
    moved = np.array(line)
    moved[data.draw(st.integers(0, len(line) - 1))] += 1
    apart = squared_errors(moved, ceiling) - squared_errors(np.array(line), ceiling)
    assert np.abs(apart).max() <= 2 * ceiling - 1


@pytest.mark.parametrize("ceiling", [1, 2, 9, 44])
def test_some_step_moves_an_entry_by_exactly_that_much(ceiling):
    line = np.zeros(ceiling**2 + 1, dtype=np.int64)
    line[0] = ceiling
    lower = line.copy()
    lower[0] -= 1
    apart = squared_errors(line, ceiling)[0, -1] - squared_errors(lower, ceiling)[0, -1]
    assert apart == 2 * ceiling - 1


def test_the_largest_squares_do_not_wrap_around():
    line = np.full(MOST_CELLS, LARGEST_CEILING + 7)
    assert squared_errors(line, LARGEST_CEILING).max() == 0
    line[: MOST_CELLS // 2] = -1
    assert squared_errors(line, LARGEST_CEILING)[0, -1] == MOST_CELLS // 4 * LARGEST_CEILING**2


def test_refuses_what_could_wrap_around():
    for cells, ceiling in ((2, LARGEST_CEILING + 1), (2, 0), (MOST_CELLS + 1, 1)):
        with pytest.raises(ValueError, match="below 2\\^63"):
            squared_errors(np.zeros(cells, dtype=np.int64), ceiling)
