"""The cheapest split of a line of cells into buckets."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
Parabola = tuple[float, float, float, int]  # the last four columns of a piece

# Columns of a piece: see `_last_starts`.
LEFT, RIGHT, BASE, CENTRE, SIZE, START = range(6)


def v_optimal(values: Reals, price_per_bucket: float) -> Numbers:
    """Finds the cheapest split of a line of cells into buckets.

    The cost of a bucket is its squared error around its mean plus `price_per_bucket`. Exact, over every number of
    buckets at once. Functional pruning (Maidstone, Hocking, Rigaill, Fearnhead 2017): a last cut is kept only for the
    bucket means at which it is still the best. Near-linear in practice, O(n) memory. Equal neighbours stay together:
    the cost is concave in how many of them the left bucket holds, so it is least where it holds none or all. Of equally
    cheap splits, the one with the earliest last cuts, as far as rounding tells them apart.

    Args:
        values: one number per cell, shape (n,), n >= 1.
        price_per_bucket: at least 0, in records squared.

    Returns:
        Bucket number per cell, shape (n,), starting at 0 and never falling.
    """
    line = values - middling_value(values)
    starts = np.flatnonzero(np.diff(line, prepend=np.nan))  # of runs of equal neighbours
    sizes = np.diff(starts, append=line.size)
    if price_per_bucket == 0.0:
        return np.repeat(np.arange(starts.size), sizes)
    return np.repeat(
        group_numbers(_last_starts(line[starts], sizes.astype(np.float64), float(price_per_bucket))), sizes
    )


@compile_function
def group_numbers(last_starts: Numbers) -> Numbers:
    """Group number of every value, from 0 and never falling, given the last group's start of every prefix; shape (n,).

    Args:
        last_starts: shape (n + 1,), entry k for the first k values.
    """
    groups = np.zeros(last_starts.size - 1, dtype=np.int64)
    end = last_starts[groups.size]
    while end > 0:
        groups[end] = 1
        end = last_starts[end]
    for place in range(1, groups.size):
        groups[place] += groups[place - 1]
    return groups


def bucket_means(values: Reals, buckets: Numbers) -> Reals:
    """The mean of each cell's bucket, shape (n,).

    Args:
        values: one number per cell, shape (n,).
        buckets: bucket number of every cell, from 0, in any order, shape (n,).
    """
    sizes = np.bincount(buckets)
    # Centred first, so that a large common part does not eat the digits of the rest.
    centre = float(np.median(values))
    means: Reals = centre + np.bincount(buckets, weights=values - centre) / sizes
    return means[buckets]


def middling_value(values: Reals) -> float:
    """The median of about a thousand of the values: subtracted, it leaves small numbers, which keep their digits.

    Args:
        values: one number per cell, at least one, shape (n,).
    """
    some = values[:: values.size // 1024 + 1]
    return float(np.partition(some, some.size // 2)[some.size // 2])


@compile_function
def _last_starts(values: Reals, sizes: Reals, price: float) -> Numbers:
    """For every prefix of a line of runs, where the last bucket starts in its cheapest split.

    The pieces lie from left to right along the possible means of the last bucket. A piece (left, right, base, centre,
    size, start) says: if the mean is in [left, right], the cheapest last bucket starts at run `start`, and the split
    costs base + size · (mean - centre)². In the gaps between pieces, the cheapest last bucket starts at the newest run.
    Costs are relative to the cheapest split of the runs before, and squares are summed around the bucket's own mean
    (Welford), so no digits cancel.

    Args:
        values: the cells' value in each run, shape (n,); neighbours differ.
        sizes: cells in each run, shape (n,).
        price: of a bucket, above 0.

    Returns:
        Run numbers, shape (n + 1,), entry k for the first k runs.
    """
    last = values.size - 1
    last_starts = np.zeros(values.size + 1, dtype=np.int64)
    room, count, place = 32, 0, 0
    cheapest, start, mean = price, 0, values[0]  # the cheapest last bucket: the split's cost, first run, mean
    before, mean_before, pieces = values[0], values[0], np.empty((0, 6))
    while place < last:
        # The arrays grow out here, for Numba counts references to them wherever they are assigned.
        room *= 2
        pieces, filled = _with_room(pieces, count, room), np.empty((room, 6))
        while place < last and 2 * count + 1 <= room:
            last_starts[place + 1] = start
            value, reach = values[place], np.sqrt(cheapest / sizes[place])  # further off, a new bucket is cheaper
            low, high = value, value
            # A value beside an optimal cut is nearer to its own bucket's mean than to the other one. So a bucket that
            # starts here lies on the far side of the value before, as seen from the mean of that one's bucket.
            if before < value and mean_before < value:
                low, high = max(value - reach, 2.0 * before - mean_before), value + reach
            elif before > value and mean_before > value:
                low, high = value - reach, min(value + reach, 2.0 * before - mean_before)
            before, mean_before = value, mean
            dearest, paid = price + cheapest, cheapest
            while True:
                if count == 0:  # at the first run, or where rounding left nothing
                    low, high = value - reach, np.nextafter(value + reach, np.inf)
                rows = _fill_gaps(pieces, count, filled, low, high, (price, value, sizes[place], place))
                new = (price, values[place + 1], sizes[place + 1], place + 1)
                count, cheapest, start, mean = _extend(filled, rows, pieces, dearest, paid, new)
                if count > 0:
                    break
            place += 1
    last_starts[values.size] = start
    return last_starts


@compile_function
def _with_room(pieces: Reals, count: int, room: int) -> Reals:
    """A larger array that holds the same pieces, shape (room, 6)."""
    larger = np.empty((room, 6))
    larger[:count] = pieces[:count]
    return larger


@compile_function
def _fill_gaps(pieces: Reals, count: int, filled: Reals, low: float, high: float, new: Parabola) -> int:
    """Copies the pieces to `filled`, and puts the new one into gaps, from low to high; gives the number of pieces."""
    rows, edge = 0, low
    for row in range(count + 1):
        left = pieces[row, LEFT] if row < count else np.inf
        if edge < min(left, high):
            filled[rows, LEFT], filled[rows, RIGHT] = edge, min(left, high)
            filled[rows, BASE], filled[rows, CENTRE], filled[rows, SIZE], filled[rows, START] = new
            rows += 1
        if row < count:
            for column in range(6):
                filled[rows, column] = pieces[row, column]
            edge = max(edge, pieces[row, RIGHT])
            rows += 1
    return rows


@compile_function
def _extend(
    filled: Reals, rows: int, pieces: Reals, dearest: float, paid: float, new: Parabola
) -> tuple[int, float, int, float]:
    """Cuts the pieces in `filled` back to where they are cheap enough, adds the next run, and writes what is left.

    Args:
        filled: shape (room, 6), of which the first `rows` are used.
        pieces: shape (room, 6), written.
        dearest: the most that a last bucket may cost before it is cheaper to start a new one.
        paid: the cheapest split so far, which costs are taken relative to.
        new: the bucket that starts with the next run.

    Returns:
        How many pieces are left, and the cheapest split's cost, start of its last bucket, and mean of its last bucket.
    """
    price, value, size, place = new
    count, cheapest, cheapest_start, mean = 0, price, place, value
    for row in range(rows):
        left, right, base = filled[row, LEFT], filled[row, RIGHT], filled[row, BASE]
        centre, weight, start = filled[row, CENTRE], filled[row, SIZE], filled[row, START]
        slack, off_left, off_right = dearest - base, centre - left, right - centre
        beyond_left, beyond_right = weight * off_left * off_left > slack, weight * off_right * off_right > slack
        if slack < 0.0 or (beyond_left and off_left < 0.0) or (beyond_right and off_right < 0.0):
            continue  # all of it is too dear
        if beyond_left or beyond_right:
            reach = np.sqrt(slack / weight)
            left = centre - reach if beyond_left else left
            right = centre + reach if beyond_right else right
        weight += size
        step = value - centre
        centre += step * (size / weight)
        base += size * step * (value - centre) - paid
        nearest = min(max(centre, left), right)
        cost = base + weight * (nearest - centre) * (nearest - centre)
        if cost < cheapest or (cost == cheapest and start < cheapest_start):
            cheapest, cheapest_start, mean = cost, int(start), nearest
        pieces[count, LEFT], pieces[count, RIGHT], pieces[count, BASE] = left, right, base
        pieces[count, CENTRE], pieces[count, SIZE], pieces[count, START] = centre, weight, start
        count += 1
    return count, cheapest, cheapest_start, mean
