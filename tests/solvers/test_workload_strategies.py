"""Strategies for a workload: what queries weigh, whole weights that add up, and the variance that was promised."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dphist_pipeline.solvers.trees.workload_strategies import (
    TOTAL,
    Gram,
    _error,
    gram_of_prefixes,
    gram_of_queries,
    gram_of_ranges,
    gram_of_windows,
    mean_variance,
    strategy_for,
)

KINDS: dict[str, tuple[Callable[[int], Gram], Callable[[int], list[tuple[int, int]]]]] = {
    "ranges": (gram_of_ranges, lambda n: [(low, high) for low in range(n) for high in range(low + 1, n + 1)]),
    "prefixes": (gram_of_prefixes, lambda n: [(0, high) for high in range(1, n + 1)]),
    "windows of 1": (lambda n: gram_of_windows(n, 1), lambda n: [(low, low + 1) for low in range(n)]),
    "windows of 3": (lambda n: gram_of_windows(n, 3), lambda n: [(low, low + 3) for low in range(n - 2)]),
    "all": (lambda n: gram_of_windows(n, n), lambda n: [(0, n)]),
}


def matrix(queries: list[tuple[int, int]], cells: int) -> np.ndarray:
    return np.array([[float(low <= cell < high) for cell in range(cells)] for low, high in queries])


@pytest.mark.parametrize("cells", [3, 4, 11])
@pytest.mark.parametrize("kind", KINDS)
def test_a_gram_is_that_of_the_queries_written_out(kind: str, cells: int) -> None:
    make, written = KINDS[kind]
    queries = matrix(written(cells), cells)
    low, high = np.array(written(cells)).T
    for gram in (make(cells), gram_of_queries(low, high, np.ones(len(low)), cells)):
        assert gram.times(np.eye(cells)) == pytest.approx(queries.T @ queries)
        assert gram.diagonal == pytest.approx((queries**2).sum(axis=0))
        assert gram.queries == len(queries)


def test_queries_count_as_often_as_their_weights_say() -> None:
    gram = gram_of_queries(np.array([0, 1]), np.array([2, 4]), np.array([1.0, 5.0]), 4)
    assert gram.times(np.eye(4)).tolist() == [[1, 1, 0, 0], [1, 6, 5, 5], [0, 5, 5, 5], [0, 5, 5, 5]]
    assert gram.queries == 6


def test_the_error_that_is_minimised_has_the_derivative_that_is_followed() -> None:
    gram, point = gram_of_ranges(9), np.random.Generator(np.random.PCG64(1)).random((2, 9))
    value, slope = _error(point, gram)
    for row, cell in np.ndindex(*point.shape):
        moved = point.copy()
        moved[row, cell] += 1e-6
        assert (_error(moved, gram)[0] - value) / 1e-6 == pytest.approx(slope[row, cell], rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(("kind", "cells"), [("ranges", 40), ("prefixes", 25), ("windows of 3", 30), ("all", 12)])
def test_weights_are_whole_add_up_in_every_cell_and_give_the_variance_that_is_told(kind: str, cells: int) -> None:
    make, written = KINDS[kind]
    own, sums = strategy_for(make(cells))
    total = TOTAL if len(sums) else 1
    assert (own.dtype, sums.dtype) == (np.int64, np.int64)
    assert (own.min() >= 1 and sums.size == 0) or sums.min() >= 0
    assert (own + sums.sum(axis=0)).tolist() == [total] * cells
    measured = np.vstack([np.diag(own), sums]) / total
    queries = matrix(written(cells), cells)
    variances = np.einsum("qi,ij,qj->q", queries, np.linalg.inv(measured.T @ measured), queries)
    assert mean_variance(own, sums, make(cells)) == pytest.approx(variances.mean())
    assert variances.mean() <= (queries**2).sum(axis=1).mean() * (1 + 1e-12)


@pytest.mark.parametrize(("cells", "most"), [(256, 66.0), pytest.param(1024, 125.0, marks=pytest.mark.soak)])
def test_all_ranges_have_the_mean_variance_that_is_promised(cells: int, most: float) -> None:
    """In (sensitivity / epsilon)²: continuous noise of scale 1 has variance 2. `boost` has 79 and 156."""
    gram = gram_of_ranges(cells)
    assert 2 * mean_variance(*strategy_for(gram), gram) <= most


def test_where_sums_do_not_pay_cells_are_measured_alone() -> None:
    for gram in (gram_of_ranges(1), gram_of_ranges(12), gram_of_windows(200, 1)):
        own, sums = strategy_for(gram)
        assert own.tolist() == [1] * gram.diagonal.size and sums.shape == (0, gram.diagonal.size)


@pytest.mark.parametrize(
    ("cells", "queries"),
    [
        (6, [(0, 5, 1e-4), (1, 4, 0.1), (3, 6, 100.0)]),
        (7, [(0, 7, 100.0), (1, 5, 0.01), (1, 4, 1e-5)]),
    ],
)
def test_the_search_stays_in_range_where_the_error_hardly_bends(
    cells: int, queries: list[tuple[int, int, float]]
) -> None:
    every = [*queries, *((cell, cell + 1, 0.03 * sum(q[2] for q in queries) / cells) for cell in range(cells))]
    low, high, weights = map(np.array, zip(*every, strict=True))
    own, sums = strategy_for(gram_of_queries(low, high, weights, cells), 64)
    assert np.ptp(own + sums.sum(axis=0)) == 0 and own.min() >= 1
