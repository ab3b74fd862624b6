"""The cover of a card: a sentence in words of the subject, who publishes, dates, and where the files are.

It is made from the publication, from the one of the period before, and from what the operator wrote about the
publisher: public files and `about.json` alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

from dphist_pipeline.base.about_publisher import About, link_of
from dphist_pipeline.base.counted_words import counted_words
from dphist_pipeline.base.languages.texts import gettext, mark_text, pgettext, translate
from dphist_pipeline.estimates.answers import Answer
from dphist_pipeline.estimates.chance_of_persons import CHANCE
from dphist_pipeline.publishing._figure_tables import figure_tables
from dphist_pipeline.publishing.formatting import shown_number, signed_number
from dphist_pipeline.publishing.headline_figures import HeadlineFigure

WEEK = 7  # days
NOBODY = About()
# A change that leaves 0 out by noise alone, and holds it with chance: down, and up. The picker says the same.
BY_CHANCE = (
    mark_text(
        "%(number)s fewer were counted (%(low)s to %(high)s). Counts differ as much by chance (%(least)s to %(most)s), "
        "so this alone is no trend."
    ),
    mark_text(
        "%(number)s more were counted (%(low)s to %(high)s). Counts differ as much by chance (%(least)s to %(most)s), "
        "so this alone is no trend."
    ),
)


@dataclass(frozen=True)
class Before:
    """The publication of the period before, in its latest revision that stands.

    `days`: its first and last one, in words. `place`: its folder below that of the release. `number`: its total with
    the interval, as text; empty if nothing tells it, as `total` is None. `lower`, `upper`: the 95 % interval.
    """

    days: str
    place: str
    number: str = ""
    total: float | None = None
    lower: float | None = None
    upper: float | None = None

    @property
    def row(self) -> str:
        """Where the release's page lists the period with all its revisions, from a card."""
        return f"../../index.html#{self.place.partition('/')[0].replace('=', '-')}"

    @property
    def revision(self) -> str:
        """The number of its revision, as text."""
        return self.place.rpartition("=")[2]


@dataclass(frozen=True)
class PublicationNeighbours:
    """What stands around a publication; nothing by default.

    `before` is the publication of the period before, in its latest revision that stands. No later period is named: a
    card would have to be made anew with each. `is_alike`: this period and the one before count the same: same unit,
    bound, axes and number of days. `figures`: the lines of its declared figures, which are computed after its first
    card was made.
    """

    about: About = NOBODY
    before: Before | None = None
    is_alike: bool = False
    figures: Sequence[Mapping[str, Any]] = ()


def ends_of(audit: Mapping[str, Any]) -> tuple[date, date] | None:
    """The first day of a period and the first one after it; None without a period."""
    with suppress(KeyError, TypeError, ValueError):
        return date.fromisoformat(audit["period_start"][:10]), date.fromisoformat(audit["period_end"][:10])
    return None


ALONE = PublicationNeighbours()


def cover_facts(
    audit: Mapping[str, Any], around: PublicationNeighbours, total: Answer | None, holds_zero: bool = False
) -> dict[str, Any]:
    """What the cover shows; nothing is compared where the total's interval holds 0, so that records may be missing.

    `total`: for all cells; None where cells do not add up to a number that people look for.
    """
    about, before = around.about, around.before
    compared = "" if total is None or holds_zero or not around.is_alike else _comparison_with_past(audit, total, before)
    return {
        "figures": figure_tables(around.figures, audit),
        "counted": counted_words(audit) or gettext("rows"),
        "when": when_in_words(audit),
        "compared": compared,
        "by_chance": _by_chance_in_words(audit, total, before) if compared == "alike" else "",
        "before": None if before is None else {"days": before.days, "row": before.row},
        "before_total": before.number if before is not None and compared else "",
        "before_revision": before.revision if before is not None else "",
        "published_on": str(audit.get("published_on") or (audit.get("ledger") or {}).get("charged_at") or "")[:10],
        "about": asdict(about),
        "license_link": link_of(about.license),
        "contact_link": link_of(about.contact),
    }


def covered_in_words(half: str | None, has_ends: bool, capped: str, is_measured_twice: bool) -> list[str]:
    """What the error beside a total covers and what not, a sentence each; the picker says it in the same words.

    Args:
        half: of its interval, as it is told; None where both ends are told, or none.
        capped: what `cap_in_words` says.
        is_measured_twice: whether sums of groups tell the total, too.
    """
    sentences = [
        gettext("± %(half)s is the noise alone.", half=half) if half else "",
        gettext("The interval is that of the noise alone.") if has_ends else "",
        capped,
        gettext("The total was measured twice and its parts once, so they do not add up to it exactly.")
        if is_measured_twice
        else "",
    ]
    return [sentence for sentence in sentences if sentence]


def when_in_words(audit: Mapping[str, Any]) -> str:
    """The period as it stands in a sentence, such as "in the week of 5 January 2026"; empty without one."""
    ends = ends_of(audit)
    if ends is None:
        return ""
    first, after = ends
    last = after - timedelta(days=1)
    if first == last:
        return gettext("on %(day)s", day=_day(first))
    if (after - first).days == WEEK:
        return gettext("in the week of %(day)s", day=_day(first))
    if first.day == after.day == 1:
        months = 12 * (after.year - first.year) + after.month - first.month
        if months == 1:
            return pgettext("month", "in %(month)s %(year)s", month=_month(first), year=first.year)
        if months == 12 and first.month == 1:
            return pgettext("year", "in %(year)s", year=first.year)
    return gettext("from %(first)s to %(last)s", first=_day(first), last=_day(last))


def _day(day: date) -> str:
    if day.day == 1:
        return pgettext("first day of a month", "1 %(month)s %(year)s", month=_month(day), year=day.year)
    return gettext("%(day)s %(month)s %(year)s", day=day.day, month=_month(day), year=day.year)


def _month(day: date) -> str:
    return (
        *(gettext("January"), gettext("February"), gettext("March"), gettext("April"), pgettext("month", "May")),
        *(gettext("June"), gettext("July"), gettext("August"), gettext("September"), gettext("October")),
        *(gettext("November"), gettext("December")),
    )[day.month - 1]


def _by_chance_in_words(audit: Mapping[str, Any], total: Answer | None, before: Before | None) -> str:
    """That two totals differ by more than noise and not by more than chance; empty where noise alone may do it."""
    assert total is not None and before is not None and before.total is not None
    assert before.lower is not None and before.upper is not None
    number = HeadlineFigure.of(vars(total))
    noise = ((before.upper - before.lower) / 2, (number.upper - number.lower) / 2)
    difference, reach = number.value - before.total, math.hypot(*noise)
    if abs(difference) <= reach:
        return ""
    chance = CHANCE.half_width(before.total, number.value, noise, int(audit.get("max_rows_per_unit") or 1))
    ends = {"low": shown_number(abs(difference) - reach, 0), "high": shown_number(abs(difference) + reach, 0)}
    ends |= {"least": signed_number(difference - chance), "most": signed_number(difference + chance)}
    ends |= {"number": shown_number(abs(difference), 0)}
    return translate(BY_CHANCE[difference > 0]) % ends


def _comparison_with_past(audit: Mapping[str, Any], total: Answer, before: Before | None) -> str:
    """How a total stands to the one of the period before: noise and chance of both are allowed for."""
    number = HeadlineFigure.of(vars(total))
    if (
        before is None
        or before.total is None
        or before.lower is None
        or before.upper is None
        or math.isnan(number.lower)
    ):
        return ""
    noise = ((before.upper - before.lower) / 2, (number.upper - number.lower) / 2)
    difference = number.value - before.total
    if abs(difference) <= CHANCE.half_width(
        before.total, number.value, noise, int(audit.get("max_rows_per_unit") or 1)
    ):
        return "alike"
    return "more" if difference > 0 else "fewer"
