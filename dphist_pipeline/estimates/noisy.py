"""Answers of doors (noisy measurements of exact counts), each with the law of its noise. Public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates import noise_law
from dphist_pipeline.estimates.lines import NoisyWeightedSums, WeightedLine

Reals = NDArray[np.float64]
EXACT = 2.0**53  # whole numbers below it are doubles


def exact_sum(values: Reals) -> float:
    """The double that is nearest to the sum; it does not depend on the order of the values.

    Args:
        values: any shape.
    """
    flat = values.ravel()
    if flat.size and max(flat.max(), -flat.min()) * flat.size < EXACT and np.array_equal(flat, np.rint(flat)):
        return float(flat.sum()) + 0.0  # whole numbers: every partial sum is exact; no negative zero
    return math.fsum(flat.tolist())


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Every cell with independent noise. The values are unbiased and public.

    Attributes:
        values: noisy counts, whole numbers as float64, shape of the domain.
        scale: of the discrete Laplace noise in each cell.
    """

    values: NDArray[np.float64]
    scale: Fraction

    @property
    def variance(self) -> float:
        """Variance of the noise in a cell, in records squared."""
        return noise_law.variance(self.scale)

    def variance_of_sum(self, chosen: Sequence[NDArray[np.int64]]) -> float:
        """Variance of the noise in a sum of cells, in records squared.

        Args:
            chosen: positions along each axis, shape (positions,) each; all their combinations are summed.
        """
        return math.prod(len(positions) for positions in chosen) * self.variance


@dataclass(frozen=True)
class SharedNoise:
    """One term of the covariance of two cells. It applies if both cells lie in the same box of a regular tiling.

    Attributes:
        coefficient: covariance, in records squared; negative if the box's sum is known better than its cells.
        widths: of a box, in cells along each axis; the tiling starts at the first cell. A number below 0 stands for
            the covariance along a weighted line; see `NestedCells.lines`.
    """

    coefficient: float
    widths: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class NestedCells:
    """Every cell as a linear estimate from noisy sums of nested boxes, or from weighted sums along the axes.

    The values are unbiased and public.

    Attributes:
        values: estimates, float64, shape of the domain.
        scale: of the discrete Laplace noise in each sum; in any sum of cells, no draw has a weight above 1.
        shared: the covariance of two cells is the sum of the coefficients of the boxes that hold both. If the last
            boxes reach beyond the domain, this is an upper bound on the variance of a sum of cells.
        tail: a bound on the noise of each cell; None if none is known.
        lines: for each axis what was measured along it; then `shared` has one term, its coefficient times the product
            of the covariances along the lines. Empty where boxes were measured.
    """

    values: NDArray[np.float64]
    scale: Fraction
    shared: tuple[SharedNoise, ...]
    tail: noise_law.Tail | None = None
    lines: tuple[WeightedLine, ...] = ()

    @classmethod
    def of_weighted_sums(cls, noisy: NoisyWeightedSums) -> NestedCells:
        """The least squares estimates from weighted sums along the axes."""
        most = noisy.largest_weight
        scale = (noisy.scale * Fraction(most)).limit_denominator(1 << 20)
        largest = noisy.variance * math.prod(float(line.variances.max()) for line in noisy.lines)
        tail = noise_law.bound_of_variance(largest, noise_law.Scales.of([noisy.scale]), np.array([most]))
        shared = SharedNoise(noisy.variance, tuple(line.number for line in noisy.lines))
        return cls(noisy.estimates(), scale, (shared,), tail, noisy.lines)

    @property
    def variance(self) -> float:
        """Variance of the noise in a cell, in records squared; the mean over all cells if they differ."""
        if self.lines:
            return self.shared[0].coefficient * math.prod(float(line.variances.mean()) for line in self.lines)
        return math.fsum(part.coefficient for part in self.shared)

    @property
    def variances(self) -> NDArray[np.float64] | None:
        """Variance of the noise in each cell, shape of the domain; None if all cells have `variance`."""
        if not self.lines:
            return None
        along = np.ix_(*(line.variances for line in self.lines))
        return reduce(np.multiply, along, np.asarray(self.shared[0].coefficient))

    def variance_of_sum(self, chosen: Sequence[NDArray[np.int64]]) -> float:
        """Variance of the noise in a sum of cells, in records squared."""
        if self.lines:
            along = (line.variance_of_sum(positions) for line, positions in zip(self.lines, chosen, strict=True))
            return self.shared[0].coefficient * math.prod(along)
        squares = [
            {width: _sum_of_squares(positions, width) for width in {part.widths[axis] for part in self.shared}}
            for axis, positions in enumerate(chosen)
        ]
        return math.fsum(
            part.coefficient * math.prod(along[width] for along, width in zip(squares, part.widths, strict=True))
            for part in self.shared
        )


def _sum_of_squares(positions: NDArray[np.int64], width: int) -> int:
    """Sum over the boxes along an axis of (number of chosen positions in the box)²."""
    counts = np.bincount(positions // width)
    return int(counts @ counts)


@dataclass(frozen=True, eq=False)
class NoisySums:
    """One noisy sum for each group of a partition. The sums are unbiased and public.

    Attributes:
        values: noisy sums, whole numbers as float64, shape (groups,).
        sizes: cells in each group, shape (groups,).
        scale: of the discrete Laplace noise in each sum.
    """

    values: NDArray[np.float64]
    sizes: NDArray[np.int64]
    scale: Fraction

    @property
    def variance(self) -> float:
        """Variance of the noise in a sum, in records squared."""
        return noise_law.variance(self.scale)

    def spread(self, groups: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean of each cell's group, in records.

        Args:
            groups: group number of every cell, any shape.

        Returns:
            float64, shape of `groups`.
        """
        evenly: NDArray[np.float64] = (self.values / self.sizes)[groups]
        return evenly


@dataclass(frozen=True, eq=False)
class NestedSums:
    """Noisy sums of the boxes of a hierarchy, one independent draw each. The sums are unbiased and public.

    The last boxes are the groups of a partition; every other box holds groups whose numbers follow each other.

    Attributes:
        values: noisy sums, whole numbers as float64, shape (boxes,).
        sizes: cells in each box, shape (boxes,).
        parents: for each box the number of the box that holds it; -1 for the first box, shape (boxes,).
        firsts: the first group in each box, shape (boxes,).
        lasts: the last group in each box, shape (boxes,).
        scale: of the discrete Laplace noise in each sum.
    """

    values: NDArray[np.float64]
    sizes: NDArray[np.int64]
    parents: NDArray[np.int64]
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]
    scale: Fraction

    @classmethod
    def of_groups(cls, sums: NoisySums) -> NestedSums:
        """The hierarchy of a partition alone: no group lies in a larger box."""
        groups = np.arange(sums.values.size)
        return cls(sums.values, sums.sizes, np.full(groups.size, -1), groups, groups, sums.scale)

    @classmethod
    def of_levels(cls, levels: Sequence[NoisySums], parents: Sequence[NDArray[np.int64]]) -> NestedSums:
        """From levels of boxes whose noise has one scale.

        Args:
            levels: the boxes of each level, from the top.
            parents: for each level but the first, the number of each box's parent in the level above.
        """
        groups = np.arange(levels[-1].values.size)
        firsts, lasts = [groups], [groups]
        for parent in reversed(parents):
            starts = np.flatnonzero(np.diff(parent, prepend=-1))
            firsts.insert(0, firsts[0][starts])
            lasts.insert(0, lasts[0][np.append(starts[1:], parent.size) - 1])
        offsets = np.cumsum([0, *(level.values.size for level in levels[:-1])])
        above = [
            np.full(levels[0].values.size, -1),
            *(one + start for one, start in zip(parents, offsets, strict=False)),
        ]
        values, sizes = (np.concatenate([getattr(one, name) for one in levels]) for name in ("values", "sizes"))
        ranges = np.concatenate(firsts), np.concatenate(lasts)
        return cls(values, sizes, np.concatenate(above), *ranges, levels[0].scale)

    @property
    def variance(self) -> float:
        """Variance of the noise in a sum, in records squared."""
        return noise_law.variance(self.scale)

    def whole_boxes(self, inside: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """The fewest boxes that make up a set of cells; None if it cuts a group.

        Args:
            inside: number of the set's cells in each group, shape (groups,).

        Returns:
            Numbers of the boxes, shape (boxes,).
        """
        before = np.concatenate([[0], np.cumsum(inside)])
        whole = before[self.lasts + 1] - before[self.firsts] == self.sizes
        chosen = np.flatnonzero(whole & ~(whole[self.parents] & (self.parents >= 0)))
        return chosen if self.sizes[chosen].sum() == inside.sum() else None


@dataclass(frozen=True, eq=False)
class NoisyContrasts:
    """The noisy wavelet of a grid of cells, unnormalised: totals and differences of halves. Unbiased and public.

    Along an axis, the numbers are the total, then for each level from the top the left half minus the right half of
    each node that holds a cell. A node of the last level is a pair of cells; each level has half as many nodes as the
    level below, rounded up. With several axes, a number is a total or difference along every axis at once.

    Attributes:
        values: whole numbers as float64, in C order of the numbers along each axis.
        shape: cells along each axis.
        scale: of the discrete Laplace noise in each number.
    """

    values: NDArray[np.float64]
    shape: tuple[int, ...]
    scale: Fraction

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many numbers stand along each axis."""
        return tuple(1 + sum(contrast_sizes(cells)) for cells in self.shape)

    @property
    def total(self) -> float:
        """The noisy total of all cells, a whole number."""
        return float(self.values.flat[0])

    @property
    def contrasts(self) -> tuple[NDArray[np.float64], ...]:
        """For each level from the top, the differences of a line of cells; of a grid, those of totals along the last
        axis.
        """
        sizes = contrast_sizes(self.shape[-1])
        return tuple(np.split(self.values.ravel()[: 1 + sum(sizes)], np.cumsum([1, *sizes]))[1:-1])

    @property
    def variance(self) -> float:
        """Variance of the noise in each number, in records squared."""
        return noise_law.variance(self.scale)


def contrast_sizes(cells: int) -> list[int]:
    """How many nodes hold a cell on each level of a line of cells, from the top; see `NoisyContrasts`.

    Args:
        cells: of the line, at least 1; a single cell has no level.
    """
    return [-(-cells >> level) for level in range((cells - 1).bit_length(), 0, -1)]


@dataclass(frozen=True)
class ReportLaw:
    """The error law of counts that are estimated from contributors' randomised reports (local model).

    An atom is an interval that a report can name. If a set has n true values and s atoms, the variance of its estimated
    count is alpha·s - beta·s² + (gamma + delta·s)·n. The estimates of two disjoint sets are correlated only by the beta
    and delta terms.

    Attributes:
        alpha: variance per atom, from reports of other values.
        beta: variance per pair of atoms, because a report names one atom at most; 0 if each atom has its own bit.
        gamma: variance per true value, from its own report and from whether it was sent.
        delta: variance per true value and atom; 0 if each atom has its own bit.
        step: largest change of an estimate by one bit or one report, in records.
    """

    alpha: float
    beta: float
    gamma: float
    delta: float
    step: float

    def slope(self, atoms: NDArray[np.int64]) -> NDArray[np.float64]:
        """Variance that each true value adds to an estimated count, in records squared.

        Args:
            atoms: number of atoms in each set, any shape.
        """
        return self.gamma + self.delta * np.asarray(atoms, dtype=np.float64)

    def variance(self, atoms: NDArray[np.int64], count: NDArray[np.float64]) -> NDArray[np.float64]:
        """Variance of estimated counts, in records squared, shape of both.

        Args:
            atoms: number of atoms in each set, any shape.
            count: true or estimated number of values in each set, same shape; negative ones count as 0.
        """
        return self.weighted_variance([(1.0, atoms, count)])

    def weighted_variance(self, parts: Sequence[WeightedCount]) -> NDArray[np.float64]:
        """Variance of sums of weighted counts, in records squared.

        Args:
            parts: the disjoint sets that are summed: weight, atoms, and count as in `variance`.
        """
        pairs = [
            (weight, np.asarray(atoms, dtype=np.float64), np.maximum(count, 0.0)) for weight, atoms, count in parts
        ]
        atoms_squared = sum(weight**2 * atoms for weight, atoms, _ in pairs)
        counts_squared = sum(weight**2 * count for weight, _, count in pairs)
        atoms_once = sum(weight * atoms for weight, atoms, _ in pairs)
        counts_once = sum(weight * count for weight, _, count in pairs)
        found = self.alpha * atoms_squared - self.beta * atoms_once**2
        return np.maximum(0.0, found + self.gamma * counts_squared + self.delta * atoms_once * counts_once)


WeightedCount = tuple[float, NDArray[np.int64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class ReportedCells:
    """Every cell as estimated from contributors' randomised reports (local model). The values are unbiased and public.

    Attributes:
        values: estimates, float64, shape (cells,); there is one axis.
        atoms: number of report intervals in each cell, shape (cells,).
        law: error law of sums of cells.
    """

    values: NDArray[np.float64]
    atoms: NDArray[np.int64]
    law: ReportLaw

    @property
    def variances(self) -> NDArray[np.float64]:
        """Estimated variance of each cell, in records squared, shape (cells,); uses the estimate as the true count."""
        return self.law.variance(self.atoms, self.values)

    def variance_of_sum(self, chosen: Sequence[NDArray[np.int64]]) -> float:
        """Estimated variance of a sum of cells, in records squared; uses the estimate, at least 0, as the true count.

        Args:
            chosen: one array, the positions along the only axis, shape (positions,).
        """
        return float(self.law.variance(*self.sum_of(chosen)))

    def sum_of(self, chosen: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Number of atoms and estimated count in a sum of cells, each of shape ()."""
        (positions,) = chosen
        return np.asarray(self.atoms[positions].sum()), np.asarray(exact_sum(self.values[positions]))


Unbiased = NoisyCells | NestedCells | ReportedCells
