"""Pictures: every cell is in one, sums and intervals are those of the published cells, and names have room."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from typing import Any

import by_hand
import numpy as np
import pytest
from by_hand import AGE, HEIGHT, SCALE, WARD

from dphist_pipeline.base.domain import CategoricalAxis, Domain
from dphist_pipeline.estimates.estimate import Estimate, answer_box
from dphist_pipeline.estimates.laws import ReportLaw
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, ReportedCells, SharedNoise
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.publishing.drawing import INK, NUMBER
from dphist_pipeline.publishing.formatting import shortened_inside, shortened_text, shown_number, told_apart, visible
from dphist_pipeline.publishing.pages import picture_facts, picture_page
from dphist_pipeline.publishing.picture_sums import Grid, group_axis, marginal
from dphist_pipeline.publishing.pictures import BLUES, GREY, Picture, all_pictures, colour_bounds
from dphist_pipeline.spec.axes import domain_of
from examples import mostly_soaked

DAY = {"column": "day", "calendar": "day", "start": "2025-01-01", "stop": "2026-01-01", "other": True}
COUNTIES = [f"{number:05d}" for number in range(300)]
COUNTY = {"column": "county", "values": COUNTIES, "levels": {"state": [code[:4] for code in COUNTIES]}, "other": True}
INCOME = {"column": "income", "start": 0, "stop": 1234, "width": 1, "below": True, "above": True, "other": True}


def grid(axes: list[dict[str, Any]], scale: Fraction | None = SCALE) -> Grid:
    found = by_hand.estimate(axes, scale=scale)
    return Grid.of_all(found.domain, found.values, found.unbiased)


def axis_of(described: dict[str, Any]) -> Any:
    return domain_of([described]).axes[0]


@pytest.mark.parametrize("described", [AGE, WARD, HEIGHT, DAY, COUNTY, INCOME], ids=lambda axis: axis["column"])
@pytest.mark.parametrize("most", [4, 12, 24, 60])
def test_every_position_is_in_one_bar_and_there_are_few(described: dict[str, Any], most: int) -> None:
    axis = axis_of(described)
    shown = group_axis(axis, np.arange(axis.size), most)
    assert sorted(np.concatenate(shown.positions).tolist()) == list(range(axis.size))
    assert shown.size <= max(most, 6)
    assert shown.size == len(shown.labels) == len(shown.ticks)
    assert shown.other == axis.other and (shown.labels[-1] == "other") == axis.other
    assert bool(shown.note) == (shown.size < axis.size)


def test_what_was_summed_is_told() -> None:
    told = {
        most: group_axis(axis_of(described), np.arange(axis_of(described).size), most).note
        for most, described in ((60, DAY), (4, DAY), (59, INCOME), (40, COUNTY), (20, COUNTY))
    }
    assert told == {
        60: "summed by month",
        4: "summed by year",
        59: "every 50 of the 1,234 declared bins are summed, fewer at the end",
        40: "summed by state",
        20: "every 16 categories in declared order are summed, fewer at the end",
    }


def test_bars_have_the_ends_of_their_cells() -> None:
    income = group_axis(axis_of(INCOME), np.arange(1237), 60)
    assert income.labels[:3] == ("below 0", "0 to under 50", "50 to under 100")
    assert income.labels[-3:] == ("1200 to under 1234", "1234 or more", "other")
    months = group_axis(axis_of(DAY), np.arange(366), 60)
    assert months.labels[0] == "2025-01" and months.labels[-2:] == ("2025-12", "other")
    right = group_axis(axis_of(HEIGHT), np.arange(4), 60)
    assert right.labels[0] == "over 0 to 0.1"


@pytest.mark.parametrize("kind", ["cells", "rows of an amount", "linear"])
def test_sums_and_intervals_are_the_answers_to_the_same_boxes(kind: str) -> None:
    axes = [{"column": "x", "start": 0, "stop": 100, "width": 1}, WARD]
    shown = grid(axes)
    if kind == "rows of an amount":
        both_ends = NoisyCells(shown.values, SCALE, parts=8, draws=2)
        shown = Grid.of_all(shown.domain, shown.values, both_ends)
    if kind == "linear":
        shared = (SharedNoise(-3.0, (4, 4)), SharedNoise(-2.0, (2, 2)), SharedNoise(60.0, (1, 1)))
        shown = Grid.of_all(shown.domain, shown.values, NestedCells(shown.values, SCALE, shared))
    found = marginal(shown, [1, 0], [30, 20])
    assert found.values.shape == (3, 20)
    assert found.low is not None and found.high is not None
    for place, ward in enumerate(["surgery", "medicine", None]):
        for run in (0, 7, 19):
            box = {"x": (run * 5.0, run * 5.0 + 5), "ward": ward}
            answer = answer_box(Estimate(shown.domain, shown.values, (), shown.unbiased), box)
            assert (found.values[place, run], found.low[place, run], found.high[place, run]) == pytest.approx(
                (answer.unbiased, answer.ci_lower, answer.ci_upper), rel=1e-12
            )


def test_bars_of_an_amount_have_the_intervals_of_their_rows() -> None:
    """Rows are the sum of two draws: 1.4 times as wide as an end."""
    axes = [{"column": "x", "start": 0, "stop": 100, "width": 1}, {"column": "cost", "amount": [0, 10]}]
    values = np.arange(200.0).reshape(100, 2)
    made = Estimate(domain_of(axes), values, (), NoisyCells(values, SCALE, 1 << 16))
    found = marginal(Grid.of_all(made.of_rows.domain, made.of_rows.values, made.of_rows.unbiased), [0], [20])
    assert found.low is not None and found.high is not None
    for run in (0, 7, 19):
        answer = answer_box(made.of_rows, {"x": (run * 5.0, run * 5.0 + 5)})
        assert (found.low[run], found.high[run]) == (answer.ci_lower, answer.ci_upper)


@pytest.mark.parametrize("delta", [0.0, -0.1])
def test_bars_of_reports_have_the_intervals_of_their_own_sums(delta: float) -> None:
    axes = [{"column": "x", "start": 0, "stop": 120, "width": 1}]
    values = (np.arange(120.0) * 37 % 101 - 5) * 10
    law = ReportLaw(alpha=400.0, beta=0.01, gamma=1.5, delta=delta, step=3.0)
    cells = ReportedCells(values, 1 + np.arange(120) % 4, law)
    found = marginal(Grid.of_all(domain_of(axes), values, cells), [0], [60])
    assert found.low is not None and found.high is not None and found.reach is not None
    assert np.unique(found.reach).size > 20
    for place in range(60):
        answer = Estimate(domain_of(axes), values, (), cells).range(place * 2.0, place * 2.0 + 2)
        assert (found.values[place], found.low[place], found.high[place]) == pytest.approx(
            (answer.estimate, answer.ci_lower, answer.ci_upper), rel=1e-12
        )


def test_no_two_bins_share_an_end_and_long_numbers_have_commas() -> None:
    money = {"column": "money", "edges": [0, 500, 10_000, 1_000_000.5]}
    paid, counted = (
        group_axis(axis_of(one), np.arange(3), 60)
        for one in (money, {**money, "edges": [0, 500, 10_000, 1_000_000], "whole": True})
    )
    assert paid.labels == ("0 to under 500", "500 to under 10,000", "10,000 to under 1,000,000.5")
    assert paid.ticks == ("0–<500", "500–<10,000", "10,000–<1,000,000.5")
    assert counted.labels == ("0 to 499", "500 to 9,999", "10,000 to 999,999")
    assert counted.ticks == ("0–499", "500–9,999", "10,000–999,999")


def test_only_the_last_bin_of_reports_has_its_upper_end() -> None:
    closed = group_axis(axis_of({"column": "x", "edges": [0, 1, 2, 3]}), np.arange(3), 60, closed=True)
    assert closed.labels == ("0 to under 1", "1 to under 2", "2 to 3")
    assert closed.ticks == ("0", "1", "2–3")
    part = group_axis(axis_of({"column": "x", "edges": [0, 5, 10, 15]}), np.arange(2), 60, closed=True)
    assert part.labels == ("0 to under 5", "5 to under 10")


@pytest.mark.parametrize("number", mostly_soaked(range(1, 6), [0, 1, 4]))
@pytest.mark.parametrize("scale", [SCALE, None], ids=str)
def test_any_number_of_axes_gives_pictures_that_are_well_formed(number: int, scale: Fraction | None) -> None:
    pair = {"column": "pair", "values": ["x", "y"]}
    shown = grid([AGE, WARD, HEIGHT, pair, {**pair, "name": "second"}][:number], scale)
    pictures = all_pictures(shown)
    assert len(pictures) == (1 if number == 1 else number + 1)
    for picture in pictures:
        ElementTree.fromstring(picture.svg(picture.title))
        summed = {None: shown.values, "everywhere": shown.unbiased and shown.unbiased.values}[picture.sums.summed]
        assert picture.sums.values.sum() == pytest.approx(summed.sum())


def test_the_numbers_of_a_picture_are_all_in_its_tables() -> None:
    for axes in ([AGE], [AGE, WARD], [AGE, WARD, HEIGHT]):
        picture = all_pictures(grid(axes))[-1]
        cells = [cell for table in picture_facts(picture)["tables"] for row in table["rows"] for cell in row[1:]]
        shown = [shown_number(value, picture.sums.decimals) for value in picture.sums.values.ravel().tolist()]
        estimates = sorted(shown)
        if len(axes) == 1:
            assert sorted(cells[::4]) == estimates
        else:
            assert sorted(cell.partition(" (")[0] for cell in cells) == estimates
        assert len(picture_facts(picture)["tables"]) == (3 if len(axes) == 3 else 1)


def test_the_tables_of_a_picture_have_the_reliability_of_every_number() -> None:
    for axes in ([AGE], [AGE, WARD], [AGE, WARD, HEIGHT]):
        shape = grid(axes).values.shape
        made = by_hand.estimate(axes, np.linspace(-20, 180, math.prod(shape)).reshape(shape))
        sums = (picture := all_pictures(Grid.of_all(made.domain, made.values, made.unbiased))[-1]).sums
        assert sums.low is not None and sums.high is not None and sums.errors is not None and sums.words is not None
        expected = [
            RELIABILITY.word((low + high) / 2, error, low)
            for low, high, error in zip(sums.low.flat, sums.high.flat, sums.errors.flat, strict=True)
        ]
        assert sums.words.ravel().tolist() == expected and len({*expected}) > 1
        cells = [cell for table in picture_facts(picture)["tables"] for row in table["rows"] for cell in row[1:]]
        told = (
            [cell.partition(" (")[0] for cell in cells[3::4]]
            if len(axes) == 1
            else [cell.rpartition(")")[2].strip(",\u00a0") or "good" for cell in cells]
        )
        assert sorted(map(str, told)) == sorted(expected)
        if len(axes) == 1:  # the last bin has 180
            half = (sums.high[-1] - sums.low[-1]) / 2
            assert cells[-1] == f"good (±\u00a0{100 * half / 180:.{0 if half > 17.9 else 1}f}\u00a0%)"
            assert cells[3] == "poor"  # below 0
    unmeasured = picture_facts(Picture.of_grid(grid([AGE], None)))["tables"]
    assert unmeasured[0]["header"] == ["age", "estimate"]


def test_colours_rise_with_the_counts_and_reach_the_largest() -> None:
    for most in (1.0, 7.0, 999.0, 1e9):
        bounds = colour_bounds(np.array([0.0, most]))
        assert bounds[0] == 0 and bounds[-1] == most
        assert sorted(set(bounds)) == bounds and len(bounds) == len(BLUES) + 1


def marks(shown: Grid, kind: str) -> list[dict[str, Any]]:
    """The marks of a kind in the picture of a grid."""
    return [mark for mark in Picture.of_grid(shown).drawing().marks if mark["kind"] == kind]


def texts(shown: Grid) -> list[str]:
    return [mark["text"] for mark in marks(shown, "text")]


@pytest.mark.parametrize(("axis", "least"), [(AGE, -3.0), (WARD, -3.0), (AGE, -900.0), (WARD, -900.0)])
def test_a_bar_a_little_below_zero_takes_no_step_of_the_scale(axis: dict[str, Any], least: float) -> None:
    values = np.full(grid([axis]).values.shape, 1000.0)
    values[-1] = least
    shown = Grid.of_all(domain_of([axis]), values, NoisyCells(values, Fraction(1)))
    numbers = [text for text in texts(shown) if text.lstrip("−").replace(",", "").isdigit()]
    assert "0" in numbers and any(number.startswith("−") for number in numbers) == (least < -100)
    bars = Picture.of_grid(shown).drawing()
    assert all(mark.get(end, 0) >= 0 for mark in bars.marks for end in ("x", "y", "width", "height"))


def test_squares_whose_interval_holds_zero_are_grey_and_never_the_darkest() -> None:
    values = np.array([[0.0, 1, 500], [500, 500, 500], [500, 500, 500], [500, 500, 500]])
    found = by_hand.estimate([HEIGHT, WARD], values, off=0)
    smoothed = np.where(values == 1, 900.0, values)  # the largest estimate, of a cell whose interval holds 0
    shown = Grid.of_all(found.domain, smoothed, found.unbiased)
    colours = [mark["fill"] for mark in marks(shown, "rect")]
    assert colours == [GREY, GREY, *[BLUES[-1]] * 10]
    inks = [mark["fill"] for mark in marks(shown, "text") if mark["size"] == NUMBER]
    assert inks == [INK, INK, *["white"] * 10]
    assert "400 or more" in texts(shown) and "interval holds 0" in texts(shown)
    assert "Grey: the interval holds 0." in Picture.of_grid(shown).note
    surely_below = Grid.of_all(found.domain, values - 500, NoisyCells(values - 500, SCALE))
    assert [mark["fill"] for mark in marks(surely_below, "rect")[:2]] == [BLUES[0], BLUES[0]]


def test_squares_have_their_numbers_where_there_is_room() -> None:
    def numbers(axes: list[dict[str, Any]], most: float) -> list[str]:
        shape = grid(axes).values.shape
        values = np.linspace(most / 2, most, math.prod(shape)).reshape(shape)
        drawn = Picture.of_grid(Grid.of_all(domain_of(axes), values, NoisyCells(values, SCALE))).svg()
        return re.findall(r">([0-9,]+)</text>", drawn)

    assert "2,000" in numbers([HEIGHT, WARD], 2000) and len(numbers([HEIGHT, WARD], 2000)) >= 12
    many = {"column": "age", "start": 0, "stop": 120, "width": 5, "whole": True}
    assert "2,000,000" not in numbers([many, WARD], 2e6)
    assert "600" in numbers([AGE, WARD, HEIGHT], 600)


def test_a_few_bins_with_long_names_all_have_theirs() -> None:
    """Two of seven columns were named. Some of many bins have no name, since names in order tell the others."""
    bounds = {"column": "income", "edges": [0, 10_000, 20_000, 50_000, 100_000], "below": True, "above": True}
    names = ["<0", "0–<10,000", "10,000–<20,000", "20,000–<50,000", "50,000–<100,000", "100,000+", "other"]
    for axes in ([bounds | {"other": True}], [bounds | {"other": True}, WARD]):
        leaning = [mark["text"] for mark in marks(grid(axes), "text") if mark["angle"] == -45]
        assert sorted(leaning) == sorted(names)
    many = marks(grid([{"column": "age", "start": 0, "stop": 120_000, "width": 5_000}]), "text")
    assert not any(mark["angle"] == -45 for mark in many) and len([mark for mark in many if "–<" in mark["text"]]) < 24


def test_axes_and_colours_have_titles_with_their_unit() -> None:
    for axes in ([AGE], [WARD], [AGE, WARD], [AGE, WARD, HEIGHT]):
        drawn = Picture.of_grid(grid(axes)).svg()
        assert ">rows counted</text>" in drawn, axes
        assert all(f">{axis['column']}</text>" in drawn for axis in axes[:2] if len(axes) < 3), axes


def test_other_stands_apart_from_the_last_category() -> None:
    picture = ElementTree.fromstring(Picture.of_grid(grid([WARD])).svg())
    rows = {
        str(text.text): float(text.attrib["y"])
        for text in picture.iter("{http://www.w3.org/2000/svg}text")
        if text.text in ("surgery", "medicine", "other")
    }
    assert rows["other"] - rows["medicine"] == pytest.approx(2 * (rows["medicine"] - rows["surgery"]))


HOSTILE = [
    *("datum.x", "a.b['c']", '\\"]', "</svg><script>alert(1)</script>", '" onload="alert(1)', "same", "same\u200e"),
    *("", " ", "null", "${x}", "{{ 7*7 }}", "signal", "x" * 300, "漢" * 90, "other", ' role="'),
]


def grid_of_names(values: list[str], names: tuple[str, ...]) -> Grid:
    """A grid of categories that no spec may declare."""
    domain = Domain(tuple(CategoricalAxis(name, "x", tuple(values), other=True) for name in names))
    numbers = np.arange(float(domain.cells)).reshape(domain.shape)
    return Grid.of_all(domain, numbers, NoisyCells(numbers, SCALE))


@pytest.mark.parametrize("number", mostly_soaked([1, 2, 3], [0, 2]))
def test_hostile_names_are_texts_of_a_picture(number: int) -> None:
    picture = Picture.of_grid(grid_of_names(HOSTILE, (HOSTILE[0], HOSTILE[3], HOSTILE[4])[:number]))
    svg = ElementTree.fromstring(picture.svg(HOSTILE[4]))
    for element in svg.iter():
        assert element.tag.rpartition("}")[2] in (
            "svg",
            "title",
            "desc",
            "g",
            "path",
            "rect",
            "line",
            "text",
            "tspan",
            "defs",
        )
        assert not any(name.startswith("on") or name.endswith("href") for name in element.attrib)


def test_a_script_in_a_category_a_title_or_a_unit_stays_text_in_a_file_and_in_a_page() -> None:
    script = HOSTILE[3]
    for names in ((script,), (script, script)):
        picture = Picture.of_grid(grid_of_names([script, "b"], names)).told_as({"counted": script, "show_below": 1})
        facts = picture_facts(picture)
        for svg in (picture.svg(script), f'<svg viewBox="{facts["view_box"]}">{facts["content"]}</svg>'):
            assert "<script" not in svg and "&lt;script&gt;" in svg
            ElementTree.fromstring(svg)
        assert "<script" not in picture_page(picture, script)


def test_equal_categories_keep_bars_of_their_own() -> None:
    shown = grid_of_names(["a\u200e", "a\u200f", "a\u200e (2)", "other"], ("class",))
    assert [text for text in texts(shown) if text.startswith(("a", "other"))] == [
        "a\ufffd",
        "a\ufffd (2)",
        "a\ufffd (2) (2)",
        "other",
        "other (2)",
    ]


def test_a_large_grid_is_summed_before_it_is_drawn() -> None:
    axes = [{"column": name, "start": 0, "stop": 1000, "width": 1} for name in ("x", "y")]
    assert len(marks(grid(axes), "rect")) <= 24 * 24 and len(marks(grid([INCOME]), "rect")) <= 60


def test_equal_pictures_have_equal_bytes() -> None:
    for axes in ([AGE], [AGE, WARD], [AGE, WARD, HEIGHT]):
        assert Picture.of_grid(grid(axes)).svg() == Picture.of_grid(grid(axes)).svg()


def test_marks_that_turn_text_are_shown_as_such() -> None:
    assert visible("a\u202eb\u2066c\x00d\ufffe") == "a\ufffdb\ufffdc\ufffdd\ufffd"
    assert visible("<=50K münchen 漢字") == "<=50K münchen 漢字"


def test_numbers_are_whole_or_have_one_digit_after_the_point() -> None:
    assert [shown_number(value) for value in (-0.01, 12.0, 2.25, -1234.5, 1e15)] == [
        *("0", "12", "2.2", "−1,234", "1e+15"),
    ]


def test_a_long_name_is_cut_off_by_its_width() -> None:
    assert shortened_text("surgery", 7) == "surgery" and shortened_text("surgery", 6) == "surge…"
    assert shortened_text("漢字漢字", 8) == "漢字漢字" and shortened_text("漢字漢字", 7) == "漢字漢…"
    assert shortened_text("", 3) == ""


def test_a_title_of_any_length_takes_at_most_four_lines() -> None:
    for title, lines in (("word " * 500, 4), ("", 1), ("x" * 5000, 4)):
        drawn = Picture.of_grid(grid([AGE])).drawing(title or " ").marks
        assert len([mark for mark in drawn if mark["kind"] == "text" and mark["bold"]]) == lines


def test_long_names_lose_the_words_that_all_of_them_share() -> None:
    names = ["Ward of day surgery and care", "Ward of night surgery and care", "other", "Ward"]
    assert told_apart(names, 20) == ["…day…", "…night…", "other", "Ward"] and told_apart(names, 40) == names
    for unlike in (["Ward of day surgery and care"], ["x" * 30, "y" * 30], ["same words in both"] * 2, []):
        assert told_apart(unlike, 10) == unlike
    assert told_apart(["very long names of wards", "very long names of wards too"], 9)[0] == "very long names of wards"


def test_names_without_shared_words_lose_their_middle() -> None:
    assert shortened_inside("cardiologyandneurology 7", 16) == "cardiology…ogy 7"


def test_long_names_that_differ_at_their_end_stay_apart() -> None:
    names = [f"department of specialty {number}" for number in range(60)]
    shown = [mark["text"] for mark in marks(grid_of_names(names, ("class",)), "text") if mark["anchor"] == "end"]
    assert "…7" in shown and "other" in shown and len(set(shown)) == 61 and all(len(name) <= 24 for name in shown)
