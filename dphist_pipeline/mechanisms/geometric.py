"""Geometric: add discrete Laplace noise to every cell, and publish that.

Paper:    Dwork, McSherry, Nissim, Smith. Calibrating noise to sensitivity in private data analysis. TCC 2006;
          in whole numbers: Ghosh, Roughgarden, Sundararajan. Universally utility-maximizing privacy
          mechanisms. STOC 2009. DP_BASE of Chen et al. 2024 (SReB_GCA).
Privacy:  epsilon, all of it on `noisy_cells`. Nothing is done to the noisy counts.
Domain:   any number of axes, ordered or not.
Cost:     linear in the cells.
Bars:     the exact law of the noise; they hold for any cell or range fixed before seeing the release.
"""

from __future__ import annotations

from dataclasses import dataclass

from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import Mechanism


@dataclass(frozen=True)
class Geometric(Mechanism):
    """Settings: none."""

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Publishes the noisy cells as they are."""
        noisy = counts.noisy_cells(budget)
        return Estimate(counts.domain, noisy.values, budget.charges, unbiased=noisy)
