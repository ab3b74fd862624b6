"""The pages of what is published: what they tell, that no text becomes code, that one release leaves others alone."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date, timedelta
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import by_hand
import carded_reports
import families_by_hand
import numpy as np
import pytest
from by_hand import AGE, WARD

from dphist_pipeline.answering.latest_cells import write_latest_cells
from dphist_pipeline.base.about_publisher import About, link_of
from dphist_pipeline.publishing import _index_pages as index_pages
from dphist_pipeline.publishing import _release_history as release_history
from dphist_pipeline.publishing._index_pages import FORM, shows, total_picture, write_index
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.formatting import shown_number
from dphist_pipeline.publishing.headline_figures import HeadlineFigure
from dphist_pipeline.publishing.public_names import is_path
from dphist_pipeline.publishing.published_files import PublishedFolder, read_audit

WEEKS = ("2026-03-02", "2026-03-09", "2026-03-16")
NOTE = {"reason": "wrong file", "at": "2026-03-20T00:00:00Z", "entry": 1}
HOSTILE = "</script><script>alert(1)</script><!-- \u2028\u2029\u202e & \"quoted\" 'too'"
ABOUT = {
    "publisher": "Office",
    "license": "https://creativecommons.org/licenses/by/4.0/",
    "contact": "data@office.example",
    "address": "https://office.example/counts/",
}


class _Elements(HTMLParser):
    """The elements of a page, each with its attributes, and the texts of scripts by their kind."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str, str]] = []
        self._kind = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._kind = str(dict(attrs).get("type")) if tag == "script" else ""

    def handle_data(self, data: str) -> None:
        if self._kind:
            self.scripts.append((self._kind, data))

    def handle_endtag(self, tag: str) -> None:
        self._kind = ""


@pytest.fixture
def public(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "public"


def publish(public: Path, period: str = WEEKS[0], revision: int = 1, release: str = "weekly", **facts: Any) -> Path:
    values = np.array([1000.0 + revision, 500.0, 7.0])
    days = {} if period == "all" else {"period_start": f"{period}T00:00:00+01:00", "period_end": _after(period)}
    told = {"published_on": "2026-03-30", "title": "Visits", "epsilon": "1/6", **days, **facts}
    made = by_hand.estimate([WARD], values, off=0.0)
    return by_hand.publish(public, made, [WARD], release, period, revision, **told).path


@pytest.mark.parametrize("rules", [{}, {"show_below": 10_000}, {"privacy_unit": "row"}])
@pytest.mark.parametrize("quality", [by_hand.QUALITY, ()])
def test_the_newest_total_says_what_its_error_covers_as_its_card_does(
    public: Path, rules: dict[str, Any], quality: tuple[Any, ...]
) -> None:
    made = replace(by_hand.estimate([WARD], np.array([1000.0, 500.0, 7.0]), off=0.0), quality=quality)
    days = {"period_start": f"{WEEKS[0]}T00:00:00+01:00", "period_end": _after(WEEKS[0])}
    folder = by_hand.publish(public, made, [WARD], "weekly", WEEKS[0], counted="visits", **days, **rules).path
    write_index(public, public.parent / "scratch")
    page, card = (public / "weekly/index.html").read_text(), (folder / "card.html").read_text()
    (covered,) = re.findall(r"<p>(?:±|Visits beyond )[^<]*</p>", card)
    assert covered in page
    assert ("beyond 1 of each patient are not counted" in page) == ("privacy_unit" not in rules)


def _after(period: str) -> str:
    return f"{date.fromisoformat(period) + timedelta(days=7)}T00:00:00+01:00"


def written(public: Path) -> Path:
    """As a publication does it, without the catalogue."""
    scratch = public.parent / "scratch"
    DerivedFiles(public).write_current_files(scratch)
    write_latest_cells(public, scratch)
    write_index(public, scratch)
    return public


def page(public: Path, release: str = "") -> str:
    return (public / release / "index.html").read_text(encoding="utf-8")


def linked_data(text: str) -> dict[str, Any]:
    (found,) = (data for kind, data in _Elements(text).scripts if kind == "application/ld+json")
    read: dict[str, Any] = json.loads(found)
    return read


def test_the_page_of_all_has_the_newest_number_of_each_release_and_links(public: Path) -> None:
    for week in WEEKS:
        publish(public, week)
    publish(public, "all", release="beds", title="Beds")
    text = page(written(public))
    assert text.count("1,508\u00a0±\u00a0") == 2
    assert text.index("Beds</a></h2>") < text.index("Visits</a></h2>")
    assert "2026-03-16</span> to" in text and "all records" in text
    for href in ("weekly/index.html", f"weekly/period={WEEKS[2]}/revision=1/card.html", "weekly/latest/cells.csv"):
        assert f'href="{href}"' in text and (public / href).is_file()
    assert 'href="catalog.duckdb"' in text


def test_every_link_within_a_page_leads_to_a_file_or_a_heading(public: Path) -> None:
    publish(public, WEEKS[0])
    publish(public, WEEKS[0], 2, reason="late records")
    written(public)
    later = {"catalog.duckdb"}  # made by a layer above
    for folder in (public, public / "weekly"):
        elements = _Elements((folder / "index.html").read_text(encoding="utf-8")).found
        ids = {attributes.get("id") for _, attributes in elements}
        for href in [str(attributes["href"]) for tag, attributes in elements if tag == "a"]:
            if href.startswith("#"):
                assert href[1:] in ids
            elif Path(href).name not in later:
                file, _, anchor = href.partition("#")
                assert (folder / file).is_file(), href
                assert not anchor or f'id="{anchor}"' in (folder / file).read_text(encoding="utf-8"), href


def test_a_release_tells_its_revisions_with_reasons_and_what_was_withdrawn(public: Path) -> None:
    publish(public, WEEKS[0])
    publish(public, WEEKS[0], 2, reason="late records")
    gone = publish(public, WEEKS[1])
    PublishedFolder(gone).mark_withdrawn(NOTE, public.parent / "scratch")
    text = page(written(public), "weekly")
    assert "superseded by revision 2" in text and text.count("late records") >= 2
    assert "Withdrawn: do not use" in text and "withdrawn on 2026-03-20" in text and "wrong file" in text
    assert "1,509\u00a0±" in text
    assert "1 superseded" in page(public) and "1 withdrawn" in page(public)


def test_a_release_without_a_publication_that_stands_says_so(public: Path) -> None:
    PublishedFolder(publish(public)).mark_withdrawn(NOTE, public.parent / "scratch")
    written(public)
    assert "No publication of this release stands" in page(public)
    assert "Withdrawn: do not use" in page(public, "weekly") and "1,508" not in page(public, "weekly")


def test_texts_from_outside_stay_texts(public: Path) -> None:
    (public.parent / "about.json").write_text(json.dumps(dict.fromkeys([*ABOUT, "citation", "notice"], HOSTILE)))
    publish(public, title=HOSTILE, privacy_unit=HOSTILE)
    PublishedFolder(publish(public, WEEKS[1], title=HOSTILE)).mark_withdrawn(
        {**NOTE, "reason": HOSTILE}, public.parent / "scratch"
    )
    publish(public, revision=2, title=HOSTILE, reason=HOSTILE, privacy_unit=HOSTILE)
    written(public)
    for text in (page(public), page(public, "weekly")):
        read = _Elements(text)
        kinds = {attributes.get("type") for tag, attributes in read.found if tag == "script"}
        assert kinds <= {"application/ld+json", "application/json"} and "alert" not in {tag for tag, _ in read.found}
        assert not [name for _, attributes in read.found for name in attributes if name.startswith("on")]
        assert not set("\u2028\u2029\u202e") & set(text) and "<!--" not in text
        assert all(json.loads(data) for _, data in read.scripts)
        assert HOSTILE.partition("<!")[0] in json.dumps([json.loads(data) for _, data in read.scripts])


def test_the_publishers_notice_stands_on_top_of_every_page(public: Path) -> None:
    publish(public)
    (public.parent / "about.json").write_text(json.dumps({"notice": "These people are invented."}))
    written(public)
    for text in (page(public), page(public, "weekly")):
        assert "invented" in text.partition("</header>")[0]


def test_a_page_runs_no_script_and_loads_nothing(public: Path) -> None:
    publish(public)
    (public.parent / "about.json").write_text(json.dumps(ABOUT))
    written(public)
    for text in (page(public), page(public, "weekly")):
        assert "default-src 'none'" in text
        loading = {"src", "srcset", "data", "action", "poster"}
        assert not [tag for tag, attributes in _Elements(text).found if loading & attributes.keys() or tag == "link"]
        assert not re.search(r"url\(|@import", text)


def test_search_engines_read_a_dataset_with_publisher_licence_and_addresses(public: Path) -> None:
    (public.parent / "about.json").write_text(json.dumps(ABOUT))
    publish(public, WEEKS[0])
    publish(public, WEEKS[1])
    one = linked_data(page(written(public), "weekly"))
    assert (one["@type"], one["name"], one["license"]) == ("Dataset", "Visits", ABOUT["license"])
    assert len(one["description"]) >= 50
    assert one["temporalCoverage"] == "2026-03-02/2026-03-15" and one["dateModified"] == "2026-03-30"
    assert one["distribution"][0]["contentUrl"] == "https://office.example/counts/weekly/latest/cells.csv"
    every = linked_data(page(public))
    assert every["@type"] == "DataCatalog" and every["publisher"]["name"] == "Office"
    assert every["dataset"][0]["url"] == "https://office.example/counts/weekly/index.html"
    assert 'href="mailto:data@office.example"' in page(public)


@pytest.mark.parametrize("text", ["javascript:alert(1)", "data:text/html,x", "https://a b", "//x", "a@b@c", ""])
def test_only_addresses_become_links(text: str) -> None:
    assert link_of(text) == "" and About(address=text).address_of("x") == ""


@pytest.mark.parametrize("content", [b"", b"[]", b'{"publisher": 3}', b"\xff", b"[" * 100_000])
def test_what_an_operator_wrote_never_fails_a_publication(public: Path, content: bytes) -> None:
    (public.parent / "about.json").write_bytes(content)
    publish(public)
    assert "Visits" in page(written(public))


def test_a_publication_leaves_the_pages_and_periods_of_others_alone(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for week in WEEKS[:2]:
        publish(public, week)
        publish(public, week, release="loans")
    written(public)
    before = (public / "loans/index.html").stat()
    read: list[str] = []
    monkeypatch.setattr(release_history, "read_audit", lambda folder: read.append(str(folder)) or read_audit(folder))
    new = publish(public, WEEKS[2])
    assert not shows(public, new)
    written(public)
    assert read == [str(new)] and shows(public, new)
    assert (public / "loans/index.html").stat() == before


def test_pages_that_grew_have_the_bytes_of_those_made_anew(public: Path) -> None:
    for week in WEEKS:
        publish(public, week)
        written(public)
    grown = [page(public), page(public, "weekly")]
    write_index(public, public.parent / "scratch", anew=True)
    assert [page(public), page(public, "weekly")] == grown


@pytest.mark.parametrize("damage", ["", "<html>", '{"form":1}', "NaN"])
def test_a_page_that_somebody_damaged_is_made_anew(public: Path, damage: str) -> None:
    published = publish(public)
    right = page(written(public), "weekly")
    broken = right.replace(f'"form":{FORM}', '"form":1', 1) if damage == '{"form":1}' else damage
    (public / "weekly/index.html").write_text(broken)
    assert not shows(public, published)
    assert page(written(public), "weekly") == right


def test_a_number_that_is_none_in_a_page_is_read_again(public: Path) -> None:
    publish(public)
    right = page(written(public), "weekly")
    told = re.sub(r'"total":[0-9.]+', '"total":"<b>1</b>"', right.replace('"made_from":"', '"made_from":"0', 1))
    (public / "weekly/index.html").write_text(told)
    assert page(written(public), "weekly") == right


def test_a_run_that_was_killed_before_the_page_of_all_is_finished(public: Path, monkeypatch: Any) -> None:
    published = publish(public)
    with monkeypatch.context() as patch:
        patch.setattr(index_pages, "_page_of_all", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            written(public)
    assert (public / "weekly/index.html").is_file() and not shows(public, published)
    assert shows(written(public), published)


def test_damaged_files_are_told_and_stop_no_page(public: Path) -> None:
    bad = publish(public)
    publish(public, revision=2, reason="late")
    DerivedFiles(public).write_current_files(public.parent / "scratch")
    (bad / "histogram.parquet").write_bytes(b"x")
    text = page(written(public), "weekly")
    assert "its files are not those that were published" in text and "1,509\u00a0±" in text


def test_what_was_withdrawn_after_it_was_superseded_changes_the_page(public: Path) -> None:
    first = publish(public)
    publish(public, revision=2, reason="late")
    written(public)
    PublishedFolder(first).mark_withdrawn(NOTE, public.parent / "scratch")
    assert "withdrawn on" in page(written(public), "weekly")


def test_a_long_history_keeps_its_pages_below_two_megabytes(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for week in WEEKS:
        publish(public, week)
    monkeypatch.setattr(index_pages, "MOST_BYTES", len(page(written(public), "weekly").encode()) - 1)
    write_index(public, public.parent / "scratch", anew=True)
    text, of_year = page(public, "weekly"), (public / "weekly/periods-2026.html").read_text(encoding="utf-8")
    assert len(text.encode()) <= index_pages.MOST_BYTES and 'href="periods-2026.html"' in text
    assert WEEKS[2] in text and WEEKS[0] in of_year
    monkeypatch.setattr(index_pages, "MOST_BYTES", len(of_year.encode()) - 1)
    write_index(public, public.parent / "scratch", anew=True)
    assert "older publications are not listed" in (public / "weekly/periods-2026.html").read_text(encoding="utf-8")


YEARS = ("2024-12-30", "2025-01-06", "2025-01-13", "2026-03-02", "2026-03-09")


def test_earlier_years_have_pages_that_stay_as_they_were(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_pages, "MOST_LISTED", 2)
    for period in YEARS[:4]:
        publish(public, period)
        written(public)
    names = ["periods-2024.html", "periods-2025.html"]
    assert [path.name for path in sorted(public.glob("weekly/periods-*.html"))] == names
    before = [(public / "weekly" / name).stat().st_ino for name in names]
    text = page(public, "weekly")
    for period in YEARS[:4]:  # where a card leads to the period before
        assert text.count(f'id="period-{period}"') == 1
    assert [text.count(f"period={period}/revision=1/card.html") > 0 for period in YEARS[:4]] == [False] * 2 + [True] * 2
    older = [(public / "weekly" / name).read_text(encoding="utf-8") for name in names]
    assert [[f'id="period-{period}"' in text for period in YEARS[:4]] for text in older] == [
        [True, False, False, False],
        [False, True, True, False],
    ]
    read: list[str] = []
    monkeypatch.setattr(release_history, "_total", lambda folder, _: read.append(folder.parent.name) or {})
    publish(public, YEARS[4])
    written(public)
    assert read == [f"period={YEARS[4]}"], "what pages of years tell is not read again"
    assert [(public / "weekly" / name).stat().st_ino for name in names] == before
    assert all(is_path(path) for path, _ in DerivedFiles(public).there())
    assert {f"weekly/{name}" for name in names} <= {path for path, _ in DerivedFiles(public).there()}


def test_what_changes_in_an_earlier_year_changes_its_page(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_pages, "MOST_LISTED", 1)
    first = publish(public, YEARS[0])
    publish(public, WEEKS[0])
    written(public)
    of_year = public / "weekly/periods-2024.html"
    publish(public, YEARS[0], 2, reason="late")
    assert "superseded by revision 2" in page(written(public), "weekly") + of_year.read_text(encoding="utf-8")
    assert page(public, "weekly").count('id="superseded"') == 1
    PublishedFolder(first).mark_withdrawn(NOTE, public.parent / "scratch")
    written(public)
    assert "withdrawn on" in of_year.read_text(encoding="utf-8")
    grown = [page(public, "weekly"), of_year.read_text(encoding="utf-8")]
    write_index(public, public.parent / "scratch", anew=True)
    assert [page(public, "weekly"), of_year.read_text(encoding="utf-8")] == grown
    # Fewer publications than the first page lists: the page of the year stays right.
    monkeypatch.setattr(index_pages, "MOST_LISTED", 104)
    publish(public, YEARS[0], 3, reason="once more")
    written(public)
    assert "once more" in of_year.read_text(encoding="utf-8")


def test_a_picture_has_every_total_between_its_ends() -> None:
    drawn = total_picture([("2026-03-02", 10.0, 5.0, 15.0), ("2026-03-09", 20.0, None, None)])
    assert drawn is not None and (drawn.bottom, drawn.top) == ("0", "20")
    heights = [int(y) for y in re.findall(r"M\d+ (\d+)", drawn.content)]
    assert all(0 <= height <= 200 for height in heights) and drawn.content.count("M") == 3
    assert "from 10 (2026-03-02) to 20 (2026-03-09)" in drawn.described
    assert total_picture([("2026-03-02", 10.0, 5.0, 15.0)]) is None


def test_headings_and_landmarks_are_in_order(public: Path) -> None:
    publish(public)
    publish(public, revision=2, reason="late")
    publish(public, WEEKS[1])
    written(public)
    for text in (page(public), page(public, "weekly")):
        found = _Elements(text).found
        levels = [int(tag[1]) for tag, _ in found if re.fullmatch("h[1-6]", tag)]
        assert levels[0] == 1 and levels.count(1) == 1
        assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
        tags = [tag for tag, _ in found]
        assert [tags.count(name) for name in ("main", "header", "footer")] == [1, 1, 1]
        ids = [attributes["id"] for _, attributes in found if "id" in attributes]
        assert len(ids) == len(set(ids))
        named = [attributes["aria-labelledby"] for _, attributes in found if "aria-labelledby" in attributes]
        assert set(named) <= set(ids)
        assert all("aria-label" in attributes for tag, attributes in found if tag in ("svg", "nav"))


@pytest.mark.slow
def test_the_total_of_a_family_is_that_of_its_first_table(public: Path) -> None:
    tables = families_by_hand.publish_family(public, [AGE, WARD], [("age", "ward"), ("ward",)])
    first = next(iter(tables.values()))
    told = HeadlineFigure.of(vars(first.answer()))
    assert told.half is not None
    number = f"{shown_number(told.value, told.decimals)}\u00a0±\u00a0{shown_number(told.half, told.decimals)}"
    text = page(written(public), "family")
    assert f'<p class="told">{number}</p>' in text and f'<p class="told">{number}</p>' in page(public)
    assert f"r.dph_total('r.family_{next(iter(tables))}')" in text


def test_the_total_of_reports_has_the_interval_of_their_law(tmp_path: Path) -> None:
    publication = carded_reports.made(tmp_path / "store")
    public, scratch = tmp_path / "store/public", tmp_path / "scratch"
    scratch.mkdir()
    write_index(public, scratch)
    told = HeadlineFigure.of(vars(publication.estimate.box()))
    (number,) = re.findall('<p class="told">(.*)</p>', page(public, publication.folder.parents[1].name))
    assert number.startswith(shown_number(told.value, told.decimals))
    assert told.half is not None and number.endswith(f"\u00a0±\u00a0{shown_number(told.half, told.decimals)}")


def test_an_uneven_interval_is_told_by_its_ends() -> None:
    told = release_history.ListedPublication("all", 1, total=12_031.0, lower=11_480.0, upper=12_690.0)
    assert release_history.number_in_words(told) == "12,031 (11,480\u00a0to\u00a012,690)"


def test_the_page_of_all_does_not_grow_with_the_periods_of_a_release(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_pages, "MOST_POINTS", 2)
    drawn = []
    for week in WEEKS:
        publish(public, week)
        drawn.append(len(re.findall(r"M\d+ \d+", page(written(public)))))
    assert drawn == [0, 4, 4]


def test_a_page_names_files_at_its_top_with_their_columns_and_beside_each_period_its_table(public: Path) -> None:
    publish(public, WEEKS[0])
    publish(public, WEEKS[0], 2, reason="late records")
    publish(public, WEEKS[1])
    text = page(written(public), "weekly")
    top, rest = text.partition('id="newest"')[2].partition("</section>")[::2]
    assert [f'href="latest/cells.{kind}"' in top for kind in ("csv", "xlsx", "parquet")] == [True] * 3
    assert 'href="#columns"' in top and "<dt><code>unbiased</code></dt><dd>the number that the interval" in rest
    for place, is_named in ((f"{WEEKS[0]}/revision=1", False), (f"{WEEKS[0]}/revision=2", True)):
        assert (f'href="period={place}/histogram.parquet"' in rest) is is_named
    assert f'download="weekly_{WEEKS[1]}.parquet"' in rest
    assert page(public).count('download>XLSX<span class="of">') == 1
