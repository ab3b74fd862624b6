"""Expected errors before anything is spent: by the law of the noise where estimates are its sums, else by simulation.

All errors are root mean squared errors, in records: the root of the mean of (estimate - bounded count)². Which
mechanisms have a law is seen in a release of an empty table: those whose estimates are their unbiased cells. Others
depend on the counts, and are released again and again on counts that may be seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.answering.intervals import half_width_of_box, half_width_of_cell
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, ReportedCells
from dphist_pipeline.evaluation.contenders import Contender
from dphist_pipeline.evaluation.measuring import released
from dphist_pipeline.evaluation.workloads import Boxes

Numbers = NDArray[np.int64]
Progress = Callable[[str], None]
CELL = 1
ANY = "any"
SHARES = (0.01, 0.1, 0.5, 1.0)
PLACES = 64
SEED = 20_120_401


@dataclass(frozen=True, eq=False)
class Question:
    """Boxes of one size; a range, where there is one axis.

    Attributes:
        cells: in each box.
        boxes: that many cells each, where they lie drawn evenly.
    """

    cells: int
    boxes: Boxes


def questions(shape: tuple[int, ...]) -> list[Question]:
    """Boxes of about 1, 10, 50 and 100 % of the cells, each size once; the same ones every time."""
    draws = np.random.Generator(np.random.PCG64(SEED))
    found: dict[int, Question] = {}
    for share in SHARES:
        part = share ** (1 / len(shape))
        sides = np.array([max(1, round(side * part)) for side in shape])
        cells = math.prod(sides.tolist())
        if cells > 1 and cells not in found:
            low = draws.integers(0, np.array(shape) - sides + 1, size=(PLACES, len(shape)), dtype=np.int64)
            low = np.unique(low, axis=0)
            found[cells] = Question(cells, Boxes(low, low + sides))
    return list(found.values())


@dataclass(frozen=True)
class Expected:
    """The errors of one mechanism at one epsilon.

    Attributes:
        mechanism: as it was asked for.
        epsilon: of one release.
        by_law: whether the noise's law gives them; else they were simulated.
        errors: by shape of the counts (`any` by law), then by cells in a box: root mean squared errors, in records.
        half_width: of the published 95 % interval of a cell, by law; None where none is published.
        box_half_widths: likewise by cells in a box, the widest of them.
    """

    mechanism: str
    epsilon: Fraction
    by_law: bool
    errors: Mapping[str, Mapping[int, float]]
    half_width: float | None
    box_half_widths: Mapping[int, float]

    def between(self, cells: int) -> tuple[float, float]:
        """The smallest and the largest error over the shapes, of boxes with so many cells."""
        found = [by_size[cells] for by_size in self.errors.values()]
        return min(found), max(found)

    def facts(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "mechanism": self.mechanism,
            "epsilon": float(self.epsilon),
            "epsilon_exact": str(self.epsilon),
            "basis": "law" if self.by_law else "simulated",
            "rmse": {
                shape: {str(cells): error for cells, error in found.items()} for shape, found in self.errors.items()
            },
            "interval_half_width": self.half_width,
            "box_interval_half_width": {str(cells): width for cells, width in self.box_half_widths.items()},
        }


@dataclass(frozen=True, eq=False)
class Forecaster:
    """What is forecast: a grid, a sensitivity, questions, and counts that may be seen.

    Attributes:
        shape: of the grid.
        sensitivity: of the spec.
        asked: sizes of boxes.
        counts: by name; what mechanisms without a law are simulated on.
        repeat: releases for each of them.
    """

    shape: tuple[int, ...]
    sensitivity: int
    asked: Sequence[Question]
    counts: Mapping[str, Numbers]
    repeat: int

    def expected(self, contender: Contender, epsilon: Fraction, progress: Progress = lambda step: None) -> Expected:
        """The errors of a mechanism at an epsilon."""
        progress(f"{contender.written}, epsilon {float(epsilon):g}")
        made = self._on_nothing(contender, epsilon)
        unbiased, lawful = _drawn(made), has_law(made)
        if unbiased is not None and lawful:
            errors = {ANY: self._by_law(unbiased)}
        else:
            errors = {
                name: self._simulated(contender, epsilon, counts, self.asked) for name, counts in self.counts.items()
            }
        widths = self._box_half_widths(unbiased) if unbiased is not None else {}
        cell = half_width_of_cell(unbiased) if unbiased is not None else None
        return Expected(contender.written, epsilon, lawful, errors, cell, widths)

    def by_law(self, contender: Contender, epsilon: Fraction) -> bool:
        """Whether the noise's law gives the errors; False where the mechanism does not serve at the epsilon."""
        try:
            return has_law(self._on_nothing(contender, epsilon))
        except DphistError:
            return False

    def cell_error(self, contender: Contender, name: str, epsilon: Fraction) -> float:
        """The error of a cell on the counts of that name, or by law; infinite where the mechanism does not serve."""
        try:
            if name != ANY:
                return self._simulated(contender, epsilon, self.counts[name], ())[CELL]
            unbiased = _drawn(self._on_nothing(contender, epsilon))
        except DphistError:
            return math.inf
        return math.inf if unbiased is None else math.sqrt(unbiased.variance)

    def _on_nothing(self, contender: Contender, epsilon: Fraction) -> Estimate:
        return released(np.zeros(self.shape, dtype=np.int64), contender, epsilon, self.sensitivity)

    def _by_law(self, unbiased: NoisyCells | NestedCells) -> dict[int, float]:
        errors = {CELL: math.sqrt(unbiased.variance)}
        for question in self.asked:
            variances = [_variance(unbiased, chosen) for chosen in _telling(unbiased, question)]
            errors[question.cells] = math.sqrt(sum(variances) / len(variances))
        return errors

    def _box_half_widths(self, unbiased: NoisyCells | NestedCells) -> dict[int, float]:
        return {
            question.cells: max(half_width_of_box(unbiased, chosen) for chosen in _telling(unbiased, question))
            for question in self.asked
        }

    def _simulated(
        self, contender: Contender, epsilon: Fraction, exact: Numbers, asked: Sequence[Question]
    ) -> dict[int, float]:
        truths = [question.boxes.sums(exact) for question in asked]
        squares = np.zeros(1 + len(truths))
        for _ in range(self.repeat):
            values = released(exact, contender, epsilon, self.sensitivity).values
            squares[0] += np.mean((values - exact) ** 2)
            for number, (question, truth) in enumerate(zip(asked, truths, strict=True), 1):
                squares[number] += np.mean((question.boxes.sums(values) - truth) ** 2)
        roots = np.sqrt(squares / self.repeat).tolist()
        return dict(zip([CELL, *(question.cells for question in asked)], roots, strict=True))


def _drawn(made: Estimate) -> NoisyCells | NestedCells | None:
    """The unbiased cells of a mechanism, which draws its noise itself."""
    if isinstance(made.unbiased, ReportedCells):
        raise TypeError("what contributors report is no mechanism of the central model; see local.plan")
    return made.unbiased


def has_law(made: Estimate) -> bool:
    """Whether the estimates are the unbiased cells themselves, so that the noise alone makes their error."""
    return made.unbiased is not None and made.groups is None and np.array_equal(made.values, made.unbiased.values)


def _telling(unbiased: NoisyCells | NestedCells, question: Question) -> Iterator[list[NDArray[np.int64]]]:
    """The boxes whose noise may differ, as positions along each axis: with equal noise in every cell, one of them."""
    boxes = 1 if isinstance(unbiased, NoisyCells) else None
    for low, high in zip(question.boxes.low[:boxes].tolist(), question.boxes.high[:boxes].tolist(), strict=True):
        yield [np.arange(start, stop) for start, stop in zip(low, high, strict=True)]


def _variance(unbiased: NoisyCells | NestedCells, chosen: Sequence[NDArray[np.int64]]) -> float:
    """Of the noise in a box; at most that, where the last nodes of a tree reach beyond the grid."""
    if isinstance(unbiased, NoisyCells):
        return unbiased.variance * math.prod(len(positions) for positions in chosen)
    return unbiased.variance_of_sum(chosen)
