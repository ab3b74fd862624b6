"""Weighted sums along the axes of a grid, and what their least squares estimates of the cells know. Public."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates.laws import noise_law

Reals = NDArray[np.float64]
BLOCK = 512


@dataclass(frozen=True, eq=False)
class WeightedLine:
    """What is measured of a line of positions, each number with independent noise of variance 1.

    With own weights w and sums C, the covariance of the least squares estimates is (diag(w²) + Cᵀ·C)⁻¹. By the formula
    of Woodbury that is diag(alone) - Fᵀ·F, with alone = 1 / w² and a row of F for each sum.

    Attributes:
        weights: whole numbers: row 0 of every position by itself, none 0; every other row of the positions in a sum;
            shape (1 + sums, positions).
    """

    weights: NDArray[np.int64]

    @property
    def positions(self) -> int:
        """Number of positions."""
        return int(self.weights.shape[1])

    @property
    def total(self) -> int:
        """The largest sum of absolute weights of a position."""
        return int(np.abs(self.weights).sum(axis=0).max())

    @cached_property
    def alone(self) -> Reals:
        """Variance of each position if it were measured by itself alone, shape (positions,)."""
        variances: Reals = 1.0 / self.weights[0].astype(np.float64) ** 2
        return variances

    @cached_property
    def shared(self) -> Reals:
        """F: what the sums take off, shape (sums, positions)."""
        known = self.weights[1:] * self.alone
        root = np.linalg.cholesky(np.eye(len(known)) + known @ self.weights[1:].T)
        rows: Reals = np.linalg.solve(root, known)
        return rows

    @cached_property
    def variances(self) -> Reals:
        """Variance of each position's estimate, shape (positions,)."""
        variances: Reals = self.alone - np.einsum("ij,ij->j", self.shared, self.shared)
        return variances

    def variance_of_sum(self, chosen: NDArray[np.int64]) -> float:
        """Variance of the estimate of a sum of positions, each once."""
        return float(self.alone[chosen].sum() - (self.shared[:, chosen].sum(axis=1) ** 2).sum())

    def estimates(self, measured: Reals) -> Reals:
        """Least squares estimates of the positions.

        Args:
            measured: numbers along the first axis, in the order of the rows' results; shape (positions + sums, …).
        """
        size = self.positions
        normal = _along(self.weights[0], measured[:size]) + np.tensordot(self.weights[1:].T, measured[size:], axes=1)
        correction = np.tensordot(self.shared.T, np.tensordot(self.shared, normal, axes=1), axes=1)
        values: Reals = _along(self.alone, normal) - correction
        return values

    @cached_property
    def reach_of_draws(self) -> tuple[float, float]:
        """The largest weight that a draw has in any sum of positions, and the largest sum of its absolute weights."""
        most, whole = 0.0, 0.0
        sums = self.weights[1:].astype(np.float64)
        for start in range(0, self.positions + len(sums), BLOCK):
            columns = np.zeros((self.positions, min(BLOCK, self.positions + len(sums) - start)))
            for place in range(columns.shape[1]):
                number = start + place
                if number < self.positions:
                    columns[number, place] = self.weights[0, number]
                else:
                    columns[:, place] = sums[number - self.positions]
            weights = _along(self.alone, columns) - self.shared.T @ (self.shared @ columns)
            above, below = np.maximum(weights, 0).sum(axis=0), np.maximum(-weights, 0).sum(axis=0)
            most = max(most, float(np.maximum(above, below).max()))
            whole = max(whole, float((above + below).max()))
        return most, whole

    @property
    def number(self) -> int:
        """A number below 0 that stands for these weights in tables."""
        return -1 - int.from_bytes(hashlib.sha256(self.weights.astype("<i8").tobytes()).digest()[:7], "little")


def weighted_line(weights: NDArray[np.int64]) -> WeightedLine:
    """The line of some weights, the same one for equal weights, so that what is known of it is computed once.

    Args:
        weights: see `WeightedLine`; shape (1 + sums, positions).
    """
    return _line_of(weights.astype("<i8").tobytes(), weights.shape[1])


@lru_cache(maxsize=16)
def _line_of(content: bytes, positions: int) -> WeightedLine:
    return WeightedLine(np.frombuffer(content, dtype="<i8").reshape(-1, positions).astype(np.int64))


def _along(weights: NDArray[np.int64] | Reals, numbers: Reals) -> Reals:
    """Weights times numbers along the first axis."""
    products: Reals = weights.reshape(-1, *[1] * (numbers.ndim - 1)) * numbers
    return products


@dataclass(frozen=True, eq=False)
class NoisyWeightedSums:
    """Weighted sums along every axis of a grid, each with independent noise. Unbiased and public.

    Attributes:
        values: whole numbers as float64, in C order of the numbers along each axis.
        lines: what is measured along each axis; with several, a number is weighted along all of them at once.
        scale: of the discrete Laplace noise in each number.
    """

    values: Reals
    lines: tuple[WeightedLine, ...]
    scale: Fraction

    @property
    def variance(self) -> float:
        """Variance of the noise in each number."""
        return noise_law(self.scale).variance

    @property
    def largest_weight(self) -> float:
        """A bound on the weight that a draw has in the estimate of any sum of cells.

        Along a line, take the weights of a draw that are above 0, and those below: the products over several axes that
        are above 0 sum to at most the larger of the two on one axis, times the sum of both on the others.
        """
        reaches = [line.reach_of_draws for line in self.lines]
        return min(
            most * math.prod(whole for other, (_, whole) in enumerate(reaches) if other != axis)
            for axis, (most, _) in enumerate(reaches)
        )

    def estimates(self) -> Reals:
        """Least squares estimates of the cells, float64, shape of the domain."""
        values = self.values.reshape([line.positions + len(line.weights) - 1 for line in self.lines])
        for axis, line in enumerate(self.lines):
            values = np.moveaxis(line.estimates(np.moveaxis(values, axis, 0)), 0, axis)
        return np.ascontiguousarray(values)


def lines_from_facts(facts: Sequence[dict[str, list[list[int]]]]) -> tuple[WeightedLine, ...]:
    """The lines of an audit, from a fact for each axis in declared order; see `facts_of_line`."""
    lines = []
    for fact in facts:
        (own, *sums) = fact["weights"]
        weights = np.zeros((1 + len(sums), len(own)), dtype=np.int64)
        weights[0] = own
        for row, (first, *some) in zip(weights[1:], sums, strict=True):
            row[first : first + len(some)] = some
        lines.append(weighted_line(weights))
    return tuple(lines)


def facts_of_line(line: WeightedLine) -> dict[str, list[list[int]]]:
    """A line as JSON values: the weights of each position by itself, then for each sum the first position that it has,
    and the weights from there to its last.
    """
    rows = [line.weights[0].tolist()]
    for row in line.weights[1:]:
        (there,) = np.nonzero(row)
        first, last = (int(there[0]), int(there[-1]) + 1) if there.size else (0, 0)
        rows.append([first, *row[first:last].tolist()])
    return {"weights": rows}
