"""How far the noise of a sum of cells can reach: exact quantiles for any number of independent draws.

The sum S of r independent discrete Laplace draws is a difference of two negative binomial numbers; its
characteristic function is φ(t)^r with φ(t) = (1-q)² / (1 - 2q·cos t + q²), q = exp(-1/scale). So
    P(|S| <= c) = 1/(2π) ∫ φ(t)^r · sin((c + 1/2)·t) / sin(t/2) dt    over one turn.
The trapezoid rule with step h is this up to P(|S| > 2π/h - c), and cutting the integral off where φ^r is below
10^-17 costs less than the slack below; both are far smaller than what a quantile can show.

Linear estimates add draws with weights of at most 1. Their variance V is known, their law is not so simple. But of all
such sums the one of the fewest draws has the heaviest tails, and where V is r times the variance of a draw there are at
least r. So the sum is taken to reach as many of its own standard deviations as r equal draws do, with one record more
for what whole numbers hide: half_width(r) + 1, times the root of V over r variances. Chebyshev's inequality, which
holds for every law, is taken where it asks for less. Calibrated, not proven: thousands of weighted sums, with scales
from 0.1 to 100, were covered with a probability of 0.95 (or 0.975) at least, worked out exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.report_intervals import half_width_of_reports, half_widths_of_cells, normal_factor
from dphist_pipeline.estimates import noise_law
from dphist_pipeline.estimates.noisy import NoisyCells, ReportedCells, Unbiased

LEVEL = Fraction(95, 100)
LEVEL_OF_TWO = Fraction(975, 1000)  # of each of two intervals that hold together with LEVEL, whatever ties them
SLACK = 1e-9
GRID_RATIO = 1.05


@lru_cache(maxsize=65536)
def half_width_of_sum(scale: Fraction, cells: int, level: Fraction = LEVEL) -> int:
    """The least c with P(|S| <= c) >= level, S the noise in a sum of `cells` cells; at most one too large.

    Where the noise reaches beyond 10^7 records it may be a few parts in 10^8 too large instead.

    Args:
        scale: of the discrete Laplace noise in each cell.
        cells: how many independent draws are summed, from 1.
        level: of the interval, up to 0.999999.
    """
    if cells == 1:
        return noise_law.half_width(scale, level)
    sigma = math.sqrt(cells * noise_law.variance(scale))
    wanted = float(level) + SLACK
    low, high = -1, max(1, math.ceil(sigma))
    inside = _Inside(scale, cells)
    while inside(high) < wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if inside(middle) >= wanted else (middle, high)
    return high


def half_width_grid(scale: Fraction, cells: int, level: Fraction = LEVEL) -> list[tuple[int, int]]:
    """(number of cells, half width) on a grid up to `cells`, for SQL: take the first entry that is large enough.

    A sum of more draws is spread more widely (they are symmetric and unimodal), so the next larger entry is
    never too narrow; it is at most about 2.5 % too wide.
    """
    return [(number, half_width_of_sum(scale, number, level)) for number in sorted({*_grid(cells), cells})]


def half_width_of_box(unbiased: Unbiased, chosen: Sequence[NDArray[np.int64]], level: Fraction = LEVEL) -> float:
    """How far the noise in a box of cells reaches.

    Args:
        unbiased: the cells.
        chosen: the positions of the box along each axis.
        level: how probably it reaches no farther.
    """
    if isinstance(unbiased, NoisyCells):
        cells = math.prod(len(positions) for positions in chosen)
        return half_width_of_sum(unbiased.scale, cells, level) if cells else 0
    if any(len(positions) == 0 for positions in chosen):
        return 0
    if isinstance(unbiased, ReportedCells):
        return half_width_of_reports(unbiased, chosen, level)
    return half_width_of_linear(unbiased.scale, unbiased.variance_of_sum(chosen), level)


def half_width_of_cell(unbiased: Unbiased) -> float:
    """How far the noise in any one cell reaches (95 %); of estimates from reports, the widest."""
    if isinstance(unbiased, ReportedCells):
        return float(half_widths_of_cells(unbiased, normal_factor(LEVEL)).max())
    return half_width_of_box(unbiased, [np.zeros(1, dtype=np.int64)] * unbiased.values.ndim)


def half_width_of_linear(scale: Fraction, variance: float, level: Fraction = LEVEL) -> float:
    """How far a linear estimate reaches: a weighted sum of draws, none with a weight above 1.

    Args:
        scale: of the discrete Laplace noise in each draw.
        variance: of the sum, in records squared.
        level: how probably it reaches no farther.
    """
    # A rounding error must not decide whether a whole number of draws is reached: SQL adds in another order.
    draws = max(1.0, variance / noise_law.variance(scale) * (1 + 1e-9))
    number = 1
    while (next_number := _next_on_grid(number)) <= draws:
        number = next_number
    return linear_reach(scale, number, level) * math.sqrt(variance)


def linear_reach(scale: Fraction, draws: int, level: Fraction = LEVEL) -> float:
    """How many standard deviations a linear estimate reaches that has at least the variance of so many draws."""
    calibrated = (half_width_of_sum(scale, draws, level) + 1) / math.sqrt(draws * noise_law.variance(scale))
    return min(calibrated, math.sqrt(1 / (1 - level)))


def linear_reach_grid(scale: Fraction, cells: int, level: Fraction = LEVEL) -> list[tuple[int, float]]:
    """(draws, standard deviations) up to a variance of `cells` draws, for SQL: take the last entry that is reached."""
    return [(number, linear_reach(scale, number, level)) for number in _grid(cells)]


def _next_on_grid(number: int) -> int:
    return max(number + 1, math.floor(number * GRID_RATIO))


def _grid(most: int) -> list[int]:
    """Numbers of draws from 1 to at most `most`, in steps of 5 % or 1."""
    numbers = [1]
    while (number := _next_on_grid(numbers[-1])) <= most:
        numbers.append(number)
    return numbers


class _Inside:
    """c -> P(|S| <= c)."""

    def __init__(self, scale: Fraction, cells: int) -> None:
        q = math.exp(-1 / scale)
        sigma = math.sqrt(cells * noise_law.variance(scale))
        reach = _cut_off(q, cells)
        # The lattice of the trapezoid rule must be longer than the noise and the interval together.
        points = math.ceil(reach / (2 * math.pi) * (80 * sigma + 400 * float(scale) + 200)) + 64
        self._t = (np.arange(points, dtype=np.float64) + 0.5) * (reach / points)
        phi = (1 - q) ** 2 / ((1 - q) ** 2 + 4 * q * np.sin(self._t / 2) ** 2)
        self._weights = phi**cells / np.sin(self._t / 2) * (reach / points / math.pi)

    def __call__(self, c: int) -> float:
        return float(self._weights @ np.sin((c + 0.5) * self._t))


def _cut_off(q: float, cells: int) -> float:
    """From where on φ(t)^cells is below 10^-17; π when it never is."""
    least = 10 ** (-17 / cells)
    square = (1 - q) ** 2 * (1 / least - 1) / (4 * q) if q > 0 else math.inf
    return 2 * math.asin(math.sqrt(square)) if square < 1 else math.pi
