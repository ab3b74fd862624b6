"""What is derived of a unit's own rows: a closed set of frozen classes, each with its proof.

A unit's rows stand in one order: by time, then by their positions along the axes that are read, in the spec's order,
undeclared values last, then by the words of marks. All of these are whole numbers, and rows that are equal in all of
them are equal for the spec. So the order is a function of the unit's own rows, whatever the order of a file or engine.

**Stability.** Each class maps the rows of one unit to a position for each of them; it reads no other unit. To take the
first or the last row of the period, of which `take` speaks, reads none either, and leaves at most one. So do their
combinations: first positions, then `take`, then the bound. What is counted is the union over units, and without one
unit it lacks that unit's rows and nothing else. Bounding keeps at most R of them, and Δ stays.

Between batches a unit that goes on carries few of its rows, of which each class says below that they are enough.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Axis, BinnedAxis

Numbers = NDArray[np.int64]
NONE = -1  # a position of a row that lies in no cell
YES, NO = 0, 1  # positions along an axis of `is_new`


@dataclass(frozen=True, eq=False)
class Block:
    """Rows in their order, all those of a unit together; the first ones were carried from an earlier block.

    Attributes:
        units: the number of each row's unit, rising from 0; shape (rows,), as those below.
        days: its local day, since 1970.
        inside: whether it lies in the period.
        places: its position along each axis that is read, an undeclared value after the last; shape (axes, rows).
        first_day: of the period.
        carried: how many rows were carried, all of unit 0.
        counted: how many rows of the period unit 0 had before this block.
    """

    units: Numbers
    days: Numbers
    inside: NDArray[np.bool_]
    places: Numbers
    first_day: int
    carried: int
    counted: int

    @cached_property
    def rows_of_period(self) -> Numbers:
        """The number of rows of the period of each unit, those before this block among them; shape (units,)."""
        new = self.units[self.carried :][self.inside[self.carried :]]
        counts = np.bincount(new, minlength=self.number_of_units)
        counts[:1] += self.counted
        return counts

    @property
    def number_of_units(self) -> int:
        """The number of units that have rows here."""
        return int(self.units[-1]) + 1 if self.units.size else 0

    @cached_property
    def first_of_period(self) -> Numbers:
        """The first row of the period of each unit, -1 without one; shape (units,)."""
        return self._edge(np.flatnonzero(self.inside)[::-1])

    @cached_property
    def last_of_period(self) -> Numbers:
        """The last row of the period of each unit, -1 without one; shape (units,)."""
        return self._edge(np.flatnonzero(self.inside))

    def _edge(self, rows: Numbers) -> Numbers:
        edge = np.full(self.number_of_units, -1)
        edge[self.units[rows]] = rows  # of several assignments to one place the last one stands
        return edge

    def since(self, within: int | None) -> Numbers:
        """The first local day that each row looks back to: of the period, or `within` days before its own."""
        return np.full(self.days.size, self.first_day) if within is None else self.days - within


class UnitValue(ABC):
    """A value of a row that follows from its unit's rows.

    Attributes:
        looks_ahead: whether later rows have a say, so that a unit's last row must be known.
    """

    __slots__ = ()
    looks_ahead: ClassVar[bool] = False

    @abstractmethod
    def positions(self, block: Block, axis: Axis) -> Numbers:
        """The position of each row along the derived axis, `NONE` where it lies in no cell; proved in each class."""

    def rows_to_carry(self, days: Numbers, places: Numbers) -> Numbers:
        """Which rows of a unit that goes on later rows need beside its last one and the period's first one.

        Args:
            days, places: of the rows of the unit, as in `Block`.
        """
        return np.zeros(0, dtype=np.int64)


def binned_positions(axis: Axis, values: Numbers, known: NDArray[np.bool_] | None = None) -> Numbers:
    """Positions of whole numbers along a binned axis; `other`, or none, where the value is not known."""
    assert isinstance(axis, BinnedAxis)
    nowhere = NONE if axis.other_cell is None else axis.other_cell
    place = np.searchsorted(axis.edges, values, side="right" if axis.closed == "left" else "left")
    position = place - 1 + axis.below
    position[place == 0] = 0 if axis.below else nowhere
    position[place > axis.bins] = axis.below + axis.bins if axis.above else nowhere
    if known is not None:
        position[~known] = nowhere
    return position


@dataclass(frozen=True, slots=True)
class Number(UnitValue):
    """1 + how many earlier rows of the unit the window holds.

    Attributes:
        within: days before a row's own that its window begins; None for the first day of the period.
        most: the last edge of the axis, K, above which numbers are alike.
    """

    within: int | None
    most: int

    def positions(self, block: Block, axis: Axis) -> Numbers:
        """By days of the same unit alone: those of a unit rise, and a row's window is a range of them."""
        least = block.days.min(initial=0)
        span = int(block.days.max(initial=0)) - int(least) + 1
        key = block.units * span + (block.days - least)
        begins = block.units * span + np.clip(block.since(self.within) - least, 0, span - 1)
        earlier = np.arange(key.size) - np.searchsorted(key, begins)
        return binned_positions(axis, np.maximum(earlier, 0) + 1)

    def rows_to_carry(self, days: Numbers, places: Numbers) -> Numbers:
        """The last K rows: where the window reaches beyond them, the number is above K, whichever rows lie there."""
        return np.arange(max(0, days.size - self.most), days.size)


@dataclass(frozen=True, slots=True)
class DaysSince(UnitValue):
    """Local days since the unit's previous row; `other` where the window holds none.

    Attributes:
        within: as of `Number`.
    """

    within: int | None

    def positions(self, block: Block, axis: Axis) -> Numbers:
        """By the row before, if it is of the same unit; the last row is carried."""
        before = np.roll(block.days, 1)
        known = (np.roll(block.units, 1) == block.units) & (before >= block.since(self.within))
        known[:1] = False
        return binned_positions(axis, np.where(known, block.days - before, 0), known)


@dataclass(frozen=True, slots=True)
class IsNew(UnitValue):
    """Yes, if no earlier row within the window has the same position along the axis `of`.

    Attributes:
        within: as of `Number`.
        of: the number of an axis that is read; its undeclared values are one position more.
    """

    within: int | None
    of: int

    def positions(self, block: Block, axis: Axis) -> Numbers:
        """By the last earlier row of the same unit and position: no other one is nearer."""
        place = block.places[self.of]
        key = block.units * (int(place.max(initial=0)) + 1) + place
        order = np.argsort(key, kind="stable")
        same = np.zeros(key.size, dtype=np.bool_)
        same[1:] = key[order][1:] == key[order][:-1]
        seen = np.zeros(key.size, dtype=np.bool_)
        days = block.days[order]
        seen[order] = same & (np.roll(days, 1) >= block.since(self.within)[order])
        return np.where(seen, NO, YES)

    def rows_to_carry(self, days: Numbers, places: Numbers) -> Numbers:
        """The last row of each position."""
        place = places[self.of]
        _, last = np.unique(place[::-1], return_index=True)
        return np.asarray(place.size - 1 - last, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FirstValue(UnitValue):
    """The position along the axis `of` of the unit's first row of the period."""

    of: int

    def positions(self, block: Block, axis: Axis) -> Numbers:
        """By that row, which is carried."""
        return _place_of(block, block.first_of_period, self.of, axis)


@dataclass(frozen=True, slots=True)
class LastValue(UnitValue):
    """The position along the axis `of` of the unit's last row of the period."""

    of: int
    looks_ahead: ClassVar[bool] = True

    def positions(self, block: Block, axis: Axis) -> Numbers:
        """By that row, once the unit has no more rows."""
        return _place_of(block, block.last_of_period, self.of, axis)


@dataclass(frozen=True, slots=True)
class Count(UnitValue):
    """How many rows the unit has in the period."""

    looks_ahead: ClassVar[bool] = True

    def positions(self, block: Block, axis: Axis) -> Numbers:
        """By its own rows, once it has no more."""
        return binned_positions(axis, block.rows_of_period[block.units])


def _place_of(block: Block, rows: Numbers, of: int, axis: Axis) -> Numbers:
    row = rows[block.units]
    place = np.where(row >= 0, block.places[of][row], axis.size)
    return np.where(place < axis.size, place, NONE)


UNIT_VALUES: tuple[type[UnitValue], ...] = (Number, DaysSince, IsNew, FirstValue, LastValue, Count)
