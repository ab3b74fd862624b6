"""Ranges whose ends may cut bins: what is known of them from the bins inside and from those around."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dphist_pipeline.answering.boxes import Answer, answer_positions
from dphist_pipeline.answering.cells import Cells
from dphist_pipeline.answering.chosen_cells import End, QuestionRefused, Wanted, chosen_cells, end_of, written_end
from dphist_pipeline.domain import Axis, BinnedAxis, Domain
from dphist_pipeline.errors import did_you_mean


@dataclass(frozen=True)
class RangeAnswer:
    """A count in a range.

    Attributes:
        inner: of the bins within the range.
        outer: of the bins that hold it; the same where both ends are edges.
        covers: `exactly` where both ends are edges, else `partly`: nobody knows how rows lie in a bin that is cut.
        lower: of the interval that holds the true (bounded) count of the range with at least 95 %, whatever that is.
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

    Either interval misses one of its sides with at most 2.5 %, so that the outermost ends hold together with 95 %.

    Raises:
        QuestionRefused: not a binned axis, ends in the wrong order, or beyond all bins.
    """
    place, found = binned_axis(cells.domain, axis)
    low, high = end_of(found, ends[0], -math.inf), end_of(found, ends[1], math.inf)
    if not low < high:
        raise QuestionRefused(axis, "takes two ends, low below high, None for an open end")
    lower, upper = found.bounds
    least, most = np.nanmin(lower), np.nanmax(upper)
    if (math.isfinite(low) and low < least) or (math.isfinite(high) and high > most):
        bins = f"{written_end(found, least)} to {written_end(found, most)}"
        raise QuestionRefused(axis, f"has bins from {bins} only; leave an end open that lies beyond them")
    positions = chosen_cells(cells.domain, box)
    inner, outer = list(positions), list(positions)
    within = (lower >= low) & (upper <= high)
    around = (upper > low) & (lower < high)
    inner[place] = positions[place][within[positions[place]]]
    outer[place] = positions[place][around[positions[place]]]
    return RangeAnswer(*(answer_positions(cells.values, cells.unbiased, chosen) for chosen in (inner, outer)))


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
