"""What pages tell of each publication of a release: its days, its total with the interval, and why it was made.

Publications that are told already, and whose audits did not change, are not read again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from dphist_pipeline.base.files import read_regular
from dphist_pipeline.base.languages.texts import gettext, pgettext
from dphist_pipeline.base.shown_below import limit_of, words_for
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.estimate import answer_box
from dphist_pipeline.estimates.family_choice import FamilyChoice
from dphist_pipeline.publishing.formatting import shortened_text, shown_number
from dphist_pipeline.publishing.headline_figures import HeadlineFigure
from dphist_pipeline.publishing.published_estimate import published_estimate
from dphist_pipeline.publishing.published_files import (
    AUDIT,
    CARD,
    TABLES_OF_FAMILY,
    PublishedFilesDamaged,
    PublishedFolder,
    read_audit,
    revisions_by_period,
)
from dphist_pipeline.spec.axes import domain_of

EVEN = 1.0  # by how many records halves of an interval differ that are told as ±
MOST_LETTERS = 500  # of a reason
DAYS = ("first", "after", "published_on", "withdrawn_on")


@dataclass(frozen=True)
class ListedPublication:
    """What pages tell of each publication; days and texts are empty where there are none.

    `digest`: of its audit; empty if it is read again next time: it was withdrawn, or is damaged. `first`: the first
    day, `after`: the first day after the period, as ISO text. `damaged`: its files are not those that were published.
    `page`: it has a card. `total`: of all cells, as `HeadlineFigure` tells it, with its 95 % interval; None if nothing
    tells, or words stand in its place. `limit`: figures below it are told as words, see `shown_below`, 0 where all are
    shown; `below`: the total is one of them. `known`: it is a public figure, which has no interval.
    """

    period: str
    revision: int
    digest: str = ""
    first: str = ""
    after: str = ""
    published_on: str = ""
    reason: str = ""
    withdrawn_on: str = ""
    withdrawn_for: str = ""
    damaged: bool = False
    page: bool = False
    total: float | None = None
    lower: float | None = None
    upper: float | None = None
    decimals: int = 0
    limit: int = 0
    below: bool = False
    known: bool = False

    @property
    def place(self) -> str:
        """Its folder below that of the release."""
        return f"period={self.period}/revision={self.revision}"

    @property
    def stands(self) -> bool:
        """Whether readers may use it, unless a later revision stands."""
        return not (self.withdrawn_on or self.damaged)


def days_in_words(publication: ListedPublication) -> str:
    """The first and the last day of a period; its key if it has none."""
    if not (publication.first and publication.after):
        return gettext("all records") if publication.period == "all" else publication.period
    last = date.fromisoformat(publication.after) - timedelta(days=1)
    return publication.first if last.isoformat() <= publication.first else f"{publication.first} to {last}"


def number_in_words(publication: ListedPublication) -> str:
    """The total with ± or the ends of its interval, or the words in its place; empty if nothing tells it."""
    if publication.below:
        return words_for(publication.limit)
    if publication.total is None:
        return ""
    number = shown_number(publication.total, publication.decimals)
    if publication.lower is None or publication.upper is None:
        return f"{number} ({pgettext('reliability', 'known')})" if publication.known else number
    if half := half_in_words(publication):
        return f"{number}\u00a0±\u00a0{half}"
    between = pgettext("number", " to ").replace(" ", "\u00a0")
    ends = (shown_number(end, publication.decimals) for end in (publication.lower, publication.upper))
    return f"{number} ({between.join(ends)})"


def half_in_words(publication: ListedPublication) -> str:
    """Half the interval of the total; empty where it has none, or both ends are told."""
    if publication.total is None or publication.lower is None or publication.upper is None:
        return ""
    below, above = publication.total - publication.lower, publication.upper - publication.total
    return shown_number(max(below, above), publication.decimals) if abs(below - above) <= EVEN else ""


def read_history(listed: Sequence[Mapping[str, Any]]) -> dict[tuple[str, int], ListedPublication]:
    """What was told before, by period and revision, from a page, whoever wrote it.

    Of each publication come the fields of `ListedPublication` that differ from their defaults.

    Raises:
        TypeError, ValueError: it is not what `ListedPublication` has.
    """
    kinds: dict[str, tuple[type, ...]] = {"str": (str,), "int": (int,), "bool": (bool,)}
    publications = {}
    for facts in listed:
        publication = ListedPublication(**facts)
        for field in fields(ListedPublication):
            value = getattr(publication, field.name)
            is_number = value is None or (isinstance(value, int | float) and math.isfinite(value))
            if not (type(value) in kinds[str(field.type)] if str(field.type) in kinds else is_number):
                raise ValueError(field.name)
            if field.name in DAYS and _day(value) != value:
                raise ValueError(field.name)
        publications[publication.period, publication.revision] = publication
    return publications


def history(release: Path, known: Mapping[tuple[str, int], ListedPublication]) -> list[ListedPublication]:
    """Every publication of a release, the newest period first, and in it the latest revision.

    `known`: publications by period and revision, as an earlier page lists them; see `read_history`.
    """
    publications = []
    for folder in revisions(release):
        period, revision = folder.parent.name.removeprefix("period="), int(folder.name.removeprefix("revision="))
        before, digest = known.get((period, revision)), PublishedFolder(folder).stated_digest
        is_same = before is not None and digest != "" and before.digest == digest
        publications.append(before if before is not None and is_same else _read_publication(folder, period, revision))
    return sorted(publications, key=lambda publication: (publication.period, publication.revision), reverse=True)


def publication_before(release: Path, first: str) -> ListedPublication | None:
    """The publication of the period that ends where another begins, in its latest revision that stands, if any.

    `first`: the first day of the other period, as ISO text; empty without periods.
    """
    earlier = [period for period in revisions_by_period(release) if period < first]
    publication = _standing(release, earlier[-1]) if earlier else None
    return publication if publication is not None and publication.after == first else None


def revisions_before(release: Path, first: str) -> Iterator[ListedPublication]:
    """Every revision of the period that ends where another begins, as it was told while it stood, the latest first."""
    earlier = max((period for period in revisions_by_period(release) if period < first), default="")
    for number, folder in _latest_first(release, earlier):
        publication = _read_publication(folder, earlier, number, as_it_stood=True)
        if publication.after == first:
            yield publication


def publication_after(release: Path, after: str) -> ListedPublication | None:
    """The publication of the period that begins where another ends, in its latest revision that stands, if any.

    `after`: the first day after the other period, as ISO text; empty without periods.
    """
    later = [period for period in revisions_by_period(release) if after and period >= after]
    publication = _standing(release, later[0]) if later else None
    return publication if publication is not None and publication.first == after else None


def _standing(release: Path, period: str) -> ListedPublication | None:
    """The latest revision of a period that stands."""
    for number, folder in _latest_first(release, period):
        publication = _read_publication(folder, period, number)
        if publication.stands:
            return publication
    return None


def _latest_first(release: Path, period: str) -> list[tuple[int, Path]]:
    numbers = revisions_by_period(release).get(period, [])
    return [(number, release / f"period={period}/revision={number}") for number in reversed(numbers)]


def revisions(release: Path) -> list[Path]:
    """The folders of the publications of a release; folders that were renamed are none."""
    return [
        folder
        for period, numbers in revisions_by_period(release).items()
        for number in numbers
        if ((folder := release / f"period={period}/revision={number}") / AUDIT).exists()
    ]


def _read_publication(folder: Path, period: str, revision: int, as_it_stood: bool = False) -> ListedPublication:
    """Reads a publication. Nothing fails here: what is damaged is told as such, and other checks say more.

    `as_it_stood`: with the total that it had before it was withdrawn.
    """
    damaged, digest = ListedPublication(period, revision, damaged=True), PublishedFolder(folder).stated_digest
    try:
        audit = json.loads(read_regular(folder / "audit.json")) if not digest else read_audit(folder)
        if (audit["release"], audit["period"], audit["revision"]) != (folder.parents[1].name, period, revision):
            return damaged
        withdrawn = audit.get("withdrawn", {})
        if not (withdrawn or digest):
            return damaged
        texts: dict[str, Any] = {
            "first": _day(audit.get("period_start")),
            "after": _day(audit.get("period_end")),
            "published_on": _day(audit.get("published_on") or (audit.get("ledger") or {}).get("charged_at")),
            "reason": _words(audit.get("reason")),
            "withdrawn_on": _day(withdrawn.get("at")),
            "withdrawn_for": _words(withdrawn.get("reason")),
            "page": (folder / CARD).is_file(),
        }
        total = {} if withdrawn and not as_it_stood else _total(folder, audit)
        return ListedPublication(period, revision, digest, **texts, **total)
    except (PublishedFilesDamaged, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return damaged


def _day(value: object) -> str:
    """The day that a time begins with; empty if it is none."""
    with suppress(ValueError):
        return date.fromisoformat(value[:10]).isoformat() if isinstance(value, str) else ""
    return ""


def _words(value: object) -> str:
    return shortened_text(value, MOST_LETTERS) if isinstance(value, str) else ""


def _total(folder: Path, audit: Mapping[str, Any]) -> dict[str, Any]:
    """The sum of all cells (of a family, by the table that tells it best) with its interval, as the card tells it.

    It is empty if an older version wrote too little.
    """
    with suppress(DphistError, OSError, KeyError, ValueError, TypeError, ArithmeticError):
        if "tables" in audit:
            tables = folder / TABLES_OF_FAMILY
            domains = {name: domain_of(table["axes"]) for name, table in audit["tables"].items()}
            place = tables / FamilyChoice(domains, lambda name: read_audit(tables / name)).best_of_total
            folder, audit = place, read_audit(place)
        number = HeadlineFigure.of(vars(answer_box(published_estimate(folder, audit), {})), limit=limit_of(audit))
        ends = (number.lower, number.upper) if number.has_ends else (math.nan, math.nan)
        below = number.limit is not None and number.value < number.limit
        # A page that shows no figure holds none in what it says to the next run either.
        numbers = dict(zip(("total", "lower", "upper"), (math.nan if below else number.value, *ends), strict=True))
        facts = {name: _number(value) for name, value in numbers.items()} | {"decimals": number.decimals}
        return facts | {"limit": number.limit or 0, "below": below, "known": number.is_known}
    return {}


def _number(value: float) -> float | None:
    """A number that JSON can hold."""
    return float(f"{value:.12g}") if math.isfinite(value) else None
