"""A release as a PX file (PC-Axis, version 2013), as PxWeb and its kin read it.

The stub has the period and the axes, the heading the numbers of `columns.py`: no figure stands without its interval,
unless a minimum frequency hides the one beside it. Texts have no quotation mark: the format has no way to write one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from dphist_pipeline.answering.asking import Publication
from dphist_pipeline.answering.exports import columns
from dphist_pipeline.answering.exports.codes import codes_of, common_axes, free_name
from dphist_pipeline.answering.exports.columns import ExportColumn
from dphist_pipeline.answering.exports.rows import (
    Exported,
    charged_at,
    counted_of,
    days_of,
    facts_of,
    in_places,
    limits_of,
    places_of,
    title_of,
    with_words,
)
from dphist_pipeline.base.languages.texts import days_text, gettext, language, pgettext, translate
from dphist_pipeline.base.shown_below import limit_of, words_for
from dphist_pipeline.publishing.formatting import visible

# How cells without a number read; the words for each are in the head of the file.
UNKNOWN, BELOW = '".."', '"..."'
MOST_LETTERS = 256  # of a text on one line
_MOST_SHOWN, _MOST_DECIMALS = 6, 15


def write(exported: Exported, file: Path) -> None:
    """Writes the file."""
    with file.open("w", encoding="utf-8", newline="") as opened:
        opened.writelines(px_lines(exported))


def contents_of(exported: Exported) -> list[ExportColumn]:
    """The columns of numbers, in order."""
    numbers = {column.name: column for column in columns.COLUMNS if column.is_number}
    return [numbers[name] for name in exported.columns if name in numbers]


def px_lines(exported: Exported) -> Iterator[str]:
    """The text of the file, piece by piece.

    Raises:
        ValueError: the periods have other axes, bins or categories.
    """
    decimals, data = 0, list[str]()
    names = [column.name for column in contents_of(exported)]
    _variables(exported)  # refused before anything is read
    for one, table in zip(exported.publications, exported.tables(), strict=True):
        places = places_of(exported, table)
        decimals = max(decimals, places["estimate"])
        data.append("".join(_rows(one, table.select(names), places)))
    yield from (f"{line}\n" for line in _head(exported, decimals))
    yield from ("DATA=\n", *data)
    yield ";\n"


def _rows(publication: Publication, table: pa.Table, places: Mapping[str, int]) -> Iterator[str]:
    """A line for each cell, with its contents."""

    def written(name: str, value: float | None) -> str:
        known = value is not None and math.isfinite(value)
        return str(in_places(float(value or 0), places.get(name, 0))) if known else UNKNOWN

    by_name = with_words(publication, table, written)
    symbols = {None: UNKNOWN, words_for(limit_of(publication.audit) or 0): BELOW}
    for row in zip(*by_name.values(), strict=True):
        yield " ".join(symbols.get(cell, cell) for cell in row) + " \n"


def _head(exported: Exported, shown: int) -> Iterator[str]:
    """The keywords before the data, in the recommended order."""
    variables, contents = _variables(exported), free_name(gettext("content"), common_axes(exported.publications))
    labels = {
        column.name: translate(column.label) if column.label else column.name.replace("_", " ").capitalize()
        for column in contents_of(exported)
    }
    labels["estimate"] = pgettext("content", "Estimate")
    audit, about, title = exported.audit, exported.about, title_of(exported)
    charged = charged_at(exported)
    creation_date = f"{charged[:10].replace('-', '')} {charged[11:16]}" if len(charged) >= 16 else ""
    decimals = min(shown, _MOST_SHOWN)
    counted = counted_of(exported)
    yield from (keyword("CHARSET", "ANSI"), keyword("AXIS-VERSION", "2013"), keyword("CODEPAGE", "utf-8"))
    yield keyword("LANGUAGE", language().code)
    if creation_date:
        yield keyword("CREATION-DATE", creation_date)
    yield from (f"DECIMALS={min(shown + 1, _MOST_DECIMALS)};", f"SHOWDECIMALS={decimals};")
    yield keyword("MATRIX", str(audit["release"]))
    yield "AGGREGALLOWED=NO;"
    yield from (
        keyword("SUBJECT-CODE", "DP"),
        keyword("SUBJECT-AREA", about.publisher or gettext("Published tables")),
    )
    by = [name for name, _ in variables]
    yield keyword("TITLE", gettext("%(title)s by %(axes)s", title=title, axes=", ".join([*by, contents])))
    yield from (keyword("CONTENTS", title), keyword("UNITS", counted))
    yield from (keyword("STUB", *by), keyword("HEADING", contents), keyword("CONTVARIABLE", contents))
    for name, values in variables:
        yield keyword("VALUES", *(label for _, label in values), of=(name,))
    yield keyword("VALUES", *labels.values(), of=(contents,))
    if time := _time_list([one.audit for one in exported.publications]):
        kind, codes = time
        yield keyword("TIMEVAL", *codes, of=(by[0],)).replace("=", f"=TLIST({kind}),", 1)
    for name, values in variables:
        yield keyword("CODES", *(code for code, _ in values), of=(name,))
    yield keyword("CODES", *labels, of=(contents,))
    if decimals < _MOST_SHOWN:
        yield f"PRECISION({_quoted_text(contents)},{_quoted_text(labels['standard_error'])})={decimals + 1};"
    for label in labels.values():
        yield keyword("UNITS", counted, of=(label,))
        if creation_date:
            yield keyword("LAST-UPDATED", creation_date, of=(label,))
        if about.contact:
            yield keyword("CONTACT", about.contact, of=(label,))
    yield from _notes(exported, contents, labels)


def _notes(exported: Exported, contents: str, named: Mapping[str, str]) -> Iterator[str]:
    """Where the figures are from, what dots stand for, and the footnotes; `named`: the contents, by column."""
    if exported.about.publisher:
        yield keyword("SOURCE", exported.about.publisher)
    yield keyword("DATASYMBOL2", gettext("not available or not shown"))
    limits = limits_of(exported)
    if limits:
        yield keyword("DATASYMBOL3", gettext(" or ").join(map(words_for, limits)))
    facts = [f"{name}: {text}" for name, text in facts_of(exported)]
    yield long_text("NOTEX", "#".join(_plain(fact) for fact in facts))
    for column in contents_of(exported):
        yield long_text("VALUENOTE", _plain(translate(column.meaning)), of=(contents, named[column.name]))


def _variables(exported: Exported) -> list[tuple[str, list[tuple[str, str]]]]:
    """The period, if there are periods, and the axes: each with code and label of its values, in order."""
    axes = common_axes(exported.publications)
    last = exported.publications[-1]
    for one in exported.publications:
        for axis, there in zip(last.domain.axes, one.domain.axes, strict=True):
            if [code.meant for code in codes_of(axis)] != [code.meant for code in codes_of(there)]:
                problem = f"its periods have other bins or categories of {axis.name}, which one PX file cannot hold"
                raise ValueError(f"{problem}; choose one with --period")
    variables = [
        (axis.name, [(code.code, code.label) for code in codes_of(axis, last.audit.get("model") == "local")])
        for axis in last.domain.axes
    ]
    if exported.audit["period"] != "all":
        days = [(str(one.audit["period"]), _days(one.audit)) for one in exported.publications]
        variables = [(free_name(gettext("period"), axes), days), *variables]
    return [(name, _apart(values)) for name, values in variables]


def _apart(values: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The values of a variable with labels that differ once they are written."""
    distinct, folded_names = list[tuple[str, str]](), set[str]()
    for code, label in values:
        plain = _plain(label)[:MOST_LETTERS]
        if plain in folded_names:
            plain = f"{plain[: MOST_LETTERS - len(code) - 3]} ({code})"
        folded_names.add(plain)
        distinct.append((code, plain))
    return distinct


def _days(audit: Mapping[str, Any]) -> str:
    ends = days_of(audit)
    if ends is None:
        return str(audit["period"])
    first, last = (days_text(day.isoformat()) for day in (ends[0], ends[1] - timedelta(days=1)))
    return f"{first}{pgettext('days', ' to ')}{last}"


def _time_list(audits: Sequence[Mapping[str, Any]]) -> tuple[str, list[str]] | None:
    """The scale of time and the code of each period on it; None if the periods lie on none."""
    points = [_on_scale(*ends) if (ends := days_of(audit)) is not None else None for audit in audits]
    times = [one for one in points if one is not None]
    kinds = {kind for kind, _ in times}
    return (kinds.pop(), [code for _, code in times]) if len(times) == len(points) and len(kinds) == 1 else None


def _on_scale(start: date, end: date) -> tuple[str, str] | None:
    """A week that begins on a Monday, a month, a quarter or a year of the calendar."""
    if (end - start).days == 7 and start.weekday() == 0:
        year, week, _ = start.isocalendar()
        return "W1", f"{year}{week:02d}"
    months = 12 * (end.year - start.year) + end.month - start.month
    if (start.day, end.day) != (1, 1):
        return None
    if months == 1:
        return "M1", f"{start:%Y%m}"
    if months == 3 and start.month % 3 == 1:
        return "Q1", f"{start.year}{(start.month + 2) // 3}"
    return ("A1", str(start.year)) if months == 12 and start.month == 1 else None


def keyword(name: str, *values: str, of: Sequence[str] = ()) -> str:
    """A keyword with its values, one on a line where there are many."""
    about = f"({','.join(map(_quoted_text, of))})" if of else ""
    between = ",\n" if sum(map(len, values)) > MOST_LETTERS else ","
    return f"{name}{about}={between.join(map(_quoted_text, values))};"


def long_text(name: str, text: str, of: Sequence[str] = ()) -> str:
    """A keyword with a text of several lines, each within quotation marks."""
    about = f"({','.join(map(_quoted_text, of))})" if of else ""
    most = MOST_LETTERS - 2
    pieces = [text[first : first + most] for first in range(0, len(text), most)] or [""]
    return f"{name}{about}=" + "\n".join(f'"{piece}"' for piece in pieces) + ";"


def _quoted_text(text: str) -> str:
    return f'"{_plain(text)[:MOST_LETTERS]}"'


def _plain(text: str) -> str:
    """Text on one line without quotation marks, and without what a simple reader takes for the keyword of the data."""
    return visible(" ".join(text.split())).replace('"', "'").replace("DATA=", "DATA =") or "-"
