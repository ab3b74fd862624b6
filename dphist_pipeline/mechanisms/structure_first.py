"""StructureFirst: choose the boundaries of the buckets privately, from the right, then count the buckets with noise.

Paper:    Xu, Zhang, Xiao, Yang, Yu. Differentially private histogram publication. ICDE 2012, VLDB Journal 2013. With
          `score: absolute`, scores are absolute deviations from medians, summed: their sensitivity is 1 and needs no
          bound on a count. With `score: squared`, the paper's, scores are computed from counts clipped to 0 … F for a
          public ceiling F, and their sensitivity is 2F - 1. (The paper takes F from the data, which breaks its proof.)
          Published sums are not clipped. Choices add geometric noise to the scores and take the largest
          (permute-and-flip, but for ties), in place of the paper's exponential mechanism.
Privacy:  structure_share of epsilon on `choose`, an equal share a boundary; the rest on `noisy_sums` of the buckets.
          The share of a boundary is forfeited if the boundaries chosen before leave only one place for it. With one
          bucket, or one per cell, there is nothing to choose, and all of epsilon goes to the sums.
Domain:   one axis, ordered, up to 16,384 cells.
Cost:     O(cells² · buckets) time a boundary, O(cells · buckets) memory; the search is exact. With 16 buckets, some 4
          seconds of a processor for the 11,342 cells of the papers' largest set.
Bars:     none for cells; sums of whole buckets have those of their draws. The error of spreading a bucket evenly is not
          covered.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.confidential.scores import LastStartByDeviations, LastStartBySquares, Score
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import BadSetting, DomainRefused, Mechanism, Setting

MOST_CELLS = 1 << 14


@dataclass(frozen=True)
class StructureFirst(Mechanism):
    """Settings:"""

    buckets: Annotated[
        int,
        Field(ge=1, le=64),
        Setting(
            "how many, at most one a cell; with as many buckets as cells it is plain noise.",
            paper="an input",
            why="A spec has to do without it; declare it for your axis, since no number serves all.",
        ),
    ] = 16
    score: Annotated[
        Literal["absolute", "squared"],
        Setting(
            "`absolute`: deviations from medians; or `squared`: errors around means.",
            paper="squared",
            why="`absolute` needs no ceiling, and had the lower error in 26 of 30 settings of up to 128 cells, with a "
            "ceiling of 800.",
        ),
    ] = "absolute"
    count_ceiling: Annotated[
        Annotated[int, Field(ge=1, le=1_000_000)] | None,
        Setting(
            "with `squared` only: counts are clipped to it, at most 1,000,000, when boundaries are chosen; declare it "
            "without looking at the data.",
            paper="the largest count of the data",
            why="A ceiling that is read from the data breaks the proof.",
        ),
    ] = None
    structure_share: Annotated[Fraction, Field(gt=0, lt=1), Setting("the part of epsilon that finds boundaries.")] = (
        Fraction(1, 2)
    )

    def __post_init__(self) -> None:
        if self.score == "squared" and self.count_ceiling is None:
            problem = "`score: squared` needs one: a count, 1 or more, declared without looking at the data"
            raise BadSetting("structure_first", "count_ceiling", problem)
        if self.score == "absolute" and self.count_ceiling is not None:
            raise BadSetting("structure_first", "count_ceiling", "`score: absolute` has no use for one; leave it out")

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than one axis, too many cells, and shares outside the sampler's range."""
        if len(domain.axes) != 1:
            raise DomainRefused("structure_first", f"serves one axis, not {len(domain.axes)}; for cubes use `dpcube`")
        if domain.cells > MOST_CELLS:
            problem = f"serves up to {MOST_CELLS:,} cells, not {domain.cells:,}; use `noise_first`, or wider bins"
            raise DomainRefused("structure_first", problem)
        boundaries, sums = self._shares(Budget(epsilon), domain.cells)
        for boundary in boundaries:
            boundary.scale(self._score(2).sensitivity(sensitivity))
        sums.scale(sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Boundaries from the right, each given those chosen before; then the sums of the buckets."""
        boundaries, sums = self._shares(budget, counts.domain.cells)
        cells = end = counts.domain.cells
        # If there is no boundary to choose, there is one bucket, or one per cell.
        starts = [0] if boundaries or self.buckets == 1 else list(range(cells))
        for boundary, used in zip(boundaries, range(len(boundaries) + 1, 1, -1), strict=True):
            end = self._last_start(counts, end, used, boundary)
            starts.append(end)
        groups = _bucket_numbers(starts, cells)
        bucketed = counts.noisy_sums(groups, sums)
        values = bucketed.spread(groups)
        return Estimate(counts.domain, values, budget.charges, groups=groups, sums=bucketed)

    def _shares(self, budget: Budget, cells: int) -> tuple[tuple[Budget, ...], Budget]:
        """The budgets of the boundaries, from the right, and of the sums."""
        if self.buckets == 1 or self.buckets >= cells:
            return (), budget
        structure, sums = budget.split(structure=self.structure_share, counts=1 - self.structure_share)
        many = self.buckets - 1
        names = [f"boundary_{number}" for number in range(many, 0, -1)]
        return structure.split(**dict.fromkeys(names, Fraction(1, many))), sums

    def _last_start(self, counts: PrivateCounts, end: int, buckets: int, budget: Budget) -> int:
        """Where the last of so many buckets of the first `end` cells starts; each bucket holds at least one cell."""
        first = buckets - 1
        if first == end - 1:
            budget.forfeit()
            return first
        chosen = counts.choose([np.arange(end)], self._score(buckets), budget)
        return first + int(chosen[0])

    def _score(self, buckets: int) -> Score:
        """The score of every possible start of the last of `buckets` buckets."""
        if self.count_ceiling is None:
            return LastStartByDeviations(buckets)
        return LastStartBySquares(buckets, self.count_ceiling)


def _bucket_numbers(starts: list[int], cells: int) -> NDArray[np.int64]:
    """Bucket number per cell, from the first cells of the buckets."""
    first = np.zeros(cells, dtype=np.int64)
    first[starts] = 1
    return np.cumsum(first) - 1
