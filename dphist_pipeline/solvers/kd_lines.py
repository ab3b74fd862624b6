"""Boxes of one side, and of two by two cells: by far the most."""

from __future__ import annotations

import numpy as np

from dphist_pipeline.solvers.compiled import compiled
from dphist_pipeline.solvers.kd_cuts import FEW, best_of_few, best_of_many, pays

SHORT = 3  # cells of a line that is numbered without a branch to guess
DEEP = 2  # cuts that may be needed in such a line or a square


@compiled
def split_line(sums, start, length, depth, rule, luck, numbers, at, step, found, waiting, scores, bits):  # type: ignore[no-untyped-def]
    """Numbers the boxes of a line whose sums stand from `start` on, its cells from `at` on; the next box's number.

    Boxes are found from left to right, so one that waits is known by its end and depth.
    """
    at -= start * step
    waiting[0, 0], waiting[0, 1] = start + length, depth
    top = 0
    while top >= 0:
        length, depth, cut = waiting[top, 0] - start, waiting[top, 1], 0
        if length <= SHORT and depth + DEEP <= rule.max_depth:
            first, second = sums[start + 1] - sums[start], sums[start + 2] - sums[start + 1]
            third = sums[start + 3] - sums[start + 2]
            found = number_short(first, second, third, length, rule, numbers, at + start * step, step, found)
        else:
            if length > 1 and depth < rule.max_depth:
                if length <= FEW:
                    cut, score = best_of_few(sums, start, length)
                else:
                    cut, score = best_of_many(sums, start, length, scores, bits)
                cut = cut if pays(score, float(length), float(cut), length - 1, rule, luck) else 0
            if cut == 0:
                for cell in range(start, start + length):
                    numbers[at + cell * step] = found
                found += 1
        if cut > 0:
            waiting[top, 1] = depth + 1
            top += 1
            waiting[top, 0], waiting[top, 1] = start + cut, depth + 1
        else:
            start += length
            top -= 1
    return found


@compiled
def number_short(first, second, third, length, rule, numbers, at, step, found):  # type: ignore[no-untyped-def]
    """Numbers the boxes of one to three cells in a line; the next box's number. Cells beyond the line do not matter."""
    total = first + second + third
    left, right = 3.0 * first - total, total - 3.0 * third
    left, right = left * left, right * right
    early = left >= right  # the best cut of three comes after the first
    three = (length == 3) & ((left if early else right) > rule.three)
    off = second - third if early & (length == 3) else first - second
    two = off * off > rule.pair
    after_first = (three & (early | two)) | ((length == 2) & two)
    after_second = three & (two | (not early))
    middle = found + np.int64(after_first)
    last = middle + np.int64(after_second)
    # From the last to the first: those that are not there are overwritten.
    numbers[at + (length - 1) * step] = last
    numbers[at + np.int64(length > 1) * step] = middle
    numbers[at] = found
    return last + 1


@compiled
def number_square(sums, start, step, next_step, rule, numbers, found):  # type: ignore[no-untyped-def]
    """Numbers the boxes of two by two cells, of which the first side is tried first; the next box's number."""
    first, second = sums[start + 1] - sums[start], sums[start + next_step + 1] - sums[start + next_step]
    down = start + step
    third, fourth = sums[down + 1] - sums[down], sums[down + next_step + 1] - sums[down + next_step]
    off, across = first + second - third - fourth, first + third - second - fourth
    along = off * off > rule.square
    parted = along | (across * across > rule.square)
    # Each half is a pair: the first cell and its partner, and the two others.
    partner, other = (second, third) if along else (third, second)
    to_partner, to_other = (next_step, step) if along else (step, next_step)
    near, far = first - partner, other - fourth
    of_partner = found + np.int64(parted & (near * near > rule.pair))
    of_other = of_partner + np.int64(parted)
    of_fourth = of_other + np.int64(parted & (far * far > rule.pair))
    numbers[start], numbers[start + to_partner] = found, of_partner
    numbers[start + to_other], numbers[down + next_step] = of_other, of_fourth
    return of_fourth + 1
