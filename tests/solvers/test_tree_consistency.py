"""Least squares on a tree by two passes, against the normal equations of the whole tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.trees.tree_consistency import consistent
from examples import examples


def random_tree(source, levels, most_children):
    """For each level but the top, the parent of each node; any number of children, in any order, one at least."""
    parents, nodes = [], int(source.integers(1, 3))
    for _ in range(levels - 1):
        parent = np.repeat(np.arange(nodes), source.integers(1, most_children + 1, nodes))
        parents.append(source.permutation(parent))
        nodes = parent.size
    return parents, nodes


def spans(parents, leaves):
    """For each level, which leaves each node spans, as rows of 0 and 1."""
    rows = [np.eye(leaves)]
    for parent in reversed(parents):
        above = np.zeros((parent.max() + 1, leaves))
        np.add.at(above, parent, rows[0])
        rows.insert(0, above)
    return rows


@examples(200)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 4), st.booleans())
def test_gives_the_weighted_least_squares_estimate_of_every_node(seed, levels, most_children, weighted):
    source = np.random.default_rng(seed)
    parents, leaves = random_tree(source, levels, most_children)
    rows = spans(parents, leaves)
    measured = [source.normal(0, 100, row.shape[0]) for row in rows]
    variances = source.uniform(0.1, 50, levels) if weighted else np.full(levels, 7.0)
    weights = [np.full(row.shape[0], variance**-0.5) for row, variance in zip(rows, variances, strict=True)]
    weighted_rows = np.concatenate(weights)[:, None] * np.concatenate(rows)
    best = np.linalg.lstsq(weighted_rows, np.concatenate(weights) * np.concatenate(measured), rcond=None)[0]
    estimates = consistent(measured, parents, variances if weighted else None)
    assert len(estimates) == levels
    for row, estimate in zip(rows, estimates, strict=True):
        assert estimate == pytest.approx(row @ best, rel=1e-8, abs=1e-7)


def test_measurements_that_agree_stay_as_they_are():
    leaves = np.array([3.0, 1.0, 4.0, 1.0, 5.0])
    measured = [np.array([14.0]), np.array([8.0, 6.0]), leaves]
    estimates = consistent(measured, [np.array([0, 0]), np.array([0, 0, 0, 1, 1])])
    assert [level.tolist() for level in estimates] == [level.tolist() for level in measured]


def test_the_binary_tree_with_two_leaves_worked_by_hand():
    # Root 10, leaves 4 and 3: the children's sum 7 has twice the root's variance, so the root becomes 9.
    root, leaves = consistent([np.array([10.0]), np.array([4.0, 3.0])], [np.array([0, 0])])
    assert root == pytest.approx([9.0])
    assert leaves == pytest.approx([5.0, 4.0])


@pytest.mark.parametrize("offset", [1e9, 1e13])
def test_a_large_count_does_not_eat_the_digits_of_its_neighbours(offset):
    leaves = np.array([offset, 1.0, 2.0, 3.0])
    measured = [np.array([offset + 6]), np.array([offset + 1, 5.0]), leaves]
    assert consistent(measured, [np.array([0, 0]), np.array([0, 0, 1, 1])])[-1].tolist() == leaves.tolist()


def test_one_level_is_left_alone():
    assert consistent([np.array([2.0, 7.0])], [])[0].tolist() == [2.0, 7.0]
