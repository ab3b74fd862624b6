"""Optimal splits of a line of cells into a given number of buckets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled
from dphist_pipeline.solvers.segmentation import centred, numbered, runs_of

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def v_optimal_of(values: Reals, buckets: int) -> Numbers:
    """Finds the split of a line of cells into exactly so many buckets that has the least squared error.

    Exact. Layer by layer, a bucket more each, with functional pruning (Rigaill 2015): a last cut is kept only for the
    bucket means at which it is still the best. Near-linear a bucket in practice; 4 bytes of memory a bucket and run of
    equal cells. Equal neighbours are parted only where they form fewer runs than buckets, and then the leftmost.

    Args:
        values: one number per cell, shape (n,), n >= 1.
        buckets: from 1 to n.

    Returns:
        Bucket number per cell, shape (n,), starting at 0 and never falling.

    Raises:
        ValueError: fewer buckets than 1 or more than cells.
    """
    _check(values, buckets)
    runs, weights, ends = runs_of(centred(values))
    if buckets < runs.size:
        _, cuts = _layers(runs, weights, buckets, True)
        numbers: Numbers = numbered(_firsts(cuts, runs.size), ends)
        return numbers
    first = np.zeros(values.size, dtype=np.int64)
    first[0] = 1
    first[ends[:-1]] = 1
    first[np.flatnonzero(first == 0)[: buckets - runs.size]] = 1
    return np.cumsum(first) - 1


def least_errors(values: Reals, buckets: int) -> Reals:
    """The least squared error of a split into 1, 2, ... `buckets` buckets, shape (buckets,); O(n) memory.

    Raises:
        ValueError: fewer buckets than 1 or more than cells.
    """
    _check(values, buckets)
    runs, weights, _ = runs_of(centred(values))
    errors = np.zeros(buckets)
    layers = min(buckets, runs.size - 1)
    if layers > 0:
        errors[:layers] = _layers(runs, weights, layers, False)[0]
    return errors


def _check(values: Reals, buckets: int) -> None:
    if not 1 <= buckets <= values.size:
        raise ValueError(f"{values.size} cells cannot be split into {buckets} buckets: ask for 1 to {values.size}.")


def _firsts(cuts: NDArray[np.int32], runs: int) -> NDArray[np.bool_]:
    first = np.zeros(runs, dtype=np.bool_)
    end = runs
    for layer in cuts[::-1]:
        end = int(layer[end])
        first[end] = True
    return first


@compiled
def _layers(values, weights, buckets, keep):  # type: ignore[no-untyped-def]
    """For each number of buckets, the least error of the whole, and of each prefix where its last bucket starts.

    There are more values than buckets, and neighbours differ. The cuts are of one row only where they are not kept.
    """
    n = values.size
    errors, cuts = np.empty(buckets), np.zeros((buckets if keep else 1, n + 1), dtype=np.int32)
    costs, means, next_costs, next_means = np.zeros(n + 1), np.empty(n + 1), np.empty(n + 1), np.empty(n + 1)
    size, mean, cost = 0.0, 0.0, 0.0
    for place in range(n):
        size += weights[place]
        step = values[place] - mean
        mean += step * weights[place] / size
        cost += weights[place] * step * (values[place] - mean)
        costs[place + 1], means[place + 1] = cost, mean
    errors[0] = costs[n]
    for layer in range(1, buckets):
        _one_more(values, weights, layer, costs, means, next_costs, next_means, cuts[layer if keep else 0])
        costs, next_costs, means, next_means = next_costs, costs, next_means, means
        errors[layer] = costs[n]
    return errors, cuts


@compiled
def _one_more(values, weights, layer, costs, means, next_costs, next_means, cuts):  # type: ignore[no-untyped-def]
    """From the best splits of every prefix into `layer` buckets, with the last bucket's mean, those into one more.

    Pieces cover the means of the last bucket at which a cut is of use, from left to right. A piece says: for means in
    [left, right], the cheapest last bucket starts at `start`, and costs base + size · (mean - centre)². Sums of squares
    are kept around the bucket's own mean (Welford), so nothing cancels: costs of a layer may lie far above the next's.

    A value next to an optimal cut is nearer to its own bucket's mean than to the other's, or it would change sides: so
    a cut is one upwards or one downwards, as its two values are, and a new bucket is begun on that side only.
    """
    room = 64
    pieces, others = np.empty((room, 6)), np.empty((room, 6))  # left, right, base, centre, size, start
    count = 0
    for place in range(layer, values.size):
        value, weight, entry, ceiling = values[place], weights[place], costs[place], costs[place + 1]
        best, start, mean = entry, place, value  # a bucket of this value alone
        for p in range(count):
            size = pieces[p, 4] + weight
            step = value - pieces[p, 3]
            centre = pieces[p, 3] + step * (weight / size)
            base = pieces[p, 2] + weight * step * (value - centre)
            pieces[p, 2], pieces[p, 3], pieces[p, 4] = base, centre, size
            near = min(max(centre, pieces[p, 0]), pieces[p, 1])
            cost = base + size * (near - centre) * (near - centre)
            if cost < best or (cost == best and pieces[p, 5] < start):
                best, start, mean = cost, int(pieces[p, 5]), near
        next_costs[place + 1], next_means[place + 1], cuts[place + 1] = best, mean, start
        # Where a bucket that starts with this value is no worse than one that starts with the next.
        reach = np.sqrt(max(ceiling - entry, 0.0) / weight)
        low, high = value - reach, value + reach
        old = means[place]
        if values[place - 1] < value and old < value:
            low = max(low, 2.0 * values[place - 1] - old)
        elif values[place - 1] > value and old > value:
            high = min(high, 2.0 * values[place - 1] - old)
        else:
            high = low - 1.0
        if 2 * count + 3 > room:
            room *= 2
            pieces, others = _grown(pieces, room), _grown(others, room)
        kept = 0
        for p in range(count):
            left, right = pieces[p, 0], pieces[p, 1]
            if low <= high:
                if left > low:
                    kept = _begun(others, kept, low, min(left, high), entry, value, weight, place)
                low = max(low, right)
            slack = ceiling - pieces[p, 2]
            if slack < 0.0:
                continue
            reach = np.sqrt(slack / pieces[p, 4])
            left, right = max(left, pieces[p, 3] - reach), min(right, pieces[p, 3] + reach)
            if left <= right:
                others[kept, 0], others[kept, 1] = left, right
                for column in range(2, 6):
                    others[kept, column] = pieces[p, column]
                kept += 1
        if low <= high:
            kept = _begun(others, kept, low, high, entry, value, weight, place)
        elif kept == 0:
            reach = np.sqrt(max(ceiling - entry, 0.0) / weight)
            kept = _begun(others, kept, value - reach, value + reach, entry, value, weight, place)
        pieces, others = others, pieces
        count = kept


@compiled
def _begun(pieces, kept, low, high, entry, value, weight, start):  # type: ignore[no-untyped-def]
    """Adds a piece of the bucket that starts with `value`."""
    pieces[kept, 0], pieces[kept, 1], pieces[kept, 2] = low, high, entry
    pieces[kept, 3], pieces[kept, 4], pieces[kept, 5] = value, weight, start
    return kept + 1


@compiled
def _grown(pieces, room):  # type: ignore[no-untyped-def]
    larger = np.empty((room, 6))
    larger[: pieces.shape[0]] = pieces
    return larger
