"""The running example of the DPCube paper (arXiv 2012, figures 2 to 8), with its misprints named.

Three groups of income by three of age: the cells x1 … x9, row by row, of section 3.2. Noise is left out.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.mechanisms.dpcube import _least_squares
from dphist_pipeline.solvers.boxes.joined_boxes import TwofoldBoxes
from dphist_pipeline.solvers.boxes.kd_boxes import kd_boxes

X = np.array([10, 21, 37, 20, 0, 0, 53, 0, 0])
CUBE = X.reshape(3, 3).astype(float)
# The rows of equation 31, as printed, and what is printed beside them without its noise.
H_II = np.array(
    [
        [1, 1, 0, 0, 0, 0, 0, 0, 0],
        [0, 0, 1, 0, 0, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 0, 1, 0, 0],
        [0, 0, 0, 0, 1, 1, 0, 1, 1],
    ]
)
PRINTED = np.array([51, 37, 53, 0])
BOXES = H_II.argmax(axis=0).reshape(3, 3)


def same_boxes(one, other):
    return len({*zip(one.ravel(), other.ravel(), strict=True)}) == len(set(one.ravel())) == len(set(other.ravel()))


def test_rows_one_and_three_of_figure_7_are_misprinted_and_the_others_are_not():
    sums = H_II @ X
    assert sums.tolist() == [31, 37, 73, 0]
    assert (PRINTED - sums).tolist() == [20, 0, -20, 0]
    # The 20 records of x4 stand in row 1 in the place of row 3: with it there, no box holds x1, x2 and x4 alone.
    assert X[3] == 20 and PRINTED.sum() == sums.sum() == X.sum() == 141


def test_every_cell_lies_in_one_box_so_that_their_counts_compose_in_parallel():
    assert H_II.sum(axis=0).tolist() == [1] * 9


def test_two_levels_of_cuts_find_the_boxes_of_figure_7():
    assert same_boxes(kd_boxes(CUBE, 0.0, 0.0, 0.0, 2), BOXES)


def test_no_threshold_alone_finds_the_boxes_of_figure_7():
    """Row 1 has a smaller variance than the box of x4 and x7, and is cut all the same: a misprint of the figure."""
    row, pair = CUBE[0].var(), np.var([20, 53])
    assert (round(float(row), 1), float(pair)) == (122.9, 272.25)
    for threshold in (0.0, 30.25, 100.0, row, 200.0, pair, 272.3, 380.0):
        assert not same_boxes(kd_boxes(CUBE, 0.0, 0.0, threshold, 40), BOXES)


@pytest.mark.parametrize("size", [0.0, 122.8, 500.0])
def test_a_box_is_cut_above_the_threshold_as_in_algorithm_3_not_as_in_the_text(size):
    """The text: "we do not split a partition if its variance is greater than a threshold"."""
    boxes = kd_boxes(CUBE, 0.0, 0.0, size, 40)
    assert (boxes.max() == 0) == (CUBE.var() <= size)
    assert all(CUBE[boxes == box].var() <= size for box in range(boxes.max() + 1))


def test_the_query_of_figure_3_is_the_lowest_income_though_its_text_says_above_30k():
    """Incomes end with "> 20K" in figure 2, so that "income > 30k" is no union of cells, and x1 is "0 ~ 10K"."""
    query = np.eye(9, dtype=int)[0]
    assert query @ X == 10 and query.sum() == 1


def test_figure_4_spreads_one_draw_over_four_empty_cells():
    noise = 7.0
    uniform = (H_II @ X + [0, 0, 0, noise]) / H_II.sum(axis=1)
    assert uniform[BOXES.ravel()[4]] - X[4] == noise / 4


def test_the_query_of_figure_8_takes_half_of_two_boxes():
    """Age 30 to 40 is x2 + x5 + x8: half of the cells of y10, and half of those of y13."""
    query = np.isin(np.arange(9), [1, 4, 7])
    assert query @ X == 21
    uniform = (H_II @ X / H_II.sum(axis=1))[BOXES.ravel()]
    assert query @ uniform == 31 / 2 + 0 / 2
    assert query @ (PRINTED / H_II.sum(axis=1))[BOXES.ravel()] == 51 / 2  # with the misprint


def test_least_squares_of_the_example_is_the_papers_pseudo_inverse():
    """Equation of section 4.4 with both halves of the budget alike: the pseudo-inverse of [H_II; H_I]."""
    found = TwofoldBoxes.of(BOXES)
    private_counts = PrivateCounts(Domain.from_shape((3, 3)), 1, lambda: X.astype(np.int64))
    cells, sums = Budget(Fraction(2)).split(cells="1/2", sums="1/2")
    noisy, boxed = private_counts.noisy_cells(cells), private_counts.noisy_sums(BOXES, sums)
    expected = np.linalg.pinv(np.vstack([H_II, np.eye(9)])) @ np.concatenate([boxed.values, noisy.values.ravel()])
    assert np.allclose(_least_squares(noisy, boxed, found).ravel(), expected)


def test_the_whole_mechanism_finds_the_boxes_where_noise_is_small():
    private_counts = PrivateCounts(Domain.from_shape((3, 3)), 1, lambda: X.astype(np.int64))
    built = mechanisms.build("dpcube", {"threshold": {"paper": 0}, "max_depth": 2})
    estimate = built.release(private_counts, Budget(Fraction(50)))
    assert same_boxes(estimate.groups, BOXES)
    assert sorted(estimate.sums.values.tolist()) == [0, 31, 37, 73]
