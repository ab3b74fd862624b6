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
        sums = exact.sum(axis=tuple(range(axis + 1, table.ndim))).reshape(-1, size)
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
    rows, groups = len(sums), int(labels.max()) + 1
    if groups == labels.size and (labels == np.arange(groups)).all():
        return sums
    places = np.arange(rows)[:, None] * groups + labels
    found = np.bincount(places.ravel(), weights=sums.ravel(), minlength=rows * groups)
    return found.reshape(rows, groups).astype(np.float64)


def _share(wholes: Wholes, parts: Reals, whole_of: NDArray[np.int64]) -> Wholes:
    """Whole numbers near the parts that sum to their wholes.

    Args:
        wholes: shape (rows, wholes).
        parts: shape (rows, parts).
        whole_of: the whole that each part belongs to, shape (parts,).
    """
    rows, count = wholes.shape
    if count == 1:
        found: Wholes = np.empty(parts.shape, dtype=np.int64)
        some = max(1, AT_ONCE // parts.shape[1])
        for start in range(0, rows, some):
            found[start : start + some] = _share_rows(wholes[start : start + some], parts[start : start + some])
        return found
    down = np.floor(parts)
    belongs = (np.arange(rows)[:, None] * count + whole_of).ravel()
    spare = wholes.ravel() - np.bincount(belongs, weights=down.ravel(), minlength=wholes.size).astype(np.int64)
    # Sorted by whole, then by remainder, the largest first; their sum is exact.
    sequence = np.argsort(belongs + (down - parts).ravel(), kind="stable")
    starts = np.searchsorted(belongs[sequence], np.arange(wholes.size))
    rank = np.arange(sequence.size) - starts[belongs[sequence]]
    given = np.zeros(sequence.size, dtype=np.int64)
    given[sequence] = rank < spare[belongs[sequence]]
    return down.astype(np.int64) + given.reshape(parts.shape)


def _share_rows(wholes: Wholes, parts: Reals) -> Wholes:
    """The same where each row has one whole, shape (rows, 1)."""
    down = np.floor(parts)
    owed = down - parts
    spare = wholes - down.sum(axis=1, keepdims=True).astype(np.int64)
    # The largest remainders are the least numbers here; the first of equal ones come first.
    bound = np.take_along_axis(np.sort(owed, axis=1), np.maximum(spare - 1, 0), axis=1)
    gets = owed < bound
    equal = owed == bound
    equal &= np.cumsum(equal, axis=1) <= spare - gets.sum(axis=1, keepdims=True)
    return down.astype(np.int64) + (gets | equal)
