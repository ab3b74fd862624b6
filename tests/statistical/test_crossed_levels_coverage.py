"""Families with two axes at several levels: how far estimates lie from the truth, beside what is told of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from solvers.test_crossed_levels import family, summing
from solvers.test_crossed_levels import solved as least_squares

from dphist_pipeline.confidential import noise
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.mechanisms.tables import _estimates, shares_for

RUNS, EPSILON = 700, Fraction(1, 2)


@pytest.mark.slow
def test_errors_are_those_of_least_squares_and_lie_within_their_intervals() -> None:
    """Cells of a table are many and hardly correlated: 700 runs tell their mean variance within some 3 %."""
    of = family(np.random.default_rng(1), [(0,), (2, 4), (1, 3), (0, 4), (2, 3), (4,)])
    shares = shares_for(of)
    scales = {axes: 1 / (EPSILON * part) for axes, part in zip(shares.marginals, shares.parts, strict=True)}
    measured = {axes: noise_law(scale).variance for axes, scale in scales.items()}
    _, inverse = least_squares((of.domain.shape, (of.trees[0], of.trees[1]), measured, []))
    drawn = {}
    for axes, scale in scales.items():
        grid = of.grid(axes)
        drawn[axes] = noise.discrete_laplace(scale, RUNS * grid.cells).astype(float).reshape(RUNS, *grid.shape)
    reaches: dict[object, tuple[float, float]] = {}  # of a cell and of half a table, whatever was drawn
    squares = dict.fromkeys(of.names, 0.0)
    inside = dict.fromkeys(of.names, 0.0)
    boxes = dict.fromkeys(of.names, 0.0)
    for run in range(RUNS):
        noisy = {axes: one[run] for axes, one in drawn.items()}
        for name, made in _estimates(of, noisy, scales, ()).tables.items():
            assert made.unbiased is not None
            squares[name] += float(np.square(made.values).mean()) / RUNS
            half = [np.arange((size + 1) // 2) for size in made.values.shape]
            if run == 0:
                corner = [np.zeros(1, dtype=np.int64)] * made.values.ndim
                width = made.unbiased.half_width_of_box
                reaches[name] = (width(corner), width(half))
            cell, reach = reaches[name]
            inside[name] += float((np.abs(made.values) <= cell).mean()) / RUNS
            boxes[name] += (abs(made.values[np.ix_(*half)].sum()) <= reach) / RUNS
    for name, table in zip(of.names, of.tables, strict=True):
        asked = summing(of.domain.shape, (of.trees[0], of.trees[1]), frozenset(table))
        expected = float(np.einsum("ij,jk,ik->i", asked, inverse, asked).mean())
        # A noise of 0.7 or 1.3 times the scale has 0.49 or 1.69 times the variance.
        assert abs(squares[name] / expected - 1) < 0.25
        # Of 700 intervals of 95 %, 89.5 % or fewer hold once in 10^8 tries; of 70 % as wide, 84 % would.
        assert inside[name] > 0.895 and boxes[name] > 0.895
