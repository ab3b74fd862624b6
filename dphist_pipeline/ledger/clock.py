"""When the clock that charges are dated by cannot be right: its year decides what a yearly account has left.

It is not before the year in which this version was built, and not far ahead of all else that tells the time: the
ledger's charges, among which are all that the witness holds, what an operator said, and files of this machine's own.
Files of records tell nothing here: when one was written may depend on who is in it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from dphist_pipeline.ledger import errors

BUILT = 2026  # a test of the architecture compares it with the changelog
IDLE = timedelta(days=92)  # that a store may be charged later than its schedule has it, with no newer file here
LONGEST_PERIOD = 366  # days; taken for releases without periods, which may be made once a year
_WRITTEN = "%Y-%m-%dT%H:%M:%SZ"
# Written when the network set the clock, or when an administrator changed what is installed; never by a release.
_OF_THIS_MACHINE = (
    "/run/systemd/timesync/synchronized",
    "/var/lib/chrony/chrony.drift",
    "/var/lib/chrony/drift",
    "/var/lib/ntp/ntp.drift",
    "/var/lib/ntp/drift",
    "/var/lib/ntpsec/ntp.drift",
    "/var/lib/dpkg/status",
    "/var/lib/rpm/rpmdb.sqlite",
    "/usr/lib/sysimage/rpm/rpmdb.sqlite",
    "/lib/apk/db/installed",
    "/usr/lib/os-release",
    sys.executable or os.__file__,
    os.__file__,
    __file__,
)


def refuse_before_build(now: str) -> None:
    """Refuses a clock ('2026-11-02T06:00:00Z') that shows a year before that of this version."""
    if int(now[:4]) < BUILT:
        raise errors.LedgerError("clock_before_build", now=now, built=BUILT)


def refuse_behind(where: str, now: str, year: int) -> None:
    """Refuses to charge where the ledger is in a later year than the clock: an entry of it would renew accounts.

    The clock may be a day behind that year, for two machines' clocks on 31 December.
    """
    if year > (_moment(now) + timedelta(days=1)).year:
        raise errors.LedgerError("clock_behind", where=where, year=year, now=now)


def refuse_far_ahead(where: str, now: str, attested: str, days: int | None) -> None:
    """Refuses to charge long after `attested`, the newest time by the ledger that anything but this clock attests.

    `days`: length of the period that is released; None without periods.
    """
    machine_clock = machine_time()
    newest, most = max(attested, machine_clock), IDLE + timedelta(days=days or LONGEST_PERIOD)
    distance = _moment(now) - _moment(newest)
    if distance > most:
        by = "a file of this machine's system" if newest == machine_clock else "the ledger"
        raise errors.LedgerError(
            "clock_ahead", where=where, now=now, newest=newest, by=by, days=distance.days, most=most.days
        )


def machine_time() -> str:
    """The newest time at which the network set this machine's clock, or software was installed here."""
    newest = 0.0
    for place in _OF_THIS_MACHINE:
        with suppress(OSError):
            newest = max(newest, Path(place).stat().st_mtime)
    return datetime.fromtimestamp(min(newest, _moment("9999-12-31T00:00:00Z").timestamp()), UTC).strftime(_WRITTEN)


def is_day_of(day: str, now: str) -> bool:
    """Whether a day as people write it ('2026-11-02') is that of a clock in UTC, in any time zone."""
    with suppress(ValueError):
        return abs(date.fromisoformat(day) - _moment(now).date()) <= timedelta(days=1)
    return False


def _moment(text: str) -> datetime:
    return datetime.strptime(text, _WRITTEN).replace(tzinfo=UTC)
