"""What the audit says of a release beside its charges: from the spec, the ledger, and noisy numbers that are paid for.

From noisy numbers comes whether a period can be right: its total, and the published periods before it. Under
`publish: if_plausible` a period that is in doubt waits for a person. Why it waits is told without numbers, since it may
be rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dphist_pipeline import mechanisms
from dphist_pipeline.answering.doubts import doubt_of_estimate
from dphist_pipeline.answering.past_periods import PeriodComparison
from dphist_pipeline.base.domain import AmountAxis, Axis, CategoricalAxis, Family
from dphist_pipeline.base.reading import quote_in_words
from dphist_pipeline.base.zone_data import zone_data_facts
from dphist_pipeline.estimates.estimate import AnyEstimate, FamilyEstimate, answer_box
from dphist_pipeline.ledger.individual import paid_by_year, price_of_row
from dphist_pipeline.ledger.ledger import Charge, Ledger
from dphist_pipeline.releasing._approvals import PublicationRule
from dphist_pipeline.releasing._engine_choice import engine_of
from dphist_pipeline.releasing.known_tables import figures_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.sanitizing import MechanismRun
from dphist_pipeline.spec.amount_axes import AmountAxisSpec
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.spec.unit_axes import UnitAxisSpec

HOLDS_ZERO = "total_holds_zero"
MAY_BE_EMPTY = "the interval of the total holds 0, as it would without any record"
# Words of a spec for people; none is in its digest.
WORDS = ("title", "counted", "unit_label", "language")


@dataclass(frozen=True)
class Judgement:
    """The verdict of the past and of the total on a period's numbers, before it is published.

    `holds_zero`: the interval of the total holds 0. `undeclared`: which axes are nearly all `other`, in words.
    """

    holds_zero: bool
    compared: PeriodComparison
    undeclared: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        """The facts for the audit."""
        facts: dict[str, Any] = {"compared": self.compared.facts} if self.compared.periods else {}
        return facts | ({HOLDS_ZERO: True} if self.holds_zero else {})

    @property
    def doubt(self) -> str:
        """Why a person should look, without numbers; empty if nothing is odd."""
        empty = MAY_BE_EMPTY if self.holds_zero else self.undeclared
        return "; ".join(filter(None, [empty, self.compared.hint]))


def judge(public: Path, facts: Mapping[str, Any], estimate: AnyEstimate) -> Judgement:
    """Judges a period that was drawn and may be published."""
    first = next(iter(estimate.tables.values())) if isinstance(estimate, FamilyEstimate) else estimate
    total = answer_box(first, {})
    # False where no interval is known, whose ends are nan.
    return Judgement(
        total.ci_lower <= 0, PeriodComparison.of_estimate(public, facts, estimate), doubt_of_estimate(estimate, facts)
    )


def audit_facts(
    spec: ReleaseSpec,
    period: Period,
    mechanism_run: MechanismRun,
    rule: PublicationRule,
    ledger: Ledger,
    charge: Charge,
) -> dict[str, Any]:
    """The facts of a release for its audit, beside its charges: from the spec and the ledger, never from records."""
    home = mechanisms.home(spec.mechanism)
    return {
        "schema_version": 2,
        "release": spec.release,
        **{name: str(text) for name in WORDS if (text := getattr(spec, name))},
        **({"axis_labels": labels} if (labels := {axis.name: axis.label for axis in spec.axes if axis.label}) else {}),
        **_amount(spec),
        **({"show_below": spec.show_below} if spec.show_below is not None else {}),
        "period": charge.period,
        "period_start": period.start.isoformat() if period.start else None,
        "period_end": period.end.isoformat() if period.end else None,
        **({"zone_data": zone_data_facts(spec.time_zone)} if spec.time_zone != "UTC" else {}),
        **({"next_release": day.isoformat()} if (day := spec.period_rule.next_release(period)) else {}),
        "revision": charge.revision,
        "reason": charge.reason,
        **({"upstream_checked": charge.upstream_checked} if charge.upstream_checked else {}),
        **({"publish": rule.publish} if rule.judges else {}),
        "account": spec.account,
        "privacy_unit": spec.privacy_unit,
        "max_rows_per_unit": spec.max_rows_per_unit,
        **({"take": spec.take} if spec.take != "all" else {}),
        "neighbours": spec.neighbours,
        "sensitivity": mechanism_run.sensitivity,
        **_facts_of_individual(ledger, charge),
        **_facts_of_reading(spec, ledger, charge),
        **({"quality": spec.quality.as_json()} if spec.quality is not None else {}),
        "mechanism": spec.mechanism,
        **({"mechanism_package": {"name": home.package, "version": home.version}} if home.package else {}),
        "settings": mechanisms.settings_of(mechanism_run.mechanism),
        # The queries of a file, whose digest is among the settings: axis, first cell, the cell after the last, weight.
        **({"queries": [list(query) for query in spec.queries]} if spec.queries else {}),
        "cells": spec.cells,
        **({"whole_counts": mechanism_run.mechanism.whole_way} if spec.family is None else {}),
        "axes": [axis.as_json() for axis in spec.axes],
        **({} if spec.family is None else {"tables": tables_of(spec.family, spec), **figures_of(spec.family, spec)}),
        "spec_digest": charge.digest,
        "ledger": {"number": charge.number, "hash": charge.hash, "charged_at": charge.charged_at},
    }


def _facts_of_individual(ledger: Ledger, charge: Charge) -> dict[str, Any]:
    """How many rows of a unit a year pays for at the price of a charge, where each unit pays for its own."""
    if charge.granted is None:
        return {}
    account = ledger.account(charge.account)
    year = paid_by_year(account.total, account.left_out, charge.granted.everybody)
    return {"year_rows": year // price_of_row(charge.epsilon, charge.granted.rows)}


def _amount(spec: ReleaseSpec) -> dict[str, Any]:
    """The amount of a release: its axis, the parts of a row, and what moving one part is worth; nothing without one."""
    number = spec.domain.amount
    if number is None:
        return {}
    axis, written = spec.domain.axes[number], spec.axes[number]
    assert isinstance(axis, AmountAxis) and isinstance(written, AmountAxisSpec | UnitAxisSpec)
    facts = {"axis": axis.name, "parts": spec.parts, "worth_of_part": axis.worth_of_part(spec.parts)}
    return {"amount": facts | ({"measured_in": written.measured_in} if written.measured_in else {})}


def tables_of(family: Family, spec: ReleaseSpec) -> dict[str, Any]:
    """Cells and axes of each table; an axis that is not grouped as the spec writes it."""
    axes_by_name = {axis.name: axis.as_json() for axis in spec.axes}
    axes = [axes_by_name.get(axis.name) or _level(axis) for axis in family.domain.axes]
    return {
        name: {"cells": family.grid(table).cells, "axes": [axes[number] for number in table]}
        for name, table in zip(family.names, family.tables, strict=True)
    }


def _level(axis: Axis) -> dict[str, Any]:
    """A level of an axis, as a spec writes an axis of its groups."""
    assert isinstance(axis, CategoricalAxis)
    levels = {name: list(groups) for name, groups in axis.levels.items()}
    facts = {"column": axis.column, "name": axis.name, "values": list(axis.values), "other": axis.other}
    return {**facts, **({"levels": levels} if levels else {})}


def _facts_of_reading(spec: ReleaseSpec, ledger: Ledger, charge: Charge) -> dict[str, Any]:
    """Whose rows were read, by what query, and which decisions of an operator let that happen."""
    query, engine = spec.source_sql.query if spec.source_sql is not None else None, engine_of(ledger, charge)
    decisions = ledger.decisions_of(charge)
    # An operator saw exact numbers before the charge: whether and how it was made may depend on them.
    looks = [
        {"entry": look.number, "hash": look.hash, "at": look.made_at, "by": look.by}
        | {"release": look.release, "period": look.period}
        | ({"reason": look.reason} if look.reason else {})
        for look in ledger.looks(spec.account)
        if look.number < charge.number
    ]
    # Some queries were judged row by row once; what was drawn by those is published without a decision.
    signed = query is not None and any(each.query == query.sha256 for each in ledger.decisions(spec.account))
    by_lines = any(decision.reading is not None and decision.reading.lines for decision in decisions)
    checks = sorted(decision.name for decision in decisions if decision.kind == "check")
    version = ", ".join(decision.name for decision in decisions if decision.kind == "version")
    return {
        **({"engine": engine} if engine != "duckdb" else {}),
        **({"engine_version": version} if version else {}),
        **({"required_checks": checks} if checks else {}),
        "unit_columns": list(spec.privacy_unit.columns),
        "unit_normalise": list(spec.unit_normalise),
        **({"csv_quote": quote_in_words(spec.csv_quote)} if by_lines else {}),
        # Which columns were made of others, and which rows counted, as the spec says.
        **({"derive": [one.as_json() for one in spec.derive]} if spec.derive else {}),
        **({"keep": [one.as_json() for one in spec.keep]} if spec.keep else {}),
        **({"query": {"sha256": query.sha256, "by_row": not signed}} if query is not None else {}),
        **({"looked": looks} if looks else {}),
        "allowed": [
            {"entry": decision.number, "hash": decision.hash, "kind": decision.kind, "by": list(decision.by)}
            | ({"reason": decision.reason} if decision.reason else {})
            for decision in decisions
        ],
    }
