"""Half widths of intervals for sums of cells: exact quantiles for any number of independent draws of noise.

The sum S of r independent discrete Laplace draws has the characteristic function φ(t)^r, with
φ(t) = (1-q)² / (1 - 2q·cos t + q²) and q = exp(-1/scale). So
    P(|S| <= c) = 1/(2π) ∫ φ(t)^r · sin((c + 1/2)·t) / sin(t/2) dt    over one turn.
The trapezoid rule with step h has an error of at most P(|S| > 2π/h - c). The integral is cut off where φ^r is below
10^-17, which costs less than SLACK. Both errors are too small to change a quantile.

A linear estimate is a sum of draws with weights of at most 1. Its variance V is known, but its distribution is not
simple. Among such sums, the one with the fewest draws has the heaviest tails; if V is r times the variance of a draw,
there are at least r draws. So the half width of the sum is taken as half_width(r) + 1 (one record for rounding to whole
numbers), times the root of V over the variance of r draws. If Chebyshev's inequality gives less, it is used instead.
This is calibrated, not proven: in an exact computation of thousands of weighted sums, with scales from 0.1 to 100, all
intervals held with a probability of at least 0.95 (or 0.975).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, ReportedCells, Unbiased
from dphist_pipeline.estimates.report_intervals import half_width_of_reports, half_widths_of_cells, normal_factor

LEVEL = Fraction(95, 100)
LEVEL_OF_TWO = Fraction(975, 1000)  # two intervals of this level hold together with LEVEL, however they depend
SLACK = 1e-9
GRID_RATIO = 1.05


def half_width_of_sum(scale: Fraction, cells: int, level: Fraction = LEVEL) -> int:
    """Half the width of the interval for a sum of `cells` independent cells, in records, as in the catalogue's table.

    It is the exact half width for the next number of cells in the table. A sum of more draws has a wider distribution
    (draws are symmetric and unimodal), so it is never too narrow; it is at most about 2.5 % too wide.

    Args:
        scale: of the discrete Laplace noise in each cell, in records.
        cells: number of independent draws, at least 1.
        level: of the interval, up to 0.999999.
    """
    return exact_half_width(scale, _grid(cells)[-1], level)


@lru_cache(maxsize=65536)
def exact_half_width(scale: Fraction, cells: int, level: Fraction = LEVEL) -> int:
    """The smallest c with P(|S| <= c) >= level, in records, where S is the noise in a sum of `cells` cells.

    The result is at most 1 too large; above 10^7 records it may be a few parts in 10^8 too large.

    Args:
        scale: of the discrete Laplace noise in each cell, in records.
        cells: number of independent draws, at least 1.
        level: of the interval, up to 0.999999.
    """
    if cells == 1:
        return noise_law.half_width(scale, level)
    sigma = math.sqrt(cells * noise_law.variance(scale))
    wanted = float(level) + SLACK
    low, high = -1, max(1, math.ceil(sigma))
    inside = _ProbabilityWithin(scale, cells)
    while inside(high) < wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if inside(middle) >= wanted else (middle, high)
    return high


def half_width_grid(scale: Fraction, cells: int, level: Fraction = LEVEL) -> list[tuple[int, int]]:
    """The catalogue's table of `half_width_of_sum`; use the first entry with at least as many cells as the sum.

    Args:
        scale: of the discrete Laplace noise in each cell, in records.
        cells: the largest number of cells in a sum.

    Returns:
        (number of cells, half width in records), rising.
    """
    return [(number, exact_half_width(scale, number, level)) for number in _grid(cells)]


def half_width_of_box(unbiased: Unbiased, chosen: Sequence[NDArray[np.int64]], level: Fraction = LEVEL) -> float:
    """Half the width of the interval for a box of cells, in records.

    Args:
        chosen: positions of the box along each axis, shape (positions,) each; may be empty.
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
    """Half the width of the 95 % interval of a cell, in records; of the widest one if they differ."""
    if isinstance(unbiased, ReportedCells):
        return float(half_widths_of_cells(unbiased, normal_factor(LEVEL)).max())
    if isinstance(unbiased, NestedCells) and unbiased.variances is not None:
        return half_width_of_linear(unbiased.scale, float(unbiased.variances.max()))
    return half_width_of_box(unbiased, [np.zeros(1, dtype=np.int64)] * unbiased.values.ndim)


def half_width_of_linear(scale: Fraction, variance: float, level: Fraction = LEVEL) -> float:
    """Half the width of the interval for a linear estimate, in records.

    Args:
        scale: of the discrete Laplace noise in each draw; no draw may have a weight above 1.
        variance: of the estimate, in records squared.
    """
    # SQL adds in another order, so a rounding error must not decide which entry of the table is used.
    draws = max(1.0, variance / noise_law.variance(scale) * (1 + 1e-9))
    last = max(number for number in _grid(math.ceil(draws)) if number <= draws)
    return math.sqrt(variance) * linear_reach(scale, last, level)


def linear_reach(scale: Fraction, draws: int, level: Fraction = LEVEL) -> float:
    """Half the width of the interval for a linear estimate, in standard deviations of the estimate.

    Args:
        scale: of the discrete Laplace noise in each draw.
        draws: the estimate has at least the variance of so many independent draws.
    """
    calibrated = (exact_half_width(scale, draws, level) + 1) / math.sqrt(draws * noise_law.variance(scale))
    return min(calibrated, math.sqrt(1 / (1 - level)))


def linear_reach_grid(scale: Fraction, draws: int, level: Fraction = LEVEL) -> list[tuple[int, float]]:
    """The catalogue's table of `linear_reach`; use the last entry with at most the variance of the estimate.

    Args:
        scale: of the discrete Laplace noise in each draw.

    Returns:
        (draws, half width in standard deviations), rising.
    """
    return [(number, linear_reach(scale, number, level)) for number in _grid(draws)]


def _next_on_grid(number: int) -> int:
    return max(number + 1, math.floor(number * GRID_RATIO))


@lru_cache
def _grid(most: int) -> list[int]:
    """Numbers of draws from 1 to the first that is at least `most`, in steps of 5 % or 1."""
    numbers = [1]
    while numbers[-1] < most:
        numbers.append(_next_on_grid(numbers[-1]))
    return numbers


class _ProbabilityWithin:
    """The function c -> P(|S| <= c)."""

    def __init__(self, scale: Fraction, cells: int) -> None:
        q = math.exp(-1 / scale)
        sigma = math.sqrt(cells * noise_law.variance(scale))
        reach = _cut_off(q, cells)
        # The period of the trapezoid rule must be longer than the noise and the interval together.
        points = math.ceil(reach / (2 * math.pi) * (80 * sigma + 400 * float(scale) + 200)) + 64
        self._t = (np.arange(points, dtype=np.float64) + 0.5) * (reach / points)
        phi = (1 - q) ** 2 / ((1 - q) ** 2 + 4 * q * np.sin(self._t / 2) ** 2)
        self._weights = phi**cells / np.sin(self._t / 2) * (reach / points / math.pi)

    def __call__(self, c: int) -> float:
        return float(self._weights @ np.sin((c + 0.5) * self._t))


def _cut_off(q: float, cells: int) -> float:
    """The t above which φ(t)^cells is below 10^-17; π if there is none."""
    least = 10 ** (-17 / cells)
    square = (1 - q) ** 2 * (1 / least - 1) / (4 * q) if q > 0 else math.inf
    return 2 * math.asin(math.sqrt(square)) if square < 1 else math.pi
