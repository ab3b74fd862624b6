"""Multiscale: noisy sums of a tree of boxes, then every box's halves are drawn together where the noise explains them.

Paper:    ours. The tree is that of Hay, Rastogi, Miklau, Suciu. PVLDB 2010; see `boost`. How a count may be split into
          halves (evenly, unevenly, all on one side) is a mixture of laws as in Kolaczyk. Bayesian multiscale models for
          Poisson processes. JASA 1999, with weights learned from the noisy sums.
Privacy:  epsilon on `noisy_tree`, an equal share a level. The tree is a function of the grid. All that follows reads
          only noisy sums, so it is free, and nothing is chosen from exact counts.
Domain:   any number of axes, ordered. Below some 50 cells on a line, `geometric` with the same halves.
Cost:     half a second for 4,096 cells, a minute and a gigabyte for 10^6.
Bars:     on `unbiased_estimate`, the least squares estimate, and on every box of cells, as for `boost`. The estimates
          have no interval: each box is drawn towards what its surroundings suggest, where the noise can explain that.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import Mechanism
from dphist_pipeline.mechanisms._trees import levels_have_room, measured_tree

if TYPE_CHECKING:
    from dphist_pipeline.solvers.trees.regular_tree import RegularTree

LEVELS, LARGE, CELLS_OF_A_BOX = 3, 1024, 16


@dataclass(frozen=True)
class Multiscale(Mechanism):
    """Settings: none."""

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses shares of a level outside the sampler's range."""
        levels_have_room(_tree(domain), sensitivity, Budget(epsilon))

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy sums of every node, their least squares estimate, and the mean of every cell given all sums."""
        from dphist_pipeline.solvers.trees.split_posterior import split_means

        tree = _tree(counts.domain)
        if len(tree.widths) == 1:
            noisy = counts.noisy_cells(budget)
            means = split_means(tree, [noisy.values], [float(noisy.scale)])
            return Estimate(counts.domain, means, budget.charges, unbiased=noisy)
        sums, cells = measured_tree(counts, tree, budget)
        means = split_means(tree, [level.values for level in sums], [float(level.scale) for level in sums])
        return Estimate(counts.domain, means, budget.charges, unbiased=cells)


def _tree(domain: Domain) -> RegularTree:
    """A function of the grid alone.

    That of least variance of boxes, by least squares, is too low for a large grid of several axes: means of cells need
    fewer draws below, where counts are drawn together, and large boxes need them above.
    """
    from dphist_pipeline.solvers.trees.regular_tree import best_halving_tree, tree_with_boxes

    best = best_halving_tree(domain.shape)
    low = len(best.widths) < LEVELS and domain.cells >= LARGE
    return tree_with_boxes(domain.shape, CELLS_OF_A_BOX) if low else best
