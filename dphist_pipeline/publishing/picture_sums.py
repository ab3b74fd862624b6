"""Sums of published cells for pictures: few groups along each shown axis, and the 95 % interval of every sum."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Axis, BinnedAxis, CalendarAxis, CategoricalAxis, Domain, day_of, with_words
from dphist_pipeline.base.languages.texts import days_text, gettext, number_text, pgettext, whole
from dphist_pipeline.estimates.known_figures import KnownFigures
from dphist_pipeline.estimates.noisy import NoisyCells, ReportedCells, Unbiased
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.publishing.formatting import decimals_of

Positions = NDArray[np.int64]
Reals = NDArray[np.float64]
Summed = Literal["everywhere", "somewhere"]
KNOWN = "known"  # in place of a word on the reliability of a number
LONG = 10_000  # ends of bins have commas where one of them is as long


@dataclass(frozen=True, eq=False)
class Grid:
    """The published cells that a picture shows.

    `values` and `unbiased` (None if the mechanism has none) have the shape of the domain; `chosen` are the positions
    along each axis that are shown. `known`: public figures that sums of cells have exactly; mostly none.
    """

    domain: Domain
    values: Reals
    unbiased: Unbiased | None
    chosen: tuple[Positions, ...]
    known: KnownFigures | None = None

    @classmethod
    def of_all(
        cls, domain: Domain, values: Reals, unbiased: Unbiased | None, known: KnownFigures | None = None
    ) -> Grid:
        """A grid of which every cell is shown; `values` are estimates in records, shape of the domain."""
        return cls(domain, values, unbiased, tuple(np.arange(size) for size in domain.shape), known)


@dataclass(frozen=True, eq=False)
class AxisGroups:
    """Groups of neighbouring cells along one axis of a picture, in declared order.

    Every shown position is in exactly one. `labels` are in words, `ticks` in few letters. `ordered`: groups are ranges
    of a number or of time, not categories. `other`: the last group is the cell `other`. `note`: which cells were
    summed; empty if every group is one declared cell.
    """

    name: str
    positions: tuple[Positions, ...]
    labels: tuple[str, ...]
    ticks: tuple[str, ...]
    ordered: bool = False
    other: bool = False
    note: str = ""

    @property
    def size(self) -> int:
        """Number of groups."""
        return len(self.positions)


@dataclass(frozen=True, eq=False)
class PictureSums:
    """Sums of cells; every array has one side for each axis in `axes`.

    Attributes:
        values: the estimates of single cells, and the unbiased sums of several (see `headline_figures`), in records.
        summed: whether several cells are summed, everywhere or somewhere; None if nowhere.
        low: lower ends of the 95 % intervals around the unbiased sums; None if the mechanism bought no noisy cells.
        high: upper ends, likewise.
        errors: standard deviations of the noise in the unbiased sums.
        words: the reliability of each, see `estimates.reliability`.
        reported: whether the sums are estimates from reports of contributors.
        asked_decimals: of all numbers; None for as many as they deserve.
        limit: figures below it are told as words, see `shown_below`; None where all are shown.
        counted: what rows are called, as the spec has it; empty for rows.
        known: whether each is a public figure, which has no interval; None without any.
    """

    axes: tuple[AxisGroups, ...]
    values: Reals
    low: Reals | None = None
    high: Reals | None = None
    reach: Reals | None = None
    errors: Reals | None = None
    words: NDArray[np.str_] | None = None
    reported: bool = False
    summed: Summed | None = None
    asked_decimals: int | None = None
    limit: int | None = None
    counted: str = ""
    known: NDArray[np.bool_] | None = None

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Whether each number is a public figure."""
        return np.zeros(self.values.shape, dtype=bool) if self.known is None else self.known

    @property
    def is_hidden(self) -> NDArray[np.bool_]:
        """Whether each number is told as words."""
        return (self.values < (-np.inf if self.limit is None else self.limit)) & ~self.is_known

    @property
    def without_ends(self) -> NDArray[np.bool_]:
        """Whether each number has no interval beside it: it, or the middle of that interval, is told as words."""
        if self.limit is None or self.high is None or self.reach is None:
            return self.is_hidden | self.is_known
        return self.is_hidden | self.is_known | (self.high - self.reach < self.limit)

    @property
    def decimals(self) -> int | None:
        """Of all numbers: as asked for, else by the least noise; None if nothing tells of their errors."""
        if self.asked_decimals is not None:
            return self.asked_decimals
        return None if self.errors is None else decimals_of(float(self.errors[~self.is_known].min(initial=np.inf)))


def marginal(grid: Grid, axes_shown: Sequence[int], most: Sequence[int]) -> PictureSums:
    """Sums the cells over all axes that are not shown.

    Args:
        axes_shown: numbers of the shown axes, in the order of the picture.
        most: the largest readable number of groups for each shown axis.
    """
    reported = isinstance(grid.unbiased, ReportedCells)
    limits = dict(zip(axes_shown, most, strict=True))
    groups = [
        group_axis(axis, chosen, limits[number], reported)
        if number in limits
        else AxisGroups(axis.name, (chosen,), ("all",), ("all",))
        for number, (axis, chosen) in enumerate(zip(grid.domain.axes, grid.chosen, strict=True))
    ]
    order = [*axes_shown, *(number for number in range(len(groups)) if number not in limits)]

    def shaped(array: Reals) -> Reals:
        return array.transpose(order).reshape([groups[number].size for number in axes_shown])

    axes, values = tuple(groups[number] for number in axes_shown), shaped(_sums_over(grid.values, groups))
    if grid.unbiased is None:
        return PictureSums(axes, values)
    is_same = grid.unbiased.values is grid.values or np.array_equal(grid.unbiased.values, grid.values)
    centre = values if is_same else shaped(_sums_over(grid.unbiased.values, groups))
    variances = _variances(grid.unbiased, groups)
    reach = shaped(_half_widths(grid.unbiased, groups, variances))
    errors = shaped(np.sqrt(variances))
    words = RELIABILITY.words_of(centre, errors, centre - reach)
    several = shaped(_outer_product([[float(part.size) for part in axis.positions] for axis in groups])) > 1
    summed: Summed | None = "everywhere" if several.all() else "somewhere" if several.any() else None
    heights = np.where(several, centre, values)
    low, high = centre - reach, centre + reach
    sums = PictureSums(axes, heights, low, high, reach, errors, words, reported, None if is_same else summed)
    if grid.known is None:
        return sums
    limits_of_sums = grid.known.limits_of_parts([axis.positions for axis in groups])
    return _with_known(sums, *(shaped(one.astype(np.float64)) for one in limits_of_sums))


def _with_known(sums: PictureSums, least: Reals, most: Reals) -> PictureSums:
    """The sums as far as public figures leave them; a known one is told as it is, see `known_figures`."""
    assert sums.low is not None and sums.high is not None and sums.reach is not None
    assert sums.errors is not None and sums.words is not None
    known = least == most
    values = np.where(known, most, sums.values)
    low, high = (np.clip(one, least, most) for one in (sums.low, sums.high))
    low, high = np.minimum(low, values), np.maximum(high, values)
    reach, errors = (np.where(known, 0.0, one) for one in (sums.reach, sums.errors))
    words = np.where(known, KNOWN, sums.words)
    return replace(sums, values=values, low=low, high=high, reach=reach, errors=errors, words=words, known=known)


def _sums_over(values: Reals, groups: Sequence[AxisGroups]) -> Reals:
    for number, part in enumerate(groups):
        positions = np.concatenate(part.positions)
        if not np.array_equal(positions, np.arange(values.shape[number])):  # else a copy of all cells would be made
            values = values.take(positions, axis=number)
        starts = np.cumsum([0, *(group.size for group in part.positions[:-1])])
        values = np.add.reduceat(values, starts, axis=number)
    return values


def _half_widths(unbiased: Unbiased, groups: Sequence[AxisGroups], variances: Reals) -> Reals:
    """Half the width of the interval of every sum, shape (groups of axis 0, groups of axis 1, …)."""
    if isinstance(unbiased, ReportedCells):
        (axis,) = groups
        return np.array([unbiased.half_width_of_box([group]) for group in axis.positions])
    if isinstance(unbiased, NoisyCells):
        cells = _outer_product([[float(group.size) for group in axis.positions] for axis in groups])
        return _for_each(cells, lambda number: unbiased.half_width_of_cells(int(number)))
    return _for_each(variances, lambda value: unbiased.law.half_width_of_linear(value))


def _variances(unbiased: Unbiased, groups: Sequence[AxisGroups]) -> Reals:
    """The variance of the noise in every sum, in records squared, shape as that of `_half_widths`."""
    if isinstance(unbiased, ReportedCells):
        (axis,) = groups
        return np.array([unbiased.variance_of_sum([group]) for group in axis.positions])
    if isinstance(unbiased, NoisyCells):
        return unbiased.variance * _outer_product([[float(part.size) for part in axis.positions] for axis in groups])
    if unbiased.lines:
        along = [
            [line.variance_of_sum(group) for group in axis.positions]
            for line, axis in zip(unbiased.lines, groups, strict=True)
        ]
        return unbiased.shared[0].coefficient * _outer_product(along)
    variance = np.zeros([axis.size for axis in groups])
    for shared in unbiased.shared:
        pairs = [
            [float(np.square(np.bincount(group // width)).sum()) for group in axis.positions]
            for axis, width in zip(groups, shared.widths, strict=True)
        ]
        variance += shared.coefficient * _outer_product(pairs)
    return variance


def _outer_product(sides: Sequence[Sequence[float]]) -> Reals:
    return np.asarray(math.prod(np.ix_(*(np.array(side) for side in sides))), dtype=np.float64)


def _for_each(numbers: Reals, function: Callable[[float], float]) -> Reals:
    """Applies a slow function to every number, once for equal ones."""
    different, positions = np.unique(numbers, return_inverse=True)
    return np.array([function(float(number)) for number in different])[positions].reshape(numbers.shape)


def group_axis(axis: Axis, chosen: Positions, most: int, closed: bool = False) -> AxisGroups:
    """Puts the chosen positions of an axis into about `most` groups or fewer, in declared order.

    Neighbours are summed if there are more. The cells below, above and other are always groups of their own.

    Args:
        chosen: positions along it, shape (n,), rising.
        closed: whether the last bin includes its upper end, as in reports of contributors.
    """
    other = bool(chosen.size) and int(chosen[-1]) == axis.other_cell
    if isinstance(axis, CategoricalAxis):
        inside = chosen[:-1] if other else chosen
        groups, names, note = _group_categories(axis, inside, most - other)
        names = [*names, pgettext("category", "other")] if other else names
        return AxisGroups(
            axis.name, (*groups, *([chosen[-1:]] if other else [])), tuple(names), tuple(names), False, other, note
        )
    assert isinstance(axis, BinnedAxis), "pictures show rows, both ends of an amount added up"
    lower, upper = axis.bounds
    is_bin = np.isfinite(lower[chosen]) & np.isfinite(upper[chosen])
    special = np.flatnonzero(~is_bin)
    groups, note = _group_bins(axis, chosen[is_bin], max(2, most - special.size))
    groups = sorted([*groups, *(chosen[place : place + 1] for place in special)], key=lambda group: int(group[0]))
    named = [range_in_words(axis, float(lower[group[0]]), float(upper[group[-1]]), closed, True) for group in groups]
    labels, ticks = zip(*named, strict=True)
    return AxisGroups(axis.name, tuple(groups), labels, ticks, True, other, note)


def _group_bins(axis: BinnedAxis, inside: Positions, most: int) -> tuple[list[Positions], str]:
    if inside.size <= most:
        return np.split(inside, inside.size) if inside.size else [], ""
    if isinstance(axis, CalendarAxis):
        for unit, letters in ((gettext("summed by month"), 7), (gettext("summed by year"), 4)):
            first, last = (
                np.array([day_of(end).isoformat()[:letters] for end in ends])
                for ends in (axis.bounds[0][inside], axis.bounds[1][inside] - 1)
            )
            starts = np.flatnonzero(first[1:] != first[:-1]) + 1
            if np.array_equal(first, last) and starts.size < most:
                return np.split(inside, starts), unit
    power = int(10 ** math.floor(math.log10(inside.size / most)))
    length = next(step * power for step in (1, 2, 5, 10) if step * power * most >= inside.size)
    note = gettext(
        "every %(number)s of the %(all)s declared bins are summed", number=whole(length), all=whole(inside.size)
    )
    return np.split(inside, range(length, inside.size, length)), note + _fewer_at_the_end(inside.size, length)


def _group_categories(axis: CategoricalAxis, inside: Positions, most: int) -> tuple[list[Positions], list[str], str]:
    """Single categories, else the finest level with few enough groups, else runs in declared order."""
    if inside.size <= most:
        names = list(with_words(axis).values())
        return np.split(inside, inside.size) if inside.size else [], [names[place] for place in inside], ""
    for level, parents in axis.levels.items():
        members: dict[str, list[int]] = {}
        for place in inside.tolist():
            members.setdefault(parents[place], []).append(place)
        if len(members) <= most:
            return (
                [np.array(places) for places in members.values()],
                list(members),
                gettext("summed by %(level)s", level=level),
            )
    length = math.ceil(inside.size / most)
    groups = np.split(inside, range(length, inside.size, length))
    ends = [(axis.values[group[0]], axis.values[group[-1]]) for group in groups]
    names = [first if first == last else f"{first} … {last}" for first, last in ends]
    note = gettext("every %(number)s categories in declared order are summed", number=whole(length))
    return groups, names, note + _fewer_at_the_end(inside.size, length)


def _fewer_at_the_end(cells: int, length: int) -> str:
    return gettext(", fewer at the end") if cells % length else ""


def range_in_words(
    axis: BinnedAxis, lower: float, upper: float, closed: bool = False, separated: bool = False
) -> tuple[str, str]:
    """A range of an axis in words, and in few letters; no two neighbours seem to share an end.

    Args:
        lower: nan for `other`.
        closed: whether both ends of the last bin belong to it.
        separated: whether long numbers have commas, as people read them; without, as files have them.
    """
    if math.isnan(lower):
        return pgettext("category", "other"), pgettext("category", "other")
    if isinstance(axis, CalendarAxis):
        return _days_in_words(day_of(lower), day_of(upper))
    low, high = (end_in_words(axis, end, separated) for end in (lower, upper))
    left_closed = axis.closed == "left"
    if math.isinf(lower):
        below = gettext("below %(end)s", end=high) if left_closed else gettext("%(end)s or less", end=high)
        return below, f"<{high}" if left_closed else f"≤{high}"
    if math.isinf(upper):
        above = gettext("%(end)s or more", end=low) if left_closed else gettext("above %(end)s", end=low)
        return above, f"{low}+" if left_closed else f">{low}"
    if closed and upper == axis.edges[-1]:
        return _range(low, high), f"{low}–{high}"
    if axis.whole:
        first, last = axis.values_between(lower, upper)
        low, high = (end_in_words(axis, end, separated) for end in (first, last))
        return (low, low) if first == last else (_range(low, high), f"{low}–{high}")
    single = left_closed and upper == lower + 1 and lower == int(lower)
    if left_closed:
        return gettext("%(low)s to under %(high)s", low=low, high=high), low if single else f"{low}–<{high}"
    return gettext("over %(low)s to %(high)s", low=low, high=high), f">{low}–{high}"


def _range(low: str, high: str) -> str:
    return gettext("%(low)s to %(high)s", low=low, high=high)


def words_of_ends(axis: BinnedAxis, lower: float, upper: float, closed: bool = False) -> dict[str, str | None]:
    """The words for ranges that begin or end with a bin of numbers, which together say what `range_in_words` says.

    Args:
        lower: nan for `other`, which has no words; -inf for an open end, as inf above.
        closed: whether both ends of the last bin belong to it.

    Returns:
        `first` and `last`, the words around "to"; `below` and `above`, those of a range that is open there.
    """
    words: dict[str, str | None] = dict.fromkeys(("first", "last", "below", "above"))
    if math.isnan(lower) or isinstance(axis, CalendarAxis):
        return words
    first, last = axis.values_between(lower, upper, closed)
    is_last = closed and upper == axis.edges[-1]
    if math.isfinite(lower):
        over = "over " if axis.closed == "right" and not axis.whole and not is_last else ""
        words["first"] = over + axis.written(first)
        words["above"] = range_in_words(axis, lower, math.inf)[0]
    if math.isfinite(upper):
        under = "under " if axis.closed == "left" and not axis.whole and not is_last else ""
        words["last"] = under + axis.written(last)
        words["below"] = range_in_words(axis, -math.inf, upper)[0]
    return words


def end_in_words(axis: BinnedAxis, end: float, separated: bool = True) -> str:
    """An end of a bin; with commas if some end of the axis is long, so that years have none.

    Args:
        end: in axis units, or days since 1970-01-01.
    """
    text = axis.written(end)
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text)
    before, point, decimals = digits.partition(".")
    long = separated and max(map(abs, axis.edges)) >= LONG and before.isdigit()
    if long:
        return number_text(f"{sign}{int(before):,}{point}{decimals}")
    return number_text(text) if separated and before.isdigit() and not isinstance(axis, CalendarAxis) else text


def _days_in_words(first: date, after: date) -> tuple[str, str]:
    """Whole years, whole months or days from `first` up to the day before `after`."""
    letters = 10
    if first.day == after.day == 1:
        letters = 4 if first.month == after.month == 1 else 7
    start, end = (day.isoformat()[:letters] for day in (first, after - timedelta(days=1)))
    return days_text(start if start == end else f"{start} to {end}"), days_text(start)
