"""NoiseFirst: add noise to every cell, then merge neighbours where that costs less than noise.

Paper:    Xu, Zhang, Xiao, Yang, Yu. Differentially private histogram publication. ICDE 2012, VLDB Journal 2013.
          The papers search up to some number of buckets in O(m³); this finds the optimum over every number of buckets,
          in near-linear time, by functional pruning (Maidstone et al. 2017).
Privacy:  epsilon, all on `noisy_cells`. Merging reads only noisy counts, so it is free.
Domain:   one axis, ordered.
Cost:     near-linear in the cells.
Bars:     noise only; the error of merging unlike neighbours is not covered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dphist_pipeline.domain import Domain
from dphist_pipeline.estimate import Estimate
from dphist_pipeline.mechanisms import DomainRefused, Mechanism
from dphist_pipeline.privacy.budget import Budget
from dphist_pipeline.privacy.private_counts import PrivateCounts


@dataclass(frozen=True)
class NoiseFirst(Mechanism):
    """Settings: penalty, the price of one more bucket in noise variances: `paper` is 2, the papers' unbiased estimate
    of the error; `bic` is 2·ln(cells), which merges more and does not chase noise on long flat stretches.
    """

    penalty: Literal["paper", "bic"] = "paper"

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than one axis: buckets are neighbours on a line."""
        if len(domain.axes) != 1:
            raise DomainRefused("noise_first", f"serves one axis, not {len(domain.axes)}; for cubes use `dpcube`")

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noise first, then the cheapest buckets."""
        from dphist_pipeline.solvers.segmentation import bucket_means, v_optimal

        noisy = counts.noisy_cells(budget)
        factor = 1.0 if self.penalty == "paper" else max(1.0, math.log(noisy.values.size))
        buckets = v_optimal(noisy.values, price_per_bucket=2 * noisy.variance * factor)
        means = bucket_means(noisy.values, buckets)
        return Estimate(counts.domain, means, budget.charges, unbiased=noisy, groups=buckets)
