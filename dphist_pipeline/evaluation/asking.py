"""Workloads as a person names them: `ranges:1,50,100` on one axis, `boxes:100000` on any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import DphistError
from dphist_pipeline.evaluation import metrics
from dphist_pipeline.evaluation.workloads import BOXES, RANGE_LENGTHS, Boxes, all_ranges, random_boxes

MOST_BOXES = 10_000_000
ERRORS = {
    "mse": metrics.mean_squared_error,
    "mre": metrics.mean_relative_error,
    "mae": metrics.mean_absolute_error,
}


class WorkloadRefused(DphistError):
    """Text that does not name a workload, or one that the counts cannot be asked."""

    def __init__(self, written: str, problem: str) -> None:
        self.written = written
        super().__init__(f"workload {written[:60]!r}: {problem}")


@dataclass(frozen=True, eq=False)
class Workload:
    """Questions in parts that are reported apart: a part holds the ranges of one length, or all boxes.

    Attributes:
        name: `range` or `box`, the first word of its measures.
        about: what it asks, for people.
        parts: boxes by the text that tells the parts apart, empty for a single part.
    """

    name: str
    about: str
    parts: tuple[tuple[str, Boxes], ...]

    def answers(self, exact: NDArray[np.integer[Any]]) -> list[NDArray[np.integer[Any]]]:
        """The true answers, part by part."""
        return [boxes.sums(exact) for _, boxes in self.parts]

    def errors(
        self, truth: Sequence[NDArray[np.integer[Any]]], values: NDArray[np.float64]
    ) -> dict[tuple[str, str], float]:
        """Errors of a release at each part, and their mean over the parts."""
        found: dict[tuple[str, str], float] = {}
        for kind, error in ERRORS.items():
            by_part = {at: error(true, boxes.sums(values)) for (at, boxes), true in zip(self.parts, truth, strict=True)}
            found |= {(f"{self.name}_{kind}", at): value for at, value in by_part.items() if at}
            found[f"{self.name}_{kind}", ""] = float(np.mean(list(by_part.values())))
        return found


def parse_workloads(written: Sequence[str], shape: tuple[int, ...]) -> list[Workload]:
    """The workloads of these names; for none, `ranges` on one axis and `boxes` on several."""
    asked = written or (["ranges"] if len(shape) == 1 else ["boxes"])
    found = [_parse(text, shape) for text in asked]
    if len({workload.name for workload in found}) < len(found):
        raise WorkloadRefused(asked[-1], "each kind of workload can be asked once")
    return found


def _parse(text: str, shape: tuple[int, ...]) -> Workload:
    kind, _, rest = text.partition(":")
    numbers = [_number(text, word) for word in rest.split(",")] if rest else []
    if kind == "ranges":
        return _ranges(text, numbers, shape)
    if kind == "boxes" and len(numbers) <= 1:
        number = numbers[0] if numbers else BOXES
        if number > MOST_BOXES:
            raise WorkloadRefused(text, f"the most boxes are {MOST_BOXES:,}")
        return Workload("box", f"{number:,} random boxes", (("", random_boxes(shape, number)),))
    raise WorkloadRefused(text, "write `ranges`, `ranges:LENGTH,…`, `boxes` or `boxes:NUMBER`")


def _ranges(text: str, lengths: list[int], shape: tuple[int, ...]) -> Workload:
    if len(shape) != 1:
        raise WorkloadRefused(text, f"asks one axis, and the counts have {len(shape)}; use `boxes`")
    if max(lengths, default=0) > shape[0]:
        raise WorkloadRefused(text, f"the counts have {shape[0]:,} cells")
    chosen = sorted(set(lengths)) or [length for length in RANGE_LENGTHS if length <= shape[0]]
    words = ", ".join(map(str, chosen)) if len(chosen) < 6 else f"{chosen[0]}, {chosen[1]}, …, {chosen[-1]}"
    parts = tuple((str(length), all_ranges(shape[0], length)) for length in chosen)
    return Workload("range", f"all ranges of {words} cells", parts)


def _number(text: str, word: str) -> int:
    if not (word.strip().isascii() and word.strip().isdecimal() and 0 < len(word.strip()) < 10 and int(word) > 0):
        raise WorkloadRefused(text, f"{word[:20]!r} is not a whole number above 0")
    return int(word)
