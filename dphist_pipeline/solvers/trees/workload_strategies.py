"""Strategies for a workload on a line of cells: which weighted sums to measure so that its answers carry little noise.

A strategy measures every cell by itself, and some weighted sums of cells besides (a "p-identity" strategy: McKenna,
Miklau, Hay, Machanavajjhala. Optimizing error of high-dimensional statistical queries under differential privacy.
PVLDB 2018). A record in a cell moves the numbers by the cell's weights, which are whole and add up to `TOTAL` in every
cell. So the noise is the same whatever is measured, and the least squares answers to the workload differ in precision
alone: that is minimised here, from the declared cells and the workload, without any count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.kept_numbers import kept_numbers

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
Range = tuple[int, int, float]  # first cell, the cell after the last, weight

TOTAL = 256
TOTALS_BY_AXES, TOTAL_OF_MANY_AXES = {1: TOTAL, 2: 64, 3: 32}, 16
CELLS_A_SUM = 18
MOST_NARROW = 128
NARROW_FOR_A_WIDE = 15
ONE_TRIAL = 512
WORTH = 0.99
KEPT_FROM = 256
MEMORY = 12
MOST_STEPS = 150
GOOD_ENOUGH = 2e-5
FARTHEST = 100.0
# Every cell is published. Without this part of the weight, cells that no query tells apart had up to 200 times the
# variance, and queries from 0.6 to 1.25 times.
SINGLE_CELLS = 0.03


@dataclass(frozen=True, eq=False)
class Gram:
    """The matrix V of a workload on a line: V[i, j] is the weighted number of its queries that hold both cells.

    Attributes:
        times: rows of numbers times V, shape (rows, cells) to the same shape.
        diagonal: of V, shape (cells,).
    """

    times: Callable[[Reals], Reals]
    diagonal: Reals
    queries: float


@lru_cache(maxsize=64)
def weights_along(
    workload: str, cells: int, total: int = TOTAL, length: int = 0, queries: tuple[Range, ...] = ()
) -> Numbers:
    """The weights of a strategy along an axis: a function of the declared questions and the number of cells alone.

    Args:
        workload: `ranges` or `boxes`, `prefixes`, `windows` of a `length`, or `file` with `queries`, perhaps none
            along this axis.
        total: what the weights of a cell add up to.

    Returns:
        Shape (1 + sums, cells): of each cell by itself, then of the sums.
    """
    if workload == "file" and not queries:
        return np.ones((1, cells), dtype=np.int64)

    def search() -> Numbers:
        return np.vstack(strategy_for(_gram_of(workload, cells, length, queries), total))

    # On 1,000 cells the search takes seconds, in every process that checks, forecasts or releases.
    return search() if cells < KEPT_FROM else kept_numbers(__file__, (workload, cells, total, length, queries), search)


def total_along(axes: int) -> int:
    """What the weights of a position add up to along each of some axes; the scale of the noise is their product."""
    return TOTALS_BY_AXES.get(axes, TOTAL_OF_MANY_AXES)


def _gram_of(workload: str, cells: int, length: int, queries: tuple[Range, ...]) -> Gram:
    if workload == "file":
        low, high, weight = (np.array(part) for part in zip(*queries, strict=True))
        single = np.arange(cells)
        each = np.full(cells, SINGLE_CELLS * weight.sum() / cells)
        ends = np.append(low, single), np.append(high, single + 1)
        return gram_of_queries(*ends, np.append(weight, each), cells)
    if workload == "prefixes":
        return gram_of_prefixes(cells)
    if workload == "windows":
        return gram_of_windows(cells, min(cells, length))
    return gram_of_ranges(cells)


def gram_of_ranges(cells: int) -> Gram:
    """The Gram matrix of all ranges of a line: V[i, j] = (min(i, j) + 1) · (cells - max(i, j))."""
    start = np.arange(1.0, cells + 1)
    return Gram(lambda rows: _separable(rows, start, start[::-1]), start * start[::-1], cells * (cells + 1) / 2)


def gram_of_prefixes(cells: int) -> Gram:
    """The Gram matrix of all ranges that start at the first cell: V[i, j] = cells - max(i, j)."""
    after = np.arange(float(cells), 0, -1)
    return Gram(lambda rows: _separable(rows, np.ones(cells), after), after, cells)


def gram_of_windows(cells: int, length: int) -> Gram:
    """The Gram matrix of all ranges of one length, from 1 to `cells`."""

    def times(rows: Reals) -> Reals:
        sums = np.pad(np.cumsum(rows, axis=1), ((0, 0), (1, 0)))
        windows = sums[:, length:] - sums[:, :-length]
        cumulative = np.pad(np.cumsum(windows, axis=1), ((0, 0), (1, 0)))
        cell = np.arange(cells)
        last, first = np.minimum(cell + 1, windows.shape[1]), np.maximum(cell - length + 1, 0)
        products: Reals = cumulative[:, last] - cumulative[:, first]
        return products

    cell, windows = np.arange(cells), cells - length + 1
    covered = np.minimum(cell + 1, windows) - np.maximum(cell - length + 1, 0)
    return Gram(times, covered.astype(np.float64), windows)


def gram_of_queries(low: Numbers, high: Numbers, weights: Reals, cells: int) -> Gram:
    """The Gram matrix of half-open ranges, each with a weight; O(cells²) numbers.

    Args:
        low, high: ends of each range, in cells, shape (queries,).
        weights: likewise, above 0.
    """
    both = np.zeros((cells + 1, cells + 1))
    for one, other, sign in ((low, low, 1), (low, high, -1), (high, low, -1), (high, high, 1)):
        np.add.at(both, (one, other), sign * weights)
    matrix = both.cumsum(axis=0).cumsum(axis=1)[:cells, :cells]
    return Gram(lambda rows: rows @ matrix, matrix.diagonal().copy(), float(weights.sum()))


def _separable(rows: Reals, below: Reals, above: Reals) -> Reals:
    """Rows times the matrix below[min(i, j)] · above[max(i, j)]."""
    left = np.cumsum(rows * below, axis=1)
    weighted = rows * above
    right = weighted.sum(axis=1, keepdims=True) - np.cumsum(weighted, axis=1)
    products: Reals = left * above + right * below
    return products


def strategy_for(gram: Gram, total: int = TOTAL) -> tuple[Numbers, Numbers]:
    """Whole weights of little mean variance over a workload, which add up to `total` in each cell.

    O(steps · sums² · cells) with about one sum for 18 cells, at most 137: some 6 seconds for 4,096 cells.

    Returns:
        The weight of every cell by itself, at least 1, shape (cells,), and of the cells in each sum, shape
        (sums, cells). Without sums and with weights of 1 where sums do not pay.
    """
    cells = gram.diagonal.size
    best = np.ones(cells, dtype=np.int64), np.zeros((0, cells), dtype=np.int64)
    least = WORTH * mean_variance(*best, gram)
    narrow = min(MOST_NARROW, -(-cells // CELLS_A_SUM))  # sums to start with
    for fine in [narrow] if cells > ONE_TRIAL else sorted({narrow, max(1, narrow // 2), 2 * narrow}):
        theta = _descend(lambda point: _error(point, gram), _start(fine, cells)) ** 2
        weights = _whole(np.vstack([np.ones(cells), theta]) / (1 + theta.sum(axis=0)), total)
        strategy = weights[0], weights[1:][weights[1:].any(axis=1)]
        variance = mean_variance(*strategy, gram)
        if variance < least:
            best, least = strategy, variance
    return best


def mean_variance(own: Numbers, sums: Numbers, gram: Gram) -> float:
    """The mean variance of the least squares answers to a workload, where the noise of a cell's counts alone has 1.

    Args:
        own, sums: see `strategy_for`.
    """
    total = (own + sums.sum(axis=0)).max()
    inverse = 1.0 / own**2
    weighted = sums * inverse
    against = gram.times(weighted)
    kernel = np.linalg.inv(np.eye(len(sums)) + weighted @ sums.T)
    saved = np.einsum("ij,ij->", kernel @ weighted, against)
    return float(total**2 * ((gram.diagonal * inverse).sum() - saved) / gram.queries)


def _start(fine: int, cells: int) -> Reals:
    """Roots of weights: overlapping triangles, some narrow and few wide, and a little of everything."""
    triangles = []
    for parts in (fine, fine // NARROW_FOR_A_WIDE):
        middles = (np.arange(parts) + 0.5) * cells / max(1, parts)
        apart = np.abs(np.arange(cells) + 0.5 - middles[:, None]) * parts / cells
        triangles.append(0.48 * np.maximum(0.0, 1 - apart))
    roots: Reals = np.sqrt(np.concatenate(triangles) + 0.01)
    return roots


def _error(root: Reals, gram: Gram) -> tuple[float, Reals]:
    """The mean variance over the workload in units of the noise's, and its derivative by the roots of weights.

    With T the weights of the sums relative to those of single cells, s = 1 + its column sums, G = diag(s) V diag(s) and
    K = (I + T·Tᵀ)⁻¹, it is trace(G) - trace(K·T·G·Tᵀ), by the formula of Woodbury.
    """
    theta = root**2
    scale = 1 + theta.sum(axis=0)
    against = gram.times(theta * scale) * scale
    kernel = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)
    shrunk, answered = kernel @ theta, kernel @ against
    single, saved = gram.diagonal * scale**2, np.einsum("ij,ij->j", shrunk, against)
    slope = 2 / scale * (single - saved) - 2 * (answered - (answered @ theta.T) @ shrunk)
    return float(single.sum() - saved.sum()) / gram.queries, 2 * root * slope / gram.queries


def _descend(function: Callable[[Reals], tuple[float, Reals]], point: Reals) -> Reals:
    """A local minimum of a smooth function near a point of any shape: the quasi-Newton method L-BFGS, halved steps."""
    value, slope = function(point)
    moves: list[tuple[Reals, Reals, float]] = []
    past = [value]
    for _ in range(MOST_STEPS):
        direction = _downhill(slope, moves)
        fall = float(np.vdot(direction, slope))
        step = 1.0 if moves else 0.1 / max(1e-300, float(np.abs(slope).max()))
        # Where the value hardly bends, a step could leave the range of floating point.
        step = min(step, FARTHEST / max(1e-300, float(np.abs(direction).max())))
        while True:
            there = point + step * direction
            lower, steeper = function(there)
            if lower <= value + 1e-4 * step * fall:
                break
            step /= 2
            if step < 1e-12:
                return point
        curved = float(np.vdot(there - point, steeper - slope))
        if curved > 0:
            moves = [*moves[-MEMORY + 1 :], (there - point, steeper - slope, curved)]
        point, value, slope = there, lower, steeper
        past.append(value)
        if len(past) > 10 and past[-11] - value < 10 * GOOD_ENOUGH * value:
            break
    return point


def _downhill(slope: Reals, moves: list[tuple[Reals, Reals, float]]) -> Reals:
    """Minus the slope, times the inverse second derivative that the last moves tell."""
    direction, parts = -slope, []
    for moved, turned, curved in reversed(moves):
        parts.append(float(np.vdot(moved, direction)) / curved)
        direction = direction - parts[-1] * turned
    if moves:
        _, turned, curved = moves[-1]
        direction = direction * (curved / float(np.vdot(turned, turned)))
    for (moved, turned, curved), part in zip(moves, reversed(parts), strict=True):
        direction = direction + (part - float(np.vdot(turned, direction)) / curved) * moved
    return direction


def _whole(parts: Reals, total: int) -> Numbers:
    """Whole numbers near the parts times `total`, which they sum to in each column; the first row is at least 1."""
    wanted = parts * total
    weights = np.floor(wanted).astype(np.int64)
    weights[0] = np.maximum(weights[0], 1)
    # What is left of each column goes to its largest fractions, ties to the first row.
    left = total - weights.sum(axis=0)
    order = np.argsort(np.where(weights > wanted, -1.0, wanted - weights), axis=0, kind="stable")[::-1]
    rank = np.argsort(order, axis=0)
    weights += rank < left
    weights[np.argmax(weights, axis=0), np.arange(weights.shape[1])] += np.minimum(left, 0)
    return weights
