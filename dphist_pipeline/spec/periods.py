"""Periods of a release: their names, their first and last moments, and when they may be released.

Periods are cut at local midnight. A period's key is its first day; its ends are instants, so a period with a
change of clocks inside is an hour shorter or longer and nothing is counted twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from difflib import get_close_matches
from typing import Literal, get_args
from zoneinfo import ZoneInfo, available_timezones

from dphist_pipeline.spec.mistakes import LONGEST_ECHO, PeriodError, echo

Length = Literal["week", "month", "quarter", "year", "none"]
WeekStart = Literal["monday", "sunday"]
# fmt: off
Month = Literal[
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
]
# fmt: on
MONTHS: tuple[Month, ...] = get_args(Month)

EVERYTHING = "all"
FIRST_YEAR, LAST_YEAR = 1000, 9000

_DAY = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_WEEK = re.compile(r"(\d{4})-(W|EW)(\d{2})", re.ASCII)
MONTHS_OF = {"month": 1, "quarter": 3, "year": 12}
_MACHINE_ZONES = ("localtime", "Factory", "posixrules", "posix/", "right/")


@dataclass(frozen=True)
class Period:
    """One half-open stretch of time between two local midnights, aware; its key is its first day as an ISO date.

    Without periods the key is `all`, and the ends are None.
    """

    key: str
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True)
class PeriodRule:
    """A rule that cuts time into the periods of a release.

    Attributes:
        week_starts: the first day of a week.
        delay_days: calendar days that must pass after a period's end.
        year_starts: the month, from 1, in which quarters and years are counted from.
        last_day: the ISO date of a day in the last period, after which nothing is due; None where a release goes on.
    """

    length: Length
    week_starts: WeekStart
    time_zone: str
    delay_days: int
    year_starts: int = 1
    last_day: str | None = None

    @property
    def end(self) -> datetime | None:
        """The local midnight at which the last period ends; None where a release goes on."""
        return self._from(self._first_day(date.fromisoformat(self.last_day))).end if self.last_day else None

    def period_of(self, key: object) -> Period:
        """The period with that key: its first day, its week, or `all`.

        A week is numbered as by ISO where it starts on Monday (2026-W10), as by epidemiologists where it starts on
        Sunday (2026-EW10, the rule of the CDC's weekly report).

        Raises:
            PeriodError: for any other text, and for a day inside a period, naming the period it lies in.
        """
        if self.length == "none":
            if key != EVERYTHING:
                raise PeriodError(key, f"this release has `period: none`, so its only period is {EVERYTHING!r}")
            return Period(EVERYTHING, None, None)
        if not isinstance(key, str):
            raise PeriodError(key, f"must be text, the first day of a {self.length} such as 2026-03-02")
        day = self._week_day(key) if _WEEK.fullmatch(key) else self._day(key)
        if not FIRST_YEAR <= day.year <= LAST_YEAR:
            raise PeriodError(key, f"lies outside the years {FIRST_YEAR} to {LAST_YEAR}")
        period = self._from(self._first_day(day))
        if _DAY.fullmatch(key) and period.key != key:
            raise PeriodError(key, f"is not the first day of a {self.length}; it lies in the one named {period.key}")
        return period

    def latest(self, now: datetime) -> Period:
        """The last period that ended at least `delay_days` ago; the last one of all for a release that ended.

        `now` is aware.

        Raises:
            PeriodError: where the clock is outside the years 1000 to 9000.
        """
        if self.length == "none":
            return Period(EVERYTHING, None, None)
        today = _instant(now).date()
        if not FIRST_YEAR + 200 <= today.year <= LAST_YEAR:
            raise PeriodError(today.isoformat(), "the clock cannot be right; set it, or name the period")
        last = date.fromisoformat(self.last_day) if self.last_day else date.max
        first = self._first_day(min(today - timedelta(days=self.delay_days), last))
        while not self._is_over(period := self._from(first), now):
            first = self._first_day(first - timedelta(days=1))
        return period

    def containing(self, day: date) -> Period:
        """The period that a day lies in; for a release without periods there is none."""
        return self._from(self._first_day(day))

    def before(self, period: Period) -> Period:
        """The period that ends when this one starts."""
        if period.start is None:
            raise TypeError("a release without periods has no period before")
        return self._from(self._first_day(period.start.date() - timedelta(days=1)))

    def following(self, period: Period) -> Period:
        """The period that starts when this one ends."""
        if period.end is None:
            raise TypeError("a release without periods has no period after")
        return self._from(period.end.date())

    def next_release(self, period: Period) -> date | None:
        """The day from which the period after one can be released; None without periods and after the last one."""
        if period.end is None or (self.end is not None and period.end >= self.end):
            return None
        return self._ready(self._from(period.end.date())).date()

    def refuse_unfinished(self, period: Period, now: datetime) -> None:
        """Refuses a period that is not over at an aware moment, or too recently.

        Raises:
            PeriodError: saying from when on it can be released.
        """
        if not self._is_over(period, now):
            ready = self._ready(period)
            waits = f" and {self.delay_days} days of `release_delay_days`" if self.delay_days else ""
            raise PeriodError(
                period.key,
                f"can be released from {ready:%Y-%m-%d} on ({self.time_zone}), after its end{waits}; wait until then",
            )

    def week_number(self, day: date) -> tuple[int, int]:
        """The year and number of the week that a day lies in; week 1 is the first with at least four days in its year.

        Weeks start on Monday, as by ISO, or on Sunday, as epidemiologists count them.
        """
        fourth = self._week_start(day) + timedelta(days=3)
        return fourth.year, (fourth.timetuple().tm_yday - 1) // 7 + 1

    def next_week(self, day: date) -> date:
        """The first day of the next week."""
        return self._week_start(day) + timedelta(days=7)

    def _is_over(self, period: Period, now: datetime) -> bool:
        return period.end is None or _instant(self._ready(period)) <= _instant(now)

    def _ready(self, period: Period) -> datetime:
        """Local midnight `delay_days` calendar days after the end."""
        if period.end is None:
            raise TypeError("a release without periods is always ready")
        return self._midnight(period.end.date() + timedelta(days=self.delay_days))

    def _from(self, first: date) -> Period:
        days = 7 if self.length == "week" else 31 * MONTHS_OF[self.length]
        following = self._first_day(first + timedelta(days=days))
        return Period(first.isoformat(), self._midnight(first), self._midnight(following))

    def _midnight(self, day: date) -> datetime:
        return datetime.combine(day, time(), tzinfo=ZoneInfo(self.time_zone))

    def _first_day(self, day: date) -> date:
        if self.length == "week":
            return self._week_start(day)
        months = MONTHS_OF[self.length]
        # Months are counted from year 0; those of a period, from the first month of the year as declared.
        month = 12 * day.year + day.month - 1
        first = month - (month - (self.year_starts - 1)) % months
        return date(first // 12, first % 12 + 1, 1)

    def _week_start(self, day: date) -> date:
        passed = day.weekday() if self.week_starts == "monday" else day.isoweekday() % 7
        return day - timedelta(days=passed)

    def _day(self, key: str) -> date:
        if not _DAY.fullmatch(key):
            weeks = f" or its week such as 2026-{self._week_sign()}10" if self.length == "week" else ""
            raise PeriodError(
                key, f"is not a period's name; give the first day of a {self.length}, as {self._example(key)}{weeks}"
            )
        try:
            return date.fromisoformat(key)
        except ValueError:
            problem = "is not a day of the calendar"
        raise PeriodError(key, problem)

    def _example(self, key: str) -> date:
        """A first day: that of the month which the key names, if it names one."""
        try:
            return self._first_day(date.fromisoformat(f"{key}-01"))
        except ValueError:
            return self._first_day(date(2026, 3, 2))

    def _week_day(self, key: str) -> date:
        """The first day of a numbered week; week 1 is the first that has at least four days in its year."""
        if self.length != "week" or f"-{self._week_sign()}" not in key:
            raise PeriodError(
                key,
                "weeks have ISO numbers (2026-W10) where they start on Monday, epidemiological ones (2026-EW10) where "
                f"they start on Sunday; give the first day of the {self.length} instead",
            )
        year, number = int(key[:4]), int(key[-2:])
        if number >= 1 and FIRST_YEAR <= year <= LAST_YEAR:
            first = self._first_day(date(year, 1, 4)) + timedelta(weeks=number - 1)
            if first < self._first_day(date(year + 1, 1, 4)):
                return first
        raise PeriodError(key, f"is not a week of the calendar: {year} has no week {number}")

    def _week_sign(self) -> str:
        return "W" if self.week_starts == "monday" else "EW"


def _instant(moment: datetime) -> datetime:
    """The same moment in UTC; Python compares two times of one zone by their wall clocks."""
    if moment.tzinfo is None:
        raise TypeError("a moment needs its time zone")
    return moment.astimezone(UTC)


def known_zone(zone: str) -> str:
    """An IANA time zone that means the same on every machine."""
    try:
        if not zone.startswith(_MACHINE_ZONES):
            ZoneInfo(zone)
            return zone
    except (KeyError, ValueError, OSError):
        pass
    near = get_close_matches(zone[:LONGEST_ECHO], sorted(available_timezones()), n=2, cutoff=0.6)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"there is no time zone {echo(zone)}; use a name such as UTC or Europe/Brussels.{hint}")
