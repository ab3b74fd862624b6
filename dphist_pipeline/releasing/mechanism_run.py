"""Running a mechanism on counts behind doors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline import mechanisms
from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.domain import Domain, Family
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import AnyEstimate
from dphist_pipeline.mechanisms import Mechanism
from dphist_pipeline.mechanisms.tables import Tables, shares_for
from dphist_pipeline.releasing.errors import MechanismMisspent
from dphist_pipeline.releasing.release_spec import ReleaseSpec

Counts = NDArray[np.int64]
Load = Callable[[], Counts]


def private_counts(spec: ReleaseSpec, load: Load, journal: Journal) -> list[PrivateCounts]:
    """The counts behind doors: of the grid, or of each marginal that is measured for a family of tables.

    Args:
        spec: says the grid, or the family, and how far a unit moves counts.
        load: gives the exact counts, shape (cells,); of a family those of all measured marginals in one row.
        journal: keeps what doors draw.
    """
    if spec.family is None:
        return [PrivateCounts(spec.domain, spec.sensitivity, load, journal)]
    grids = [spec.family.grid(axes) for axes in shares_for(spec.family).marginals]
    ends = np.cumsum([grid.cells for grid in grids]).tolist()

    def part(grid: Domain, end: int) -> Load:
        return lambda: load()[end - grid.cells : end]

    return [
        PrivateCounts(grid, spec.sensitivity, part(grid, end), journal) for grid, end in zip(grids, ends, strict=True)
    ]


def estimate_of(
    mechanism: Mechanism, counts: Sequence[PrivateCounts], epsilon: Fraction, family: Family | None = None
) -> AnyEstimate:
    """Runs a mechanism, and checks that it spent what it was given.

    Args:
        mechanism: of the spec.
        counts: of the grid; or of each marginal that the mechanism measures for a family.
        epsilon: all of which it must spend.
        family: the tables that are released together, if any.
    """
    budget = Budget(epsilon)
    if family is None:
        made: AnyEstimate = mechanism.release(counts[0], budget)
    elif isinstance(mechanism, Tables):
        made = mechanism.release_family(family, counts, budget)
    if made.epsilon != epsilon or made.charges != budget.charges:
        raise MechanismMisspent(mechanisms.name_of(mechanism), made.epsilon, epsilon)
    return made
