"""The order of any numbers, ties in order of their places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

Reals = NDArray[np.float64]
DIGIT = 16  # bits of a key that one pass sorts by, at most: its counters fit into the cache
WHOLE = 2.0**52  # whole numbers below have exact differences
SIGN = np.uint64(2**63)


def stable_order(values: Reals) -> NDArray[np.signedinteger]:
    """The places of the values in rising order, ties in order of places.

    Sorted digit by digit: whole numbers by how far they lie above the least, others by the bits that hold them. O(n)
    time and memory.
    """
    if values.size == 0:
        return np.empty(0, dtype=np.int32)
    keys, bits = _keys(values)
    passes = -(-bits // min(DIGIT, max(8, values.size.bit_length())))
    order: NDArray[np.signedinteger] = np.arange(values.size, dtype=np.int32 if values.size < 2**31 else np.int64)
    for done in range(passes):
        digit = -(-bits // passes)
        counts, moved = np.zeros(2**digit, dtype=np.int64), np.empty_like(order)
        _sort_by_digit(keys, keys.dtype.type(done * digit), counts, order, moved)
        order = moved
    return order


def _keys(values: Reals) -> tuple[NDArray[np.unsignedinteger], int]:
    """Whole numbers in the order of the values, from 0, and how many bits they take."""
    least, most, whole = extent(values)
    if whole:
        bits = int(most - least).bit_length()
        heights: NDArray[np.unsignedinteger] = np.empty(values.size, dtype=np.uint32 if bits <= 32 else np.uint64)
        _write_heights(values, least, heights)
        return heights, bits
    keys = (values + 0.0).view(np.uint64)  # -0 becomes 0, which it equals
    # The bits of a negative number rise as it falls.
    keys ^= np.where(keys >= SIGN, np.uint64(2**64 - 1), SIGN)
    keys -= keys.min()
    return keys, int(keys.max()).bit_length()


@compiled
def extent(values):  # type: ignore[no-untyped-def]
    """The least and the highest value, and whether all are whole numbers whose differences are exact."""
    least, most, whole = values[0], values[0], True
    for value in values:
        least, most = min(least, value), max(most, value)
        whole &= value == np.floor(value)
    return least, most, whole and least > -WHOLE and most < WHOLE


@compiled
def _write_heights(values, least, heights):  # type: ignore[no-untyped-def]
    """Writes how far each value lies above the least."""
    for place in range(values.size):
        heights[place] = int(values[place] - least)


@compiled
def _sort_by_digit(keys, shift, counts, order, moved):  # type: ignore[no-untyped-def]
    """Writes to `moved` the places in `order` by one digit of their keys; equal ones keep their order."""
    mask, before = counts.size - 1, 0
    for key in keys:
        counts[int(key >> shift) & mask] += 1
    for digit in range(counts.size):
        before, counts[digit] = before + counts[digit], before
    for place in order:
        digit = int(keys[place] >> shift) & mask
        moved[counts[digit]] = place
        counts[digit] += 1
