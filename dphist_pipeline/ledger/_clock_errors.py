"""Why nothing is charged by a clock that cannot be right: what it says, what speaks against it, and the way out."""

from __future__ import annotations

from dphist_pipeline.ledger.errors import ADOPT, LedgerError


class ClockBehind(LedgerError):
    message = (
        "The ledger at {where} has an entry of {year}, and this machine's clock says {now}. The year decides what an "
        "account has left, so nothing was charged. Set the clock right and run the same command again. Was it made "
        f"while a clock was wrong: {ADOPT}; what is dated ahead then counts in this year too, and releases go on."
    )


class ClockBeforeBuild(LedgerError):
    message = (
        "This machine's clock says {now}, and this version was built in {built}. The year decides what an account has "
        "left, so nothing was entered or charged. Set the clock right (timedatectl set-ntp true), then run the same "
        "command again."
    )


class ClockAhead(LedgerError):
    message = (
        "This machine's clock says {now}. The newest time that anything else attests, {by}, is {newest}: {days} days "
        "before, and this release may be charged {most} days after it. A clock that is ahead spends totals of years to "
        "come, and releases periods before their rows are there. Nothing was read or charged to the ledger at {where}. "
        "Set the clock right, or, if it is right, have an operator say so: dphist ledger allow --clock {now:.10} "
        "--reason TEXT. Then run the same command again."
    )
