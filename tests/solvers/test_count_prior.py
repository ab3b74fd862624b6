"""Sums over priors against brute force, better likelihoods, and posterior means against Bayes' theorem."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.cells._count_prior import (
    CountPrior,
    Sight,
    add_atoms,
    back_to_atoms,
    bin_edges,
    bin_sums,
    crowded_prior,
    crowds,
    reweighted_prior,
    sparse_prior,
)
from dphist_pipeline.solvers.cells.expert_rules import relative_centres
from examples import examples

PLACES = st.lists(st.integers(-60, 200), min_size=1, max_size=12, unique=True).map(sorted)
SCALES = st.sampled_from([0.3, 1.0, 7.0, 100.0])


def kernel(points, places, scale):
    return np.exp(-np.abs(np.subtract.outer(points, places)) / scale)


@examples(200)
@given(PLACES, PLACES, SCALES)
def test_sums_over_atoms_there_and_back_equal_brute_force(points, atoms, scale):
    points, atoms = np.array(points, float), np.array(atoms, float)
    weights, sums = np.arange(1.0, atoms.size + 1), np.zeros((points.size, 2))
    add_atoms(sums, points, atoms, weights, scale)
    every = kernel(points, atoms, scale)
    assert sums[:, 0] == pytest.approx(every @ weights, rel=1e-9, abs=1e-200)
    moments = (every * -np.subtract.outer(points, atoms)) @ weights
    assert sums[:, 1] == pytest.approx(moments, rel=1e-9, abs=1e-9 * np.abs(moments).max() + 1e-200)
    ratios = np.arange(2.0, points.size + 2)
    assert back_to_atoms(ratios, points, atoms, scale) == pytest.approx(ratios @ every, rel=1e-9, abs=1e-200)


@examples(200)
@given(PLACES, SCALES, st.sampled_from([0, -40]))
def test_means_over_bins_equal_brute_force(points, scale, lowest):
    points, edges = np.array(points, float), bin_edges(lowest, 150, scale)
    low, mass, moment = bin_sums(points, edges, scale, 30.0)
    assert edges[0] <= lowest and edges[-1] > 150
    for place, point in enumerate(points):
        for column in range(min(mass.shape[1], edges.size - 1 - low[place])):
            inside = np.arange(edges[low[place] + column], edges[low[place] + column + 1])
            near = np.exp(-np.abs(inside - point) / scale)
            assert mass[place, column] == pytest.approx(near.mean(), rel=1e-9, abs=1e-200)
            expected = (near * (inside - point)).mean()
            assert moment[place, column] == pytest.approx(expected, rel=1e-6, abs=1e-9 * scale)


def test_crowds_count_the_cells_within_reach():
    found = crowds(np.array([0.0, 2.0, 3.0, 9.0]), np.array([1.0, 2.0, 4.0, 8.0]), 2.5)
    assert found.tolist() == [3, 7, 6, 8]


def sight_of(counts, scale, seed=2):
    draws, stay = np.random.default_rng(seed), 1 - np.exp(-1 / scale)
    noisy = counts + draws.geometric(stay, counts.size) - draws.geometric(stay, counts.size)
    points, cells = np.unique(noisy.astype(float), return_counts=True)
    return Sight.of(points, bin_edges(0, points[-1], scale), scale), cells.astype(float)


COUNTS = np.repeat([0, 0, 0, 5, 40, 300], 100)


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_the_posterior_mean_follows_bayes_theorem(scale):
    sight, cells = sight_of(COUNTS, scale)
    prior = sparse_prior(sight, cells, 4.0, False)
    likely, means = prior.posterior(sight)
    places, weights = [prior.atoms], [prior.atom_weights]
    for weight, low, high in zip(prior.bin_weights, sight.edges, sight.edges[1:], strict=False):
        places.append(np.arange(low, high))
        weights.append(np.full(int(high - low), weight / (high - low)))
    every = kernel(sight.points, np.concatenate(places), scale) * np.concatenate(weights)
    assert likely == pytest.approx(every.sum(axis=1), rel=1e-6)
    assert means == pytest.approx(every @ np.concatenate(places) / every.sum(axis=1), rel=1e-6, abs=1e-6)
    assert prior.atom_weights.sum() + prior.bin_weights.sum() == pytest.approx(1)


def log_likelihood(prior, sight, cells):
    return float(cells @ np.log(prior.likelihoods(sight)[:, 0]))


def test_priors_of_more_freedom_are_likelier_and_find_the_shared_values():
    sight, cells = sight_of(COUNTS, 1.0)
    lean, sparse = (sparse_prior(sight, cells, 6.0, rule) for rule in (True, False))
    crowded = crowded_prior(sight, cells)
    even = CountPrior(np.zeros(1), np.array([0.5]), np.full(sight.edges.size - 1, 0.5 / (sight.edges.size - 1)))
    alone = log_likelihood(even, sight, cells)
    reached = [log_likelihood(prior, sight, cells) for prior in (lean, sparse, crowded)]
    assert reached == sorted(reached) and reached[1] > alone + 100
    assert {0, 40, 300} <= set(sparse.atoms) and sparse.atoms.size < 12
    assert {0, 5, 40, 300} <= set(crowded.atoms[crowded.atom_weights > 0.04])


def test_a_group_moves_the_weights_and_its_size_decides_how_far():
    sight, cells = sight_of(COUNTS, 1.0)
    prior = sparse_prior(sight, cells, 6.0, False)
    empty = Sight.of(np.zeros(1), sight.edges, 1.0)
    few, many = (reweighted_prior(prior, empty, np.array([number]), 20.0) for number in (2.0, 2000.0))
    zero = int(np.searchsorted(prior.atoms, 0))
    assert prior.atom_weights[zero] < few.atom_weights[zero] < 0.6 < 0.85 < many.atom_weights[zero]


@pytest.mark.slow
@examples(100)
@given(st.lists(st.integers(-6, 60), min_size=1, max_size=5), st.sampled_from([0, 9]), st.sampled_from([1.0, 2.0]))
def test_relative_centres_minimise_the_expected_relative_error(points, level, scale):
    edges = bin_edges(-9.0 if level else 0.0, 60, scale)
    bins = np.arange(1.0, edges.size)
    atoms, atom_weights = np.array([0.0, 7.0]), np.array([9.0, 4.0])
    points = np.array(points, float)
    found = relative_centres(points, np.full(points.size, float(level)), atoms, atom_weights, edges, bins, scale)
    places = np.arange(edges[0], edges[-1])
    prior = (bins / np.diff(edges))[np.searchsorted(edges, places, side="right") - 1]
    prior[np.searchsorted(places, atoms)] += atom_weights
    counts = places + level
    for point, centre in zip(points, found, strict=True):
        chance = np.where(counts >= 0, prior * np.exp(-np.abs(places - point) / scale), 0.0) / np.maximum(1, counts)
        errors = np.abs(np.subtract.outer(counts, counts)) @ chance
        assert np.abs(centre - counts) @ chance <= errors[counts >= 0].min() * (1 + 1e-6)
