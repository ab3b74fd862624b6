"""An axis as a picture shows it: few enough bars to read, each with a name, and all cells in one of them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.chosen_cells import written_end
from dphist_pipeline.domain import Axis, BinnedAxis, CalendarAxis, CategoricalAxis, day_of

Positions = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Along:
    """One axis of a picture.

    Attributes:
        name: of the axis.
        groups: positions along the axis in each bar; every shown position is in one.
        labels: what each bar is, in words.
        ticks: the same in few letters.
        edges: where a bar has a lower end that can be written below its left side, else None; likewise the last end.
        ordered: whether bars stand for neighbouring stretches of a number or of time.
        note: what was summed so that the picture can be read; empty where each bar is a declared cell.
    """

    name: str
    groups: tuple[Positions, ...]
    labels: tuple[str, ...]
    ticks: tuple[str, ...]
    edges: tuple[str | None, ...]
    ordered: bool
    note: str = ""

    @property
    def size(self) -> int:
        """How many bars."""
        return len(self.groups)


def seen(text: str) -> str:
    """Text that can be shown anywhere: marks that hide or turn what stands around them become a sign for them."""
    hidden = {"Cc", "Cs", "Cn", "Zl", "Zp"}
    turns = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
    return "".join("\ufffd" if unicodedata.category(sign) in hidden or sign in turns else sign for sign in text)


def along(axis: Axis, chosen: Positions, most: int, closed: bool = False) -> Along:
    """The chosen positions of an axis in at most about `most` bars, in declared order.

    Neighbours are summed where there are more; cells below, above and other always stand alone.

    Args:
        closed: whether the last bin holds its upper end as well, as contributors report it.
    """
    if isinstance(axis, CategoricalAxis):
        return _categories(axis, chosen, most)
    lower, upper = axis.bounds
    is_bin = np.isfinite(lower[chosen]) & np.isfinite(upper[chosen])
    inside, special = chosen[is_bin], chosen[~is_bin].tolist()
    runs, note = _runs(axis, inside, max(2, most - len(special)))
    below = [np.array([place]) for place in special if math.isinf(lower[place]) and lower[place] < 0]
    beyond = [np.array([place]) for place in special if not (math.isinf(lower[place]) and lower[place] < 0)]
    groups = (*below, *runs, *beyond)
    spans = [(float(lower[group[0]]), float(upper[group[-1]])) for group in groups]
    labels, ticks = zip(*(_named(axis, *span, closed) for span in spans), strict=True)
    edges = [None if math.isinf(low) or math.isnan(low) else written_end(axis, low) for low, _ in spans]
    last = spans[len(below) + len(runs) - 1][1] if runs else math.nan
    edges.insert(len(below) + len(runs), written_end(axis, last) if math.isfinite(last) else None)
    return Along(axis.name, groups, labels, ticks, tuple(edges[: len(groups) + 1]), True, note)


def whole(axis: Axis, chosen: Positions) -> Along:
    """All chosen positions in one bar: an axis that is summed over."""
    return Along(axis.name, (chosen,), ("all",), ("all",), (None, None), False)


def _runs(axis: BinnedAxis, inside: Positions, most: int) -> tuple[list[Positions], str]:
    """The inner bins in runs of neighbours, and what a run is."""
    if inside.size <= most:
        return [inside[place : place + 1] for place in range(inside.size)], ""
    if isinstance(axis, CalendarAxis):
        for unit, cut in (("month", 7), ("year", 4)):
            by_unit = _by_calendar(axis, inside, cut)
            if by_unit is not None and len(by_unit) <= most:
                return by_unit, f"summed by {unit}"
    length = _round_length(inside.size / most)
    return [inside[start : start + length] for start in range(0, inside.size, length)], (
        f"each stands for {length:,} of the {inside.size:,} declared bins{_last(inside.size, length)}"
    )


def _by_calendar(axis: CalendarAxis, inside: Positions, cut: int) -> list[Positions] | None:
    """Bins by the month or year that they lie in, as `cut` letters of their day; None where one lies in two."""
    lower, upper = axis.bounds
    first = [day_of(lower[place]).isoformat()[:cut] for place in inside]
    last = [(day_of(upper[place]) - timedelta(days=1)).isoformat()[:cut] for place in inside]
    if first != last:
        return None
    starts = [0, *(place for place in range(1, len(first)) if first[place] != first[place - 1])]
    return np.split(inside, starts[1:])


def _round_length(least: float) -> int:
    """The least of 2, 5, 10, 20, 50 … that is not below a number."""
    power = int(10 ** math.floor(math.log10(least)))
    length: int = next(step * power for step in (1, 2, 5, 10) if step * power >= least)
    return length


def _categories(axis: CategoricalAxis, chosen: Positions, most: int) -> Along:
    inside = [place for place in chosen.tolist() if place != axis.other_cell]
    other = [np.array([place]) for place in chosen.tolist() if place == axis.other_cell]
    groups, names, note = _groups_of(axis, inside, most - len(other))
    groups, names = [*groups, *other], [*names, *["other"] * len(other)]
    labels = tuple(map(seen, names))
    return Along(axis.name, tuple(groups), labels, labels, (None,) * (len(groups) + 1), False, note)


def _groups_of(axis: CategoricalAxis, inside: list[int], most: int) -> tuple[list[Positions], list[str], str]:
    """Categories one by one, else by the finest level that can be shown, else in runs of neighbours."""

    def called(place: int) -> str:
        label = axis.labels[place] if axis.labels else ""
        return f"{axis.values[place]} {label}" if label and label != axis.values[place] else axis.values[place]

    if len(inside) <= most:
        return [np.array([place]) for place in inside], [called(place) for place in inside], ""
    for level, belongs in axis.levels.items():
        named: dict[str, list[int]] = {}
        for place in inside:
            named.setdefault(belongs[place], []).append(place)
        if len(named) <= most:
            return [np.array(places) for places in named.values()], list(named), f"summed by {level}"
    length = math.ceil(len(inside) / most)
    runs = [inside[start : start + length] for start in range(0, len(inside), length)]
    names = [f"{axis.values[run[0]]} … {axis.values[run[-1]]}" if len(run) > 1 else called(run[0]) for run in runs]
    return (
        [np.array(run) for run in runs],
        names,
        (f"each stands for {length:,} categories that are declared one after the other{_last(len(inside), length)}"),
    )


def _last(many: int, length: int) -> str:
    """What to say of the last run where it is shorter."""
    return ", the last for fewer" if many % length else ""


def _named(axis: BinnedAxis, lower: float, upper: float, closed: bool) -> tuple[str, str]:
    """A stretch of an axis in words, and in few letters."""
    if math.isnan(lower):
        return "other", "other"
    if isinstance(axis, CalendarAxis):
        return _days(day_of(lower), day_of(upper))
    low, high = written_end(axis, lower), written_end(axis, upper)
    left = axis.closed == "left"
    if math.isinf(lower):
        return (f"below {high}" if left else f"{high} or less"), f"<{high}" if left else f"≤{high}"
    if math.isinf(upper):
        return (f"{low} or more" if left else f"above {low}"), f"{low}+" if left else f">{low}"
    if closed and upper == axis.edges[-1]:
        return f"{low} to {high}", f"{low}–{high}"
    if left and upper == lower + 1 and lower == int(lower):
        return f"{low} to under {high}", low
    return (f"{low} to under {high}" if left else f"over {low} to {high}"), f"{low}–{high}"


def _days(first: date, after: date) -> tuple[str, str]:
    last = after - timedelta(days=1)
    if (first.day, first.month, after.day, after.month) == (1, 1, 1, 1):
        years = f"{first.year}" if last.year == first.year else f"{first.year} to {last.year}"
        return years, f"{first.year}"
    if (first.day, after.day) == (1, 1):
        months = f"{first:%Y-%m}" if last.month == first.month else f"{first:%Y-%m} to {last:%Y-%m}"
        return months, f"{first:%Y-%m}"
    return (f"{first} to {last}" if last > first else f"{first}"), f"{first}"


def notes(shown: Sequence[Along]) -> list[str]:
    """What was summed on which axis."""
    return [f"{part.name}: {part.note}" for part in shown if part.note]
