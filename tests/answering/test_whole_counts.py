"""Whole counts: from 0, with the published total, and as near to the estimates as such numbers can be."""

from __future__ import annotations

import itertools
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dphist_pipeline.answering.whole_counts import whole_counts
from examples import examples

ESTIMATES = st.lists(st.integers(-9_000, 9_000).map(lambda number: number / 64), min_size=1, max_size=30)


def total(values: NDArray[np.float64]) -> int:
    return max(0, math.floor(values.sum() + 0.5))


@given(ESTIMATES)
@examples(300)
def test_they_are_whole_numbers_from_0_that_add_up_and_keep_the_order(estimates: list[float]) -> None:
    values = np.array(estimates)
    counts = whole_counts(values)
    assert counts.dtype == np.int64
    assert counts.min() >= 0
    assert counts.sum() == total(values)
    order = np.argsort(-values, kind="stable")
    assert (np.diff(counts[order]) <= 0).all() or (np.diff(values[order]) == 0).any()


@given(st.lists(st.integers(-12, 24).map(lambda number: number / 4), min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_no_whole_counts_with_that_total_are_much_nearer(estimates: list[float]) -> None:
    values = np.array(estimates)
    best = min(
        float(((np.array(counts) - values) ** 2).sum())
        for counts in itertools.product(range(total(values) + 1), repeat=values.size)
        if sum(counts) == total(values)
    )
    assert float(((whole_counts(values) - values) ** 2).sum()) <= best + 1e-2


def test_remainders_are_given_to_the_largest_and_of_equal_ones_to_the_first() -> None:
    assert whole_counts(np.array([0.5, 0.5, 0.5, 0.5])).tolist() == [1, 1, 0, 0]
    assert whole_counts(np.array([1.25, 2.75, 3.0])).tolist() == [1, 3, 3]
    assert whole_counts(np.array([[10.0, -4.0], [-4.0, 0.0]])).tolist() == [[2, 0], [0, 0]]
    assert whole_counts(np.array([-3.0, -4.0])).tolist() == [0, 0]


def test_a_million_cells_are_no_trouble() -> None:
    values = np.random.default_rng(1).laplace(0.1, 50, 10**6)
    counts = whole_counts(values)
    assert counts.sum() == total(values)
    assert counts.min() == 0
