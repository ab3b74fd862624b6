"""What a spec asks for, in the words of others: a plan for reading and counting, a reading for the ledger to allow."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from dphist_pipeline.confidential.plan import CountingPlan, SourcePlan
from dphist_pipeline.ledger.decisions import SourceReading
from dphist_pipeline.spec import sources
from dphist_pipeline.spec.model import ReleaseSpec
from dphist_pipeline.spec.periods import Period


def plan_of(spec: ReleaseSpec, period: Period, allowed: SourceReading | None = None) -> CountingPlan:
    """What reading and counting need of a spec, for one period.

    Args:
        spec: checked.
        period: whose rows to take.
        allowed: how an operator decided that the source is read; a study, which publishes nothing, has none.
    """
    source = SourcePlan(
        written=spec.source,
        format=spec.source_format,
        pattern=spec.source_pattern,
        address=spec.source_address,
        table=spec.source_table,
        csv_delimiter=spec.csv_delimiter,
        csv_quote=spec.csv_quote,
        hive=spec.hive,
        decimal_comma=spec.decimal_comma,
        folder=allowed.folder if allowed is not None else None,
        query=spec.source_sql.query if spec.source_sql is not None else None,
        query_file=spec.source_sql or "",
    )
    return CountingPlan(
        source=source,
        privacy_unit=spec.privacy_unit,
        max_rows_per_unit=spec.max_rows_per_unit,
        domain=spec.domain,
        period=period,
        unit_normalise=spec.unit_normalise,
        unit_kinds=allowed.unit_kinds if allowed is not None else (),
        period_column=spec.period_column,
        period_format=spec.period_format,
        time_zone=str(spec.time_zone),
    )


def source_plan(reading: SourceReading, source: str, base: Path) -> SourcePlan:
    """How a source is opened, by a decision alone; without any query.

    Args:
        reading: as decided.
        source: its address, checked, with what the environment gave.
        base: where relative addresses start.
    """
    away = reading.folder is None
    return SourcePlan(
        written=source,
        format=sources.format_of(source),
        pattern=str(source) if away else sources.absolute_pattern(source, base),
        address=sources.resolved(source),
        folder=reading.folder,
        table=reading.table,
        csv_delimiter=reading.csv_delimiter,
        csv_quote=reading.csv_quote,
        hive=reading.hive,
        decimal_comma=reading.decimal_comma,
    )


def reading_of(spec: ReleaseSpec) -> SourceReading:
    """What a spec would read and how, to be compared with what an operator allowed."""
    return SourceReading(
        address=str(spec.source),
        folder=folder_of(spec.source, spec.base),
        format=spec.source_format,
        table=spec.source_table,
        csv_delimiter=spec.csv_delimiter,
        csv_quote=spec.csv_quote,
        hive=spec.hive,
        decimal_comma=spec.decimal_comma,
        unit=spec.privacy_unit.columns,
        unit_normalise=spec.unit_normalise,
    )


def folder_of(source: str, base: Path) -> str | None:
    """The folder that an address of files lies in, links followed; None for servers and object stores.

    Args:
        source: checked, by name or glob.
        base: where relative ones start.
    """
    if sources.format_of(source) == "postgres" or sources.in_store(source):
        return None
    plain = Path(base, sources.resolved(source)).parent
    # The base's own name may hold signs of a glob; only the address's count.
    folders = [folder for folder in (plain, *plain.parents) if not glob.has_magic(str(folder).removeprefix(str(base)))]
    return os.path.realpath(folders[0])
