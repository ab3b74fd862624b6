"""Cuts a cube down to its cells by a kd-tree, and keeps the cuts that lower the estimated error."""

from __future__ import annotations

import math

import numpy as np

from dphist_pipeline.solvers._compiled import compile_function
from dphist_pipeline.solvers.boxes.kd_boxes import (
    AXES,
    DEPTH,
    LAST,
    START,
    Numbers,
    Reals,
    best_paying_cut,
    next_side,
    prefix_sums,
    rows_of,
)

STATE, FIRST = DEPTH + 1, DEPTH + 2  # columns of a waiting box: whether its parts are done, and the first box in it
NEW, CUT = 0, 1
CELLS, SUM, SQUARES, RISK, LUCK = 0, 1, 2, 3, 4  # columns of a finished box
Rule = tuple[float, float, float, int]


def pruned_boxes(cells: Reals, cell_variance: float, box_variance: float, max_depth: int) -> tuple[Numbers, float]:
    """Grows a kd-tree down to the cells, then prunes it from below.

    A box is cut where `kd_boxes` would cut it, with nan for a threshold; where nothing pays, or too few cuts are left
    to reach the cells, its longest side is halved. A cut is kept if the estimated risk of the boxes below it, with the
    luck of the cut, is below that of one box. The risk of a box with sum of squared errors SSE is
        SSE - (cells - 1) · cell_variance + box_variance / cells,
    and the luck of a cut is 2 · ln(cuts tried, at least 2), or of a half 2 · ln(cells), times `tail_variance`. This
    finds structure that no single cut from above shows, e.g. high and low cells in turn, and pays for a lone high cell
    once for each level above it. O(cells · depth) time, O(cells) memory.

    Args:
        cells, cell_variance, box_variance, max_depth: see `kd_boxes`.

    Returns:
        Box number of every cell, shape of `cells`, and the luck of all cuts that were kept, divided by `tail_variance`.
    """
    line = np.ascontiguousarray(cells, dtype=np.float64).ravel()
    shape = np.array((1,) * (AXES - cells.ndim) + cells.shape, dtype=np.int64)
    rule = (float(cell_variance), float(box_variance), tail_variance(cell_variance), max_depth)
    numbers, luck = _grow(prefix_sums(line), shape, rule)
    return numbers.reshape(cells.shape), luck


def tail_variance(cell_variance: float) -> float:
    """The variance 2·s² of Laplace noise whose tails fall like those of discrete Laplace noise of a given variance.

    Where the scale s is small, most noise is 0, and large noise is likelier than its variance suggests.
    """
    return 0.5 / math.asinh(1 / math.sqrt(2 * cell_variance)) ** 2 if cell_variance else 0.0


@compile_function
def _grow(sums: Reals, shape: Numbers, rule: Rule) -> tuple[Numbers, float]:
    """Box number of every cell, shape (cells,), and the luck of all cuts that were kept.

    Args:
        sums: prefix sums over the cells, shape (cells + 1,).
        shape: cells along each axis, shape (6,).
    """
    cell_variance, box_variance, tail, max_depth = rule
    steps = np.ones(AXES, dtype=np.int64)  # from a cell to the next one along each axis
    for axis in range(LAST, 0, -1):
        steps[axis - 1] = steps[axis] * shape[axis]
    reserved = max_depth > _halvings(shape)
    # A stack never holds more than two waiting boxes per level; every box of `done` is part of one of them.
    stack = np.zeros((2 * max_depth + 2, AXES + 4), dtype=np.int64)
    lucks, done = np.zeros(2 * max_depth + 2), np.zeros((max_depth + 2, 5))
    stack[0, :AXES] = shape
    waiting, finished, nodes = 1, 0, 0
    numbers, rows = np.empty(sums.size - 1, dtype=np.int64), np.empty(sums.size - 1, dtype=np.int64)
    sides, lefts = np.empty(AXES, dtype=np.int64), np.zeros(shape.max() + 1)
    while waiting > 0:
        waiting -= 1
        sides[:] = stack[waiting, :AXES]
        start, depth = stack[waiting, START], stack[waiting, DEPTH]
        if stack[waiting, STATE] == CUT:
            finished -= 1
            if _try_join(done, finished - 1, lucks[waiting], cell_variance, box_variance, tail):
                first = stack[waiting, FIRST]
                _number(numbers, rows, rows_of(sides, steps, start, LAST, rows), sides[LAST], first)
                nodes = first + 1
            continue
        cells = float(np.prod(sides))
        if cells == 1.0 or depth == max_depth:
            count = rows_of(sides, steps, start, LAST, rows)
            _number(numbers, rows, count, sides[LAST], nodes)
            _measure(sums, rows, count, sides[LAST], done[finished])
            done[finished, RISK] = _risk(done[finished], cell_variance, box_variance)
            done[finished, LUCK] = 0.0
            finished, nodes = finished + 1, nodes + 1
            continue
        cut, tried, axis = 0, cells, 0
        if not reserved or max_depth - depth > _halvings(sides):
            cut, axis, tried = best_paying_cut(sums, sides, steps, start, rows, lefts, cell_variance, box_variance)
        if cut == 0:
            axis, length = next_side(sides, 0, lefts.size)
            cut, tried = length // 2, cells
        lucks[waiting] = 2.0 * np.log(max(2.0, tried))
        stack[waiting, STATE], stack[waiting, FIRST] = CUT, nodes
        waiting += 1
        # The right part waits below the left one, so boxes are found from left to right.
        for length, at in ((sides[axis] - cut, start + cut * steps[axis]), (cut, start)):
            stack[waiting, :AXES] = sides
            stack[waiting, axis], stack[waiting, START], stack[waiting, DEPTH] = length, at, depth + 1
            stack[waiting, STATE] = NEW
            waiting += 1
    return numbers, done[0, LUCK]


@compile_function
def _halvings(sides: Numbers) -> int:
    """How many cuts in the middle reach the cells of a box."""
    levels = 0
    for axis in range(AXES):
        size = 1
        while size < sides[axis]:
            size *= 2
            levels += 1
    return levels


@compile_function
def _number(numbers: Numbers, rows: Numbers, count: int, width: int, number: int) -> None:
    """Writes the number of a box to its cells."""
    for row in range(count):
        for cell in range(rows[row], rows[row] + width):
            numbers[cell] = number


@compile_function
def _measure(sums: Reals, rows: Numbers, count: int, width: int, box: Reals) -> None:
    """Writes cells, sum and squared error of a box."""
    cells, total, squares = float(count * width), 0.0, 0.0
    for row in range(count):
        total += sums[rows[row] + width] - sums[rows[row]]
    if cells > 1.0:
        for row in range(count):
            for cell in range(rows[row], rows[row] + width):
                squares += (sums[cell + 1] - sums[cell] - total / cells) ** 2
    box[CELLS], box[SUM], box[SQUARES] = cells, total, squares


@compile_function
def _risk(box: Reals, cell_variance: float, box_variance: float) -> float:
    """The estimated risk of a box by itself."""
    return float(box[SQUARES] - (box[CELLS] - 1.0) * cell_variance + box_variance / box[CELLS])


@compile_function
def _try_join(done: Reals, place: int, luck: float, cell_variance: float, box_variance: float, tail: float) -> bool:
    """Writes the box of two neighbours in `done` to the first one's place, and says whether it is better uncut."""
    left, right = done[place], done[place + 1]
    cells = left[CELLS] + right[CELLS]
    gap = left[SUM] / left[CELLS] - right[SUM] / right[CELLS]
    cut_risk, cut_luck = left[RISK] + right[RISK], left[LUCK] + right[LUCK] + luck
    left[SQUARES] += right[SQUARES] + gap * gap * (left[CELLS] * right[CELLS] / cells)
    left[CELLS], left[SUM] = cells, left[SUM] + right[SUM]
    left[RISK], left[LUCK] = _risk(left, cell_variance, box_variance), 0.0
    if left[RISK] <= cut_risk + tail * cut_luck:
        return True
    left[RISK], left[LUCK] = cut_risk, cut_luck
    return False
