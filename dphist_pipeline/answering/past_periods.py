"""A publication compared with the published past of its release: which periods those are, and what rings, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from dphist_pipeline.answering._period_sums import PeriodSums, sums_of_estimate, sums_of_publication
from dphist_pipeline.answering._sudden_changes import LAST, Season, changes_in_words, ringing, sudden_changes
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.estimate import AnyEstimate
from dphist_pipeline.publishing.published_files import read_audit

DAYS_OF_YEAR = 365.25
WEEKS_OF_YEAR = timedelta(days=364)  # the same day of the week
NEAR_WEEKS = 2  # a feast may fall so many weeks earlier or later
SAME_COUNTS = ("privacy_unit", "max_rows_per_unit", "take", "unit_columns", "query")  # else other things were counted


@dataclass(frozen=True)
class PeriodComparison:
    """The result of comparing a publication with its past.

    `periods`: with which it was compared, the latest first; empty where it has no published past. `changes`: each sum
    that rings: axis (empty for the total), value, before, now; in records. `says`: what rings, in one sentence, if
    anything does. `hint`: the same without numbers, for a period that is not published.
    """

    periods: tuple[str, ...] = ()
    changes: tuple[Mapping[str, Any], ...] = ()
    says: str = ""
    hint: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        return {"periods": list(self.periods), "changes": list(map(dict, self.changes)), "says": self.says}

    @classmethod
    def of_audit(cls, audit: Mapping[str, Any]) -> PeriodComparison:
        """The comparison as it was made when a period was published, which its audit holds; empty in old audits."""
        facts = audit.get("compared") or {}
        return cls(tuple(facts.get("periods", ())), tuple(facts.get("changes", ())), str(facts.get("says") or ""))

    @classmethod
    def of_estimate(cls, public: Path, facts: Mapping[str, Any], estimate: AnyEstimate) -> PeriodComparison:
        """Compares what will be published with the latest revisions of earlier periods; reads published files alone."""
        ends = [facts.get(name) for name in ("period_start", "period_end")]
        if not all(ends):
            return cls()
        start, end = (date.fromisoformat(str(moment)[:10]) for moment in ends)
        past = _Past(public / str(facts["release"]), facts)
        last = past.before(start)
        if not last:
            return cls()
        now, before, a_year = sums_of_estimate(estimate), [one for _, one in last], DAYS_OF_YEAR / (end - start).days
        changes, seasons = sudden_changes(now, before, [], a_year), list[tuple[date, Season]]()
        if any(axis.rings.any() for axis in changes):  # last year is read only where it may explain something
            seasons = list(_seasons(past, start, end))
            changes = sudden_changes(now, before, [season for _, season in seasons], a_year)
        periods = [day for day, _ in last] + [day for day, _ in seasons]
        days, said = tuple(day.isoformat() for day in periods), changes_in_words(changes)
        return cls(days, tuple(ringing(changes)), said, changes_in_words(changes, numbers=False))


class _Past:
    """The published periods of a release whose counts may be compared, each read once."""

    def __init__(self, release: Path, audit: Mapping[str, Any]) -> None:
        self._audit = {name: audit.get(name) for name in SAME_COUNTS}
        self._folders = dict(sorted(_folders_by_day(release)))
        self._known: dict[date, PeriodSums] = {}

    def before(self, start: date) -> list[tuple[date, PeriodSums]]:
        """The last periods that begin before a day, the latest first."""
        periods: list[tuple[date, PeriodSums]] = []
        for day in reversed([day for day in self._folders if day < start]):
            if len(periods) == LAST:
                break
            if sums := self._sums(day):
                periods.append((day, sums))
        return periods

    def near(self, day: date, most: timedelta) -> Iterator[tuple[date, PeriodSums]]:
        """The periods that begin near a day."""
        for one in self._folders:
            if abs(one - day) <= most and (sums := self._sums(one)):
                yield one, sums

    def _sums(self, day: date) -> PeriodSums:
        """The sums of the latest revision of a period that stands; none if all were withdrawn, or it is damaged."""
        if day not in self._known:
            self._known[day] = {}
            for folder in _revisions(self._folders[day]):
                with suppress(DphistError, OSError, ValueError):  # others are read all the same
                    audit = read_audit(folder)
                    if "withdrawn" not in audit:
                        same = all(audit.get(name) == fact for name, fact in self._audit.items())
                        self._known[day] = sums_of_publication(folder, audit) if same else {}
                        break
        return self._known[day]


def _folders_by_day(release: Path) -> Iterator[tuple[date, Path]]:
    for folder in release.glob("period=*"):
        with suppress(ValueError):
            yield date.fromisoformat(folder.name.removeprefix("period=")), folder


def _revisions(period: Path) -> list[Path]:
    """The latest first; folders that were renamed are left out."""
    by_revision = {path.name.removeprefix("revision="): path for path in period.glob("revision=*")}
    return [by_revision[number] for number in sorted(filter(str.isdecimal, by_revision), key=int, reverse=True)]


def _seasons(past: _Past, start: date, end: date) -> Iterator[tuple[date, Season]]:
    """The periods at the same time of the last year; of weeks their neighbours, too."""
    length = end - start
    if length > timedelta(days=200):  # of a year there is no season
        return
    is_week = length <= timedelta(days=7)
    then = start - WEEKS_OF_YEAR if is_week else start.replace(year=start.year - 1)
    for day, same in past.near(then, length * NEAR_WEEKS if is_week else timedelta(days=3)):
        before: Sequence[PeriodSums] = [sums for _, sums in past.before(day)]
        if before:
            yield day, Season(same, before)
