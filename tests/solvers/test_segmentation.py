"""Penalised optimal segmentation against brute force, ties and large offsets included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dphist_pipeline.solvers.groups.segmentation import bucket_means, v_optimal
from examples import examples


def squared_error(part):
    return float(((part - part.mean()) ** 2).sum())


def least_cost(values, price):
    """The cost of the cheapest split, over all splits, by the full recurrence."""
    cheapest = [0.0]
    for end in range(1, len(values) + 1):
        cheapest.append(min(cheapest[start] + price + squared_error(values[start:end]) for start in range(end)))
    return cheapest[-1]


def cost(values, buckets, price):
    return sum(squared_error(values[buckets == bucket]) + price for bucket in range(buckets.max() + 1))


LINES = st.lists(st.integers(-5, 12), min_size=1, max_size=24)
PRICES = st.sampled_from([0.0, 0.25, 1.0, 7.5, 60.0, 1e6])


@examples(500)
@given(LINES, PRICES, st.sampled_from([1.0, 1e4]), st.sampled_from([0.0, 1e9]))
@example([3], 1.0, 1.0, 0.0)
@example([3, 3], 1.0, 1.0, 0.0)
@example([3, 3, 3, 0], 60.0, 1.0, 0.0)
@example([0, 3, 3, 3, 3, 3], 0.25, 1.0, 0.0)
def test_finds_a_split_of_least_cost(line, price, stretch, offset):
    values = np.array(line) * stretch + offset
    buckets = v_optimal(values, price)
    assert buckets[0] == 0
    assert set(np.diff(buckets)) <= {0, 1}
    # The brute force itself loses digits at an offset of 10^9.
    assert cost(values, buckets, price) == pytest.approx(least_cost(values, price), rel=1e-9, abs=1e-4 * stretch)


@pytest.mark.parametrize("times", [1, 2, 30_000])
@pytest.mark.parametrize("tied", [[0.0, 2.0, 4.0], [4.0, 2.0, 0.0]])
def test_of_equally_cheap_splits_the_one_with_the_earliest_last_cuts_is_taken(tied, times):
    # At a price of 3 a cut after the first cell is as cheap as one after the second: 2 + 6; no cut costs 8 + 3.
    buckets = v_optimal(np.tile([*tied, 100.0], times), 3.0)
    assert np.array_equal(buckets, (np.arange(times)[:, None] * 3 + [0, 1, 1, 2]).ravel())


RUNS = st.lists(st.tuples(st.sampled_from([-3, 0, 1, 2, 7, 10**6]), st.integers(1, 6)), min_size=1, max_size=9)


@pytest.mark.slow
@examples(100)
@given(RUNS, PRICES)
def test_equal_neighbours_are_never_parted_and_the_split_is_of_least_cost(runs, price):
    values = np.repeat([float(value) for value, _ in runs], [size for _, size in runs])
    buckets = v_optimal(values, price)
    assert cost(values, buckets, price) == pytest.approx(least_cost(values, price), rel=1e-9, abs=1e-4)
    assert not np.any((np.diff(values) == 0.0) & (np.diff(buckets) != 0))


def least_cost_of_long(values, price):
    """As `least_cost`, from sums, for longer lines."""
    sums, squares = np.cumsum([0.0, *values]), np.cumsum([0.0, *values**2])
    least = np.zeros(values.size + 1)
    for end in range(1, values.size + 1):
        total, square = sums[end] - sums[:end], squares[end] - squares[:end]
        least[end] = np.min(least[:end] + price + square - total * total / np.arange(end, 0, -1))
    return least[-1]


@pytest.mark.parametrize("scale", [1.0, 20.0])
@pytest.mark.parametrize("price", [4.0, 50.0, 800.0])
def test_long_lines_have_the_least_cost_that_a_plain_recurrence_finds(scale, price):
    rng = np.random.default_rng(11)
    values = np.repeat(rng.integers(0, 9, 60), 20) * scale + rng.geometric(0.4, 1200) - rng.geometric(0.4, 1200)
    assert cost(values, v_optimal(values, price), price) == pytest.approx(least_cost_of_long(values, price), rel=1e-9)


@pytest.mark.parametrize("before", [[], [9.0], [9.0, 4.0]])
@pytest.mark.parametrize("price", [1e4, 1e6, 1e8])
def test_a_ramp_with_hundreds_of_cuts_in_play_is_split_at_the_least_cost(price, before):
    values = np.array([*before, *range(1200)], dtype=float)
    assert cost(values, v_optimal(values, price), price) == pytest.approx(least_cost_of_long(values, price), rel=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
def test_a_common_offset_changes_nothing(offset):
    line = np.repeat([3.0, 90.0, 3.0, 40.0], 50) + np.tile([0.0, 1.0], 100)
    assert np.array_equal(v_optimal(line + offset, 20.0), np.repeat([0, 1, 2, 3], 50))


def test_one_huge_cell_stands_alone_and_its_neighbours_keep_their_digits():
    line = np.ones(1000)
    line[500:] = 9.0
    line[700] = 1e12
    assert v_optimal(line, 10.0).max() == 3
    assert np.array_equal(np.unique(bucket_means(line, v_optimal(line, 10.0))), [1.0, 9.0, 1e12])


def test_equal_values_are_one_bucket_at_any_price_above_zero():
    assert v_optimal(np.full(50, 7.0), 1e-9).max() == 0


def test_the_same_input_gives_the_same_split():
    line = np.random.default_rng(5).integers(0, 3, 3000).astype(float)
    assert np.array_equal(v_optimal(line, 2.0), v_optimal(line, 2.0))


def test_bucket_means_serve_groups_that_are_not_neighbours():
    assert np.array_equal(bucket_means(np.array([1.0, 10.0, 3.0]), np.array([0, 1, 0])), [2.0, 10.0, 2.0])
