"""Which bound on the rows of a unit to choose: what each cuts against the noise that it needs.

Both follow from how many units hold 1, 2, 3, … rows: as a published quality table tells, with its noise, or as public
counts tell. Rows are taken to be cut alike in all cells; where they are not, shares are biased, and a quality table by
axis tells by how much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.published import latest_revision
from dphist_pipeline.answering.quality_tables import PublishedQuality
from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.row_quality import BoundingEffect
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.spec.sources import EVERY_ROW
from dphist_pipeline.workbench.evaluation.public_counts import read_counts
from dphist_pipeline.workbench.evaluation.score_tables import Table

MOST_BOUNDS = 12
Reals = NDArray[np.float64]


def units_refused(source: str, problem: str) -> Refused:
    """A file that does not say how many units hold how many rows."""
    return Refused(f"units by rows, {source}: {problem}", code="units_refused")


@dataclass(frozen=True, eq=False)
class UnitSizes:
    """How many units hold 1, 2, … rows, the last number those that hold more, too.

    Attributes:
        units: estimates below 0 are left as they are, since sums of them are unbiased; shape (most rows,).
        variance: of the noise in each number; 0 for public counts.
        counted_by_itself: in words, the rows that the own bound of a quality table cuts, which it counts once more.
    """

    units: Reals
    variance: float
    basis: str
    counted_by_itself: str = ""

    @property
    def rows(self) -> float:
        """All rows, as far as they are seen."""
        return float(self.units @ np.arange(1, self.units.size + 1))

    @property
    def tells(self) -> bool:
        """Whether the interval of the rows beyond the first of each unit is no wider than all rows."""
        return self.rows > 0 and 4 * self.cut(1)[1] <= self.rows

    def cut(self, bound: int) -> tuple[float, float]:
        """The rows that a bound cuts, as far as they are seen, and the standard deviation of that by noise, in rows."""
        beyond = np.maximum(0, np.arange(1, self.units.size + 1) - bound)
        return max(0.0, float(self.units @ beyond)), math.sqrt(self.variance * float(beyond @ beyond))


@dataclass(frozen=True)
class Bound:
    """What a bound costs, in rows.

    Attributes:
        rows: the most of a unit.
        cut: share of all rows that it cuts, from 0 to 1.
        sure: standard deviation of that share by the noise of the numbers that it comes from.
        cell_bias, cell_noise: rows that a cell of average size lacks, and the standard deviation of its noise.
        total_bias, total_noise: the same of the sum of all cells.
        share_noise: standard deviation of the noise of a share of one half of all rows, from 0 to 1.
    """

    rows: int
    cut: float
    sure: float
    cell_bias: float
    cell_noise: float
    total_bias: float
    total_noise: float
    share_noise: float

    @property
    def share_bias(self) -> float:
        """How far the rows cut move a share of one half at most, from 0 to 1: if all of them lie on one side of it."""
        return self.cut / 2

    @property
    def share_error(self) -> float:
        """Root mean squared error of a share of one half, if the bound moves it as far as it may."""
        return math.hypot(self.share_bias, self.share_noise)

    @property
    def cell_error(self) -> float:
        """Root mean squared error of a cell of average size."""
        return math.hypot(self.cell_bias, self.cell_noise)

    @property
    def total_error(self) -> float:
        """Root mean squared error of the sum of all cells."""
        return math.hypot(self.total_bias, self.total_noise)


def find_units(spec: ReleaseSpec, file: str | None, releases: Sequence[str], public: Path | None) -> UnitSizes | None:
    """How many units hold how many rows; None where nothing public says so, or every row is a unit.

    Args:
        file: public counts of one axis, whose first cell is the number of units with one row.
        releases: to look for a quality table in, one after the other.
        public: the store's public folder; None without a store.

    Raises:
        Refused: the file does not hold such counts.
    """
    if file is not None:
        if spec.privacy_unit == EVERY_ROW:
            raise units_refused(file, "has no use with `privacy_unit: row`, where every unit holds one row")
        counts = read_counts(file)
        if counts.ndim != 1 or counts.sum() == 0:
            raise units_refused(file, "needs one axis, the rows that a unit holds from 1 on, and some units")
        return UnitSizes(counts.astype(np.float64), 0.0, f"public counts of {file}")
    if public is None or spec.privacy_unit == EVERY_ROW:
        return None
    for name in releases:
        try:
            folder = latest_revision(public, name, None, family=True)
            quality = PublishedQuality.read(folder)
        except Refused:  # there is none, it was withdrawn, or it has no quality table
            continue
        unit_rows = [row for row in quality.rows if row["statistic"] == "units"]
        if unit_rows:
            basis = f"the quality table of {name}, period {quality.audit['period']}"
            variance = noise_law(Fraction(unit_rows[0]["noise_scale"])).variance
            (cut,) = quality.cuts()[None]
            units = np.array([row["estimate"] for row in unit_rows])
            return UnitSizes(units, variance, basis, _counted_by_itself(cut, int(quality.audit["max_rows_per_unit"])))
    return None


def _counted_by_itself(cut: BoundingEffect, bound: int) -> str:
    """Why a quality table tells another number for its own bound than the table of bounds."""
    estimate, lower, upper = (f"{end:,.0f}" for end in (cut.about, *cut.possible))
    return (
        f"What its own bound of {bound:,} cuts, a quality table counts once more by itself: about {estimate} rows "
        f"(95 %: {lower} to {upper}), as `dphist quality` says. All bounds of this table are compared by the numbers "
        "of units instead, whose noise is other noise."
    )


def compare_bounds(spec: ReleaseSpec, table: UnitSizes) -> list[Bound]:
    """Bias and noise of bounds up to the rows seen, and of the spec's own; empty where units by rows tell nothing."""
    if not table.tells:
        return []
    most, cells, rows = table.units.size, spec.domain.cells, table.rows
    tried = {*range(1, most)} if most <= MOST_BOUNDS else {int(step) for step in np.geomspace(1, most - 1, MOST_BOUNDS)}
    tried |= {spec.max_rows_per_unit} if spec.max_rows_per_unit < most else set()
    bounds = []
    for bound in sorted(tried):
        cut, deviation = table.cut(bound)
        noise = math.sqrt(noise_law(spec.sensitivity_at(bound) / spec.mechanism_epsilon).variance)
        bias, all_noise = cut / cells, noise * math.sqrt(cells)
        share_noise = all_noise / (2 * max(1.0, rows - cut))
        bounds.append(Bound(bound, cut / rows, deviation / rows, bias, noise, cut, all_noise, share_noise))
    return bounds


def advice(bounds: Sequence[Bound], basis: str = "the numbers of units") -> str:
    """Which bounds have the least errors, in a sentence; or that this cannot be told."""
    if not bounds:
        return f"No bound is advised: the intervals of {basis} are wider than the count of rows that they speak of."
    cell, total = min(bounds, key=lambda one: one.cell_error), min(bounds, key=lambda one: one.total_error)
    if cell.rows == total.rows:
        sentence = f"A bound of {cell.rows} has the least error, in a cell of average size and in the sum of all cells."
    else:
        sentence = (
            f"A bound of {cell.rows} has the least error in a cell of average size, and one of {total.rows} in the sum "
            "of all cells."
        )
    return sentence + _doubt(
        [
            bound.rows
            for bound in bounds
            if (bound is not cell and _at_least(bound).cell_error < cell.cell_error)
            or (bound is not total and _at_least(bound).total_error < total.total_error)
        ]
    )


def _at_least(one: Bound) -> Bound:
    """The bound if it cuts as little as the 95 % interval of its cut allows."""
    least = max(0.0, one.cut - 2 * one.sure)
    part = least / one.cut if one.cut > 0 else 0.0
    return replace(one, cut=least, cell_bias=part * one.cell_bias, total_bias=part * one.total_bias)


def _doubt(bounds: Sequence[int]) -> str:
    """That other bounds may have less error, since what is cut is known by its interval alone; empty for none."""
    if not bounds:
        return ""
    names = " and ".join(filter(None, [", ".join(map(str, bounds[:-1])), str(bounds[-1])]))
    return f" That is uncertain: within the intervals of what is cut, {names} may have less."


def table_of(bounds: Sequence[Bound], own: int, basis: str, short: Any) -> Table:
    """The bounds as a table for readers, a row each; that of the spec is marked, and `basis` stands in the title."""
    header = ["rows a unit", "cut", "cell: bias", "noise", "error", "all cells: bias", "noise", "error"]
    rows = [
        (
            f"{bound.rows}{' (the spec)' if bound.rows == own else ''}",
            f"{100 * bound.cut:.1f} % ± {100 * 2 * bound.sure:.1f}",
            *(short(value) for value in (bound.cell_bias, bound.cell_noise, bound.cell_error)),
            *(short(value) for value in (bound.total_bias, bound.total_noise, bound.total_error)),
        )
        for bound in bounds
    ]
    return f"what a bound cuts against its noise, from {basis}", header, rows


def table_of_shares(bounds: Sequence[Bound], own: int) -> Table:
    """What the bounds do to shares, in points, as a table for readers; the bound of the spec is marked."""
    rows = [
        (
            f"{bound.rows}{' (the spec)' if bound.rows == own else ''}",
            *(f"{100 * value:.2g}" for value in (bound.share_bias, bound.share_noise, bound.share_error)),
        )
        for bound in bounds
    ]
    return "a share of one half, in points", ["rows a unit", "moved by up to", "noise", "error"], rows


def advice_on_shares(bounds: Sequence[Bound]) -> str:
    """Which bound, of one or more that were tried, has the least error of a share, in a sentence."""
    best = min(bounds, key=lambda one: one.share_error)
    return (
        f"A bound of {best.rows} has the least error in a share of one half, if the rows cut all lie on one side of "
        "it: where an outcome makes people have many rows, they do."
        + _doubt(
            [bound.rows for bound in bounds if bound is not best and _at_least(bound).share_error < best.share_error]
        )
    )
