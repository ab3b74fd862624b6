"""Boxes of cells: the answer to a question about one, with its error bar."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.chosen_cells import QuestionRefused, Wanted, chosen_cells
from dphist_pipeline.answering.intervals import half_width_of_box
from dphist_pipeline.answering.notes import NO_INTERVAL, note_of
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.noisy import NoisyCells, Unbiased

__all__ = ["Answer", "Basis", "QuestionRefused", "Wanted", "answer_box"]

Basis = Literal["unbiased", "linear", "noise_only"]
Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    """An estimated count with its error bar.

    Attributes:
        estimate: sum of the published estimates, records.
        lower: of the interval that holds the true (bounded) count with at least 95 % probability, cut off at 0; for a
            box chosen before looking. nan where no noisy cells were paid for.
        upper: likewise.
        basis: `unbiased`: the interval comes from noisy cells by the exact law of their noise; `linear`: from linear
            estimates by the exact variance of the box, times a calibrated factor; or from reports, by the variance at
            the estimate; `noise_only`: there is none.
        cells: how many cells were summed.
        noise_error: standard deviation of the noise alone, records; nan where no noisy cells were paid for.
        note: why the estimate lies outside of its interval, or has none; empty where there is nothing to say.
    """

    estimate: float
    lower: float
    upper: float
    basis: Basis
    cells: int
    noise_error: float = math.nan
    note: str = ""


def answer_box(domain: Domain, values: Reals, unbiased: Unbiased | None, box: Mapping[str, Wanted]) -> Answer:
    """Sums a box of cells.

    Args:
        domain: the declared grid.
        values: estimates, shape of the domain.
        unbiased: noisy cells or linear estimates of them, where they were paid for.
        box: per axis what is wanted; an axis that is left out is summed over. A binned axis takes (low, high),
            half-open, in axis units (days as dates or ISO text), None for an open end; a categorical one, and a level
            of its hierarchy, a category, None for `other`, or a list.

    Raises:
        QuestionRefused: an unknown axis or category, an end that cuts a bin, or a box without cells.
    """
    return answer_positions(values, unbiased, chosen_cells(domain, box))


def answer_positions(values: Reals, unbiased: Unbiased | None, positions: Sequence[NDArray[np.int64]]) -> Answer:
    """Sums the cells at all combinations of positions; see `answer_box`. There may be none."""
    inside = sum_of(values, positions)
    cells = math.prod(len(along) for along in positions)
    if unbiased is None:
        return Answer(inside, math.nan, math.nan, "noise_only", cells, note=NO_INTERVAL)
    centre, reach = sum_of(unbiased.values, positions), half_width_of_box(unbiased, positions)
    error = math.sqrt(variance_of(unbiased, positions))
    note = note_of(inside, centre, reach)
    return Answer(inside, max(0.0, centre - reach), max(0.0, centre + reach), basis_of(unbiased), cells, error, note)


def sum_of(values: Reals, positions: Sequence[NDArray[np.int64]]) -> float:
    """The sum of the cells at all combinations of positions."""
    return float(values[np.ix_(*positions)].sum())


def variance_of(unbiased: Unbiased, positions: Sequence[NDArray[np.int64]]) -> float:
    """Variance of the noise in that sum, in records squared."""
    if isinstance(unbiased, NoisyCells):
        return math.prod(len(along) for along in positions) * unbiased.variance
    return unbiased.variance_of_sum(positions) if all(len(along) for along in positions) else 0.0


def basis_of(unbiased: Unbiased | None) -> Basis:
    """What an interval comes from."""
    if unbiased is None:
        return "noise_only"
    return "unbiased" if isinstance(unbiased, NoisyCells) else "linear"
