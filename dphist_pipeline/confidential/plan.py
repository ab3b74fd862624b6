"""What reading and counting need to know: a frozen plan, made of a spec and of what operators allowed.

This package takes no `ReleaseSpec`: whoever reads it sees here all that a spec can say to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import prod
from typing import Literal

from dphist_pipeline.base.domain import Axis, Domain
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.confidential.unit_values import UnitValue
from dphist_pipeline.spec.declared_columns import Condition, DerivedColumn
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.spec.sources import PrivacyUnit, Source, SqlFile


@dataclass(frozen=True)
class SourcePlan:
    """The source of the records: where they are, and how they are read."""

    written: Source  # as in the spec, for messages; what the environment gave is never shown
    reading: Reading  # as an operator allowed it; files must lie in its folder, where it has one
    pattern: str  # an absolute glob of files here; of an object store, the address as written
    needed: tuple[str, ...] = ()  # absolute globs or addresses instead of `pattern`, where a period names its files
    query: SqlFile | None = None  # gives the rows, instead of the source's rows as they are
    tries: bool = True  # whether an item of the query that raises is null, as the operator's decision says

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The columns of a unit that may be numbers in some files and text in others."""
        return self.reading.unit if "number" in self.reading.unit_normalise else ()


@dataclass(frozen=True)
class Marginal:
    """A table that is counted from the rows of a grid that is never built."""

    axes: tuple[int, ...]  # numbers of the plan's axes
    groups: tuple[tuple[int, ...] | None, ...]  # of each axis: by position its group; None where it is not grouped
    shape: tuple[int, ...]  # positions, or groups, along each of these axes

    @property
    def cells(self) -> int:
        """The number of cells of the table."""
        return prod(self.shape)


@dataclass(frozen=True)
class UnitRows:
    """Derives values of each unit's own rows before they are counted."""

    read: tuple[Axis, ...]  # the axes whose columns are read; they put a unit's rows in order
    values: tuple[int | UnitValue, ...]  # of each axis of the grid: the axis that is read, or what is derived
    take: Literal["all", "first", "last"] = "all"  # which rows of a unit and period are left
    history: int = 0  # days before the period whose rows are read, too, and never counted


@dataclass(frozen=True)
class CountingPlan:
    """All that reading and counting take."""

    source: SourcePlan
    privacy_unit: PrivacyUnit  # the columns that name a unit, or `row`
    max_rows_per_unit: int  # R, the most rows that are kept of a unit
    domain: Domain  # the declared grid
    period: Period  # whose rows to take
    period_column: str | None = None  # says when a row happened; None takes all rows
    period_format: str | None = None  # how dates are written in a period column that is text
    undeclared_dates: Mapping[str, str] = field(
        default_factory=dict
    )  # columns that must not be text: the missing field
    time_zone: str = "UTC"  # of local days, and of times without an offset
    rows_seen: int | None = None  # T, the most rows of a unit that a quality table sees; None for no table
    derive: tuple[DerivedColumn, ...] = ()  # columns that are made of those of the source, row by row
    keep: tuple[Condition, ...] = ()  # what must be true of a row that is read at all
    marginals: tuple[Marginal, ...] = ()  # what is counted instead of the grid's cells, one after the other
    parts: int = 1  # of which a row is split between the ends of an amount; 1 without one
    distinct: bool = False  # whether a unit counts once in a cell: its equal rows are one row before they are bounded
    per_unit: UnitRows | None = None  # what follows from several rows of a unit; None where nothing does
    outside: bool = False  # whether rows outside the period are taken, instead of those in it
    misfiled: CountingPlan | None = None  # takes the rows that no period looks for in this period's own files

    @property
    def axes_read(self) -> Domain:
        """The axes whose columns are read."""
        return self.domain if self.per_unit is None else Domain(self.per_unit.read)

    @property
    def reads_from(self) -> datetime | None:
        """The first moment whose rows are read: the period's start, or some days before it."""
        if self.per_unit is None or self.period.start is None:
            return self.period.start
        return self.period.start - timedelta(days=self.per_unit.history)
