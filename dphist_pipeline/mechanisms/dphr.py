"""DPHR: order the cells by noisy counts, find the best groups of alike cells, then count the groups with fresh noise.

Paper:    Tao, Li, Huang, Hou, Gong. A symmetry histogram publishing method based on differential privacy. Symmetry
          2023. As printed it is not private: each of the m selections of its sort costs the whole first share; their
          candidates are read from exact counts; and its grouping optimises over exact counts for free. Here cells are
          ordered, and grouped, by noisy counts. Its dynamic programme, O(m²) for each number of groups, is one search
          over every number of groups.
Privacy:  order_share of epsilon on `noisy_cells`, the rest on `noisy_sums` of the groups, one draw a group. Order and
          groups are found on noisy cells alone, which is free.
Domain:   any number of axes, ordered or not; where a cell lies plays no part.
Cost:     O(m log m) time in the cells m, O(m) memory.
Bars:     the noise of the first share, on `unbiased_estimate`; the error of merging unlike cells is not covered.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from dphist_pipeline.domain import Domain
from dphist_pipeline.estimate import Estimate
from dphist_pipeline.mechanisms import Mechanism
from dphist_pipeline.privacy.budget import Budget
from dphist_pipeline.privacy.private_counts import PrivateCounts


@dataclass(frozen=True)
class DPHR(Mechanism):
    """Settings: order_share, the part of epsilon that orders the cells; order, `noisy`: by noisy counts."""

    order_share: Annotated[Fraction, Field(gt=0, lt=1)] = Fraction(17, 20)
    order: Literal["noisy"] = "noisy"

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses shares outside the sampler's range."""
        self._shares(Budget(epsilon), sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy cells in order, their cheapest groups, and the groups' noisy sums."""
        from dphist_pipeline.solvers.sorted_groups import groups_by_value, optimal_groups

        order, sums = self._shares(budget, counts.sensitivity)
        noisy = counts.noisy_cells(order)
        price = 2 * float(sums.scale(counts.sensitivity)) ** 2
        groups = groups_by_value(noisy.values, lambda line: optimal_groups(line, price))
        grouped = counts.noisy_sums(groups, sums)
        values = (grouped.values / grouped.sizes)[groups]
        return Estimate(counts.domain, values, budget.charges, unbiased=noisy, groups=groups, sums=grouped)

    def _shares(self, budget: Budget, sensitivity: int) -> tuple[Budget, ...]:
        return budget.split_for_noise(sensitivity, order=self.order_share, counts=1 - self.order_share)
