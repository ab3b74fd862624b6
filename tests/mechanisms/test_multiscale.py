"""Multiscale: a tree of any grid, intervals that hold on its unbiased estimates, and means that are nearer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dphist_pipeline as dph
from dphist_pipeline.estimates.budget import BudgetMisuse
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells

COUNTS = np.zeros(300, dtype=np.int64)
COUNTS[40:60], COUNTS[::53] = 90, 700


def released(counts, epsilon="0.2"):
    return dph.sanitize(counts, mechanism="multiscale", epsilon=epsilon, sensitivity=2)


def test_intervals_of_sums_hold_and_narrower_ones_do_not(monkeypatch):
    """1,200 releases: 95 % that hold are refused, and 30 % less accepted, with a probability below 10^-9."""
    # Intervals belong to the unbiased estimates alone; the means cost 30 times as much.
    monkeypatch.setattr("dphist_pipeline.solvers.trees.split_posterior.split_means", lambda *_: np.zeros(300))
    runs = [released(COUNTS) for _ in range(1_200)]
    unbiased = runs[0].unbiased
    assert isinstance(unbiased, NestedCells)
    off = np.array([run.unbiased.values - COUNTS for run in runs])
    for place in (slice(0, 1), slice(299, 300), slice(30, 77), slice(0, 300)):
        reach = unbiased.half_width_of_box([np.arange(300)[place]], Fraction(95, 100))
        missed = np.abs(off[:, place].sum(axis=1))
        assert stats.binom.cdf(int((missed <= reach).sum()), len(runs), 0.95) > 1e-9
        assert stats.binom.cdf(int((missed <= 0.7 * reach).sum()), len(runs), 0.95) < 1e-9


def test_means_of_ranges_are_nearer_than_unbiased_sums_where_much_is_empty():
    ranges = [slice(start, start + 40) for start in range(0, 260, 13)]
    near, plain = 0.0, 0.0
    for _ in range(20):
        run = released(COUNTS)
        for place in ranges:
            near += (run.values[place].sum() - COUNTS[place].sum()) ** 2
            plain += (run.unbiased.values[place].sum() - COUNTS[place].sum()) ** 2
    assert near < 0.7 * plain


@pytest.mark.parametrize(("shape", "kind"), [((1,), NoisyCells), ((20,), NoisyCells), ((40, 30), NestedCells)])
def test_small_grids_are_noisy_cells_and_large_ones_trees(shape, kind):
    run = released(np.full(shape, 50), "5")
    assert isinstance(run.unbiased, kind)
    assert run.values == pytest.approx(np.full(shape, 50), abs=40) and run.values.min() >= 0
    assert sum(part for _, part in run.charges) == 5


def test_a_share_that_no_level_can_have_is_refused():
    with pytest.raises(BudgetMisuse, match="each level of the tree"):
        dph.sanitize(COUNTS, mechanism="multiscale", epsilon="0.000001", sensitivity=1000)
