"""NoiseFirst: add noise to every cell, then merge neighbours into buckets where that lowers the estimated error.

Paper:    Xu, Zhang, Xiao, Yang, Yu. Differentially private histogram publication. ICDE 2012, VLDB Journal 2013.
          The papers search up to some number of buckets in O(m³); this finds the optimum over every number of buckets,
          in near-linear time, by functional pruning (Maidstone et al. 2017). At the papers' price, an
          exact search fits the noise of flat stretches; `bic` and `auto` are ours.
Privacy:  epsilon, all on `noisy_cells`. Merging reads only noisy counts, so it is free.
Domain:   one axis, ordered.
Cost:     near-linear in the cells; `penalty: auto` searches twice.
Bars:     noise only; the error of merging unlike neighbours is not covered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.mechanisms import DomainRefused, Mechanism, Setting

Split = tuple[NDArray[np.float64], NDArray[np.int64]]


# Degrees of freedom that a search spends, fitted to simulated noise on public data (see
# docs/decisions/mechanism-defaults.md): at the papers' price 0.6 a cell and 0.4 a bucket, at the bic price 1.4 a
# bucket.
PAPER_A_CELL, PAPER_A_BUCKET, BIC_A_BUCKET = 0.6, 0.4, 1.4


@dataclass(frozen=True)
class NoiseFirst(Mechanism):
    """Settings:"""

    penalty: Annotated[
        Literal["paper", "bic", "auto"],
        Setting(
            "the price of one more bucket in noise variances: `paper` is 2, the papers' estimate of the error; `bic` "
            "is 2·ln(cells), which merges more and does not chase noise on long flat stretches; `auto` is the one of "
            "the two whose error looks smaller, judged by the noisy cells alone. `auto` is the better choice: the "
            "default had the lower error in 8 of 30 settings, and up to 40 times that of `auto` where long stretches "
            "are flat."
        ),
    ] = "paper"

    @property
    def advice(self) -> dict[str, str]:
        """`auto`, in place of the papers' price, which is the default."""
        return {"penalty": "auto"} if self.penalty == type(self).penalty else {}

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than one axis: buckets are neighbours on a line."""
        if len(domain.axes) != 1:
            raise DomainRefused("noise_first", f"serves one axis, not {len(domain.axes)}; for cubes use `dpcube`")

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noise first, then the cheapest buckets."""
        noisy = counts.noisy_cells(budget)
        splits = {"paper": _paper, "bic": _bic, "auto": _likelier}
        means, buckets = splits[self.penalty](noisy)
        return Estimate(counts.domain, means, budget.charges, unbiased=noisy, groups=buckets)


def _paper(noisy: NoisyCells) -> Split:
    return _cheapest(noisy, 2 * noisy.variance)


def _bic(noisy: NoisyCells) -> Split:
    return _cheapest(noisy, 2 * noisy.variance * max(1.0, math.log(noisy.values.size)))


def _cheapest(noisy: NoisyCells, price: float) -> Split:
    """Means and buckets of the cheapest split at a price per bucket."""
    from dphist_pipeline.solvers.groups.segmentation import bucket_means, v_optimal

    buckets = v_optimal(noisy.values, price_per_bucket=price)
    return bucket_means(noisy.values, buckets), buckets


def _likelier(noisy: NoisyCells) -> Split:
    """The split with the smaller estimated error, of those at the two prices; the papers' if they are equal.

    The squared error of a fit is estimated by its squared distance from the noisy cells, minus the noise, plus twice
    the noise's variance per degree of freedom. The noise itself is the same for both, and left out.
    """
    paper, bic = _paper(noisy), _bic(noisy)
    searched = PAPER_A_CELL * noisy.values.size + PAPER_A_BUCKET * (paper[1][-1] + 1)
    searched_bic = BIC_A_BUCKET * (bic[1][-1] + 1)

    def error(split: Split, freedom: float) -> float:
        return float(((noisy.values - split[0]) ** 2).sum()) + 2 * noisy.variance * freedom

    return bic if error(bic, searched_bic) < error(paper, searched) else paper
