"""Boost: trees of any shape over any number of axes, large boxes with less noise, and intervals that hold."""

from __future__ import annotations

import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import dphist_pipeline as dph
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget, BudgetMisuse
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells
from dphist_pipeline.mechanisms import BadSetting, build
from dphist_pipeline.mechanisms.boost import Boost
from dphist_pipeline.publishing.parquet_tables import write_groups, write_histogram
from examples import mostly_soaked

DATA = Path(os.environ.get("DPHIST_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def boosted(exact, epsilon, branching="auto"):
    counts = PrivateCounts(Domain.from_shape(exact.shape), 1, lambda: exact.ravel().astype(np.int64))
    return Boost(branching).release(counts, Budget(Fraction(epsilon)))


@pytest.mark.parametrize("branching", [2, 3, 10, 10**9])
@pytest.mark.parametrize("shape", [(2,), (3,), (8,), (9,), (10,), (81,), (82,), (101,), (5, 3), (2, 3, 4), (2,) * 6])
def test_without_noise_the_cells_come_back_from_a_tree_of_any_shape(branching, shape):
    exact = np.arange(math.prod(shape)).reshape(shape) * 1000 + 7
    estimate = boosted(exact, 50, branching=branching)
    # At epsilon 50 shared by up to 8 levels, noise beyond 6 has a probability below 10^-14.
    assert np.abs(estimate.values - exact).max() < 8
    levels = 1
    while branching ** (levels - 1) < max(shape):
        levels += 1
    assert estimate.charges == tuple((f"counts_level_{level}", Fraction(50, levels)) for level in range(1, levels + 1))
    assert estimate.unbiased.values is estimate.values
    assert isinstance(estimate.unbiased, NestedCells)
    assert estimate.unbiased.scale == Fraction(levels, 50)


@pytest.mark.parametrize(("shape", "branching"), [((1,), 2), ((1, 1), 7), ((40,), "auto"), ((3, 4, 100), "auto")])
def test_where_no_tree_pays_it_is_noisy_cells(shape, branching):
    estimate = boosted(np.zeros(shape, dtype=int), 1, branching)
    assert isinstance(estimate.unbiased, NoisyCells)
    assert (estimate.unbiased.scale, estimate.charges) == (1, (("counts", 1),))
    assert estimate.box().basis == "unbiased"


def range_errors(values, exact, lengths):
    """Mean squared error of every range, for each length."""
    off = np.cumsum(np.append(0.0, values - exact))
    return np.array([((off[length:] - off[:-length]) ** 2).mean() for length in lengths])


@pytest.mark.slow
def test_ranges_of_medcost_over_500_cells_carry_less_noise_than_noisy_cells():
    file = DATA / "medcost_4096.parquet"
    if not file.exists():
        pytest.skip(f"no data at {DATA}; set DPHIST_DATA to the folder that holds {file.name}")
    exact = pl.read_parquet(file)["count"].to_numpy()
    assert exact.size == 4096
    lengths, runs, epsilon = [501, 1001, 2001], range(60), Fraction(1, 10)

    def mean_errors(mechanism, settings):
        found = [dph.sanitize(exact, mechanism=mechanism, epsilon=epsilon, sensitivity=1, **settings) for _ in runs]
        return sum(range_errors(one.values, exact, lengths) for one in found)

    cells = mean_errors("geometric", {})
    # By the law of the noise: 0.73, 0.40 and 0.21 in a binary tree, 0.21, 0.12 and 0.08 in the best one.
    assert (mean_errors("boost", {"branching": 2}) < np.array([1.1, 0.7, 0.45]) * cells).all()
    assert (mean_errors("boost", {}) < np.array([0.4, 0.25, 0.17]) * cells).all()


CASES = [((64,), 4), ((11,), 2), ((200,), "auto"), ((6, 5), 2)]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "branching"), mostly_soaked(CASES, [3]), ids=str)
def test_releases_vary_as_their_covariance_says(shape, branching):
    """Of a cell and of three boxes, within 30 % by 2,500 releases: 6.7 standard errors of a variance, or more."""
    exact = np.arange(math.prod(shape)).reshape(shape)
    boxes = [
        [np.zeros(1, dtype=int)] * len(shape),
        [np.arange(size) for size in shape],
        [np.arange(size // 4, size - size // 3) for size in shape],
        [np.arange(0, size, 2) for size in shape],
    ]
    runs, law = 2500, None
    found = np.empty((runs, len(boxes)))
    masks = np.zeros((len(boxes), *shape))
    for mask, box in zip(masks, boxes, strict=True):
        mask[np.ix_(*box)] = 1
    for run in range(runs):
        law = boosted(exact, 1, branching).unbiased
        found[run] = masks.reshape(len(boxes), -1) @ (law.values - exact).ravel()
    stated = np.array([law.variance_of_sum(box) for box in boxes])
    measured = (found**2).mean(axis=0)
    padded = any(size % width for size, width in zip(shape, law.shared[0].widths, strict=True))
    assert (measured < 1.3 * stated).all()
    assert (measured > (0.45 if padded else 0.7) * stated).all()
    # Unbiased: within six and a half standard errors of what may be.
    assert (np.abs(found.mean(axis=0)) < 6.5 * np.sqrt(stated / runs)).all()
    reaches = [law.half_width_of_box(box) for box in boxes]
    held = (np.abs(found) <= reaches).mean(axis=0)
    assert (held > 0.95 - 6.5 * math.sqrt(0.95 * 0.05 / runs)).all()
    assert (np.abs(found) <= 0.7 * np.array(reaches)).mean(axis=0).min() < 0.95


def test_refuses_a_share_of_a_level_that_the_sampler_cannot_serve():
    line = Domain.from_shape((4096,))
    for branching, levels in (("auto", 3), (2, 13)):
        Boost(branching).check(line, 1, Fraction(levels, 10**6))
        with pytest.raises(BudgetMisuse, match="each level of the tree"):
            Boost(branching).check(line, 1, Fraction(levels, 10**6) * Fraction(99, 100))
    with pytest.raises(BudgetMisuse, match="scale"):
        Boost().check(line, 10_000, Fraction(1, 1000))


@pytest.mark.parametrize("branching", [1, 0, "most", 2.5])
def test_a_tree_branches_at_least_in_two(branching):
    with pytest.raises(BadSetting, match="branching"):
        build("boost", {"branching": branching})


def test_the_tree_is_a_function_of_the_grid_alone():
    """Whatever epsilon, sensitivity and counts are, so that all periods of a release have the same."""
    exact = np.arange(4096)
    shapes = {
        tuple(part.widths for part in boosted(exact * times, epsilon).unbiased.shared)
        for epsilon in (Fraction(1, 1000), 8)
        for times in (0, 10**9)
    }
    assert shapes == {((256,), (16,), (1,))}


def test_the_published_tables_have_error_bars_for_every_cell(tmp_path):
    estimate = boosted(np.arange(5) * 100, 1, branching=2)
    write_histogram(estimate, tmp_path / "histogram.parquet")
    write_groups(estimate, tmp_path / "groups.parquet")
    cells = pq.read_table(tmp_path / "histogram.parquet")
    assert cells["estimate"].to_numpy().tolist() == estimate.values.tolist()
    assert cells["unbiased_estimate"].to_numpy().tolist() == estimate.values.tolist()
    variance = sum(part.coefficient for part in estimate.unbiased.shared)
    # Four levels share epsilon; as many deviations as one draw and a record more reaches.
    deviation = math.sqrt(noise_law(Fraction(4)).variance)
    reach = (noise_law(Fraction(4)).half_width(Fraction(95, 100)) + 1) / deviation * math.sqrt(variance)
    for name, sign in (("ci_lower", -1), ("ci_upper", 1)):
        assert cells[name].to_numpy() == pytest.approx(estimate.values + sign * reach, rel=1e-12)
    assert cells["group_id"].null_count == 5
    (group,) = pq.read_table(tmp_path / "groups.parquet").to_pylist()
    assert group == {"group_id": 0, "cells": 5, "noise_scale": 4.0, "noise_variance": pytest.approx(variance)}
    third = estimate.box(axis_0=(2, 3)) if estimate.domain.axes[0].name == "axis_0" else estimate.range(2, 3)
    assert (third.basis, third.cells) == ("linear", 1)
    assert third.ci_upper == pytest.approx(cells["ci_upper"].to_numpy()[2], rel=1e-12)
