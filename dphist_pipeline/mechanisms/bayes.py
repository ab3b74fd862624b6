"""Bayes: add noise to every cell, learn from all of them which counts occur, and publish what each cell likely holds.

Paper:    Robbins. An empirical Bayes approach to statistics. 1956. Kiefer, Wolfowitz. Consistency of the maximum
          likelihood estimator in the presence of infinitely many incidental parameters. 1956. The noise law is known
          exactly. Four forms of the prior are ours: one level, nearly empty, few shared values, many; so is their
          choice by the likelihood of cells that they were not fitted on.
Privacy:  epsilon, all on `noisy_cells`. The rest reads only noisy counts, so it is free; its random halves come
          from a stream that the noisy counts determine.
Domain:   any number of axes, ordered or not; where a cell lies plays no part. `adaptive` looks at neighbours, too.
Cost:     O(m log m) time in the cells m; a second for 10^5 cells. O(m) memory.
Bars:     the exact law of the noise, on `unbiased_estimate`. The estimates have no interval: a cell that differs from
          all others is moved towards them, by more than its interval if the noise can explain the difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import Mechanism, Setting


@dataclass(frozen=True)
class Bayes(Mechanism):
    """Settings:"""

    objective: Annotated[
        Literal["absolute", "relative"],
        Setting(
            "the errors to keep small: `absolute`, squared errors in records; or `relative`, errors by the count "
            "itself, counts below 1 taken as 1. It need not be set."
        ),
    ] = "absolute"

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy cells, the prior that they suggest, and the posterior of each cell."""
        from dphist_pipeline.mechanisms._experts import FITTED, PLAIN, expert_mixture, halves

        noisy = counts.noisy_cells(budget)
        return expert_mixture(counts, noisy, halves(noisy), [*PLAIN, *FITTED], budget, self.objective)
