"""The published total of a period, and its sums by each value of each axis, with the noise of each sum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.base.domain import OTHER, Axis, BinnedAxis, CategoricalAxis, Domain
from dphist_pipeline.estimates.estimate import AnyEstimate, Estimate, FamilyEstimate
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NestedSums, NoisyCells, NoisySums, Unbiased, exact_sum
from dphist_pipeline.publishing.axis_labels import ReaderAxis
from dphist_pipeline.publishing.published_files import PublishedFolder, read_audit
from dphist_pipeline.publishing.release_files import published_unbiased
from dphist_pipeline.spec.axes import domain_of

Reals = NDArray[np.float64]
TOTAL = ""  # stands for an axis where all cells are summed


@dataclass(frozen=True, eq=False)
class AxisSums:
    """Unbiased sums of cells by the values of one axis, or the total, called `TOTAL`.

    `labels` are in words, in declared order. `values` (records) and `variances` (of the noise, records squared) have
    the shape (labels,); `scale` is of a draw, in `parts` of a row. `named`: the values are names that need no axis
    beside them.
    """

    axis: str
    labels: tuple[str, ...]
    values: Reals
    variances: Reals
    scale: Fraction
    named: bool = True
    parts: int = 1

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The position of each label."""
        return {label: place for place, label in enumerate(self.labels)}

    def reaches(self, level: Fraction) -> Reals:
        """Half the width of each sum's interval at a level of up to 0.999999, in records, shape (labels,)."""
        different, where = np.unique(self.variances, return_inverse=True)
        widths = [noise_law(self.scale, self.parts).half_width_of_linear(float(one), level) for one in different]
        return np.array(widths)[where].ravel()


PeriodSums = Mapping[str, AxisSums]  # by axis; the total is there whenever anything is


def sums_of_estimate(made: AnyEstimate) -> PeriodSums:
    """The sums of what a mechanism returned; none where no noise tells how far a sum may be off.

    Of a family, the smallest table that has an axis is summed along it.
    """
    tables = made.tables.values() if isinstance(made, FamilyEstimate) else [made]
    return _of_tables([_sums_of_table(table) for table in sorted(tables, key=lambda table: table.cells)])


def sums_of_publication(folder: Path, audit: Mapping[str, Any]) -> PeriodSums:
    """As `sums_of_estimate`, from published files, which were checked."""
    if "tables" not in audit:
        return _of_tables([_published_sums(folder, audit)])
    tables = [(table["cells"], name) for name, table in audit["tables"].items()]
    folders = [PublishedFolder(folder).table(name) for _, name in sorted(tables)]
    return _of_tables([_published_sums(table, read_audit(table)) for table in folders])


def _of_tables(tables: list[PeriodSums]) -> PeriodSums:
    found: dict[str, AxisSums] = {}
    for sums in tables:
        for axis, one in sums.items():
            found.setdefault(axis, one)
    return found


def _sums_of_table(made: Estimate) -> PeriodSums:
    sums = NestedSums.of_groups(made.sums) if isinstance(made.sums, NoisySums) else made.sums
    roots = None if sums is None else (sums.values[sums.parents < 0], sums.scale)
    made = made.of_rows
    return _sums(made.domain, made.unbiased, roots)


def _published_sums(folder: Path, audit: Mapping[str, Any]) -> PeriodSums:
    domain = domain_of(audit["axes"])
    column = pq.ParquetFile(folder / "histogram.parquet").read(["unbiased_estimate"])["unbiased_estimate"]
    unbiased, roots = None, None
    if not column.null_count:
        values = column.to_numpy().reshape(domain.shape)
        rows = Estimate(domain, values, (), published_unbiased(audit, values)).of_rows
        domain, unbiased = rows.domain, rows.unbiased
    elif (sums := PublishedFolder(folder).sums).exists():
        rows = pq.ParquetFile(sums).read(["parent", "noisy_sum", "noise_scale"])
        outer = rows["parent"].is_null().to_numpy()
        roots = rows["noisy_sum"].to_numpy()[outer], Fraction(rows["noise_scale"][0].as_py())
    return _sums(domain, unbiased, roots)


def _sums(domain: Domain, unbiased: Unbiased | None, roots: tuple[Reals, Fraction] | None) -> PeriodSums:
    """The sums of one table: of its cells, or, where only sums of groups were drawn, the total of these."""
    if isinstance(unbiased, NoisyCells | NestedCells):
        return {one.axis: one for one in _sums_of_cells(domain, unbiased)}
    if unbiased is None and roots is not None:
        values, scale = roots
        return {TOTAL: _total(exact_sum(values), values.size * noise_law(scale).variance, scale)}
    return {}


def _sums_of_cells(domain: Domain, unbiased: NoisyCells | NestedCells) -> Iterator[AxisSums]:
    every = [np.arange(size) for size in domain.shape]
    parts = unbiased.parts if isinstance(unbiased, NoisyCells) else 1
    yield _total(exact_sum(unbiased.values), unbiased.variance_of_sum(every), unbiased.scale, parts)
    lines = unbiased.lines if isinstance(unbiased, NestedCells) else ()
    for number, axis in enumerate(domain.axes):
        others = tuple(other for other in range(len(domain.axes)) if other != number)
        values = np.asarray(unbiased.values.sum(axis=others), dtype=np.float64)
        # Without weights along lines, all values of an axis have one variance: boxes are tiled regularly.
        one = unbiased.variance_of_sum([*every[:number], np.zeros(1, dtype=np.int64), *every[number + 1 :]])
        shape = lines[number].variances if lines else np.ones(axis.size)
        variances = np.asarray(one / shape[0] * shape, dtype=np.float64)
        named = isinstance(axis, CategoricalAxis)
        yield AxisSums(axis.name, _labels(axis), values, variances, unbiased.scale, named, parts)


def _total(value: float, variance: float, scale: Fraction, parts: int = 1) -> AxisSums:
    return AxisSums(TOTAL, ("",), np.array([value]), np.array([variance]), scale, parts=parts)


def _labels(axis: Axis) -> tuple[str, ...]:
    if isinstance(axis, CategoricalAxis):
        return axis.values + (OTHER,) * axis.other
    assert isinstance(axis, BinnedAxis), "sums over periods are of rows"
    ends = zip(*(bound.tolist() for bound in axis.bounds), strict=True)
    return tuple(OTHER if math.isnan(lower) else ReaderAxis(axis).range_in_words(lower, upper) for lower, upper in ends)
