"""Checks of a publication, with numbers: made of published files, the ledger and the spec, never of records.

They warn and stop nothing: what they look at is published already. The check that stops is `releasable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import numpy as np

from dphist_pipeline.answering.answers import Answer
from dphist_pipeline.answering.period_totals import totals_of_periods
from dphist_pipeline.errors import DphistError
from dphist_pipeline.integrations.dagster import compared
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.account_runway import runway_of
from dphist_pipeline.releasing.releases import Release
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.model import ReleaseSpec

FEW_RELEASES = 4
LARGEST_CHANGE = 2
MOST_LISTED = 20
FEW_PERIODS = 3

TEXTS = {
    "account_lasts": f"The account pays for at least {FEW_RELEASES} more releases.",
    "cells_tell_something": compared.CELLS,
    "total_like_last_period": (
        f"By both intervals, the total may have changed by less than {LARGEST_CHANGE} times since the period before."
    ),
    compared.VALUES_LIKE_PAST: compared.TEXT,
    "no_period_missing": "Every period between the first charged one and this one is published, or was withdrawn.",
}
WITHOUT_PERIODS = ("account_lasts", "cells_tell_something")


@dataclass(frozen=True)
class Found:
    """What a check found."""

    passed: bool
    numbers: Mapping[str, Any] = field(default_factory=dict)
    said: str = ""


def check_specs(spec: ReleaseSpec, published: dg.AssetKey) -> list[dg.AssetCheckSpec]:
    """The checks of a release's published asset.

    Args:
        spec: checked; `period: none` leaves out the checks that compare periods.
        published: key of the asset that shows the publication.
    """
    names = WITHOUT_PERIODS if spec.period == "none" else tuple(TEXTS)
    return [dg.AssetCheckSpec(name, asset=published, description=TEXTS[name]) for name in names]


def check_results(published: dg.AssetKey, found: Mapping[str, Found]) -> Iterator[dg.AssetCheckResult]:
    """The findings as Dagster takes them: a warning where one did not pass.

    Args:
        published: key of the asset that shows the publication.
        found: by name of the check; a run of several periods gives those of the last one.
    """
    for name, one in found.items():
        yield dg.AssetCheckResult(
            passed=one.passed,
            asset_key=published,
            check_name=name,
            severity=dg.AssetCheckSeverity.WARN,
            metadata=dict(one.numbers),
            description=one.said or None,
        )


class Totals:
    """Answers for all cells of publications, each asked for once in a run."""

    def __init__(self) -> None:
        self._known: dict[str, Answer] = {}

    def ask_for(self, made: Sequence[Release]) -> None:
        """Asks for those of one release together, where they are most of its periods."""
        folders = {one.path.parents[1] for one in made}
        one_table = all(one.first_table is one for one in made)
        if len(made) >= FEW_PERIODS and len(folders) == 1 and one_table:
            (release,) = folders
            if len(list(release.glob("period=*"))) <= 2 * len(made):
                with suppress(DphistError):  # of another period's files; each is then asked for alone
                    self._known |= totals_of_periods(release.parent, release.name)

    def of(self, made: Release) -> Answer:
        """The answer for all cells of a publication."""
        digest = str(made.audit["audit_digest"])
        if digest not in self._known:
            self._known[digest] = made.first_table.answer()
        return self._known[digest]


def findings(spec: ReleaseSpec, store: Store, statement: Statement, made: Release, totals: Totals) -> dict[str, Found]:
    """What each check of a publication finds.

    Args:
        spec: checked.
        store: where it is published.
        statement: of the account that paid.
        made: the publication.
        totals: known by now.
    """
    found = {
        "account_lasts": _account(spec, statement),
        "cells_tell_something": Found(*compared.cells_tell_something(made)),
    }
    if spec.period != "none":
        found["total_like_last_period"] = _total(spec, store, made, totals)
        found[compared.VALUES_LIKE_PAST] = Found(*compared.values_like_past(made))
        found["no_period_missing"] = _periods(spec, statement, made)
    return found


def _account(spec: ReleaseSpec, statement: Statement) -> Found:
    runway = runway_of(spec, statement, datetime.now(UTC))
    numbers: dict[str, Any] = {"left": float(statement.left), "spent": float(statement.spent)}
    numbers |= {"releases_left": runway.releases} if runway.releases is not None else {}
    numbers |= {"last_due": runway.until} if runway.until is not None else {}
    return Found(runway.releases is None or runway.releases >= FEW_RELEASES, numbers, runway.says)


def _total(spec: ReleaseSpec, store: Store, made: Release, totals: Totals) -> Found:
    total = totals.of(made)
    now = {"total": total.estimate, "lower": total.ci_lower, "upper": total.ci_upper}
    before = spec.period_before(spec.period_named(made.audit["period"]))
    try:
        last = totals.of(Release.published(store, spec.release, before.key))
    except DphistError:  # not published, or withdrawn
        return Found(True, _finite(now), f"the period before, {before.key}, is not published")
    numbers = _finite({**now, "last_total": last.estimate, "last_lower": last.ci_lower, "last_upper": last.ci_upper})
    if not {"lower", "last_lower"} <= numbers.keys():
        return Found(True, numbers, "no intervals to compare")
    fell = total.ci_upper * LARGEST_CHANGE < last.ci_lower
    rose = total.ci_lower > max(last.ci_upper, 0) * LARGEST_CHANGE
    word = "fell" if fell else "rose"
    said = (
        f"it {word} from {last.estimate:,.0f} to {total.estimate:,.0f}: are all records there?" if fell or rose else ""
    )
    return Found(not (fell or rose), numbers, said)


def _periods(spec: ReleaseSpec, statement: Statement, made: Release) -> Found:
    ours = [charge for charge in statement.charges if charge.release == spec.release]
    there = {charge.period for charge in ours if statement.states[charge.number] in ("published", "withdrawn")}
    period, missing = spec.period_named(made.audit["period"]), []
    first = min((charge.period for charge in ours), default=period.key)
    while period.key > first:
        period = spec.period_before(period)
        missing += [period.key] if period.key not in there else []
    listed = ", ".join(sorted(missing)[:MOST_LISTED])
    return Found(
        not missing, {"missing": len(missing), "published": len(there)}, f"missing: {listed}" if missing else ""
    )


def _finite(numbers: Mapping[str, float]) -> dict[str, float]:
    return {name: number for name, number in numbers.items() if np.isfinite(number)}
