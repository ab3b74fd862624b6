"""The cheapest splits into so many buckets against brute force, for any cost of a bucket; and how far they move."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.solvers.absolute_deviation import deviations
from dphist_pipeline.solvers.bucket_splits import costs_of_last_starts
from dphist_pipeline.solvers.squared_error import LARGEST_CEILING, squared_errors

LINES = st.lists(st.integers(0, 3), min_size=2, max_size=9) | st.lists(st.integers(-99, 99), min_size=2, max_size=9)
MOVED = st.lists(st.tuples(st.integers(-4, 20), st.integers(-3, 3)), min_size=2, max_size=30)
LARGEST = 1 << 52


def plain_costs(table, buckets):
    """Over every split."""
    found = {}
    cells = len(table)
    for cuts in combinations(range(1, cells), buckets - 1):
        cost = sum(int(table[a, b - 1]) for a, b in pairwise([0, *cuts, cells]))
        found[cuts[-1]] = min(cost, found.get(cuts[-1], cost))
    return [found[start] for start in range(buckets - 1, cells)]


@settings(max_examples=200, deadline=None)
@given(LINES, st.data())
def test_finds_the_cheapest_split_for_every_last_start(line, data):
    buckets = data.draw(st.integers(2, len(line)))
    for table in (deviations(np.array(line)), squared_errors(np.array(line), 50)):
        assert costs_of_last_starts(table, buckets).tolist() == plain_costs(table, buckets)


@settings(max_examples=300, deadline=None)
@given(MOVED, st.data())
def test_no_cost_moves_further_than_its_constant_times_the_counts(pairs, data):
    line, moved = np.array(pairs).T
    buckets, ceiling = data.draw(st.integers(2, line.size)), data.draw(st.integers(1, 12))
    for table, constant in (
        (deviations, 1),
        (lambda counts: squared_errors(counts, ceiling), 2 * ceiling - 1),
    ):
        apart = costs_of_last_starts(table(line + moved), buckets) - costs_of_last_starts(table(line), buckets)
        assert np.abs(apart).max() <= constant * np.abs(moved).sum()


@pytest.mark.parametrize("buckets", [2, 3])
def test_the_largest_counts_of_the_longest_line_do_not_wrap_around(buckets):
    line = np.tile([LARGEST, -LARGEST], 1000)
    costs = costs_of_last_starts(deviations(line), buckets)
    assert costs.min() >= 0
    # A bucket of s cells costs 2 · 2^52 · (s // 2), and 1,999 cells are left of the last start, the last cell.
    assert int(costs[-1]) == 2 * LARGEST * 999
    squares = costs_of_last_starts(squared_errors(line, LARGEST_CEILING), buckets)
    assert squares.min() >= 0
    # 1,999 cells cut off at 0 and F, of which 1,000 are F: 1000 F² - (1000 F)² / 1999. A third bucket takes the first.
    full = 1000 if buckets == 2 else 999
    cells = 1000 + 999 if buckets == 2 else 999 + 999
    assert int(squares[-1]) == full * LARGEST_CEILING**2 - (full * LARGEST_CEILING) ** 2 // cells
