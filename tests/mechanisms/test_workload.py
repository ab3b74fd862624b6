"""Workload: least squares undo the weights, exact covariances, intervals that hold, and less noise than trees."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import by_hand
import numpy as np
import pytest

import dphist_pipeline as dph
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import noise
from dphist_pipeline.estimates.lines import facts_of_line, lines_from_facts
from dphist_pipeline.estimates.noisy import NestedCells
from dphist_pipeline.mechanisms import DomainRefused, build, workload
from dphist_pipeline.publishing.published_files import read_audit
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.workbench.evaluation.workloads import random_boxes


def released(exact: np.ndarray, epsilon: str = "1", **settings: object) -> dph.Estimate:
    return dph.sanitize(exact, mechanism="workload", epsilon=epsilon, sensitivity=1, **settings)


def cells_of(made: dph.Estimate) -> NestedCells:
    assert isinstance(made.unbiased, NestedCells)
    return made.unbiased


@pytest.mark.parametrize("shape", [(1,), (7,), (40,), (30, 3), (2, 25, 3)])
@pytest.mark.parametrize("asked", ["ranges", "prefixes", "windows"])
def test_without_noise_the_cells_come_back(monkeypatch: pytest.MonkeyPatch, shape, asked) -> None:
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: np.zeros(size, dtype=np.int64))
    exact = np.arange(math.prod(shape)).reshape(shape) * 1000 + 7
    made = released(exact, workload=asked, length=5)
    assert made.values == pytest.approx(exact, abs=1e-6)
    assert made.charges == (("counts", 1),)


@pytest.fixture(scope="module")
def grid() -> NestedCells:
    return cells_of(released(np.zeros((30, 6), dtype=int)))


def dense(unbiased: NestedCells) -> np.ndarray:
    """The covariance of all cells, by inverting what was measured."""
    found = np.eye(1) * unbiased.shared[0].coefficient
    for line in unbiased.lines:
        measured = np.vstack([np.diag(line.weights[0]), line.weights[1:]]).astype(float)
        found = np.kron(found, np.linalg.inv(measured.T @ measured))
    return found


def test_every_variance_is_that_of_the_inverted_measurements(grid: NestedCells) -> None:
    covariance = dense(grid)
    assert grid.variances.ravel() == pytest.approx(covariance.diagonal())
    assert grid.variance == pytest.approx(covariance.diagonal().mean())
    for chosen in ([np.arange(3, 17), np.arange(6)], [np.array([0, 4, 29]), np.array([2, 3])]):
        inside = np.zeros((30, 6))
        inside[np.ix_(*chosen)] = 1
        assert grid.variance_of_sum(chosen) == pytest.approx(inside.ravel() @ covariance @ inside.ravel())


@pytest.mark.slow
def test_no_draw_weighs_more_than_the_scale_of_intervals_says(grid: NestedCells) -> None:
    measured = np.ones((1, 1))
    for line in grid.lines:
        measured = np.kron(measured, np.vstack([np.diag(line.weights[0]), line.weights[1:]]))
    weights = np.linalg.pinv(measured)
    worst = max(np.maximum(weights, 0).sum(axis=0).max(), np.maximum(-weights, 0).sum(axis=0).max())
    drawn = math.prod(line.total for line in grid.lines)  # scale of the draws, at epsilon 1
    assert worst * drawn <= float(grid.scale) * (1 + 1e-5)


def test_intervals_of_boxes_hold_and_errors_are_as_large_as_told() -> None:
    unbiased, runs = cells_of(released(np.zeros(40, dtype=int))), 4000
    (line,) = unbiased.lines
    drawn = noise.discrete_laplace(Fraction(line.total), runs * (line.positions + len(line.weights) - 1))
    errors = line.estimates(drawn.reshape(-1, runs).astype(float))
    for low, high in ((0, 1), (7, 8), (3, 9), (0, 40), (11, 30)):
        box, error = [np.arange(low, high)], errors[low:high].sum(axis=0)
        # The mean of 4,000 squares is off by 20 % with a probability below 10^-6, and 30 % of scale are 50 % of it.
        assert (error**2).mean() == pytest.approx(unbiased.variance_of_sum(box), rel=0.2)
        missed = (np.abs(error) > unbiased.half_width_of_box(box)).mean()
        assert 0.01 < missed < 0.05 + 6 * math.sqrt(0.05 / runs)


def test_ranges_have_less_noise_than_from_trees() -> None:
    cells = np.zeros(256, dtype=int)
    mine, theirs = (
        cells_of(dph.sanitize(cells, mechanism=name, epsilon=1, sensitivity=1)) for name in ("workload", "boost")
    )
    boxes = random_boxes((256,), 500)
    ranges = [[np.arange(*ends)] for ends in zip(boxes.low[:, 0], boxes.high[:, 0], strict=True)]
    variances = [np.mean([cells.variance_of_sum(one) for one in ranges]) for cells in (mine, theirs)]
    assert variances[0] < 0.88 * variances[1]


@pytest.mark.slow
def test_each_cell_is_published_with_its_own_interval_and_comes_back_from_the_files(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    axis = {"column": "age", "start": 0, "stop": 30, "width": 1}
    made = by_hand.estimate([axis])
    unbiased = cells_of(released(np.zeros(30, dtype=int), epsilon="1/2"))
    made = dph.Estimate(made.domain, unbiased.values, made.charges, unbiased=unbiased)
    release = by_hand.publish(tmp_path, made, [axis])
    rows = pq.read_table(release.path / "histogram.parquet").to_pylist()
    for number, row in enumerate(rows):
        reach = unbiased.half_width_of_box([np.array([number])])
        assert row["ci_upper"] - row["unbiased_estimate"] == pytest.approx(reach)
    assert len({round(row["ci_upper"] - row["ci_lower"], 6) for row in rows}) > 5
    back = published_unbiased(read_audit(release.path), unbiased.values)
    assert isinstance(back, NestedCells)
    assert np.array_equal(back.lines[0].weights, unbiased.lines[0].weights)
    assert (back.scale, back.tail, back.shared) == (unbiased.scale, unbiased.tail, unbiased.shared)


def test_weights_come_back_from_an_audit(grid: NestedCells) -> None:
    facts = [facts_of_line(line) for line in grid.lines]
    for line, back in zip(grid.lines, lines_from_facts(facts), strict=True):
        assert np.array_equal(line.weights, back.weights)
        assert line.number == back.number < 0


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Axes of more than 16 cells are long."""
    monkeypatch.setattr(workload, "MOST_WEIGHTED", 16)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("shape", [(17,), (40,), (30, 3), (2, 25, 3)])
@pytest.mark.parametrize("asked", ["ranges", "prefixes", "windows", "file"])
def test_on_a_long_axis_the_cells_come_back_without_noise(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], asked: str
) -> None:
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: np.zeros(size, dtype=np.int64))
    exact = np.arange(math.prod(shape)).reshape(shape) * 1000 + 7
    queries = {"queries": [(shape.index(max(shape)), 1, 17, 3.0)]} if asked == "file" else {}
    made = released(exact, workload=asked, length=12, **queries)
    assert made.values == pytest.approx(exact, abs=1e-6)
    assert sum(epsilon for _, epsilon in made.charges) == 1
    assert made.unbiased is not None and not getattr(made.unbiased, "lines", ())


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("epsilon", ["1/2", "3"])
def test_intervals_on_a_long_axis_hold_and_errors_are_as_large_as_told(epsilon: str) -> None:
    """At epsilon 3 the variances of draws are not those of continuous noise."""
    shape, runs = (40, 6), 2000
    trees = build("workload", {})._trees(Domain.from_shape(shape))
    unbiased, whole = cells_of(released(np.zeros(shape, dtype=int), epsilon=epsilon)), sum(trees.shares)
    widest = max(whole / share * weight for share, weight in zip(trees.shares, trees.largest_weights(), strict=True))
    assert float(unbiased.scale) == pytest.approx(widest / float(Fraction(epsilon)))
    errors = np.zeros((runs, *shape))
    drawn = [
        noise.discrete_laplace(Fraction(whole, share) / Fraction(epsilon), runs * (int(boxes.max()) + 1))
        for share, boxes in zip(trees.shares, trees.boxes, strict=True)
    ]
    for run in range(runs):
        errors[run] = trees.estimates([part.reshape(runs, -1)[run].astype(float) for part in drawn])
    for low, high in ((0, 1), (3, 9), (0, 40), (11, 30)):
        box, error = [np.arange(low, high), np.arange(1, 5)], errors[:, low:high, 1:5].sum(axis=(1, 2))
        # The mean of 2,000 squares is off by 25 % with a probability below 10^-6, and 30 % of scale are 50 % of it.
        assert (error**2).mean() == pytest.approx(unbiased.variance_of_sum(box), rel=0.25)
        missed = (np.abs(error) > unbiased.half_width_of_box(box)).mean()
        assert missed < 0.05 + 6 * math.sqrt(0.05 / runs)


@pytest.mark.usefixtures("short")
def test_boxes_with_a_long_axis_have_less_noise_than_from_one_tree() -> None:
    cells = np.zeros((300, 40), dtype=int)
    mine, theirs = (
        cells_of(dph.sanitize(cells, mechanism=name, epsilon=1, sensitivity=1)) for name in ("workload", "boost")
    )
    boxes = random_boxes((300, 40), 200)
    asked = [
        [np.arange(start, stop) for start, stop in zip(low, high, strict=True)]
        for low, high in zip(boxes.low, boxes.high, strict=True)
    ]
    variances = [np.mean([cells.variance_of_sum(one) for one in asked]) for cells in (mine, theirs)]
    assert variances[0] < 0.75 * variances[1]


@pytest.mark.usefixtures("short")
def test_a_release_with_a_long_axis_comes_back_from_the_files(tmp_path: Path) -> None:
    axis = {"column": "age", "start": 0, "stop": 50, "width": 1}
    unbiased = cells_of(released(np.zeros(50, dtype=int), epsilon="1/2"))
    made = by_hand.estimate([axis])
    release = by_hand.publish(
        tmp_path, dph.Estimate(made.domain, unbiased.values, made.charges, unbiased=unbiased), [axis]
    )
    back = published_unbiased(read_audit(release.path), unbiased.values)
    assert isinstance(back, NestedCells)
    assert (back.scale, back.tail, back.shared) == (unbiased.scale, unbiased.tail, unbiased.shared)


def test_axes_of_at_most_4096_cells_are_weighed_as_ever() -> None:
    assert cells_of(released(np.zeros(60, dtype=int))).lines
    assert not workload._is_long(Domain.from_shape((4096, 4096))) and workload._is_long(Domain.from_shape((4097, 2)))


@pytest.mark.parametrize(
    ("shape", "epsilon", "problem"),
    [
        (((1 << 20) + 1,), 1, "axes of at most 1,048,576 cells"),
        ((30, 30, 30, 30, 30), Fraction(1, 100), "an epsilon of at least 0.1 for these axes"),
        ((5000, 40, 40), Fraction(1, 10**6), "an epsilon of at least 2.4e-06 for these axes"),
    ],
)
def test_axes_and_epsilons_that_it_cannot_serve_are_refused(shape, epsilon, problem) -> None:
    with pytest.raises(DomainRefused, match=problem):
        build("workload", {}).check(Domain.from_shape(shape), 1, Fraction(epsilon))
