"""Pictures of published cells: bars for one axis, a heat map for two, small heat maps for more, as SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.counted_words import counted_words
from dphist_pipeline.base.languages.texts import (
    days_text,
    gettext,
    mark_text,
    number_text,
    pgettext,
    translate,
    whole,
)
from dphist_pipeline.base.shown_below import limit_of, not_drawn, words_for
from dphist_pipeline.publishing.drawing import (
    Bars,
    Drawing,
    Legend,
    Squares,
    draw_heat_map,
    draw_small_heat_maps,
    drawing_with_heading,
)
from dphist_pipeline.publishing.formatting import (
    comma_list,
    shortened_inside,
    shortened_text,
    shown_number,
    told_apart,
    visible,
)
from dphist_pipeline.publishing.picture_sums import AxisGroups, Grid, PictureSums, Reals, marginal
from dphist_pipeline.publishing.rendering import render

MOST_BARS, MOST_ROWS, MOST_SQUARES, MOST_PANELS, MOST_PICTURES = 60, 61, 24, 12, 8
MOST_LETTERS = 24
GREY, GREY_CLASS, FIRST_DARK = "#cdced1", mark_text("interval holds 0"), 5
HIDDEN_COLOUR = "#f3e3c3"  # of figures that are told as words
BLUES = ("#f2f5f8", "#dfeaf4", "#c5daec", "#a3c5e2", "#7babd3", "#548fc1", "#3673a9", "#1f568a", "#0d3a66")


@dataclass(frozen=True, eq=False)
class Picture:
    """Sums to draw, with their title, and a note on how to read them and what was summed."""

    title: str
    note: str
    sums: PictureSums

    @classmethod
    def of_grid(cls, grid: Grid, is_fitted: bool = False) -> Picture:
        """One picture of all shown cells; its kind depends on how many axes have more than one shown position.

        `is_fitted`: numbers are fits to noisy counts, not noisy counts themselves.
        """
        varying = [number for number, chosen in enumerate(grid.chosen) if chosen.size > 1] or [0]
        if len(varying) == 1:
            return bars_along(grid, varying[0])
        if len(varying) == 2:
            return _picture(grid, _axes_by_kind(grid, varying), [MOST_SQUARES] * 2, is_fitted)
        # The axis with the fewest cells makes the panels, the first two others are drawn, the rest are summed over.
        panels = min(varying, key=lambda number: (grid.chosen[number].size, -number))
        pair = [number for number in varying if number != panels][:2]
        return _picture(grid, [*_axes_by_kind(grid, pair), panels], [MOST_PANELS] * 3, is_fitted)

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
        sums = PictureSums(
            (
                AxisGroups(
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
        unit, limit = counted_words(audit), limit_of(audit)
        picture = self
        if unit:
            picture = replace(picture, sums=replace(picture.sums, counted=unit))
        if limit is None:
            return picture
        note = f"{picture.note} {not_drawn(limit)}"
        return replace(picture, note=note, sums=replace(picture.sums, limit=limit))

    def drawing(self, heading: str = "") -> Drawing:
        """The marks of the picture; a heading stands above them, with the note, in a file of its own."""
        sums = self.sums
        drawing = (_bars, _heat_map, _small_heat_maps)[len(sums.axes) - 1](sums)
        lines = textwrap.wrap(visible(heading), 58, max_lines=4, placeholder=" …") or [""]
        return drawing_with_heading(drawing, lines, self.note) if heading else drawing

    def svg(self, heading: str = "") -> str:
        """The picture as SVG that runs no script and loads nothing.

        A heading is for a file of its own, which then carries the note as well; none within a page.
        """
        about = f"{description(self)} {self.note}"  # what a program that reads aloud says of the file
        return render("picture.svg.j2", drawing=self.drawing(heading), heading=heading, about=about, whole=True)


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
    return _picture(grid, [number], [MOST_BARS if grid.domain.axes[number].is_ordered else MOST_ROWS])


def _axes_by_kind(grid: Grid, pair: list[int]) -> list[int]:
    """Numbers and time run from left to right; long names of categories stand below each other."""
    return sorted(pair, key=lambda number: not grid.domain.axes[number].is_ordered)


def _picture(grid: Grid, axes_shown: list[int], most: list[int], is_fitted: bool = False) -> Picture:
    sums = marginal(grid, axes_shown, most)
    remarks = [f"{axis.name}: {axis.note}" for axis in sums.axes if axis.note]
    chosen = zip(grid.domain.axes, grid.chosen, strict=True)
    others = [axis.name for number, (axis, cells) in enumerate(chosen) if number not in axes_shown and cells.size > 1]
    if others:
        remarks.append(gettext("summed over %(axes)s", axes=comma_list(others)))
    note = _how_to_read(sums, is_fitted) + _layout(sums)
    if sums.is_known.any():
        note += " " + gettext("Numbers without an interval are public figures, known exactly.")
    if remarks:
        note += " " + gettext("In this picture: %(remarks)s.", remarks="; ".join(remarks))
    title = gettext("Counts by %(axes)s", axes=comma_list([axis.name for axis in sums.axes]))
    return Picture(visible(title), visible(note), sums)


def _how_to_read(sums: PictureSums, is_fitted: bool = False) -> str:
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
    noisy = sums.reach[~sums.is_known]
    if not noisy.size:
        return gettext("Colours: public figures, known exactly.")
    ends = dict.fromkeys(shown_number(float(end)) for end in (noisy.min(), noisy.max()))
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


def _holds_zero(sums: PictureSums) -> NDArray[np.bool_]:
    """For each number, whether its interval holds 0, so that it says little."""
    if sums.low is None or sums.high is None:
        return np.zeros(sums.values.shape, dtype=bool)
    return np.asarray((sums.low <= 0) & (sums.high >= 0) & ~sums.is_known)


def _unit(sums: PictureSums) -> str:
    """The unit of the counts, as the title of an axis or a legend."""
    if sums.reported:
        return gettext("values of contributors")
    return (
        gettext("%(what)s counted", what=shortened_text(visible(sums.counted), 48))
        if sums.counted
        else gettext("rows counted")
    )


def _layout(sums: PictureSums) -> str:
    if len(sums.axes) < 3:
        return ""
    across, down, panel = (axis.name for axis in sums.axes)
    return " " + gettext(
        "%(down)s from top to bottom by %(across)s from left to right, once for each %(panel)s.",
        **{"down": down, "across": across, "panel": panel},
    )


def description(picture: Picture) -> str:
    """A picture in one sentence, with its largest number."""
    sums = picture.sums
    place = np.unravel_index(int(sums.values.argmax()), sums.values.shape)
    at = visible(", ".join(axis.labels[group] for axis, group in zip(sums.axes, place, strict=True)))
    kind = (gettext("Bars"), gettext("Heat map"), gettext("Small heat maps"))[len(sums.axes) - 1]
    largest = float(sums.values.max())
    if sums.is_hidden.all():
        every = {"kind": kind, "title": picture.title, "words": words_for(sums.limit or 0)}
        return gettext("%(kind)s: %(title)s. Every figure is %(words)s.", **every)
    return gettext(
        "%(kind)s: %(title)s. The largest is %(number)s, at %(place)s.",
        **{"kind": kind, "title": picture.title, "number": shown_number(largest), "place": at},
    )


def _bars(sums: PictureSums) -> Drawing:
    """Bars from zero, each with its interval; of a hidden figure neither leaves a trace."""
    (axis,) = sums.axes
    ends: list[tuple[float, float] | None] = [None] * axis.size
    if sums.low is not None and sums.high is not None:
        shown = zip(sums.low.tolist(), sums.high.tolist(), sums.without_ends.tolist(), strict=True)
        ends = [None if is_hidden else (low, high) for low, high, is_hidden in shown]
    names = _different(axis.ticks, MOST_LETTERS)
    return Bars(axis, names, np.where(sums.is_hidden, 0.0, sums.values), ends, _unit(sums)).draw()


def _heat_map(sums: PictureSums) -> Drawing:
    legend, colours = _colours(sums)
    across, down = ((axis, _different(axis.ticks, MOST_LETTERS)) for axis in sums.axes)
    squares = Squares(across, down, *colours)
    return draw_heat_map(squares, legend, _unit(sums))


def _small_heat_maps(sums: PictureSums) -> Drawing:
    """One heat map for each group of the third axis, all with the same colours."""
    legend, colours = _colours(sums)
    across, down = (
        (axis, _different(axis.ticks, letters))
        for axis, letters in zip(sums.axes[:2], (MOST_LETTERS // 2, MOST_LETTERS * 2 // 3), strict=True)
    )
    names = _different(sums.axes[2].ticks, MOST_LETTERS)
    colour, number, dark = colours
    maps = [
        (name, Squares(across, down, colour[..., place], number[..., place], dark[..., place]))
        for place, name in enumerate(names)
    ]
    return draw_small_heat_maps(maps, legend, _unit(sums))


def _colours(sums: PictureSums) -> tuple[Legend, tuple[NDArray[np.object_], NDArray[np.object_], NDArray[np.bool_]]]:
    """The legend; and, of every number, its colour, its text, and whether its colour is dark, shape of the sums.

    Grey where the interval holds 0.
    """
    hidden = sums.is_hidden
    grey = _holds_zero(sums) & ~hidden
    bounds = colour_bounds(sums.values[~grey & ~hidden])
    shades = np.searchsorted(bounds[1:-1], sums.values, side="right")
    colours = np.array(BLUES, dtype=object)[shades]
    legend = list(zip(_classes(bounds), BLUES, strict=True))
    for apply, words, colour in (
        (grey, translate(GREY_CLASS), GREY),
        (hidden, gettext("not shown: %(words)s", words=words_for(sums.limit or 0)), HIDDEN_COLOUR),
    ):
        if apply.any():
            colours[apply] = colour
            legend.append((words, colour))
    return legend, (colours, _texts(sums), (shades >= FIRST_DARK) & ~grey & ~hidden)


def _texts(sums: PictureSums) -> NDArray[np.object_]:
    texts = np.frompyfunc(lambda number: shown_number(float(number), sums.decimals), 1, 1)(sums.values)
    return np.where(sums.is_hidden, f"<{sums.limit}", np.asarray(texts, dtype=object))


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


def _different(ticks: Sequence[str], most: int) -> list[str]:
    """Labels of at most about `most` letters, no two alike."""
    names: list[str] = []
    for tick in told_apart([visible(tick) for tick in ticks], most):
        label = name = shortened_inside(tick, most).strip() or "–"
        number = 2
        while name in names:
            name, number = f"{label} ({number})", number + 1
        names.append(name)
    return names
