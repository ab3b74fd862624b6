"""Which periods of a release are due: finished, and neither charged for nor waived."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.releasing._charges_of_release import charges_of, waived_periods
from dphist_pipeline.releasing.doubted import is_doubted
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.mistakes import PeriodError
from dphist_pipeline.spec.periods import Period, PeriodRule

FARTHEST_BACK = 10_000


@dataclass(frozen=True)
class Due:
    """The periods of a release that somebody should look at, each by its key, in order.

    Attributes:
        missing: finished, after the first charged one, and neither charged nor waived.
        unfinished: charged and not published; running one again finishes it at no cost.
        left_out: as `missing`, but from the time before an upgrade, whose schedules did not ask for them: to charge
            them is a decision, by command.
        ready: the day from which each period can be released.
    """

    missing: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    ready: Mapping[str, date] = field(default_factory=dict)

    def overdue(self, today: date, slack_days: int) -> dict[str, date]:
        """The periods to run that have been due for longer than that, each with the day from which it was due.

        Args:
            slack_days: that a period may be due without anybody wondering.
        """
        return {key: day for key in self.keys if (day := self.ready.get(key, today)) + timedelta(slack_days) < today}

    @property
    def keys(self) -> list[str]:
        """What to run, in order."""
        return sorted({*self.missing, *self.unfinished})


def due_of(release: str, rule: PeriodRule, store: Store, ledger: Ledger, now: datetime) -> Due:
    """What is due of a release that was charged before; nothing of one that never was.

    Rejected and withdrawn periods are charged, so they are never due; nor are those that wait for a person. The first
    charged period is the one that the ledger charged first: history that is released later makes nothing else due.

    Args:
        rule: how it cuts time, with its delay.
        now: the present, with its time zone.
    """
    charges = charges_of(ledger, release)
    if not charges or rule.length == "none":
        return Due()
    charged = {charge.period for charge, _ in charges}
    # Charges by version 0.2 and earlier name no folder; its schedules left out what lay before the last charged period.
    before_upgrade = max((charge.period for charge, _ in charges if charge.folder is None), default="")
    first = charges[0][0].period
    waived = waived_periods(ledger, release)
    late = [period for period in _back_to(rule, first, now) if period.key not in charged and period.key not in waived]
    ready = {period.key: _ready(rule, period) for period in late}
    asked = tuple(sorted(key for key in ready if key > before_upgrade))
    unfinished = sorted(
        {charge.period for charge, state in charges if state == "unpublished" and not is_doubted(store, charge)}
    )
    left_out = tuple(sorted(set(ready) - set(asked)))
    for key in unfinished:
        with suppress(PeriodError):  # its spec cut time in another way
            ready[key] = _ready(rule, rule.named(key))
    return Due(asked, tuple(unfinished), left_out, ready)


def due_periods(spec: ReleaseSpec, store: Store, ledger: Ledger, now: datetime, first: str) -> list[str]:
    """The keys of periods that a scheduler should run now, in order; before the first charge the latest one alone.

    Args:
        spec: checked; with periods.
        first: no earlier period is due.
    """
    if not charges_of(ledger, spec.release):
        latest = spec.latest_period(now).key
        return [latest] if latest >= first and latest not in waived_periods(ledger, spec.release) else []
    return [key for key in due_of(spec.release, spec.period_rule, store, ledger, now).keys if first <= key]


def _back_to(rule: PeriodRule, first: str, now: datetime) -> Iterator[Period]:
    """The finished periods after the first one, from the latest backwards."""
    period = rule.latest(now)
    for _ in range(FARTHEST_BACK):
        if period.key <= first:
            return
        yield period
        period = rule.before(period)


def _ready(rule: PeriodRule, period: Period) -> date:
    assert period.end is not None
    return period.end.date() + timedelta(days=rule.delay_days)
