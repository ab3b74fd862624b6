"""DAWA: choose buckets of like cells privately, then make noisy sums of a tree of buckets agree, for ranges and boxes.

Paper:    Li, Hay, Miklau, Wang. A data- and workload-aware algorithm for range queries under differential privacy.
          PVLDB 2014. With half of the scale used here and no noise on single cells, as it is commonly coded, the choice
          of buckets loses 2 times its share at three cells and 2.9 times at eight. Here every bucket has noise of its
          own; the proof is beside `Buckets` in `confidential._queries`. The noise is one-sided, which is enough and
          varies less than Laplace noise. Buckets end at halves, quarters, eighths, … of the line. The paper's price of
          a bucket ignores the luck of searching; here two buckets are joined where that costs less deviation than
          about one scale of the noise, or the noise of a range if that is less, and less in large buckets, whose unlike
          cells harm more ranges. The tree over the buckets is that of `boost` with `auto`.
Privacy:  structure_share of epsilon on `choose_buckets`, the rest on `noisy_tree` of the buckets, an equal share a
          level. Least squares reads only noisy sums, so it is free. With one cell, all of epsilon on its noisy sum.
Domain:   one axis, ordered, or 2 to 6 along a Hilbert curve; up to 2^24 cells. It pays for ranges and boxes where many
          neighbouring cells are alike or empty. With some hundred cells, or where all differ by more than the noise,
          `boost` is better; for boxes over two axes, often `adaptive_grid`.
Cost:     O(cells · log cells).
Bars:     none for cells; sums of whole buckets have those of the fewest draws that make them up. Least squares and the
          error of spreading a bucket evenly are not covered, and the latter may exceed all noise where a bucket holds
          unlike cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
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

MOST_AXES = 6
MOST_CELLS = 1 << 24
OF_A_RANGE = Fraction(9, 8)  # so that the noise of a range counts below 4,096 cells; see benchmarks/ranges.py


@dataclass(frozen=True)
class DAWA(Mechanism):
    """Settings:"""

    structure_share: Annotated[
        Fraction,
        Field(gt=0, lt=1),
        Setting(
            "the part of epsilon that finds the buckets.",
            paper="1/4 (in its authors' code)",
            why="1/10 had a lower error of ranges and boxes in 34 of 42 settings, of real and invented counts.",
        ),
    ] = Fraction(1, 10)
    joining: Annotated[
        Fraction,
        Field(ge=0, le=100),
        Setting(
            "how much more a pair of cells may deviate than its cells and still be preferred, beyond what makes up "
            "for the noise, in scales of that noise.",
            paper="0",
            why="The paper's price of a bucket ignores the luck of searching: 5/4 had the lower error of ranges and "
            "boxes in 32 of 42 settings, from 0.3 to 1.7 times that of 0, of real counts, most of which it was chosen "
            "on, and invented ones.",
        ),
    ] = Fraction(5, 4)
    fading: Annotated[
        Fraction,
        Field(gt=0, le=1),
        Setting(
            "by what joining is multiplied from level to level: below 1, large buckets must be more alike.",
            paper="none",
            why="Unlike cells in a large bucket harm more ranges, but the gain is not clear: 17/20 had the lower error "
            "of ranges and boxes in 23 of 42 settings, from 0.4 to 2.6 times that of 1, of real counts, most of which "
            "it was chosen on, and invented ones.",
        ),
    ] = Fraction(17, 20)

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than six axes, too many cells, and shares outside the sampler's range."""
        if len(domain.axes) > MOST_AXES:
            raise DomainRefused("dawa", f"serves up to {MOST_AXES} axes, not {len(domain.axes)}")
        around = len(domain.axes) * (max(domain.shape) - 1).bit_length()
        if domain.cells > MOST_CELLS or around > 62:
            raise DomainRefused("dawa", f"serves up to {MOST_CELLS:,} cells, and axes of less different lengths")
        if domain.cells == 1:
            Budget(epsilon).scale(sensitivity)
            return
        structure, tree = self._shares(Budget(epsilon))
        structure.scale(2 * sensitivity)
        # Nodes branch in two or more parts, so a tree of buckets has at most so many levels.
        levels = 1 + (domain.cells - 1).bit_length()
        Budget(tree.epsilon / levels, "each level of the tree").scale(sensitivity)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Buckets, then noisy sums of a tree over them; least squares; each bucket's sum is spread evenly."""
        from dphist_pipeline.solvers.trees.hilbert import hilbert_line
        from dphist_pipeline.solvers.trees.regular_tree import best_tree
        from dphist_pipeline.solvers.trees.tree_consistency import consistent_cells

        domain = counts.domain
        if domain.cells == 1:
            groups = np.zeros(domain.shape, dtype=np.int64)
            total = counts.noisy_sums(groups, budget)
            return Estimate(domain, total.spread(groups), budget.charges, groups=groups, sums=total)
        structure, rest = self._shares(budget)
        line = hilbert_line(domain.shape)
        savings = self._savings(structure.epsilon, rest.epsilon, counts)
        starts = counts.choose_buckets(line, savings, structure)
        buckets = np.empty(domain.cells, dtype=np.int64)
        buckets[line] = np.repeat(np.arange(starts.size), np.diff(starts, append=domain.cells))
        buckets = buckets.reshape(domain.shape)
        tree = best_tree((starts.size,))
        nodes = tree.nodes
        levels = counts.noisy_tree([nodes[level][buckets] for level in range(len(nodes))], rest)
        fitted = consistent_cells(tree, [level.values for level in levels], [level.variance for level in levels])
        values = (fitted / levels[-1].sizes)[buckets]
        sums = NestedSums.of_levels(levels, _parents([widths[0] for widths in tree.widths], starts.size))
        return Estimate(domain, values, budget.charges, groups=buckets, sums=sums)

    def _shares(self, budget: Budget) -> tuple[Budget, ...]:
        return budget.split(structure=self.structure_share, counts=1 - self.structure_share)

    def _savings(self, choosing: Fraction, summing: Fraction, counts: PrivateCounts) -> tuple[int, ...]:
        """What a bucket's price is below those of its parts, level by level, in whole records.

        In the mean, noise takes a scale off a cost, and two parts have a draw more than the whole: joining makes up for
        that, and for the luck of the best of many splits. Where cells are few, a tree over them has less noise than
        that, and its standard deviation for a range is what unlike cells are weighed against.
        """
        from dphist_pipeline.solvers.trees.regular_tree import best_tree, covariance, mean_variance

        tree = best_tree((counts.domain.cells,))
        levels = len(tree.widths)
        of_a_range = math.sqrt(mean_variance(tree, covariance(tree, [2.0 * levels**2] * levels)))
        unit = counts.sensitivity * min(2 / choosing, OF_A_RANGE * Fraction(of_a_range) / summing)
        joined = range((counts.domain.cells - 1).bit_length())
        return tuple(int(unit * (1 + self.joining * self.fading**level)) for level in joined)


def _parents(widths: list[int], buckets: int) -> list[NDArray[np.int64]]:
    """For each level of a tree over a line but the first, the number of each node's parent."""
    return [np.arange(-(-buckets // narrow), dtype=np.int64) // (wide // narrow) for wide, narrow in pairwise(widths)]
