"""What `boost` and `multiscale` share: noisy sums of a regular tree, and least squares on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.laws import tail_of_sum
from dphist_pipeline.estimates.noisy import NestedCells, NoisySums, SharedNoise

if TYPE_CHECKING:
    from dphist_pipeline.solvers.trees.regular_tree import RegularTree


def measured_tree(counts: PrivateCounts, tree: RegularTree, budget: Budget) -> tuple[list[NoisySums], NestedCells]:
    """Noisy sums of every node, an equal share a level, and the least squares estimate of the cells.

    Args:
        counts: of the tree's grid.
        tree: of at least two levels; a function of the grid.
        budget: to spend, all of it.
    """
    from dphist_pipeline.solvers.trees.regular_tree import covariance, weights_in_a_cell
    from dphist_pipeline.solvers.trees.tree_consistency import consistent_cells

    sums = counts.noisy_tree(tree.nodes, budget)
    variances = [level.variance for level in sums]
    cells = consistent_cells(tree, [level.values for level in sums], variances)
    parts = covariance(tree, variances)
    tail = tail_of_sum(sums[0].scale, weights_in_a_cell(tree.volumes, parts, variances[0]))
    return sums, NestedCells(cells, sums[0].scale, tuple(map(SharedNoise, parts, tree.widths)), tail)


def levels_have_room(tree: RegularTree, sensitivity: int, budget: Budget) -> None:
    """Refuses shares of a level outside the sampler's range.

    Args:
        tree: whose levels share alike.
        sensitivity: of a count.
        budget: that they share.
    """
    levels = len(tree.widths)
    Budget(budget.epsilon / levels, "each level of the tree").scale(sensitivity)
