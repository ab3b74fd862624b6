"""Boxes of cells: which cells a question means, and the answer with its error bar."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.intervals import half_width_of_sum
from dphist_pipeline.domain import Axis, BinnedAxis, CategoricalAxis, Domain
from dphist_pipeline.errors import DphistError, did_you_mean

Basis = Literal["unbiased", "noise_only"]
Wanted = tuple[float | None, float | None] | str | None | Sequence[str | None]
Reals = NDArray[np.float64]


class QuestionRefused(DphistError):
    """A question that the declared grid cannot answer."""

    def __init__(self, axis: str, problem: str) -> None:
        self.axis, self.problem = axis, problem
        super().__init__(f"axis '{axis}': {problem}")


@dataclass(frozen=True)
class Answer:
    """An estimated count with its error bar.

    Attributes:
        estimate: sum of the published estimates, records.
        lower: of the interval that holds the true (bounded) count with at least 95 % probability, cut off at 0; for a
            box chosen before looking. nan where no noisy cells were paid for.
        upper: likewise.
        basis: `unbiased`: the interval comes from noisy cells by the exact law of their noise; `noise_only`: there
            is none.
        cells: how many cells were summed.
    """

    estimate: float
    lower: float
    upper: float
    basis: Basis
    cells: int


def answer_box(
    domain: Domain, values: Reals, unbiased: Reals | None, scale: Fraction | None, box: Mapping[str, Wanted]
) -> Answer:
    """Sums a box of cells.

    Args:
        domain: the declared grid.
        values: estimates, shape of the domain.
        unbiased: noisy cells, shape of the domain, with noise of `scale` each.
        scale: of the noise in a cell.
        box: per axis what is wanted; an axis that is left out is summed over. A binned axis takes (low, high),
            half-open, in axis units, None for an open end; a categorical one a category, None for `other`, or a list.

    Raises:
        QuestionRefused: an unknown axis or category, an end that cuts a bin, or a box without cells.
    """
    chosen = np.ix_(*chosen_cells(domain, box))
    inside = values[chosen]
    if unbiased is None or scale is None:
        return Answer(float(inside.sum()), math.nan, math.nan, "noise_only", inside.size)
    centre, reach = float(unbiased[chosen].sum()), half_width_of_sum(scale, inside.size)
    return Answer(float(inside.sum()), max(0.0, centre - reach), max(0.0, centre + reach), "unbiased", inside.size)


def chosen_cells(domain: Domain, box: Mapping[str, Wanted]) -> list[NDArray[np.int64]]:
    """The positions along each axis that a box holds, in order."""
    names = [axis.name for axis in domain.axes]
    for name in box:
        if name not in names:
            raise QuestionRefused(name, f"there is no such axis. {did_you_mean(name, names)}")
    return [_positions(axis, box[axis.name]) if axis.name in box else np.arange(axis.size) for axis in domain.axes]


def _positions(axis: Axis, wanted: Wanted) -> NDArray[np.int64]:
    if isinstance(axis, CategoricalAxis):
        return _of_categories(axis, wanted)
    if not isinstance(wanted, tuple) or len(wanted) != 2:
        raise QuestionRefused(axis.name, "takes a range (low, high) in axis units, half-open, None for an open end")
    low, high = wanted
    return _of_range(axis, _end(axis, low, -math.inf), _end(axis, high, math.inf))


def _end(axis: BinnedAxis, end: object, open_end: float) -> float:
    if end is None:
        return open_end
    if isinstance(end, Real):
        with suppress(OverflowError):
            return float(end)
    raise QuestionRefused(axis.name, f"takes numbers as ends, not {end!r:.60}")


def _of_categories(axis: CategoricalAxis, wanted: Wanted) -> NDArray[np.int64]:
    listed: list[object] = list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
    if not listed:
        raise QuestionRefused(axis.name, "takes a category or a list of them, not an empty list")
    positions = []
    for category in listed:
        if category is None and axis.other_cell is not None:
            positions.append(axis.other_cell)
        elif category in axis.values:
            positions.append(axis.values.index(str(category)))
        else:
            hint = did_you_mean(category, axis.values)
            if axis.other_cell is not None:
                hint += f" For null and all other values: `{axis.name} is other`, in Python None."
            raise QuestionRefused(axis.name, f"has no category {category!r:.60}. {hint}")
    return np.array(sorted(set(positions)), dtype=np.int64)


def _of_range(axis: BinnedAxis, low: float, high: float) -> NDArray[np.int64]:
    """The cells within [low, high); refuses an end that cuts a bin, because nobody knows how a bin's rows lie in it."""
    if not low < high:
        raise QuestionRefused(
            axis.name, f"the range [{written(low)}, {written(high)}) is empty; put the lower end first"
        )
    for end in (low, high):
        if math.isfinite(end) and end not in axis.edges:
            raise QuestionRefused(axis.name, f"{written(end)} cuts {_cut_cell(axis, end)}")
    lower, upper = axis.bounds
    inside: NDArray[np.int64] = np.flatnonzero((lower >= low) & (upper <= high))
    if inside.size == 0:
        raise QuestionRefused(
            axis.name, f"has no cells in [{written(low)}, {written(high)}); its rows were not counted"
        )
    return inside


def _cut_cell(axis: BinnedAxis, end: float) -> str:
    """The cell that an end falls into, and the edges around it."""
    place = int(np.searchsorted(axis.edges, end))
    if place == 0:
        return f"the cells below the first edge; use {written(axis.edges[0])}, or leave that end open"
    if place == len(axis.edges):
        return f"the cells above the last edge; use {written(axis.edges[-1])}, or leave that end open"
    below, above = axis.edges[place - 1], axis.edges[place]
    return f"the bin from {written(below)} to {written(above)}; use one of these edges"


def written(number: float) -> str:
    """All digits that tell a number from its neighbours, without a `.0`."""
    return repr(number).removesuffix(".0")
