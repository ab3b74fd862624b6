"""DAWA: buckets of like cells, a tree over them, and what is refused before any data is opened."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphist_pipeline as dph
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.estimates.budget import BudgetMisuse
from dphist_pipeline.estimates.noisy import NestedSums
from dphist_pipeline.mechanisms import DomainRefused, build
from dphist_pipeline.solvers.trees.hilbert import hilbert_line
from dphist_pipeline.workbench.evaluation.workloads import random_boxes

# Levels that differ by far more than the noise, with one cell that stands out.
STEPS = np.repeat([0, 5000, 200, 9000], 64)
STEPS[40] = 70_000


def released(counts: np.ndarray, epsilon: str = "1", **settings: object) -> dph.Estimate:
    return dph.sanitize(counts, mechanism="dawa", epsilon=epsilon, sensitivity=1, **settings)


def test_buckets_end_where_counts_change_and_a_lone_cell_is_alone() -> None:
    groups = released(STEPS, "10").groups
    assert groups is not None
    edges = set((np.flatnonzero(np.diff(groups)) + 1).tolist())
    assert {40, 41, 64, 128, 192} <= edges
    assert np.bincount(groups)[groups[40]] == 1


def test_equal_cells_are_found_in_fewer_buckets_the_more_joining_is_worth() -> None:
    many = [released(np.full(1024, 7), joining=worth).groups.max() + 1 for worth in (0, 2, 8)]
    assert many[0] > 400 > 300 > many[1] > 30 > many[2]


def test_ranges_over_empty_cells_and_peaks_have_less_error_than_a_tree_of_cells() -> None:
    counts = np.zeros(2048, dtype=np.int64)
    counts[300:310] = counts[1700] = 50_000
    boxes = random_boxes((2048,), 1000)
    exact = boxes.sums(counts)

    def error(mechanism: str, **settings: object) -> float:
        made = [dph.sanitize(counts, mechanism=mechanism, epsilon="1/10", sensitivity=1, **settings) for _ in range(12)]
        return float(np.mean([(boxes.sums(one.values) - exact) ** 2 for one in made]))

    assert error("dawa", joining=2) < 0.8 * error("boost")


def test_the_sum_of_all_buckets_of_a_node_has_the_interval_of_its_one_draw() -> None:
    made = released(STEPS)
    assert isinstance(made.sums, NestedSums)
    assert made.groups is not None
    inside = np.bincount(made.groups)
    whole = made.sums.whole_boxes(inside)
    assert whole is not None and made.sums.sizes[whole].sum() == STEPS.size
    covered = [released(STEPS).range(None, None) for _ in range(60)]
    hits = sum(answer.ci_lower <= STEPS.sum() <= answer.ci_upper for answer in covered)
    assert hits >= 45  # of 60 at 95 %: fewer have a probability below 10^-7


def test_buckets_of_a_grid_are_stretches_of_the_hilbert_curve() -> None:
    counts = np.zeros((16, 16), dtype=np.int64)
    counts[:8, :8] = 1000
    groups = released(counts, "10").groups
    assert groups is not None
    along = groups.ravel()[hilbert_line((16, 16))]
    assert (np.diff(along) >= 0).all() and along.max() + 1 == np.unique(along).size
    assert not np.intersect1d(groups[:8, :8], groups[8:]).size
    assert not np.intersect1d(groups[:8, :8], groups[:, 8:]).size


@pytest.mark.slow
def test_a_million_cells_are_released_at_once() -> None:
    assert released(np.arange(1_000_000) // 1000).values.shape == (1_000_000,)


@pytest.mark.parametrize("shape", [(2,) * 7, (4097, 4097), (1 << 13, 1, 1, 1, 1)])
def test_grids_that_it_does_not_serve_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DomainRefused, match="dawa"):
        build("dawa", {}).check(Domain.from_shape(shape), 1, Fraction(1))


def test_an_epsilon_too_small_for_some_tree_is_refused_before_the_choice() -> None:
    mechanism, domain = build("dawa", {"structure_share": "1/2"}), Domain.from_shape((1000,))
    with pytest.raises(BudgetMisuse, match="level"):
        mechanism.check(domain, 1, Fraction(1, 10**6) * 2)
    with pytest.raises(BudgetMisuse, match="level"):
        mechanism.check(domain, 10, Fraction(1, 10**5))
    mechanism.check(domain, 1, Fraction(1, 10**4))


def test_an_epsilon_too_small_for_the_choice_of_buckets_is_refused_before_it() -> None:
    # The choice of buckets draws at twice the sensitivity: its scale is 20 / 1.5e-6, above 10^7, and 10 / 1.5e-6 below.
    mechanism, domain = build("dawa", {"structure_share": "1/10"}), Domain.from_shape((4,))
    with pytest.raises(BudgetMisuse, match="structure"):
        mechanism.check(domain, 10, Fraction(15, 10**6))
    mechanism.check(domain, 10, Fraction(25, 10**6))
