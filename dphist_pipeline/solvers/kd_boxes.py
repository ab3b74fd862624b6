"""Splitting a cube into boxes of alike cells by a kd-tree."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled
from dphist_pipeline.solvers.kd_cuts import CHUNK, FEW, LANES, best_of_few, best_of_many, pays, prefix_sums, rule_of
from dphist_pipeline.solvers.kd_lines import DEEP, SHORT, number_short, number_square, split_line

AXES = 6
LAST = AXES - 1
START, DEPTH = AXES, AXES + 1
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
    Sums are differences of prefix sums around a cell amid the others, which are exact: see `prefix_sums` for what that
    does to cells that are no whole numbers. Of equally good cuts, the first; where products leave the 53 bits of a
    double, or cells are no whole numbers, rounding may decide. O(cells · depth) time, O(cells) memory.

    Args:
        cells: noisy counts, any number of axes up to 6.
        cell_variance: of the noise in a cell.
        box_variance: of the noise that one published sum will carry.
        threshold: records squared, or nan for the rule above.
        max_depth: the most cuts on the way to a box.

    Returns:
        Box number of every cell, shape of `cells`, from 0 in the order in which boxes are found.
    """
    line = np.ascontiguousarray(cells, dtype=np.float64).ravel()
    shape = np.array((1,) * (AXES - cells.ndim) + cells.shape, dtype=np.int64)
    rule, luck = rule_of(float(cell_variance), float(box_variance), float(threshold), int(max_depth))
    boxes = np.empty(line.size, dtype=np.int64)
    _split_all(prefix_sums(line), boxes, shape, rule, luck)
    return boxes.reshape(cells.shape)


def auto_threshold() -> float:
    """The value of `threshold` that asks for the rule instead."""
    return math.nan


@compiled
def _split_all(sums, numbers, shape, rule, luck):  # type: ignore[no-untyped-def]
    """Writes the box numbers.

    Small boxes are by far the most: nothing is allocated for a box, no view is made, and the search for a cut stands
    here, for a function that passes arrays on would count their holders for every box.
    """
    steps = np.ones(AXES, dtype=np.int64)
    for axis in range(LAST, 0, -1):
        steps[axis - 1] = steps[axis] * shape[axis]
    auto = np.isnan(rule.threshold)
    # A stack never holds more than one waiting box a level: its sides, where it starts, and its depth.
    stack = np.empty((rule.max_depth + 1, AXES + 2), dtype=np.int64)
    ends = np.empty((rule.max_depth + 1, 2), dtype=np.int64)
    lefts, scores = np.empty(shape.max() + 1 + LANES), np.empty(2 * CHUNK)
    bits, sides = scores.view(np.int64), shape.copy()
    lefts[0] = 0.0
    zero = np.int64(0)  # of the type that it has later, or what it is given to would be compiled twice
    start, depth, waiting, found = zero, zero, zero, zero
    while waiting >= 0:
        count, long_sides, axis_before, axis = _extent(sides)
        small, step, cut = auto and depth + DEEP <= rule.max_depth, steps[axis], zero
        if count == 1:
            numbers[start] = found
            found += 1
        elif small and long_sides == 1 and count <= SHORT:
            middle, last = start + step, start + (count - 1) * step
            first, second = sums[start + 1] - sums[start], sums[middle + 1] - sums[middle]
            third = sums[last + 1] - sums[last]
            found = number_short(first, second, third, count, rule, numbers, start, step, found)
        elif small and long_sides == 2 and count == 4:
            found = number_square(sums, start, steps[axis_before], step, rule, numbers, found)
        elif auto and long_sides == 1 and axis == LAST:
            found = split_line(sums, start, count, depth, rule, luck, numbers, start, step, found, ends, scores, bits)
        elif auto and long_sides == 1:
            _sum_slabs(sums, start, steps, sides, axis, lefts)
            found = split_line(lefts, zero, count, depth, rule, luck, numbers, start, step, found, ends, scores, bits)
        else:
            length, tried, size = np.int64(lefts.size), 0, float(count)
            searching = depth < rule.max_depth
            if searching and not auto:
                searching = _variance(sums, start, steps, sides, size) - rule.cell_variance > rule.threshold
            while searching and cut == 0:
                axis, length = _next_side(sides, axis, length)
                if length < 2:
                    break
                tried += length - 1
                if axis == LAST:
                    _sum_columns(sums, start, steps, sides, lefts)
                else:
                    _sum_slabs(sums, start, steps, sides, axis, lefts)
                if length <= FEW:
                    cut, score = best_of_few(lefts, zero, length)
                else:
                    cut, score = best_of_many(lefts, zero, length, scores, bits)
                if auto and not pays(score, size, np.divide(size, float(length)) * cut, tried, rule, luck):
                    cut = zero
            if cut == 0:
                _fill(numbers, start, steps, sides, found)
                found += 1
        if cut > 0:
            # The right part waits, so boxes are found from left to right.
            depth += 1
            for other in range(AXES):
                stack[waiting, other] = sides[other]
            stack[waiting, axis], sides[axis] = sides[axis] - cut, cut
            stack[waiting, START], stack[waiting, DEPTH] = start + cut * steps[axis], depth
            waiting += 1
        else:
            waiting -= 1
            if waiting >= 0:
                for other in range(AXES):
                    sides[other] = stack[waiting, other]
                start, depth = stack[waiting, START], stack[waiting, DEPTH]


@compiled
def _extent(sides):  # type: ignore[no-untyped-def]
    """How many cells and how many sides above 1 a box has, and the last two axes of those."""
    count, long_sides, before, last = np.int64(1), 0, 0, 0
    for axis in range(AXES):
        longer = sides[axis] > 1
        count *= sides[axis]
        long_sides += longer
        before, last = last if longer else before, axis if longer else last
    return count, long_sides, before, last


@compiled
def _next_side(sides, axis, length):  # type: ignore[no-untyped-def]
    """The axis and length of the side that comes after another: the longest first, the first of equal ones."""
    next_axis, longest = axis, np.int64(0)
    for other in range(AXES):
        later = (sides[other] < length) | ((sides[other] == length) & (other > axis))
        if later and sides[other] > longest:
            next_axis, longest = other, sides[other]
    return next_axis, longest


# Loops over the rows of a box are written out, with numbers in place of arrays: most boxes have a few cells, and a call
# for a row would cost more than the row. Sides of 1 cost as well, so where many boxes come by they are left out.


@compiled
def _sum_slabs(sums, start, steps, sides, axis, lefts):  # type: ignore[no-untyped-def]
    """Writes the sums left of each cut across an axis that is not the last one, and of the whole box."""
    a, b, c, d = 1, 1, 1, 1
    step_a, step_b, step_c, step_d = 0, 0, 0, 0
    for other in range(LAST):
        if (other != axis) & (sides[other] > 1):
            a, b, c, d = b, c, d, sides[other]
            step_a, step_b, step_c, step_d = step_b, step_c, step_d, steps[other]
    slabs, step, next_row, length = sides[axis], steps[axis], np.uint64(step_d), np.uint64(sides[LAST])
    for cut in range(1, slabs + 1):
        lefts[cut] = 0.0
    for i in range(a):
        for j in range(b):
            for k in range(c):
                slab, left = start + i * step_a + j * step_b + k * step_c, 0.0
                for cut in range(1, slabs + 1):
                    row = np.uint64(slab)
                    for _ in range(d):
                        left += sums[row + length] - sums[row]
                        row += next_row
                    lefts[cut] += left
                    slab += step


@compiled
def _sum_columns(sums, start, steps, sides, lefts):  # type: ignore[no-untyped-def]
    """The same across the last axis."""
    a, b, c, d, e = 1, 1, 1, 1, 1
    step_a, step_b, step_c, step_d, step_e = 0, 0, 0, 0, 0
    for other in range(LAST):
        if sides[other] > 1:
            a, b, c, d, e = b, c, d, e, sides[other]
            step_a, step_b, step_c, step_d, step_e = step_b, step_c, step_d, step_e, steps[other]
    ends = np.uint64(sides[LAST] + 1)
    for cut in range(ends):
        lefts[cut] = 0.0
    for i in range(a):
        for j in range(b):
            for k in range(c):
                for m in range(d):
                    row = start + i * step_a + j * step_b + k * step_c + m * step_d
                    for _ in range(e):
                        first = np.uint64(row)
                        before = sums[first]
                        for cut in range(ends):
                            lefts[cut] += sums[first + cut] - before
                        row += step_e


@compiled
def _variance(sums, start, steps, sides, size):  # type: ignore[no-untyped-def]
    """Of a box's cells."""
    a, b, c, d, e, length = sides[0], sides[1], sides[2], sides[3], sides[4], sides[5]
    step_a, step_b, step_c, step_d, step_e = steps[0], steps[1], steps[2], steps[3], steps[4]
    total, squares = 0.0, 0.0
    for squared in range(2):
        mean = np.divide(total, size)
        for i in range(a):
            for j in range(b):
                for k in range(c):
                    for m in range(d):
                        row = start + i * step_a + j * step_b + k * step_c + m * step_d
                        for _ in range(e):
                            if squared:
                                for cell in range(row, row + length):
                                    off = sums[cell + 1] - sums[cell] - mean
                                    squares += off * off
                            else:
                                total += sums[row + length] - sums[row]
                            row += step_e
    return np.divide(squares, size)


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
