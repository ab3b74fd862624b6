"""Groups sorted numbers from left to right by a greedy rule (AHP)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
VELTKAMP = 134217729.0  # 2^27 + 1 splits a float64 into two halves of 26 bits


def greedy_groups(sorted_values: Reals, price: float) -> Numbers:
    """Groups sorted numbers from left to right, as AHP does.

    With err(C) = squared error of C + price / |C|, a value x closes the group C before it where err(C + x) is at least
    err(C) plus the least that x would cost as the first of a new group, the minimum over the values y from x on of
        (x - mean(x..y))² + price / |x..y|².
    If y is the value number l from x on, this minimum is at most `rise` if and only if, for some l,
        l·mean(x..y) - l·x <= sqrt(rise·l² - price).
    The left side is convex in l, because the values rise, and the right side is concave: bisection finds the l at which
    they are closest. The rule is kept exactly, in O(n log n) time, O(n) memory.

    Args:
        sorted_values: rising, shape (n,), n >= 1.
        price: above 0, in records squared.

    Returns:
        Group number of each value, shape (n,), starting at 0 and never falling.
    """
    line = np.ascontiguousarray(sorted_values, dtype=np.float64)
    # Arrays are made by NumPy, not in compiled code: for large ones it asks the system for large pages.
    groups, (high, low) = np.empty(line.size, dtype=np.int64), np.empty((2, line.size + 1))
    _group_greedily(line, float(price), high, low, groups)
    return groups


@compile_function
def _group_greedily(values: Reals, price: float, high: Reals, low: Reals, groups: Numbers) -> None:
    """Writes the group numbers, shape (n,); `high` and `low` are room for prefix sums, shape (n + 1,)."""
    n = values.size
    # Each prefix sum is an unevaluated pair of float64, with about twice their digits, so differences lose none.
    high[0] = low[0] = 0.0
    for place in range(n):
        high[place + 1], lost = _two_sum(high[place], values[place])
        low[place + 1] = low[place] + lost
    group, groups[0] = 0, 0
    anchor, total, size = values[0], 0.0, 1.0
    for place in range(1, n):
        off = values[place] - anchor
        gap = off - total / size
        rise = gap * gap * size / (size + 1.0) - price / (size * (size + 1.0))
        closes = rise >= price  # what a group of its own would cost
        if not closes and rise > 0.0:
            shortest = np.ceil(np.sqrt(price / rise))  # the noise of a shorter group alone costs more
            if shortest <= n - place:
                length = _nearest_length(values, place, int(shortest), price, rise)
                away = _mean_beyond(values, high, low, place, length)
                closes = away * away + price / (float(length) * length) <= rise
        if closes:
            group += 1
            anchor, total, size = values[place], 0.0, 1.0
        else:
            total += off
            size += 1.0
        groups[place] = group


@compile_function
def _nearest_length(values: Reals, place: int, shortest: int, price: float, rise: float) -> int:
    """The length l >= `shortest` at which l·mean - l·values[place] - sqrt(rise·l² - price) is least."""
    longest = values.size - place
    # The difference falls from length `falls` to the next one, and no longer from `rests`.
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


@compile_function
def _still_falls(values: Reals, place: int, length: int, price: float, rise: float) -> bool:
    """Whether one more value adds less to the convex side than to the concave side."""
    near = np.sqrt(max(rise * length * length - price, 0.0))
    far = np.sqrt(max(rise * (length + 1.0) * (length + 1.0) - price, 0.0))
    return bool(values[place + length] - values[place] < rise * (2.0 * length + 1.0) / (near + far))


@compile_function
def _mean_beyond(values: Reals, high: Reals, low: Reals, place: int, length: int) -> float:
    """How far the mean of `length` values from `place` on lies above the first of them."""
    total, lost = _two_sum(high[place + length], -high[place])
    base, base_lost = _two_product(float(length), values[place])
    over, over_lost = _two_sum(total, -base)
    return float(over + (over_lost + (lost + (low[place + length] - low[place]) - base_lost))) / length


@compile_function
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """The rounded sum, and what rounding lost (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@compile_function
def _two_product(a: float, b: float) -> tuple[float, float]:
    """The rounded product, and what rounding lost (Dekker)."""
    product = a * b
    split = VELTKAMP * a
    a_high = split - (split - a)
    a_low = a - a_high
    split = VELTKAMP * b
    b_high = split - (split - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
