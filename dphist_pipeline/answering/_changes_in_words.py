"""What rings in a period, in one sentence: the total, or the values of an axis that fell or rose."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dphist_pipeline.answering._period_sums import TOTAL
from dphist_pipeline.answering._sudden_changes import AxisChanges
from dphist_pipeline.domain import OTHER
from dphist_pipeline.shown_below import without_figures

AS_MUCH = 0.25  # part by which two changes that belong together may differ, beside their noise
RENAMED = "was a code renamed?"


@dataclass(frozen=True)
class _Moved:
    """One sum that changed."""

    axis: AxisChanges
    place: int

    @property
    def now(self) -> float:
        return float(self.axis.sums.values[self.place])

    @property
    def before(self) -> float:
        return float(self.axis.before[self.place])

    @property
    def change(self) -> float:
        return self.now - self.before

    @property
    def noise(self) -> float:
        return float(self.axis.noise[self.place])

    @property
    def name(self) -> str:
        """The value in words, with its axis where it needs it."""
        sums, label = self.axis.sums, self.axis.sums.labels[self.place]
        if sums.axis == TOTAL:
            return "the total"
        if label == OTHER:
            return f"{OTHER} of {sums.axis}"
        return label if sums.named else f"{sums.axis} {label}"

    def as_much_as(self, other: float, noise: float) -> bool:
        """Whether this change is the opposite of another one, as far as can be told."""
        return abs(self.change + other) <= max(AS_MUCH * abs(other), float(np.hypot(self.noise, noise)))


def ringing(found: Sequence[AxisChanges]) -> Iterator[dict[str, Any]]:
    """Every sum that rings: its axis (empty for the total) and value, and what it was and is, in records."""
    for axis in found:
        for moved in _moved(axis):
            label = axis.sums.labels[moved.place]
            yield {"axis": axis.sums.axis, "value": label, "before": moved.before, "now": moved.now}


def changes_in_words(found: Sequence[AxisChanges], numbers: bool = True) -> str:
    """One sentence about all sums that ring; empty if none does.

    Args:
        numbers: whether it says from what to what; without, it may be told of a period that is not published.
    """
    said = _sentence(found)
    return said if numbers else without_figures(said)


def _sentence(found: Sequence[AxisChanges]) -> str:
    axes = [axis for axis in found if axis.sums.axis != TOTAL and axis.rings.any()]
    total = next((moved for axis in found if axis.sums.axis == TOTAL for moved in _moved(axis)), None)
    if total is not None:
        return _of_total(total, axes)
    if not axes:
        return ""
    told = max(axes, key=lambda axis: (_taken(axis) is not None, float(np.abs(axis.changes[axis.rings]).sum())))
    also = [axis.sums.axis for axis in axes if axis is not told]
    others = f"; values of {' and of '.join([', '.join(also[:-1]), also[-1]] if also[1:] else also)} changed, too"
    whole = next((axis for axis in found if axis.sums.axis == TOTAL), None)
    return _of_axis(told, whole) + (others if also else "")


def _moved(axis: AxisChanges) -> list[_Moved]:
    """The sums of an axis that ring, the largest changes first."""
    moved = [_Moved(axis, int(place)) for place in np.flatnonzero(axis.rings)]
    return sorted(moved, key=lambda one: -abs(one.change))


def _of_total(total: _Moved, axes: Sequence[AxisChanges]) -> str:
    """The total fell or rose; perhaps because a value did whose rows were then dropped."""
    if total.change > 0:
        return f"{_went(total)}: was anything delivered twice?"
    for axis in axes:
        fell = [moved for moved in _moved(axis) if moved.change < 0]
        stays = axis.changes.sum() - sum(moved.change for moved in fell)
        lost = sum(moved.change for moved in fell)
        others = np.delete(axis.before, [moved.place for moved in fell])
        alone = float(np.nansum(np.maximum(others, 0.0))) > AS_MUCH * total.before
        if fell and alone and total.as_much_as(-lost, fell[0].noise) and abs(stays) <= AS_MUCH * abs(lost):
            return f"{_fell(fell)}, and the total by as much: {RENAMED}"
    return f"{_went(total)}: are all records there?"


def _of_axis(axis: AxisChanges, whole: AxisChanges | None) -> str:
    moved = _moved(axis)
    fell, rose = ([one for one in moved if one.change * sign > 0] for sign in (-1, 1))
    taken = _taken(axis)
    if fell and taken is not None:
        label = axis.sums.labels[taken.place]
        return f"{_fell(fell)} while {label if label == OTHER else taken.name} rose by as much: {RENAMED}"
    if fell:
        lost, total = sum(one.change for one in fell), None if whole is None else _Moved(whole, 0)
        too = ", and the total by as much" if total and total.as_much_as(-lost, fell[0].noise) else ""
        return f"{_fell(fell)}{too}: {RENAMED}"
    more = f" (and {len(rose) - 1} more of {axis.sums.axis})" if rose[1:] else ""
    return f"{_went(rose[0])}{more}: is there a new code, or a wrong one?"


def _taken(axis: AxisChanges) -> _Moved | None:
    """The value that rose by as much as others fell, `other` before all; None if there is none."""
    fell = [one for one in _moved(axis) if one.change < 0]
    lost = sum(one.change for one in fell)
    by_size = np.argsort(-axis.changes).tolist()
    others = [place for place in by_size if axis.sums.labels[place] == OTHER] + by_size[:1]
    candidates = (_Moved(axis, place) for place in others)
    return next((one for one in candidates if fell and one.change > 0 and one.as_much_as(lost, fell[0].noise)), None)


def _fell(fell: Sequence[_Moved]) -> str:
    first = fell[0]
    more = len(fell) - 1
    return _went(first) + (f" (and {more} more of {first.axis.sums.axis})" if more else "")


def _went(moved: _Moved) -> str:
    word = "fell" if moved.change < 0 else "rose"
    return f"{moved.name} {word} from about {_about(moved.before)} to about {_about(moved.now)}"


def _about(value: float) -> str:
    """A number of records with three digits that count; below 0 there are none."""
    whole = max(0, round(value))
    digits = max(0, len(str(whole)) - 3)
    return f"{round(whole, -digits):,}"
