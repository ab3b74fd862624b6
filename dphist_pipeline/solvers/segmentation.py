"""Optimal splits of a line of cells into buckets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def v_optimal(values: Reals, price_per_bucket: float) -> Numbers:
    """Finds the cheapest split of a line of cells into buckets.

    The cost of a bucket is its squared error around its mean plus `price_per_bucket`. Exact, over every number of
    buckets at once. Functional pruning (Maidstone, Hocking, Rigaill, Fearnhead 2017): a last cut is kept only for the
    bucket means at which it is still the best. Near-linear in practice, O(n) memory. Of equally cheap splits, the one
    with the earliest last cuts.

    Args:
        values: one number per cell, shape (n,), n >= 1.
        price_per_bucket: at least 0, in records squared.

    Returns:
        Bucket number per cell, shape (n,), starting at 0 and never falling.
    """
    cuts = _last_cuts(np.ascontiguousarray(values, dtype=np.float64), float(price_per_bucket))
    starts = []
    end = values.size
    while end > 0:
        end = int(cuts[end])
        starts.append(end)
    first = np.zeros(values.size, dtype=np.int64)
    first[starts] = 1
    return np.cumsum(first) - 1


def bucket_means(values: Reals, buckets: Numbers) -> Reals:
    """The mean of each cell's bucket, shape (n,); any grouping of cells, numbered from 0."""
    sizes = np.bincount(buckets)
    # Centred first, so that a large common part does not eat the digits of the rest.
    centre = float(np.median(values))
    means: Reals = centre + np.bincount(buckets, weights=values - centre) / sizes
    return means[buckets]


@compiled
def _last_cuts(values: Reals, price: float) -> Numbers:
    """For each prefix, where its last bucket starts in the cheapest split; shape (n + 1,).

    Pieces cover the possible means of the last bucket from left to right. A piece says: for means in [left, right], the
    cheapest last bucket starts at `start`, and costs base + size · (mean - centre)². Sums of squares are kept around
    the bucket's own mean (Welford), so nothing cancels.
    """
    n = values.size
    cuts = np.zeros(n + 1, dtype=np.int64)
    room = 64
    left, right, base, centre = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    size, start = np.empty(room), np.empty(room, dtype=np.int64)
    new_left, new_right, new_base, new_centre = np.empty(room), np.empty(room), np.empty(room), np.empty(room)
    new_size, new_start = np.empty(room), np.empty(room, dtype=np.int64)
    lowest, highest = values.min(), values.max()
    left[0], right[0], base[0], centre[0], size[0], start[0] = lowest, highest, price, 0.0, 0.0, 0
    pieces = 1
    for t in range(n):
        value = values[t]
        best, best_start = np.inf, 0
        for p in range(pieces):
            step = value - centre[p]
            size[p] += 1.0
            centre[p] += step / size[p]
            base[p] += step * (value - centre[p])
            off = max(left[p] - centre[p], 0.0, centre[p] - right[p])
            cost = base[p] + size[p] * off * off
            if cost < best or (cost == best and start[p] < best_start):
                best, best_start = cost, start[p]
        cuts[t + 1] = best_start
        if 2 * pieces + 1 > room:
            room *= 2
            left, right, base = _grown(left, room), _grown(right, room), _grown(base, room)
            centre, size, start = _grown(centre, room), _grown(size, room), _grown(start, room)
            new_left, new_right, new_base = np.empty(room), np.empty(room), np.empty(room)
            new_centre, new_size, new_start = np.empty(room), np.empty(room), np.empty(room, dtype=np.int64)
        kept = 0
        opened = best + price
        edge = lowest  # means up to here are covered
        for p in range(pieces):
            slack = opened - base[p]
            if slack < 0.0:
                continue
            reach = np.sqrt(slack / size[p])
            low, high = max(left[p], centre[p] - reach), min(right[p], centre[p] + reach)
            if low > high:
                continue
            if low > edge:
                new_left[kept], new_right[kept], new_start[kept] = edge, low, t + 1
                new_base[kept], new_centre[kept], new_size[kept] = opened, 0.0, 0.0
                kept += 1
            new_left[kept], new_right[kept], new_start[kept] = low, high, start[p]
            new_base[kept], new_centre[kept], new_size[kept] = base[p], centre[p], size[p]
            kept += 1
            edge = high
        if edge < highest or kept == 0:
            new_left[kept], new_right[kept], new_start[kept] = edge, highest, t + 1
            new_base[kept], new_centre[kept], new_size[kept] = opened, 0.0, 0.0
            kept += 1
        left, new_left = new_left, left
        right, new_right = new_right, right
        base, new_base = new_base, base
        centre, new_centre = new_centre, centre
        size, new_size = new_size, size
        start, new_start = new_start, start
        pieces = kept
    return cuts


@compiled
def _grown(array, room):  # type: ignore[no-untyped-def]
    larger = np.empty(room, dtype=array.dtype)
    larger[: array.size] = array
    return larger
