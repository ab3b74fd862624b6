"""The level that cells share: as exact as the noise allows, and none where noise explains it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dphist_pipeline.solvers.cells._count_prior import Sight, bin_edges, one_level_prior
from dphist_pipeline.solvers.cells._shared_level import sign_unit, sure_level


def noisy(counts, scale, draws):
    stay = 1 - math.exp(-1 / scale)
    return (counts + draws.geometric(stay, counts.size) - draws.geometric(stay, counts.size)).astype(float)


def test_the_mean_sign_stands_for_counts():
    counts, scale, draws = np.full(200_000, 3), 30.0, np.random.default_rng(9)
    assert sign_unit(scale) * np.sign(noisy(counts, scale, draws)).mean() == pytest.approx(3, rel=0.15)


@pytest.mark.parametrize(("scale", "level"), [(10.0, 5), (10.0, 400), (3.0, 40)])
def test_the_level_of_equal_cells_is_known_better_than_by_their_mean(scale, level):
    draws, cells = np.random.default_rng(2), 400
    found = np.array([sure_level(noisy(np.full(cells, level), scale, draws), scale) for _ in range(400)])
    of_the_mean = 2 * scale**2 / cells
    assert abs(found.mean() - level) < 0.25 * math.sqrt(of_the_mean)
    assert found.var() < 0.8 * of_the_mean  # the mean has 1, the best rule 0.5


def test_counts_that_are_seldom_one_have_their_mean_as_level():
    draws = np.random.default_rng(4)
    counts = (draws.random(20_000) < 0.3) * 1
    assert sure_level(noisy(counts, 1.0, draws), 1.0) == pytest.approx(0.3, abs=0.06)


def test_no_level_is_seen_in_noise():
    draws = np.random.default_rng(3)
    found = np.array([sure_level(noisy(np.zeros(100, dtype=int), 20.0, draws), 20.0) for _ in range(300)])
    assert (found > 0).mean() < 0.15 and found.min() == 0
    assert sure_level(np.full(9, -50.0), 20.0) == 0


def test_a_level_between_two_counts_is_the_mean_of_a_prior_of_both():
    prior = one_level_prior(Sight.of(np.arange(9.0), bin_edges(0, 9, 1.0), 1.0), 2.25, 1000)
    assert prior.atoms.tolist() == [2, 3]
    assert prior.atom_weights.tolist() == pytest.approx([0.75, 0.25], rel=1e-4)
    assert prior.atom_weights.sum() + prior.bin_weights.sum() == pytest.approx(1)
