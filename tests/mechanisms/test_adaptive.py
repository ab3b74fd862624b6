"""Empirical Bayes mechanisms: resumed releases, awkward counts, what they find, and errors beside plain noise."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphist_pipeline as dph
from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import BinnedAxis, CategoricalAxis, Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.mechanisms._experts import halves
from dphist_pipeline.solvers.trees import _split_kernels as kernels
from dphist_pipeline.solvers.trees._split_surroundings import Surroundings

NAMES = ("bayes", "adaptive")
WAYS = [(name, objective) for name in NAMES for objective in ("absolute", "relative")]
SPIKES = np.where(np.arange(400) % 40 == 0, 300, 0)
WAVE = np.rint(2000 + 1900 * np.sin(np.arange(600) / 150)).astype(int)


class Frozen:
    """A journal that gives the same answer every time, whatever is behind the measurement."""

    def __init__(self, answer: np.ndarray) -> None:
        self.kept = answer

    def answer(self, step, question, draw):
        return self.kept.copy()


def replayed(name, objective, answer, shape, epsilon=Fraction(1)):
    domain, journal = Domain.from_shape(shape), Frozen(np.asarray(answer, dtype=np.int64))
    counts = PrivateCounts(domain, 1, lambda: np.zeros(domain.cells, dtype=np.int64), journal)
    return mechanisms.build(name, {"objective": objective}).release(counts, Budget(epsilon))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "objective"), WAYS)
def test_whoever_resumes_arrives_at_the_same_bytes(name, objective):
    noisy = np.random.default_rng(1).integers(-9, 60, 120)
    first, again = (replayed(name, objective, noisy, (12, 10)) for _ in range(2))
    assert first.values.tobytes() == again.values.tobytes()
    assert first.findings == again.findings


def test_the_halves_follow_from_the_noisy_counts_alone_and_differ_with_them():
    noisy = np.arange(4000.0)
    words = halves(NoisyCells(noisy, Fraction(1)))
    assert np.array_equal(words, halves(NoisyCells(noisy.reshape(40, 100), Fraction(7))))
    noisy[17] += 1
    assert (words != halves(NoisyCells(noisy, Fraction(1)))).all()
    assert 1800 < (words & np.uint64(1)).sum() < 2200


LARGE = st.sampled_from([0, 0, 1, 7, 1000, 10**12, 2**52, -(2**52)]) | st.integers(-50, 50)
SHAPES = st.sampled_from([(1,), (2,), (3,), (7,), (1, 1), (5, 1), (3, 4), (2, 3, 2)])


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.data(), st.sampled_from(WAYS), SHAPES, st.sampled_from([Fraction(1, 1000), Fraction(1), Fraction(20)]))
def test_any_answer_of_the_measurement_gives_finite_estimates_and_whole_parts(data, way, shape, epsilon):
    cells = int(np.prod(shape))
    answer = data.draw(st.lists(LARGE, min_size=cells, max_size=cells))
    made = replayed(*way, answer, shape, epsilon)
    assert np.isfinite(made.values).all()
    assert made.unbiased.values.ravel().tolist() == answer
    assert sum(one.weight for one in made.findings) == pytest.approx(1)
    assert min(one.weight for one in made.findings) >= 0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", [0, 40])
def test_equal_counts_cost_a_fraction_of_plain_noise(name, level):
    made = dph.sanitize(np.full(2000, level), mechanism=name, epsilon="1/10", sensitivity=1)
    assert ((made.values - level) ** 2).mean() < 0.02 * made.unbiased.variance


def mean_error(name, counts, runs=2, epsilon="1/5"):
    made = (dph.sanitize(counts, mechanism=name, epsilon=epsilon, sensitivity=1) for _ in range(runs))
    return np.mean([((one.values - counts) ** 2).mean() for one in made])


@pytest.mark.slow
def test_adaptive_uses_neighbours_where_they_are_alike_and_bayes_does_not():
    # Plain noise has 50. Hardly two cells of the wave are equal, so values tell little; neighbours are close.
    assert 2 * mean_error("adaptive", WAVE) < mean_error("bayes", WAVE)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_lone_spikes_among_empty_cells_stay(name):
    assert mean_error(name, SPIKES) < 12
    shuffled = np.random.default_rng(3).permutation(SPIKES)
    assert mean_error(name, shuffled) < 12


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_relative_objective_has_the_smaller_relative_error(name):
    counts = np.random.default_rng(5).negative_binomial(0.3, 0.02, 600)

    def relative(objective):
        made = dph.sanitize(counts, mechanism=name, epsilon="1/10", sensitivity=1, objective=objective)
        return (np.abs(made.values - counts) / np.maximum(1, counts)).mean()

    assert np.mean([relative("relative") for _ in range(2)]) < 0.8 * np.mean([relative("absolute") for _ in range(2)])


def test_along_categories_whole_lines_are_neighbours_and_never_single_steps():
    axes = (
        BinnedAxis("age", "age", tuple(map(float, range(9)))),
        CategoricalAxis("ward", "ward", ("a", "b", "c", "d")),
    )
    counts = PrivateCounts(Domain(axes), 1, lambda: np.arange(32, dtype=np.int64))
    names = {one.name for one in mechanisms.build("adaptive", {}).release(counts, Budget(Fraction(1))).findings}
    assert {"local ±1 along age", "smooth line along ward", "values", "cells"} <= names
    assert "local ±1 along ward" not in names


@pytest.mark.slow
def test_with_few_records_hardly_more_is_published_than_that_most_cells_are_empty():
    # Plain noise has 200. A model of many counts would be fitted to noise; the simple one has to stay.
    counts = np.zeros(512, dtype=int)
    counts[::20] = 1
    assert np.median([mean_error("adaptive", counts, runs=1, epsilon="1/10") for _ in range(3)]) < 0.5


def test_the_level_of_the_surroundings_is_found_where_no_cell_says_much():
    # Plain noise has 20,000, no record at all 4,500, one level for all cells 2,000.
    counts = np.where(np.arange(1200) < 600, 90, 0)
    noisy = counts + np.random.default_rng(8).laplace(0, 100, 1200)
    made = replayed("adaptive", "absolute", np.rint(noisy), (1200,), Fraction(1, 100))
    assert ((made.values - counts) ** 2).mean() < 700
    assert {"flat ±64", "flat ±256"} <= {one.name for one in made.findings}


BOXES = {"surroundings": "boxes"}


def in_boxes(answer, shape, epsilon, **settings):
    domain, journal = Domain.from_shape(shape), Frozen(np.asarray(answer, dtype=np.int64).ravel())
    counts = PrivateCounts(domain, 1, lambda: np.zeros(domain.cells, dtype=np.int64), journal)
    return mechanisms.build("adaptive", settings).release(counts, Budget(epsilon))


@pytest.mark.slow
def test_boxes_are_nearer_than_windows_where_most_cells_of_a_grid_are_empty():
    # Fixed noise: 1,500 records about one place among 16,384 cells. Plain noise has 200; 2.4 and 0.7.
    source, place = np.random.default_rng(11), (np.arange(128) + 0.5) / 128
    far = (place[:, None] - 0.3) ** 2 + (place - 0.6) ** 2
    shares = np.exp(-far / 0.001) * source.lognormal(0, 1, far.shape)
    counts = source.multinomial(1500, (shares / shares.sum()).ravel()).reshape(far.shape)
    noisy = counts + source.geometric(0.0952, counts.shape) - source.geometric(0.0952, counts.shape)
    windows, boxes = (
        ((in_boxes(noisy, counts.shape, Fraction(1, 10), **settings).values - counts) ** 2).mean()
        for settings in ({}, BOXES)
    )
    assert boxes < 0.6 * windows


@pytest.mark.slow
def test_lines_have_the_same_bytes_with_boxes_and_grids_have_them_by_default():
    noisy = np.random.default_rng(1).integers(-9, 60, 120)
    for shape in [(120,), (1, 120)]:
        first, second = (in_boxes(noisy, shape, Fraction(1), **settings) for settings in ({}, BOXES))
        assert first.values.tobytes() == second.values.tobytes()
    grid, boxed = (in_boxes(noisy, (10, 12), Fraction(1), **settings) for settings in ({}, BOXES))
    assert "boxes" not in {one.name for one in grid.findings}
    assert "boxes" in {one.name for one in boxed.findings}
    assert mechanisms.settings_of(mechanisms.build("adaptive", {})) == {"objective": "absolute"}


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.data(), st.sampled_from(["absolute", "relative"]), st.sampled_from([(3, 4), (2, 3, 2), (2, 2)]))
def test_boxes_give_finite_estimates_of_any_answer(data, objective, shape):
    cells = int(np.prod(shape))
    answer = data.draw(st.lists(LARGE, min_size=cells, max_size=cells))
    epsilon = data.draw(st.sampled_from([Fraction(1, 1000), Fraction(1), Fraction(20)]))
    assert np.isfinite(in_boxes(answer, shape, epsilon, objective=objective, **BOXES).values).all()


def equal_weights():
    return np.full((kernels.CLASSES, kernels.LAWS), 1 / kernels.LAWS)


def test_what_other_cells_say_of_a_cell_does_not_hear_its_own_count():
    noisy = np.random.default_rng(4).integers(-9, 12, (8, 8)).astype(float)
    moved = noisy.copy()
    moved[3, 5] += 7
    chosen, offsets = np.array([29]), np.array([0.0, 7.0])
    both = [replace(Surroundings.of(cells, 3.0, equal_weights()), factor=1.0) for cells in (noisy, moved)]
    first, second = (one.estimates(chosen, offsets, False) for one in both)
    for one, other in zip(first, second, strict=True):
        assert one[0, 1] == pytest.approx(other[0, 0], rel=1e-3)


def together(noisy, scale, weights):
    """The logarithm of the likelihood of all cells at once."""
    found = Surroundings.of(noisy, scale, weights)
    return np.log(found.estimates(np.arange(noisy.size), np.zeros(1), False)[0]).sum()


def test_the_likelihood_of_all_cells_is_that_of_an_enumeration_of_all_counts():
    noisy, scale, weights = np.array([[3.0, -1.0], [0.0, 2.0]]), 0.5, equal_weights()
    table = kernels.mixed_table(kernels.law_tables(1.0), weights)
    sums = np.arange(4 * 7)  # no cell may explain more than 6 records
    first = 1 / ((sums + 1) * (1 + np.log1p(sums)) ** 2)
    total = 0.0
    for cells in product(range(7), repeat=4):
        upper, lower = cells[0] + cells[1], cells[2] + cells[3]
        likely = table[upper + lower, upper] * table[upper, cells[0]] * table[lower, cells[2]]
        total += first[upper + lower] * likely * np.exp(-np.abs(noisy.ravel() - cells).sum() / scale)
    # The law of all records ends with its window, 0 to what 4.5 deviations of the sum and 3 scales reach.
    last = math.ceil(noisy.sum() + 4.5 * math.sqrt(8) * scale + 3 * scale)
    within = 1 / ((np.arange(last + 1) + 1) * (1 + np.log1p(np.arange(last + 1))) ** 2)
    assert together(noisy, scale, weights) == pytest.approx(np.log(total / within.sum()), abs=0.02)


def test_noise_gains_what_chance_allows_and_no_more():
    # Of empty cells, the likelihood by boxes is in the mean that of empty cells: e^g times it in one of e^g grids.
    source, gains = np.random.default_rng(6), []
    for _ in range(100):
        noisy = (source.geometric(0.2835, (8, 8)) - source.geometric(0.2835, (8, 8))).astype(float)
        gains.append(together(noisy, 3.0, equal_weights()) + np.abs(noisy).sum() / 3.0)
    assert np.mean(np.exp(gains)) == pytest.approx(1, abs=0.1)
    assert max(gains) < 5
