"""Controlled rounding: every node of the tree is rounded down or up, whatever the levels are."""

from __future__ import annotations

import numpy as np
import pytest

from dphist_pipeline.solvers.whole_counts.nested_rounding import round_nested

DRAWS = np.random.Generator(np.random.PCG64(20261122))
CLOSE = 1.001  # cells are first rounded to multiples of 2^-12


def nested(size: int) -> list[np.ndarray]:
    coarse = np.unique(DRAWS.integers(0, 3, size), return_inverse=True)[1]
    return [coarse, np.unique(5 * coarse + DRAWS.integers(0, 2, size), return_inverse=True)[1]]


def test_every_sum_of_the_tree_is_rounded_to_a_neighbour():
    for _ in range(300):
        shape = tuple(DRAWS.integers(1, 7, DRAWS.integers(1, 4)))
        table = np.maximum(0, DRAWS.normal(0, 3, shape))
        levels = [nested(side) if DRAWS.random() < 0.6 else [] for side in shape]
        leaning = DRAWS.normal(0, 4, shape) if DRAWS.random() < 0.5 else None
        found = round_nested(table, levels, leaning)
        assert found.dtype == np.int64 and found.min() >= 0 and abs(found.sum() - table.sum()) <= 0.51
        for axis in range(table.ndim):
            off = (found - table).sum(axis=tuple(range(axis + 1, table.ndim)))
            assert np.abs(off).max() < CLOSE
            for labels in levels[axis]:
                for group in range(labels.max() + 1):
                    assert np.abs(off[..., labels == group].sum(axis=-1)).max() < CLOSE


def test_the_largest_remainders_get_the_records_that_are_left():
    assert round_nested(np.array([0.2, 1.7, 0.6, 0.5]), [[]]).tolist() == [0, 2, 1, 0]


def test_records_that_are_left_go_where_something_else_is_known_of_the_parts():
    alike = np.full((2, 4), 1.5)
    found = round_nested(alike, [[], [np.array([0, 0, 1, 1])]], np.array([[0.0, 1.0, 2.0, -3.0], [3.0, 0, 0, 0.1]]))
    assert found.tolist() == [[1, 2, 2, 1], [2, 1, 1, 2]]
    # A part that is whole stays, whatever is known of it; without leaning, the first parts come first.
    assert round_nested(np.array([2.0, 0.5, 0.5]), [[]], np.array([9.0, 0.0, 0.1])).tolist() == [2, 0, 1]
    table = DRAWS.integers(0, 9, (5, 40)) / 4
    assert (round_nested(table, [[], []], np.zeros((5, 40))) == round_nested(table, [[], []])).all()


@pytest.mark.parametrize("total", [1e3, 1e9, 2.0**51])
def test_large_tables_keep_their_total(total: float):
    table = DRAWS.random(1000)
    table *= total / table.sum()
    assert abs(int(round_nested(table, [[np.arange(1000) // 64]]).sum()) - total) <= max(1, total * 1e-12)
