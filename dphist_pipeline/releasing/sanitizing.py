"""Running a mechanism on counts behind measurements: for a release, and, without ledger or store, for studies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import Domain, Family
from dphist_pipeline.confidential.journal import Journal
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.errors import Halted
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import AnyEstimate, Estimate
from dphist_pipeline.mechanisms import Mechanism
from dphist_pipeline.mechanisms.tables import Tables
from dphist_pipeline.spec.fields import parse_epsilon


def mechanism_misspent(mechanism: str, spent: Fraction, declared: Fraction) -> Halted:
    """A mechanism spent another epsilon than the spec declares."""
    return Halted(
        f"mechanism '{mechanism}' spent epsilon {spent} of {declared}: a fault of the mechanism",
        code="mechanism_misspent",
    )


@dataclass(frozen=True)
class MechanismRun:
    """A mechanism with its settings, its budget, and what its measurements count: equal in every process that draws.

    It must spend all of `epsilon`. `sensitivity`: the most that one privacy unit moves the sum of the counts. `grids`:
    of the counts: one, or one for each marginal that the mechanism measures for a family, in its order; `measured`: the
    axes of each marginal in that order, empty without a family. `parts`: of a row, more than 1 where an amount splits
    it.
    """

    mechanism: Mechanism
    epsilon: Fraction
    sensitivity: int
    grids: tuple[Domain, ...]
    family: Family | None = None
    measured: tuple[frozenset[int], ...] = ()
    parts: int = 1

    def private_counts(self, load: Callable[[], NDArray[np.int64]], journal: Journal) -> list[PrivateCounts]:
        """The counts behind measurements, for each grid.

        Args:
            load: gives the exact counts of all grids, one grid after the other, shape (cells,).
        """
        ends = np.cumsum([grid.cells for grid in self.grids]).tolist()

        def part(grid: Domain, end: int) -> Callable[[], NDArray[np.int64]]:
            return lambda: load()[end - grid.cells : end]

        return [
            PrivateCounts(grid, self.sensitivity, part(grid, end), journal, self.parts)
            for grid, end in zip(self.grids, ends, strict=True)
        ]

    def estimate(self, counts: Sequence[PrivateCounts]) -> AnyEstimate:
        """Runs the mechanism on the counts of each grid, and checks that it spent what it was given."""
        budget = Budget(self.epsilon)
        if self.family is None:
            estimate: AnyEstimate = self.mechanism.release(counts[0], budget)
        elif isinstance(self.mechanism, Tables):
            estimate = self.mechanism.release_family(self.family, counts, budget)
        if estimate.epsilon != self.epsilon or estimate.charges != budget.charges:
            raise mechanism_misspent(mechanisms.name_of(self.mechanism), estimate.epsilon, self.epsilon)
        return estimate


def sanitize(
    counts: NDArray[np.integer[Any]] | PrivateCounts,
    *,
    mechanism: str,
    epsilon: str | int | float | Fraction,
    sensitivity: int | None = None,
    **settings: object,
) -> Estimate:
    """Spends ε that no ledger records: for studies, not for publishing.

    Args:
        counts: exact counts, integers of any shape, or counts behind measurements, which know their sensitivity.
        epsilon: the whole budget, read by its decimal digits.
        sensitivity: L1 sensitivity of an array of counts; required for an array, refused for PrivateCounts.

    Raises:
        DphistError: for an unknown mechanism or setting, or an epsilon out of range.
    """
    if isinstance(counts, PrivateCounts):
        if sensitivity is not None:
            raise TypeError("counts behind measurements know their sensitivity: leave it out")
    else:
        array = np.asarray(counts)
        if sensitivity is None:
            raise TypeError("an array of counts needs `sensitivity`: the most that one privacy unit moves its sum")
        if array.dtype.kind not in "iu" or array.size == 0:
            raise TypeError("counts must be a non-empty array of integers")
        exact = array.astype(np.int64).ravel()
        counts = PrivateCounts(Domain.from_shape(array.shape), sensitivity, lambda: exact)
    built, budget = mechanisms.build(mechanism, settings), parse_epsilon(epsilon)
    built.check(counts.domain, counts.sensitivity, budget)
    estimate = MechanismRun(built, budget, counts.sensitivity, (counts.domain,)).estimate([counts])
    assert isinstance(estimate, Estimate)  # a family is released from a spec alone
    return estimate
