"""Absolute deviations from medians, and the cheapest splits by them, against brute force; and how far they move."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.solvers.absolute_deviation import costs_of_last_starts, deviations

LINES = st.lists(st.integers(0, 3), min_size=1, max_size=9) | st.lists(st.integers(-99, 99), min_size=1, max_size=9)
LARGEST = 1 << 52


def deviation(part):
    """In Python's integers: any value of the part may be the centre, and one of them is best."""
    return min(sum(abs(int(value) - int(centre)) for value in part) for centre in part)


def plain_costs(line, buckets):
    """Over every split."""
    found = {}
    for cuts in combinations(range(1, len(line)), buckets - 1):
        cost = sum(deviation(line[a:b]) for a, b in pairwise([0, *cuts, len(line)]))
        found[cuts[-1]] = min(cost, found.get(cuts[-1], cost))
    return [found[start] for start in range(buckets - 1, len(line))]


@settings(max_examples=200, deadline=None)
@given(LINES | st.lists(st.integers(0, 50), min_size=20, max_size=40))
def test_deviations_are_those_of_every_stretch_of_cells(line):
    table = deviations(np.array(line))
    for start in range(len(line)):
        for last in range(len(line)):
            assert table[start, last] == (deviation(line[start : last + 1]) if last >= start else 0)


@settings(max_examples=200, deadline=None)
@given(LINES.filter(lambda line: len(line) >= 2), st.data())
def test_finds_the_cheapest_split_for_every_last_start(line, data):
    buckets = data.draw(st.integers(2, len(line)))
    assert costs_of_last_starts(np.array(line), buckets).tolist() == plain_costs(line, buckets)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-3, 3)), min_size=2, max_size=30), st.data())
def test_no_cost_moves_further_than_the_counts_do_together(pairs, data):
    line, moved = np.array(pairs).T
    buckets = data.draw(st.integers(2, line.size))
    apart = costs_of_last_starts(line + moved, buckets) - costs_of_last_starts(line, buckets)
    assert np.abs(apart).max() <= np.abs(moved).sum()


@pytest.mark.parametrize("buckets", [2, 3])
def test_the_largest_counts_of_the_longest_line_do_not_wrap_around(buckets):
    line = np.tile([LARGEST, -LARGEST], 1000)
    costs = costs_of_last_starts(line, buckets)
    assert costs.min() >= 0
    # A bucket of s cells costs 2 · 2^52 · (s // 2), and 1,999 cells are left of the last start, the last cell.
    assert int(costs[-1]) == 2 * LARGEST * 999
