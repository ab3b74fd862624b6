"""Cells grouped by their values, against a stable sort: ties, values far away, fractions."""

from __future__ import annotations

import numpy as np
import pytest

from dphist_pipeline.solvers.groups.value_groups import groups_by_value


def test_cells_of_any_shape_are_grouped_by_value_with_ties_in_order():
    cells = np.random.default_rng(6).integers(0, 3, (30, 10, 5)).astype(float)
    groups = groups_by_value(cells, lambda line: np.arange(line.size))
    assert groups.shape == cells.shape
    in_order = sorted(range(cells.size), key=lambda cell: (cells.flat[cell], cell))
    assert groups.flat[in_order].tolist() == list(range(cells.size))


ORDERS = {
    "a narrow range": lambda rng: rng.integers(-40, 40, 3000),
    "a wide range": lambda rng: rng.integers(-(2**40), 2**40, 3000) // 2**20 * 2**20,
    "some far away": lambda rng: np.append(rng.integers(-9, 9, 3000), rng.integers(0, 10**6, 300)),
    "one far away": lambda rng: np.append(rng.integers(0, 5, 3000), 10**15),
    "beyond exact differences": lambda rng: rng.choice([-(2.0**60), 2.0**60, 3.0, 2.0**53], 300),
    "fractions": lambda rng: rng.normal(size=3000).round(2),
    "both zeros": lambda rng: rng.choice([0.0, -0.0, 0.5, -0.5], 300),
    "all equal": lambda rng: np.full(300, -7),
    "one cell": lambda rng: np.array([3.5]),
}


@pytest.mark.parametrize("kind", ORDERS)
def test_cells_are_ordered_by_value_then_by_place(kind):
    cells = ORDERS[kind](np.random.default_rng(11)).astype(float)
    seen = []
    places = groups_by_value(cells, lambda line: seen.append(line.copy()) or np.arange(line.size))
    order = np.argsort(cells, kind="stable")
    assert np.array_equal(places[order], np.arange(cells.size))
    assert np.array_equal(seen[0], cells[order])
