"""Which marginals of a grid to measure, and with which shares of epsilon, so that wanted tables are least noisy.

Measured marginals and wanted tables are sets of axes. A marginal that has the share s is measured with independent
noise of variance 2 / s² in each cell, in units of (sensitivity / epsilon)². Least squares over all of them splits into
parts: the part S of a table are its deviations along the axes of S. Marginal A tells part S, if S lies in A, with the
precision s² / (2 · cells of A for each cell of S), and a cell of table T has the variance
    sum over parts S of T of   1 / precision(S) · prod over S of (1 - 1/n) · prod over the other axes of T of 1/n²,
where n is the number of positions along an axis (Xiao, He, Zhang, Kifer, NeurIPS 2023, for Gaussian noise).

Levels of one axis count as axes of their own. A set that has a level is closed: it has all coarser levels, too. A level
counts for as many positions as each position of the level above has; where not all have as many, see `level_shares`.

With Gaussian noise the squares of the shares add up and the problem is convex. Under pure epsilon the shares add up,
and it is not: `choose_shares` searches from several starts. It also solves the convex problem for a lower bound, which
no strategy over the same candidates can beat, because squares of shares that sum to 1 sum to at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Axes = frozenset[int]
Reals = NDArray[np.float64]

DENOMINATOR = 1 << 14  # of the shares
_STEPS, _IRREGULAR_STARTS, _FINALISTS = 400, 4, 3
# A search ends where so many steps have lowered the variance by less than this part of it.
_LOOKS, _ENOUGH = 25, 1e-6
# Below this part of the largest share, a marginal is tried without.
_SMALL = 0.02
_LEAST_COST = 1e-9
_VIEW_CELLS = [int(10 ** (half / 2)) for half in range(2, 15)]


@dataclass(frozen=True)
class Shares:
    """A strategy: what to measure, and what it costs.

    Attributes:
        marginals: the measured sets of axes; of the levels of one axis, each has one.
        parts: of epsilon, one for each marginal; they sum to 1.
        mean_variance: of the wanted tables' cells by weight, in units of (sensitivity / epsilon)².
        bound: no strategy over the same candidates has a smaller one; None where none is known.
    """

    marginals: tuple[Axes, ...]
    parts: tuple[Fraction, ...]
    mean_variance: float
    bound: float | None


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
        found, whole = np.zeros(len(self.parts)), math.fsum(self.weights)
        for table, weight in zip(self.tables, self.weights, strict=True):
            for part in subsets_of([table], self.above):
                found[self.parts[part]] += weight / whole * self._weight_of_part(table, part)
        return found

    def _weight_of_part(self, table: Axes, part: Axes) -> float:
        """The variance of a cell of a table for a variance of 1 of one of its parts, in the marginal of its axes."""
        finest = part - {self.above[axis] for axis in part if axis in self.above}
        # Deviations along one position are zero; still, a strategy must tell them.
        inside = math.prod(max(1 - 1 / self.sizes[axis], _LEAST_COST) for axis in finest)
        return inside / math.prod(self.sizes[axis] for axis in table - part) ** 2

    @cached_property
    def edges(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Reals]:
        """Which candidate tells which part, and the precision at the share 1: three arrays of shape (pairs,)."""
        found = []
        for number, candidate in enumerate(self.candidates):
            inside = (
                [part for part in self.parts if part <= candidate]
                if len(candidate) > 4
                else subsets_of([candidate], self.above)
            )
            for part in inside:
                if part in self.parts:
                    summed = math.prod(self.sizes[axis] for axis in candidate - part)
                    found.append((number, self.parts[part], 0.5 / summed))
        from_candidates, to_parts, precisions = zip(*found, strict=True)
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
        """The same problem with some of the candidates, which tell all parts; `kept`: shape (candidates,)."""
        candidate, part, precision = self.edges
        chosen = kept[candidate]
        numbers = np.cumsum(kept) - 1
        found = replace(self, candidates=tuple(np.array(self.candidates, dtype=object)[kept]))
        # Nothing else depends on the candidates.
        edges = numbers[candidate[chosen]], part[chosen], precision[chosen]
        found.__dict__.update(parts=self.parts, costs=self.costs, edges=edges)
        return found

    def variance(self, squares: Reals) -> float:
        """The mean variance, in (sensitivity / epsilon)²; `squares`: of the candidates' shares, shape (candidates,)."""
        return float(self._spread_over(self.precision(squares)).sum())

    def _spread_over(self, known: Reals) -> Reals:
        """Costs over what is known of their parts; a part that has one position only costs nothing."""
        with np.errstate(divide="ignore"):
            return np.divide(self.costs, known, out=np.zeros(known.shape), where=self.costs > 0)

    def precision(self, squares: Reals) -> Reals:
        """The precision of every part, shape (parts,); for `squares` see `variance`."""
        candidate, precision, starts, parts = self._by_part
        told = np.zeros(len(self.parts))
        told[parts] = np.add.reduceat(precision * squares[candidate], starts)
        return told

    def gains(self, squares: Reals) -> tuple[float, Reals]:
        """The mean variance, and how fast it falls with each square, shape (candidates,); see `variance`."""
        _, part, precision = self.edges
        known = self.precision(squares)
        falls: Reals = np.add.reduceat(precision * self._spread_over(known**2)[part], self._starts)
        return float(self._spread_over(known).sum()), falls


def subsets_of(tables: Iterable[Axes], above: Mapping[int, int] | None = None) -> list[Axes]:
    """All subsets of some sets of axes, without repeats: small ones first, then by their axes.

    Args:
        tables: sets of axes.
        above: for a level of an axis the next coarser one; if given, only closed subsets.
    """
    found = {
        frozenset(chosen)
        for table in tables
        for size in range(len(table) + 1)
        for chosen in combinations(sorted(table), size)
    }
    if above:
        found = {part for part in found if all(axis not in above or above[axis] in part for axis in part)}
    return sorted(found, key=lambda axes: (len(axes), sorted(axes)))


def _closed(axes: Axes, above: Mapping[int, int]) -> Axes:
    """The set with all coarser levels."""
    found = set(axes)
    for axis in axes:
        while axis in above:
            axis = above[axis]
            found.add(axis)
    return frozenset(found)


def opened(axes: Axes, above: Mapping[int, int]) -> Axes:
    """The set without levels that a finer one makes plain.

    Args:
        axes: a closed set.
        above: for a level of an axis the next coarser one.
    """
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
    closed = tuple(_closed(table, above) for table in tables)
    covers = [tuple(cover(steps, closed, cells)) for cells in _VIEW_CELLS if cells <= most_cells]
    larger = [view for views in covers for view in views]
    if round(math.prod(steps)) <= most_cells:
        larger.append(frozenset(range(len(sizes))))
    candidates = dict.fromkeys([*subsets_of(closed, above), *larger])
    return Wanted(steps, closed, tuple(weights), tuple(candidates), tuple(covers), above)


def cover(sizes: Sequence[float], tables: Sequence[Axes], most_cells: int) -> list[Axes]:
    """Few sets of axes, each of at most so many cells, that hold every table; tables may be larger themselves.

    Greedy: begins with the first table that is left, and adds the axis that completes the most tables for its size.

    Args:
        sizes: positions along each axis, shape (axes,).
        tables: sets of axes.
        most_cells: of a set that holds more than one table.
    """
    members = np.zeros((len(tables), len(sizes)), dtype=np.float32)  # small whole numbers, for fast products
    for number, table in enumerate(tables):
        members[number, list(table)] = 1
    counts, every = np.array(sizes, dtype=np.float64), members.sum(axis=1)
    growth, found = np.log(np.maximum(counts, 2)), []
    left = np.ones(len(tables), dtype=bool)
    while left.any():
        view = members[int(left.argmax())].copy()
        missing = every - members @ view
        while (open_to := (view == 0) & (np.rint(math.prod(counts[view > 0]) * counts) <= most_cells)).any():
            completed = np.where(open_to, (left & (missing == 1)).astype(np.float32) @ members, 0) / growth
            if not completed.any():
                break
            added = int(completed.argmax())
            view[added] = 1
            missing -= members[:, added]
        left &= missing > 0
        found.append(frozenset(np.flatnonzero(view).tolist()))
    return found


def choose_shares(wanted: Wanted) -> Shares:
    """The best strategy that a local search finds from several starts; a function of its input alone.

    Cost: some thousand passes over the pairs of candidates and their parts; a second for all pairs of 50 axes.

    Args:
        wanted: tables, and what may be measured for them.
    """
    squares, bound = best_squares(wanted)
    made = []
    for marginals, parts in finalists(wanted, squares):
        chosen = dict(zip(marginals, parts, strict=True))
        shares = [float(chosen.get(opened(candidate, wanted.above), 0)) for candidate in wanted.candidates]
        made.append(Shares(marginals, parts, wanted.variance(np.square(shares)), bound))
    return min(made, key=lambda shares: shares.mean_variance)


Strategy = tuple[tuple[Axes, ...], tuple[Fraction, ...]]


def finalists(wanted: Wanted, squares: Reals | None = None) -> list[Strategy]:
    """What the search finds from its best starts, and every candidate alone that tells all tables.

    Args:
        wanted: the problem.
        squares: the best ones of the convex problem, if they are known.

    Returns:
        Strategies: what is measured, and the parts of epsilon.
    """
    starts = [np.sqrt(best_squares(wanted)[0] if squares is None else squares), *_starts(wanted)]
    found = [_improved(wanted, start / start.sum(), _STEPS // 10) for start in starts]
    found.sort(key=lambda shares: wanted.variance(shares**2))
    found = [_without_small(wanted, _improved(wanted, shares, _STEPS)) for shares in found[:_FINALISTS]]
    # The full grid is one of them.
    every = frozenset().union(*wanted.tables)
    found += [
        np.eye(1, len(wanted.candidates), number)[0]
        for number, candidate in enumerate(wanted.candidates)
        if every <= candidate
    ]
    made = []
    for shares in found:
        parts = _rational(shares)
        measured = [number for number, part in enumerate(parts) if part]
        marginals = tuple(opened(wanted.candidates[number], wanted.above) for number in measured)
        made.append((marginals, tuple(parts[number] for number in measured)))
    return made


def _starts(wanted: Wanted) -> list[Reals]:
    """Shares to begin with: equal ones, mostly the tables, mostly the grid, mostly each size, and irregular ones."""
    sizes = np.array([len(candidate) for candidate in wanted.candidates])
    least = np.full(len(wanted.candidates), 1e-3 / len(wanted.candidates))
    families = [wanted.tables, *wanted.covers]
    numbers = [[wanted.numbers[axes] for axes in family] for family in families]
    groups = [
        *(np.isin(np.arange(sizes.size), family) for family in numbers),
        *(sizes == size for size in np.unique(sizes)),
    ]
    found = [np.ones(sizes.size), *(least + group / max(1, group.sum()) for group in groups)]
    # Fractions of multiples of the golden ratio and its powers lie evenly and look irregular; no generator is needed.
    number, golden = np.arange(1, sizes.size + 1), (math.sqrt(5) - 1) / 2
    return found + [-np.log1p(-(number * golden**power % 1)) + 1e-6 for power in range(1, _IRREGULAR_STARTS + 1)]


def _improved(wanted: Wanted, shares: Reals, steps: int = _STEPS) -> Reals:
    """Shares near a local minimum: there, share times gain is equal for all candidates with a share.

    A part that one candidate tells alone has its best share after one step with the exponent 1/3.
    """
    best, least, before = shares, math.inf, math.inf
    for step in range(steps + 1):
        found, gains = wanted.gains(shares**2)
        if found < least * (1 - 1e-9):
            best, least = shares, found
        elif found > least * 1.5:
            break
        if step % _LOOKS == 0:
            if least > before * (1 - _ENOUGH):
                break
            before = least
        with np.errstate(invalid="ignore"):
            grown = shares * (shares * gains) ** (1 / 3)
        if not np.isfinite(grown).all():
            break
        shares = grown / grown.sum()
    return best


def best_squares(wanted: Wanted) -> tuple[Reals, float]:
    """The best squares of shares that sum to 1, nearly, and a lower bound on the mean variance for all of them.

    F, the mean variance, is convex, and F(t·u) = F(u)/t. So F(v) >= 2·F(u)/t - max(gains(u))/t² for all v that sum to 1
    and every t; the best t gives F(u)² / max(gains(u)). For `wanted` see `choose_shares`.
    """
    squares = np.full(len(wanted.candidates), 1 / len(wanted.candidates))
    bound, best, least = 0.0, squares, math.inf
    for _ in range(_STEPS):
        found, gains = wanted.gains(squares)
        bound = max(bound, found**2 / float(gains.max()))
        if found < least:
            best, least = squares, found
        squares = squares * np.sqrt(gains)
        squares = squares / squares.sum()
    return best, bound


def _without_small(wanted: Wanted, shares: Reals) -> Reals:
    """The same strategy without the candidates that do not pay: each costs noise in all others."""
    for limit in (1e-4, 1e-3, _SMALL):
        kept = np.where(shares < limit * shares.max(), 0.0, shares)
        if not np.isfinite(wanted.variance(kept**2)):
            continue
        tried = np.zeros(kept.size)
        tried[kept > 0] = _improved(wanted.only(kept > 0), kept[kept > 0] / kept.sum())
        if wanted.variance(tried**2) <= wanted.variance(shares**2) * (1 + 1e-6):
            shares = tried
    return shares


def _rational(shares: Reals) -> list[Fraction]:
    """Whole parts of a denominator that sum to it; what has a share keeps one."""
    denominator = max(DENOMINATOR, 64 * int((shares > 0).sum()))
    parts = np.where(shares > 0, np.maximum(1, np.floor(shares * denominator)), 0).astype(np.int64)
    short = denominator - int(parts.sum())
    order = np.argsort(-(shares * denominator - parts), kind="stable")
    parts[order[: max(0, short)]] += 1
    parts[int(parts.argmax())] += min(0, short)
    return [Fraction(int(part), denominator) for part in parts]
