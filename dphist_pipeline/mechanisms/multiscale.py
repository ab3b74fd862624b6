"""Multiscale: noisy sums of many widths, then every stretch's halves are drawn together where the noise explains them.

Paper:    ours. On a line the sums are those of `workload`, weighted and overlapping; else those of a tree of boxes, as
          in Hay, Rastogi, Miklau, Suciu. PVLDB 2010; see `boost`. How a count may be split into halves (evenly,
          unevenly, all on one side) is a mixture of laws as in Kolaczyk. Bayesian multiscale models for Poisson
          processes. JASA 1999, with weights learned from the noisy sums.
Privacy:  epsilon on `noisy_weighted_sums`, or on `noisy_tree` with an equal share a level. Weights and tree are
          functions of the grid and the declared questions. All that follows reads only noisy sums, so it is free, and
          nothing is chosen from exact counts.
Domain:   any number of axes, ordered. Lines of some 50 to 4,096 cells have weighted sums; below, `geometric` with the
          same halves; above, and on several axes, the tree.
Cost:     about a second for 4,096 cells, besides some 6 seconds for their weights; 8 to 25 seconds and a gigabyte for
          10^6.
Bars:     on `unbiased_estimate`, the least squares estimate, and on every box of cells, as for `workload` or `boost`.
          The estimates have no interval: each box is drawn towards what its surroundings suggest, where the noise can
          explain that. Estimates of a line may lie below 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

import numpy as np

from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.budget import LARGEST_SCALE, Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, SharedNoise
from dphist_pipeline.mechanisms import DomainRefused, Mechanism, Setting

LONGEST_LINE = 4096  # the search for weights is too long above


@dataclass(frozen=True)
class Multiscale(Mechanism):
    """Settings:"""

    workload: Annotated[
        Literal["ranges", "prefixes"],
        Setting(
            "the questions that the sums of a line are chosen for: `ranges` (all), or `prefixes` (all that begin at "
            "the first cell). Trees do not heed it."
        ),
    ] = "ranges"

    whole_way: ClassVar[int] = 3

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses shares of a number outside the sampler's range."""
        from dphist_pipeline.solvers.trees import workload_strategies as strategies
        from dphist_pipeline.solvers.trees.regular_tree import halving_tree

        levels = len(halving_tree(domain.shape).widths)
        if levels > 1 and _is_weighed(domain):
            if strategies.TOTAL * sensitivity / epsilon > LARGEST_SCALE:
                least = float(Fraction(strategies.TOTAL * sensitivity) / LARGEST_SCALE)
                raise DomainRefused("multiscale", f"needs an epsilon of at least {least:.2g} for such a line")
        else:
            Budget(epsilon / levels, "each level of the tree").scale(sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy sums, their least squares estimate, and the mean of every cell given all sums."""
        from dphist_pipeline.solvers.trees.regular_tree import halving_tree
        from dphist_pipeline.solvers.trees.split_posterior import split_means

        tree = halving_tree(counts.domain.shape)
        if len(tree.widths) == 1:
            noisy = counts.noisy_cells(budget)
            means = split_means(tree, [noisy.values], [float(noisy.scale)])
            return Estimate(counts.domain, means, budget.charges, unbiased=noisy)
        if _is_weighed(counts.domain):
            return self._from_weighted_sums(counts, budget)
        from dphist_pipeline.solvers.trees.regular_tree import covariance, weights_in_a_cell
        from dphist_pipeline.solvers.trees.tree_consistency import consistent_cells

        levels = counts.noisy_tree(tree.nodes, budget)
        sums, variances = [level.values for level in levels], [level.variance for level in levels]
        parts = covariance(tree, variances)
        tail = noise_law(levels[0].scale).tail_of_sum(weights_in_a_cell(tree.volumes, parts, variances[0]))
        shared = tuple(map(SharedNoise, parts, tree.widths))
        unbiased = NestedCells(consistent_cells(tree, sums, variances), levels[0].scale, shared, tail)
        means = split_means(tree, sums, [float(level.scale) for level in levels])
        return Estimate(counts.domain, means, budget.charges, unbiased=unbiased)

    def _from_weighted_sums(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        from dphist_pipeline.solvers.trees import line_posterior
        from dphist_pipeline.solvers.trees import workload_strategies as strategies

        noisy = counts.noisy_weighted_sums([strategies.weights_along(self.workload, counts.domain.cells)], budget)
        unbiased, (line,) = NestedCells.of_weighted_sums(noisy), noisy.lines
        own, *sums = line.weights.astype(np.float64)
        weighed = line_posterior.Weighed(
            own, np.array(sums), line.shared, noisy.values, float(noisy.scale), unbiased.values
        )
        means = line_posterior.weighted_means(weighed)
        return Estimate(counts.domain, means, budget.charges, unbiased=unbiased)


def _is_weighed(domain: Domain) -> bool:
    return len(domain.shape) == 1 and domain.cells <= LONGEST_LINE
