"""Whether periods of releases are due: nothing else says so when a schedule, or the machine that runs it, is dead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from dphist_pipeline.health.finding import CheckResult, Examined, first_names, not_looked_at, ok, warning
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.releasing.due import Cadence, Due
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.periods import EVERYTHING


@dataclass(frozen=True)
class Overdue:
    """What is due in a store.

    `periods`: release, period, and the day from which it could have been released, the oldest first. `left_out`:
    release and period, from before an upgrade: nobody asks for them. `unknown`: releases that no charge by this version
    described, so that nobody can say what is due.
    """

    periods: tuple[tuple[str, str, date], ...]
    left_out: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """What is due since when, in one sentence; empty where nothing is."""
        if not self.periods:
            return ""
        many = "1 period" if len(self.periods) == 1 else f"{len(self.periods)} periods"
        periods = first_names([f"{release} {period}" for release, period, _ in self.periods])
        return f"{many} due since {self.periods[0][2]}: {periods}"

    def facts(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "due": [
                {"release": release, "period": period, "since": since.isoformat()}
                for release, period, since in self.periods
            ],
            "left_out": [{"release": release, "period": period} for release, period in self.left_out],
            "unknown": list(self.unknown),
        }


def overdue(store: Store, ledger: Ledger, now: datetime) -> Overdue:
    """What is due in a store at an aware moment, for longer than its releases say that it may be."""
    periods, left_out, unknown = [], [], []
    for release in sorted({charge.release for charge in ledger.books().every_charge() if charge.period != EVERYTHING}):
        cadence = Cadence.last_charged(store, release)
        if cadence is None:
            unknown.append(release)
            continue
        due = Due.of(release, cadence.rule, store, ledger, now)
        today = now.astimezone(ZoneInfo(cadence.rule.time_zone)).date()
        periods += [(release, key, day) for key, day in due.overdue(today, cadence.slack_days).items()]
        left_out += [(release, key) for key in due.left_out]
    return Overdue(tuple(sorted(periods, key=lambda one: (one[2], one))), tuple(left_out), tuple(unknown))


def due(subject: Examined) -> CheckResult:
    """Whether finished periods were neither released nor waived for longer than their releases say."""
    check = "due"
    if subject.store is None or subject.ledger is None:
        return not_looked_at(check, "the ledger cannot be opened")
    late = overdue(subject.store, subject.ledger, subject.now)
    if late.says:
        release, period, _ = late.periods[0]
        mend = f"Look whether the schedule runs; dphist release SPEC --period {period}, or, if it never comes: "
        return warning(
            check,
            " ".join([late.says, *_remarks(late)]),
            f"{mend}dphist ledger waive {release} {period} --reason TEXT",
        )
    return ok(check, " ".join(["nothing is due", *_remarks(late)]))


def _remarks(due_periods: Overdue) -> Iterator[str]:
    if due_periods.left_out:
        periods = first_names([f"{release} {period}" for release, period in due_periods.left_out])
        yield f"(left out before an upgrade, and run by command only: {periods})"
    if due_periods.unknown:
        yield f"(not known before their next release: {first_names(due_periods.unknown)})"
