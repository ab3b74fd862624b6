"""Which periods of a release a scheduler should run now: the finished ones that nothing was charged for yet."""

from __future__ import annotations

from datetime import datetime

from dphist_pipeline.ledger.ledger import Ledger, UnknownAccount
from dphist_pipeline.publishing.statements import statement_of
from dphist_pipeline.spec.model import ReleaseSpec

MOST_AT_ONCE = 200


def due_periods(spec: ReleaseSpec, ledger: Ledger, now: datetime, first: str) -> list[str]:
    """The keys of periods to run, in order: after a stop of any length, each missed one.

    These are the latest finished period and those between it and the last charged one. A period that was charged and
    not published is finished, for nothing. A period before the last charged one that was left out stays left out:
    catching up on history is a decision of its own.

    Args:
        spec: checked; with periods.
        ledger: of the store.
        now: the present.
        first: no earlier period is due.
    """
    try:
        statement = statement_of(ledger, spec.account)
    except UnknownAccount:  # the run will say so, and how to open it
        return [key] if (key := spec.latest_period(now).key) >= first else []
    ours = [charge for charge in statement.charges if charge.release == spec.release]
    unfinished = {charge.period for charge in ours if statement.states[charge.number] == "unpublished"}
    last = max((charge.period for charge in ours), default="")
    missed: list[str] = []
    period = spec.latest_period(now)
    latest = period.key
    while first <= period.key and last < period.key and len(missed) < MOST_AT_ONCE:
        missed.append(period.key)
        if not last:
            break
        period = spec.period_before(period)
    return sorted({*missed, *(key for key in unfinished if first <= key <= latest)})
