"""Mean counts given noisy sums of a tree: against every possible table of counts, and on counts of a known kind."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dphist_pipeline.solvers.trees import _split_kernels as kernels
from dphist_pipeline.solvers.trees.regular_tree import RegularTree, halving_tree, least_variance, over_boxes
from dphist_pipeline.solvers.trees.split_posterior import split_means
from dphist_pipeline.solvers.trees.tree_consistency import consistent_cells

TREE = RegularTree((4,), ((2,), (1,)))


def noisy(tree, counts, scale, source):
    """A noisy count of every box of each level."""
    levels = []
    for widths in tree.widths:
        sums = counts
        for axis, width in enumerate(widths):
            sums = np.add.reduceat(sums, np.arange(0, sums.shape[axis], width), axis=axis)
        parts = source.geometric(-math.expm1(-1 / scale), (2, *sums.shape))
        levels.append((sums + parts[0] - parts[1]).astype(np.float64))
    return levels


def by_enumeration(levels, scale, weights, most):
    """Means over all tables of four counts, each weighed by the chance of its splits and of the noise."""
    table = kernels.mixed_table(kernels.law_tables(1.0), weights)
    cells = np.ogrid[:most, :most, :most, :most]
    pairs = cells[0] + cells[1], cells[2] + cells[3]
    chance = table[pairs[0] + pairs[1], pairs[0]] * table[pairs[0], cells[0]] * table[pairs[1], cells[2]]
    for level, parts in zip(levels, (pairs, cells), strict=True):
        far = sum(abs(noisy_count - part) for noisy_count, part in zip(level, parts, strict=True))
        chance = chance * np.exp(-far / scale)
    return np.array([(chance * part).sum() for part in cells]) / chance.sum()


def test_means_are_those_over_all_tables_of_counts(monkeypatch):
    monkeypatch.setattr("dphist_pipeline.solvers.trees._halved_boxes.ROUNDS", 0)
    weights = np.full((kernels.CLASSES, kernels.LAWS), 1 / kernels.LAWS)
    for levels in ([[2, 7], [1, 2, 6, -1]], [[-1, 0], [-1, 3, 0, -2]], [[5, 1], [9, -3, 0, 0]]):
        values = [np.array(level, dtype=np.float64) for level in levels]
        exact = by_enumeration(values, 0.8, weights, 22)
        assert split_means(TREE, values, [0.8, 0.8]) == pytest.approx(exact, abs=2e-3)


def test_large_counts_are_split_as_by_the_table(monkeypatch):
    """Above the table, a law of differences is used; just there, both say the same."""
    values = [np.array([250.0, 252.0]), np.array([130.0, 121.0, 128.0, 124.0])]
    with_table = split_means(TREE, values, [3.0, 3.0])
    by_differences = split_means(TREE, [level * 4 for level in values], [12.0, 12.0]) / 4
    assert by_differences == pytest.approx(with_table, abs=1.5)
    assert abs(with_table - values[1]).max() < 6


def test_empty_parts_are_told_and_a_peak_stays():
    counts = np.zeros(1024, dtype=np.int64)
    counts[300:310] = 400
    tree, source = halving_tree((1024,)), np.random.default_rng(5)
    levels = noisy(tree, counts, 10.0, source)
    means = split_means(tree, levels, [10.0] * len(levels))
    plain = consistent_cells(tree, levels, [200.0] * len(levels))
    assert np.mean((means - counts) ** 2) < 0.1 * np.mean((plain - counts) ** 2)
    assert abs(means[600:].sum()) < 0.3 * abs(plain[600:]).sum()
    assert means[300:310].sum() == pytest.approx(4000, abs=150)


def test_counts_without_structure_stay_near_least_squares():
    """Nothing can be learned of rough counts that stand far above the noise."""
    source = np.random.default_rng(6)
    counts = source.integers(500, 3000, 512)
    tree = halving_tree((512,))
    levels = noisy(tree, counts, 4.0, source)
    means = split_means(tree, levels, [4.0] * len(levels))
    plain = consistent_cells(tree, levels, [32.0] * len(levels))
    assert np.mean((means - counts) ** 2) < 1.2 * np.mean((plain - counts) ** 2)


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (1, 1), (5, 3), (1, 7), (9, 2, 3)])
def test_every_shape_is_served(shape):
    counts = np.random.default_rng(7).poisson(20, shape)
    for tree in (halving_tree(shape), RegularTree(shape, ((4,) * len(shape), (1,) * len(shape)))):
        levels = noisy(tree, counts, 0.01, np.random.default_rng(8))
        assert split_means(tree, levels, [0.01] * len(levels)) == pytest.approx(counts, abs=1e-6)


def test_noise_that_no_window_holds_gives_finite_counts():
    values = [np.array([1e9, -1e9]), np.array([-1e9, 5.0, 1e9, 0.0])]
    means = split_means(TREE, values, [1.0, 1.0])
    assert np.isfinite(means).all() and (means >= 0).all()


def test_weights_of_a_large_grid_are_learned_on_boxes_that_lie_over_it(monkeypatch):
    from dphist_pipeline.solvers.trees import split_posterior

    monkeypatch.setattr(split_posterior, "LEARNED_ON", 1 << 8)
    counts = np.repeat([0, 40], 512)
    tree, source = halving_tree((1024,)), np.random.default_rng(9)
    levels = noisy(tree, counts, 10.0, source)
    means = split_means(tree, levels, [10.0] * len(levels))
    plain = consistent_cells(tree, levels, [200.0] * len(levels))
    assert np.mean((means - counts) ** 2) < 0.3 * np.mean((plain - counts) ** 2)


def test_trees_of_halvings_hold_the_grid_and_small_boxes():
    assert least_variance((4096,)).widths == ((256,), (16,), (1,))
    assert over_boxes((256, 256), 16).widths == ((16, 16), (4, 4), (1, 1))
    assert halving_tree((256, 256)).widths == over_boxes((256, 256), 16).widths
    assert over_boxes((16, 16, 16), 16).widths == ((4, 2, 2), (1, 1, 1))


def test_laws_of_splits_are_laws():
    tables = kernels.law_tables(3.0)
    assert tables.sum(axis=2) == pytest.approx(1.0)
    totals, parts = np.ogrid[: tables.shape[1], : tables.shape[2]]
    others = np.where(parts <= totals, totals - parts, parts)
    mirrored = np.take_along_axis(tables, np.broadcast_to(others, tables.shape), axis=2)
    np.testing.assert_allclose(tables, mirrored, rtol=1e-6, atol=1e-12)
