"""The picker on a release's page in Chromium: it tells what the macros tell, to the last digit that it shows."""

from __future__ import annotations

import json
import math
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import by_hand
import numpy as np
import pytest
from answering_scenario import attached, rows_of
from browser import OnePage, one_page
from by_hand import AGE, WARD
from derived_files import made_anew
from picker_scenario import WEEKS, Question, days_of, every_kind, questions

from dphist_pipeline.answering import _picker_columns as picker_columns
from dphist_pipeline.answering import _picker_files as picker_files
from dphist_pipeline.estimates.chance_of_persons import CHANCE
from dphist_pipeline.publishing.formatting import shown_number
from dphist_pipeline.publishing.headline_figures import HeadlineFigure
from examples import mostly_soaked

pytestmark = pytest.mark.outside  # `make outside` runs it
Open = Callable[..., Any]
ASK = """async (asked) => {
    const found = [];
    for (const [name, box, first, last, isChange, other] of asked) {
        try {
            const made = await dphPicker.ask(name, box, first, last, isChange, other);
            found.push({...made, shown: made.sum && dphPicker.told(made.sum)});
        } catch (error) { found.push({refused: error.message}); }
    }
    return found; }"""


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return every_kind(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def in_tiles(public: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, with tiles of a few cells in every table that can have some."""
    with pytest.MonkeyPatch.context() as patch:
        few = {"LEAST_SPLIT": 0, "BYTES_OF_TILE": 60, "SHORTEST_SIDE": 1, "MOST_HEAVIER": 1000}
        for name, value in few.items():
            patch.setattr(picker_columns, name, value)
        return with_another_picker(public, tmp_path_factory.mktemp("tiles"))


@pytest.fixture(scope="module")
def three_weeks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release whose weeks no test changes; days between the last two are missing."""
    public = tmp_path_factory.mktemp("weeks") / "public"
    for number, week in enumerate(WEEKS):
        made = by_hand.estimate([AGE, WARD], np.arange(15.0).reshape(5, 3) * 1000 + 100 * number, off=0.0)
        by_hand.publish(public, made, [AGE, WARD], "weekly", week, **days_of(week))
    return made_anew(public)


def with_another_picker(public: Path, folder: Path) -> Path:
    """A copy of a public folder, whose files of the picker are written anew."""
    copy = Path(shutil.copytree(public, folder / "public", ignore=shutil.ignore_patterns("picker")))
    return made_anew(copy)


@pytest.fixture(scope="module")
def opened() -> Iterator[Open]:
    """Opens the page of a release, by its folder or address."""
    with one_page() as page:

        def open_page(release: Path | str, width: int = 1400) -> OnePage:
            return page.opened(f"{release.as_uri() if isinstance(release, Path) else release}/index.html", width)

        yield open_page


def in_words(row: dict[str, Any]) -> str:
    """A row of a macro as pages tell it."""
    told = HeadlineFigure.of(row)
    number = shown_number(told.value, told.decimals)
    if told.is_known:
        return f"{number} (known)"
    if told.half is not None:
        return f"{number}\u00a0±\u00a0{shown_number(told.half, told.decimals)}"
    if math.isnan(told.lower):
        return number
    return (
        f"{number} ({shown_number(told.lower, told.decimals)}\u00a0to\u00a0{shown_number(told.upper, told.decimals)})"
    )


def assert_told(found: dict[str, Any], shown: dict[str, Any] | None, row: dict[str, Any]) -> None:
    for name in ("cells", "basis", "note"):
        assert found[name] == row[name], name
    for name in ("estimate", "unbiased", "noise_error", "ci_lower", "ci_upper"):
        near = None if row[name] is None else pytest.approx(row[name], rel=1e-12, abs=1e-9)
        assert found[name] == near, name
    assert "reliability" not in row or found["reliability"] == row["reliability"]
    if shown is not None:
        assert shown["number"] == in_words(row)


def assert_with_chance(found: dict[str, Any], row: dict[str, Any]) -> None:
    ends = [row["ci_lower"], row["ci_upper"]]
    assert found["with_chance"] == [None if end is None else pytest.approx(end, rel=1e-12, abs=1e-9) for end in ends]


SEVERAL = ("levels", "figures", "crossed")  # families, each of whose tables is asked
KINDS = [
    "weekly",
    "hostile",
    "small",
    "levels",
    "figures",
    "crossed",
    "fine_only",
    "reports",
    "days",
    "ahp",
    "ihp",
    "dpcube",
]
KINDS += ["structure_first", "p_hpartition", "kd_hierarchy", "sreb_gca", "dphr", "grouping_smoothing"]


@pytest.mark.parametrize("release", KINDS)
def test_the_picker_tells_what_the_macros_tell(opened: Open, public: Path, release: str) -> None:
    assert_tells_as_macros(opened, public, release)


@pytest.mark.parametrize("release", ["weekly", "hostile", "levels", "reports", "ahp"])
def test_tiles_tell_what_the_macros_tell(opened: Open, in_tiles: Path, release: str) -> None:
    tiles = list((in_tiles / release / "picker").rglob("cells-*.js"))
    assert bool(tiles) == (release != "ahp"), "noisy sums of groups need every cell"
    assert_tells_as_macros(opened, in_tiles, release)


def assert_tells_as_macros(opened: Open, public: Path, release: str) -> None:
    page, asked = opened(public / release), questions(public, release, 2 if release in SEVERAL else 4)
    answers, told = page.evaluate(ASK, asked), 0
    macros = Macros(public)
    for question, found in zip(asked, answers, strict=True):
        if "refused" in found:
            with pytest.raises(Exception, match="no cells lie where"):
                macros.told(question)
            continue
        assert "why" not in found, found
        sums, periods = macros.told(question)
        (row,) = sums
        assert macros.rows(found["call"]) == sums
        assert_told(found["sum"], found["shown"], row)
        assert [period[0] for period, _ in found["periods"]] == [one["period"] for one in periods]
        for (_, one), of_period in zip(found["periods"], periods, strict=True):
            assert_told(one, None, of_period)
        told += 1
    assert told > len(asked) / 2
    assert page.complaints == []


@pytest.mark.parametrize(
    "release",
    mostly_soaked(["weekly", "hostile", "levels", "figures", "crossed", "fine_only", "reports", "days"], [0, 3]),
)
def test_the_change_between_two_periods_is_that_of_the_macro(opened: Open, public: Path, release: str) -> None:
    page, asked = opened(public / release), []
    for name, box, first, last in questions(public, release, 2 if release in SEVERAL else 4):
        others = [one for one in WEEKS if one != first and (public / release / f"period={one}").is_dir()]
        asked.append([name, box, *sorted([first, last if last != first else others[0]]), True])
    answers, told = page.evaluate(ASK, asked), 0
    macros = Macros(public)
    for (name, box, first, last, _), found in zip(asked, answers, strict=True):
        if "refused" in found:
            continue
        (row,) = macros.rows(f"FROM r.dph_compare('r.{name}', '{first}', '{last}', {_json(box)});")
        call = f"FROM r.dph_compare('r.{name}', '{first}', '{last}', {_json(box)}, with_chance := true);"
        (with_chance,) = macros.rows(call)
        assert macros.rows(found["call"]) == [with_chance]
        assert_told(found["sum"], None, row)
        assert_with_chance(found["sum"], with_chance)
        told += 1
    assert told > len(asked) / 2


CHOICES = [("public", one) for one in ("hostile", "levels", "crossed", "figures", "reports", "ahp")]
CHOICES += [("in_tiles", one) for one in ("weekly", "days", "small")]


@pytest.mark.parametrize(("folder", "release"), mostly_soaked(CHOICES, [0, 3, 4, 6]))
def test_the_difference_of_two_choices_is_that_of_the_macro(
    opened: Open, folder: str, release: str, request: pytest.FixtureRequest
) -> None:
    public: Path = request.getfixturevalue(folder)
    page, some, asked = opened(public / release), questions(public, release, 2 if release in SEVERAL else 3), []
    for (name, box, first, _), (other_name, other, _, _) in pairwise(some):
        if name == other_name:
            asked.append([name, box, first, first, False, other])
    answers, told = page.evaluate(ASK, asked), 0
    macros = Macros(public)
    for (name, box, period, _, _, other), found in zip(asked, answers, strict=True):
        if "refused" in found:
            continue
        when = "" if period == "all" else f", period := '{period}'"
        asks = f"FROM r.dph_difference('r.{name}', {_json(box)}, {_json(other)}{when}"
        (row,), (with_chance,) = macros.rows(f"{asks});"), macros.rows(f"{asks}, with_chance := true);")
        assert macros.rows(found["call"]) == [with_chance]
        assert_told(found["sum"], None, row)
        assert_with_chance(found["sum"], with_chance)
        if set(dict(other)) <= set(dict(box)):  # the table that answers both is that of the first
            ((one,), _) = macros.told((name, box, period, period))
            assert_told(found["choices"][0], None, one)
        told += 1
    assert told > len(asked) / 2


class Macros:
    """What the macros of a public folder answer; a call that was asked before, whoever wrote it, is not asked again."""

    asked: ClassVar[dict[str, list[dict[str, Any]]]] = {}

    def __init__(self, public: Path) -> None:
        self.catalogue = public / "catalog.duckdb"

    def rows(self, call: str) -> list[dict[str, Any]]:
        """The rows of a call of a macro. The folders that tests ask here hold the same publications."""
        if call not in self.asked:
            with attached(self.catalogue) as connection:
                self.asked[call] = rows_of(connection, call.removesuffix(";"))
        return self.asked[call]

    def told(self, question: Question) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """The rows that answer a question: of all its periods together, and of each if they are several."""
        name, box, first, last = question
        if first == last:
            when = "" if first == "all" else f", period := '{first}'"
            return self.rows(f"FROM r.dph_box('r.{name}', {_json(box)}{when});"), []
        every = self.rows(f"FROM r.dph_box('r.{name}', {_json(box)});")
        within = [row for row in every if first <= row["period"] <= last]
        if len(within) == 1:
            return within, []
        return self.rows(f"FROM r.dph_over('r.{name}', '{first}', '{last}', {_json(box)});"), within


def _json(box: Any) -> str:
    """A box as the page writes it in SQL."""
    whole = json.loads(
        json.dumps(dict(box)), parse_float=lambda text: int(float(text)) if float(text) % 1 == 0 else float(text)
    )
    return "'" + json.dumps(whole, ensure_ascii=False, separators=(",", ":")).replace("'", "''") + "'"


def test_a_reader_chooses_by_keyboard_and_hears_the_sum(opened: Open, three_weeks: Path) -> None:
    public = three_weeks
    page = opened(public / "weekly", 400)
    page.locator("#question-sum").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Home")
    for key in ("Tab", "Tab", "ArrowDown", "ArrowDown", "Tab", "ArrowUp", "Tab", "Space", "Tab", "Tab", "Space"):
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.locator("#picked .answer").wait_for()
    words = page.locator("#picked .asked").inner_text().replace("\u2009", " ")
    assert words == "Rows: age 0 to under 65; ward surgery or other; 2 – 29 March 2026 (3 periods)"
    box = '{"age": [0, 65], "ward": ["surgery", null]}'
    with attached(public / "catalog.duckdb") as connection:
        (row,) = rows_of(connection, "FROM r.dph_over('r.weekly', ?, ?, ?)", WEEKS[0], WEEKS[2], box)
    shown = page.locator("#picked").inner_text()
    number, half = in_words(row).split("\u00a0±\u00a0")
    lower, upper = (shown_number(row[end], HeadlineFigure.of(row).decimals) for end in ("ci_lower", "ci_upper"))
    told = f"{number}, between {lower} and {upper} with 95\u00a0% confidence"
    assert page.locator("#picked > :first-child").inner_text() == told and half
    assert row["note"] in shown and "7 days between them" in shown
    assert page.locator("#picked[role=status] tbody tr").count() == 3
    page.locator("#picked summary").focus()
    page.keyboard.press("Enter")
    assert "dph_over('r.weekly', '2026-03-02', '2026-03-23'" in page.locator("#picked pre").first.inner_text()
    assert page.complaints == []


@pytest.mark.parametrize("limit", ["MOST_LOADED", "MOST_FILES", "MOST_CELLS", "MOST_WORDS"])
def test_what_is_too_large_shows_the_call_to_copy(
    opened: Open, three_weeks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(picker_files, limit, 2)
    public = with_another_picker(three_weeks, tmp_path)
    page = opened(public / "weekly")
    page.locator("#period-from").select_option(index=0)
    if limit != "MOST_WORDS":
        page.locator("#picker input[type=checkbox]").first.check()
    page.locator("#picker button[type=submit]").click()
    call = page.locator("#picked pre").first.inner_text().partition("\n")[2]
    assert "This page cannot answer that: " in page.locator("#picked").inner_text()
    with attached(public / "catalog.duckdb") as connection:
        assert rows_of(connection, call.removesuffix(";"))[0]["periods"] == 3
    assert ('["surgery"]' in call) == (limit != "MOST_WORDS")
    assert not [address for address in page.loaded if "cells.js" in address]


def test_numbers_that_changed_under_an_open_page_are_not_shown(opened: Open, three_weeks: Path, tmp_path: Path) -> None:
    public = Path(shutil.copytree(three_weeks, tmp_path / "public"))
    page = opened(public / "weekly")
    file = public / f"weekly/picker/period={WEEKS[2]}/cells.js"
    file.write_text(file.read_text().replace('"made_from": "', '"made_from": "0', 1))
    page.locator("#picker button[type=submit]").click()
    page.get_by_text("Load the page again").wait_for()
    assert page.locator("#picked .answer").count() == 0


def test_a_figure_below_the_limit_of_its_period_is_told_in_words_alone(opened: Open, tmp_path: Path) -> None:
    public = tmp_path / "public"
    (tmp_path / "about.json").write_text('{"language": "de"}')
    for week, rule in zip(WEEKS[:2], ({}, {"show_below": 10}), strict=True):
        made = by_hand.estimate([WARD], np.array([-1.0, 7.5, 90.0]), off=3.0)
        by_hand.publish(public, made, [WARD], "weekly", week, **days_of(week), **rule)
    page, words = opened(made_anew(public) / "weekly"), "unter 10"
    told = {}
    for ward, value in (("surgery", "surgery"), ("medicine", "medicine"), ("other", None)):
        for first, last in ((WEEKS[0], WEEKS[0]), (WEEKS[1], WEEKS[1]), (WEEKS[0], WEEKS[1])):
            (one,) = page.evaluate(ASK, [["weekly", [["ward", [value]]], first, last]])
            told[ward, first, last] = one["shown"]
    early, late, both = ((WEEKS[0],) * 2, (WEEKS[1],) * 2, WEEKS[:2])
    assert told["surgery", *early]["ends"] and told["surgery", *early]["number"] != words
    for hidden in (("surgery", *late), ("surgery", *both)):
        assert (told[hidden]["number"], told[hidden]["ends"], told[hidden]["half"]) == (words, "", "")
    nothing_else = {"ends": "", "half": "", "whole": "", "isHidden": True}
    assert told["medicine", *late] == {"number": "10", "sentence": "10", **nothing_else}
    assert all(told["other", *when]["ends"] for when in (early, late, both))
    page.locator("#picker input[type=checkbox]").first.check()
    page.locator("#period-from").select_option(index=0)
    page.locator("#picker button[type=submit]").click()
    page.locator("#picked .answer").wait_for()
    assert page.locator("#picked .answer").inner_text() == words
    facts = page.locator("#picked dl").inner_text()
    assert "95" not in facts
    assert page.locator("#picked tbody tr:nth-child(2) td").all_inner_texts()[:2] == [words, "–"]


@pytest.mark.parametrize("folder", ["public", "in_tiles"])
def test_whole_numbers_are_those_of_the_macro(opened: Open, request: pytest.FixtureRequest, folder: str) -> None:
    public = request.getfixturevalue(folder)
    page = opened(public / "hostile")
    asked = [["hostile", box, WEEKS[0], last] for box in ([], [["ward", ["surgery"]]]) for last in WEEKS[:2]]
    found = [one["shown"]["whole"] for one in page.evaluate(ASK, asked)]
    rows = f"FROM r.dph_whole('r.hostile') WHERE period <= '{WEEKS[1]}'"
    sums = f"sum(whole_count) FILTER (period = '{WEEKS[0]}') AS one, sum(whole_count) AS both"
    with attached(public / "catalog.duckdb") as connection:
        told = [rows_of(connection, f"SELECT {sums} {rows}{ward}") for ward in ("", " AND ward = 'surgery'")]
    assert found == [f"{row[name]:,}" for (row,) in told for name in ("one", "both")]


def test_a_whole_number_comes_first_where_most_cells_may_be_empty(
    opened: Open, three_weeks: Path, tmp_path: Path
) -> None:
    for week, values in zip(WEEKS, ([0.0, -9, 4], [2.0, 3, 50], [-1.0, 0, 7]), strict=True):
        made = by_hand.estimate([WARD], np.array(values), off=0)
        by_hand.publish(tmp_path / "public", made, [WARD], "weekly", week, **days_of(week))
    shown = {}
    for name, public in (("sparse", made_anew(tmp_path / "public")), ("full", three_weeks)):
        page = opened(public / "weekly")
        page.locator("#period-from").select_option(index=1)
        page.locator("#picker button[type=submit]").click()
        page.locator("#picked .answer").wait_for()
        heads = page.locator("#picked thead th").all_inner_texts()
        wholes = [
            int(text.replace(",", "")) for text in page.locator("#picked tbody td:nth-child(3)").all_inner_texts()
        ]
        assert heads[2] == "Whole number" and len(wholes) == 2
        shown[name] = page.locator("#picked .answer").inner_text(), page.locator("#picked dl").inner_text(), sum(wholes)
    first, facts, whole = shown["sparse"]
    assert re.match(rf"{whole}\s+as a whole number; the estimate is 61, between ", first) and "stands first" in facts
    first, facts, whole = shown["full"]
    assert "whole number" not in first and f"{whole:,}: never negative" in facts


def test_periods_of_a_hundred_thousand_fractional_cells_are_answered(opened: Open, tmp_path: Path) -> None:
    public, draws = tmp_path / "public", np.random.default_rng(2)
    axes: list[dict[str, Any]] = [{"column": "x", "start": 0, "stop": 400, "width": 1}]
    axes += [{"column": "y", "values": [f"k{number}" for number in range(250)]}]
    for week in WEEKS[:2]:
        values = draws.gamma(0.5, 100, (400, 250))
        made = by_hand.estimate(axes, values + draws.laplace(0, 20, values.shape) / 3, off=0.0)
        by_hand.publish(public, replace(made, values=made.values * 0.9 + 1), axes, "large", week, **days_of(week))
    page = opened(made_anew(public) / "large")
    boxes: list[list[Any]] = [[["x", [100, 300]], ["y", ["k7"]]], [], [["y", ["k3", "k4", "k99"]]], [["x", [50, 51]]]]
    with attached(public / "catalog.duckdb") as connection:
        for box in boxes:
            for last in (WEEKS[0], WEEKS[1]):
                before = len(page.loaded)
                (found,) = page.evaluate(ASK, [["large", box, WEEKS[0], last]])
                (row,) = rows_of(connection, f"FROM r.dph_over('r.large', '{WEEKS[0]}', '{last}', {_json(box)})")
                assert_told(found["sum"], found["shown"], row)
                loaded = {one.partition("?")[0].removeprefix("file://") for one in page.loaded[before:]}
                assert sum(Path(one).stat().st_size for one in loaded) < picker_files.MOST_LOADED / 5
    assert page.complaints == []


def test_a_reader_compares_two_periods_by_keyboard(opened: Open, three_weeks: Path) -> None:
    public = three_weeks
    page = opened(public / "weekly")
    page.locator("#question-sum").focus()
    for key in ("ArrowDown", "Tab", "Home", "Tab", "ArrowDown"):
        page.keyboard.press(key)
    page.locator("#picker button[type=submit]").focus()
    page.keyboard.press("Enter")
    page.locator("#picked .answer").wait_for()
    with attached(public / "catalog.duckdb") as connection:
        (row,) = rows_of(connection, "FROM r.dph_compare('r.weekly', ?, ?)", WEEKS[0], WEEKS[2])
    numbers = [
        shown_number(row[name], HeadlineFigure.of(row).decimals) for name in ("unbiased", "ci_lower", "ci_upper")
    ]
    alone = "+{}, between +{} and +{} with 95\u00a0% confidence".format(*numbers)
    assert alone in page.locator("#picked dl").inner_text()
    assert page.locator("#picked .number").inner_text().startswith(f"+{numbers[0]}, between +")
    assert "by noise and chance, with 95\u00a0% confidence" in page.locator("#picked .number").inner_text()
    assert "23 – 29 March 2026 compared with 2 – 8 March 2026" in page.locator("#picked .asked").inner_text().replace(
        "\u2009", " "
    )
    assert page.locator("#picked .verdict").inner_text().startswith("Yes, more: ")
    assert page.locator("#picked tbody tr").count() == 2 and page.locator("#picked.stale").count() == 0
    page.locator("#picker input[type=checkbox]").first.check()
    assert page.locator("#picked.stale").count() == 1
    assert "still the answer to the one before" in page.locator("#picked").inner_text()
    page.locator("#picker button[type=submit]").click()
    page.locator("#picked:not(.stale) .answer").wait_for()
    assert page.locator("#picked .changed").count() == 0


def test_cards_and_the_picker_have_one_rule_of_a_difference(opened: Open, tmp_path: Path) -> None:
    """Chance is that of persons with as many rows as the bound lets them have: a yes of the macro may be a no."""
    public, bound = tmp_path / "public", {"max_rows_per_unit": 3, "privacy_unit": "id", "unit_label": "patient"}
    for week, total in zip(WEEKS[:2], (9_000.0, 9_350.0), strict=True):
        made = by_hand.estimate([WARD], np.array([total, 0.0, 0.0]), off=0.0)
        by_hand.publish(public, made, [WARD], "weekly", week, **days_of(week), **bound)
    page = opened(made_anew(public) / "weekly")
    (found,) = page.evaluate(ASK, [["weekly", [], *WEEKS[:2], True]])
    first, second = (answer for _, answer in found["periods"])
    noise = tuple((one["ci_upper"] - one["ci_lower"]) / 2 for one in (first, second))
    half = CHANCE.half_width(first["unbiased"], second["unbiased"], (noise[0], noise[1]), 3)
    change = found["sum"]
    assert change["cautious"] == pytest.approx([change["unbiased"] - half, change["unbiased"] + half], rel=1e-12)
    assert change["with_chance"][0] > 0 > change["cautious"][0]
    page.locator("#question-change").check()
    page.locator("#picker button[type=submit]").click()
    page.locator("#picked .answer").wait_for()
    verdict = page.locator("#picked .verdict").inner_text().replace("−", "-")
    assert verdict.startswith("350 more were counted (") and verdict.endswith("), so this alone is no trend.")
    low, high, least, most = map(float, re.findall(r"[+-]?\d+(?= to|[)])", verdict))
    assert 0 < low < 350 < high and least < 0 < most
    told = page.locator("#picked dl").inner_text()
    assert "at most 3 rows of each patient are counted in a period" in told and "each with up to 3 rows" in told


def test_a_copied_answer_says_unit_cap_revision_publisher_and_notice(opened: Open, tmp_path: Path) -> None:
    public, bound = tmp_path / "public", {"max_rows_per_unit": 3, "privacy_unit": "id", "unit_label": "patient"}
    made = replace(by_hand.estimate([WARD], np.array([900.0, 0.0, 0.0]), off=0.0), quality=by_hand.QUALITY)
    by_hand.publish(public, made, [WARD], "weekly", WEEKS[0], counted="visits", **days_of(WEEKS[0]), **bound)
    (tmp_path / "about.json").write_text(json.dumps({"publisher": "An office", "notice": "These people are invented."}))
    page = opened(made_anew(public) / "weekly")
    page.locator("#picker button[type=submit]").click()
    clipboard = "{value: {writeText: async (text) => { copied = text; }}}"
    page.evaluate(f"Object.defineProperty(navigator, 'clipboard', {clipboard})")
    page.locator("#picked .copy").click()
    text = page.evaluate("copied").replace("\u00a0", " ")
    assert text.startswith("Visits: ") and "(An office, " in text and "revision 1)." in text
    assert " is the noise alone. Visits beyond 3 of each patient are not counted: " in text
    assert text.endswith("These people are invented.")


def test_no_choice_moves_another_and_start_over_resets_all(opened: Open, three_weeks: Path) -> None:
    page = opened(three_weeks / "weekly", 400)
    start, end = page.locator("#axis-0-from"), page.locator("#axis-0-to")
    assert end.is_disabled() and end.input_value() == "0"
    start.select_option(index=1)
    end.select_option(index=1)
    start.select_option(index=3)
    page.locator("#period-to").select_option(index=0)
    assert (end.input_value(), page.locator("#period-from").input_value()) == ("1", "2")
    crossed = "age: “to” lies below “from”. Choose another end."
    late = "The last period lies before the first one. Choose another."
    assert page.locator("#picker > :not([hidden]) .wrong").all_inner_texts() == [late, crossed]
    page.locator("#picker button[type=submit]").click()
    page.locator("#picked > p").wait_for()
    assert page.locator("#picked").inner_text() == crossed
    page.locator("#picker .anew").click()
    assert page.locator("#picked").inner_text() == "" and end.is_disabled()
    assert page.locator("#period-to").input_value() == "2"
    assert page.evaluate("document.activeElement.closest('#picker') !== null")
    page.locator("#picker button[type=submit]").click()
    page.locator("#picked .answer").wait_for()
    assert page.evaluate("document.activeElement.matches('#picked .answer')")
    top = "document.querySelector('#picked .answer').getBoundingClientRect().top"
    page.wait_for_function(f"{top} >= 0 && {top} < innerHeight")
    assert "Do not add up the intervals of two answers" in page.locator("#picked").inner_text()


def test_no_cell_that_has_all_is_said(opened: Open, public: Path) -> None:
    page = opened(public / "weekly")
    asked = [["weekly", [["county", ["01"]], ["state", ["C"]]], "2026-03-02", "2026-03-02"]]
    assert page.evaluate(ASK, asked) == [{"refused": "No cell has all that you chose."}]


def test_the_page_works_from_a_web_server_and_runs_no_script_but_its_own(opened: Open, three_weeks: Path) -> None:

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(three_weeks))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        root = f"http://127.0.0.1:{server.server_port}"
        page = opened(f"{root}/weekly")
        page.locator("#picker button[type=submit]").click()
        page.locator("#picked .answer").wait_for()
        assert page.complaints == [] and all(address.startswith(f"{root}/weekly/") for address in page.loaded)
        page.evaluate(
            """() => { const script = document.createElement('script');
            script.textContent = 'window.ran = true'; document.body.append(script); }"""
        )
        assert page.evaluate("window.ran") is None
        assert "Content Security Policy" in " ".join(page.complaints)
        server.shutdown()
