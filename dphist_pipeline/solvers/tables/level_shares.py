"""Which marginals at which levels of some axes to measure, and with which shares, for tables at several levels of them.

Where all positions of a level have equally many positions in the level below, the formula of `marginal_shares` holds.
Else variances differ from node to node. The search then runs twice: as if all had the mean number, and as if all had
the largest. What it finds is compared by the variance that is told of cells, the same for all cells of a table (see
`level_estimates`, and `crossed_levels` for several axes); only what is no worse than the full grid counts, where the
grid fits: exactly for one axis, by a bound on the variance for several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dphist_pipeline.domain import Levels
from dphist_pipeline.solvers.tables._level_bounds import bound_of_even_trees, bound_of_tree
from dphist_pipeline.solvers.tables.crossed_levels import CrossedLaw
from dphist_pipeline.solvers.tables.level_estimates import LevelLaw
from dphist_pipeline.solvers.tables.marginal_shares import Shares, choose_shares, finalists
from dphist_pipeline.solvers.tables.wanted_tables import Axes, opened, wanted_tables


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
        told = _mean([math.fsum(law.covariance(table).values()) for table in tables], weights)
        judged.append((told, Shares(marginals, parts, mean, None)))
    # Whatever is measured alone tells all tables; the grid, if it fits, is the largest of it.
    alone = [shares for _, shares in judged if shares.parts == (Fraction(1),)]
    most = min((shares.mean_variance for shares in alone), default=math.inf)
    chosen = min((one for one in judged if one[1].mean_variance <= most), key=lambda one: one[0])[1]
    if len(trees) == 1:
        measurable = [opened(candidate, above) for candidate in wanted.candidates]
        return replace(chosen, bound=bound_of_tree(wanted, measurable, sizes, tables, weights, trees[0]))
    return replace(chosen, bound=bound_of_even_trees(wanted, trees))


def _mean(variances: Sequence[float], weights: Sequence[float]) -> float:
    return float(np.average(variances, weights=weights))
