"""The Hilbert curve: an order of the cells of a grid in which cells that follow each other lie near each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def hilbert_line(shape: tuple[int, ...]) -> Numbers:
    """Cell numbers, shape (cells,), in the order of the curve through the least cube of a power of two around the grid.

    In a grid that is such a cube, cells that follow each other are neighbours; in others, the curve jumps where it
    leaves the grid. By the bit operations of Skilling (2004), for all cells at once. A line keeps its order.
    O(cells · axes · log(longest side)) time, and an order of the cells by their places on the curve.

    Args:
        shape: cells along each axis; the axes times the bits of the longest side are at most 62.
    """
    places = [axis.ravel().astype(np.int64) for axis in np.indices(shape)]
    bits = max(1, (max(shape) - 1).bit_length())
    if bits * len(shape) > 62:
        raise ValueError("the cube around the grid has more than 2^62 cells")
    _turn(places, bits)
    along = np.zeros(places[0].size, dtype=np.int64)
    for bit in range(bits - 1, -1, -1):
        for place in places:
            along = (along << 1) | ((place >> bit) & 1)
    return np.argsort(along, kind="stable")


def _turn(places: list[Numbers], bits: int) -> None:
    """Turns positions along the axes into the bits of places on the curve, in place."""
    first = places[0]
    for bit in range(bits - 1, 0, -1):
        low = (1 << bit) - 1
        for place in places:
            turned = (place >> bit) & 1 == 1
            swapped = np.where(turned, 0, (first ^ place) & low)
            first ^= np.where(turned, low, swapped)
            if place is not first:
                place ^= swapped
    for before, place in pairwise(places):
        place ^= before
    flips = np.zeros_like(first)
    for bit in range(bits - 1, 0, -1):
        flips ^= np.where((places[-1] >> bit) & 1 == 1, (1 << bit) - 1, 0)
    for place in places:
        place ^= flips
