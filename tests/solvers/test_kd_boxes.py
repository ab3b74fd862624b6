"""The kd-tree of DPCube against a plain recursion that computes every sum anew."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.solvers.boxes.kd_boxes import kd_boxes, prefix_sums
from examples import examples


def squared_error(part):
    """Exact for Python's whole numbers."""
    if part.dtype == object:
        return Fraction(int((part * part).sum())) - Fraction(int(part.sum()) ** 2, part.size)
    return float(((part - part.mean()) ** 2).sum())


def whole(cells):
    """The same as Python's whole numbers, among which ties are exact."""
    return cells.astype(np.int64).astype(object)


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
            compared = errors if part.dtype == object else [round(error, 6) for error in errors]
            cut = compared.index(min(compared))
            left, right = cuts[cut]
            if math.isnan(threshold):
                gain = squared_error(part) - errors[cut] - 2 * cell_variance * math.log(max(2, tried))
                wanted = gain > box_variance * (1 / left.size + 1 / right.size - 1 / part.size)
            else:
                wanted = squared_error(part) / part.size - cell_variance > threshold
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


@examples(150)
@given(SHAPES, st.integers(0, 10**6), st.sampled_from([math.nan, 0.0, 3.0, 1e9]), st.sampled_from([0, 1, 3, 40]))
def test_finds_the_boxes_that_a_plain_recursion_finds(shape, seed, threshold, max_depth):
    # Odd fractions keep two cuts from being equally good but for rounding.
    cells = np.random.default_rng(seed).uniform(0, 10, shape).round(3) * np.pi
    expected = plain_boxes(cells, 0.7, 1.3, threshold, max_depth)
    assert np.array_equal(kd_boxes(cells, 0.7, 1.3, threshold, max_depth), expected)


# Sides of 1 come often: a few cells in a line along any axis, and squares across any two, have paths of their own.
MORE_SHAPES = st.lists(st.sampled_from([1, 1, 2, 2, 3, 4, 6]), min_size=1, max_size=6).map(tuple)


@examples(400)
@given(
    MORE_SHAPES.filter(lambda shape: math.prod(shape) <= 300),
    st.integers(0, 10**6),
    st.sampled_from([2, 5, 60]),
    st.sampled_from([0, -(10**9), 10**12]),
    st.sampled_from([math.nan, math.nan, 0.0, 3.0]),
    st.sampled_from([0, 1, 2, 3, 40]),
)
def test_takes_the_first_of_equally_good_cuts_of_whole_numbers(shape, seed, most, offset, threshold, max_depth):
    cells = np.random.default_rng(seed).integers(0, most, shape) + float(offset)
    variance = math.sqrt(0.003) if most == 2 else math.sqrt(0.5)
    expected = plain_boxes(whole(cells), variance, variance, threshold, max_depth)
    assert np.array_equal(kd_boxes(cells, variance, variance, threshold, max_depth), expected)


@pytest.mark.parametrize("shape", [(2,), (3,), (3, 1), (2, 2), (2, 1, 2)])
@pytest.mark.parametrize("max_depth", [1, 2])
def test_every_line_of_three_and_every_square_of_few_values(shape, max_depth):
    for values in product(range(5), repeat=math.prod(shape)):
        cells = np.array(values, dtype=float).reshape(shape)
        expected = plain_boxes(whole(cells), math.sqrt(0.5), math.sqrt(0.5), math.nan, max_depth)
        assert np.array_equal(kd_boxes(cells, math.sqrt(0.5), math.sqrt(0.5), math.nan, max_depth), expected)


@pytest.mark.parametrize("length", [2, 3, 16, 17, 128, 129, 300])
@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 2), (2, 1)])
def test_the_first_of_equally_good_cuts_of_rows_of_every_length(length, before, after):
    numbers = np.random.default_rng(length)
    rows = [np.zeros(length), np.arange(length) % 2, numbers.integers(0, 3, length), numbers.integers(0, 99, length)]
    half = rows[2][: (length + 1) // 2]
    rows.append(np.concatenate([half, half[: length // 2][::-1]]))  # every cut has its equal
    for row in rows:
        cells = np.ones((before, length, after)) * row[:, None]
        assert np.array_equal(kd_boxes(cells, 0.0, 0.0, -1.0, 1), plain_boxes(whole(cells), 0.0, 0.0, -1.0, 1))


@pytest.mark.parametrize(("shape", "tried"), [((1000,), 999), ((1, 1000), 999), ((1000, 1), 999), ((40, 25), 39)])
def test_pays_for_the_luck_of_every_cut_it_tried(shape, tried):
    # Half of the cells lie higher by h: that gains 250 h², and the luck of k cuts is 2 ln k.
    for more, boxes in ((1.01, 2), (0.99, 1)):
        height = math.sqrt(more * 2 * math.log(tried) / 250)
        cells = np.repeat([0.0, height], 500).reshape(shape)
        assert kd_boxes(cells, 1.0, 0.0, math.nan, 1).max() + 1 == boxes


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


def test_a_huge_cell_does_not_hide_noise_of_a_tenth():
    cells = np.random.default_rng(3).normal(0.0, 0.1, (32, 32))
    cells[16:, 16:] += 1
    cells[0, 0] = 1e12
    boxes = kd_boxes(cells, 0.01, 0.01, math.nan, 40)
    assert not np.isin(boxes[16:, 16:], boxes[:16]).any()
    assert len(np.unique(boxes[16:, 16:])) == 1
    assert len(np.unique(boxes)) < 60  # a wall around the cell, and little more


@pytest.mark.parametrize("scale", [2.0**-1040, 1e-300, 1e-9, 1.0, 1e9, 1e18, 1e120])
def test_finds_the_same_boxes_at_every_scale(scale):
    cells = np.random.default_rng(5).integers(0, 50, (9, 7)) / 4.0
    expected = plain_boxes(cells, 0.0, 0.0, 7.0 / 3, 40)
    if scale < 1e-200:  # squares of such cells are no longer told apart, but nothing breaks
        assert kd_boxes(cells * scale, 0.0, 0.0, 0.0, 40).max() <= 62
    else:
        assert np.array_equal(kd_boxes(cells * scale, 0.0, 0.0, 7.0 / 3 * scale**2, 40), expected)


@pytest.mark.parametrize("cell", [math.nan, math.inf, -1e300])
def test_refuses_cells_whose_squares_are_not_finite(cell):
    with pytest.raises(ValueError, match="finite"):
        kd_boxes(np.array([[0.0, cell, 2.0]]), 1.0, 1.0, math.nan, 40)


@pytest.mark.parametrize("threshold", [math.nan, 0.0])
def test_a_single_cell_is_a_box(threshold):
    for axes in range(1, 7):
        assert kd_boxes(np.full((1,) * axes, 7.5), 1.0, 1.0, threshold, 40).tolist() == np.zeros((1,) * axes).tolist()


def test_six_axes_are_served_and_a_flat_longest_side_does_not_stop_the_search():
    cells = np.zeros((2, 3, 2, 3, 2, 3))
    cells[1] = 50
    assert kd_boxes(cells, 0.1, 0.1, math.nan, 40).max() == 1


def test_no_cut_lies_deeper_than_the_most():
    cells = np.arange(64.0) ** 3
    assert kd_boxes(cells, 0.0, 0.0, 0.0, 3).max() == 7


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [math.nan, 50.0])
@pytest.mark.parametrize("others", [(), (1,), (3,)])
def test_long_rows_and_columns_are_cut_as_short_ones_are(others, threshold):
    # Sums are taken in some parts, and cuts are looked at some at once: every length of the rest turns up.
    for length in range(1, 40):
        for shape in ((*others, length), (length, *others)):
            cells = np.random.default_rng(length).uniform(0, 10, shape).round(3) * np.pi
            expected = plain_boxes(cells, 0.7, 1.3, threshold, 40)
            assert np.array_equal(kd_boxes(cells, 0.7, 1.3, threshold, 40), expected)


def differences(cells):
    """Every cell less the first one, as the sums tell it."""
    sums = prefix_sums(cells)[: cells.size + 1]
    found = [Fraction(after) - Fraction(before) for before, after in pairwise(sums)]
    return [cell - found[0] for cell in found]


@pytest.mark.parametrize("offset", [0, 10**9, -(10**15)])
def test_whole_numbers_are_exact_around_any_offset(offset):
    cells = np.random.default_rng(1).integers(-(10**10), 10**10, 5000) + float(offset)
    assert differences(cells) == [int(cell) - int(cells[0]) for cell in cells]


@pytest.mark.parametrize("huge", [0.0, 1e6, 1e12, 1e18])
def test_other_cells_are_rounded_by_a_tiny_part_of_what_all_distances_come_to(huge):
    cells = np.random.default_rng(2).normal(0.0, 0.1, 2000)
    cells[700] += huge
    most = np.abs(cells - np.median(cells)).sum() * 2.0**-51  # two cells, each by 2^-52 of the sum
    off = [
        float(found - (Fraction(cell) - Fraction(cells[0])))
        for found, cell in zip(differences(cells), cells, strict=True)
    ]
    assert max(map(abs, off)) <= most
    # Sums of rounded cells are exact: the last sum is what all cells come to.
    sums = prefix_sums(cells)[: cells.size + 1]
    assert sum(Fraction(step) for step in np.diff(sums)) == Fraction(sums[-1])
