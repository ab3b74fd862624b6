"""Published algorithms for ranges and boxes, as DPBench compares them, with noise of their own: for comparison only.

Δ is 1. DAWA's choice of buckets, as its authors code it, spends more than its share, the more the longer the line;
AGrid and UGrid know the number of records. So nothing here may be released. DAWA's first stage follows the authors'
code: a noisy deviation below 0 counts as 0, and a tie goes to the longer bucket. Its second stage is the tree over
buckets of least mean variance, as in our `dawa`, so that the two differ in their buckets: of less error for ranges than
the authors' weighted tree, of more for cells.
`check_peers` compares the errors with those of the authors' code.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numba  # type: ignore[import-untyped]
import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.trees.hilbert import hilbert_line
from dphist_pipeline.solvers.trees.regular_tree import RegularTree, best_tree, branching_tree, covariance, mean_variance
from dphist_pipeline.solvers.trees.tree_consistency import consistent, consistent_cells

Counts = NDArray[np.int64]
Reals = NDArray[np.float64]
DRAWS = np.random.default_rng()
DAWA_SHARE = 0.25


def identity(counts: Counts, epsilon: float) -> Reals:
    """Laplace noise in every cell."""
    return counts + DRAWS.laplace(0, 1 / epsilon, counts.shape)


def hierarchy(counts: Counts, epsilon: float) -> Reals:
    """HB (Qardaji, Yang, Li 2013): a whole tree of the branching that is best for all boxes, least squares."""
    return _fitted(counts, _whole_tree(counts.shape), epsilon)


@lru_cache
def _whole_tree(shape: tuple[int, ...]) -> RegularTree:
    trees = [branching_tree(shape, branching) for branching in range(2, 17)]
    return min(
        trees, key=lambda tree: mean_variance(tree, covariance(tree, [len(tree.widths) ** 2] * len(tree.widths)))
    )


def _fitted(counts: Counts, tree: RegularTree, epsilon: float) -> Reals:
    scale = len(tree.widths) / epsilon
    measured = []
    for level in range(len(tree.widths)):
        exact = np.bincount(tree.nodes[level].ravel(), weights=counts.ravel())
        measured.append(exact + DRAWS.laplace(0, scale, exact.size))
    return consistent_cells(tree, measured, [1.0] * len(measured))


class PublishedDAWA:
    """DAWA (Li, Hay, Miklau, Wang 2014): deviations from means of all buckets whose length is a power of two."""

    def __init__(self, counts: Counts) -> None:
        self.shape, self.line = counts.shape, hilbert_line(counts.shape)
        self.counts = counts.ravel()[self.line]
        self.lengths = 2 ** np.arange(int(math.log2(counts.size)) + 1)
        self.deviations = np.full((self.lengths.size, counts.size), np.inf)
        for row, length in enumerate(self.lengths.tolist()):
            _deviations(self.counts.astype(np.float64), length, self.deviations[row])

    def __call__(self, epsilon: float) -> Reals:
        first, second = DAWA_SHARE * epsilon, (1 - DAWA_SHARE) * epsilon
        noisy = self.deviations + DRAWS.laplace(0, 2 / first, self.deviations.shape)
        noisy[0] = 0.0  # single cells have no noise
        starts = _cheapest(np.maximum(noisy, 0.0) + 1 / second, self.lengths)
        sizes = np.diff(starts, append=self.counts.size)
        fitted = _fitted(np.add.reduceat(self.counts, starts), best_tree((starts.size,)), second)
        values = np.empty(self.counts.size)
        values[self.line] = np.repeat(fitted / sizes, sizes)
        return values.reshape(self.shape)


@numba.njit(fastmath=True)
def _deviations(counts: Reals, length: int, found: Reals) -> None:
    total = counts[:length].sum()
    for start in range(counts.size - length + 1):
        mean, away = total / length, 0.0
        for cell in range(start, start + length):
            away += abs(counts[cell] - mean)
        found[start] = away
        if start + length < counts.size:
            total += counts[start + length] - counts[start]


@numba.njit
def _cheapest(costs: Reals, lengths: Counts) -> Counts:
    """The starts of the buckets of least summed cost."""
    cells = costs.shape[1]
    best, last = np.full(cells + 1, np.inf), np.zeros(cells + 1, dtype=np.int64)
    best[0] = 0.0
    for end in range(1, cells + 1):
        for row in range(lengths.size):
            start = end - lengths[row]
            if start >= 0 and best[start] + costs[row, start] <= best[end]:
                best[end], last[end] = best[start] + costs[row, start], start
    starts = np.zeros(cells, dtype=np.int64)
    many, end = 0, cells
    while end > 0:
        end = last[end]
        starts[many] = end
        many += 1
    return starts[:many][::-1].copy()


def uniform_grid(counts: Counts, epsilon: float) -> Reals:
    """UGrid (Qardaji, Yang, Li 2013), the number of records known: √(N·ε/10) parts along each axis."""
    parts = max(1, round(math.sqrt(counts.sum() * epsilon / 10)))
    boxes = _boxes(counts.shape, parts)
    sums = np.bincount(boxes.ravel(), weights=counts.ravel())
    sizes = np.bincount(boxes.ravel())
    return ((sums + DRAWS.laplace(0, 1 / epsilon, sums.size)) / sizes)[boxes]


def adaptive_grid(counts: Counts, epsilon: float) -> Reals:
    """AGrid (Qardaji, Yang, Li 2013), the number of records known; box by box."""
    first = _boxes(counts.shape, max(10, math.ceil(math.sqrt(counts.sum() * epsilon / 10) / 4)))
    half = epsilon / 2
    upper = np.bincount(first.ravel(), weights=counts.ravel())
    upper += DRAWS.laplace(0, 1 / half, upper.size)
    second, parents = np.empty(counts.shape, dtype=np.int64), []
    for box in range(upper.size):
        rows, columns = np.nonzero(first == box)
        inside = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
        parts = _boxes(second[inside].shape, max(1, math.ceil(math.sqrt(max(upper[box], 0) * half / 5))))
        second[inside] = parts + len(parents)
        parents += [box] * (int(parts.max()) + 1)
    lower = np.bincount(second.ravel(), weights=counts.ravel())
    lower += DRAWS.laplace(0, 1 / half, lower.size)
    leaves = consistent([upper, lower], [np.array(parents)])[-1]
    return (leaves / np.bincount(second.ravel()))[second]


def _boxes(shape: tuple[int, ...], parts: int) -> Counts:
    rows, columns = (np.arange(side) * min(parts, side) // side for side in shape)
    return rows[:, None] * (int(columns.max()) + 1) + columns


def peers_of(counts: Counts) -> dict[str, Callable[[float], Reals]]:
    """The published algorithms that serve a line or a grid of two axes, each a function of epsilon."""
    found: dict[str, Callable[[float], Reals]] = {
        "Identity": lambda epsilon: identity(counts, epsilon),
        "HB": lambda epsilon: hierarchy(counts, epsilon),
        "DAWA": PublishedDAWA(counts),
    }
    if counts.ndim == 2:
        found["UGrid"] = lambda epsilon: uniform_grid(counts, epsilon)
        found["AGrid"] = lambda epsilon: adaptive_grid(counts, epsilon)
    return found
