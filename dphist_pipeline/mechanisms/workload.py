"""Workload: noisy weighted sums that are chosen for declared questions, such as all ranges or boxes, before any count.

Paper:    McKenna, Miklau, Hay, Machanavajjhala. Optimizing error of high-dimensional statistical queries under
          differential privacy. PVLDB 2018: their "p-identity" strategies, every cell and some weighted sums besides,
          one for each axis, multiplied. Here the weights are whole numbers, which add up to the same total in every
          cell, so that the noise is calibrated exactly. Where an axis is longer than 4,096 cells, trees along every
          axis with chosen shares of epsilon for their levels, multiplied: their optimised hierarchies.
Privacy:  epsilon on `noisy_weighted_sums`, or, with a long axis, on `noisy_tree`: a record lies in one box of every
          combination of levels, and the shares of these add up to 1. Weights and shares follow from the declared grid
          and questions alone; a file of queries is public, and part of the spec that is charged. Least squares reads
          only noisy sums, so it is free.
Domain:   any number of axes, ordered, up to 1,048,576 cells each. Mean variance of all ranges of 256 / 1,024 / 4,096
          cells, in (sensitivity / epsilon) squared: 65.5 / 122 / 206; `boost` has 79 / 156 / 260. Below some 20 cells
          noisy cells are as good for ranges. Questions are averaged: narrow ones get more noise than by `geometric`.
          Above 4,096 cells overlapping sums are lost: all ranges of 65,536 / 1,048,576 cells have 614 / 1,193, as by
          `boost` (616 / 1,196); at 4,096 cells trees would have 261. Prefixes and boxes still gain over `boost`.
Cost:     The search for weights takes a second for an axis of 1,024 cells and some 6 seconds for 4,096, by a file of
          queries up to half a minute; for trees 1 to 10 seconds. The rest is O(cells · sums along an axis), with trees
          O(cells · combinations of levels).
Bars:     on the estimates, which are unbiased, and on every box of cells: the variance is exact, or with trees a tight
          bound if their last nodes reach beyond the cells; the interval is 95 % by a calibrated factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PlainSerializer
from pydantic_core import PydanticCustomError

from dphist_pipeline.base.canonical_json import sha256
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import LARGEST_SCALE, Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import Scales
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, SharedNoise
from dphist_pipeline.mechanisms import BadSetting, DomainRefused, Mechanism, Setting

if TYPE_CHECKING:
    from dphist_pipeline.solvers.trees import line_trees

# Above so many cells on an axis, the search for weights is too long, and levels of trees are weighed.
MOST_WEIGHTED, MOST_ON_AN_AXIS = 4096, 1 << 20

Range = tuple[int, int, float]  # first cell, the cell after the last, weight


def _refuse_path(queries: object) -> object:
    if isinstance(queries, str):
        raise PydanticCustomError("path", "is read from a file where a spec names it; here it takes rows of numbers")
    return queries


def _digest(queries: object) -> str:
    """The digest of queries, which are too many to print in settings; the audit has them."""
    return f"sha256:{sha256(queries)}" if queries else ""


_Cell = Annotated[int, Field(ge=0)]
_Weight = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]
Queries = Annotated[
    tuple[tuple[_Cell, _Cell, _Cell, _Weight], ...], BeforeValidator(_refuse_path), PlainSerializer(_digest)
]


@dataclass(frozen=True)
class Workload(Mechanism):
    """Settings:"""

    workload: Annotated[
        Literal["ranges", "boxes", "prefixes", "windows", "file"],
        Setting(
            "the questions that shall be answered well: `ranges` (all of an axis; with several axes, all boxes), "
            "`boxes` (the same), `prefixes` (all that begin at the first cell), `windows` (all of `length` cells along "
            "every axis; of the whole axis where it has fewer), or `file` (those of `queries`; single cells count, "
            "too, for 3 %)."
        ),
    ] = "ranges"
    length: Annotated[int, Field(ge=1), Setting("of `windows`, in cells.")] = 7
    queries: Annotated[
        Queries,
        Setting(
            "for `file`: in a spec, a public file with the columns axis, from, to and weight; in Python, rows of the "
            "number of an axis, its first cell, the cell after its last, and a weight. They are combined to boxes; an "
            "axis without queries is asked cell by cell."
        ),
    ] = ()

    def __post_init__(self) -> None:
        if self.workload == "file" and not self.queries:
            raise BadSetting("workload", "workload", "`file` needs `queries`, the file, such as codes/queries.csv")
        if self.workload != "file" and self.queries:
            raise BadSetting("workload", "queries", f"needs `workload: file`, not {self.workload}")

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses axes that are too long for the search, queries outside of them, and noise that cannot be drawn."""
        if max(domain.shape) > MOST_ON_AN_AXIS:
            raise DomainRefused("workload", f"serves axes of at most {MOST_ON_AN_AXIS:,} cells")
        ends = dict(enumerate(domain.shape))
        if not all(low < high <= ends.get(axis, 0) for axis, low, high, _ in self.queries):
            raise DomainRefused("workload", "has a query that is no range of cells along an axis of this grid")
        largest = self._largest_scale(domain) * sensitivity / epsilon
        if largest > LARGEST_SCALE:
            least = float(epsilon * largest / LARGEST_SCALE)
            raise DomainRefused("workload", f"needs an epsilon of at least {least:.2g} for these axes")

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy weighted sums, or sums of the boxes of trees, then the least squares estimate of the cells."""
        unbiased: NestedCells | NoisyCells
        if _is_long(counts.domain):
            unbiased = _from_trees(self._trees(counts.domain), counts, budget)
        else:
            from dphist_pipeline.solvers.trees import workload_strategies as strategies

            total = strategies.total_along(len(counts.domain.axes))
            lines = [
                strategies.weights_along(self.workload, size, total, self.length, queries)
                for queries, size in zip(self._queries_by_axis(counts.domain), counts.domain.shape, strict=True)
            ]
            unbiased = NestedCells.of_weighted_sums(counts.noisy_weighted_sums(lines, budget))
        return Estimate(counts.domain, unbiased.values, budget.charges, unbiased=unbiased)

    def _queries_by_axis(self, domain: Domain) -> list[tuple[Range, ...]]:
        """The queries of a file along each axis."""
        return [tuple(ask[1:] for ask in self.queries if ask[0] == axis) for axis, _ in enumerate(domain.axes)]

    def _trees(self, domain: Domain) -> line_trees.TreeProduct:
        from dphist_pipeline.solvers.trees import line_trees

        queries = zip(self._queries_by_axis(domain), domain.shape, strict=True)
        return line_trees.TreeProduct(tuple(_tree(self.workload, self.length, one, size) for one, size in queries))

    def _largest_scale(self, domain: Domain) -> Fraction:
        """The largest scale of the noise in a number, times epsilon over the sensitivity."""
        from dphist_pipeline.solvers.trees import workload_strategies as strategies

        if not _is_long(domain):
            return Fraction(strategies.total_along(len(domain.axes)) ** len(domain.axes))
        shares = self._trees(domain).shares
        return Fraction(sum(shares), min(shares))


def _is_long(domain: Domain) -> bool:
    return max(domain.shape) > MOST_WEIGHTED


def _from_trees(trees: line_trees.TreeProduct, counts: PrivateCounts, budget: Budget) -> NestedCells | NoisyCells:
    """The least squares estimate of the cells from noisy sums of the boxes of all combinations of levels.

    Draws have different scales. A draw of scale b that has at most the weight w in any box is taken for one of scale
    b·w and weight 1: the largest b·w is the scale that intervals of boxes are calibrated to.
    """
    if len(trees.widths) == 1:
        return counts.noisy_cells(budget)
    whole = sum(trees.shares)
    levels = counts.noisy_tree(trees.boxes, budget, [Fraction(share, whole) for share in trees.shares])
    variances = [level.variance for level in levels]
    values = trees.estimates([level.values for level in levels])
    shared = tuple(map(SharedNoise, trees.covariance(variances), trees.widths))
    drawn, weights = Scales.of([level.scale for level in levels]), np.array(trees.largest_weights())
    scale = Fraction(float((drawn.scale * weights).max())).limit_denominator(1 << 20)
    tail = drawn.bound_of_variance(math.fsum(part.coefficient for part in shared), weights)
    return NestedCells(values, scale, shared, tail)


@lru_cache(maxsize=64)
def _tree(workload: str, length: int, queries: tuple[Range, ...], cells: int) -> line_trees.LineTree:
    """The levels along an axis and their shares: a function of the declared questions and the number of cells alone."""
    from dphist_pipeline.solvers.trees import line_trees
    from dphist_pipeline.solvers.trees import workload_strategies as strategies

    if workload in ("ranges", "boxes"):
        return line_trees.line_tree(cells, line_trees.range_squares(cells))
    if workload == "file":
        if not queries:
            return line_trees.LineTree(cells, (1,), (line_trees.TOTAL,))
        low, high, weight = (np.array(part) for part in zip(*queries, strict=True))
        squares = line_trees.query_squares(low, high, weight)
        return line_trees.line_tree(cells, lambda width: squares(width) + strategies.SINGLE_CELLS)
    length = min(cells, length)
    low, high = np.zeros(cells, dtype=np.int64), np.arange(1, cells + 1)
    if workload == "windows":
        low, high = high[: cells - length + 1] - 1, high[length - 1 :]
    return line_trees.line_tree(cells, line_trees.query_squares(low, high))
