"""The three ways of SReB_GCA to group a line, against its equations in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.groups.relative_groups import least_relative_groups, relative_groups, relative_groups_of_gp
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


def gain_by_minimum(line, start, place, scale):
    """Equation 24: the same with the least error of the next value in a group with values after it (equation 28)."""
    group, value = line[start:place], line[place]
    # As printed, the new group holds at least two values, if there are two.
    longer = [line[place:end] for end in range(min(place + 2, len(line)), len(line) + 1)]
    new = min((Fraction(sum(part), len(part)) - value + scale / len(part)) / max(value, 1) for part in longer)
    bound = mean_relative_error(group, scale) * len(group) + new
    return bound / (len(group) + 1) - mean_relative_error(line[start : place + 1], scale)


def total_error(line, groups, scale):
    """The objective of OP, times n: the error of every group times its size."""
    parts = [[value for value, own in zip(line, groups, strict=True) if own == group] for group in sorted(set(groups))]
    return sum(mean_relative_error(part, scale) * len(part) for part in parts)


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


@pytest.mark.slow
@examples(500)
@given(LINES, SCALES, st.sampled_from([0, 50, 10**9, -(10**9)]))
def test_every_step_of_gp_keeps_its_rule(line, scale, offset):
    line = [value + offset for value in line]
    groups = relative_groups_of_gp(np.array(line, dtype=float), float(scale))
    assert groups.shape == (len(line),) and groups[0] == 0 and set(np.diff(groups)) <= {0, 1}
    start = 0
    for place in range(1, len(line)):
        gain = gain_by_minimum(line, start, place, scale)
        joined = groups[place] == groups[place - 1]
        error = mean_relative_error(line[start : place + 1], scale)
        assert joined == (gain > 0) or abs(gain) <= error * Fraction(1, 10**9)
        start = start if joined else place


@pytest.mark.slow
@examples(200)
@given(LINES.filter(lambda line: len(line) <= 9), SCALES)
def test_no_grouping_has_a_smaller_error_than_that_of_op(line, scale):
    found = least_relative_groups(np.array(line, dtype=float), float(scale))
    assert found[0] == 0 and set(np.diff(found)) <= {0, 1}
    every = (np.cumsum((0, *steps)).tolist() for steps in product((0, 1), repeat=len(line) - 1))
    least = min(total_error(line, groups, scale) for groups in every)
    assert total_error(line, found.tolist(), scale) <= least * (1 + Fraction(1, 10**9))


def test_op_is_never_worse_than_its_greedy_forms_on_long_lines():
    for seed, scale in ((1, 3), (2, 50), (3, 800)):
        source = np.random.default_rng(seed)
        line = np.sort(np.rint(source.exponential(60, 300) + source.laplace(0, 20, 300))).astype(np.int64).tolist()
        values = np.array(line, dtype=float)
        found = [ways(values, float(scale)) for ways in (least_relative_groups, relative_groups_of_gp, relative_groups)]
        errors = [float(total_error(line, groups.tolist(), Fraction(scale))) for groups in found]
        assert errors[0] <= min(errors[1:]) * (1 + 1e-12) and errors[0] < max(errors)


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
@pytest.mark.parametrize("ways", [relative_groups, relative_groups_of_gp, least_relative_groups])
def test_equal_values_are_one_group(value, ways):
    assert ways(np.full(5000, value), 2.0).max() == 0


def test_one_huge_value_stands_alone():
    line = np.concatenate([np.ones(500), np.full(499, 90.0), [1e12]])
    assert np.array_equal(relative_groups(line, 10.0), np.repeat([0, 1, 2], [500, 499, 1]))


def test_values_far_from_zero_are_told_apart():
    line = np.repeat([1e9, 1e9 + 50], 100)
    assert np.array_equal(relative_groups(line, 10.0), np.repeat([0, 1], 100))


def test_a_value_that_gains_nothing_opens_a_group():
    assert relative_groups(np.array([0.0, 1.0]), 1.0).max() == 1
    assert relative_groups(np.array([0.0, 1.0]), 1.01).max() == 0
