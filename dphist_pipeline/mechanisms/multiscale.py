"""Multiscale: noisy sums of many widths, then every stretch's halves are drawn together where the noise explains them.

Paper:    ours. On a line the sums are those of `workload`, weighted and overlapping; on a grid those of a tree of
          boxes, as in Hay, Rastogi, Miklau, Suciu. PVLDB 2010; see `boost`; or, by `levels: overlapping`, those of
          `workload` and the total. How a count may be split into halves (evenly, unevenly, all on one side) is a
          mixture of laws as in Kolaczyk. Bayesian multiscale models for Poisson processes. JASA 1999, with weights
          learned from the noisy sums.
Privacy:  epsilon on `noisy_weighted_sums`, with `overlapping` a sixteenth of it on `noisy_sums` of all cells as one
          group; or on `noisy_tree`: a record lies in one box of every level, so the levels' shares, equal ones or
          `weighed`, add up to epsilon. Weights, tree and shares are functions of the grid and the declared questions.
          All that follows reads only noisy sums, so it is free, and nothing is chosen from exact counts.
Domain:   any number of axes, ordered. Lines of some 50 to 4,096 cells have weighted sums; below, `geometric` with the
          same halves; above, and on several axes, the tree, or with `overlapping` weighted sums of up to 4,096 cells
          along each.
Cost:     about a second for 4,096 cells, besides some 6 seconds for their weights; 8 to 25 seconds and a gigabyte for
          10^6, by `overlapping` up to a minute and 1.5 gigabytes.
Bars:     on `unbiased_estimate`, the least squares estimate, and on every box of cells, as for `workload` or `boost`.
          The estimates have no interval: each box is drawn towards what its surroundings suggest, where the noise can
          explain that. Estimates of a line, and by `overlapping`, may lie below 0. By `overlapping` the noisy total has
          no part in the least squares estimate, so the interval of all cells is wider than need be.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import LARGEST_SCALE, Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import Scales, noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisySums, SharedNoise
from dphist_pipeline.mechanisms import DomainRefused, Mechanism, Setting

if TYPE_CHECKING:
    from dphist_pipeline.solvers.trees.regular_tree import RegularTree

LONGEST_LINE = 4096  # the search for weights is too long above
TOTAL_SHARE = Fraction(1, 16)  # of epsilon, beside sums of a grid: buys the number of records


@dataclass(frozen=True)
class Multiscale(Mechanism):
    """Settings:"""

    workload: Annotated[
        Literal["ranges", "prefixes"],
        Setting(
            "the questions that weighted sums are chosen for: `ranges` (all), or `prefixes` (all that begin at the "
            "first cell). Trees do not heed it."
        ),
    ] = "ranges"
    levels: Annotated[
        Literal["equal", "weighed", "overlapping"],
        Setting(
            "what is measured of a grid of several axes: `equal`, the levels of a tree, each with the same share of "
            "epsilon; `weighed`, one more for the total, and shares of small mean variance over all boxes of the "
            "declared grid, with most for single cells; or `overlapping`, the weighted sums of `workload`, for axes of "
            "at most 4,096 cells: nearest where most cells hold records. Lines have the same bytes by all three.",
            later=True,
        ),
    ] = "equal"

    whole_way: ClassVar[int] = 3

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses shares of a number outside the sampler's range."""
        from dphist_pipeline.solvers.trees import workload_strategies as strategies

        if not self._has_weighted_sums(domain):
            _, shares = self._tree(domain)
            Budget(epsilon * min(shares), "each level of the tree").scale(sensitivity)
            return
        axes = len(domain.shape)
        weights = strategies.total_along(axes) ** axes / (1 if axes == 1 else 1 - TOTAL_SHARE)
        if weights * sensitivity / epsilon > LARGEST_SCALE:
            least = float(Fraction(weights * sensitivity) / LARGEST_SCALE)
            kind = "such a line" if axes == 1 else "such axes"
            raise DomainRefused("multiscale", f"needs an epsilon of at least {least:.2g} for {kind}")

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy sums, their least squares estimate, and the mean of every cell given all sums."""
        from dphist_pipeline.solvers.trees.split_posterior import split_means

        if self._has_weighted_sums(counts.domain):
            return self._from_weighted_sums(counts, budget)
        tree, shares = self._tree(counts.domain)
        if len(shares) == 1:
            noisy = counts.noisy_cells(budget)
            means = split_means(tree, [noisy.values], [float(noisy.scale)])
            return Estimate(counts.domain, means, budget.charges, unbiased=noisy)
        levels = counts.noisy_tree(tree.nodes, budget, shares)
        means = split_means(tree, [level.values for level in levels], [float(level.scale) for level in levels])
        return Estimate(counts.domain, means, budget.charges, unbiased=_least_squares(tree, levels))

    def _tree(self, domain: Domain) -> tuple[RegularTree, list[Fraction]]:
        """The tree and the share of epsilon of each level, from the top: a function of the grid alone."""
        from dphist_pipeline.solvers.trees.regular_tree import halving_tree

        tree = halving_tree(domain.shape)
        if self.levels == "weighed" and len(domain.shape) > 1:
            from dphist_pipeline.solvers.trees import line_trees

            tree, parts = line_trees.weighed_levels(tree)
            return tree, [Fraction(part, line_trees.TOTAL) for part in parts]
        return tree, [Fraction(1, len(tree.widths))] * len(tree.widths)

    def _has_weighted_sums(self, domain: Domain) -> bool:
        """Whether weighted sums are asked for, no axis is too long for them, and cells alone are not better."""
        from dphist_pipeline.solvers.trees.regular_tree import halving_tree

        asked = len(domain.shape) == 1 or self.levels == "overlapping"
        return asked and max(domain.shape) <= LONGEST_LINE and len(halving_tree(domain.shape).widths) > 1

    def _from_weighted_sums(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        from dphist_pipeline.solvers.trees import sums_posterior
        from dphist_pipeline.solvers.trees import workload_strategies as strategies

        shape, of_sums, total = counts.domain.shape, budget, None
        weights = [strategies.weights_along(self.workload, size, strategies.total_along(len(shape))) for size in shape]
        if len(shape) > 1:
            of_all, of_sums = budget.split_for_noise(counts.sensitivity, total=TOTAL_SHARE, sums=1 - TOTAL_SHARE)
            drawn = counts.noisy_sums(np.zeros(shape, dtype=np.int64), of_all)
            total = float(drawn.values[0]), float(drawn.scale)
        noisy = counts.noisy_weighted_sums(weights, of_sums)
        unbiased = NestedCells.of_weighted_sums(noisy)
        whole, taken = [line.weights.astype(np.float64) for line in noisy.lines], [line.shared for line in noisy.lines]
        grid = sums_posterior.WeighedGrid.of(whole, taken, noisy.values, float(noisy.scale), unbiased.values, total)
        return Estimate(counts.domain, sums_posterior.weighted_means(grid), budget.charges, unbiased=unbiased)


def _least_squares(tree: RegularTree, levels: Sequence[NoisySums]) -> NestedCells:
    """The least squares estimate of the cells.

    Where levels have draws of different scales, a draw of scale b that has at most the weight w in any box is taken for
    one of scale b·w and weight 1: the largest b·w is the scale that intervals of boxes are calibrated to.
    """
    from dphist_pipeline.solvers.trees import line_trees
    from dphist_pipeline.solvers.trees.regular_tree import covariance, weights_in_a_cell
    from dphist_pipeline.solvers.trees.tree_consistency import consistent_cells

    variances = [level.variance for level in levels]
    parts = covariance(tree, variances)
    cells = consistent_cells(tree, [level.values for level in levels], variances)
    shared, scale = tuple(map(SharedNoise, parts, tree.widths)), levels[0].scale
    if all(level.scale == scale for level in levels):
        tail = noise_law(scale).tail_of_sum(weights_in_a_cell(tree.volumes, parts, variances[0]))
        return NestedCells(cells, scale, shared, tail)
    drawn = Scales.of([level.scale for level in levels])
    weights = np.array(line_trees.largest_weights(tree, parts, variances))
    most = Fraction(float((drawn.scale * weights).max())).limit_denominator(1 << 20)
    return NestedCells(cells, most, shared, drawn.bound_of_variance(math.fsum(parts), weights))
