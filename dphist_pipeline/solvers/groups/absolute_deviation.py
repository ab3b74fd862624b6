"""Absolute deviations of stretches and cuts of a line of counts, and imbalances of its cuts, in whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function
from dphist_pipeline.solvers.groups.bucket_splits import parts_of_rows

Numbers = NDArray[np.int64]


def deviations(counts: Numbers) -> Iterator[Numbers]:
    """Sums of absolute deviations from the median, for every stretch of cells.

    Counts are first clipped to ±2^63 / n, which brings two lines no further apart and keeps every sum below 2^63: with
    up to 2,000 counts within ±2^52, it changes none. Then a step of one in one count changes every entry by at most 1:
    this holds for a sum of |count - centre| with a fixed centre, the median is the centre with the least sum, and a
    minimum changes by no more than its terms do. All numbers are whole. O(n²) time, and the memory of a part.

    Args:
        counts: shape (n,), n at least 1.

    Yields:
        Parts of some rows, from the first row to the last, of a table of shape (n, n): entry [start, last] for the
        cells start … last; 0 where last < start.
    """
    reach = np.iinfo(np.int64).max // counts.size
    line = np.clip(counts, -reach, reach).astype(np.int64)
    order = np.argsort(line, kind="stable")
    for first, stop in parts_of_rows(line.size):
        rows = np.zeros((stop - first, line.size), dtype=np.int64)
        _deviations(line, order, first, rows)
        yield rows


def deviations_of_cuts(counts: Numbers, centre: Literal["median", "mean"]) -> Numbers:
    """For every cut of a line, the deviations of both sides, each from its own centre, summed.

    Deviations from a mean are rounded down. Counts are first clipped to ±2^60 / n, which brings two lines no further
    apart and keeps every sum below 2^61. Then a step of one in one count changes every entry by at most 1 with medians
    and 2 with means. It changes one side only: with a median by at most 1 (see `deviations`); with a mean, if s cells
    are on that side, by at most 1 - 1/s for the count itself and 1/s for each other count. Numbers that differ by at
    most 2 still do so when rounded down. All numbers are whole. O(n log n) time, O(n) memory.

    Args:
        counts: shape (n,), n at least 1.

    Returns:
        Shape (n,): the deviations of the whole line, then those for a cut after the first cell, the second, ….
    """
    reach = (1 << 60) // counts.size
    line = np.clip(counts, -reach, reach).astype(np.int64)
    order = np.argsort(line, kind="stable")
    sums = _of_first_from_medians if centre == "median" else _of_first_from_means
    after = sums(np.ascontiguousarray(line[::-1]), counts.size - 1 - order)[:0:-1]
    cuts: Numbers = sums(line, order)[:-1] + after
    return cuts


def imbalances(counts: Numbers) -> Numbers:
    """Imbalance |count before - count after| of every cut: after the first cell, the second, …; shape (n - 1,).

    Counts are first clipped to ±2^60 / n, which brings two lines no further apart and keeps every sum within 2^60. Then
    a step of one in one count changes every entry by at most 1, because the count is on one side only. O(n).

    Args:
        counts: shape (n,), n at least 1.
    """
    reach = (1 << 60) // counts.size
    before = np.cumsum(np.clip(counts, -reach, reach), dtype=np.int64)
    apart: Numbers = np.abs(2 * before[:-1] - before[-1])
    return apart


@compile_function
def _deviations(counts: Numbers, order: Numbers, first: int, rows: Numbers) -> None:
    """Writes the rows of `deviations` from the start `first`; `order` holds the cells in rising order of counts."""
    rank, links = _ranks(order), np.empty((2, counts.size + 1), dtype=np.int64)
    for row in range(len(rows)):
        _of_stretches_from(first + row, counts, order, rank, links, rows[row])


@compile_function
def _of_first_from_medians(counts: Numbers, order: Numbers) -> Numbers:
    """Deviations of the first 0, 1, …, n cells from their medians; shape (n + 1,)."""
    n = counts.size
    costs = np.zeros(n + 1, dtype=np.int64)
    _of_stretches_from(0, counts, order, _ranks(order), np.empty((2, n + 1), dtype=np.int64), costs[1:])
    return costs


@compile_function
def _ranks(order: Numbers) -> Numbers:
    """The place of every cell in the order, shape (n,)."""
    rank = np.empty(order.size, dtype=np.int64)
    for place in range(order.size):
        rank[order[place]] = place
    return rank


@compile_function
def _of_stretches_from(
    start: int, counts: Numbers, order: Numbers, rank: Numbers, links: Numbers, costs: Numbers
) -> None:
    """Writes the deviations of every stretch that begins at `start` to `costs`, shape (n,); O(n).

    The cells of the stretch are a linked list in order of their counts, known by their rank. Starting with all cells,
    the last one of the stretch is removed at each step while a pointer follows the (lower) median. `middle` is the last
    cell of the lower half, which holds the odd one; `above` is the sum of the upper half minus that of the lower half.
    """
    n = counts.size
    before, after = links[0], links[1]
    size, latest, middle, above = n - start, n, n, 0  # n stands for both ends of the list
    lower, position = (size + 1) // 2, 0
    for place in range(n):
        if order[place] < start:
            continue
        before[place], after[latest], latest = latest, place, place
        position += 1
        above += -counts[order[place]] if position <= lower else counts[order[place]]
        if position == lower:
            middle = place
    before[n], after[latest] = latest, n
    for last in range(n - 1, start - 1, -1):
        median = counts[order[middle]]
        costs[last] = above + median if size % 2 == 1 else above
        gone = rank[last]
        below = gone <= middle
        above += counts[last] if below else -counts[last]
        if size % 2 == 0 and below:
            middle = after[middle]
            above -= 2 * counts[order[middle]]
        elif size % 2 == 1 and not below:
            above += 2 * median
            middle = before[middle]
        elif gone == middle:
            middle = before[middle]
        after[before[gone]], before[after[gone]] = after[gone], before[gone]
        size -= 1
        if size == 0:
            break


@compile_function
def _of_first_from_means(counts: Numbers, order: Numbers) -> Numbers:
    """Deviations of the first 0, 1, …, n cells from their means, rounded down; shape (n + 1,).

    They are twice the excess of the counts above the mean, whose number and sum come from a tree of partial counts and
    sums by rank (Fenwick 1994): O(n log n).
    """
    n = counts.size
    costs, rank, rising = np.zeros(n + 1, dtype=np.int64), _ranks(order), counts[order]
    tree = np.zeros((n + 1, 2), dtype=np.int64)
    total = 0
    for last in range(n):
        size = last + 1
        total += counts[last]
        place = rank[last] + 1
        while place <= n:
            tree[place, 0] += 1
            tree[place, 1] += counts[last]
            place += place & -place
        mean, rest = total // size, total % size
        above, exceeding = size, total
        place = np.searchsorted(rising, mean, side="right")
        while place > 0:
            above -= tree[place, 0]
            exceeding -= tree[place, 1]
            place -= place & -place
        costs[size] = 2 * (exceeding - above * mean) - (2 * above * rest + size - 1) // size
    return costs
