"""Where the marks of a picture lie: bars with intervals, heat maps and small heat maps, in pixels, from the top left.

`templates/picture.svg.j2` writes the marks, and escapes every text. No browser measures texts: they are as wide as in
Arial and fonts of its widths, and labels have room for wider ones, such as DejaVu Sans.
"""

from __future__ import annotations

import cmath
import math
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.languages.texts import number_text
from dphist_pipeline.publishing.formatting import shortened_text, visible
from dphist_pipeline.publishing.picture_sums import AxisGroups

WIDTH, HEIGHT, PANEL = 420, 250, 150
ROW, NARROW_ROW, MANY_ROWS = 19.0, 14.0, 30
PANEL_STEP = 13.0
# Bins along a picture whose names lean where they have no room beside each other; of more, some have no name.
MOST_LEANING = 12
INK, FAINT, LINE, BAR = "#1f2328", "#59636e", "#d1d9e0", "#4f86c0"
INNER, OUTER = 0.15, 0.1  # shares of a band's step: between two bars, and before the first
LABEL, NUMBER, TITLE = 11, 10, 13  # sizes of letters
STYLE = ("fill", "stroke", "size", "anchor", "bold", "angle")  # what marks share
WIDER = 1.18  # fonts that a reader may have in place of Arial
# Widths of Arial's letters in thousandths of their size, from the blank to the tilde.
WIDTHS = (
    *(278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, *[556] * 10, 278, 278, 584, 584),
    *(584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667),
    *(611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222),
    *(222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584),
)


def width_of(text: str, size: float = LABEL) -> float:
    """The largest width of a text, in pixels, whatever font the reader has."""
    wide = {"W": 1000, "F": 1000}
    units = sum(
        WIDTHS[ord(letter) - 32] if " " <= letter <= "~" else wide.get(unicodedata.east_asian_width(letter), 600)
        for letter in text
    )
    return units * size * WIDER / 1000


@dataclass
class Drawing:
    """The marks of a picture, in the order in which they are drawn; each has a `kind` and numbers in pixels."""

    width: float = WIDTH
    height: float = 0.0
    marks: list[dict[str, Any]] = field(default_factory=list)

    @property
    def runs(self) -> list[tuple[str, dict[str, Any], list[dict[str, Any]]]]:
        """The marks by kind and style, each style once: axes below, then areas, lines upon them, and texts on top."""
        runs: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for mark in self.marks:
            layer = {"rect": 1, "key": 1, "interval": 2, "text": 3}.get(mark["kind"], 0)
            style = tuple((name, mark[name]) for name in STYLE if name in mark and mark["kind"] != "key")
            if mark.get("angle"):  # the whole group is turned, around the corner of the picture
                turn = complex(mark["x"], mark["y"]) / cmath.rect(1, math.radians(mark["angle"]))
                mark = {**mark, "x": turn.real, "y": turn.imag}
            runs.setdefault((layer, mark["kind"], style), []).append(mark)
        in_order = sorted(runs.items(), key=lambda run: run[0][0])
        return [(kind, dict(style), marks) for (_, kind, style), marks in in_order]

    def rect(self, x: float, y: float, width: float, height: float, fill: str, kind: str = "rect") -> None:
        """A rectangle; `kind` is `key` for a colour of a legend."""
        self.marks.append({"kind": kind, "x": x, "y": y, "width": width, "height": height, "fill": fill})

    def line(self, x: float, y: float, to_x: float, to_y: float, stroke: str) -> None:
        """A line of one pixel, across or down."""
        self.marks.append({"kind": "line", "x": x, "y": y, "to_x": to_x, "to_y": to_y, "stroke": stroke})

    def interval(self, x: float, y: float, length: float, cap: float, upright: bool) -> None:
        """A line down, or to the right, with caps at its ends."""
        line = {"length": length, "cap": cap, "upright": upright, "stroke": INK}
        self.marks.append({"kind": "interval", "x": x, "y": y, **line})

    def text(
        self, x: float, y: float, text: str, anchor: str = "start", size: float = LABEL, fill: str = INK, angle: int = 0
    ) -> None:
        """A text whose baseline begins, ends or has its middle there."""
        letters = {"text": text, "anchor": anchor, "size": size, "fill": fill, "angle": angle, "bold": size == TITLE}
        self.marks.append({"kind": "text", "x": x, "y": y, **letters})


@dataclass(frozen=True)
class Band:
    """Groups beside each other along an axis, the last one apart if it is `other`."""

    axis: AxisGroups
    start: float
    step: float

    @staticmethod
    def steps(axis: AxisGroups) -> float:
        """The number of steps of an axis."""
        return axis.size + (axis.other and axis.size > 1) - INNER + 2 * OUTER

    @property
    def size(self) -> float:
        """Of a bar or a square, in pixels."""
        return self.step * (1 - INNER)

    @property
    def end(self) -> float:
        """The end of the axis, in pixels."""
        return self.start + self.steps(self.axis) * self.step

    def at(self, group: int) -> float:
        """Where a group begins."""
        apart = self.axis.other and self.axis.size > 1 and group == self.axis.size - 1
        return self.start + (group + apart + OUTER) * self.step

    def middle(self, group: int) -> float:
        """The middle of a group."""
        return self.at(group) + self.size / 2


def nice_ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers from at most `low` to at least `high`, about as many as asked for."""
    span = high - low or 1.0
    power = 10.0 ** math.floor(math.log10(span / most))
    step = power * next(factor for factor in (1, 2, 5, 10) if span / (factor * power) <= most * 1.42)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, max(last, first + 1) + 1)]


def _tick_text(tick: float) -> str:
    return number_text(f"{tick:,.12f}".rstrip("0").rstrip(".")).replace("-", "−")


@dataclass(frozen=True)
class Bars:
    """Bars from zero, each with its interval; ranges stand side by side, categories lie below each other.

    Attributes:
        values: one for each group, 0 where nothing may be drawn.
        ends: of the interval of each; None where none is shown.
        unit: what is counted.
    """

    axis: AxisGroups
    names: Sequence[str]
    values: NDArray[np.float64]
    ends: Sequence[tuple[float, float] | None]
    unit: str

    def draw(self) -> Drawing:
        """Draws bars, intervals, and the axis of numbers beside or below them."""
        numbers = [0.0, *self.values.tolist(), *(end for pair in self.ends if pair is not None for end in pair)]
        few = not self.axis.ordered and max(map(abs, numbers)) >= 1e5  # long numbers beside each other
        ticks = nice_ticks(min(numbers), max(numbers), 3 if few else 5)
        lowest = ticks[0]
        if lowest < 0 == ticks[1] and min(numbers) > lowest / 3:
            # An end a little below 0 takes no whole step of the scale.
            lowest, ticks = min(numbers) - 0.01 * ticks[-1], ticks[1:]
        texts = [_tick_text(tick) for tick in ticks]
        return self._upright(ticks, texts, lowest) if self.axis.ordered else self._lying(ticks, texts, lowest)

    def _upright(self, ticks: Sequence[float], texts: Sequence[str], lowest: float) -> Drawing:
        drawing, top = Drawing(), 8.0
        left, bottom = 22 + max(map(width_of, texts)), top + HEIGHT
        band = _across(self.axis, self.names, left)

        def at(value: float) -> float:
            return bottom - (value - lowest) / (ticks[-1] - lowest) * HEIGHT

        for tick, text in zip(ticks, texts, strict=True):
            drawing.line(left, at(tick), band.end, at(tick), LINE if tick else FAINT)
            drawing.text(left - 4, at(tick) + 4, text, "end")
        drawing.text(11, top + HEIGHT / 2, self.unit, "middle", fill=FAINT, angle=-90)
        cap = min(7.0, 0.6 * band.step)
        for group, (value, pair) in enumerate(zip(self.values.tolist(), self.ends, strict=True)):
            drawing.rect(band.at(group), min(at(value), at(0)), band.size, abs(at(value) - at(0)), BAR)
            if pair is not None:
                low, high = map(at, pair)
                drawing.interval(band.middle(group), low, high - low, cap, upright=True)
        drawing.height = _names_below(drawing, band, self.names, bottom)
        return drawing

    def _lying(self, ticks: Sequence[float], texts: Sequence[str], lowest: float) -> Drawing:
        drawing, top = Drawing(), 6.0
        right = WIDTH - 6 - width_of(texts[-1]) / 2
        band = Band(self.axis, top, ROW if self.axis.size <= MANY_ROWS else NARROW_ROW)
        left = _names_beside(drawing, band, self.names, 20.0)

        def at(value: float) -> float:
            return left + (value - lowest) / (ticks[-1] - lowest) * (right - left)

        for tick, text in zip(ticks, texts, strict=True):
            drawing.line(at(tick), top, at(tick), band.end, LINE if tick else FAINT)
            drawing.text(at(tick), band.end + 14, text, "middle")
        for group, (value, pair) in enumerate(zip(self.values.tolist(), self.ends, strict=True)):
            drawing.rect(min(at(value), at(0)), band.at(group), abs(at(value) - at(0)), band.size, BAR)
            if pair is not None:
                low, high = map(at, pair)
                drawing.interval(low, band.middle(group), high - low, 7.0, upright=False)
        drawing.text((left + right) / 2, band.end + 33, self.unit, "middle", fill=FAINT)
        drawing.height = band.end + 40
        return drawing


def _across(axis: AxisGroups, names: Sequence[str], left: float) -> Band:
    """A band up to the right edge, with room for the half of the last name that may stand beyond its group."""
    right = WIDTH - 4 - max(2.0, width_of(names[-1]) / 2 - 4)
    return Band(axis, left, (right - left) / Band.steps(axis))


def _names_below(drawing: Drawing, band: Band, names: Sequence[str], y: float, titled: bool = True) -> float:
    """Names below each other's groups, upright or leaning, and the name of the axis; gives where all of it ends."""
    room, widest = band.step, max(map(width_of, names)) + 6
    every, lean = 1, widest > room
    if lean and band.axis.ordered:
        steps = (1, 2, 3, 4, 5, 10, 20, 50, 100)
        fitting = next((step for step in steps if step * room >= min(widest, band.axis.size * room)), 100)
        # Of a few bins with long names, each has its own; of many, those in between tell themselves.
        every, lean = (1, True) if fitting > 1 and band.axis.size <= MOST_LEANING else (fitting, False)
    for group in range(band.axis.size - 1, -1, -every):
        if lean:
            drawing.text(band.middle(group) + 4, y + 9, names[group], "end", angle=-45)
        else:
            drawing.text(band.middle(group), y + 14, names[group], "middle")
    end = y + (10 + 0.72 * widest if lean else 18)
    if not titled:
        return end
    drawing.text((band.start + band.end) / 2, end + 14, _title(band.axis), "middle", fill=FAINT)
    return end + 22


def _names_beside(drawing: Drawing, band: Band, names: Sequence[str], x: float, titled: bool = True) -> float:
    """Names left of each other's groups, and the name of the axis; gives where the groups begin."""
    end = x + max(map(width_of, names)) + 4
    for group, name in enumerate(names):
        drawing.text(end - 4, band.middle(group) + 4, name, "end")
    if titled:
        drawing.text(11, (band.start + band.end) / 2, _title(band.axis), "middle", fill=FAINT, angle=-90)
    return end


def _title(axis: AxisGroups) -> str:
    return shortened_text(visible(axis.name), 48)


@dataclass(frozen=True)
class Squares:
    """Squares of colour of one heat map, shape (groups across, groups down); numbers are left out where empty."""

    across: tuple[AxisGroups, Sequence[str]]
    down: tuple[AxisGroups, Sequence[str]]
    colours: NDArray[np.object_]
    numbers: NDArray[np.object_]
    dark: NDArray[np.bool_]

    def draw(self, drawing: Drawing, across: Band, down: Band) -> None:
        """Draws squares, and their numbers where there is room for all of them."""
        longest = max((width_of(str(text), NUMBER) / WIDER for text in self.numbers.flat), default=0)
        has_room = down.step >= PANEL_STEP and across.size >= longest + 2
        for x, y in np.ndindex(self.colours.shape):
            drawing.rect(across.at(x), down.at(y), across.size, down.size, str(self.colours[x, y]))
            if has_room:
                fill = "white" if self.dark[x, y] else INK
                middle = down.middle(y) + NUMBER * 0.36
                drawing.text(across.middle(x), middle, str(self.numbers[x, y]), "middle", NUMBER, fill)


Legend = Sequence[tuple[str, str]]  # words and colours


def draw_heat_map(squares: Squares, legend: Legend, unit: str) -> Drawing:
    """The first axis from left to right, the second from top to bottom."""
    drawing = Drawing()
    down = Band(squares.down[0], 6.0, min(22.0, max(13.0, 260 / squares.down[0].size)))
    left = _names_beside(drawing, down, squares.down[1], 20.0)
    across = _across(*squares.across, left)
    squares.draw(drawing, across, down)
    end = _names_below(drawing, across, squares.across[1], down.end)
    drawing.height = _legend(drawing, legend, unit, end + 8)
    return drawing


def draw_small_heat_maps(maps: Sequence[tuple[str, Squares]], legend: Legend, unit: str) -> Drawing:
    """Heat maps in two columns with the same colours, each with its name above it."""
    drawing, top = Drawing(), 0.0
    beside = 4 + max(width_of(name) for _, squares in maps for name in squares.down[1])
    panel = min(float(PANEL), (WIDTH - beside - 20) / 2)
    for first in range(0, len(maps), 2):
        row = maps[first : first + 2]
        down = Band(row[0][1].down[0], top + 20, PANEL_STEP)
        for place, (name, squares) in enumerate(row):
            start = beside + 4 + place * (panel + 12)
            across = Band(squares.across[0], start, panel / Band.steps(squares.across[0]))
            drawing.text(start, top + 14, name)
            if place == 0:
                _names_beside(drawing, down, squares.down[1], 0.0, titled=False)
            squares.draw(drawing, across, down)
            if first + place + 2 >= len(maps):
                end = _names_below(drawing, across, squares.across[1], down.end, titled=False)
                drawing.height = max(drawing.height, end)
        top = down.end + 8
    drawing.width = max(drawing.width, beside + 4 + 2 * panel + 12)
    drawing.height = _legend(drawing, legend, unit, max(drawing.height, top) + 6)
    return drawing


def _legend(drawing: Drawing, legend: Legend, unit: str, y: float) -> float:
    """Colours with their words, in two columns where they have room; gives where the legend ends."""
    drawing.text(6, y + 12, unit, fill=FAINT)
    widest = 22 + max(width_of(words) for words, _ in legend)
    columns = 2 if 2 * widest + 30 <= drawing.width else 1
    rows = -(-len(legend) // columns)
    for place, (words, colour) in enumerate(legend):
        x, row = 6 + place // rows * (drawing.width / 2), y + 20 + place % rows * 16
        drawing.rect(x, row, 10, 10, colour, kind="key")
        drawing.text(x + 16, row + 9, words)
    return y + 24 + rows * 16


def drawing_with_heading(drawing: Drawing, lines: Sequence[str], note: str) -> Drawing:
    """A drawing below a heading and its note, for a file of its own."""
    below = Drawing(drawing.width + 16)
    y = 10.0
    for line in lines:
        y += 16
        below.text(8, y, line, size=TITLE)
    y += 4
    for line in textwrap.wrap(note, 66, max_lines=12):
        y += 14
        below.text(8, y, line, fill=FAINT)
    below.marks.append({"kind": "inner", "x": 8, "y": y + 12, "runs": drawing.runs})
    below.height = y + 12 + drawing.height + 8
    return below
