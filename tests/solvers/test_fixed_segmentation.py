"""Optimal segmentation into so many buckets against brute force in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dphist_pipeline.solvers.fixed_segmentation import least_errors, v_optimal_of


def squared_error(part):
    return sum(value * value for value in part) - Fraction(sum(part) ** 2, len(part))


def error(line, buckets):
    starts = [*np.flatnonzero(np.diff(buckets, prepend=-1)), len(line)]
    return sum(squared_error(line[start:end]) for start, end in pairwise(starts))


def all_least_errors(line):
    """Of 1, 2, ... n buckets, by the full recurrence."""
    n = len(line)
    one = [[squared_error(line[start:end]) if start < end else 0 for end in range(n + 1)] for start in range(n)]
    layer = [None, *(one[0][end] for end in range(1, n + 1))]
    least = [layer[n]]
    for buckets in range(2, n + 1):
        layer = [None] * buckets + [
            min(layer[start] + one[start][end] for start in range(buckets - 1, end)) for end in range(buckets, n + 1)
        ]
        least.append(layer[n])
    return least


LINES = (
    st.lists(st.integers(0, 2), min_size=1, max_size=14)
    | st.lists(st.integers(-40, 90), min_size=1, max_size=14)
    | st.lists(st.sampled_from([0, 1, 5, 10**6, 10**12]), min_size=1, max_size=12)
)


@settings(max_examples=100, deadline=None)
@given(LINES, st.sampled_from([0, 10**9, -(10**9)]))
@example([7] * 9, 0)
@example([1, 1, 1, 10**12, 1, 1, 9, 9], 0)
@example([10**12, 10**12, 10**12, 0, 0, 1], 0)
def test_finds_a_split_of_least_error_for_every_number_of_buckets(line, offset):
    values = np.array([value + offset for value in line], dtype=np.float64)
    least = all_least_errors(line)
    for number, expected in enumerate(least, start=1):
        buckets = v_optimal_of(values, number)
        assert (buckets[0], buckets[-1]) == (0, number - 1)
        assert set(np.diff(buckets)) <= {0, 1}
        assert error(line, buckets) == pytest.approx(expected, rel=1e-12, abs=1e-9)
    # The split is exact; of its error, what lies next to a value of 10^12 has lost the digits beyond the sixteenth.
    lost = 1e-9 + 1e-16 * (max(line) - min(line))
    assert least_errors(values, len(line)) == pytest.approx([float(value) for value in least], rel=1e-12, abs=lost)


@pytest.mark.parametrize("price", [0.0, 3.0, 40.0])
def test_long_lines_have_the_least_error_that_a_plain_recurrence_finds(price):
    rng = np.random.default_rng(3)
    line = np.repeat(rng.integers(0, 9, 30), 10) * price + rng.integers(-6, 7, 300)
    sums, squares = np.cumsum([0.0, *line]), np.cumsum([0.0, *line**2])
    sizes = np.subtract.outer(np.arange(301.0), np.arange(301.0))
    whole = np.where(sizes > 0, sizes, 1.0)
    one = np.subtract.outer(squares, squares) - np.subtract.outer(sums, sums) ** 2 / whole
    one[sizes <= 0] = np.inf
    layer = np.array([0.0] + [np.inf] * 300)
    expected = []
    for _ in range(40):
        layer = (one + layer).min(axis=1)
        expected.append(layer[-1])
    assert least_errors(line, 40) == pytest.approx(expected, rel=1e-9)
    whole_line = [int(value) for value in line]
    for number in (1, 2, 7, 29, 40):
        assert error(whole_line, v_optimal_of(line, number)) == pytest.approx(expected[number - 1], rel=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
def test_a_common_offset_changes_nothing(offset):
    line = np.repeat([3.0, 90.0, 3.0, 40.0], 50) + np.tile([0.0, 1.0], 100)
    assert np.array_equal(v_optimal_of(line + offset, 4), np.repeat([0, 1, 2, 3], 50))


def test_one_huge_cell_stands_alone_and_its_neighbours_are_told_apart():
    line = np.ones(1000)
    line[500:] = 9.0
    line[700] = 1e12
    line[100] = 2.0
    assert np.flatnonzero(np.diff(v_optimal_of(line, 4))).tolist() == [499, 699, 700]


def test_more_buckets_than_runs_part_equal_cells_from_the_left():
    assert v_optimal_of(np.array([5.0, 5.0, 5.0, 1.0, 1.0]), 4).tolist() == [0, 1, 2, 3, 3]


@pytest.mark.parametrize("number", [-1, 0, 4])
@pytest.mark.parametrize("solver", [v_optimal_of, least_errors])
def test_no_buckets_or_more_than_cells_are_refused(solver, number):
    with pytest.raises(ValueError, match=r"3 cells cannot be split into -?\d buckets"):
        solver(np.arange(3.0), number)


def test_the_same_input_gives_the_same_split():
    line = np.random.default_rng(5).integers(0, 3, 3000).astype(float)
    assert np.array_equal(v_optimal_of(line, 12), v_optimal_of(line, 12))
