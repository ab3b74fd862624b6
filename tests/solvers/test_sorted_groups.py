"""Groupings of sorted numbers against exact brute force: ties, huge values and large offsets included."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.groups.optimal_groups import optimal_groups
from dphist_pipeline.solvers.groups.sorted_groups import greedy_groups
from examples import examples


def mean(part):
    return Fraction(sum(part), len(part))


def error(part, price):
    """Squared error of a group plus its price, exactly."""
    return sum((value - mean(part)) ** 2 for value in part) + price / len(part)


def least_cost(line, price):
    """The cost of the cheapest grouping, over all contiguous groupings, by the full recurrence."""
    cheapest = [Fraction(0)]
    for end in range(1, len(line) + 1):
        cheapest.append(min(cheapest[start] + error(line[start:end], price) for start in range(end)))
    return cheapest[-1]


def cost(line, groups, price):
    return sum(error([line[i] for i in np.flatnonzero(groups == g)], price) for g in range(groups.max() + 1))


def gain_of_closing(line, start, place, price):
    """AHP's rule: how much cheaper it is to close the group [start, place) than to let the next value in, exactly."""
    afresh = min(
        (line[place] - mean(line[place:end])) ** 2 + price / (end - place) ** 2
        for end in range(place + 1, len(line) + 1)
    )
    return error(line[start : place + 1], price) - error(line[start:place], price) - afresh


SMALL = st.lists(st.integers(-8, 12), min_size=1, max_size=12)
TIED = st.lists(st.sampled_from([-3, 0, 0, 0, 1, 40]), min_size=1, max_size=14)
HUGE = st.lists(st.sampled_from([-70, -2, 0, 1, 5, 90, 10**12]), min_size=1, max_size=9)
LINES = st.one_of(SMALL, TIED, HUGE).map(sorted)
PRICES = st.sampled_from([Fraction(1, 4), Fraction(2), Fraction(50), Fraction(800), Fraction(10**6), Fraction(10**13)])
OFFSETS = st.sampled_from([0, 10**9, -(10**9), 10**12])


def check_numbering(groups, size):
    assert groups.shape == (size,)
    assert groups[0] == 0
    assert set(np.diff(groups)) <= {0, 1}


@examples(400)
@given(LINES, PRICES, OFFSETS)
def test_finds_a_grouping_of_least_cost(line, price, offset):
    groups = optimal_groups(np.array(line, dtype=float) + offset, float(price))
    check_numbering(groups, len(line))
    assert float(cost(line, groups, price)) == pytest.approx(float(least_cost(line, price)), rel=1e-12)


KINDS = {
    "flat": lambda rng: rng.integers(-9, 10, 500),
    "skewed": lambda rng: (rng.pareto(0.8, 500) * 3).clip(0, 1e12).round(),
    "ramp": lambda rng: np.arange(500) * 3,
    "steps": lambda rng: rng.integers(0, 20, 500) * 50 + rng.integers(-3, 4, 500),
    "equal": lambda rng: np.full(500, 4),
    "heaped": lambda rng: rng.choice([0, 3, 4, 9, 40, 43, 90], 500),
    "crowded": lambda rng: rng.exponential(30, 500).round(),
    "far apart": lambda rng: rng.integers(0, 30, 500) + 10**6 * rng.integers(0, 30, 500),
}


def cheapest_cost(line, price):
    size = line.size
    cheapest = np.zeros(size + 1)
    for end in range(1, size + 1):
        # From the end backwards, each sum around the last value: small groups keep their digits.
        back = line[end - 1] - line[:end][::-1]
        lengths = np.arange(1, end + 1)
        errors = np.cumsum(back**2) - np.cumsum(back) ** 2 / lengths
        cheapest[end] = np.min(cheapest[:end][::-1] + errors + price / lengths)
    return cheapest[-1]


def cost_in_floats(line, groups, price):
    parts = np.split(line, np.flatnonzero(np.diff(groups)) + 1)
    return sum(((part - part[0]).var() * part.size) + price / part.size for part in parts)


@pytest.mark.parametrize("price", [2.0, 500.0, 1e5])
@pytest.mark.parametrize("kind", KINDS)
def test_finds_the_least_cost_on_longer_lines(kind, price):
    line = np.sort(KINDS[kind](np.random.default_rng(3)).astype(float))
    groups = optimal_groups(line, price)
    assert cost_in_floats(line, groups, price) == pytest.approx(cheapest_cost(line, price), rel=1e-9)


@examples(300)
@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 30)), min_size=1, max_size=8),
    st.floats(0.3, 3000.0),
)
def test_finds_the_least_cost_where_values_come_in_runs(runs, price):
    line = np.sort(np.concatenate([np.full(times, float(value)) for value, times in runs]))
    groups = optimal_groups(line, price)
    check_numbering(groups, line.size)
    assert cost_in_floats(line, groups, price) == pytest.approx(cheapest_cost(line, price), rel=1e-11)


@pytest.mark.parametrize("ends", [(95.0, 95.0), (87.0, 87.0), (60.0, 99.5), (99.5, 60.0)])
@pytest.mark.parametrize("times", [60, 201])
def test_a_run_of_equal_values_is_cut_where_that_pays(times, ends):
    # The ends alone, one group of all, or the run cut: the last is the cheapest, by less than 1 / times of the price.
    line = np.concatenate([[-ends[0]], np.zeros(times), [ends[1]]])
    groups = optimal_groups(line, 10_000.0)
    costs = [cost_in_floats(line, np.arange(line.size) >= cut, 10_000.0) for cut in range(1, line.size)]
    assert groups.max() == 1
    assert 1 < np.sum(groups == 0) < times + 1
    assert cost_in_floats(line, groups, 10_000.0) == pytest.approx(min(costs), rel=1e-12)
    assert cost_in_floats(line, groups, 10_000.0) == pytest.approx(cheapest_cost(line, 10_000.0), rel=1e-12)


@examples(400)
@given(LINES, PRICES, OFFSETS)
def test_every_greedy_step_keeps_the_rule(line, price, offset):
    groups = greedy_groups(np.array(line, dtype=float) + offset, float(price))
    check_numbering(groups, len(line))
    start = 0
    for place in range(1, len(line)):
        gain = gain_of_closing(line, start, place, price)
        closed = groups[place] != groups[place - 1]
        # Where both are equally good but for rounding, either will do.
        assert closed == (gain >= 0) or abs(gain) <= price * Fraction(1, 10**9)
        start = place if closed else start


@pytest.mark.parametrize("grouping", [optimal_groups, greedy_groups])
@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
def test_a_common_offset_changes_nothing(grouping, offset):
    line = np.repeat([3.0, 40.0, 90.0], 50) + np.tile([0.0, 1.0], 75)
    line.sort()
    assert np.array_equal(grouping(line + offset, 600.0), np.repeat([0, 1, 2], 50))


@pytest.mark.parametrize("grouping", [optimal_groups, greedy_groups])
def test_one_huge_value_stands_alone_and_the_others_keep_their_digits(grouping):
    line = np.concatenate([np.ones(500), np.full(499, 9.0), [1e12]])
    assert np.array_equal(grouping(line, 10.0), np.repeat([0, 1, 2], [500, 499, 1]))


@pytest.mark.parametrize("grouping", [optimal_groups, greedy_groups])
def test_equal_values_are_one_group(grouping):
    assert grouping(np.full(5000, 7.0), 2.0).max() == 0


@pytest.mark.parametrize("price", [2.0, 500.0, 1e5])
@pytest.mark.parametrize("kind", KINDS)
def test_greedy_steps_keep_the_rule_on_longer_lines(kind, price):
    line = np.sort(KINDS[kind](np.random.default_rng(3)).astype(float))
    groups, start = greedy_groups(line, price), 0
    for place in range(1, line.size):
        lengths = np.arange(1, line.size - place + 1)
        afresh = (np.cumsum(line[place:] - line[place]) / lengths) ** 2 + price / lengths**2
        before, after = line[start:place], line[start : place + 1]
        rise = after.var() * after.size + price / after.size - before.var() * before.size - price / before.size
        closed = groups[place] != groups[place - 1]
        assert closed == (rise >= afresh.min()) or rise == pytest.approx(afresh.min(), rel=1e-9)
        start = place if closed else start


@pytest.mark.parametrize(("apart", "groups"), [(1.72, 1), (1.74, 2)])
def test_two_values_are_one_group_until_their_squared_distance_is_three_prices(apart, groups):
    assert optimal_groups(np.array([0.0, apart * 1000]), 1e6).max() + 1 == groups


@pytest.mark.parametrize("grouping", [optimal_groups, greedy_groups])
@pytest.mark.parametrize("price", [2.0, 300.0])
def test_many_values_far_from_zero_are_grouped_as_near_it(grouping, price):
    # Eighths stay exact at this offset, and their plain sums do not.
    line = np.sort(np.random.default_rng(4).integers(0, 10**6, 50_000)) / 8
    assert np.array_equal(grouping(line + 2.0**43, price), grouping(line, price))
