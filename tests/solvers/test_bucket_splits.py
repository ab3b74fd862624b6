"""The cheapest splits and the squared errors of stretches, against brute force; and how far a step moves them."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.groups import bucket_splits
from dphist_pipeline.solvers.groups.absolute_deviation import deviations
from dphist_pipeline.solvers.groups.bucket_splits import (
    LARGEST_CEILING,
    MOST_CELLS,
    costs_of_last_starts,
    squared_errors,
)
from examples import examples

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


def squares(counts, ceiling):
    """The whole table."""
    return np.concatenate([*squared_errors(np.array(counts), ceiling)])


@examples(200)
@given(LINES, st.sampled_from([1, 20, 1 << 19]), st.data())
def test_finds_the_cheapest_split_for_every_last_start(line, entries, data):
    buckets = data.draw(st.integers(2, len(line)))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bucket_splits, "BLOCK", entries)
        for of in (deviations, lambda counts: squared_errors(counts, 50)):
            table = np.concatenate([*of(np.array(line))])
            assert costs_of_last_starts(of(np.array(line)), buckets).tolist() == plain_costs(table, buckets)


def test_a_table_is_never_held_as_a_whole():
    sizes = [len(rows) for rows in deviations(np.zeros(4096, dtype=np.int64))]
    assert max(sizes) * 4096 <= bucket_splits.BLOCK and sum(sizes) == 4096


@examples(300)
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
def test_the_largest_counts_of_a_long_line_do_not_wrap_around(buckets):
    line = np.tile([LARGEST, -LARGEST], 1000)
    costs = costs_of_last_starts(deviations(line), buckets)
    assert costs.min() >= 0
    # A bucket of s cells costs 2 · 2^52 · (s // 2), and 1,999 cells are left of the last start, the last cell.
    assert int(costs[-1]) == 2 * LARGEST * 999
    squared = costs_of_last_starts(squared_errors(line, LARGEST_CEILING), buckets)
    assert squared.min() >= 0
    # 1,999 cells cut off at 0 and F, of which 1,000 are F: 1000 F² - (1000 F)² / 1999. A third bucket takes the first.
    full = 1000 if buckets == 2 else 999
    cells = 1000 + 999 if buckets == 2 else 999 + 999
    assert int(squared[-1]) == full * LARGEST_CEILING**2 - (full * LARGEST_CEILING) ** 2 // cells


def test_counts_of_longer_lines_are_clipped_so_that_sums_do_not_wrap_around():
    line = np.tile([LARGEST, -LARGEST], 2048)
    reach = (2**63 - 1) // 4096
    assert reach < LARGEST
    assert int(next(deviations(line))[0, -1]) == 4096 * reach


def squared_error(part):
    mean = Fraction(sum(part), len(part))
    return sum((value - mean) ** 2 for value in part)


@examples(200)
@given(st.lists(st.integers(-3, 12), min_size=1, max_size=12), st.integers(1, 9))
def test_entries_are_the_squared_errors_of_every_stretch_rounded_up(line, ceiling):
    table = squares(line, ceiling)
    cut = [min(max(value, 0), ceiling) for value in line]
    for start in range(len(line)):
        for last in range(len(line)):
            assert table[start, last] == (ceil(squared_error(cut[start : last + 1])) if last >= start else 0)


def test_a_line_worked_by_hand():
    # Cut off at 5: 1, 2, 5. Means 3/2 and 7/2 leave 1/2 and 9/2; 8/3 leaves 30 - 64/3 = 26/3.
    assert squares([1, 2, 9], 5).tolist() == [[0, 1, 9], [0, 0, 5], [0, 0, 0]]


@examples(500)
@given(
    st.integers(1, 7).flatmap(lambda f: st.tuples(st.just(f), st.lists(st.integers(-1, f + 1), min_size=1))), st.data()
)
def test_a_step_in_one_count_moves_no_entry_by_more_than_twice_the_ceiling_less_one(bounded, data):
    ceiling, line = bounded
    moved = np.array(line)
    moved[data.draw(st.integers(0, len(line) - 1))] += 1
    apart = squares(moved, ceiling) - squares(line, ceiling)
    assert np.abs(apart).max() <= 2 * ceiling - 1


@pytest.mark.parametrize("ceiling", [1, 2, 9, 44])
def test_some_step_moves_an_entry_by_exactly_that_much(ceiling):
    line = np.zeros(ceiling**2 + 1, dtype=np.int64)
    line[0] = ceiling
    lower = line.copy()
    lower[0] -= 1
    apart = squares(line, ceiling)[0, -1] - squares(lower, ceiling)[0, -1]
    assert apart == 2 * ceiling - 1


def test_the_largest_squares_do_not_wrap_around():
    line = np.full(MOST_CELLS, LARGEST_CEILING + 7)
    assert next(squared_errors(line, LARGEST_CEILING)).max() == 0
    line[: MOST_CELLS // 2] = -1
    assert next(squared_errors(line, LARGEST_CEILING))[0, -1] == MOST_CELLS // 4 * LARGEST_CEILING**2


def test_refuses_what_could_wrap_around():
    for cells, ceiling in ((2, LARGEST_CEILING + 1), (2, 0), (MOST_CELLS + 1, 1)):
        with pytest.raises(ValueError, match="below 2\\^63"):
            next(squared_errors(np.zeros(cells, dtype=np.int64), ceiling))
