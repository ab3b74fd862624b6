"""Splitting a cube into boxes of alike cells by a kd-tree."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

AXES = 6
SOME = 16  # cuts that are looked at together
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
    Sums are taken around the box's own mean, as its parent's sums tell it, so nothing cancels. Of cuts that are equally
    good, rounding decides. O(cells · depth) time, O(cells) memory.

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
    stack, centres = np.empty((max_depth + 2, 2 * AXES + 1), dtype=np.int64), np.empty(max_depth + 2)
    stack[0, :AXES], stack[0, AXES:-1], stack[0, -1] = 0, shape, 0
    centres[0] = _total(line, 0, steps, shape, 0.0, False) / line.size
    waiting, found = 1, 0
    low, sides, untried = np.zeros((3, AXES), dtype=np.int64)
    sums = np.empty(shape.max())
    while waiting > 0:
        waiting -= 1
        start, count, depth = 0, 1, stack[waiting, 2 * AXES]
        for axis in range(AXES):
            low[axis], sides[axis] = stack[waiting, axis], stack[waiting, AXES + axis]
            untried[axis] = sides[axis]
            start += low[axis] * steps[axis]
            count *= sides[axis]
        axis, cut, tried, centre, left_off, right_off = 0, 0, 0, centres[waiting], 0.0, 0.0
        parted = count > 1 and depth < max_depth
        if parted and not np.isnan(threshold):
            off = _total(line, start, steps, sides, centre, False) / count
            parted = _total(line, start, steps, sides, centre, True) / count - off * off - cell_variance > threshold
        while parted and cut == 0:
            axis = 0  # the longest side that was not tried yet; the first of equal ones
            for other in range(1, AXES):
                if untried[other] > untried[axis]:
                    axis = other
            length = untried[axis]
            if length < 2:
                break
            untried[axis] = 0
            tried += length - 1
            if count == length:
                cut, gain, left_off, right_off = _best_cut(line, start, steps[axis], length, 1.0, centre)
            else:
                _sum_slabs(line, start, steps, sides, axis, centre, sums)
                cut, gain, left_off, right_off = _best_cut(sums, 0, 1, length, float(count // length), 0.0)
            if not np.isnan(threshold):
                break
            cells_left = float(cut) * (count // length)
            price = box_variance * (1.0 / cells_left + 1.0 / (count - cells_left) - 1.0 / count)
            if gain - 2.0 * cell_variance * np.log(max(2.0, tried)) <= price:
                cut = 0
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
        centres[waiting], centres[waiting + 1] = centre + right_off, centre + left_off
        stack[waiting, 2 * AXES] = stack[waiting + 1, 2 * AXES] = depth + 1
        waiting += 2


# Loops over the rows of a box are written out, with numbers in place of arrays: most boxes have a few cells, and a call
# for a row would cost more than the row.


@compiled
def _total(line, start, steps, sides, centre, squared):  # type: ignore[no-untyped-def]
    """The sum of a box's cells less a centre, or of their squares; in four parts, which do not wait for one another."""
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
                            total += _power(line[cell] - centre, squared)
                            second += _power(line[cell + 1] - centre, squared)
                            third += _power(line[cell + 2] - centre, squared)
                            fourth += _power(line[cell + 3] - centre, squared)
                        for cell in range(fours, row + length):
                            total += _power(line[cell] - centre, squared)
                        row += step_e
    return total + second + third + fourth


@compiled
def _power(off, squared):  # type: ignore[no-untyped-def]
    return off * off if squared else off


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
def _sum_slabs(line, start, steps, sides, axis, centre, sums):  # type: ignore[no-untyped-def]
    """Writes the sums of a box's slabs across an axis, around the mean of the box."""
    a, b, c, d, e, length = sides[0], sides[1], sides[2], sides[3], sides[4], sides[5]
    step_a, step_b, step_c, step_d, step_e = steps[0], steps[1], steps[2], steps[3], steps[4]
    # The slab of a row: one of these is 1.
    by_a, by_b, by_c, by_d, by_e = int(axis == 0), int(axis == 1), int(axis == 2), int(axis == 3), int(axis == 4)
    for slab in range(sides[axis]):
        sums[slab] = 0.0
    for i in range(a):
        for j in range(b):
            for k in range(c):
                for m in range(d):
                    row = start + i * step_a + j * step_b + k * step_c + m * step_d
                    slab = i * by_a + j * by_b + k * by_c + m * by_d
                    for _ in range(e):
                        if axis == 5:
                            for last in range(length):
                                sums[last] += line[row + last] - centre
                        else:
                            slab_sum, other_sum = 0.0, 0.0
                            twos = row + length // 2 * 2
                            for cell in range(row, twos, 2):
                                slab_sum += line[cell] - centre
                                other_sum += line[cell + 1] - centre
                            if twos < row + length:
                                slab_sum += line[twos] - centre
                            sums[slab] += slab_sum + other_sum
                        row += step_e
                        slab += by_e


@compiled
def _best_cut(sums, start, step, length, slab, centre):  # type: ignore[no-untyped-def]
    """Slabs left of the best cut, what the two means explain, and how far they lie above the centre.

    Squares are the same at every cut. Gains are compared by products, and divided only where they are the highest yet.
    """
    total, other = 0.0, 0.0
    for position in range(0, length - 1, 2):
        total += sums[start + position * step] - centre
        other += sums[start + (position + 1) * step] - centre
    if length % 2 == 1:
        total += sums[start + (length - 1) * step] - centre
    total += other
    left, best_left, best, gain = 0.0, 0.0, 0, -1.0
    for begin in range(0, length - 1, SOME):
        end, at, ahead, higher = min(begin + SOME, length - 1), start + begin * step, left, begin == 0
        if not higher:  # mostly none of some cuts is: that is found out without waiting for the gain of each
            for position in range(begin + 1, end + 1):
                ahead += sums[at] - centre
                at += step
                explained, scale = _explained(ahead, total - ahead, float(position), float(length - position))
                higher |= explained > gain * scale
        if not higher:
            left = ahead
            continue
        for position in range(begin + 1, end + 1):
            left += sums[start + (position - 1) * step] - centre
            explained, scale = _explained(left, total - left, float(position), float(length - position))
            if explained > gain * scale:
                best, best_left, gain = position, left, np.divide(explained, scale)
    gain = (gain - total * total / length) / slab
    return best, gain, best_left / (best * slab), (total - best_left) / ((length - best) * slab)


@compiled
def _explained(left, right, before, after):  # type: ignore[no-untyped-def]
    """What two means explain, times a scale, and the scale."""
    return left * left * after + right * right * before, before * after
