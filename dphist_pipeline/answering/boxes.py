"""The estimated count in a box of cells, with its 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.chosen_cells import Condition, chosen_cells
from dphist_pipeline.answering.intervals import half_width_of_box
from dphist_pipeline.answering.notes import NO_INTERVAL, note_of
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.noisy import NoisyCells, Unbiased

Basis = Literal["unbiased", "linear", "noise_only"]
Positions = Sequence[NDArray[np.int64]]
Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cells:
    """The published cells of a release.

    Attributes:
        domain: the declared grid.
        values: estimates, shape of the domain.
        unbiased: unbiased estimates of the cells with the law of their noise; None if the mechanism paid for none.
    """

    domain: Domain
    values: Reals
    unbiased: Unbiased | None


@dataclass(frozen=True)
class Answer:
    """An estimated count with its 95 % interval.

    Attributes:
        estimate: sum of the published estimates, in records; the mechanism may have smoothed them.
        unbiased: the number that the interval belongs to: the sum of the unbiased estimates, in records; nan if the
            mechanism paid for none.
        ci_lower: lower end of the interval, below 0 where the noise reaches there. The interval holds the true
            (bounded) count with a probability of at least 95 %, if the box was chosen without looking at the
            estimates. nan if there is no interval.
        ci_upper: upper end of the interval; nan if there is no interval.
        basis: `unbiased` if the interval follows from the exact law of independent noise; `linear` if it follows from
            the variance of linear estimates or of reports, times a calibrated factor; `noise_only` if there is none.
        cells: number of cells in the sum.
        noise_error: standard deviation of the noise in records; nan if it is not known.
        note: why there is no interval, or why the estimate lies outside it; else empty.
    """

    estimate: float
    unbiased: float
    ci_lower: float
    ci_upper: float
    basis: Basis
    cells: int
    noise_error: float = math.nan
    note: str = ""


def answer_box(domain: Domain, values: Reals, unbiased: Unbiased | None, box: Mapping[str, Condition]) -> Answer:
    """Estimates the count in a box of cells.

    Args:
        domain: the declared grid.
        values: estimates, shape of the domain.
        unbiased: unbiased estimates of the cells; None if there are none.
        box: condition by name of axis; an axis without a condition is summed over. A binned axis takes (low, high),
            half-open, in axis units (days as dates or ISO text), None for an open end. A categorical axis, or a level
            of its hierarchy, takes a category, None for `other`, or a list of categories.

    Raises:
        QuestionRefused: an axis or category is unknown, an end lies within a bin, or the box holds no cells.
    """
    return answer_positions(values, unbiased, chosen_cells(domain, box))


def answer_positions(values: Reals, unbiased: Unbiased | None, positions: Positions) -> Answer:
    """Estimates the count in the cells at all combinations of positions.

    Args:
        values: estimates, shape of the domain.
        unbiased: see `answer_box`.
        positions: along each axis, shape (positions,) each; may be empty.
    """
    inside = sum_of(values, positions)
    cells = math.prod(len(along) for along in positions)
    if unbiased is None:
        return Answer(inside, math.nan, math.nan, math.nan, "noise_only", cells, note=NO_INTERVAL)
    centre, reach = sum_of(unbiased.values, positions), half_width_of_box(unbiased, positions)
    error, note = math.sqrt(unbiased.variance_of_sum(positions)), note_of(inside, centre, reach)
    return Answer(inside, centre, centre - reach, centre + reach, basis_of(unbiased), cells, error, note)


def sum_of(values: Reals, positions: Positions) -> float:
    """The sum of the cells at all combinations of positions.

    Args:
        values: one number per cell, shape of the domain.
        positions: along each axis, shape (positions,) each; may be empty.
    """
    return float(values[np.ix_(*positions)].sum())


def basis_of(unbiased: Unbiased | None) -> Basis:
    """The source of an interval, as in `Answer.basis`.

    Args:
        unbiased: the unbiased estimates that the interval is computed from.
    """
    if unbiased is None:
        return "noise_only"
    return "unbiased" if isinstance(unbiased, NoisyCells) else "linear"
