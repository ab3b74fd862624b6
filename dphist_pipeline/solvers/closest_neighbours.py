"""Merging neighbours on a line, the closest pair first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import at_once, compiled
from dphist_pipeline.solvers.segmentation import centre_of, numbers_within
from dphist_pipeline.solvers.value_order import stable_order
from dphist_pipeline.solvers.window_merges import increase, merged_few, merged_many

LONG = 65_536  # cells that are worth a second thread; three at least
NEAR = 1_024  # cells among which the two halves look for one to share
SMALL = 64  # buckets in a window that is merged by looking at every pair
SHARE = 0.6
Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
Borders = NDArray[np.int32]


def closest_neighbours(values: Reals, cell_variance: float) -> Numbers:
    """Merges the adjacent buckets whose squared error grows least, until one is left, and gives the best stage.

    Starts with a bucket a cell. Of equally close pairs, the leftmost is merged; in whole numbers that are not huge
    equal pairs compare as equal. The best stage has the least SSE + (2 · buckets - cells) · cell_variance, of equal
    ones the one with the most buckets. O(n log n) time, O(n) memory.

    As long as a pair costs less than two variances every merge makes the stage better, so only the outcome counts, and
    merges far apart may change places: sweeps with a rising limit merge within small windows, both halves of a long
    line at once. From there on the order counts, up to four variances. No merging of L buckets, however done, pays
    where every pair costs more than that: the pairs 1-2, 3-4, ... alone cost 4 · (L // 2) variances, and L - 1 buckets
    less save 2 · (L - 1) of them.

    Args:
        values: one number per cell, shape (n,), n >= 1.
        cell_variance: of the noise in a cell, at least 0.

    Returns:
        Bucket number per cell, shape (n,), starting at 0 and never falling.
    """
    if cell_variance == 0.0:  # no merge makes a stage better
        return np.arange(values.size)
    price, centre = 2.0 * float(cell_variance), centre_of(values)
    shared = _lone_cell(values) if values.size >= LONG else 0
    if shared > 0:
        left, right = at_once(
            lambda: _merged(values[: shared + 1], centre, price), lambda: _merged(values[shared:], centre, price)
        )
        if not left.last_drawn and not right.first_drawn:
            taken = _best_stage(left.levels, left.changes, right.levels, right.changes)
            before, after = at_once(lambda: _borders(left, taken[0]), lambda: _borders(right, taken[1]))
            # The shared cell is the last bucket of the left half and lies in the first one of the right half.
            return numbers_within(np.append(before[:-1], after[1:] + np.int32(shared)))
    whole, none = _merged(values, centre, price), np.empty(0)
    return numbers_within(_borders(whole, _best_stage(whole.levels, whole.changes, none, none)[0]))


class _Merged(NamedTuple):
    """Buckets before the merges whose order counts, and these merges in their order."""

    sizes: Reals
    rights: Borders  # the bucket that is merged into the one on its left
    levels: Reals  # the highest increase so far in the merge's window
    changes: Reals  # of the stage
    first_drawn: bool  # whether the first bucket was ever drawn into a window, and the last one
    last_drawn: bool


def _merged(values: Reals, centre: float, price: float) -> _Merged:
    """All merges of a line, or of a half; the halves share a cell.

    Where neither ever draws it in, neither feels the other.
    """
    # Large arrays are made by NumPy, not in compiled code: it asks the system for large pages.
    sums, sizes = np.subtract(values, centre, out=np.empty(values.size)), np.empty(values.size)
    runs = _sum_runs(sums, sizes)  # merged first of all, at no cost
    sums, sizes = sums[:runs], sizes[:runs]
    other_sums, other_sizes, costs = np.empty(runs), np.empty(runs), np.empty(runs + 1)
    windows = np.empty((runs // 2 + 1, 3), dtype=np.int32)
    no_rights, no_merges = np.empty(0, dtype=np.int32), np.empty((0, 2))
    limit, drawn = 0.0, np.zeros(2, dtype=np.bool_)
    while limit < price:
        limit = _next_limit(sums, sizes, limit, price)
        left, _ = _sweep(sums, sizes, other_sums, other_sizes, costs, windows, no_rights, no_merges, limit, drawn)
        sums, other_sums, sizes, other_sizes = other_sums[:left], sums, other_sizes[:left], sizes
    rights, merges = np.empty(sums.size, dtype=np.int32), np.empty((sums.size, 2))
    _, done = _sweep(sums, sizes, other_sums, other_sizes, costs, windows, rights, merges, 2.0 * price, drawn)
    increases, levels = np.ascontiguousarray(merges[:done].T)
    # The merges in the order of the whole line: of equally high ones, window after window.
    order = stable_order(levels)
    return _Merged(sizes, rights[order], levels[order], increases[order] - price, bool(drawn[0]), bool(drawn[1]))


def _borders(merged: _Merged, taken: int) -> Borders:
    """Where the buckets start after so many merges, from 0 on, and where the last one ends."""
    first = np.ones(merged.sizes.size + 1, dtype=np.bool_)
    first[merged.rights[:taken]] = False
    borders = np.append(0.0, np.cumsum(merged.sizes))[first]
    return borders.astype(np.int32)


def _lone_cell(values: Reals) -> int:
    """Of the cells around the middle, the one that is unlike both its neighbours most; 0 where there is none."""
    start = max(values.size // 2 - NEAR, 0)
    apart = np.abs(np.diff(values[start : values.size // 2 + NEAR]))
    least = np.minimum(apart[:-1], apart[1:])
    lone = int(least.argmax())
    return start + lone + 1 if least[lone] > 0.0 else 0


@compiled
def _best_stage(left_levels, left_changes, right_levels, right_changes):  # type: ignore[no-untyped-def]
    """How many of the merges of either half come before the best stage: lower ones first, of equal ones the left."""
    lefts, rights, left, right = left_levels.size, right_levels.size, 0, 0
    change, best, taken = 0.0, 0.0, (0, 0)
    while left < lefts or right < rights:
        # From one stage to the next: nothing large is ever subtracted.
        if right == rights or (left < lefts and left_levels[left] <= right_levels[right]):
            change += left_changes[left]
            left += 1
        else:
            change += right_changes[right]
            right += 1
        if change < best:
            best, taken = change, (left, right)
    return taken


@compiled
def _sum_runs(line, sizes):  # type: ignore[no-untyped-def]
    """Moves the sum of each run of equal cells to the front, and writes its size; how many runs there are."""
    run, before, start = 0, line[0], 0
    for cell in range(line.size):
        # No branch to guess: what is written is overwritten until the run has ended.
        value = line[cell]
        other = value != before
        run += other
        start = cell if other else start
        sizes[run] = cell + 1 - start
        line[run], before = value * sizes[run], value
    return run + 1


def _next_limit(sums: Reals, sizes: Reals, limit: float, price: float) -> float:
    """A limit that a share of the pairs, those in a sample, do not reach; at most `price`."""
    some = np.arange(0, sums.size - 1, sums.size // 1024 + 1)
    if some.size == 0:
        return price
    costs = increase(sums[some], sizes[some], sums[some + 1], sizes[some + 1])
    rank = int(SHARE * some.size)
    # A little more, so that equal pairs go together.
    return float(min(price, max(np.partition(costs, rank)[rank] * 1.001, 1.25 * limit, price / 64.0)))


@compiled
def _sweep(sums, sizes, to_sums, to_sizes, costs, windows, rights, merges, limit, drawn):  # type: ignore[no-untyped-def]
    """Merges the closest pair until none is below `limit`: how many buckets are left, and how many merges were made.

    A window is a stretch of buckets whose pairs interact. The bucket beside it touches no pair below the limit, and
    what happens in the window never draws it in: so what happens beyond cannot be felt in the window, nor the reverse.
    Where it is drawn in after all the window is widened and merged anew. `windows` keeps of each the first bucket, the
    one after the last, and the first in the result.

    Writes the buckets that are left, and of every merge, window after window: the bucket that was merged into the one
    on its left, the increase, and the highest increase in the window so far, by which the merges of all windows come in
    the order of the whole line. And whether the first bucket lies in a window, and the last one.
    """
    n = sums.size
    for left in range(n - 1):
        costs[left] = increase(sums[left], sizes[left], sums[left + 1], sizes[left + 1])
    costs[n - 1] = costs[n] = np.inf
    found, kept, bucket = 0, 0, 0
    some_sums, some_sizes, some_costs, firsts = _room(SMALL)
    while bucket < n:
        if costs[bucket] >= limit:
            to_sums[kept], to_sizes[kept] = sums[bucket], sizes[bucket]
            kept += 1
            bucket += 1
            continue
        if costs[bucket + 1] >= limit and costs[bucket + 2] >= limit:  # a pair alone
            total, size = sums[bucket] + sums[bucket + 1], sizes[bucket] + sizes[bucket + 1]
            if (bucket == 0 or increase(sums[bucket - 1], sizes[bucket - 1], total, size) >= limit) and (
                bucket + 2 == n or increase(total, size, sums[bucket + 2], sizes[bucket + 2]) >= limit
            ):
                done = bucket - kept
                if rights.size > 0:
                    rights[done], merges[done, 0], merges[done, 1] = bucket + 1, costs[bucket], costs[bucket]
                windows[found, 0], windows[found, 1], windows[found, 2] = bucket, bucket + 2, kept
                to_sums[kept], to_sizes[kept] = total, size
                found, kept, bucket = found + 1, kept + 1, bucket + 2
                continue
        start, end = bucket, _window_end(costs, bucket + 2, n, limit)
        while True:
            low, high = max(start - 1, 0), min(end + 1, n)
            if high - low > some_sums.size:
                some_sums, some_sizes, some_costs, firsts = _room(high - low)
            for k in range(high - low):
                some_sums[k], some_sizes[k], some_costs[k] = sums[low + k], sizes[low + k], costs[low + k]
                firsts[k] = low + k
            done = start - kept
            if high - low <= SMALL:
                left, beyond = merged_few(
                    some_sums,
                    some_sizes,
                    some_costs,
                    firsts,
                    high - low,
                    limit,
                    start > 0,
                    end < n,
                    rights,
                    merges,
                    done,
                )
            else:
                left, beyond = merged_many(
                    some_sums,
                    some_sizes,
                    some_costs,
                    firsts,
                    high - low,
                    limit,
                    start > 0,
                    end < n,
                    rights,
                    merges,
                    done,
                )
            if beyond == 0:
                break
            # A large window grows by half, so that no bucket is merged anew very often.
            more = 1 if end - start <= SMALL else (end - start) // 2
            if beyond > 0:
                end = _window_end(costs, min(end + more, n), n, limit)
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
    drawn[0] |= found > 0 and windows[0, 0] == 0
    drawn[1] |= found > 0 and windows[found - 1, 1] == n
    return kept, n - kept


@compiled
def _room(size):  # type: ignore[no-untyped-def]
    return np.empty(size), np.empty(size), np.empty(size), np.empty(size, dtype=np.int32)


@compiled
def _window_end(costs, end, n, limit):  # type: ignore[no-untyped-def]
    """The first bucket from `end` on that neither of its pairs draws in."""
    while end < n and (costs[end - 1] < limit or costs[end] < limit):
        end += 1
    return end
