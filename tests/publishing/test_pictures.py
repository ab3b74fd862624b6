"""Pictures: every cell is in one, sums and intervals are those of the published cells, and names have room."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from fractions import Fraction
from typing import Any

import by_hand
import numpy as np
import pytest
from by_hand import AGE, HEIGHT, SCALE, WARD

from dphist_pipeline.answering.boxes import answer_box
from dphist_pipeline.estimates.noisy import NestedCells, ReportedCells, ReportLaw, SharedNoise
from dphist_pipeline.publishing.plots import all_pictures, main_picture
from dphist_pipeline.publishing.plots_axes import along, seen
from dphist_pipeline.publishing.plots_drawing import STEPS, alone, scale_of, shown_number, wrapped
from dphist_pipeline.publishing.plots_heat import colour_bounds
from dphist_pipeline.publishing.plots_page import exact, figure
from dphist_pipeline.publishing.plots_sums import Grid, sums
from dphist_pipeline.spec.axes import domain_of

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
    shown = along(axis, np.arange(axis.size), most)
    assert sorted(np.concatenate(shown.groups).tolist()) == list(range(axis.size))
    assert shown.size <= max(most, 6)
    assert shown.size == len(shown.labels) == len(shown.ticks) == len(shown.edges) - 1
    assert bool(shown.note) == (shown.size < axis.size)


def test_what_was_summed_is_told() -> None:
    told = {
        most: along(axis_of(described), np.arange(axis_of(described).size), most).note
        for most, described in ((60, DAY), (4, DAY), (59, INCOME), (40, COUNTY), (20, COUNTY))
    }
    assert told == {
        60: "summed by month",
        4: "summed by year",
        59: "each stands for 50 of the 1,234 declared bins, the last for fewer",
        40: "summed by state",
        20: "each stands for 16 categories that are declared one after the other, the last for fewer",
    }


def test_bars_have_the_ends_of_their_cells() -> None:
    income = along(axis_of(INCOME), np.arange(1237), 60)
    assert income.labels[:3] == ("below 0", "0 to under 50", "50 to under 100")
    assert income.labels[-3:] == ("1200 to under 1234", "1234 or more", "other")
    months = along(axis_of(DAY), np.arange(366), 60)
    assert months.labels[0] == "2025-01" and months.labels[-2:] == ("2025-12", "other")
    right = along(axis_of(HEIGHT), np.arange(4), 60)
    assert right.labels[0] == "over 0 to 0.1"


@pytest.mark.parametrize("linear", [False, True])
def test_sums_and_intervals_are_the_answers_to_the_same_boxes(linear: bool) -> None:
    axes = [{"column": "x", "start": 0, "stop": 100, "width": 1}, WARD]
    shown = grid(axes)
    if linear:
        shared = (SharedNoise(-3.0, (4, 4)), SharedNoise(-2.0, (2, 2)), SharedNoise(60.0, (1, 1)))
        shown = Grid.of_all(shown.domain, shown.values, NestedCells(shown.values, SCALE, shared))
    found = sums(shown, [1, 0], [30, 20])
    assert found.values.shape == (3, 20)
    assert found.low is not None and found.high is not None
    for place, ward in enumerate(["surgery", "medicine", None]):
        for run in (0, 7, 19):
            box = {"x": (run * 5.0, run * 5.0 + 5), "ward": ward}
            answer = answer_box(shown.domain, shown.values, shown.unbiased, box)
            assert (found.values[place, run], found.low[place, run], found.high[place, run]) == pytest.approx(
                (answer.estimate, answer.lower, answer.upper), rel=1e-12
            )


@pytest.mark.parametrize("delta", [0.0, -0.1])
def test_bars_of_reports_have_the_intervals_of_their_own_sums(delta: float) -> None:
    axes = [{"column": "x", "start": 0, "stop": 120, "width": 1}]
    values = (np.arange(120.0) * 37 % 101 - 5) * 10
    law = ReportLaw(alpha=400.0, beta=0.01, gamma=1.5, delta=delta, step=3.0)
    cells = ReportedCells(values, 1 + np.arange(120) % 4, law)
    found = sums(Grid.of_all(domain_of(axes), values, cells), [0], [60])
    assert found.low is not None and found.high is not None and found.reach is not None
    assert np.unique(found.reach).size > 20
    for place in range(60):
        answer = answer_box(domain_of(axes), values, cells, {"x": (place * 2.0, place * 2.0 + 2)})
        assert (found.values[place], found.low[place], found.high[place]) == pytest.approx(
            (answer.estimate, answer.lower, answer.upper), rel=1e-12
        )


def test_only_the_last_bin_of_reports_has_its_upper_end() -> None:
    closed = along(axis_of({"column": "x", "edges": [0, 1, 2, 3]}), np.arange(3), 60, closed=True)
    assert closed.labels == ("0 to under 1", "1 to under 2", "2 to 3")
    assert closed.ticks == ("0", "1", "2–3")
    part = along(axis_of({"column": "x", "edges": [0, 5, 10, 15]}), np.arange(2), 60, closed=True)
    assert part.labels == ("0 to under 5", "5 to under 10")


@pytest.mark.parametrize("number", range(1, 6))
@pytest.mark.parametrize("scale", [SCALE, None], ids=str)
def test_any_number_of_axes_gives_pictures_that_are_well_formed(number: int, scale: Fraction | None) -> None:
    pair = {"column": "pair", "values": ["x", "y"]}
    shown = grid([AGE, WARD, HEIGHT, pair, {**pair, "name": "second"}][:number], scale)
    pictures = all_pictures(shown)
    assert len(pictures) == (1 if number == 1 else number + 1)
    for picture in pictures:
        ElementTree.fromstring(alone(picture.drawing, picture.title))
        assert "<details>" in figure(picture)
        assert picture.sums.values.sum() == pytest.approx(shown.values.sum())


def test_colours_rise_with_the_counts_and_reach_the_largest() -> None:
    for most in (1.0, 7.0, 999.0, 1e9):
        bounds = colour_bounds(np.array([0.0, most]))
        assert bounds[0] == 0 and bounds[-1] == most
        assert sorted(set(bounds)) == bounds and len(bounds) == STEPS + 1


def test_a_scale_has_zero_and_holds_all_values_and_intervals() -> None:
    for values in ([0.0, 0, 0], [-500.0, -1, -0.5], [1e15, -1e15, 3], [0.01, 0.5, 0.2], [-3.0, 800, 2]):
        found = sums(Grid.of_all(*_ward(np.array(values))), [0], [30])
        scale = scale_of(found)
        assert 0 in scale.marks and len(scale.marks) <= 8
        assert scale.low == min(0.0, *values)
        assert found.high is not None and scale.high >= max(*values, found.high.max())


def _ward(values: Any) -> Any:
    found = by_hand.estimate([WARD], values, off=0)
    return found.domain, found.values, found.unbiased


def test_squares_whose_interval_reaches_zero_have_a_dot() -> None:
    values = np.array([[0.0, 1, 500], [500, 500, 500], [500, 500, 500], [500, 500, 500]])
    found = by_hand.estimate([HEIGHT, WARD], values, off=0)
    picture = main_picture(Grid.of_all(found.domain, found.values, found.unbiased))
    assert picture.drawing.body.count("h0") == 2
    assert "Dots: the interval reaches 0." in picture.drawing.note


def test_marks_that_turn_text_are_shown_as_such() -> None:
    assert seen("a\u202eb\u2066c\x00d\ufffe") == "a\ufffdb\ufffdc\ufffdd\ufffd"
    assert seen("<=50K münchen 漢字") == "<=50K münchen 漢字"


def test_numbers_are_short_in_pictures_and_whole_in_tables() -> None:
    assert [shown_number(value) for value in (0.0, -0.0, 2.5, 1234.0, 25e6, 1e15)] == [
        *("0", "0", "2.5", "1,234", "25M", "1e+15"),
    ]
    assert [exact(value) for value in (-0.01, 12.0, 2.25, -1234.5)] == ["0", "12", "2.2", "−1,234"]


def test_a_title_of_any_length_takes_at_most_four_lines() -> None:
    assert len(wrapped("word " * 500, 400)) == 4
    assert wrapped("", 400) == [""]
    assert len(wrapped("x" * 5000, 400)) == 1
