"""Tables that are wanted, the parts that they consist of, and the marginals that may be measured for them.

Marginals and tables are sets of axes; the parts of a table are the deviations along subsets of them. `marginal_shares`
says how noisy a table is by what is measured, and chooses that.

Levels of one axis count as axes of their own. A set that has a level is closed: it has all coarser levels, too. A level
counts for as many positions as each position of the level above has; where not all have as many, see `level_shares`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Axes = frozenset[int]
Reals = NDArray[np.float64]

_LEAST_COST = 1e-9
_VIEW_CELLS = [int(10 ** (half / 2)) for half in range(2, 15)]


@dataclass(frozen=True, eq=False)
class Wanted:
    """Tables that are wanted, and what may be measured for them.

    Attributes:
        sizes: positions along each axis; of a level, those in one of the level above, in the mean.
        tables: the wanted sets of axes, closed.
        weights: of the tables, above 0, in the same order.
        candidates: sets of axes that may be measured, closed; every table lies in one of them.
        covers: families of candidates that hold every table.
        above: for a level of an axis the next coarser one.
    """

    sizes: tuple[float, ...]
    tables: tuple[Axes, ...]
    weights: tuple[float, ...]
    candidates: tuple[Axes, ...]
    covers: tuple[tuple[Axes, ...], ...]
    above: Mapping[int, int]

    @cached_property
    def parts(self) -> dict[Axes, int]:
        """The numbers of the parts that the tables consist of."""
        return {part: number for number, part in enumerate(subsets_of(self.tables, self.above))}

    @cached_property
    def numbers(self) -> dict[Axes, int]:
        """The numbers of the candidates."""
        return {candidate: number for number, candidate in enumerate(self.candidates)}

    @cached_property
    def costs(self) -> Reals:
        """What a variance of 1 of each part adds to the mean variance, shape (parts,)."""
        costs, whole = np.zeros(len(self.parts)), math.fsum(self.weights)
        for table, weight in zip(self.tables, self.weights, strict=True):
            for part in subsets_of([table], self.above):
                costs[self.parts[part]] += weight / whole * self._weight_of_part(table, part)
        return costs

    def _weight_of_part(self, table: Axes, part: Axes) -> float:
        """The variance of a cell of a table for a variance of 1 of one of its parts, in the marginal of its axes."""
        finest = part - {self.above[axis] for axis in part if axis in self.above}
        # Deviations along one position are zero; still, a strategy must tell them.
        inside = math.prod(max(1 - 1 / self.sizes[axis], _LEAST_COST) for axis in finest)
        return inside / math.prod(self.sizes[axis] for axis in table - part) ** 2

    @cached_property
    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Reals]:
        """Which candidate tells which part, and the precision at the share 1: three arrays of shape (pairs,)."""
        edges = []
        for number, candidate in enumerate(self.candidates):
            inside = (
                [part for part in self.parts if part <= candidate]
                if len(candidate) > 4
                else subsets_of([candidate], self.above)
            )
            for part in inside:
                if part in self.parts:
                    summed = math.prod(self.sizes[axis] for axis in candidate - part)
                    edges.append((number, self.parts[part], 0.5 / summed))
        from_candidates, to_parts, precisions = zip(*edges, strict=True)
        return np.array(from_candidates), np.array(to_parts), np.array(precisions)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Where the edges of each candidate begin."""
        return np.flatnonzero(np.diff(self.edges[0], prepend=-1))

    @cached_property
    def _by_part(self) -> tuple[NDArray[np.int64], Reals, NDArray[np.int64], NDArray[np.int64]]:
        """The candidates and precisions of the edges ordered by part; where each part begins there, and its number."""
        candidate, part, precision = self.edges
        order = np.argsort(part, kind="stable")
        starts = np.flatnonzero(np.diff(part[order], prepend=-1))
        return candidate[order], precision[order], starts, part[order][starts]

    def only(self, kept: NDArray[np.bool_]) -> Wanted:
        """The same problem with some of the candidates.

        Args:
            kept: which, shape (candidates,); together they tell all parts.
        """
        candidate, part, precision = self.edges
        chosen = kept[candidate]
        numbers = np.cumsum(kept) - 1
        problem = replace(self, candidates=tuple(np.array(self.candidates, dtype=object)[kept]))
        # Nothing else depends on the candidates.
        edges = numbers[candidate[chosen]], part[chosen], precision[chosen]
        problem.__dict__.update(parts=self.parts, costs=self.costs, edges=edges)
        return problem

    def variance(self, squares: Reals) -> float:
        """The mean variance, in (sensitivity / epsilon)².

        Args:
            squares: of the candidates' shares, at least 0, shape (candidates,).
        """
        return float(self._spread_over(self.precision(squares)).sum())

    def _spread_over(self, known: Reals) -> Reals:
        """Costs over what is known of their parts; a part that has one position only costs nothing."""
        with np.errstate(divide="ignore"):
            return np.divide(self.costs, known, out=np.zeros(known.shape), where=self.costs > 0)

    def precision(self, squares: Reals) -> Reals:
        """The precision of every part, shape (parts,), in (epsilon / sensitivity)²."""
        candidate, precision, starts, parts = self._by_part
        precisions = np.zeros(len(self.parts))
        precisions[parts] = np.add.reduceat(precision * squares[candidate], starts)
        return precisions

    def gains(self, squares: Reals) -> tuple[float, Reals]:
        """The mean variance, and how fast it falls with each square, shape (candidates,)."""
        _, part, precision = self.edges
        known = self.precision(squares)
        falls: Reals = np.add.reduceat(precision * self._spread_over(known**2)[part], self._starts)
        return float(self._spread_over(known).sum()), falls


def subsets_of(tables: Iterable[Axes], above: Mapping[int, int] | None = None) -> list[Axes]:
    """All subsets of some sets of axes, without repeats: small ones first, then by their axes.

    Args:
        above: for a level of an axis the next coarser one; if given, only closed subsets.
    """
    subsets = {
        frozenset(chosen)
        for table in tables
        for size in range(len(table) + 1)
        for chosen in combinations(sorted(table), size)
    }
    if above:
        subsets = {part for part in subsets if all(axis not in above or above[axis] in part for axis in part)}
    return sorted(subsets, key=lambda axes: (len(axes), sorted(axes)))


def _with_coarser_levels(axes: Axes, above: Mapping[int, int]) -> Axes:
    """The set with all coarser levels."""
    closure = set(axes)
    for axis in axes:
        while axis in above:
            axis = above[axis]
            closure.add(axis)
    return frozenset(closure)


def without_implied_levels(axes: Axes, above: Mapping[int, int]) -> Axes:
    """A closed set without levels that a finer one makes plain."""
    return axes - {above[axis] for axis in axes if axis in above}


def wanted_tables(
    sizes: Sequence[int],
    tables: Sequence[Axes],
    weights: Sequence[float],
    most_cells: int,
    above: Mapping[int, int] | None = None,
) -> Wanted:
    """The problem for some tables.

    Candidates are the marginals of the tables, larger marginals that cover several of them (views, as of Qardaji, Yang,
    Li: PriView, SIGMOD 2014), and the full grid where it fits.

    Args:
        sizes: positions along each axis, shape (axes,).
        tables: sets of axes; none of them twice; of the levels of one axis, each has at most one.
        weights: of the tables, in the same order.
        most_cells: that a measured marginal may have.
        above: for a level of an axis the next coarser one.
    """
    above = above or {}
    steps = tuple(size / sizes[above[axis]] if axis in above else size for axis, size in enumerate(sizes))
    closed = tuple(_with_coarser_levels(table, above) for table in tables)
    covers = [tuple(cover(steps, closed, cells)) for cells in _VIEW_CELLS if cells <= most_cells]
    larger = [view for views in covers for view in views]
    if round(math.prod(steps)) <= most_cells:
        larger.append(frozenset(range(len(sizes))))
    candidates = dict.fromkeys([*subsets_of(closed, above), *larger])
    return Wanted(steps, closed, tuple(weights), tuple(candidates), tuple(covers), above)


def cover(sizes: Sequence[float], tables: Sequence[Axes], most_cells: int) -> list[Axes]:
    """Few sets of axes, each of at most so many cells, that hold every table; tables may be larger themselves.

    Greedy: begins with the first table that is left, and adds the axis that completes the most tables for its size.
    Products are sums of einsum: OpenBLAS's of a matrix of five float32 columns reads numbers that nobody wrote, which
    changes no result but raises "invalid value" where one of these is a signalling NaN.

    Args:
        sizes: positions along each axis, shape (axes,).
        most_cells: of a set that holds more than one table.
    """
    members = np.zeros((len(tables), len(sizes)), dtype=np.float32)  # small whole numbers, for fast products
    for number, table in enumerate(tables):
        members[number, list(table)] = 1
    counts, every = np.array(sizes, dtype=np.float64), members.sum(axis=1)
    growth, cover_tables = np.log(np.maximum(counts, 2)), []
    left = np.ones(len(tables), dtype=bool)
    while left.any():
        view = members[int(left.argmax())].copy()
        missing = every - np.einsum("ij,j->i", members, view)
        while (open_to := (view == 0) & (np.rint(math.prod(counts[view > 0]) * counts) <= most_cells)).any():
            nearly = (left & (missing == 1)).astype(np.float32)
            completed = np.where(open_to, np.einsum("i,ij->j", nearly, members), 0) / growth
            if not completed.any():
                break
            added = int(completed.argmax())
            view[added] = 1
            missing -= members[:, added]
        left &= missing > 0
        cover_tables.append(frozenset(np.flatnonzero(view).tolist()))
    return cover_tables
