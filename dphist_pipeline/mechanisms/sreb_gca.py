"""SReB_GCA: order the cells by noisy counts, group them so that small counts keep a small relative error, count again.

Paper:    Chen, Zhou, Qiu, Xu, Zeng, Fang, Chen, Huang, Xu, Chen. A histogram publishing method under differential
          privacy that involves balancing small-bin availability first. Algorithms 2024. Groups are its GGS, equation
          31, counts below 1 taken as 1 in a denominator.
          As printed it is not private: lines 9 to 11 of its Algorithm 1 draw noise of scale λ₂/|C| for every bin of a
          group C apart. Averaging them removes the noise: |C| draws at that scale about one mean cost |C| times the
          second share. Here a group has one draw, which its cells share.
Privacy:  order_share of epsilon on `noisy_cells`, the rest on `noisy_sums` of the groups, one draw a group. Order and
          groups are found on noisy cells alone, which is free.
Domain:   any number of axes, ordered or not; where a cell lies plays no part.
Cost:     that of sorting the cells; O(m) memory.
Bars:     the noise of the first share, on `unbiased_estimate`; the error of merging unlike cells is not covered.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from pydantic import Field

from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import Mechanism


@dataclass(frozen=True)
class SReBGCA(Mechanism):
    """Settings: order_share, the part of epsilon that orders the cells."""

    order_share: Annotated[Fraction, Field(gt=0, lt=1)] = Fraction(1, 2)

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses shares outside the sampler's range."""
        self._shares(Budget(epsilon), sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy cells in order, their groups by GGS, and the groups' noisy sums."""
        from dphist_pipeline.solvers.relative_groups import relative_groups
        from dphist_pipeline.solvers.value_groups import groups_by_value

        order, sums = self._shares(budget, counts.sensitivity)
        noisy = counts.noisy_cells(order)
        scale = float(sums.scale(counts.sensitivity))
        groups = groups_by_value(noisy.values, lambda line: relative_groups(line, scale))
        grouped = counts.noisy_sums(groups, sums)
        values = grouped.spread(groups)
        return Estimate(counts.domain, values, budget.charges, unbiased=noisy, groups=groups, sums=grouped)

    def _shares(self, budget: Budget, sensitivity: int) -> tuple[Budget, ...]:
        return budget.split_for_noise(sensitivity, order=self.order_share, counts=1 - self.order_share)
