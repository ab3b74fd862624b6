"""Checks of a publication, with numbers: made of published files, the ledger and the spec, never of records.

They warn and stop nothing: what they look at is published already, so they cost no ε. The check that stops is
`releasable`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import numpy as np

from dphist_pipeline.answering.asking import totals_of_periods
from dphist_pipeline.answering.cells_beyond_chance import cells_above_zero
from dphist_pipeline.answering.past_periods import PeriodComparison
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates import notes
from dphist_pipeline.estimates.answers import Answer
from dphist_pipeline.estimates.estimate import answer_box
from dphist_pipeline.integrations.dagster._partitions import partitions_of
from dphist_pipeline.publishing.published_estimate import published_estimate
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.account_runway import AccountRunway
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store

VALUES_LIKE_PAST = "values_like_past"
CELLS_ABOVE_ZERO = "More cells lie above zero, or farther above it, than noise makes where no record was counted."
LIKE_PAST = (
    "The total and every value of every axis are as in the last periods, and last year's season, beyond noise and "
    "chance and a factor (3; 1.5 for the total)."
)


def values_like_past(release: Release) -> tuple[bool, dict[str, Any], str]:
    """Whether the check passed, its numbers, and what rings in one sentence."""
    comparison = PeriodComparison.of_audit(release.audit)
    numbers: dict[str, Any] = {"compared_with": ", ".join(comparison.periods), "changed": len(comparison.changes)}
    return not comparison.says, numbers, comparison.says if comparison.periods else "no period before is published"


def cells_tell_something(release: Release) -> tuple[bool, dict[str, Any], str]:
    """Whether the check passed, its numbers, and what it says."""
    cells = cells_above_zero([table.path for table in release.tables.values()])
    numbers: dict[str, Any] = {"cells": int(release.audit["cells"]), "cells_above_zero": cells.above}
    numbers |= {"cells_above_zero_by_chance": round(cells.by_chance, 1)}
    if cells.tell or not cells.cells:
        return True, numbers, ""
    chance = (
        f"{cells.above} of {cells.cells:,} cells lie above zero, where noise alone makes about {cells.by_chance:.1f}"
    )
    return False, numbers, f"{chance}: are there any records?"


FEW_RELEASES = 4
LARGEST_CHANGE = 2
MOST_LISTED = 20

TEXTS = {
    "copied": (
        "The store's bucket, if it has one, has what is published; the next run mends it, or `dphist store publish`."
    ),
    "account_lasts": f"The account pays for at least {FEW_RELEASES} more releases.",
    "cells_tell_something": CELLS_ABOVE_ZERO,
    "total_like_last_period": (
        f"By both intervals, the total may have changed by less than {LARGEST_CHANGE} times since the period before."
    ),
    VALUES_LIKE_PAST: LIKE_PAST,
    "no_period_missing": "Every period between the first charged one and this one is published, or was withdrawn.",
}
WITHOUT_PERIODS = ("copied", "account_lasts", "cells_tell_something")


@dataclass(frozen=True)
class AssetCheckOutcome:
    """What a check found for one period: public numbers and words, and what is wrong, in one sentence.

    `severity` is of a failure. `blocking`: later steps stop.
    """

    passed: bool
    numbers: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.WARN
    blocking: bool = False

    def result(self, asset: dg.AssetKey, name: str) -> dg.AssetCheckResult:
        """As an output of a step that works on one period."""
        return dg.AssetCheckResult(
            passed=self.passed,
            asset_key=asset,
            check_name=name,
            severity=self.severity,
            metadata=dict(self.numbers),
            description=self.problem or None,
        )

    def evaluation(self, asset: dg.AssetKey, name: str, partition: str | None) -> dg.AssetCheckEvaluation:
        """As an event that names its partition, if any; a result of a run over many of them names none."""
        return dg.AssetCheckEvaluation(
            asset_key=asset,
            check_name=name,
            passed=self.passed,
            severity=self.severity,
            metadata=dict(self.numbers),
            description=self.problem or None,
            blocking=self.blocking,
            partition=partition,
        )


def check_specs(spec: ReleaseSpec, published: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """The checks of a release's published asset, one evaluation for each period; without periods none compares them."""
    names = WITHOUT_PERIODS if spec.period == "none" else tuple(TEXTS)
    return [check_spec(spec, name, published, TEXTS[name]) for name in names]


def check_spec(
    spec: ReleaseSpec, name: str, asset: dg.AssetKey, text: str, blocking: bool = False
) -> dg.AssetCheckSpec:
    """A check with the partitions of its release; the text says what must hold, for the page."""
    with warnings.catch_warnings():
        # Dagster calls partitions of checks a preview; without them the newest period hides what an earlier one found.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return dg.AssetCheckSpec(
            name, asset=asset, description=text, blocking=blocking, partitions_def=partitions_of(spec)
        )


def checks_table(results: Mapping[str, AssetCheckOutcome]) -> dg.TableMetadataValue:
    """What the checks of one period found, to stand beside its materialization for good."""
    rows: list[dict[str, str | bool]] = [
        {"check": name, "passed": result.passed, "found": result.problem or "-"} for name, result in results.items()
    ]
    return dg.MetadataValue.table(records=[dg.TableRecord({**row}) for row in rows])


class Totals:
    """Answers for all cells of publications, each asked for once in a run; those of a folder at once, if asked to."""

    def __init__(self, many: bool = False) -> None:
        self._known: dict[str, Answer] = {}
        self._many = many

    def of(self, publication: Release) -> Answer:
        """The answer for all cells of a publication."""
        digest = str(publication.audit["audit_digest"])
        if self._many and publication.first_table is publication:
            self._many = False  # periods that are published later are asked for one by one
            release = publication.path.parents[1]
            with suppress(DphistError):  # of another period's files; each is then asked for alone
                self._known |= totals_of_periods(release.parent, release.name)
        if digest not in self._known:
            self._known[digest] = _answer_for_all(publication)
        return self._known[digest]


def _answer_for_all(release: Release) -> Answer:
    """The answer for all cells, from the published numbers as on the release's page: a macro takes longer than both."""
    if release.first_table is release:  # of a family another table may answer
        with suppress(KeyError, OSError, ValueError):  # an older version wrote too little, or a file is damaged
            return answer_box(published_estimate(release.path, release.audit), {})
    return release.first_table.answer()


def findings(
    spec: ReleaseSpec, store: Store, statement: Statement, release: Release, totals: Totals
) -> dict[str, AssetCheckOutcome]:
    """What each check of a publication finds."""
    by_check = {
        "account_lasts": _account(spec, statement),
        "cells_tell_something": AssetCheckOutcome(*cells_tell_something(release)),
    }
    if spec.period != "none":
        by_check["total_like_last_period"] = _total(spec, store, release, totals)
        by_check[VALUES_LIKE_PAST] = AssetCheckOutcome(*values_like_past(release))
        by_check["no_period_missing"] = _periods(spec, statement, release)
    return by_check


def copied_of(store: Store, problem: str) -> AssetCheckOutcome:
    """Whether the store's bucket has what was published; the problem says why it does not."""
    bucket = {"bucket": store.public_address or "none"}
    return AssetCheckOutcome(not problem, bucket, problem, severity=dg.AssetCheckSeverity.ERROR)


def _account(spec: ReleaseSpec, statement: Statement) -> AssetCheckOutcome:
    runway = AccountRunway.by_statement(spec, statement, datetime.now(UTC))
    lasts = spec.period == "none" or runway.releases is None or runway.releases >= FEW_RELEASES  # once is enough
    if statement.account.is_individual:
        return AssetCheckOutcome(True, {}, runway.says)
    numbers: dict[str, Any] = {"left": float(statement.left), "spent": float(statement.spent)}
    numbers |= {"releases_left": runway.releases} if runway.releases is not None else {}
    numbers |= {"last_due": runway.until} if runway.until is not None else {}
    return AssetCheckOutcome(lasts, numbers, runway.says)


def _total(spec: ReleaseSpec, store: Store, release: Release, totals: Totals) -> AssetCheckOutcome:
    total = totals.of(release)
    now = {"total": total.estimate, "lower": total.ci_lower, "upper": total.ci_upper}
    before = spec.period_before(spec.period_named(release.audit["period"]))
    try:
        last = totals.of(Release.published(store, spec.release, before.key))
    except DphistError:  # not published, or withdrawn
        return AssetCheckOutcome(True, _finite(now), f"the period before, {before.key}, is not published")
    numbers = _finite({**now, "last_total": last.estimate, "last_lower": last.ci_lower, "last_upper": last.ci_upper})
    if not {"lower", "last_lower"} <= numbers.keys():
        return AssetCheckOutcome(True, numbers, "no intervals to compare")
    metadata: dict[str, Any] = {**numbers, "chance": notes.CHANCE_NEVER}
    fell = total.ci_upper * LARGEST_CHANGE < last.ci_lower
    rose = total.ci_lower > max(last.ci_upper, 0) * LARGEST_CHANGE
    word = "fell" if fell else "rose"
    asks = (
        "are all records there?" if fell else "was anything delivered twice, or were records missing the time before?"
    )
    problem = f"it {word} from {last.unbiased:,.0f} to {total.unbiased:,.0f}: {asks}" if fell or rose else ""
    return AssetCheckOutcome(not (fell or rose), metadata, problem)


def _periods(spec: ReleaseSpec, statement: Statement, release: Release) -> AssetCheckOutcome:
    ours = [charge for charge in statement.charges if charge.release == spec.release]
    periods = {charge.period for charge in ours if statement.states[charge.number] in ("published", "withdrawn")}
    period, missing = spec.period_named(release.audit["period"]), []
    first = min((charge.period for charge in ours), default=period.key)
    while period.key > first:
        period = spec.period_before(period)
        missing += [period.key] if period.key not in periods else []
    names = ", ".join(sorted(missing)[:MOST_LISTED])
    return AssetCheckOutcome(
        not missing, {"missing": len(missing), "published": len(periods)}, f"missing: {names}" if missing else ""
    )


def _finite(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: number for name, number in numbers.items() if np.isfinite(number)}
