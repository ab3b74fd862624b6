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

from dphist_pipeline.answering.plot import release_svg
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, SharedNoise
from dphist_pipeline.publishing.drawing import BAR, INK
from dphist_pipeline.publishing.pictures import BLUES, GREY, MOST_BARS

SVG = "{http://www.w3.org/2000/svg}"
PAIR: dict[str, Any] = {"column": "pair", "values": ["x", "y"]}
LEGEND = 9
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


def squares(picture: ElementTree.Element, *fills: str, keys: bool = False) -> list[tuple[float, float, float, float]]:
    """Left, top, width and height of every area in these colours, those of the legend included if `keys`."""
    paths = [mark for mark in picture.iter(f"{SVG}path") if mark.get("fill") in fills]
    areas = [one for mark in paths if keys or "class" not in mark.attrib for one in mark.attrib["d"].split("M")[1:]]
    numbers = [[float(number) for number in re.findall(r"-?[\d.]+", area)] for area in areas]
    return [(left, top, width, height) for left, top, width, height, _ in numbers]


def bars(picture: ElementTree.Element) -> list[tuple[float, float, float, float]]:
    """Left, top, width and height of every bar or square."""
    return squares(picture, BAR, *BLUES, GREY)


def intervals(picture: ElementTree.Element) -> list[tuple[float, float]]:
    """Where the line of every standing interval starts, and how far down it goes."""
    paths = [mark.attrib["d"] for mark in picture.iter(f"{SVG}path") if mark.get("stroke") == INK]
    ends = [re.match(r"\S+ (-?[\d.]+)v(-?[\d.]+)m", line) for path in paths for line in path.split("M")[1:]]
    return [(float(end[1]), float(end[2])) for end in ends if end]


def texts(picture: ElementTree.Element) -> list[str]:
    return [" ".join(text.itertext()) for text in picture.iter(f"{SVG}text")]


def height_scale(picture: ElementTree.Element) -> tuple[float, float]:
    """Where 0 is, and how tall a record is: from the labels beside the picture."""
    found = {}
    beside = [group for group in picture.iter(f"{SVG}g") if group.get("text-anchor") == "end"]
    for text in (text for group in beside for text in group.findall(f"{SVG}text")):
        number = str(text.text).replace(",", "").replace("−", "-")
        if re.fullmatch(r"-?[\d.]+", number):
            found[float(number)] = float(text.attrib["y"]) - 4
    low, high = min(found), max(found)
    record = (found[low] - found[high]) / (high - low)
    return found[low] + low * record, record


def assert_drawn_at(picture: ElementTree.Element, values: Any, lows: Any, highs: Any) -> None:
    """Bars and intervals stand where their numbers are on the scale beside them."""
    zero, record = height_scale(picture)
    assert [
        zero - top if value >= 0 else -tall for value, (_, top, _, tall) in zip(values, bars(picture), strict=True)
    ] == (pytest.approx([value * record for value in values], abs=0.6))
    assert [zero - start for start, _ in intervals(picture)] == pytest.approx([low * record for low in lows], abs=0.6)
    assert [-down for _, down in intervals(picture)] == pytest.approx(
        [(high - low) * record for low, high in zip(lows, highs, strict=True)], abs=0.1
    )


def test_lines_are_the_intervals_of_the_table(tmp_path: Path) -> None:
    values = np.array([300.0, 600, 0])
    reach = noise_law(SCALE).half_width_of_sum(1)
    assert_drawn_at(drawn(tmp_path, [BINS], values), values, values - reach, values + reach)


def test_an_estimate_below_zero_hangs_from_the_line_with_its_whole_interval(tmp_path: Path) -> None:
    values = np.array([300.0, -100, 40])
    reach = noise_law(SCALE).half_width_of_sum(1)
    picture = drawn(tmp_path, [BINS], values)
    assert_drawn_at(picture, values, values - reach, values + reach)


def test_linear_estimates_have_the_interval_of_their_own_box(tmp_path: Path) -> None:
    made = by_hand.estimate([BINS], np.full(3, 100.0), off=0)
    shared = (SharedNoise(-3.0, (2,)), SharedNoise(60.0, (1,)))
    made = replace(made, unbiased=NestedCells(made.values, SCALE, shared))
    picture = ElementTree.fromstring(release_svg(by_hand.publish(tmp_path, made, [BINS]).path))
    reach = noise_law(SCALE).half_width_of_linear(57)
    assert_drawn_at(picture, [100] * 3, [100 - reach] * 3, [100 + reach] * 3)


def test_without_noisy_cells_there_are_no_intervals_and_it_says_so(tmp_path: Path) -> None:
    picture = drawn(tmp_path, [BINS], np.array([3.0, 1, 2]), scale=None)
    assert intervals(picture) == []
    assert len(bars(picture)) == 3
    assert "no intervals" in " ".join(texts(picture))


def test_categories_lie_below_each_other_with_their_names_beside(tmp_path: Path) -> None:
    picture = drawn(tmp_path, [WARD], np.array([30.0, 60, 0]))
    lefts, rows, widths, _ = zip(*bars(picture), strict=True)
    assert len(set(lefts)) == 1 and list(rows) == sorted(rows)
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.2) and widths[2] == 0
    places = {str(text.text): float(text.attrib["y"]) for text in picture.iter(f"{SVG}text")}
    beside = [places[name] for name in ("surgery", "medicine", "other")]
    tall = bars(picture)[0][3]
    assert all(0 < place - row < tall for place, row in zip(beside, rows, strict=True))


VALUES = {"zero": [0.0] * 3, "negative": [-500.0, -1, -0.5], "huge": [1e15, -1e15, 3], "small": [0.01, 0.5, 0.2]}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("scale", [SCALE, None], ids=str)
@pytest.mark.parametrize("axis", [BINS, WARD], ids=lambda axis: axis["column"])
def test_any_values_stay_inside_the_frame(
    tmp_path: Path, axis: dict[str, Any], values: list[float], scale: Fraction | None
) -> None:
    picture = drawn(tmp_path, [axis], np.array(values), scale)
    _, _, width, height = map(float, picture.attrib["viewBox"].split())
    assert len(bars(picture)) == 3
    for left, top, wide, tall in bars(picture):
        assert left >= 0 and left + wide <= width and top >= 0 and top + tall <= height
    for start, down in intervals(picture):
        assert 0 <= start <= height and start + down >= 0


def test_one_cell_is_a_picture_too(tmp_path: Path) -> None:
    assert len(bars(drawn(tmp_path, [{"column": "age", "edges": [0, 1]}]))) == 1


@pytest.mark.slow
def test_many_cells_are_summed_to_few_bars(tmp_path: Path) -> None:
    many = {"column": "income", "start": 0, "stop": 100_000, "width": 1}
    picture = drawn(tmp_path, [many])
    assert len(bars(picture)) == MOST_BARS - 10
    assert "income: every 2,000 of the 100,000 declared bins are summed" in " ".join(texts(picture))
    drawn(tmp_path / "2", [PAIR, {**many, "stop": 50_000}])


@pytest.mark.slow
def test_two_axes_are_colours_and_three_small_pictures(tmp_path: Path) -> None:
    two, three = (drawn(tmp_path / str(len(axes)), axes) for axes in ([AGE, WARD], [AGE, WARD, PAIR]))
    for picture, cells in ((two, 15), (three, 30)):
        # Grey is explained, too.
        assert len(squares(picture, *BLUES, GREY, keys=True)) == cells + LEGEND + 1
    assert {"x", "y"} <= set(texts(three))


def test_names_are_escaped(tmp_path: Path) -> None:
    names = ["<=50K", "a & b", "]]>", "O'Brien", "select", "münchen\ufffe", "x" * 200]
    shown = set(texts(drawn(tmp_path, [{"column": "class", "values": names}])))
    assert shown >= {"<=50K", "a & b", "]]>", "O'Brien", "select", "münchen\ufffd"}
    (cut,) = [text for text in shown if text.startswith("xxx")]
    assert "…" in cut and len(cut) < 40


def test_edges_keep_their_digits(tmp_path: Path) -> None:
    picture = drawn(tmp_path, [{"column": "income", "edges": [1234567, 1234568, 1234570]}])
    assert {"1,234,567", "1,234,568–<1,234,570"} <= set(texts(picture))


@pytest.mark.slow
def test_it_is_a_function_of_the_public_files(tmp_path: Path) -> None:
    first = by_hand.publish(tmp_path / "planted_7c1f", by_hand.estimate([AGE, WARD]), [AGE, WARD])
    elsewhere = shutil.copytree(first.path, tmp_path / "elsewhere")
    assert release_svg(first.path) == release_svg(elsewhere)
    assert "planted_7c1f" not in release_svg(first.path)
