"""The error theory of DPCube against simulated Laplace noise, and against releases by the mechanism."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dphist_pipeline as dph
from dphist_pipeline.workbench.evaluation import theory
from dphist_pipeline.workbench.evaluation.contenders import parse_contender
from dphist_pipeline.workbench.evaluation.measuring import compare, usefulness
from dphist_pipeline.workbench.evaluation.theory import QueryParameters
from dphist_pipeline.workbench.evaluation.workloads import parse_workloads

DRAWS = 400_000
SETTINGS = [
    QueryParameters(),
    QueryParameters(query=11),
    QueryParameters(query=1, first=0.15, second=0.05),
    QueryParameters(4, 2, 0.3, 0.3, 2.0, -8.0, 3),
]


def laplace(scale, *shape):
    return np.random.default_rng(2012).laplace(0, scale, shape)


def near(found, simulated):
    """Within 6 standard errors of a simulated mean; a formula that is 3 % off would lie outside."""
    error = simulated.std() / math.sqrt(simulated.size)
    assert error < 0.005 * simulated.mean()
    return abs(found - simulated.mean()) < 6 * error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("draws", "centre"), [([(1.0, 3), (0.2, 5)], -25.0), ([(7.0, 1), (0.0, 4)], 1.0), ([(3.0, 40)], 0.0)], ids=str
)
def test_the_expected_magnitude_is_that_of_simulated_sums(draws, centre):
    source = np.random.default_rng(5)
    sums = np.full(DRAWS, centre)
    for scale, number in draws:
        for _ in range(number):
            sums += source.laplace(0, scale, DRAWS) if scale else 0
    assert near(theory.expected_magnitude(draws, centre), np.abs(sums))


@pytest.mark.parametrize("centre", [0, 0.1, 3, 40])
def test_with_one_draw_the_expected_magnitude_is_the_closed_form(centre):
    setting = QueryParameters(1, 1, 1, 0.5)
    assert theory.expected_magnitude([(2.0, 1)], centre) == pytest.approx(
        theory.uniform_error(setting, centre), rel=1e-5
    )


def test_without_noise_only_the_centre_is_left():
    assert theory.expected_magnitude([(0.0, 3), (2.0, 0)], -4) == 4


@pytest.mark.parametrize("draws", [1, 2, 5])
def test_the_density_of_a_sum_is_a_density_with_the_moments_of_simulated_sums(draws):
    grid = np.linspace(-120, 120, 48_001)
    dense = theory.density_of_sum(grid, draws, 0.4) * (grid[1] - grid[0])
    assert dense.sum() == pytest.approx(1, abs=1e-4)
    simulated = np.abs(laplace(2.5, draws, DRAWS).sum(axis=0))
    assert near(float(dense @ np.abs(grid)), simulated)
    assert float(dense @ (np.abs(grid) > 6)) == pytest.approx((simulated > 6).mean(), abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "weighted"), [(SETTINGS[0], True), (SETTINGS[2], False), (SETTINGS[3], True)])
def test_the_error_of_least_squares_is_that_of_simulated_views(setting, weighted):
    """From the normal equations of both views, not from the formula's weights."""
    n, s = setting.cells, setting.query
    cell, whole = setting.sensitivity / setting.first, setting.sensitivity / setting.second
    views = np.vstack([np.ones(n), np.eye(n)])
    weights = np.diag([1 / whole**2, *[1 / cell**2] * n]) if weighted else np.eye(n + 1)
    map_to_cells = np.linalg.solve(views.T @ weights @ views, views.T @ weights)
    noise = laplace(1.0, n + 1, DRAWS) * np.array([whole, *[cell] * n])[:, None]
    query = np.arange(n) < s
    assert near(theory.least_squares_error(setting, weighted), np.abs(query @ map_to_cells @ noise))


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_uniform_estimation_errs_as_told_and_never_beyond_its_bounds(setting):
    n, s = setting.cells, setting.query
    source = np.random.default_rng(7)
    noise = laplace(setting.share_of_noise, DRAWS)
    worst = np.append(np.zeros(s), np.full(n - s, setting.smoothness))  # low cells in the query, high ones outside
    for cells in (worst, source.uniform(0, setting.smoothness, n), np.zeros(n)):
        bias = s / n * cells.sum() - cells[:s].sum()
        errors = np.abs(bias + noise)
        assert near(theory.uniform_error(setting, bias), errors)
        assert theory.uniform_error(setting, bias) <= theory.uniform_bound(setting) * (1 + 1e-12)
        for delta in (0.3, 0.05):
            assert (errors > theory.uniform_usefulness(setting, delta)).mean() < delta + 0.004
    assert bias == 0 and s / n * worst.sum() == pytest.approx(setting.largest_bias)
    assert setting.largest_bias <= theory.uniform_bound(setting, printed=True) - setting.share_of_noise + 1e-12
    assert theory.uniform_usefulness(setting, 0.05) <= theory.uniform_usefulness(setting, 0.05, printed=True) + 1e-12


def test_the_bound_of_uniform_estimation_is_reached_where_noise_is_small():
    setting = QueryParameters(10, 5, second=200.0)
    assert theory.uniform_error(setting, setting.largest_bias) == pytest.approx(
        theory.uniform_bound(setting), rel=0.001
    )
    assert theory.uniform_bound(setting, printed=True) > 1.9 * theory.uniform_bound(setting)


@pytest.mark.slow
def test_the_error_given_an_inconsistency_holds_over_all_counts_only():
    """Biases spread evenly stand for all counts; of these, releases with the inconsistency are kept."""
    setting, source = QueryParameters(), np.random.default_rng(45)
    many = 8_000_000
    cells = sum(source.laplace(0, 1 / setting.first, many) for _ in range(setting.query))
    whole = source.laplace(0, setting.share_of_noise, many)
    bias = source.uniform(-600, 600, many)
    kept = np.abs(bias + whole - cells - setting.inconsistency) < 6
    simulated, told = np.abs(bias + whole)[kept], theory.error_given_inconsistency(setting)
    assert kept.sum() > 50_000
    assert told == pytest.approx(simulated.mean(), rel=0.02)
    given = np.abs(whole - cells - setting.inconsistency) < 6  # counts without bias
    assert np.abs(whole)[given].mean() < 0.2 * told


def test_no_counting_query_on_cells_exceeds_the_error_of_theorem_4_2():
    noise = laplace(1 / 0.4, 6, 40_000)
    queries = (np.arange(64)[:, None] >> np.arange(6)) & 1
    largest = np.abs(queries @ noise).max(axis=0)
    for delta in (0.5, 0.1):
        assert (largest > theory.cells_usefulness(6, 0.4, delta)).mean() <= delta
    sums = np.abs(noise).sum(axis=0)
    assert (sums > theory.cells_usefulness(6, 0.4, 0.5)).mean() > 0  # the lemma is not empty


@pytest.mark.slow
@pytest.mark.parametrize(("estimation", "told"), [("uniform", theory.uniform_error), ("least_squares", None)])
def test_releases_of_one_box_err_as_the_theory_says(estimation, told):
    """1,500 releases; whole-number noise of scale 6.7 and 20 is within 1 % of Laplace's. 12 % is 5 standard errors."""
    setting, counts = QueryParameters(), np.array([3, 5, 4, 6, 3, 8, 7, 9, 6, 7, 8])
    asked = {"threshold": 1e9, "estimation": estimation, "structure_share": "1/4"}
    made = (dph.sanitize(counts, mechanism="dpcube", epsilon="0.2", sensitivity=1, **asked) for _ in range(1500))
    errors = np.abs([one.values[:5].sum() - counts[:5].sum() for one in made])
    bias = 5 / 11 * counts.sum() - counts[:5].sum()
    expected = theory.uniform_error(setting, bias) if told else theory.least_squares_error(setting)
    assert errors.mean() == pytest.approx(expected, rel=0.12)


@pytest.mark.parametrize(
    "setting", [QueryParameters(), QueryParameters(100, 1, 0.5, 0.5), QueryParameters(4, 2, 0.9, 0.1)], ids=str
)
def test_at_the_break_even_smoothness_both_estimates_err_alike(setting):
    smoothness = theory.break_even_smoothness(setting)
    at = replace(setting, smoothness=smoothness)
    if smoothness:
        assert theory.uniform_error(at, at.largest_bias) == pytest.approx(theory.cells_error(at), rel=1e-6)
    else:
        assert setting.share_of_noise >= theory.cells_error(setting)
    assert math.isinf(theory.break_even_smoothness(QueryParameters(11, 11)))


@pytest.mark.parametrize(("repeats", "place"), [(1, 0), (10, 9), (20, 18), (40, 37)])
def test_usefulness_is_the_error_that_enough_releases_stay_within(repeats, place):
    errors = np.random.default_rng(3).permutation(repeats).astype(float)
    (score,) = usefulness("some", Fraction(1), [{("box_max", ""): error, ("mse", ""): 0.0} for error in errors])
    assert (score.measure, score.at, score.mean, score.repeats) == ("box_useful", "0.05", float(place), repeats)


def test_noisy_cells_are_far_more_useful_than_theorem_4_2_promises():
    """Noises cancel in a sum, and the theorem adds their sizes."""
    counts = np.zeros(50, dtype=np.int64)
    found = compare(
        counts, [parse_contender("geometric")], [Fraction(1, 5)], 200, parse_workloads(["ranges:1,50"], (50,))
    )
    (useful,) = [score.mean for score in found if score.measure == "range_useful"]
    promised = theory.cells_usefulness(50, 0.2, 0.05)
    assert 0.03 * promised < useful < 0.1 * promised


def test_a_query_outside_of_its_box_is_refused():
    with pytest.raises(ValueError, match="1 to 11"):
        QueryParameters(query=12)
    with pytest.raises(ValueError, match="above 0"):
        QueryParameters(first=0.0)
