"""Selects the cells of a box: by ranges, days, categories, and levels of a hierarchy; and writes boxes for SQL."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from numbers import Real
from typing import cast

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import (
    OTHER,
    AmountAxis,
    Axis,
    BinnedAxis,
    CategoricalAxis,
    Domain,
    number_of_day,
)
from dphist_pipeline.errors import Refused, did_you_mean

End = float | date | str | None
Categories = str | None | Sequence[str | None]
Condition = tuple[End, End] | Categories | Mapping[str, Categories]

MOST_LISTED = 20
ANY_END = ", or ask `Release.answer` or `dphist answer --where` for the count of one box, which takes any end"
NO_CONDITION = "is an amount: its rows are not counted by size; ask for its sum or mean, by `dph_sum` or `dph_mean`"
Positions = list[NDArray[np.int64]]


class QuestionRefused(Refused):
    """A question that the declared grid cannot answer."""

    def __init__(self, axis: str, problem: str) -> None:
        self.axis, self.problem = axis, problem  # a macro names the axis in the problem
        super().__init__(f"axis '{axis}': {problem}" if axis else problem)


def chosen_cells(domain: Domain, box: Mapping[str, Condition]) -> Positions:
    """The positions along each axis that a box selects, rising, shape (selected positions,) each.

    Args:
        box: condition by name of axis or level; conditions on an axis and on its levels must all hold.

    Raises:
        QuestionRefused: an axis, level or category is unknown, an end lies within a bin, or the box holds no cells.
    """
    check_axes(domain, box)
    return [_positions(axis, box) for axis in domain.axes]


def overlapped_cells(domain: Domain, box: Mapping[str, Condition]) -> tuple[Positions, list[NDArray[np.float64]]]:
    """The positions along each axis that a box overlaps; its ends may cut bins.

    Returns:
        For each axis rising positions, and the share of each that lies in the box, shape (positions,) both.

    Raises:
        QuestionRefused: see `chosen_cells`; ends beyond the edges are refused.
    """
    cut = {axis.name: shares for axis in domain.axes if (shares := _shares_of_cut_bins(axis, box)) is not None}
    whole = chosen_cells(domain, {name: wanted for name, wanted in box.items() if name not in cut})
    positions = [
        np.flatnonzero(cut[axis.name]) if axis.name in cut else along
        for axis, along in zip(domain.axes, whole, strict=True)
    ]
    return positions, [
        cut[axis.name][along] if axis.name in cut else np.ones(along.size)
        for axis, along in zip(domain.axes, positions, strict=True)
    ]


def _shares_of_cut_bins(axis: Axis, box: Mapping[str, Condition]) -> NDArray[np.float64] | None:
    """The share of each cell that lies in the range of an axis; None if no end of a valid range lies within a bin."""
    wanted = box.get(axis.name)
    if not isinstance(axis, BinnedAxis) or not isinstance(wanted, tuple) or len(wanted) != 2:
        return None
    low, high = end_of(axis, wanted[0], -math.inf), end_of(axis, wanted[1], math.inf)
    within = [end for end in (low, high) if math.isfinite(end) and end not in axis.edges]
    if not (within and low < high and all(axis.edges[0] < end < axis.edges[-1] for end in within)):
        return None
    lower, upper = axis.bounds
    with np.errstate(invalid="ignore"):
        overlap = (np.minimum(high, upper) - np.maximum(low, lower)) / (upper - lower)
    inside = (lower >= low) & (upper <= high)
    return np.where(inside, 1.0, np.where((upper > low) & (lower < high), overlap, 0.0))


def box_as_json(domain: Domain, box: Mapping[str, Condition]) -> str:
    """A box as the macros read it: ends as numbers or days, an open end and `other` as null."""
    return json.dumps({axis: _as_json(domain, axis, wanted) for axis, wanted in box.items()})


def _as_json(domain: Domain, name: str, wanted: Condition) -> object:
    axis = next(axis for axis in domain.axes if name == axis.name or name in axis.levels)
    if isinstance(axis, AmountAxis):
        raise _no_condition(axis)
    if not isinstance(axis, CategoricalAxis):
        return [end_as_json(axis, end) for end in cast("tuple[End, End]", wanted)]
    categories, negated = listed_categories(name, wanted)
    codes = [_code_of(axis, name, group) for group in categories]
    return {"not": codes} if negated else codes


def end_as_json(axis: BinnedAxis, end: object) -> float | str | None:
    """One end of a range as the macros read it: a number, a day as text, null for an open end."""
    return axis.public_end(end_of(axis, end, math.inf))


def check_axes(domain: Domain, names: Iterable[str]) -> None:
    """Refuses names that are neither an axis nor a level of one."""
    axes_and_levels = [name for axis in domain.axes for name in (axis.name, *axis.levels)]
    for name in names:
        if name not in axes_and_levels:
            raise QuestionRefused(str(name), f"there is no such axis. {did_you_mean(name, axes_and_levels)}")


def _positions(axis: Axis, box: Mapping[str, Condition]) -> NDArray[np.int64]:
    if isinstance(axis, AmountAxis):
        if axis.name in box:
            raise _no_condition(axis)
        return np.arange(axis.size)
    if not isinstance(axis, CategoricalAxis):
        return _positions_of_condition(axis, box[axis.name]) if axis.name in box else np.arange(axis.size)
    inside = np.arange(axis.size)
    for name, groups in {axis.name: axis.values, **axis.levels}.items():
        if name in box:
            inside = np.intersect1d(inside, _positions_of_groups(axis, name, groups, box[name]))
    if inside.size == 0:
        raise QuestionRefused(axis.name, "has no cells that meet all conditions on it and its levels")
    return inside


def _no_condition(axis: AmountAxis) -> QuestionRefused:
    return QuestionRefused(axis.name, NO_CONDITION)


def _positions_of_condition(axis: BinnedAxis, wanted: Condition) -> NDArray[np.int64]:
    if not isinstance(wanted, tuple) or len(wanted) != 2:
        units = "as dates" if axis.reads == "days" else "in axis units"
        problem = f"takes a range (low, high) {units}, half-open, None for an open end"
        if isinstance(wanted, str):
            condition = _condition_of(axis, _cell_that_holds(axis, wanted))
            problem += f"; `=` is for categories, so ask for a bin by its ends: `{condition}`"
        raise QuestionRefused(axis.name, problem)
    low, high = wanted
    return _positions_of_range(axis, end_of(axis, low, -math.inf), end_of(axis, high, math.inf))


def _cell_that_holds(axis: BinnedAxis, text: str) -> int:
    """The cell that holds a number or day; the first bin if the text is neither, or if no cell holds it."""
    with suppress(ValueError, QuestionRefused):
        end = end_of(axis, text if axis.reads == "days" else float(text), math.nan)
        lower, upper = axis.bounds
        left = axis.closed == "left"
        inside = (lower <= end) & (end < upper) if left else (lower < end) & (end <= upper)
        if inside.any():
            return int(np.argmax(inside))
    return int(axis.below)


def _condition_of(axis: BinnedAxis, cell: int) -> str:
    """The `--where` condition that selects a cell."""
    low, high = (float(ends[cell]) for ends in axis.bounds)
    if math.isinf(low):
        return f"{axis.name} < {axis.written(high)}"
    if math.isinf(high):
        return f"{axis.name} >= {axis.written(low)}"
    return f"{axis.name} in {_written_range(axis, low, high)}"


def end_of(axis: BinnedAxis, end: object, open_end: float) -> float:
    """One end of a range, None for an open one, as a number in axis units; of a day, days since 1970-01-01.

    Raises:
        QuestionRefused: the end is neither a number nor, on a calendar axis, a day.
    """
    if end is None:
        return open_end
    if axis.reads == "days":
        with suppress(ValueError):
            if isinstance(end, str | date) and not isinstance(end, datetime):
                return float(number_of_day(date.fromisoformat(str(end))))
        raise QuestionRefused(axis.name, f"takes days such as '2026-03-02' as ends, not {end!r:.60}")
    if isinstance(end, Real):
        with suppress(OverflowError):
            return float(end)
    raise QuestionRefused(axis.name, f"takes numbers as ends, not {end!r:.60}")


def listed_categories(name: str, wanted: Condition) -> tuple[list[object], bool]:
    """The categories that a condition lists, and whether all cells but theirs are asked for.

    Args:
        wanted: a category, a list of them, or `{"not": …}` of these.

    Raises:
        QuestionRefused: none is listed.
    """
    negated = isinstance(wanted, Mapping)
    if isinstance(wanted, Mapping):
        if list(wanted) != ["not"]:
            raise QuestionRefused(name, "takes categories, or all but some as {'not': ['surgery']}")
        wanted = wanted["not"]
    listed: list[object] = list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
    if not listed:
        raise QuestionRefused(name, "takes a category or a list of them, not an empty list")
    return listed, negated


def _positions_of_groups(
    axis: CategoricalAxis, name: str, groups: tuple[str, ...], wanted: Condition
) -> NDArray[np.int64]:
    """Positions of the categories in the selected groups of a level; the axis itself counts as the finest level."""
    categories, negated = listed_categories(name, wanted)
    codes = {_code_of(axis, name, group) for group in categories}
    of_cells = [*groups, *[None] * axis.other]
    return np.array([place for place, code in enumerate(of_cells) if (code in codes) != negated], dtype=np.int64)


def _code_of(axis: CategoricalAxis, name: str, group: object) -> str | None:
    """The category or group of a level that is asked for by its code or, if only one category has it, by its label.

    None stands for the cell for `other`.
    """
    groups = axis.values if name == axis.name else axis.levels[name]
    if group in groups:
        return str(group)
    if axis.other_cell is not None and group in (None, OTHER):
        return None
    labelled = [code for code, label in zip(axis.values, axis.labels, strict=False) if label and label == group]
    if name == axis.name and len(labelled) == 1:
        return labelled[0]
    if name == axis.name and labelled:
        codes = ", ".join(map(repr, labelled[:MOST_LISTED]))
        raise QuestionRefused(name, f"has several categories with the label {group!r:.60}; use their codes: {codes}")
    if isinstance(group, bool):
        raise QuestionRefused(name, f"has no category {group}: where YAML should give a word such as yes, quote it")
    hint = did_you_mean(group, {*groups, *(axis.labels if name == axis.name else ())} - {""})
    if axis.other_cell is not None:
        hint += f" For null and all other values: `{name} is other`, in Python None."
    raise QuestionRefused(name, f"has no category {group!r:.60}. {hint}")


def _positions_of_range(axis: BinnedAxis, low: float, high: float) -> NDArray[np.int64]:
    """The cells within [low, high); refuses an end within a bin, since the position of rows in a bin is not known."""
    if not low < high:
        raise QuestionRefused(
            axis.name, f"the range {_written_range(axis, low, high)} is empty; put the lower end first"
        )
    for end in (low, high):
        if math.isfinite(end) and end not in axis.edges:
            raise QuestionRefused(axis.name, f"{axis.written(end)} cuts {_cut_cell(axis, end)}")
    lower, upper = axis.bounds
    inside: NDArray[np.int64] = np.flatnonzero((lower >= low) & (upper <= high))
    if inside.size == 0:
        where = _written_range(axis, low, high)
        raise QuestionRefused(axis.name, f"has no cells in {where}; its rows were not counted")
    return inside


def _cut_cell(axis: BinnedAxis, end: float) -> str:
    """The cell that contains an end, in words, and the edges around it."""
    place = int(np.searchsorted(axis.edges, end))
    if place == 0:
        return f"the cells below the first edge; use {axis.written(axis.edges[0])}, or leave that end open"
    if place == len(axis.edges):
        return f"the cells above the last edge; use {axis.written(axis.edges[-1])}, or leave that end open"
    below, above = axis.edges[place - 1], axis.edges[place]
    return f"the bin from {axis.written(below)} to {axis.written(above)}; use one of these edges{ANY_END}"


def _written_range(axis: BinnedAxis, low: float, high: float) -> str:
    return f"[{axis.written(low)}, {axis.written(high)})"
