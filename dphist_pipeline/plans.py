"""What a spec asks for, in the words of others: a plan for reading and counting, a reading for the ledger to allow."""

from __future__ import annotations

from dphist_pipeline.confidential.plan import CountingPlan, SourcePlan
from dphist_pipeline.spec.model import ReleaseSpec
from dphist_pipeline.spec.periods import Period


def plan_of(spec: ReleaseSpec, period: Period) -> CountingPlan:
    """What reading and counting need of a spec, for one period."""
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
        period_column=spec.period_column,
        period_format=spec.period_format,
        time_zone=str(spec.time_zone),
    )
