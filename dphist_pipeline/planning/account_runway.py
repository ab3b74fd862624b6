"""How long an account lasts at a spec's epsilon and period, from the ledger's statement alone."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.ledger import Statement, UnknownAccount, as_text
from dphist_pipeline.releasing.store import Store, store_folder
from dphist_pipeline.spec.model import ReleaseSpec
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.spec.refusals import PeriodError

MOST_PERIODS = 10_000
YEARS_AHEAD = 12
MOST_IN_A_YEAR = {"week": 53, "month": 12, "quarter": 4, "year": 1}


@dataclass(frozen=True)
class AccountRunway:
    """How long an account lasts if nothing else is charged to it.

    Attributes:
        account: its name.
        known: whether there is a store with such an account.
        left: of its total, or of this year's, in words.
        releases: that are left; None where that never ends.
        last: the last period that can be paid.
        until: the day on which that period is due.
        says: all of it in words.
    """

    account: str
    known: bool
    left: str | None
    releases: int | None
    last: str | None
    until: str | None
    says: str

    def facts(self) -> dict[str, Any]:
        """As JSON values."""
        return dict(vars(self))


def account_runway(spec: ReleaseSpec, store: Path | None, now: datetime | None = None) -> AccountRunway:
    """What the account of a spec still pays for; reads the ledger, and charges nothing.

    Args:
        spec: checked.
        store: as on the command line.
        now: the present, for tests.
    """
    try:
        statement = Store.open(store_folder(store)).ledger().statement(spec.account)
    except UnknownAccount as error:
        return _unknown(spec, f"not known: {error.on_terms(spec.privacy_unit, spec.neighbours)}")
    except DphistError as error:
        return _unknown(spec, f"not known: {error}")
    protected = (statement.account.privacy_unit, statement.account.neighbours)
    if protected != (spec.privacy_unit, spec.neighbours):
        return _unknown(
            spec, f"not usable: it protects {protected[0]} ({protected[1]}), so a release by this spec would be refused"
        )
    return _runway(spec, statement, now or datetime.now(UTC))


def _unknown(spec: ReleaseSpec, says: str) -> AccountRunway:
    return AccountRunway(spec.account, False, None, None, None, None, says)


def _runway(spec: ReleaseSpec, statement: Statement, now: datetime) -> AccountRunway:
    yearly = statement.account.renews is not None
    left = f"{as_text(statement.left)} of {as_text(statement.total)} left{' this year' if yearly else ''}"
    others = _others(spec, statement)
    if spec.period == "none":
        once = int(statement.left / spec.epsilon)
        says = f"{left}: {_many(once)} of the whole table, each at the full price{others}"
        return AccountRunway(spec.account, True, left, once, None, None, says)
    paid, used_up = _paid_periods(spec, statement, now)
    if used_up is None:
        most = MOST_IN_A_YEAR[spec.period]
        takes = f"{most} releases a year take at most {as_text(most * spec.epsilon)} of {as_text(statement.total)}"
        says = f"{left}: lasts for good, {takes}{others}" if yearly else f"{left}: lasts for centuries{others}"
        return AccountRunway(spec.account, True, left, None, None, None, says)
    again = f"; then used up until 1 January {used_up + 1}" if yearly else ""
    if not paid:
        return AccountRunway(spec.account, True, left, 0, None, None, f"{left}: not enough for one release{again}")
    last, until = paid[-1].key, _ready(spec, paid[-1]).isoformat()
    says = f"{left}: {_many(len(paid))}, the last of the {spec.period} {last}, due on {until}{again}{others}"
    return AccountRunway(spec.account, True, left, len(paid), last, until, says)


def _many(releases: int) -> str:
    return "1 more release" if releases == 1 else f"{releases:,} more releases"


def _others(spec: ReleaseSpec, statement: Statement) -> str:
    """Who else spends from the account, or that it is assumed that nobody does."""
    others = sorted({charge.release for charge in statement.charges} - {spec.release})
    if not others:
        return ", if nothing else is charged to it"
    named = ", ".join(others[:3]) + (" and others" if len(others) > 3 else "")
    return f"; but it also pays for {named}, whose coming charges are not taken off here"


def _paid_periods(spec: ReleaseSpec, statement: Statement, now: datetime) -> tuple[list[Period], int | None]:
    """The coming periods that are paid in order, each when it is due, and the year in which one cannot be.

    None for the year if that never comes, or not within `MOST_PERIODS`, or `YEARS_AHEAD` of a yearly account.
    """
    yearly, today = statement.account.renews is not None, now.date()
    left = {statement.year: statement.left}
    paid: list[Period] = []
    period = _next_period(spec, statement, now)
    while period is not None and len(paid) < MOST_PERIODS:
        year = max(_ready(spec, period), today).year if yearly else statement.year
        if year > today.year + YEARS_AHEAD:
            break
        left[year] = left.get(year, statement.total) - spec.epsilon
        if left[year] < 0:
            return paid, year
        paid.append(period)
        period = _following(spec, period)
    return paid, None


def _next_period(spec: ReleaseSpec, statement: Statement, now: datetime) -> Period | None:
    """The period after the last that was charged; else the first that the spec names, else the latest finished."""
    charged = [charge.period for charge in statement.charges if charge.release == spec.release]
    try:
        if charged:
            return _following(spec, spec.period_named(max(charged)))
        if spec.first_period:
            return spec.period_named(spec.first_period)
    except PeriodError:  # the spec was changed since, and cuts time otherwise
        pass
    return spec.latest_period(now)


def _following(spec: ReleaseSpec, period: Period) -> Period | None:
    """The period that starts when this one ends; None at the end of the calendar."""
    if period.end is None:
        return None
    try:
        return spec.period_named(period.end.date().isoformat())
    except PeriodError:
        return None


def _ready(spec: ReleaseSpec, period: Period) -> date:
    """From when on a period may be released."""
    if period.end is None:
        raise TypeError("a table without periods is always ready")
    return period.end.date() + timedelta(days=spec.release_delay_days)
