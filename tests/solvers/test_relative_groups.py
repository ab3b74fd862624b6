"""GGS, the greedy rule of SReB_GCA, against its equations in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.relative_groups import relative_groups
from examples import examples


def mean_relative_error(part, scale):
    """Equation 25 with counts below 1 as 1 in the denominator, exactly."""
    mean = Fraction(sum(part), len(part))
    return sum((abs(value - mean) + scale / len(part)) / max(value, 1) for value in part) / len(part)


def gain_of_joining(line, start, place, scale):
    """Equation 31: how far the error with the next value lies below the bound, exactly."""
    group, value = line[start:place], line[place]
    bound = mean_relative_error(group, scale) * len(group) + scale / ((len(line) - place) * max(value, 1))
    return bound / (len(group) + 1) - mean_relative_error(line[start : place + 1], scale)


SMALL = st.lists(st.integers(-8, 12), min_size=1, max_size=14)
TIED = st.lists(st.sampled_from([-3, 0, 0, 0, 1, 40]), min_size=1, max_size=20)
HUGE = st.lists(st.sampled_from([-70, -2, 0, 1, 5, 90, 10**12]), min_size=1, max_size=9)
LINES = st.one_of(SMALL, TIED, HUGE).map(sorted)
SCALES = st.sampled_from([Fraction(1, 4), Fraction(1), Fraction(20), Fraction(1000), Fraction(10**7)])


@examples(500)
@given(LINES, SCALES, st.sampled_from([0, 50, 10**9, -(10**9)]))
def test_every_step_keeps_the_rule(line, scale, offset):
    line = [value + offset for value in line]
    groups = relative_groups(np.array(line, dtype=float), float(scale))
    assert groups.shape == (len(line),)
    assert groups[0] == 0
    assert set(np.diff(groups)) <= {0, 1}
    start = 0
    for place in range(1, len(line)):
        gain = gain_of_joining(line, start, place, scale)
        joined = groups[place] == groups[place - 1]
        # Where both sides are equal but for rounding, either will do.
        error = mean_relative_error(line[start : place + 1], scale)
        assert joined == (gain > 0) or abs(gain) <= error * Fraction(1, 10**9)
        start = start if joined else place


def test_long_groups_keep_the_rule():
    line = np.sort(np.random.default_rng(2).integers(-40, 60, 400)) + 200
    groups = relative_groups(line.astype(float), 500.0)
    assert groups.max() < 40
    start, exact = 0, line.tolist()
    for place in range(1, line.size):
        joined = groups[place] == groups[place - 1]
        if place % 7 == 0 or not joined:
            assert joined == (gain_of_joining(exact, start, place, Fraction(500)) > 0)
        start = start if joined else place


@pytest.mark.parametrize("value", [-5.0, 0.0, 7.0, 1e12])
def test_equal_values_are_one_group(value):
    assert relative_groups(np.full(5000, value), 2.0).max() == 0


def test_one_huge_value_stands_alone():
    line = np.concatenate([np.ones(500), np.full(499, 90.0), [1e12]])
    assert np.array_equal(relative_groups(line, 10.0), np.repeat([0, 1, 2], [500, 499, 1]))


def test_values_far_from_zero_are_told_apart():
    line = np.repeat([1e9, 1e9 + 50], 100)
    assert np.array_equal(relative_groups(line, 10.0), np.repeat([0, 1], 100))


def test_a_value_that_gains_nothing_opens_a_group():
    assert relative_groups(np.array([0.0, 1.0]), 1.0).max() == 1
    assert relative_groups(np.array([0.0, 1.0]), 1.01).max() == 0
