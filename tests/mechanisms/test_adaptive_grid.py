"""AdaptiveGrid: the sizes of both grids follow the paper's rules, from noisy numbers alone."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import dphist_pipeline as dph
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.estimates.noisy import NestedSums
from dphist_pipeline.mechanisms import DomainRefused, build
from dphist_pipeline.mechanisms.adaptive_grid import _first_grid
from dphist_pipeline.workbench.evaluation.workloads import random_boxes

EPSILON = 10
RELEASES = 600


def released(counts: np.ndarray, **settings: object) -> dph.Estimate:
    return dph.sanitize(counts, mechanism="adaptive_grid", epsilon=EPSILON, sensitivity=2, **settings)


def test_the_grids_have_as_many_parts_as_the_paper_says() -> None:
    # 20 boxes along an axis would need √(N·r/10)/4 = 20: N is 12,384, and r = 5.
    counts = np.zeros((120, 120), dtype=np.int64)
    counts[:6, :6] = 344
    made = released(counts)
    assert isinstance(made.sums, NestedSums) and made.groups is not None
    tops = np.flatnonzero(made.sums.parents < 0)
    many = math.ceil(math.sqrt(counts.sum() * 5 / 10) / 4)
    assert tops.size == many**2 == 400
    # The box of 6 × 6 cells that holds all records is cut to cells: √(12,384·2.45/5) is about 80. Most others are not.
    assert np.unique(made.groups[:6, :6]).size == 36
    parts = np.bincount(made.sums.parents[made.sums.parents >= 0])
    assert parts[0] == 36 and (parts[1:] <= 16).all() and (parts[1:] == 1).mean() > 0.8


@pytest.mark.parametrize("sides", [(1, 1), (7, 13), (100, 1), (23, 57)])
@pytest.mark.parametrize("parts", [1, 12, 500])
def test_parts_fill_their_boxes_and_are_numbered_box_by_box(sides: tuple[int, int], parts: int) -> None:
    grid = _first_grid(sides, parts)
    along = [min(max(parts, 10), side) for side in sides]
    assert grid.boxes.max() + 1 == np.unique(grid.boxes).size == math.prod(along)
    wanted = np.random.default_rng(3).integers(1, 6, math.prod(along))
    numbers, parents = grid.cut(wanted)
    assert np.unique(numbers).tolist() == list(range(parents.size))
    assert (np.diff(parents) >= 0).all() and (parents[numbers] == grid.boxes).all()
    for box in range(math.prod(along)):
        rows, columns = np.nonzero(grid.boxes == box)
        shape = (np.unique(rows).size, np.unique(columns).size)
        inside = numbers[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        assert np.unique(inside).size == math.prod(min(int(wanted[box]), side) for side in shape)
        for part in np.unique(inside):
            held = np.nonzero(inside == part)
            assert held[0].size == math.prod(np.ptp(axis) + 1 for axis in held)


def test_the_total_pays_its_share_and_both_grids_half_of_the_rest() -> None:
    made = released(np.ones((30, 20), dtype=np.int64), total_share="1/5")
    assert made.charges == (("total", Fraction(2)), ("first", Fraction(4)), ("second", Fraction(4)))


def test_boxes_of_a_large_sparse_grid_have_less_error_than_plain_noise_and_trees() -> None:
    generator = np.random.default_rng(8)
    places = np.concatenate([generator.normal(60, 9, (9000, 2)), generator.uniform(0, 128, (1000, 2))])
    counts = np.histogram2d(*places.T, bins=128, range=[[0, 128]] * 2)[0].astype(np.int64)
    boxes = random_boxes((128, 128), 1000)

    def error(mechanism: str) -> float:
        made = [dph.sanitize(counts, mechanism=mechanism, epsilon="1/10", sensitivity=1).values for _ in range(8)]
        return float(np.mean([(boxes.sums(values) - boxes.sums(counts)) ** 2 for values in made]))

    assert error("adaptive_grid") < 0.5 * min(error("geometric"), error("boost"))


@pytest.mark.slow
def test_least_squares_gives_the_mean_of_both_draws_where_a_box_is_not_cut() -> None:
    errors = [released(np.full((3, 3), 50)).values - 50 for _ in range(400)]
    # Two draws of scale 2/4.975 each; their mean has half of the variance.
    assert float(np.var(errors)) == pytest.approx(dph_variance(2 / Fraction("4.975")) / 2, rel=0.2)


@pytest.mark.slow
def test_cells_that_are_told_rarely_have_intervals_that_hold_as_often() -> None:
    """A box of four empty cells is cut where its first draw is above 10, in some 3 of 1,000 releases.

    The first draw is far too large wherever a cell is told, and plays no part in the interval. With three tenths of its
    scale less, it would miss 10 % where it misses 4 %.
    """
    told, missed, whole = 0, 0, 0
    for _ in range(RELEASES):
        made = dph.sanitize(np.zeros((20, 20), dtype=np.int64), mechanism="adaptive_grid", epsilon=1, sensitivity=1)
        assert isinstance(made.sums, NestedSums) and made.groups is not None
        for group in np.flatnonzero(made.sums.sizes == 1):
            (number,) = np.flatnonzero(made.groups.ravel() == made.sums.firsts[group])
            (row, column), names = divmod(int(number), 20), [axis.name for axis in made.domain.axes]
            low = dict(zip(names, (row, column), strict=True))
            answer = made.box(**{name: (place, place + 1) for name, place in low.items()})
            assert answer.ci_lower is not None and answer.ci_upper is not None
            told, missed = told + 1, missed + (not answer.ci_lower <= 0 <= answer.ci_upper)
        whole += int((made.sums.parents < 0).sum())
    assert 0.0005 < told / 4 / whole < 0.02, "cells are told rarely"
    assert told > 300 and missed / told < 0.05 + 3 * math.sqrt(0.05 * 0.95 / told)


def dph_variance(scale: Fraction) -> float:
    return 1 / (2 * math.sinh(1 / (2 * float(scale))) ** 2)


def test_three_axes_are_refused_and_a_line_is_a_column() -> None:
    with pytest.raises(DomainRefused, match="two axes, not 3"):
        build("adaptive_grid", {}).check(Domain.from_shape((4, 4, 4)), 1, Fraction(1))
    assert released(np.arange(50)).values.shape == (50,)
