"""Shares and changes: answers from two sums of cells, with intervals that allow for the dependence of their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from dphist_pipeline.answering.boxes import Answer, Basis, Cells, Positions, Reals, basis_of, sum_of
from dphist_pipeline.answering.chosen_cells import Condition, QuestionRefused, chosen_cells
from dphist_pipeline.answering.intervals import (
    LEVEL,
    LEVEL_OF_TWO,
    half_width_of_box,
    half_width_of_linear,
    half_width_of_sum,
)
from dphist_pipeline.answering.notes import NO_INTERVAL, NO_SHARE, NO_WHOLE, ROUNDING, SMOOTHED
from dphist_pipeline.answering.report_intervals import normal_factor, report_reach
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, ReportedCells, Unbiased


def share_of_box(cells: Cells, part: Mapping[str, Condition], whole: Mapping[str, Condition]) -> Answer:
    """The share of a box that lies in a part of it, from 0 to 1.

    For independent cells and for estimates from reports, the interval combines the intervals of the part a and of the
    rest c, which hold together with 95 %: the share a / (a + c) rises with a and falls with c. For linear estimates,
    whose rest is not a box, it combines the intervals of the part and of the whole.

    Args:
        cells: of a publication.
        part: a box; the part is the cells that lie in both boxes.
        whole: a box; see `boxes.answer_box`.

    Raises:
        QuestionRefused: part and whole have no cells in common, or see `chosen_cells`.
    """
    around = chosen_cells(cells.domain, whole)
    inside = [np.intersect1d(*both) for both in zip(around, chosen_cells(cells.domain, part), strict=True)]
    number = math.prod(len(along) for along in inside)
    for axis, along in zip(cells.domain.axes, inside, strict=True):
        if along.size == 0:
            raise QuestionRefused(axis.name, "has no cells that lie both in the part and in the whole")
    share = _share(cells.values, inside, around)
    basis = basis_of(cells.unbiased)
    if cells.unbiased is None:
        note = NO_WHOLE if math.isnan(share) else NO_INTERVAL
        return Answer(share, math.nan, math.nan, math.nan, basis, number, note=note)
    lower, upper = _share_interval(cells.unbiased, inside, around)
    error = math.nan
    if not math.isnan(share):
        total = sum_of(cells.values, around)
        error = _share_error(cells.unbiased, inside, around, min(1.0, max(0.0, share))) / total
    unbiased = _share(cells.unbiased.values, inside, around)
    return Answer(share, unbiased, lower, upper, basis, number, error, _share_note(share, lower, upper))


def _share(values: Reals, part: Positions, whole: Positions) -> float:
    """The sum of a part over that of the whole; nan if the whole sums to 0 or below."""
    total = sum_of(values, whole)
    return sum_of(values, part) / total if total > 0 else math.nan


def _share_interval(unbiased: Unbiased, part: Positions, whole: Positions) -> tuple[float, float]:
    a, reach = sum_of(unbiased.values, part), half_width_of_box(unbiased, part, LEVEL_OF_TWO)
    least, most = _non_negative(a, reach)
    if isinstance(unbiased, NestedCells):
        reach = half_width_of_box(unbiased, whole, LEVEL_OF_TWO)
        all_least, all_most = _non_negative(sum_of(unbiased.values, whole), reach)
        return _ratio(least, all_most), min(1.0, most / all_least) if all_least > 0 else 1.0
    reach = _reach_of_rest(unbiased, part, whole)
    rest_least, rest_most = _non_negative(sum_of(unbiased.values, whole) - a, reach)
    return _ratio(least, least + rest_most), most / (most + rest_least) if rest_least > 0 else 1.0


def _reach_of_rest(unbiased: NoisyCells | ReportedCells, part: Positions, whole: Positions) -> float:
    """Half the width of the interval for the cells that lie in the whole but not in the part."""
    if isinstance(unbiased, ReportedCells):
        outside = [np.setdiff1d(*both) for both in zip(whole, part, strict=True)]  # of the only axis
        return half_width_of_box(unbiased, outside, LEVEL_OF_TWO)
    rest = math.prod(map(len, whole)) - math.prod(map(len, part))
    return half_width_of_sum(unbiased.scale, rest, LEVEL_OF_TWO) if rest else 0


def _non_negative(centre: float, reach: float) -> tuple[float, float]:
    """The ends of an interval of a true count, which is never below 0."""
    return max(0.0, centre - reach), max(0.0, centre + reach)


def _ratio(part: float, whole: float) -> float:
    return min(1.0, part / whole) if part > 0 else 0.0


def _share_error(unbiased: Unbiased, part: Positions, whole: Positions, share: float) -> float:
    """Standard deviation of a - share · (a + c), to first order; for linear estimates an upper bound of it."""
    if isinstance(unbiased, NestedCells):
        return math.sqrt(unbiased.variance_of_sum(part)) + share * math.sqrt(unbiased.variance_of_sum(whole))
    if isinstance(unbiased, ReportedCells):
        inside, (atoms, count) = unbiased.sum_of(part), unbiased.sum_of(whole)
        parts = [(1 - share, *inside), (-share, atoms - inside[0], count - inside[1])]
        return math.sqrt(unbiased.law.weighted_variance(parts))
    a, b = unbiased.variance_of_sum(part), unbiased.variance_of_sum(whole)
    return math.sqrt((1 - share) ** 2 * a + share**2 * (b - a))


def _share_note(share: float, lower: float, upper: float) -> str:
    if math.isnan(share):
        return NO_WHOLE
    if not 0 <= share <= 1:
        return NO_SHARE
    return "" if lower - 1e-9 <= share <= upper + 1e-9 else SMOOTHED


def change(earlier: Cells, later: Cells, box: Mapping[str, Condition]) -> Answer:
    """The change of the count in a box between two publications; the interval may be negative.

    If all draws of noise have the same law, or both counts come from independent reports, the interval is that of one
    sum. Otherwise it combines two intervals that hold together with 95 %.

    Args:
        earlier: cells of the earlier publication.
        later: cells of the later publication.
        box: see `boxes.answer_box`.

    Raises:
        QuestionRefused: see `chosen_cells`.
    """
    before, after = (chosen_cells(one.domain, box) for one in (earlier, later))
    number = sum(math.prod(map(len, positions)) for positions in (before, after))
    estimate = sum_of(later.values, after) - sum_of(earlier.values, before)
    one, two = earlier.unbiased, later.unbiased
    if one is None or two is None:
        return Answer(estimate, math.nan, math.nan, math.nan, "noise_only", number, note=NO_INTERVAL)
    centre = sum_of(two.values, after) - sum_of(one.values, before)
    variance = one.variance_of_sum(before) + two.variance_of_sum(after)
    basis: Basis = "unbiased" if isinstance(one, NoisyCells) and isinstance(two, NoisyCells) else "linear"
    reach = _reach_of_change((one, before), (two, after), number, variance)
    note = SMOOTHED if abs(estimate - centre) > reach + ROUNDING else ""
    return Answer(estimate, centre, centre - reach, centre + reach, basis, number, math.sqrt(variance), note)


def _reach_of_change(
    earlier: tuple[Unbiased, Positions], later: tuple[Unbiased, Positions], cells: int, variance: float
) -> float:
    """Half the width of the interval for the difference of two sums with this variance; `cells` counts both sums."""
    one, two = earlier[0], later[0]
    if isinstance(one, ReportedCells) and isinstance(two, ReportedCells):
        laws = ((one.law, one.sum_of(earlier[1])[0]), (two.law, two.sum_of(later[1])[0]))
        slope, step = max(abs(float(law.slope(atoms))) for law, atoms in laws), max(law.step for law, _ in laws)
        return float(report_reach(normal_factor(LEVEL), variance, slope, step))
    if isinstance(one, NoisyCells) and isinstance(two, NoisyCells) and one.scale == two.scale:
        return half_width_of_sum(one.scale, cells)
    if isinstance(one, NestedCells) and isinstance(two, NestedCells) and one.scale == two.scale:
        return half_width_of_linear(one.scale, variance)
    return sum(half_width_of_box(*pair, LEVEL_OF_TWO) for pair in (earlier, later))
