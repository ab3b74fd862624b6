"""Least squares over noisy marginals of a grid, several axes of which have levels: tables that agree, by iteration.

Over the axes without levels, counts split into parts S whose noise is uncorrelated, as in `marginal_estimates`. What is
left of a part is a grid of the positions of all trees, at the finest level of each that is measured. The marginals at
the depths d (one for each tree, 0 for its top) tell sums of this grid, A_d x, with the precision p_d. Uneven trees have
no parts in common, so the normal equations N x = Σ p_d A_d' y_d with N = Σ p_d A_d' A_d are solved by conjugate
gradients (Hestenes, Stiefel 1952): N is applied by summing the grid along each tree and spreading the sums again, and
no matrix is built. Even trees have as many different eigenvalues as there are pairs of levels, and take as many steps.

Every table is summed from the same solution, so tables agree to rounding errors however far the iteration came. From
zero, conjugate gradients stay in the rows of the A_d: what no measurement tells apart, such as the cells of a grid that
is measured by its margins alone, gets the smallest x, and no table sums it.

Variances. Least squares has the smallest variance of all linear unbiased estimates, for every sum of cells at once
(Gauss and Markov). So any other linear unbiased estimate of a table gives a bound on the covariance of its cells. Two
kinds have covariances in closed form:

one tree       take only marginals at one level of each other tree, or without it: these trees are plain axes then, and
               `level_estimates.LevelLaw` has a bound on the covariance;
one marginal   sum a single measured marginal that contains the table: cells are independent, with the variance of a
               draw times the number of cells summed, of which there is a largest.

The one with the least noise in a cell is told. Weights: an estimate of variance V that gives a draw of variance v the
weight w has w²·v <= V, whatever else it sums.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Levels
from dphist_pipeline.solvers.tables.level_estimates import LevelLaw, Tree
from dphist_pipeline.solvers.tables.marginal_estimates import deviations_of, marginals_of
from dphist_pipeline.solvers.tables.wanted_tables import Axes, subsets_of

Reals = NDArray[np.float64]
Depths = tuple[int, ...]

MOST_STEPS = 2_000
NEAR_ENOUGH = 1e-12  # of the residual, beside the right side
# No weight is proved to be at most 2 in every box. Of thousands of sets of cells, over random trees, none gave a draw
# more than 1.4; intervals of boxes are calibrated to twice the draws of a single tree.
LARGEST_WEIGHT = 2.0


class CrossedLaw:
    """What the estimates of tables know and do not know, from sizes, trees of levels and variances alone.

    Args:
        sizes: positions along each axis of the grid, shape (axes,); each level is an axis.
        variances: of the noise in each cell of the measured marginals, by their sets of axes.
        trees: the levels of each axis that is used at several.
    """

    def __init__(self, sizes: Sequence[int], variances: Mapping[Axes, float], trees: Sequence[Levels]) -> None:
        self.sizes, self.variances, self.trees = tuple(sizes), dict(variances), tuple(trees)
        self._laws: dict[tuple[int, Depths], LevelLaw | None] = {}
        self._told: dict[Axes, dict[Axes, float]] = {}

    @cached_property
    def levels(self) -> Axes:
        """All axes that are levels."""
        return frozenset(axis for tree in self.trees for axis in tree.axes)

    @cached_property
    def grids(self) -> tuple[Tree, ...]:
        """The trees, each with one node above all."""
        return tuple(Tree.of(tree, self.sizes[tree.axes[0]]) for tree in self.trees)

    def depths(self, axes: Axes) -> Depths:
        """The level of a set of axes in each tree: 0 without any, 1 with the coarsest."""
        return tuple(next((n for n, axis in enumerate(tree.axes, 1) if axis in axes), 0) for tree in self.trees)

    def plain(self, axes: Axes) -> Axes:
        """A set of axes without those that are levels."""
        return axes - self.levels

    def cells(self, axes: Axes) -> int:
        """Cells of a marginal."""
        return math.prod(self.sizes[axis] for axis in axes)

    def precision(self, measured: Axes, part: Axes) -> float:
        """What a measured marginal tells of a part, in each node of its levels: one over the variance."""
        return 1 / (self.variances[measured] * self.cells(self.plain(measured) - part))

    def finest(self, part: Axes) -> Depths:
        """The finest level of each tree at which a part is measured.

        Raises:
            ValueError: no measured marginal has these axes.
        """
        depths = [self.depths(measured) for measured in self.variances if part <= measured]
        if not depths:
            raise ValueError(f"no measured marginal has the axes {sorted(part)}")
        return tuple(map(max, zip(*depths, strict=True)))

    def largest_grid(self, tables: Sequence[Axes]) -> int:
        """Cells of the largest grid that a part of some tables is solved on."""
        return max(self._grid(part) for part in subsets_of([self.plain(table) for table in tables]))

    def _grid(self, part: Axes) -> int:
        at = zip(self.grids, self.finest(part), strict=True)
        return self.cells(part) * math.prod(tree.nodes[depth] for tree, depth in at)

    def variance_of_cell(self, table: Axes) -> float:
        """A bound on the variance of the noise in a cell of a table, in the mean of all its cells.

        Exact where a single marginal is measured.
        """
        return min(
            [law.variance_of_cell(table) for law in self._simpler(table)] + [mean for mean, _ in self._sums(table)]
        )

    def covariance(self, table: Axes) -> dict[Axes, float]:
        """A bound on the covariance of the cells of a table, as a sum of these over the sets on whose axes two agree.

        For every weighted sum of cells, this gives at least its variance.
        """
        if table not in self._told:
            covariances = [law.covariance(table) for law in self._simpler(table)]
            covariances += [{table: most} for _, most in self._sums(table)]
            self._told[table] = min(covariances, key=lambda bound: math.fsum(bound.values()))
        return self._told[table]

    def largest_weights(self, table: Axes) -> Reals:
        """The largest weight, sign aside, of a draw of each measured marginal in any box of cells of a table.

        In the order of `variances`. Proved from variances, or `LARGEST_WEIGHT` where that is less.
        """
        box = self.cells(table) * math.fsum(
            max(0.0, part) * self.cells(table - agreed) for agreed, part in self.covariance(table).items()
        )
        return np.minimum(LARGEST_WEIGHT, np.sqrt(box / np.array(list(self.variances.values()))))

    def weights_in_cell(self, table: Axes) -> Reals:
        """The largest weight, proved, of a draw of each measured marginal in a cell of a table."""
        cell = math.fsum(self.covariance(table).values())
        return np.sqrt(cell / np.array(list(self.variances.values())))

    def _simpler(self, table: Axes) -> Iterator[LevelLaw]:
        """The laws of fewer measurements that tell a table, each at several levels of one tree alone."""
        at = self.depths(table)
        for free in range(len(self.trees)):
            choices = [
                [at[free]] if number == free else [depth] if depth else range(len(tree.axes) + 1)
                for number, (tree, depth) in enumerate(zip(self.trees, at, strict=True))
            ]
            for fixed in product(*choices):
                law = self._law(free, fixed)
                if law is not None and self._tells(law, table):
                    yield law

    def _law(self, free: int, fixed: Depths) -> LevelLaw | None:
        """The law of the marginals at these levels, or without them, of all trees but one."""
        key = free, tuple(0 if number == free else depth for number, depth in enumerate(fixed))
        if key not in self._laws:
            chosen = {
                measured: variance
                for measured, variance in self.variances.items()
                if all(
                    number == free or depth in (0, fixed[number]) for number, depth in enumerate(self.depths(measured))
                )
            }
            self._laws[key] = LevelLaw(self.sizes, chosen, self.trees[free]) if chosen else None
        return self._laws[key]

    @staticmethod
    def _tells(law: LevelLaw, table: Axes) -> bool:
        """Whether some marginal contains the table: at its level of the one tree, or below it."""
        plain, depth = law.plain(table), law.depth(table)
        return any(plain <= measured and depth <= law.depth(measured) for measured in law.variances)

    def _sums(self, table: Axes) -> Iterator[tuple[float, float]]:
        """The mean and the largest variance of a cell of a table, summed from each single marginal that contains it."""
        at, plain = self.depths(table), self.plain(table)
        for measured, variance in self.variances.items():
            below = self.depths(measured)
            if not plain <= measured or any(fine < coarse for fine, coarse in zip(below, at, strict=True)):
                continue
            mean = most = variance * self.cells(self.plain(measured) - plain)
            for tree, fine, coarse in zip(self.grids, below, at, strict=True):
                within = np.bincount(positions_above(tree, fine, coarse))
                mean, most = mean * float(within.mean()), most * float(within.max())
            yield mean, most


def positions_above(tree: Tree, fine: int, coarse: int) -> NDArray[np.int64]:
    """For each node of a level, the number of its node in a coarser level; levels count from 0, the top."""
    positions = np.arange(tree.nodes[fine])
    for level in range(fine, coarse, -1):
        positions = tree.parents[level - 1][positions]
    return positions


class Along:
    """Sums along the trees of a grid, at fixed finest levels; the first axes of a table are the trees.

    Within, the nodes of all levels stand in the order of a walk through each tree, so what is summed lies together.

    Args:
        trees: one for each of the first axes.
        finest: the level of each.
    """

    def __init__(self, trees: Sequence[Tree], finest: Depths) -> None:
        every = [
            [positions_above(tree, fine, depth) for depth in range(fine + 1)]
            for tree, fine in zip(trees, finest, strict=True)
        ]
        self._above = [[one[np.lexsort(above[::-1])] for one in above] for above in every]
        self._starts = [[np.flatnonzero(np.diff(one, prepend=-1)) for one in above] for above in self._above]
        self._sizes = [
            [np.diff(starts, append=above[0].size) for starts in along]
            for above, along in zip(self._above, self._starts, strict=True)
        ]

    def sums(self, values: Reals, axis: int, depth: int) -> Reals:
        """The sums of the finest nodes of one tree within each node of a level, as the walk comes to them.

        Args:
            values: along `axis` the finest nodes in order of the walk; any length along other axes.
            depth: of the level, 0 for the top.
        """
        if depth == len(self._above[axis]) - 1:
            return values
        found: Reals = np.add.reduceat(values, self._starts[axis][depth], axis=axis)
        return found

    def spread(self, values: Reals, axis: int, depth: int) -> Reals:
        """For each of the finest nodes of one tree the value of its node at a level.

        Args:
            values: along `axis` the nodes of the level in order of the walk; any length along other axes.
        """
        if depth == len(self._above[axis]) - 1:
            return values
        return np.repeat(values, self._sizes[axis][depth], axis=axis)

    def all_sums(self, values: Reals, depths: Depths) -> Reals:
        """The sums at levels of all trees, in the order of their nodes.

        Args:
            values: the grid, along each tree the finest nodes in order of the walk.
            depths: of the level of each tree, 0 for the top.
        """
        for axis, depth in enumerate(depths):
            numbers = self._above[axis][depth][self._starts[axis][depth]]
            values = self.sums(values, axis, depth).take(np.argsort(numbers), axis=axis)
        return values

    def normal(self, values: Reals, precisions: Mapping[Depths, float], axis: int = 0) -> Reals:
        """N times a grid: sums at every measured pair of levels, times their precision, spread again.

        Args:
            values: the grid, see `all_sums`; trees before `axis` are summed already.
            precisions: of each measured set of levels, one level for each tree from `axis` on.
            axis: the first tree that is summed along.
        """
        if axis == len(self._above):
            return values * precisions[()]
        by_depth: dict[int, dict[Depths, float]] = defaultdict(dict)
        for depths, precision in precisions.items():
            by_depth[depths[0]][depths[1:]] = precision
        image = np.zeros_like(values)
        for depth, rest in by_depth.items():
            image += self.spread(self.normal(self.sums(values, axis, depth), rest, axis + 1), axis, depth)
        return image

    def spread_all(self, values: Reals, depths: Depths) -> Reals:
        """For each cell of the grid the value of its cell at levels of all trees.

        Args:
            values: along each tree the nodes of its level, in the order of their numbers.
        """
        for axis, depth in enumerate(depths):
            values = values.take(self._above[axis][depth], axis=axis)
        return values


def estimate_crossed_tables(law: CrossedLaw, measured: Mapping[Axes, Reals], tables: Sequence[Axes]) -> list[Reals]:
    """Least squares estimates of tables, which agree on every common sum along all trees; axes in ascending order.

    Cost: O(cells of a part's grid · measured pairs of levels) for each step of conjugate gradients; some tens of steps.

    Args:
        measured: noisy counts of each, axes in ascending order.
    """
    means = _precise_sums(law, measured, set(subsets_of([law.plain(table) for table in tables])))
    deviations: dict[Axes, dict[Depths, Reals]] = {}
    for part, at_levels in means.items():
        finest = law.finest(part)
        along = Along(law.grids, finest)
        precisions: dict[Depths, float] = defaultdict(float)
        for axes in law.variances:
            if part <= axes:
                precisions[law.depths(axes)] += law.precision(axes, part)
        wanted = {law.depths(table) for table in tables if part <= table}
        right = sum((along.spread_all(sums, depths) for depths, sums in at_levels.items()), np.zeros(1))
        solved = _solve(along, precisions, deviations_of(right, first=len(law.trees)))
        deviations[part] = {depths: along.all_sums(solved, depths) for depths in wanted}
    return [_assemble(law, deviations, table) for table in tables]


def _precise_sums(
    law: CrossedLaw, measured: Mapping[Axes, Reals], needed: set[Axes]
) -> dict[Axes, dict[Depths, Reals]]:
    """For each part, the measurements at each pair of levels times their precisions, trees first."""
    found: dict[Axes, dict[Depths, Reals]] = {}
    for axes, values in measured.items():
        depths, levels = law.depths(axes), axes & law.levels
        every = {part | levels for part in needed}
        for kept, table in marginals_of(values.astype(np.float64), axes, every, kept=levels).items():
            part, order = law.plain(kept), sorted(kept)
            first = [order.index(tree.axes[depth - 1]) for tree, depth in zip(law.trees, depths, strict=True) if depth]
            ordered = np.moveaxis(table, first, range(len(first)))
            # The top of a tree is a level of one node.
            nodes = [tree.nodes[depth] for tree, depth in zip(law.grids, depths, strict=True)]
            weighted = ordered.reshape(*nodes, *ordered.shape[len(first) :]) * law.precision(axes, part)
            known = found.setdefault(part, {})
            known[depths] = known[depths] + weighted if depths in known else weighted
    return found


def _solve(along: Along, precisions: Mapping[Depths, float], right: Reals) -> Reals:
    """The smallest x with N x = right, by conjugate gradients."""
    solution = np.zeros_like(right)
    residual = right.copy()
    square = before = float(np.vdot(residual, residual))
    enough = square * NEAR_ENOUGH**2
    direction = residual.copy()
    best, least = solution, square
    for _ in range(MOST_STEPS):
        if square <= enough:
            break
        pushed = along.normal(direction, precisions)
        step = square / float(np.vdot(direction, pushed))
        solution = solution + step * direction
        residual -= step * pushed
        square, before = float(np.vdot(residual, residual)), square
        if square < least:
            best, least = solution, square
        direction *= square / before
        direction += residual
    return best


def _assemble(law: CrossedLaw, deviations: Mapping[Axes, Mapping[Depths, Reals]], table: Axes) -> Reals:
    depths, others = law.depths(table), sorted(law.plain(table))
    nodes = [tree.nodes[depth] for tree, depth in zip(law.grids, depths, strict=True)]
    estimate = np.zeros([*nodes, *(law.sizes[axis] for axis in others)])
    for part in subsets_of([frozenset(others)]):
        along = deviations[part][depths]
        shape = [*nodes, *(law.sizes[axis] if axis in part else 1 for axis in others)]
        estimate += along.reshape(shape) / law.cells(frozenset(others) - part)
    # Trees that the table does not have are one node; the others stand where their level does.
    at = [tree.axes[depth - 1] for tree, depth in zip(law.trees, depths, strict=True) if depth]
    order = sorted(table)
    estimate = estimate.reshape([law.sizes[axis] for axis in [*at, *others]])
    return np.moveaxis(estimate, range(len(at)), [order.index(axis) for axis in at]).copy()
