"""Groups of alike numbers: neighbours in sorted order, whatever their places."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
VELTKAMP = 134217729.0  # 2^27 + 1 splits a float64 into two halves of 26 bits


def groups_by_value(values: Reals, grouping: Callable[[Reals], Numbers]) -> Numbers:
    """Group number of every cell, shape of `values`, by a grouping of the sorted values; ties in order of cells."""
    order = np.argsort(values, axis=None, kind="stable")
    groups = np.empty(values.size, dtype=np.int64)
    groups[order] = grouping(values.ravel()[order])
    return groups.reshape(values.shape)


def optimal_groups(sorted_values: Reals, price: float) -> Numbers:
    """Finds the cheapest grouping of sorted numbers.

    The cost of a group is its squared error around its mean plus `price` / size. Exact, over every contiguous grouping
    at once. The cost satisfies the quadrangle inequality (squared error on sorted values does, and 1/size is convex),
    so of two starts of the last group the later one, once better, stays better: a queue of starts and a search for
    where each takes over give O(n log n) time, O(n) memory.

    No group of the optimum spans more than 2·sqrt(3·price), or parting with its first or last value would pay; wider
    ones are not looked at. So sums need only be taken within stretches of about that span, each around its own start,
    and nothing cancels.

    Args:
        sorted_values: rising, shape (n,), n >= 1.
        price: above 0, in records squared.

    Returns:
        Group number of each value, shape (n,), starting at 0 and never falling.
    """
    starts = _last_starts(np.ascontiguousarray(sorted_values, dtype=np.float64), float(price))
    first = np.zeros(sorted_values.size, dtype=np.int64)
    end = sorted_values.size
    while end > 0:
        end = int(starts[end])
        first[end] = 1
    return np.cumsum(first) - 1


def greedy_groups(sorted_values: Reals, price: float) -> Numbers:
    """Groups sorted numbers from left to right, as AHP does.

    With err(C) = squared error of C + price / |C|, a value x closes the group C before it where err(C + x) is at least
    err(C) plus the least that x would cost as the first of a new group, the minimum over the values y from x on of
        (x - mean(x..y))² + price / |x..y|².
    With y the value of number l from x on, that this minimum is at most some `rise` says that
        l·mean(x..y) - l·x <= sqrt(rise·l² - price)
    for some l. On the left stands a convex function of l, for the values rise, and on the right a concave one: halving
    finds where they lie nearest. The rule is kept exactly, in O(n log n) time, O(n) memory.

    Args:
        sorted_values: rising, shape (n,), n >= 1.
        price: above 0, in records squared.

    Returns:
        Group number of each value, shape (n,), starting at 0 and never falling.
    """
    first = _greedy_starts(np.ascontiguousarray(sorted_values, dtype=np.float64), float(price))
    return np.cumsum(first) - 1


@compiled
def _last_starts(values, price):  # type: ignore[no-untyped-def]
    """For each prefix, where its last group starts in the cheapest grouping; shape (n + 1,)."""
    n = values.size
    span = 4.0 * np.sqrt(price)  # more than 2·sqrt(3·price), to be safe from rounding
    cells, firsts = _stretches(values, span)
    least, starts = np.zeros(n + 1), np.zeros(n + 1, dtype=np.int64)
    # Starts that are still of use, and the first end from which each is the best.
    waiting, takes_over = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    head, tail = 0, 0
    for new in range(n):
        # `new` is worse than the last start that waits up to `worse`, and at least as good from `better` on.
        worse, better = new, n + 1
        while tail > head:
            end = max(takes_over[tail - 1], new + 1)
            if _is_better(cells, firsts, span, price, least, new, waiting[tail - 1], end):
                tail -= 1
                better = end
            else:
                worse = end
                break
        if tail == head:
            better = new + 1
        else:
            other, step = waiting[tail - 1], 1
            # Steps that double, down from where it is known to be better, or else up from where it is worse.
            if better <= n:
                end = better - step
                while end > worse and _is_better(cells, firsts, span, price, least, new, other, end):
                    better, step = end, 2 * step
                    end = better - step
                worse = max(worse, end)
            else:
                end = worse + step
                while end <= n and not _is_better(cells, firsts, span, price, least, new, other, end):
                    worse, step = end, 2 * step
                    end = worse + step
                better = min(better, end)
            while better - worse > 1:
                end = (worse + better) // 2
                if _is_better(cells, firsts, span, price, least, new, other, end):
                    better = end
                else:
                    worse = end
        if better <= n:
            waiting[tail], takes_over[tail] = new, better
            tail += 1
        while tail - head > 1 and takes_over[head + 1] <= new + 1:
            head += 1
        starts[new + 1] = waiting[head]
        least[new + 1] = least[waiting[head]] + _cost(cells, firsts, span, price, waiting[head], new + 1)
    return starts


@compiled
def _is_better(cells, firsts, span, price, least, new, other, end):  # type: ignore[no-untyped-def]
    """Whether the last group up to `end` had better start at `new` than at the earlier `other`; yes if it is equal."""
    older = least[other] + _cost(cells, firsts, span, price, other, end)
    return older == np.inf or least[new] + _cost(cells, firsts, span, price, new, end) <= older


@compiled
def _stretches(values, span):  # type: ignore[no-untyped-def]
    """Stretches of values within `span` of their first, and where each starts.

    For each value, side by side so that one look fetches all: itself, the sum and the sum of squares from the start of
    its stretch up to it, around that first value, and the number of its stretch.
    """
    n = values.size
    cells, firsts = np.empty((n, 4)), np.empty(n + 1, dtype=np.int64)
    found = -1
    anchor, total, square = -np.inf, 0.0, 0.0
    for place in range(n):
        if values[place] - anchor > span:
            found += 1
            firsts[found] = place
            anchor, total, square = values[place], 0.0, 0.0
        off = values[place] - anchor
        total += off
        square += off * off
        cells[place, 0], cells[place, 1], cells[place, 2], cells[place, 3] = values[place], total, square, found
    return cells, firsts[: found + 1].copy()


@compiled
def _cost(cells, firsts, span, price, start, end):  # type: ignore[no-untyped-def]
    """Cost of the group [start, end); infinite where it is too wide, which keeps the quadrangle inequality."""
    low, high = cells[start], cells[end - 1]
    if high[0] - low[0] > span:
        return np.inf
    size = float(end - start)
    anchor = cells[firsts[int(low[3])], 0]
    off = low[0] - anchor
    if low[3] == high[3]:
        total = high[1] - low[1] + off
        square = high[2] - low[2] + off * off
    else:
        # The group reaches into the next stretch, and never further; that part is moved to the first one's anchor.
        border = firsts[int(high[3])]
        shift, beyond = cells[border, 0] - anchor, float(end - border)
        total = cells[border - 1, 1] - low[1] + off + high[1] + beyond * shift
        square = cells[border - 1, 2] - low[2] + off * off + high[2] + shift * (2.0 * high[1] + beyond * shift)
    return max(square - total * total / size, 0.0) + price / size


@compiled
def _greedy_starts(values, price):  # type: ignore[no-untyped-def]
    """1 where a group starts; shape (n,)."""
    n = values.size
    # Sums as unevaluated pairs of float64: differences are then as good as exact.
    high, low = np.zeros(n + 1), np.zeros(n + 1)
    for place in range(n):
        high[place + 1], lost = _two_sum(high[place], values[place])
        low[place + 1] = low[place] + lost
    first = np.zeros(n, dtype=np.int64)
    first[0] = 1
    anchor, total, size = values[0], 0.0, 1.0
    for place in range(1, n):
        off = values[place] - anchor
        gap = off - total / size
        rise = gap * gap * size / (size + 1.0) - price / (size * (size + 1.0))
        closes = rise >= price  # what a group of its own would cost
        if not closes and rise > 0.0:
            shortest = np.ceil(np.sqrt(price / rise))  # any shorter group has more noise than that
            if shortest <= n - place:
                length = _nearest_length(values, place, int(shortest), price, rise)
                away = _mean_beyond(values, high, low, place, length)
                closes = away * away + price / (float(length) * length) <= rise
        if closes:
            first[place] = 1
            anchor, total, size = values[place], 0.0, 1.0
        else:
            total += off
            size += 1.0
    return first


@compiled
def _nearest_length(values, place, shortest, price, rise):  # type: ignore[no-untyped-def]
    """The length, at least `shortest`, at which l·mean - l·values[place] is lowest against sqrt(rise·l² - price)."""
    longest = values.size - place
    # The difference falls from `falls` to the next length (if that is not before the shortest), and not from `rests`.
    falls, rests, step = shortest - 1, longest, 1
    while falls + step < rests:
        middle = falls + step
        if _still_falls(values, place, middle, price, rise):
            falls, step = middle, 2 * step
        else:
            rests = middle
    while rests - falls > 1:
        middle = (falls + rests) // 2
        if _still_falls(values, place, middle, price, rise):
            falls = middle
        else:
            rests = middle
    return rests


@compiled
def _still_falls(values, place, length, price, rise):  # type: ignore[no-untyped-def]
    """Whether one value more adds less to the convex side than to the concave one."""
    near = np.sqrt(max(rise * length * length - price, 0.0))
    far = np.sqrt(max(rise * (length + 1.0) * (length + 1.0) - price, 0.0))
    return values[place + length] - values[place] < rise * (2.0 * length + 1.0) / (near + far)


@compiled
def _mean_beyond(values, high, low, place, length):  # type: ignore[no-untyped-def]
    """How far the mean of `length` values from `place` on lies above the first of them."""
    total, lost = _two_sum(high[place + length], -high[place])
    base, base_lost = _two_product(float(length), values[place])
    over, over_lost = _two_sum(total, -base)
    return (over + (over_lost + (lost + (low[place + length] - low[place]) - base_lost))) / length


@compiled
def _two_sum(a, b):  # type: ignore[no-untyped-def]
    """The rounded sum, and what rounding lost (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@compiled
def _two_product(a, b):  # type: ignore[no-untyped-def]
    """The rounded product, and what rounding lost (Dekker)."""
    product = a * b
    split = VELTKAMP * a
    a_high = split - (split - a)
    a_low = a - a_high
    split = VELTKAMP * b
    b_high = split - (split - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
