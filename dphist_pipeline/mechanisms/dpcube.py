"""DPCube: split the cube into boxes of alike cells by noisy cells, then count the boxes with fresh noise.

Paper:    Xiao, Xiong, Fan, Goryczka. DPCube: differentially private histogram release through multidimensional
          partitioning. arXiv 2012, Transactions on Data Privacy 2014. Its rule is `threshold: {noise: NUMBER}` or
          {paper: NUMBER}; `auto`, `greedy` and `pruned` are ours. Text and Algorithm 3 disagree twice. Algorithm 3 cuts
          a box whose variance is above the threshold, the text one whose variance is not: built as Algorithm 3. The
          text cuts the longest side, Algorithm 3 the side with the least weighted variance: built as the text.
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
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import PydanticCustomError

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NoisyCells, NoisySums
from dphist_pipeline.mechanisms import DomainRefused, Mechanism, Setting

if TYPE_CHECKING:
    from dphist_pipeline.solvers.boxes.joined_boxes import TwofoldBoxes

MOST_AXES = 6


_Variance = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_WRITTEN = re.compile(r"\{ *(paper|noise) *: *([^{}]+?) *\}")


@dataclass(frozen=True)
class PaperVariance:
    """The threshold as the paper prints it: `{paper: NUMBER}`, with the noise of the cells left in their variance."""

    paper: _Variance
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class NoiseMultiple:
    """The same as a multiple of the variance of the noise in a cell: `{noise: NUMBER}`, so that it follows epsilon."""

    noise: _Variance
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


def _read_threshold(threshold: object, by_type: ValidatorFunctionWrapHandler) -> object:
    """The threshold of a spec, or of a command line, which writes `dpcube:threshold={paper:50}` as text."""
    written = _WRITTEN.fullmatch(threshold) if isinstance(threshold, str) else None
    try:
        return by_type({written[1]: written[2]} if written else threshold)
    except ValidationError:
        problem = "should be `auto`, `greedy`, `pruned`, a number from 0 on, {noise: NUMBER} or {paper: NUMBER}"
    raise PydanticCustomError("threshold", problem)


@dataclass(frozen=True)
class DPCube(Mechanism):
    """Settings:"""

    whole_way: ClassVar[int] = 4

    structure_share: Annotated[
        Fraction,
        Field(gt=0, lt=1),
        Setting(
            "the part of epsilon that finds the boxes.",
            paper="1/4 in its examples (0.05 of 0.2)",
            why="With `auto`, 1/2 had the lower error of a cell in 36 of 42 settings and of boxes in 8 of 12 settings, "
            "of real and invented counts, and of boxes in 8 of 10 settings of the paper's figure 16 (a), within noise "
            "in the other two; with {noise: 0.7}, the paper's rule, 1/4 had it in all ten.",
        ),
    ] = Fraction(1, 2)
    threshold: Annotated[
        Literal["auto", "greedy", "pruned"] | _Variance | PaperVariance | NoiseMultiple,
        WrapValidator(_read_threshold),
        Setting(
            "where boxes are split: `greedy`, from all cells down while the gain of the best cut exceeds the noise of "
            "one more box and the luck of searching; `pruned`, down to the cells, and joined again where that lowers "
            "the estimated error; `auto`, by both rules, and boxes that only one of them tells apart share one mean "
            "if their noisy sums show no difference; {noise: X}, the paper's rule: a box is cut while the variance of "
            "its noisy cells is above X times v, where v = 1 / (2·sinh²(e/2)) is the variance of the noise of a cell, "
            "about 2/e², and e is structure_share of epsilon by the sensitivity; {paper: X}, the same by X records "
            "squared, so that {noise: X} is {paper: X·v}; or X, the same for the variance less v, so that {paper: X} "
            "is X - v.",
            paper="a number that it does not tell",
            why="A number of records takes no account of how much noise there is; {noise: 0.7} does, and makes boxes "
            "of a few cells whatever the counts, while from {noise: 1} on nearly all cells are one box. `auto` had "
            "the lower error of a cell in 33 of 42 settings and of boxes in 11 of 12 settings, of real and invented "
            "counts, and was at most 1.03 times the better of `greedy` and `pruned` on 21 public sets. Where counts "
            "change gently and boxes are asked, as in the paper's figure 16 (a), {noise: 0.7} with structure_share "
            "1/4 is nearer in 9 of 10 settings, within noise in the other, and `adaptive_boxes` nearer still.",
        ),
    ] = "auto"
    estimation: Annotated[
        Literal["uniform", "least_squares"],
        Setting(
            "`uniform`: a box's cells share its sum evenly; or `least_squares`: its noisy cells move alike, as far as "
            "their noise and that of the sum say, for boxes that hold unlike cells, and no boxes share a mean.",
            paper="both",
            why="`uniform` had the lower error of a cell in 34 of 42 settings, of real and invented counts, and at "
            "worst twice that of the other.",
        ),
    ] = "uniform"
    max_depth: Annotated[
        int,
        Field(ge=1, le=64),
        Setting(
            "the most cuts on the way to a box.",
            paper="none",
            why="A declared bound keeps the time within O(cells · depth).",
        ),
    ] = 40

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than six axes, and shares outside the sampler's range."""
        if len(domain.axes) > MOST_AXES:
            raise DomainRefused("dpcube", f"serves up to {MOST_AXES} axes, not {len(domain.axes)}")
        self._shares(Budget(epsilon), sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Phase I: noisy cells. Phase II: boxes by a kd-tree, and their noisy sums."""
        structure, sums = self._shares(budget, counts.sensitivity)
        noisy = counts.noisy_cells(structure)
        box_variance = noise_law(sums.scale(counts.sensitivity)).variance
        found = self._boxes(noisy, box_variance)
        boxed = counts.noisy_sums(found.boxes, sums)
        spread = _even if self.estimation == "uniform" else _least_squares
        values = spread(noisy, boxed, found)
        return Estimate(counts.domain, values, budget.charges, unbiased=noisy, groups=found.boxes, sums=boxed)

    def _boxes(self, noisy: NoisyCells, box_variance: float) -> TwofoldBoxes:
        """Found on noisy cells alone."""
        from dphist_pipeline.solvers.boxes.joined_boxes import TwofoldBoxes, twofold_boxes
        from dphist_pipeline.solvers.boxes.kd_boxes import kd_boxes
        from dphist_pipeline.solvers.boxes.pruned_boxes import pruned_boxes

        known = (noisy.values, noisy.variance, box_variance)
        if self.threshold == "auto":
            return twofold_boxes(*known, self.max_depth)
        if self.threshold == "pruned":
            return TwofoldBoxes.of(pruned_boxes(*known, self.max_depth)[0])
        return TwofoldBoxes.of(kd_boxes(*known, self._threshold(noisy.variance), self.max_depth))

    def _threshold(self, cell_variance: float) -> float:
        """What the variance of a box's noisy cells, less that of the noise, may be at most; nan for `greedy`."""
        if isinstance(self.threshold, PaperVariance):
            return self.threshold.paper - cell_variance
        if isinstance(self.threshold, NoiseMultiple):
            return (self.threshold.noise - 1) * cell_variance
        return self.threshold if isinstance(self.threshold, float) else math.nan

    def _shares(self, budget: Budget, sensitivity: int) -> tuple[Budget, ...]:
        return budget.split_for_noise(sensitivity, structure=self.structure_share, counts=1 - self.structure_share)


def _even(noisy: NoisyCells, boxed: NoisySums, found: TwofoldBoxes) -> NDArray[np.float64]:
    """The mean of each cell's box, or of several boxes that `auto` joins."""
    from dphist_pipeline.solvers.boxes.joined_boxes import Noise, joined_means

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
