"""Selects the cells of a box: by ranges, days, categories, and levels of a hierarchy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.domain import Axis, BinnedAxis, CalendarAxis, CategoricalAxis, Domain, day_of, number_of_day
from dphist_pipeline.errors import DphistError, did_you_mean

End = float | date | str | None
Condition = tuple[End, End] | str | None | Sequence[str | None]

OTHER = "other"
ANY_END = ", or ask `Release.answer`, `Release.range` or `dphist answer`, which take any end"


class QuestionRefused(DphistError):
    """A question that the declared grid cannot answer."""

    def __init__(self, axis: str, problem: str) -> None:
        self.axis, self.problem = axis, problem
        super().__init__(f"axis '{axis}': {problem}")


def chosen_cells(domain: Domain, box: Mapping[str, Condition]) -> list[NDArray[np.int64]]:
    """The positions along each axis that a box selects.

    Args:
        domain: the declared grid.
        box: condition by name of axis or level; conditions on an axis and on its levels must all hold.

    Returns:
        For each axis rising positions, shape (selected positions,).

    Raises:
        QuestionRefused: an axis, level or category is unknown, an end lies within a bin, or the box holds no cells.
    """
    check_axes(domain, box)
    return [_positions(axis, box) for axis in domain.axes]


def check_axes(domain: Domain, names: Iterable[str]) -> None:
    """Refuses names that are neither an axis nor a level of one.

    Args:
        domain: the declared grid.
        names: of axes and levels.

    Raises:
        QuestionRefused: with the nearest known names.
    """
    known = [
        name
        for axis in domain.axes
        for name in (axis.name, *(axis.levels if isinstance(axis, CategoricalAxis) else ()))
    ]
    for name in names:
        if name not in known:
            raise QuestionRefused(str(name), f"there is no such axis. {did_you_mean(name, known)}")


def _positions(axis: Axis, box: Mapping[str, Condition]) -> NDArray[np.int64]:
    if not isinstance(axis, CategoricalAxis):
        return _positions_of_condition(axis, box[axis.name]) if axis.name in box else np.arange(axis.size)
    inside = np.arange(axis.size)
    for name, groups in {axis.name: axis.values, **axis.levels}.items():
        if name in box:
            inside = np.intersect1d(inside, _positions_of_groups(axis, name, groups, box[name]))
    if inside.size == 0:
        raise QuestionRefused(axis.name, "has no cells that meet all conditions on it and its levels")
    return inside


def _positions_of_condition(axis: BinnedAxis, wanted: Condition) -> NDArray[np.int64]:
    if not isinstance(wanted, tuple) or len(wanted) != 2:
        units = "as dates" if isinstance(axis, CalendarAxis) else "in axis units"
        problem = f"takes a range (low, high) {units}, half-open, None for an open end"
        if isinstance(wanted, str):
            asked = _condition_of(axis, _cell_that_holds(axis, wanted))
            problem += f"; `=` is for categories, so ask for a bin by its ends: `{asked}`"
        raise QuestionRefused(axis.name, problem)
    low, high = wanted
    return _positions_of_range(axis, end_of(axis, low, -math.inf), end_of(axis, high, math.inf))


def _cell_that_holds(axis: BinnedAxis, text: str) -> int:
    """The cell that holds a number or day; the first bin if the text is neither, or if no cell holds it."""
    with suppress(ValueError, QuestionRefused):
        end = end_of(axis, text if isinstance(axis, CalendarAxis) else float(text), math.nan)
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
        return f"{axis.name} < {written_end(axis, high)}"
    if math.isinf(high):
        return f"{axis.name} >= {written_end(axis, low)}"
    return f"{axis.name} in {_written_range(axis, low, high)}"


def end_of(axis: BinnedAxis, end: object, open_end: float) -> float:
    """One end of a range as a number in axis units; on a calendar axis, days since 1970-01-01.

    Args:
        axis: of the range.
        end: a number or a day; None for an open end.
        open_end: the result for an open end.

    Raises:
        QuestionRefused: the end is neither a number nor, on a calendar axis, a day.
    """
    if end is None:
        return open_end
    if isinstance(axis, CalendarAxis):
        with suppress(ValueError):
            if isinstance(end, str | date) and not isinstance(end, datetime):
                return float(number_of_day(date.fromisoformat(str(end))))
        raise QuestionRefused(axis.name, f"takes days such as '2026-03-02' as ends, not {end!r:.60}")
    if isinstance(end, Real):
        with suppress(OverflowError):
            return float(end)
    raise QuestionRefused(axis.name, f"takes numbers as ends, not {end!r:.60}")


def _positions_of_groups(
    axis: CategoricalAxis, name: str, groups: tuple[str, ...], wanted: Condition
) -> NDArray[np.int64]:
    """Positions of the categories in the selected groups of a level; the axis itself counts as the finest level."""
    listed: list[object] = list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
    if not listed:
        raise QuestionRefused(name, "takes a category or a list of them, not an empty list")
    positions: list[int] = []
    for group in listed:
        inside = [position for position, named in enumerate(groups) if named == group]
        if axis.other_cell is not None and (group is None or (group == OTHER and not inside)):
            inside = [axis.other_cell]
        if not inside:
            hint = did_you_mean(group, set(groups))
            if axis.other_cell is not None:
                hint += f" For null and all other values: `{name} is other`, in Python None."
            raise QuestionRefused(name, f"has no category {group!r:.60}. {hint}")
        positions += inside
    return np.array(sorted(set(positions)), dtype=np.int64)


def _positions_of_range(axis: BinnedAxis, low: float, high: float) -> NDArray[np.int64]:
    """The cells within [low, high); refuses an end within a bin, since the position of rows in a bin is not known."""
    if not low < high:
        raise QuestionRefused(
            axis.name, f"the range {_written_range(axis, low, high)} is empty; put the lower end first"
        )
    for end in (low, high):
        if math.isfinite(end) and end not in axis.edges:
            raise QuestionRefused(axis.name, f"{written_end(axis, end)} cuts {_cut_cell(axis, end)}")
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
        return f"the cells below the first edge; use {written_end(axis, axis.edges[0])}, or leave that end open"
    if place == len(axis.edges):
        return f"the cells above the last edge; use {written_end(axis, axis.edges[-1])}, or leave that end open"
    below, above = axis.edges[place - 1], axis.edges[place]
    return f"the bin from {written_end(axis, below)} to {written_end(axis, above)}; use one of these edges{ANY_END}"


def _written_range(axis: BinnedAxis, low: float, high: float) -> str:
    return f"[{written_end(axis, low)}, {written_end(axis, high)})"


def written_end(axis: BinnedAxis, end: float) -> str:
    """The text of an end of a bin: a date on a calendar axis, else a number.

    Args:
        axis: of the bin.
        end: in axis units, or days since 1970-01-01; may be infinite.
    """
    return day_of(end).isoformat() if isinstance(axis, CalendarAxis) and math.isfinite(end) else written(end)


def written(number: float) -> str:
    """The shortest text of a number that reads back as the same double, without a final `.0`.

    Args:
        number: any double.
    """
    return repr(number).removesuffix(".0")
