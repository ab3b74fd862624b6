"""The result of a mechanism: an estimate for every cell, and the facts from which its errors follow. Public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.domain import Domain
from dphist_pipeline.errors import Halted
from dphist_pipeline.estimates.answers import Answer
from dphist_pipeline.estimates.boxes import answer_box
from dphist_pipeline.estimates.chosen_cells import Condition
from dphist_pipeline.estimates.noisy import NestedSums, NoisySums, ReportedCells, Unbiased
from dphist_pipeline.estimates.row_quality import RowTable


def bad_estimate(problem: str) -> Halted:
    """A mechanism returned a result that does not fit the declared cells."""
    return Halted(
        f"the mechanism returned {problem}; this is a fault of the mechanism, not of the spec", code="bad_estimate"
    )


@dataclass(frozen=True)
class Finding:
    """What a mechanism found out about one way to estimate, from published numbers alone.

    Attributes:
        name: short.
        about: in words.
        weight: its part of the estimate, from 0 to 1; the parts sum to 1.
        error: estimated mean squared error by itself, in records squared; noise may make it negative.
    """

    name: str
    about: str
    weight: float
    error: float


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated counts of all cells. Every field is public.

    Attributes:
        domain: the declared grid.
        values: estimated count of every cell, float64, unclamped, shape of the domain.
        charges: (step, epsilon) in order; the epsilons sum to the epsilon of the release.
        unbiased: unbiased estimates of the cells with the law of their noise; None if the mechanism paid for none.
        groups: group number of every cell, shape of the domain; None if the mechanism does not group cells.
        sums: noisy sums of the groups, drawn after the groups were found; None if the mechanism paid for none.
        quality: what was bought about the rows behind the counts, beside the mechanism; mostly nothing.
        findings: what the mechanism found out on the way; mostly nothing.
    """

    domain: Domain
    values: NDArray[np.float64]
    charges: tuple[tuple[str, Fraction], ...]
    unbiased: Unbiased | None = None
    groups: NDArray[np.int64] | None = None
    sums: NoisySums | NestedSums | None = None
    quality: tuple[RowTable, ...] = ()
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        if self.values.shape != self.domain.shape:
            raise bad_estimate("values of another shape than the domain")
        if not np.isfinite(self.values).all():
            raise bad_estimate("values that are not finite")
        if self.groups is not None and self.groups.shape != self.domain.shape:
            raise bad_estimate("groups of another shape than the domain")
        if isinstance(self.unbiased, ReportedCells) and not (
            self.domain.shape == self.unbiased.values.shape == self.unbiased.atoms.shape and len(self.domain.shape) == 1
        ):
            raise bad_estimate("estimates from reports, or their atoms, of another shape than a domain of one axis")
        if self.sums is not None and self.groups is None:
            raise bad_estimate("sums without saying of which groups")

    @property
    def epsilon(self) -> Fraction:
        """Epsilon of all steps together."""
        return sum((epsilon for _, epsilon in self.charges), Fraction(0))

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return int(self.values.size)

    @property
    def is_unbiased(self) -> bool:
        """Whether the values are the unbiased cells themselves, so that the noise law alone gives their errors."""
        return self.unbiased is not None and self.groups is None and np.array_equal(self.values, self.unbiased.values)

    def box(self, /, **axes: Condition) -> Answer:
        """The estimated count in a box, with its 95 % interval; see `estimates.boxes.answer_box`.

        Args:
            axes: condition on each axis by its name, as (low, high) or categories; an axis without one is summed over.
        """
        return answer_box(self, axes)

    def range(self, low: float | None, high: float | None) -> Answer:
        """The estimated count in [low, high) of the only axis, with its 95 % interval.

        Args:
            low: lower end in axis units; None for an open end.
            high: upper end in axis units; None for an open end.
        """
        if len(self.domain.axes) != 1:
            raise TypeError("a range needs an estimate of one axis; use `box(axis=(low, high), …)`")
        return self.box(**{self.domain.axes[0].name: (low, high)})


@dataclass(frozen=True, eq=False)
class FamilyEstimate:
    """Tables that were estimated together from the same noisy numbers. Every field is public.

    Attributes:
        tables: the estimate of each table by its name; each has the charges of all, and what was bought about its rows.
        charges: see `Estimate`.
        quality: see `Estimate`.
    """

    tables: Mapping[str, Estimate]
    charges: tuple[tuple[str, Fraction], ...]
    quality: tuple[RowTable, ...] = ()

    @property
    def epsilon(self) -> Fraction:
        """Epsilon of all steps together."""
        return sum((epsilon for _, epsilon in self.charges), Fraction(0))

    @property
    def cells(self) -> int:
        """How many cells all tables have."""
        return sum(table.cells for table in self.tables.values())


AnyEstimate = Estimate | FamilyEstimate


def with_quality(made: AnyEstimate, quality: tuple[RowTable, ...]) -> AnyEstimate:
    """An estimate with what was bought about the rows behind it, and what that cost.

    Args:
        made: what a mechanism returned.
        quality: tables about rows; those by an axis go to the tables of a family that have it.
    """
    if not quality:
        return made
    charges = made.charges + tuple((table.step, table.epsilon) for table in quality)
    if isinstance(made, Estimate):
        return replace(made, quality=quality, charges=charges)
    tables = {}
    for name, table in made.tables.items():
        axes = [axis.name for axis in table.domain.axes]
        tables[name] = replace(table, quality=tuple(one for one in quality if one.concerns(axes)), charges=charges)
    return FamilyEstimate(tables, charges, quality)
