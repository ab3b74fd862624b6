"""The kd-tree of DPCube against a plain recursion that computes every sum anew."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphist_pipeline.solvers.kd_boxes import kd_boxes


def squared_error(part):
    return float(((part - part.mean()) ** 2).sum())


def plain_boxes(cells, cell_variance, box_variance, threshold, max_depth):
    boxes = np.zeros(cells.shape, dtype=np.int64)
    found = 0

    def split(low, high, depth):
        nonlocal found
        where = tuple(slice(a, b) for a, b in zip(low, high, strict=True))
        part = cells[where]
        sides, tried = sorted(range(part.ndim), key=lambda axis: -part.shape[axis]), 0
        for axis in sides if depth < max_depth else []:
            length = part.shape[axis]
            if length == 1:
                break
            tried += length - 1
            cuts = [np.split(part, [cut], axis) for cut in range(1, length)]
            errors = [squared_error(left) + squared_error(right) for left, right in cuts]
            cut = int(np.argmin(np.round(errors, 6)))
            left, right = cuts[cut]
            if math.isnan(threshold):
                gain = squared_error(part) - errors[cut] - 2 * cell_variance * math.log(max(2, tried))
                wanted = gain > box_variance * (1 / left.size + 1 / right.size - 1 / part.size)
            else:
                wanted = part.var() - cell_variance > threshold
            if wanted:
                middle_high, middle_low = list(high), list(low)
                middle_high[axis] = middle_low[axis] = low[axis] + cut + 1
                split(low, middle_high, depth + 1)
                split(middle_low, high, depth + 1)
                return
            if not math.isnan(threshold):
                break
        boxes[where] = found
        found += 1

    split([0] * cells.ndim, list(cells.shape), 0)
    return boxes


SHAPES = st.lists(st.integers(1, 5), min_size=1, max_size=4).map(tuple)


@settings(max_examples=150, deadline=None)
@given(SHAPES, st.integers(0, 10**6), st.sampled_from([math.nan, 0.0, 3.0, 1e9]), st.sampled_from([0, 1, 3, 40]))
def test_finds_the_boxes_that_a_plain_recursion_finds(shape, seed, threshold, max_depth):
    # Odd fractions keep two cuts from being equally good but for rounding.
    cells = np.random.default_rng(seed).uniform(0, 10, shape).round(3) * np.pi
    expected = plain_boxes(cells, 0.7, 1.3, threshold, max_depth)
    assert np.array_equal(kd_boxes(cells, 0.7, 1.3, threshold, max_depth), expected)


@pytest.mark.parametrize("offset", [0.0, 1e9, 1e12])
def test_finds_a_block_at_any_offset(offset):
    cells = np.zeros((12, 16)) + offset
    cells[3:7, 5:9] += 100
    boxes = kd_boxes(cells, 0.5, 0.5, math.nan, 40)
    assert len(np.unique(boxes[3:7, 5:9])) == 1
    assert np.ptp(cells[boxes == boxes[3, 5]]) == 0


def test_equal_cells_stay_one_box():
    assert kd_boxes(np.full((9, 9, 9), 4.0), 1.0, 1.0, math.nan, 40).max() == 0


def test_one_huge_cell_does_not_hide_small_ones():
    cells = np.zeros((32, 32))
    cells[0, 0] = 1e12
    cells[16:, 16:] = 20
    boxes = kd_boxes(cells, 0.5, 0.5, math.nan, 40)
    assert len(np.unique(boxes[16:, 16:])) == 1
    assert not np.isin(boxes[16:, 16:], boxes[:16, :16]).any()


def test_six_axes_are_served_and_a_flat_longest_side_does_not_stop_the_search():
    cells = np.zeros((2, 3, 2, 3, 2, 3))
    cells[1] = 50
    assert kd_boxes(cells, 0.1, 0.1, math.nan, 40).max() == 1


def test_no_cut_lies_deeper_than_the_most():
    cells = np.arange(64.0) ** 3
    assert kd_boxes(cells, 0.0, 0.0, 0.0, 3).max() == 7


@pytest.mark.parametrize("threshold", [math.nan, 50.0])
@pytest.mark.parametrize("others", [(), (1,), (3,)])
def test_long_rows_and_columns_are_cut_as_short_ones_are(others, threshold):
    # Sums are taken in some parts, and cuts are looked at sixteen at once: every length of the rest turns up.
    for length in range(1, 40):
        for shape in ((*others, length), (length, *others)):
            cells = np.random.default_rng(length).uniform(0, 10, shape).round(3) * np.pi
            expected = plain_boxes(cells, 0.7, 1.3, threshold, 40)
            assert np.array_equal(kd_boxes(cells, 0.7, 1.3, threshold, 40), expected)
