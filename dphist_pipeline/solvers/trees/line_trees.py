"""Trees along every axis of a grid, with levels that are measured as precisely as declared questions need; multiplied.

Along an axis, a level cuts the positions into nodes of equal width; the widths of a level divide those of the level
above, and the last nodes are single positions. With several axes, a box of the grid is a node along each axis, for
every combination of levels. A share is the part of the budget that a level gets: noise has a variance in proportion to
1 / share².

Estimates. B_l is 1 for two positions of the same node of level l, N_l is the width, P_l = B_l / N_l, and the
E_l = P_l - P_(l-1) are orthogonal projections (see `regular_tree`). With several axes, let l be a combination of
levels, and B_l, N_l, E_l and the share a_l products over the axes. Least squares with weights of a_l² have the normal
equations Σ a_l² B_l = Σ p_l E_l, with p_l = Σ a_k² N_k over all k that are at least l along every axis. So estimates
are Σ E_l / p_l, times Σ a_k² y_k, where every cell has its box's draw y_k. Any Σ e_l E_l is Σ c_l B_l, where c_l is
the difference of e along every axis in turn, each over the width there.

Covariance. Let v_k be the true variance of a draw, 1 / a_k² times a constant but for rounding to whole numbers.
What stands behind the first sum has the covariance Σ a_k⁴ v_k B_k = Σ r_l E_l with r_l = Σ a_k⁴ v_k N_k, so the
estimates have Σ r_l / p_l² E_l. It is exact whatever the v_k are. Where a width does not divide an axis, the last nodes
reach into padding that is known to be empty and weighted as if it were measured: then variances are upper bounds.

Weights. Along an axis, a draw of node v weighs a_l² · Σ c_l (common positions) in the estimate of a sum. As c_l < 0
above the positions, it is largest for the sum of the positions in v, and at most 1. Estimates of a grid are those of
its axes multiplied, and a box is a sum along each axis: so the largest weights in a box are products.

The search for shares uses sums, products and quotients of Python's floats in a fixed order, so every machine finds the
same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.trees.regular_tree import RegularTree, mean_square

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
TOTAL = 256
WHOLE_GRID = 16  # of the total, for the box of all cells
BASES = (2, 3, 10)  # widths are powers of one of these
MOST_SKIPPED, MOST_TOPS, FIRST_STEP = 6, 8, 32
BETTER = 1 - 1e-9  # what is nearer to 1 is a tie: it goes to the candidate that came first


@dataclass(frozen=True)
class LineTree:
    """The levels along an axis that are measured.

    Attributes:
        widths: of the nodes of each level, from the top; the last is 1.
        shares: of each level, whole numbers above 0 that add up to `TOTAL`.
    """

    size: int
    widths: tuple[int, ...]
    shares: tuple[int, ...]

    @property
    def padded(self) -> int:
        """Positions that the nodes of the first level hold, padding included."""
        return -(-self.size // self.widths[0]) * self.widths[0]


def range_squares(size: int) -> Callable[[int], float]:
    """For a width, the mean over all ranges of a line of Σ (positions of the range in a node)²."""
    return lambda width: mean_square(size, width)


def query_squares(low: Numbers, high: Numbers, weights: Reals | None = None) -> Callable[[int], float]:
    """The same for declared half-open ranges, by their weights.

    Args:
        low, high: ends of each range, shape (queries,), low below high.
        weights: likewise, above 0; None where all count alike.
    """

    def mean(width: int) -> float:
        first, last = low // width, (high - 1) // width
        left, right = width - low % width, (high - 1) % width + 1
        across = left * left + (last - first - 1) * width * width + right * right
        squares = np.where(first == last, (high - low) ** 2, across)
        if weights is None:
            return int(squares.sum()) / low.size
        return math.fsum((weights * squares).tolist()) / math.fsum(weights.tolist())

    return mean


def line_tree(size: int, squares: Callable[[int], float]) -> LineTree:
    """The levels and shares of small mean variance over some questions along an axis, see `range_squares`.

    Widths are powers of 2, 3 or 10. From several choices of levels, whole parts of the budget move between levels, to
    levels that had none, too, as long as that helps. A second or two for 10^6 positions.
    """
    least, best = math.inf, LineTree(size, (1,), (TOTAL,))
    for base in BASES:
        widths = [1]
        while widths[0] * base < size:
            widths.insert(0, widths[0] * base)
        each = [squares(width) / width for width in widths]
        gains = [each[0], *(below - above for above, below in pairwise(each))]  # weights of 1 / p in the mean variance
        for shares in _starts(len(widths)):
            variance = _improve(widths, gains, shares)
            if variance < least * BETTER:
                levels = [(width, share) for width, share in zip(widths, shares, strict=True) if share]
                least, best = variance, LineTree(size, *map(tuple, zip(*levels, strict=True)))
    return best


def weighed_levels(tree: RegularTree) -> tuple[RegularTree, tuple[int, ...]]:
    """A tree of boxes with a share for each level, whole parts above 0 of `TOTAL`, chosen for boxes of sparse grids.

    Widths of the given tree are powers of 2, and stay so.

    One box of all cells gets `WHOLE_GRID`: means that are drawn towards what is likely add up to a total that errs
    more than its own noise. The other levels share the rest so that the mean variance over all boxes of cells is small;
    a level that the search leaves out is not measured. Where all cells hold records, V cells of a box are known as V
    numbers. Most cells of large grids are empty and known to be, so there are taken to be V^(7/8).
    """
    volumes, shape = tree.volumes, tree.shape
    if len(volumes) == 1:
        return tree, (TOTAL,)
    squares = [
        math.prod(mean_square(size, width) for size, width in zip(shape, widths, strict=True)) for widths in tree.widths
    ]
    each = [square / volume for square, volume in zip(squares, volumes, strict=True)]
    gains = [each[0], *(below - above for above, below in pairwise(each))]
    shares = [TOTAL // len(volumes)] * len(volumes)
    shares[-1] += TOTAL - sum(shares)
    _improve([volume / math.sqrt(math.sqrt(math.sqrt(volume))) for volume in volumes], gains, shares)
    levels = [(widths, share) for widths, share in zip(tree.widths, shares, strict=True) if share]
    if math.prod(tree.grid(0)) == 1:
        return RegularTree(shape, tuple(widths for widths, _ in levels)), tuple(share for _, share in levels)
    wide = tuple(1 << (size - 1).bit_length() for size in shape)
    below = [share * (TOTAL - WHOLE_GRID) // TOTAL for _, share in levels]
    below[-1] += TOTAL - WHOLE_GRID - sum(below)
    return RegularTree(shape, (wide, *(widths for widths, _ in levels))), (WHOLE_GRID, *below)


def largest_weights(tree: RegularTree, coefficients: Sequence[float], variances: Sequence[float]) -> list[float]:
    """For each level, the largest weight that a draw of it has in the estimate of a box of cells; at most 1.

    Args:
        coefficients: c_l of each level; see `regular_tree.covariance`.
        variances: of the measurement of a node of each level, in records squared.
    """
    boxes = zip(tree.volumes, tree.widths, variances, strict=True)
    return [
        math.fsum(
            part * volume * math.prod(map(min, widths, wide))
            for part, wide in zip(coefficients, tree.widths, strict=True)
        )
        / variance
        for volume, widths, variance in boxes
    ]


def _starts(levels: int) -> Iterator[list[int]]:
    """Equal shares for every k-th level from the last, without some upper ones."""
    for every, top in product(range(1, MOST_SKIPPED + 1), range(MOST_TOPS)):
        levels_measured = [level for level in range(levels) if (levels - 1 - level) % every == 0 and level >= top]
        if levels_measured and (every == 1 or len(levels_measured) > 1):
            shares = [TOTAL // len(levels_measured) if level in levels_measured else 0 for level in range(levels)]
            shares[-1] += TOTAL - sum(shares)
            yield shares


def _mean_variance(volumes: Sequence[float], gains: Sequence[float], shares: Sequence[int]) -> float:
    precision = variance = 0.0
    for level in range(len(volumes) - 1, -1, -1):
        precision += volumes[level] * shares[level] ** 2
        variance += gains[level] / precision
    return variance * TOTAL**2


def _improve(volumes: Sequence[float], gains: Sequence[float], shares: list[int]) -> float:
    """Moves parts between levels, the best move first, large parts first; the last level keeps at least one."""
    least, step = _mean_variance(volumes, gains, shares), FIRST_STEP
    while step:
        moves = []
        for giver, taker in product(range(len(shares)), repeat=2):
            part = min(step, shares[giver] - (giver == len(shares) - 1))
            if giver != taker and part > 0:
                tried = list(shares)
                tried[giver] -= part
                tried[taker] += part
                moves.append((_mean_variance(volumes, gains, tried), tried))
        variance, best = min(moves, default=(math.inf, shares))
        if variance < least * BETTER:
            least, shares[:] = variance, best
        else:
            step //= 2
    return least


@dataclass(frozen=True)
class TreeProduct:
    """All combinations of the levels of several axes, in C order."""

    lines: tuple[LineTree, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Positions along each axis."""
        return tuple(line.size for line in self.lines)

    @property
    def levels(self) -> tuple[int, ...]:
        """How many levels each axis has."""
        return tuple(len(line.widths) for line in self.lines)

    @property
    def widths(self) -> list[tuple[int, ...]]:
        """How many positions a box of every combination has along each axis."""
        return list(product(*(line.widths for line in self.lines)))

    @property
    def shares(self) -> list[int]:
        """The share of every combination; they add up to `TOTAL` to the power of the number of axes."""
        return [math.prod(shares) for shares in product(*(line.shares for line in self.lines))]

    @property
    def boxes(self) -> Sequence[Numbers]:
        """For every combination the box number of every cell, shape of the grid; each is made when it is asked for."""
        return _Boxes(self)

    def covariance(self, variances: Sequence[float]) -> list[float]:
        """For every combination, what two cells in the same box of it add to their covariance, in records squared."""
        noise = [share**4 * variance for share, variance in zip(self.shares, variances, strict=True)]
        return self._shared(self._precisions(noise) / self._precisions([share**2 for share in self.shares]) ** 2)

    def largest_weights(self) -> list[float]:
        """The largest weight that a draw of every combination has in the estimate of a box."""
        along = []
        for line in self.lines:
            parts = list(zip(line.widths, TreeProduct((line,))._estimator(), strict=True))
            reach = [math.fsum(part * width * min(width, wide) for wide, part in parts) for width in line.widths]
            along.append([share**2 * mine for share, mine in zip(line.shares, reach, strict=True)])
        return [math.prod(weights) for weights in product(*along)]

    def estimates(self, measured: Sequence[Reals]) -> Reals:
        """The least squares estimate of every cell from the combinations' draws in C order; O(cells · combinations)."""
        padded = tuple(line.padded for line in self.lines)
        sums = np.zeros(padded)
        for widths, values, share in zip(self.widths, measured, self.shares, strict=True):
            boxes = np.zeros([side // width for side, width in zip(padded, widths, strict=True)])
            some = tuple(-(-size // width) for size, width in zip(self.shape, widths, strict=True))
            boxes[tuple(map(slice, some))] = values.reshape(some)
            _add_to_cells(sums, boxes, share**2)
        cells = np.zeros(padded)
        for widths, part in zip(self.widths, self._estimator(), strict=True):
            _add_to_cells(cells, _sums(sums, widths), part)
        return np.ascontiguousarray(cells[tuple(map(slice, self.shape))])

    def _estimator(self) -> list[float]:
        """c_l of the inverse of the normal equations."""
        return self._shared(1 / self._precisions([share**2 for share in self.shares]))

    def _precisions(self, rates: Sequence[float]) -> Reals:
        """Σ rate · N over the combinations that are at least as low along every axis, shape (levels of each axis)."""
        volumes = [math.prod(widths) for widths in self.widths]
        grid = np.reshape([rate * volume for rate, volume in zip(rates, volumes, strict=True)], self.levels)
        for axis in range(grid.ndim):
            grid = np.flip(np.cumsum(np.flip(grid, axis), axis), axis)
        return grid.astype(np.float64)

    def _shared(self, spreads: Reals) -> list[float]:
        """The c_l of Σ e_l E_l."""
        for axis, line in enumerate(self.lines):
            widths = np.array(line.widths).reshape([-1 if at == axis else 1 for at in range(spreads.ndim)])
            spreads = -np.diff(spreads, axis=axis, append=np.zeros_like(spreads.take([0], axis))) / widths
        coefficients: list[float] = spreads.ravel().tolist()
        return coefficients


@dataclass(frozen=True)
class _Boxes(Sequence[Numbers]):
    trees: TreeProduct

    def __len__(self) -> int:
        return math.prod(self.trees.levels)

    def __getitem__(self, number: Any) -> Any:
        shape = self.trees.shape
        return RegularTree(shape, (self.trees.widths[number], (1,) * len(shape))).nodes[0]


def _sums(cells: Reals, widths: Sequence[int]) -> Reals:
    for axis, width in enumerate(widths):
        if width > 1:
            cells = np.add.reduceat(cells, np.arange(0, cells.shape[axis], width), axis=axis)
    return cells


def _add_to_cells(cells: Reals, boxes: Reals, times: float) -> None:
    """Adds the number of its box, so many times, to every cell."""
    # Boxes along the even axes, the cells in a box along the odd ones.
    sides = zip(cells.shape, boxes.shape, strict=True)
    view = cells.reshape([part for side, many in sides for part in (many, side // many)])
    view += times * boxes.reshape([part for many in boxes.shape for part in (many, 1)])
