"""Pictures within a page: each with its numbers as a table, so that nothing is said by a picture alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from string import Template

import numpy as np

from dphist_pipeline.publishing.plots import Picture
from dphist_pipeline.publishing.plots_drawing import attribute, in_page, page_style, xml
from dphist_pipeline.publishing.plots_sums import Sums

MOST_ON_PAPER = 7


@cache
def _template() -> Template:
    return Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))


def page(title: str, body: str) -> str:
    """A page that stands alone: no scripts, nothing loaded, light and dark, on paper too.

    Args:
        title: as text.
        body: as HTML.
    """
    return _template().substitute(title=xml(title), pictures=page_style(), body=body)


def named(text: str) -> str:
    """A name from outside within a sentence: whatever way its letters run, the sentence keeps its own."""
    return f"<bdi>{xml(text)}</bdi>"


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0) -> str:
    """A table that can be scrolled with the keyboard; the first cell of a row names it.

    Args:
        caption: as text.
        header: as HTML.
        rows: as HTML, each as long as the header.
        numbers: how many of the last columns hold numbers.
    """
    first = len(header) - numbers

    def cell(place: int, content: str, tag: str, more: str = "") -> str:
        kind = ' class="n"' if place >= first else ""
        return f"<{tag}{kind}{more}>{content}</{tag}>"

    head = "".join(cell(place, content, "th", ' scope="col"') for place, content in enumerate(header))
    lines = [
        "<tr>"
        + "".join(
            cell(place, content, "td" if place else "th", "" if place else ' scope="row"')
            for place, content in enumerate(row)
        )
        + "</tr>"
        for row in rows
    ]
    kind = "scroll wide" if len(header) > MOST_ON_PAPER else "scroll"
    return (
        f'<div class="{kind}" tabindex="0" role="region" aria-label="{attribute(caption)}">'
        f"<table><caption>{xml(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
        "</table></div>"
    )


def figure(picture: Picture, level: int = 3) -> str:
    """A picture with its heading, what to know about it, and its numbers."""
    return (
        f"<section><h{level}>{xml(picture.title)}</h{level}><figure>{in_page(picture.drawing, _spoken(picture))}"
        f"<figcaption>{xml(picture.drawing.note)}</figcaption></figure>"
        f"<details><summary>The numbers of this picture</summary>{_numbers(picture)}</details></section>"
    )


def figure_page(picture: Picture, title: str) -> str:
    """A page of one picture and its numbers."""
    return page(title, f"<header><h1>{xml(title)}</h1></header><main>{figure(picture, 2)}</main>")


def _spoken(picture: Picture) -> str:
    """What is read out in the place of a picture: its kind, how large the largest is, and where the numbers are."""
    values = picture.sums.values
    kind = ("Bars", "Squares of colour", "Small pictures of coloured squares")[values.ndim - 1]
    place = np.unravel_index(int(values.argmax()), values.shape)
    largest = ", ".join(axis.labels[at] for axis, at in zip(picture.sums.axes, place, strict=True))
    return (
        f"{kind}: {picture.title}. The largest, {exact(float(values.max()))}, is {largest}. All numbers stand in the "
        "table below."
    )


def _numbers(picture: Picture) -> str:
    found = picture.sums
    if len(found.axes) == 1:
        return _one_axis(found, picture.title)
    if len(found.axes) == 2:
        return _two_axes(found, picture.title, ())
    third = found.axes[2]
    return "".join(
        _two_axes(found, f"{picture.title}: {third.name} {label}", (place,)) for place, label in enumerate(third.labels)
    )


def _one_axis(found: Sums, caption: str) -> str:
    (axis,) = found.axes
    columns = ["estimate"] if found.low is None else ["estimate", "from", "to"]
    parts = [found.values] if found.low is None or found.high is None else [found.values, found.low, found.high]
    rows = [[named(label), *(exact(float(part[place])) for part in parts)] for place, label in enumerate(axis.labels)]
    ends = "" if found.low is None else ", with the ends of the 95 % interval"
    return table(f"{caption}{ends}", [xml(axis.name), *columns], rows, len(columns))


def _two_axes(found: Sums, caption: str, place: tuple[int, ...]) -> str:
    """A row for each bar of the longer axis, a column for each of the other."""
    turned = found.axes[0].size > found.axes[1].size
    down, across = (found.axes[0], found.axes[1]) if turned else (found.axes[1], found.axes[0])

    def cell(row: int, column: int) -> str:
        at = (row, column, *place) if turned else (column, row, *place)
        value = exact(float(found.values[at]))
        if found.low is None or found.high is None:
            return value
        return f"{value} ({exact(float(found.low[at]))}–{exact(float(found.high[at]))})"

    rows = [
        [named(label), *(cell(row, column) for column in range(across.size))] for row, label in enumerate(down.labels)
    ]
    ends = "" if found.low is None else " (in brackets the ends of the 95 % interval)"
    header = [f"{xml(down.name)} \\ {xml(across.name)}", *map(named, across.labels)]
    return table(f"{caption}{ends}", header, rows, across.size)


def exact(value: float) -> str:
    """A number as a table shows it: whole, or with one digit after the point where it is small and not whole."""
    if abs(value) >= 1e15:
        return f"{value:.6g}"
    text = f"{value:,.0f}" if abs(value) >= 100 or value == int(value) else f"{value:,.1f}"
    return ("0" if text in ("-0", "-0.0") else text).replace("-", "−")
