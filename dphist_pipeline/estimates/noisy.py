"""Answers of measurements (noisy measurements of exact counts), each with the law of its noise. Public."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates.laws import LEVEL, NoiseLaw, ReportLaw, Scales, Tail, noise_law
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
        values: noisy counts, whole numbers of parts as float64, shape of the domain.
        scale: of the discrete Laplace noise in each draw, in rows.
        parts: of a row, in which noise was drawn; more than 1 where an amount splits rows.
        draws: how many draws each cell sums: 2 where both ends of an amount were added up.
    """

    values: NDArray[np.float64]
    scale: Fraction
    parts: int = 1
    draws: int = 1

    @property
    def law(self) -> NoiseLaw:
        """The law of a draw of noise."""
        return noise_law(self.scale, self.parts)

    @property
    def variance(self) -> float:
        """Variance of the noise in a cell, in records squared."""
        return self.draws * self.law.variance

    @property
    def variances(self) -> NDArray[np.float64]:
        """Variance of the noise in a cell, as an array of shape (): all cells are alike."""
        return np.array(self.variance)

    def variance_of_sum(self, chosen: Sequence[NDArray[np.int64]]) -> float:
        """Variance of the noise in a sum of cells, in records squared, by positions along each axis, all combined."""
        return math.prod(len(positions) for positions in chosen) * self.variance

    def half_width_of_box(self, chosen: Sequence[NDArray[np.int64]], level: Fraction = LEVEL) -> float:
        """Half the width of the interval for a box of cells, which may be empty, in records."""
        return self.half_width_of_cells(math.prod(len(positions) for positions in chosen), level)

    def half_width_of_cells(self, cells: int, level: Fraction = LEVEL) -> float:
        """Half the width of the interval for a sum of any cells, by how many they are, in records."""
        return self.law.half_width_of_sum(self.draws * cells, level) if cells else 0

    def half_width_of_cell(self) -> float:
        """Half the width of the 95 % interval of a cell, in records."""
        return self.half_width_of_cells(1)

    def half_widths(self) -> NDArray[np.float64]:
        """Half the width of the 95 % interval of a cell, as an array of shape ()."""
        return np.array(self.half_width_of_cell(), dtype=np.float64)


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
    tail: Tail | None = None
    lines: tuple[WeightedLine, ...] = ()

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise in each draw."""
        return noise_law(self.scale)

    @classmethod
    def of_weighted_sums(cls, noisy: NoisyWeightedSums) -> NestedCells:
        """The least squares estimates from weighted sums along the axes."""
        most = noisy.largest_weight
        scale = (noisy.scale * Fraction(most)).limit_denominator(1 << 20)
        largest = noisy.variance * math.prod(float(line.variances.max()) for line in noisy.lines)
        tail = Scales.of([noisy.scale]).bound_of_variance(largest, np.array([most]))
        shared = SharedNoise(noisy.variance, tuple(line.number for line in noisy.lines))
        return cls(noisy.estimates(), scale, (shared,), tail, noisy.lines)

    @property
    def variance(self) -> float:
        """Variance of the noise in a cell, in records squared; the mean over all cells if they differ."""
        if self.lines:
            return self.shared[0].coefficient * math.prod(float(line.variances.mean()) for line in self.lines)
        return math.fsum(part.coefficient for part in self.shared)

    @property
    def variances(self) -> NDArray[np.float64]:
        """Variance of the noise in each cell, shape of the domain; shape () if all cells have `variance`."""
        if not self.lines:
            return np.array(self.variance)
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

    def half_width_of_box(self, chosen: Sequence[NDArray[np.int64]], level: Fraction = LEVEL) -> float:
        """Half the width of the interval for a box of cells, which may be empty, in records."""
        if any(len(positions) == 0 for positions in chosen):
            return 0
        return self.law.half_width_of_linear(self.variance_of_sum(chosen), level)

    def half_width_of_cell(self) -> float:
        """Half the width of the 95 % interval of a cell, in records; of the widest one if they differ."""
        return self.law.half_width_of_linear(float(self.variances.max()))

    def half_widths(self) -> NDArray[np.float64]:
        """Half the width of each cell's 95 % interval, in records, shape of the domain; shape () if all are alike."""
        different, where = np.unique(variances := self.variances, return_inverse=True)
        reach = np.array([self.law.half_width_of_linear(one) for one in different.tolist()])
        return reach[where].reshape(variances.shape)


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
    def law(self) -> NoiseLaw:
        """The law of the noise in each sum."""
        return noise_law(self.scale)

    @property
    def variance(self) -> float:
        """Variance of the noise in a sum, in records squared."""
        return self.law.variance

    def spread(self, groups: NDArray[np.int64]) -> NDArray[np.float64]:
        """The mean of each cell's group, in records, float64; groups are numbers of any shape."""
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
        firsts, lasts: the first and the last group in each box, shape (boxes,) each.
        scale: of the discrete Laplace noise in each sum.
    """

    values: NDArray[np.float64]
    sizes: NDArray[np.int64]
    parents: NDArray[np.int64]
    firsts: NDArray[np.int64]
    lasts: NDArray[np.int64]
    scale: Fraction

    @property
    def law(self) -> NoiseLaw:
        """The law of the noise in each sum."""
        return noise_law(self.scale)

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
        return self.law.variance

    def whole_boxes(self, inside: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """The numbers of the fewest boxes that make up a set of cells, shape (boxes,); None if it cuts a group.

        Args:
            inside: number of the set's cells in each group, shape (groups,).
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
    def law(self) -> NoiseLaw:
        """The law of the noise in each number."""
        return noise_law(self.scale)

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
        return self.law.variance


def contrast_sizes(cells: int) -> list[int]:
    """How many nodes hold a cell on each level of a line of cells, from the top; a single cell has no level."""
    return [-(-cells >> level) for level in range((cells - 1).bit_length(), 0, -1)]


@dataclass(frozen=True, eq=False)
class ReportedCells:
    """Every cell as estimated from contributors' randomised reports (local model). The values are unbiased and public.

    Attributes:
        values: estimates, float64, shape (cells,); there is one axis.
        atoms: number of report intervals in each cell, shape (cells,).
    """

    values: NDArray[np.float64]
    atoms: NDArray[np.int64]
    law: ReportLaw

    @property
    def variances(self) -> NDArray[np.float64]:
        """Estimated variance of each cell, in records squared, shape (cells,); uses the estimate as the true count."""
        return self.law.variance(self.atoms, self.values)

    def variance_of_sum(self, chosen: Sequence[NDArray[np.int64]]) -> float:
        """Estimated variance of a sum of cells, in records squared, with the estimate, at least 0, as true count."""
        return float(self.law.variance(*self.sum_of(chosen)))

    def sum_of(self, chosen: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Number of atoms and estimated count in a sum of cells, each of shape ()."""
        (positions,) = chosen
        return np.asarray(self.atoms[positions].sum()), np.asarray(exact_sum(self.values[positions]))

    def half_width_of_box(self, chosen: Sequence[NDArray[np.int64]], level: Fraction = LEVEL) -> float:
        """Half the width of the interval for a sum of cells, which may be empty, in records."""
        if any(len(positions) == 0 for positions in chosen):
            return 0
        return float(self.law.reach(*self.sum_of(chosen), level))

    def half_width_of_cell(self) -> float:
        """Half the width of the 95 % interval of a cell, in records; of the widest one."""
        return float(self.half_widths().max())

    def half_widths(self) -> NDArray[np.float64]:
        """Half the width of each cell's 95 % interval, in records, shape (cells,)."""
        return self.law.reach(self.atoms, self.values)


Unbiased = NoisyCells | NestedCells | ReportedCells
