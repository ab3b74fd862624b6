"""Quantiles of a binned axis: the bin that contains a quantile, and an interval of bins from a band over all edges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.bands import chernoff_reach
from dphist_pipeline.answering.boxes import Basis, Cells, basis_of
from dphist_pipeline.answering.chosen_cells import Condition, QuestionRefused, chosen_cells
from dphist_pipeline.answering.notes import NO_INTERVAL, NO_WHOLE, OPEN_BIN, SMOOTHED
from dphist_pipeline.answering.ranges import binned_axis
from dphist_pipeline.answering.report_intervals import balance_reach, bernstein_factor
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, ReportedCells, Unbiased

Reals = NDArray[np.float64]
LEVEL = 0.95


@dataclass(frozen=True)
class Quantile:
    """An estimated quantile with its 95 % interval, in axis units (days since 1970-01-01 on a calendar axis).

    Attributes:
        estimate: assumes that the rows of the quantile's bin are spread evenly; nan if the bin is open or not known.
        ci_lower: lower end of the interval. The interval holds the quantile's bin with at least 95 %, for all
            quantiles of a box at once, and assumes nothing about the position of rows in a bin. nan if there is none.
        ci_upper: upper end of the interval; nan if there is no interval.
        bin: (lower, upper) end of the first bin at whose upper end the share q of the rows is reached.
        basis: see `boxes.Answer`.
        cells: number of cells in the box.
        note: see `boxes.Answer`.
    """

    estimate: float
    ci_lower: float
    ci_upper: float
    bin: tuple[float, float]
    basis: Basis
    cells: int
    note: str = ""


def quantile_of_axis(cells: Cells, axis: str, q: float, box: Mapping[str, Condition]) -> Quantile:
    """The quantile q of a binned axis within a box; rows in the cell `other` do not count.

    Let A and R be the counts below and above an edge. The quantile lies below the edge if (1-q)·A - q·R is at least 0.
    A band bounds the noise of this number at all edges at once; the interval is the bins that no edge excludes.

    Args:
        cells: of a publication.
        axis: name of a binned axis.
        q: between 0 and 1.
        box: see `boxes.answer_box`.

    Raises:
        QuestionRefused: the axis is not a binned axis, q is not between 0 and 1, or see `chosen_cells`.
    """
    place, found = binned_axis(cells.domain, axis)
    if not 0 < q < 1:
        raise QuestionRefused(axis, f"a quantile lies between 0 and 1, as 0.5, not {q!r:.60}")
    positions = chosen_cells(cells.domain, {axis: (None, None), **box})
    lower, upper = (ends[positions[place]] for ends in found.bounds)
    below = np.cumsum(_along(cells.values, positions, place))
    number = math.prod(len(one) for one in positions)
    middle = int(np.argmax(below >= q * below[-1])) if below[-1] > 0 else None
    least, most = _open_bins(cells.unbiased, positions, place, q)
    ends = (math.nan, math.nan) if cells.unbiased is None else (float(lower[least]), float(upper[most]))
    if middle is None:
        return Quantile(math.nan, *ends, (math.nan, math.nan), basis_of(cells.unbiased), number, NO_WHOLE)
    bin_ends = float(lower[middle]), float(upper[middle])
    start = float(below[middle - 1]) if middle else 0.0
    within = (q * float(below[-1]) - start) / (float(below[middle]) - start)
    is_open = not all(map(math.isfinite, bin_ends))
    estimate = math.nan if is_open else bin_ends[0] + min(1.0, max(0.0, within)) * (bin_ends[1] - bin_ends[0])
    note = _note(cells.unbiased, bin_ends, ends, is_open=is_open)
    return Quantile(estimate, *ends, bin_ends, basis_of(cells.unbiased), number, note)


def _note(unbiased: Unbiased | None, bin_ends: tuple[float, float], ends: tuple[float, float], *, is_open: bool) -> str:
    if unbiased is None:
        return NO_INTERVAL
    if not (bin_ends[0] >= ends[0] and bin_ends[1] <= ends[1]):
        return SMOOTHED
    return OPEN_BIN if is_open else ""


def _along(values: Reals, positions: list[NDArray[np.int64]], place: int) -> Reals:
    """The sum over the other axes for each selected bin, shape (bins,)."""
    inside = values[np.ix_(*positions)]
    summed: Reals = inside.sum(axis=tuple(number for number in range(values.ndim) if number != place))
    return summed


def _open_bins(unbiased: Unbiased | None, positions: list[NDArray[np.int64]], place: int, q: float) -> tuple[int, int]:
    """The first and the last of the selected bins in which the quantile may lie, by index."""
    bins = len(positions[place])
    if unbiased is None or bins == 1:
        return 0, bins - 1
    below = np.cumsum(_along(unbiased.values, positions, place))
    balance = below[:-1] - q * below[-1]
    reach = _balance_reach(unbiased, positions, place, q)
    surely_above, surely_below = np.flatnonzero(balance + reach < 0), np.flatnonzero(balance - reach >= 0)
    least = int(surely_above[-1]) + 1 if surely_above.size else 0
    most = int(surely_below[0]) if surely_below.size else bins - 1
    return min(least, most), max(least, most)


def _balance_reach(unbiased: Unbiased, positions: list[NDArray[np.int64]], place: int, q: float) -> Reals:
    """Half widths of a band for (1-q)·A - q·R at every inner edge, shape (bins - 1,)."""
    missed = (1 - LEVEL) / (len(positions[place]) - 1)
    if isinstance(unbiased, ReportedCells):
        return balance_reach(unbiased, positions[place], q, bernstein_factor(missed))
    return chernoff_reach(unbiased.scale, _balance_variance(unbiased, positions, place, q), missed)


def _balance_variance(
    unbiased: NoisyCells | NestedCells, positions: list[NDArray[np.int64]], place: int, q: float
) -> Reals:
    """Variance of (1-q)·A - q·R at every inner edge, in records squared, shape (bins - 1,)."""
    first, final = int(positions[place][0]), int(positions[place][-1])
    edges = np.arange(first, final)
    if isinstance(unbiased, NoisyCells):
        others = math.prod(len(one) for number, one in enumerate(positions) if number != place)
        weighed = (1 - q) ** 2 * (edges - first + 1) + q**2 * (final - edges)
        return np.asarray(weighed * others * unbiased.variance, dtype=np.float64)
    variance = np.zeros(edges.size)
    for part in unbiased.shared:
        weight = part.coefficient
        for number, (one, width) in enumerate(zip(positions, part.widths, strict=True)):
            if number != place:
                weight *= float((np.bincount(one // width).astype(np.float64) ** 2).sum())
        width = part.widths[place]
        low, high = _span_squares(first, edges, width), _span_squares(edges + 1, final, width)
        whole = _span_squares(first, np.array([final]), width)
        # The covariance of the two spans follows from their variances and from the variance of their union.
        variance += weight * ((1 - q) * low + q * high - q * (1 - q) * whole)
    return variance


def _span_squares(first: NDArray[np.int64] | int, final: NDArray[np.int64] | int, width: int) -> Reals:
    """The sum over the nodes of (number of positions from `first` to `final` in the node)²."""
    first, final = np.asarray(first, dtype=np.float64), np.asarray(final, dtype=np.float64)
    head, tail = width - first % width, final % width + 1
    between = final // width - first // width
    return np.where(between == 0, (final - first + 1) ** 2, head**2 + tail**2 + (between - 1) * float(width) ** 2)
