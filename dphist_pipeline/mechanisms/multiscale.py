"""Multiscale: noisy sums of a tree of boxes, then every box's halves are drawn together where the noise explains them.

Paper:    ours. The tree is that of Hay, Rastogi, Miklau, Suciu. PVLDB 2010; see `boost`. How a count may be split into
          halves (evenly, unevenly, all on one side) is a mixture of laws as in Kolaczyk. Bayesian multiscale models for
          Poisson processes. JASA 1999, with weights learned from the noisy sums.
Privacy:  epsilon on `noisy_tree`, an equal share a level. The tree is a function of the grid. All that follows reads
          only noisy sums, so it is free, and nothing is chosen from exact counts.
Domain:   any number of axes, ordered. Below some 50 cells on a line, `geometric` with the same halves.
Cost:     about a second for 4,096 cells, 8 to 25 seconds and a gigabyte for 10^6.
Bars:     on `unbiased_estimate`, the least squares estimate, and on every box of cells, as for `boost`. The estimates
          have no interval: each box is drawn towards what its surroundings suggest, where the noise can explain that.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import tail_of_sum
from dphist_pipeline.estimates.noisy import NestedCells, SharedNoise
from dphist_pipeline.mechanisms import Mechanism


@dataclass(frozen=True)
class Multiscale(Mechanism):
    """Settings: none."""

    whole_way: ClassVar[int] = 3

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses shares of a level outside the sampler's range."""
        from dphist_pipeline.solvers.trees.halving_trees import halving_tree

        levels = len(halving_tree(domain.shape).widths)
        Budget(epsilon / levels, "each level of the tree").scale(sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy sums of every node, their least squares estimate, and the mean of every cell given all sums."""
        from dphist_pipeline.solvers.trees.halving_trees import halving_tree
        from dphist_pipeline.solvers.trees.regular_tree import covariance, weights_in_a_cell
        from dphist_pipeline.solvers.trees.split_posterior import split_means
        from dphist_pipeline.solvers.trees.tree_consistency import consistent_cells

        tree = halving_tree(counts.domain.shape)
        if len(tree.widths) == 1:
            noisy = counts.noisy_cells(budget)
            means = split_means(tree, [noisy.values], [float(noisy.scale)])
            return Estimate(counts.domain, means, budget.charges, unbiased=noisy)
        levels = counts.noisy_tree(tree.nodes, budget)
        sums, variances = [level.values for level in levels], [level.variance for level in levels]
        parts = covariance(tree, variances)
        tail = tail_of_sum(levels[0].scale, weights_in_a_cell(tree.volumes, parts, variances[0]))
        shared = tuple(map(SharedNoise, parts, tree.widths))
        unbiased = NestedCells(consistent_cells(tree, sums, variances), levels[0].scale, shared, tail)
        means = split_means(tree, sums, [float(level.scale) for level in levels])
        return Estimate(counts.domain, means, budget.charges, unbiased=unbiased)
