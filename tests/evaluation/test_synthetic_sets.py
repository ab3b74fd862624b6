"""Synthetic sets against the statistics that Chen et al. 2024 print of the real ones (table 1)."""

from __future__ import annotations

import numpy as np
import pytest
from error_codes import coded

from dphist_pipeline.errors import Refused
from dphist_pipeline.workbench.evaluation.synthetic_sets import SETS, synthetic_counts

# Set: cells, mean, variance, smallest, largest; and the decimals that are printed of the variance.
PRINTED = {
    "waitakere": (7725, 24.13, 4764.57, 0, 467, 2),
    "search_log": (32_768, 10.25, 577.31, 0, 496, 2),
    "net_trace": (65_536, 0.39, 91.01, 0, 1423, 2),
    "social_network": (11_342, 59.49, 2995, 1, 1678, 0),
}


def test_every_set_of_the_table_has_a_stand_in():
    assert set(SETS) == set(PRINTED)


@pytest.mark.parametrize("name", PRINTED)
def test_size_mean_variance_and_range_are_the_printed_ones(name):
    cells, mean, variance, smallest, largest, decimals = PRINTED[name]
    counts = synthetic_counts(name)
    assert (counts.shape, counts.dtype) == ((cells,), np.int64)
    assert round(float(counts.mean()), 2) == mean
    assert round(float(counts.var()), decimals) == variance
    assert (counts.min(), counts.max()) == (smallest, largest)


@pytest.mark.parametrize("name", PRINTED)
def test_the_sum_of_squares_is_as_near_as_whole_numbers_allow(name):
    wanted, counts = SETS[name], synthetic_counts(name)
    squares = wanted.cells * wanted.variance + wanted.total**2 / wanted.cells
    # A number and its square are both odd or both even, so sums of squares of one total lie 2 apart.
    assert counts.sum() == wanted.total and abs((counts**2).sum() - squares) <= 2


@pytest.mark.parametrize("name", PRINTED)
def test_is_the_same_every_time_and_nobody_can_change_it(name):
    first = synthetic_counts(name)
    first[0] += 5
    assert np.array_equal(synthetic_counts(name), synthetic_counts(name)) and not np.array_equal(
        first, synthetic_counts(name)
    )


@pytest.mark.parametrize("name", PRINTED)
def test_small_bins_prevail(name):
    counts = synthetic_counts(name)
    assert np.median(counts) < counts.mean() and (counts < counts.mean()).mean() > 0.6
    assert np.sort(counts)[-counts.size // 10 :].sum() > 0.3 * counts.sum()


def test_neighbours_are_alike_in_time_and_nowhere_else():
    def likeness(name):
        counts = synthetic_counts(name).astype(float)
        return np.corrcoef(counts[:-1], counts[1:])[0, 1]

    assert likeness("search_log") > 0.5
    assert all(abs(likeness(name)) < 0.1 for name in PRINTED if name != "search_log")


def test_an_unknown_set_is_refused_with_the_nearest_name():
    with pytest.raises(Refused, check=coded("unknown_synthetic_set"), match="Did you mean 'waitakere'"):
        synthetic_counts("waitakeri")
