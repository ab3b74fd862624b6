"""Boost: noisy sums of a tree of ranges, made to agree by least squares, so that long ranges carry little noise.

Paper:    Hay, Rastogi, Miklau, Suciu. Boosting the accuracy of differentially private histograms through consistency.
          PVLDB 2010. Here for any number of cells: the last node of a level may have fewer children than the others.
Privacy:  epsilon on `noisy_tree`, an equal share a level. Least squares reads only noisy sums, so it is free.
Domain:   one axis, ordered.
Cost:     O(cells · levels), levels = 1 + log of the cells to the base `branching`, rounded up.
Bars:     none yet: the estimate is unbiased, and its exact covariance is not published so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np
from pydantic import Field

from dphist_pipeline.domain import Domain
from dphist_pipeline.estimate import Estimate
from dphist_pipeline.mechanisms import DomainRefused, Mechanism
from dphist_pipeline.privacy.budget import Budget
from dphist_pipeline.privacy.private_counts import PrivateCounts


@dataclass(frozen=True)
class Boost(Mechanism):
    """Settings: branching, how many nodes of a level make one of the level above; 2 is the paper's."""

    branching: Annotated[int, Field(ge=2)] = 2

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than one axis, and shares of a level outside the sampler's range."""
        if len(domain.axes) != 1:
            raise DomainRefused("boost", f"serves one axis, not {len(domain.axes)}; for cubes use `dpcube`")
        Budget(epsilon / len(self._widths(domain.cells)), "each level of the tree").scale(sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy sums of every node, then the closest cells that explain them all."""
        from dphist_pipeline.solvers.tree_consistency import consistent

        cells = np.arange(counts.domain.cells)
        tree = counts.noisy_tree([cells // width for width in self._widths(cells.size)], budget)
        parents = [np.arange(level.values.size) // self.branching for level in tree[1:]]
        leaves = consistent([level.values for level in tree], parents)[-1]
        return Estimate(counts.domain, leaves, budget.charges)

    def _widths(self, cells: int) -> list[int]:
        """How many cells a node of each level spans, from the root; no two levels are alike."""
        widths = [1]
        while widths[0] < cells:
            widths.insert(0, widths[0] * self.branching)
        return widths
