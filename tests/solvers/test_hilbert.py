"""The Hilbert curve: every cell once, neighbours one after the other, squares filled before they are left."""

from __future__ import annotations

import numpy as np
import pytest

from dphist_pipeline.solvers.trees.hilbert import hilbert_line


@pytest.mark.parametrize("shape", [(1,), (7,), (3, 4), (5, 1, 9), (2, 3, 2, 2), (1, 1)])
def test_the_curve_visits_every_cell_once(shape: tuple[int, ...]) -> None:
    assert sorted(hilbert_line(shape)) == list(range(int(np.prod(shape))))


@pytest.mark.parametrize("shape", [(16,), (8, 8), (4, 4, 4), (2, 2, 2, 2), (64, 64)])
def test_in_a_cube_of_a_power_of_two_the_next_cell_is_a_neighbour(shape: tuple[int, ...]) -> None:
    places = np.stack(np.unravel_index(hilbert_line(shape), shape))
    assert (np.abs(np.diff(places)).sum(axis=0) == 1).all()


def test_each_quarter_of_the_curve_is_a_quarter_of_the_square() -> None:
    rows, columns = np.unravel_index(hilbert_line((16, 16)).reshape(4, 64), (16, 16))
    assert {(len(set(r // 8)), len(set(c // 8))) for r, c in zip(rows, columns, strict=True)} == {(1, 1)}


def test_a_line_keeps_its_order_and_a_grid_that_is_too_large_is_refused() -> None:
    assert hilbert_line((9,)).tolist() == list(range(9))
    with pytest.raises(ValueError, match="2\\^62"):
        hilbert_line((1 << 16, 1, 1, 1))
