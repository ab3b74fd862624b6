"""Means and sums over the middles of bins from reports, by the matrix of covariances: a check of the macros."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates.laws import LEVEL, normal_factor, report_reach
from dphist_pipeline.estimates.noisy import ReportedCells

Reals = NDArray[np.float64]
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class ReportMoments:
    """Bins of a release from reports, and the middle of each."""

    cells: ReportedCells
    middles: Reals

    def covariance(self) -> Reals:
        """Of the estimates of any two bins, at the estimated counts, shape (bins, bins)."""
        law, atoms, values = self.cells.law, self.cells.atoms.astype(float), self.cells.values
        crossed = np.outer(atoms, values)
        own = np.diag(law.alpha * atoms + law.gamma * values)
        return np.asarray(own - law.beta * np.outer(atoms, atoms) + law.delta * (crossed + crossed.T) / 2)

    def variance(self, weights: Reals) -> float:
        return max(0.0, float(weights @ self.covariance() @ weights))

    def corrected(self, weights: Reals) -> tuple[float, float]:
        """What a record changes of the variance of a weighted sum, and what a report changes of the sum, at most."""
        law, span = self.cells.law, float(np.abs(weights).max())
        return abs(law.gamma) * span + abs(law.delta * float(weights @ self.cells.atoms)), law.step * span

    @property
    def rows(self) -> float:
        return float(self.cells.values.sum())

    @property
    def sum(self) -> float:
        return float(self.middles @ self.cells.values)

    @property
    def sum_error(self) -> float:
        return math.sqrt(self.variance(self.middles))

    def sum_interval(self, off: float = 0) -> Interval:
        """The lower end with all rows so far below the middles, the upper end with all so far above."""
        lower, upper = self._sum_of(self.middles - off)[0], self._sum_of(self.middles + off)[1]
        return lower, upper

    def _sum_of(self, weights: Reals) -> Interval:
        slope, step = self.corrected(weights)
        reach = float(report_reach(normal_factor(LEVEL), self.variance(weights), slope, step))
        total = float(weights @ self.cells.values)
        return total - reach, total + reach

    @property
    def mean(self) -> float:
        return self.sum / self.rows

    @property
    def mean_error(self) -> float:
        return math.sqrt(self.variance(self.middles - self.mean)) / self.rows

    def mean_interval(self) -> Interval:
        """All means at which the sum of (middle - mean) is not farther from 0 than its noise goes, by bisection.

        All means are possible where the count itself may be 0.
        """
        if self.rows <= normal_factor(LEVEL) * math.sqrt(self.variance(np.ones(self.middles.size))):
            return float(self.middles.min()), float(self.middles.max())
        slope, step = self.corrected(self.middles - self.mean)
        matrix, ones = self.covariance(), np.ones(self.middles.size)
        parabola = ones @ matrix @ ones, -2 * float(self.middles @ matrix @ ones), self.middles @ matrix @ self.middles

        def possible(means: Reals) -> NDArray[np.bool_]:
            variances = np.maximum(0.0, np.polyval(parabola, means))
            reach = report_reach(normal_factor(LEVEL), variances, slope, step)
            return np.asarray(np.abs(self.rows * (self.mean - means)) <= reach)

        return self._farthest(possible, float(self.middles.min())), self._farthest(possible, float(self.middles.max()))

    def _farthest(self, possible: Callable[[Reals], NDArray[np.bool_]], end: float) -> float:
        """The first mean on the way to an end that is not possible; the end, if all are."""
        near, far = self.mean, end
        for _ in range(6):
            steps = np.linspace(near, far, 101)
            wrong = np.flatnonzero(~possible(steps))
            if wrong.size == 0:
                return end
            near, far = float(steps[wrong[0] - 1]), float(steps[wrong[0]])
        return far
