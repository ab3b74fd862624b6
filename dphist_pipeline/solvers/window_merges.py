"""Merging the buckets of one window, the closest pair first."""

from __future__ import annotations

import numpy as np

from dphist_pipeline.solvers.compiled import compiled

BLOCK = 16


@compiled
def increase(left_sum, left_size, right_sum, right_size):  # type: ignore[no-untyped-def]
    """By how much the squared error grows: n1 · n2 / (n1 + n2) · (mean1 - mean2)², with a single division."""
    apart = left_sum * right_size - right_sum * left_size
    return apart * apart / (left_size * right_size * (left_size + right_size))


@compiled
def merged_few(sums, sizes, costs, firsts, count, limit, first_is_beside, last_is_beside, rights, merges, done):  # type: ignore[no-untyped-def]
    """Merges in place, looking at every pair; how many are left, and -1 or 1 where the bucket beside is drawn in."""
    level = 0.0
    first, last = int(first_is_beside), count - 1 - int(last_is_beside)
    while True:
        left, least = -1, limit
        for k in range(count - 1):
            if costs[k] < least:
                left, least = k, costs[k]
        if left < 0:
            return count, 0
        if left < first:
            return count, -1
        if left >= last:
            return count, 1
        level = max(level, least)
        if rights.size > 0:
            rights[done], merges[done, 0], merges[done, 1] = firsts[left + 1], least, level
        done += 1
        sums[left] += sums[left + 1]
        sizes[left] += sizes[left + 1]
        count -= 1
        last -= 1
        for k in range(left + 1, count):
            sums[k], sizes[k], costs[k], firsts[k] = sums[k + 1], sizes[k + 1], costs[k + 1], firsts[k + 1]
        if left + 1 < count:
            costs[left] = increase(sums[left], sizes[left], sums[left + 1], sizes[left + 1])
        if left > 0:
            costs[left - 1] = increase(sums[left - 1], sizes[left - 1], sums[left], sizes[left])


@compiled
def merged_many(sums, sizes, costs, firsts, count, limit, first_is_beside, last_is_beside, rights, merges, done):  # type: ignore[no-untyped-def]
    """As `merged_few`, by a tournament."""
    links = np.empty((count, 2), dtype=np.int32)
    for k in range(count):
        links[k, 0], links[k, 1] = k - 1, k + 1
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
        if rights.size > 0:
            rights[done], merges[done, 0], merges[done, 1] = firsts[right], least[1], level
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
    lowest, node = least[1], 1
    while node < blocks:
        node *= 2
        if least[node] != lowest:
            node += 1
    left = (node - blocks) * BLOCK
    while increases[left] != lowest:
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
        increases[left] = increase(sums[left], sizes[left], sums[after], sizes[after])
    block = left // BLOCK
    if before >= 0:
        increases[before] = increase(sums[before], sizes[before], sums[left], sizes[left])
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
