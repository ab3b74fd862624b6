"""Boxes that are cut between draws: how they are numbered, and means against an enumeration of all counts."""

from __future__ import annotations

import numpy as np
import pytest

from dphist_pipeline.solvers.trees import _split_kernels as kernels
from dphist_pipeline.solvers.trees.refined_boxes import RefinedBoxes

MOST = 36
RNG = np.random.default_rng


def begun(shape, parts, noisy=100.0, scale=3.0):
    return RefinedBoxes.of_total(shape, np.array([noisy]), scale, parts)


@pytest.mark.parametrize("shape", [(1,), (7,), (16, 16), (13, 6), (3, 1, 9)])
def test_boxes_fill_the_grid_and_their_parts_follow_each_other(shape):
    boxes = begun(shape, 4)
    for seed in range(3):
        many = boxes.numbers.size
        assert np.unique(boxes.groups).tolist() == list(range(many))
        wanted = RNG(seed).integers(0, 4, many)
        cut = boxes.measured(np.zeros(many), 1.0).cut(wanted)
        assert (np.diff(cut.parents) >= 0).all() and (cut.parents[cut.groups] == boxes.groups).all()
        for box in range(cut.numbers.size):
            held = np.nonzero(cut.groups == box)
            assert held[0].size == np.prod([np.ptp(axis) + 1 for axis in held])
        assert (np.bincount(cut.parents) <= 2**wanted).all()
        boxes = cut
    assert boxes.cut(np.full(boxes.numbers.size, 60)).numbers.size == np.prod(shape)


def test_a_box_is_halved_as_often_as_is_asked():
    boxes = begun((32, 32), 16)
    assert np.bincount(boxes.groups.ravel()).tolist() == [64] * 16
    boxes = boxes.measured(np.zeros(16), 1.0).cut(np.arange(16) % 5)
    assert np.bincount(boxes.parents).tolist() == [2 ** (place % 5) for place in range(16)]


def near(counts, noisy, scale):
    """The likelihood of a noisy count, by discrete Laplace noise."""
    return np.exp(-np.abs(counts - noisy) / scale)


def test_means_are_those_of_all_counts_with_a_box_that_was_cut_and_one_that_was_not(monkeypatch):
    monkeypatch.setattr("dphist_pipeline.solvers.trees._halved_boxes.ROUNDS", 0)  # all laws have the same weight
    boxes = begun((4,), 2, noisy=19.0, scale=4.0).measured(np.array([14.0, 3.0]), 2.5).cut(np.array([1, 0]))
    assert boxes.groups.tolist() == [0, 1, 2, 2]
    found = boxes.measured(np.array([13.0, 4.0, 5.0]), 2.5).means()

    table = kernels.mixed_table(kernels.law_tables(1.0), np.full((kernels.CLASSES, kernels.LAWS), 1 / kernels.LAWS))
    one, two, other = np.meshgrid(*[np.arange(MOST)] * 3, indexing="ij")
    both = one + two
    chance = near(both + other, 19, 4) * near(both, 14, 2.5) * near(one, 13, 2.5) * near(two, 4, 2.5)
    chance *= near(other, 3, 2.5) * near(other, 5, 2.5)
    chance *= table[both + other, both] * table[both, one]
    wanted = [float((chance * each).sum() / chance.sum()) for each in (one, two, other)]
    assert found == pytest.approx(wanted, rel=2e-3)


def test_means_are_near_to_what_was_drawn_where_there_is_hardly_any_noise():
    counts = RNG(5).poisson(40, (8, 8))
    boxes = begun((8, 8), 4, counts.sum(), 0.1)
    for _ in range(3):
        drawn = np.bincount(boxes.groups.ravel(), counts.ravel())
        boxes = boxes.measured(drawn, 0.1).cut(np.full(drawn.size, 2))
    boxes = boxes.measured(np.bincount(boxes.groups.ravel(), counts.ravel()), 0.1)
    assert boxes.means()[boxes.groups] == pytest.approx(counts, abs=0.05)
