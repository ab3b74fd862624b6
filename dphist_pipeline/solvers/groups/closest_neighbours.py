"""Merges neighbours on a line of cells, the closest pair first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compiled
from dphist_pipeline.solvers.groups._window_merges import FEW, Merges, Window, increase, merge_few, merge_many
from dphist_pipeline.solvers.groups.segmentation import middling_value

# The limits of the sweeps, in variances of a cell: windows stay short. The last one is fixed, see below.
LIMITS = (0.3, 0.7, 1.2, 2.0)
Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
Places = NDArray[np.int32]


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
    done = sums.size - left
    # Sorted by the highest increase so far in their window, the merges come in the order of the whole line.
    order = np.argsort(merges.levels[:done], kind="stable")
    # How the stages' criterion has changed after 0, 1, ... merges.
    changes = np.cumsum(np.append(0.0, merges.increases[order] - price))
    first = np.ones(sums.size, dtype=np.bool_)
    first[merges.rights[order[: changes.argmin()]]] = False
    borders = np.cumsum(np.append(0.0, sizes[:-1])).astype(np.int64)
    return borders[first]


@compiled
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
    """Merges the closest pair until no pair costs less than `limit`, window by window.

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

    Returns:
        How many buckets are left.
    """
    n = sums.size
    for left in range(n - 1):
        costs[left] = increase(sums[left], sizes[left], sums[left + 1], sizes[left + 1])
    costs[n - 1] = costs[n] = np.inf
    found, kept, bucket, room = 0, 0, 0, 2 * FEW
    window = Window(np.empty(room), np.empty(room), np.empty(room), np.empty(room, dtype=np.int32))
    while bucket < n:
        if costs[bucket] >= limit:
            to_sums[kept], to_sizes[kept] = sums[bucket], sizes[bucket]
            kept, bucket = kept + 1, bucket + 1
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
                left, drawn_in = merge_few(window, high - low, limit, beside, merges, start - kept)
            else:
                left, drawn_in = merge_many(window, high - low, limit, beside, merges, start - kept)
            # A window grows by half of its length, so that few buckets are merged again often.
            more = max((end - start) // 2, 1)
            if drawn_in == 0:
                break
            if drawn_in > 0:
                end = _window_end(costs, min(end + more, n), n, limit)
                continue
            wanted = max(start - more, 0)
            while found > 0 and windows[found - 1, 1] >= wanted:
                found -= 1
                start, kept = windows[found, 0], windows[found, 2]
            if wanted < start:
                start, kept = wanted, kept - (start - wanted)
        windows[found, 0], windows[found, 1], windows[found, 2] = start, end, kept
        found += 1
        for k in range(start - low, left - (high - end)):
            to_sums[kept], to_sizes[kept] = window.sums[k], window.sizes[k]
            kept += 1
        bucket = end
    return kept


@compiled
def _window_end(costs: Reals, end: int, n: int, limit: float) -> int:
    """The first bucket from `end` on that is not near the bucket before or after it."""
    while end < n and (costs[end - 1] < limit or costs[end] < limit):
        end += 1
    return end
