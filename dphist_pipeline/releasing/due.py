"""What is due of a release: periods that finished, and that are neither charged for nor waived.

How each release of a store cuts time is kept beside its specs, so that what is due can be told without a spec.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Self

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.base.files import make_folder, write_durably
from dphist_pipeline.ledger.books import OPEN_STATES
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.entries import Charge
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.releasing.store import Key, Store
from dphist_pipeline.spec.mistakes import PeriodError
from dphist_pipeline.spec.periods import Period, PeriodRule

if TYPE_CHECKING:
    from dphist_pipeline.releasing.release_spec import ReleaseSpec

FARTHEST_BACK = 10_000
LATER = "+"  # behind a waived period: all later ones, too
# Days between two times of a cron line at most, by which of its fields are not `*`: month, day of month, of week.
YEAR, MONTH, WEEK, DAY = 366, 31, 7, 1


@dataclass(frozen=True)
class Cadence:
    """When periods of a release can be released, and when somebody should wonder that one was not.

    `slack_days`: that a period may be due: `freshness` of the spec, or the time between two ticks of its schedule.
    """

    rule: PeriodRule
    slack_days: int

    @classmethod
    def of(cls, spec: ReleaseSpec) -> Self:
        """The cadence that a spec declares."""
        return cls(spec.period_rule, spec.freshness if spec.freshness is not None else _between_ticks(spec.schedule))

    @classmethod
    def last_charged(cls, store: Store, release: str) -> Self | None:
        """The cadence of a release as it was last charged; None where no charge by this version kept it."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            fields = json.loads(store.cadence(release).read_bytes())
            return cls(PeriodRule(**fields["rule"]), fields["slack_days"])
        return None

    def keep(self, store: Store, release: str) -> None:
        """Keeps the cadence of a release that is charged; the same again changes nothing."""
        path, content = store.cadence(release), canonical_json(asdict(self)).encode("ascii")
        with suppress(OSError):
            if path.read_bytes() == content:
                return
        make_folder(path.parent)
        draft = path.with_name(f".{uuid.uuid4().hex}")
        write_durably(draft, content)
        draft.replace(path)


def _between_ticks(schedule: str | None) -> int:
    """At most so many days lie between two ticks; a release without a schedule is given a week."""
    if schedule is None:
        return WEEK
    _, _, day_of_month, month, day_of_week = schedule.split()
    if month != "*":
        return YEAR
    return MONTH if day_of_month != "*" else WEEK if day_of_week != "*" else DAY


@dataclass(frozen=True)
class Due:
    """The periods of a release that somebody should look at, each by its key, in order.

    Attributes:
        missing: finished, after the first charged one, and neither charged nor waived.
        unfinished: charged and not published; running one again finishes it at no cost.
        left_out: as `missing`, but from the time before an upgrade, whose schedules did not ask for them: to charge
            them is a decision, by command.
    """

    missing: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    ready: Mapping[str, date] = field(default_factory=dict)

    def overdue(self, today: date, slack_days: int) -> dict[str, date]:
        """The periods to run that have been due for longer than the slack, each with the day from which it was due."""
        return {key: day for key in self.keys if (day := self.ready.get(key, today)) + timedelta(slack_days) < today}

    @property
    def keys(self) -> list[str]:
        """The periods to run, in order."""
        return sorted({*self.missing, *self.unfinished})

    @classmethod
    def of(cls, release: str, rule: PeriodRule, store: Store, ledger: Ledger, now: datetime) -> Self:
        """The due periods of a release that was charged before; none of one that never was.

        Rejected and withdrawn periods are charged, so they are never due; nor are those that wait for a person. The
        first charged period is the one that the ledger charged first: history that is released later makes nothing
        else due.
        """
        charges = charges_of(ledger, release)
        if not charges or rule.length == "none":
            return cls()
        charged = {charge.period for charge, _ in charges}
        # Charges by version 0.2 name no folder; its schedules left out what lay before the last charged period.
        before_upgrade = max((charge.period for charge, _ in charges if charge.folder is None), default="")
        first = charges[0][0].period
        waived = waived_periods(ledger, release)
        periods = [
            period for period in _back_to(rule, first, now) if period.key not in charged and period.key not in waived
        ]
        ready = {period.key: _ready(rule, period) for period in periods}
        keys = tuple(sorted(key for key in ready if key > before_upgrade))
        by_itself = [(charge, state) for charge, state in charges if not store.is_marked_for_approval(charge)]
        unfinished = _unfinished_periods(store, by_itself, ("unpublished",))
        left_out = tuple(sorted(set(ready) - set(keys)))
        for key in unfinished:
            with suppress(PeriodError):  # its spec cut time in another way
                ready[key] = _ready(rule, rule.period_of(key))
        return cls(keys, tuple(unfinished), left_out, ready)

    @classmethod
    def of_spec(cls, spec: ReleaseSpec, store: Store, ledger: Ledger, now: datetime) -> Self:
        """The periods that `dphist release --all-due` releases: finished ones, by the spec and the clock alone.

        Those from `first_period` on that are neither charged nor waived, and those that are charged and unpublished,
        also where a person must approve first. Without a `first_period` they begin after the first charged one; before
        the first charge the latest is due.
        """
        charges = charges_of(ledger, spec.release)
        if spec.period == "none":
            return cls(() if charges else (spec.latest_period(now).key,), tuple(_unfinished_periods(store, charges)))
        due = cls.of(spec.release, spec.period_rule, store, ledger, now)
        unfinished = _unfinished_periods(store, charges)
        if spec.first_period is None and charges:
            return cls(due.missing, tuple(unfinished))
        first = spec.first_period or spec.latest_period(now).key
        charged, waived = {charge.period for charge, _ in charges}, waived_periods(ledger, spec.release)
        keys = [period.key for period in _back_to(spec.period_rule, first, now)]
        missing = tuple(sorted(key for key in keys if key not in charged and key not in waived))
        return cls(missing, tuple(key for key in unfinished if first <= key))

    @classmethod
    def to_run(cls, spec: ReleaseSpec, store: Store, ledger: Ledger, now: datetime, first: str) -> list[str]:
        """The keys of periods that a scheduler should run now, in order; before the first charge the latest one alone.

        No period before `first` is due.
        """
        if not charges_of(ledger, spec.release):
            latest = spec.latest_period(now).key
            return [latest] if latest >= first and latest not in waived_periods(ledger, spec.release) else []
        return [key for key in cls.of(spec.release, spec.period_rule, store, ledger, now).keys if first <= key]


def charges_of(ledger: Ledger, release: str) -> list[tuple[Charge, str]]:
    """Every charge of a release, whatever account paid, in the order of the ledger, with what became of it."""
    books = ledger.books()
    return [(charge, books.state(charge)) for charge in books.every_charge() if charge.release == release]


@dataclass(frozen=True)
class Waived:
    """The periods of a release of which an operator said that they never come, by key.

    `ended`: the first period of a release that has ended; empty for one that goes on.
    """

    periods: frozenset[str]
    ended: str = ""

    def __contains__(self, period: str) -> bool:
        return period in self.periods or bool(self.ended and self.ended <= period)


def waived_periods(ledger: Ledger, release: str) -> Waived:
    """The periods of a release of which an operator said that they never come."""
    waivers = (decision.name.partition("/") for decision in ledger.decisions(EVERYWHERE) if decision.kind == "waiver")
    periods = {period for name, _, period in waivers if name == release}
    ended = min((period.removesuffix(LATER) for period in periods if period.endswith(LATER)), default="")
    return Waived(frozenset(periods), ended)


def unpublished_charges(ledger: Ledger, release: str) -> list[Charge]:
    """The charges of a release that are neither published nor rejected, by period and revision."""
    waiting = [charge for charge, state in charges_of(ledger, release) if state in OPEN_STATES]
    return sorted(waiting, key=attrgetter("period", "revision"))


def _back_to(rule: PeriodRule, first: str, now: datetime) -> Iterator[Period]:
    """The finished periods from the first one on, from the latest backwards."""
    period = rule.latest(now)
    for _ in range(FARTHEST_BACK):
        if period.key < first:
            return
        yield period
        period = rule.before(period)


def _unfinished_periods(
    store: Store, charges: Sequence[tuple[Charge, str]], states: Sequence[str] = OPEN_STATES
) -> list[str]:
    """The periods of a release that are charged and not published anywhere; its charges are in order."""
    here, last = store.own_folder().id, {charge.period: charge.number for charge, _ in charges}
    periods = {charge.period for charge, state in charges if state in states}
    # The ledger says it right before the files appear: a run was killed between them, or the files were set aside.
    periods |= {
        charge.period
        for charge, state in charges
        if state == "published" and charge.number == last[charge.period]
        if charge.folder is not None and charge.folder.id == here
        if not store.published(Key(charge.release, charge.period, charge.revision)).exists()
    }
    return sorted(periods)


def _ready(rule: PeriodRule, period: Period) -> date:
    assert period.end is not None
    return period.end.date() + timedelta(days=rule.delay_days)
