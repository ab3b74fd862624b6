"""Means and sums over an axis, worked out cell by cell with NumPy: an independent check of `dph_mean` and `dph_sum`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from oracle import Box, Oracle

from dphist_pipeline.base.domain import BinnedAxis
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.answers import Answer
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, Unbiased

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Moments:
    """The cells of a box, with the ends of their bins along an axis; weights are 0 outside of the box."""

    oracle: Oracle
    rows: Reals
    lower: Reals
    upper: Reals
    name: str

    @classmethod
    def of(cls, oracle: Oracle, name: str, ends: tuple[float, float], box: Box) -> Moments:
        number = [axis.name for axis in oracle.domain.axes].index(name)
        axis = oracle.domain.axes[number]
        assert isinstance(axis, BinnedAxis)
        rows = oracle.mask({name: (None, None), **box}).astype(float)
        lower, upper = axis.bounds
        closed = np.where(np.isneginf(lower), ends[0], lower), np.where(np.isposinf(upper), ends[1], upper)
        along = np.indices(oracle.domain.shape)[number]
        return cls(oracle, rows, *(np.where(rows > 0, one[along], 0.0) for one in closed), name)

    def total(self, weights: Reals) -> float:
        assert self.oracle.unbiased is not None
        return float((weights * self.oracle.unbiased.values).sum())

    def middle(self) -> Reals:
        return np.asarray((self.lower + self.upper) / 2)

    def mean(self) -> Answer:
        middle, values, cells = self.middle(), self.oracle.values, int(self.rows.sum())
        counted = float((self.rows * values).sum())
        mean = float((middle * values).sum()) / counted if counted > 0 else math.nan
        if self.oracle.unbiased is None:
            return Answer(
                mean,
                math.nan,
                math.nan,
                math.nan,
                "noise_only",
                cells,
                note=f"{notes.NO_INTERVAL}; {self.in_middles('mean')}",
            )
        inside, rows = self.rows > 0, self.total(self.rows)
        least, most = self.lower[inside].min(), self.upper[inside].max()
        low = least + self.distance((self.lower - least) * self.rows)
        high = most - self.distance((most - self.upper) * self.rows)
        unbiased = self.total(middle) / rows if rows > 0 else math.nan
        error = math.sqrt(self.oracle.variance(middle - unbiased * self.rows)) / rows if rows > 0 else math.nan
        note = self.in_middles("mean", low - 1e-9 <= mean <= high + 1e-9)
        note = notes.NO_MEAN if math.isnan(mean) else note
        return Answer(mean, unbiased, low, high, "linear", cells, error, note)

    def distance(self, weights: Reals) -> float:
        """The smallest d from 0 to the largest weight at which sum(w - d) is not above its noise, by bisection."""
        span = float(weights.max())
        if span == 0:
            return 0.0
        variance = self.oracle.variance
        # The variance is a parabola in d; its least value in relation to the largest weight gives the number of draws.
        trials = span * np.concatenate([np.linspace(-60, 60, 4001), np.linspace(-1, 2, 3001)])
        fixed, at_one, at_minus = (variance(weights - d * self.rows) for d in (0.0, span, -span))
        square, half = (at_one + at_minus) / 2 - fixed, (at_one - at_minus) / 2
        parabola = np.polyval([square / span**2, half / span, fixed], trials)
        nested = isinstance(self.oracle.unbiased, NestedCells)
        largest = span if nested else np.maximum(np.abs(trials), np.abs(span - trials))
        factor = deviations(self.oracle.unbiased, float((parabola / largest**2).min()))

        def too_far(d: float) -> bool:
            left = weights - d * self.rows
            return self.total(left) > factor * math.sqrt(max(0.0, variance(left)))

        return first_not(too_far, np.linspace(0, span, 101))

    def sum(self) -> Answer:
        middle, values, cells = self.middle(), self.oracle.values, int(self.rows.sum())
        estimate = float((middle * values).sum())
        if self.oracle.unbiased is None:
            return Answer(
                estimate,
                math.nan,
                math.nan,
                math.nan,
                "noise_only",
                cells,
                note=f"{notes.NO_INTERVAL}; {self.in_middles('sum')}",
            )
        low, high = self.total(self.lower) - self.reach(self.lower), self.total(self.upper) + self.reach(self.upper)
        note = self.in_middles("sum", low - 1e-9 <= estimate <= high + 1e-9)
        error = math.sqrt(self.oracle.variance(middle))
        return Answer(estimate, self.total(middle), low, high, "linear", cells, error, note)

    def in_middles(self, what: str, is_inside: bool | None = None) -> str:
        """What is said of bins whose rows are put in their middles; None without an interval."""
        width = (self.upper - self.lower) / 2
        values = self.oracle.values if self.oracle.unbiased is None else self.oracle.unbiased.values
        # The counts of whole bins: noise of cells in one bin cancels first.
        number = [axis.name for axis in self.oracle.domain.axes].index(self.name)
        others = tuple(place for place in range(width.ndim) if place != number)
        moved = float(np.maximum(0.0, (self.rows * values).sum(axis=others)) @ width.max(axis=others))
        if what == "mean":
            moved = min(float(width.max()), moved / max(0.0, float((self.rows * values).sum())))
        shift = f"{math.floor(moved + 0.5):,}" if moved >= 999.5 else f"{moved:.3g}"
        text = notes.MIDDLES_OF_ESTIMATE.format(what=what) + shift
        if is_inside is None:
            return text
        return ("" if is_inside else f"{notes.SMOOTHED}; ") + text + notes.MIDDLES_COVERED

    def reach(self, weights: Reals) -> float:
        nested = isinstance(self.oracle.unbiased, NestedCells)
        largest = max(0.0, weights.max()) - min(0.0, weights.min()) if nested else np.abs(weights).max()
        variance = self.oracle.variance(weights)
        return deviations(self.oracle.unbiased, variance / largest**2) * math.sqrt(variance) if largest else 0.0


def deviations(unbiased: Unbiased | None, variance: float) -> float:
    """Half the width of an interval in standard deviations, for a variance where the largest weight is 1."""
    assert isinstance(unbiased, NoisyCells | NestedCells)
    one = noise_law(unbiased.scale).variance
    draws = max(1.0, variance / one * (1 + 1e-9))
    if isinstance(unbiased, NestedCells):
        return max(pair for pair in noise_law(unbiased.scale).linear_reach_grid(math.ceil(draws)) if pair[0] <= draws)[
            1
        ]
    cells, reach = max(pair for pair in noise_law(unbiased.scale).half_width_grid(math.ceil(draws)) if pair[0] <= draws)
    return min(math.sqrt(20), (reach + 1) / math.sqrt(cells * one))


def first_not(too_far: Callable[[float], bool], steps: Reals) -> float:
    """The first point that is not too far any more, by bisection between two steps; the last step if none is."""
    if not too_far(float(steps[0])):
        return float(steps[0])
    index = next((index for index, step in enumerate(steps) if not too_far(float(step))), None)
    if index is None:
        return float(steps[-1])
    low, high = float(steps[index - 1]), float(steps[index])
    for _ in range(60):
        low, high = (low, (low + high) / 2) if not too_far((low + high) / 2) else ((low + high) / 2, high)
    return high
