"""Marginals: estimated counts by some axes or levels, summed over the others, each with its 95 % interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.boxes import Basis, Cells, basis_of
from dphist_pipeline.answering.chosen_cells import Condition, QuestionRefused, check_axes, chosen_cells
from dphist_pipeline.answering.intervals import LEVEL, half_width_of_linear, half_width_of_sum
from dphist_pipeline.answering.report_intervals import normal_factor, report_reach
from dphist_pipeline.domain import Axis, CategoricalAxis, Domain
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, ReportedCells, Unbiased

Reals = NDArray[np.float64]
Integers = NDArray[np.int64]
Number = TypeVar("Number", np.float64, np.int64)


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of cells in declared order. All arrays have the shape (sums,).

    Attributes:
        first_cells: number of the first cell in each sum.
        cells: number of cells in each sum.
        estimate: sums of the published estimates, in records.
        unbiased: middles of the intervals, in records; nan if there are none.
        reach: half the widths of the intervals, in records; each interval holds with 95 % by itself; nan if none.
        noise_error: standard deviations of the noise, in records; nan if they are not known.
        basis: source of the intervals; see `boxes.Answer`.
    """

    first_cells: Integers
    cells: Integers
    estimate: Reals
    unbiased: Reals
    reach: Reals
    noise_error: Reals
    basis: Basis


@dataclass(frozen=True, eq=False)
class _Along:
    """The selected positions of an axis, in groups.

    Attributes:
        positions: ordered by group, shape (positions,).
        starts: index in `positions` of the first position of each group, shape (groups,).
    """

    positions: Integers
    starts: Integers

    @property
    def sizes(self) -> Integers:
        return np.diff(self.starts, append=self.positions.size)

    @property
    def firsts(self) -> Integers:
        return self.positions[self.starts]

    def squares(self, width: int) -> Reals:
        """For each group, the sum over the nodes of (number of the group's positions in the node)²."""
        group = np.repeat(np.arange(self.starts.size), self.sizes)
        nodes = self.positions // width
        _, index, counts = np.unique(group * (nodes.max() + 1) + nodes, return_index=True, return_counts=True)
        summed = np.bincount(group[index], counts.astype(np.float64) ** 2, minlength=self.starts.size)
        return np.asarray(summed, dtype=np.float64)


def marginal_sums(cells: Cells, by: Sequence[str], box: Mapping[str, Condition]) -> Sums:
    """The estimated counts in a box by some axes or levels. O(cells of the box) time and memory.

    Args:
        cells: of a publication.
        by: axes or levels; the others are summed over.
        box: see `boxes.answer_box`.

    Raises:
        QuestionRefused: an axis or level is unknown, or see `chosen_cells`.
    """
    domain = cells.domain
    if isinstance(by, str):
        raise QuestionRefused(by, f"give a list of axes, as in [{by!r}]")
    check_axes(domain, by)
    wanted = chosen_cells(domain, box)
    alongs = [_group_positions(axis, positions, by) for axis, positions in zip(domain.axes, wanted, strict=True)]
    strides = [along.firsts * stride for along, stride in zip(alongs, domain.strides, strict=True)]
    number = _combinations(np.multiply, [along.sizes for along in alongs])
    estimate = _group_sums(cells.values, alongs)
    nothing = np.full(estimate.shape, math.nan)
    unbiased = nothing if cells.unbiased is None else _group_sums(cells.unbiased.values, alongs)
    variance, reach = (
        (nothing, nothing)
        if cells.unbiased is None
        else _variances_and_reaches(cells.unbiased, alongs, number, unbiased)
    )
    error = np.sqrt(variance)
    return Sums(_combinations(np.add, strides), number, estimate, unbiased, reach, error, basis_of(cells.unbiased))


def _variances_and_reaches(
    unbiased: Unbiased, alongs: Sequence[_Along], cells: Integers, sums: Reals
) -> tuple[Reals, Reals]:
    """The variance of every sum, and half the width of its 95 % interval."""
    if isinstance(unbiased, ReportedCells):
        atoms, law = _group_sums(unbiased.atoms, alongs), unbiased.law
        variance = law.variance(atoms, sums)
        return variance, report_reach(normal_factor(LEVEL), variance, law.slope(atoms), law.step)
    variance = _variances(unbiased, alongs, cells)
    return variance, _reaches(unbiased, cells, variance)


def axis_columns(domain: Domain, by: Sequence[str]) -> list[str]:
    """The columns of the published table that name the groups of a marginal.

    Args:
        domain: the declared grid.
        by: axes or levels.
    """
    columns: list[str] = []
    for axis in domain.axes:
        if not isinstance(axis, CategoricalAxis):
            columns += [f"{axis.name}_lower", f"{axis.name}_upper"] if axis.name in by else []
            continue
        labelled = [f"{axis.name}_label"] if axis.labels else []
        columns += [axis.name, *labelled] if axis.name in by else []
        columns += [level for level in axis.levels if level in by]
    return columns


def _group_positions(axis: Axis, positions: Integers, by: Sequence[str]) -> _Along:
    if axis.name in by:
        return _Along(positions, np.arange(positions.size))
    levels = [axis.levels[name] for name in axis.levels if name in by] if isinstance(axis, CategoricalAxis) else []
    if not levels:
        return _Along(positions, np.zeros(1, dtype=np.int64))
    seen: dict[tuple[str, ...], int] = {}
    groups = [
        seen.setdefault(tuple(level[place] for level in levels if place < len(level)), len(seen)) for place in positions
    ]
    order = np.argsort(groups, kind="stable")
    return _Along(positions[order], np.flatnonzero(np.diff(np.array(groups)[order], prepend=-1)))


def _group_sums(values: NDArray[Number], alongs: Sequence[_Along]) -> NDArray[Number]:
    """The sum of the cells in each combination of groups, shape (combinations,)."""
    inside = values
    for number, along in enumerate(alongs):
        if not np.array_equal(along.positions, np.arange(values.shape[number])):
            inside = np.take(inside, along.positions, axis=number)
        if along.starts.size == 1:
            inside = inside.sum(axis=number, keepdims=True)
        elif along.starts.size < along.positions.size:
            inside = np.add.reduceat(inside, along.starts, axis=number)
    return inside.ravel()


def _variances(unbiased: NoisyCells | NestedCells, alongs: Sequence[_Along], cells: Integers) -> Reals:
    if isinstance(unbiased, NoisyCells):
        return np.asarray(cells * unbiased.variance, dtype=np.float64)
    total = np.zeros(cells.shape)
    for part in unbiased.shared:
        squares = [along.squares(width) for along, width in zip(alongs, part.widths, strict=True)]
        total += part.coefficient * _combinations(np.multiply, squares)
    return total


def _reaches(unbiased: NoisyCells | NestedCells, cells: Integers, variance: Reals) -> Reals:
    if isinstance(unbiased, NoisyCells):
        kinds, kind = np.unique(cells, return_inverse=True)
        return np.array([half_width_of_sum(unbiased.scale, int(one)) for one in kinds], dtype=np.float64)[kind]
    variances, kind = np.unique(variance, return_inverse=True)
    return np.array([half_width_of_linear(unbiased.scale, float(one)) for one in variances])[kind]


def _combinations(combine: Callable[..., NDArray[np.generic]], alongs: Sequence[NDArray[np.generic]]) -> NDArray:  # type: ignore[type-arg]
    """Combines numbers along axes into all their combinations, shape (combinations,)."""
    return reduce(lambda one, two: combine(one[:, np.newaxis], two[np.newaxis, :]).ravel(), alongs)
