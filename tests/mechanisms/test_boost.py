"""Boost: a tree of any shape, long ranges with less noise, and files without error bars."""

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
from dphist_pipeline.domain import Domain
from dphist_pipeline.mechanisms import BadSetting, build
from dphist_pipeline.mechanisms.boost import Boost
from dphist_pipeline.privacy.budget import Budget, BudgetMisuse
from dphist_pipeline.privacy.private_counts import PrivateCounts
from dphist_pipeline.publishing.tables import write_groups, write_histogram

DATA = Path(os.environ.get("DPHIST_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))


def boosted(exact, epsilon, branching=2):
    counts = PrivateCounts(Domain.from_shape(exact.shape), 1, lambda: exact.astype(np.int64))
    return Boost(branching).release(counts, Budget(Fraction(epsilon)))


@pytest.mark.parametrize("branching", [2, 3, 10, 10**9])
@pytest.mark.parametrize("cells", [1, 2, 3, 8, 9, 10, 81, 82, 101])
def test_without_noise_the_cells_come_back_from_a_tree_of_any_shape(branching, cells):
    exact = np.arange(cells) * 1000 + 7
    estimate = boosted(exact, 50, branching=branching)
    # At epsilon 50 shared by up to 8 levels, noise beyond 6 has a probability below 10^-14.
    assert np.abs(estimate.values - exact).max() < 8
    levels = 1
    while branching ** (levels - 1) < cells:
        levels += 1
    assert estimate.charges == tuple((f"counts_level_{level}", Fraction(50, levels)) for level in range(1, levels + 1))


def test_ranges_of_medcost_over_500_cells_carry_less_noise_than_noisy_cells():
    file = DATA / "medcost_4096.parquet"
    if not file.exists():
        pytest.skip(f"no data at {DATA}; set DPHIST_DATA to the folder that holds {file.name}")
    exact = pl.read_parquet(file)["count"].to_numpy()
    assert exact.size == 4096
    lengths = np.array([501, 1001, 2001])

    def errors(values):
        """Mean squared error of every range, for each length."""
        off = np.cumsum(np.append(0.0, values - exact))
        return np.array([((off[length:] - off[:-length]) ** 2).mean() for length in lengths])

    runs, epsilon = range(150), Fraction(1, 10)
    trees = sum(errors(boosted(exact, epsilon).values) for _ in runs)
    cells = sum(errors(dph.sanitize(exact, mechanism="geometric", epsilon=epsilon, sensitivity=1).values) for _ in runs)
    # The ratios are about 0.73, 0.40 and 0.21, with a standard deviation of 0.015 each.
    assert (trees < np.array([1.0, 0.65, 0.4]) * cells).all()


def test_refuses_a_share_of_a_level_that_the_sampler_cannot_serve():
    line = Domain.from_shape((4096,))
    Boost().check(line, 1, Fraction(13, 10**6))
    with pytest.raises(BudgetMisuse, match="each level of the tree"):
        Boost().check(line, 1, Fraction(12, 10**6))
    with pytest.raises(BudgetMisuse, match="scale"):
        Boost().check(line, 1000, Fraction(1, 1000))


def test_a_tree_branches_at_least_in_two():
    with pytest.raises(BadSetting, match="branching"):
        build("boost", {"branching": 1})


def test_the_published_tables_have_no_error_bars_and_say_so_with_nulls(tmp_path):
    estimate = boosted(np.arange(5), 1)
    write_histogram(estimate, tmp_path / "histogram.parquet")
    write_groups(estimate, tmp_path / "groups.parquet")
    cells = pq.read_table(tmp_path / "histogram.parquet")
    assert cells["estimate"].to_numpy().tolist() == estimate.values.tolist()
    for name in ("unbiased_estimate", "ci_lower", "ci_upper", "group_id"):
        assert cells[name].null_count == 5
    groups = pq.read_table(tmp_path / "groups.parquet")
    assert groups.num_rows == 1
    assert groups["noise_scale"].null_count == groups["noise_variance"].null_count == 1
    answer = estimate.box()
    assert answer.basis == "noise_only" and math.isnan(answer.lower) and math.isnan(answer.upper)
