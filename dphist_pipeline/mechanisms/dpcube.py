"""DPCube: split the cube into boxes of alike cells by noisy cells, then count the boxes with fresh noise.

Paper:    Xiao, Xiong, Fan, Goryczka. DPCube: differentially private histogram release through multidimensional
          partitioning. arXiv 2012, Transactions on Data Privacy 2014. Its rule is `threshold: NUMBER`, which stops as
          its Algorithm 3 says, not as its text; the other rules are ours.
Privacy:  structure_share of epsilon on `noisy_cells`, the rest on `noisy_sums` of the boxes. The boxes are found on
          noisy cells alone, and share a mean by noisy cells and noisy sums alone, which is free.
Domain:   1 to 6 axes, ordered as declared.
Cost:     O(cells · depth) time, O(cells) memory.
Bars:     the noise of the first phase, on `unbiased_estimate`; neither the error of spreading a box evenly nor that of
          least squares over boxes that were found on the same noisy cells is covered. For single cells, least squares
          cannot be better than `geometric`: it takes no cells to be alike, and its cells had a part of epsilon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates import noise_law
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NoisyCells, NoisySums
from dphist_pipeline.mechanisms import DomainRefused, Mechanism

if TYPE_CHECKING:
    from dphist_pipeline.solvers.joined_boxes import TwofoldBoxes

MOST_AXES = 6


@dataclass(frozen=True)
class DPCube(Mechanism):
    """Settings: structure_share, the part of epsilon that finds the boxes; threshold, where boxes are split: `greedy`,
    from all cells down while the gain of the best cut exceeds the noise of one more box and the luck of searching;
    `pruned`, down to the cells, and joined again where that lowers the estimated error; `auto`, by both rules, and
    boxes that only one of them tells apart share one mean if their noisy sums show no difference; or the paper's rule,
    the variance of a box's cells, in records squared, up to which it stays whole; estimation, `uniform`: a box's cells
    share its sum evenly, or `least_squares`: its noisy cells move alike, as far as their noise and that of the sum say,
    for boxes that hold unlike cells, and no boxes share a mean; max_depth, the most cuts on the way to a box.
    """

    structure_share: Annotated[Fraction, Field(gt=0, lt=1)] = Fraction(1, 2)
    threshold: Literal["auto", "greedy", "pruned"] | Annotated[float, Field(ge=0, allow_inf_nan=False)] = "auto"
    estimation: Literal["uniform", "least_squares"] = "uniform"
    max_depth: Annotated[int, Field(ge=1, le=64)] = 40

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than six axes, and shares outside the sampler's range."""
        if len(domain.axes) > MOST_AXES:
            raise DomainRefused("dpcube", f"serves up to {MOST_AXES} axes, not {len(domain.axes)}")
        self._shares(Budget(epsilon), sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Phase I: noisy cells. Phase II: boxes by a kd-tree, and their noisy sums."""
        structure, sums = self._shares(budget, counts.sensitivity)
        noisy = counts.noisy_cells(structure)
        box_variance = noise_law.variance(sums.scale(counts.sensitivity))
        found = self._boxes(noisy, box_variance)
        boxed = counts.noisy_sums(found.boxes, sums)
        spread = _even if self.estimation == "uniform" else _least_squares
        values = spread(noisy, boxed, found)
        return Estimate(counts.domain, values, budget.charges, unbiased=noisy, groups=found.boxes, sums=boxed)

    def _boxes(self, noisy: NoisyCells, box_variance: float) -> TwofoldBoxes:
        """Found on noisy cells alone."""
        from dphist_pipeline.solvers.joined_boxes import TwofoldBoxes, twofold_boxes
        from dphist_pipeline.solvers.kd_boxes import kd_boxes
        from dphist_pipeline.solvers.pruned_boxes import pruned_boxes

        known = (noisy.values, noisy.variance, box_variance)
        if self.threshold == "auto":
            return twofold_boxes(*known, self.max_depth)
        if self.threshold == "pruned":
            return TwofoldBoxes.of(pruned_boxes(*known, self.max_depth)[0])
        threshold = math.nan if self.threshold == "greedy" else self.threshold
        return TwofoldBoxes.of(kd_boxes(*known, threshold, self.max_depth))

    def _shares(self, budget: Budget, sensitivity: int) -> tuple[Budget, ...]:
        return budget.split_for_noise(sensitivity, structure=self.structure_share, counts=1 - self.structure_share)


def _even(noisy: NoisyCells, boxed: NoisySums, found: TwofoldBoxes) -> NDArray[np.float64]:
    """The mean of each cell's box, or of several boxes that `auto` joins."""
    from dphist_pipeline.solvers.joined_boxes import Noise, joined_means

    noise = Noise(noisy.variance, boxed.variance)
    means: NDArray[np.float64] = joined_means(noisy.values, found, boxed.values, noise)[0]
    return means[found.boxes]


def _least_squares(noisy: NoisyCells, boxed: NoisySums, found: TwofoldBoxes) -> NDArray[np.float64]:
    """The weighted least squares estimate of the cells from noisy cells and noisy box sums; closed form, box by box.

    With σ₁² a cell's variance, σ₂² a sum's and n cells, each moves by (sum - sum of noisy cells)·σ₁² / (σ₂² + n·σ₁²).
    """
    boxes = found.boxes
    summed = np.bincount(boxes.ravel(), weights=noisy.values.ravel())
    lacking = boxed.values - summed
    moved = lacking * noisy.variance / (boxed.variance + boxed.sizes * noisy.variance)
    return noisy.values + moved[boxes]
