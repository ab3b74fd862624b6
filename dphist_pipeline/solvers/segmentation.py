"""Optimal splits of a line of cells into buckets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

ROOM = 64  # pieces at first
Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def v_optimal(values: Reals, price_per_bucket: float) -> Numbers:
    """Finds the cheapest split of a line of cells into buckets.

    The cost of a bucket is its squared error around its mean plus `price_per_bucket`. Exact, over every number of
    buckets at once. Functional pruning (Maidstone, Hocking, Rigaill, Fearnhead 2017): a last cut is kept only for the
    bucket means at which it is still the best. Near-linear in practice, O(n) memory. Equal neighbours are never parted:
    the cost is concave in how many of them the left bucket holds, so least where it holds none or all. Of equally cheap
    splits, the one with the earliest last cuts, as far as rounding tells them apart.

    Args:
        values: one number per cell, shape (n,), n >= 1.
        price_per_bucket: at least 0, in records squared.

    Returns:
        Bucket number per cell, shape (n,), starting at 0 and never falling.
    """
    runs, weights, ends = runs_of(centred(values))
    price = float(price_per_bucket)
    first = cheapest_split(runs, weights, price) if price > 0.0 else np.ones(runs.size, dtype=np.bool_)
    buckets: Numbers = numbered(first, ends)
    return buckets


def bucket_means(values: Reals, buckets: Numbers) -> Reals:
    """The mean of each cell's bucket, shape (n,); any grouping of cells, numbered from 0."""
    sizes = np.bincount(buckets)
    # Centred first, so that a large common part does not eat the digits of the rest.
    centre = float(np.median(values))
    means: Reals = centre + np.bincount(buckets, weights=values - centre) / sizes
    return means[buckets]


def centred(values: Reals) -> Reals:
    """The values less one of them that lies amid the others, so that a large common part does not eat their digits."""
    line = np.ascontiguousarray(values, dtype=np.float64)
    some = line[:: line.size // 1024 + 1]
    away: Reals = line - np.partition(some, some.size // 2)[some.size // 2]
    return away


@compiled
def runs_of(values):  # type: ignore[no-untyped-def]
    """Equal neighbours as one: the value and length of each run, and the cell after it."""
    n = values.size
    runs, weights, ends = np.empty(n), np.empty(n), np.empty(n, dtype=np.int32)
    run, before = 0, values[0]
    for cell in range(n):
        # No branch to guess: what is written is overwritten until the run has ended.
        value = values[cell]
        run += value != before
        runs[run], ends[run], before = value, cell + 1, value
    end = 0
    for r in range(run + 1):
        weights[r], end = ends[r] - end, ends[r]
    return runs[: run + 1], weights[: run + 1], ends[: run + 1]


@compiled
def numbered(first_runs, ends):  # type: ignore[no-untyped-def]
    """Bucket number of each cell, given which runs are the first of theirs."""
    buckets = np.empty(ends[-1], dtype=np.int64)
    number, cell = -1, 0
    for run in range(ends.size):
        number += first_runs[run]
        while cell < ends[run]:
            buckets[cell] = number
            cell += 1
    return buckets


@compiled
def cheapest_split(values, weights, price):  # type: ignore[no-untyped-def]
    """Which values are the first of their bucket in the cheapest split; neighbours differ, `price` is above 0.

    Pieces lie from left to right along the possible means of the last bucket. A piece says: for means in [left, right],
    the cheapest last bucket starts at `start`, and costs base + size · (mean - centre)². Sums of squares are kept
    around the bucket's own mean (Welford), and costs are told relative to the cheapest split up to the value before, so
    nothing cancels and nothing grows.

    Each step cuts the pieces back to where they cost at most a bucket more than the cheapest, fills the holes with the
    bucket that starts at the value, and adds the value to come, all at once, from one half of `pieces` to the other.

    Not every hole is filled. A value next to an optimal cut is nearer to its own bucket's mean than to the other's, or
    it would change sides: so a cut is one upwards or one downwards, as the two values beside it are, and a new bucket
    is of use on one side of the mean before only, further from it than the value before.
    """
    n = values.size
    cuts = np.empty(n, dtype=np.int32)
    room = ROOM
    pieces = np.empty((2, room, 6))
    now, count = 0, 0
    best, start, mean = price, 0, values[0]
    before, before_mean = values[0], values[0]
    for place in range(n):
        cuts[place] = start
        value, weight = values[place], weights[place]
        to_come, weight_to_come = value, weight
        if place + 1 < n:
            to_come, weight_to_come = values[place + 1], weights[place + 1]
        ceiling = price + best
        low, high = 0.0, -1.0
        reach = np.sqrt(best / weight)  # of a bucket that starts with the value, for it costs `price` at best
        if before < value and before_mean < value:
            low, high = max(value - reach, 2.0 * before - before_mean), value + reach
        elif before > value and before_mean > value:
            low, high = value - reach, min(value + reach, 2.0 * before - before_mean)
        before, before_mean = value, mean
        # One bucket more, of the value to come alone.
        next_best, next_start, next_mean = price, place + 1, to_come
        kept, p = 0, 0
        while True:
            if low < high and (p == count or pieces[now, p, 0] > low):
                left, right = low, high
                if p < count:
                    right = min(high, pieces[now, p, 0])
                low = right
                base, centre, size, first = price, value, weight, float(place)
            elif p < count:
                left, right = pieces[now, p, 0], pieces[now, p, 1]
                base, centre = pieces[now, p, 2], pieces[now, p, 3]
                size, first = pieces[now, p, 4], pieces[now, p, 5]
                p += 1
                low = max(low, right)
                slack = ceiling - base
                off_left, off_right = centre - left, right - centre
                beyond_left, beyond_right = size * off_left * off_left > slack, size * off_right * off_right > slack
                if beyond_left or beyond_right:
                    if slack < 0.0 or (beyond_left and off_left < 0.0) or (beyond_right and off_right < 0.0):
                        continue
                    far = np.sqrt(slack / size)
                    if beyond_left:
                        left = centre - far
                    if beyond_right:
                        right = centre + far
            elif kept > 0:
                break
            else:  # the first value, or one where rounding left nothing
                low, high = value - reach, np.nextafter(value + reach, np.inf)
                continue
            size += weight_to_come
            step = to_come - centre
            centre += step * (weight_to_come / size)
            base += weight_to_come * step * (to_come - centre) - best
            pieces[1 - now, kept, 0], pieces[1 - now, kept, 1] = left, right
            pieces[1 - now, kept, 2], pieces[1 - now, kept, 3] = base, centre
            pieces[1 - now, kept, 4], pieces[1 - now, kept, 5] = size, first
            kept += 1
            near = min(max(centre, left), right)
            cost = base + size * (near - centre) * (near - centre)
            if cost < next_best or (cost == next_best and first < next_start):
                next_best, next_start, next_mean = cost, int(first), near
        now, count = 1 - now, kept
        if 2 * count + 2 > room:
            pieces, room = _grown(pieces), 2 * room
        best, start, mean = next_best, next_start, next_mean
    split = np.zeros(n, dtype=np.bool_)
    place = n
    while place > 0:
        place = cuts[place - 1]
        split[place] = True
    return split


@compiled
def _grown(pieces):  # type: ignore[no-untyped-def]
    larger = np.empty((2, 2 * pieces.shape[1], 6))
    larger[:, : pieces.shape[1]] = pieces
    return larger
