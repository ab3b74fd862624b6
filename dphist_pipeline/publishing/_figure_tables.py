"""Figures as tables of a page: the number of each line with its interval, and below each table what to know of it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, groupby
from typing import Any

from dphist_pipeline.base.domain import OTHER, Axis, BinnedAxis, with_words
from dphist_pipeline.base.languages.texts import gettext, pgettext, whole
from dphist_pipeline.estimates.chosen_cells import QuestionRefused, end_of
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.figure_files import is_known, places_of, used_columns
from dphist_pipeline.publishing.formatting import shown_number
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.published_figures import COLUMNS

MOST_ROWS, MOST_NOTES = 12, 3
SHARE = "share of "
_BETWEEN = re.compile(r"(?<=\.) (?=[A-Z])")
PERCENT = 2  # more decimals has a share than its percent


def figure_tables(lines: Sequence[Mapping[str, Any]], audit: Mapping[str, Any]) -> dict[str, Any]:
    """The lines of a publication as tables, one for each figure: caption, header, rows, and sentences below it.

    Sentences that all lines or several figures share stand once. Empty where there are no lines.
    """
    if not lines:
        return {}
    described = [table["axes"] for table in audit["tables"].values()] if "tables" in audit else [audit["axes"]]
    axes = {axis.name: axis for one in described for axis in domain_of(one).axes}
    labels = audit.get("axis_labels") or {}
    figures = {name: [*of_figure] for name, of_figure in groupby(lines, lambda line: str(line["figure"]))}
    notes = {
        name: dict.fromkeys(note for line in of_figure if line["value"] is not None for note in _sentences(line))
        for name, of_figure in figures.items()
    }
    told = [line for line in lines if line["value"] is not None]
    shared = [
        note
        for note in dict.fromkeys(chain.from_iterable(notes.values()))
        if sum(note in of_figure for of_figure in notes.values()) > 1 or all(note in _sentences(line) for line in told)
    ]
    tables = [
        _table(name, of_figure, [note for note in notes[name] if note not in shared], axes, labels, shared)
        for name, of_figure in figures.items()
    ]
    return {"tables": tables, "sentences": shared}


def _table(
    name: str,
    lines: Sequence[Mapping[str, Any]],
    own_notes: Sequence[str],
    axes: Mapping[str, Axis],
    labels: Mapping[str, str],
    shared: Sequence[str],
) -> dict[str, Any]:
    told = [column for column in used_columns(lines) if column not in COLUMNS]
    by = [*dict.fromkeys(_ends(axes).get(column, column) for column in told)]
    unit = str(lines[0]["unit"])
    is_share = unit.startswith(SHARE)
    if is_share:
        unit = gettext("%% of %(counted)s", counted=unit.removeprefix(SHARE))
    rows = [
        (*([_value(line, axis, axes) for axis in by] or [name]), *_numbers(line, is_share, shared))
        for line in lines[:MOST_ROWS]
    ]
    sentences = [*own_notes[:MOST_NOTES]]
    if len(lines) > MOST_ROWS:
        sentences.append(gettext("The file has all %(number)s lines.", number=whole(len(lines))))
    header = [*([labels.get(axis, axis) for axis in by] or [gettext("figure")]), unit, gettext("95 %% interval")]
    return {"name": name, "header": header, "rows": rows, "sentences": sentences}


def _sentences(line: Mapping[str, Any]) -> list[str]:
    return [sentence for sentence in _BETWEEN.split(line["note"] or "") if sentence]


def _ends(axes: Mapping[str, Axis]) -> dict[str, str]:
    """The axis of each column with an end of bins."""
    return {
        f"{axis.name}_{end}": axis.name
        for axis in axes.values()
        if isinstance(axis, BinnedAxis)
        for end in ("lower", "upper")
    }


def _value(line: Mapping[str, Any], name: str, axes: Mapping[str, Axis]) -> str:
    """The value of an axis or level in a line, in words."""
    axis = axes.get(name)
    if not isinstance(axis, BinnedAxis):
        value = str(line[name])
        return (
            pgettext("category", "other") if value == OTHER else (with_words(axis).get(value, value) if axis else value)
        )
    lower, upper = line[f"{name}_lower"], line[f"{name}_upper"]
    if lower is None and upper is None:
        return pgettext("category", "other")
    with suppress(QuestionRefused):  # of a period with an axis of another kind
        ends = end_of(axis, lower, -math.inf), end_of(axis, upper, math.inf)
        return ReaderAxis(axis).range_in_words(*ends, separated=True)
    return f"{lower} … {upper}"


def _numbers(line: Mapping[str, Any], is_share: bool, shared: Sequence[str]) -> tuple[str, str]:
    """The number of a line and its interval; why there is none in place of both, without what stands below anyway."""
    if line["value"] is None:
        return "–", " ".join(note for note in _sentences(line) if note not in shared) or str(line["note"])
    places, times = places_of(line), 100 if is_share else 1
    places = max(0, places - PERCENT) if places is not None and is_share else places
    value, lower, upper = (
        None if line[end] is None else shown_number(times * line[end], places)
        for end in ("value", "ci_lower", "ci_upper")
    )
    interval = "–" if lower is None or upper is None else gettext("%(low)s to %(high)s", low=lower, high=upper)
    if is_known(line):
        interval = pgettext("reliability", "known")
    return str(value), interval.replace(" ", "\u00a0")
