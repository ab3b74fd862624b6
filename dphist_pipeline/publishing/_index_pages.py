"""The reader's first page: `index.html` of the public folder, and of every release in it.

One script runs: that of the picker, on the page of a release that has its files. `default-src 'none'` holds elsewhere.

The page of a release is made from its publications, and says at its head what the page of all releases tells of it. So
a publication writes the page of its own release and the page of all, and reads of the other pages the heads alone. Both
are functions of public files and of `about.json`. They are written last: whatever they name is there. The page of a
release lists its newest publications; the earlier ones have a page for each year, which is written before it, and anew
only where something of that year changed.

Search engines read JSON-LD in the words of schema.org. The picture of totals is drawn without a library: its lines keep
their width however wide the page shows it, and its texts are those of the page around it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from markupsafe import Markup

from dphist_pipeline.base.about_publisher import About, link_of
from dphist_pipeline.base.counted_words import counted_words
from dphist_pipeline.base.files import open_below, read_regular, replace_public
from dphist_pipeline.base.languages.texts import days_text, gettext, in_language, translate
from dphist_pipeline.base.shown_below import hidden_in_words, not_drawn
from dphist_pipeline.estimates.row_quality import QualityTable, cap_in_words
from dphist_pipeline.publishing._card_cover import covered_in_words
from dphist_pipeline.publishing._figure_tables import figure_tables
from dphist_pipeline.publishing._picker_words import picker_words
from dphist_pipeline.publishing._release_history import (
    ListedPublication,
    days_in_words,
    half_in_words,
    history,
    number_in_words,
    read_history,
    revisions,
)
from dphist_pipeline.publishing.figure_files import lines_of, made_of
from dphist_pipeline.publishing.formatting import epsilon_text, shortened_text, shown_number
from dphist_pipeline.publishing.public_names import CATALOGUE, CURRENT, INDEX, is_path
from dphist_pipeline.publishing.published_files import PublishedFolder
from dphist_pipeline.publishing.rendering import render

FORM = 6  # of what a page says for the next run that writes it
MOST_BYTES = 2_000_000
MOST_LISTED = 104  # publications on the page of a release: two years of weeks
MOST_SHOWN = 1200  # publications on the page of a year, and totals in the picture of a release
MOST_RELEASES = 500  # with a picture; above, pages of all releases are lists
MOST_POINTS, MOST_FILES, MOST_TABLES, MOST_LETTERS = 60, 50, 6, 300
_YEAR = "periods-{}.html"
_HEAD = 65_536  # bytes, in which a page says what the page of all releases tells of it
_PICKER = ("picker/script.js", "picker/release.js")
_MADE_FROM = re.compile(rb'"made_from": "([0-9a-f]{32})"')
_ABOUT, _PERIODS = '<script type="application/json" id="about">', '<script type="application/json" id="periods-told">'
_END = "</script>"
CONTEXT = {"@context": "https://schema.org/"}
SURE = "Differentially private counts with 95 % intervals."
KINDS = {
    "csv": "text/csv",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "parquet": "application/vnd.apache.parquet",
}
WIDE, HIGH = 1000, 200  # units of the picture; the page says how large it is shown
MARGIN = 12
LEAST = 2  # periods
FROM_ZERO = 0.5  # the scale starts at 0 if the lowest end is below this part of the highest one
Point = tuple[str, float, float | None, float | None]  # the first day as ISO text, the total, ends of its interval


class CountWords(NamedTuple):
    """What the counts of a release are counts of: parts, which each page words in its own language.

    `what` is as the spec has it, empty for rows; `cap`: how many of each unit count, 0 without a cap; `unit`: as
    readers call it; `is_reported`: contributors made their reports noisy.
    """

    what: str
    cap: int
    unit: str
    is_reported: bool

    @classmethod
    def of(cls, audit: Mapping[str, Any]) -> CountWords:
        unit, cap = str(audit.get("privacy_unit", "row")), audit.get("max_rows_per_unit")
        what, called = (
            shortened_text(str(text), MOST_LETTERS) for text in (counted_words(audit), audit.get("unit_label") or unit)
        )
        return cls(what, int(cap or 0) if unit != "row" else 0, called, audit.get("model") == "local")

    def in_words(self) -> str:
        """The words in the language of the page."""
        what = self.what or gettext("rows")
        if self.is_reported:
            return gettext("values reported, estimated from reports that contributors made noisy")
        if not self.cap:
            return gettext("%(what)s counted", what=what)
        return gettext(
            "%(what)s counted, at most %(number)s of each %(unit)s", what=what, number=self.cap, unit=self.unit
        )


@dataclass(frozen=True)
class Summary:
    """What the page of all releases tells of one; the title is that of the newest publication.

    `made_from`: see `_mark`. `periods`: that have a publication which stands, of which `newest` is the latest, if any.
    `withdrawn`, `superseded`: how many publications were. `files`: with every cell, one of each kind.
    """

    made_from: str
    release: str
    title: str
    counted: CountWords
    periods: int
    newest: ListedPublication | None
    withdrawn: int
    superseded: int
    points: list[Point]
    files: list[str]
    picker: bool


def write_index(public: Path, scratch: Path, anew: bool = False) -> None:
    """Writes the pages of releases of which something changed, then the page of all; see `DerivedFiles.write_index`."""
    about = About.of(public)
    folders = {path.parent for path in public.glob("*/period=*")}  # of which anything was published
    releases = sorted(folder for folder in folders if is_path(f"{folder.name}/{INDEX}"))
    for folder in releases:
        mark = _mark(folder, about)
        if anew or _mark_on_page(folder) != mark:
            for name, page in _release_pages(folder, mark, about, anew):
                replace_public(folder / name, page, scratch)
    summaries = [summary for folder in releases if (summary := _summary(folder)) is not None]
    with in_language(about.language):
        text = _page_of_all(summaries, about).encode()
    if not (public / INDEX).is_file() or (public / INDEX).read_bytes() != text:
        replace_public(public / INDEX, text, scratch)


def shows(public: Path, folder: Path) -> bool:
    """Whether both pages tell a publication as it is now."""
    release = folder.parents[1]
    mark = _mark(release, About.of(public))
    with suppress(OSError):
        return _mark_on_page(release) == mark and f'data-made-from="{mark}"'.encode() in (public / INDEX).read_bytes()
    return False


def _mark(release: Path, about: About) -> str:
    """A digest that changes with what a page is made from: of the audits of publications, the sizes alone are read."""
    current = release / CURRENT
    listed = hashlib.sha256(current.read_bytes()).hexdigest() if current.is_file() else ""
    audits = [f"{path.parent.name}/{path.name}/{(path / 'audit.json').stat().st_size}" for path in revisions(release)]
    texts = {name: text for name, text in asdict(about).items() if text or name != "language"}
    contents = [
        FORM,
        version("dphist-pipeline"),
        texts,
        listed,
        sorted(audits),
        _picker(release),
        _latest_files(release),
        *filter(None, [made_of(release)]),
    ]
    return hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:32]


def _picker(release: Path) -> dict[str, Any]:
    """What the page says of the picker's files: a mark that changes with them, and their bytes; empty without them."""
    with suppress(OSError):
        weight = sum((release / path).stat().st_size for path in _PICKER)
        with (release / _PICKER[-1]).open("rb") as file:
            made_from = _MADE_FROM.search(file.readline(_HEAD))
        return {"mark": made_from[1].decode(), "weight": weight} if made_from else {}
    return {}


def _mark_on_page(release: Path) -> str:
    summary = _summary(release)
    return summary.made_from if summary is not None else ""


def _summary(release: Path) -> Summary | None:
    """What the head of a release's page says; None without a page of this form."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        with open_below(release, INDEX) as file:
            facts = _block(file.read(_HEAD).decode(errors="replace"), _ABOUT)
        newest = facts.pop("newest")
        if facts.pop("form") != FORM:
            return None
        facts["newest"] = next(iter(read_history([newest]).values())) if newest is not None else None
        points = [_point(*point) for point in facts.pop("points")]
        if any(not is_path(f"{release.name}/{path}") for path in facts["files"]):
            return None
        counts = [facts[name] for name in ("periods", "withdrawn", "superseded")]
        counted = CountWords(*facts.pop("counted"))
        texts = [*(facts[name] for name in ("made_from", "title")), counted.what, counted.unit]
        counts.append(counted.cap)
        if (
            type(facts["picker"]) is bool
            and all(type(count) is int for count in counts)
            and all(isinstance(text, str) for text in texts)
        ):
            return Summary(**facts, points=points, counted=counted) if facts["release"] == release.name else None
    return None


def _point(day: str, total: float, low: float | None, high: float | None) -> Point:
    ends = [None if end is None else float(end) for end in (low, high)]
    return date.fromisoformat(day).isoformat(), float(total), ends[0], ends[1]


def _block(page: str, begins: str) -> dict[str, Any]:
    """The JSON of a page; ValueError if it has none."""
    content = page.partition(begins)[2].partition(_END)
    block = json.loads(content[0] if content[1] else "")
    if not isinstance(block, dict):
        raise ValueError(begins)
    return block


def _release_pages(folder: Path, mark: str, about: About, anew: bool) -> Iterator[tuple[str, str]]:
    """The pages of one release that are not as they should be, by their names: those of years, and last its own.

    `anew`: all of them, and nothing is taken from those that are there.
    """
    years = sorted(page.name for page in folder.glob(_YEAR.format("*")) if is_path(f"{folder.name}/{page.name}"))
    told = {} if anew else {name: _page_facts(folder, name) for name in (INDEX, *years)}
    known = {key: one for facts in told.values() for key, one in read_history(facts.get("publications", [])).items()}
    publications = history(folder, known)
    with in_language(_language(folder, publications, about)):
        page, left_out = _fitting(publications, MOST_LISTED, partial(_of_release, folder, mark, about))
    # A page that is there stays right when publications move from it to the first page: others may link to it.
    for name in sorted({*years, *map(_year_page, left_out)}):
        of_year = [publication for publication in publications if _year_page(publication) == name]
        facts = [FORM, version("dphist-pipeline"), asdict(about), [vars(publication) for publication in of_year]]
        made_from = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
        if told.get(name, {}).get("made_from") != made_from:
            with in_language(_language(folder, of_year, about)):
                page_of_year = partial(_of_year, folder, name, made_from, about)
                yield name, _fitting(of_year, MOST_SHOWN, page_of_year)[0]
    yield INDEX, page


def _page_facts(release: Path, name: str) -> dict[str, Any]:
    """What a page tells of publications, and what it was made from; empty without a page of this form."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        with open_below(release, name) as file:
            told = _block(file.read().decode(), _PERIODS)
        read_history(told["publications"])
        return told if told["form"] == FORM else {}
    return {}


def _fitting(
    publications: Sequence[ListedPublication],
    most: int,
    page: Callable[[Sequence[ListedPublication], Sequence[ListedPublication]], str],
) -> tuple[str, Sequence[ListedPublication]]:
    """A page with as many of its newest publications as fit, and those that are not on it."""
    while len((text := page(publications[:most], publications[most:])).encode()) > MOST_BYTES and most > 1:
        most //= 2
    return text, publications[most:]


def _language(folder: Path, publications: Sequence[ListedPublication], about: About) -> str:
    """The language of a page: that of the newest publication that stands."""
    newest = next((publication for publication in publications if publication.stands), None)
    return about.language_of(_audit(folder / newest.place) if newest is not None else {})


def _year_page(publication: ListedPublication) -> str:
    """The name of the page that has all publications of the year in which a period begins."""
    return _YEAR.format(publication.period[:4])


def _current(publications: Sequence[ListedPublication]) -> dict[str, ListedPublication]:
    """The latest revision of each period that stands; the latest comes first in what is given."""
    return {publication.period: publication for publication in reversed(publications) if publication.stands}


def _of_year(
    folder: Path,
    name: str,
    made_from: str,
    about: About,
    listed: Sequence[ListedPublication],
    earlier: Sequence[ListedPublication],
) -> str:
    """A page of one year; `earlier`: publications that do not fit."""
    current = _current([*listed, *earlier])
    newest = next((publication for publication in listed if publication.stands), None)
    audit = _audit(folder / newest.place) if newest is not None else {}
    title = shortened_text(str(audit.get("title") or folder.name), MOST_LETTERS)
    return render(
        "release_year.html.j2",
        title=f"{title}, {_year_in_words(name)}",
        release=folder.name,
        periods_block=_told_in_page(listed, made_from),
        rows=_rows(folder, listed, current),
        left_out=len(earlier),
        hidden=_hidden_remark(listed),
        about=_about(about, title, None),
    )


def _year_in_words(name: str) -> str:
    year = name.removeprefix(_YEAR.partition("{")[0]).partition(".")[0]
    return gettext("all records") if year == "all" else year


def _told_in_page(listed: Sequence[ListedPublication], made_from: str) -> Markup:
    facts = [_without_defaults(publication) for publication in listed]
    return json_in_page({"form": FORM, "made_from": made_from, "publications": facts})


def _covered(place: Path, publication: ListedPublication, audit: Mapping[str, Any]) -> list[str]:
    """What the error beside a total covers and what not, as its card says it; nothing where files do not say it."""
    if not audit or audit.get("model") == "local":
        return []
    if publication.known:
        return [gettext("The total is a public figure, without noise.")]
    with suppress(OSError, pa.ArrowInvalid, KeyError, TypeError, ValueError):
        files = PublishedFolder(place)
        rows = pq.ParquetFile(files.quality).read().to_pylist() if files.quality.exists() else []
        of_all = QualityTable([row for row in rows if row["axis"] is None])
        cuts = of_all.cuts(lambda _: np.array([publication.total or 0.0]))
        capped = cap_in_words(audit, of_all.rows_seen, *cuts.get(None, [None]))
        half, has_ends = half_in_words(publication), publication.lower is not None
        is_measured_twice = files.sums.exists() and audit["unbiased_noise_scale"] is not None and audit["cells"] > 1
        return covered_in_words(half, has_ends and not half, capped, is_measured_twice)
    return []


def _rows(
    folder: Path, listed: Sequence[ListedPublication], current: Mapping[str, ListedPublication]
) -> list[dict[str, Any]]:
    return [
        _row(publication, current.get(publication.period)) | {"parquet": _parquet(folder, publication, current)}
        for publication in listed
    ]


def _hidden_remark(publications: Sequence[ListedPublication]) -> str:
    """What is said of figures that are hidden: where periods have different limits, the strictest that hid one."""
    newest_limit = next((publication.limit for publication in publications if publication.limit), 0)
    limit = max((publication.limit for publication in publications if publication.below), default=newest_limit)
    return hidden_in_words(limit) if limit else ""


def _years(listed: Sequence[ListedPublication], earlier: Sequence[ListedPublication]) -> list[dict[str, Any]]:
    """The years of publications that a page does not list: their pages, and what other pages link to on this one."""
    there, years = {publication.period for publication in listed}, dict[str, list[str]]()
    current = _current([*listed, *earlier])
    has_superseded = any(_row(one, current.get(one.period))["state"] == "superseded" for one in listed)
    for publication in earlier:
        anchors = years.setdefault(_year_page(publication), [])
        if publication.period not in there:
            there.add(publication.period)
            anchors.append(f"period-{publication.period}")
        if not has_superseded and publication.stands and current[publication.period] is not publication:
            has_superseded = True
            anchors.append("superseded")
    return [{"file": name, "year": _year_in_words(name), "anchors": anchors} for name, anchors in years.items()]


def _of_release(
    folder: Path,
    mark: str,
    about: About,
    listed: Sequence[ListedPublication],
    earlier: Sequence[ListedPublication],
) -> str:
    """The page of one release; `earlier`: publications that pages of years have."""
    publications = [*listed, *earlier]
    current = _current(publications)
    standing = sorted(current.values(), key=lambda one: one.period, reverse=True)
    newest = standing[0] if standing else None
    audit = _audit(folder / (newest or publications[0]).place) if publications else {}
    title = shortened_text(str(audit.get("title") or folder.name), MOST_LETTERS)
    files, picker = _latest_files(folder), _picker(folder) if newest is not None else {}
    summary = Summary(
        made_from=mark,
        release=folder.name,
        title=title,
        counted=CountWords.of(audit),
        periods=len(current),
        newest=newest,
        withdrawn=sum(bool(publication.withdrawn_on) for publication in publications),
        superseded=sum(
            publication.stands and current[publication.period] != publication for publication in publications
        ),
        points=_points(standing, MOST_POINTS),
        files=[path for path in files if path.count("/") == 1],
        picker=bool(picker),
    )
    drawn = standing[:MOST_SHOWN]
    not_shown = max((publication.limit for publication in drawn if publication.below), default=0)
    return render(
        "release_index.html.j2",
        summary=summary,
        title=title,
        counted=summary.counted.in_words(),
        about_block=json_in_page({"form": FORM, **asdict(summary)}),
        periods_block=_told_in_page(listed, mark),
        json_ld=json_in_page(dataset(_search_entry(summary), audit, about, files)),
        newest=_facts_of(newest) if newest is not None else None,
        covered=_covered(folder / newest.place, newest, audit) if newest is not None else [],
        figures=figure_tables(lines_of(folder, newest.period, newest.revision), audit) if newest is not None else {},
        picker=picker,
        picker_words=json_in_page(picker_words(about)),
        promise=_promise(audit),
        rows=_rows(folder, listed, current),
        earlier=_years(listed, earlier),
        hidden=_hidden_remark(listed),
        not_drawn=not_drawn(not_shown) if not_shown else "",
        alarming=_alarm(publications, newest),
        revised=[
            _facts_of(publication)
            for publication in publications
            if publication.stands and publication.reason and current[publication.period] == publication
        ][:5],
        picture=total_picture(_points(drawn, MOST_SHOWN)),
        files=files,
        sql_name="_".join([folder.name, *list(audit.get("tables") or [])[:1]]),
        columns=_columns(folder, files, audit),
        about=_about(about, title, newest),
    )


def _without_defaults(publication: ListedPublication) -> dict[str, Any]:
    """The fields of a publication that differ from their defaults: pages stay small."""
    empty = vars(ListedPublication("", 0))
    return {name: value for name, value in vars(publication).items() if value != empty[name]}


def _audit(published: Path) -> dict[str, Any]:
    """The audit of a publication whose files were checked before; empty if it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        read = json.loads(read_regular(published / "audit.json"))
        return read if isinstance(read, dict) else {}
    return {}


def _search_entry(summary: Summary) -> SearchEntry:
    """A release for search engines, in English, since what stands beside it is."""
    newest, points = summary.newest, summary.points
    last = days_in_words(newest).rpartition(" to ")[2] if newest is not None and newest.first else ""
    with in_language(""):
        counted_in_words = summary.counted.in_words()
    return SearchEntry(
        summary.release,
        summary.title,
        f"{summary.title}: {counted_in_words}",
        f"{newest.period}, revision {newest.revision}" if newest is not None else "",
        newest.published_on if newest is not None else "",
        f"{points[0][0]}/{last}" if points and last else "",
    )


def _promise(audit: Mapping[str, Any]) -> dict[str, str]:
    epsilon = ""
    with suppress(KeyError, ValueError, TypeError, ZeroDivisionError):
        epsilon = epsilon_text(Fraction(audit["epsilon"]))
    unit = str(audit.get("privacy_unit", "row"))
    # Where every row is taken for another person, a label of the unit promises no more: the card says so, too.
    unit = shortened_text(str(audit.get("unit_label") or unit), 100) if unit != "row" else unit
    return {"unit": unit, "epsilon": epsilon, "model": str(audit.get("model", ""))}


def _points(standing: Iterable[ListedPublication], most: int) -> list[Point]:
    """The newest totals, in order of time."""
    points = [
        (publication.first, publication.total, publication.lower, publication.upper)
        for publication in standing
        if publication.first and publication.total is not None
    ]
    return [(first, total, low, high) for first, total, low, high in reversed(points[:most]) if total is not None]


def _facts_of(publication: ListedPublication) -> dict[str, Any]:
    return {
        **asdict(publication),
        "days": days_in_words(publication),
        "number": number_in_words(publication),
        "place": publication.place,
    }


def _row(publication: ListedPublication, current: ListedPublication | None) -> dict[str, Any]:
    state = "withdrawn" if publication.withdrawn_on else "damaged" if publication.damaged else ""
    if not state and current is not None and current.revision != publication.revision:
        state = "superseded"
    return {**_facts_of(publication), "state": state, "by": current.revision if current is not None else 0}


def _alarm(publications: Sequence[ListedPublication], newest: ListedPublication | None) -> list[dict[str, Any]]:
    """Withdrawn publications of which nothing newer stands in the same period, five at most."""
    standing = {publication.period for publication in publications if publication.stands}
    return [
        _facts_of(publication)
        for publication in publications
        if publication.withdrawn_on and publication.period not in standing
    ][:5]


def _latest_files(folder: Path) -> list[str]:
    """Paths of files with every current cell, below the folder of the release; the first ones of many."""
    there = [path for path in folder.glob("latest/**/cells.*") if path.stat().st_size]
    there.sort(key=lambda path: (path.parent, [*KINDS, path.suffix[1:]].index(path.suffix[1:])))
    paths = [path.relative_to(folder).as_posix() for path in there]
    return [path for path in paths if is_path(f"{folder.name}/{path}")][:MOST_FILES]


def _parquet(
    folder: Path, publication: ListedPublication, current: Mapping[str, ListedPublication]
) -> list[tuple[str, str]]:
    """The tables of a publication, if it is the current one of its period: name in its family, and path as Parquet."""
    if current.get(publication.period) != publication:
        return []
    place = folder / publication.place
    tables = [("", place), *((table.name, table) for table in PublishedFolder(place).tables[:MOST_TABLES])]
    files = [(name, table / "histogram.parquet") for name, table in tables]
    return [(name, file.relative_to(folder).as_posix()) for name, file in files if file.is_file()]


def _columns(folder: Path, files: Sequence[str], audit: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The meaning of the columns of files with every current cell, by the Parquet file, without those of axes."""
    with suppress(OSError, pa.ArrowInvalid, ValueError, KeyError, TypeError, StopIteration):
        schema = pq.read_schema(folder / next(path for path in files if path.endswith(".parquet")))
        tables = [audit, *(audit.get("tables") or {}).values()]
        axes = {str(axis.get("name") or axis["column"]) for table in tables for axis in table.get("axes") or []}
        meanings = json.loads((schema.metadata or {})[b"columns"]).items()
        return [(name, translate(text)) for name, text in meanings if text.partition(": ")[0] not in axes]
    return []


def _about(about: About, title: str, newest: ListedPublication | None) -> dict[str, str]:
    """The facts about the publisher for pages; links lead to addresses alone."""
    parts = [
        about.publisher,
        title,
        gettext("%(title)s, revision %(number)s", title=days_text(days_in_words(newest)), number=newest.revision)
        if newest is not None
        else "",
    ]
    cited = ". ".join(filter(None, [*parts, days_text(newest.published_on) if newest is not None else ""]))
    return {
        **asdict(about),
        "license_link": link_of(about.license),
        "contact_link": link_of(about.contact),
        "address_link": link_of(about.address),
        "cited": about.citation or f"{cited}.",
    }


def _page_of_all(summaries: Sequence[Summary], about: About) -> str:
    """The page of all releases, those with the latest publications first; without pictures if they would not fit."""
    ordered = sorted(summaries, key=lambda one: one.title)
    ordered.sort(key=lambda one: one.newest.published_on if one.newest is not None else "", reverse=True)
    many = len(ordered) > MOST_RELEASES
    while len((page := _listing(ordered, about, many)).encode()) > MOST_BYTES and ordered:
        many, ordered = True, ordered if not many else ordered[: len(ordered) // 2]
    return page


def _listing(summaries: Sequence[Summary], about: About, many: bool) -> str:
    title = _title_of_all(about)
    with in_language(""):
        english = _title_of_all(about)
    newest = max((summary.newest.published_on for summary in summaries if summary.newest is not None), default="")
    return render(
        "index.html.j2",
        title=title,
        newest=newest,
        json_ld=json_in_page(data_catalogue(english, newest, [_search_entry(summary) for summary in summaries], about)),
        releases=[_summary_entry(summary, many) for summary in summaries],
        many=many,
        about=_about(about, title, None),
        catalogue=CATALOGUE,
        known=any(summary.newest is not None and summary.newest.known for summary in summaries),
    )


def _title_of_all(about: About) -> str:
    if about.publisher:
        return gettext("Tables published by %(publisher)s", publisher=about.publisher)
    return gettext("Published tables")


def _summary_entry(summary: Summary, many: bool) -> dict[str, Any]:
    picture: TotalPicture | None = None if many else total_picture(summary.points)
    return {
        "summary": summary,
        "href": f"{summary.release}/{INDEX}",
        "counted": summary.counted.in_words(),
        "newest": _facts_of(summary.newest) if summary.newest is not None else None,
        "picture": picture,
    }


@dataclass(frozen=True)
class SearchEntry:
    """A release in the words that search engines show; texts are empty where nothing stands or nobody knows.

    `name`: of its folder. `title`: of the newest publication. `words`: what is counted. `version`: the newest period
    and its revision. `modified`: the day of the latest publication. `days`: the first and the last one, `first/last`.
    """

    name: str
    title: str
    words: str
    version: str
    modified: str
    days: str


def dataset(described: SearchEntry, audit: Mapping[str, Any], about: About, files: Sequence[str]) -> dict[str, Any]:
    """A release for its own page; `files` have all current cells, below the folder of the release.

    The audit is of the newest publication; empty if there is none.
    """
    axes = [str(axis.get("column", "")) for axis in audit.get("axes") or [] if isinstance(axis, dict)]
    by = f" by {', '.join(axes)}" if axes else ""
    facts = {"version": described.version, "dateModified": described.modified, "temporalCoverage": described.days}
    return {
        **CONTEXT,
        "@type": "Dataset",
        "name": described.title,
        "identifier": described.name,
        "description": f"{described.words}{by}. {SURE}",
        **_publisher_facts(about, f"{described.name}/{INDEX}"),
        **{name: text for name, text in facts.items() if text},
        "isAccessibleForFree": True,
        "measurementTechnique": "differential privacy",
        **({"variableMeasured": axes} if axes else {}),
        "distribution": [
            {
                "@type": "DataDownload",
                "name": path,
                "contentUrl": about.address_of(f"{described.name}/{path}") or path,
                "encodingFormat": KINDS[path.rpartition(".")[2]],
            }
            for path in files
        ],
    }


def data_catalogue(title: str, modified: str, releases: Sequence[SearchEntry], about: About) -> dict[str, Any]:
    """All releases for the page of all; `modified`: the day of the latest publication, or empty."""
    return {
        **CONTEXT,
        "@type": "DataCatalog",
        "name": title,
        "description": f"Tables of counts about people. {SURE}",
        **_publisher_facts(about, INDEX),
        **({"dateModified": modified} if modified else {}),
        "dataset": [
            {
                "@type": "Dataset",
                "name": release.title,
                "description": f"{release.words}. {SURE}",
                "url": about.address_of(f"{release.name}/{INDEX}") or f"{release.name}/{INDEX}",
            }
            for release in releases
        ],
    }


def _publisher_facts(about: About, path: str) -> dict[str, Any]:
    """Publisher, licence, contact, citation and address, as far as they are known."""
    publisher = {"@type": "Organization", "name": about.publisher}
    if about.contact:
        publisher["contactPoint"] = about.contact
    return {
        **({"url": about.address_of(path)} if about.address_of(path) else {}),
        **({"publisher": publisher, "creator": publisher} if about.publisher else {}),
        **({"license": about.license} if about.license else {}),
        **({"citation": about.citation} if about.citation else {}),
    }


def json_in_page(value: object) -> Markup:
    """JSON in an element `script`: no letter of a text can end it, or begins a comment or another element."""
    text = json.dumps(value, separators=(",", ":"))  # letters beyond ASCII, line ends among them, become numbers
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


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
