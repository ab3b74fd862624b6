"""Sudden changes of a period against the last ones and last year's season, by published sums alone: they cost no ε.

A value rings if both hold, against the median of the last periods:
  - chance and noise together hardly make such a change. A sum without a change varies with OF_POISSON times its mean
    and OF_ITSELF of itself, or as the last periods did, where that is more, by the law of a gamma variable of that mean
    and variance. Noise has its own exact width at the same level; widths add as squares.
  - the sum changed by a public factor, or from or to nothing.
The level is LEVEL for each comparison, and higher where a release has so many values and periods a year that chance
would ring more than ALARMS_A_YEAR times. What happened at this time of the last year, too, does not ring.

One sentence tells what rings: the total, or the values of an axis that fell or rose.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering._period_sums import TOTAL, AxisSums, PeriodSums, Reals
from dphist_pipeline.base.domain import OTHER
from dphist_pipeline.base.shown_below import without_figures

FACTOR, FACTOR_OF_TOTAL = 3.0, 1.5
LEVEL, HIGHEST_LEVEL = Fraction(999, 1000), Fraction(999_999, 1_000_000)
ALARMS_A_YEAR = 0.5
LAST = 5  # periods; a change rings until it is in more than half of them
OF_POISSON, LEAST_MEAN = 2.0, 1.0
OF_ITSELF, OF_TOTAL = 0.2, 0.08  # what is alike for all rows of a value, and of all values together
FEW_TO_SPREAD = 4  # periods from which their own spread is taken
_OF_MEDIAN = math.pi / 2  # variance of a median of many, over that of their mean
_TO_DEVIATION = 1.4826  # of a median absolute deviation
AS_MUCH = 0.25  # part by which two changes that belong together may differ, beside their noise
RENAMED = "was a code renamed?"


@dataclass(frozen=True)
class Season:
    """A period of last year at the same time, and the last periods before its time, the latest first."""

    same: PeriodSums
    before: Sequence[PeriodSums]


@dataclass(frozen=True, eq=False)
class AxisChanges:
    """How the sums of an axis, or the total, changed; arrays have the shape (labels,).

    `before`: the median of the last periods; nan where none has the value. `noise`: how far the noise may move each
    difference. `rings`: a change is more than chance, noise and season make.
    """

    sums: AxisSums
    before: Reals
    noise: Reals
    rings: NDArray[np.bool_]

    @property
    def changes(self) -> Reals:
        """The differences, in records; 0 where nothing is known, shape (labels,)."""
        return np.nan_to_num(self.sums.values - self.before)


def sudden_changes(
    now: PeriodSums, last: Sequence[PeriodSums], seasons: Sequence[Season], periods_a_year: float
) -> list[AxisChanges]:
    """The changes of all sums, the total first.

    Of the last periods, the latest first, at most `LAST` count; `seasons` are of last year at the same time.
    """
    values = sum(len(one.labels) for axis, one in now.items() if axis != TOTAL)
    changes = []
    for axis, sums in now.items():
        of_values = _Rule(FACTOR, OF_ITSELF, level_for(values, periods_a_year))
        rule = _Rule(FACTOR_OF_TOTAL, OF_TOTAL, LEVEL) if axis == TOTAL else of_values
        changes.append(_changes(sums, last, seasons, rule))
    return changes


def level_for(values: int, periods_a_year: float) -> Fraction:
    """The level of one comparison."""
    outside = ALARMS_A_YEAR / max(1.0, values * periods_a_year)
    return min(HIGHEST_LEVEL, max(LEVEL, 1 - Fraction(outside).limit_denominator(10**7)))


@dataclass(frozen=True)
class _Rule:
    """From what factor on, and beyond what part of itself and what level of chance and noise, a sum rings."""

    factor: float
    of_itself: float
    level: Fraction


@dataclass(frozen=True, eq=False)
class _Level:
    """What sums were over some periods: their medians, variances and how far noise moves them; nan where unknown."""

    middle: Reals
    mean: Reals
    periods: Reals  # that have the value
    spread: Reals  # variance of one period beyond noise, as far as these periods tell
    noise: Reals  # how far noise moves the median

    @classmethod
    def of(cls, labels: tuple[str, ...], axis: str, periods: Sequence[PeriodSums], level: Fraction) -> _Level:
        last_periods = [period[axis] for period in periods[:LAST] if axis in period]
        if not last_periods:
            nothing, none = np.full(len(labels), np.nan), np.zeros(len(labels))
            return cls(nothing, nothing, none, none, none)
        values = np.array([_numbers_in_order(one, labels, one.values) for one in last_periods])
        reaches = np.array([_numbers_in_order(one, labels, one.reaches(level)) for one in last_periods])
        variances = np.array([_numbers_in_order(one, labels, one.variances) for one in last_periods])
        there = ~np.isnan(values)
        number = there.sum(axis=0).astype(np.float64)
        known = np.maximum(number, 1.0)
        filled = np.where(there, values, 0.0)
        middle = _median(values, number)
        deviation = _TO_DEVIATION * _median(np.abs(values - middle), number)
        noise_variance = np.where(there, variances, 0.0).sum(axis=0) / known
        spread = np.where(number >= FEW_TO_SPREAD, np.maximum(0.0, deviation**2 - noise_variance), 0.0)
        width = np.sqrt(np.square(np.where(there, reaches, 0.0)).sum(axis=0) / known * _shrunk(known))
        mean = np.where(number > 0, filled.sum(axis=0) / known, np.nan)
        return cls(middle, mean, number, np.nan_to_num(spread), width)


def _median(values: Reals, number: Reals) -> Reals:
    """Medians along the first axis without nan; nan where there is no number."""
    rising = np.sort(values, axis=0)  # nan last
    count = np.maximum(number, 1).astype(np.int64)
    places = np.arange(values.shape[1])
    return (rising[(count - 1) // 2, places] + rising[count // 2, places]) / 2


def _shrunk(number: Reals) -> Reals:
    """The variance of the median of some numbers, over that of one of them."""
    return np.where(number < 3, 1 / number, np.minimum(1.0, _OF_MEDIAN / number))


def _numbers_in_order(sums: AxisSums, labels: tuple[str, ...], numbers: Reals) -> Reals:
    """Numbers of an axis in the order of other labels; nan where it has none of that name."""
    if sums.labels == labels:
        return numbers
    return np.array([numbers[sums.places[label]] if label in sums.places else np.nan for label in labels])


def _changes(sums: AxisSums, last: Sequence[PeriodSums], seasons: Sequence[Season], rule: _Rule) -> AxisChanges:
    past = _Level.of(sums.labels, sums.axis, last, rule.level)
    here = _Level(
        sums.values, sums.values, np.ones(len(sums.labels)), np.zeros(len(sums.labels)), sums.reaches(rule.level)
    )
    rings = _differ(here, past, rule)
    for season in seasons if rings.any() else ():
        same = _Level.of(sums.labels, sums.axis, [season.same], rule.level)
        before = _Level.of(sums.labels, sums.axis, season.before, rule.level)
        alike = ~_differ(here, same, rule) & ~_differ(before, past, rule)
        known = (same.periods > 0) & (before.periods > 0)
        falls = here.middle < past.middle
        as_far = _beyond(same.middle, before.middle, math.sqrt(rule.factor), falls)
        rings = rings & ~(known & alike & as_far)
    return AxisChanges(sums, past.middle, np.hypot(here.noise, past.noise), rings)


def _differ(new: _Level, old: _Level, rule: _Rule) -> NDArray[np.bool_]:
    """Whether sums differ by a factor and by more than chance and noise together; False where one is unknown."""
    known = (new.periods > 0) & (old.periods > 0)
    change = np.nan_to_num(new.middle - old.middle)
    falls = change < 0
    mean = np.nan_to_num((new.mean * new.periods + old.mean * old.periods) / np.maximum(1.0, new.periods + old.periods))
    mean = np.maximum(mean, LEAST_MEAN)
    one = np.maximum(OF_POISSON * mean + (rule.of_itself * mean) ** 2, np.maximum(new.spread, old.spread))
    chance = one * (_shrunk(np.maximum(new.periods, 1.0)) + _shrunk(np.maximum(old.periods, 1.0)))
    reach = np.hypot(np.hypot(new.noise, old.noise), _reach_of_chance(mean, chance, falls, rule.level))
    return known & (np.abs(change) > reach) & _beyond(new.middle, old.middle, rule.factor, falls)


def _beyond(new: Reals, old: Reals, factor: float, falls: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether sums fell or rose by at least a factor; sums below 0 count as 0."""
    new, old = np.maximum(np.nan_to_num(new), 0.0), np.maximum(np.nan_to_num(old), 0.0)
    return np.where(falls, new * factor <= old, old * factor <= new)


def _reach_of_chance(mean: Reals, variance: Reals, falls: NDArray[np.bool_], level: Fraction) -> Reals:
    """How far below or above its mean a sum stays by chance at a level; without end where chance makes it 0.

    A gamma variable's quantiles by the cube root of Wilson and Hilferty; how often a sum is 0 by the negative binomial
    law of that mean and variance, which is at least twice the mean.
    """
    z = NormalDist().inv_cdf(float(1 + level) / 2)
    ninth = variance / (9 * mean**2)
    low, high = (np.maximum(0.0, 1 - ninth + sign * z * np.sqrt(ninth)) ** 3 for sign in (-1, 1))
    log_of_nothing = mean**2 / (variance - mean) * np.log(mean / variance)
    may_be_nothing = log_of_nothing > math.log((1 - level) / 2)
    return np.where(falls, np.where(may_be_nothing, np.inf, mean * (1 - low)), mean * (high - 1))


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
        for moved in _ringing_sums(axis):
            label = axis.sums.labels[moved.place]
            yield {"axis": axis.sums.axis, "value": label, "before": moved.before, "now": moved.now}


def changes_in_words(found: Sequence[AxisChanges], numbers: bool = True) -> str:
    """One sentence about all sums that ring; empty if none does.

    Without numbers, it may be told of a period that is not published.
    """
    said = _sentence(found)
    return said if numbers else without_figures(said)


def _sentence(found: Sequence[AxisChanges]) -> str:
    axes = [axis for axis in found if axis.sums.axis != TOTAL and axis.rings.any()]
    total = next((moved for axis in found if axis.sums.axis == TOTAL for moved in _ringing_sums(axis)), None)
    if total is not None:
        return _of_total(total, axes)
    if not axes:
        return ""
    axis_to_tell = max(
        axes, key=lambda axis: (_opposite_change(axis) is not None, float(np.abs(axis.changes[axis.rings]).sum()))
    )
    also = [axis.sums.axis for axis in axes if axis is not axis_to_tell]
    others = f"; values of {' and of '.join([', '.join(also[:-1]), also[-1]] if also[1:] else also)} changed, too"
    whole = next((axis for axis in found if axis.sums.axis == TOTAL), None)
    return _of_axis(axis_to_tell, whole) + (others if also else "")


def _ringing_sums(axis: AxisChanges) -> list[_Moved]:
    """The sums of an axis that ring, the largest changes first."""
    moved = [_Moved(axis, int(place)) for place in np.flatnonzero(axis.rings)]
    return sorted(moved, key=lambda one: -abs(one.change))


def _of_total(total: _Moved, axes: Sequence[AxisChanges]) -> str:
    """The total fell or rose; perhaps because a value did whose rows were then dropped."""
    if total.change > 0:
        return f"{_went(total)}: was anything delivered twice?"
    for axis in axes:
        fell = [moved for moved in _ringing_sums(axis) if moved.change < 0]
        stays = axis.changes.sum() - sum(moved.change for moved in fell)
        lost = sum(moved.change for moved in fell)
        others = np.delete(axis.before, [moved.place for moved in fell])
        alone = float(np.nansum(np.maximum(others, 0.0))) > AS_MUCH * total.before
        if fell and alone and total.as_much_as(-lost, fell[0].noise) and abs(stays) <= AS_MUCH * abs(lost):
            return f"{_fell(fell)}, and the total by as much: {RENAMED}"
    return f"{_went(total)}: are all records there?"


def _of_axis(axis: AxisChanges, whole: AxisChanges | None) -> str:
    moved = _ringing_sums(axis)
    fell, rose = ([one for one in moved if one.change * sign > 0] for sign in (-1, 1))
    move = _opposite_change(axis)
    if fell and move is not None:
        label = axis.sums.labels[move.place]
        return f"{_fell(fell)} while {label if label == OTHER else move.name} rose by as much: {RENAMED}"
    if fell:
        lost, total = sum(one.change for one in fell), None if whole is None else _Moved(whole, 0)
        too = ", and the total by as much" if total and total.as_much_as(-lost, fell[0].noise) else ""
        return f"{_fell(fell)}{too}: {RENAMED}"
    more = f" (and {len(rose) - 1} more of {axis.sums.axis})" if rose[1:] else ""
    return f"{_went(rose[0])}{more}: is there a new code, or a wrong one?"


def _opposite_change(axis: AxisChanges) -> _Moved | None:
    """The value that rose by as much as others fell, `other` before all; None if there is none."""
    fell = [one for one in _ringing_sums(axis) if one.change < 0]
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
