"""Least squares over noisy marginals of a grid, one axis of which has levels: tables that agree up and down the tree.

The levels of one axis are a tree: counties lie in states, states in the country. Each measured marginal is at one level
of it (or at none: the top of the tree, one node), crossed with a set B of the other axes. Over these other axes counts
split into parts S as in `marginal_estimates`, whose noise is uncorrelated. What is left of a part is a tree for each of
its directions, all with the same precisions: at a level, every node is measured with the precision that all marginals
of this level have for S. Least squares on a tree is two passes (Hay, Rastogi, Miklau, Suciu, PVLDB 2010), here for any
number of children and any precisions:

up    a node is known from its own measurement and from the sum of its children: the mean weighted by precision, with
      the variance U = 1 / (1/v + 1/Σ), Σ the sum of the children's U;
down  what the node's estimate lacks of the children's sum is shared among them in proportion to their U. So a child's
      error is (its U part of the node's error) + (its own error less its U part of the children's sum), and the two
      are uncorrelated: V(child) = U - (U/Σ)² · (Σ - V(node)).

Two nodes of a level. Siblings have the covariance w·w'·(V(node) - Σ), w their U over Σ. It is never positive, because
V(node) <= U(node) <= Σ. For nodes further apart, the covariance of their ancestors that are siblings is handed down by
factors w: never positive, too.

Sums of nodes. Let x be weights of the nodes of a level, n many, C their covariance, V_top the variance of the total,
and b the factors w multiplied from the top down (they sum to 1). Given the total, covariance is C - b·b'·V_top, at most
diag(U), because knowing more never adds variance, and a total has no part in it. So
    x'Cx <= max(U) · Σ(x - mean)² + V_top · (b'x)²,
and b'x = (mean of x) + (b - 1/n)'(x - mean), whose square is at most (1 + r)·mean² + (1 + 1/r)·Σ(b - 1/n)²·Σ(x - mean)²
for every r > 0. This bound has two numbers only: one for a node with itself, one for all pairs of nodes.

Weights. A measurement y of node q, with the precision p, weighs p·cov(sum, q) in a sum of nodes. The nodes that hold q
or lie in it have a covariance from 0 to V(q) with it, together; all others at most 0, and all together at least 0. So
the weight of y lies within p·V(q) <= 1, sign aside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Levels
from dphist_pipeline.solvers.tables.marginal_estimates import deviations_of, marginals_of, multiplied_out
from dphist_pipeline.solvers.tables.wanted_tables import Axes, subsets_of

Reals = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PartLaw:
    """What is known of one part of the counts, node by node.

    Attributes:
        own: precision of the measurements of a node of each level, from the top; 0 where there are none.
        most: the largest variance of a node, per level down to the finest that is measured.
        up: variance from a node's own measurements and from below, per level down to the finest that is measured.
        down: variance of the estimates of the nodes, likewise.
        below: the sum of `up` over the children of each node, for all levels but the finest.
        reach: the factors w multiplied from the top down, for each node, per level.
    """

    own: tuple[float, ...]
    most: tuple[float, ...]
    up: tuple[Reals, ...]
    down: tuple[Reals, ...]
    below: tuple[Reals, ...]
    reach: tuple[Reals, ...]


class LevelLaw:
    """What the estimates of tables know and do not know, from sizes, the tree of levels and variances alone.

    Cost: O(positions of all levels) for each part of the tables over the axes without levels.

    Args:
        sizes: positions along each axis of the grid, shape (axes,); each level is an axis.
        variances: of the noise in each cell of the measured marginals, by their sets of axes.
        levels: of one axis.
    """

    def __init__(self, sizes: Sequence[int], variances: Mapping[Axes, float], levels: Levels) -> None:
        self.sizes, self.variances, self.levels = tuple(sizes), dict(variances), levels
        self._laws: dict[Axes, PartLaw] = {}

    def depth(self, axes: Axes) -> int:
        """The level of a set of axes: 0 without any, 1 with the coarsest."""
        return next((number for number, axis in enumerate(self.levels.axes, 1) if axis in axes), 0)

    def plain(self, axes: Axes) -> Axes:
        """A set of axes without those that are levels."""
        return axes - frozenset(self.levels.axes)

    def cells(self, axes: Axes) -> int:
        """Cells of a marginal."""
        return math.prod(self.sizes[axis] for axis in axes)

    @cached_property
    def tree(self) -> Tree:
        """The levels with one node above all."""
        return Tree.of(self.levels, self.sizes[self.levels.axes[0]])

    def precision(self, measured: Axes, part: Axes) -> float:
        """What a measured marginal tells of a part, in each node of its level: one over the variance."""
        return 1 / (self.variances[measured] * self.cells(self.plain(measured) - part))

    def law_of(self, part: Axes) -> PartLaw:
        """What is known of a part: axes without levels.

        Raises:
            ValueError: no measured marginal has these axes.
        """
        law = self._laws.get(part)
        if law is None:
            own = [0.0] * (len(self.levels.axes) + 1)
            for measured in self.variances:
                if part <= measured:
                    own[self.depth(measured)] += self.precision(measured, part)
            if not any(own):
                raise ValueError(f"no measured marginal has the axes {sorted(part)}")
            law = self._laws[part] = _law_of_part(self.tree, own)
        return law

    def variances_of_cells(self, table: Axes) -> Reals:
        """Variance of the noise in the cells of a table at each of its nodes, exact, shape (nodes of its level,)."""
        others, depth = self.plain(table), self.depth(table)
        variances = np.zeros(self.tree.nodes[depth])
        for part in subsets_of([others]):
            along = math.prod(1 - 1 / self.sizes[axis] for axis in part) / self.cells(others - part) ** 2
            variances += along * self._at(part, depth).down[depth]
        return variances

    def variance_of_cell(self, table: Axes) -> float:
        """Variance of the noise in a cell of a table, in the mean of all its cells."""
        return float(self.variances_of_cells(table).mean())

    def covariance(self, table: Axes) -> dict[Axes, float]:
        """A bound on the covariance of the cells of a table, as a sum of these over the sets on whose axes two agree.

        For every weighted sum of cells, this gives at least its variance; exactly that for a table without a level.
        """
        depth, others = self.depth(table), self.plain(table)
        if depth == 0:
            return multiplied_out(self.sizes, table, lambda part: float(self.law_of(part).down[0][0]))
        level = frozenset([self.levels.axes[depth - 1]])
        bounds = {part: self._bound(part, depth) for part in subsets_of([others])}
        alone = multiplied_out(self.sizes, others, lambda part: bounds[part][0])
        pairs = multiplied_out(self.sizes, others, lambda part: bounds[part][1])
        return {agreed | level: part for agreed, part in alone.items()} | pairs

    def largest_weight(self, table: Axes, measured: Axes) -> float:
        """A bound on the weight, sign aside, of a draw of a measured marginal in any box of cells of a table."""
        common = self.plain(table & measured)
        depth, at = self.depth(table), self.depth(measured)
        return math.fsum(
            self.precision(measured, part) * self._at(part, depth).most[at] for part in subsets_of([common])
        )

    def largest_weights(self, table: Axes) -> Reals:
        """The largest weight of a draw of each measured marginal, in the order of `variances`; see `largest_weight`."""
        weights, others = self._weights_apart.copy(), self.plain(table)
        for place, measured in enumerate(self.variances):
            if not others.isdisjoint(measured):
                weights[place] = self.largest_weight(table, measured)
        return weights

    @cached_property
    def _weights_apart(self) -> Reals:
        """The largest weights in tables that share no axis but levels: only the part without axes is common."""
        most = self.law_of(frozenset()).most
        return np.array([self.precision(one, frozenset()) * most[self.depth(one)] for one in self.variances])

    def _at(self, part: Axes, depth: int) -> PartLaw:
        """What is known of a part that is measured at a level or below it."""
        law = self.law_of(part)
        if depth >= len(law.down):
            raise ValueError(f"no measured marginal has the axes {sorted(part)} at this level")
        return law

    def _bound(self, part: Axes, depth: int) -> tuple[float, float]:
        """Two numbers that bound the covariance of nodes of a level; see the top of this file."""
        law = self._at(part, depth)
        nodes, most, top = law.up[depth].size, float(law.up[depth].max()), float(law.down[0][0])
        uneven = float(np.square(law.reach[depth] - 1 / nodes).sum())
        # The total has more noise by r, and single nodes by 1/r: in proportion, both together least.
        ratio = uneven * top / most
        more = math.sqrt(ratio / (1 + ratio))
        alone = most + ((1 + 1 / more) * uneven * top if more else 0.0)
        return alone, (1 + more) * top / nodes**2 - alone / nodes


@dataclass(frozen=True, eq=False)
class Tree:
    """The levels of an axis, with one node above all.

    Attributes:
        nodes: how many there are at each level, from the top.
        parents: for each level but the top, the number of each node's parent, shape (nodes,).
        orders: for each level but the top, its nodes ordered by parent; None where they are.
        starts: for each level but the top, where in this order the children of each parent begin.
    """

    nodes: tuple[int, ...]
    parents: tuple[NDArray[np.int64], ...]
    orders: tuple[NDArray[np.int64] | None, ...]
    starts: tuple[NDArray[np.int64], ...]

    @classmethod
    def of(cls, levels: Levels, coarsest: int) -> Tree:
        """Adds the top, and finds the children of each node.

        Args:
            levels: of one axis, from the coarsest.
            coarsest: number of nodes of the coarsest level.
        """
        parents = (np.zeros(coarsest, dtype=np.int64), *levels.parents)
        orders = [None if (np.diff(one) >= 0).all() else np.argsort(one, kind="stable") for one in parents]
        sizes = (1, *(one.size for one in parents))
        starts = [np.cumsum(np.bincount(one, minlength=n)) for one, n in zip(parents, sizes, strict=False)]
        starts = [np.concatenate([[0], ends[:-1]]) for ends in starts]
        return cls(sizes, parents, tuple(orders), tuple(starts))

    def sums(self, level: int, values: Reals) -> Reals:
        """The sum over the children of every node of a level, shape (nodes, …).

        Args:
            level: of the parents, 0 for the top.
            values: one for each node of the next finer level, shape (nodes there, …).
        """
        order = self.orders[level]
        found: Reals = np.add.reduceat(values if order is None else values[order], self.starts[level], axis=0)
        return found


def _law_of_part(tree: Tree, own: Sequence[float]) -> PartLaw:
    finest = max(level for level, precision in enumerate(own) if precision)
    up, below = [np.full(tree.nodes[finest], 1 / own[finest])], list[Reals]()
    for level in range(finest - 1, -1, -1):
        below.insert(0, tree.sums(level, up[0]))
        up.insert(0, 1 / (own[level] + 1 / below[0]))
    down, reach = [up[0]], [np.ones(1)]
    for level in range(finest):
        parent = tree.parents[level]
        part = up[level + 1] / below[level][parent]
        down.append(up[level + 1] - part**2 * (below[level] - down[level])[parent])
        reach.append(part * reach[level][parent])
    most = tuple(float(one.max()) for one in down)
    return PartLaw(tuple(own), most, tuple(up), tuple(down), tuple(below), tuple(reach))


def estimate_tables_at_levels(law: LevelLaw, measured: Mapping[Axes, Reals], tables: Sequence[Axes]) -> list[Reals]:
    """Least squares estimates of tables, which agree on every common marginal and level; axes in ascending order.

    Cost: O(cells · 2^axes) for each measured marginal and table.

    Args:
        measured: noisy counts of each, axes in ascending order.
    """
    needed = set(subsets_of([law.plain(table) for table in tables]))
    means: dict[Axes, dict[int, Reals]] = {}
    for axes, values in measured.items():
        depth, level = law.depth(axes), axes & frozenset(law.levels.axes)
        sums = marginals_of(values.astype(np.float64), axes, {part | level for part in needed}, kept=level)
        for found, table in sums.items():
            part = law.plain(found)
            # The level is the first axis; the top of the tree is a level of one node.
            ordered = np.moveaxis(table, sorted(found).index(*level), 0) if level else table[None]
            weighted = ordered * (law.precision(axes, part) / law.law_of(part).own[depth])
            known = means.setdefault(part, {})
            known[depth] = known[depth] + weighted if depth in known else weighted
    deviations = {}
    for part in subsets_of(needed):
        wanted = {law.depth(table) for table in tables if part <= table}
        fitted = _fit_levels(law.tree, law.law_of(part), means.pop(part), wanted)
        deviations[part] = {depth: deviations_of(sums, first=1) for depth, sums in fitted.items()}
    return [_assemble(law, deviations, table) for table in tables]


def _fit_levels(tree: Tree, law: PartLaw, means: Mapping[int, Reals], wanted: set[int]) -> dict[int, Reals]:
    """The estimates of a part at the wanted levels, from the mean of its measurements at each: two passes."""
    finest, last = len(law.up) - 1, max(wanted)
    estimates, sums = [means[finest]], list[Reals]()
    for level in range(finest - 1, -1, -1):
        sums.insert(0, tree.sums(level, estimates[0]))
        estimates.insert(0, _weighted_mean(law, level, sums[0], means.get(level)))
    by_depth = {0: estimates[0]} if 0 in wanted else {}
    fitted = estimates[0]
    for level in range(last):
        parent = tree.parents[level]
        lacking = (fitted - sums[level]) / _along(law.below[level], fitted)
        fitted = estimates[level + 1] + _along(law.up[level + 1], fitted) * lacking[parent]
        if level + 1 in wanted:
            by_depth[level + 1] = fitted
    return by_depth


def _weighted_mean(law: PartLaw, level: int, sums: Reals, own: Reals | None) -> Reals:
    """The mean of the children's sum and of a node's own measurements, weighted by precision."""
    if own is None:
        return sums
    share = _along(law.up[level] * law.own[level], sums)
    return sums + share * (own - sums)


def _along(numbers: Reals, table: Reals) -> Reals:
    """Numbers of nodes, to be multiplied with a table of nodes by other axes."""
    return numbers.reshape(-1, *[1] * (table.ndim - 1))


def _assemble(law: LevelLaw, deviations: Mapping[Axes, Mapping[int, Reals]], table: Axes) -> Reals:
    depth, others = law.depth(table), sorted(law.plain(table))
    estimate = np.zeros([law.tree.nodes[depth], *(law.sizes[axis] for axis in others)])
    for part in subsets_of([frozenset(others)]):
        along = deviations[part][depth]
        shape = [along.shape[0], *(law.sizes[axis] if axis in part else 1 for axis in others)]
        estimate += along.reshape(shape) / law.cells(frozenset(others) - part)
    if depth == 0:
        return np.asarray(estimate[0])
    return np.ascontiguousarray(np.moveaxis(estimate, 0, sorted(table).index(law.levels.axes[depth - 1])))
