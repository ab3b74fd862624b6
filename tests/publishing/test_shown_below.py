"""`show_below`: words in place of figures on cards and in files for people; Parquet, sums and digests stay."""

from __future__ import annotations

import csv
import json
import re
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import carded_reports
import families_by_hand
import numpy as np
import px_reader
import pyarrow.parquet as pq
import pytest
from carded import FACTS
from office import Office
from typer.testing import CliRunner

from dphist_pipeline.answering import plot
from dphist_pipeline.answering.exports.formats import write_export
from dphist_pipeline.answering.exports.rows import Exported
from dphist_pipeline.answering.latest_cells import write_latest_cells
from dphist_pipeline.base.shown_below import compared_in_words, limit_of, masks
from dphist_pipeline.cli.app import app
from dphist_pipeline.cli.terminal import out
from dphist_pipeline.publishing import _card as cards
from dphist_pipeline.publishing import _index_pages as index_pages
from dphist_pipeline.publishing._family_card import family_card
from dphist_pipeline.publishing._index_pages import write_index
from dphist_pipeline.publishing._release_history import read_history
from dphist_pipeline.publishing.derived_files import DerivedFiles
from dphist_pipeline.publishing.drawing import BAR, NUMBER
from dphist_pipeline.publishing.formatting import shown_number
from dphist_pipeline.publishing.pages import picture_facts
from dphist_pipeline.publishing.picture_sums import Grid
from dphist_pipeline.publishing.pictures import Picture, all_pictures, description
from dphist_pipeline.releasing.store import Store

pytestmark = pytest.mark.stand_in("pictures", why="what charts are given is read here; drawing is tried elsewhere")

CLASS: dict[str, Any] = {"column": "class", "values": ["a", "b", "c", "d", "e"]}
# Estimates are 0.5 above these: d's is shown, and the middle of its interval is not; e is shown with its interval.
NOISY = np.array([-8.0, 3.0, 9.0, 9.5, 57.0])
WIDE = {"column": "ward", "values": ["x", "y"]}
CARD_FACTS = {**FACTS, "show_below": 10}


def made(scale: Fraction | None = Fraction(6)) -> Any:
    return by_hand.estimate([CLASS], NOISY, scale, off=0.5)


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """Two weeks; the later one's spec has the rule."""
    (tmp_path / "scratch").mkdir()
    for week, rule in (("2026-03-02", {}), ("2026-03-09", {"show_below": 10})):
        by_hand.publish(tmp_path / "public", made(), [CLASS], period=week, epsilon="1/6", **rule)
    DerivedFiles(tmp_path / "public").write_current_files(tmp_path / "scratch")
    write_latest_cells(tmp_path / "public", tmp_path / "scratch")
    return tmp_path / "public"


EXPECTED = {
    "estimate": ["below 10", "below 10", "below 10", "10", "57.5"],
    "unbiased": ["below 10", "below 10", "below 10", "below 10", "57"],
    "interval": [False, False, False, False, True],
}


def test_a_figure_without_number_is_no_figure_and_a_rule_is_a_whole_number() -> None:
    told = masks(10, np.array([9.99, 10.0, np.nan]), np.array([np.nan, 9.0, np.nan]))
    assert told.estimate.tolist() == [True, False, False] and told.unbiased.tolist() == [False, True, False]
    assert told.beside.tolist() == [True, True, False]
    assert told.of("unbiased_estimate")[1].tolist() == [True, False, False]
    assert [limit_of({"show_below": one}) for one in (10, None, 0, True, "10", -3)] == [10, *[None] * 5]


def test_the_csv_of_all_cells_tells_words_and_the_parquet_file_the_numbers(public: Path) -> None:
    place = public / "weekly" / "latest"
    rows = list(csv.DictReader((place / "cells.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["estimate"] for row in rows[:5]] == ["-8", "4", "10", "10", "58"]
    assert [row["estimate"] for row in rows[5:]] == [*EXPECTED["estimate"][:4], "58"]
    assert [row["unbiased"] for row in rows[5:]] == EXPECTED["unbiased"]
    for end in ("ci_lower", "ci_upper"):
        assert [row[end] != "" for row in rows[5:]] == EXPECTED["interval"] and all(row[end] for row in rows[:5])
    assert pq.read_table(place / "cells.parquet")["unbiased"].to_pylist() == [*NOISY, *NOISY]


@pytest.mark.slow
@pytest.mark.parametrize("to", ["csv", "xlsx", "sdmx-csv", "px"])
def test_exports_tell_no_figure_below_the_limit_and_no_interval_around_one(
    public: Path, tmp_path: Path, to: str
) -> None:
    file = tmp_path / f"x.{to}"
    write_export(Exported.read(public, "weekly", decimals=1), to, file)
    if to == "px":
        px = px_reader.read(file.read_text(encoding="utf-8"))
        late = {
            name: [cell for key, cell in px.cells.items() if key[0].startswith("2026-03-09") and key[-1] == name]
            for name in px.keywords["VALUES", "content"]
        }
        whole, estimate, unbiased, _, lower, upper = late.values()
        assert next(iter(late)) == "Whole number" and whole[:4] == ["..."] * 4 and isinstance(whole[4], float)
        assert estimate == ["...", "...", "...", 10.0, 57.5] and unbiased == ["...", "...", "...", "...", 57.0]
        assert lower[:4] == upper[:4] == [".."] * 4 and isinstance(lower[4], float)
        assert px.keywords["DATASYMBOL3",] == ["below 10"] and "adds no protection" in "".join(px.keywords["NOTEX",])
        return
    if to == "xlsx":
        openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
        header, *body = openpyxl.load_workbook(file)["data"].iter_rows(values_only=True)
        rows = [dict(zip(header, row, strict=True)) for row in body]
        assert [row["estimate"] for row in rows[5:]] == ["below 10", "below 10", "below 10", 10, 57.5]
        assert [row["ci_upper"] is None for row in rows] == [*[False] * 5, *[True] * 4, False]
        return
    names = ("OBS_VALUE", "UNBIASED", "CI_LOWER") if to == "sdmx-csv" else ("estimate", "unbiased", "ci_lower")
    lines = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    told = "" if to == "sdmx-csv" else "below 10"
    shown = [[row[name] if row[name] == told else float(row[name]) for row in lines[5:]] for name in names[:2]]
    assert shown == [[told, told, told, 10.0, 57.5], [told, told, told, told, 57.0]]
    assert [bool(row[names[2]]) for row in lines[5:]] == EXPECTED["interval"] and lines[0][names[0]] == "-7.5"
    if to == "sdmx-csv":
        assert [row["OBS_STATUS"] for row in lines[5:8]] == ["Q", "Q", "Q"] and "Q" not in lines[8]["OBS_STATUS"]
    else:
        package = json.loads(file.with_suffix(".datapackage.json").read_bytes())
        schema = package["resources"][0]["schema"]
        assert schema["missingValues"] == [""]  # an axis may have a bin that is called "below 10"
        kinds = {field["name"]: field["type"] for field in schema["fields"]}
        assert [kinds[name] for name in names] == ["string"] * 3 and kinds["standard_error"] == "number"


def test_a_card_tells_words_and_says_which_numbers_stay() -> None:
    page = cards.release_card(made(), {**CARD_FACTS, "axes": [CLASS]})
    text = re.sub(r"<[^>]*>", " ", page)
    assert text.count("below 10") > 4 and "the Parquet files keep the numbers" in text
    assert "minimum frequency" in text and "adds no protection" in text
    estimate = made()
    (bars,) = all_pictures(Grid.of_all(estimate.domain, estimate.values, estimate.unbiased))
    (table,) = picture_facts(bars.told_as(CARD_FACTS))["tables"]
    cells = {row[0]: tuple(row[1:4]) for row in table["rows"]}
    assert cells["a"] == cells["b"] == cells["c"] == ("below 10", "", "") and cells["d"] == ("10", "", "")
    assert cells["e"][0] == "58" and all(cells["e"])
    without = cards.release_card(made(), {**FACTS, "axes": [CLASS]})
    assert "below 10" not in without and "minimum frequency" not in without


@pytest.mark.parametrize(("now", "told"), [(9.0, False), (12.0, True)])
def test_a_sudden_change_is_told_without_figures_if_one_is_below_the_limit(now: float, told: bool) -> None:
    says = "class = a fell from about 80 to about 9 while b rose."
    compared = {"periods": ["2026-02-23"], "changes": [{"axis": "class", "before": 80.0, "now": now}], "says": says}
    page = cards.release_card(made(), {**CARD_FACTS, "axes": [CLASS], "compared": compared})
    assert ("from about 80 to about 9" in page) is told and "class = a fell" in page
    assert compared_in_words({"compared": compared}) == says and compared_in_words({}) == ""
    hostile = {**compared, "says": says.replace("class = a", "a from about 3 to about 4")}
    hidden = compared_in_words({"compared": hostile, "show_below": 10})
    assert (hidden == "a from about 3 to about 4 fell while b rose.") is not told


def test_a_total_below_the_limit_is_told_without_its_interval() -> None:
    small = by_hand.estimate([CLASS], NOISY - 15, off=0.5)
    page = cards.release_card(small, {**CARD_FACTS, "axes": [CLASS]})
    assert "the interval of the total, not shown beside a figure below 10, holds" in " ".join(page.split())
    assert ">below 10<" in page and "headline" not in re.sub(r"<style.*?</style>", "", page, flags=re.DOTALL)
    facts = cards.total_facts(cards.answer_box(small, {}))
    assert facts["total"] not in page.split("<main", 1)[1].split("<figure", 1)[0]


def test_no_chart_holds_a_figure_below_the_limit() -> None:
    estimate = by_hand.estimate([CLASS, WIDE], np.stack([NOISY, NOISY + 1.25], axis=1), off=0.5)
    hides = 0
    for picture in all_pictures(Grid.of_all(estimate.domain, estimate.values, estimate.unbiased)):
        drawn, facts = picture.told_as({"show_below": 10}), picture_facts(picture.told_as({"show_below": 10}))
        marks = drawn.drawing().marks
        texts = {str(cell).partition(" (")[0] for one in facts["tables"] for row in one["rows"] for cell in row[1:2]}
        texts |= {mark["text"] for mark in marks if mark["kind"] == "text" and mark["size"] == NUMBER}
        words = [
            (figure < 10, shown_number(float(figure), picture.sums.decimals)) for figure in picture.sums.values.flat
        ]
        low = {word for is_low, word in words if is_low} - {word for is_low, word in words if not is_low}
        squares = "<10" in texts or len(picture.sums.axes) == 1
        assert not low or (not texts & low and any(text.startswith("below 10") for text in texts) and squares), (
            picture.title
        )
        if len(picture.sums.axes) == 1:
            # A hidden bar has no length and no line.
            lengths = [min(mark["width"], mark["height"]) for mark in marks if mark.get("fill") == BAR]
            hidden = [at for at, figure in enumerate(picture.sums.values) if figure < 10]
            assert all(lengths[at] == 0 for at in hidden) and lengths.count(0) == len(hidden)
        hides += bool(low)
        assert picture.told_as({}) is picture
    assert hides == 2
    low = by_hand.estimate([CLASS], NOISY - 60)
    (bars,) = all_pictures(Grid.of_all(low.domain, low.values, low.unbiased))
    assert description(bars.told_as({"show_below": 10})).endswith("Every figure is below 10.")


def test_a_family_hides_figures_on_its_card_and_on_the_pages_of_its_tables() -> None:
    axes = [{"column": "ward", "values": ["a", "b"]}, {"column": "sex", "values": ["f", "m"]}]
    family, told = families_by_hand.estimate_family(axes, [["ward"], ["sex"]], Fraction(1, 2), 1)
    facts = {**CARD_FACTS, "tables": told, "mechanism": "tables", "show_below": 10**6}
    page = family_card(family, facts)
    assert page.count("below 1000000") > 4 and "adds no protection" in page
    assert "below 1000000" not in family_card(family, {**facts, "show_below": None})


def days_of(week: str) -> dict[str, str]:
    """The period of a week, and its days."""
    after = date.fromisoformat(week) + timedelta(days=7)
    return {"period": week, "period_start": f"{week}T00:00:00Z", "period_end": f"{after}T00:00:00Z"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two weeks of cells by class and ward; the later one's spec has the rule."""
    opened = Store.create(tmp_path_factory.mktemp("project") / "store")
    values = np.stack([NOISY, NOISY + 1], axis=1)
    for week, rule in (("2026-03-02", {}), ("2026-03-09", {"show_below": 10})):
        estimate = by_hand.estimate([CLASS, WIDE], values, Fraction(6), off=0.5)
        by_hand.publish(opened.public, estimate, [CLASS, WIDE], epsilon="1/6", **days_of(week), **rule)
    (opened.root / "scratch").mkdir()
    DerivedFiles(opened.public).write_current_files(opened.root / "scratch")
    return opened


def answered(store: Store, *words: str) -> str:
    done = CliRunner().invoke(app, ["answer", "weekly", *words, "--store", str(store.root)])
    assert done.exit_code == 0, done.output
    return done.stdout


HIDES = "Figures below 10 are told as words"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "tells", "tells_not"),
    [
        (
            ("--where", "class = b and ward = x"),
            ["below 10 records", HIDES],
            ["3.5", "3.0", "interval of"],
        ),
        (("--where", "class = d and ward = x"), ["10.0 records", HIDES], ["9.5", "interval of the true"]),
        (("--where", "class = b"), ["below 10 records", HIDES], ["7.0", "8.0"]),
        (("--where", "class = d"), ["20.0 records", "95 % interval of the true", "add up to 21.0"], [HIDES]),
        (("--by", "class"), ["below 10", "20.0", "115.0", HIDES], ["-15.0", "7.0 ", "8.0"]),
        (("--by", "class", "--pivot", "ward"), ["below 10", "57.5", "115.0 ±", HIDES], ["3.5", "4.5", "9.5"]),
        (("--ranks", "class"), ["below 10", "115.0", HIDES], ["-15.0", "7.0 "]),
        (("--over", "2026-03-02,2026-03-09", "--where", "class = a"), ["below 10", HIDES], ["-30.0"]),
        # A difference is no count.
        (("--where", "class = c", "--difference", "class = b"), ["12.0"], ["below 10", HIDES]),
        (("--period", "2026-03-02", "--by", "class"), ["-15.0", "7.0"], ["below 10", HIDES]),
    ],
)
def test_an_answer_tells_people_words_and_programs_the_numbers(
    store: Store, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], tells: list[str], tells_not: list[str]
) -> None:
    monkeypatch.setattr(out, "_width", 200)
    said = answered(store, *words, "--decimals", "1")
    missing = [text for text in tells if text not in " ".join(said.split())]
    assert not missing and not [text for text in tells_not if text in said.replace("95 %", "")], said
    assert "below 10" not in answered(store, *words, "--json")


def test_a_picture_of_a_command_draws_no_figure_below_the_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []

    def svg(picture: Any, title: str = "") -> str:
        drawn.append(picture)
        return title

    monkeypatch.setattr(Picture, "svg", svg)
    week = store.public / "weekly" / "period=2026-03-09" / "revision=1"
    before = store.public / "weekly" / "period=2026-03-02" / "revision=1"
    low = {"class": ["a"]}
    file = store.root.parent / "x.svg"
    for folder, over in ((week, False), (week, True), (before, True), (before, False)):
        plot.write_picture(folder, low, "", file, overwrite=True, over_periods=over)
    plot.release_svg(week)
    assert [picture.sums.limit for picture in drawn] == [10, 10, 10, None, 10]
    assert "A figure below 10 is not drawn" in drawn[1].note and drawn[1].sums.is_hidden.all()


@pytest.mark.parametrize(
    ("totals", "named"), [((15.0, 5.0), 20), ((80.0, 5.0), 10), ((15.0, 90.0), 20), ((80.0, 90.0), None)]
)
def test_the_note_under_a_picture_names_the_strictest_limit_that_hid_something(
    tmp_path: Path, totals: tuple[float, float], named: int | None
) -> None:
    public = tmp_path / "public"
    (tmp_path / "scratch").mkdir()
    weeks = ("2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23")
    for week, total, limit in zip(weeks, (*totals, 85.0, 95.0), (20, 10, 10, 10), strict=True):
        few = by_hand.estimate([CLASS], np.array([total, 0.0, 0, 0, 0]), Fraction(6))
        by_hand.publish(public, few, [CLASS], epsilon="1/6", show_below=limit, **days_of(week))
    write_index(public, tmp_path / "scratch")
    page = (public / "weekly" / "index.html").read_text(encoding="utf-8")
    assert re.findall(r"A figure below (\d+) is not drawn", page) == ([str(named)] if named else [])
    assert f"Published figures below {named or 10} are told as words" in page


def test_pages_of_releases_tell_and_draw_no_total_below_the_limit(tmp_path: Path) -> None:
    public = tmp_path / "public"
    (tmp_path / "scratch").mkdir()
    totals = {"2026-03-02": 80.25, "2026-03-09": 4.3125, "2026-03-16": 73.25, "2026-03-23": 6.8125}
    for week, total in totals.items():
        few = by_hand.estimate([CLASS], np.array([total, 0.0, 0, 0, 0]), Fraction(6))
        by_hand.publish(public, few, [CLASS], epsilon="1/6", show_below=10, **days_of(week))
    write_index(public, tmp_path / "scratch")
    page, of_all = ((path / "index.html").read_text(encoding="utf-8") for path in (public / "weekly", public))
    assert page.count("below 10</td>") == 2 and '<p class="told">below 10</p>' in page
    assert '<p class="told">below 10</p>' in of_all and "with the 95 % interval" not in of_all
    assert "minimum frequency" in page and "A figure below 10 is not drawn" in page
    assert not [text for text in ("4.3125", "6.8125") if text in page + of_all] and "80.25" in page
    assert "Totals of 2 periods" in page
    known = read_history(index_pages._page_facts(public / "weekly", "index.html")["publications"])
    assert [one.below for _, one in sorted(known.items())] == [False, True, False, True]
    write_index(public, tmp_path / "scratch")  # what a page tells the next run says the same page
    assert (public / "weekly" / "index.html").read_text(encoding="utf-8") == page


def test_a_local_collection_tells_words_where_its_spec_has_the_rule(tmp_path: Path) -> None:
    plain, ruled = (
        carded_reports.made(Store.create(tmp_path / name).root, show_below=rule)
        for name, rule in (("plain", None), ("ruled", 1000))
    )
    page, before = (
        re.sub(r"<[^>]*>", " ", (one.folder / "card.html").read_text(encoding="utf-8")) for one in (ruled, plain)
    )
    assert "below 1000" not in before and page.count("below 1000") > 4 and "adds no protection" in page
    assert ruled.audit["show_below"] == 1000 and "show_below" not in plain.audit
    for name in ("histogram.parquet", "groups.parquet"):
        if (plain.folder / name).exists():
            assert pq.read_table(plain.folder / name).equals(pq.read_table(ruled.folder / name)), name


@pytest.mark.slow
def test_a_spec_with_the_rule_publishes_the_same_numbers_and_asks_for_no_revision(office: Office) -> None:
    office.with_release()
    office.write_spec(show_below=10)
    assert office.release().code == 0 and not list((office.store / "public" / "wards").glob("period=*/revision=2"))
    done = office.release("--revise", "--reason", "a rule of the office")
    assert done.code == 0, done.err
    (second,) = (office.store / "public" / "wards").glob("period=*/revision=2")
    assert json.loads((second / "audit.json").read_bytes())["show_below"] == 10
    assert "minimum frequency" in (second / "card.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", [1, -10, 1001, "10", 10.5, True])
def test_a_rule_that_is_no_number_of_records_is_refused(office: Office, rule: Any) -> None:
    office.opened()
    office.write_spec(show_below=rule)
    done = office.run("check", "spec.yaml")
    assert done.code == 1 and "show_below" in done.err and not list((office.store / "public").glob("wards/*"))
