"""How far the noise of a sum of cells can reach: exact quantiles for any number of independent draws.

The sum S of r independent discrete Laplace draws is a difference of two negative binomial numbers; its
characteristic function is φ(t)^r with φ(t) = (1-q)² / (1 - 2q·cos t + q²), q = exp(-1/scale). So
    P(|S| <= c) = 1/(2π) ∫ φ(t)^r · sin((c + 1/2)·t) / sin(t/2) dt    over one turn.
The trapezoid rule with step h is this up to P(|S| > 2π/h - c), and cutting the integral off where φ^r is below
10^-17 costs less than the slack below; both are far smaller than what a quantile can show.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from dphist_pipeline.privacy import noise

LEVEL = Fraction(95, 100)
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
        return noise.half_width(scale, level)
    sigma = math.sqrt(cells * noise.variance(scale))
    wanted = float(level) + SLACK
    low, high = -1, max(1, math.ceil(sigma))
    inside = _Inside(scale, cells)
    while inside(high) < wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if inside(middle) >= wanted else (middle, high)
    return high


def half_width_grid(scale: Fraction, cells: int) -> list[tuple[int, int]]:
    """(number of cells, half width) on a grid up to `cells`, for SQL: take the first entry that is large enough.

    A sum of more draws is spread more widely (they are symmetric and unimodal), so the next larger entry is
    never too narrow; it is at most about 2.5 % too wide.
    """
    numbers, number = [], 1
    while number < cells:
        numbers.append(number)
        number = max(number + 1, math.floor(number * GRID_RATIO))
    return [(number, half_width_of_sum(scale, number)) for number in [*numbers, cells]]


class _Inside:
    """c -> P(|S| <= c)."""

    def __init__(self, scale: Fraction, cells: int) -> None:
        q = math.exp(-1 / scale)
        sigma = math.sqrt(cells * noise.variance(scale))
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
