"""AdaptiveBoxes: what is measured follows noisy counts alone, and sums of boxes have intervals that hold."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import dphist_pipeline as dph
from dphist_pipeline.estimates.noisy import NestedSums
from dphist_pipeline.mechanisms.adaptive_boxes import _halvings
from dphist_pipeline.workbench.evaluation.workloads import random_boxes
from examples import SOAKING

RELEASES = 400 if SOAKING else 200


def released(counts: np.ndarray, epsilon: str = "1", sensitivity: int = 1) -> dph.Estimate:
    return dph.sanitize(counts, mechanism="adaptive_boxes", epsilon=epsilon, sensitivity=sensitivity)


def levels_of(made: dph.Estimate) -> list[np.ndarray]:
    """The numbers of the boxes of each draw."""
    assert isinstance(made.sums, NestedSums)
    found = [np.flatnonzero(made.sums.parents < 0)]
    while (below := np.flatnonzero(np.isin(made.sums.parents, found[-1]))).size:
        found.append(below)
    return found


def test_the_total_has_a_part_of_32_and_three_draws_have_a_third_of_the_rest() -> None:
    made = released(np.ones((30, 20), dtype=np.int64), "24", 3)
    third = Fraction(31, 4)
    assert made.charges == (("total", Fraction(3, 4)), ("first", third), ("second", third), ("third", third))
    assert isinstance(made.sums, NestedSums) and made.sums.scale == 3 / third


def test_boxes_with_records_are_cut_to_cells_and_empty_ones_are_measured_three_times() -> None:
    counts = np.zeros((64, 64), dtype=np.int64)
    counts[:8, :8] = 100
    made = released(counts)
    first, second, third = levels_of(made)
    assert first.size == 64 and second.size < 64 + 80 and made.groups is not None
    assert np.unique(made.groups[:8, :8]).size == 64
    assert np.bincount(made.groups.ravel()).max() == 64 and third.size < 250
    assert np.abs(made.values[:8, :8] - 100).max() < 60 and np.abs(made.values[8:]).max() < 1


def test_many_records_have_a_first_grid_of_more_boxes() -> None:
    counts = np.full((32, 32), 40)
    # 40,960 records, epsilon 1: a 160th is 256.
    assert levels_of(released(counts))[0].size == 256
    assert levels_of(released(counts, sensitivity=4))[0].size == 64


@pytest.mark.parametrize(("noisy", "halvings"), [(-50, 0), (0, 0), (9, 0), (12, 1), (33, 2), (6_400_000, 20)])
def test_a_box_is_halved_by_its_own_noisy_count(noisy: float, halvings: int) -> None:
    assert _halvings(np.array([noisy, 1.0]), 2.0, 4).tolist() == [halvings, 0]


@pytest.mark.slow
def test_a_grid_with_heavy_cells_and_a_sparse_rest_has_less_error_than_by_others() -> None:
    generator = np.random.default_rng(8)
    heavy = np.repeat(generator.integers(0, 128, (20, 2)), 500, axis=0)
    places = np.concatenate([heavy, generator.integers(40, 90, (1500, 2))])
    counts = np.histogram2d(*places.T, bins=128, range=[[0, 128]] * 2)[0].astype(np.int64)
    boxes = random_boxes((128, 128), 1000)

    def error(mechanism: str) -> float:
        made = [dph.sanitize(counts, mechanism=mechanism, epsilon="1/4", sensitivity=1).values for _ in range(8)]
        return float(np.mean([(boxes.sums(values) - boxes.sums(counts)) ** 2 for values in made]))

    assert error("adaptive_boxes") < 0.5 * min(error(name) for name in ("adaptive_grid", "boost", "geometric"))


@pytest.mark.parametrize("shape", [(1,), (50,), (2, 1), (9, 4, 5), (3, 3, 3, 3)])
def test_every_number_of_axes_is_served(shape: tuple[int, ...]) -> None:
    made = released(np.full(shape, 30), "10")
    assert made.values.shape == shape and abs(made.values.sum() - 30 * made.cells) < 20 * math.sqrt(made.cells)


@pytest.mark.slow
def test_boxes_that_are_told_rarely_have_intervals_that_hold_as_often() -> None:
    """A part of an empty box is told by itself only where the draw of that box was far too large."""
    told, missed = 0, 0
    for _ in range(RELEASES):
        made = released(np.zeros((64, 64), dtype=np.int64))
        assert isinstance(made.sums, NestedSums)
        _, second, third = levels_of(made)
        names = [axis.name for axis in made.domain.axes]
        sizes, parents = made.sums.sizes, made.sums.parents
        parts = [box for box in [*second, *third] if sizes[box] < sizes[parents[box]]]
        for box in parts[:: len(parts) // 3 + 1]:
            inside = (made.groups >= made.sums.firsts[box]) & (made.groups <= made.sums.lasts[box])
            ends = [(int(axis.min()), int(axis.max()) + 1) for axis in np.nonzero(inside)]
            answer = made.box(**dict(zip(names, ends, strict=True)))
            told, missed = told + 1, missed + (not answer.ci_lower <= 0 <= answer.ci_upper)
    assert told > 300 and missed / told < 0.05 + 3 * math.sqrt(0.05 * 0.95 / told), (told, missed)
