"""Rates within groups: which share of a group has a category, in some records, beside the published interval of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates.noisy import NestedCells

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GroupRates:
    """Rates of the categories of an axis. A group is one combination of positions along the other axes of a table.

    Attributes:
        rates: in the records, from 0 to 1, shape of the table; 0 in a group without records.
        lower: end of the published 95 % interval of each rate, from 0 to 1, shape of the table.
        upper: the same.
    """

    rates: Reals
    lower: Reals
    upper: Reals

    @classmethod
    def of(cls, counts: Reals, unbiased: NestedCells, axis: int) -> GroupRates:
        """The rates of some records, with the intervals that `dph_share` tells: Fieller's.

        Args:
            counts: of the records in each cell, not below 0, shape of the table.
            unbiased: estimates of the cells, from sums of boxes, shape of the table.
            axis: number of the axis, which has two positions or more.
        """
        sums = counts.sum(axis=axis, keepdims=True)
        rates = np.divide(counts, sums, out=np.zeros(counts.shape), where=sums > 0)
        return cls(rates, *_intervals(unbiased, axis))

    def reach(self, axis: int) -> Reals:
        """Half the width of the widest interval in each group, shape of the table without the axis."""
        widest: Reals = (self.upper - self.lower).max(axis=axis) / 2
        return widest


def _intervals(unbiased: NestedCells, axis: int) -> tuple[Reals, Reals]:
    """All rates p for which part - p * group is not farther from 0 than its noise goes, as in `dph_share.sql`."""
    part, group = unbiased.values, unbiased.values.sum(axis=axis, keepdims=True)
    of_part, of_both, of_group = _variances(unbiased, axis)
    # The reach of part - p * group in its standard deviations, at the p where its largest draw stands out most.
    least, which = np.unique(of_part - of_both**2 / of_group, return_inverse=True)
    factors = np.array([unbiased.law.half_width_of_linear(one) / math.sqrt(one) for one in least.tolist()])
    along = [-1 if one == axis else 1 for one in range(part.ndim)]
    factor, of_both = factors[which].reshape(along), of_both.reshape(along)
    square = group**2 - factor**2 * of_group
    middle = part * group - factor**2 * of_both
    fixed = part**2 - factor**2 * of_part
    spread = np.sqrt(np.maximum(middle**2 - square * fixed, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = (middle - spread) / square, (middle + spread) / square
    # Between two roots; outside of them where the group is near 0.
    lower = np.where(square > 0, one, np.where((other < 0) & (one <= 1), one, 0.0))
    upper = np.where(square > 0, other, np.where((one > 1) & (other >= 0), other, 1.0))
    return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)


def _variances(unbiased: NestedCells, axis: int) -> tuple[float, Reals, float]:
    """The variance of a cell, its covariance with its group by position along the axis, and the variance of a group."""
    size = unbiased.values.shape[axis]
    of_part, of_both, of_group = 0.0, np.zeros(size), 0.0
    for shared in unbiased.shared:
        box = np.arange(size) // shared.widths[axis]
        inside = np.bincount(box)
        of_part += shared.coefficient
        of_both += shared.coefficient * inside[box]
        of_group += shared.coefficient * int(inside @ inside)
    return of_part, of_both, of_group
