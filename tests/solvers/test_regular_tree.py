"""Trees of equal boxes: their least squares estimate and its covariance, against the normal equations in full."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from dphist_pipeline.estimates.noisy import NestedCells, SharedNoise
from dphist_pipeline.solvers.trees.line_trees import largest_weights
from dphist_pipeline.solvers.trees.regular_tree import (
    RegularTree,
    best_tree,
    branching_tree,
    covariance,
    mean_square,
    mean_variance,
    weights_in_a_cell,
)
from dphist_pipeline.solvers.trees.tree_consistency import consistent, consistent_cells

TREES = {
    "binary": branching_tree((8,), 2),
    "one cell": branching_tree((1,), 2),
    "cells alone": RegularTree((5,), ((1,),)),
    "padded binary": branching_tree((9,), 2),
    "padded ternary": branching_tree((11,), 3),
    "many tops": RegularTree((10,), ((4,), (2,), (1,))),
    "square": branching_tree((4, 4), 2),
    "a long and a short side": branching_tree((9, 2), 3),
    "padded oblong": branching_tree((5, 3), 2),
    "many children": branching_tree((10, 23), 9),
    "three axes": RegularTree((3, 2, 5), ((2, 2, 4), (2, 1, 2), (1, 1, 1))),
}


def rows_of(tree: RegularTree) -> list[np.ndarray]:
    """For each level, which cells of the padded grid each of its nodes spans, as rows of 0 and 1."""
    cells = tree.padded_grid(len(tree.widths) - 1)
    places = np.indices(cells).reshape(len(cells), -1)
    found = []
    for level, widths in enumerate(tree.widths):
        numbers = np.ravel_multi_index(places // np.array(widths)[:, None], tree.padded_grid(level))
        found.append((np.arange(numbers.max() + 1)[:, None] == numbers[None, :]).astype(float))
    return found


def inside(tree: RegularTree, level: int) -> np.ndarray:
    """Which nodes of a level hold a cell of the grid."""
    mask = np.zeros(tree.padded_grid(level), dtype=bool)
    mask[tuple(slice(nodes) for nodes in tree.grid(level))] = True
    return mask.ravel()


def by_normal_equations(tree: RegularTree, variances: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """The covariance of the padded cells, and the cells as a linear map of all measurements, padding included."""
    rows = np.concatenate(rows_of(tree))
    weights = np.concatenate([np.full(math.prod(tree.padded_grid(level)), 1 / v) for level, v in enumerate(variances)])
    inverse = np.linalg.inv(rows.T @ (weights[:, None] * rows))
    return inverse, inverse @ rows.T * weights


def variances_of(tree: RegularTree) -> list[float]:
    return [1.5 + (level * 7 % 5) for level in range(len(tree.widths))]


def shared(tree: RegularTree, coefficients: list[float]) -> np.ndarray:
    """Σ c_l B_l over the padded cells."""
    return sum(part * rows.T @ rows for part, rows in zip(coefficients, rows_of(tree), strict=True))


@pytest.mark.parametrize("name", TREES)
def test_the_estimate_is_that_of_the_normal_equations_with_an_empty_padding(name: str) -> None:
    tree, source = TREES[name], np.random.default_rng(3)
    variances = variances_of(tree)
    measured = [source.normal(0, 100, math.prod(tree.grid(level))) for level in range(len(tree.widths))]
    everywhere = []
    for level, values in enumerate(measured):
        padded = np.zeros(math.prod(tree.padded_grid(level)))
        padded[inside(tree, level)] = values
        everywhere.append(padded)
    best = by_normal_equations(tree, variances)[1] @ np.concatenate(everywhere)
    found = consistent_cells(tree, measured, variances)
    assert found.shape == tree.shape
    assert found.ravel() == pytest.approx(best[inside(tree, -1)], rel=1e-9, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", TREES)
def test_the_covariance_is_the_inverse_of_the_normal_equations(name: str) -> None:
    tree = TREES[name]
    variances = variances_of(tree)
    inverse = by_normal_equations(tree, variances)[0]
    assert shared(tree, covariance(tree, variances)) == pytest.approx(inverse, rel=1e-9, abs=1e-9)


def test_a_level_that_is_not_measured_changes_nothing() -> None:
    tree, without = branching_tree((8,), 2), RegularTree((8,), ((8,), (2,), (1,)))
    with_it = covariance(tree, [3.0, math.inf, 2.0, 1.0])
    assert with_it[1] == 0
    assert with_it[:1] + with_it[2:] == pytest.approx(covariance(without, [3.0, 2.0, 1.0]))


@pytest.mark.parametrize("name", TREES)
def test_sums_of_cells_have_the_stated_variance_and_less_only_with_padding(name: str) -> None:
    tree, source = TREES[name], np.random.default_rng(5)
    variances = variances_of(tree)
    real = np.concatenate([inside(tree, level) for level in range(len(variances))])
    noise = np.concatenate([np.full(math.prod(tree.padded_grid(level)), v) for level, v in enumerate(variances)])
    linear = by_normal_equations(tree, variances)[1][inside(tree, -1)]
    true = (linear * np.where(real, noise, 0)) @ linear.T
    parts = tuple(map(SharedNoise, covariance(tree, variances), tree.widths))
    cells = NestedCells(np.zeros(tree.shape), 1, parts)
    padded = not real.all()
    for _ in range(60):
        chosen = [np.flatnonzero(source.random(size) < source.choice([0.2, 0.6, 1.1])) for size in tree.shape]
        if not all(positions.size for positions in chosen):
            continue
        mask = np.zeros(tree.shape)
        mask[np.ix_(*chosen)] = 1
        exact = mask.ravel() @ true @ mask.ravel()
        stated = cells.variance_of_sum(chosen)
        assert stated >= exact * (1 - 1e-9)
        assert stated <= exact * (2 if padded else 1 + 1e-9)
        # In no sum does a draw weigh more than once.
        assert np.abs(mask.ravel() @ linear * np.sqrt(noise / max(variances))).max() <= 1 + 1e-9
    assert cells.variance == pytest.approx(cells.variance_of_sum([np.zeros(1, dtype=int)] * len(tree.shape)))


def test_node_numbers_are_a_partition_into_boxes_of_the_stated_widths() -> None:
    tree = branching_tree((7, 3), 2)
    assert tree.widths == ((8, 4), (4, 4), (2, 2), (1, 1))
    nodes = list(tree.nodes)
    assert len(nodes) == len(tree.nodes) == 4
    for level, numbers in enumerate(nodes):
        assert numbers.shape == (7, 3)
        assert sorted(set(numbers.ravel())) == list(range(math.prod(tree.grid(level))))
        for one, other in product(np.ndindex(7, 3), repeat=2):
            together = all(a // w == b // w for a, b, w in zip(one, other, tree.widths[level], strict=True))
            assert (numbers[one] == numbers[other]) == together


def test_the_first_node_is_no_wider_than_the_nodes_below_it_need() -> None:
    assert branching_tree((17,), 16).widths == ((32,), (16,), (1,))
    assert branching_tree((16,), 16).widths == ((16,), (1,))
    assert branching_tree((5,), 10**9).widths == ((5,), (1,))


def test_a_tree_needs_whole_nodes_and_ends_in_cells() -> None:
    with pytest.raises(ValueError, match="whole nodes"):
        RegularTree((8,), ((4,), (3,), (1,)))
    with pytest.raises(ValueError, match="its cells"):
        RegularTree((8,), ((4,), (2,)))


@pytest.mark.parametrize("size", [1, 2, 7, 12])
def test_the_mean_square_is_that_of_all_ranges(size: int) -> None:
    ranges = [(low, high) for low in range(size) for high in range(low + 1, size + 1)]
    for width in range(1, size + 3):
        squares = [
            sum(max(0, min(high, at + width) - max(low, at)) ** 2 for at in range(0, size, width))
            for low, high in ranges
        ]
        assert mean_square(size, width) == pytest.approx(np.mean(squares), rel=1e-12)


def test_the_mean_variance_is_that_of_all_boxes() -> None:
    tree = branching_tree((5, 3), 2)
    variances = variances_of(tree)
    parts = covariance(tree, variances)
    cells = NestedCells(np.zeros(tree.shape), 1, tuple(map(SharedNoise, parts, tree.widths)))
    lines = [[np.arange(a, b) for a in range(size) for b in range(a + 1, size + 1)] for size in tree.shape]
    every = [cells.variance_of_sum(chosen) for chosen in product(*lines)]
    assert mean_variance(tree, parts) == pytest.approx(np.mean(every), rel=1e-12)


def mean_by_rates(tree: RegularTree) -> float:
    levels = len(tree.widths)
    return mean_variance(tree, covariance(tree, [levels**2] * levels))


def test_the_best_tree_branches_in_many_and_leaves_out_the_top() -> None:
    assert best_tree((4096,)).widths == ((256,), (16,), (1,))
    assert best_tree((100, 100)).widths == ((5, 5), (1, 1))
    assert best_tree((40,)).widths == ((1,),)
    for shape, gain in {(1000,): 0.25, (37, 52): 0.85}.items():
        best = mean_by_rates(best_tree(shape))
        assert best < gain * mean_by_rates(RegularTree(shape, ((1,) * len(shape),)))
        assert best < 0.45 * mean_by_rates(branching_tree(shape, 2))


@pytest.mark.parametrize("cells", [1, 2, 5, 8, 13])
@pytest.mark.parametrize("branching", [2, 3])
def test_whole_trees_give_what_the_solver_of_any_tree_gives(cells: int, branching: int) -> None:
    """Where the padding is measured as 0."""
    tree, source = branching_tree((cells,), branching), np.random.default_rng(cells)
    measured = [source.normal(0, 50, tree.grid(level)) for level in range(len(tree.widths))]
    padded = [
        np.append(values, np.zeros(tree.padded_grid(level)[0] - values.size)) for level, values in enumerate(measured)
    ]
    parents = [
        np.arange(tree.padded_grid(level)[0]) // (above // width)
        for level, ((above,), (width,)) in enumerate(zip(tree.widths, tree.widths[1:], strict=False), 1)
    ]
    variances = variances_of(tree)
    expected = consistent(padded, parents, variances)[-1][:cells]
    assert consistent_cells(tree, measured, variances) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("offset", [1e9, 1e13])
def test_a_large_count_does_not_eat_the_digits_of_its_neighbours(offset: float) -> None:
    tree, cells = branching_tree((4,), 2), np.array([offset, 1.0, 2.0, 3.0])
    measured = [np.array([offset + 6]), np.array([offset + 1, 5.0]), cells]
    assert consistent_cells(tree, measured, [1.0] * 3).tolist() == cells.tolist()


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_the_weights_of_a_cell_are_those_of_the_normal_equations(tree: RegularTree) -> None:
    levels = len(tree.widths)
    by_measurement = by_normal_equations(tree, [7.0] * levels)[1][0]
    volumes = tree.volumes
    found = weights_in_a_cell(volumes, covariance(tree, [7.0] * levels), 7.0)
    in_full = np.repeat([weight for weight, _ in found], [number for _, number in found])
    # Nodes below other top nodes weigh nothing, and are not listed.
    expected = np.abs(by_measurement)
    listed = np.sort(in_full[in_full > 1e-9])
    assert np.sort(expected[expected > 1e-9]) == pytest.approx(listed, abs=1e-9)


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_no_draw_has_a_larger_weight_in_a_box_than_in_the_sum_of_its_own_node(tree: RegularTree) -> None:
    variances = variances_of(tree)
    linear = by_normal_equations(tree, variances)[1]
    told = largest_weights(tree, covariance(tree, variances), variances)
    ends = np.cumsum([len(rows) for rows in rows_of(tree)])[:-1]
    shape = tree.padded_grid(len(tree.widths) - 1)
    sides = [[slice(low, high) for low in range(size) for high in range(low + 1, size + 1)][::3] for size in shape]
    boxes = np.array(
        [linear.reshape(*shape, -1)[box].reshape(-1, linear.shape[1]).sum(axis=0) for box in product(*sides)]
    )
    by_level = zip(told, rows_of(tree), np.split(boxes, ends, axis=1), strict=True)
    for level, (most, rows, weights) in enumerate(by_level):
        assert np.diag(np.split(rows @ linear, ends, axis=1)[level]) == pytest.approx(most)
        assert np.abs(weights).max() <= most * (1 + 1e-9) and most <= 1 + 1e-9
