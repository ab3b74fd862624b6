"""Which marginals at which levels of one axis to measure, and with which shares, for tables at several levels of it.

Where all positions of a level have equally many positions in the level below, the formula of `marginal_shares` holds,
with its lower bound. Else variances differ from node to node. The search then runs twice: as if all had the mean
number, and as if all had the largest. What it finds is compared by the variance that is told of cells, the same for all
cells of a table (see `level_estimates`); only what is exactly no worse than the full grid counts, where the grid fits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dphist_pipeline.domain import Levels
from dphist_pipeline.solvers.level_estimates import LevelLaw
from dphist_pipeline.solvers.marginal_shares import Axes, Shares, choose_shares, finalists, wanted_tables


def choose_level_shares(
    sizes: Sequence[int], tables: Sequence[Axes], weights: Sequence[float], most_cells: int, levels: Levels
) -> Shares:
    """The best strategy that is found; a function of its input alone.

    Cost: as `choose_shares`, and O(positions of all levels · parts of the tables) for each of some ten strategies.

    Args:
        sizes: positions along each axis, shape (axes,); each level is an axis.
        tables: sets of axes; none of them twice; each has at most one level.
        weights: of the tables, in the same order.
        most_cells: that a measured marginal may have.
        levels: of one axis.
    """
    wanted = wanted_tables(sizes, tables, weights, most_cells, levels.above)
    if levels.even:
        return choose_shares(wanted)
    largest = dict(zip(levels.axes[1:], (int(np.bincount(parent).max()) for parent in levels.parents), strict=True))
    widest = replace(wanted, sizes=tuple(float(largest.get(axis, size)) for axis, size in enumerate(wanted.sizes)))
    judged = []
    for marginals, parts in dict.fromkeys([*finalists(wanted), *finalists(widest)]):
        law = LevelLaw(sizes, {axes: 2 / float(part) ** 2 for axes, part in zip(marginals, parts, strict=True)}, levels)
        exact = _mean([law.variance_of_cell(table) for table in tables], weights)
        told = _mean([math.fsum(law.covariance(table).values()) for table in tables], weights)
        judged.append((told, Shares(marginals, parts, exact, None)))
    # Whatever is measured alone tells all tables; the grid, if it fits, is the largest of it.
    alone = [shares for _, shares in judged if shares.parts == (Fraction(1),)]
    most = min((shares.mean_variance for shares in alone), default=math.inf)
    return min((one for one in judged if one[1].mean_variance <= most), key=lambda one: one[0])[1]


def _mean(variances: Sequence[float], weights: Sequence[float]) -> float:
    return float(np.average(variances, weights=weights))
