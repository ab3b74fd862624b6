"""Boxes that are grown and pruned, against a plain recursion that looks at every box anew."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.solvers.boxes.kd_boxes import kd_boxes
from dphist_pipeline.solvers.boxes.pruned_boxes import pruned_boxes, tail_variance
from examples import examples

SHAPES = [(1,), (2,), (7,), (12,), (3, 4), (2, 6), (2, 2, 3)]


def squared_error(part):
    return float(((part - part.mean()) ** 2).sum())


def plain_pruned(cells, cell_variance, box_variance, max_depth):
    """The boxes as sets of cell numbers, and the luck of their cuts."""
    tail = tail_variance(cell_variance)
    numbers = np.arange(cells.size).reshape(cells.shape)
    reserved = max_depth > sum(math.ceil(math.log2(side)) for side in cells.shape)

    def alone(part):
        return squared_error(part) - (part.size - 1) * cell_variance + box_variance / part.size

    def paying_cut(part):
        tried = 0
        for axis in sorted(range(part.ndim), key=lambda axis: -part.shape[axis]):
            length = part.shape[axis]
            if length == 1:
                break
            tried += length - 1
            cuts = [np.split(part, [cut], axis) for cut in range(1, length)]
            errors = [round(squared_error(left) + squared_error(right), 9) for left, right in cuts]
            cut = errors.index(min(errors))
            left, right = cuts[cut]
            gain = squared_error(part) - errors[cut] - 2 * cell_variance * math.log(max(2, tried))
            if gain > box_variance * (1 / left.size + 1 / right.size - 1 / part.size):
                return axis, cut + 1, tried
        return None

    def best(part, places, depth):
        """Risk, luck and boxes below a box."""
        if part.size == 1 or depth == max_depth:
            return alone(part), 0.0, [places.ravel().tolist()]
        needed = sum(math.ceil(math.log2(side)) for side in part.shape)
        found = paying_cut(part) if not reserved or max_depth - depth > needed else None
        axis = part.shape.index(max(part.shape))
        axis, cut, tried = found or (axis, part.shape[axis] // 2, part.size)
        parts = zip(np.split(part, [cut], axis), np.split(places, [cut], axis), strict=True)
        (risk_left, luck_left, left), (risk_right, luck_right, right) = (best(*one, depth + 1) for one in parts)
        luck = luck_left + luck_right + 2 * math.log(max(2, tried))
        if alone(part) <= risk_left + risk_right + tail * luck + 1e-9:
            return alone(part), 0.0, [places.ravel().tolist()]
        return risk_left + risk_right, luck, left + right

    return best(cells, numbers, 0)


@examples(150)
@given(
    st.sampled_from(SHAPES),
    st.sampled_from([(2.0, 8.0), (0.3, 0.1), (40.0, 3.0)]),
    st.sampled_from([1, 3, 5, 40]),
    st.data(),
)
def test_boxes_are_those_of_the_plain_recursion(shape, variances, depth, data):
    many = math.prod(shape)
    cells = np.array(data.draw(st.lists(st.integers(0, 30), min_size=many, max_size=many)), dtype=float).reshape(shape)
    cells += np.linspace(0, 0.3, many).reshape(shape) ** 2  # no ties, where rounding would decide
    boxes, luck = pruned_boxes(cells, *variances, depth)
    expected_risk, expected_luck, expected = plain_pruned(cells, *variances, depth)
    found = [np.flatnonzero(boxes.ravel() == number).tolist() for number in range(boxes.max() + 1)]
    assert found == expected
    assert luck == pytest.approx(expected_luck)
    parts = [cells.ravel()[box] for box in found]
    risks = [squared_error(part) - (part.size - 1) * variances[0] + variances[1] / part.size for part in parts]
    assert sum(risks) == pytest.approx(expected_risk)


def test_cells_in_turn_high_and_low_are_all_kept_apart():
    cells = np.tile([0.0, 1000.0], 32)
    assert kd_boxes(cells, 7.8, 7.8, math.nan, 40).max() < 63  # no cut from above pays
    assert pruned_boxes(cells, 7.8, 7.8, 40)[0].tolist() == list(range(64))


@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0])
def test_the_variance_of_tails_is_twice_the_square_of_the_scale(scale):
    assert tail_variance(noise_law(scale).variance) == pytest.approx(2 * scale**2)
