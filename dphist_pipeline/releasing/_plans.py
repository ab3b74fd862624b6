"""What a spec asks for, as others take it: a plan for counting, a request to the ledger, the run of a mechanism."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, assert_never

from dphist_pipeline.base.domain import Axis, Domain, Family, groups_along
from dphist_pipeline.base.engine_versions import untested_engines
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.confidential.plan import CountingPlan, Marginal, SourcePlan, UnitRows
from dphist_pipeline.confidential.unit_values import (
    Count,
    DaysSince,
    FirstValue,
    IsNew,
    LastValue,
    Number,
    UnitValue,
)
from dphist_pipeline.errors import Halted, first_of
from dphist_pipeline.ledger.decisions import Decision
from dphist_pipeline.ledger.entries import ChargeRequest
from dphist_pipeline.mechanisms.tables import shares_for
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.sanitizing import MechanismRun
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.spec.sources import EVERY_ROW, RecordSource
from dphist_pipeline.spec.unit_axes import UnitAxisSpec, read_axes

MOST_NAMED = 10


class FilesMissing(Halted):
    """Files that a period needs and that are not there. Their names are public: the spec and the calendar give them."""

    def __init__(self, release: str, period: str, missing: Sequence[str], others: bool) -> None:
        self.release, self.period, self.missing = release, period, tuple(missing)
        counts = "`require: none` in the spec counts the others, and " if others else ""
        names = first_of(missing, MOST_NAMED)
        super().__init__(
            f"release '{release}', period {period}: needs files that are not there: {names}. Nothing was read or "
            f"spent. Put them there and run again; if they never come, {counts}dphist ledger waive {release} {period} "
            "--reason TEXT says so"
        )


def plan_of(
    spec: ReleaseSpec,
    period: Period,
    decisions: Sequence[Decision] = (),
    run: MechanismRun | None = None,
    will_charge: bool = False,
) -> CountingPlan:
    """The counting plan of a spec for one period.

    Args:
        decisions: of operators, that of the source first; a study, which publishes nothing, has none.
        run: of the mechanism, as a release froze it; what reads without a release has none.
        will_charge: whether a new charge is to follow, for which a column of text says how its dates are written.

    Raises:
        FilesMissing: with each file that the period needs and that is not there.
    """
    reading = decisions[0].reading if decisions else replace(spec.reading, folder=None)
    assert reading is not None, "the first decision is of the source"
    tries = all(decision.tries for decision in decisions if decision.query is not None)
    source = replace(source_plan(spec, reading), query=spec.source_sql, tries=tries)
    plan = CountingPlan(
        source=replace(source, needed=expected_patterns(spec, period)),
        privacy_unit=spec.privacy_unit,
        max_rows_per_unit=spec.max_rows_per_unit,
        domain=spec.domain,
        period=period,
        period_column=spec.period_column,
        period_format=spec.text_format,
        time_zone=spec.time_zone,
        undeclared_dates=spec.undeclared_dates if will_charge else {},
        derive=spec.derive,
        keep=spec.keep,
        distinct=spec.take == "one_per_cell",
        per_unit=_unit_rows(spec) if spec.walks_units else None,
        rows_seen=rows_seen(spec),
        parts=spec.parts,
        marginals=()
        if spec.family is None
        else _marginals(spec.family, spec.domain, (run or mechanism_run_of(spec)).measured),
    )
    own_files = {pattern for _, pattern in spec.expected_addresses(period, spec.period_rule)}
    needed = tuple(pattern for pattern in plan.source.needed if pattern in own_files)
    if spec.quality is None or not spec.quality.misfiled or not needed:
        return plan
    source, span = replace(plan.source, needed=needed), spec.own_files_span(period)
    elsewhere = replace(plan, source=source, period=span, outside=True, domain=plan.axes_read, per_unit=None)
    return replace(plan, misfiled=elsewhere)


def _unit_rows(spec: ReleaseSpec) -> UnitRows:
    """The plan of what is derived of each unit's rows."""
    _, sources = read_axes(spec.axes)
    values: list[int | UnitValue] = []
    for axis, source in zip(spec.axes, sources, strict=True):
        number = -1 if source is None else source  # those of times alone have none
        values.append(_unit_value(axis, number) if isinstance(axis, UnitAxisSpec) else number)
    take: Literal["all", "first", "last"] = spec.take if spec.take in ("first", "last") else "all"
    return UnitRows(spec.read_axes, tuple(values), take, spec.history_days)


def _unit_value(axis: UnitAxisSpec, of: int) -> UnitValue:
    match axis.of_unit:
        case "number":
            return Number(axis.window, axis.last_edge)
        case "days_since":
            return DaysSince(axis.window)
        case "is_new":
            return IsNew(axis.window, of)
        case "first_value":
            return FirstValue(of)
        case "last_value":
            return LastValue(of)
        case "count":
            return Count()
        case _:
            assert_never(axis.of_unit)


def _marginals(family: Family, declared: Domain, measured: Sequence[frozenset[int]]) -> tuple[Marginal, ...]:
    """What is counted for a family of tables: the marginals that its mechanism measures, each by its axes."""
    return tuple(
        Marginal(
            tuple(family.sources[axis] for axis in sorted(chosen)),
            tuple(groups_of(declared.axes[family.sources[axis]], family.domain.axes[axis]) for axis in sorted(chosen)),
            family.grid(chosen).shape,
        )
        for chosen in measured
    )


def groups_of(declared: Axis, level: Axis) -> tuple[int, ...] | None:
    """For each position along an axis its position along one of its levels; None where the level is the axis."""
    return None if declared is level else groups_along(declared, level)


def rows_seen(spec: ReleaseSpec) -> int | None:
    """T, the most rows of a unit that a quality table sees, 1 if a unit is a row; None where no table is asked for."""
    if spec.quality is None:
        return None
    return 1 if spec.privacy_unit == EVERY_ROW else spec.quality.rows


def mechanism_run_of(spec: ReleaseSpec) -> MechanismRun:
    """The mechanism of a spec, with what its measurements count."""
    family = spec.family
    measured = () if family is None else tuple(shares_for(family).marginals)
    grids = (spec.domain,) if family is None else tuple(family.grid(axes) for axes in measured)
    budget = spec.mechanism_epsilon
    return MechanismRun(spec.built_mechanism, budget, spec.sensitivity, grids, family, measured, spec.parts)


def request_of(
    spec: ReleaseSpec, store_id: str, period: str, *, revision: int = 1, reason: str = "", engine: str | None = None
) -> ChargeRequest:
    """The request to the ledger for one release of one period.

    `engine`: the one that was charged for; that of the spec when left out. Only a revision has a reason.
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
        source=spec.reading,
        engine=engine or spec.engine,
        versions=untested_engines(),
        checks=spec.required_checks if "checks" in spec.requires else (),
        rows=spec.max_rows_per_unit,
        quality=spec.quality is not None,
        **_query_of(spec),
    )


def _query_of(spec: ReleaseSpec) -> dict[str, Any]:
    """The query of a spec, which an operator signs."""
    if spec.source_sql is None:
        return {}
    return {"query": spec.source_sql.query.sha256, "query_name": str(spec.source_sql)}


def source_plan(records: RecordSource, reading: Reading) -> SourcePlan:
    """The plan of how a source is read; its files must lie in the reading's folder, where that has one."""
    return SourcePlan(records.source, reading, records.source_pattern)


def expected_patterns(spec: ReleaseSpec, period: Period) -> tuple[str, ...]:
    """Absolute globs, or addresses of an object store, of what a period needs; empty without placeholders.

    Objects are looked for when they are opened: keys that may read one need not be allowed to list a bucket. `require`
    of the spec says whether all files must be there, or one is enough.
    """
    expected = spec.expected_files(period)
    if not spec.has_files:
        return tuple(pattern for _, pattern in expected)
    present = [pattern for _, pattern in expected if glob.glob(pattern, recursive=True)]  # noqa: PTH207 - it is absolute
    missing = [called for called, pattern in expected if pattern not in present]
    if missing and ("files" in spec.requires or not present):
        raise FilesMissing(spec.release, period.key, missing, others=bool(present))
    return tuple(present)
