"""The reader's door: `index.html` of the public folder, and of every release in it.

One script runs: that of the picker, on the page of a release that has its files. `default-src 'none'` holds elsewhere.

The page of a release is made from its publications, and says at its head what the page of all releases tells of it. So
a publication writes the page of its own release and the page of all, and reads of the other pages the heads alone. Both
are functions of public files and of `about.json`. They are written last: whatever they name is there.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from dphist_pipeline.about_publisher import About, link_of
from dphist_pipeline.files import replace_public
from dphist_pipeline.languages.texts import days_text, gettext, in_language
from dphist_pipeline.publishing._linked_data import Described, data_catalogue, dataset, json_in_page
from dphist_pipeline.publishing._picker_words import picker_words
from dphist_pipeline.publishing._release_history import (
    Told,
    days_in_words,
    history,
    number_in_words,
    revisions,
    told_again,
)
from dphist_pipeline.publishing._total_picture import Point, TotalPicture, total_picture
from dphist_pipeline.publishing.formatting import epsilon_text, shortened
from dphist_pipeline.publishing.manifest import CATALOGUE, CROISSANT, CURRENT, DOWNLOADS, INDEX, is_path
from dphist_pipeline.publishing.pages import render
from dphist_pipeline.shown_below import hidden_in_words, not_drawn

FORM = 3  # of what a page says for the next run that writes it
MOST_BYTES = 2_000_000
MOST_SHOWN = 1200  # publications on the page of a release
MOST_RELEASES = 500  # with a picture; above, pages of all releases are lists
MOST_POINTS, MOST_FILES, MOST_LETTERS = 60, 50, 300
EACH = 2  # one as CSV and one as Parquet
_HEAD = 65_536  # bytes, in which a page says what the page of all releases tells of it
_PICKER = ("picker/script.js", "picker/release.js")
_MADE_FROM = re.compile(rb'"made_from": "([0-9a-f]{32})"')
_ABOUT, _PERIODS = '<script type="application/json" id="about">', '<script type="application/json" id="periods-told">'
_END = "</script>"


class Counted(NamedTuple):
    """What the counts of a release are counts of: parts, which each page words in its own language.

    `what` is as the spec has it, empty for rows; `cap`: how many of each unit count, 0 without a cap; `unit`: as
    readers call it; `is_reported`: contributors made their reports noisy.
    """

    what: str
    cap: int
    unit: str
    is_reported: bool

    @classmethod
    def of(cls, audit: Mapping[str, Any]) -> Counted:
        unit, cap = str(audit.get("privacy_unit", "row")), audit.get("max_rows_per_unit")
        what, called = (
            shortened(str(text), MOST_LETTERS) for text in (audit.get("counted") or "", audit.get("unit_label") or unit)
        )
        return cls(what, int(cap or 0) if unit != "row" else 0, called, audit.get("model") == "local")

    def in_words(self) -> str:
        """In the language of the page."""
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
    `withdrawn`, `superseded`: how many publications were. `files`: with every cell, one as CSV and one as Parquet.
    """

    made_from: str
    release: str
    title: str
    counted: Counted
    periods: int
    newest: Told | None
    withdrawn: int
    superseded: int
    points: list[Point]
    files: list[str]
    picker: bool


def write_index(public: Path, scratch: Path, anew: bool = False) -> None:
    """Writes the pages of releases of which something changed, then the page of all; see `DerivedFiles.write_index`."""
    about, releases = About.of(public), _releases(public)
    for folder in releases:
        mark = _mark(folder, about)
        if anew or _marked(folder) != mark:
            page = _release_page(folder, mark, about, {} if anew else _known(folder))
            replace_public(folder / INDEX, page, scratch)
    summaries = [summary for folder in releases if (summary := _summary(folder)) is not None]
    with in_language(about.language):
        text = _page_of_all(summaries, about).encode()
    if not (public / INDEX).is_file() or (public / INDEX).read_bytes() != text:
        replace_public(public / INDEX, text, scratch)


def tells(public: Path, folder: Path) -> bool:
    """Whether both pages tell a publication as it is now."""
    release = folder.parents[1]
    mark = _mark(release, About.of(public))
    with suppress(OSError):
        return _marked(release) == mark and f'data-made-from="{mark}"'.encode() in (public / INDEX).read_bytes()
    return False


def _releases(public: Path) -> list[Path]:
    """The folders of releases of which anything was published."""
    return sorted({path.parent for path in public.glob("*/period=*") if is_path(f"{path.parent.name}/{INDEX}")})


def _mark(release: Path, about: About) -> str:
    """A digest that changes with what a page is made from: of the audits of publications, the sizes alone are read."""
    current = release / CURRENT
    listed = hashlib.sha256(current.read_bytes()).hexdigest() if current.is_file() else ""
    audits = [f"{path.parent.name}/{path.name}/{(path / 'audit.json').stat().st_size}" for path in revisions(release)]
    said = {name: text for name, text in asdict(about).items() if text or name != "language"}
    told = [FORM, version("dphist-pipeline"), said, listed, sorted(audits), _picker(release), _downloads(release)]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:32]


def _picker(release: Path) -> dict[str, Any]:
    """What the page says of the picker's files: a mark that changes with them, and their bytes; empty without them."""
    with suppress(OSError):
        weight = sum((release / path).stat().st_size for path in _PICKER)
        with (release / _PICKER[-1]).open("rb") as file:
            made_from = _MADE_FROM.search(file.readline(_HEAD))
        return {"mark": made_from[1].decode(), "weight": weight} if made_from else {}
    return {}


def _downloads(release: Path) -> dict[str, list[str]]:
    """The files to download of each publication that has some, by its place below the folder of the release."""
    found: dict[str, list[str]] = {}
    for file in sorted(release.glob(f"{DOWNLOADS}/period=*/revision=*/*")):
        path = file.relative_to(release).as_posix()
        if is_path(f"{release.name}/{path}") and file.stat().st_size:
            found.setdefault(file.parent.relative_to(release / DOWNLOADS).as_posix(), []).append(path)
    return found


def _marked(release: Path) -> str:
    found = _summary(release)
    return found.made_from if found is not None else ""


def _summary(release: Path) -> Summary | None:
    """What the head of a release's page says; None without a page of this form."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        with (release / INDEX).open("rb") as file:
            told = _block(file.read(_HEAD).decode(errors="replace"), _ABOUT)
        newest = told.pop("newest")
        if told.pop("form") != FORM:
            return None
        told["newest"] = next(iter(told_again([newest]).values())) if newest is not None else None
        points = [_point(*one) for one in told.pop("points")]
        if any(not is_path(f"{release.name}/{path}") for path in told["files"]):
            return None
        counts = [told[name] for name in ("periods", "withdrawn", "superseded")]
        counted = Counted(*told.pop("counted"))
        texts = [*(told[name] for name in ("made_from", "title")), counted.what, counted.unit]
        counts.append(counted.cap)
        if (
            type(told["picker"]) is bool
            and all(type(count) is int for count in counts)
            and all(isinstance(text, str) for text in texts)
        ):
            return Summary(**told, points=points, counted=counted) if told["release"] == release.name else None
    return None


def _point(day: str, total: float, low: float | None, high: float | None) -> Point:
    ends = [None if end is None else float(end) for end in (low, high)]
    return date.fromisoformat(day).isoformat(), float(total), ends[0], ends[1]


def _known(release: Path) -> Mapping[tuple[str, int], Told]:
    """What the page of a release tells of its publications; empty without a page of this form."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        told = _block((release / INDEX).read_text(encoding="utf-8"), _PERIODS)
        return told_again(told["publications"]) if told["form"] == FORM else {}
    return {}


def _block(page: str, begins: str) -> dict[str, Any]:
    """The JSON of a page; ValueError if it has none."""
    content = page.partition(begins)[2].partition(_END)
    found = json.loads(content[0] if content[1] else "")
    if not isinstance(found, dict):
        raise ValueError(begins)
    return found


def _release_page(folder: Path, mark: str, about: About, known: Mapping[tuple[str, int], Told]) -> str:
    """The page of one release, with as many of its newest publications as fit."""
    told = history(folder, known)
    most = MOST_SHOWN
    newest = max((one for one in told if one.stands), key=lambda one: (one.period, one.revision), default=None)
    with in_language(about.language_of(_audit(folder / newest.place) if newest is not None else {})):
        while len((page := _with_publications(folder, mark, about, told, most)).encode()) > MOST_BYTES and most > 1:
            most //= 2
    return page


def _with_publications(folder: Path, mark: str, about: About, told: Sequence[Told], most: int) -> str:
    current = {one.period: one for one in reversed(told) if one.stands}  # the latest revision comes last
    standing = sorted(current.values(), key=lambda one: one.period, reverse=True)
    newest = standing[0] if standing else None
    audit = _audit(folder / (newest or told[0]).place) if told else {}
    title = shortened(str(audit.get("title") or folder.name), MOST_LETTERS)
    files, picker = _latest_files(folder), _picker(folder) if newest is not None else {}
    summary = Summary(
        made_from=mark,
        release=folder.name,
        title=title,
        counted=Counted.of(audit),
        periods=len(current),
        newest=newest,
        withdrawn=sum(bool(one.withdrawn_on) for one in told),
        superseded=sum(one.stands and current[one.period] != one for one in told),
        points=_points(standing, MOST_POINTS),
        files=files if len(files) == EACH else [],
        picker=bool(picker),
    )
    shown, downloads = told[:most], _downloads(folder)
    # Where periods have different limits, the strictest that hid something; else the newest.
    newest_limit = next((one.limit for one in told if one.limit), 0)
    limit = max((one.limit for one in told if one.below), default=newest_limit)
    not_shown = max((one.limit for one in standing[:most] if one.below), default=0)
    return render(
        "release_index.html.j2",
        summary=summary,
        title=title,
        counted=summary.counted.in_words(),
        about_block=json_in_page({"form": FORM, **asdict(summary)}),
        periods_block=json_in_page({"form": FORM, "publications": [_lean(one) for one in shown]}),
        json_ld=json_in_page(dataset(_described(summary), audit, about, files)),
        newest=_shown(newest) if newest is not None else None,
        picker=picker,
        picker_words=json_in_page(picker_words(about)),
        promise=_promise(audit),
        rows=[_row(one, current.get(one.period)) | {"downloads": downloads.get(one.place, [])} for one in shown],
        downloads=downloads.get(newest.place, []) if newest is not None else [],
        left_out=len(told) - len(shown),
        hidden=hidden_in_words(limit) if limit else "",
        not_drawn=not_drawn(not_shown) if not_shown else "",
        alarming=_alarm(told, newest),
        revised=[_shown(one) for one in told if one.stands and one.reason and current[one.period] == one][:5],
        picture=total_picture(_points(standing[:most], most)),
        files=files,
        sql_name="_".join([folder.name, *list(audit.get("tables") or [])[:1]]),
        histogram=_histogram(folder, newest),
        about=_about(about, title, newest),
    )


def _lean(told: Told) -> dict[str, Any]:
    """The fields of a publication that differ from their defaults: pages stay small."""
    empty = asdict(Told("", 0))
    return {name: value for name, value in asdict(told).items() if value != empty[name]}


def _audit(published: Path) -> dict[str, Any]:
    """The audit of a publication whose files were checked before; empty if it cannot be read."""
    with suppress(OSError, ValueError, RecursionError):
        read = json.loads((published / "audit.json").read_bytes())
        return read if isinstance(read, dict) else {}
    return {}


def _described(summary: Summary) -> Described:
    """A release for search engines, in English, since what stands beside it is."""
    newest, points = summary.newest, summary.points
    last = days_in_words(newest).rpartition(" to ")[2] if newest is not None and newest.first else ""
    with in_language(""):
        counted = summary.counted.in_words()
    return Described(
        summary.release,
        summary.title,
        f"{summary.title}: {counted}",
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
    unit = shortened(str(audit.get("unit_label") or unit), 100) if unit != "row" else unit
    return {"unit": unit, "epsilon": epsilon, "model": str(audit.get("model", ""))}


def _points(standing: Iterable[Told], most: int) -> list[Point]:
    """The newest totals, in order of time."""
    known = [(one.first, one.total, one.lower, one.upper) for one in standing if one.first and one.total is not None]
    return [(first, total, low, high) for first, total, low, high in reversed(known[:most]) if total is not None]


def _shown(told: Told) -> dict[str, Any]:
    """A publication as templates show it."""
    return {**asdict(told), "days": days_in_words(told), "number": number_in_words(told), "place": told.place}


def _row(told: Told, current: Told | None) -> dict[str, Any]:
    """A line in the list of publications."""
    state = "withdrawn" if told.withdrawn_on else "damaged" if told.damaged else ""
    if not state and current is not None and current.revision != told.revision:
        state = "superseded"
    return {**_shown(told), "state": state, "by": current.revision if current is not None else 0}


def _alarm(told: Sequence[Told], newest: Told | None) -> list[dict[str, Any]]:
    """Withdrawn publications of which nothing newer stands in the same period, five at most."""
    standing = {one.period for one in told if one.stands}
    return [_shown(one) for one in told if one.withdrawn_on and one.period not in standing][:5]


def _latest_files(folder: Path) -> list[str]:
    """Paths of files with every current cell, below the folder of the release; the first ones of many."""
    found = sorted(path.relative_to(folder).as_posix() for path in folder.glob("latest/**/cells.*"))
    return [path for path in found if is_path(f"{folder.name}/{path}")][:MOST_FILES]


def _histogram(folder: Path, newest: Told | None) -> str:
    """The path of the newest table below the folder of the release; empty without one, and for families."""
    path = f"{newest.place}/histogram.parquet" if newest is not None else ""
    return path if path and (folder / path).is_file() else ""


def _about(about: About, title: str, newest: Told | None) -> dict[str, str]:
    """What pages say of the publisher; links lead to addresses alone."""
    said = [
        about.publisher,
        title,
        gettext("%(title)s, revision %(number)s", title=days_text(days_in_words(newest)), number=newest.revision)
        if newest is not None
        else "",
    ]
    cited = ". ".join(filter(None, [*said, days_text(newest.published_on) if newest is not None else ""]))
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
    newest = max((one.newest.published_on for one in summaries if one.newest is not None), default="")
    return render(
        "index.html.j2",
        title=title,
        newest=newest,
        json_ld=json_in_page(data_catalogue(english, newest, [_described(one) for one in summaries], about)),
        releases=[_listed(one, many) for one in summaries],
        many=many,
        about=_about(about, title, None),
        **{"catalogue": CATALOGUE, "croissant": CROISSANT},
    )


def _title_of_all(about: About) -> str:
    if about.publisher:
        return gettext("Tables published by %(publisher)s", publisher=about.publisher)
    return gettext("Published tables")


def _listed(summary: Summary, many: bool) -> dict[str, Any]:
    """A release on the page of all."""
    picture: TotalPicture | None = None if many else total_picture(summary.points)
    return {
        "summary": summary,
        "href": f"{summary.release}/{INDEX}",
        "counted": summary.counted.in_words(),
        "newest": _shown(summary.newest) if summary.newest is not None else None,
        "picture": picture,
    }
