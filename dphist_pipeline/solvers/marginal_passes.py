"""The passes of `marginal_fit` over a large table: one for each set of sums, which shifts, cuts, sums and counts.

A pass of its own for each of these reads the table from memory six times as often. Sums differ from NumPy's in their
last digits, since they are added in another order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import compiled

Reals = NDArray[np.float64]
Places = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Groups:
    """Which wanted sum every cell belongs to.

    Attributes:
        of_row: of the first cell of each row, shape (rows,); a row is what only the last axis tells apart.
        along: whether the next cell of a row belongs to the next sum, and not to the same one.
        number: of wanted sums.
    """

    of_row: Places
    along: bool
    number: int

    @classmethod
    def of(cls, shape: tuple[int, ...], summed: tuple[int, ...]) -> Groups:
        """The groups of sums over some axes.

        Args:
            shape: of the table.
            summed: the axes that are summed over.
        """
        kept = [1 if axis in summed else side for axis, side in enumerate(shape)]
        of_row = np.zeros(1, dtype=np.uint32)
        for axis, side in enumerate(shape[:-1]):
            step = 0 if axis in summed else math.prod(kept[axis + 1 :])
            of_row = (of_row[:, None] + np.arange(side, dtype=np.uint32) * np.uint32(step)).ravel()
        return cls(of_row, len(shape) - 1 not in summed, math.prod(kept))


def shift_and_sum(table: Reals, step: Reals, before: Groups, groups: Groups) -> tuple[Reals, Reals]:
    """Shifts a table, and sums its positive cells. Some 1 ns a cell.

    Args:
        table: shape (cells,); changed.
        step: what is taken from the cells of each group of `before`.
        before: groups of the shift.
        groups: of the sums.

    Returns:
        Sums of the positive cells, and their numbers, shape (groups,).
    """
    rows = table.reshape(groups.of_row.size, -1)
    sums, free = np.zeros(groups.number), np.zeros(groups.number)
    _shift_rows(rows, step, before.of_row, before.along, groups.of_row, groups.along, sums, free)
    return sums, free


@compiled
def _shift_rows(
    rows: Reals, step: Reals, old: Places, old_along: bool, of_row: Places, along: bool, sums: Reals, free: Reals
) -> None:
    for place in range(of_row.size):
        row, before, at = rows[place], old[place], of_row[place]
        if old_along:
            row -= step[before : before + row.size]
        else:
            row -= step[before]
        if along:
            for cell in range(row.size):
                sums[at + cell] += max(row[cell], 0.0)
                free[at + cell] += 1.0 if row[cell] > 0.0 else 0.0
        else:
            total, positive = 0.0, 0.0
            for cell in range(row.size):
                total += max(row[cell], 0.0)
                positive += 1.0 if row[cell] > 0.0 else 0.0
            sums[at] += total
            free[at] += positive
