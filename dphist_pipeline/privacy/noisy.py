"""What the doors give out: numbers that were paid for, and how noisy they are. Public."""

from __future__ import annotations

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
