"""The picture of a release as a file of its own: well-formed for any shape and value, made of public files alone."""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pytest
from by_hand import AGE, SCALE, WARD
from numpy.typing import NDArray

from dphist_pipeline.answering.intervals import half_width_of_linear, half_width_of_sum
from dphist_pipeline.estimates.noisy import NestedCells, SharedNoise
from dphist_pipeline.publishing.plot import release_svg
from dphist_pipeline.publishing.plots import MOST_BARS
from dphist_pipeline.publishing.plots_drawing import WIDTH

SVG = "{http://www.w3.org/2000/svg}"
PAIR: dict[str, Any] = {"column": "pair", "values": ["x", "y"]}
BINS: dict[str, Any] = {"column": "age", "edges": [0, 18, 65, 100]}


def drawn(
    folder: Path,
    axes: list[dict[str, Any]],
    values: NDArray[np.float64] | None = None,
    scale: Fraction | None = SCALE,
    off: float = 0,
) -> ElementTree.Element:
    """The picture of a release made by hand, parsed."""
    made = by_hand.publish(folder, by_hand.estimate(axes, values, scale, off), axes)
    return ElementTree.fromstring(release_svg(made.path))


def paths(picture: ElementTree.Element, kind: str) -> str:
    """All that is drawn of one kind."""
    return "".join(path.attrib["d"] for path in picture.iter(f"{SVG}path") if path.get("class") == kind)


def bars(picture: ElementTree.Element) -> list[tuple[float, float]]:
    """Foot and head of every standing bar."""
    found = re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)h[\d.]+V[\d.]+z", paths(picture, "bar"))
    return [(float(foot), float(head)) for foot, head in found]


def intervals(picture: ElementTree.Element) -> list[tuple[float, float]]:
    """Lower and upper end of every standing interval."""
    return [(float(low), float(high)) for low, high in re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)m", paths(picture, "end"))]


def texts(picture: ElementTree.Element) -> list[str]:
    return [str(text.text) for text in picture.iter(f"{SVG}text")]


def heights(picture: ElementTree.Element) -> tuple[float, float]:
    """Where 0 is, and how tall a record is: from the marks beside the picture."""
    marks = [
        path for path in picture.iter(f"{SVG}path") if path.get("class") in ("zero", "line") and "H" in path.attrib["d"]
    ]
    rows = {path.get("class"): float(path.attrib["d"].partition("H")[0].split()[1]) for path in marks}
    numbers = [
        float(text.replace(",", "").replace("−", "-")) for text in texts(picture) if re.fullmatch("[−\\d,.]+", text)
    ]
    step = numbers[1] - numbers[0]
    lines = sorted({float(path.attrib["d"].partition("H")[0].split()[1]) for path in marks}, reverse=True)
    return rows["zero"], (lines[0] - lines[1]) / step


def assert_drawn_at(picture: ElementTree.Element, values: Any, lows: Any, highs: Any) -> None:
    """Bars and intervals stand where their numbers are on the scale beside them."""
    zero, tall = heights(picture)
    assert [foot for foot, _ in bars(picture)] == pytest.approx([zero] * len(values), abs=0.06)
    assert [zero - head for _, head in bars(picture)] == pytest.approx([value * tall for value in values], abs=0.15)
    assert [zero - low for low, _ in intervals(picture)] == pytest.approx([low * tall for low in lows], abs=0.15)
    assert [zero - high for _, high in intervals(picture)] == pytest.approx([high * tall for high in highs], abs=0.15)


def test_lines_are_the_intervals_of_the_table(tmp_path: Path) -> None:
    values = np.array([300.0, 600, 0])
    reach = half_width_of_sum(SCALE, 1)
    assert_drawn_at(drawn(tmp_path, [BINS], values), values, np.maximum(values - reach, 0), values + reach)


def test_an_estimate_below_zero_hangs_from_the_line_and_its_interval_is_cut_off(tmp_path: Path) -> None:
    values = np.array([300.0, -100, 40])
    reach = half_width_of_sum(SCALE, 1)
    picture = drawn(tmp_path, [BINS], values)
    assert_drawn_at(picture, values, np.maximum(values - reach, 0), np.maximum(values + reach, 0))


def test_linear_estimates_have_the_interval_of_their_own_box(tmp_path: Path) -> None:
    made = by_hand.estimate([BINS], np.full(3, 100.0), off=0)
    shared = (SharedNoise(-3.0, (2,)), SharedNoise(60.0, (1,)))
    made = replace(made, unbiased=NestedCells(made.values, SCALE, shared))
    picture = ElementTree.fromstring(release_svg(by_hand.publish(tmp_path, made, [BINS]).path))
    reach = half_width_of_linear(SCALE, 57)
    assert_drawn_at(picture, [100] * 3, [100 - reach] * 3, [100 + reach] * 3)


def test_without_noisy_cells_there_are_no_intervals_and_it_says_so(tmp_path: Path) -> None:
    picture = drawn(tmp_path, [BINS], np.array([3.0, 1, 2]), scale=None)
    assert intervals(picture) == []
    assert len(bars(picture)) == 3
    assert "no intervals" in " ".join(texts(picture))


def test_categories_lie_below_each_other_with_their_names_beside(tmp_path: Path) -> None:
    picture = drawn(tmp_path, [WARD], np.array([30.0, 60, 0]))
    found = re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)v12", paths(picture, "bar"))
    starts, rows, ends = ([float(number) for number in numbers] for numbers in zip(*found, strict=True))
    assert len(set(starts)) == 1 and rows == sorted(rows)
    assert (ends[1] - starts[1]) == pytest.approx(2 * (ends[0] - starts[0]), abs=0.3) and ends[2] == starts[2]
    assert {"surgery", "medicine", "other"} <= set(texts(picture))


VALUES = {"zero": [0.0] * 3, "negative": [-500.0, -1, -0.5], "huge": [1e15, -1e15, 3], "small": [0.01, 0.5, 0.2]}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("scale", [SCALE, None], ids=str)
@pytest.mark.parametrize("axis", [BINS, WARD], ids=lambda axis: axis["column"])
def test_any_values_stay_inside_the_frame(
    tmp_path: Path, axis: dict[str, Any], values: list[float], scale: Fraction | None
) -> None:
    picture = drawn(tmp_path, [axis], np.array(values), scale)
    tall = float(picture.attrib["viewBox"].split()[3])
    for kind in ("bar", "end"):
        for x, y in re.findall(r"M(-?[\d.]+) (-?[\d.]+)", paths(picture, kind)):
            assert 0 <= float(x) <= WIDTH and 0 <= float(y) <= tall
        for end in re.findall(r"H(-?[\d.]+)", paths(picture, kind)):
            assert 0 <= float(end) <= WIDTH
        for end in re.findall(r"V(-?[\d.]+)", paths(picture, kind)):
            assert 0 <= float(end) <= tall


def test_one_cell_is_a_picture_too(tmp_path: Path) -> None:
    assert len(bars(drawn(tmp_path, [{"column": "age", "edges": [0, 1]}]))) == 1


def test_many_cells_are_summed_to_few_bars(tmp_path: Path) -> None:
    many = {"column": "income", "start": 0, "stop": 100_000, "width": 1}
    picture = drawn(tmp_path, [many])
    assert len(bars(picture)) == MOST_BARS - 10
    assert "income: each stands for 2,000 of the 100,000 declared bins" in " ".join(texts(picture))
    drawn(tmp_path / "2", [PAIR, {**many, "stop": 50_000}])


def test_two_axes_are_colours_and_three_small_pictures(tmp_path: Path) -> None:
    two, three = (drawn(tmp_path / str(len(axes)), axes) for axes in ([AGE, WARD], [AGE, WARD, PAIR]))
    for picture, squares in ((two, 15), (three, 30)):
        legend = 9
        assert sum(paths(picture, f"q{step}").count("M") for step in range(9)) == squares + legend
    assert {"x", "y"} <= set(texts(three))


def test_names_are_escaped(tmp_path: Path) -> None:
    names = ["<=50K", "a & b", "]]>", "O'Brien", "select", "münchen\ufffe", "x" * 200]
    shown = set(texts(drawn(tmp_path, [{"column": "class", "values": names}])))
    assert shown >= {"<=50K", "a & b", "]]>", "O'Brien", "select", "münchen\ufffd"}
    (cut,) = [text for text in shown if text.startswith("xxx")]
    assert cut.endswith("…") and len(cut) < 40


def test_edges_keep_their_digits(tmp_path: Path) -> None:
    picture = drawn(tmp_path, [{"column": "income", "edges": [1234567, 1234568, 1234570]}])
    assert {"1234567", "1234568–1234570"} <= set(texts(picture))


def test_it_turns_dark_where_its_reader_prefers_that(tmp_path: Path) -> None:
    made = by_hand.publish(tmp_path, by_hand.estimate([AGE]), [AGE])
    style = release_svg(made.path).partition("<style>")[2].partition("</style>")[0]
    assert "prefers-color-scheme:dark" in style and "var(" not in style


def test_it_is_a_function_of_the_public_files(tmp_path: Path) -> None:
    first = by_hand.publish(tmp_path / "planted_7c1f", by_hand.estimate([AGE, WARD]), [AGE, WARD])
    elsewhere = shutil.copytree(first.path, tmp_path / "elsewhere")
    assert release_svg(first.path) == release_svg(elsewhere)
    assert "planted_7c1f" not in release_svg(first.path)
