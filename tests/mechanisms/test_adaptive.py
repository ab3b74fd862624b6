"""Empirical Bayes mechanisms: resumed releases, awkward counts, what they find, and errors beside plain noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphist_pipeline as dph
from dphist_pipeline import mechanisms
from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import BinnedAxis, CategoricalAxis, Domain
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.mechanisms._experts import halves

NAMES = ("bayes", "adaptive")
WAYS = [(name, objective) for name in NAMES for objective in ("absolute", "relative")]
SPIKES = np.where(np.arange(400) % 40 == 0, 300, 0)
WAVE = np.rint(2000 + 1900 * np.sin(np.arange(600) / 150)).astype(int)


class Frozen:
    """A journal that gives the same answer every time, whatever is behind the door."""

    def __init__(self, answer: np.ndarray) -> None:
        self.kept = answer

    def answer(self, step, question, draw):
        return self.kept.copy()


def replayed(name, objective, answer, shape, epsilon=Fraction(1)):
    domain, journal = Domain.from_shape(shape), Frozen(np.asarray(answer, dtype=np.int64))
    counts = PrivateCounts(domain, 1, lambda: np.zeros(domain.cells, dtype=np.int64), journal)
    return mechanisms.build(name, {"objective": objective}).release(counts, Budget(epsilon))


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


@settings(max_examples=20, deadline=None)
@given(st.data(), st.sampled_from(WAYS), SHAPES, st.sampled_from([Fraction(1, 1000), Fraction(1), Fraction(20)]))
def test_any_answer_of_the_door_gives_finite_estimates_and_whole_parts(data, way, shape, epsilon):
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


def test_adaptive_uses_neighbours_where_they_are_alike_and_bayes_does_not():
    # Plain noise has 50. Hardly two cells of the wave are equal, so values tell little; neighbours are close.
    assert 2 * mean_error("adaptive", WAVE) < mean_error("bayes", WAVE)


@pytest.mark.parametrize("name", NAMES)
def test_lone_spikes_among_empty_cells_stay(name):
    assert mean_error(name, SPIKES) < 12
    shuffled = np.random.default_rng(3).permutation(SPIKES)
    assert mean_error(name, shuffled) < 12


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
