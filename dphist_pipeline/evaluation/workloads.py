"""Questions that a released cube is asked: all ranges of a length, and random boxes; answered from prefix sums."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
RANGE_LENGTHS = (1, *range(50, 501, 50))
BOXES = 100_000
SEED = 20_120_105


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes of cells, half-open.

    Attributes:
        low: first cell along each axis, shape (boxes, axes).
        high: the cell after the last along each axis, shape (boxes, axes).
    """

    low: Numbers
    high: Numbers

    @property
    def cells(self) -> Numbers:
        """Cells in each box, shape (boxes,)."""
        sizes: Numbers = np.prod(self.high - self.low, axis=1)
        return sizes

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum of the values in each box, shape (boxes,).

        Args:
            values: one number per cell, a whole number or a real one.
        """
        prefix = prefix_sums(values)
        flat, axes = prefix.ravel(), values.ndim
        total = np.zeros(len(self.low), dtype=prefix.dtype)
        for corner in product((0, 1), repeat=axes):
            ends = tuple((self.high if top else self.low)[:, axis] for axis, top in enumerate(corner))
            part = flat[np.ravel_multi_index(ends, prefix.shape)]
            total += part if (axes - sum(corner)) % 2 == 0 else -part
        return total


def all_ranges(cells: int, length: int) -> Boxes:
    """Every range of `length` neighbours on a line of cells."""
    low = np.arange(cells - length + 1, dtype=np.int64)[:, None]
    return Boxes(low, low + length)


def random_boxes(shape: tuple[int, ...], number: int = BOXES, seed: int = SEED) -> Boxes:
    """Boxes between two cells that are drawn evenly along each axis; the same ones for the same seed.

    The seed is of public questions. It has nothing to do with noise, which has none.
    """
    draws = np.random.Generator(np.random.PCG64(seed))
    ends = draws.integers(0, np.array(shape), size=(2, number, len(shape)), dtype=np.int64)
    return Boxes(ends.min(axis=0), ends.max(axis=0) + 1)


def prefix_sums(values: NDArray[Any]) -> NDArray[Any]:
    """Sums of all cells before a corner, with a leading 0 along each axis: shape (n + 1, …), int64 or float64."""
    kind = np.int64 if values.dtype.kind in "iu" else np.float64
    sums = np.zeros(tuple(side + 1 for side in values.shape), dtype=kind)
    sums[(slice(1, None),) * values.ndim] = values
    for axis in range(values.ndim):
        np.cumsum(sums, axis=axis, out=sums)
    return sums
