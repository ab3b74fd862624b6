"""Rounds the cells of a table so that nested sums round with them: controlled rounding along a tree.

Every sum along the tree is rounded down or up. A rounded sum is handed down: each part gets its own sum rounded down,
and the records that are left over go to the parts with the largest remainders, the first parts first. That always fits:
the parts rounded down sum to at most the whole rounded down, and rounded up to at least the whole rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]

FINEST = -12  # cells are multiples of 2^-12, or coarser ones where the total is above 2^40
AT_ONCE = 1 << 15  # cells whose shares are found together, which the processor's own memory holds
DIGITS = 52  # so that every sum of cells is exact in float64, and parts agree with their wholes


def round_nested(table: Reals, levels: Sequence[Sequence[NDArray[np.int64]]]) -> Wholes:
    """Whole numbers near the cells, whose sums are near those of the table at every node of a tree.

    The tree splits the total along the first axis, each part along the second axis, and so on; along an axis, by its
    levels from the coarsest to the finest, then by position.

    Args:
        table: non-negative, any shape, with a sum below 2^52.
        levels: for each axis its nested groupings, the coarsest first: group of every position, from 0.

    Returns:
        int64, shape of the table; each node's sum differs by less than 1 from the table's.
    """
    unit = 2.0 ** max(FINEST, math.frexp(float(table.sum()))[1] + 1 - DIGITS)
    exact: Reals = table / unit
    np.round(exact, out=exact)
    exact *= unit
    rounded: Wholes = np.full((1, 1), round(float(exact.sum())), dtype=np.int64)
    for axis, (size, groupings) in enumerate(zip(table.shape, levels, strict=True)):
        behind = tuple(range(axis + 1, table.ndim))
        sums = (exact.sum(axis=behind) if behind else exact).reshape(-1, size)
        rounded = rounded.reshape(-1, 1)
        above = np.zeros(size, dtype=np.int64)
        for labels in (*groupings, np.arange(size)):
            whole_of = np.empty(int(labels.max()) + 1, dtype=np.int64)
            whole_of[labels] = above
            rounded = _share(rounded, _sums_by(labels, sums), whole_of)
            above = labels
    return np.asarray(rounded.reshape(table.shape), dtype=np.int64)


def _sums_by(labels: NDArray[np.int64], sums: Reals) -> Reals:
    """Sums by group along the last axis, shape (rows, groups)."""
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))
    if starts.size == labels.size and (order[1:] > order[:-1]).all():
        return sums
    found: Reals = np.add.reduceat(sums if (order[1:] > order[:-1]).all() else sums[:, order], starts, axis=1)
    return found


def _share(wholes: Wholes, parts: Reals, whole_of: NDArray[np.int64]) -> Wholes:
    """Whole numbers near the parts that sum to their wholes.

    Args:
        wholes: shape (rows, wholes).
        parts: shape (rows, parts), multiples of 2^-12.
        whole_of: the whole that each part belongs to, shape (parts,).
    """
    (rows, size), shares = parts.shape, np.empty(parts.shape, dtype=np.int64)
    in_order = np.sort(whole_of)
    rank = np.arange(size) - np.searchsorted(in_order, in_order)
    some = max(1, AT_ONCE // size)
    for start in range(0, rows, some):
        taken = slice(start, start + some)
        down = np.floor(parts[taken])
        spare = wholes[taken] - _sums_by(whole_of, down).astype(np.int64)
        places = _by_remainder(down - parts[taken], whole_of)
        given = shares[taken]
        np.put_along_axis(given, places, rank < spare[:, in_order], axis=1)
        given += down.astype(np.int64)
    return shares


def _by_remainder(owed: Reals, whole_of: NDArray[np.int64]) -> Wholes:
    """The parts of each row in order: by whole, then by what they are rounded down by, the most first, then by place.

    Args:
        owed: what they are rounded down by, above -1 and at most 0, shape (rows, parts).
        whole_of: as in `_share`.
    """
    if owed.shape[1] > AT_ONCE:
        return np.argsort(whole_of + owed, axis=1, kind="stable")  # the sum is exact
    bits = owed.shape[1].bit_length()  # whole numbers that hold all three are sorted several times faster
    keys = (owed * 2.0**-FINEST).astype(np.int64)
    keys += whole_of << -FINEST
    keys <<= bits
    keys += np.arange(owed.shape[1])
    keys.sort(axis=1)
    keys &= (1 << bits) - 1
    return keys
