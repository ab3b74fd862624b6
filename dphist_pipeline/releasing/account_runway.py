"""How many more releases of a spec its account can pay for, computed from the ledger."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Self

from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.mistakes import PeriodError
from dphist_pipeline.spec.periods import Period

MOST_PERIODS = 10_000
YEARS_AHEAD = 12


@dataclass(frozen=True)
class AccountRunway:
    """How long an account lasts if nothing else is charged to it; None where something is not known, or not there.

    `says`: all facts in words, or why they are not known. `known`: the store has such an account, and the spec may use
    it. `left`: rest of the total (or of this year's), in words. `releases`: how many the rest pays for, None if it
    never ends. `last`: key of the last period that can be paid; `until`: the day, in ISO, on which that period is due.
    """

    MOST_IN_A_YEAR: ClassVar = {"week": 53, "month": 12, "quarter": 4, "year": 1}  # releases, by length of period

    account: str
    says: str
    known: bool = True
    left: str | None = None
    releases: int | None = None
    last: str | None = None
    until: str | None = None

    @staticmethod
    def statement(spec: ReleaseSpec, store: Store | Path | None) -> Statement | str:
        """The statement of a spec's account; if a release could not use the account, the reason. Charges nothing."""
        try:
            statement = Statement.of(Store.open_named(store).ledger(), spec.account)
        except DphistError as error:
            return str(error)
        protected = (statement.account.privacy_unit, statement.account.neighbours)
        if protected != (spec.privacy_unit, spec.neighbours):
            return f"protects {protected[0]} ({protected[1]}), so a release by this spec would be refused"
        return statement

    @classmethod
    def of(cls, spec: ReleaseSpec, store: Path | None, now: datetime | None = None) -> Self:
        """How many more releases the account of a spec pays for. Reads the ledger, and charges nothing."""
        statement = cls.statement(spec, store)
        if isinstance(statement, str):
            return cls(spec.account, f"cannot be used: {statement}", known=False)
        return cls.by_statement(spec, statement, now or datetime.now(UTC))

    @classmethod
    def by_statement(cls, spec: ReleaseSpec, statement: Statement, now: datetime) -> Self:
        """How many more releases of a spec its account pays for, by its statement, counted from `now`, aware."""
        if statement.account.is_individual:
            most = cls.MOST_IN_A_YEAR.get(spec.period, 1)
            says = statement.counts_at_most(spec.epsilon, spec.max_rows_per_unit, spec.period, most)
            return cls(spec.account, says)
        yearly, rest = statement.account.renews is not None, statement.rest
        others = _other_releases(spec, statement)
        if spec.period == "none":
            once = int(statement.left / spec.epsilon)
            says = f"{rest}: {_more_releases(once)} of the whole table, each at the full price{others}"
            return cls(spec.account, says, left=rest, releases=once)
        paid, used_up = _paid_periods(spec, statement, now)
        if used_up is None and spec.last_period:
            return cls(spec.account, f"{rest}: {_pays_for_rest(spec, len(paid))}{others}", left=rest)
        if used_up is None:
            most = cls.MOST_IN_A_YEAR[spec.period]
            takes = f"{most} releases a year take at most {as_text(most * spec.epsilon)} of {as_text(statement.total)}"
            lasts = f"lasts for good, {takes}" if yearly else "lasts for centuries"
            return cls(spec.account, f"{rest}: {lasts}{others}", left=rest)
        again = f"; then used up until 1 January {used_up + 1}" if yearly else ""
        if not paid:
            return cls(spec.account, f"{rest}: not enough for one release{again}", left=rest, releases=0)
        last, until = paid[-1].key, _due_day(spec, paid[-1]).isoformat()
        which = (
            f"of the {spec.period} {last}, due on {until}"
            if len(paid) == 1
            else f"of the {spec.period}s {paid[0].key} to {last}, the last due on {until}"
        )
        says = f"{rest}: {_more_releases(len(paid))}, {which}{again}{others}{_first_day(spec, statement)}"
        return cls(spec.account, says, left=rest, releases=len(paid), last=last, until=until)


def _more_releases(releases: int) -> str:
    return "1 more release" if releases == 1 else f"{releases:,} more releases"


def _pays_for_rest(spec: ReleaseSpec, periods: int) -> str:
    """A sentence: the account pays for all periods of a release that ends."""
    if not periods:
        return f"no {spec.period} is left up to {spec.last_period}, the last of the spec"
    those = f"the one {spec.period} that is" if periods == 1 else f"the {periods:,} {spec.period}s that are"
    return f"enough for {those} left up to {spec.last_period}, the last of the spec"


def _first_day(spec: ReleaseSpec, statement: Statement) -> str:
    """The day from which runs are counted, if neither a charge nor the spec says it."""
    if _first_of_spec(spec) is not None or _charged_periods(spec, statement):
        return ""
    return f"; counted from the last {spec.period} that is finished today, since the spec has no `first_period`"


def _charged_periods(spec: ReleaseSpec, statement: Statement) -> list[Period]:
    """The charged periods of the release, as far as the spec has them: it may have changed since."""
    periods = []
    for key in {charge.period for charge in statement.charges if charge.release == spec.release}:
        with suppress(PeriodError):
            periods.append(spec.period_named(key))
    return sorted(periods, key=lambda period: period.key)


def _other_releases(spec: ReleaseSpec, statement: Statement) -> str:
    """The other releases that spend from the account; without any, the assumption that there are none."""
    others = sorted({charge.release for charge in statement.charges} - {spec.release})
    if not others:
        return ", if nothing else is charged to it"
    names = ", ".join(others[:3]) + (" and others" if len(others) > 3 else "")
    return f"; but it also pays for {names}, whose future charges are not included here"


def _paid_periods(spec: ReleaseSpec, statement: Statement, now: datetime) -> tuple[list[Period], int | None]:
    """The next periods that the account can pay for, and the year of the first period that it cannot pay for.

    They begin after the last charged one; without charges at the first of the spec, else at the latest finished one.

    The year is None if that does not happen within `MOST_PERIODS` periods, or `YEARS_AHEAD` of a yearly account.
    """
    yearly, today = statement.account.renews is not None, now.date()
    rests = {statement.year: statement.left}
    paid: list[Period] = []
    charged = _charged_periods(spec, statement)
    period = _period_after(spec, charged[-1]) if charged else _first_of_spec(spec) or spec.latest_period(now)
    while period is not None and len(paid) < MOST_PERIODS:
        year = max(_due_day(spec, period), today).year if yearly else statement.year
        if year > today.year + YEARS_AHEAD:
            break
        rests[year] = rests.get(year, statement.total) - spec.epsilon
        if rests[year] < 0:
            return paid, year
        paid.append(period)
        period = _period_after(spec, period)
    return paid, None


def _first_of_spec(spec: ReleaseSpec) -> Period | None:
    """The period that `first_period` names; None where it names none, such as a day within a week."""
    with suppress(PeriodError):
        return spec.period_named(spec.first_period) if spec.first_period else None
    return None


def _period_after(spec: ReleaseSpec, period: Period) -> Period | None:
    """The period that starts when this one ends; None at the end of the release or of the calendar."""
    if period.end is None or (spec.last_period and period.end.date().isoformat() > spec.last_period):
        return None
    try:
        return spec.period_named(period.end.date().isoformat())
    except PeriodError:
        return None


def _due_day(spec: ReleaseSpec, period: Period) -> date:
    """The first day on which a period may be released."""
    if period.end is None:
        raise TypeError("a table without periods is always ready")
    return period.end.date() + timedelta(days=spec.release_delay_days)
