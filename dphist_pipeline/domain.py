"""The declared grid: which cells exist, in which order, whatever the records hold.

A domain is made from a spec alone. Cells are numbered in C order: the last axis runs fastest.
Along an axis the declared order is: below, the bins (or categories), above, other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class BinnedAxis:
    """Half-open bins of a number.

    Attributes:
        name: the axis in the published table; its columns are `<name>_lower` and `<name>_upper`.
        column: the column of the source.
        edges: bin edges in axis units, rising, at least two; the doubles nearest to the declared decimals.
        closed: which end of a bin belongs to it.
        below: whether a cell below the first edge exists.
        above: whether a cell above the last edge exists.
        other: whether a cell for null, unparsable and undeclared values exists.
    """

    name: str
    column: str
    edges: tuple[float, ...]
    closed: Literal["left", "right"] = "left"
    below: bool = False
    above: bool = False
    other: bool = False

    @property
    def bins(self) -> int:
        """Number of declared bins, without below, above and other."""
        return len(self.edges) - 1

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return self.bins + self.below + self.above + self.other

    @property
    def other_cell(self) -> int | None:
        """Position of the `other` cell, always the last."""
        return self.size - 1 if self.other else None

    @cached_property
    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper end of every cell, shape (size,); infinite at open ends, nan for `other`."""
        edges = np.array(self.edges)
        lower = [np.array([-math.inf])] * self.below + [edges[:-1]]
        upper = [edges[:1]] * self.below + [edges[1:]]
        if self.above:
            lower.append(edges[-1:])
            upper.append(np.array([math.inf]))
        if self.other:
            lower.append(np.array([math.nan]))
            upper.append(np.array([math.nan]))
        return np.concatenate(lower), np.concatenate(upper)


@dataclass(frozen=True)
class CalendarAxis(BinnedAxis):
    """Days, weeks, months or years as half-open bins of local days.

    Its edges are numbers of days since 1970-01-01, and `first_days` says them as dates.

    Attributes:
        format: how dates are written in a source that holds them as text; None for ISO dates.
    """

    format: str | None = None

    @property
    def first_days(self) -> tuple[date, ...]:
        """The first day of each bin, and the day after the last bin."""
        return tuple(day_of(edge) for edge in self.edges)


EPOCH = date(1970, 1, 1)


def day_of(number: float) -> date:
    """The date that lies so many days after 1970-01-01."""
    return EPOCH + timedelta(days=int(number))


def number_of_day(day: date) -> int:
    """Days since 1970-01-01."""
    return (day - EPOCH).days


@dataclass(frozen=True)
class CategoricalAxis:
    """Named categories, compared as text.

    Attributes:
        name: the axis and its column in the published table.
        column: the column of the source.
        values: the declared categories, in order.
        other: whether a cell for null, unparsable and undeclared values exists.
        levels: coarser groupings by name, from the finest: what each category belongs to, in order of `values`.
        labels: what people call each category, in order of `values`, or nothing.
    """

    name: str
    column: str
    values: tuple[str, ...]
    other: bool = False
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    labels: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return len(self.values) + self.other

    @property
    def other_cell(self) -> int | None:
        """Position of the `other` cell, always the last."""
        return self.size - 1 if self.other else None


Axis = BinnedAxis | CategoricalAxis


@dataclass(frozen=True)
class Domain:
    """The axes of a cube, and with them every cell that will be counted and published."""

    axes: tuple[Axis, ...]

    @classmethod
    def from_shape(cls, shape: tuple[int, ...]) -> Domain:
        """The domain of a bare array: unit bins numbered from 0 on axes `axis_0`, `axis_1`, …"""
        return cls(
            tuple(
                BinnedAxis(f"axis_{number}", f"axis_{number}", tuple(map(float, range(size + 1))))
                for number, size in enumerate(shape)
            )
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Cells along each axis, in declared order."""
        return tuple(axis.size for axis in self.axes)

    @property
    def cells(self) -> int:
        """Number of cells of the whole cube."""
        return math.prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """What one step along each axis adds to the cell number (mixed radix)."""
        return tuple(math.prod(self.shape[number + 1 :]) for number in range(len(self.axes)))
