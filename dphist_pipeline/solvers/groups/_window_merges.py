"""Merges the buckets of one window, the closest pair first: by looking at every pair, or by a tournament."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compiled

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


@compiled
def increase(left_sum: float, left_size: float, right_sum: float, right_size: float) -> float:
    """By how much the squared error grows: n1 · n2 / (n1 + n2) · (mean1 - mean2)², with a single division.

    Args:
        left_sum, left_size, right_sum, right_size: sums in records, and cells, of two neighbouring buckets.
    """
    apart = left_sum * right_size - right_sum * left_size
    return apart * apart / (left_size * right_size * (left_size + right_size))


@compiled
def merge_few(
    window: Window, count: int, limit: float, beside: tuple[bool, bool], merges: Merges, done: int
) -> tuple[int, int]:
    """Merges the closest pair of a window until none costs less than `limit`, looking at every pair for each merge.

    Args:
        window: the buckets; overwritten.
        count: of buckets.
        limit: records squared.
        beside: whether the first and the last bucket lie beside the window.
        merges: every merge is written here, from place `done` on.
        done: the first free place in `merges`.

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
        merges.rights[done], merges.increases[done], merges.levels[done] = places[left + 1], least, level
        done += 1
        sums[left] += sums[left + 1]
        sizes[left] += sizes[left + 1]
        count -= 1
        for k in range(left + 1, count):
            sums[k], sizes[k], costs[k], places[k] = sums[k + 1], sizes[k + 1], costs[k + 1], places[k + 1]
        if left + 1 < count:
            costs[left] = increase(sums[left], sizes[left], sums[left + 1], sizes[left + 1])
        if left > 0:
            costs[left - 1] = increase(sums[left - 1], sizes[left - 1], sums[left], sizes[left])


@compiled
def merge_many(
    window: Window, count: int, limit: float, beside: tuple[bool, bool], merges: Merges, done: int
) -> tuple[int, int]:
    """As `merge_few`, by a tournament of pairs; O(log count) a merge.

    A pair is known by its left bucket. Node v of the tournament holds the least cost below it, its children are 2v and
    2v + 1, and the root is node 1. A pair never changes its place, so the leftmost of equal pairs is found by going
    left.

    Args:
        window: the buckets; overwritten.
        count: of buckets.
        limit: records squared.
        beside: whether the first and the last bucket lie beside the window.
        merges: every merge is written here, from place `done` on.
        done: the first free place in `merges`.

    Returns:
        See `merge_few`.
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
        merges.rights[done], merges.increases[done], merges.levels[done] = places[right], tree[1], level
        done, left_over = done + 1, left_over - 1
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
    kept, bucket = 0, 0
    while bucket < count:
        sums[kept], sizes[kept] = sums[bucket], sizes[bucket]
        kept, bucket = kept + 1, after[bucket]
    return left_over, 0


@compiled
def _set_cost(tree: Reals, node: int, cost: float) -> None:
    """Writes the cost of a pair, and the least costs of the nodes above it as far as they change."""
    while node > 0 and tree[node] != cost:
        tree[node] = cost
        node //= 2
        cost = min(tree[2 * node], tree[2 * node + 1])
