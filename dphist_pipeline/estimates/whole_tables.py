"""Whole tables: non-negative whole counts for every cell that also have good sums.

Setting negative estimates to 0 makes every sum too large, because empty cells keep their positive noise. Here sums come
first, from the coarsest to the finest: the total, groups of each axis, each axis, each pair of axes, then the cells.
Each table is the nearest one to its own unbiased estimates that is not negative and has the sums that were fitted
before. The cells are fitted to the published estimates, after these are cut to the 95 % band of the unbiased ones.
Groups are the levels of a hierarchy, or blocks of 8, 64, … neighbours on an axis of numbers or days.

A publication says which of four ways its whole counts are fitted, and one that says nothing has the first. By shifts,
large cells pay for the positive noise of empty ones in the same sums, so their mean error is not 0. In the second way,
estimates that are surely above 0 stand, and all others are fitted to what sums leave. The third is for mechanisms
whose estimates have better sums than the unbiased cells: it is the second with the sums of the estimates. The fourth is
the third where cells were measured before they were smoothed: whole numbers in the place of a fraction that is told of
many cells alike go to those whose own noisy counts are larger.

This is post-processing of what is published. Whole counts have no intervals: use the unbiased estimates for those.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Axis, CategoricalAxis, Domain
from dphist_pipeline.estimates.noisy import NoisySums, ReportedCells, Unbiased
from dphist_pipeline.solvers.whole_counts.marginal_fit import GroupSums, MarginalSums, fit_to_sums
from dphist_pipeline.solvers.whole_counts.nested_rounding import round_nested

Reals = NDArray[np.float64]
Labels = NDArray[np.int64]

MISSED = 0.05
BLOCK = 8
# How far a marginal sum of cells may miss its target: this share of the number of its cells, for each record by which
# they are shifted. Measured on public and on sparse tables (`benchmarks/whole_tables.py`): from 0.01 to 0.5 errors of
# cells fall and errors of marginal sums rise; at 0.1 both are smaller than those of the unbiased estimates everywhere.
SLACK = 0.1
# From where on an estimate begins to stand, and from where on all of it does, in standard deviations of a cell's noise.
# A count above ten of them is seldom told as less than nine. Chosen on sf_cabs, lc_funded, brazil_homes and hepth.
BEGINS, STANDS = 6.0, 9.0
_FAR = 1e6


class Way(IntEnum):
    """How whole counts are fitted, as an audit says it; one that says nothing has the first."""

    SHIFTS = 1
    SURE_CELLS = 2
    OWN_SUMS = 3
    LED_BY_CELLS = 4


_WITH_OWN_SUMS = (Way.OWN_SUMS, Way.LED_BY_CELLS)


@dataclass(frozen=True)
class Distance:
    """How far a whole table is from the unbiased estimates of some of its sums.

    Attributes:
        table: `total`, the name of an axis, two names with `*` between them, or `cells`.
        farthest: the largest distance of a sum from its unbiased estimate, in records.
        half_width: half the width of the band that holds all these sums together with 95 %, in records; the widest one;
            nan if there is none.
    """

    table: str
    sums: int
    farthest: float
    half_width: float
    outside: int


@dataclass(frozen=True, eq=False)
class WholeTable:
    """A whole table.

    Attributes:
        counts: int64, at least 0, shape of the domain.
        distances: of the total, each axis, each pair of axes and the cells; empty without unbiased estimates.
    """

    counts: NDArray[np.int64]
    distances: tuple[Distance, ...]

    @classmethod
    def fit(
        cls,
        domain: Domain,
        values: Reals,
        unbiased: Unbiased | None,
        sums: NoisySums | None = None,
        way: int = Way.SHIFTS,
    ) -> WholeTable:
        """Non-negative whole counts near the published estimates, with sums near the unbiased ones.

        Args:
            values: published estimates, shape of the domain.
            unbiased: unbiased estimates of the cells; without them, sums are those of `values`.
            sums: noisy sums of groups of cells; the total is taken from them if its variance is smaller.
            way: a `Way`, or its number; without the law of the noise, no cell is sure.

        Returns:
            Sums of whole counts along the axes in their order, and along groups, are within 1 of the fitted ones.
            O(cells · pairs of axes) for each of a few passes.
        """
        basis = values if unbiased is None else unbiased.values
        widths = _Widths(unbiased, domain.shape)
        levels = [groupings(axis) for axis in domain.axes]
        every, total = tuple(range(values.ndim)), _total(basis, widths, sums)
        near = values if values is basis else np.clip(values, *_ends(basis, widths.of(every)))
        deviation = math.sqrt(widths.variance(every))
        summed = near if way in _WITH_OWN_SUMS else basis
        if way in _WITH_OWN_SUMS:
            total = np.maximum(np.clip(near.sum(keepdims=True).ravel(), *_ends(basis.sum(), widths.of(()))), 0.0)
        if way != Way.SHIFTS and 0 < deviation < math.inf:
            fitted = _beside_sure_cells(near, summed, levels, total, deviation)
        else:
            fitted = _fit_values(near, summed, levels, total)
        leads = way == Way.LED_BY_CELLS and 0 < deviation < math.inf
        counts = round_nested(fitted, levels, _leaning(fitted, basis, deviation) if leads else None)
        return cls(counts, tuple(_distances(domain, counts, basis, widths)) if unbiased is not None else ())

    @classmethod
    def of_published(
        cls, domain: Domain, counts: NDArray[np.int64], values: Reals, unbiased: Unbiased | None
    ) -> WholeTable:
        """Whole counts that were published, with their distances from the estimates."""
        basis = values if unbiased is None else unbiased.values
        return cls(counts, tuple(_distances(domain, counts, basis, _Widths(unbiased, domain.shape))))


def groupings(axis: Axis) -> list[Labels]:
    """Nested groupings of the positions along an axis, the coarsest first, without the positions themselves.

    Levels of a hierarchy serve if each lies within the coarser one; `other` is a group of its own.
    """
    if not isinstance(axis, CategoricalAxis):
        widths = [BLOCK**power for power in range(1, 64) if 2 * BLOCK**power <= axis.size]
        return [np.arange(axis.size) // width for width in reversed(widths)]
    groups: list[Labels] = []
    for level in reversed(list(axis.levels.values())):
        names = [f"={name}" for name in level] + ["other"] * axis.other
        labels = np.unique(names, return_inverse=True)[1].astype(np.int64)
        if not groups or np.unique(np.stack([groups[-1], labels]), axis=1).shape[1] == labels.max() + 1:
            groups.append(labels)
    return groups


@dataclass(frozen=True, eq=False)
class _Widths:
    """Half widths of bands: all sums of a table lie in theirs together with 95 %."""

    unbiased: Unbiased | None
    shape: tuple[int, ...]

    def of(self, kept: tuple[int, ...]) -> float:
        """The half width for sums over all axes but `kept`; infinite where the noise is not of independent draws."""
        if self.unbiased is None or isinstance(self.unbiased, ReportedCells):
            return math.inf
        sums = math.prod(self.shape[axis] for axis in kept)
        return float(self.unbiased.law.chernoff_reach(np.array([self.variance(kept)]), MISSED / sums)[0])

    def variance(self, kept: tuple[int, ...]) -> float:
        """Of each of these sums; infinite as above."""
        if self.unbiased is None or isinstance(self.unbiased, ReportedCells):
            return math.inf
        first = [np.arange(1 if axis in kept else side) for axis, side in enumerate(self.shape)]
        return self.unbiased.variance_of_sum(first)


def _ends(centre: Reals, half_width: float) -> tuple[Reals | float, Reals | float]:
    return (centre - half_width, centre + half_width) if math.isfinite(half_width) else (-math.inf, math.inf)


def _total(basis: Reals, widths: _Widths, sums: NoisySums | None) -> Reals:
    """The total, from the sums of groups where these are surer, within the band and not negative; shape (1,)."""
    total = basis.sum()
    surer = sums is not None and sums.variance * sums.values.size < widths.variance(())
    target = sums.values.sum() if sums is not None and surer else total
    return np.maximum(np.clip(np.array([target], dtype=np.float64), *_ends(total, widths.of(()))), 0.0)


def _beside_sure_cells(
    values: Reals, basis: Reals, levels: Sequence[Sequence[Labels]], total: Reals, deviation: float
) -> Reals:
    """Fits what is left of cells and sums beside the part of each estimate that is surely above 0."""
    share = np.clip((values / deviation - BEGINS) / (STANDS - BEGINS), 0.0, 1.0)
    sure = values * share
    # A cell that stands whole takes no part in the fit: it is so far below 0 there that it stays at 0.
    rest = np.where(share < 1, values - sure, -_FAR * deviation)
    fitted: Reals = _fit_values(rest, basis - sure, levels, np.maximum(total - sure.sum(), 0.0))
    fitted += sure
    return fitted


def _leaning(fitted: Reals, noisy: Reals, deviation: float) -> Reals:
    """By how much a count that varies about the fitted one as Poisson's do is likely larger, by its own noisy count."""
    share = fitted / (fitted + deviation**2)
    found: Reals = share * (noisy - fitted)
    return found


def _fit_values(values: Reals, basis: Reals, levels: Sequence[Sequence[Labels]], total: Reals) -> Reals:
    """Fits axis by axis, then pairs of axes, then cells."""
    axes = [_axis_fit(values, basis, axis, levels[axis], total) for axis in range(values.ndim)]
    if values.ndim == 1:
        return axes[0]
    wanted = [_marginal(axes[axis], (axis,), values.shape) for axis in range(values.ndim)]
    if values.ndim > 2:
        wanted = []
        for pair in combinations(range(values.ndim), 2):
            sums = _sums_over(basis, pair)
            parts = [_marginal(axes[axis], (place,), sums.shape) for place, axis in enumerate(pair)]
            parts.append(_marginal(total, (), sums.shape))
            wanted.append(_marginal(fit_to_sums(sums, parts), pair, values.shape))
    return fit_to_sums(values, [*wanted, _marginal(total, (), values.shape)])


def _axis_fit(values: Reals, basis: Reals, axis: int, levels: Sequence[Labels], total: Reals) -> Reals:
    """Sums at every position of an axis, by its groups from the coarsest to the finest."""
    sums, above, fitted = _sums_over(basis, (axis,)), np.zeros(basis.shape[axis], dtype=np.int64), total
    for labels in levels:
        part_of = np.empty(int(labels.max()) + 1, dtype=np.int64)
        part_of[labels] = above
        coarser = np.bincount(labels, weights=sums).astype(np.float64)
        fitted = fit_to_sums(coarser, [GroupSums(part_of, fitted)])
        above = labels
    return fit_to_sums(values if values.ndim == 1 else sums, [GroupSums(above, fitted)])


def _sums_over(table: Reals, kept: tuple[int, ...]) -> Reals:
    sums: Reals = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in kept), dtype=np.float64)
    return sums


def _marginal(fitted: Reals, kept: tuple[int, ...], shape: tuple[int, ...]) -> MarginalSums:
    summed = tuple(axis for axis in range(len(shape)) if axis not in kept)
    slack = SLACK * math.prod(shape[axis] for axis in summed) if kept else 0.0
    return MarginalSums(summed, fitted.reshape([side if axis in kept else 1 for axis, side in enumerate(shape)]), slack)


def _distances(domain: Domain, counts: NDArray[np.int64], basis: Reals, widths: _Widths) -> Iterator[Distance]:
    every = tuple(range(len(domain.axes)))
    tables = [(), *((axis,) for axis in every), *combinations(every, 2), every]
    gaps = {every: counts - basis}
    for kept in reversed(tables):  # each from the smallest table with its axes, the last one that was found
        if kept not in gaps:
            source = next(gaps[one] for one in reversed(gaps) if set(kept) <= set(one))
            gaps[kept] = source.sum(axis=tuple(axis for axis in every if axis not in kept), keepdims=True)
    for kept in dict.fromkeys(tables):
        away = np.abs(gaps[kept])
        half = widths.of(kept)
        name = "*".join(domain.axes[axis].name for axis in kept) or "total"
        has_width = not math.isinf(half)
        yield Distance(
            "cells" if kept == every else name,
            away.size,
            float(away.max()),
            half if has_width else math.nan,
            int((away > half + 1).sum()) if has_width else 0,
        )
