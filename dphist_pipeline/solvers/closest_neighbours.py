"""Merging neighbours on a line, the closest pair first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled
from dphist_pipeline.solvers.segmentation import centred, numbered, runs_of

BLOCK = 16
SMALL = 64  # buckets in a window that is merged by looking at every pair
SHARE = 0.4  # of the pairs that are merged between two sweeps
Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def closest_neighbours(values: Reals, cell_variance: float) -> Numbers:
    """Merges the adjacent buckets whose squared error grows least, until one is left, and gives the best stage.

    Starts with a bucket a cell. Of equally close pairs, the leftmost is merged; in whole numbers that are not huge
    equal pairs compare as equal. The best stage has the least SSE + (2 · buckets - cells) · cell_variance, of equal
    ones the one with the most buckets. O(n log n) time, O(n) memory.

    As long as a pair costs less than two variances every merge makes the stage better, so only the outcome counts, and
    merges far apart may change places: sweeps with a rising limit merge within small windows. From there on the order
    counts, up to four variances. No merging of L buckets, however done, pays where every pair costs more than that: the
    pairs 1-2, 3-4, ... alone cost 4 · (L // 2) variances, and L - 1 buckets less save 2 · (L - 1) of them.

    Args:
        values: one number per cell, shape (n,), n >= 1.
        cell_variance: of the noise in a cell, at least 0.

    Returns:
        Bucket number per cell, shape (n,), starting at 0 and never falling.
    """
    if cell_variance == 0.0:  # no merge makes a stage better
        return np.arange(values.size)
    sums, sizes, _ = runs_of(centred(values))  # merged first of all, at no cost
    sums *= sizes
    price = 2.0 * float(cell_variance)
    limit = 0.0
    while limit < price:
        limit = _next_limit(sums, sizes, limit, price)
        sums, sizes, *_ = _swept(sums, sizes, limit)
    _, _, rights, increases, levels = _swept(sums, sizes, 2.0 * price)
    # The merges in the order of the whole line: of equally high ones, window after window.
    order = np.argsort(levels)
    ties = np.cumsum(np.diff(levels[order], prepend=0.0) > 0.0)
    order = np.sort((ties << 32) + order) & 0xFFFFFFFF
    # From one stage to the next: nothing large is ever subtracted.
    changes = np.cumsum(increases[order] - price)
    first = np.ones(sums.size, dtype=np.bool_)
    if changes.size > 0 and changes.min() < 0.0:
        first[rights[order[: changes.argmin() + 1]]] = False
    buckets: Numbers = numbered(first, np.cumsum(sizes).astype(np.int32))
    return buckets


def _next_limit(sums: Reals, sizes: Reals, limit: float, price: float) -> float:
    """A limit that a share of the pairs, those in a sample, do not reach; at most `price`."""
    some = np.arange(0, sums.size - 1, sums.size // 1024 + 1)
    if some.size == 0:
        return price
    costs = _increase(sums[some], sizes[some], sums[some + 1], sizes[some + 1])
    rank = int(SHARE * some.size)
    # A little more, so that equal pairs go together.
    return float(min(price, max(np.partition(costs, rank)[rank] * 1.001, 1.25 * limit, price / 64.0)))


@compiled
def _increase(left_sum, left_size, right_sum, right_size):  # type: ignore[no-untyped-def]
    """By how much the squared error grows: n1 · n2 / (n1 + n2) · (mean1 - mean2)², with a single division."""
    apart = left_sum * right_size - right_sum * left_size
    return apart * apart / (left_size * right_size * (left_size + right_size))


@compiled
def _swept(sums, sizes, limit):  # type: ignore[no-untyped-def]
    """Merges the closest pair until none is below `limit`: sums and sizes of the buckets that are left.

    A window is a stretch of buckets whose pairs interact. The bucket beside it touches no pair below the limit, and
    what happens in the window never draws it in: so what happens beyond cannot be felt in the window, nor the reverse.
    Where it is drawn in after all the window is widened and merged anew.

    And of every merge, window after window: the bucket that was merged into the one on its left, the increase, and the
    highest increase in the window so far, by which the merges of all windows come in the order of the whole line.
    """
    n = sums.size
    costs = np.empty(n + 1)
    for left in range(n - 1):
        costs[left] = _increase(sums[left], sizes[left], sums[left + 1], sizes[left + 1])
    costs[n - 1] = costs[n] = np.inf
    to_sums, to_sizes = np.empty(n), np.empty(n)
    rights, merges = np.empty(n, dtype=np.int32), np.empty((n, 2))
    windows = np.empty((n // 2 + 1, 3), dtype=np.int32)  # first bucket, the one after the last, first in the result
    found, kept, bucket = 0, 0, 0
    some_sums, some_sizes, some_costs, links = _room(SMALL)
    while bucket < n:
        if costs[bucket] >= limit:
            to_sums[kept], to_sizes[kept] = sums[bucket], sizes[bucket]
            kept += 1
            bucket += 1
            continue
        start, end = bucket, _window_end(costs, bucket + 2, limit)
        while True:
            low, high = max(start - 1, 0), min(end + 1, n)
            if high - low > some_sums.size:
                some_sums, some_sizes, some_costs, links = _room(high - low)
            for k in range(high - low):
                some_sums[k], some_sizes[k], some_costs[k] = sums[low + k], sizes[low + k], costs[low + k]
                links[k, 0], links[k, 1] = k - 1, k + 1
            done = start - kept
            if high - low <= SMALL:
                left, drawn = _merged_few(
                    some_sums,
                    some_sizes,
                    some_costs,
                    links,
                    high - low,
                    limit,
                    start > 0,
                    end < n,
                    low,
                    rights,
                    merges,
                    done,
                )
            else:
                left, drawn = _merged_many(
                    some_sums,
                    some_sizes,
                    some_costs,
                    links,
                    high - low,
                    limit,
                    start > 0,
                    end < n,
                    low,
                    rights,
                    merges,
                    done,
                )
            if drawn == 0:
                break
            # A large window grows by half, so that no bucket is merged anew very often.
            more = 1 if end - start <= SMALL else (end - start) // 2
            if drawn > 0:
                end = _window_end(costs, min(end + more, n), limit)
            else:
                further = max(start - more, 0)
                while found > 0 and windows[found - 1, 1] >= further:
                    found -= 1
                    start, kept = windows[found, 0], windows[found, 2]
                if further < start:
                    start, kept = further, kept - (start - further)
        windows[found, 0], windows[found, 1], windows[found, 2] = start, end, kept
        found += 1
        for k in range(start - low, left - (high - end)):
            to_sums[kept], to_sizes[kept] = some_sums[k], some_sizes[k]
            kept += 1
        bucket = end
    done = n - kept
    return to_sums[:kept], to_sizes[:kept], rights[:done], merges[:done, 0], merges[:done, 1]


@compiled
def _room(size):  # type: ignore[no-untyped-def]
    return np.empty(size), np.empty(size), np.empty(size), np.empty((size, 2), dtype=np.int32)


@compiled
def _window_end(costs, end, limit):  # type: ignore[no-untyped-def]
    """The first bucket from `end` on that neither of its pairs draws in."""
    n = costs.size - 1
    while end < n and (costs[end - 1] < limit or costs[end] < limit):
        end += 1
    return end


@compiled
def _merged_few(sums, sizes, costs, links, count, limit, first_is_beside, last_is_beside, low, rights, merges, done):  # type: ignore[no-untyped-def]
    """Merges in place, looking at every pair; how many are left, and -1 or 1 where the bucket beside is drawn in."""
    level, left_over = 0.0, count
    while True:
        left, least = -1, limit
        for k in range(count - 1):
            if costs[k] < least:
                left, least = k, costs[k]
        if left < 0:
            return _packed(sums, sizes, links, count), 0
        before, right = links[left, 0], links[left, 1]
        after = links[right, 1]
        if first_is_beside and left == 0:
            return left_over, -1
        if last_is_beside and after == count:
            return left_over, 1
        level = max(level, least)
        rights[done], merges[done, 0], merges[done, 1] = low + right, least, level
        done += 1
        sums[left] += sums[right]
        sizes[left] += sizes[right]
        costs[left] = costs[right] = np.inf
        links[left, 1] = after
        if after < count:
            links[after, 0] = left
            costs[left] = _increase(sums[left], sizes[left], sums[after], sizes[after])
        if before >= 0:
            costs[before] = _increase(sums[before], sizes[before], sums[left], sizes[left])
        left_over -= 1


@compiled
def _merged_many(sums, sizes, costs, links, count, limit, first_is_beside, last_is_beside, low, rights, merges, done):  # type: ignore[no-untyped-def]
    """As `_merged_few`, by a tournament."""
    increases, least, blocks = _tournament(costs, count)
    level, left_over = 0.0, count
    while least[1] < limit:
        left = _closest(increases, least, blocks)
        right = links[left, 1]
        if first_is_beside and left == 0:
            return left_over, -1
        if last_is_beside and right == count - 1:
            return left_over, 1
        level = max(level, least[1])
        rights[done], merges[done, 0], merges[done, 1] = low + right, least[1], level
        done += 1
        _merge(sums, sizes, links, increases, least, blocks, left, count)
        left_over -= 1
    return _packed(sums, sizes, links, count), 0


@compiled
def _packed(sums, sizes, links, count):  # type: ignore[no-untyped-def]
    """Moves the buckets that are left to the front, and counts them."""
    kept, bucket = 0, 0
    while bucket < count:
        sums[kept], sizes[kept] = sums[bucket], sizes[bucket]
        kept += 1
        bucket = links[bucket, 1]
    return kept


@compiled
def _tournament(costs, count):  # type: ignore[no-untyped-def]
    """The buckets before and after each, the increase of each pair, and the least of them.

    A bucket is known by its first one, and a pair by its left bucket. The increases of the pairs lie in blocks of 16,
    read at once, and the blocks wait in a tournament: node v holds the least increase below it, its children are 2v and
    2v + 1, the root is node 1. A pair never changes its place, so the leftmost of equal pairs is found by going left.
    """
    blocks = 1
    while blocks * BLOCK < count:
        blocks *= 2
    increases, least = np.full(blocks * BLOCK, np.inf), np.full(2 * blocks, np.inf)
    increases[: count - 1] = costs[: count - 1]
    for block in range((count + BLOCK - 1) // BLOCK):
        least[blocks + block] = increases[block * BLOCK : (block + 1) * BLOCK].min()
    for node in range(blocks - 1, 0, -1):
        least[node] = min(least[2 * node], least[2 * node + 1])
    return increases, least, blocks


@compiled
def _closest(increases, least, blocks):  # type: ignore[no-untyped-def]
    """The leftmost of the closest pairs."""
    increase, node = least[1], 1
    while node < blocks:
        node *= 2
        if least[node] != increase:
            node += 1
    left = (node - blocks) * BLOCK
    while increases[left] != increase:
        left += 1
    return left


@compiled
def _merge(sums, sizes, links, increases, least, blocks, left, count):  # type: ignore[no-untyped-def]
    """Merges the pair that `left` begins."""
    right = links[left, 1]
    sums[left] += sums[right]
    sizes[left] += sizes[right]
    before, after = links[left, 0], links[right, 1]
    links[left, 1] = after
    increases[left] = increases[right] = np.inf
    if after < count:
        links[after, 0] = left
        increases[left] = _increase(sums[left], sizes[left], sums[after], sizes[after])
    block = left // BLOCK
    if before >= 0:
        increases[before] = _increase(sums[before], sizes[before], sums[left], sizes[left])
        if before // BLOCK != block:
            _renew(least, increases, blocks, before // BLOCK)
    _renew(least, increases, blocks, block)
    if right // BLOCK != block:
        _renew(least, increases, blocks, right // BLOCK)


@compiled
def _renew(least, increases, blocks, block):  # type: ignore[no-untyped-def]
    """Finds a block's least increase anew, and those of the nodes above it, as far as they change."""
    winner = np.inf
    for pair in range(block * BLOCK, (block + 1) * BLOCK):
        winner = min(winner, increases[pair])
    node = blocks + block
    while node > 0 and least[node] != winner:
        least[node] = winner
        node //= 2
        winner = min(least[2 * node], least[2 * node + 1])
