"""Moves of whole records never make the misfit larger, keep every row, and respect labels."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.whole_counts.population import CellLayout, drawn_records, fit_rows, improve
from examples import examples

SIZES = (4, 3, 60)
TABLES = ((0, 1), (1, 2), (2,))


def layout() -> CellLayout:
    steps = []
    for table in TABLES:
        sizes = [SIZES[axis] for axis in table]
        strides = [int(np.prod(sizes[place + 1 :])) for place in range(len(sizes))]
        steps.append(
            tuple((axis, np.arange(SIZES[axis]) * stride) for axis, stride in zip(table, strides, strict=True))
        )
    return CellLayout.of(SIZES, steps, [int(np.prod([SIZES[axis] for axis in table])) for table in TABLES])


def misfit(
    of: CellLayout, records: np.ndarray, weights: np.ndarray, targets: np.ndarray, importance: np.ndarray
) -> float:
    apart = (of.sums(records, weights) - targets) ** 2
    return float(np.add.reduceat(apart, of.starts[:-1]) @ importance)


@given(st.integers(0, 2**32), st.integers(1, 60), st.booleans())
@examples(30)
def test_moves_lower_the_misfit_and_keep_rows_and_labels(seed: int, many: int, heavy: bool) -> None:
    draws, of = np.random.Generator(np.random.PCG64(seed)), layout()
    records = np.stack([draws.integers(0, size, many) for size in SIZES], axis=1).astype(np.int32)
    weights = draws.integers(1, 100 if heavy else 2, many)
    targets = draws.normal(5, 10, int(of.starts[-1]))
    importance = np.array([1.0, 2.0, 0.5])
    labels = [np.array([0, 0, 1, 1]), np.zeros(3, dtype=np.int64), np.arange(60) % 2]
    held = np.bincount(labels[0][records[:, 0]], weights=weights, minlength=2)
    before = misfit(of, records, weights, targets, importance)
    moved, rows, after = improve(of, records, weights, targets, importance, labels, 2 * many, 1e7)
    assert after <= before * (1 + 1e-9)
    assert np.isclose(after, misfit(of, moved, rows, targets, importance), rtol=1e-6)
    assert rows.min() > 0 and rows.sum() == weights.sum() and len(rows) <= 2 * many
    assert np.array_equal(np.bincount(labels[0][moved[:, 0]], weights=rows, minlength=2), held)


def test_a_population_whose_values_are_shuffled_is_found_again() -> None:
    """Moves of one record's value reach tables that some population has."""
    draws, of = np.random.Generator(np.random.PCG64(7)), layout()
    wanted = np.stack([draws.integers(0, size, 400) for size in SIZES], axis=1).astype(np.int32)
    wanted[:, 1] = wanted[:, 0] % 3
    targets = of.sums(wanted, np.ones(400, dtype=np.int64)).astype(np.float64)
    shuffled = np.stack([draws.permutation(wanted[:, axis]) for axis in range(3)], axis=1)
    labels = [np.zeros(size, dtype=np.int64) for size in SIZES]
    ones = np.ones(400, dtype=np.int64)
    *_, after = improve(of, shuffled, ones, targets, np.ones(3), labels, 400, 1e7)
    assert after < 0.02 * misfit(of, shuffled, ones, targets, np.ones(3))


def test_records_are_drawn_along_a_tree_and_weighted_to_their_tables() -> None:
    draws, of = np.random.Generator(np.random.PCG64(8)), layout()
    grid = draws.dirichlet(np.full(720, 0.3)).reshape(SIZES) * 1e5
    tables = {(0, 1): grid.sum(axis=2), (1, 2): grid.sum(axis=0), (2,): grid.sum(axis=(0, 1))}
    tables |= {(axis,): grid.sum(axis=tuple({0, 1, 2} - {axis})) for axis in (0, 1)}
    records = drawn_records(SIZES, {axes: (values, 1.0) for axes, values in tables.items()}, {}, 2_000)
    found = of.sums(records, np.full(2_000, 50))
    targets = np.concatenate([tables[table].ravel() for table in TABLES])
    assert np.abs(found[: of.starts[1]] - targets[: of.starts[1]]).max() < 1_000
    rows = fit_rows(of, records, np.full(2_000, 50), targets, np.ones(3), np.zeros(2_000, dtype=np.int64))
    assert rows.sum() == 100_000
    assert np.abs(of.sums(records, rows) - targets).mean() < 0.3 * np.abs(found - targets).mean()


def test_records_find_their_places_inside_regions_that_hold_them() -> None:
    """Places of an axis of 2,048, in 128 regions whose sums count so much that hardly a record may leave its own."""
    draws, places = np.random.Generator(np.random.PCG64(9)), draws_of_regions()
    of = CellLayout.of((2_048,), [((0, np.arange(2_048)),), ((0, places),)], [2_048, 128])
    wanted = draws.integers(0, 2_048, (3_000, 1)).astype(np.int32)
    ones, labels = np.ones(3_000, dtype=np.int64), [np.zeros(2_048, dtype=np.int64)]
    targets = of.sums(wanted, ones).astype(np.float64)
    inside = np.array([draws.choice(np.flatnonzero(places == places[place])) for place in wanted[:, 0]])
    importance = np.array([1.0, 1e4])
    records = inside[:, None].astype(np.int32)
    *_, after = improve(of, records, ones, targets, importance, labels, 3_000, 1e8)
    assert after < 0.02 * misfit(of, records, ones, targets, importance)


def draws_of_regions() -> np.ndarray:
    """Regions of 16 places each, whose places do not follow each other."""
    return np.random.Generator(np.random.PCG64(10)).permutation(np.repeat(np.arange(128), 16))
