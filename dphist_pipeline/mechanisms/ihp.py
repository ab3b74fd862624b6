"""IHP: cut a line in two, privately, and its parts again, while a cut saves more error than one more noisy sum adds.

Paper:    Li, Cui, Meng, Ma. IHP: improving the utility in differential private histogram publication. Distributed and
          Parallel Databases 2019. This follows the description of it in Tao et al. (Symmetry 2023) and its published
          abstract; other details are ours. The candidates for an interval are to keep it whole, for good, and every
          cut. The score is minus the absolute deviations of the parts, and minus, for each part, the mean absolute
          noise of one published sum, which the part's cells share. Choices add geometric noise to the scores and take
          the largest (permute-and-flip, but for ties), in place of the exponential mechanism.
Privacy:  structure_share of epsilon on `choose`, an equal share a level: the intervals of a level are disjoint. The
          rest on `noisy_sums` of the buckets. The share of a level at which every interval is closed is forfeited. With
          a single cell there is nothing to choose: all of epsilon goes to its sum.
Domain:   one axis, ordered.
Cost:     O(m log m · depth) time in the cells m, O(m) memory.
Bars:     none for cells; sums of whole buckets have those of their draws. The error of spreading a bucket evenly is not
          covered and may exceed a count: with one cell of 100,000 among 63 empty ones, some of 180 runs told it more
          than 95,000 too low, and a bucket of two cells tells the empty one 50,000 too high.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from pydantic import Field

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.confidential.scores import Centre
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import Mechanism, Setting
from dphist_pipeline.mechanisms._bisection import Bisection


@dataclass(frozen=True)
class IHP(Mechanism):
    """Settings:"""

    depth: Annotated[
        int,
        Field(ge=1, le=16),
        Setting(
            "the most times an interval is cut in two.",
            paper="not in its abstract",
            why="8 had the lower error in 24 of 30 settings beside 4 and in 9 of 30 settings beside 12, of real and "
            "invented counts, from a 16th to 463 times that of 12: more levels are mostly better at an epsilon of 1 or "
            "0.1, and worse at 0.01, since levels share the epsilon of the cuts; a default stays, because it stands in "
            "the digests of specs.",
        ),
    ] = 8
    structure_share: Annotated[
        Fraction,
        Field(gt=0, lt=1),
        Setting(
            "the part of epsilon that chooses cuts.",
            paper="not in its abstract",
            why="Halves, as P-HPartition has them, had the lower error in 14 of 30 settings beside 1/4 and in 20 of 30 "
            "settings beside 3/4, of real and invented counts, from 0.4 to 2 times those.",
        ),
    ] = Fraction(1, 2)
    centre: Annotated[
        Centre,
        Setting(
            "`median` or `mean`, which deviations are taken from; with means a score's sensitivity is twice as large, "
            "so cuts are twice as noisy.",
            paper="not in its abstract",
            why="`median` had the lower error in 18 of 30 settings, of real and invented counts, from 0.6 to 2.2 "
            "times that of `mean`.",
        ),
    ] = "median"

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than one axis, and shares outside the sampler's range."""
        self._bisection.check("ihp", domain, sensitivity, epsilon)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Cuts, level by level, until intervals stay whole; then the sums of the buckets between them."""
        return self._bisection.release(counts, budget)

    @property
    def _bisection(self) -> Bisection:
        return Bisection(self.depth, self.structure_share, self.centre, may_keep=True)
