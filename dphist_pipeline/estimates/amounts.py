"""Rows, sums and means of an amount, from the noisy rows at its two ends, each with its 95 % interval.

Let u and v be the rows at `high` and `low` of n cells each: independent draws of one scale. Rows are u + v, the sum is
high·u + low·v, and the mean their ratio. Sums have the calibrated reach of weighted sums (`laws`), no weight above the
larger end. A mean is every μ, within the ends, for which |(high - μ)·u + (low - μ)·v| is within reach of 0: Fieller's
interval, by the factor for n draws, which is that of the heaviest tails. Rounding moves a row by at most half a part,
so means are widened by half of what a part is worth, and sums by that for each row of the upper end of rows. What the
intervals hold is the sum and mean of the kept rows with amounts cut to the ends. `dph_sum` and `dph_mean` say the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import AmountAxis
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import NoiseLaw
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.estimates.notes import NO_ROWS

What = Literal["rows", "sum", "mean"]
WHATS: tuple[What, ...] = ("rows", "sum", "mean")


@dataclass(frozen=True)
class AmountFigure:
    """A figure with its 95 % interval.

    Attributes:
        what: rows, or sum or mean of the amount.
        value: nan for a mean without rows.
        noise_error: standard deviation of the noise; of a mean to first order.
        note: what a reader must know; mostly empty.
    """

    what: What
    value: float
    lower: float
    upper: float
    noise_error: float
    note: str = ""


@dataclass(frozen=True)
class AmountFigures:
    """What the figures of a sum of cells follow from.

    Attributes:
        axis: the amount.
        law: of a draw of noise, in parts of a row.
        parts: of a row.
        upper, lower: noisy rows at `high` and at `low`.
        cells: how many cells each of them sums.
    """

    axis: AmountAxis
    law: NoiseLaw
    parts: int
    upper: float
    lower: float
    cells: int

    @property
    def figures(self) -> tuple[AmountFigure, AmountFigure, AmountFigure]:
        """Rows, sum and mean."""
        return self.rows, self.sum, self.mean

    @property
    def rows(self) -> AmountFigure:
        """Rows: the sum of all draws."""
        value, reach = self.upper + self.lower, self.law.half_width_of_sum(2 * self.cells)
        return AmountFigure("rows", value, value - reach, value + reach, math.sqrt(2 * self.cells * self.law.variance))

    @property
    def sum(self) -> AmountFigure:
        """The sum of the amounts."""
        low, high = self.axis.ends
        value, largest = high * self.upper + low * self.lower, max(abs(low), abs(high))
        variance = self.cells * self.law.variance * (high**2 + low**2) / largest**2
        reach = self.law.half_width_of_linear(variance)
        factor, rows = reach / math.sqrt(variance), self.rows
        reach = largest * reach + self._half_part * max(0.0, rows.value + factor * rows.noise_error)
        return AmountFigure("sum", value, value - reach, value + reach, largest * math.sqrt(variance))

    @property
    def mean(self) -> AmountFigure:
        """The mean amount; all that is declared where rows are not above their noise."""
        low, high = self.axis.ends
        rows, total = self.upper + self.lower, high * self.upper + low * self.lower
        # By the factor for as many draws as an end has: no other weights of these draws have heavier tails.
        reached = self.law.half_width_of_linear(self.cells * self.law.variance) ** 2
        square, half = rows**2 - 2 * reached, total * rows - reached * (high + low)
        fixed = total**2 - reached * (high**2 + low**2)
        if rows <= 0 or square <= 0:
            value = min(max(total / rows, low), high) if rows > 0 else math.nan
            return AmountFigure("mean", value, low, high, math.nan, NO_ROWS)
        value, root = total / rows, math.sqrt(max(0.0, half**2 - square * fixed))
        variance = self.cells * self.law.variance * ((high - value) ** 2 + (low - value) ** 2)
        return AmountFigure(
            "mean",
            min(max(value, low), high),
            max(low, (half - root) / square - self._half_part),
            min(high, (half + root) / square + self._half_part),
            math.sqrt(variance) / rows,
        )

    @property
    def worth_of_part(self) -> float:
        """How far the sum moves where one part of a row moves from an end to the other."""
        return (self.axis.high - self.axis.low) / self.parts

    @property
    def _half_part(self) -> float:
        """How far rounding to parts may move an amount."""
        return self.worth_of_part / 2


def figures_by(estimate: Estimate, by: Sequence[int] = ()) -> Iterator[tuple[tuple[int, ...], AmountFigures]]:
    """The figures of every combination of positions along some axes, summed over the others, in declared order.

    Args:
        estimate: with an amount.
        by: numbers of axes of the grid without the amount, rising.
    """
    number, noisy = estimate.domain.amount, estimate.unbiased
    assert number is not None and isinstance(noisy, NoisyCells), "parts of rows are measured cell by cell"
    axis = estimate.domain.axes[number]
    assert isinstance(axis, AmountAxis)
    grid = estimate.domain.of_rows
    others = tuple(one for one in range(len(grid.axes)) if one not in by)
    ends: list[NDArray[np.float64]] = [
        np.asarray(end.sum(axis=others)) for end in (noisy.values.take(place, axis=number) for place in (0, 1))
    ]
    cells = math.prod(grid.axes[one].size for one in others)
    for place in np.ndindex(ends[0].shape):
        upper, lower = float(ends[1][place]), float(ends[0][place])
        yield tuple(place), AmountFigures(axis, noisy.law, noisy.parts, upper, lower, cells)
