"""The queries about rows that a quality table is made of: a closed set of frozen classes, each with its proof.

The histogram holds at most R rows of a unit. A quality table looks further, at the first T > R rows of each unit in a
secret order: for rows in declared cells the one by which bounding keeps rows, for all rows, those in no cell among
them, another one of the same making; of misfiled rows only the number counts, so any T of them are the first. Which
rows come first depends on the unit's own rows and on a key alone. So a unit adds its own part to each table, whatever
others hold. `sensitivity(limits)` is how far all numbers of a table move together when one unit is added or removed, or
substituted by another one: then its part is taken away, and that of the other one is added. The measurements add
discrete Laplace noise of scale sensitivity/ε to each number; `queries` says why.

Rows that name no unit, and what the parser took for no row, are in no table: no promise covers them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.confidential._plain_values import MeasurementMisuse

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Limits:
    """How many rows of a unit are counted and seen, and what neighbours are.

    Attributes:
        kept: R, the most rows of a unit in the histogram.
        seen: T, the most rows of a unit in a table; larger than R, but where every row is its own unit.
        substitute: whether neighbours have another unit in one's place, or one unit more.
    """

    kept: int
    seen: int
    substitute: bool

    def __post_init__(self) -> None:
        if not 1 <= self.kept <= self.seen:
            raise MeasurementMisuse("a quality table sees at least the rows that are kept")

    @property
    def parts(self) -> int:
        """The number of units whose parts differ between neighbours."""
        return 2 if self.substitute else 1


@dataclass(frozen=True, eq=False)
class ObservedRows:
    """Exact numbers about the first T rows of each unit.

    Attributes:
        units: units that hold 1, 2, …, T or more rows in declared cells, shape (T,).
        cut: rows R+1 … T of each unit in declared cells, shape (1,).
        cut_by: the same by position along each axis but an amount, one axis after the other, shape (positions of all
            these axes,).
        places: rows in cells of declared values alone, rows in `other` of some axis, and rows that lie in no cell.
        failures: for each axis the rows that hold nothing that parses, and undeclared values; shape (axes, 2).
        misfiled: rows in the period's own files that no period looks for there, at most T of each unit; shape (1,).
    """

    units: Numbers
    cut: Numbers
    cut_by: Numbers
    places: Numbers
    failures: Numbers
    misfiled: Numbers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class FilteredUnits(ObservedRows):
    """Exact numbers about the units of an individual account, and none about rows.

    Attributes:
        left_out: units that a charge is the first of its year to leave out; shape (1,).
    """

    left_out: Numbers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))


class RowQuery(ABC):
    """What a measurement computes from observed rows, and how far that moves.

    Attributes:
        measurement: its name in the journal.
    """

    __slots__ = ()
    measurement: ClassVar[str]

    @abstractmethod
    def sensitivity(self, limits: Limits) -> int:
        """How far all answers move together between neighbours: proved in each class."""

    @abstractmethod
    def answers(self, observed: ObservedRows) -> Numbers:
        """The exact numbers, one dimension."""

    @property
    def digest(self) -> str:
        """The digest that the journal keeps beside the measurement's name; empty where the domain says it all."""
        return ""


@dataclass(frozen=True, slots=True)
class UnitsByRows(RowQuery):
    """How many units hold 1, 2, …, T-1 rows in declared cells, and how many T or more."""

    measurement: ClassVar[str] = "units_by_rows"

    def sensitivity(self, limits: Limits) -> int:
        """1, or 2 under substitution: a unit is counted in one of the numbers or, without such a row, in none."""
        return limits.parts

    def answers(self, observed: ObservedRows) -> Numbers:
        """Units by rows, shape (T,)."""
        return observed.units


@dataclass(frozen=True, slots=True)
class RowsCut(RowQuery):
    """How many of the first T rows of units, among those in declared cells, the bound keeps out of the histogram."""

    measurement: ClassVar[str] = "rows_cut"

    def sensitivity(self, limits: Limits) -> int:
        """T - R, under substitution too: a unit adds between 0 and T - R to the one number, and so does another one."""
        return limits.seen - limits.kept

    def answers(self, observed: ObservedRows) -> Numbers:
        """One number."""
        return observed.cut


@dataclass(frozen=True, slots=True)
class RowsCutBy(RowQuery):
    """The same by position along one axis.

    Attributes:
        axis: its number.
        shape: of the domain, without an amount, along which rows have no position.
    """

    axis: int
    shape: tuple[int, ...]
    measurement: ClassVar[str] = "rows_cut_by"

    def sensitivity(self, limits: Limits) -> int:
        """T - R, or 2(T - R) under substitution: a unit adds at most T - R rows, each of which has one position; those
        of another unit may have other positions.
        """
        return limits.parts * (limits.seen - limits.kept)

    @property
    def digest(self) -> str:
        """The number of the axis, as text."""
        return f"axis {self.axis}"

    def answers(self, observed: ObservedRows) -> Numbers:
        """Rows by position, shape (size of the axis,)."""
        start = sum(self.shape[: self.axis])
        return observed.cut_by[start : start + self.shape[self.axis]]


@dataclass(frozen=True, slots=True)
class RowsByPlace(RowQuery):
    """How many of the first T rows of units lie in cells of declared values, in `other` of an axis, and in no cell."""

    measurement: ClassVar[str] = "rows_by_place"

    def sensitivity(self, limits: Limits) -> int:
        """T, or 2T under substitution: a unit adds at most T rows, each of which is in one of the three places."""
        return limits.parts * limits.seen

    def answers(self, observed: ObservedRows) -> Numbers:
        """Three numbers."""
        return observed.places


@dataclass(frozen=True, slots=True)
class FailuresByAxis(RowQuery):
    """How many of the first T rows of units hold nothing that parses on an axis, or a value that is not declared.

    Attributes:
        axes: how many the domain has.
    """

    axes: int
    measurement: ClassVar[str] = "failures_by_axis"

    def sensitivity(self, limits: Limits) -> int:
        """T for each axis, or 2T under substitution: each of at most T rows adds 1 to at most one of the two numbers
        of an axis, and may do so on every axis.
        """
        return limits.parts * limits.seen * self.axes

    def answers(self, observed: ObservedRows) -> Numbers:
        """Two numbers an axis, axis by axis."""
        return observed.failures.ravel()


@dataclass(frozen=True, slots=True)
class RowsMisfiled(RowQuery):
    """How many rows in the period's own files no period looks for there, of each unit the first T such rows."""

    measurement: ClassVar[str] = "rows_misfiled"

    def sensitivity(self, limits: Limits) -> int:
        """T, under substitution too: a unit adds between 0 and T to the one number, and so does another one."""
        return limits.seen

    def answers(self, observed: ObservedRows) -> Numbers:
        """One number."""
        return observed.misfiled


@dataclass(frozen=True, slots=True)
class UnitsLeftOut(RowQuery):
    """How many units a charge to an individual account is the first of its year to leave out."""

    measurement: ClassVar[str] = "units_left_out"

    def sensitivity(self, limits: Limits) -> int:
        """1: a unit is left out for the first time in one charge of a year at most, so it moves all numbers of the year
        together by 1, and one share of the total pays for all of them; see `individual`.
        """
        if limits.substitute:
            raise MeasurementMisuse("an individual account adds or removes a unit")
        return 1

    def answers(self, observed: ObservedRows) -> Numbers:
        """One number."""
        assert isinstance(observed, FilteredUnits)
        return observed.left_out


ROW_QUERIES: tuple[type[RowQuery], ...] = (
    *(UnitsByRows, RowsCut, RowsCutBy, RowsByPlace, FailuresByAxis, RowsMisfiled, UnitsLeftOut),
)
