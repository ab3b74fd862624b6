"""AdaptiveGrid: a coarse grid sized by the noisy total, each box of it cut again by its own noisy count; for two axes.

Paper:    Qardaji, Yang, Li. Differentially private grids for geospatial data. ICDE 2013. With N records, sensitivity Δ
          and r = epsilon/Δ, the first grid has max(10, √(N·r/10)/4) parts along each axis; a box of it with n' noisy
          records is cut into √(n'·r₂/5) parts along each axis, r₂ that of the second grid; both rounded up, and at most
          one part a cell. The paper takes N as known; here total_share pays for it. Below N·r = 16,000 the first grid
          has ten parts whatever N is, and above that a 200th of epsilon tells N to about a hundredth.
Privacy:  total_share of epsilon on `noisy_sums` of all cells as one group, the rest in halves on `noisy_sums` of the
          boxes of the first grid and of the second. Both grids, and the least squares fit that makes them agree, read
          noisy sums alone.
Domain:   two ordered axes; one axis is served as a grid of one column. It pays for boxes over large grids with few
          records a cell; the number of parts takes no account of where within a box the records lie.
Cost:     O(cells).
Bars:     none for cells; sums of whole boxes have those of the fewest draws that make them up. Whether a sum is told
          depends on the total and on first draws of boxes that it cuts; it uses first draws of boxes that it holds
          whole, and second draws of the others. So it holds as often if it is told rarely. Least squares and the
          error of spreading a box evenly are not covered, and the latter may exceed all noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NestedSums
from dphist_pipeline.mechanisms import DomainRefused, Mechanism, Setting

MOST_AXES = 2
FEWEST_PARTS = 10  # the numbers of the paper
FIRST_RECORDS, SECOND_RECORDS = 10, 5

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class AdaptiveGrid(Mechanism):
    """Settings:"""

    total_share: Annotated[
        Fraction,
        Field(gt=0, lt=1),
        Setting(
            "the part of epsilon that buys the number of records, from which the first grid follows.",
            paper="none: it takes the number as known",
            why="A 200th tells the number to about a hundredth wherever the first grid depends on it.",
        ),
    ] = Fraction(1, 200)

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than two axes, and shares outside the sampler's range."""
        if len(domain.axes) > MOST_AXES:
            problem = f"serves two axes, not {len(domain.axes)}; for more use `dpcube`, `boost` or `dawa`"
            raise DomainRefused("adaptive_grid", problem)
        self._shares(Budget(epsilon), sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """The total, the sums of the first grid, those of the second; least squares; each box is spread evenly."""
        from dphist_pipeline.solvers.trees.tree_consistency import consistent

        total, first, second = self._shares(budget, counts.sensitivity)
        shape, sides = counts.domain.shape, (*counts.domain.shape, 1)[:2]
        rate = float(budget.epsilon / counts.sensitivity)
        records = float(counts.noisy_sums(np.zeros(shape, dtype=np.int64), total).values[0])
        coarse = _first_grid(sides, math.ceil(math.sqrt(max(records, 0.0) * rate / FIRST_RECORDS) / 4))
        upper = counts.noisy_sums(coarse.boxes.reshape(shape), first)
        wanted = np.sqrt(upper.values.clip(min=0.0) * float(second.epsilon / counts.sensitivity) / SECOND_RECORDS)
        boxes, parents = coarse.cut(np.ceil(wanted.clip(1, max(sides))).astype(np.int64))
        lower = counts.noisy_sums(boxes.reshape(shape), second)
        leaves = consistent([upper.values, lower.values], [parents])[-1]
        groups = boxes.reshape(shape)
        sums = NestedSums.of_levels([upper, lower], [parents])
        return Estimate(counts.domain, (leaves / lower.sizes)[groups], budget.charges, groups=groups, sums=sums)

    def _shares(self, budget: Budget, sensitivity: int) -> tuple[Budget, ...]:
        half = (1 - self.total_share) / 2
        return budget.split_for_noise(sensitivity, total=self.total_share, first=half, second=half)


@dataclass(frozen=True, eq=False)
class _Grid:
    """A grid of cells cut into slabs along both axes.

    Attributes:
        slabs: along each axis, the slab of every cell.
        starts: along each axis, the first cell of every slab, then the number of cells.
    """

    slabs: tuple[Numbers, Numbers]
    starts: tuple[Numbers, Numbers]

    @property
    def boxes(self) -> Numbers:
        """The box number of every cell, shape of the grid."""
        rows, columns = self.slabs
        return rows[:, None] * (self.starts[1].size - 1) + columns

    def cut(self, parts: Numbers) -> tuple[Numbers, Numbers]:
        """Cuts each box into so many parts along each axis, at most one a cell.

        Returns:
            The part of every cell, numbered box by box, and for each part its box.
        """
        boxes = self.boxes
        sides = np.meshgrid(*(np.diff(starts) for starts in self.starts), indexing="ij")
        along = [np.minimum(parts, side.ravel()) for side in sides]
        many = along[0] * along[1]
        places = []
        for axis, (slabs, starts) in enumerate(zip(self.slabs, self.starts, strict=True)):
            inside = np.arange(slabs.size) - starts[slabs]
            lined_up = inside[:, None] if axis == 0 else inside[None, :]
            places.append(lined_up * along[axis][boxes] // sides[axis].ravel()[boxes])
        numbers = (np.cumsum(many) - many)[boxes] + places[0] * along[1][boxes] + places[1]
        return numbers, np.repeat(np.arange(many.size), many)


def _first_grid(sides: tuple[int, ...], parts: int) -> _Grid:
    """The grid of so many parts along each axis, at least ten, at most one a cell."""
    slabs = [np.arange(side) * min(max(parts, FEWEST_PARTS), side) // side for side in sides]
    rows, columns = slabs
    starts = [np.append(np.flatnonzero(np.diff(slab, prepend=-1)), slab.size) for slab in slabs]
    return _Grid((rows, columns), (starts[0], starts[1]))
