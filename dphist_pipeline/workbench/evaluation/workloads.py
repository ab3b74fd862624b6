"""Workloads: questions about a released cube, answered from prefix sums.

The user names them as `ranges:1,50,100` (all ranges of these lengths, one axis), `boxes:100000` (random boxes),
`prefixes` (all ranges or boxes from the first cell) or `windows:7` (all of 7 cells along every axis).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import Refused
from dphist_pipeline.workbench.evaluation import metrics

Numbers = NDArray[np.int64]
RANGE_LENGTHS = (1, *range(50, 501, 50))
BOXES = 100_000
SEED = 20_120_105
MOST_BOXES = 10_000_000
ERRORS = {
    "mse": metrics.mean_squared_error,
    "mre": metrics.mean_relative_error,
    "mae": metrics.mean_absolute_error,
}


@dataclass(frozen=True, eq=False)
class Boxes:
    """Half-open boxes of cells.

    Attributes:
        low: first cell along each axis, shape (boxes, axes).
        high: the cell after the last along each axis, shape (boxes, axes).
    """

    low: Numbers
    high: Numbers

    @property
    def cells(self) -> Numbers:
        """Number of cells in each box, shape (boxes,)."""
        sizes: Numbers = np.prod(self.high - self.low, axis=1)
        return sizes

    def sums(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum of the values in each box, shape (boxes,)."""
        prefix = prefix_sums(values)
        flat, axes = prefix.ravel(), values.ndim
        total = np.zeros(len(self.low), dtype=prefix.dtype)
        for corner in product((0, 1), repeat=axes):
            ends = tuple((self.high if top else self.low)[:, axis] for axis, top in enumerate(corner))
            part = flat[np.ravel_multi_index(ends, prefix.shape)]
            total += part if (axes - sum(corner)) % 2 == 0 else -part
        return total


def all_ranges(cells: int, length: int) -> Boxes:
    """All ranges of one length, in cells, on a line of cells."""
    low = np.arange(cells - length + 1, dtype=np.int64)[:, None]
    return Boxes(low, low + length)


def random_boxes(shape: tuple[int, ...], number: int = BOXES, seed: int = SEED) -> Boxes:
    """Boxes between two cells that are drawn uniformly along each axis; the seed is of these public questions alone."""
    draws = np.random.Generator(np.random.PCG64(seed))
    ends = draws.integers(0, np.array(shape), size=(2, number, len(shape)), dtype=np.int64)
    return Boxes(ends.min(axis=0), ends.max(axis=0) + 1)


def prefixes(shape: tuple[int, ...], most: int = BOXES, seed: int = SEED) -> Boxes:
    """Boxes from the first cell, each once; if they are more than `most`, so many of them, evenly drawn."""
    numbers = _sample_below(math.prod(shape), most, seed)
    high = np.stack(np.unravel_index(numbers, shape), axis=1) + 1
    return Boxes(np.zeros_like(high), high)


def windows(shape: tuple[int, ...], length: int, most: int = BOXES, seed: int = SEED) -> Boxes:
    """Boxes of one length in cells along every axis, of the whole axis where it is shorter; see `prefixes`."""
    sides = np.minimum(shape, length)
    places = tuple(int(side) for side in np.array(shape) - sides + 1)
    low = np.stack(np.unravel_index(_sample_below(math.prod(places), most, seed), places), axis=1)
    return Boxes(low, low + sides)


def _sample_below(number: int, most: int, seed: int) -> Numbers:
    """All numbers below one, or some of them, evenly drawn."""
    if number <= most:
        return np.arange(number)
    return np.random.Generator(np.random.PCG64(seed)).integers(0, number, most)


def prefix_sums(values: NDArray[Any]) -> NDArray[Any]:
    """The sum of all cells before each corner, int64 or float64, shape (n + 1, …), with a leading 0 along each axis.

    Args:
        values: one integer or float per cell, shape (n, …).
    """
    kind = np.int64 if values.dtype.kind in "iu" else np.float64
    sums = np.zeros(tuple(side + 1 for side in values.shape), dtype=kind)
    sums[(slice(1, None),) * values.ndim] = values
    for axis in range(values.ndim):
        np.cumsum(sums, axis=axis, out=sums)
    return sums


def workload_refused(text: str, problem: str) -> Refused:
    """The text does not name a workload, or the workload does not fit the counts."""
    return Refused(f"workload {text[:60]!r}: {problem}", code="workload_refused")


@dataclass(frozen=True, eq=False)
class EvaluationWorkload:
    """Questions in parts whose errors are reported separately: the ranges of one length, or all boxes.

    Attributes:
        name: `range`, `box`, `prefix` or `window`, the first word of its measures.
        parts: (name of the part, boxes); the name is empty if there is one part only.
    """

    name: str
    about: str
    parts: tuple[tuple[str, Boxes], ...]

    def answers(self, exact: NDArray[np.integer[Any]]) -> list[NDArray[np.integer[Any]]]:
        """The exact answers of each part, shape (boxes,) each."""
        return [boxes.sums(exact) for _, boxes in self.parts]

    def errors(
        self, truth: Sequence[NDArray[np.integer[Any]]], values: NDArray[np.float64]
    ) -> dict[tuple[str, str], float]:
        """The errors of a release in each part, their means over the parts, and the largest of all.

        Returns:
            Error by (measure, part); the part is empty for a mean or a maximum over the parts.
        """
        errors: dict[tuple[str, str], float] = {}
        for kind, error in ERRORS.items():
            by_part = {at: error(true, boxes.sums(values)) for (at, boxes), true in zip(self.parts, truth, strict=True)}
            errors |= {(f"{self.name}_{kind}", at): value for at, value in by_part.items() if at}
            errors[f"{self.name}_{kind}", ""] = float(np.mean(list(by_part.values())))
        errors[f"{self.name}_max", ""] = max(
            float(np.abs(boxes.sums(values) - true).max()) for (_, boxes), true in zip(self.parts, truth, strict=True)
        )
        return errors


def parse_workloads(texts: Sequence[str], shape: tuple[int, ...]) -> list[EvaluationWorkload]:
    """The workloads with these names; without names, `ranges` on one axis and `boxes` on several.

    Raises:
        Refused: a name is unknown, does not fit the counts, or is repeated.
    """
    names = texts or (["ranges"] if len(shape) == 1 else ["boxes"])
    workloads = [_parse(text, shape) for text in names]
    if len({workload.name for workload in workloads}) < len(workloads):
        raise workload_refused(names[-1], "each kind of workload can be asked once")
    return workloads


def _parse(text: str, shape: tuple[int, ...]) -> EvaluationWorkload:
    kind, _, rest = text.partition(":")
    numbers = [_number(text, word) for word in rest.split(",")] if rest else []
    if kind == "ranges":
        return _ranges(text, numbers, shape)
    if kind == "boxes" and len(numbers) <= 1:
        number = numbers[0] if numbers else BOXES
        if number > MOST_BOXES:
            raise workload_refused(text, f"the most boxes are {MOST_BOXES:,}")
        return EvaluationWorkload("box", f"{number:,} random boxes", (("", random_boxes(shape, number)),))
    if kind == "prefixes" and not rest:
        return EvaluationWorkload("prefix", "all prefixes", (("", prefixes(shape)),))
    if kind == "windows" and len(numbers) == 1:
        description = f"all windows of {numbers[0]:,} cells{' along every axis' if len(shape) > 1 else ''}"
        return EvaluationWorkload("window", description, (("", windows(shape, numbers[0])),))
    raise workload_refused(
        text, "write `ranges`, `ranges:LENGTH,…`, `boxes`, `boxes:NUMBER`, `prefixes` or `windows:LENGTH`"
    )


def _ranges(text: str, lengths: list[int], shape: tuple[int, ...]) -> EvaluationWorkload:
    if len(shape) != 1:
        raise workload_refused(text, f"asks one axis, and the counts have {len(shape)}; use `boxes`")
    if max(lengths, default=0) > shape[0]:
        raise workload_refused(text, f"the counts have {shape[0]:,} cells")
    range_lengths = sorted(set(lengths)) or [length for length in RANGE_LENGTHS if length <= shape[0]]
    words = (
        ", ".join(map(str, range_lengths))
        if len(range_lengths) < 6
        else f"{range_lengths[0]}, {range_lengths[1]}, …, {range_lengths[-1]}"
    )
    parts = tuple((str(length), all_ranges(shape[0], length)) for length in range_lengths)
    return EvaluationWorkload("range", f"all ranges of {words} cells", parts)


def _number(text: str, word: str) -> int:
    if not (word.strip().isascii() and word.strip().isdecimal() and 0 < len(word.strip()) < 10 and int(word) > 0):
        raise workload_refused(text, f"{word[:20]!r} is not a whole number above 0")
    return int(word)
