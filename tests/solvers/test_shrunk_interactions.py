"""Tables lean on their margins as far as noise hides their interaction, and keep what can be seen."""

from __future__ import annotations

import numpy as np
import pytest

from dphist_pipeline.solvers.tables.shrunk_interactions import shrink_towards, without_interaction

DRAWS = np.random.Generator(np.random.PCG64(20261127))


def product(sizes: tuple[int, ...], rows: float) -> np.ndarray:
    lines = [DRAWS.dirichlet(np.ones(size)) for size in sizes]
    found = np.array(rows)
    for line in lines:
        found = np.multiply.outer(found, line)
    return found


def interactions(away: np.ndarray) -> np.ndarray:
    """Without what moves margins."""
    return away - away.mean(axis=0) - away.mean(axis=1)[:, None] + away.mean()


def test_noise_around_the_model_is_taken_away() -> None:
    model = product((20, 30), 9_000)
    noisy = model + DRAWS.laplace(0, 40, model.shape)
    left = ((shrink_towards(noisy, model, 3_200.0) - model) ** 2).mean()
    assert left < 0.05 * 3_200


def test_interactions_far_above_the_noise_are_kept() -> None:
    model = product((20, 30), 90_000)
    truth = model + interactions(DRAWS.normal(0, 500, model.shape))
    noisy = truth + DRAWS.laplace(0, 10, model.shape)
    assert ((shrink_towards(noisy, model, 200.0) - truth) ** 2).mean() < 1.1 * 200


def test_noise_of_margins_is_no_interaction() -> None:
    """The variance is that of interactions alone: noise that moves whole lines says nothing about it."""
    model = product((20, 30), 9_000)
    moved = model + DRAWS.normal(0, 50, (20, 1)) + DRAWS.normal(0, 50, (1, 30))
    noisy = moved + interactions(DRAWS.laplace(0, 5, model.shape))
    assert ((shrink_towards(noisy, model, 50.0) - model) ** 2).mean() < 0.1 * 50


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_the_factors_are_as_good_as_the_best_that_know_how_interactions_vary(power: float) -> None:
    model = product((40, 50), 200_000)
    spread = 60.0**2 * model ** (2 * power) / (model ** (2 * power)).mean()
    truth = model + interactions(DRAWS.normal(0, 1, model.shape) * np.sqrt(spread))
    variance = 2 * 40.0**2
    noisy = truth + DRAWS.laplace(0, 40, model.shape)
    best = model + spread / (spread + variance) * (noisy - model)
    found = shrink_towards(noisy, model, variance)
    assert ((found - truth) ** 2).mean() < 1.05 * ((best - truth) ** 2).mean()


def test_interactions_of_three_axes_that_may_be_noise_count_as_none() -> None:
    model = np.full((6, 7, 8), 50.0)
    kept = 0
    for _ in range(120):
        noise = DRAWS.laplace(0, 10, model.shape)
        for axis in range(3):
            noise -= noise.mean(axis=axis, keepdims=True)
        variance = 200 * (5 * 6 * 7) / (6 * 7 * 8)
        kept += not np.array_equal(shrink_towards(model + noise, model, variance), model)
    assert kept < 40  # of noise alone; without the price about 62


def test_two_lines_give_their_product() -> None:
    one, two = np.array([30.0, 0.0, 70.0]), np.array([60.0, 40.0])
    found = without_interaction((3, 2), [((0,), one), ((1,), two)])
    assert found == pytest.approx(np.outer(one, two) / 100)


def test_pairs_give_back_a_table_that_has_no_interaction_of_three() -> None:
    truth = np.exp(DRAWS.normal(0, 0.7, (4, 5, 1)) + DRAWS.normal(0, 0.7, (4, 1, 3)) + DRAWS.normal(0, 0.7, (1, 5, 3)))
    pairs = [((0, 1), truth.sum(axis=2)), ((0, 2), truth.sum(axis=1)), ((1, 2), truth.sum(axis=0))]
    assert without_interaction(truth.shape, pairs) == pytest.approx(truth, rel=0.02)
