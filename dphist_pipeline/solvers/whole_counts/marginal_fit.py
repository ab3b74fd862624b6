"""Fits a table to given sums: the nearest non-negative table that has these sums, or comes as near as it can.

The fit minimises the sum of squares of (x - values) over all tables x >= 0 whose wanted sums are the targets. It is
x = max(0, values - shifts), with a shift for each wanted sum that is shared by the cells in it. One set of sums at a
time is brought to its targets by a step of Newton's method on its shifts (Hildreth's method); sums are convex in the
shifts, so steps do not overshoot twice. With slack, a sum may miss its target by slack times its shift: the fit then
weighs cells against sums, and sums that contradict each other settle between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

MOST_PASSES = 30
NEAR_ENOUGH = 0.25  # records
LARGE = 1 << 21  # cells from which compiled passes are worth their loading


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Wanted sums of groups along a line of cells.

    Attributes:
        labels: group of every cell, from 0, shape (cells,).
        targets: wanted sums, shape (groups,).
        slack: how far a sum may miss its target, in records for each record by which its cells are shifted.
    """

    labels: NDArray[np.int64]
    targets: Reals
    slack: float = 0.0

    def sums(self, table: Reals) -> Reals:
        """The sums of a table of shape (cells,), shape of `targets`."""
        return np.bincount(self.labels, weights=table, minlength=self.targets.size).astype(np.float64)

    def spread(self, shifts: Reals) -> Reals:
        """The shift of every cell, broadcastable to the table, from shifts in records, shape of `targets`."""
        return shifts[self.labels]


@dataclass(frozen=True, eq=False)
class MarginalSums:
    """Wanted sums over some axes of a table.

    Attributes:
        summed: the axes that are summed over.
        targets: wanted sums, with length 1 along these axes.
        slack: as of `GroupSums`.
    """

    summed: tuple[int, ...]
    targets: Reals
    slack: float = 0.0

    def sums(self, table: Reals) -> Reals:
        """The sums of a table with all axes, shape of `targets`."""
        found: Reals = table.sum(axis=self.summed, keepdims=True, dtype=np.float64)
        return found

    def spread(self, shifts: Reals) -> Reals:
        """The shift of every cell, broadcastable to the table, from shifts in records, shape of `targets`."""
        return shifts


def fit_to_sums(values: Reals, wanted: Sequence[GroupSums | MarginalSums]) -> Reals:
    """The nearest non-negative table that has the wanted sums.

    Args:
        values: any shape.
        wanted: sets of non-negative sums; the targets of a single set without slack are met.

    Returns:
        float64, shape of `values`. O(cells · sets) for each of at most `MOST_PASSES` passes.
    """
    marginals = [one for one in wanted if isinstance(one, MarginalSums)]
    if values.size >= LARGE and len(marginals) == len(wanted):
        return _fit_large(values, marginals)
    shifted = values.astype(np.float64)
    shifts = [np.zeros_like(one.targets) for one in wanted]
    fitted, free = np.empty_like(shifted), np.empty_like(shifted)  # used again, since new memory costs as much as a sum
    for _ in range(MOST_PASSES):
        farthest = 0.0
        for number, one in enumerate(wanted):
            np.maximum(shifted, 0.0, out=fitted)
            gap = one.sums(fitted) - one.targets - one.slack * shifts[number]
            farthest = max(farthest, float(np.abs(gap).max()))
            np.greater(shifted, 0.0, out=free, casting="unsafe")
            step = gap / (np.maximum(one.sums(free), 1.0) + one.slack)
            shifts[number] += step
            shifted -= one.spread(step)
        if farthest <= NEAR_ENOUGH:
            break
    return np.maximum(shifted, 0.0, out=fitted)


def on_simplex(values: Reals, total: float) -> Reals:
    """The nearest values that are not negative and have a sum.

    Args:
        values: any shape.
        total: not negative.
    """
    line = values.astype(np.float64).ravel()
    return fit_to_sums(line, [GroupSums(np.zeros(line.size, dtype=np.int64), np.array([float(total)]))]).reshape(
        values.shape
    )


def _fit_large(values: Reals, wanted: Sequence[MarginalSums]) -> Reals:
    """The same steps by passes that read each cell once."""
    from dphist_pipeline.solvers.whole_counts._marginal_passes import Groups, ShiftedTable

    table = ShiftedTable(values, [Groups.of(values.shape, one.summed) for one in wanted])
    shifts = [np.zeros(one.targets.size) for one in wanted]
    for _ in range(MOST_PASSES):
        farthest = 0.0
        for number, (one, shift) in enumerate(zip(wanted, shifts, strict=True)):
            sums, free = table.sums(number)
            gap = sums - one.targets.ravel() - one.slack * shift
            farthest = max(farthest, float(np.abs(gap).max()))
            step = gap / (np.maximum(free, 1.0) + one.slack)
            table.shift(number, step)
            shift += step
        if farthest <= NEAR_ENOUGH:
            break
    return table.cut()
