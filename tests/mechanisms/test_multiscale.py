"""Multiscale: weighted sums of a line or a tree of a grid; intervals that hold, and means that are nearer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dphist_pipeline as dph
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells
from examples import mostly_soaked

COUNTS = np.zeros(300, dtype=np.int64)
COUNTS[40:60], COUNTS[::53] = 90, 700


def released(counts, epsilon="0.2"):
    return dph.sanitize(counts, mechanism="multiscale", epsilon=epsilon, sensitivity=2)


def test_intervals_of_sums_hold_and_narrower_ones_do_not(monkeypatch):
    """1,200 releases: 95 % that hold are refused, and 30 % less accepted, with a probability below 10^-9."""
    # Intervals belong to the unbiased estimates alone; the means cost 30 times as much.
    monkeypatch.setattr("dphist_pipeline.solvers.trees._line_posterior.weighted_means", lambda _: np.zeros(300))
    runs = [released(COUNTS) for _ in range(1_200)]
    unbiased = runs[0].unbiased
    assert isinstance(unbiased, NestedCells)
    off = np.array([run.unbiased.values - COUNTS for run in runs])
    for place in (slice(0, 1), slice(299, 300), slice(30, 77), slice(0, 300)):
        reach = unbiased.half_width_of_box([np.arange(300)[place]], Fraction(95, 100))
        missed = np.abs(off[:, place].sum(axis=1))
        assert stats.binom.cdf(int((missed <= reach).sum()), len(runs), 0.95) > 1e-9
        assert stats.binom.cdf(int((missed <= 0.7 * reach).sum()), len(runs), 0.95) < 1e-9


@pytest.mark.slow
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
def test_small_grids_are_noisy_cells_and_grids_of_two_axes_trees(shape, kind):
    run = released(np.full(shape, 50), "5")
    assert isinstance(run.unbiased, kind)
    assert run.values == pytest.approx(np.full(shape, 50), abs=40) and run.values.min() >= 0
    assert sum(part for _, part in run.charges) == 5


@pytest.mark.slow
def test_sums_of_a_line_are_chosen_for_its_questions():
    """Prefixes are what `ranges` is not chosen for; a tree knows no such choice."""
    ends = [np.arange(end) for end in range(1, 301)]

    def variance(workload):
        run = dph.sanitize(COUNTS, mechanism="multiscale", epsilon="1", sensitivity=1, workload=workload)
        assert run.unbiased.lines
        return np.mean([run.unbiased.variance_of_sum([end]) for end in ends])

    assert variance("prefixes") < 0.85 * variance("ranges")
    assert not released(np.full((40, 30), 50)).unbiased.lines


def test_counts_without_structure_are_the_unbiased_ones():
    """What no law of splits explains is as near as least squares of the same sums: here 0.05 noise scales apart."""
    counts = np.random.default_rng(11).integers(20_000, 90_000, 200)
    run = dph.sanitize(counts, mechanism="multiscale", epsilon="1", sensitivity=1)
    apart = run.values - run.unbiased.values
    assert np.sqrt(np.mean(apart**2)) < 0.5 * np.sqrt(run.unbiased.variance)
    assert abs(np.cumsum(apart)).max() < 2.0 * np.sqrt(run.unbiased.variance)


@pytest.mark.parametrize(("shape", "message"), [((300,), "an epsilon of at least 0.026"), ((40, 30), "each level")])
def test_noise_that_cannot_be_drawn_is_refused(shape, message):
    with pytest.raises(DphistError, match=message):
        dph.sanitize(np.zeros(shape, dtype=np.int64), mechanism="multiscale", epsilon="0.000001", sensitivity=1000)


def weighed(counts, epsilon, levels="weighed"):
    return dph.sanitize(counts, mechanism="multiscale", epsilon=epsilon, sensitivity=1, levels=levels)


@pytest.mark.slow
def test_weighed_levels_have_unequal_shares_that_add_up():
    shares = [part for _, part in weighed(np.full((40, 30), 50), "1/3").charges]
    assert shares == [Fraction(part, 3 * 256) for part in (16, 89, 151)]
    assert [part for _, part in weighed(np.full((16, 16), 50), "1/3").charges] == [Fraction(1, 3)]
    assert isinstance(weighed(np.full((16, 16), 50), "1").unbiased, NoisyCells)


def test_intervals_are_calibrated_to_the_widest_noise_that_a_box_may_hold():
    """That of the total, of scale 16, has a weight of 0.755 in the sum of all cells; other levels reach 2.3."""
    unbiased = weighed(np.zeros((64, 32), dtype=np.int64), "1").unbiased
    assert float(unbiased.scale) == pytest.approx(12.075, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", mostly_soaked(["0.1", "0.5"], [0]))
def test_intervals_of_boxes_hold_by_weighed_levels_and_narrower_ones_do_not(monkeypatch, epsilon):
    """1,200 releases: 95 % that hold are refused, and 30 % less accepted, with a probability below 10^-9."""
    monkeypatch.setattr("dphist_pipeline.solvers.trees.split_posterior.split_means", lambda *_: np.zeros((64, 32)))
    counts = np.arange(2048).reshape(64, 32)
    runs = [weighed(counts, epsilon) for _ in range(1_200)]
    unbiased = runs[0].unbiased
    assert isinstance(unbiased, NestedCells) and not unbiased.lines
    off = np.array([run.unbiased.values - counts for run in runs])
    for place in (np.s_[0:64, 0:32], np.s_[0:8, 8:16], np.s_[3:37, 5:20], np.s_[0:1, 0:1]):
        reach = unbiased.half_width_of_box([np.arange(side)[part] for side, part in zip((64, 32), place, strict=True)])
        missed = np.abs(off[:, *place].sum(axis=(1, 2)))
        assert stats.binom.cdf(int((missed <= reach).sum()), len(runs), 0.95) > 1e-9
        assert stats.binom.cdf(int((missed <= 0.7 * reach).sum()), len(runs), 0.95) < 1e-9


def test_lines_heed_no_levels(monkeypatch):
    """Neither a line of cells alone nor one that is too long for weighted sums."""
    monkeypatch.setattr(
        "dphist_pipeline.solvers.trees.split_posterior.split_means", lambda tree, *_: np.zeros(tree.shape)
    )
    for counts in (np.zeros(7, dtype=np.int64), np.zeros(5_000, dtype=np.int64)):
        equal = dph.sanitize(counts, mechanism="multiscale", epsilon="1", sensitivity=1)
        for levels in ("weighed", "overlapping"):
            assert weighed(counts, "1", levels).charges == equal.charges


def test_the_smallest_share_must_be_one_that_can_be_drawn():
    counts = np.zeros((64, 32), dtype=np.int64)
    dph.sanitize(counts, mechanism="multiscale", epsilon="0.00001", sensitivity=1)
    with pytest.raises(DphistError, match="each level"):
        weighed(counts, "0.00001")


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(40, 30), (60, 1), (24, 16, 4)])
def test_overlapping_sums_of_a_grid_are_those_of_workload_and_the_total(shape):
    run = weighed(np.full(shape, 50), "1/3", "overlapping")
    assert run.charges == (("total", Fraction(1, 48)), ("sums", Fraction(15, 48)))
    alone = dph.sanitize(np.full(shape, 50), mechanism="workload", epsilon="15/48", sensitivity=1)
    box = [np.arange(side // 2) for side in shape[:-1]] + [np.arange(1)]
    assert run.unbiased.lines == alone.unbiased.lines
    assert run.unbiased.variance_of_sum(box) == alone.unbiased.variance_of_sum(box)


@pytest.mark.slow
def test_the_total_of_overlapping_sums_is_known_by_its_own_draw():
    """What least squares of the sums says of it has more than twice the variance here."""
    counts = np.full((40, 30), 20)
    runs = [weighed(counts, "0.1", "overlapping") for _ in range(6)]
    off = [run.values.sum() - counts.sum() for run in runs]
    plain = [run.unbiased.values.sum() - counts.sum() for run in runs]
    assert np.mean(np.square(off)) < 0.5 * np.mean(np.square(plain))


def test_small_grids_and_long_axes_have_no_overlapping_sums(monkeypatch):
    monkeypatch.setattr(
        "dphist_pipeline.solvers.trees.split_posterior.split_means", lambda tree, *_: np.zeros(tree.shape)
    )
    for shape in ((6, 4), (4_097, 2)):
        counts = np.zeros(shape, dtype=np.int64)
        equal = dph.sanitize(counts, mechanism="multiscale", epsilon="1", sensitivity=1)
        assert weighed(counts, "1", "overlapping").charges == equal.charges


def test_overlapping_sums_need_an_epsilon_that_their_weights_can_be_drawn_by():
    counts = np.zeros((64, 32), dtype=np.int64)
    with pytest.raises(DphistError, match=r"multiscale.* needs an epsilon of at least 0.00044 for such axes"):
        weighed(counts, "0.0004", "overlapping")
