"""Axes of dates as a spec writes them: local days, weeks, months, quarters or years."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from functools import cached_property
from typing import Annotated, Literal

from pydantic import PlainValidator, ValidationInfo

from dphist_pipeline.domain import Axis, CalendarAxis, number_of_day
from dphist_pipeline.spec.axis_names import NamedAxis
from dphist_pipeline.spec.fields import one_of
from dphist_pipeline.spec.refusals import shown
from dphist_pipeline.spec.sources import date_format

Unit = Literal["day", "week", "month", "quarter", "year"]
FIRST_YEAR, LAST_YEAR = 1000, 9000
WEEK_STARTS = (0, 6)  # Monday and Sunday, as `date.weekday` counts

_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}


def _day(value: object) -> date:
    if not isinstance(value, str):
        raise ValueError(f'must be a day such as "2026-01-05", not {shown(value)}')
    try:
        day = date.fromisoformat(value)
    except ValueError:
        day = None
    if day is None or value != day.isoformat():
        raise ValueError(f'must be a day of the calendar such as "2026-01-05", not {shown(value)}')
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise ValueError(f"lies outside the years {FIRST_YEAR} to {LAST_YEAR}")
    return day


def _start(value: object, info: ValidationInfo) -> date:
    day, unit = _day(value), info.data.get("calendar")
    if unit == "week" and day.weekday() not in WEEK_STARTS:
        raise ValueError(f"{day} is a {day:%A}: weeks start on a Monday, or on a Sunday as epidemiological weeks do")
    if unit in _MONTHS and day.day != 1:
        raise ValueError(f"{day} is not the first day of a month; a {unit} starts on one")
    return day


def _stop(value: object, info: ValidationInfo) -> date:
    stop, start, unit = _day(value), info.data.get("start"), info.data.get("calendar")
    if start is None or unit is None:
        return stop
    if stop <= start:
        raise ValueError(f"{stop} must lie after start {start}; it is the day after the last {unit}")
    before = start
    for first in _first_days(start, unit):
        if first == stop:
            return stop
        if first > stop:
            break
        before = first
    raise ValueError(f"{stop} cuts a {unit}; it is the day after the last {unit}, such as {before} or {first}")


def _first_days(start: date, unit: str) -> Iterator[date]:
    """Where one unit after the other starts, from `start` on, until the calendar ends."""
    if unit in _DAYS:
        for days in range(0, (date(LAST_YEAR + 1, 1, 1) - start).days, _DAYS[unit]):
            yield start + timedelta(days=days)
    else:
        for months in range(start.month - 1, 12 * (LAST_YEAR + 1 - start.year), _MONTHS[unit]):
            yield date(start.year + months // 12, months % 12 + 1, 1)


class CalendarAxisSpec(NamedAxis):
    """Bins of local days in the spec's time zone, from `start` up to but without `stop`; `format` is that of text."""

    calendar: Annotated[Unit, one_of("day", "week", "month", "quarter", "year")]
    start: Annotated[date, PlainValidator(_start)]
    stop: Annotated[date, PlainValidator(_stop)]
    format: Annotated[str | None, PlainValidator(lambda value: None if value is None else date_format(value))] = None

    @property
    def size(self) -> int:
        """Number of cells along the axis."""
        return len(self._edges) - 1 + self.other

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the published table."""
        return f"{self.name}_lower", f"{self.name}_upper"

    @cached_property
    def axis(self) -> Axis:
        """The axis, its edges as numbers of days since 1970-01-01."""
        return CalendarAxis(str(self.name), str(self.column), self._edges, other=self.other, format=self.format)

    def normalised(self) -> dict[str, object]:
        """All fields as JSON values, defaults filled in."""
        spans = {"calendar": self.calendar, "start": self.start.isoformat(), "stop": self.stop.isoformat()}
        written = {"format": self.format} if self.format is not None else {}
        return {"column": str(self.column), "name": str(self.name), "other": self.other, **spans, **written}

    @cached_property
    def _edges(self) -> tuple[float, ...]:
        edges = []
        for first in _first_days(self.start, self.calendar):
            edges.append(float(number_of_day(first)))
            if first >= self.stop:
                break
        return tuple(edges)
