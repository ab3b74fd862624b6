"""What reading and counting need to know: a frozen plan, made of a spec and of what operators allowed.

The room takes no `ReleaseSpec`: whoever reads this folder sees here all that a spec can say to it.
"""

from __future__ import annotations

from dataclasses import dataclass

from dphist_pipeline.domain import Domain
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.spec.row_queries import RowQuery
from dphist_pipeline.spec.sources import Format, PrivacyUnit


@dataclass(frozen=True)
class SourcePlan:
    """Where records are, and how they are read.

    Attributes:
        written: the source as in the spec, which messages show; what the environment gave of it is never shown.
        format: what it is.
        pattern: of files here, an absolute glob; of files in an object store, the address as written.
        address: of a server, password and all: in no message.
        folder: that files must lie in, links followed; None for servers, object stores and studies.
        table: of a database.
        csv_delimiter: between the fields of a CSV file.
        csv_quote: around some fields, or nothing.
        hive: whether folders called `column=value` give columns of text.
        decimal_comma: whether text numbers are written 3,5.
        query: what is asked of the source instead of its rows as they are.
        query_file: the query's file as written, for messages.
    """

    written: str
    format: Format
    pattern: str
    address: str = ""
    folder: str | None = None
    table: str | None = None
    csv_delimiter: str = ","
    csv_quote: str = ""
    hive: bool = False
    decimal_comma: bool = False
    query: RowQuery | None = None
    query_file: str = ""


@dataclass(frozen=True)
class CountingPlan:
    """All that reading and counting take.

    Attributes:
        source: see `SourcePlan`.
        privacy_unit: the columns that name a unit, or `row`.
        unit_normalise: what text of a unit is brought into before it is compared.
        unit_kinds: what the unit's columns must hold, where an operator decided that.
        max_rows_per_unit: R, the most rows that are kept of a unit.
        domain: the declared grid.
        period: whose rows to take.
        period_column: that says when a row happened; None takes all rows.
        period_format: how dates are written in a period column that is text.
        time_zone: in which times without an offset are.
    """

    source: SourcePlan
    privacy_unit: PrivacyUnit
    max_rows_per_unit: int
    domain: Domain
    period: Period
    unit_normalise: tuple[str, ...] = ()
    unit_kinds: tuple[str, ...] = ()
    period_column: str | None = None
    period_format: str | None = None
    time_zone: str = "UTC"
