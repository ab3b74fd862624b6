"""How each release of a store cuts time, kept beside its specs: what is due can be told without a spec."""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from dphist_pipeline.canonical_json import canonical_json
from dphist_pipeline.files import make_folder, write_durably
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.spec.periods import PeriodRule

# Days between two times of a cron line at most, by which of its fields are not `*`: month, day of month, of week.
YEAR, MONTH, WEEK, DAY = 366, 31, 7, 1


@dataclass(frozen=True)
class Cadence:
    """When periods of a release can be released, and when somebody should wonder that one was not.

    Attributes:
        rule: how the release cuts time, with its delay.
        slack_days: that a period may be due: `freshness` of the spec, or the time between two ticks of its schedule.
    """

    rule: PeriodRule
    slack_days: int


def cadence_of(spec: ReleaseSpec) -> Cadence:
    """The cadence that a spec declares."""
    return Cadence(spec.period_rule, spec.freshness if spec.freshness is not None else _between_ticks(spec.schedule))


def _between_ticks(schedule: str | None) -> int:
    """At most so many days lie between two ticks; a release without a schedule is given a week."""
    if schedule is None:
        return WEEK
    _, _, day_of_month, month, day_of_week = schedule.split()
    if month != "*":
        return YEAR
    return MONTH if day_of_month != "*" else WEEK if day_of_week != "*" else DAY


def keep_cadence(store: Store, spec: ReleaseSpec) -> None:
    """Keeps the cadence of a release that is charged; the same again changes nothing."""
    path, written = _place(store, spec.release), canonical_json(asdict(cadence_of(spec))).encode("ascii")
    with suppress(OSError):
        if path.read_bytes() == written:
            return
    make_folder(path.parent)
    draft = path.with_name(f".{uuid.uuid4().hex}")
    write_durably(draft, written)
    draft.replace(path)


def kept_cadence(store: Store, release: str) -> Cadence | None:
    """The cadence of a release as it was last charged; None where no charge by this version kept it.

    Args:
        release: its name, as the ledger has it.
    """
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept = json.loads(_place(store, release).read_bytes())
        return Cadence(PeriodRule(**kept["rule"]), kept["slack_days"])
    return None


def _place(store: Store, release: str) -> Path:
    return store.root / "specs" / "periods" / f"{release}.json"
