"""The cheapest groups of sorted numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def optimal_groups(sorted_values: Reals, price: float) -> Numbers:
    """Finds the cheapest grouping of sorted numbers.

    The cost of a group is its squared error around its mean plus `price` / size. Exact, over every contiguous grouping
    at once. The cost satisfies the quadrangle inequality (squared error on sorted values does, and 1/size is convex),
    so of two starts of the last group the later one, once better, stays better: a queue of starts and a search for
    where each takes over give O(n log n) time, O(n) memory.

    No group of the optimum spans more than 2·sqrt(3·price), or parting with its first or last value would pay; wider
    ones are not looked at. So sums need only be taken within stretches of about that span, each around its own first
    value, and nothing cancels.

    Equal values are one run. The optimum may cut a run (-s, 0, 0, s with s² = 0.9·price is cut in the middle), but few
    of the places in it are of use; `_fewest_before_a_cut` says which and why. The others are passed over.

    Args:
        sorted_values: rising, shape (n,), n >= 1.
        price: above 0, in records squared.

    Returns:
        Group number of each value, shape (n,), starting at 0 and never falling.
    """
    line = np.ascontiguousarray(sorted_values, dtype=np.float64)
    span = 4.0 * float(np.sqrt(price))  # more than 2·sqrt(3·price), to be safe from rounding
    # Large arrays are made here and filled by compiled code: NumPy asks for large pages.
    run_of = np.empty(line.size, dtype=np.int32 if line.size < 2**31 else np.int64)
    runs = np.empty((_number_runs(line, run_of) + 1, 8))
    _sum_runs(line, run_of, runs, span)
    waiting, last_cuts = np.empty((line.size + 2, 7)), np.empty(line.size + 1, dtype=run_of.dtype)
    _find_last_cuts(runs, run_of, span, float(price), waiting, last_cuts)
    groups = np.zeros(line.size, dtype=np.int64)
    _number_groups(groups, last_cuts)
    return groups


# A run is a row: its value and its first place; then the sum and the sum of squares before it within its stretch, and
# by how much its value lies above the stretch's first; then the same three as seen from the stretch before.
VALUE, FIRST, OWN, LONG = 0, 1, 2, 5

# A start of a last group waits as a row: its place, the least cost of all before it, the sum and the sum of squares
# before it within its stretch, its value, its stretch's first value, and the first end at which it is the best.
PLACE, LEAST, TOTAL, SQUARE, LOWEST, ANCHOR, TAKES_OVER = range(7)


@compiled
def _number_runs(values, run_of):  # type: ignore[no-untyped-def]
    """Writes the number of each value's run of equal values; gives how many runs there are."""
    run = 0
    run_of[0] = 0
    for place in range(1, values.size):
        run += values[place] != values[place - 1]
        run_of[place] = run
    return run + 1


@compiled
def _sum_runs(values, run_of, runs, span):  # type: ignore[no-untyped-def]
    """Writes the rows of the runs, and a last one for the end of the line.

    A stretch holds the values within `span` of its first. A group no wider than that ends in the stretch where it
    starts, or in the next one.
    """
    place, anchor, older = 0, values[0], values[0]
    total, square, long_total, long_square = 0.0, 0.0, 0.0, 0.0
    for run in range(runs.shape[0] - 1):
        value, start = values[place], place
        if value - anchor > span:
            anchor, older = value, anchor
            total, square, long_total, long_square = 0.0, 0.0, total, square
        off, long_off = value - anchor, value - older
        runs[run, VALUE], runs[run, FIRST] = value, place
        runs[run, OWN], runs[run, OWN + 1], runs[run, OWN + 2] = total, square, off
        runs[run, LONG], runs[run, LONG + 1], runs[run, LONG + 2] = long_total, long_square, long_off
        while place < values.size and run_of[place] == run:
            place += 1
        size = place - start
        total, square = total + size * off, square + size * off * off
        long_total, long_square = long_total + size * long_off, long_square + size * long_off * long_off
    runs[-1, VALUE], runs[-1, FIRST] = np.inf, values.size


@compiled
def _find_last_cuts(runs, run_of, span, price, waiting, last_cuts):  # type: ignore[no-untyped-def]
    """Writes, for each useful cut and the end of the line, the cut before it in the cheapest grouping.

    Written out in one piece, rows passed by number: calls that take arrays along would cost more than the arithmetic.
    """
    n = run_of.size
    room, head, tail, least = 256, 0, 0, 0.0
    for run in range(runs.shape[0] - 1):
        value, first = runs[run, VALUE], int(runs[run, FIRST])
        size = int(runs[run + 1, FIRST]) - first
        off = runs[run, OWN + 2]
        uncut = (runs[run + 1, VALUE] - value) ** 2 >= price
        part = 0  # how many of the run's values lie before the cut
        while part < size:
            if tail >= room:  # the rows that wait are moved to the front, so that few are ever touched
                for row in range(head, tail):
                    for column in range(7):
                        waiting[row - head, column] = waiting[row, column]
                head, tail = 0, tail - head
                room = max(room, 2 * tail)
            new, start = tail, first + part
            waiting[new, PLACE], waiting[new, LEAST] = start, least
            waiting[new, TOTAL] = runs[run, OWN] + part * off
            waiting[new, SQUARE] = runs[run, OWN + 1] + part * off * off
            waiting[new, LOWEST], waiting[new, ANCHOR] = value, value - off

            # The new start is worse than the last that waits up to the end `worse`, as good or better from `better` on.
            worse, better, step = start, n + 1, 1
            while tail > head:
                end = max(int(waiting[tail - 1, TAKES_OVER]), start + 1)
                if not _is_better(runs, run_of, span, price, waiting, new, tail - 1, end):
                    worse = end
                    break
                tail, better = tail - 1, end
            if tail == head:
                better = start + 1
            elif better <= n:  # steps that double, down from where it is better
                while better - step > worse:
                    if not _is_better(runs, run_of, span, price, waiting, new, tail - 1, better - step):
                        worse = better - step
                        break
                    better, step = better - step, 2 * step
            else:  # or up from where it is worse
                while worse + step <= n:
                    if _is_better(runs, run_of, span, price, waiting, new, tail - 1, worse + step):
                        better = worse + step
                        break
                    worse, step = worse + step, 2 * step
            while tail > head and better - worse > 1:
                end = (worse + better) // 2
                if _is_better(runs, run_of, span, price, waiting, new, tail - 1, end):
                    better = end
                else:
                    worse = end
            if better <= n:
                for column in range(TAKES_OVER):
                    waiting[tail, column] = waiting[new, column]
                waiting[tail, TAKES_OVER] = better
                tail += 1

            # On to the next place in the run where a cut can be needed, or to its end.
            part = size if uncut else part + 1
            while True:
                while tail - head > 1 and waiting[head + 1, TAKES_OVER] <= first + part:
                    head += 1
                if part >= size:
                    break
                base = OWN if value - waiting[head, ANCHOR] <= span else LONG
                others = first - waiting[head, PLACE]
                below = others * runs[run, base + 2] - (runs[run, base] - waiting[head, TOTAL])
                fewest = _fewest_before_a_cut(price, others, below, size)
                if part >= fewest:
                    break
                # Up to where another start is the best.
                part = min(fewest, int(waiting[head + 1, TAKES_OVER]) - first if tail - head > 1 else size)

            end = first + part
            last_cuts[end] = int(waiting[head, PLACE])
            base = OWN if value - waiting[head, ANCHOR] <= span else LONG
            off_start, count = runs[run, base + 2], end - waiting[head, PLACE]
            total = runs[run, base] + part * off_start - waiting[head, TOTAL]
            square = runs[run, base + 1] + part * off_start * off_start - waiting[head, SQUARE]
            least = waiting[head, LEAST] + max(square - total * total / count, 0.0) + price / count


@compiled
def _fewest_before_a_cut(price, others, below, size):  # type: ignore[no-untyped-def]
    """How many of a run's `size` values lie on the left of a cut through it, at least; `size`: no cut is needed.

    Take two groups that meet in the run, k of its values on the left and size - k on the right, with a = `others` more
    values on the left that together lie A = `below` under the run's, and b more that lie B above it. Depending on k,
    the two cost
        α/(a + k) + β/(b + size - k) with α = price - A², β = price - B²,
    and to merge them costs no more than the least of that over all k where α + β + sqrt(α·β) >= 3/4·price. So:
    α <= 0 or β <= 0, then one end of the run is as good a place; α >= 3/4·price, then merging or the upper end is; or
    else sqrt(β/price) is at most `right`, and the cost falls as far as a + k = (a + size + b)·sqrt(α)/(sqrt(α) +
    sqrt(β)), where b is at least 1.
    """
    left = 1.0 - below * below / price
    if others <= 0.0 or left <= 0.0 or left >= 0.75:
        return size
    right = 0.5 * (np.sqrt(3.0 - 3.0 * left) - np.sqrt(left))
    lowest = (others + size + 1) * np.sqrt(left) / (np.sqrt(left) + right) - others
    return min(size, int(max(lowest, 0.0)))


@compiled
def _is_better(runs, run_of, span, price, waiting, new, other, end):  # type: ignore[no-untyped-def]
    """Whether the last group up to `end` had better start at `new` than at the earlier `other`; yes if it is equal.

    Groups wider than `span` cost infinitely much, which keeps the quadrangle inequality. Sides are multiplied by both
    sizes, for a division is slow.
    """
    run = run_of[end - 1]
    value, part = runs[run, VALUE], end - runs[run, FIRST]
    base = OWN if value - waiting[new, ANCHOR] <= span else LONG
    older_base = OWN if value - waiting[other, ANCHOR] <= span else LONG
    off, older_off = runs[run, base + 2], runs[run, older_base + 2]
    total = runs[run, base] + part * off - waiting[new, TOTAL]
    square = runs[run, base + 1] + part * off * off - waiting[new, SQUARE]
    older_total = runs[run, older_base] + part * older_off - waiting[other, TOTAL]
    older_square = runs[run, older_base + 1] + part * older_off * older_off - waiting[other, SQUARE]
    size, older_size = end - waiting[new, PLACE], end - waiting[other, PLACE]
    lead = waiting[other, LEAST] - waiting[new, LEAST] + (older_square - square)
    own, older = (price - total * total) * older_size, (price - older_total * older_total) * size
    wide = value - waiting[other, LOWEST] > span
    return wide or lead * (size * older_size) + older >= own


@compiled
def _number_groups(groups, last_cuts):  # type: ignore[no-untyped-def]
    """Writes the group number of each value, in place of zeros."""
    cut = last_cuts[groups.size]
    while cut > 0:
        groups[cut] = 1
        cut = last_cuts[cut]
    for place in range(1, groups.size):
        groups[place] += groups[place - 1]
