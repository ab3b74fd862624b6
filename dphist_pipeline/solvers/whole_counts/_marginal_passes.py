"""The passes of `marginal_fit` over a large table: one for each set of sums, which shifts, cuts, sums and counts.

The table is only read: what its cells are shifted by is added up anew in every pass, from one number for each wanted
sum. So a pass costs the reading of the table, which is held in a quarter of the bytes where these hold every value.
Sums differ from NumPy's in their last digits, since they are added in another order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function

Reals = NDArray[np.float64]
Places = NDArray[np.uint32]

FEW = 16  # numbers that are added one after the other
AT_ONCE = 1 << 15  # cells


@dataclass(frozen=True, eq=False)
class Groups:
    """Which wanted sum every cell belongs to.

    Attributes:
        of_row: of the first cell of each row, shape (rows,); a row is what only the last axis tells apart.
        along: whether the next cell of a row belongs to the next sum, and not to the same one.
    """

    of_row: Places
    along: bool
    number: int

    @classmethod
    def of(cls, shape: tuple[int, ...], summed: tuple[int, ...]) -> Groups:
        """The groups of a table's sums over some axes."""
        sides = [1 if axis in summed else side for axis, side in enumerate(shape)]
        of_row = np.zeros(1, dtype=np.uint32)
        for axis, side in enumerate(shape[:-1]):
            step = 0 if axis in summed else math.prod(sides[axis + 1 :])
            of_row = (of_row[:, None] + np.arange(side, dtype=np.uint32) * np.uint32(step)).ravel()
        return cls(of_row, len(shape) - 1 not in summed, math.prod(sides))


class ShiftedTable:
    """A table whose cells are shifted with the sums that they belong to.

    Args:
        table: finite, any shape; not changed.
        groups: of each set of sums.
    """

    def __init__(self, table: Reals, groups: Sequence[Groups]) -> None:
        self._groups, self._shape = groups, table.shape
        self._rows = _narrow(table.reshape(groups[0].of_row.size, -1))
        rows, size = self._rows.shape
        self._of_rows = np.zeros(rows)  # shifts of the sets whose sums hold rows as a whole
        # Shifts of the other sets, one set after the other; the first stands for none. Those that change most often
        # with the row come last, since the rest of them are summed only when one changes.
        along = sorted((one for one in groups if one.along), key=lambda one: np.count_nonzero(np.diff(one.of_row)))
        ends = np.cumsum([size, *(one.number for one in along)]).tolist()
        self._lines = np.zeros(ends[-1])
        self._starts = np.zeros((rows, 1 + len(along)), dtype=np.uint32)
        for place, (one, start) in enumerate(zip(along, ends, strict=False), 1):
            np.add(one.of_row, np.uint32(start), out=self._starts[:, place])
        self._first = {id(one): start for one, start in zip(along, ends, strict=False)}

    def shift(self, which: int, step: Reals) -> None:
        """Takes a number from all cells of each sum of the set number `which`; `step` has shape (sums,)."""
        one = self._groups[which]
        if one.along:
            start = self._first[id(one)]
            self._lines[start : start + one.number] += step
        else:
            self._of_rows += step[one.of_row]

    def sums(self, which: int) -> tuple[Reals, Reals]:
        """Sums of the positive cells of a set, and their numbers, shape (sums,). Some 0.4 ns a cell."""
        one = self._groups[which]
        sums, free = np.zeros(one.number), np.zeros(one.number)
        add = _add_along if one.along else _add_rows
        add(self._rows, self._of_rows, self._lines, self._starts, one.of_row, sums, free)
        return sums, free

    def cut(self) -> Reals:
        """The shifted cells, 0 where they are negative; shape of the table."""
        cells = np.zeros(self._rows.shape)
        many, size = cells.shape
        some = max(1, AT_ONCE // size)
        firsts, counted = np.arange(0, some * size, size, dtype=np.uint32), np.empty(some * size)
        for start in range(0, many, some):
            rows, of_rows, starts, to = (
                one[start : start + some] for one in (self._rows, self._of_rows, self._starts, cells)
            )
            _add_along(rows, of_rows, self._lines, starts, firsts[: len(rows)], to.ravel(), counted)
        return cells.reshape(self._shape)


def _narrow(rows: Reals) -> Any:
    """The same values as int16 or float32, if it holds them all, as it does most noisy counts."""
    fits = rows.min() >= -(1 << 15) and rows.max() < 1 << 15
    for kind in (np.int16, np.float32) if fits else (np.float32,):
        narrow = rows.astype(kind)
        if np.array_equal(narrow, rows):
            return narrow
    return np.ascontiguousarray(rows, dtype=np.float64)


@numba.njit(inline="always")
def _hold(held: Reals, lines: Reals, starts: Places, place: int) -> None:
    """Sums the shifts along a row but the last one, if they are others than those of the row before."""
    few, changed = starts.shape[1] - 1, place == 0
    for number in range(few):
        changed |= starts[place, number] != starts[place - 1, number]
    if changed:
        held[:] = 0.0
        for number in range(few):
            start = starts[place, number]
            line = lines[start : start + held.size]
            for cell in range(held.size):
                held[cell] += line[cell]


@compile_function
def _add_along(
    rows: Any, of_rows: Reals, lines: Reals, starts: Places, of_row: Places, sums: Reals, free: Reals
) -> None:
    """Adds up where the cells of a row belong to sums that follow each other."""
    size, last = rows.shape[1], starts.shape[1] - 1
    held = np.zeros(size)
    for place in range(of_row.size):
        _hold(held, lines, starts, place)
        at, start = of_row[place], starts[place, last]
        row, shift, line = rows[place], of_rows[place], lines[start : start + size]
        to, counted = sums[at : at + size], free[at : at + size]
        for cell in range(size):
            value = row[cell] - shift - held[cell] - line[cell]
            to[cell] += value if value > 0.0 else 0.0
            counted[cell] += 1.0 if value > 0.0 else 0.0


@compile_function
def _add_rows(
    rows: Any, of_rows: Reals, lines: Reals, starts: Places, of_row: Places, sums: Reals, free: Reals
) -> None:
    """Adds up where the cells of a row belong to one sum."""
    size, last = rows.shape[1], starts.shape[1] - 1
    held, to, counted = np.zeros(size), np.zeros(size), np.zeros(size)
    for place in range(of_row.size):
        _hold(held, lines, starts, place)
        at, start = of_row[place], starts[place, last]
        row, shift, line = rows[place], of_rows[place], lines[start : start + size]
        for cell in range(size):
            value = row[cell] - shift - held[cell] - line[cell]
            to[cell] += value if value > 0.0 else 0.0
            counted[cell] += 1.0 if value > 0.0 else 0.0
        if place + 1 < of_row.size and of_row[place + 1] == at:
            continue
        left = size
        while left > FEW:  # halves are added side by side, which the processor does at once
            half = left // 2
            low, high, low_free, high_free = (
                to[:half],
                to[left - half : left],
                counted[:half],
                counted[left - half : left],
            )
            for cell in range(half):
                low[cell] += high[cell]
                low_free[cell] += high_free[cell]
            left -= half
        for cell in range(left):
            sums[at] += to[cell]
            free[at] += counted[cell]
        to[:] = 0.0
        counted[:] = 0.0
