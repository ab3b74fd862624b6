"""The result of a mechanism: an estimate for every cell, and the facts from which its errors follow. Public.

Counts in boxes are answered here for an estimate that is not published; published ones are asked by SQL, see `asking`.
All numbers are those of the macro `dph_box`: the same sums, tables of half widths and notes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.errors import Halted
from dphist_pipeline.estimates.answers import Answer, Basis
from dphist_pipeline.estimates.chosen_cells import Condition, overlapped_cells
from dphist_pipeline.estimates.known_figures import KnownFigures, limited_interval
from dphist_pipeline.estimates.laws import LEVEL, LEVEL_OF_TWO
from dphist_pipeline.estimates.noisy import NestedSums, NoisyCells, NoisySums, ReportedCells, Unbiased, exact_sum
from dphist_pipeline.estimates.notes import BEYOND, CUT, CUT_COVERED, CUTS_GROUP, KNOWN, NO_INTERVAL, note_of
from dphist_pipeline.estimates.row_quality import RowTable

Positions = Sequence[NDArray[np.int64]]


def bad_estimate(problem: str) -> Halted:
    """A mechanism returned a result that does not fit the declared cells."""
    return Halted(
        f"the mechanism returned {problem}; this is a fault of the mechanism, not of the spec", code="bad_estimate"
    )


@dataclass(frozen=True)
class Finding:
    """What a mechanism found out about one way to estimate, from published numbers alone.

    Attributes:
        name, about: short, and in words.
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
        values: estimated count of every cell, float64, unclamped, shape of the domain.
        charges: (step, epsilon) in order; the epsilons sum to the epsilon of the release.
        unbiased: unbiased estimates of the cells with the law of their noise; None if the mechanism paid for none.
        groups: group number of every cell, shape of the domain; None if the mechanism does not group cells.
        sums: noisy sums of the groups, drawn after the groups were found; None if the mechanism paid for none.
        quality: what was bought about the rows behind the counts, beside the mechanism; mostly nothing.
        findings: what the mechanism found out on the way; mostly nothing.
        known: public figures that its sums have exactly; None without any. See `with_known`.
    """

    domain: Domain
    values: NDArray[np.float64]
    charges: tuple[tuple[str, Fraction], ...]
    unbiased: Unbiased | None = None
    groups: NDArray[np.int64] | None = None
    sums: NoisySums | NestedSums | None = None
    quality: tuple[RowTable, ...] = ()
    findings: tuple[Finding, ...] = ()
    known: KnownFigures | None = None

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

    @property
    def of_rows(self) -> Estimate:
        """The estimate of rows where an amount splits them, both ends added up; the same one without an amount."""
        if (axis := self.domain.amount) is None:
            return self
        noisy = self.unbiased
        if noisy is not None:
            assert isinstance(noisy, NoisyCells), "parts of rows are measured cell by cell"
            noisy = replace(noisy, values=noisy.values.sum(axis=axis), draws=2 * noisy.draws)
        return replace(self, domain=self.domain.of_rows, values=self.values.sum(axis=axis), unbiased=noisy, known=None)

    def box(self, /, **axes: Condition) -> Answer:
        """The estimated count in a box, with its 95 % interval; see `answer_box`.

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
        charges, quality: see `Estimate`.
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


def with_known(estimate: Estimate, known: KnownFigures | None) -> Estimate:
    """A table of a family that meets public figures, as far as these are known."""
    if known is None:
        return estimate
    unbiased = estimate.unbiased
    assert unbiased is not None, "tables of a family have unbiased estimates"
    unbiased = replace(unbiased, values=known.met(unbiased.values))
    return replace(estimate, values=known.met(estimate.values), unbiased=unbiased, known=known)


AnyEstimate = Estimate | FamilyEstimate


def with_quality(estimate: AnyEstimate, quality: tuple[RowTable, ...]) -> AnyEstimate:
    """An estimate with what was bought about the rows behind it (in a family by table), and what that cost."""
    if not quality:
        return estimate
    charges = estimate.charges + tuple((table.step, table.epsilon) for table in quality)
    if isinstance(estimate, Estimate):
        return replace(estimate, quality=quality, charges=charges)
    tables = {}
    for name, table in estimate.tables.items():
        axes = [axis.name for axis in table.domain.axes]
        tables[name] = replace(table, quality=tuple(one for one in quality if one.concerns(axes)), charges=charges)
    return FamilyEstimate(tables, charges, quality)


@dataclass(frozen=True)
class _Interval:
    """The number of an interval, which is its middle, and the standard deviation of the smaller noise behind it."""

    unbiased: float
    lower: float
    upper: float
    basis: Basis
    noise_error: float


def answer_box(estimate: Estimate, box: Mapping[str, Condition]) -> Answer:
    """Estimates the count in a box of cells, whether or not its ends are edges of bins.

    Args:
        box: condition by name of axis; an axis without a condition is summed over. A binned axis takes (low, high),
            half-open, in axis units (days as dates or ISO text), None for an open end. A categorical axis, or a level
            of its hierarchy, takes a category, None for `other`, or a list of categories.

    Raises:
        QuestionRefused: an axis or category is unknown, an end lies beyond the edges, or the box holds no cells.
    """
    domain, values, unbiased = estimate.domain, estimate.values, estimate.unbiased
    around, shares = overlapped_cells(domain, box)
    within = [along[share == 1] for along, share in zip(around, shares, strict=True)]
    cut = [axis.name for axis, share in zip(domain.axes, shares, strict=True) if (share < 1).any()]
    weights = reduce(np.multiply, np.ix_(*shares)) if cut else None
    number = math.prod(len(along) for along in around)
    # Rows in the cut bins may or may not lie in the box.
    least, most = -math.inf, math.inf
    if (known := estimate.known) is not None:
        least, most = float(known.limits(within)[0]), float(known.limits(around)[1])
    if least == most:
        return Answer(most, most, most, most, "known", number, 0.0, KNOWN)
    total, note = _sum(values, around, weights), CUT.format(axes=", ".join(cut)) if cut else ""
    outer = _interval_of(estimate, around)
    inner = _interval_of(estimate, within) if cut else outer
    if outer is None or inner is None:
        why = NO_INTERVAL if estimate.sums is None else CUTS_GROUP
        note = f"{note}; {why}" if note else why
        return Answer(total, math.nan, math.nan, math.nan, "noise_only", number, note=note)
    middle = outer.unbiased
    if cut:
        middle = math.nan if unbiased is None else _sum(unbiased.values, around, weights)
    note = note + CUT_COVERED if note else note_of(total, outer.lower, outer.upper)
    if known is None:
        return Answer(total, middle, inner.lower, outer.upper, outer.basis, number, outer.noise_error, note)
    if not note and not least <= total <= most:
        note = BEYOND
    # Bins that are cut may hold a known count, of which the part in the box is not known.
    basis = "linear" if outer.basis == "known" else outer.basis
    lower, upper = min(inner.lower, middle), max(outer.upper, middle)
    return Answer(total, middle, lower, upper, basis, number, outer.noise_error, note)


def _interval_of(estimate: Estimate, cells: Positions) -> _Interval | None:
    """The interval for the cells at all combinations of positions, as far as public figures leave it; None if none."""
    if estimate.known is None:
        return _interval_of_noise(estimate, cells)
    least, most = map(float, estimate.known.limits(cells))
    if least == most:
        return _Interval(most, most, most, "known", 0.0)
    interval = _interval_of_noise(estimate, cells)
    if interval is None:
        return None
    lower, upper = limited_interval(interval.unbiased, (interval.lower, interval.upper), least, most)
    return replace(interval, lower=lower, upper=upper)


def _interval_of_noise(estimate: Estimate, cells: Positions) -> _Interval | None:
    """The interval for the cells at all combinations of positions; None if there is none.

    Sums of whole groups were drawn after the groups were found. So given the groups, their noise has its exact law.
    Where there are noisy cells, too, the groups were found on these, and so whether a box is a union of whole groups
    may depend on their noise: there, only the sum of all cells is answered by both, each at 97.5 %. With 95 % both
    intervals hold, so they meet and what they share holds; its middle is the number. Where they do not meet, one of
    them misses, and that of the smaller noise is told.
    """
    grouped = _groups_in(estimate, cells)
    if estimate.unbiased is None:
        return None if grouped is None else _of_groups(*grouped, LEVEL)
    if grouped is None:
        return _of_cells(estimate, cells, LEVEL)
    one, two = _of_cells(estimate, cells, LEVEL_OF_TWO), _of_groups(*grouped, LEVEL_OF_TWO)
    better = two if two.noise_error < one.noise_error else one
    lower, upper = max(one.lower, two.lower), min(one.upper, two.upper)
    if lower > upper:
        return better
    return replace(better, unbiased=(lower + upper) / 2, lower=lower, upper=upper)


def _groups_in(estimate: Estimate, cells: Positions) -> tuple[NestedSums, NDArray[np.int64]] | None:
    """The noisy sums that make up the cells, if they answer for them."""
    if estimate.sums is None or estimate.groups is None:
        return None
    if estimate.unbiased is not None and math.prod(map(len, cells)) < estimate.domain.cells:
        return None
    sums = NestedSums.of_groups(estimate.sums) if isinstance(estimate.sums, NoisySums) else estimate.sums
    inside = np.bincount(estimate.groups[np.ix_(*cells)].ravel(), minlength=int(sums.lasts.max()) + 1)
    boxes = sums.whole_boxes(inside)
    return None if boxes is None else (sums, boxes)


def _of_groups(sums: NestedSums, boxes: NDArray[np.int64], level: Fraction) -> _Interval:
    centre = exact_sum(sums.values[boxes])
    reach = sums.law.half_width_of_sum(boxes.size, level) if boxes.size else 0
    return _Interval(centre, centre - reach, centre + reach, "groups", math.sqrt(boxes.size * sums.variance))


def _of_cells(estimate: Estimate, cells: Positions, level: Fraction) -> _Interval:
    unbiased = estimate.unbiased
    assert unbiased is not None
    centre, reach = _sum(unbiased.values, cells), unbiased.half_width_of_box(cells, level)
    basis: Basis = "unbiased" if isinstance(unbiased, NoisyCells) else "linear"
    return _Interval(centre, centre - reach, centre + reach, basis, math.sqrt(unbiased.variance_of_sum(cells)))


def _sum(values: NDArray[np.float64], cells: Positions, weights: NDArray[np.float64] | None = None) -> float:
    """The sum of the cells at all combinations of positions; all cells are not copied first."""
    chosen = values if math.prod(map(len, cells)) == values.size else values[np.ix_(*cells)]
    return exact_sum(chosen if weights is None else chosen * weights)
