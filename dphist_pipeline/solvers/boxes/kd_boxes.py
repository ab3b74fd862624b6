"""Splits a cube into boxes of alike cells by a kd-tree."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function
from dphist_pipeline.solvers.groups.segmentation import middling_value

AXES = 6  # cubes with fewer get leading axes of length 1
LAST = AXES - 1
START, DEPTH = AXES, AXES + 1  # columns of a waiting box, after its sides
Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def kd_boxes(cells: Reals, cell_variance: float, box_variance: float, threshold: float, max_depth: int) -> Numbers:
    """Splits a cube into boxes of alike cells; gives the box number of every cell, from 0 as boxes are found.

    A box is split across its longest side (the first of equal ones) where the two parts together have the least squared
    error around their means. With a `threshold`, it is split while the variance of its cells, less `cell_variance`,
    exceeds it. With nan, it is split if the gain in squared error outweighs luck and the noise of one more box:
        SSE(box) - SSE(left) - SSE(right) - 2 · cell_variance · ln(cuts tried, at least 2)
            > box_variance · (1/|left| + 1/|right| - 1/|box|).
    If the best cut of the longest side does not pay, the next longest side is tried: cells may be alike along one axis
    and not along another. Of equally good cuts the first is taken; where products exceed the 53 bits of a double, or
    cells are no whole numbers, rounding may decide. O(cells · depth) time, O(cells) memory.

    Args:
        cells: noisy counts, any number of axes up to 6.
        cell_variance: of the noise in a cell.
        box_variance: of the noise that one published sum will carry.
        threshold: records squared, or nan for the rule above.
        max_depth: the most cuts on the way to a box.
    """
    return _boxes_by_rule(cells, (float(cell_variance), float(box_variance), float(threshold), max_depth))[0]


def greedy_boxes(cells: Reals, cell_variance: float, box_variance: float, max_depth: int) -> tuple[Numbers, float]:
    """The boxes of `kd_boxes` with nan for a threshold, and 2 · ln(cuts tried) of all cuts together.

    Args:
        cells, cell_variance, box_variance, max_depth: see `kd_boxes`.
    """
    return _boxes_by_rule(cells, (float(cell_variance), float(box_variance), math.nan, max_depth))


def _boxes_by_rule(cells: Reals, rule: tuple[float, float, float, int]) -> tuple[Numbers, float]:
    line = np.ascontiguousarray(cells, dtype=np.float64).ravel()
    shape = np.array((1,) * (AXES - cells.ndim) + cells.shape, dtype=np.int64)
    numbers, luck = _split_all(prefix_sums(line), shape, rule)
    return numbers.reshape(cells.shape), luck


def prefix_sums(line: Reals) -> Reals:
    """The sums of the first 0, 1, 2, … cells, each cell less a middling one; shape (n + 1,).

    Differences of these sums are exact. If cells are no whole numbers, or their distances from the middling one sum to
    2^52 or more, each is first rounded to a multiple of a power of two, by at most 2^-52 of that sum.

    Args:
        line: finite counts, shape (n,).
    """
    off = line - middling_value(line)
    away = float(np.abs(off).sum())
    if not math.isfinite(4.0 * line.size * away * (4.0 * line.size * away)):
        raise ValueError("kd_boxes takes finite cells, whose squares do not overflow either")
    bits = min(52 - math.frexp(away)[1], 1000)  # a double holds sums of 52 bits in any case
    if bits < 0 or not np.array_equal(off, np.rint(off)):
        off = np.ldexp(np.rint(np.ldexp(off, bits)), -bits)
    return np.append(0.0, np.cumsum(off))


@compile_function
def _split_all(sums: Reals, shape: Numbers, rule: tuple[float, float, float, int]) -> tuple[Numbers, float]:
    """Box number of every cell, shape (cells,), and 2 · ln(cuts tried) of all cuts together.

    Args:
        sums: prefix sums over the cells, shape (cells + 1,).
        shape: cells along each axis, shape (6,).
    """
    cell_variance, box_variance, threshold, max_depth = rule
    steps = np.ones(AXES, dtype=np.int64)  # from a cell to the next one along each axis
    for axis in range(LAST, 0, -1):
        steps[axis - 1] = steps[axis] * shape[axis]
    # A stack never holds more than one waiting box per level, and the box that is looked at.
    stack = np.zeros((max_depth + 2, AXES + 2), dtype=np.int64)
    stack[0, :AXES] = shape
    waiting, boxes, luck = 1, 0, 0.0
    numbers, rows = np.empty(sums.size - 1, dtype=np.int64), np.empty(sums.size - 1, dtype=np.int64)
    sides, lefts = np.empty(AXES, dtype=np.int64), np.zeros(shape.max() + 1)
    while waiting > 0:
        waiting -= 1
        cells = 1.0
        for axis in range(AXES):
            sides[axis] = stack[waiting, axis]
            cells *= sides[axis]
        start, depth = stack[waiting, START], stack[waiting, DEPTH]
        cut, axis, tried = 0, 0, 0.0
        if cells > 1.0 and depth < max_depth:
            if np.isnan(threshold):
                cut, axis, tried = best_paying_cut(sums, sides, steps, start, rows, lefts, cell_variance, box_variance)
            else:
                count = rows_of(sides, steps, start, LAST, rows)
                if _variance(sums, rows, count, sides[LAST], cells) - cell_variance > threshold:
                    axis, length = next_side(sides, 0, lefts.size)
                    _sum_slabs(sums, sides, steps, start, axis, rows, lefts)
                    cut, _ = _best_cut(lefts, length)
        if cut == 0:
            for row in range(rows_of(sides, steps, start, LAST, rows)):
                for cell in range(rows[row], rows[row] + sides[LAST]):
                    numbers[cell] = boxes
            boxes += 1
        else:
            luck += 2.0 * np.log(max(2.0, tried))
            # The right part waits below the left one, so boxes are found from left to right.
            for length, at in ((sides[axis] - cut, start + cut * steps[axis]), (cut, start)):
                for other in range(AXES):
                    stack[waiting, other] = sides[other]
                stack[waiting, axis], stack[waiting, START], stack[waiting, DEPTH] = length, at, depth + 1
                waiting += 1
    return numbers, luck


@compile_function
def best_paying_cut(
    sums: Reals,
    sides: Numbers,
    steps: Numbers,
    start: int,
    rows: Numbers,
    lefts: Reals,
    cell_variance: float,
    box_variance: float,
) -> tuple[int, int, float]:
    """Slabs left of the cut that `kd_boxes` makes without a threshold, 0 for none; its axis, and the cuts tried.

    Args:
        sums: prefix sums over the cells, shape (cells + 1,).
        sides, steps, start: of the box, see `rows_of`.
        rows, lefts: room, written; shapes (cells,) and (longest side + 1,).
        cell_variance, box_variance: see `kd_boxes`.
    """
    cut, axis, length, tried, cells = 0, 0, lefts.size, 0.0, 1.0
    for other in range(AXES):
        cells *= sides[other]
    while cut == 0:
        axis, length = next_side(sides, axis, length)
        if length < 2:
            break
        tried += length - 1
        _sum_slabs(sums, sides, steps, start, axis, rows, lefts)
        cut, score = _best_cut(lefts, length)
        left = cells / length * cut
        noise = box_variance * (cells * cells / (left * (cells - left)) - 1.0)
        if score <= noise or score - cells * (2.0 * cell_variance * np.log(max(2.0, tried))) <= noise:
            cut = 0
    return cut, axis, tried


@compile_function
def next_side(sides: Numbers, axis: int, length: int) -> tuple[int, int]:
    """The axis and length of the side that comes after another: the longest first, the first of equal ones.

    Args:
        sides: cells along each axis of a box, shape (6,).
        axis: of the side before; 0 to start with.
        length: of the side before, in cells; to start with, more than any side.
    """
    next_axis, longest = axis, 0
    for other in range(AXES):
        later = sides[other] < length or (sides[other] == length and other > axis)
        if later and sides[other] > longest:
            next_axis, longest = other, sides[other]
    return next_axis, longest


@compile_function
def rows_of(sides: Numbers, steps: Numbers, start: int, without: int, rows: Numbers) -> int:
    """Writes where the rows of a box start, i.e. its stretches along the last axis; gives how many.

    Args:
        sides, steps: cells along each axis, and from a cell to the next one; shape (6,).
        start: the first cell of the box.
        without: an axis whose first slab alone is looked at; the last axis for all.
        rows: written, in order of the cells.
    """
    count = 1
    rows[0] = start
    for axis in range(LAST - 1, -1, -1):
        if axis == without or sides[axis] == 1:
            continue
        for index in range(1, sides[axis]):
            for row in range(count):
                rows[index * count + row] = rows[row] + index * steps[axis]
        count *= sides[axis]
    return count


@compile_function
def _sum_slabs(sums: Reals, sides: Numbers, steps: Numbers, start: int, axis: int, rows: Numbers, lefts: Reals) -> None:
    """Writes the sums of the first 0, 1, 2, … slabs of a box across an axis to `lefts`."""
    length, width, step = sides[axis], sides[LAST], steps[axis]
    count = rows_of(sides, steps, start, axis, rows)
    for slab in range(1, length + 1):
        lefts[slab] = 0.0
    for k in range(count):
        row, left = rows[k], 0.0
        for slab in range(1, length + 1):
            if axis == LAST:
                left = sums[row + slab] - sums[row]
            else:
                left += sums[row + width] - sums[row]
                row += step
            lefts[slab] += left


@compile_function
def _best_cut(lefts: Reals, length: int) -> tuple[int, float]:
    """How many slabs lie left of the best cut, the first of equal ones, and its score.

    The score is the gain in squared error, times all cells. With D the sum of the first p of L slabs and T of all, it
    is (L · D - p · T)² / (p · (L - p)). For whole numbers only the division rounds, if the square is below 2^53.
    """
    cut, best, slabs, total, left = 1, 0.0, float(length), lefts[length], 0.0
    for place in range(1, length):
        left += 1.0
        off = slabs * lefts[place] - left * total
        score = off * off / (left * (slabs - left))
        if score > best:
            cut, best = place, score
    return cut, best


@compile_function
def _variance(sums: Reals, rows: Numbers, count: int, width: int, cells: float) -> float:
    """Population variance of the cells in a box with these rows."""
    total, squares = 0.0, 0.0
    for row in range(count):
        total += sums[rows[row] + width] - sums[rows[row]]
    mean = total / cells
    for row in range(count):
        for cell in range(rows[row], rows[row] + width):
            squares += (sums[cell + 1] - sums[cell] - mean) ** 2
    return squares / cells
