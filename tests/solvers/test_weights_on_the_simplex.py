"""Weights of estimates: the compiled descent gives what NumPy's own operations give, bit by bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dphist_pipeline.solvers.cells import judged_experts

Reals = NDArray[np.float64]


def onto_simplex(point: Reals) -> Reals:
    falling = np.sort(point)[::-1]
    over = (np.cumsum(falling) - 1.0) / np.arange(1, point.size + 1)
    nearest: Reals = np.maximum(0.0, point - over[np.flatnonzero(falling > over)[-1]])
    return nearest


def by_numpy(products: Reals, lines: Reals, rate: float) -> Reals:
    weights = np.full(lines.size, 1.0 / lines.size)
    ahead, pace = weights, 1.0
    for _ in range(judged_experts.DESCENTS):
        new = onto_simplex(ahead - rate * (2.0 * ((products * ahead).sum(axis=1) + lines)))
        faster = (1.0 + math.sqrt(1.0 + 4.0 * pace**2)) / 2.0
        ahead, weights, pace = new + (pace - 1.0) / faster * (new - weights), new, faster
    return weights


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 12, 16, 23, 33])
def test_weights_are_those_that_releases_of_earlier_versions_have(size: int) -> None:
    generator = np.random.default_rng(size)
    errors = generator.normal(size=(size, 50)) * generator.lognormal(0, 2, size=(size, 1))
    products, lines = judged_experts._products(errors) / 50, generator.normal(size=size)
    rate = 1.0 / (2.0 * np.trace(products) + 1e-3)
    found = judged_experts._least_on_simplex(products, lines, rate)
    assert found.tobytes() == by_numpy(products, lines, rate).tobytes()
    assert found.min() >= 0 and math.isclose(found.sum(), 1)
