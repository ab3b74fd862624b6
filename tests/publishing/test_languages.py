"""Every text of a page stands in the file of each language, and a page tells nothing in another one than its own."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pytest
from carded import FACTS, VOID, card, made, without_bars
from collected_texts import PLURALS, collected, path_of
from markupsafe import Markup
from test_ledger_page import report

from dphist_pipeline.base.about_publisher import About
from dphist_pipeline.base.languages import texts
from dphist_pipeline.base.languages.texts import (
    LANGUAGES,
    days_text,
    gettext,
    in_language,
    ngettext,
    number_text,
    read_texts,
    whole,
)
from dphist_pipeline.publishing import rendering
from dphist_pipeline.publishing._card import release_card
from dphist_pipeline.publishing._card_cover import PublicationNeighbours
from dphist_pipeline.publishing._index_pages import write_index
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.pages import ledger_page, picture_page
from dphist_pipeline.publishing.picture_sums import Grid
from dphist_pipeline.publishing.pictures import Picture
from dphist_pipeline.publishing.published_files import CARD, PublishedFolder, digest_of, read_audit
from dphist_pipeline.spec.axes import domain_of

OTHERS = sorted(PLURALS)
AGE: dict[str, Any] = {"column": "age", "start": "0", "stop": "20000", "width": "2500", "above": True}
WARD: dict[str, Any] = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
DAY: dict[str, Any] = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-02-02", "other": True}
PLACE = re.compile(r"%\((\w+)\)s")
TAG = re.compile(r"<[^>]+>")
WORD = re.compile(r"[^\W\d_]{2,}")
# Words of the data and the names in it; all else that a reader sees is a text of ours.
DATA = {
    "age",
    "ward",
    "day",
    "surgery",
    "medicine",
    "wards",
    "patient",
    "dphist",
    "pipeline",
    "python",
    "health",
    "Ada",
}


def test_a_translation_has_the_values_and_elements_of_its_text() -> None:
    for code in OTHERS:
        known = read_texts(path_of(code))
        for context, forms in collected():
            told = known[context, forms[0]]
            assert len(told) == len(forms)
            for one in told:
                assert set(PLACE.findall(one)) == set(PLACE.findall(" ".join(forms))), one
                assert TAG.findall(one) == TAG.findall(forms[0]), one
                if "%(" in one or "%%" in forms[0]:
                    assert "%" not in PLACE.sub("", one).replace("%%", ""), one


class Words(HTMLParser):
    """What a reader sees or hears of a page, but for code and what is marked as English."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.skipped: list[bool] = []
        self.told: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag != "html" and tag not in VOID:
            is_code = tag in ("code", "style", "script", "bdi", "q")
            self.skipped.append(is_code or found.get("lang") == "en")
        self.told += [found["aria-label"] or ""] if "aria-label" in found and tag != "g" else []

    def handle_endtag(self, tag: str) -> None:
        if tag != "html":
            self.skipped.pop()

    def handle_data(self, data: str) -> None:
        if not any(self.skipped):
            self.told.append(data)


class Marked(dict[tuple[str, str], tuple[str, ...]]):
    """Translations that are the English texts between brackets."""

    def get(self, key: Any, default: Any = None) -> Any:
        return marks().get(key, default)


@cache
def marks() -> dict[tuple[str, str], tuple[str, ...]]:
    return {(context, forms[0]): tuple(f"⟦{form}⟧" for form in forms) for context, forms in collected()}


@pytest.fixture
def marked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Texts of ours between brackets, and every name from outside in an element that tells it from them."""
    monkeypatch.setattr(texts, "_translations", lambda code: Marked())
    rendering._environment.cache_clear()  # macros keep the filter with which they were first loaded
    rendering._environment().filters["bdi"] = lambda text: Markup("<bdi>{}</bdi>").format(text)
    yield
    rendering._environment.cache_clear()


def outside(page: str) -> set[str]:
    """The words of a page that stand in no text of ours."""
    told = "\n".join(Words(page).told)
    while told != (told := re.sub(r"⟦[^⟦⟧]*⟧", " ", told)):
        pass
    assert "⟦" not in told and "⟧" not in told
    return {word for word in WORD.findall(told) if word not in DATA}


def german(axes: list[dict[str, Any]], estimate: Any = None, code: str = "de", **changes: Any) -> str:
    found = estimate or made(axes)
    return release_card(
        found,
        {
            **FACTS,
            "axes": axes,
            "cells": found.domain.cells,
            "language": code,
            "noise": texts.mark_text(NOISE),
            **changes,
        },
    )


NOISE = "discrete Laplace, P(k) proportional to exp(-|k| / noise_scale); for choices the one-sided half of it"
RICH: Mapping[str, Any] = {
    "looked": [{"entry": 3, "at": "2026-01-02", "by": "Ada", "reason": ""}],
    "allowed": [{"entry": 4, "kind": "source", "by": []}],
    **{"required_checks": ["age"], "publish": "if_plausible", "engine": "spark", "engine_version": "age"},
    "query": {"by_row": False, "sha256": "age"},
}


@pytest.mark.slow
@pytest.mark.parametrize("axes", [[AGE], [AGE, WARD], [WARD, DAY, AGE]])
def test_a_card_tells_nothing_but_texts_of_the_files(axes: list[dict[str, Any]], marked: None) -> None:
    spread = np.arange(float(np.prod([by_hand.estimate([axis]).domain.cells for axis in axes])))
    shape = by_hand.estimate(axes).domain.shape
    for estimate in (made(axes), made(axes, spread.reshape(shape), off=3.0), without_bars(axes)):
        for unit in ({}, {"privacy_unit": "row", "max_rows_per_unit": 1}, {"neighbours": "substitute", **RICH}):
            page = german(axes, estimate, **unit)
            assert outside(page) == set(), unit
            assert '<html lang="de">' in page


def test_bins_of_a_quality_table_and_hidden_figures_are_in_the_cards_language(marked: None) -> None:
    few = np.linspace(-2.0, 3.0, by_hand.estimate([AGE]).domain.cells)
    cut = {"estimate": 900.0, "ci_lower": 890.0, "ci_upper": 910.0, "noise_scale": 3.0}
    bins = enumerate(ReaderAxis(domain_of([AGE]).axes[0]).labels)
    rows: list[dict[str, Any]] = [{"statistic": "cut", "axis": None, "position": None, "category": None, **cut}]
    rows += [{"statistic": "cut", "axis": "age", "position": at, "category": name, **cut} for at, name in bins]
    facts = {**FACTS, "axes": [AGE], "cells": few.size, "language": "de", "noise": texts.mark_text(NOISE)}
    for show_below in (None, 10):
        page = release_card(made([AGE], few), {**facts, "show_below": show_below}, rows)
        assert outside(page) == set()
        assert ("⟦not shown beside a figure below 10⟧" in page) is (show_below == 10)
        assert "⟦What the cap cut of the first" in page and "⟦2500 to under 5000⟧" in page and "⟦20000 or more⟧" in page


def test_lists_of_releases_and_the_report_tell_nothing_but_texts_of_the_files(tmp_path: Path, marked: None) -> None:
    public = published(tmp_path, "de", unit_label="patient", counted="age")
    for page in (public / "index.html", public / "wards" / "index.html"):
        assert outside(page.read_text(encoding="utf-8")) <= {"All", "Card", "CSV", "Parquet", "SQL"}
    with in_language("de"):
        page = ledger_page(report(accounts=[], operators=["Ada"]))
        picture = Picture.of_grid(Grid.of_all(made([AGE]).domain, made([AGE]).values, made([AGE]).unbiased))
        assert outside(page) <= {"UTC"} and outside(picture_page(picture, "age")) == set()


def test_the_picture_of_a_card_writes_numbers_as_its_language_does() -> None:
    page = german([AGE], made([AGE], np.full(9, 12_000.0)))
    assert ">12.000<" in page and ">12,000<" not in page and "gezählte Zeilen" in page
    assert "2.500\u00a0bis\u00a0unter\u00a05.000" in page


@pytest.mark.parametrize(
    ("code", "number", "small", "days", "many"),
    [
        ("en", "1,234,567", "0.5", "2026-03-02 to 2026-03-08, 2026-03", "0 are good"),
        ("de", "1.234.567", "0,5", "02.03.2026 bis 08.03.2026, 03.2026", "0 sind gut"),
        ("fr", "1\u202f234\u202f567", "0,5", "02/03/2026 au 08/03/2026, 03/2026", "0 a une bonne fiabilité"),
        ("xx", "1,234,567", "0.5", "2026-03-02 to 2026-03-08, 2026-03", "0 are good"),
    ],
)
def test_numbers_days_and_plurals_are_those_of_the_language(
    code: str, number: str, small: str, days: str, many: str
) -> None:
    with in_language(code):
        assert (whole(1_234_567), number_text("0.5")) == (number, small)
        assert days_text("2026-03-02 to 2026-03-08, 2026-03") == days
        assert days_text("2026-99-99") == "2026-99-99"
        assert ngettext("%(number)s is good", "%(number)s are good", 0, number=0) == many
    assert gettext("Axes") == "Axes"


SAID = {
    "the total rose from about 1,900 to about 3,800: was anything delivered twice?": (
        "die Gesamtzahl ist von etwa 1.900 auf etwa 3.800 gestiegen: Wurde etwas doppelt geliefert?"
    ),
    "the total fell: are all records there?": "die Gesamtzahl ist gefallen: Sind alle Datensätze da?",
    "north fell from about 80 to about 9 while other rose by as much: was a code renamed?": (
        "north ist von etwa 80 auf etwa 9 gefallen, während Sonstige um ebenso viel gestiegen ist: "
        "Wurde ein Code umbenannt?"
    ),
    "north fell from about 80 to about 9 (and 2 more of county), and the total by as much: was a code renamed?"
    "; values of sex and of ward changed, too": (
        "north ist von etwa 80 auf etwa 9 gefallen (und 2 weitere von county), und die Gesamtzahl um ebenso viel: "
        "Wurde ein Code umbenannt?; auch Werte von sex und ward haben sich verändert"
    ),
    "other of county rose from about 0 to about 50: is there a new code, or a wrong one?": (
        "Sonstige von county ist von etwa 0 auf etwa 50 gestiegen: Gibt es einen neuen Code oder einen falschen?"
    ),
}


def test_what_rings_is_said_in_the_language_of_the_card_or_marked_as_english() -> None:
    changes = [
        {"axis": axis, "value": value, "before": 80.0, "now": 9.0}
        for axis, value in (("", ""), ("county", "north"), ("county", "other"), ("county", "north fell"))
    ]
    for says, told in SAID.items():
        page = german([AGE], compared={"periods": [], "changes": changes, "says": says})
        assert f"{told}</strong>" in html.unescape(page), told
    for odd in ("north fell from about 80 to about 9: who knows?", "south fell: was a code renamed?"):
        page = german([AGE], compared={"periods": [], "changes": changes, "says": odd})
        assert f'<span lang="en">{odd}' in html.unescape(page)


def test_a_page_in_english_is_the_one_without_a_language() -> None:
    assert german([AGE, WARD], code="en") == german([AGE, WARD], code="") == german([AGE, WARD], code="xx")


def test_the_spec_chooses_the_language_else_the_office() -> None:
    office = PublicationNeighbours(About(language="fr"))
    found = made([WARD])
    facts = {**FACTS, "axes": [WARD], "cells": found.domain.cells}
    assert '<html lang="fr">' in release_card(found, facts, around=office)
    assert '<html lang="de">' in release_card(found, {**facts, "language": "de"}, around=office)
    assert '<html lang="en">' in card([WARD])


def published(folder: Path, code: str, **facts: Any) -> Path:
    """A public folder whose office has a language, with three publications, and with the pages of releases."""
    public, scratch = folder / "public", folder / "scratch"
    scratch.mkdir(parents=True)
    (folder / "about.json").write_text(json.dumps({"language": code}))
    for week, revision in (("2026-03-02", 1), ("2026-03-02", 2), ("2026-03-09", 1)):
        days = {
            "period_start": f"{week}T00:00:00+01:00",
            "period_end": f"2026-03-{int(week[-2:]) + 7:02d}T00:00:00+01:00",
        }
        told: dict[str, Any] = {**days, "published_on": "2026-03-30", "epsilon": "1/6", **facts}
        by_hand.publish(public, by_hand.estimate([WARD]), [WARD], "wards", week, revision, **told)
    DerivedFiles(public).write_current_files(scratch)
    DerivedFiles(public).set_notices(scratch)
    write_index(public, scratch)
    return public


def test_each_page_words_what_is_counted_in_its_own_language(tmp_path: Path) -> None:
    public = published(tmp_path, "fr", language="de", max_rows_per_unit=3, privacy_unit="patient", counted="")
    of_all, of_one = ((public / name / "index.html").read_text(encoding="utf-8") for name in ("", "wards"))
    found = {"de": "höchstens 3 je", "fr": "au plus 3 par"}
    assert found["fr"] in of_all and found["de"] not in of_all
    assert found["de"] in of_one and found["fr"] not in of_one


def test_what_search_engines_read_is_english_in_every_language(tmp_path: Path) -> None:
    english, german = (published(tmp_path / code, code, max_rows_per_unit=3) for code in ("en", "de"))
    for name in ("", "wards"):
        told, other = (
            re.findall(r"<script type=.application/ld.json.>(.*?)</script>", (place / name / "index.html").read_text())
            for place in (english, german)
        )
        assert len(told) == 1 and "at most 3 of each" in told[0] and told == other


def test_the_language_changes_no_file_but_pages(tmp_path: Path) -> None:
    english, french = (published(tmp_path / code, code) for code in ("en", "fr"))
    for path in sorted(path.relative_to(english) for path in english.rglob("*.parquet")):
        assert digest_of(english / path) == digest_of(french / path)
    place = Path("wards/period=2026-03-02/revision=2/deployment.yaml")
    assert (english / place).read_bytes() == (french / place).read_bytes()


@pytest.mark.parametrize(
    ("code", "replaced", "back"), [("de", "Ersetzt durch", "Zurückgezogen"), ("fr", "Remplacée", "Retiré")]
)
def test_marks_are_told_in_the_language_of_the_card_and_come_off(
    tmp_path: Path, code: str, replaced: str, back: str
) -> None:
    public, scratch = published(tmp_path, code, language=code), tmp_path / "scratch"
    first, second = (public / f"wards/period=2026-03-02/revision={number}" for number in (1, 2))
    assert replaced in (first / CARD).read_text(encoding="utf-8")
    assert read_audit(first)["revision"] == 1  # its digest is that of the card without the mark
    PublishedFolder(second).mark_withdrawn({"reason": "wrong", "at": "2026-03-20T00:00:00Z", "entry": 1}, scratch)
    DerivedFiles(public).write_current_files(scratch)
    DerivedFiles(public).set_notices(scratch)
    assert replaced not in (first / CARD).read_text(encoding="utf-8")
    withdrawn = (second / CARD).read_text(encoding="utf-8")
    assert back in withdrawn and days_in(code) in withdrawn and read_audit(second)["withdrawn"]


def days_in(code: str) -> str:
    with in_language(code):
        return days_text("2026-03-20")


def test_a_broken_file_of_translations_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "xx.po"
    path.write_text('msgid "a"\nmsgstr "b"\n\nnonsense\n')
    with pytest.raises(ValueError, match="no line of a file of translations: nonsense"):
        read_texts(path)
    assert {made.code for made in LANGUAGES.values()} == {"en", *OTHERS}
