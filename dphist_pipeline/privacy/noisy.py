"""What the doors give out: numbers that were paid for, and how noisy they are. Public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.privacy import noise


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
        return noise.variance(self.scale)


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
        return noise.variance(self.scale)

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
        return noise.variance(self.scale)
