"""Unbiased risks against simulation, weights against a search, and averages by likelihood."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dphist_pipeline.solvers.cells.expert_rules import Expert, Probes, distinct, estimates, fitted_rules
from dphist_pipeline.solvers.cells.judged_experts import (
    averaging_weights,
    estimated_errors,
    likelihood_weights,
    risk_weights,
    sure_share,
    surely_likelier,
)

SPREAD = np.repeat([0, 0, 0, 3, 20, 80], 500)


def noise(scale, size, draws):
    stay = 1 - math.exp(-1 / scale)
    return draws.geometric(stay, size) - draws.geometric(stay, size)


def variance(scale):
    faded = math.exp(-1 / scale)
    return 2 * faded / (1 - faded) ** 2


RULES = {
    "as it is": lambda z: z,
    "shrunk": lambda z: 0.4 * z + 3,
    "cut off": lambda z: np.maximum(0, z),
    "soft threshold": lambda z: np.sign(z - 20) * np.maximum(0, np.abs(z - 20) - 5),
}


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.4, 2.9, 50.0])
@pytest.mark.parametrize("rule", RULES)
def test_the_estimated_covariance_of_rule_and_noise_has_no_bias(rule, scale):
    draws, probes = np.random.default_rng(7), Probes.of(scale)
    counts = np.tile(SPREAD, 100)
    noisy = (counts + noise(scale, counts.size, draws)).astype(float)
    said = probes.covariances(RULES[rule](noisy[:, None] + probes.offsets)).mean()
    # The rule at the true count has no covariance with the noise; without it the simulated one varies less.
    true = ((RULES[rule](noisy) - RULES[rule](counts)) * (noisy - counts)).mean()
    # 300,000 cells: the simulated one is known to 1 %, the estimate is off by at most 2 % of the noise.
    assert said == pytest.approx(true, rel=0.06, abs=0.02 * variance(scale))
    assert rule == "soft threshold" or 0.3 * true > 0.06 * true + 0.02 * variance(scale)


def test_the_estimated_error_is_made_of_distance_covariance_and_noise():
    assert estimated_errors(np.array([3.0, 0.0]), np.array([0.5, 2.0]), 2.0).tolist() == [8, 2]


@pytest.mark.parametrize("scale", [1.0, 12.0])
def test_the_estimated_error_of_a_fitted_expert_has_no_bias(scale):
    draws, probes, expert = np.random.default_rng(11), Probes.of(scale), Expert("values", "", "sparse")
    gaps, sizes = [], []
    for _ in range(12):
        noisy = (SPREAD + noise(scale, SPREAD.size, draws)).astype(float)
        rules = fitted_rules(expert, noisy, draws.integers(0, 2, noisy.size).astype(bool), scale)
        _, values = estimates(expert, rules, noisy, np.arange(noisy.size), probes.offsets, scale)
        said = estimated_errors(values[:, 0] - noisy, probes.covariances(values), variance(scale)).mean()
        gaps.append(said - ((values[:, 0] - SPREAD) ** 2).mean())
        sizes.append(((values[:, 0] - SPREAD) ** 2).mean())
    # The expert's own error is 0.2 to 0.6 of the noise; its estimate is off by less than 30 % of that.
    assert abs(np.mean(gaps)) < 0.3 * np.mean(sizes)


def test_a_cells_rule_does_not_depend_on_the_half_that_it_is_in():
    noisy = np.arange(60.0)
    folds, expert = np.arange(60) % 2 == 0, Expert("values", "", "sparse")
    moved = np.where(folds, noisy[::-1], noisy)
    before, after = (fitted_rules(expert, line, folds, 2.0) for line in (noisy, moved))
    of_the_moved = [next(rule for rule in rules if folds[rule.members[0]]) for rules in (before, after)]
    assert np.array_equal(of_the_moved[0].prior.atoms, of_the_moved[1].prior.atoms)


def test_weights_of_least_risk_are_found():
    draws = np.random.default_rng(3)
    errors, lines = draws.normal(size=(3, 50)) * [[1], [2], [1.5]], np.array([[0.4], [0.1], [0.2]]) * np.ones(50)
    found = risk_weights(errors, lines, 1.0)
    steps = np.linspace(0, 1, 101)
    every = [np.array([a, b, 1 - a - b]) for a in steps for b in steps if a + b <= 1 + 1e-12]
    risks = [((w @ errors) ** 2).mean() + 2 * w @ lines[:, 0] for w in every]
    assert found.sum() == pytest.approx(1) and found.min() >= 0
    assert ((found @ errors) ** 2).mean() + 2 * found @ lines[:, 0] <= min(risks) + 1e-9


def test_an_estimate_with_a_far_larger_error_is_no_candidate():
    errors = np.array([np.ones(40), np.full(40, 1e9)])
    assert risk_weights(errors, np.full((2, 40), 0.5), 1.0).tolist() == [1, 0]


def test_an_average_weighs_experts_by_the_likelihood_of_all_cells_less_their_costs():
    likely = np.array([np.full(10, 1e-200), np.full(10, 1e-200 * math.exp(0.5)), np.full(10, 1e-220)])
    found = averaging_weights(likely, np.array([0.0, 4.0, 0.0]))
    # The second gains 5 and costs 4.
    assert found.tolist() == pytest.approx([1 / (1 + math.e), math.e / (1 + math.e), 0], abs=1e-12)


def test_what_learns_or_has_many_levels_costs_more():
    level, flat, wide, learns = (
        Expert("", "", kind, pieces=pieces)
        for kind, pieces in (("level", 0.0), ("level", 100.0), ("level", 10.0), ("sparse", 0.0))
    )
    assert level.cost == 0 < wide.cost < learns.cost < flat.cost


def test_a_gain_is_sure_beyond_its_standard_errors_or_if_it_is_large():
    sure, unsure = np.full(100, 0.5), np.tile([5.0, -4.9], 50)
    assert surely_likelier(sure, 2.0) and not surely_likelier(unsure, 2.0)
    one_cell = np.append(7.0, np.zeros(99))  # its standard error is 7
    assert surely_likelier(one_cell, 2.0) and not surely_likelier(one_cell * 0.8, 2.0)
    assert not surely_likelier(np.full(100, 0.009), 2.0)  # a gain of less than 1 is none
    assert sure_share(sure) == 1 and sure_share(unsure) == 0 == sure_share(-sure)


def test_likelihood_weights_find_the_expert_that_explains_the_cells():
    likely = np.array([np.ones(300), np.full(300, 1.5), np.tile([2.0, 0.1], 150)])
    found = likelihood_weights(likely, np.full(3, 1 / 3), 1.0)
    assert found.sum() == pytest.approx(1)
    assert found[1] > 0.9 > 0.02 > found[0]


@pytest.mark.parametrize("values", [[3.0, -2.0, 3.0, 0.0], [1e15, 0.0, 1e15, -4e15]])
def test_distinct_numbers_and_their_places(values):
    points, places = distinct(np.array(values))
    assert points.tolist() == sorted(set(values)) and points[places].tolist() == values
