"""Counts in ranges whose ends may lie within bins: bounds from the bins inside the range and from those around it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dphist_pipeline.answering.boxes import Answer, Cells, Positions, Reals, answer_box, answer_positions
from dphist_pipeline.answering.chosen_cells import Condition, End, QuestionRefused, chosen_cells, end_of, written_end
from dphist_pipeline.answering.notes import CUT
from dphist_pipeline.domain import BinnedAxis, Domain
from dphist_pipeline.errors import did_you_mean


@dataclass(frozen=True)
class RangeAnswer:
    """The estimated count in a range.

    `ci_lower` and `ci_upper` hold the true (bounded) count with at least 95 %, wherever the rows lie within a bin;
    see `answer_range` for estimates from reports.

    Attributes:
        inner: count in the bins within the range.
        outer: count in the bins that overlap the range; equals `inner` if both ends are edges.
    """

    inner: Answer
    outer: Answer

    @property
    def covers(self) -> str:
        """`exactly` if both ends are edges of bins, else `partly`."""
        return "exactly" if self.inner.cells == self.outer.cells else "partly"

    @property
    def ci_lower(self) -> float:
        """Lower end of the interval, in records."""
        return self.inner.ci_lower

    @property
    def ci_upper(self) -> float:
        """Upper end of the interval, in records."""
        return self.outer.ci_upper


def answer_range(cells: Cells, axis: str, ends: tuple[End, End], box: Mapping[str, Condition]) -> RangeAnswer:
    """The estimated count in a half-open range of an axis, whether or not its ends are edges of bins.

    The noise of cells is symmetric: each end of an interval misses with at most 2.5 %, so the outermost ends hold
    together with 95 %. The error law of reports is skewed: one end misses with up to 3.1 % (computed exactly in
    tests/statistical/test_report_intervals.py), so for ranges that cut bins the ends hold together with 93.8 %.

    Args:
        cells: of a publication.
        axis: name of a binned axis.
        ends: (low, high) in axis units, or as days; None for an open end.
        box: conditions on the other axes; see `boxes.answer_box`.

    Raises:
        QuestionRefused: the axis is not a binned axis, or the ends are in the wrong order or beyond all bins.
    """
    binned_axis(cells.domain, axis)
    shares = _shares(cells.domain, {axis: ends})
    return _answer_inner_and_outer(cells, *_inner_and_outer(chosen_cells(cells.domain, box), shares))


def answer_any_box(cells: Cells, box: Mapping[str, Condition]) -> Answer:
    """The estimated count in a box, whether or not its ends are edges of bins.

    The estimate assumes that the rows of a cut bin are spread evenly. The interval runs from the lower end for the bins
    within the box to the upper end for the bins that overlap it. So it holds the true count with at least 95 %,
    wherever the rows lie within a bin (93.8 % for estimates from reports; see `answer_range`). `noise_error` is that of
    the overlapping bins.

    Args:
        cells: of a publication.
        box: see `boxes.answer_box`; ends may lie within bins.

    Raises:
        QuestionRefused: an axis or category is unknown, an end lies beyond the edges, or the box holds no cells.
    """
    axes = [axis for axis in cells.domain.axes if isinstance(axis, BinnedAxis) and _cuts(axis, box)]
    if not axes:
        return answer_box(cells.domain, cells.values, cells.unbiased, box)
    cut = {axis.name: box[axis.name] for axis in axes}
    positions = chosen_cells(cells.domain, {name: wanted for name, wanted in box.items() if name not in cut})
    shares = _shares(cells.domain, cut)  # type: ignore[arg-type]  # two ends: see `_cuts`
    inner, outer = _inner_and_outer(positions, shares)
    found, note = _answer_inner_and_outer(cells, inner, outer), CUT.format(axes=", ".join(cut))
    unbiased = math.nan if cells.unbiased is None else _weighted_sum(cells.unbiased.values, outer, shares)
    spread = _weighted_sum(cells.values, outer, shares)
    return replace(found.outer, estimate=spread, unbiased=unbiased, ci_lower=found.ci_lower, note=note)


def shares_within(axis: BinnedAxis, ends: tuple[End, End]) -> Reals:
    """The fraction of each cell that lies in [low, high).

    Args:
        axis: a binned axis.
        ends: (low, high) in axis units, or as days; None for an open end.

    Returns:
        Shape (cells along the axis,): 1 within the range, 0 outside, nan for an open cell that an end cuts.

    Raises:
        QuestionRefused: the ends are in the wrong order or beyond all bins, or no cell lies between them.
    """
    low, high = end_of(axis, ends[0], -math.inf), end_of(axis, ends[1], math.inf)
    if not low < high:
        raise QuestionRefused(axis.name, "takes two ends, low below high, None for an open end")
    lower, upper = axis.bounds
    least, most = float(np.nanmin(lower)), float(np.nanmax(upper))
    if (math.isfinite(low) and low < least) or (math.isfinite(high) and high > most):
        bins = f"{written_end(axis, least)} to {written_end(axis, most)}"
        raise QuestionRefused(axis.name, f"has bins from {bins} only; leave an end open that lies beyond them")
    shares = np.zeros(axis.size)
    shares[(lower >= low) & (upper <= high)] = 1
    for place in np.flatnonzero((upper > low) & (lower < high) & (shares == 0)):
        width = upper[place] - lower[place]
        overlap = min(high, upper[place]) - max(low, lower[place])
        shares[place] = overlap / width if math.isfinite(width) else math.nan
    if not shares.any():
        raise QuestionRefused(axis.name, "has no cells in that range; its rows were not counted")
    return shares


def _cuts(axis: BinnedAxis, box: Mapping[str, Condition]) -> bool:
    """Whether a box has a valid range of this axis with an end within a bin."""
    wanted = box.get(axis.name)
    if not isinstance(wanted, tuple) or len(wanted) != 2:
        return False
    low, high = end_of(axis, wanted[0], -math.inf), end_of(axis, wanted[1], math.inf)
    within = [end for end in (low, high) if math.isfinite(end) and end not in axis.edges]
    return bool(within) and low < high and all(axis.edges[0] < end < axis.edges[-1] for end in within)


def _shares(domain: Domain, ranges: Mapping[str, tuple[End, End]]) -> list[Reals]:
    """For each axis, the fraction of each cell in the axis's range; 1 if the axis has no range."""
    return [
        shares_within(axis, ranges[axis.name])
        if isinstance(axis, BinnedAxis) and axis.name in ranges
        else np.ones(axis.size)
        for axis in domain.axes
    ]


def _inner_and_outer(positions: Positions, shares: Sequence[Reals]) -> tuple[Positions, Positions]:
    """The positions of bins within the ranges, and those of bins that overlap them, along each axis."""
    both = list(zip(positions, shares, strict=True))
    return [along[share[along] == 1] for along, share in both], [along[share[along] != 0] for along, share in both]


def _answer_inner_and_outer(cells: Cells, inner: Positions, outer: Positions) -> RangeAnswer:
    return RangeAnswer(*(answer_positions(cells.values, cells.unbiased, chosen) for chosen in (inner, outer)))


def _weighted_sum(values: Reals, positions: Positions, shares: Sequence[Reals]) -> float:
    """The sum of the cells at all combinations of positions, weighted by `shares`."""
    found = values[np.ix_(*positions)]
    for along, share in reversed(list(zip(positions, shares, strict=True))):
        found = found @ share[along]
    return float(found)


def binned_axis(domain: Domain, name: str) -> tuple[int, BinnedAxis]:
    """A binned axis and its index among the axes.

    Args:
        domain: the declared grid.
        name: of the axis.

    Raises:
        QuestionRefused: there is no such binned axis; the message names those that exist.
    """
    binned = {axis.name: (place, axis) for place, axis in enumerate(domain.axes) if isinstance(axis, BinnedAxis)}
    if name not in binned:
        hint = did_you_mean(name, list(binned)) or "There is none."
        raise QuestionRefused(name, f"there is no such binned axis. {hint}")
    return binned[name]
