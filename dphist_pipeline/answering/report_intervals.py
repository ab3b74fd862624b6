"""How far counts estimated from the reports of contributors lie from the true ones.

An estimate R of n true values is off by a sum of independent parts, none of which moves it by more than a step b; the
variance V + v·n is known but for n (see `privacy.noisy.ReportLaw`). With a probability that z stands for,
    |R - n| <= z²·b/6 + √((z²·b/6)² + z²·(V + v·n)),
and that is so only where, with a = z²·(|v| + b/3)/2,
    |R - n| <= a + √(a² + z²·(V + v·max(R, 0))).

Bands and quantiles take z² = 2·log(2/missed): that is Bernstein's inequality, which holds for every law. Single
intervals take the normal quantile for z. That is calibrated, not proven: what b adds, and a normal law has not, is what
a few bits need. Worked out exactly for all encodings, from 1 to 10,000 reports and epsilon from 0.1 to 15, every
interval held with 0.95 (0.975, 0.999) at least. With half a step in its place 0.925 was the least at 0.95, and with
Chebyshev's factor below a hundred squared steps of variance 0.999 was still missed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphist_pipeline.estimates.noisy import ReportedCells

Reals = NDArray[np.float64]


@lru_cache
def normal_factor(level: Fraction) -> float:
    """The z beyond which a normal number lies, on either side, with 1 - level."""
    return NormalDist().inv_cdf(float(1 + level) / 2)


def bernstein_factor(missed: float) -> float:
    """The z of Bernstein's inequality: no sum lies farther away, on either side, but for a probability of `missed`."""
    return math.sqrt(2 * math.log(2 / missed))


def report_reach(factor: float, variance: ArrayLike, slope: ArrayLike, step: float) -> Reals:
    """How far estimates reach.

    Args:
        factor: z, from `normal_factor` or `bernstein_factor`.
        variance: with estimates in place of true counts, in records squared.
        slope: by how much the variance changes with a record in the estimate.
        step: of the law.
    """
    half = factor**2 * (np.abs(slope) + step / 3) / 2
    return np.asarray(half + np.sqrt(half**2 + factor**2 * np.asarray(variance)), dtype=np.float64)


def half_width_of_reports(cells: ReportedCells, chosen: Sequence[NDArray[np.int64]], level: Fraction) -> float:
    """How far a sum of cells reaches; `chosen` holds at least one position."""
    atoms, count = cells.sum_of(chosen)
    law = cells.law
    return float(report_reach(normal_factor(level), law.variance(atoms, count), law.slope(atoms), law.step))


def half_widths_of_cells(cells: ReportedCells, factor: float) -> Reals:
    """How far each cell reaches, shape of the cells; see `report_reach`."""
    return report_reach(factor, cells.variances, cells.law.slope(cells.atoms), cells.law.step)


def balance_reach(cells: ReportedCells, positions: NDArray[np.int64], q: float, factor: float) -> Reals:
    """How far (1-q)·A - q·R reaches at every edge but the last, A what lies below the edge and R what lies above.

    Args:
        cells: with at least two wanted bins.
        positions: the wanted bins, rising.
        q: of the quantile.
        factor: see `report_reach`.
    """
    atoms, counts = np.cumsum(cells.atoms[positions]), np.cumsum(cells.values[positions])
    parts = [(1 - q, atoms[:-1], counts[:-1]), (-q, atoms[-1] - atoms[:-1], counts[-1] - counts[:-1])]
    return report_reach(factor, cells.law.weighted_variance(parts), _balance_slope(cells, atoms, q), cells.law.step)


def _balance_slope(cells: ReportedCells, atoms: NDArray[np.int64], q: float) -> Reals:
    """The most by which the variance changes with a record in the balance, on whichever side of the edge that lies."""
    both = cells.law.delta * (atoms[:-1] - q * atoms[-1])
    below, above = np.abs(cells.law.gamma * (1 - q) + both), np.abs(cells.law.gamma * q - both)
    return np.asarray(np.maximum(below, above), dtype=np.float64)
