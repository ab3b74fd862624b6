"""What a spec asks for, as others take it: a plan for counting, a request to the ledger, the run of a mechanism."""

from __future__ import annotations

import glob
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from dphist_pipeline.confidential.plan import CountingPlan, Marginal, SourcePlan
from dphist_pipeline.domain import Axis, Domain, Family, groups_along
from dphist_pipeline.engine_versions import untested
from dphist_pipeline.ledger.decisions import SourceReading
from dphist_pipeline.ledger.entries import ChargeRequest
from dphist_pipeline.mechanisms.tables import shares_for
from dphist_pipeline.releasing._expected_files import expected_patterns
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.sanitizing import MechanismRun
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.spec.sources import EVERY_ROW, RecordSource, SqlFile, as_glob


def plan_of(spec: ReleaseSpec, period: Period, allowed: SourceReading | None = None) -> CountingPlan:
    """What reading and counting need of a spec, for one period.

    Args:
        period: whose rows to take.
        allowed: how an operator decided that the source is read; a study, which publishes nothing, has none.
    """
    opened = source_plan(spec, allowed.folder if allowed is not None else None, spec.source_sql)
    return CountingPlan(
        source=replace(opened, needed=expected_patterns(spec, period)),
        privacy_unit=spec.privacy_unit,
        max_rows_per_unit=spec.max_rows_per_unit,
        domain=spec.domain,
        period=period,
        unit_normalise=spec.unit_normalise,
        unit_kinds=allowed.unit_kinds if allowed is not None else (),
        period_column=spec.period_column,
        period_format=spec.text_format,
        time_zone=spec.time_zone,
        rows_seen=rows_seen(spec),
        marginals=() if spec.family is None else marginals_of(spec.family, spec.domain),
    )


def marginals_of(family: Family, declared: Domain) -> tuple[Marginal, ...]:
    """What is counted for a family of tables: the marginals that its mechanism measures."""
    return tuple(
        Marginal(
            tuple(family.sources[axis] for axis in sorted(chosen)),
            tuple(groups_of(declared.axes[family.sources[axis]], family.domain.axes[axis]) for axis in sorted(chosen)),
            family.grid(chosen).shape,
        )
        for chosen in shares_for(family).marginals
    )


def groups_of(declared: Axis, level: Axis) -> tuple[int, ...] | None:
    """For each position along an axis its position along one of its levels; None where the level is the axis.

    Args:
        level: the same axis, or one of its levels.
    """
    return None if declared is level else groups_along(declared, level)


def rows_seen(spec: ReleaseSpec) -> int | None:
    """T, the most rows of a unit that a quality table sees; None where the spec asks for no table.

    Args:
        spec: checked; under `privacy_unit: row`, T is 1.
    """
    if spec.quality is None:
        return None
    return 1 if spec.privacy_unit == EVERY_ROW else spec.quality.rows


def run_of(spec: ReleaseSpec) -> MechanismRun:
    """The mechanism of a spec, with what its doors count."""
    family = spec.family
    grids = [spec.domain] if family is None else [family.grid(axes) for axes in shares_for(family).marginals]
    return MechanismRun(spec.build_mechanism(), spec.mechanism_epsilon, spec.sensitivity, tuple(grids), family)


def request_of(
    spec: ReleaseSpec, store_id: str, period: str, *, revision: int = 1, reason: str = "", engine: str | None = None
) -> ChargeRequest:
    """What one release of one period asks of the ledger.

    Args:
        revision: from 1.
        reason: of a revision; else empty.
        engine: that was charged for; that of the spec when left out.
    """
    return ChargeRequest(
        account=spec.account,
        release=spec.release,
        period=period,
        revision=revision,
        epsilon=spec.epsilon,
        digest=spec.digest,
        reason=reason,
        privacy_unit=spec.privacy_unit,
        neighbours=spec.neighbours,
        store_id=store_id,
        held=spec.publish == "manual",
        source=reading_of(spec),
        engine=engine or spec.engine,
        version=untested(),
        checks=spec.required_checks if "checks" in spec.requires else (),
        **_query_of(spec),
    )


def _query_of(spec: ReleaseSpec) -> dict[str, Any]:
    """What the ledger must allow of a spec's query, where the query does not speak for itself."""
    if spec.source_sql is None or not spec.source_sql.query.needs_decision:
        return {}
    query = spec.source_sql.query
    return {"query": query.sha256, "query_name": str(spec.source_sql), "query_because": query.needs_decision}


def source_plan(records: RecordSource, folder: str | None, query: SqlFile | None = None) -> SourcePlan:
    """How a source is opened.

    Args:
        folder: that an operator allowed; files must lie in it.
    """
    return SourcePlan(
        written=records.source,
        format=records.source_format,
        pattern=records.source_pattern,
        address=records.source.resolved,
        table=records.source_table,
        csv_delimiter=records.csv_delimiter,
        csv_quote=records.csv_quote,
        csv_encoding=records.csv_encoding,
        hive=records.hive,
        decimal_comma=records.decimal_comma,
        folder=folder,
        query=query,
    )


def reading_of(records: RecordSource) -> SourceReading:
    """What would be read and how, as an operator allows it; declared by a spec or by the options of a command.

    Args:
        records: resolved; the reading keeps the address as written.
    """
    return SourceReading(
        address=str(records.source),
        folder=folder_of(records),
        format=records.source_format,
        table=records.source_table,
        csv_delimiter=records.csv_delimiter,
        csv_quote=records.csv_quote,
        csv_encoding=records.csv_encoding,
        hive=records.hive,
        decimal_comma=records.decimal_comma,
        unit=records.privacy_unit.columns,
        unit_normalise=records.unit_normalise,
    )


def folder_of(records: RecordSource) -> str | None:
    """The folder that an address of files lies in, links followed; None for servers and object stores.

    Args:
        records: a relative address starts at its `base`.
    """
    if not records.has_files:
        return None
    base = records.base
    plain = Path(base, as_glob(records.source.resolved)).parent
    # The base's own name may hold signs of a glob; only the address's count.
    folders = [folder for folder in (plain, *plain.parents) if not glob.has_magic(str(folder).removeprefix(str(base)))]
    return os.path.realpath(folders[0])
