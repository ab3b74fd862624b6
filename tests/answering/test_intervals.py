"""How far the noise of a sum reaches, against sums worked out by brute force and against the real sampler."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from dphist_pipeline.confidential import noise
from dphist_pipeline.estimates.laws import LEVEL, noise_law
from dphist_pipeline.estimates.laws._interface import _ProbabilityWithin

SCALES = [
    *(Fraction(1, 20), Fraction(1, 3), Fraction(1), Fraction(7, 5), Fraction(2), Fraction(6)),
    *(Fraction(41, 3), Fraction(50)),
]
LEVELS = [Fraction(1, 2), Fraction(9, 10), LEVEL, Fraction(99, 100), Fraction(9999, 10000)]
# Φ(1.9599639845…) = 0.975
NORMAL = 1.959963984540054
# Of a coverage of 95 % in 40,000 boxes, at six and a half standard errors: false alarms below 10^-9 each.
BOXES, ALARM = 40_000, 6.5 * math.sqrt(0.95 * 0.05 / 40_000)


def within(scale: Fraction, cells: int) -> NDArray[np.float64]:
    """P(|S| <= c) for c = 0, 1, …, by convolving the law of one draw with itself."""
    q = math.exp(-1 / scale)
    reach = math.ceil(45 * scale) + 8
    one = (1 - q) / (1 + q) * q ** np.abs(np.arange(-reach, reach + 1.0))
    law = one
    for _ in range(cells - 1):
        law = np.convolve(law, one)
    middle = law.size // 2
    return law[middle] + 2 * np.concatenate([[0.0], np.cumsum(law[middle + 1 :])])


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_a_half_width_is_that_of_brute_force_or_one_more(scale: Fraction) -> None:
    for cells in range(1, 13):
        exact = within(scale, cells)
        for level in LEVELS:
            found = noise_law(scale).exact_half_width(cells, level)
            assert exact[found] >= float(level) - 1e-12, (cells, level)
            assert found < 2 or exact[found - 2] < float(level), (cells, level)
            # One more only where the probability is within the slack of the level.
            assert found == 0 or exact[found - 1] < float(level) + 2e-9, (cells, level)


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_trapezoid_rule_is_as_exact_as_it_says(scale: Fraction) -> None:
    for cells in (2, 3, 7, 12):
        exact, inside = within(scale, cells), _ProbabilityWithin(noise_law(scale), cells)
        for c in range(0, min(exact.size, 40 * math.ceil(scale)), max(1, int(scale))):
            assert abs(inside(c) - exact[c]) < 1e-11, (cells, c)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scale", [Fraction(1, 20), Fraction(1), Fraction(50), Fraction(3000), Fraction(10**7)], ids=str
)
def test_more_cells_never_reach_less_far(scale: Fraction) -> None:
    widths = [
        noise_law(scale).exact_half_width(cells) for cells in (*range(1, 40), 100, 1000, 10**4, 10**5, 10**6, 10**7)
    ]
    assert all(fewer <= more for fewer, more in pairwise(widths))


@pytest.mark.parametrize("scale", [Fraction(2), Fraction(50), Fraction(3000), Fraction(10**7)], ids=str)
def test_many_cells_reach_as_far_as_the_normal_law_says(scale: Fraction) -> None:
    for cells in (10**4, 10**6, 10**7):
        # By Cornish and Fisher: heavier tails than normal move the 97.5 % quantile by z³ - 3z times kurtosis / 24.
        q = math.exp(-1 / scale)
        kurtosis = (1 + 10 * q + q * q) / (2 * q) / cells if scale < 1000 else 3 / cells
        quantile = NORMAL + (NORMAL**3 - 3 * NORMAL) * kurtosis / 24
        expected = quantile * math.sqrt(cells * noise_law(scale).variance)
        assert noise_law(scale).exact_half_width(cells) == pytest.approx(expected, rel=1e-7, abs=1)


@pytest.mark.parametrize("scale", [Fraction(1, 20), Fraction(4, 3), Fraction(20)], ids=str)
def test_the_table_of_half_widths_is_never_too_narrow_and_hardly_too_wide(scale: Fraction) -> None:
    grid = noise_law(scale).half_width_grid(3000)
    assert grid[0][0] == 1
    assert grid[-2][0] < 3000 <= grid[-1][0]
    assert noise_law(scale).half_width_grid(700) == grid[: len(noise_law(scale).half_width_grid(700))]
    for cells in range(1, 3001):
        exact = noise_law(scale).exact_half_width(cells)
        looked_up = next(width for most, width in grid if most >= cells)
        assert exact <= looked_up <= exact * 1.03 + 1, cells
        assert looked_up == noise_law(scale).half_width_of_sum(cells)


def test_the_grid_of_one_cell_is_that_cell() -> None:
    assert noise_law(Fraction(20)).half_width_grid(1) == [(1, noise_law(Fraction(20)).half_width(LEVEL))]


@pytest.mark.parametrize(("scale", "cells"), [(Fraction(1), 3), (Fraction(20), 10), (Fraction(9000), 4)], ids=str)
def test_intervals_hold_the_truth_as_often_as_they_say(scale: Fraction, cells: int) -> None:
    def covered(assumed: Fraction) -> float:
        sums = noise.discrete_laplace(scale, BOXES * cells).reshape(BOXES, cells).sum(axis=1)
        return float(np.mean(np.abs(sums) <= noise_law(assumed).exact_half_width(cells)))

    width = noise_law(scale).exact_half_width(cells)
    promised = _ProbabilityWithin(noise_law(scale), cells)(width)  # 95 %, and what whole numbers add
    assert promised >= float(LEVEL)
    assert abs(covered(scale) - promised) < ALARM
    assert covered(scale * Fraction(7, 10)) < float(LEVEL) - ALARM
    assert covered(scale * Fraction(13, 10)) > promised + ALARM
