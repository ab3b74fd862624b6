"""Finds published releases by name and period, and says which were withdrawn."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from dphist_pipeline.errors import Refused, did_you_mean, first_of
from dphist_pipeline.publishing.published_files import PublishedFolder, read_audit, revisions_by_period
from dphist_pipeline.spec.mistakes import PeriodError
from dphist_pipeline.spec.periods import PeriodRule

MOST_LISTED = 20


class NotPublished(Refused):
    """The store holds no such release or period."""

    def __init__(self, what: str, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        hint = did_you_mean(name, known) or "Nothing has been published yet; see `dphist release --help`."
        super().__init__(f"no {what} {name[:60]!r} is published in this store. {hint}")


def family_named(release: str, tables: Sequence[str], axes: Sequence[str] = ()) -> Refused:
    """A family of tables is named where one of its tables is needed, or for axes that no table of it has together."""
    tables = tuple(f"{release}_{table}" for table in tables)
    names = first_of(tables, MOST_LISTED)
    if axes:
        together = f"{' and '.join(axes)} together" if len(axes) > 1 else axes[0]
        text = f"no table of release '{release}' has {together}; its tables are {names}"
    else:
        text = f"release '{release}' is a family of tables; name one of them: {names}"
    return Refused(text, code="family_named")


def publication_withdrawn(audit: Mapping[str, Any], standing: Sequence[str] = ()) -> Refused:
    """The publication was withdrawn; `standing` lists the periods of its release that were not."""
    reason = str(audit["withdrawn"]["reason"])
    standing = tuple(standing)
    others = f" (these stand: {', '.join(standing[-MOST_LISTED:])})" if standing else ""
    return Refused(
        f"release '{audit['release']}', period {audit['period']}, revision {audit['revision']} was withdrawn on "
        f"{audit['withdrawn']['at'][:10]}: {reason}. It answers no question; name another period{others}, "
        "or publish a new revision.",
        code="publication_withdrawn",
    )


def audit_in_force(folder: Path) -> dict[str, Any]:
    """The audit of a published folder that was not withdrawn.

    Raises:
        PublishedFilesDamaged: a published file is missing or altered.
        Refused: the publication was withdrawn.
    """
    audit = read_audit(folder)
    if "withdrawn" in audit:
        raise publication_withdrawn(audit, _periods_not_withdrawn(PublishedFolder(folder.resolve()).release))
    return audit


def latest_revision(public: Path, release: str, period: str | None, family: bool = False) -> Path:
    """The folder of the latest revision of a period; of a table of a family, the table's own.

    The period may be a week as 2026-W10 if the release is weekly; None for the latest. `family`: one may be named.

    Raises:
        NotPublished: with the releases or periods that are published.
        Refused: a family is named, with its tables.
    """
    releases = [name for name in _names(public, "") if _periods(public / name)]
    tables = {f"{name}_{table}": (name, table) for name in releases for table in _tables(public / name)}
    if release in tables:
        whole, table = tables[release]
        return PublishedFolder(latest_revision(public, whole, period, family=True)).table(table)
    if not family and release in releases and _tables(public / release):
        raise family_named(release, _tables(public / release))
    if release not in releases:
        raise NotPublished("release", release, [*releases, *tables])
    periods = _periods(public / release)
    # The period `all` (a release without periods) sorts before all periods that have a day.
    day = period if period is not None else max(periods, key=lambda name: (name != "all", name))
    if day not in periods:
        day = first_day_of_week(public / release, day)
    if day not in periods:
        raise NotPublished(f"period of '{release}'", day, periods)
    return _latest(public / release, day)


def is_family(folder: Path) -> bool:
    """Whether a publication is a family of tables."""
    return PublishedFolder(folder).is_family


def tables_of(public: Path, release: str) -> list[str]:
    """The releases that a name stands for: the tables of a family in its latest period, else the name alone."""
    tables = _tables(public / release) if release in _names(public, "") and _periods(public / release) else []
    return [f"{release}_{table}" for table in tables] or [release]


def _latest(release: Path, period: str) -> Path:
    return release / f"period={period}/revision={revisions_by_period(release)[period][-1]}"


def _periods_not_withdrawn(release: Path) -> list[str]:
    """The periods whose latest revision is not withdrawn."""
    return [
        period
        for period in _periods(release)
        if "withdrawn" not in _read_audit_unchecked(release, period, {"withdrawn": {}})
    ]


def first_day_of_week(release: Path, named: str) -> str:
    """The first day of the published week with that number; the name itself if no such week is published."""
    with suppress(PeriodError, ValueError, TypeError, KeyError):
        day = PeriodRule("week", "sunday" if "-EW" in named else "monday", "UTC", 0).period_of(named).key
        if day in _periods(release):
            facts = _read_audit_unchecked(release, day, {})
            start, end = (datetime.fromisoformat(facts[name]).date() for name in ("period_start", "period_end"))
            return day if (end - start).days == 7 else named
    return named


def _read_audit_unchecked(release: Path, period: str, otherwise: Mapping[str, Any]) -> Mapping[str, Any]:
    """The audit of a period's latest revision, read without checks; `otherwise` if it cannot be read."""
    with suppress(OSError, ValueError):
        audit: Mapping[str, Any] = json.loads((_latest(release, period) / "audit.json").read_bytes())
        return audit
    return otherwise


def _periods(release: Path) -> list[str]:
    """The periods that have a revision; a run that is killed may leave the folder of a period empty."""
    return [*revisions_by_period(release)]


def _tables(release: Path) -> list[str]:
    """The tables of a family, in its latest period; none of a release that is none."""
    period, numbers = max(revisions_by_period(release).items())
    folder = PublishedFolder(release / f"period={period}/revision={numbers[-1]}")
    return _names(folder.table(""), "") if folder.is_family else []


def _names(folder: Path, prefix: str) -> list[str]:
    names = [path.name for path in folder.iterdir() if path.is_dir() and path.name.startswith(prefix)]
    return sorted(name.removeprefix(prefix) for name in names if not name.startswith("."))
