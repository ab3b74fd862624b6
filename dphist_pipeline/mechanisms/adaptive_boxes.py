"""AdaptiveBoxes: boxes are measured, cut where many records were counted, and measured anew, twice over.

Paper:    ours. That a box is cut by its own noisy count is Qardaji, Yang, Li. ICDE 2013; see `adaptive_grid`. How a
          count may be split into halves (evenly, unevenly, all on one side) is a mixture of laws, as in `multiscale`.
          With N records, sensitivity Δ and r = epsilon/Δ, some N·r/160 boxes, at least 64, are measured first. A box
          with n' noisy records is halved log2(n'/(4·s)) times, its parts log2(n'/s) times by theirs, where s is the
          scale of the noise in each draw; rounded, at least 0, and down to single cells at most. Then the mean of
          every last box given all draws is spread evenly over its cells.
Privacy:  a 32nd of epsilon on `noisy_sums` of all cells as one group, the rest in thirds on `noisy_sums` of the boxes
          of three grids. Grids and means read noisy sums alone.
Domain:   any number of axes, ordered. It pays for boxes where cells hold few records: on average fewer than some 0.3,
          times epsilon over the sensitivity. Where they hold more, `multiscale` with `levels: overlapping` is nearer.
Cost:     about a second for 65,000 cells; 3 to 25 seconds and 1.5 gigabytes for 10^6.
Bars:     none for cells; sums of whole boxes have those of the fewest draws that make them up. Whether a sum is told
          depends on the total and on draws of boxes that it cuts; it uses draws of boxes that it holds whole. So it
          holds as often if it is told rarely. Estimates have no interval: each box is drawn towards what its
          surroundings suggest, and the error of spreading it evenly may exceed all noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NestedSums
from dphist_pipeline.mechanisms import Mechanism

TOTAL_SHARE = Fraction(1, 32)
FEWEST_BOXES, RECORDS_A_BOX = 64, 160  # of the first grid
KEPT_WHOLE = (4, 1)  # noisy records, by the scale of a draw, that a box of the first and of the second grid may hold


@dataclass(frozen=True)
class AdaptiveBoxes(Mechanism):
    """Settings: none."""

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses shares outside the sampler's range."""
        _shares(Budget(epsilon), sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """The total, then three draws of boxes, which are cut between them; each box's mean is spread evenly."""
        from dphist_pipeline.solvers.trees import refined_boxes

        of_total, *stages = _shares(budget, counts.sensitivity)
        shape, rate = counts.domain.shape, float(budget.epsilon / counts.sensitivity)
        total = counts.noisy_sums(np.zeros(shape, dtype=np.int64), of_total)
        parts = max(FEWEST_BOXES, float(total.values[0]) * rate / RECORDS_A_BOX)
        boxes = refined_boxes.RefinedBoxes.of_total(shape, total.values, float(total.scale), parts)
        levels = []
        for stage, most in zip(stages, (*KEPT_WHOLE, None), strict=True):
            groups = boxes.groups
            drawn = counts.noisy_sums(groups, stage)
            levels.append(drawn)
            boxes = boxes.measured(drawn.values, float(drawn.scale))
            if most is not None:
                boxes = boxes.cut(_halvings(drawn.values, float(drawn.scale), most))
        sums = NestedSums.of_levels(levels, [draw.parents for draw in boxes.draws[2:]])
        evenly = (boxes.means() / drawn.sizes)[groups]
        return Estimate(counts.domain, evenly, budget.charges, groups=groups, sums=sums)


def _halvings(noisy: NDArray[np.float64], scale: float, most: float) -> NDArray[np.int64]:
    """How many times each box is halved, so that about `most` noisy records, by the scale of the noise, are left."""
    return np.rint(np.log2(np.maximum(noisy / (most * scale), 1.0))).astype(np.int64)


def _shares(budget: Budget, sensitivity: int) -> tuple[Budget, ...]:
    """The budgets of the total and of three draws of boxes."""
    third = (1 - TOTAL_SHARE) / 3
    return budget.split_for_noise(sensitivity, total=TOTAL_SHARE, first=third, second=third, third=third)
