"""What a check of `dphist doctor` found, and what all checks are given to look at."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import Literal

from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.releasing.store import Store

State = Literal["ok", "warning", "fault"]
NAMED = 3  # of many, in a message
STATES: tuple[State, ...] = ("ok", "warning", "fault")  # from good to bad


@dataclass(frozen=True)
class CheckResult:
    """What one check found: `seen` in one sentence, `mend` in one line, which is empty where nothing is wrong."""

    check: str
    state: State
    seen: str
    mend: str = ""


@dataclass(frozen=True)
class Examined:
    """What is looked at; store and ledger are None where they cannot be opened.

    `now` is by this machine's clock, in UTC. `refused`: why store, ledger or witness could not be opened, by the name
    of the check that tells it. `releases_only`: this user must release, and must not be able to decide.
    """

    root: Path
    now: datetime
    store: Store | None
    ledger: Ledger | None
    refused: dict[str, DphistError]
    releases_only: bool = False

    @property
    def confidential(self) -> Path:
        """The folder that nobody but the releasing user may read."""
        return self.root / "confidential"

    @property
    def releases_here(self) -> bool:
        """Whether this user is the one who releases: the confidential folder is theirs."""
        try:
            return self.confidential.stat().st_uid == os.geteuid()
        except OSError:
            return False


def ok(check: str, seen: str) -> CheckResult:
    """Nothing is wrong; scripts rely on the name of the check. What was seen is one sentence."""
    return CheckResult(check, "ok", seen)


def warning(check: str, seen: str, mend: str) -> CheckResult:
    """Releases run, and somebody should look at it; `mend` is a line: what to do, or the command to type."""
    return CheckResult(check, "warning", seen, mend)


def fault(check: str, seen: str, mend: str) -> CheckResult:
    """Releases do not run, or somebody can read or change what they must not; otherwise as `warning`."""
    return CheckResult(check, "fault", seen, mend)


def finding_of(check: str, error: DphistError) -> CheckResult:
    """A refusal as a finding: its first sentence says what is wrong, the others how to mend it."""
    first, _, rest = " ".join(str(error).split()).partition(". ")
    return fault(check, first.removesuffix("."), rest or "Mend that, then run `dphist doctor` again.")


def not_looked_at(check: str, reason: str) -> CheckResult:
    """A check that needs something that another check found wrong: `reason`, without a full stop."""
    return warning(check, f"not looked at: {reason}", "Mend the other findings first.")


def worst(findings: Iterable[CheckResult]) -> State:
    """The worst state of all findings; `ok` without any."""
    return max((finding.state for finding in findings), key=STATES.index, default="ok")


def first_names(names: Sequence[object]) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return "; ".join(map(str, names[:NAMED])) + more


def name_of(uid: int) -> str:
    """A user's name on this machine, or number where there is no name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def shell_word(path: Path) -> str:
    """A path as a shell takes it."""
    return quote(str(path))
