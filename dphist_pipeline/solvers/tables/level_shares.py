"""Which marginals at which levels of some axes to measure, and with which shares, for tables at several levels of them.

Where all positions of a level have equally many positions in the level below, the formula of `marginal_shares` holds.
Else variances differ from node to node. The search then runs twice: as if all had the mean number, and as if all had
the largest. What it finds is compared by the variance that is told of cells, the same for all cells of a table (see
`level_estimates`, and `crossed_levels` for several axes); only what is no worse than the full grid counts, where the
grid fits: exactly for one axis, by a bound on the variance for several.

The bounds are lower bounds on the mean variance of the tables, whatever is measured with whichever shares. Shares sum
to 1, so their squares sum to at most 1. The mean variance F of least squares is a convex function of the squares,
because the inverse of a matrix is, and F(t·u) = F(u)/t. So F(v) >= F(u)² / max(gains(u)) for all squares v that sum to
at most 1 and for every u, with gains the falls of F with each square: see `marginal_shares.best_squares`.

one tree       F and its gains are computed node by node, exactly, for any numbers of children;
several trees  where each node has at least m children, keep some m of each, and let somebody tell the exact counts of
               all cells below the others. That makes no variance larger. What is left to know are the same measurements
               of even trees with m children a node, whose bound is in closed form. Each node can be among those kept,
               so no node has a smaller variance than the nodes of the even trees.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Levels
from dphist_pipeline.solvers.tables.crossed_levels import CrossedLaw
from dphist_pipeline.solvers.tables.level_estimates import LevelLaw, Tree
from dphist_pipeline.solvers.tables.marginal_shares import Shares, best_squares, choose_shares, finalists
from dphist_pipeline.solvers.tables.wanted_tables import Axes, Wanted, subsets_of, wanted_tables, without_implied_levels

Reals = NDArray[np.float64]

_MOST_STEPS, _LEAST_STEPS = 200, 4
_MOST_NODES = 4e7  # that all steps together look at
_ROUNDING = 1 - 1e-6  # of the bound; far more than rounding takes
_LEAST_SQUARE = 1e-100  # of a share, whose sum is 1


def bound_of_even_trees(wanted: Wanted, trees: Iterable[Levels]) -> float:
    """The bound for several trees, by the fewest children that a node of each level has.

    Args:
        wanted: the problem, with the mean numbers of children as sizes of levels.
        trees: of the axes with levels.
    """
    sizes = list(wanted.sizes)
    for tree in trees:
        for axis, parents in zip(tree.axes[1:], tree.parents, strict=True):
            sizes[axis] = int(np.bincount(parents).min())
    return best_squares(replace(wanted, sizes=tuple(sizes)))[1] * _ROUNDING


def bound_of_tree(
    wanted: Wanted,
    measurable: Sequence[Axes],
    sizes: Sequence[int],
    tables: Sequence[Axes],
    weights: Sequence[float],
    levels: Levels,
) -> float:
    """The bound for one tree with any numbers of children.

    Cost: O(positions of all levels · parts of the tables) for each of up to 200 steps; of large trees, fewer.

    Args:
        wanted: the problem, with the mean numbers of children as sizes of levels; where the search begins.
        measurable: what its candidates are, each with one level.
        sizes: positions along each axis, shape (axes,); each level is an axis.
        weights: of the tables, in the same order.
    """
    law = LevelLaw(sizes, {}, levels)
    costs = _costs(law, tables, weights)
    depths = np.array([law.depth(candidate) for candidate in measurable])
    precisions = {part: _precisions(law, measurable, part) for part in costs}
    # What is worthless falls towards 0, and the square of its variance would overflow; the bound holds for any squares.
    squares, bound = np.maximum(best_squares(wanted)[0], _LEAST_SQUARE), 0.0
    steps = int(_MOST_NODES / (sum(law.tree.nodes) * len(costs)))
    for _ in range(max(_LEAST_STEPS, min(_MOST_STEPS, steps))):
        variance, gains = 0.0, np.zeros(len(measurable))
        for part, by_depth in costs.items():
            own = np.bincount(depths, precisions[part] * squares, len(law.tree.nodes)).astype(np.float64)
            mean, falls = _mean_and_falls(law.tree, own, by_depth)
            variance, gains = variance + mean, gains + falls[depths] * precisions[part]
        bound = max(bound, variance**2 / float(gains.max()))
        squares = squares * np.sqrt(gains)
        squares = np.maximum(squares / squares.sum(), _LEAST_SQUARE)
    return bound * _ROUNDING


def _costs(law: LevelLaw, tables: Sequence[Axes], weights: Sequence[float]) -> dict[Axes, Reals]:
    """What the mean variance of the nodes of each level adds to the mean variance of all tables, for each part."""
    found: dict[Axes, Reals] = {}
    for table, weight in zip(tables, weights, strict=True):
        others, depth = law.plain(table), law.depth(table)
        for part in subsets_of([others]):
            along = math.prod(1 - 1 / law.sizes[axis] for axis in part) / law.cells(others - part) ** 2
            found.setdefault(part, np.zeros(len(law.tree.nodes)))[depth] += weight / math.fsum(weights) * along
    return found


def _precisions(law: LevelLaw, measurable: Sequence[Axes], part: Axes) -> Reals:
    """What each candidate tells of a part at the share 1; 0 for those that do not hold it."""
    return np.array([0.5 / law.cells(law.plain(one) - part) if part <= one else 0.0 for one in measurable])


def _mean_and_falls(tree: Tree, own: Reals, costs: Reals) -> tuple[float, Reals]:
    """The weighted mean variance of the nodes of a part, and how fast it falls with the precision of each level.

    Variances as in `level_estimates`, up and down; falls by the chain rule, down and up again.

    Args:
        own: precision of the measurements of a node of each level, from the top.
        costs: of the mean variance of each level, likewise.
    """
    finest = int(np.flatnonzero(own).max())
    up, below = [np.full(tree.nodes[finest], 1 / own[finest])], list[Reals]()
    for level in range(finest - 1, -1, -1):
        below.insert(0, tree.sums(level, up[0]))
        up.insert(0, 1 / (own[level] + 1 / below[0]))
    down = [up[0]]
    for level in range(finest):
        parent = tree.parents[level]
        part = up[level + 1] / below[level][parent]
        down.append(up[level + 1] - part**2 * (below[level] - down[level])[parent])
    mean = math.fsum(cost * float(one.mean()) for cost, one in zip(costs, down, strict=False))
    by_down = [np.full(one.size, cost / one.size) for cost, one in zip(costs, down, strict=False)]
    by_up, by_below = [np.zeros(one.size) for one in up], [np.zeros(one.size) for one in below]
    for level in range(finest - 1, -1, -1):
        parent, change = tree.parents[level], by_down[level + 1]
        part = up[level + 1] / below[level][parent]
        more = 2 * part * (below[level] - down[level])[parent] / below[level][parent]
        by_up[level + 1] += change * (1 - more)
        by_below[level] += tree.sums(level, change * part * (more - part))
        by_down[level] += tree.sums(level, change * part**2)
    by_up[0] += by_down[0]
    falls = np.zeros(own.size)
    for level in range(finest + 1):
        falls[level] = by_up[level] @ up[level] ** 2
        if level < finest:
            by_below[level] += by_up[level] * (up[level] / below[level]) ** 2
            by_up[level + 1] += by_below[level][tree.parents[level]]
    return mean, falls


def law_of_levels(
    sizes: Sequence[int], variances: Mapping[Axes, float], trees: Sequence[Levels]
) -> LevelLaw | CrossedLaw:
    """What the estimates of tables at levels of one axis, or of several, know and do not know.

    Args:
        sizes: positions along each axis, shape (axes,); each level is an axis.
        variances: of the noise in each cell of the measured marginals, by their sets of axes.
        trees: the levels of each axis that is used at several; at least one.
    """
    return LevelLaw(sizes, variances, trees[0]) if len(trees) == 1 else CrossedLaw(sizes, variances, trees)


def choose_level_shares(
    sizes: Sequence[int], tables: Sequence[Axes], weights: Sequence[float], most_cells: int, trees: Sequence[Levels]
) -> Shares:
    """The best strategy that is found; a function of its input alone.

    Cost: as `choose_shares`, and O(positions of all levels · parts of the tables) for each of some ten strategies, and
    for each step of the lower bound.

    Args:
        sizes: positions along each axis, shape (axes,); each level is an axis.
        tables: sets of axes; none of them twice; each has at most one level of an axis.
        weights: of the tables, in the same order.
        most_cells: that a measured marginal may have.
        trees: the levels of each axis that is used at several.
    """
    above = {fine: coarse for tree in trees for fine, coarse in tree.above.items()}
    wanted = wanted_tables(sizes, tables, weights, most_cells, above)
    even = all(tree.even for tree in trees)
    if even and len(trees) == 1:
        return choose_shares(wanted)
    largest = {
        axis: int(np.bincount(parent).max())
        for tree in trees
        for axis, parent in zip(tree.axes[1:], tree.parents, strict=True)
    }
    widest = replace(wanted, sizes=tuple(float(largest.get(axis, size)) for axis, size in enumerate(wanted.sizes)))
    judged = []
    for marginals, parts in dict.fromkeys([*finalists(wanted), *([] if even else finalists(widest))]):
        variances = {axes: 2 / float(part) ** 2 for axes, part in zip(marginals, parts, strict=True)}
        law = law_of_levels(sizes, variances, trees)
        mean = _mean([law.variance_of_cell(table) for table in tables], weights)
        variance = _mean([math.fsum(law.covariance(table).values()) for table in tables], weights)
        judged.append((variance, Shares(marginals, parts, mean, None)))
    # Whatever is measured alone tells all tables; the grid, if it fits, is the largest of it.
    alone = [shares for _, shares in judged if shares.parts == (Fraction(1),)]
    most = min((shares.mean_variance for shares in alone), default=math.inf)
    chosen = min((one for one in judged if one[1].mean_variance <= most), key=lambda one: one[0])[1]
    if len(trees) == 1:
        measurable = [without_implied_levels(candidate, above) for candidate in wanted.candidates]
        return replace(chosen, bound=bound_of_tree(wanted, measurable, sizes, tables, weights, trees[0]))
    return replace(chosen, bound=bound_of_even_trees(wanted, trees))


def _mean(variances: Sequence[float], weights: Sequence[float]) -> float:
    return float(np.average(variances, weights=weights))
