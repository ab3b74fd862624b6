"""Pictures of published cells: bars for one axis, a heat map for two, small heat maps for more; drawn by Vega-Lite.

Charts are written as Vega-Lite's own dictionaries, because importing Altair takes longer than drawing. Tests check them
against its schema.
Names from a spec enter a chart as data, titles and domains, never as an expression or as the name of a field.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.domain import CategoricalAxis
from dphist_pipeline.languages.texts import (
    ENGLISH,
    days_text,
    gettext,
    language,
    marked,
    number_text,
    pgettext,
    translated,
    whole,
)
from dphist_pipeline.publishing._vega import Chart, draw_chart
from dphist_pipeline.publishing.formatting import listed, shortened, shortened_inside, shown_number, told_apart, visible
from dphist_pipeline.publishing.picture_sums import Grid, Groups, Marginal, Reals, marginal
from dphist_pipeline.shown_below import limit_of, not_drawn, words_for

MOST_BARS, MOST_ROWS, MOST_SQUARES, MOST_PANELS, MOST_PICTURES = 60, 61, 24, 12, 8
WIDTH, HEIGHT, PANEL = 420, 250, 150
ROW, NARROW_ROW, MANY_ROWS = 19, 14, 30
# Cut off here, since Vega measures every cut that it tries, which takes a tenth of a second for a long name.
MOST_LETTERS = 24
# Bins along a picture whose names lean where they have no room beside each other; of more, some have no name.
MOST_LEANING = 12
INK, FAINT, LINE, BAR = "#1f2328", "#59636e", "#d1d9e0", "#4f86c0"
GREY, GREY_CLASS, FIRST_DARK = "#cdced1", marked("interval holds 0"), 5
HIDDEN_COLOUR = "#f3e3c3"  # of figures that are told as words
OF_OBJECTS = {
    *(
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "toLocaleString",
        "toString",
        "valueOf",
    ),
    *("__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__"),
}
# In pixels: the least row for a number, a letter of a label, a digit, a colour in a legend.
PANEL_STEP, LETTER, DIGIT, SWATCH = 13, 6.5, 5.6, 16
BLUES = ("#f2f5f8", "#dfeaf4", "#c5daec", "#a3c5e2", "#7babd3", "#548fc1", "#3673a9", "#1f568a", "#0d3a66")
FIT = {"type": "fit-x", "contains": "padding"}
# Readers without a font of these widths see a wider one, such as DejaVu Sans: the paddings leave room for its letters.
CONFIG: dict[str, Any] = {
    "aria": False,
    "font": "Liberation Sans, Arial, Helvetica, sans-serif",
    "background": "white",
    "view": {"stroke": LINE},
    "axis": {
        **{"labelColor": INK, "titleColor": FAINT, "titleFontWeight": "normal", "labelFontSize": 11, "labelLimit": 300},
        **{"titleLimit": 400, "titlePadding": 16, "grid": False, "domain": False, "ticks": False, "labelPadding": 4},
    },
    "legend": {
        **{"labelColor": INK, "labelFontSize": 11, "orient": "bottom", "columnPadding": 44},
        **{"titleColor": FAINT, "titleFontWeight": "normal", "titleFontSize": 11},
    },
    "title": {
        **{"anchor": "start", "color": INK, "subtitleColor": FAINT, "fontSize": 13, "limit": 2 * WIDTH},
        **{"subtitleFontSize": 11, "subtitlePadding": 6, "offset": 12},
    },
}


@dataclass(frozen=True, eq=False)
class Picture:
    """Sums to draw, with their title, and a note on how to read them and what was summed."""

    title: str
    note: str
    sums: Marginal

    @classmethod
    def of_grid(cls, grid: Grid, is_fitted: bool = False) -> Picture:
        """One picture of all shown cells; its kind depends on how many axes have more than one shown position.

        `is_fitted`: numbers are fits to noisy counts, not noisy counts themselves.
        """
        varying = [number for number, chosen in enumerate(grid.chosen) if chosen.size > 1] or [0]
        if len(varying) == 1:
            return bars_along(grid, varying[0])
        if len(varying) == 2:
            return _picture(grid, _ordered_first(grid, varying), [MOST_SQUARES] * 2, is_fitted)
        # The axis with the fewest cells makes the panels, the first two others are drawn, the rest are summed over.
        panels = min(varying, key=lambda number: (grid.chosen[number].size, -number))
        pair = [number for number in varying if number != panels][:2]
        return _picture(grid, [*_ordered_first(grid, pair), panels], [MOST_PANELS] * 3, is_fitted)

    @classmethod
    def of_periods(cls, rows: Sequence[Mapping[str, Any]], reported: bool) -> Picture:
        """Bars of the newest periods; what the intervals do not say, and days that are missing, stand in the note.

        `rows`: the answers of all periods, in order of time. `reported`: they are estimates from reports of
        contributors.
        """
        periods, rows = len(rows), rows[-MOST_BARS:]
        several, has_bars = rows[0]["cells"] > 1, all(row["ci_lower"] is not None for row in rows)
        names = tuple(days_text(str(row["period"])) for row in rows)
        # A single cell is told by its estimate, several cells by their unbiased sum, as everywhere.
        column = "unbiased" if several and has_bars else "estimate"
        sums = Marginal(
            (
                Groups(
                    gettext("period"),
                    tuple(np.array([place]) for place in range(len(rows))),
                    names,
                    names,
                    ordered=True,
                ),
            ),
            np.array([row[column] for row in rows], dtype=np.float64),
            reported=reported,
            summed="everywhere" if several and has_bars else None,
            **_intervals(rows) if has_bars else {},
        )
        missing = sum((after["period_start"] - before["period_end"]).days for before, after in pairwise(rows))
        notes = [_how_to_read(sums), gettext("Intervals cover noise, not chance: counts differ by chance, too.")]
        if missing:
            notes.append(
                gettext(
                    "Between them %(number)s days are in no published period, and have no bar.", number=whole(missing)
                )
            )
        if periods > len(rows):
            notes.append(gettext("The newest %(number)s of %(all)s periods.", number=len(rows), all=whole(periods)))
        return cls(gettext("Counts by period"), " ".join(notes), sums)

    def told_as(self, audit: Mapping[str, Any]) -> Picture:
        """The picture in the words of its audit: what is counted, and words in place of figures below its limit."""
        unit, limit = str(audit.get("counted") or ""), limit_of(audit)
        picture = self
        if unit:
            picture = replace(picture, sums=replace(picture.sums, counted=unit))
        if limit is None:
            return picture
        note = f"{picture.note} {not_drawn(limit)}"
        return replace(picture, note=note, sums=replace(picture.sums, limit=limit))

    def svg(self, heading: str = "") -> str:
        """The picture as SVG that runs no script and loads nothing.

        A heading is for a file of its own, which then carries the note as well; none within a page.
        """
        picture = draw_chart(chart(self, heading))
        if not heading:
            return picture
        # What a program that reads aloud says of the file.
        desc = f"{escape(described(self))} {escape(self.note)}"
        head = f"<title>{escape(visible(heading))}</title><desc>{desc}</desc>"
        return re.sub(r"^(<svg [^>]*>)", lambda opening: opening[1] + head, picture, count=1)


def all_pictures(grid: Grid) -> list[Picture]:
    """Bars along each axis, and for several axes one picture of all of them."""
    single = [bars_along(grid, number) for number in range(min(len(grid.chosen), MOST_PICTURES))]
    return single if len(grid.chosen) == 1 else [*single, Picture.of_grid(grid)]


def _intervals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    low, high, centres, errors = (
        np.array([row[name] for row in rows], dtype=np.float64)
        for name in ("ci_lower", "ci_upper", "unbiased", "noise_error")
    )
    words = np.array([row["reliability"] for row in rows])
    return {"low": low, "high": high, "reach": high - centres, "errors": errors, "words": words}


def bars_along(grid: Grid, number: int) -> Picture:
    """Bars along one axis, by its number, summed over all others; cells that are not shown are in no sum."""
    return _picture(grid, [number], [MOST_ROWS if _is_categorical(grid, number) else MOST_BARS])


def _is_categorical(grid: Grid, number: int) -> bool:
    return isinstance(grid.domain.axes[number], CategoricalAxis)


def _ordered_first(grid: Grid, pair: list[int]) -> list[int]:
    """Numbers and time run from left to right; long names of categories stand below each other."""
    return sorted(pair, key=lambda number: _is_categorical(grid, number))


def _picture(grid: Grid, axes_shown: list[int], most: list[int], is_fitted: bool = False) -> Picture:
    sums = marginal(grid, axes_shown, most)
    remarks = [f"{axis.name}: {axis.note}" for axis in sums.axes if axis.note]
    chosen = zip(grid.domain.axes, grid.chosen, strict=True)
    others = [axis.name for number, (axis, cells) in enumerate(chosen) if number not in axes_shown and cells.size > 1]
    if others:
        remarks.append(gettext("summed over %(axes)s", axes=listed(others)))
    note = _how_to_read(sums, is_fitted) + _layout(sums)
    if remarks:
        note += " " + gettext("In this picture: %(remarks)s.", remarks="; ".join(remarks))
    title = gettext("Counts by %(axes)s", axes=listed([axis.name for axis in sums.axes]))
    return Picture(visible(title), visible(note), sums)


def _how_to_read(sums: Marginal, is_fitted: bool = False) -> str:
    is_line = len(sums.axes) == 1
    if sums.low is None or sums.reach is None:
        return (
            gettext("Bars: estimates. There are no intervals: the mechanism bought no noisy cells.")
            if is_line
            else gettext("Colours: estimates. There are no intervals: the mechanism bought no noisy cells.")
        )
    meaning = {
        None: gettext("estimates"),
        "everywhere": gettext("unbiased sums"),
        "somewhere": gettext("estimates of single cells, unbiased sums of several"),
    }[sums.summed]
    if is_line and sums.reported:
        return gettext(
            "Bars: %(shown)s. Lines: 95 %% intervals of the true numbers of values, by the law of the random reports.",
            shown=meaning,
        )
    if is_line:
        return gettext("Bars: %(shown)s. Lines: 95 %% intervals of the true bounded counts.", shown=meaning)
    ends = dict.fromkeys(shown_number(float(end)) for end in (sums.reach.min(), sums.reach.max()))
    reach = pgettext("number", " to ").join(ends)
    grey = " " + gettext("Grey: the interval holds 0.") if _holds_zero(sums).any() else ""
    colours = (
        gettext("Colours: %(shown)s. The 95 %% interval of each is the number ± %(reach)s.", shown=meaning, reach=reach)
        if is_fitted
        else gettext(
            "Colours: %(shown)s. The 95 %% interval of each is its noisy count ± %(reach)s.", shown=meaning, reach=reach
        )
    )
    return f"{colours}{grey}"


def _holds_zero(sums: Marginal) -> NDArray[np.bool_]:
    """For each number, whether its interval holds 0, so that it says little."""
    if sums.low is None or sums.high is None:
        return np.zeros(sums.values.shape, dtype=bool)
    return np.asarray((sums.low <= 0) & (sums.high >= 0))


def _unit(sums: Marginal) -> str:
    """What is counted, as the title of an axis or a legend."""
    if sums.reported:
        return gettext("values of contributors")
    return (
        gettext("%(what)s counted", what=shortened(visible(sums.counted), 48))
        if sums.counted
        else gettext("rows counted")
    )


def _layout(sums: Marginal) -> str:
    if len(sums.axes) < 3:
        return ""
    across, down, panel = (axis.name for axis in sums.axes)
    return " " + gettext(
        "%(down)s from top to bottom by %(across)s from left to right, once for each %(panel)s.",
        **{"down": down, "across": across, "panel": panel},
    )


def described(picture: Picture) -> str:
    """A picture in one sentence, with its largest number."""
    sums = picture.sums
    place = np.unravel_index(int(sums.values.argmax()), sums.values.shape)
    at = visible(", ".join(axis.labels[group] for axis, group in zip(sums.axes, place, strict=True)))
    kind = (gettext("Bars"), gettext("Heat map"), gettext("Small heat maps"))[len(sums.axes) - 1]
    largest = float(sums.values.max())
    if sums.limit is not None and largest < sums.limit:
        every = {"kind": kind, "title": picture.title, "words": words_for(sums.limit)}
        return gettext("%(kind)s: %(title)s. Every figure is %(words)s.", **every)
    return gettext(
        "%(kind)s: %(title)s. The largest is %(number)s, at %(place)s.",
        **{"kind": kind, "title": picture.title, "number": shown_number(largest), "place": at},
    )


def chart(picture: Picture, heading: str = "") -> Chart:
    """The Vega-Lite chart of a picture."""
    sums = picture.sums
    vega = (_bars, _heat_map, _small_heat_maps)[len(sums.axes) - 1](sums)
    if heading:
        lines = textwrap.wrap(visible(heading), 64, max_lines=4, placeholder=" …") or [""]
        vega["title"] = {"text": lines, "subtitle": textwrap.wrap(picture.note, 74, max_lines=12)}
    return {**vega, "config": {**CONFIG, **_signs()}}


def _signs() -> dict[str, Any]:
    """How Vega writes numbers along axes; its own way is English."""
    spoken = language()
    if spoken is ENGLISH:
        return {}
    number = {"decimal": spoken.decimal, "thousands": spoken.thousands, "grouping": [3], "currency": ["", ""]}
    return {"locale": {"number": number}}


def svg_in_page(svg: str) -> tuple[str, str]:
    """The `viewBox` and the content of an SVG file without a heading, for an element within a page."""
    match = re.fullmatch(r'<svg [^>]*viewBox="([^"]*)">(.*)</svg>\s*', svg, re.DOTALL)
    if match is None:
        raise ValueError("vl-convert writes SVG in another form than it did")
    return match[1], match[2]


def _bars(sums: Marginal) -> Chart:
    """Bars from zero, each with its interval; ranges stand side by side, categories lie below each other."""
    (axis,) = sums.axes
    names = _different(axis.ticks, MOST_LETTERS)
    columns = {"name": names, "estimate": sums.values.tolist()}
    along, value = ("x", "y") if axis.ordered else ("y", "x")
    place = {along: {"field": "name", "type": "nominal", **_band(axis, names, WIDTH - 50 if axis.ordered else 0)}}
    zero = {"condition": {"test": "datum.value === 0", "value": FAINT}, "value": LINE}
    ticks = 5 if axis.ordered or np.abs(sums.values).max() < 1e5 else 3
    marks = {"grid": True, "gridColor": zero, "format": ",~f", "tickCount": ticks}
    length = {"field": "estimate", "type": "quantitative", "title": _unit(sums), "axis": marks}
    layers: list[Chart] = [{"mark": {"type": "bar", "color": BAR}, "encoding": {**place, value: length}}]
    if sums.limit is not None:
        columns["estimate"] = np.where(sums.hidden, 0.0, sums.values).tolist()
    if sums.low is not None and sums.high is not None:
        columns |= {"low": sums.low.tolist(), "high": sums.high.tolist()}
        cap = min(7.0, 0.6 * (WIDTH - 50) / axis.size) if axis.ordered else 7.0
        lines = {"type": "errorbar", "color": INK, "ticks": {"size": cap, "color": INK}}
        low, high = {"field": "low", "type": "quantitative", "title": _unit(sums)}, {"field": "high"}
        layers.append({"mark": lines, "encoding": {**place, value: low, f"{value}2": high}})
        if sums.limit is not None:
            # An interval that is not shown leaves no trace: its ends lie at 0, and its line is not drawn.
            for name in ("low", "high"):
                columns[name] = np.where(sums.without_ends, 0.0, columns[name]).tolist()
            columns["shown"] = (~sums.without_ends).tolist()
            layers[-1]["transform"] = [{"filter": "datum.shown"}]
    height = HEIGHT if axis.ordered else {"step": ROW if axis.size <= MANY_ROWS else NARROW_ROW}
    return {"layer": layers, "data": _rows(columns), "width": WIDTH, "height": height, "autosize": FIT}


def _heat_map(sums: Marginal) -> Chart:
    """The first axis from left to right, the second from top to bottom."""
    step = min(22.0, max(13.0, 260 / sums.axes[1].size))
    squares = _squares(sums, (slice(None), slice(None)), WIDTH - 100, step)
    return {**squares, "width": WIDTH, "height": {"step": step}, "autosize": FIT}


def _small_heat_maps(sums: Marginal) -> Chart:
    """One heat map for each group of the third axis, all with the same colours."""
    maps = []
    for place, name in enumerate(_different(sums.axes[2].ticks, MOST_LETTERS)):
        part = _squares(sums, (slice(None), slice(None), place), PANEL, PANEL_STEP)
        for layer in part["layer"]:
            across, down = layer["encoding"]["x"], layer["encoding"]["y"]
            if place + 2 < sums.axes[2].size:
                across["axis"] = across["title"] = None
            if place % 2:
                down["axis"] = down["title"] = None
        title = {"text": name, "fontSize": 11, "offset": 4}
        maps.append({**part, "width": PANEL, "height": {"step": PANEL_STEP}, "title": title})
    return {"concat": maps, "columns": 2, "spacing": 8}


def _squares(sums: Marginal, window: tuple[Any, ...], room: float, step: float) -> Chart:
    """Squares of colour, with their numbers where there is room; grey where the interval holds 0.

    `room`: for labels beside each other, in pixels.
    """
    most = (MOST_LETTERS // 2, MOST_LETTERS * 2 // 3) if room < WIDTH / 2 else (MOST_LETTERS, MOST_LETTERS)
    across, down = (_different(axis.ticks, letters) for axis, letters in zip(sums.axes[:2], most, strict=True))
    hidden = sums.hidden
    grey, values = _holds_zero(sums) & ~hidden, sums.values[window]
    bounds = colour_bounds(sums.values[~grey & ~hidden])
    classes, hidden_class = (
        _classes(bounds),
        gettext("not shown: %(words)s", words=words_for(sums.limit or 0)),
    )
    shades = np.searchsorted(bounds[1:-1], values.ravel(), side="right")
    colours = [
        hidden_class if is_hidden else translated(GREY_CLASS) if is_grey else classes[shade]
        for is_hidden, is_grey, shade in zip(hidden[window].flat, grey[window].flat, shades, strict=True)
    ]
    texts = _texts(sums)
    columns = {
        "across": np.repeat(across, len(down)).tolist(),
        "down": down * len(across),
        "class": colours,
        "number": texts[window].ravel().tolist(),
        "dark": ((shades >= FIRST_DARK) & ~grey[window].ravel() & ~hidden[window].ravel()).tolist(),
    }

    def places() -> Chart:
        return {
            "x": {"field": "across", "type": "nominal", **_band(sums.axes[0], across, room)},
            "y": {"field": "down", "type": "nominal", **_band(sums.axes[1], down, 0)},
        }

    domain, shades_of = ([*classes, translated(GREY_CLASS)], [*BLUES, GREY]) if grey.any() else (classes, [*BLUES])
    if hidden.any():
        domain, shades_of = [*domain, hidden_class], [*shades_of, HIDDEN_COLOUR]
    beside_labels = WIDTH - LETTER * max(map(len, down)) - 30
    two_columns = 2 * (SWATCH + DIGIT * max(map(len, domain))) + CONFIG["legend"]["columnPadding"]
    colour = {
        **{"field": "class", "type": "nominal", "title": _unit(sums), "sort": None},
        "scale": {"domain": domain, "range": shades_of},
        "legend": {"symbolType": "square", "columns": 2 if two_columns <= beside_labels else 1},
    }
    squares = {"mark": {"type": "rect"}, "encoding": {**places(), "color": colour}}
    longest = max(len(str(text)) for text in texts.flat)
    wide = PANEL if room < WIDTH / 2 else beside_labels
    if step < PANEL_STEP or wide / (sums.axes[0].size + sums.axes[0].other) * 0.85 < DIGIT * longest + 4:
        return {"layer": [squares], "data": _rows(columns)}
    ink = {"condition": {"test": "datum.dark", "value": "white"}, "value": INK}
    text = {"field": "number", "type": "nominal"}
    numbers = {"mark": {"type": "text", "fontSize": 10}, "encoding": {**places(), "text": text, "color": ink}}
    return {"layer": [squares, numbers], "data": _rows(columns)}


def _texts(sums: Marginal) -> NDArray[np.object_]:
    texts = np.frompyfunc(lambda number: shown_number(float(number), sums.decimals), 1, 1)(sums.values)
    return np.where(sums.hidden, f"<{sums.limit}", np.asarray(texts, dtype=object))


def colour_bounds(values: Reals) -> list[float]:
    """Where one colour ends and the next begins: quadratic steps, so that small counts are told apart.

    Args:
        values: sums of cells in records, any shape; below 0 they share the first colour.

    Returns:
        Rising, one more than there are colours; the first is 0, the last the largest value, but at least 1.
    """
    most = max(float(values.max(initial=0)), 1.0)
    inner = most * (np.arange(1, len(BLUES)) / len(BLUES)) ** 2
    return [0.0, *(float(f"{bound:.2g}") for bound in inner), most]


def _classes(bounds: Sequence[float]) -> list[str]:
    ends = [_bound_in_words(bound) for bound in bounds[1:-1]]
    inner = [gettext("%(low)s to under %(high)s", low=low, high=high) for low, high in pairwise(ends)]
    return [gettext("below %(end)s", end=ends[0]), *inner, gettext("%(end)s or more", end=ends[-1])]


def _bound_in_words(bound: float) -> str:
    if bound < 1e6:
        return number_text(f"{bound:,.12g}")
    return gettext("%(number)s million", number=number_text(f"{bound / 1e6:,.12g}"))


def _band(axis: Groups, names: Sequence[str], room: float) -> Chart:
    """The scale and labels of groups along an axis; `other` stands apart.

    `room`: the width for labels beside each other, in pixels; 0 for labels below each other.
    """
    apart = [*names[:-1], " ", names[-1]] if axis.other and axis.size > 1 else list(names)
    labels: dict[str, Any] = {"values": names}
    if room:
        width = LETTER * max(map(len, names)) + 6
        if axis.ordered:
            every = next(step for step in (1, 2, 5, 10, 20, 50, 100) if step * room / axis.size >= min(width, room))
            if every > 1 and axis.size <= MOST_LEANING:  # of a few bins with long names, each has its own
                labels |= {"labelAngle": -45}
            else:
                labels = {"values": names[::-1][::every][::-1], "labelAngle": 0, "labelOverlap": "greedy"}
        else:
            labels |= {"labelAngle": -45} if width > room / axis.size else {"labelAngle": 0}
    scale = {"domain": apart, "paddingInner": 0.15, "paddingOuter": 0.1}
    return {"scale": scale, "title": shortened(visible(axis.name), 48), "sort": None, "axis": labels}


def _different(ticks: Sequence[str], most: int) -> list[str]:
    """Labels of at most about `most` letters, no two alike: a band scale would put equal ones together."""
    names: list[str] = []
    for tick in told_apart([visible(tick) for tick in ticks], most):
        label = name = shortened_inside(tick, most).strip() or "–"
        number = 2
        while name in names:
            name, number = f"{label} ({number})", number + 1
        names.append(name)
    # Vega looks names up in JavaScript's objects, which have some of their own: a sign without width tells them apart.
    return [f"{name}\u200b" if name in OF_OBJECTS else name for name in names]


def _rows(columns: dict[str, list[Any]]) -> Chart:
    """Columns of equal length as data within a chart."""
    rows = zip(*columns.values(), strict=True)
    return {"values": [dict(zip(columns, row, strict=True)) for row in rows]}
