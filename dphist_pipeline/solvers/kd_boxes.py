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
    """Writes the box numbers. Small boxes are by far the most: nothing is allocated for a box, and no view is made."""
    steps, shape = np.ones(AXES, dtype=np.int64), np.array(cells.shape)
    for axis in range(AXES - 1, 0, -1):
        steps[axis - 1] = steps[axis] * shape[axis]
    line, numbers = cells.ravel(), boxes.ravel()
    # A stack never holds more than one waiting box a level; a box is where it starts, its sides, and its depth.
    stack = np.empty((max_depth + 2, 2 * AXES + 1), dtype=np.int64)
    stack[0, :AXES], stack[0, AXES:-1], stack[0, -1] = 0, shape, 0
    waiting, found = 1, 0
    low, sides, untried = np.zeros((3, AXES), dtype=np.int64)
    sums, squares = np.empty(shape.max()), np.empty(shape.max())
    while waiting > 0:
        waiting -= 1
        start, count, depth = 0, 1, stack[waiting, 2 * AXES]
        for axis in range(AXES):
            low[axis], sides[axis] = stack[waiting, axis], stack[waiting, AXES + axis]
            untried[axis] = sides[axis]
            start += low[axis] * steps[axis]
            count *= sides[axis]
        axis, cut, tried, centre = 0, 0, 0, 0.0
        if count > 1 and depth < max_depth:
            centre = _total(line, start, steps, sides) / count
            while cut == 0:
                axis = 0  # the longest side that was not tried yet; the first of equal ones
                for other in range(1, AXES):
                    if untried[other] > untried[axis]:
                        axis = other
                length = untried[axis]
                if length < 2:
                    break
                untried[axis] = 0
                tried += length - 1
                _sum_slabs(line, start, steps, sides, axis, centre, sums, squares)
                slab = count // length
                cut = _cut(sums, squares, length, slab, tried, cell_variance, box_variance, threshold)
                if not np.isnan(threshold):
                    break
        if cut == 0:
            _fill(numbers, start, steps, sides, found)
            found += 1
            continue
        # The right part waits below the left one, so boxes are found from left to right.
        for other in range(AXES):
            stack[waiting, other], stack[waiting, AXES + other] = low[other], sides[other]
            stack[waiting + 1, other], stack[waiting + 1, AXES + other] = low[other], sides[other]
        stack[waiting, axis], stack[waiting, AXES + axis] = low[axis] + cut, sides[axis] - cut
        stack[waiting + 1, AXES + axis] = cut
        stack[waiting, 2 * AXES] = stack[waiting + 1, 2 * AXES] = depth + 1
        waiting += 2


# Loops over the rows of a box are written out, with numbers in place of arrays: most boxes have a few cells, and a call
# for a row would cost more than the row.


@compiled
def _total(line, start, steps, sides):  # type: ignore[no-untyped-def]
    """The sum of a box's cells; in four parts, which do not wait for one another."""
    a, b, c, d, e, length = sides[0], sides[1], sides[2], sides[3], sides[4], sides[5]
    step_a, step_b, step_c, step_d, step_e = steps[0], steps[1], steps[2], steps[3], steps[4]
    total, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for i in range(a):
        for j in range(b):
            for k in range(c):
                for m in range(d):
                    row = start + i * step_a + j * step_b + k * step_c + m * step_d
                    for _ in range(e):
                        fours = row + length // 4 * 4
                        for cell in range(row, fours, 4):
                            total += line[cell]
                            second += line[cell + 1]
                            third += line[cell + 2]
                            fourth += line[cell + 3]
                        for cell in range(fours, row + length):
                            total += line[cell]
                        row += step_e
    return total + second + third + fourth


@compiled
def _fill(numbers, start, steps, sides, number):  # type: ignore[no-untyped-def]
    """Writes the number of a box into its cells."""
    a, b, c, d, e, length = sides[0], sides[1], sides[2], sides[3], sides[4], sides[5]
    step_a, step_b, step_c, step_d, step_e = steps[0], steps[1], steps[2], steps[3], steps[4]
    for i in range(a):
        for j in range(b):
            for k in range(c):
                for m in range(d):
                    row = start + i * step_a + j * step_b + k * step_c + m * step_d
                    for _ in range(e):
                        for cell in range(row, row + length):
                            numbers[cell] = number
                        row += step_e


@compiled
def _sum_slabs(line, start, steps, sides, axis, centre, sums, squares):  # type: ignore[no-untyped-def]
    """Sums and squared sums of a box's slabs across an axis, around the mean of the box."""
    a, b, c, d, e, length = sides[0], sides[1], sides[2], sides[3], sides[4], sides[5]
    step_a, step_b, step_c, step_d, step_e = steps[0], steps[1], steps[2], steps[3], steps[4]
    # The slab of a row: one of these is 1.
    by_a, by_b, by_c, by_d, by_e = int(axis == 0), int(axis == 1), int(axis == 2), int(axis == 3), int(axis == 4)
    for slab in range(sides[axis]):
        sums[slab] = squares[slab] = 0.0
    for i in range(a):
        for j in range(b):
            for k in range(c):
                for m in range(d):
                    row = start + i * step_a + j * step_b + k * step_c + m * step_d
                    slab = i * by_a + j * by_b + k * by_c + m * by_d
                    for _ in range(e):
                        if axis == 5:
                            for last in range(length):
                                off = line[row + last] - centre
                                sums[last] += off
                                squares[last] += off * off
                        else:
                            slab_sum, slab_square = 0.0, 0.0
                            for cell in range(row, row + length):
                                off = line[cell] - centre
                                slab_sum += off
                                slab_square += off * off
                            sums[slab] += slab_sum
                            squares[slab] += slab_square
                        row += step_e
                        slab += by_e


@compiled
def _cut(sums, squares, length, slab, tried, cell_variance, box_variance, threshold):  # type: ignore[no-untyped-def]
    """Slabs left of the best cut, or 0 to keep the box whole; leaves its own sums behind in `sums` and `squares`."""
    total, square, count = 0.0, 0.0, float(length * slab)
    for position in range(length):
        total += sums[position]
        square += squares[position]
        sums[position] = total
    whole = square - total * total / count
    for position in range(length - 1):
        # What the two means explain; the squares are the same at every cut. `np.divide` looks out for no zeros, so
        # that many are divided at once.
        right, cells_left = total - sums[position], float(position + 1) * slab
        of_left = np.divide(sums[position] * sums[position], cells_left)
        squares[position] = of_left + np.divide(right * right, count - cells_left)
    best, gain = 0, -np.inf
    for position in range(length - 1):
        if squares[position] > gain:
            best, gain = position + 1, squares[position]
    if np.isnan(threshold):
        saved = gain - total * total / count
        cells_left = best * slab
        price = box_variance * (1.0 / cells_left + 1.0 / (count - cells_left) - 1.0 / count)
        kept = saved - 2.0 * cell_variance * np.log(max(2.0, tried)) <= price
    else:
        kept = whole / count - cell_variance <= threshold
    return 0 if kept else best
