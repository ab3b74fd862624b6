"""Metrics worked by hand on four cells."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dphist_pipeline.workbench.evaluation import metrics

EXACT = np.array([[0, 1], [4, 10]])
ESTIMATE = np.array([[2.0, 0.0], [6.0, -10.0]])


def test_errors_are_those_worked_by_hand():
    assert metrics.sum_squared_error(EXACT, ESTIMATE) == 4 + 1 + 4 + 400
    assert metrics.mean_squared_error(EXACT, ESTIMATE) == 409 / 4
    assert metrics.mean_absolute_error(EXACT, ESTIMATE) == 25 / 4


def test_relative_error_divides_by_at_least_one_record():
    assert metrics.mean_relative_error(EXACT, ESTIMATE) == (2 / 1 + 1 / 1 + 2 / 4 + 20 / 10) / 4
    assert metrics.mean_relative_error(EXACT, ESTIMATE, least=5) == (2 / 5 + 1 / 5 + 2 / 5 + 20 / 10) / 4


def test_classes_of_counts_leave_no_count_out_and_take_none_twice():
    assert list(metrics.size_classes(0)) == [(0, 0)]
    assert [metrics.class_name(*ends) for ends in metrics.size_classes(300)] == [
        *("0", "1", "2-5", "6-10", "11-20", "21-50", "51-100", "101-200", "201-500")
    ]
    for largest in (*range(60), 100, 101, 999_999, 1_000_001):
        classes = list(metrics.size_classes(largest))
        assert all(after[0] == before[1] + 1 for before, after in itertools.pairwise(classes))
        assert classes[-1][0] <= largest <= classes[-1][1]


def test_relative_error_by_size_is_that_of_each_class_alone():
    found = metrics.relative_error_by_size(np.array([0, 0, 5, 2, 10]), np.array([1.0, -2, 10, 2, 9]))
    assert found == {"0": 1.5, "2-5": (5 / 5 + 0) / 2, "6-10": 0.1}


def test_relative_error_by_value_is_equation_33_of_sreb_gca():
    """The mean of |H - estimate| / max(H, 1) over the cells whose exact count is k, for each k."""
    exact, estimate = np.array([[0, 0, 5], [2, 5, 900]]), np.array([[1.0, -2, 10], [2, 4, 0]])
    assert metrics.relative_error_by_value(exact, estimate) == {0: 1.5, 2: 0.0, 5: (1 + 1 / 5) / 2, 900: 1.0}
    assert metrics.relative_error_by_value(exact, estimate, most=2) == {0: 1.5, 2: 0.0}
    cells = dict(zip(*np.unique(exact, return_counts=True), strict=True))
    together = sum(error * cells[value] for value, error in metrics.relative_error_by_value(exact, estimate).items())
    assert together == pytest.approx(exact.size * metrics.mean_relative_error(exact, estimate))


def test_classes_together_have_the_relative_error_of_all_cells():
    rng = np.random.default_rng(1)
    exact = rng.integers(0, 700, size=(20, 30))
    estimate = exact + rng.normal(size=exact.shape)
    by_size = metrics.relative_error_by_size(exact, estimate)
    cells = {
        metrics.class_name(low, high): ((exact >= low) & (exact <= high)).sum()
        for low, high in metrics.size_classes(700)
    }
    assert sum(by_size[name] * cells[name] for name in by_size) == pytest.approx(
        exact.size * metrics.mean_relative_error(exact, estimate)
    )


def test_divergence_is_the_one_worked_by_hand():
    # With half a record in each cell: p = (1/2, 7/2) / 4, q = (1/2, 1/2), the estimate of -3 taken as 0.
    p = (1 / 8, 7 / 8)
    worked = p[0] * math.log(2 * p[0]) + p[1] * math.log(2 * p[1])
    assert metrics.kl_divergence(np.array([0, 3]), np.array([0.0, -3.0])) == pytest.approx(worked)
    # p = (1, 4) / 5, q = (2, 3) / 5.
    worked = 0.2 * math.log(1 / 2) + 0.8 * math.log(4 / 3)
    assert metrics.kl_divergence(np.array([0, 3]), np.array([1.0, 2.0]), smoothing=1) == pytest.approx(worked)


def test_divergence_is_finite_and_zero_only_for_the_same_distribution():
    exact = np.array([0, 0, 7, 1_000_000])
    assert metrics.kl_divergence(exact, exact.astype(float)) == 0
    assert 0 < metrics.kl_divergence(exact, exact[::-1].astype(float)) < math.inf
    assert 0 < metrics.kl_divergence(exact, np.full(4, -1e9)) < math.inf


def test_weighted_variance_is_the_one_worked_by_hand():
    # Groups (0, 4) with 4 records and variance 4, (1, 1, 4) with 6 records and variance 2.
    exact, groups = np.array([0, 1, 4, 1, 4]), np.array([0, 1, 0, 1, 1])
    assert metrics.weighted_variance(exact, groups) == pytest.approx(4 * 4 + 6 * 2)
    assert metrics.weighted_variance(exact, groups, by="cells") == pytest.approx(2 * 4 + 3 * 2)


def test_cells_of_their_own_have_no_variance():
    assert metrics.weighted_variance(EXACT, np.arange(4).reshape(2, 2)) == 0
