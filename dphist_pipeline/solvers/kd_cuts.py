"""Where slabs are best cut in two, by exact prefix sums, and if that is worth one more box."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled
from dphist_pipeline.solvers.segmentation import centre_of

EXACT = 52  # bits of a sum that doubles hold in any case
FEW = 8  # slabs whose cuts are looked at one by one
CHUNK = np.uint64(128)  # cuts that are looked at together; unsigned: places are not looked up from the end
LANES = 8  # cuts that are scored at once
LUCK = 512  # numbers of cuts tried whose luck is known beforehand
Reals = NDArray[np.float64]


class Rule(NamedTuple):
    """When a box is cut, as `kd_boxes` says, and the squares that differences within the smallest boxes must exceed."""

    cell_variance: float
    box_variance: float
    threshold: float
    max_depth: int
    pair: float  # of one cell and another
    three: float  # of three times a cell at the end, and the sum of three
    square: float  # of two sums of two cells each


def rule_of(cell_variance: float, box_variance: float, threshold: float, max_depth: int) -> tuple[Rule, Reals]:
    """The rule, and what luck alone gains at most among 0, 1, 2, … cuts tried."""
    luck = 2.0 * cell_variance * np.log(np.maximum(2.0, np.arange(LUCK)))
    # What `pays` asks for, written out: scores are squares by how many slabs lie left and right.
    pair, three = 3.0 * box_variance + 2.0 * luck[1], 2.0 * (3.5 * box_variance + 3.0 * luck[2])
    square = 3.0 * box_variance + 4.0 * luck[2]
    return Rule(cell_variance, box_variance, threshold, max_depth, float(pair), float(three), float(square)), luck


def prefix_sums(line: Reals) -> Reals:
    """The sums of the first 0, 1, 2, … cells, each less one that lies amid them; there is room for LANES more.

    Their differences are exact. Where cells are no whole numbers, or their distances from the one amid them come to
    2^52 or more, each is first rounded to a multiple of a power of two, by at most 2^-52 of what those come to.
    """
    centre, sums = centre_of(line), np.zeros(line.size + 1 + LANES)
    away, whole = _write_sums(line, centre, 1.0, 1.0, sums)
    reach = 4.0 * line.size * away
    if not math.isfinite(reach * reach):
        raise ValueError("kd_boxes takes finite cells, whose squares do not overflow either")
    bits = min(EXACT - math.frexp(away)[1], 1000)
    if not whole or bits < 0:
        _write_sums(line, centre, math.ldexp(1.0, bits), math.ldexp(1.0, -bits), sums)
    return sums


@compiled
def _write_sums(line, centre, scale, unit, sums):  # type: ignore[no-untyped-def]
    """Rounds to multiples of the unit; what all distances from the centre come to, and if rounding changed none."""
    so_far, away, whole = 0.0, 0.0, True
    for cell in range(line.size):
        off = line[cell] - centre
        rounded = np.rint(off * scale) * unit
        away += abs(off)
        whole &= off == rounded
        so_far += rounded
        sums[cell + 1] = so_far
    return away, whole


@compiled
def pays(score, cells, left, tried, rule, luck):  # type: ignore[no-untyped-def]
    """If a cut with so many cells on its left, the best of those tried, is worth one more box."""
    by_luck = luck[tried] if tried < LUCK else 2.0 * rule.cell_variance * np.log(float(tried))
    return score - cells * by_luck > rule.box_variance * (np.divide(cells * cells, left * (cells - left)) - 1.0)


# Neither `max` nor a function for both of these: with them, the holders of the arrays would be counted at every call.


@compiled
def best_of_few(sums, start, length):  # type: ignore[no-untyped-def]
    """How many slabs lie left of the best cut, the first of equal ones, and its score.

    A score is what the cut takes off the squared error, times all cells. With D the sum of the first p of L slabs and T
    of all, that is (L · D - p · T)² / (p · (L - p)), where whole numbers are rounded at the division alone, if that
    square is below 2^53.
    """
    before, total, slabs = sums[start], sums[start + length] - sums[start], float(length)
    cut, best, left, right = 1, 0.0, 1.0, slabs - 1.0
    for position in range(1, length):
        off = slabs * (sums[start + position] - before) - left * total
        score = np.divide(off * off, left * right)
        higher = score > best
        cut, best = position if higher else cut, score if higher else best
        left, right = left + 1.0, right - 1.0
    return cut, best


@compiled
def best_of_many(sums, start, length, scores, bits):  # type: ignore[no-untyped-def]
    """The same, where every loop works on several cuts at once.

    `scores` has room for two chunks, that with the best so far and the next; `bits` are the same bytes as whole
    numbers, which are ordered alike and of which a computer finds the highest sooner.
    """
    one, end = np.uint64(1), np.uint64(length)
    highest, chunk, first, here, there = np.int64(-1), one, one, one - one, one - one
    while chunk < end:
        cuts = CHUNK if end - chunk > CHUNK else end - chunk
        _score(sums, np.uint64(start), end, chunk, cuts, scores, here)
        top = np.int64(0)
        for cut in range(cuts):
            top = bits[here + cut] if bits[here + cut] > top else top
        if top > highest:
            highest, first, there, here = top, chunk, here, CHUNK - here
        chunk += CHUNK
    place = np.int64(CHUNK)
    for cut in range(CHUNK if end - first > CHUNK else end - first):
        found = (bits[there + cut] == highest) & (np.int64(cut) < place)
        place = np.int64(cut) if found else place
    return np.int64(first) + place, scores[there + np.uint64(place)]


@compiled
def _score(sums, start, length, first, cuts, scores, here):  # type: ignore[no-untyped-def]
    """Writes the scores of some cuts, and of as many beyond as make them a multiple of LANES."""
    before, total, slabs = sums[start], sums[start + length] - sums[start], float(np.int64(length))
    left_of_first, rows = float(np.int64(first)), (cuts + np.uint64(LANES - 1)) // np.uint64(LANES)
    for cut in range(rows * np.uint64(LANES)):
        left = left_of_first + float(np.int64(cut))
        off = slabs * (sums[start + first + cut] - before) - left * total
        scores[here + cut] = np.divide(off * off, left * (slabs - left))
