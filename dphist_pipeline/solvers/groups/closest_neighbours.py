"""Merges neighbours on a line of cells, the closest pair first.

The line is merged window by window: a short window by looking at every pair, a long one by a tournament.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function
from dphist_pipeline.solvers.groups.segmentation import middling_value

# Buckets of a window that is merged by looking at every pair. With a tournament for all windows, 10^6 cells take 1.5
# times as long, and a release by `cnfg` more than 1.5 times as long as with two threads.
FEW = 64
Reals = NDArray[np.float64]
Places = NDArray[np.int32]


class Window(NamedTuple):
    """Neighbouring buckets, with room for more; shape (room,) each."""

    sums: Reals
    sizes: Reals
    costs: Reals  # of merging each with the next one
    places: Places  # in the line


class Merges(NamedTuple):
    """Merges that were made, with room for more; shape (room,) each."""

    rights: Places  # the bucket that was merged into the one on its left
    increases: Reals  # of the squared error, by each merge
    levels: Reals  # the highest increase so far in the window


@compile_function
def increase(left_sum: float, left_size: float, right_sum: float, right_size: float) -> float:
    """By how much the squared error grows: n1 · n2 / (n1 + n2) · (mean1 - mean2)², with a single division.

    Args:
        left_sum, left_size, right_sum, right_size: sums in records, and cells, of two neighbouring buckets.
    """
    apart = left_sum * right_size - right_sum * left_size
    return apart * apart / (left_size * right_size * (left_size + right_size))


@compile_function
def merge_few(
    window: Window, count: int, limit: float, beside: tuple[bool, bool], merges: Merges, free: int
) -> tuple[int, int]:
    """Merges the closest pair of a window until none costs less than `limit`, looking at every pair for each merge.

    Args:
        window: the buckets; overwritten.
        limit: records squared.
        beside: whether the first and the last bucket lie beside the window.
        merges: every merge is written here, from place `free` on.
        free: the first free place in `merges`.

    Returns:
        How many buckets are left, and 0; or -1 or 1 if the bucket beside it on the left or right was next to be merged.
    """
    sums, sizes, costs, places = window
    level = 0.0
    while True:
        left, least = -1, limit
        for k in range(count - 1):
            if costs[k] < least:
                left, least = k, costs[k]
        if left < 0:
            return count, 0
        if left == 0 and beside[0]:
            return count, -1
        if left == count - 2 and beside[1]:
            return count, 1
        level = max(level, least)
        merges.rights[free], merges.increases[free], merges.levels[free] = places[left + 1], least, level
        free += 1
        sums[left] += sums[left + 1]
        sizes[left] += sizes[left + 1]
        count -= 1
        for k in range(left + 1, count):
            sums[k], sizes[k], costs[k], places[k] = sums[k + 1], sizes[k + 1], costs[k + 1], places[k + 1]
        if left + 1 < count:
            costs[left] = increase(sums[left], sizes[left], sums[left + 1], sizes[left + 1])
        if left > 0:
            costs[left - 1] = increase(sums[left - 1], sizes[left - 1], sums[left], sizes[left])


@compile_function
def merge_many(
    window: Window, count: int, limit: float, beside: tuple[bool, bool], merges: Merges, free: int
) -> tuple[int, int]:
    """As `merge_few`, with its arguments and results, by a tournament of pairs; O(log count) a merge.

    A pair is known by its left bucket. Node v of the tournament holds the least cost below it, its children are 2v and
    2v + 1, and the root is node 1. A pair never changes its place, so the leftmost of equal pairs is found by going
    left.
    """
    sums, sizes, costs, places = window
    before, after = np.arange(-1, count - 1), np.arange(1, count + 1)
    leaves = 2
    while leaves < count:
        leaves *= 2
    tree = np.full(2 * leaves, np.inf)
    tree[leaves : leaves + count - 1] = costs[: count - 1]
    for node in range(leaves - 1, 0, -1):
        tree[node] = min(tree[2 * node], tree[2 * node + 1])
    level, left_over = 0.0, count
    while tree[1] < limit:
        node = 1
        while node < leaves:
            node = 2 * node if tree[2 * node] == tree[1] else 2 * node + 1
        left = node - leaves
        right, previous = after[left], before[left]
        if left == 0 and beside[0]:
            return left_over, -1
        if right == count - 1 and beside[1]:
            return left_over, 1
        level = max(level, tree[1])
        merges.rights[free], merges.increases[free], merges.levels[free] = places[right], tree[1], level
        free, left_over = free + 1, left_over - 1
        sums[left] += sums[right]
        sizes[left] += sizes[right]
        following = after[left] = after[right]
        _set_cost(tree, leaves + right, np.inf)
        _set_cost(tree, leaves + left, np.inf)
        if following < count:
            before[following] = left
            cost = increase(sums[left], sizes[left], sums[following], sizes[following])
            _set_cost(tree, leaves + left, cost)
        if previous >= 0:
            cost = increase(sums[previous], sizes[previous], sums[left], sizes[left])
            _set_cost(tree, leaves + previous, cost)
    buckets, bucket = 0, 0
    while bucket < count:
        sums[buckets], sizes[buckets] = sums[bucket], sizes[bucket]
        buckets, bucket = buckets + 1, after[bucket]
    return left_over, 0


@compile_function
def _set_cost(tree: Reals, node: int, cost: float) -> None:
    """Writes the cost of a pair, and the least costs of the nodes above it as far as they change."""
    while node > 0 and tree[node] != cost:
        tree[node] = cost
        node //= 2
        cost = min(tree[2 * node], tree[2 * node + 1])


# The limits of the sweeps, in variances of a cell: windows stay short. The last one is fixed, see below.
LIMITS = (0.3, 0.7, 1.2, 2.0)
Numbers = NDArray[np.int64]


def closest_neighbours(values: Reals, cell_variance: float) -> Numbers:
    """Merges the two adjacent buckets whose squared error grows least, until one is left; gives the best stage.

    Starts with a bucket per cell. Of equally close pairs, the leftmost is merged; in whole numbers that are not huge
    equal pairs compare as equal. The best stage has the least SSE + (2 · buckets - cells) · cell_variance; of equal
    stages, it is the one with the most buckets. O(n log n) time, O(n) memory.

    While the closest pair costs less than two variances, every merge makes the stage better. So only the outcome of
    these merges counts, not their order, and sweeps with a rising limit merge them window by window. Then the order
    counts, up to a cost of four variances. Above that no merge of L buckets pays: the pairs 1-2, 3-4, ... alone cost
    4 · (L // 2) variances, and L - 1 buckets less save 2 · (L - 1).

    Args:
        values: one number per cell, shape (n,), n >= 1.
        cell_variance: of the noise in a cell, at least 0.

    Returns:
        Bucket number per cell, shape (n,), starting at 0 and never falling.
    """
    if cell_variance == 0.0:  # no merge makes a stage better
        return np.arange(values.size)
    line = values - middling_value(values)
    starts = np.flatnonzero(np.diff(line, prepend=np.nan))  # merging equal neighbours costs nothing: it comes first
    sizes = np.diff(starts, append=line.size).astype(np.float64)
    first = np.zeros(line.size, dtype=np.int64)
    first[_best_starts(line[starts] * sizes, sizes, float(cell_variance))] = 1
    return np.cumsum(first) - 1


def _best_starts(sums: Reals, sizes: Reals, cell_variance: float) -> Numbers:
    """The first cell of each bucket in the best stage. Overwrites `sums` and `sizes`, those of the first stage."""
    price = 2.0 * cell_variance
    other_sums, other_sizes = np.empty_like(sums), np.empty_like(sums)
    costs, windows = np.empty(sums.size + 1), np.empty((sums.size // 2 + 1, 3), dtype=np.int32)
    merges = Merges(np.empty(sums.size, dtype=np.int32), np.empty(sums.size), np.empty(sums.size))
    for limit in LIMITS:
        left = _sweep(sums, sizes, limit * cell_variance, costs, windows, other_sums, other_sizes, merges)
        sums, sizes, other_sums, other_sizes = other_sums[:left], other_sizes[:left], sums, sizes
    left = _sweep(sums, sizes, 2.0 * price, costs, windows, other_sums, other_sizes, merges)
    merge_count = sums.size - left
    # Sorted by the highest increase so far in their window, the merges come in the order of the whole line.
    order = np.argsort(merges.levels[:merge_count], kind="stable")
    # How the stages' criterion has changed after 0, 1, ... merges.
    changes = np.cumsum(np.append(0.0, merges.increases[order] - price))
    first = np.ones(sums.size, dtype=np.bool_)
    first[merges.rights[order[: changes.argmin()]]] = False
    borders = np.cumsum(np.append(0.0, sizes[:-1])).astype(np.int64)
    return borders[first]


@compile_function
def _sweep(
    sums: Reals,
    sizes: Reals,
    limit: float,
    costs: Reals,
    windows: Places,
    to_sums: Reals,
    to_sizes: Reals,
    merges: Merges,
) -> int:
    """Merges the closest pair until no pair costs less than `limit`, window by window; gives how many buckets are left.

    Two buckets are near if merging them costs less than the limit. A window is a stretch of near buckets; the bucket on
    each side of it is near no other. If no merge takes one of these two in, the window is independent of the rest of
    the line. Otherwise the window is widened and merged again from its start.

    Args:
        sums, sizes: of the buckets, shape (n,).
        limit: records squared.
        costs: room, shape (n + 1,).
        windows: room for the first bucket of a window, the one after the last, and the first in the result.
        to_sums, to_sizes: the buckets that are left are written here.
        merges: every merge is written here, window after window.
    """
    n = sums.size
    for left in range(n - 1):
        costs[left] = increase(sums[left], sizes[left], sums[left + 1], sizes[left + 1])
    costs[n - 1] = costs[n] = np.inf
    number, buckets, bucket, room = 0, 0, 0, 2 * FEW
    window = Window(np.empty(room), np.empty(room), np.empty(room), np.empty(room, dtype=np.int32))
    while bucket < n:
        if costs[bucket] >= limit:
            to_sums[buckets], to_sizes[buckets] = sums[bucket], sizes[bucket]
            buckets, bucket = buckets + 1, bucket + 1
            continue
        start, end = bucket, _window_end(costs, bucket + 2, n, limit)
        while True:
            low, high = max(start - 1, 0), min(end + 1, n)
            if high - low > room:
                room = 2 * (high - low)
                window = Window(np.empty(room), np.empty(room), np.empty(room), np.empty(room, dtype=np.int32))
            for k in range(high - low):
                window.sums[k], window.sizes[k], window.costs[k] = sums[low + k], sizes[low + k], costs[low + k]
                window.places[k] = low + k
            beside = (start > low, end < high)
            if high - low <= FEW:
                left, drawn_in = merge_few(window, high - low, limit, beside, merges, start - buckets)
            else:
                left, drawn_in = merge_many(window, high - low, limit, beside, merges, start - buckets)
            # A window grows by half of its length, so that few buckets are merged again often.
            more = max((end - start) // 2, 1)
            if drawn_in == 0:
                break
            if drawn_in > 0:
                end = _window_end(costs, min(end + more, n), n, limit)
                continue
            wanted = max(start - more, 0)
            while number > 0 and windows[number - 1, 1] >= wanted:
                number -= 1
                start, buckets = windows[number, 0], windows[number, 2]
            if wanted < start:
                start, buckets = wanted, buckets - (start - wanted)
        windows[number, 0], windows[number, 1], windows[number, 2] = start, end, buckets
        number += 1
        for k in range(start - low, left - (high - end)):
            to_sums[buckets], to_sizes[buckets] = window.sums[k], window.sizes[k]
            buckets += 1
        bucket = end
    return buckets


@compile_function
def _window_end(costs: Reals, end: int, n: int, limit: float) -> int:
    """The first bucket from `end` on that is not near the bucket before or after it."""
    while end < n and (costs[end - 1] < limit or costs[end] < limit):
        end += 1
    return end
