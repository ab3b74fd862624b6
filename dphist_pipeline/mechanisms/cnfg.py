"""CNFG: add noise to every cell, then merge the closest neighbours first, and keep the best stage.

Paper:    Sun, Wu, Zhang, Xie. A greedy algorithm of differentially private histogram publication based on bucket
          partition (in Chinese). Fuzhou and Xiamen University. The paper keeps the pairs in two red-black trees.
          The best stage has the least Q = SSE + (2k - m)·v: SSE is the squared error of m noisy cells around the means
          of k buckets, and v the variance of the noise of a cell. For Laplace noise of scale 1/epsilon, v = 2/epsilon²,
          this is the paper's equation 7, Q = Error + (4k - 2m)/epsilon²; noise here is discrete, and v a little less.
Privacy:  epsilon, all on `noisy_cells`. Merging reads only noisy counts, so it is free. The paper counts neighbours by
          substitution and adds noise for a sensitivity of 1; here it is what one privacy unit moves, 2 for such a row.
Domain:   one axis, ordered.
Cost:     O(cells · log cells).
Bars:     noise only; the error of merging unlike neighbours is not covered.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import DomainRefused, Mechanism


@dataclass(frozen=True)
class CNFG(Mechanism):
    """Settings: none."""

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than one axis: buckets are neighbours on a line."""
        if len(domain.axes) != 1:
            raise DomainRefused("cnfg", f"serves one axis, not {len(domain.axes)}; for cubes use `dpcube`")
        Budget(epsilon).scale(sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noise first, then the best stage of merging."""
        from dphist_pipeline.solvers.groups.closest_neighbours import closest_neighbours
        from dphist_pipeline.solvers.groups.segmentation import bucket_means

        noisy = counts.noisy_cells(budget)
        buckets = closest_neighbours(noisy.values, noisy.variance)
        means = bucket_means(noisy.values, buckets)
        return Estimate(counts.domain, means, budget.charges, unbiased=noisy, groups=buckets)
