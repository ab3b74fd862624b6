"""The estimated count in a box of an estimate that is not published; published ones are asked by SQL, see `asking`.

All numbers are those of the macro `dph_box`: the same sums, tables of half widths and notes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce

import numpy as np

from dphist_pipeline.answering.answers import Answer, Basis
from dphist_pipeline.answering.chosen_cells import Condition, overlapped_cells
from dphist_pipeline.answering.intervals import half_width_of_box
from dphist_pipeline.answering.notes import CUT, NO_INTERVAL, note_of
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.noisy import NoisyCells, Reals, Unbiased, exact_sum


def answer_box(domain: Domain, values: Reals, unbiased: Unbiased | None, box: Mapping[str, Condition]) -> Answer:
    """Estimates the count in a box of cells, whether or not its ends are edges of bins.

    Args:
        domain: the declared grid.
        values: estimates, shape of the domain.
        unbiased: unbiased estimates of the cells; None if there are none.
        box: condition by name of axis; an axis without a condition is summed over. A binned axis takes (low, high),
            half-open, in axis units (days as dates or ISO text), None for an open end. A categorical axis, or a level
            of its hierarchy, takes a category, None for `other`, or a list of categories.

    Raises:
        QuestionRefused: an axis or category is unknown, an end lies beyond the edges, or the box holds no cells.
    """
    around, shares = overlapped_cells(domain, box)
    within = [along[share == 1] for along, share in zip(around, shares, strict=True)]
    cut = [axis.name for axis, share in zip(domain.axes, shares, strict=True) if (share < 1).any()]
    weights = reduce(np.multiply, np.ix_(*shares)) if cut else 1.0
    cells = math.prod(len(along) for along in around)
    estimate, note = exact_sum(values[np.ix_(*around)] * weights), CUT.format(axes=", ".join(cut)) if cut else ""
    if unbiased is None:
        return Answer(estimate, math.nan, math.nan, math.nan, "noise_only", cells, note=note or NO_INTERVAL)
    centre, reach = exact_sum(unbiased.values[np.ix_(*around)]), half_width_of_box(unbiased, around)
    least = exact_sum(unbiased.values[np.ix_(*within)]) - half_width_of_box(unbiased, within)
    middle = exact_sum(unbiased.values[np.ix_(*around)] * weights)
    basis: Basis = "unbiased" if isinstance(unbiased, NoisyCells) else "linear"
    error, note = math.sqrt(unbiased.variance_of_sum(around)), note or note_of(estimate, centre, reach)
    return Answer(estimate, middle, least, centre + reach, basis, cells, error, note)
