"""Intervals of rows, sums and means of an amount hold in 95 % of releases; what they say follows from the noise law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dphist_pipeline.base.domain import AmountAxis, CategoricalAxis, Domain
from dphist_pipeline.estimates.amounts import AmountFigures, figures_by
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import named_law, noise_law, parts_named
from dphist_pipeline.estimates.noisy import NoisyCells

PARTS, SCALE = 1 << 16, Fraction(6)
LAW = noise_law(SCALE, PARTS)
COST = AmountAxis("cost", "cost", 0.0, 20_000.0)
RELEASES = 3_000
ROOM = 3.5 * math.sqrt(0.95 * 0.05 / RELEASES)


@pytest.mark.parametrize(
    ("low", "high", "rows", "mean", "cells"),
    [(0.0, 20_000.0, 400, 1_500.0, 1), (-100.0, 50.0, 300, -20.0, 2), (-500.0, -10.0, 2_000, -80.0, 3)],
)
def test_intervals_hold_the_truth_in_95_percent(low: float, high: float, rows: int, mean: float, cells: int) -> None:
    """Laplace draws of the law's scale: in parts this fine they are told from discrete ones by nothing here."""
    share = (mean - low) / (high - low)
    draws = np.random.default_rng(7).laplace(0, float(SCALE), (RELEASES, 2, cells)).sum(axis=2)
    draws = np.rint(draws * PARTS) / PARTS
    truth, held = {"rows": rows, "sum": rows * mean, "mean": mean}, dict.fromkeys(("rows", "sum", "mean"), 0)
    axis = AmountAxis("cost", "cost", low, high)
    for upper, lower in draws.tolist():
        figures = AmountFigures(axis, LAW, PARTS, rows * share + upper, rows * (1 - share) + lower, cells)
        for one in figures.figures:
            held[one.what] += one.lower <= truth[one.what] <= one.upper
            assert low <= figures.mean.lower <= figures.mean.upper <= high
    for what, number in held.items():
        assert number / RELEASES == pytest.approx(0.95, abs=ROOM), what


def test_the_law_in_parts_is_the_fine_one_and_its_name_says_both() -> None:
    """A discrete law of scale 1/2 in rows would be told as too narrow."""
    law = noise_law(Fraction(1, 2), PARTS)
    assert law.variance == pytest.approx(0.5, rel=1e-6) and law.variance > 1.3 * noise_law(Fraction(1, 2)).variance
    assert law.half_width_of_sum(1) == pytest.approx(0.5 * math.log(20), rel=1e-4)
    for scale in (Fraction(6), Fraction(7, 3), Fraction(1, 2)):
        for parts in (1, 256, PARTS):
            name = noise_law(scale, parts).scale_text
            assert Fraction(name) == scale and parts_named(name) == parts and named_law(name) == noise_law(scale, parts)


def test_rows_that_do_not_stand_out_leave_the_mean_open() -> None:
    for upper, lower in ((3.0, 4.0), (-5.0, 2.0), (0.0, 0.0), (-20.0, -30.0)):
        mean = AmountFigures(COST, LAW, PARTS, upper, lower, 1).mean
        assert (mean.lower, mean.upper) == (0.0, 20_000.0) and mean.note


def test_a_sum_costs_what_a_sum_alone_costs_where_the_lower_end_is_0() -> None:
    figures = AmountFigures(COST, LAW, PARTS, 30.0, 370.0, 1)
    assert figures.sum.noise_error == pytest.approx(20_000 * math.sqrt(2) * 6, rel=1e-4)
    assert figures.rows.noise_error == pytest.approx(12, rel=1e-4)
    reach = figures.sum.upper - figures.sum.value
    assert reach == pytest.approx(20_000 * LAW.half_width_of_sum(1), rel=1e-3)
    # A sum is widened by half a part for each row, so far rows reach, and never by less than nothing.
    many = AmountFigures(COST, LAW, PARTS, 30.0, 1e6, 1).sum
    assert many.upper - many.value - reach == pytest.approx(1e6 * 20_000 / PARTS / 2, rel=1e-2)


def test_figures_of_parts_of_a_grid_add_up_to_those_of_all() -> None:
    domain = Domain((CategoricalAxis("ward", "ward", ("a", "b"), other=True), COST))
    values = np.array([[10.5, 2.25], [7.0, 1.5], [3.0, 0.0]])
    estimate = Estimate(domain, values, (), NoisyCells(values, SCALE, PARTS))
    (((), every),) = figures_by(estimate)
    by_ward = [figures for _, figures in figures_by(estimate, [0])]
    assert every.rows.value == sum(one.rows.value for one in by_ward) == values.sum()
    assert every.sum.value == sum(one.sum.value for one in by_ward) == 20_000 * 3.75
    rows = estimate.of_rows
    assert rows.domain == domain.of_rows and rows.values.tolist() == [12.75, 8.5, 3.0]
    assert rows.unbiased is not None
    assert rows.unbiased.half_width_of_cell() == by_ward[0].rows.upper - by_ward[0].rows.value
