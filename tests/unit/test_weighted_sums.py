"""The measurement of weighted sums: exact sums, moved by a neighbour no more than noise covers, resumable anywhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential._plain_values import MeasurementMisuse
from dphist_pipeline.confidential._queries import LARGEST_WEIGHT, WeightedSums
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget

LARGEST = 1 << 52
COUNTS = st.integers(-100, 100) | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([LARGEST, -LARGEST, LARGEST - 1])
WEIGHTS = st.integers(-5, 5) | st.sampled_from([LARGEST_WEIGHT, -LARGEST_WEIGHT])
SHAPES = [(1,), (4,), (3, 2), (1, 3), (2, 2, 3)]
LINE = np.array([[2, 1, 3], [1, 2, 0], [0, 0, 1]])


def weights_for(size: int, data: st.DataObject) -> np.ndarray:
    rows = data.draw(st.integers(1, 3))
    drawn = data.draw(st.lists(WEIGHTS, min_size=rows * size, max_size=rows * size))
    line = np.array(drawn, dtype=np.int64).reshape(rows, size)
    line[0, 0] = line[0, 0] or 1
    return line


def exactly(lines: list[np.ndarray], counts: np.ndarray) -> np.ndarray:
    """The answers in Python's whole numbers, cut off after each axis."""
    found = counts.astype(object)
    for axis, line in enumerate(lines):
        matrix = np.vstack([np.diag(line[0]), line[1:]]).astype(object)
        along = np.tensordot(matrix, np.moveaxis(found, axis, 0), axes=1)
        found = np.moveaxis(np.clip(along, -LARGEST, LARGEST), 0, axis)
    return found.ravel()


@settings(deadline=None)
@given(st.sampled_from(SHAPES), st.data())
def test_sums_of_neighbours_are_exact_and_differ_by_no_more_than_is_declared(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    cells = math.prod(shape)
    lines = [weights_for(size, data) for size in shape]
    question = WeightedSums(tuple(lines), shape)
    exact = data.draw(st.lists(COUNTS, min_size=cells, max_size=cells))
    moves = data.draw(st.lists(st.integers(-2, 2), min_size=cells, max_size=cells))
    answers = []
    for counts in (exact, [count + move for count, move in zip(exact, moves, strict=True)]):
        whole = np.array([max(-LARGEST, min(LARGEST, count)) for count in counts], dtype=np.int64)
        answers.append(question.answers(whole))
        assert answers[-1].tolist() == exactly(lines, whole.reshape(shape)).tolist()
    assert np.abs(answers[0] - answers[1]).sum() <= question.sensitivity(int(np.abs(moves).sum()))


def test_one_row_in_the_heaviest_cell_moves_them_exactly_as_far_as_is_declared() -> None:
    question = WeightedSums((LINE, LINE), (3, 3))
    assert question.sensitivity(1) == 16  # 2 + 1, 1 + 2 and 3 + 1 on each axis
    row = np.zeros((3, 3), dtype=np.int64)
    row[2, 2] = 1
    assert np.abs(question.answers(row.ravel())).sum() == 16


def test_sums_with_the_largest_weights_over_the_longest_axis_are_exact() -> None:
    cells = 1 << 16
    line = np.full((2, cells), LARGEST_WEIGHT)
    counts = np.full(cells, (1 << 19) + 1, dtype=np.int64)
    counts[::2] *= -1
    counts[0] = 12_345
    own, total = np.split(WeightedSums((line,), (cells,)).answers(counts), [cells])
    assert own.tolist() == [min(LARGEST, max(-LARGEST, int(count) << 16)) for count in counts]
    assert total.tolist() == [int(counts.sum()) << 16]
    assert WeightedSums((line,), (cells,)).answers(np.full(cells, LARGEST)).tolist() == [LARGEST] * (cells + 1)


def test_the_noise_has_the_declared_scale_and_least_squares_undo_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "discrete_laplace", lambda scale, size: np.zeros(size, dtype=np.int64))
    exact = np.arange(9, dtype=np.int64) ** 2
    counts = PrivateCounts(Domain.from_shape((3, 3)), 5, lambda: exact)
    noisy = counts.noisy_weighted_sums([LINE, LINE], Budget(Fraction(1, 3)))
    assert noisy.scale == 5 * 16 * 3
    assert noisy.estimates() == pytest.approx(exact.reshape(3, 3), abs=1e-9)


class Kept:
    def __init__(self) -> None:
        self.answers: dict[str, np.ndarray] = {}
        self.questions: list[dict[str, str]] = []

    def answer(self, step: str, question: Mapping[str, str], draw: Callable[[], np.ndarray]) -> np.ndarray:
        self.questions.append({"step": step, **question})
        if step not in self.answers:
            self.answers[step] = draw()
        return self.answers[step].copy()


def test_whoever_resumes_with_other_weights_goes_on_with_those_that_were_asked() -> None:
    journal = Kept()
    counts = PrivateCounts(Domain.from_shape((3,)), 1, lambda: np.array([5, 6, 7]), journal)
    first = counts.noisy_weighted_sums([LINE], Budget(Fraction(1)))
    asked = list(journal.questions)
    other = counts.noisy_weighted_sums([np.ones((4, 3), dtype=int)], Budget(Fraction(1)))
    assert journal.questions == [*asked, *asked]
    assert [one["door"] for one in asked] == ["weights", "noisy_weighted_sums"]
    assert np.array_equal(first.values, other.values)
    assert np.array_equal(first.lines[0].weights, other.lines[0].weights)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ([], "an array for each axis"),
        (LINE, "an array for each axis"),
        ([LINE.astype(float)], "whole numbers"),
        ([LINE.tolist()], "NumPy array"),
        ([LINE[:, :2]], "one number for each position"),
        ([LINE[0]], "one number for each position"),
        ([LINE[:0]], "one number for each position"),
        ([LINE * 0], "not all be 0"),
        ([LINE * (LARGEST_WEIGHT // 2)], "must lie within"),
        ([LINE * -(LARGEST_WEIGHT // 2)], "must lie within"),
    ],
)
def test_weights_of_another_kind_are_refused_before_anything_is_spent(lines: Any, problem: str) -> None:
    budget = Budget(Fraction(1))
    counts = PrivateCounts(Domain.from_shape((3,)), 1, lambda: np.zeros(3, dtype=np.int64))
    with pytest.raises(MeasurementMisuse, match=problem):
        counts.noisy_weighted_sums(lines, budget)
    assert budget.charges == ()


def test_a_digest_tells_weights_apart() -> None:
    other = LINE.copy()
    other[2, 2] = 2
    lines = [(LINE,), (other,), (LINE[:2],), (LINE.T.copy(),)]
    assert len({WeightedSums(one, (3,)).digest for one in lines}) == 4
    one, two = np.ones((1, 2), dtype=int), np.ones((2, 2), dtype=int)
    assert WeightedSums((one, two), (2, 2)).digest != WeightedSums((two, one), (2, 2)).digest
