"""Sums of published cells over the bars and squares of a picture, each with its exact interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.intervals import LEVEL, half_width_of_linear, half_width_of_sum
from dphist_pipeline.answering.report_intervals import half_width_of_reports
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.noisy import NoisyCells, ReportedCells, Unbiased
from dphist_pipeline.publishing.plots_axes import Along, Positions, along, whole

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grid:
    """The published cells that a picture is made of.

    Attributes:
        domain: the declared grid.
        values: estimates, shape of the domain.
        unbiased: noisy cells or linear estimates of them, where they were paid for, or what reports say.
        chosen: positions along each axis that are shown.
    """

    domain: Domain
    values: Reals
    unbiased: Unbiased | None
    chosen: tuple[Positions, ...]

    @classmethod
    def of_all(cls, domain: Domain, values: Reals, unbiased: Unbiased | None) -> Grid:
        """Every declared cell."""
        return cls(domain, values, unbiased, tuple(np.arange(size) for size in domain.shape))

    @property
    def reported(self) -> bool:
        """Whether counts are estimated from reports of contributors, whose last interval is closed."""
        return isinstance(self.unbiased, ReportedCells)


@dataclass(frozen=True, eq=False)
class Sums:
    """What a picture shows; arrays have a side for each axis that it shows, in their order.

    Attributes:
        axes: as shown.
        values: sums of the estimates.
        low: lower ends of the 95 % intervals, cut off at 0; None where no noisy cells were paid for.
        high: likewise.
        reach: half widths of the intervals before they were cut off.
        reported: whether contributors made the noise.
    """

    axes: tuple[Along, ...]
    values: Reals
    low: Reals | None
    high: Reals | None
    reach: Reals | None
    reported: bool = False


def sums(grid: Grid, shown: Sequence[int], most: Sequence[int]) -> Sums:
    """Sums over all axes but the shown ones.

    Args:
        grid: the cells.
        shown: numbers of the axes that the picture has, in its order.
        most: of each, how many bars can be read.
    """
    wanted = dict(zip(shown, most, strict=True))
    parts = [
        along(axis, chosen, wanted[number], grid.reported) if number in wanted else whole(axis, chosen)
        for number, (axis, chosen) in enumerate(zip(grid.domain.axes, grid.chosen, strict=True))
    ]
    order = [*shown, *(number for number in range(len(parts)) if number not in wanted)]
    shape = tuple(parts[number].size for number in shown)

    def turned(array: Reals) -> Reals:
        return array.transpose(order).reshape(shape)

    values = turned(_summed(grid.values, parts))
    axes = tuple(parts[number] for number in shown)
    if grid.unbiased is None:
        return Sums(axes, values, None, None, None)
    centre, reach = turned(_summed(grid.unbiased.values, parts)), turned(_reaches(grid.unbiased, parts))
    return Sums(axes, values, np.maximum(centre - reach, 0), np.maximum(centre + reach, 0), reach, grid.reported)


def _summed(values: Reals, parts: Sequence[Along]) -> Reals:
    for number, part in enumerate(parts):
        order = np.concatenate(part.groups)
        starts = np.cumsum([0, *(group.size for group in part.groups[:-1])])
        if not np.array_equal(order, np.arange(values.shape[number])):
            values = values.take(order, axis=number)
        if len(starts) < order.size:
            values = np.add.reduceat(values, starts, axis=number)
    return values


def _reaches(unbiased: Unbiased, parts: Sequence[Along]) -> Reals:
    """The half width of the interval of every sum: by the number of its cells, or by its exact variance.

    Of reports, by its estimate too; they have one axis.
    """
    if isinstance(unbiased, ReportedCells):
        (part,) = parts
        return np.array([half_width_of_reports(unbiased, [group], LEVEL) for group in part.groups])
    if isinstance(unbiased, NoisyCells):
        cells = _product([np.array([group.size for group in part.groups], dtype=np.float64) for part in parts])
        return _each(cells, lambda number: half_width_of_sum(unbiased.scale, int(number)))
    variance = np.zeros([part.size for part in parts])
    for shared in unbiased.shared:
        squares = [
            np.array([_squares(group, width) for group in part.groups])
            for part, width in zip(parts, shared.widths, strict=True)
        ]
        variance += shared.coefficient * _product(squares)
    return _each(variance, lambda value: half_width_of_linear(unbiased.scale, value))


def _squares(group: Positions, width: int) -> float:
    counts = np.bincount(group // width)
    return float(counts @ counts)


def _product(sides: Sequence[Reals]) -> Reals:
    """The outer product, a side for each axis."""
    result: Reals = math.prod(np.ix_(*sides))  # type: ignore[assignment]
    return result


def _each(numbers: Reals, function: object) -> Reals:
    """A function of every number, worked out once for equal ones."""
    different, where = np.unique(numbers, return_inverse=True)
    found = np.array([function(float(number)) for number in different], dtype=np.float64)  # type: ignore[operator]
    result: Reals = found[where].reshape(numbers.shape)
    return result
