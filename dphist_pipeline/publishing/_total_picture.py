"""A small picture of totals over time: a dot for each period, and a bar for its 95 % interval; drawn without a library.

Its lines keep their width however wide the page shows it, and its texts are those of the page around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from markupsafe import Markup

from dphist_pipeline.languages.texts import days_text, gettext
from dphist_pipeline.publishing.formatting import shown_number

WIDE, HIGH = 1000, 200  # units of the picture; the page says how large it is shown
MARGIN = 12
LEAST = 2  # periods
FROM_ZERO = 0.5  # the scale starts at 0 if the lowest end is below this part of the highest one
Point = tuple[str, float, float | None, float | None]  # the first day as ISO text, the total, ends of its interval


@dataclass(frozen=True)
class TotalPicture:
    """A picture that a page shows: the content of an SVG with the view box `0 0 1000 200`, stretched in width.

    `top` and `bottom` are numbers at the ends of the scale, `first` and `last` days. `described` is for readers who do
    not see it.
    """

    content: Markup
    top: str
    bottom: str
    first: str
    last: str
    described: str


def total_picture(points: Sequence[Point]) -> TotalPicture | None:
    """Draws totals over time, one a period, in order of time; None for fewer than two periods."""
    if len(points) < LEAST:
        return None
    days = [date.fromisoformat(day).toordinal() for day, *_ in points]
    ends = [end for _, total, low, high in points for end in (total, low, high) if end is not None]
    bottom, top = min(ends), max(ends)
    if 0 < bottom < FROM_ZERO * top:
        bottom = 0.0
    scale = (top - bottom) or 1.0

    def across(day: int) -> int:
        return round(MARGIN + (day - days[0]) / (days[-1] - days[0] or 1) * (WIDE - 2 * MARGIN))

    def down(number: float) -> int:
        return round(HIGH - MARGIN - (number - bottom) / scale * (HIGH - 2 * MARGIN))

    bars = "".join(
        f"M{across(day)} {down(low)}V{down(high)}"
        for day, (_, _, low, high) in zip(days, points, strict=True)
        if low is not None and high is not None
    )
    dots = "".join(f"M{across(day)} {down(total)}h0" for day, (_, total, _, _) in zip(days, points, strict=True))
    (first, start, *_), (last, end, *_) = points[0], points[-1]
    return TotalPicture(
        Markup('<path class="bars" d="{}"/><path class="dots" d="{}"/>').format(bars, dots),
        shown_number(round(top)),
        shown_number(round(bottom)),
        days_text(first),
        days_text(last),
        gettext(
            "Totals of %(number)s periods from %(start)s (%(first)s) to %(end)s (%(last)s), on a scale from %(bottom)s "
            "to %(top)s.",
            **{"number": len(points), "start": shown_number(round(start)), "end": shown_number(round(end))},
            **{"first": days_text(first), "last": days_text(last)},
            **{"bottom": shown_number(round(bottom)), "top": shown_number(round(top))},
        ),
    )
