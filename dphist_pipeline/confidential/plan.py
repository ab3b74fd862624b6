"""What reading and counting need to know: a frozen plan, made of a spec and of what operators allowed.

The room takes no `ReleaseSpec`: whoever reads this folder sees here all that a spec can say to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from dphist_pipeline.csv_text import Encoding
from dphist_pipeline.domain import Domain
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.spec.sources import Format, PrivacyUnit, Source, SqlFile


@dataclass(frozen=True)
class SourcePlan:
    """Where records are, and how they are read."""

    written: Source  # as in the spec, for messages; what the environment gave is never shown
    format: Format
    pattern: str  # an absolute glob of files here; of an object store, the address as written
    needed: tuple[str, ...] = ()  # absolute globs or addresses instead of `pattern`, where a period names its files
    address: str = ""  # of a server, password and all: in no message
    folder: str | None = None  # files must lie in it, links followed; None for servers, object stores, studies
    table: str | None = None  # of a database
    csv_delimiter: str = ","  # between the fields of a CSV file
    csv_quote: str = '"'  # around some fields, nothing, or `all` where every field is quoted
    csv_encoding: Encoding = "utf-8"  # that a CSV file is written in
    hive: bool = False  # whether folders called `column=value` give columns of text
    decimal_comma: bool = False  # whether text numbers are written 3,5
    thousands: str | None = None  # the sign between thousands of text numbers
    numbers: tuple[str, ...] = ()  # columns of a unit that may be numbers in some files and text in others
    query: SqlFile | None = None  # gives the rows, instead of the source's rows as they are


@dataclass(frozen=True)
class Marginal:
    """A table that is counted from the rows of a grid that is never built."""

    axes: tuple[int, ...]  # numbers of the plan's axes
    groups: tuple[tuple[int, ...] | None, ...]  # of each axis: by position its group; None where it is not grouped
    shape: tuple[int, ...]  # positions, or groups, along each of these axes

    @property
    def cells(self) -> int:
        """How many cells the table has."""
        return prod(self.shape)


@dataclass(frozen=True)
class CountingPlan:
    """All that reading and counting take."""

    source: SourcePlan
    privacy_unit: PrivacyUnit  # the columns that name a unit, or `row`
    max_rows_per_unit: int  # R, the most rows that are kept of a unit
    domain: Domain  # the declared grid
    period: Period  # whose rows to take
    unit_normalise: tuple[str, ...] = ()  # the forms that names of units are brought into before they are compared
    unit_kinds: tuple[str, ...] = ()  # what the unit's columns must hold, where an operator decided that
    period_column: str | None = None  # says when a row happened; None takes all rows
    period_format: str | None = None  # how dates are written in a period column that is text
    undeclared_dates: Mapping[str, str] = field(
        default_factory=dict
    )  # columns that must not be text: the missing field
    time_zone: str = "UTC"  # of local days, and of times without an offset
    rows_seen: int | None = None  # T, the most rows of a unit that a quality table sees; None for no table
    marginals: tuple[Marginal, ...] = ()  # what is counted instead of the grid's cells, one after the other
    outside: bool = False  # whether rows outside the period are taken, instead of those in it
    misfiled: CountingPlan | None = None  # takes the rows that no period looks for in this period's own files
