"""Groups of alike cells, whatever their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.compiled import at_once, compiled
from dphist_pipeline.solvers.value_order import extent, stable_order

LONG = 400_000  # cells that are worth a second thread
HEIGHTS = 65_536  # whole numbers that are counted: the counters fit into the cache
Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]
P = TypeVar("P")
R = TypeVar("R")


def groups_by_value(values: Reals, grouping: Callable[[Reals], Numbers]) -> Numbers:
    """Group number of every cell, shape of `values`, by a grouping of the sorted values; ties in order of cells.

    Whole numbers, such as noisy counts, are not sorted but counted, both halves of many cells at once: how often each
    occurs tells the sorted line, and every cell's place in it. Only the few that lie far above the rest are sorted. The
    grouping must not keep its line, whose memory is used again. O(n) time and memory beside the grouping.
    """
    cells = np.ascontiguousarray(values, dtype=np.float64).ravel()
    middle = cells.size // 2 if cells.size >= LONG else 0
    parts = [slice(0, middle), slice(middle, cells.size)][-2 if middle else -1 :]
    extents = _each(lambda part: extent(cells[part]), parts)
    if all(whole for _, _, whole in extents):
        least, most = min(low for low, _, _ in extents), max(high for _, high, _ in extents)
        groups = _by_counting(cells, parts, least, min(int(most - least) + 1, HEIGHTS), grouping)
    else:
        order, groups = stable_order(cells), np.empty(cells.size, dtype=np.int64)
        groups[order] = grouping(cells[order])
    return groups.reshape(values.shape)


def _by_counting(
    cells: Reals, parts: Sequence[slice], least: float, heights: int, grouping: Callable[[Reals], Numbers]
) -> Numbers:
    """The group numbers of whole numbers, in one part or two; those less than `heights` above the least are counted."""
    counters = np.int32 if cells.size < 2**31 else np.int64
    places = np.zeros((len(parts), heights + 1), dtype=counters)  # the last one for the cells beyond
    rows = list(zip(parts, places, strict=True))
    _each(lambda row: _count(cells[row[0]], least, row[1]), rows)
    beyond = np.empty(places[:, -1].sum(), dtype=np.int64)
    # Large arrays are made by NumPy, not in compiled code: it asks the system for large pages.
    line = np.empty(cells.size)
    cut, before = _middle_height(places, cells.size // 2) if len(parts) == 2 else (heights, 0)
    _each(lambda ends: _lay(places, least, *ends, line), [(0, cut, 0), (cut, heights, before)][: len(parts)])
    if beyond.size > 0:
        _find_beyond(cells, least + heights, beyond)
        beyond = beyond[stable_order(cells[beyond])]
        line[-beyond.size :] = cells[beyond]
    numbers = grouping(line)
    groups = line.view(np.int64)  # fresh memory costs more than writing to it
    _each(lambda row: _spread(cells[row[0]], least, row[1], numbers, groups[row[0]]), rows)
    groups[beyond] = numbers[cells.size - beyond.size :]
    return groups


def _each(function: Callable[[P], R], parts: Sequence[P]) -> list[R]:
    """What a function gives for one part, or for two at once."""
    if len(parts) == 1:
        return [function(parts[0])]
    return list(at_once(lambda: function(parts[0]), lambda: function(parts[1])))


@compiled
def _count(cells, least, counts):  # type: ignore[no-untyped-def]
    """Counts how many cells lie how far above the least, and in the last place how many lie beyond."""
    last = counts.size - 1.0
    for value in cells:
        counts[int(min(value - least, last))] += 1


@compiled
def _middle_height(counts, cells):  # type: ignore[no-untyped-def]
    """A height below which at most so many cells lie, and how many do."""
    below, height = 0, 0
    while height < counts.shape[1] - 1 and below + counts[0, height] + counts[1, height] <= cells:
        below += counts[0, height] + counts[1, height]
        height += 1
    return height, below


@compiled
def _lay(places, least, low, high, at, line):  # type: ignore[no-untyped-def]
    """Writes the sorted values of some heights from a place on.

    In `places`, how many cells of each part have a height becomes where the first of them stands in the line.
    """
    for height in range(low, high):
        start = at
        for part in range(places.shape[0]):
            places[part, height], at = at, at + places[part, height]
        for place in range(start, at):
            line[place] = least + height


@compiled
def _find_beyond(cells, bound, found):  # type: ignore[no-untyped-def]
    """Writes the places of the cells from a bound on."""
    next_one = 0
    for cell in range(cells.size):
        if cells[cell] >= bound:
            found[next_one] = cell
            next_one += 1


@compiled
def _spread(cells, least, places, numbers, groups):  # type: ignore[no-untyped-def]
    """Writes the group number of every counted cell; equal ones stand side by side, in order of the cells."""
    last = places.size - 1.0
    places[-1] = 0  # what is written for the cells beyond is overwritten
    for cell in range(cells.size):
        height = int(min(cells[cell] - least, last))
        place = places[height]
        places[height] = place + 1
        groups[cell] = numbers[place]
