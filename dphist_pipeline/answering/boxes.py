"""Boxes of cells: the answer to a question about one, with its error bar."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.chosen_cells import QuestionRefused, Wanted, chosen_cells
from dphist_pipeline.answering.intervals import half_width_of_box
from dphist_pipeline.domain import Domain
from dphist_pipeline.privacy.noisy import NestedCells, NoisyCells

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
            estimates by the exact variance of the box, times a calibrated factor; `noise_only`: there is none.
        cells: how many cells were summed.
    """

    estimate: float
    lower: float
    upper: float
    basis: Basis
    cells: int


def answer_box(
    domain: Domain, values: Reals, unbiased: NoisyCells | NestedCells | None, box: Mapping[str, Wanted]
) -> Answer:
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
    positions = chosen_cells(domain, box)
    chosen = np.ix_(*positions)
    inside = values[chosen]
    if unbiased is None:
        return Answer(float(inside.sum()), math.nan, math.nan, "noise_only", inside.size)
    centre, reach = float(unbiased.values[chosen].sum()), half_width_of_box(unbiased, positions)
    basis: Basis = "unbiased" if isinstance(unbiased, NoisyCells) else "linear"
    return Answer(float(inside.sum()), max(0.0, centre - reach), max(0.0, centre + reach), basis, inside.size)
