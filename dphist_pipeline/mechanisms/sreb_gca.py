"""SReB_GCA: order the cells by noisy counts, group them so that small counts keep a small relative error, count again.

Paper:    Chen, Zhou, Qiu, Xu, Zeng, Fang, Chen, Huang, Xu, Chen. A histogram publishing method under differential
          privacy that involves balancing small-bin availability first. Algorithms 2024. Groups are its GGS, equation
          31, or with `search` its problems GP or OP; counts below 1 are taken as 1 in a denominator.
          As printed it is not private: lines 9 to 11 of its Algorithm 1 draw noise of scale λ₂/|C| for every bin of a
          group C apart. Averaging them removes the noise: |C| draws at that scale about one mean cost |C| times the
          second share. Here a group has one draw, which its cells share.
Privacy:  order_share of epsilon on `noisy_cells`, the rest on `noisy_sums` of the groups, one draw a group. Order and
          groups are found on noisy cells alone, which is free.
Domain:   any number of axes, ordered or not; where a cell lies plays no part.
Cost:     that of sorting the cells m; O(m) memory. `search: exact`: O(m²) time.
Bars:     the noise of the first share, on `unbiased_estimate`; the error of merging unlike cells is not covered.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import DomainRefused, Mechanism, Setting

MOST_EXACT = 1 << 15  # the largest set of the paper


@dataclass(frozen=True)
class SReBGCA(Mechanism):
    """Settings:"""

    order_share: Annotated[
        Fraction,
        Field(gt=0, lt=1),
        Setting(
            "the part of epsilon that orders the cells.",
            paper="not told",
            why="With `search: greedy` 1/2 had a lower squared error than 17/20 in 27 of 30 settings, of real and "
            "invented counts. With `greedy_problem` 17/20 had the lower KL divergence in 14 of 15 settings, on the "
            "paper's sets and real meshblocks.",
        ),
    ] = Fraction(1, 2)
    search: Annotated[
        Literal["greedy", "greedy_problem", "exact"],
        Setting(
            "how groups are found: `greedy`, GGS from left to right (definition 5); `greedy_problem`, GP from left to "
            "right (equations 24 to 28); or `exact`, OP, the least mean relative error over all groupings (section "
            "5.1), for up to 32,768 cells. Where both sides of a greedy rule are equal, rounding decides.",
            paper="`greedy` (its algorithm 2)",
            why="The default stays for the sake of releases that have it; `greedy_problem` takes as long and is nearly "
            "as near as `exact`. On the paper's sets and real meshblocks it has 0.27 to 1.05 times the relative error "
            "of `greedy` and 0.13 to 1.40 times the squared one; at ε = 0.01 0.27 to 0.84 and 0.13 to 0.48 times.",
            later=True,
        ),
    ] = "greedy"

    @property
    def advice(self) -> dict[str, str]:
        """GP, in place of GGS, which is the default: as fast, and nearer where the noise is large."""
        return {"search": "greedy_problem"} if self.search == type(self).search else {}

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses shares outside the sampler's range, and more cells than an exact search takes."""
        if self.search == "exact" and domain.cells > MOST_EXACT:
            problem = (
                f"with `search: exact` serves up to {MOST_EXACT:,} cells, not {domain.cells:,}; use another search"
            )
            raise DomainRefused("sreb_gca", problem)
        self._shares(Budget(epsilon), sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy cells in order, their groups, and the groups' noisy sums."""
        from dphist_pipeline.solvers.groups import relative_groups as searches
        from dphist_pipeline.solvers.groups.value_groups import groups_by_value

        order, sums = self._shares(budget, counts.sensitivity)
        noisy = counts.noisy_cells(order)
        scale = float(sums.scale(counts.sensitivity))
        search = {
            "greedy": searches.relative_groups,
            "greedy_problem": searches.relative_groups_of_gp,
            "exact": searches.least_relative_groups,
        }[self.search]
        groups = groups_by_value(noisy.values, lambda line: search(line, scale))
        grouped = counts.noisy_sums(groups, sums)
        values = grouped.spread(groups)
        return Estimate(counts.domain, values, budget.charges, unbiased=noisy, groups=groups, sums=grouped)

    def _shares(self, budget: Budget, sensitivity: int) -> tuple[Budget, ...]:
        return budget.split_for_noise(sensitivity, order=self.order_share, counts=1 - self.order_share)
