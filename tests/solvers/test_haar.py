"""The Haar transform against its definition, node by node, and against its inverse."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.solvers.haar import haar, inverse_haar


def lines(elements):
    return st.integers(0, 6).flatmap(lambda power: st.lists(elements, min_size=2**power, max_size=2**power))


def by_definition(line):
    """Every coefficient from the cells below its node, found by walking down from the root."""
    coefficients = [sum(line)]
    for node in range(1, len(line)):
        cells = line
        for turn in bin(node)[3:]:
            half = len(cells) // 2
            cells = cells[half:] if turn == "1" else cells[:half]
        half = len(cells) // 2
        coefficients.append(sum(cells[:half]) - sum(cells[half:]))
    return coefficients


@settings(deadline=None)
@given(lines(st.integers(-(10**12), 10**12)), st.sampled_from([np.int64, np.float64]))
def test_coefficients_are_those_of_the_definition(line, kind):
    coefficients = haar(np.array(line, dtype=kind))
    assert coefficients.dtype == kind
    assert coefficients.tolist() == by_definition(line)


@settings(deadline=None)
@given(lines(st.integers(-(10**12), 10**12)), st.sampled_from([np.int64, np.float64]))
def test_the_inverse_gives_back_the_line(line, kind):
    again = inverse_haar(haar(np.array(line, dtype=kind)))
    assert again.dtype == kind
    assert again.tolist() == line


@settings(deadline=None)
@given(lines(st.integers(-1000, 1000)))
def test_noisy_coefficients_are_those_of_the_line_they_give(coefficients):
    line = inverse_haar(np.array(coefficients, dtype=np.float64))
    exact = [Fraction(value) for value in line.tolist()]
    assert by_definition(exact) == coefficients


@pytest.mark.parametrize("sign", [1, -1])
def test_a_million_cells_of_a_million_million_do_not_overflow(sign):
    line = sign * (10**12 - np.random.default_rng(5).integers(0, 10**6, 2**20))
    coefficients = haar(line)
    assert int(coefficients[0]) == sum(line.tolist())
    assert np.array_equal(inverse_haar(coefficients), line)
    # One side against the other: the largest difference there can be.
    line[: 2**19] *= -1
    assert np.array_equal(inverse_haar(haar(line)), line)


def test_the_line_itself_is_left_alone():
    line = np.array([3, 1, 4, 1])
    coefficients = haar(line)
    kept = coefficients.copy()
    inverse_haar(coefficients)
    assert line.tolist() == [3, 1, 4, 1]
    assert np.array_equal(coefficients, kept)
    single = np.array([7])
    assert not np.shares_memory(inverse_haar(single), single)


@pytest.mark.parametrize("shape", [(0,), (3,), (12,), (2, 2)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="power of two"):
        haar(np.zeros(shape))
