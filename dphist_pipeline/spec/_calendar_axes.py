"""Axes of dates as a spec writes them: local days, weeks, months, quarters or years."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from functools import cached_property
from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from dphist_pipeline.base.domain import Axis, CalendarAxis, number_of_day
from dphist_pipeline.spec._binned_axes import LABEL, NamedAxis
from dphist_pipeline.spec.mistakes import MistakesError, echo
from dphist_pipeline.spec.periods import FIRST_YEAR, LAST_YEAR, MONTHS_OF
from dphist_pipeline.spec.sources import ISO, TextFormat

WEEK_STARTS = (0, 6)  # Monday and Sunday, as `date.weekday` counts

_DAYS = {"day": 1, "week": 7}


def day_of(value: object) -> date:
    """A day of the calendar from its ISO date, text such as "2026-01-05".

    Raises:
        ValueError: for anything else, and for years before 1000 or after 9000.
    """
    try:
        day = date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        day = None
    if day is None or value != day.isoformat():
        raise ValueError(f'must be a day of the calendar such as "2026-01-05", not {echo(value)}')
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise ValueError(f"lies outside the years {FIRST_YEAR} to {LAST_YEAR}")
    return day


def day_not_before(first: str | None, value: object) -> str:
    """The ISO date of a day that does not lie before the first period of a release; `first` is None without one.

    Raises:
        ValueError: for another text, and for an earlier day.
    """
    day = day_of(value).isoformat()
    if first is not None and day < first:
        raise ValueError("lies before `first_period`")
    return day


Day = Annotated[date, BeforeValidator(day_of)]


class CalendarAxisSpec(NamedAxis):
    """Bins of local days in the spec's time zone, from `start` up to but without `stop`; `format` is that of text."""

    said_by: ClassVar[tuple[str, ...]] = ("calendar",)

    calendar: Literal["day", "week", "month", "quarter", "year"]
    start: Day = Field(description="the first day, such as 2026-01-05")
    stop: Day = Field(description="the day after the last, such as 2027-01-04")
    format: TextFormat | None = None

    @model_validator(mode="after")
    def _whole_units(self) -> Self:
        if self.calendar == "week" and self.start.weekday() not in WEEK_STARTS:
            day = f"{self.start} is a {self.start:%A}"
            self._refuse("start", f"{day}: weeks start on a Monday, or on a Sunday as epidemiological weeks do")
        if self.calendar in MONTHS_OF and self.start.day != 1:
            self._refuse("start", f"{self.start} is not the first day of a month; a {self.calendar} starts on one")
        if self.stop <= self.start:
            last = f"it is the day after the last {self.calendar}"
            self._refuse("stop", f"{self.stop} must lie after start {self.start}; {last}")
        *_, before, first = self._first_days()
        if first != self.stop:
            units = f"it is the day after the last {self.calendar}, such as {before} or {first}"
            self._refuse("stop", f"{self.stop} cuts a {self.calendar}; {units}")
        return self

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return len(self._edges) - 1 + self.other

    @cached_property
    def axis(self) -> Axis:
        """The axis, its edges as numbers of days since 1970-01-01."""
        return CalendarAxis(
            self.name, self.column, self._edges, other=self.other, format=None if self.format == ISO else self.format
        )

    def as_json(self) -> dict[str, object]:
        """All fields as JSON values, defaults filled in; no format where it is `iso`, the default."""
        said = {LABEL, "format"} if self.format == ISO else {LABEL}
        return self.model_dump(mode="json", exclude_none=True, exclude=said)

    @cached_property
    def _edges(self) -> tuple[float, ...]:
        return tuple(float(number_of_day(first)) for first in self._first_days())

    def _first_days(self) -> Iterator[date]:
        """The first day of every unit, from `start` to the first one that is not before `stop`."""
        first, passed = self.start, 0
        yield first
        while first < self.stop:
            passed += 1
            if self.calendar in _DAYS:
                first = self.start + timedelta(days=passed * _DAYS[self.calendar])
            else:
                months = self.start.month - 1 + passed * MONTHS_OF[self.calendar]
                first = date(self.start.year + months // 12, months % 12 + 1, 1)
            yield first

    def _refuse(self, field: str, problem: str) -> None:
        raise MistakesError([((field,), problem)])
