"""Least squares over noisy marginals of one grid: tables that agree with each other, with exact covariances.

Every cell of a measured marginal A has independent noise of variance v_A. Counts split into parts, one for each set S
of axes: the deviations along the axes of S, as they stand in the marginal of S. Where S lies in A, summing A over its
other axes gives the marginal of S with the noise variance v_A times (cells of A for each cell of S), equal in all
cells; taking means out along the axes of S is a projection and leaves the noise of different parts uncorrelated. So
least squares is one mean for each part, weighted by precision: closed form, exact for any noise (Xiao, He, Zhang,
Kifer, NeurIPS 2023, use it for Gaussian noise).

A table T is the sum of the parts S of T, each spread evenly over the axes that S lacks. Tables that share axes contain
the same parts, so their common marginals are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.tables.wanted_tables import Axes, subsets_of

Reals = NDArray[np.float64]
Weight = tuple[float, int]


class MarginalLaw:
    """What the estimates of tables know and do not know, from sizes and variances alone.

    Args:
        sizes: positions along each axis of the grid, shape (axes,).
        variances: of the noise in each cell of the measured marginals, by their sets of axes.
    """

    def __init__(self, sizes: Sequence[int], variances: Mapping[Axes, float]) -> None:
        self.sizes, self.variances = tuple(sizes), dict(variances)

    def cells(self, axes: Axes) -> int:
        """Cells of a marginal."""
        return math.prod(self.sizes[axis] for axis in axes)

    def precision(self, measured: Axes, part: Axes) -> float:
        """What a measured marginal tells of a part that it contains: one over the variance."""
        return 1 / (self.variances[measured] * self.cells(measured - part))

    def variance_of_part(self, part: Axes) -> float:
        """Variance of a part in the marginal of its axes, before means are taken out.

        Raises:
            ValueError: no measured marginal contains it.
        """
        variance = self._variances_of_parts.get(part)
        if variance is None:
            known = math.fsum(self.precision(axes, part) for axes in self.variances if part <= axes)
            if known == 0:
                raise ValueError(f"no measured marginal has the axes {sorted(part)}")
            variance = self._variances_of_parts[part] = 1 / known
        return variance

    @cached_property
    def _variances_of_parts(self) -> dict[Axes, float]:
        return {}

    def covariance(self, table: Axes) -> dict[Axes, float]:
        """The covariance of two cells of a table is the sum of these over the sets on whose axes both agree."""
        return multiplied_out(self.sizes, table, self.variance_of_part)

    def variance_of_cell(self, table: Axes) -> float:
        """Variance of the noise in each cell of a table."""
        return math.fsum(self.covariance(table).values())

    def weights_in_cell(self, table: Axes, measured: Axes) -> list[Weight]:
        """The weights that draws of a measured marginal have in one cell of a table, and how many draws have each."""
        common, known = sorted(table & measured), self._shares_of_parts(table, measured)
        summed = self.cells(measured - table)
        found: list[Weight] = []
        for equal in product((True, False), repeat=len(common)):
            along = {axis: self._along(axis, same) for axis, same in zip(common, equal, strict=True)}
            draws = summed * math.prod(
                1 if same else self.sizes[axis] - 1 for axis, same in zip(common, equal, strict=True)
            )
            if draws:
                found.append((abs(_weight(known, along)), draws))
        return found

    def largest_weight(self, table: Axes, measured: Axes) -> float:
        """The largest weight, sign aside, of a draw of a measured marginal in any box of cells of a table.

        Along an axis with the fraction f of its positions in the box, part S has the factor 1 - f for a draw inside
        and -f outside if S has the axis, else f. A weight is linear in each f, so the largest lies at f = 0 or f = 1.
        """
        known, common = self._shares_of_parts(table, measured), sorted(table & measured)
        whole, inside, outside = (1.0, 0.0), (0.0, 1.0), (1.0, -1.0)
        found = product((whole, inside, outside), repeat=len(common))
        most = max(abs(_weight(known, dict(zip(common, chosen, strict=True)))) for chosen in found)
        return most * self.cells(table - measured)

    def draws_in_cell(self, table: Axes) -> tuple[NDArray[np.int64], Reals, Reals]:
        """The draws of all measured marginals in one cell of a table.

        Returns:
            Which measured marginal, by its place in `variances`; the weight; how many draws have it; shape (kinds,).
        """
        apart = self._apart(table)
        places = [np.flatnonzero(apart)]
        weights, counts = [self._weights_apart(table)[apart]], [self._every[0][apart]]
        for place in np.flatnonzero(~apart).tolist():
            kinds = self.weights_in_cell(table, self._order[place])
            places.append(np.full(len(kinds), place))
            weights.append(np.array([weight for weight, _ in kinds]))
            counts.append(np.array([many for _, many in kinds], dtype=np.float64))
        return np.concatenate(places), np.concatenate(weights), np.concatenate(counts)

    def largest_weights(self, table: Axes) -> Reals:
        """The largest weight of a draw of each measured marginal, in the order of `variances`; see `largest_weight`."""
        weights, apart = self._weights_apart(table) * self.cells(table), self._apart(table)
        for place in np.flatnonzero(~apart).tolist():
            weights[place] = self.largest_weight(table, self._order[place])
        return weights

    @cached_property
    def _order(self) -> list[Axes]:
        return list(self.variances)

    @cached_property
    def _every(self) -> tuple[Reals, Reals, NDArray[np.bool_]]:
        """Cells and variance of each measured marginal, and which axes it has."""
        members = np.zeros((len(self._order), len(self.sizes)), dtype=bool)
        for place, axes in enumerate(self._order):
            members[place, list(axes)] = True
        cells = np.array([float(self.cells(axes)) for axes in self._order])
        return cells, np.array(list(self.variances.values())), members

    def _apart(self, table: Axes) -> NDArray[np.bool_]:
        """Which measured marginals share no axis with a table: they tell its total alone."""
        return np.asarray(~self._every[2][:, sorted(table)].any(axis=1))

    def _weights_apart(self, table: Axes) -> Reals:
        cells, noise, _ = self._every
        found: Reals = self.variance_of_part(frozenset()) / (noise * cells * self.cells(table))
        return found

    def _along(self, axis: int, equal: bool) -> tuple[float, float]:
        """For one cell: the factor of an axis that a part lacks, and of one that it has."""
        lacks = 1 / self.sizes[axis]
        return lacks, (1.0 if equal else 0.0) - lacks

    def _shares_of_parts(self, table: Axes, measured: Axes) -> dict[Axes, float]:
        """For each common part, the weight of the measured marginal in its mean, spread over the table's other axes."""
        others = self.cells(table - measured)
        return {
            part: self.precision(measured, part) * self.variance_of_part(part) / others
            for part in subsets_of([table & measured])
        }


def multiplied_out(sizes: Sequence[int], table: Axes, variance_of_part: Callable[[Axes], float]) -> dict[Axes, float]:
    """The covariance of two cells of a table, as a sum of these over the sets on whose axes both agree.

    A part S gives var(S) · prod over S of (equal - 1/n) · prod over the other axes of 1/n²: multiplied out.

    Args:
        sizes: positions along each axis.
        variance_of_part: in the marginal of its axes, before means are taken out.
    """
    coefficients = dict.fromkeys(subsets_of([table]), 0.0)
    for part in coefficients:
        around = variance_of_part(part) / math.prod(sizes[axis] for axis in table - part) ** 2
        for agreed in subsets_of([part]):
            coefficients[agreed] += around * math.prod(-1 / sizes[axis] for axis in part - agreed)
    return coefficients


def _weight(known: Mapping[Axes, float], along: Mapping[int, tuple[float, float]]) -> float:
    """The sum over parts of their share times a factor for each axis: the first if the part lacks it."""
    return math.fsum(
        share * math.prod(pair[axis in part] for axis, pair in along.items()) for part, share in known.items()
    )


def estimate_tables(law: MarginalLaw, measured: Mapping[Axes, Reals], tables: Sequence[Axes]) -> list[Reals]:
    """Least squares estimates of tables, which agree on every common marginal; axes in ascending order.

    Cost: O(cells · 2^axes) for each measured marginal and table.

    Args:
        measured: noisy counts of each, axes in ascending order.
    """
    parts: dict[Axes, Reals] = {}
    needed = set(subsets_of(tables))
    for axes, values in measured.items():
        for part, sums in marginals_of(values.astype(np.float64), axes, needed).items():
            weighted = sums * (law.precision(axes, part) * law.variance_of_part(part))
            parts[part] = parts[part] + weighted if part in parts else weighted
    deviations = {part: deviations_of(sums) for part, sums in parts.items()}
    return [_assemble(law, deviations, table) for table in tables]


def marginals_of(values: Reals, axes: Axes, needed: set[Axes], kept: Axes = frozenset()) -> dict[Axes, Reals]:
    """The marginals of a table that are needed, each summed from the smallest one that was made before.

    Args:
        values: the table, axes in ascending order.
        needed: sets of axes; those that the table does not hold are left out.
        kept: axes of the table that each marginal has.
    """
    marginals = {axes: values}
    parts = [part | kept for part in subsets_of([axes - kept]) if part | kept != axes]
    for part in sorted(parts, key=len, reverse=True):
        larger = min((known for known in marginals if part < known), key=lambda known: marginals[known].size)
        order = sorted(larger)
        marginals[part] = marginals[larger].sum(axis=tuple(order.index(axis) for axis in larger - part))
    return {part: sums for part, sums in marginals.items() if part in needed}


def deviations_of(sums: Reals, first: int = 0) -> Reals:
    """Means taken out along every axis from a first one on.

    Args:
        sums: a table, any shape.
        first: number of the first axis; those before it keep their means.
    """
    for axis in range(first, sums.ndim):
        sums = sums - sums.mean(axis=axis, keepdims=True)
    return sums


def _assemble(law: MarginalLaw, deviations: Mapping[Axes, Reals], table: Axes) -> Reals:
    order = sorted(table)
    estimate = np.zeros([law.sizes[axis] for axis in order])
    for part in subsets_of([table]):
        shape = [law.sizes[axis] if axis in part else 1 for axis in order]
        estimate += deviations[part].reshape(shape) / law.cells(table - part)
    return estimate
