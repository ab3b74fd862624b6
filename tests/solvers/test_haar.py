"""The inverse Haar transform against the definition, node by node and axis by axis."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.solvers.trees.haar import inverse_haar

SHAPES = [(1,), (2,), (3,), (5,), (8,), (13,), (3, 4), (1, 5), (2, 3, 2)]


def line_by_definition(line):
    """Total, then the differences of every level from the top, of a line padded with zeros."""
    padded = [*line, *[0] * ((1 << (len(line) - 1).bit_length()) - len(line))]
    found, width = [sum(padded)], len(padded)
    while width > 1:
        for start in range(0, len(line), width):
            middle = start + width // 2
            found.append(sum(padded[start:middle]) - sum(padded[middle : start + width]))
        width //= 2
    return found


def by_definition(cells):
    """The wavelet of a grid of whole numbers or fractions, an axis after the other."""
    for axis in range(cells.ndim):
        cells = np.apply_along_axis(lambda line: np.array(line_by_definition(list(line)), dtype=object), axis, cells)
    return cells


@settings(deadline=None)
@given(st.sampled_from(SHAPES), st.data())
def test_the_inverse_gives_back_the_cells(shape, data):
    many = int(np.prod(shape))
    counts = data.draw(st.lists(st.integers(-(10**12), 10**12), min_size=many, max_size=many))
    cells = np.array(counts, dtype=object).reshape(shape)
    assert inverse_haar(by_definition(cells).astype(float), shape).tolist() == cells.tolist()


@settings(deadline=None)
@given(st.sampled_from([(1,), (2,), (4,), (8,), (4, 4), (2, 2, 4)]), st.data())
def test_noisy_numbers_are_those_of_the_cells_they_give(shape, data):
    many = int(np.prod(shape))
    noisy = np.array(data.draw(st.lists(st.integers(-1000, 1000), min_size=many, max_size=many)), dtype=float)
    cells = inverse_haar(noisy.reshape(shape), shape)
    exact = np.array([Fraction(value) for value in cells.ravel().tolist()], dtype=object).reshape(shape)
    assert by_definition(exact).ravel().tolist() == noisy.tolist()


def test_a_wavelet_of_another_size_is_refused():
    with pytest.raises(ValueError, match="5 cells have 7"):
        inverse_haar(np.zeros(8), (5,))
