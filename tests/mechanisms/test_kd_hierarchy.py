"""The hierarchical kd-tree: its boxes, its shares, what it publishes, and what it refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphist_pipeline as dph
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget, BudgetMisuse
from dphist_pipeline.mechanisms import BadSetting, DomainRefused, build
from dphist_pipeline.solvers.trees.tree_consistency import consistent


class Scripted:
    """A journal that answers the choices from a list, draws the rest, and keeps it."""

    def __init__(self, *choices):
        self.choices, self.asked, self.sums = list(choices), [], []

    def answer(self, step, question, draw):
        self.asked.append((step, Fraction(question["scale"])))
        if question["door"] == "choose":
            return np.array(self.choices.pop(0))
        self.sums.append(draw())
        return self.sums[-1].copy()


def released(exact, epsilon=50, journal=None, sensitivity=1, **settings):
    exact = np.ascontiguousarray(exact, dtype=np.int64)
    counts = PrivateCounts(Domain.from_shape(exact.shape), sensitivity, lambda: exact.ravel(), journal)
    return build("kd_hierarchy", settings).release(counts, Budget(Fraction(epsilon)))


def test_boxes_worked_by_hand():
    journal = Scripted([4], [0])
    estimate = released(np.arange(10).reshape(2, 5), 1, journal, depth=3)
    # Five of ten cells, column by column, end in the middle of the third column: cut after three. Of the left six
    # one is before the cut: nearest is one column. The right box is two by two: cut along the first axis, no choice.
    # The third level has no choice either.
    assert estimate.groups.tolist() == [[0, 2, 2, 4, 5], [1, 3, 3, 6, 7]]
    assert [step for step, _ in estimate.charges] == [
        "median_1",
        "median_2",
        "median_3 (forfeited)",
        *(f"counts_level_{level}" for level in range(1, 5)),
    ]
    assert estimate.epsilon == 1
    parents = [[0, 0], [0, 0, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3]]
    leaves = consistent([sums.astype(float) for sums in journal.sums], [np.array(parent) for parent in parents])[-1]
    assert np.array_equal(estimate.values, (leaves / [1, 1, 2, 2, 1, 1, 1, 1])[estimate.groups])


def test_shares_and_noise_are_as_declared():
    journal = Scripted([3], [0, 0])
    estimate = released(np.arange(9), 10, journal, sensitivity=3, depth=2, structure_share="1/5")
    assert journal.asked == [
        *((f"median_{level}", Fraction(2 * 3)) for level in (1, 2)),
        *((f"counts_level_{level}", Fraction(3 * 3, 8)) for level in (1, 2, 3)),
    ]
    assert estimate.charges[0] == ("median_1", Fraction(1))
    assert estimate.charges[-1] == ("counts_level_3", Fraction(8, 3))


def test_medians_part_the_counts_in_half():
    exact = np.zeros((8, 30), dtype=int)
    exact[:, 20:] = 1000
    exact[6, :] += 3000
    estimate = released(exact, depth=1)
    # Of 170,000, a column holds 3,000, one of the last ten 11,000. Half of it ends in the third of eight cells of
    # column 22, so the nearer border is the one before it.
    assert estimate.groups[0].tolist() == [0] * 22 + [1] * 8


@pytest.mark.parametrize("shape", [(40,), (7, 9), (3, 4, 5), (2, 2, 2, 2, 2, 2)])
def test_without_noise_every_leaf_holds_the_sum_of_its_cells(shape):
    exact = np.arange(np.prod(shape)).reshape(shape) * 100
    estimate = released(exact)
    sizes = np.bincount(estimate.groups.ravel())
    sums = np.bincount(estimate.groups.ravel(), weights=exact.ravel())
    # At epsilon 50 over at most 8 levels, a scale below 0.3: noise beyond 8 has a probability below 10^-10.
    assert np.abs(estimate.values - (sums / sizes)[estimate.groups]).max() < 16
    for leaf in range(sizes.size):
        places = np.argwhere(estimate.groups == leaf)
        assert np.prod(np.ptp(places, axis=0) + 1) == sizes[leaf]  # a leaf is a box


@pytest.mark.parametrize(("shape", "levels"), [((1,), 1), ((2,), 2), ((2, 2), 3), ((1, 1, 1), 1), ((2, 1, 2), 3)])
def test_all_of_epsilon_goes_to_the_sums_where_there_is_no_median_to_choose(shape, levels):
    estimate = released(np.ones(shape))
    assert estimate.charges == tuple((f"counts_level_{level}", Fraction(50, levels)) for level in range(1, levels + 1))
    assert np.array_equal(np.unique(estimate.groups), np.arange(np.prod(shape)))


def test_deep_trees_end_with_single_cells():
    estimate = released(np.arange(12).reshape(3, 4), depth=16)
    assert np.array_equal(np.sort(estimate.groups, axis=None), np.arange(12))
    assert estimate.epsilon == 50


def test_flat_blocks_come_out_nearer_than_with_plain_noise_at_a_small_epsilon():
    exact = np.kron(np.random.default_rng(5).integers(10, 40, (2, 2)), np.ones((32, 32), dtype=int))

    def error(mechanism, **settings):
        run = dph.sanitize(exact, mechanism=mechanism, epsilon="0.02", sensitivity=1, **settings)
        return ((run.values - exact) ** 2).mean()

    # Measured: at most 0.01 of it in 200 runs.
    assert error("kd_hierarchy", depth=4) < 0.5 * error("geometric")


def test_refuses_seven_axes_and_shares_outside_the_range_before_any_data():
    build("kd_hierarchy", {}).check(Domain.from_shape((2,) * 6), 1, Fraction(1))
    with pytest.raises(DomainRefused, match="up to 6 axes, not 7"):
        build("kd_hierarchy", {}).check(Domain.from_shape((2,) * 7), 1, Fraction(1))
    plane = Domain.from_shape((64, 64))
    build("kd_hierarchy", {"depth": 4}).check(plane, 1, Fraction(2, 10**5))
    with pytest.raises(BudgetMisuse, match="median_1"):
        build("kd_hierarchy", {"depth": 4}).check(plane, 1, Fraction(1, 10**5))
    # A level of medians has epsilon 1 / 400, so noise of scale 2 · 20,000 · 400; one of sums 0.7 / 150.
    with pytest.raises(BudgetMisuse, match=r"median_1.*10\^7"):
        build("kd_hierarchy", {"depth": 4}).check(plane, 20_000, Fraction(1, 30))
    with pytest.raises(BudgetMisuse, match="each level of sums"):
        build("kd_hierarchy", {"depth": 4, "structure_share": "99/100"}).check(plane, 1, Fraction(1, 10**4))


@pytest.mark.parametrize("settings", [{"depth": 0}, {"depth": 17}, {"depth": "deep"}, {"structure_share": 1}], ids=str)
def test_settings_outside_what_is_offered_are_refused(settings):
    with pytest.raises(BadSetting):
        build("kd_hierarchy", settings)
