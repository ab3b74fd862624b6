"""What the doors give out: numbers that were paid for, and how noisy they are. Public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates import noise_law


@dataclass(frozen=True, eq=False)
class NoisyCells:
    """Every cell with its own noise: unbiased, and public.

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


@dataclass(frozen=True)
class SharedNoise:
    """A part of the covariance of two cells: what they have where both lie in one of these boxes.

    Attributes:
        coefficient: in records squared; below 0 where cells are known better together than apart.
        widths: of the boxes that start at the first cell, in cells along each axis.
    """

    coefficient: float
    widths: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class NestedCells:
    """Every cell as a linear estimate from noisy sums of nested boxes: unbiased, and public.

    Attributes:
        values: estimates, float64, shape of the domain.
        scale: of the discrete Laplace noise in each sum; no draw has a larger weight than 1 in any sum of cells.
        shared: the covariance of two cells is the sum of the coefficients of the boxes that they share. Where the last
            boxes reach beyond the domain, the variance of a sum of cells is at most what this gives.
    """

    values: NDArray[np.float64]
    scale: Fraction
    shared: tuple[SharedNoise, ...]

    @property
    def variance(self) -> float:
        """Variance of the noise in a cell, in records squared."""
        return math.fsum(part.coefficient for part in self.shared)

    def variance_of_sum(self, chosen: Sequence[NDArray[np.int64]]) -> float:
        """Variance of the noise in a sum of cells, in records squared.

        Args:
            chosen: the positions along each axis; the cells are all their combinations.
        """
        return math.fsum(part.coefficient * _squares(chosen, part.widths) for part in self.shared)


def _squares(chosen: Sequence[NDArray[np.int64]], widths: Sequence[int]) -> int:
    """The sum over the boxes of (cells of the choice in the box)²."""
    counts = [np.bincount(positions // width) for positions, width in zip(chosen, widths, strict=True)]
    return math.prod(int(along @ along) for along in counts)


@dataclass(frozen=True, eq=False)
class NoisySums:
    """One noisy sum for each group of a partition: unbiased for the group, and public.

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
        """Every cell's even part of the sum of its group, shape of `groups`: the group number of every cell."""
        evenly: NDArray[np.float64] = (self.values / self.sizes)[groups]
        return evenly


@dataclass(frozen=True, eq=False)
class NoisyContrasts:
    """The noisy total of a line of cells, and how its halves, their halves … differ: unbiased, and public.

    Attributes:
        total: noisy, a whole number.
        contrasts: for each level from the top, left half minus right half of each node that holds a cell, whole numbers
            as float64; the last level halves pairs of cells, and a level has half as many nodes as the one below,
            rounded up.
        scale: of the discrete Laplace noise in the total and in each contrast.
    """

    total: float
    contrasts: tuple[NDArray[np.float64], ...]
    scale: Fraction

    @property
    def variance(self) -> float:
        """Variance of the noise in the total and in each contrast, in records squared."""
        return noise_law.variance(self.scale)


@dataclass(frozen=True)
class ReportLaw:
    """How far counts that were estimated from the reports of contributors lie from the true ones.

    The variance of the count of a set of values is alpha·s - beta·s² + (gamma + delta·s)·n, with n true values and s
    atoms (intervals of a report) in the set; the counts of two sets share noise only by beta and delta.

    Attributes:
        alpha: per atom: the reports of other values.
        beta: per pair of atoms: a report names one at most; 0 where each atom has a bit of its own.
        gamma: per true value: its own report, and whether it was sent.
        delta: per true value and atom; 0 where each atom has a bit of its own.
        step: what one bit, or one report, moves an estimate.
    """

    alpha: float
    beta: float
    gamma: float
    delta: float
    step: float

    def slope(self, atoms: NDArray[np.int64]) -> NDArray[np.float64]:
        """By how much each true value adds to the variance of a count, in records squared."""
        return self.gamma + self.delta * np.asarray(atoms, dtype=np.float64)

    def variance(self, atoms: NDArray[np.int64], count: NDArray[np.float64]) -> NDArray[np.float64]:
        """Variance of estimated counts, in records squared, shape of both.

        Args:
            atoms: in each set.
            count: true values in each, or their estimates; taken for 0 where below.
        """
        return self.weighted_variance([(1.0, atoms, count)])

    def weighted_variance(self, parts: Sequence[WeightedCount]) -> NDArray[np.float64]:
        """Variance of sums of weighted counts, in records squared.

        Args:
            parts: of each sum, sets without a value in common: weight, atoms, and count as `variance` takes it.
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
    """Every cell as estimated from the reports of contributors, who made their own noise: unbiased, and public.

    Attributes:
        values: estimates, float64, shape (cells,): there is one axis.
        atoms: how many intervals of a report lie in each cell, shape (cells,).
        law: how far sums of cells lie from the true counts.
    """

    values: NDArray[np.float64]
    atoms: NDArray[np.int64]
    law: ReportLaw

    @property
    def variances(self) -> NDArray[np.float64]:
        """Variance of each cell, in records squared, shape (cells,), with its estimate for the true count."""
        return self.law.variance(self.atoms, self.values)

    def variance_of_sum(self, chosen: Sequence[NDArray[np.int64]]) -> float:
        """Variance of a sum of cells, in records squared, with the estimate, cut off at 0, for the true count.

        Args:
            chosen: the positions along the axis.
        """
        return float(self.law.variance(*self.sum_of(chosen)))

    def sum_of(self, chosen: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The atoms and the estimated count of a sum of cells, each without a side."""
        (positions,) = chosen
        return np.asarray(self.atoms[positions].sum()), np.asarray(self.values[positions].sum())


Unbiased = NoisyCells | NestedCells | ReportedCells
