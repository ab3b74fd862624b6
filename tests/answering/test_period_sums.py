"""The sums by which periods are compared: of which table, with which noise, and the same from files."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import by_hand
import numpy as np
import pytest

import dphist_pipeline as dph
from dphist_pipeline.answering._period_sums import TOTAL, sums_of_estimate, sums_of_publication
from dphist_pipeline.base.domain import CategoricalAxis, Domain
from dphist_pipeline.estimates.estimate import Estimate, FamilyEstimate
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, NoisySums
from dphist_pipeline.publishing.published_files import read_audit

AGE, WARD = CategoricalAxis("age", "age", ("young", "old")), CategoricalAxis("ward", "ward", ("surgery", "medicine"))
CHARGES = (("counts", Fraction(1)),)


def table(axes: list[CategoricalAxis], values: list[float]) -> Estimate:
    domain = Domain(tuple(axes))
    cells = np.array(values).reshape(domain.shape)
    return Estimate(domain, cells, CHARGES, unbiased=NoisyCells(cells, Fraction(2)))


def test_of_two_tables_the_smaller_one_tells_an_axis_and_the_total() -> None:
    tables = {"both": table([AGE, WARD], [1.0, 2.0, 3.0, 4.0]), "ward": table([WARD], [5.0, 9.0])}
    sums = sums_of_estimate(FamilyEstimate(tables, CHARGES))
    assert sums["ward"].values.tolist() == [5.0, 9.0] and sums[TOTAL].values.tolist() == [14.0]
    assert sums["age"].values.tolist() == [3.0, 7.0]


def test_the_total_of_groups_has_the_noise_of_all_of_them() -> None:
    groups, domain = np.array([0, 1]), Domain((WARD,))
    drawn = NoisySums(np.array([5.0, 9.0]), np.array([1, 1]), Fraction(2))
    sums = sums_of_estimate(Estimate(domain, drawn.values, CHARGES, groups=groups, sums=drawn))
    assert sums[TOTAL].values.tolist() == [14.0]
    assert sums[TOTAL].variances == pytest.approx([2 * noise_law(Fraction(2)).variance])


def test_nested_groups_are_summed_once_from_files_as_from_the_estimate(tmp_path: Path) -> None:
    axis = {"column": "age", "start": 0, "stop": 64, "width": 1}
    drawn = dph.sanitize(np.arange(64) * 100, mechanism="dawa", epsilon="1/2", sensitivity=1)
    domain = by_hand.estimate([axis]).domain
    made = Estimate(domain, drawn.values, drawn.charges, groups=drawn.groups, sums=drawn.sums)
    folder = by_hand.publish(tmp_path, made, [axis]).path
    here, there = sums_of_estimate(made)[TOTAL], sums_of_publication(folder, read_audit(folder))[TOTAL]
    assert there.values == pytest.approx(here.values) and there.variances == pytest.approx(here.variances)


def test_each_value_has_the_noise_of_its_own_weights() -> None:
    made = dph.sanitize(np.zeros((30, 3), dtype=int), mechanism="workload", epsilon=1, sensitivity=1)
    assert isinstance(made.unbiased, NestedCells)
    sums = sums_of_estimate(made)[made.domain.axes[0].name]
    wanted = [made.unbiased.variance_of_sum([np.array([row]), np.arange(3)]) for row in range(30)]
    assert sums.variances == pytest.approx(wanted) and len({round(one, 6) for one in wanted}) > 2
