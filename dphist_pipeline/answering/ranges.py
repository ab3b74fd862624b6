"""Ranges whose ends may cut bins: what is known of them from the bins inside and from those around."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.boxes import Answer, answer_box, answer_positions
from dphist_pipeline.answering.cells import Cells
from dphist_pipeline.answering.chosen_cells import End, QuestionRefused, Wanted, chosen_cells, end_of, written_end
from dphist_pipeline.answering.notes import CUT
from dphist_pipeline.domain import Axis, BinnedAxis, Domain
from dphist_pipeline.errors import did_you_mean

Positions = Sequence[NDArray[np.int64]]
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class RangeAnswer:
    """A count in a range.

    Attributes:
        inner: of the bins within the range.
        outer: of the bins that hold it; the same where both ends are edges.
        covers: `exactly` where both ends are edges, else `partly`: nobody knows how rows lie in a bin that is cut.
        lower: of the interval that holds the true (bounded) count of the range with at least 95 %, whatever that is;
            see `answer_range` for estimates from reports.
        upper: likewise.
    """

    inner: Answer
    outer: Answer

    @property
    def covers(self) -> str:
        """Whether the range is made of whole bins."""
        return "exactly" if self.inner.cells == self.outer.cells else "partly"

    @property
    def lower(self) -> float:
        """What the bins within surely hold."""
        return self.inner.lower

    @property
    def upper(self) -> float:
        """What the bins around hold at most."""
        return self.outer.upper


def answer_range(cells: Cells, axis: str, ends: tuple[End, End], box: Mapping[str, Wanted]) -> RangeAnswer:
    """Sums the bins within and around a half-open range of an axis, in a box of the others.

    The noise of cells is symmetric: either interval misses on one side with at most 2.5 %, so the outermost ends hold
    together with 95 %. The law of reports of contributors is skewed: there one side is missed with up to 3.1 % (worked
    out exactly, see tests/statistical/test_report_intervals.py), so ends that cut bins hold together with 93.8 %.

    Raises:
        QuestionRefused: not a binned axis, ends in the wrong order, or beyond all bins.
    """
    binned_axis(cells.domain, axis)
    shares = _shares(cells.domain, {axis: ends})
    return _summed(cells, *_inner_and_outer(chosen_cells(cells.domain, box), shares))


def answer_any_box(cells: Cells, box: Mapping[str, Wanted]) -> Answer:
    """Sums a box as `answer_box` does; where ends cut bins, it estimates and bounds what lies between them.

    The estimate spreads the rows of a bin that is cut evenly over it. The interval runs from the lower end of the bins
    within the box to the upper end of those around it, and so holds the true count with at least 95 % however rows lie
    in a bin (of estimates from reports with 93.8 %, see `answer_range`); the noise's standard deviation is that of the
    bins around it.

    Raises:
        QuestionRefused: an unknown axis or category, ends beyond the edges, or a box without cells.
    """
    axes = [axis for axis in cells.domain.axes if isinstance(axis, BinnedAxis) and _cuts(axis, box)]
    if not axes:
        return answer_box(cells.domain, cells.values, cells.unbiased, box)
    cut = {axis.name: box[axis.name] for axis in axes}
    positions = chosen_cells(cells.domain, {name: wanted for name, wanted in box.items() if name not in cut})
    shares = _shares(cells.domain, cut)  # type: ignore[arg-type]  # two ends: see `_cuts`
    inner, outer = _inner_and_outer(positions, shares)
    found, spread = _summed(cells, inner, outer), _spread(cells, outer, shares)
    return replace(found.outer, estimate=spread, lower=found.lower, note=CUT.format(axes=", ".join(cut)))


def shares_within(axis: BinnedAxis, ends: tuple[End, End]) -> Reals:
    """What share of each cell lies in [low, high), if its rows are spread evenly; shape (cells along the axis,).

    1 for cells within and 0 for cells outside; nan for an open cell that is cut.

    Raises:
        QuestionRefused: ends in the wrong order, or beyond all bins, or no cell between them.
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


def _cuts(axis: BinnedAxis, box: Mapping[str, Wanted]) -> bool:
    """Whether a box asks for a range of an axis that cuts a bin, and is one that can be answered."""
    wanted = box.get(axis.name)
    if not isinstance(wanted, tuple) or len(wanted) != 2:
        return False
    low, high = end_of(axis, wanted[0], -math.inf), end_of(axis, wanted[1], math.inf)
    within = [end for end in (low, high) if math.isfinite(end) and end not in axis.edges]
    return bool(within) and low < high and all(axis.edges[0] < end < axis.edges[-1] for end in within)


def _shares(domain: Domain, ranges: Mapping[str, tuple[End, End]]) -> list[Reals]:
    """Along each axis, what share of each cell lies in its range; 1 where an axis has none."""
    return [
        shares_within(axis, ranges[axis.name])
        if isinstance(axis, BinnedAxis) and axis.name in ranges
        else np.ones(axis.size)
        for axis in domain.axes
    ]


def _inner_and_outer(positions: Positions, shares: Sequence[Reals]) -> tuple[Positions, Positions]:
    """Of positions along each axis, those of the bins within ranges, and those of the bins around."""
    both = list(zip(positions, shares, strict=True))
    return [along[share[along] == 1] for along, share in both], [along[share[along] != 0] for along, share in both]


def _summed(cells: Cells, inner: Positions, outer: Positions) -> RangeAnswer:
    return RangeAnswer(*(answer_positions(cells.values, cells.unbiased, chosen) for chosen in (inner, outer)))


def _spread(cells: Cells, positions: Positions, shares: Sequence[Reals]) -> float:
    """The sum of the cells at all combinations of positions, weighted by the shares of their bins."""
    found = cells.values[np.ix_(*positions)]
    for along, share in reversed(list(zip(positions, shares, strict=True))):
        found = found @ share[along]
    return float(found)


def binned_axis(domain: Domain, name: str) -> tuple[int, BinnedAxis]:
    """A binned axis with its place among the axes.

    Raises:
        QuestionRefused: naming the binned axes.
    """
    binned: dict[str, tuple[int, Axis]] = {
        axis.name: (place, axis) for place, axis in enumerate(domain.axes) if isinstance(axis, BinnedAxis)
    }
    if name not in binned:
        raise QuestionRefused(
            name, f"there is no such binned axis. {did_you_mean(name, list(binned)) or 'There is none.'}"
        )
    place, axis = binned[name]
    assert isinstance(axis, BinnedAxis)
    return place, axis
