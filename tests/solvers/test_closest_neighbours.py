"""Closest neighbours first, against a plain greedy in exact fractions that looks at every pair at every step."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.groups.closest_neighbours import closest_neighbours
from examples import examples


def squared_error(part):
    mean = Fraction(sum(part), len(part))
    return sum((value - mean) ** 2 for value in part)


def plain_greedy(line, variance):
    """Every stage from scratch, exactly; the leftmost of equally close pairs, the earliest of equally good stages."""
    parts = [[value] for value in line]
    stages = []
    while True:
        quality = sum(map(squared_error, parts)) + (2 * len(parts) - len(line)) * variance
        stages.append((quality, -len(parts), [len(part) for part in parts]))
        if len(parts) == 1:
            break
        grows = [
            squared_error(left + right) - squared_error(left) - squared_error(right) for left, right in pairwise(parts)
        ]
        closest = grows.index(min(grows))
        parts[closest : closest + 2] = [parts[closest] + parts[closest + 1]]
    sizes = min(stages)[2]
    return np.repeat(np.arange(len(sizes)), sizes)


# Few different values make many equally close pairs.
LINES = st.lists(st.integers(0, 2), min_size=1, max_size=14) | st.lists(st.integers(-40, 90), min_size=1, max_size=24)
# With this prime below, two stages are never equally good, but where the noise is 0 and then exactly.
VARIANCES = st.sampled_from([Fraction(part, 10_007) for part in (0, 150, 5_785, 50_036, 640_500)])


@examples(200)
@given(LINES, VARIANCES, st.sampled_from([0, 10**9]))
def test_merges_what_a_plain_greedy_merges(line, variance, offset):
    whole = [value + offset for value in line]
    buckets = closest_neighbours(np.array(whole, dtype=np.float64), float(variance))
    assert np.array_equal(buckets, plain_greedy(whole, variance))


@pytest.mark.slow
@examples(15)
@given(st.lists(st.integers(0, 9), min_size=45, max_size=70), VARIANCES)
def test_merges_across_blocks_what_a_plain_greedy_merges(line, variance):
    assert np.array_equal(
        closest_neighbours(np.array(line, dtype=float), float(variance)), plain_greedy(line, variance)
    )


def greedy_by_sums(line, variance):
    """As `plain_greedy`, from sums and sizes, for longer lines."""
    parts = [(value, 1) for value in line]
    starts = list(range(len(line)))
    change, best, best_starts = Fraction(0), Fraction(0), list(starts)

    def increase(left, right):
        return Fraction((left[0] * right[1] - right[0] * left[1]) ** 2, left[1] * right[1] * (left[1] + right[1]))

    grows = [increase(left, right) for left, right in pairwise(parts)]
    while grows:
        closest = grows.index(min(grows))
        change += grows[closest] - 2 * variance
        (total, size), (more, others) = parts[closest : closest + 2]
        parts[closest : closest + 2] = [(total + more, size + others)]
        del starts[closest + 1], grows[closest]
        for pair in (closest - 1, closest):
            if 0 <= pair < len(grows):
                grows[pair] = increase(parts[pair], parts[pair + 1])
        if change < best:
            best, best_starts = change, list(starts)
    return np.cumsum(np.isin(np.arange(len(line)), best_starts)) - 1


LONG = (
    st.lists(st.integers(-1, 1), min_size=150, max_size=260).map(lambda steps: np.cumsum(steps).tolist())
    | st.lists(st.integers(0, 9), min_size=2, max_size=9).map(lambda tile: (tile * 120)[:240])
    | st.lists(st.integers(0, 30), min_size=150, max_size=260)
)


@pytest.mark.slow
@examples(40)
@given(LONG, VARIANCES)
def test_merges_long_stretches_that_interact_as_a_plain_greedy_does(line, variance):
    assert np.array_equal(
        closest_neighbours(np.array(line, dtype=float), float(variance)), greedy_by_sums(line, variance)
    )


@pytest.mark.parametrize(
    ("line", "variance"),
    [
        ([27, 21, 21, 21, 26, 17, 25, 19], Fraction(10)),
        ([0, 17, 19, 6, 8, 27, 7, 25, 18, 19, 8], Fraction(640_500, 10_007)),
        ([17, 5, 27, 11, 12, 18, 26, 8, 29, 25, 18, 7], Fraction(640_500, 10_007)),
        # Pairs that would be alone, but for what comes after them, or for what they become.
        ([17, 3, 24, 10, 27], Fraction(640_500, 10_007)),
        ([-6, -5, -6, -6, -5, -4], Fraction(3, 10)),
        ([7, 3, 6, 1, 10, 13, 10], Fraction(2)),
        ([0, 2, 1, -1, -3, -2, -4, -4, -2, -3, -4, -3, -1], Fraction(50_036, 10_007)),
        ([28, 2, 0, 6, 9, 16, 1, 5, 15, 5, 20, 9, 14, 28], Fraction(640_500, 10_007)),
    ],
)
def test_stretches_that_reach_each_other_are_merged_as_one(line, variance):
    assert np.array_equal(
        closest_neighbours(np.array(line, dtype=float), float(variance)), greedy_by_sums(line, variance)
    )


@pytest.mark.parametrize("variance", [0.3, 1.84, 9.1])
def test_a_long_pattern_is_merged_alike_up_to_its_ends(variance):
    line = np.tile([0.0, 3.0, 1.0, 9.0, 2.0], 20_000)
    ends = np.flatnonzero(np.diff(closest_neighbours(line, variance))) + 1
    short = np.flatnonzero(np.diff(closest_neighbours(line[:5_000], variance))) + 1
    assert np.array_equal(ends[ends < 2_500], short[short < 2_500])


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33])
def test_any_length_ends_in_one_bucket_where_noise_is_all(length):
    line = np.arange(length, dtype=np.float64)
    assert np.array_equal(closest_neighbours(line, 1e9), np.zeros(length))


@pytest.mark.parametrize("length", [1, 2, 3, 8, 9])
def test_without_noise_only_equal_neighbours_are_not_told_apart(length):
    assert np.array_equal(closest_neighbours(np.arange(float(length)), 0.0), np.arange(length))


@pytest.mark.parametrize("before", [0, 1, 13, 14, 15, 16, 31, 47])
def test_of_equally_close_pairs_the_leftmost_is_merged(before):
    # 0 and 1, or 1 and 2: merging both would cost 2, more than one bucket's noise of 2 · 0.7.
    line = np.repeat([-1000.0, 0.0, 1.0, 2.0, 1000.0], [before, 1, 1, 1, 40])
    ends = np.flatnonzero(np.diff(closest_neighbours(line, 0.7))) + 1
    assert ends.tolist() == [end for end in (before, before + 2, before + 3) if end > 0]


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
def test_a_common_offset_changes_nothing(offset):
    line = np.repeat([3.0, 90.0, 3.0, 40.0], 50) + np.tile([0.0, 1.0], 100)
    assert np.array_equal(closest_neighbours(line + offset, 10.0), np.repeat([0, 1, 2, 3], 50))


def test_a_common_offset_of_all_digits_changes_no_tie():
    line = np.random.default_rng(7).integers(0, 4, 3000).astype(float)
    assert np.array_equal(closest_neighbours(line + 2.0**50, 1.0), closest_neighbours(line, 1.0))


def test_one_huge_cell_stands_alone_and_its_neighbours_are_told_apart():
    line = np.ones(1000)
    line[500:] = 9.0
    line[700] = 1e15
    buckets = closest_neighbours(line, 5.0)
    assert np.array_equal(np.flatnonzero(np.diff(buckets)), [499, 699, 700])


def test_equal_values_are_one_bucket_at_any_noise_above_zero():
    assert closest_neighbours(np.full(50, 7.0), 1e-9).max() == 0


def test_the_same_input_gives_the_same_buckets():
    line = np.random.default_rng(5).integers(0, 3, 3000).astype(float)
    assert np.array_equal(closest_neighbours(line, 1.0), closest_neighbours(line, 1.0))
