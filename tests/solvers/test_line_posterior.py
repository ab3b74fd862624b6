"""Mean counts given weighted sums of a line: the algebra against dense matrices, and on counts of a known kind."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dphist_pipeline.estimates.lines import weighted_line
from dphist_pipeline.solvers.trees import _line_posterior
from dphist_pipeline.solvers.trees._halved_boxes import NOTHING, HalvedBoxes
from dphist_pipeline.solvers.trees._line_posterior import Weighed, WeighedAxis, weighted_means
from dphist_pipeline.solvers.trees.workload_strategies import gram_of_ranges, strategy_for

WEIGHTS = {}


def weighed(counts, scale, source):
    """Weighted sums of a line with noise of one scale, times the total of the weights."""
    if counts.size not in WEIGHTS:
        WEIGHTS[counts.size] = np.vstack(strategy_for(gram_of_ranges(counts.size)))
    line = weighted_line(WEIGHTS[counts.size])
    own, sums = line.weights[0].astype(float), line.weights[1:].astype(float)
    scale *= line.total
    drawn = source.geometric(-np.expm1(-1 / scale), (2, counts.size + len(sums)))
    measured = np.concatenate([own * counts, sums @ counts]) + drawn[0] - drawn[1]
    return Weighed(WeighedAxis(own, sums, line.shared), measured, scale, line.estimates(measured))


def squared(values, counts):
    """The mean squared error of all ranges."""
    ends = np.append(0.0, np.cumsum(values - counts))
    return np.mean((ends[:, None] - ends) ** 2)


@pytest.mark.parametrize("size", [2, 5, 8, 13])
def test_stand_ins_are_divided_out_as_by_dense_matrices(size):
    source = np.random.default_rng(size)
    chain = [(1 << level,) for level in range((size - 1).bit_length(), -1, -1)]
    levels = len(chain)
    given = HalvedBoxes.around(chain, np.ones(size), [1.0] * levels, [NOTHING] * levels, 1.0)
    root = source.normal(size=(size, size))
    covariance = root @ root.T + np.eye(size)
    boxes = [np.add.reduceat(np.eye(size), np.arange(0, size, width), axis=0) for (width,) in chain]
    spread = [np.einsum("ij,jk,ik->i", box, covariance, box) for box in boxes]
    offsets = [source.normal(size=len(box)) for box in boxes[:-1]] + [np.empty(0)]
    precisions = [np.full(len(box), 1e-3) for box in boxes[:-1]] + [np.empty(0)]
    sums = source.normal(size=(3, size))
    found = _line_posterior._without_stand_ins(given.halves, spread, offsets, precisions, sums, 1e-9)
    # The law on the tree: the first box, then each left half given its whole.
    law = np.outer(boxes[0][0], boxes[0][0]) / spread[0][0]
    for number, (left, right) in enumerate(given.halves):
        for box, (one, two) in enumerate(zip(left, right, strict=True)):
            if two >= 0:
                wide, own, other = spread[number][box], spread[number + 1][one], spread[number + 1][two]
                part = (wide + own - other) / (2 * wide)
                away = boxes[number + 1][one] - part * boxes[number][box]
                law += np.outer(away, away) / (own - part**2 * wide)
    lines = np.zeros(size)
    for box, offset, precision in zip(boxes[:-1], offsets, precisions, strict=False):
        law -= box.T @ (precision[:, None] * box)
        lines -= box.T @ (precision * offset)
    assert found == pytest.approx(np.linalg.solve(law, np.column_stack([lines, sums.T])), rel=1e-6, abs=1e-9)


def test_stand_ins_that_tell_more_than_the_law_leave_one_with_variances():
    source, size = np.random.default_rng(7), 16
    chain = [(1 << level,) for level in range(4, -1, -1)]
    given = HalvedBoxes.around(chain, np.ones(size), [1.0] * 5, [NOTHING] * 5, 1.0)
    spread = [np.full(size >> level, float(1 << level)) for level in range(4, -1, -1)]
    for told in (0.5, 5.0, 500.0):
        precisions = [*(np.full(size >> level, told) for level in range(4, 0, -1)), np.empty(0)]
        offsets = [source.normal(size=one.size) for one in precisions]
        rest = _line_posterior._without_stand_ins(given.halves, spread, offsets, precisions, np.eye(size), 1e-3)
        covariance = rest[:, 1:]
        assert covariance == pytest.approx(covariance.T, rel=1e-6, abs=1e-9)
        assert np.linalg.eigvalsh(covariance).min() > 0


def test_rough_counts_far_above_the_noise_are_the_least_squares_ones():
    source = np.random.default_rng(3)
    given = weighed(source.integers(20_000, 90_000, 200), 1.0, source)
    assert abs(np.cumsum(weighted_means(given) - given.cells)).max() < 3.0


def squared_errors(counts: NDArray[np.int64], source: np.random.Generator, releases: int = 5) -> tuple[float, float]:
    """Squared errors of the means and of least squares, over releases together."""
    drawn = [weighed(counts, 10.0, source) for _ in range(releases)]
    return sum(squared(weighted_means(one), counts) for one in drawn), sum(squared(one.cells, counts) for one in drawn)


@pytest.mark.soak  # a study of accuracy: five releases by every window of 500 cells
def test_ranges_of_a_line_that_is_nearly_empty_are_much_nearer():
    counts = np.zeros(500, dtype=np.int64)
    counts[[40, 41, 180, 333]] = 300, 90, 2_000, 45
    near, plain = squared_errors(counts, np.random.default_rng(4))
    assert near < 0.3 * plain


@pytest.mark.slow
def test_a_gentle_slope_is_nearer_than_least_squares():
    source = np.random.default_rng(5)
    counts = source.poisson(np.linspace(40, 10, 300))
    near, plain = squared_errors(counts, source, 2)
    assert near < 0.9 * plain


def test_noise_that_no_window_holds_gives_finite_counts():
    given = weighed(np.full(50, 7), 1.0, np.random.default_rng(6))
    wild = given.measured.copy()
    wild[::3] += 1e9
    found = weighted_means(Weighed(given.axis, wild, given.scale, given.cells + 1e6))
    assert np.isfinite(found).all()
