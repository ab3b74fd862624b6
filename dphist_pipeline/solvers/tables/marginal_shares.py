"""Which marginals of a grid to measure, and with which shares of epsilon, so that wanted tables are least noisy.

Measured marginals and wanted tables are sets of axes. A marginal that has the share s is measured with independent
noise of variance 2 / s² in each cell, in units of (sensitivity / epsilon)². Least squares over all of them splits into
parts: the part S of a table are its deviations along the axes of S. Marginal A tells part S, if S lies in A, with the
precision s² / (2 · cells of A for each cell of S), and a cell of table T has the variance
    sum over parts S of T of   1 / precision(S) · prod over S of (1 - 1/n) · prod over the other axes of T of 1/n²,
where n is the number of positions along an axis (Xiao, He, Zhang, Kifer, NeurIPS 2023, for Gaussian noise).

With Gaussian noise the squares of the shares add up and the problem is convex. Under pure epsilon the shares add up,
and it is not: `choose_shares` searches from several starts. It also solves the convex problem for a lower bound, which
no strategy over the same candidates can beat, because squares of shares that sum to 1 sum to at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphist_pipeline.solvers.tables.wanted_tables import Axes, Reals, Wanted, without_implied_levels

DENOMINATOR = 1 << 14  # of the shares
_STEPS, _IRREGULAR_STARTS, _FINALISTS = 400, 4, 3
# A search ends where so many steps have lowered the variance by less than this part of it.
_LOOKS, _ENOUGH = 25, 1e-6
# Below this part of the largest share, a marginal is tried without.
_SMALL = 0.02


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


def choose_shares(wanted: Wanted) -> Shares:
    """The best strategy that a local search finds from several starts; a function of its input alone.

    Cost: some thousand passes over the pairs of candidates and their parts; a second for all pairs of 50 axes.
    """
    squares, bound = best_squares(wanted)
    outcomes = []
    for marginals, parts in finalists(wanted, squares):
        chosen = dict(zip(marginals, parts, strict=True))
        shares = [
            float(chosen.get(without_implied_levels(candidate, wanted.above), 0)) for candidate in wanted.candidates
        ]
        outcomes.append(Shares(marginals, parts, wanted.variance(np.square(shares)), bound))
    return min(outcomes, key=lambda shares: shares.mean_variance)


Strategy = tuple[tuple[Axes, ...], tuple[Fraction, ...]]


def finalists(wanted: Wanted, squares: Reals | None = None) -> list[Strategy]:
    """The strategies that the search finds from its best starts, and every candidate alone that tells all tables.

    Args:
        squares: the best ones of the convex problem, if they are known.
    """
    starts = [np.sqrt(best_squares(wanted)[0] if squares is None else squares), *_starts(wanted)]
    optima = [_improve(wanted, start / start.sum(), _STEPS // 10) for start in starts]
    optima.sort(key=lambda shares: wanted.variance(shares**2))
    optima = [_without_small(wanted, _improve(wanted, shares, _STEPS)) for shares in optima[:_FINALISTS]]
    # The full grid is one of them.
    every = frozenset().union(*wanted.tables)
    optima += [
        np.eye(1, len(wanted.candidates), number)[0]
        for number, candidate in enumerate(wanted.candidates)
        if every <= candidate
    ]
    outcomes = []
    for shares in optima:
        parts = _rational(shares)
        measured = [number for number, part in enumerate(parts) if part]
        marginals = tuple(without_implied_levels(wanted.candidates[number], wanted.above) for number in measured)
        outcomes.append((marginals, tuple(parts[number] for number in measured)))
    return outcomes


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
    starts = [np.ones(sizes.size), *(least + group / max(1, group.sum()) for group in groups)]
    # Fractions of multiples of the golden ratio and its powers lie evenly and look irregular; no generator is needed.
    number, golden = np.arange(1, sizes.size + 1), (math.sqrt(5) - 1) / 2
    return starts + [-np.log1p(-(number * golden**power % 1)) + 1e-6 for power in range(1, _IRREGULAR_STARTS + 1)]


def _improve(wanted: Wanted, shares: Reals, steps: int = _STEPS) -> Reals:
    """Shares near a local minimum: there, share times gain is equal for all candidates with a share.

    A part that one candidate tells alone has its best share after one step with the exponent 1/3.
    """
    best, least, before = shares, math.inf, math.inf
    for step in range(steps + 1):
        variance, gains = wanted.gains(shares**2)
        if variance < least * (1 - 1e-9):
            best, least = shares, variance
        elif variance > least * 1.5:
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
    and every t; the best t gives F(u)² / max(gains(u)).

    Returns:
        Squares, shape (candidates,), and the bound in (sensitivity / epsilon)².
    """
    squares = np.full(len(wanted.candidates), 1 / len(wanted.candidates))
    bound, best, least = 0.0, squares, math.inf
    for _ in range(_STEPS):
        variance, gains = wanted.gains(squares)
        bound = max(bound, variance**2 / float(gains.max()))
        if variance < least:
            best, least = squares, variance
        squares = squares * np.sqrt(gains)
        squares = squares / squares.sum()
    return best, bound


def _without_small(wanted: Wanted, shares: Reals) -> Reals:
    """The same strategy without the candidates that do not pay: each costs noise in all others."""
    for limit in (1e-4, 1e-3, _SMALL):
        large = np.where(shares < limit * shares.max(), 0.0, shares)
        if not np.isfinite(wanted.variance(large**2)):
            continue
        tried = np.zeros(large.size)
        tried[large > 0] = _improve(wanted.only(large > 0), large[large > 0] / large.sum())
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
