"""Least squares over noisy marginals, against brute force; and the search for what to measure."""

from __future__ import annotations

import ast
import inspect
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.tables.marginal_estimates import MarginalLaw, estimate_tables
from dphist_pipeline.solvers.tables.marginal_shares import choose_shares
from dphist_pipeline.solvers.tables.wanted_tables import Axes, cover, subsets_of, wanted_tables
from examples import examples


def summing(sizes: tuple[int, ...], axes: Axes) -> np.ndarray:
    """The matrix that sums the grid to a marginal."""
    found = np.ones((1, 1))
    for axis, size in enumerate(sizes):
        found = np.kron(found, np.eye(size) if axis in axes else np.ones((1, size)))
    return found


def sets(*written: str) -> list[Axes]:
    return [frozenset(map(int, axes)) for axes in written]


@st.composite
def problems(draw: st.DrawFn) -> tuple[tuple[int, ...], dict[Axes, float], list[Axes]]:
    sizes = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4)))
    every = subsets_of([frozenset(range(len(sizes)))])
    measured = draw(st.lists(st.sampled_from(every), min_size=1, max_size=4, unique=True))
    tables = draw(st.lists(st.sampled_from(subsets_of(measured)), min_size=1, max_size=4, unique=True))
    return sizes, {axes: draw(st.floats(0.1, 10)) for axes in measured}, tables


@examples(60)
@given(problems(), st.integers(0, 2**32))
def test_estimates_and_covariances_are_those_of_least_squares(problem: tuple, seed: int) -> None:
    sizes, variances, tables = problem
    rng = np.random.default_rng(seed)
    noisy = {axes: rng.integers(-50, 50, [sizes[a] for a in sorted(axes)]).astype(float) for axes in variances}
    rows = np.concatenate([summing(sizes, axes) / math.sqrt(variances[axes]) for axes in noisy])
    seen = np.concatenate([noisy[axes].ravel() / math.sqrt(variances[axes]) for axes in noisy])
    inverse = np.linalg.pinv(rows.T @ rows, rcond=1e-10)
    law = MarginalLaw(sizes, variances)
    for table, found in zip(tables, estimate_tables(law, noisy, tables), strict=True):
        asked = summing(sizes, table)
        assert np.allclose(found.ravel(), asked @ inverse @ rows.T @ seen, atol=1e-6)
        covariance, shape = asked @ inverse @ asked.T, [sizes[a] for a in sorted(table)]
        places = np.indices(shape).reshape(len(shape), math.prod(shape))
        mine = np.zeros_like(covariance)
        for agreed, part in law.covariance(table).items():
            same = [places[n][:, None] == places[n] for n, a in enumerate(sorted(table)) if a in agreed]
            mine += part * np.prod(same, axis=0) if same else part
        assert np.allclose(mine, covariance, atol=1e-8)
        weights = (asked @ inverse @ rows.T)[0]
        drawn = [weight / math.sqrt(variances[axes]) for axes in noisy for weight in [1.0]]
        ends = np.cumsum([noisy[axes].size for axes in noisy])[:-1]
        for axes, scaled, unit in zip(noisy, np.split(weights, ends), drawn, strict=True):
            told = sorted(w for w, n in law.weights_in_cell(table, axes) for _ in range(n))
            assert np.allclose(told, sorted(np.abs(scaled * unit)), atol=1e-8)


@examples(60)
@given(problems())
def test_weights_of_all_measured_marginals_are_those_of_each(problem: tuple) -> None:
    sizes, variances, tables = problem
    law = MarginalLaw(sizes, variances)
    for table in tables:
        places, weights, counts = law.draws_in_cell(table)
        assert law.largest_weights(table) == pytest.approx([law.largest_weight(table, axes) for axes in variances])
        for place, axes in enumerate(variances):
            found = sorted(zip(weights[places == place], counts[places == place], strict=True))
            expected = sorted(law.weights_in_cell(table, axes))
            assert np.allclose(np.array(found), np.array(expected))


@examples(60)
@given(problems(), st.integers(0, 2**32))
def test_no_box_gives_a_draw_a_larger_weight_than_is_told(problem: tuple, seed: int) -> None:
    sizes, variances, tables = problem
    rng, law = np.random.default_rng(seed), MarginalLaw(sizes, variances)
    for table in tables:
        inside = [rng.integers(0, 2, sizes[a]).astype(float) for a in sorted(table)]
        for axes, variance in variances.items():
            zero = {other: np.zeros([sizes[a] for a in sorted(other)]) for other in variances}
            unit = np.zeros(zero[axes].size)
            unit[rng.integers(unit.size)] = 1.0
            (found,) = estimate_tables(law, {**zero, axes: unit.reshape(zero[axes].shape)}, [table])
            for mask in inside:
                found = np.tensordot(mask, found, (0, 0))
            assert variance > 0 and abs(float(found)) <= law.largest_weight(table, axes) + 1e-9


def test_tables_that_share_axes_agree() -> None:
    sizes, rng = (7, 3, 5, 4), np.random.default_rng(3)
    measured = {
        axes: rng.integers(0, 10**6, [sizes[a] for a in sorted(axes)]).astype(float)
        for axes in sets("01", "12", "023", "3")
    }
    law = MarginalLaw(sizes, {axes: 1.0 + n for n, axes in enumerate(measured)})
    first, second, third = estimate_tables(law, measured, sets("01", "12", "02"))
    assert np.allclose(first.sum(axis=0), second.sum(axis=1), rtol=1e-9)
    assert np.allclose(first.sum(axis=1), third.sum(axis=1), rtol=1e-9)
    assert np.allclose(second.sum(axis=0), third.sum(axis=0), rtol=1e-9)


@pytest.mark.parametrize(
    ("sizes", "tables"),
    [
        ((10,), sets("0")),
        ((10, 5), sets("0", "1", "01")),
        ((2,) * 8, sets(*map("".join, itertools.combinations("01234567", 2)))),
    ],
)
def test_chosen_shares_are_never_worse_than_the_full_grid(sizes: tuple[int, ...], tables: list[Axes]) -> None:
    wanted = wanted_tables(sizes, tables, [1.0] * len(tables), 10**6)
    found = choose_shares(wanted)
    grid = np.array([float(axes == frozenset(range(len(sizes)))) for axes in wanted.candidates])
    assert sum(found.parts) == 1 and min(found.parts) > 0
    assert found.bound * (1 - 1e-9) <= found.mean_variance <= wanted.variance(grid) * (1 + 1e-9)
    law = MarginalLaw(
        sizes, {axes: 2 / float(part) ** 2 for axes, part in zip(found.marginals, found.parts, strict=True)}
    )
    assert np.mean([law.variance_of_cell(table) for table in tables]) == pytest.approx(found.mean_variance)


def test_pairs_of_many_small_axes_are_measured_by_larger_views() -> None:
    tables = [frozenset(pair) for pair in itertools.combinations(range(12), 2)]
    wanted = wanted_tables((3,) * 12, tables, [1.0] * len(tables), 10**5)
    assert choose_shares(wanted).mean_variance < 0.3 * 2 * len(tables) ** 2


def test_weights_move_accuracy_to_where_it_is_wanted() -> None:
    tables = sets("01", "23")
    even, uneven = (choose_shares(wanted_tables((5,) * 4, tables, weights, 10)) for weights in ([1, 1], [27, 1]))
    assert dict(zip(even.marginals, even.parts, strict=True))[tables[0]] == pytest.approx(0.5, abs=0.01)
    # Variances weigh as share^-2: the best shares stand as cube roots of the weights.
    assert dict(zip(uneven.marginals, uneven.parts, strict=True))[tables[0]] == pytest.approx(0.75, abs=0.01)


@given(st.integers(2, 9), st.integers(0, 2**32), st.integers(1, 2000))
def test_a_cover_holds_every_table(axes: int, seed: int, cells: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(1, 9, axes).tolist())
    tables = list({frozenset(rng.choice(axes, rng.integers(1, axes + 1), replace=False).tolist()) for _ in range(6)})
    views = cover(sizes, tables, cells)
    assert all(any(table <= view for view in views) for table in tables)
    assert all(math.prod(sizes[a] for a in view) <= cells or view in tables for view in views)


def test_shares_are_exact_and_sum_to_one() -> None:
    tables = [frozenset(pair) for pair in itertools.combinations(range(20), 2)]
    found = choose_shares(wanted_tables(tuple(range(2, 22)), tables, [1.0] * len(tables), 10**4))
    assert sum(found.parts) == Fraction(1) and all(table <= axes for axes in found.marginals for table in [frozenset()])


def test_a_cover_asks_no_library_for_products_of_single_precision() -> None:
    # OpenBLAS reads beyond a matrix of five such columns, and may say "invalid value encountered in matmul", by chance.
    steps = list(ast.walk(ast.parse(inspect.getsource(cover))))
    assert not [step for step in steps if isinstance(step, ast.MatMult)]
    assert [step for step in steps if isinstance(step, ast.Attribute) and step.attr == "einsum"]
