"""Least squares over marginals at several levels of one axis, against brute force on small unbalanced trees."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from noise_of_laws import noisy_marginals, told_covariance

from dphist_pipeline.base.domain import Domain, Family, Levels
from dphist_pipeline.estimates.laws import Scales, noise_law
from dphist_pipeline.mechanisms.tables import law_of, shares_for
from dphist_pipeline.solvers.tables.level_estimates import LevelLaw, Tree, estimate_tables_at_levels
from dphist_pipeline.solvers.tables.level_shares import _mean_and_falls, bound_of_tree
from dphist_pipeline.solvers.tables.marginal_shares import best_squares, choose_shares
from dphist_pipeline.solvers.tables.wanted_tables import Axes, wanted_tables, without_implied_levels
from examples import examples

# A grid of the finest level, one axis of three positions and one of two; axes 0, 2 and 4 are levels, 1 and 3 are not.
Problem = tuple[tuple[int, ...], Levels, dict[Axes, float], list[Axes]]


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """A tree of three levels with any numbers of children in any order; measured marginals; tables they tell."""
    coarse = draw(st.integers(1, 2))
    middle = draw(st.permutations([*range(coarse), *draw(st.lists(st.integers(0, coarse - 1), max_size=2))]))
    leaves = [*range(len(middle)), *draw(st.lists(st.integers(0, len(middle) - 1), max_size=3))]
    fine = draw(st.permutations(leaves))
    sizes = (len(fine), 3, coarse, 2, len(middle))
    levels = Levels((2, 4, 0), (np.array(middle, dtype=np.int64), np.array(fine, dtype=np.int64)))
    others = st.sets(st.sampled_from([1, 3]))
    at = st.sampled_from([set(), {2}, {4}, {0}])
    every = st.builds(lambda level, rest: frozenset(level | rest), at, others)
    measured = draw(st.lists(every, min_size=1, max_size=5, unique=True))
    ranks = {2: 1, 4: 2, 0: 3}

    def told(table: Axes) -> bool:
        depth = max((ranks.get(axis, 0) for axis in table), default=0)
        return any(
            table - ranks.keys() <= one and depth <= max((ranks.get(axis, 0) for axis in one), default=0)
            for one in measured
        )

    tables = [*measured[:2], *draw(st.lists(every.filter(told), max_size=3, unique=True))]
    return sizes, levels, {axes: draw(st.floats(0.1, 10)) for axes in measured}, list(dict.fromkeys(tables))


def summing(sizes: tuple[int, ...], levels: Levels, axes: Axes) -> np.ndarray:
    """The matrix that sums the grid (finest level, axis 1, axis 3) to a marginal, axes in ascending order."""
    middle, fine = levels.parents
    groups = {0: np.arange(fine.size), 4: fine, 2: middle[fine]}
    places = np.indices((sizes[0], sizes[1], sizes[3])).reshape(3, -1)
    along = {axis: group[places[0]] for axis, group in groups.items()} | {1: places[1], 3: places[2]}
    cell = np.zeros(places.shape[1], dtype=np.int64)
    for axis in sorted(axes):
        cell = cell * sizes[axis] + along[axis]
    found = np.zeros((math.prod(sizes[axis] for axis in axes), places.shape[1]))
    found[cell, np.arange(cell.size)] = 1.0
    return found


def solved(problem: Problem, noisy: dict[Axes, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The matrix from all measurements, one after the other, to the grid; and the covariance of the grid."""
    sizes, levels, variances, _ = problem
    rows = np.concatenate([summing(sizes, levels, axes) / math.sqrt(variances[axes]) for axes in noisy])
    inverse = np.linalg.pinv(rows.T @ rows, rcond=1e-10)
    scale = np.concatenate([np.full(noisy[axes].size, 1 / math.sqrt(variances[axes])) for axes in noisy])
    return inverse @ rows.T * scale, inverse


@pytest.mark.slow
@examples(60)
@given(problems(), st.integers(0, 2**32))
def test_estimates_and_variances_are_those_of_least_squares(problem: Problem, seed: int) -> None:
    sizes, levels, variances, tables = problem
    noisy, law = noisy_marginals(sizes, variances, seed), LevelLaw(sizes, variances, levels)
    fit, inverse = solved(problem, noisy)
    seen = np.concatenate([values.ravel() for values in noisy.values()])
    for table, found in zip(tables, estimate_tables_at_levels(law, noisy, tables), strict=True):
        asked = summing(sizes, levels, table)
        assert np.allclose(found.ravel(), asked @ fit @ seen, atol=1e-6)
        covariance = asked @ inverse @ asked.T
        told, depth = law.variances_of_cells(table), law.depth(table)
        exact = np.diag(covariance).reshape([sizes[a] for a in sorted(table)])
        if depth:
            exact = np.moveaxis(exact, sorted(table).index(levels.axes[depth - 1]), 0)
        assert np.allclose(exact.reshape(told.size, -1), told[:, None], atol=1e-8)
        assert law.variance_of_cell(table) == pytest.approx(exact.mean())
        # For any weights of cells, what is told is at least their variance; without a level it is exact.
        spare = told_covariance(law, table) - covariance
        assert np.linalg.eigvalsh(spare).min() >= -1e-8
        assert depth or np.allclose(spare, 0, atol=1e-8)


@pytest.mark.slow
@examples(60)
@given(problems(), st.integers(0, 2**32))
def test_no_box_gives_a_draw_a_larger_weight_than_is_told(problem: Problem, seed: int) -> None:
    sizes, levels, variances, tables = problem
    rng, law = np.random.default_rng(seed), LevelLaw(sizes, variances, levels)
    noisy = noisy_marginals(sizes, variances, seed)
    fit, _ = solved(problem, noisy)
    ends = np.cumsum([values.size for values in noisy.values()])[:-1]
    for table in tables:
        boxes = np.ones(1)
        for axis in sorted(table):
            boxes = np.kron(boxes, rng.integers(0, 2, sizes[axis]))
        weights = np.split(np.abs(boxes @ summing(sizes, levels, table) @ fit), ends)
        for axes, found in zip(noisy, weights, strict=True):
            assert found.max() <= law.largest_weight(table, axes) + 1e-8
        assert law.largest_weights(table) == pytest.approx([law.largest_weight(table, axes) for axes in variances])


@examples(40)
@given(problems())
def test_nodes_of_one_level_are_never_correlated_positively(problem: Problem) -> None:
    """On which the bound on weights rests."""
    sizes, levels, variances, _ = problem
    only = {axes: 1.0 for axes in variances if not axes & {1, 3}} or {frozenset({0}): 1.0}
    problem = sizes, levels, only, []
    _, inverse = solved(problem, noisy_marginals(problem[0], problem[2], 0))
    finest = next(axis for axis in (0, 4, 2, None) if axis is None or frozenset({axis}) in only)
    for axis in {None: (), 2: (2,), 4: (2, 4), 0: (2, 4, 0)}[finest]:
        asked = summing(sizes, levels, frozenset({axis}))
        covariance = asked @ inverse @ asked.T
        assert (covariance - np.diag(np.diag(covariance))).max() <= 1e-9


def test_tables_agree_up_and_down_the_levels() -> None:
    rng = np.random.default_rng(3)
    parents = tuple(np.concatenate([np.arange(n), rng.integers(0, n, m - n)]) for n, m in [(3, 20), (20, 500)])
    sizes, levels = (500, 7, 20, 3), Levels((3, 2, 0), parents)
    measured = [frozenset(axes) for axes in ([0, 1], [2], [3, 1], [1])]
    noisy = {axes: rng.integers(0, 10**6, [sizes[a] for a in sorted(axes)]).astype(float) for axes in measured}
    law = LevelLaw(sizes, {axes: 1.0 + n for n, axes in enumerate(measured)}, levels)
    tables = [frozenset(axes) for axes in ([0, 1], [0], [2, 1], [3, 1], [3], [1], [])]
    fine, leaves, middle, coarse, top, plain, total = estimate_tables_at_levels(law, noisy, tables)
    up = np.zeros((20, 7))
    np.add.at(up, parents[1], fine)
    assert np.allclose(up.T, middle, rtol=1e-9, atol=0)  # axis 1 comes before axis 2
    up = np.zeros((7, 3))
    np.add.at(up.T, parents[0], middle.T)
    assert np.allclose(up, coarse, rtol=1e-9, atol=0)
    assert np.allclose(fine.sum(axis=1), leaves, rtol=1e-9) and np.allclose(coarse.sum(axis=0), top, rtol=1e-9)
    assert np.allclose(fine.sum(axis=0), plain, rtol=1e-9) and np.allclose(top.sum(), total, rtol=1e-9)


def family(sizes: tuple[int, ...], levels: Levels, tables: list[tuple[int, ...]], most: int = 10**6) -> Family:
    """Tables by axes, the levels one after another as one source."""
    sources = tuple(0 if axis in levels.axes else axis + 1 for axis in range(len(sizes)))
    names = tuple("_".join(map(str, table)) for table in tables)
    made = Family(Domain.from_shape(sizes), sources, names, tuple(tables), (1.0,) * len(tables), most)
    made.__dict__["trees"] = (levels,)  # bins have no levels of their own
    return made


def exact_mean(of: Family, measured: dict[Axes, Fraction]) -> float:
    (levels,) = of.trees
    law = LevelLaw(of.domain.shape, {axes: 2 / float(part) ** 2 for axes, part in measured.items()}, levels)
    return float(np.mean([law.variance_of_cell(frozenset(table)) for table in of.tables]))


def test_with_equal_numbers_of_children_the_search_knows_the_variance() -> None:
    levels = Levels((2, 1), (np.arange(12) % 3,))
    tables = [frozenset(table) for table in ([2], [1], [0, 1], [0, 2])]
    found = choose_shares(wanted_tables((5, 12, 3), tables, [1, 2, 1, 1], 10**4, levels.above))
    law = LevelLaw(
        (5, 12, 3),
        {axes: 2 / float(part) ** 2 for axes, part in zip(found.marginals, found.parts, strict=True)},
        levels,
    )
    assert found.mean_variance == pytest.approx(
        np.average([law.variance_of_cell(table) for table in tables], weights=[1, 2, 1, 1])
    )
    assert found.bound is not None and found.bound <= found.mean_variance


@pytest.mark.parametrize("seed", range(4))
def test_what_is_chosen_for_levels_is_never_worse_than_the_full_grid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    middle = np.concatenate([np.zeros(9, dtype=np.int64), rng.integers(0, 4, 16), [1, 2, 3]])
    levels = Levels((2, 1), (middle,))
    of = family((6, middle.size, 4), levels, [(2,), (1,), (0, 1), (0, 2)])
    found = shares_for(of)
    chosen = dict(zip(found.marginals, found.parts, strict=True))
    assert sum(found.parts) == 1 and all(len(axes & {1, 2}) <= 1 for axes in chosen)
    assert found.mean_variance == pytest.approx(exact_mean(of, chosen))
    assert found.mean_variance <= exact_mean(of, {frozenset({0, 1}): Fraction(1)}) * (1 + 1e-9)
    # A state's total is measured by itself, not summed over its counties' cells.
    assert found.mean_variance < 0.8 * exact_mean(of, {frozenset({0, 1}): Fraction(1)})


def test_a_bound_by_variance_is_never_below_that_of_the_same_draws() -> None:
    draws = [(Fraction(3), 0.5, 7), (Fraction(5), 0.3, 2), (Fraction(3), 0.1, 40)]
    total = math.fsum(noise_law(scale).variance * weight**2 * many for scale, weight, many in draws)
    told = Scales.of([Fraction(3), Fraction(5)]).bound_of_variance(total, np.array([0.5, 0.3]))
    exact = Scales.bound_of_draws(draws)
    for c in (10, 20, 40):
        # Both are Chernoff's bounds; one that knows less of the draws is above, at its own rate or the other's.
        assert min(1, told.factor * math.exp(-told.rate * c)) >= 0.99 * min(1, exact.factor * math.exp(-exact.rate * c))


def uneven(seed: int) -> tuple[Levels, tuple[int, ...]]:
    """A tree of four coarse and some fine nodes, one of them an only child; with two plain axes."""
    rng = np.random.default_rng(seed)
    middle = np.concatenate([[0, 1, 2, 3], rng.integers(0, 3, 5 + seed)])
    return Levels((1, 0), (middle,)), (middle.size, 4, 3, 2)


def mean_by_brute_force(
    sizes: tuple[int, ...], levels: Levels, tables: list[Axes], squares: dict[Axes, float]
) -> float:
    law = LevelLaw(sizes, {axes: 2 / square for axes, square in squares.items() if square > 1e-12}, levels)
    return float(np.mean([law.variance_of_cell(table) for table in tables]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_strategy_of_an_uneven_tree_is_below_the_lower_bound_which_is_near(seed: int) -> None:
    levels, sizes = uneven(seed)
    tables = [frozenset(table) for table in ([0], [1, 2], [0, 3], [1])]
    wanted = wanted_tables(sizes, tables, [1.0] * 4, 10**4, levels.above)
    measurable = [without_implied_levels(candidate, levels.above) for candidate in wanted.candidates]
    bound = bound_of_tree(wanted, measurable, sizes, tables, [1.0] * 4, levels)
    rng, reached = np.random.default_rng(seed), math.inf
    best = np.full(len(measurable), 1 / len(measurable))
    for step in range(1500):
        # Squares of shares sum to at most 1; these sum to 1 themselves, which no shares but a single one do.
        tried = best * np.exp(rng.normal(0, 0.7 / (1 + step / 200), best.size)) if step else best
        tried /= tried.sum()
        found = mean_by_brute_force(sizes, levels, tables, dict(zip(measurable, tried, strict=True)))
        assert found >= bound
        if found < reached:
            best, reached = tried, found
    assert reached <= 1.02 * bound


@pytest.mark.parametrize("own", [[0.3, 0.7, 2.0], [0.0, 0.4, 0.9], [1.0, 0.0, 0.5], [0.5, 1.5, 0.0]])
def test_variances_fall_with_precisions_as_told(own: list[float]) -> None:
    levels, sizes = uneven(1)
    tree, costs = Tree.of(levels, sizes[1]), np.array([0.2, 1.0, 3.0 if own[2] else 0.0])
    mean, falls = _mean_and_falls(tree, np.array(own), costs)
    for level in range(3 if own[2] else 2):
        step = np.zeros(3)
        step[level] = 1e-6
        above, _ = _mean_and_falls(tree, np.array(own) + step, costs)
        assert (mean - above) / 1e-6 == pytest.approx(falls[level], rel=1e-4)


def test_every_table_is_told_where_an_axis_has_one_position_or_a_node_no_siblings() -> None:
    levels = Levels((2, 1), (np.arange(3),))
    of = family((4, 3, 3, 1), levels, [(2,), (1,), (0, 1), (1, 3)])
    measured = dict.fromkeys(shares_for(of).marginals, 1.0)
    assert all(law_of(of, measured).variance_of_cell(frozenset(table)) > 0 for table in of.tables)
    estimate_tables_at_levels(
        LevelLaw(of.domain.shape, measured, levels),
        {axes: np.ones([of.domain.shape[a] for a in sorted(axes)]) for axes in measured},
        [frozenset(table) for table in of.tables],
    )


def test_the_lower_bound_of_a_lopsided_tree_does_not_overflow() -> None:
    """Five of seven fine nodes lie in one coarse one; some candidates are so worthless that their share vanishes."""
    levels, sizes = Levels((1, 0), (np.array([0, 0, 0, 0, 0, 1, 2, 3]),)), (8, 4, 7, 7)
    tables = [frozenset(table) for table in ([0, 2], [1], [1, 3], [0], [2], [3])]
    wanted = wanted_tables(sizes, tables, [1.0] * 6, 10**6, levels.above)
    measurable = [without_implied_levels(candidate, levels.above) for candidate in wanted.candidates]
    assert 7 < bound_of_tree(wanted, measurable, sizes, tables, [1.0] * 6, levels) < 28


def test_the_lower_bound_does_not_overflow_where_a_share_vanished_before() -> None:
    """The convex problem of even trees, where the search begins, leaves next to nothing to some candidates."""
    levels, sizes = Levels((1, 0), (np.array([0, 0, 1]),)), (3, 2, 9, 22)
    tables = [frozenset(table) for table in ([3], [0, 2], [1])]
    wanted = wanted_tables(sizes, tables, [1.0] * 3, 10**7, levels.above)
    measurable = [without_implied_levels(candidate, levels.above) for candidate in wanted.candidates]
    squares, _ = best_squares(wanted)
    assert squares.min() < 1e-154
    assert 5 < bound_of_tree(wanted, measurable, sizes, tables, [1.0] * 3, levels) < 17
