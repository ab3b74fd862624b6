"""The picture of a release: well-formed for every shape and value, and made of public files alone."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pytest
from by_hand import AGE, HEIGHT, SCALE, WARD
from numpy.typing import NDArray

from dphist_pipeline.answering.intervals import half_width_of_linear, half_width_of_sum
from dphist_pipeline.privacy.noisy import NestedCells, SharedNoise
from dphist_pipeline.publishing.plot import BOTTOM, MOST_BARS, TOP, WIDTH, release_svg
from dphist_pipeline.publishing.plot import HEIGHT as TALL

SVG = "{http://www.w3.org/2000/svg}"
PAIR: dict[str, Any] = {"column": "pair", "values": ["x", "y"]}


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


def bars(picture: ElementTree.Element) -> list[tuple[float, float]]:
    """Top and height of every bar."""
    found = [shape for shape in picture.iter(f"{SVG}rect") if shape.get("fill") == "#4a7ebb"]
    return [(float(shape.attrib["y"]), float(shape.attrib["height"])) for shape in found]


def texts(picture: ElementTree.Element) -> list[str]:
    return [str(text.text) for text in picture.iter(f"{SVG}text")]


def assert_inside(picture: ElementTree.Element) -> None:
    """Nothing is drawn outside the frame, and nothing has a negative size."""
    for top, height in bars(picture):
        assert height >= 0
        assert TOP - 0.1 <= top <= top + height <= TALL - BOTTOM + 0.1
    for line in picture.iter(f"{SVG}line"):
        ends = [float(line.attrib[name]) for name in ("x1", "x2", "y1", "y2")]
        assert all(0 <= end <= WIDTH for end in ends)
        assert all(TOP - 0.1 <= end <= TALL - BOTTOM + 0.1 for end in ends[2:])


@pytest.mark.parametrize("number", range(1, 6))
def test_it_shows_the_sums_along_the_first_axis_of_any_number_of_axes(tmp_path: Path, number: int) -> None:
    axes = [AGE, WARD, HEIGHT, PAIR, {**PAIR, "name": "second"}][:number]
    made = by_hand.estimate(axes, off=0)
    picture = drawn(tmp_path, axes)
    sums = made.values.reshape(5, -1).sum(axis=1).clip(0)
    highest = float((sums + half_width_of_sum(SCALE, made.domain.cells // 5)).max())
    expected = sums / highest * (TALL - TOP - BOTTOM)
    assert [height for _, height in bars(picture)] == pytest.approx(expected, abs=0.2)
    assert {"below 0", "0–18", "18–65", "65+", "other"} <= set(texts(picture))
    assert_inside(picture)


def test_lines_are_the_intervals_of_the_table(tmp_path: Path) -> None:
    values = np.array([30.0, 60, 0])
    picture = drawn(tmp_path, [WARD], values)
    lines = [line for line in picture.iter(f"{SVG}line") if line.get("stroke") == "#222222"]
    reach = half_width_of_sum(SCALE, 1)
    tall = TALL - TOP - BOTTOM
    for value, line in zip(values, lines, strict=True):
        low, high = (TALL - BOTTOM - tall * max(0, value + end) / (60 + reach) for end in (-reach, reach))
        assert (float(line.attrib["y1"]), float(line.attrib["y2"])) == pytest.approx((low, high), abs=0.1)


def test_linear_estimates_have_the_interval_of_their_own_box(tmp_path: Path) -> None:
    axes = [WARD, HEIGHT]
    made = by_hand.estimate(axes, np.full((3, 4), 100.0), off=0)
    shared = (SharedNoise(-3.0, (4, 4)), SharedNoise(-2.0, (2, 2)), SharedNoise(60.0, (1, 1)))
    made = replace(made, unbiased=NestedCells(made.values, SCALE, shared))
    picture = ElementTree.fromstring(release_svg(by_hand.publish(tmp_path, made, axes).path))
    lines = [line for line in picture.iter(f"{SVG}line") if line.get("stroke") == "#222222"]
    # A bar of four cells lies in one box of the first level and two of the second.
    reach = half_width_of_linear(SCALE, -3 * 16 - 2 * (4 + 4) + 60 * 4)
    tall = TALL - TOP - BOTTOM
    low, high = (TALL - BOTTOM - tall * (400 + end) / (400 + reach) for end in (-reach, reach))
    assert len(lines) == 3
    for line in lines:
        assert (float(line.attrib["y1"]), float(line.attrib["y2"])) == pytest.approx((low, high), abs=0.1)


def test_without_noisy_cells_no_interval_has_a_length(tmp_path: Path) -> None:
    picture = drawn(tmp_path, [WARD], np.array([3.0, 1, 2]), scale=None)
    lines = [line for line in picture.iter(f"{SVG}line") if line.get("stroke") == "#222222"]
    assert all(line.get("y1") == line.get("y2") for line in lines)
    assert len(bars(picture)) == 3


VALUES = {"zero": [0.0] * 3, "negative": [-500.0, -1, -0.5], "huge": [1e15, -1e15, 3], "small": [0.01, 0.5, 0.2]}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("scale", [SCALE, None], ids=str)
def test_any_values_stay_inside_the_frame(tmp_path: Path, values: list[float], scale: Fraction | None) -> None:
    picture = drawn(tmp_path, [WARD], np.array(values), scale)
    assert_inside(picture)
    assert all(len(text) <= 18 for text in texts(picture)[1:-1])


def test_one_cell_is_a_picture_too(tmp_path: Path) -> None:
    picture = drawn(tmp_path, [{"column": "age", "edges": [0, 1]}])
    assert len(bars(picture)) == 1
    assert "0–1" in texts(picture)


def test_many_cells_show_the_first_and_say_so(tmp_path: Path) -> None:
    many = {"column": "income", "start": 0, "stop": 100_000, "width": 1}
    picture = drawn(tmp_path, [many])
    assert len(bars(picture)) == MOST_BARS
    assert f"first {MOST_BARS} of 100000 cells" in texts(picture)[0]
    assert_inside(drawn(tmp_path / "2", [PAIR, {**many, "stop": 50_000}]))


def test_names_are_escaped(tmp_path: Path) -> None:
    names = ["<=50K", "a & b", "]]>", "O'Brien", "select", "münchen\ufffe", "x" * 200]
    picture = drawn(tmp_path, [{"column": "class", "values": names}])
    assert set(texts(picture)) >= {"<=50K", "a & b", "]]>", "O'Brien", "select", "münchen?", "x" * 18}


def test_edges_keep_their_digits(tmp_path: Path) -> None:
    picture = drawn(tmp_path, [{"column": "income", "edges": [1234567, 1234568, 1234569]}])
    assert {"1234567–1234568", "1234568–1234569"} <= set(texts(picture))


def test_it_is_a_function_of_the_public_files(tmp_path: Path) -> None:
    first = by_hand.publish(tmp_path / "planted_7c1f", by_hand.estimate([AGE, WARD]), [AGE, WARD])
    elsewhere = shutil.copytree(first.path, tmp_path / "elsewhere")
    assert release_svg(first.path) == release_svg(elsewhere)
    assert "planted_7c1f" not in release_svg(first.path)
