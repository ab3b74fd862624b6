"""The cheapest groups of sorted numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function
from dphist_pipeline.solvers.groups.segmentation import group_numbers

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]


def optimal_groups(sorted_values: Reals, price: float) -> Numbers:
    """Finds the cheapest grouping of sorted numbers.

    The cost of a group is its squared error around its mean plus `price` / size. Exact, over every contiguous grouping
    at once. The cost satisfies the quadrangle inequality (squared error on sorted values does, and 1/size is convex),
    so of two starts of the last group the later one, once better, stays better: a queue of starts and a search for
    where each takes over give O(n log n) time, O(n) memory.

    A group of the optimum spans at most 2·sqrt(3·price): in a wider one, it would pay to split off the first or last
    value. So sums are taken within stretches of about that span, each around its own first value, and no digits cancel.

    Equal values are one run. The optimum may cut a run (-s, 0, 0, s with s² = 0.9·price is cut in the middle), but only
    at few places, see `_fewest_before_a_cut`. The others are skipped.

    Args:
        sorted_values: rising, shape (n,), n >= 1.
        price: above 0, in records squared.

    Returns:
        Group number of each value, shape (n,), starting at 0 and never falling.
    """
    line = np.ascontiguousarray(sorted_values, dtype=np.float64)
    span = 4.0 * float(np.sqrt(price))  # more than 2·sqrt(3·price), to be safe from rounding
    firsts = np.flatnonzero(np.diff(line, prepend=np.nan))
    run_of = np.repeat(np.arange(firsts.size), np.diff(firsts, append=line.size))
    return group_numbers(_last_starts(Line(_runs(line, firsts, span), run_of, span, float(price))))


# A run of equal values is a row: its value and its first place; then the sum and the sum of squares before it within
# its stretch, and by how much its value lies above the stretch's first; then the same three, from the stretch before.
VALUE, FIRST, OWN, LONG = 0, 1, 2, 5


class Line(NamedTuple):
    """The sorted values, and what a group may span and costs."""

    runs: Reals  # shape (runs + 1, 8), see above
    run_of: Numbers  # the run of every value, shape (n,)
    span: float
    price: float


@compile_function
def _runs(values: Reals, firsts: Numbers, span: float) -> Reals:
    """The rows of the runs, and a last one for the end of the line; shape (runs + 1, 8).

    A stretch holds the values within `span` of its first. A group no wider than that ends in the stretch where it
    starts, or in the next one.
    """
    runs = np.empty((firsts.size + 1, 8))
    runs[-1, VALUE], runs[-1, FIRST] = np.inf, values.size
    anchor, older = values[0], values[0]
    total, square, long_total, long_square = 0.0, 0.0, 0.0, 0.0
    for run in range(firsts.size):
        value = values[firsts[run]]
        if value - anchor > span:
            anchor, older = value, anchor
            total, square, long_total, long_square = 0.0, 0.0, total, square
        off, long_off = value - anchor, value - older
        runs[run, VALUE], runs[run, FIRST] = value, firsts[run]
        runs[run, OWN], runs[run, OWN + 1], runs[run, OWN + 2] = total, square, off
        runs[run, LONG], runs[run, LONG + 1], runs[run, LONG + 2] = long_total, long_square, long_off
        size = (firsts[run + 1] if run + 1 < firsts.size else values.size) - firsts[run]
        total, square = total + size * off, square + size * off * off
        long_total, long_square = long_total + size * long_off, long_square + size * long_off * long_off
    return runs


@compile_function
def _last_starts(line: Line) -> Numbers:
    """For every useful k, where the last group starts in the cheapest grouping of k values; shape (n + 1,)."""
    runs, run_of, _, price = line
    n = run_of.size
    last_starts, least = np.zeros(n + 1, dtype=np.int64), np.zeros(n + 1)
    # The starts that may be the best for some end, and the first end for which each is.
    waiting, takes_over = np.empty(n + 1, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    head, tail = 0, 0
    for run in range(runs.shape[0] - 1):
        value, first = runs[run, VALUE], int(runs[run, FIRST])
        size = int(runs[run + 1, FIRST]) - first
        uncut = (runs[run + 1, VALUE] - value) ** 2 >= price
        part = 0  # how many of the run's values lie before the cut
        while part < size:
            start = first + part
            # Against the last start that waits, the new one is worse up to the end `worse`, and not from `better` on.
            worse, better = start, n + 1
            while tail > head:
                end = max(takes_over[tail - 1], start + 1)
                if not _is_better(line, least, start, waiting[tail - 1], end):
                    worse = end
                    break
                tail, better = tail - 1, end
            better = _first_better(line, least, start, waiting[tail - 1], worse, better) if tail > head else start + 1
            if better <= n:
                waiting[tail], takes_over[tail] = start, better
                tail += 1
            # Skip to the next place in the run where a cut may be needed, or to its end.
            part = size if uncut else part + 1
            while True:
                while tail - head > 1 and takes_over[head + 1] <= first + part:
                    head += 1
                count, total, square, off = _moments(line, waiting[head], first + part)
                if part >= size:
                    break
                fewest = _fewest_before_a_cut(price, count - part, count * off - total, size)
                if part >= fewest:
                    break
                # Up to where another start is the best.
                part = min(fewest, takes_over[head + 1] - first if tail - head > 1 else size)
            last_starts[first + part] = waiting[head]
            error = max(square - total * total / count, 0.0)
            least[first + part] = least[waiting[head]] + error + price / count
    return last_starts


@compile_function
def _moments(line: Line, start: int, end: int) -> tuple[int, float, float, float]:
    """Count, sum and sum of squares of the values from `start` up to `end`, and the last value, around one anchor."""
    runs, span = line.runs, line.span
    first_run, run = line.run_of[start], line.run_of[end - 1]
    own = runs[first_run, OWN + 2]
    base = OWN if runs[run, VALUE] - (runs[first_run, VALUE] - own) <= span else LONG
    off, before, part = runs[run, base + 2], start - runs[first_run, FIRST], end - runs[run, FIRST]
    total = runs[run, base] + part * off - (runs[first_run, OWN] + before * own)
    square = runs[run, base + 1] + part * off * off - (runs[first_run, OWN + 1] + before * own * own)
    return end - start, total, square, off


@compile_function
def _fewest_before_a_cut(price: float, others: int, below: float, size: int) -> int:
    """The fewest of a run's `size` values that a useful cut of the run leaves on its left; `size` if none is useful.

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


@compile_function
def _first_better(line: Line, least: Reals, new: int, other: int, worse: int, better: int) -> int:
    """The first end above `worse`, and at most `better`, from which on `new` is better: steps double, then halve."""
    step = 1
    while worse + step < better:
        if _is_better(line, least, new, other, worse + step):
            better = worse + step
        else:
            worse, step = worse + step, 2 * step
    while better - worse > 1:
        end = (worse + better) // 2
        if _is_better(line, least, new, other, end):
            better = end
        else:
            worse = end
    return better


@compile_function
def _is_better(line: Line, least: Reals, new: int, other: int, end: int) -> bool:
    """Whether the last group up to `end` had better start at `new` than at the earlier `other`; yes if it is equal.

    Groups wider than `span` cost infinitely much, which keeps the quadrangle inequality.
    """
    if line.runs[line.run_of[end - 1], VALUE] - line.runs[line.run_of[other], VALUE] > line.span:
        return True
    size, total, square, _ = _moments(line, new, end)
    older_size, older_total, older_square, _ = _moments(line, other, end)
    lead = least[other] - least[new] + (older_square - square)
    # Both sides are multiplied by both sizes, for a division is slow.
    own, older = (line.price - total * total) * older_size, (line.price - older_total * older_total) * size
    return bool(lead * (size * older_size) + older >= own)
