"""Shares and changes: two sums of cells in one answer, with an interval that holds whatever ties their noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.boxes import Answer, Basis, basis_of, sum_of, variance_of
from dphist_pipeline.answering.cells import Cells
from dphist_pipeline.answering.chosen_cells import QuestionRefused, Wanted, chosen_cells
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

Positions = Sequence[NDArray[np.int64]]


def share_of_box(cells: Cells, part: Mapping[str, Wanted], whole: Mapping[str, Wanted]) -> Answer:
    """What share of the whole lies in the part of it, from 0 to 1.

    Of independent cells the interval joins those of the part a and the rest c, which hold together with 95 %: the share
    a / (a + c) rises with a and falls with c; of estimates from reports likewise. Of linear estimates, whose rest is no
    box, those of part and whole.

    Raises:
        QuestionRefused: as `chosen_cells` does.
    """
    around = chosen_cells(cells.domain, whole)
    inside = [np.intersect1d(*both) for both in zip(around, chosen_cells(cells.domain, part), strict=True)]
    number = math.prod(len(along) for along in inside)
    for axis, along in zip(cells.domain.axes, inside, strict=True):
        if along.size == 0:
            raise QuestionRefused(axis.name, "has no cells that lie both in the part and in the whole")
    count, total = sum_of(cells.values, inside), sum_of(cells.values, around)
    share = count / total if total > 0 else math.nan
    basis = basis_of(cells.unbiased)
    if cells.unbiased is None:
        return Answer(share, math.nan, math.nan, basis, number, note=NO_WHOLE if math.isnan(share) else NO_INTERVAL)
    lower, upper = _share_interval(cells.unbiased, inside, around)
    error = math.nan
    if total > 0:
        error = _share_error(cells.unbiased, inside, around, min(1.0, max(0.0, share))) / total
    return Answer(share, lower, upper, basis, number, error, _share_note(share, lower, upper))


def _share_interval(unbiased: Unbiased, part: Positions, whole: Positions) -> tuple[float, float]:
    a, reach = sum_of(unbiased.values, part), half_width_of_box(unbiased, part, LEVEL_OF_TWO)
    least, most = max(0.0, a - reach), max(0.0, a + reach)
    if isinstance(unbiased, NestedCells):
        b, reach = sum_of(unbiased.values, whole), half_width_of_box(unbiased, whole, LEVEL_OF_TWO)
        all_least, all_most = max(0.0, b - reach), max(0.0, b + reach)
        return _ratio(least, all_most), min(1.0, most / all_least) if all_least > 0 else 1.0
    c, reach = sum_of(unbiased.values, whole) - a, _reach_of_rest(unbiased, part, whole)
    rest_least, rest_most = max(0.0, c - reach), max(0.0, c + reach)
    return _ratio(least, least + rest_most), most / (most + rest_least) if rest_least > 0 else 1.0


def _reach_of_rest(unbiased: NoisyCells | ReportedCells, part: Positions, whole: Positions) -> float:
    """How far the sum of all cells reaches that lie in the whole and not in the part of it."""
    if isinstance(unbiased, ReportedCells):
        outside = [np.setdiff1d(*both) for both in zip(whole, part, strict=True)]  # of the only axis
        return half_width_of_box(unbiased, outside, LEVEL_OF_TWO)
    rest = math.prod(map(len, whole)) - math.prod(map(len, part))
    return half_width_of_sum(unbiased.scale, rest, LEVEL_OF_TWO) if rest else 0


def _ratio(part: float, whole: float) -> float:
    return min(1.0, part / whole) if part > 0 else 0.0


def _share_error(unbiased: Unbiased, part: Positions, whole: Positions, share: float) -> float:
    """To first order: the standard deviation of a - share · (a + c); of linear estimates at most that."""
    if isinstance(unbiased, NestedCells):
        return math.sqrt(variance_of(unbiased, part)) + share * math.sqrt(variance_of(unbiased, whole))
    if isinstance(unbiased, ReportedCells):
        inside, (atoms, count) = unbiased.sum_of(part), unbiased.sum_of(whole)
        parts = [(1 - share, *inside), (-share, atoms - inside[0], count - inside[1])]
        return math.sqrt(unbiased.law.weighted_variance(parts))
    a, b = variance_of(unbiased, part), variance_of(unbiased, whole)
    return math.sqrt((1 - share) ** 2 * a + share**2 * (b - a))


def _share_note(share: float, lower: float, upper: float) -> str:
    if math.isnan(share):
        return NO_WHOLE
    if not 0 <= share <= 1:
        return NO_SHARE
    return "" if lower - 1e-9 <= share <= upper + 1e-9 else SMOOTHED


def change(earlier: Cells, later: Cells, box: Mapping[str, Wanted]) -> Answer:
    """What the count in a box changed by; the interval is not cut off.

    One sum of draws where all have one law, or of reports, which contributors made anew; else two intervals that hold
    together with 95 %.

    Raises:
        QuestionRefused: as `chosen_cells` does.
    """
    before, after = (chosen_cells(one.domain, box) for one in (earlier, later))
    number = sum(math.prod(map(len, positions)) for positions in (before, after))
    estimate = sum_of(later.values, after) - sum_of(earlier.values, before)
    one, two = earlier.unbiased, later.unbiased
    if one is None or two is None:
        return Answer(estimate, math.nan, math.nan, "noise_only", number, note=NO_INTERVAL)
    centre = sum_of(two.values, after) - sum_of(one.values, before)
    variance = variance_of(one, before) + variance_of(two, after)
    basis: Basis = "unbiased" if isinstance(one, NoisyCells) and isinstance(two, NoisyCells) else "linear"
    reach = _reach_of_change((one, before), (two, after), number, variance)
    note = SMOOTHED if abs(estimate - centre) > reach + ROUNDING else ""
    return Answer(estimate, centre - reach, centre + reach, basis, number, math.sqrt(variance), note)


def _reach_of_change(
    earlier: tuple[Unbiased, Positions], later: tuple[Unbiased, Positions], cells: int, variance: float
) -> float:
    """How far the difference of two sums reaches, of so many cells and with this variance together."""
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
