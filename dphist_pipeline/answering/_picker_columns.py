"""Numbers of cells as the picker's script reads them: columns, and tiles of large tables.

A tile holds the cells of a block of positions, and before them sums: of all cells from the first position of the table
up to the tile, along one axis or several. So a box of cells is a sum and difference of what the tiles at its corners
have, and all other tiles are left unread. Sums are whole 2^-20ths and what remains of them, which the macros add up
apart, too: the answer is the same to the last bit, whichever files it came from.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

LEAST_COMPRESSED = 1000  # numbers in a column
LEAST_SPLIT = 100_000  # bytes of columns: those of ten periods are answered whole
BYTES_OF_TILE = 30_000  # that a tile has at most, without its sums
SHORTEST_SIDE = 8  # positions of a tile along an axis that is split
MOST_ALL = 2.0**31  # sum of absolute values of a column, so that sums are whole numbers of a double
MOST_HEAVIER = 1.2  # of all tiles, times the columns that they are made from
_UNITS = 2.0**20


def members(columns: Mapping[str, str]) -> str:
    """The inside of an object of columns."""
    return ",".join(f'"{name}":{text}' for name, text in columns.items())


def beside(estimate: NDArray[np.float64], unbiased: NDArray[np.float64]) -> str:
    """Estimates or whole counts as a script has them: those that are not the unbiased ones with their places, or all.

    Args:
        estimate: shape (cells,); all nan where there are none.
        unbiased: shape (cells,), nan for none.
    """
    if np.isnan(estimate).all():
        return column(estimate)
    (places,) = np.nonzero(estimate != unbiased)
    different = f'{{"at":{json.dumps(places.tolist(), separators=(",", ":"))},"are":{column(estimate[places])}}}'
    return min(different, column(estimate), key=len)


def column(values: NDArray[np.float64]) -> str:
    """Numbers as a script has them: a list, doubles in base 64, or compressed in base 85; null if all are.

    Args:
        values: shape (numbers,), nan for null.
    """
    if np.isnan(values).all():
        return "null" if values.size else "[]"
    whole = np.isfinite(values) & (values == np.trunc(values))
    numbers = [
        "null" if value != value else str(int(value)) if is_whole else repr(value)
        for value, is_whole in zip(values.tolist(), whole.tolist(), strict=True)
    ]
    array = f"[{','.join(numbers)}]"
    doubles = values.astype("<f8")
    forms = [array, f'"{base64.b64encode(doubles.tobytes()).decode()}"']
    if values.size >= LEAST_COMPRESSED:
        # First bytes of doubles are much alike, last ones are not.
        apart = doubles.view(np.uint8).reshape(-1, 8).T.tobytes()
        forms.append(f'"~{base64.b85encode(zlib.compress(apart, 9)).decode()}"')
    return min(forms, key=len)


def tile_layout(
    shape: Sequence[int],
    estimate: NDArray[np.float64],
    unbiased: NDArray[np.float64],
    counts: NDArray[np.float64],
    size: int,
) -> tuple[list[int], list[str]] | None:
    """Parts of each axis, and the tiles of a table in order, the last axis first; None where tiles do not pay.

    Args:
        shape: positions of each axis.
        estimate: of each cell in declared order, shape (cells,).
        unbiased: likewise, shape (cells,); all nan where there are none.
        counts: whole counts, likewise.
        size: of all columns together, in bytes.
    """
    columns = {"estimate": estimate, "unbiased": unbiased, "whole": counts}
    columns = {name: values for name, values in columns.items() if not np.isnan(values).all()}
    can_be = all(float(np.abs(one).sum()) < MOST_ALL for one in columns.values())  # nan is not
    parts = _parts(shape, size // BYTES_OF_TILE + 1)
    if size <= LEAST_SPLIT or not can_be or math.prod(parts) == 1:
        return None
    tiles = [_tile(place, shape, parts, columns) for place in product(*map(range, parts))]
    return (parts, tiles) if sum(map(len, tiles)) <= MOST_HEAVIER * size else None


def _parts(shape: Sequence[int], wanted: int) -> list[int]:
    """How many parts each axis is split into, so that there are about as many tiles as wanted: long axes first."""
    parts = [1] * len(shape)
    while math.prod(parts) < wanted:
        longest = max(range(len(shape)), key=lambda axis: shape[axis] / parts[axis])
        if shape[longest] / parts[longest] < 2 * SHORTEST_SIDE:
            break
        parts[longest] *= 2
    # The last of many parts may have no position of its own.
    return [math.ceil(size / side(size, number)) for size, number in zip(shape, parts, strict=True)]


def side(size: int, parts: int) -> int:
    """Positions of each part of an axis but the last."""
    return math.ceil(size / parts)


def _tile(
    place: Sequence[int], shape: Sequence[int], parts: Sequence[int], columns: Mapping[str, NDArray[np.float64]]
) -> str:
    """A tile: its cells, and `before`, the sums at its front in whole 2^-20ths and in what remains; null for only 0."""
    sides = [side(size, number) for size, number in zip(shape, parts, strict=True)]
    spans = [(at * long, min(size, (at + 1) * long)) for at, long, size in zip(place, sides, shape, strict=True)]
    cells = {
        name: values.reshape(shape)[tuple(slice(*span) for span in spans)].ravel() for name, values in columns.items()
    }
    none = np.full(cells["estimate"].shape, np.nan)
    unbiased, counts = cells.get("unbiased", none), cells.get("whole", none)
    texts = {"unbiased": column(unbiased)}
    texts |= {"estimate": beside(cells["estimate"], unbiased), "whole": beside(counts, unbiased)}
    fronts = {name: f"[{','.join(_front(spans, shape, values))}]" for name, values in columns.items()}
    if fronts["estimate"] == fronts.get("unbiased") and np.array_equal(columns["estimate"], columns["unbiased"]):
        fronts["estimate"] = "null"
    return f'{{{members(texts)},"before":{{{members(fronts)}}}}}'


def _front(spans: Sequence[tuple[int, int]], shape: Sequence[int], values: NDArray[np.float64]) -> Iterator[str]:
    """Columns of sums of the blocks before a tile: each lies before it along one axis at least, along others within."""
    units = np.floor(values * _UNITS)
    for part in (units, values - units / _UNITS):
        block = part.reshape(shape)
        for axis, (first, after) in enumerate(spans):
            upto, held = np.split(np.moveaxis(block, axis, 0)[:after], [first])
            if first:
                held = np.concatenate([upto.sum(axis=0, keepdims=True), held])
            block = np.moveaxis(held, 0, axis)
        is_front = np.zeros(block.shape, dtype=bool)
        for axis, (first, _) in enumerate(spans):
            if first:
                np.moveaxis(is_front, axis, 0)[0] = True
        front = block[is_front]
        yield column(front) if front.any() else "null"
