"""DPHR: order the cells privately, find the best groups of alike cells, then count the groups with fresh noise.

Paper:    Tao, Li, Huang, Hou, Gong. A symmetry histogram publishing method based on differential privacy. Symmetry
          2023. As printed it is not private: each of the m selections of its sort costs the whole first share; their
          candidates are read from exact counts; and its grouping optimises over exact counts for free. Here groups are
          found on noisy cells. With `order: noisy` these also order the cells, and its dynamic programme, O(m²) for
          each number of groups, is one search over every number of groups. With `order: exponential` cells are selected
          one after another, as in the paper, each likely to be near the one before in count and place; but the
          candidates are all cells left, and the order has a share of its own. With many cells such an order is mostly
          noise: a selection gets about 1/m of the order's share, and noise of about 2·m/share records.
          Choices add geometric noise to the scores and take the largest (permute-and-flip, but for ties), in
          place of the exponential mechanism.
Privacy:  `noisy`: order_share of epsilon on `noisy_cells`, the rest on `noisy_sums` of the groups, one draw a group.
          Order and groups are found on noisy cells alone, which is free. `exponential`: order_share on `choose`, an
          equal share a selection (a score moves no further than the counts do; the last cell needs no selection);
          grouping_share on `noisy_cells`, on which groups are found; the rest on `noisy_sums`. With up to two cells
          there is no order to choose, and its share goes to the other two steps.
Domain:   any number of axes, ordered or not; where a cell lies plays no part (`exponential`: its number does). Up to
          5,000 cells with `exponential`.
Cost:     O(m log m) time in the cells m, O(m) memory. `exponential`: O(m²) time, and m - 2 answers of a measurement,
          each of which a release keeps as a file.
Bars:     the noise of the cells, on `unbiased_estimate`; the error of merging unlike cells is not covered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.confidential.scores import NextByNearness
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.mechanisms import BadSetting, DomainRefused, Mechanism, Setting

MOST_SELECTED = 5000


@dataclass(frozen=True)
class DPHR(Mechanism):
    """Settings:"""

    order_share: Annotated[
        Fraction,
        Field(gt=0, lt=1),
        Setting(
            "the part of epsilon that orders the cells. With `order: exponential`, set it and grouping_share to 1/3: "
            "the default had 4 to 23 times the error of that in all of 30 settings.",
            paper="1/2",
            why="17/20 had the lower error in 19 of 30 settings, of real and invented counts, but up to 10 times that "
            "of 1/2 where epsilon is large for the counts (ages of Brazil), and on the seven cells of the paper's "
            "example.",
        ),
    ] = Fraction(17, 20)
    order: Annotated[
        Literal["noisy", "exponential"],
        Setting(
            "`noisy`, by noisy counts; or `exponential`, by private selections.",
            paper="exponential",
            why="With up to 128 cells, `noisy` had the lower error in 14 of 30 settings, at best a twentieth and at "
            "worst 4 times that of `exponential` in thirds; with more cells, selections are mostly noise.",
        ),
    ] = "noisy"
    grouping_share: Annotated[
        Annotated[Fraction, Field(gt=0, lt=1)] | None,
        Setting(
            "with `order: exponential` only, the part of epsilon for the noisy cells on which groups are found; "
            "without it, half of what order_share leaves.",
            paper="none: it groups by exact counts",
            why="Grouping by exact counts is not private, so noisy cells have to be bought.",
        ),
    ] = None

    @property
    def advice(self) -> dict[str, str]:
        """Thirds, in place of the shares that `order: exponential` has by default."""
        default = type(self).order_share
        unset = self.order == "exponential" and self.order_share == default and self.grouping_share is None
        return {"order_share": "1/3", "grouping_share": "1/3"} if unset else {}

    def __post_init__(self) -> None:
        if self.grouping_share is None:
            return
        if self.order == "noisy":
            problem = "`order: noisy` finds groups on the cells that order them; leave it out"
            raise BadSetting("dphr", "grouping_share", problem)
        if self.order_share + self.grouping_share >= 1:
            raise BadSetting("dphr", "grouping_share", "must leave something beside order_share for the groups' sums")

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses shares outside the sampler's range, and more cells than can be selected one by one."""
        if self.order == "noisy":
            self._shares(Budget(epsilon), sensitivity)
            return
        if domain.cells > MOST_SELECTED:
            problem = f"with `order: exponential` serves up to {MOST_SELECTED:,} cells, not {domain.cells:,}"
            raise DomainRefused("dphr", f"{problem}; use `order: noisy`")
        selections, grouping, sums = self._shares_of_selection(Budget(epsilon), domain.cells)
        for selection in selections[:1]:  # all have the same share
            selection.scale(NextByNearness(np.zeros(1, dtype=np.int64)).sensitivity(sensitivity))
        grouping.scale(sensitivity)
        sums.scale(sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy cells in order, their cheapest groups, and the groups' noisy sums."""
        grouped = self._by_selection if self.order == "exponential" else self._by_value
        noisy, groups, share = grouped(counts, budget)
        sums = counts.noisy_sums(groups, share)
        values = sums.spread(groups)
        return Estimate(counts.domain, values, budget.charges, unbiased=noisy, groups=groups, sums=sums)

    def _by_value(self, counts: PrivateCounts, budget: Budget) -> tuple[NoisyCells, NDArray[np.int64], Budget]:
        from dphist_pipeline.solvers.groups.optimal_groups import optimal_groups
        from dphist_pipeline.solvers.groups.value_groups import groups_by_value

        order, sums = self._shares(budget, counts.sensitivity)
        noisy = counts.noisy_cells(order)
        price = _noise_price(sums, counts.sensitivity)
        return noisy, groups_by_value(noisy.values, lambda line: optimal_groups(line, price)), sums

    def _by_selection(self, counts: PrivateCounts, budget: Budget) -> tuple[NoisyCells, NDArray[np.int64], Budget]:
        from dphist_pipeline.solvers.groups.line_groups import cheapest_line_groups

        selections, grouping, sums = self._shares_of_selection(budget, counts.domain.cells)
        order = _selection_order(counts, selections)
        noisy = counts.noisy_cells(grouping)
        line = noisy.values.ravel()[order]
        groups = np.empty(line.size, dtype=np.int64)
        # Noise adds its variance to a group's squared error once for every cell but one.
        groups[order] = cheapest_line_groups(line, _noise_price(sums, counts.sensitivity), noisy.variance)
        return noisy, groups.reshape(counts.domain.shape), sums

    def _shares(self, budget: Budget, sensitivity: int) -> tuple[Budget, ...]:
        return budget.split_for_noise(sensitivity, order=self.order_share, counts=1 - self.order_share)

    def _shares_of_selection(self, budget: Budget, cells: int) -> tuple[tuple[Budget, ...], Budget, Budget]:
        """The budgets of the selections, of the noisy cells, and of the sums."""
        rest = 1 - self.order_share
        grouping = rest / 2 if self.grouping_share is None else self.grouping_share
        many = cells - 2  # the first cell is given, and so is the last when no other is left
        if many < 1:
            cells_share, sums = budget.split(grouping=grouping / rest, counts=1 - grouping / rest)
            return (), cells_share, sums
        order, cells_share, sums = budget.split(order=self.order_share, grouping=grouping, counts=rest - grouping)
        names = [f"order_{number}" for number in range(1, many + 1)]
        return order.split(**dict.fromkeys(names, Fraction(1, many))), cells_share, sums


def _noise_price(sums: Budget, sensitivity: int) -> float:
    """The noise of a group of one cell, in records squared; a group of n cells has an n-th of it."""
    return 2 * float(sums.scale(sensitivity)) ** 2


def _selection_order(counts: PrivateCounts, selections: Sequence[Budget]) -> NDArray[np.int64]:
    """Cell numbers in the order in which they are selected, each likely to be near the one before."""
    order, left = [0], np.arange(1, counts.domain.cells)
    for selection in selections:
        group = np.append(order[-1], left)
        chosen = int(counts.choose([group], NextByNearness(np.abs(left - order[-1])), selection)[0])
        order.append(int(left[chosen]))
        left = np.delete(left, chosen)
    return np.array([*order, *left.tolist()], dtype=np.int64)
