"""Axes of days, weeks, months or years."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta
from typing import ClassVar

from dphist_pipeline.base.axes._binned import BinnedAxis
from dphist_pipeline.base.axes._interface import Along, Kind, PublicType, Reads

EPOCH = date(1970, 1, 1)


def day_of(number: float) -> date:
    """The date of a number of days since 1970-01-01; a fraction is cut off."""
    return EPOCH + timedelta(days=int(number))


def number_of_day(day: date) -> int:
    """The number of days since 1970-01-01."""
    return (day - EPOCH).days


@dataclass(frozen=True)
class CalendarAxis(BinnedAxis):
    """An axis of days, weeks, months or years, as half-open bins of local days.

    The edges are numbers of days since 1970-01-01; `first_days` gives them as dates.

    Attributes:
        format: of dates in a source that holds them as text; None for ISO dates.
    """

    format: str | None = None

    kind: ClassVar[Kind] = "calendar"
    reads: ClassVar[Reads] = "days"

    @property
    def first_days(self) -> tuple[date, ...]:
        """The first day of each bin, and the day after the last bin."""
        return tuple(day_of(edge) for edge in self.edges)

    def written(self, end: float) -> str:
        """The date, as text, of an end of a bin in days since 1970-01-01; it may be infinite."""
        return day_of(end).isoformat() if math.isfinite(end) else super().written(end)

    def public_end(self, end: float) -> float | str | None:
        """The ISO date of an end; None for `other`."""
        return self.written(end) if math.isfinite(end) else None

    @property
    def columns(self) -> dict[str, PublicType]:
        """Both ends, as ISO dates."""
        return {f"{self.name}_lower": "string", f"{self.name}_upper": "string"}

    @property
    def published(self) -> dict[str, Along]:
        """The ends of every cell, as ISO dates."""
        days = ([self.written(end) if math.isfinite(end) else None for end in ends.tolist()] for ends in self.bounds)
        return dict(zip(self.keys, days, strict=True))
