"""Least squares over marginals at levels of two axes, against brute force on small unbalanced trees, and its bounds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noise_of_laws import noisy_marginals, told_covariance

from dphist_pipeline.base.domain import Domain, Family, Levels
from dphist_pipeline.mechanisms import DomainRefused
from dphist_pipeline.mechanisms.tables import Tables, shares_for
from dphist_pipeline.solvers.tables.crossed_levels import LARGEST_WEIGHT, CrossedLaw, estimate_crossed_tables
from dphist_pipeline.solvers.tables.level_shares import law_of_levels
from dphist_pipeline.solvers.tables.wanted_tables import Axes
from examples import examples

pytestmark = pytest.mark.slow

# Axes 0 and 2 are a fine and a coarse level, 3 and 4 are those of another axis, and 1 has none.
FINE, PLAIN, COARSE, OTHER_FINE, OTHER_COARSE = range(5)
EVERY = [
    frozenset({*one, *two, *rest})
    for one in ((), (COARSE,), (FINE,))
    for two in ((), (OTHER_COARSE,), (OTHER_FINE,))
    for rest in ((), (PLAIN,))
]
RANK = {COARSE: 1, FINE: 2, OTHER_COARSE: 1, OTHER_FINE: 2}
Problem = tuple[tuple[int, ...], tuple[Levels, Levels], dict[Axes, float], list[Axes]]


def depth(axes: Axes, tree: tuple[int, int]) -> int:
    return max((RANK[axis] for axis in tree if axis in axes), default=0)


def within(table: Axes, measured: Axes) -> bool:
    """Whether a table can be summed from a marginal."""
    trees = ((COARSE, FINE), (OTHER_COARSE, OTHER_FINE))
    deep = all(depth(table, tree) <= depth(measured, tree) for tree in trees)
    return deep and (PLAIN not in table or PLAIN in measured)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Two trees of two levels with any numbers of children in any order; measured marginals; tables they tell."""
    parents = []
    for _ in range(2):
        coarse = draw(st.integers(1, 3))
        more = draw(st.lists(st.integers(0, coarse - 1), max_size=3))
        parents.append(np.array(draw(st.permutations([*range(coarse), *more])), dtype=np.int64))
    one, two = parents
    sizes = (one.size, 2, int(one.max()) + 1, two.size, int(two.max()) + 1)
    trees = Levels((COARSE, FINE), (one,)), Levels((OTHER_COARSE, OTHER_FINE), (two,))
    measured = draw(st.lists(st.sampled_from(EVERY), min_size=1, max_size=6, unique=True))
    told = [table for table in EVERY if any(within(table, one) for one in measured)]
    tables = draw(st.lists(st.sampled_from(told), min_size=1, max_size=4, unique=True))
    return sizes, trees, {axes: draw(st.floats(0.1, 10)) for axes in measured}, tables


def summing(sizes: tuple[int, ...], trees: tuple[Levels, Levels], axes: Axes) -> np.ndarray:
    """The matrix that sums the grid (fine, plain, other fine) to a marginal, axes in ascending order."""
    places = np.indices((sizes[FINE], sizes[PLAIN], sizes[OTHER_FINE])).reshape(3, -1)
    along = {FINE: places[0], PLAIN: places[1], OTHER_FINE: places[2]}
    along |= {COARSE: trees[0].parents[0][places[0]], OTHER_COARSE: trees[1].parents[0][places[2]]}
    cell = np.zeros(places.shape[1], dtype=np.int64)
    for axis in sorted(axes):
        cell = cell * sizes[axis] + along[axis]
    found = np.zeros((math.prod(sizes[axis] for axis in axes), places.shape[1]))
    found[cell, np.arange(cell.size)] = 1.0
    return found


def solved(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The matrix from all measurements, one after the other, to the grid; and the covariance of the grid."""
    sizes, trees, variances, _ = problem
    rows = [summing(sizes, trees, axes) for axes in variances]
    precise = np.concatenate([one / variance for one, variance in zip(rows, variances.values(), strict=True)])
    inverse = np.linalg.pinv(np.concatenate(rows).T @ precise, rcond=1e-11)
    return inverse @ precise.T, inverse


@examples(80)
@given(problems(), st.integers(0, 2**32))
def test_estimates_are_those_of_least_squares(problem: Problem, seed: int) -> None:
    sizes, trees, variances, tables = problem
    noisy, law = noisy_marginals(sizes, variances, seed), CrossedLaw(sizes, variances, trees)
    fit, _ = solved(problem)
    seen = np.concatenate([values.ravel() for values in noisy.values()])
    for table, found in zip(tables, estimate_crossed_tables(law, noisy, tables), strict=True):
        assert found.shape == tuple(sizes[axis] for axis in sorted(table))
        assert np.allclose(found.ravel(), summing(sizes, trees, table) @ fit @ seen, rtol=1e-8, atol=1e-6)


@examples(80)
@given(problems())
def test_what_is_told_of_noise_is_never_too_little(problem: Problem) -> None:
    """For any weights of cells the told covariance is at least the true one; so are mean and weights."""
    sizes, trees, variances, tables = problem
    law = CrossedLaw(sizes, variances, trees)
    fit, inverse = solved(problem)
    ends = np.cumsum([math.prod(sizes[axis] for axis in axes) for axes in variances])[:-1]
    for table in tables:
        asked = summing(sizes, trees, table)
        covariance = asked @ inverse @ asked.T
        assert np.linalg.eigvalsh(told_covariance(law, table) - covariance).min() >= -1e-7
        assert law.variance_of_cell(table) >= np.diag(covariance).mean() * (1 - 1e-9)
        weights = np.split(np.abs(asked @ fit), ends, axis=1)
        for found, most in zip(weights, law.weights_in_cell(table), strict=True):
            assert found.max() <= most * (1 + 1e-9)


@examples(80)
@given(problems())
def test_no_set_of_cells_gives_a_draw_a_larger_weight_than_calibrated(problem: Problem) -> None:
    sizes, trees, _, tables = problem
    fit, _ = solved(problem)
    for table in tables:
        weights = summing(sizes, trees, table) @ fit
        assert max(weights.clip(0).sum(axis=0).max(), -weights.clip(None, 0).sum(axis=0).min()) <= LARGEST_WEIGHT


def uneven(rng: np.random.Generator, *sizes: int) -> tuple[np.ndarray, ...]:
    """The parents of each level, every one with a child, in any order."""
    return tuple(
        rng.permutation(np.concatenate([np.arange(coarse), rng.integers(0, coarse, fine - coarse)]))
        for coarse, fine in itertools.pairwise(sizes)
    )


def test_tables_of_large_uneven_trees_agree_on_every_sum() -> None:
    rng = np.random.default_rng(3)
    first, second = uneven(rng, 4, 30, 400), uneven(rng, 3, 60)
    sizes = (400, 3, 30, 60, 4, 3)
    trees = Levels((4, 2, 0), first), Levels((5, 3), second)
    measured = [frozenset(axes) for axes in ([0, 5], [2, 3], [4, 1, 3], [0, 1], [3], [1])]
    noisy = {axes: rng.integers(0, 10**6, [sizes[a] for a in sorted(axes)]).astype(float) for axes in measured}
    law = CrossedLaw(sizes, {axes: 10.0 ** (n % 4) for n, axes in enumerate(measured)}, trees)
    tables = [frozenset(axes) for axes in ([0, 5], [2, 3], [3, 4], [4, 5], [1, 4], [1], [])]
    fine, mixed, coarser, coarsest, plain, alone, total = estimate_crossed_tables(law, noisy, tables)
    # Axes ascending: (0, 5), (2, 3), (3, 4), (4, 5), (1, 4).
    up = np.zeros((30, 3))
    np.add.at(up, first[1], fine)
    across = np.zeros((30, 3))
    np.add.at(across.T, second[0], mixed.T)
    assert np.allclose(up, across, rtol=1e-9, atol=0)
    states = np.zeros((4, 60))
    np.add.at(states, first[0], mixed)
    assert np.allclose(states.T, coarser, rtol=1e-9, atol=0)
    both = np.zeros((4, 3))
    np.add.at(both, first[0], up)
    assert np.allclose(both, coarsest, rtol=1e-9, atol=0)
    assert np.allclose(plain.sum(axis=0), coarsest.sum(axis=1), rtol=1e-9, atol=0)
    assert np.allclose(plain.sum(axis=1), alone, rtol=1e-9, atol=0) and np.isclose(alone.sum(), total, rtol=1e-9)


def family(rng: np.random.Generator, tables: list[tuple[int, ...]], most: int = 10**6) -> Family:
    """Tables over two uneven trees of two levels and a plain axis."""
    (one,), (two,) = uneven(rng, 3, 12), uneven(rng, 2, 9)
    sizes = (one.size, 4, 3, two.size, 2)
    names = tuple("_".join(map(str, table)) for table in tables)
    found = Family(Domain.from_shape(sizes), (0, 1, 0, 2, 2), names, tuple(tables), (1.0,) * len(tables), most)
    found.__dict__["trees"] = (Levels((COARSE, FINE), (one,)), Levels((OTHER_COARSE, OTHER_FINE), (two,)))
    return found


def grid_mean(of: Family) -> float:
    """The mean variance of the tables, summed from one noisy grid of the finest levels."""
    grid = frozenset({FINE, PLAIN, OTHER_FINE})
    law = law_of_levels(of.domain.shape, {grid: 2.0}, of.trees)
    return float(np.mean([law.variance_of_cell(frozenset(table)) for table in of.tables]))


def true_mean(of: Family, measured: dict[Axes, Fraction]) -> float:
    """The same by brute force, for any strategy."""
    trees = (of.trees[0], of.trees[1])
    _, inverse = solved((of.domain.shape, trees, {axes: 2 / float(part) ** 2 for axes, part in measured.items()}, []))
    asked = [summing(of.domain.shape, trees, frozenset(table)) for table in of.tables]
    return float(np.mean([np.einsum("ij,jk,ik->i", one, inverse, one).mean() for one in asked]))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_chosen_is_between_its_lower_bound_and_the_full_grid(seed: int) -> None:
    of = family(np.random.default_rng(seed), [(0,), (2, 4), (1, 3), (0, 4), (2, 3), (4,)])
    found = shares_for(of)
    assert sum(found.parts) == 1 and found.bound is not None
    mean = true_mean(of, dict(zip(found.marginals, found.parts, strict=True)))
    assert found.bound <= mean <= found.mean_variance * (1 + 1e-9) <= grid_mean(of) * (1 + 1e-6)
    assert mean < 0.7 * grid_mean(of)


def test_levels_that_meet_on_too_large_a_grid_are_refused() -> None:
    of = family(np.random.default_rng(0), [(0,), (2,), (3,), (4,), (2, 4)])
    Tables().check_family(of, 1, Fraction(1))
    with pytest.raises(DomainRefused, match="fitted on a grid of 108 cells"):
        Tables().check_family(replace_most(of, 50), 1, Fraction(1))


def replace_most(of: Family, most: int) -> Family:
    made = replace(of, most_cells=most)
    made.__dict__["trees"] = of.trees
    return made
