"""Pages from Jinja2 templates: every value is escaped. None runs a script but that of a release, with its picker."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dphist_pipeline.base.languages.texts import (
    gettext,
    pgettext,
)
from dphist_pipeline.base.shown_below import words_for
from dphist_pipeline.publishing.formatting import shown_number
from dphist_pipeline.publishing.picture_sums import KNOWN, AxisGroups, PictureSums
from dphist_pipeline.publishing.pictures import Picture, description
from dphist_pipeline.publishing.rendering import render


def ledger_page(report: Mapping[str, Any]) -> str:
    """The privacy officer's report as HTML."""
    return render("ledger.html.j2", report=report)


def picture_page(picture: Picture, title: str, back: str = "", rendered: str = "") -> str:
    """A page of one picture and its numbers, with a title in plain text.

    `back`: address of the card, relative to the page; empty for a page by itself.
    """
    return render("picture.html.j2", title=title, picture=picture_facts(picture), back=back, rendered=rendered)


def picture_facts(picture: Picture) -> dict[str, Any]:
    """What the macro `figure` needs to show a picture, its description and its numbers as tables."""
    view_box, content = _picture_svg(picture)
    sums = picture.sums
    tables = [_line(sums)] if len(sums.axes) == 1 else _cross_tables(sums)
    return {
        "title": picture.title,
        "note": picture.note,
        "view_box": view_box,
        "content": content,
        "described": description(picture),
        "with_intervals": sums.low is not None,
        "in_columns": len(sums.axes) == 1,  # the ends of intervals stand in columns, not in brackets
        "tables": tables,
        # In print, more than three numbers with the ends of their intervals break within half of a sheet.
        "broad": sums.low is not None and len(sums.axes) > 1 and len(tables[0]["header"]) > 4,
    }


def _picture_svg(picture: Picture) -> tuple[str, Markup]:
    """The view box of a picture and its content as SVG; empty content if it cannot be drawn."""
    try:
        drawing = picture.drawing()
        content = render("picture.svg.j2", drawing=drawing, heading="", about="", whole=False)
        return f"0 0 {drawing.width:.0f} {math.ceil(drawing.height)}", Markup(content)  # the template escaped it
    except Exception:
        # What was drawn from the measurements is paid for and must come out: the tables have every number of the
        # picture.
        return "0 0 1 1", Markup("")


def _line(sums: PictureSums) -> dict[str, Any]:
    """A row for each group of the one axis."""
    (axis,) = sums.axes
    title = {
        None: gettext("estimate"),
        "everywhere": gettext("unbiased sum"),
        "somewhere": pgettext("column", "number"),
    }[sums.summed]
    columns: list[NDArray[Any]] = [
        np.where(sums.without_ends, "", _texts(part, sums.decimals))
        for part in (sums.low, sums.high)
        if part is not None
    ]
    columns = [_numbers_in_words(sums), *columns]
    header = [axis.name, title, pgettext("column", "from"), pgettext("column", "to")][: 1 + len(columns)]
    if sums.words is not None:
        words = [_word(word) + part for word, part in zip(sums.words.tolist(), _relative_errors(sums), strict=True)]
        columns, header = [*columns, np.array(words, dtype=object)], [*header, gettext("reliability")]
    return {"of": "", "header": header, "rows": list(zip(_labels(axis), *columns, strict=True))}


def _relative_errors(sums: PictureSums) -> list[str]:
    """Half of each interval as a part of its number, as the picker tells it; empty where that says little."""
    assert sums.low is not None and sums.high is not None
    parts = 50 * (sums.high - sums.low) / np.where(sums.values > 0, sums.values, np.inf)
    told = (parts >= 0.05) & (parts < 1000) & ~sums.without_ends
    return [
        f" (±\u00a0{shown_number(part, 0 if part >= 9.95 else 1)}\u00a0%)" if is_told else ""
        for part, is_told in zip(parts.tolist(), told.tolist(), strict=True)
    ]


def _labels(axis: AxisGroups) -> list[str]:
    """The groups of an axis in words; those of a bin stay on one line."""
    return [label.replace(" ", "\u00a0") if axis.ordered else label for label in axis.labels]


def _texts(numbers: NDArray[np.float64], decimals: int | None) -> NDArray[np.object_]:
    return np.asarray(np.frompyfunc(lambda number: shown_number(float(number), decimals), 1, 1)(numbers))


def _word(word: str) -> str:
    """How reliable a number is, in one word."""
    words = {
        "good": pgettext("reliability", "good"),
        "fair": pgettext("reliability", "fair"),
        "poor": pgettext("reliability", "poor"),
        KNOWN: pgettext("reliability", "known"),
    }
    return words.get(word, word)


def _numbers_in_words(sums: PictureSums) -> NDArray[np.object_]:
    """Each number as text, or the words in its place."""
    return np.where(sums.is_hidden, words_for(sums.limit or 0), _texts(sums.values, sums.decimals)).astype(object)


def _cross_tables(sums: PictureSums) -> list[dict[str, Any]]:
    """For each panel a table, the longer axis downwards; intervals in brackets, a word where a number is not good.

    No line breaks within brackets, where a sheet is too narrow for a row.
    """
    texts = _numbers_in_words(sums)
    if sums.low is not None and sums.high is not None and sums.words is not None:
        ends = (_texts(end, sums.decimals) for end in (sums.low, sums.high))
        # A line may break before the brackets, and nowhere within them.
        between = pgettext("number", " to ").replace(" ", "\u00a0")
        between = " (" + next(ends) + between + next(ends) + ")"
        texts = texts + np.where(sums.without_ends, "", between).astype(object)
        words = ["" if word == "good" else f",\u00a0{_word(word)}" for word in sums.words.flat]
        remarks = np.array(words, dtype=object)
        texts = texts + remarks.reshape(sums.words.shape)
    (first, second), panels = sums.axes[:2], sums.axes[2:]
    if first.size <= second.size:
        texts, first, second = np.swapaxes(texts, 0, 1), second, first
    header = [f"{first.name} \\ {second.name}", *_labels(second)]
    parts = (
        [(f": {panels[0].name} {name}", texts[..., at]) for at, name in enumerate(panels[0].labels)]
        if panels
        else [("", texts)]
    )
    return [
        {"of": of, "header": header, "rows": [(label, *row) for label, row in zip(_labels(first), part, strict=True)]}
        for of, part in parts
    ]
