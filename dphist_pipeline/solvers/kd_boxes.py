"""Splitting a cube into boxes of alike cells by a kd-tree."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

AXES = 6
Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def kd_boxes(cells: Reals, cell_variance: float, box_variance: float, threshold: float, max_depth: int) -> Numbers:
    """Splits a cube into boxes, each where the gain in squared error outweighs the noise of one more box.

    A box is split along its longest side (the first of equal ones) where the two parts together have the least squared
    error around their means. With a `threshold`, it is split while the variance of its cells, less `cell_variance`,
    exceeds it. With nan, it is split if
        SSE(box) - SSE(left) - SSE(right) - 2 · cell_variance · ln(cuts tried, at least 2)
            > box_variance · (1/|left| + 1/|right| - 1/|box|),
    and where the best cut of the longest side does not pay, the next longest is tried: cells may be alike along one
    axis and not along another.
    Sums are taken around the box's own mean, so nothing cancels. O(cells · depth) time, O(cells) memory.

    Args:
        cells: noisy counts, any number of axes up to 6.
        cell_variance: of the noise in a cell.
        box_variance: of the noise that one published sum will carry.
        threshold: records squared, or nan for the rule above.
        max_depth: the most cuts on the way to a box.

    Returns:
        Box number of every cell, shape of `cells`, from 0 in the order in which boxes are found.
    """
    padded = np.ascontiguousarray(cells, dtype=np.float64).reshape((1,) * (AXES - cells.ndim) + cells.shape)
    boxes = np.zeros(padded.shape, dtype=np.int64)
    _split_all(padded, boxes, float(cell_variance), float(box_variance), float(threshold), int(max_depth))
    return boxes.reshape(cells.shape)


def auto_threshold() -> float:
    """The value of `threshold` that asks for the rule instead."""
    return math.nan


@compiled
def _split_all(cells, boxes, cell_variance, box_variance, threshold, max_depth):  # type: ignore[no-untyped-def]
    # A stack never holds more than one waiting box a level.
    stack = np.empty((max_depth + 2, 2, AXES), dtype=np.int64)
    depths = np.empty(max_depth + 2, dtype=np.int64)
    for axis in range(AXES):
        stack[0, 0, axis], stack[0, 1, axis] = 0, cells.shape[axis]
    depths[0] = 0
    waiting, found = 1, 0
    longest = max(cells.shape)
    sums, squares = np.empty(longest), np.empty(longest)
    while waiting > 0:
        waiting -= 1
        low, high, depth = stack[waiting, 0].copy(), stack[waiting, 1].copy(), depths[waiting]
        sides = high - low
        cells_in_box = np.prod(sides)
        axis, cut, tried = 0, 0, 0
        for _ in range(AXES if depth < max_depth else 0):
            axis = int(np.argmax(sides))  # the longest side that was not tried yet; the first of equal ones
            length = sides[axis]
            if length < 2:
                break
            sides[axis] = 0
            tried += length - 1
            _slabs(cells, low, high, axis, sums, squares)
            slab = cells_in_box // length
            cut = _cut(sums, squares, length, slab, tried, cell_variance, box_variance, threshold)
            if cut > 0 or not np.isnan(threshold):
                break
        if cut == 0:
            _part(boxes, low, high)[:] = found
            found += 1
            continue
        # The right part waits below the left one, so boxes are found from left to right.
        stack[waiting, 0], stack[waiting, 1], depths[waiting] = low, high, depth + 1
        stack[waiting, 0, axis] = low[axis] + cut
        waiting += 1
        stack[waiting, 0], stack[waiting, 1], depths[waiting] = low, high, depth + 1
        stack[waiting, 1, axis] = low[axis] + cut
        waiting += 1


@compiled
def _slabs(cells, low, high, axis, sums, squares):  # type: ignore[no-untyped-def]
    """Sums and squared sums of a box's slabs across an axis, around the mean of the box."""
    box = cells[
        low[0] : high[0], low[1] : high[1], low[2] : high[2], low[3] : high[3], low[4] : high[4], low[5] : high[5]
    ]
    centre = box.mean()
    sums[: box.shape[axis]] = 0.0
    squares[: box.shape[axis]] = 0.0
    for place in np.ndindex(box.shape[:5]):
        row = box[place]
        if axis == 5:
            for last in range(row.size):
                off = row[last] - centre
                sums[last] += off
                squares[last] += off * off
        else:
            slab_sum, slab_square = 0.0, 0.0
            for last in range(row.size):
                off = row[last] - centre
                slab_sum += off
                slab_square += off * off
            sums[place[axis]] += slab_sum
            squares[place[axis]] += slab_square


@compiled
def _cut(sums, squares, length, slab, tried, cell_variance, box_variance, threshold):  # type: ignore[no-untyped-def]
    """Slabs left of the best cut, or 0 to keep the box whole."""
    total, square = 0.0, 0.0
    for position in range(length):
        total += sums[position]
        square += squares[position]
    count = length * slab
    whole = square - total * total / count
    if not np.isnan(threshold) and whole / count - cell_variance <= threshold:
        return 0
    best, gain, left = 0, -np.inf, 0.0
    for position in range(length - 1):
        left += sums[position]
        right = total - left
        cells_left = (position + 1) * slab
        # What the two means explain; the squares are the same at every cut.
        explained = left * left / cells_left + right * right / (count - cells_left)
        if explained > gain:
            best, gain = position + 1, explained
    if np.isnan(threshold):
        saved = gain - total * total / count
        cells_left = best * slab
        price = box_variance * (1.0 / cells_left + 1.0 / (count - cells_left) - 1.0 / count)
        if saved - 2.0 * cell_variance * np.log(max(2.0, tried)) <= price:
            return 0
    return best


@compiled
def _part(array, low, high):  # type: ignore[no-untyped-def]
    """The view of a box."""
    rows = array[low[0] : high[0], low[1] : high[1], low[2] : high[2]]
    return rows[:, :, :, low[3] : high[3], low[4] : high[4], low[5] : high[5]]
