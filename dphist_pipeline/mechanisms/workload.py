"""Workload: noisy weighted sums that are chosen for declared questions, such as all ranges or boxes, before any count.

Paper:    McKenna, Miklau, Hay, Machanavajjhala. Optimizing error of high-dimensional statistical queries under
          differential privacy. PVLDB 2018: their "p-identity" strategies, every cell and some weighted sums besides,
          one for each axis, multiplied. Here the weights are whole numbers, which add up to the same total in every
          cell, so that the noise is calibrated exactly.
Privacy:  epsilon on `noisy_weighted_sums`. The weights follow from the declared grid and questions alone; a file of
          queries is public, and part of the spec that is charged. Least squares reads only noisy sums, so it is free.
Domain:   any number of axes, ordered, up to 4,096 cells each. Mean variance of all ranges of 256 / 1,024 / 4,096 cells,
          in (sensitivity / epsilon) squared: 65.5 / 122 / 206; `boost` has 79 / 156 / 260. Below some 20 cells noisy
          cells are as good for ranges. The questions are averaged: narrow ones get more noise than by `geometric`.
Cost:     The search for weights takes a second for an axis of 1,024 cells and some 6 seconds for 4,096, by a file of
          queries up to half a minute; the rest O(cells · sums along an axis).
Bars:     on the estimates, which are unbiased, and on every box of cells: the variance is exact; the interval is
          95 % by a calibrated factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer
from pydantic_core import PydanticCustomError

from dphist_pipeline.canonical_json import sha256
from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.budget import LARGEST_SCALE, Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NestedCells
from dphist_pipeline.mechanisms import BadSetting, DomainRefused, Mechanism, Setting

if TYPE_CHECKING:
    from dphist_pipeline.solvers.trees.workload_strategies import Gram

MOST_ON_AN_AXIS = 4096
# What the weights of a cell add up to along each axis, by the number of axes; the scale of the noise is their product.
TOTALS = {1: 256, 2: 64, 3: 32}
TOTAL_OF_MANY = 16
# Every cell is published. Without this part of the weight, cells that no query tells apart had up to 200 times the
# variance, and queries from 0.6 to 1.25 times.
SINGLE_CELLS = 0.03

Range = tuple[int, int, float]  # first cell, the cell after the last, weight


def _refuse_path(queries: object) -> object:
    if isinstance(queries, str):
        raise PydanticCustomError("path", "is read from a file where a spec names it; here it takes rows of numbers")
    return queries


def _digest(queries: object) -> str:
    """What settings say of queries, which are too many to print; the audit has them."""
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
            "every axis; of the whole axis where it has fewer), or `file` (those of `queries`). Single cells count "
            "everywhere, for 3 %."
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
        scale = sensitivity * math.prod(_total(domain) for _ in domain.axes) / epsilon
        if scale > LARGEST_SCALE:
            least = float(epsilon * scale / LARGEST_SCALE)
            raise DomainRefused("workload", f"needs an epsilon of at least {least:.2g} for these axes")

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy weighted sums, then the least squares estimate of the cells."""
        total = _total(counts.domain)
        lines = [
            _weights(self.workload, self.length, tuple(ask[1:] for ask in self.queries if ask[0] == axis), size, total)
            for axis, size in enumerate(counts.domain.shape)
        ]
        unbiased = NestedCells.of_weighted_sums(counts.noisy_weighted_sums(lines, budget))
        return Estimate(counts.domain, unbiased.values, budget.charges, unbiased=unbiased)


def _total(domain: Domain) -> int:
    return TOTALS.get(len(domain.axes), TOTAL_OF_MANY)


@lru_cache(maxsize=64)
def _weights(workload: str, length: int, queries: tuple[Range, ...], cells: int, total: int) -> NDArray[np.int64]:
    """The weights along an axis: a function of the declared questions and the number of cells alone."""
    from dphist_pipeline.solvers.trees.workload_strategies import strategy_for

    if workload == "file" and not queries:
        return np.ones((1, cells), dtype=np.int64)
    own, sums = strategy_for(_gram(workload, length, queries, cells), total)
    return np.vstack([own, sums])


def _gram(workload: str, length: int, queries: tuple[Range, ...], cells: int) -> Gram:
    from dphist_pipeline.solvers.trees import workload_strategies as strategies

    if workload == "file":
        low, high, weight = (np.array(part) for part in zip(*queries, strict=True))
        single = np.arange(cells)
        each = np.full(cells, SINGLE_CELLS * weight.sum() / cells)
        ends = np.append(low, single), np.append(high, single + 1)
        return strategies.gram_of_queries(*ends, np.append(weight, each), cells)
    if workload == "prefixes":
        return strategies.gram_of_prefixes(cells)
    if workload == "windows":
        return strategies.gram_of_windows(cells, min(cells, length))
    return strategies.gram_of_ranges(cells)
