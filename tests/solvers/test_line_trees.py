"""Trees along axes, multiplied: least squares, covariances and weights of dense matrices; promised variances."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.solvers.trees.line_trees import (
    TOTAL,
    LineTree,
    TreeProduct,
    line_tree,
    query_squares,
    range_squares,
    weighed_levels,
)
from dphist_pipeline.solvers.trees.regular_tree import covariance, halving_tree, mean_variance

WHOLE = (LineTree(12, (4, 2, 1), (100, 50, 106)), LineTree(6, (3, 1), (56, 200)))
PADDED = (LineTree(11, (4, 2, 1), (100, 50, 106)), LineTree(5, (3, 1), (56, 200)))


def measured(trees: TreeProduct) -> list[np.ndarray]:
    """The boxes of every combination as rows of 0 and 1."""
    cells = math.prod(trees.shape)
    rows = [np.zeros((int(boxes.max()) + 1, cells)) for boxes in trees.boxes]
    for matrix, boxes in zip(rows, trees.boxes, strict=True):
        matrix[boxes.ravel(), np.arange(cells)] = 1
    return rows


def estimator(trees: TreeProduct) -> np.ndarray:
    """The weight of every draw in every cell, by inverting the normal equations."""
    rows = measured(trees)
    stacked = np.vstack(rows)
    weights = np.concatenate([np.full(len(one), share**2) for one, share in zip(rows, trees.shares, strict=True)])
    return np.linalg.inv(stacked.T @ (weights[:, None] * stacked)) @ (stacked.T * weights)


def variances_at(trees: TreeProduct, epsilon: int) -> list[float]:
    whole = sum(trees.shares)
    return [noise_law(Fraction(whole, share * epsilon)).variance for share in trees.shares]


@pytest.mark.parametrize("lines", [WHOLE[:1], WHOLE])
@pytest.mark.parametrize("epsilon", [1, 50])
def test_estimates_covariances_and_weights_are_those_of_dense_matrices(
    lines: tuple[LineTree, ...], epsilon: int
) -> None:
    trees, rows = TreeProduct(lines), measured(TreeProduct(lines))
    by_hand, drawn = estimator(trees), np.random.Generator(np.random.PCG64(1)).normal(size=[sum(map(len, rows))])
    ends = np.cumsum([0, *map(len, rows)])
    parts = [drawn[start:stop] for start, stop in pairwise(ends)]
    assert trees.estimates(parts).ravel() == pytest.approx(by_hand @ drawn)
    variances = variances_at(trees, epsilon)
    each = np.concatenate([np.full(len(one), noise) for one, noise in zip(rows, variances, strict=True)])
    shared = zip(trees.covariance(variances), trees.boxes, strict=True)
    found = sum(part * np.equal.outer(boxes.ravel(), boxes.ravel()) for part, boxes in shared)
    assert found == pytest.approx(by_hand * each @ by_hand.T)
    for one, most, box in zip(rows, trees.largest_weights(), np.split(by_hand, ends[1:-1], axis=1), strict=True):
        assert most == pytest.approx(max(weights[row > 0].sum() for row, weights in zip(one, box.T, strict=True)))
        assert most <= 1


@pytest.mark.parametrize("lines", [PADDED[:1], PADDED])
def test_padding_leaves_estimates_unbiased_and_makes_variances_bounds(lines: tuple[LineTree, ...]) -> None:
    trees = TreeProduct(lines)
    rows, exact = measured(trees), np.arange(math.prod(trees.shape)) ** 2.0
    assert trees.estimates([one @ exact for one in rows]).ravel() == pytest.approx(exact)
    by_hand = np.zeros((exact.size, sum(map(len, rows))))
    ends = np.cumsum([0, *map(len, rows)])
    for place in range(by_hand.shape[1]):
        drawn = np.zeros(by_hand.shape[1])
        drawn[place] = 1
        parts = [drawn[start:stop] for start, stop in pairwise(ends)]
        by_hand[:, place] = trees.estimates(parts).ravel()
    variances = variances_at(trees, 1)
    each = np.concatenate([np.full(len(one), noise) for one, noise in zip(rows, variances, strict=True)])
    true, bound = (by_hand**2) @ each, math.fsum(trees.covariance(variances))
    assert (true <= bound * (1 + 1e-9)).all() and true.min() > 0.8 * bound
    most = np.concatenate(
        [np.full(len(one), weight) for one, weight in zip(rows, trees.largest_weights(), strict=True)]
    )
    for low, high in ((0, exact.size), (0, 3), (4, 9), (2, 11)):
        weights = by_hand.reshape(*trees.shape, -1)[low:high].reshape(-1, by_hand.shape[1]).sum(axis=0)
        assert (np.abs(weights) <= most * (1 + 1e-9)).all()


QUESTIONS: dict[str, Callable[[int], tuple[np.ndarray, np.ndarray]]] = {
    "ranges": lambda n: tuple(np.array([(a, b) for a in range(n) for b in range(a + 1, n + 1)]).T),  # type: ignore
    "prefixes": lambda n: (np.zeros(n, dtype=int), np.arange(1, n + 1)),
    "windows": lambda n: (np.arange(n - 4), np.arange(5, n + 1)),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_are_weighed_as_if_written_out(name: str) -> None:
    low, high = QUESTIONS[name](23)
    weights = np.linspace(1, 3, low.size)
    for width in (1, 2, 4, 10, 23, 30):
        nodes = np.arange(23) // width
        inside = (np.arange(23) >= low[:, None]) & (np.arange(23) < high[:, None])
        squares = np.array([(np.bincount(nodes, one) ** 2).sum() for one in inside.astype(float)])
        assert query_squares(low, high)(width) == pytest.approx(squares.mean())
        assert query_squares(low, high, weights)(width) == pytest.approx((weights * squares).sum() / weights.sum())
        if name == "ranges":
            assert range_squares(23)(width) == pytest.approx(squares.mean())


@pytest.mark.parametrize(("name", "most"), [("ranges", 115), ("prefixes", 92), ("windows", 10)])
def test_shares_add_up_and_give_the_mean_variance_that_is_told(name: str, most: float) -> None:
    """In (sensitivity / epsilon)²; single cells alone have 343, 513 and 10."""
    squares = query_squares(*QUESTIONS[name](512))
    tree = line_tree(512, squares)
    assert sum(tree.shares) == TOTAL and min(tree.shares) > 0 and tree.widths[-1] == 1
    parts = TreeProduct((tree,)).covariance([2 * (TOTAL / share) ** 2 for share in tree.shares])
    told = sum(part * squares(width) for part, width in zip(parts, tree.widths, strict=True))
    assert 0.9 * most < told <= most


@pytest.mark.soak
@pytest.mark.parametrize(("cells", "most"), [(65_536, 614), (1_048_576, 1_194)])
def test_all_ranges_of_a_long_axis_have_the_mean_variance_that_is_promised(cells: int, most: float) -> None:
    squares = range_squares(cells)
    tree = line_tree(cells, squares)
    parts = TreeProduct((tree,)).covariance([2 * (TOTAL / share) ** 2 for share in tree.shares])
    assert sum(part * squares(width) for part, width in zip(parts, tree.widths, strict=True)) <= most


@pytest.mark.parametrize(
    ("shape", "most"),
    [((256, 256), 0.78), ((64, 64), 0.97), ((1_000, 1_000), 0.9), ((75, 100), 1.06), ((80, 200), 1.08)],
)
def test_shares_for_boxes_pay_where_no_cell_is_empty_or_cost_little(shape: tuple[int, ...], most: float) -> None:
    """The mean variance over all boxes by that of equal shares; the box of all cells costs up to 8 % of small grids."""
    equal = halving_tree(shape)
    tree, shares = weighed_levels(equal)
    assert sum(shares) == TOTAL and min(shares) > 0 and tree.widths[1:] == equal.widths
    assert math.prod(tree.grid(0)) == 1 and shares[0] == TOTAL // 16
    by_equal = mean_variance(equal, covariance(equal, [len(equal.widths) ** 2] * len(equal.widths)))
    ratio = mean_variance(tree, covariance(tree, [(TOTAL / share) ** 2 for share in shares])) / by_equal
    assert most - 0.05 < ratio < most


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (16, 16)])
def test_a_grid_of_cells_alone_has_no_other_level(shape: tuple[int, ...]) -> None:
    assert weighed_levels(halving_tree(shape)) == (halving_tree(shape), (TOTAL,))


def test_upper_levels_get_more_than_where_no_cell_is_empty() -> None:
    """For the grid of 256 × 256: 0.23, 0.25 and 0.52 of the rest would have the least variance there."""
    assert weighed_levels(halving_tree((256, 256)))[1] == (16, 63, 60, 117)
