"""Mean counts given weighted sums along the axes of a grid: the algebra against dense matrices, and known counts."""

from __future__ import annotations

import numpy as np
import pytest

from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.lines import NoisyWeightedSums, weighted_line
from dphist_pipeline.solvers.trees import sums_posterior
from dphist_pipeline.solvers.trees._halved_boxes import NOTHING, Evidence, HalvedBoxes
from dphist_pipeline.solvers.trees._line_posterior import WeighedAxis
from dphist_pipeline.solvers.trees.regular_tree import halving_tree
from dphist_pipeline.solvers.trees.split_posterior import halvings
from dphist_pipeline.solvers.trees.sums_posterior import WeighedGrid, weighted_means
from dphist_pipeline.solvers.trees.workload_strategies import total_along, weights_along
from dphist_pipeline.workbench.evaluation.workloads import random_boxes

SMALL = ((5, 3), (8, 4), (2, 7), (3, 2, 4))


def lines_of(shape):
    return [weighted_line(weights_along("ranges", size, total_along(len(shape)))) for size in shape]


def axes_of(shape):
    weights = [(line.weights.astype(float), line.shared) for line in lines_of(shape)]
    return [WeighedAxis(each[0], each[1:], shared) for each, shared in weights]


def weighed(counts, epsilon, source):
    """Weighted sums and the total of a grid, with noise as the mechanism has it."""
    lines = lines_of(counts.shape)
    scale = noise_law(16 * np.prod([line.total for line in lines]) / (15 * epsilon)).scale
    plain = WeighedGrid(axes_of(counts.shape), np.empty(0), float(scale), counts, (0.0, 1.0))
    exact = plain.weighted(counts.astype(float))

    def noise(scale, shape):
        drawn = source.geometric(-np.expm1(-1 / scale), (2, *shape))
        return drawn[0] - drawn[1]

    measured = exact + noise(float(scale), exact.shape)
    cells = NoisyWeightedSums(measured.ravel(), tuple(lines), scale).estimates()
    total = float(counts.sum() + noise(16 / epsilon, ())), 16 / epsilon
    return WeighedGrid(plain.axes, measured, float(scale), cells, total)


def squared(values, counts):
    """The mean squared error of random boxes."""
    boxes = random_boxes(counts.shape, 500)
    return np.mean((boxes.sums(values) - boxes.sums(counts)) ** 2)


def dense(shape):
    """The matrix of all weighted sums of a grid."""
    matrix = np.ones((1, 1))
    for axis in axes_of(shape):
        matrix = np.kron(matrix, np.vstack([np.diag(axis.own), axis.sums]))
    return matrix


@pytest.mark.parametrize("shape", [(60, 5), (40, 3, 2)])
def test_sums_and_variances_are_those_of_dense_matrices(shape):
    matrix, size = dense(shape), int(np.prod(shape))
    cells = np.random.default_rng(1).normal(size=shape)
    grid = WeighedGrid(axes_of(shape), np.empty(0), np.sqrt(0.5), cells, (0.0, 1.0))
    assert len(matrix) > size
    assert grid.weighted(cells).ravel() == pytest.approx(matrix @ cells.ravel())
    numbers = np.random.default_rng(2).normal(size=grid.weighted(cells).shape)
    assert grid.gathered(numbers).ravel() == pytest.approx(matrix.T @ numbers.ravel())
    covariance = np.linalg.inv(matrix.T @ matrix)
    chain = halvings(halving_tree(shape))
    whole = np.ones(size)
    assert grid.variances_of_boxes(chain[0])[0] == pytest.approx(whole @ covariance @ whole)
    (wide, narrow) = (64, *(1,) * len(shape[1:])), (32, *(1,) * len(shape[1:]))
    difference = np.where(np.arange(shape[0]) < 32, 1.0, -1.0)
    halves = [np.ravel(difference[:, None] * np.eye(size // shape[0])[place]) for place in range(size // shape[0])]
    wanted = np.mean([each @ covariance @ each for each in halves]) / shape[0]
    assert grid.variance_of_halves(wide, narrow) == pytest.approx(wanted)


def boxes_of(shape):
    """All boxes of halved grids as rows of cells, level by level, and their halves."""
    chain = halvings(halving_tree(shape))
    levels = len(chain)
    halved = HalvedBoxes.around(chain, np.ones(shape), [1.0] * levels, [NOTHING] * levels, 1.0).halves
    rows = [np.eye(int(np.prod(shape)))]
    for left, right in reversed(halved):
        rows.insert(0, rows[0][left] + rows[0][right] * (right >= 0)[:, None])
    return rows, halved


@pytest.mark.parametrize("shape", SMALL)
def test_the_law_on_the_tree_is_that_of_dense_matrices(shape):
    source = np.random.default_rng(len(shape))
    rows, halves = boxes_of(shape)
    size = rows[-1].shape[1]
    root = source.normal(size=(size, size))
    covariance = root @ root.T + np.eye(size)
    spread = [np.einsum("ij,jk,ik->i", each, covariance, each) for each in rows]
    told = [0.0, *source.uniform(0, 1e-3, len(rows) - 2), 0.0]
    law = sums_posterior._SplitLaw.of(halves, spread, told, 1e-9)
    dense_law = np.outer(rows[0][0], rows[0][0]) / spread[0][0]
    for number, (left, right) in enumerate(halves):
        for box, (one, two) in enumerate(zip(left, right, strict=True)):
            if two >= 0:
                wide, own, other = spread[number][box], spread[number + 1][one], spread[number + 1][two]
                part = (wide + own - other) / (2 * wide)
                away = rows[number + 1][one] - part * rows[number][box]
                dense_law += np.outer(away, away) / (own - part**2 * wide)
    without = dense_law - sum(precision * each.T @ each for precision, each in zip(told, rows, strict=True))
    assert np.array([law.times(each) for each in np.eye(size)]) == pytest.approx(without, rel=1e-9, abs=1e-9)
    inverse = np.array([law.inverse_with_stand_ins(each) for each in np.eye(size)])
    assert inverse == pytest.approx(np.linalg.inv(dense_law), rel=1e-6, abs=1e-9)


def test_sums_are_multiplied_into_the_law_on_the_tree_once_and_cells_not_again(monkeypatch):
    shape, source = (60, 3), np.random.default_rng(12)
    rows, halves = boxes_of(shape)
    means, size = source.normal(9, 2, 180), 180
    spread = [each.sum(axis=1) * 20.0 for each in rows]
    monkeypatch.setattr(sums_posterior, "stand_ins", lambda chain, *_: [NOTHING] * len(chain))
    monkeypatch.setattr(sums_posterior, "moments_on_tree", lambda *_: (means, spread, 1e-9))
    given = weighed(source.poisson(9, shape), 1.0, source)
    own, matrix = given.own.ravel(), dense(shape)
    law = sums_posterior._SplitLaw.of(halves, spread, [0.0] * len(rows), 1e-9)
    precision = np.array([law.times(each) for each in np.eye(size)])
    told = matrix.T @ matrix - np.diag(own**2)
    alone = np.zeros(given.measured.shape)
    alone[:60, :3] = given.measured[:60, :3] - given.own * means.reshape(shape)
    lacking = matrix.T @ (given.measured.ravel() - matrix @ means - alone.ravel())
    moved = np.linalg.solve(precision + told / given.variance, lacking / given.variance)
    assert np.abs(moved).max() > 0.3
    assert weighted_means(given).ravel() == pytest.approx(means + moved, abs=2e-3)


def test_equations_are_solved_and_those_without_a_solution_end():
    source = np.random.default_rng(8)
    root = source.normal(size=(30, 30))
    matrix, right = root @ root.T + np.eye(30), source.normal(size=30)
    found = sums_posterior._solve(lambda each: matrix @ each, right, lambda each: each / np.diag(matrix))
    assert found == pytest.approx(np.linalg.solve(matrix, right), abs=1e-3)
    assert not sums_posterior._solve(lambda each: -each, right, lambda each: each).any()


def test_rough_counts_far_above_the_noise_are_the_least_squares_ones():
    source = np.random.default_rng(3)
    counts = source.integers(20_000, 90_000, (40, 30))
    given = weighed(counts, 1.0, source)
    assert squared(weighted_means(given), given.cells) < 0.1 * squared(given.cells, counts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["few", "gentle"])
def test_boxes_of_counts_with_structure_are_nearer_than_least_squares(kind):
    source = np.random.default_rng(4)
    counts = np.zeros((70, 40), dtype=np.int64)
    if kind == "few":
        counts[[3, 20, 21, 60], [5, 30, 30, 11]] = 300, 90, 2_000, 45
    else:
        counts = source.poisson(np.linspace(9, 2, 70)[:, None] * np.ones(40))
    drawn = [weighed(counts, 0.2, source) for _ in range(4)]
    near, plain = (
        sum(squared(each, counts) for each in every)
        for every in (map(weighted_means, drawn), [one.cells for one in drawn])
    )
    assert near < (0.3 if kind == "few" else 0.7) * plain


def test_noise_that_no_window_holds_gives_finite_counts():
    given = weighed(np.full((20, 12), 7), 1.0, np.random.default_rng(6))
    wild = given.measured.copy()
    wild[::3] += 1e9
    found = weighted_means(WeighedGrid(given.axes, wild, given.scale, given.cells + 1e6, (1e12, 16.0)))
    assert np.isfinite(found).all()


def test_pieces_of_a_large_grid_lie_evenly_over_it_and_keep_what_was_measured():
    shape = (32, 16)
    chain = halvings(halving_tree(shape))
    cells = np.random.default_rng(9).poisson(20, shape).astype(float)
    evidence = [NOTHING] * (len(chain) - 1) + [Evidence(cells.ravel(), np.full(cells.size, 2.0))]
    boxes = HalvedBoxes.around(chain, cells, [3.0] * len(chain), evidence, 2.0)
    assert boxes.pieces(512) == [boxes]
    pieces = boxes.pieces(128)
    assert [piece.cells.size for piece in pieces] == [32] * 4
    found = [piece.levels[-1].evidence.noisy for piece in pieces]
    assert all(noisy == pytest.approx(piece.cells) for noisy, piece in zip(found, pieces, strict=True))
    assert sorted(np.concatenate(found)) != sorted(cells.ravel())[:128]
    for piece in pieces:
        # The cells below both halves of the first box, once each.
        left, right = piece.halves[0]
        assert (left.tolist(), right.tolist()) == ([0], [1])
        assert piece.levels[0].starts[-1] == np.diff(piece.levels[0].starts).sum()
