"""The nearest non-negative table with given sums, against a plain projection and against brute force."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dphist_pipeline.solvers.whole_counts import marginal_fit
from dphist_pipeline.solvers.whole_counts.marginal_fit import GroupSums, MarginalSums, fit_to_sums

DRAWS = np.random.Generator(np.random.PCG64(20261122))


def onto_simplex(values, total):
    """The projection on the non-negative vectors with a sum, by trying every number of positive cells."""
    largest = np.sort(values)[::-1]
    shifts = (np.cumsum(largest) - total) / np.arange(1, values.size + 1)
    return np.maximum(values - shifts[np.flatnonzero(largest > shifts)[-1]], 0)


def test_a_line_with_one_sum_is_the_projection_on_the_simplex():
    for _ in range(200):
        values, total = DRAWS.normal(0, 5, DRAWS.integers(1, 30)), float(DRAWS.exponential(20)) + 0.01
        found = fit_to_sums(values, [GroupSums(np.zeros(values.size, dtype=np.int64), np.array([total]))])
        assert found == pytest.approx(onto_simplex(values, total), abs=0.3) and found.min() >= 0
        assert abs(found.sum() - total) <= 0.25


def test_each_group_is_projected_by_itself():
    labels = np.array([1, 0, 1, 0, 2])
    values, targets = np.array([5.0, 2, -3, 4, 9]), np.array([10.0, 1, 0])
    found = fit_to_sums(values, [GroupSums(labels, targets)])
    assert found == pytest.approx([1, 4, 0, 6, 0])


def test_a_table_meets_both_margins_and_no_other_table_is_nearer():
    values = DRAWS.normal(0, 3, (6, 9))
    truth = DRAWS.poisson(1.5, (6, 9)).astype(float)
    wanted = [MarginalSums((1,), truth.sum(1, keepdims=True)), MarginalSums((0,), truth.sum(0, keepdims=True))]
    found = fit_to_sums(values, wanted)
    for one in wanted:
        assert one.sums(found) == pytest.approx(one.targets, abs=0.4)
    # Any other table with the same margins, also one on the way to the truth, is farther away.
    assert ((found - values) ** 2).sum() < ((truth - values) ** 2).sum()
    step = found + 0.05 * (truth - found)
    assert ((found - values) ** 2).sum() <= ((step - values) ** 2).sum() + 0.5


def test_margins_that_contradict_each_other_settle_between():
    wanted = [MarginalSums((1,), np.array([[10.0], [10.0]])), MarginalSums((0,), np.array([[30.0, 30.0]]))]
    found = fit_to_sums(np.zeros((2, 2)), wanted)
    assert 20 <= found.sum() <= 60 and np.isfinite(found).all()


@pytest.mark.slow
@pytest.mark.parametrize("held", ["int16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(7,), (4, 9), (5, 2, 6), (3, 4, 1, 2), (2, 3, 2, 67)])
def test_compiled_passes_take_the_same_steps(
    shape: tuple[int, ...], held: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = DRAWS.poisson(1.5, shape).astype(float)
    values, every = truth + DRAWS.normal(0, 3, shape), range(len(shape))
    values = {"int16": np.rint(values), "float32": np.rint(values), "float64": values}[held]
    if held == "float32":
        truth.flat[0] += 1 << 15
        values.flat[0] += 1 << 15
    wanted = [MarginalSums(tuple(every), truth.sum(keepdims=True))]
    for summed in [tuple(axis for axis in every if axis not in kept) for kept in combinations(every, 2)]:
        wanted.insert(0, MarginalSums(summed, truth.sum(axis=summed, keepdims=True), 0.3))
    plain = fit_to_sums(values, wanted)
    monkeypatch.setattr(marginal_fit, "LARGE", 1)
    before = values.copy()
    assert fit_to_sums(values, wanted) == pytest.approx(plain, abs=1e-9) and (values == before).all()
    assert plain.min() == 0 and abs(plain.sum() - truth.sum()) < 1
