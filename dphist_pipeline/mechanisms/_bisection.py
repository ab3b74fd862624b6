"""Cuts a line in two, privately, level by level: the part that `ihp` and `p_hpartition` share."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.confidential.scores import Centre, CutByDeviations
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import DomainRefused


@dataclass(frozen=True)
class Bisection:
    """Cuts a line in two, again and again.

    Attributes:
        depth: the most levels of cuts.
        structure_share: the part of epsilon that chooses cuts; every level gets an equal share.
        centre: median or mean, which the deviations in a score are taken from.
        may_keep: whether an interval may also be kept whole, for good.
    """

    depth: int
    structure_share: Fraction
    centre: Centre
    may_keep: bool

    def check(self, mechanism: str, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than one axis, and shares outside the sampler's range; see `Mechanism.check`."""
        if len(domain.axes) != 1:
            raise DomainRefused(mechanism, f"serves one axis, not {len(domain.axes)}; for cubes use `dpcube`")
        levels, sums = self._shares(Budget(epsilon), domain.cells)
        for level in levels:
            level.scale(self._score(0).sensitivity(sensitivity))
        sums.scale(sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Chooses cuts, level by level; then measures the sums of the buckets between them."""
        levels, sums = self._shares(budget, counts.domain.cells)
        # The noise of a bucket's sum adds about its scale to the absolute errors of the bucket's cells, summed.
        price = -(-counts.sensitivity // sums.epsilon) if self.may_keep else 0
        groups = self._buckets(counts, levels, price)
        bucketed = counts.noisy_sums(groups, sums)
        values = bucketed.spread(groups)
        return Estimate(counts.domain, values, budget.charges, groups=groups, sums=bucketed)

    def _shares(self, budget: Budget, cells: int) -> tuple[tuple[Budget, ...], Budget]:
        """The budgets of the levels, and of the sums; the sums get all if there is nothing to choose."""
        # If intervals cannot be kept whole, cells - 1 levels leave single cells, whatever is chosen.
        choosing = cells > 1 if self.may_keep else self.depth < cells - 1
        if not choosing:
            return (), budget
        many = min(self.depth, cells - 1)
        structure, sums = budget.split(structure=self.structure_share, counts=1 - self.structure_share)
        return structure.split(**{f"level_{number}": Fraction(1, many) for number in range(1, many + 1)}), sums

    def _buckets(self, counts: PrivateCounts, levels: tuple[Budget, ...], price: int) -> NDArray[np.int64]:
        """Bucket number per cell."""
        cells = counts.domain.cells
        if not levels:
            return np.arange(cells)
        first_cells = np.zeros(cells, dtype=np.int64)
        intervals = [(0, cells)]
        for level in levels:
            cuts = self._cuts(counts, intervals, level, price)
            cut = [(low, low + many, high) for (low, high), many in zip(intervals, cuts, strict=True) if many > 0]
            first_cells[[middle for _, middle, _ in cut]] = 1
            intervals = [part for low, middle, high in cut for part in ((low, middle), (middle, high))]
        return np.cumsum(first_cells)

    def _cuts(self, counts: PrivateCounts, intervals: list[tuple[int, int]], level: Budget, price: int) -> list[int]:
        """For each interval, how many of its cells lie before the cut; 0 if it stays whole."""
        first = 0 if self.may_keep else 1  # the first candidate; the last is to cut before the last cell
        cuts = [min(first, high - low - 1) for low, high in intervals]
        divisible = [number for number, (low, high) in enumerate(intervals) if high - low - first >= 2]
        if not divisible:
            level.forfeit()
            return cuts
        groups = [np.arange(*intervals[number]) for number in divisible]
        chosen = counts.choose(groups, self._score(price), level)
        for number, choice in zip(divisible, chosen.tolist(), strict=True):
            cuts[number] = first + choice
        return cuts

    def _score(self, price: int) -> CutByDeviations:
        return CutByDeviations(self.centre, price, self.may_keep)
