"""Expected errors of a mechanism before a release: exact from the noise law if possible, else simulated.

All errors are root mean squared errors in records: the root of the mean of (estimate - bounded count)². The errors are
exact if the estimates are the unbiased cells themselves, because then they do not depend on the counts; a release of an
empty table shows it. Other mechanisms are released repeatedly on public or invented counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, ReportedCells
from dphist_pipeline.workbench.evaluation.contenders import Contender
from dphist_pipeline.workbench.evaluation.measuring import sanitize_with
from dphist_pipeline.workbench.evaluation.workloads import Boxes, parse_workloads
from dphist_pipeline.workbench.planning.expected_reliability import poor_share

Numbers = NDArray[np.int64]
Progress = Callable[[str], None]
CELL = 1
ANY = "any"
SHARES = (0.01, 0.1, 0.5, 1.0)
PLACES = 64
SEED = 20_120_401
# Real counts are like none of the invented ones, and an earlier publication has its own noise: a told range is wider
# than the simulated errors, by these factors for a cell and for sums. See benchmarks/forecasts.py.
WIDER, WIDER_OF_ONE = (1.25, 1.6), (2.0, 2.5)
# The sum of most cells is one number in a release, and few numbers say little of an error: by how many there are,
# ranges of sums on one table reach down and up by these factors. Those of 1 and 2 were chosen with the others, on the
# same sets; those of 3 and 4 are what the mean of so many squared normal numbers needs.
WIDER_BY_FEW = {1: (3.2, 40.0), 2: (2.5, 8.0), 3: (2.5, 5.0), 4: (2.5, 3.2)}
# How a mechanism ranks: an error counts as this part of plain noise at least, so that being nearer still where hardly
# anything is to be told is no gain.
LEAST_GAIN = 1 / 3
# What is no nearer than this part of the error of a table of equal cells, on half of the counts, tells next to nothing.
LITTLE = 0.9


@dataclass(frozen=True, eq=False)
class QueryKind:
    """Boxes of one size, on one axis ranges; or those of a workload that the user named.

    Attributes:
        cells: number of cells in each box, or what the user asks for.
    """

    cells: int | str
    boxes: Boxes


def questions(shape: tuple[int, ...]) -> list[QueryKind]:
    """Boxes of about 1, 10, 50 and 100 % of the cells, one question for each size; always the same."""
    draws = np.random.Generator(np.random.PCG64(SEED))
    by_cells: dict[int, QueryKind] = {}
    for share in SHARES:
        part = share ** (1 / len(shape))
        sides = np.array([max(1, round(side * part)) for side in shape])
        cells = math.prod(sides.tolist())
        if cells > 1 and cells not in by_cells:
            low = draws.integers(0, np.array(shape) - sides + 1, size=(PLACES, len(shape)), dtype=np.int64)
            low = np.unique(low, axis=0)
            by_cells[cells] = QueryKind(cells, Boxes(low, low + sides))
    return list(by_cells.values())


def questions_of(text: str, shape: tuple[int, ...]) -> QueryKind:
    """The boxes of a workload, as many of each part: all, or about `PLACES` · 8 of them at even steps."""
    (workload,) = parse_workloads([text], shape)
    low, high = [], []
    for _, boxes in workload.parts:
        step = max(1, len(boxes.low) * len(workload.parts) // (8 * PLACES))
        low.append(boxes.low[::step])
        high.append(boxes.high[::step])
    return QueryKind(text, Boxes(np.concatenate(low), np.concatenate(high)))


@dataclass(frozen=True)
class Expected:
    """The expected errors of one mechanism at one epsilon.

    Attributes:
        mechanism: with its settings, as the user wrote it.
        by_law: True if the errors are exact from the noise law; False if they were simulated.
        errors: root mean squared errors in records, by name of the counts (`any` if exact), then by cells in a box.
        half_width: of the published 95 % interval of a cell, in records; None if none is published.
        box_half_widths: of the widest 95 % interval of a box, in records, by cells in the box.
        poor: share of cells that will be poor by name of the counts, from 0 to 1; empty if no interval is published.
        numbers: how many numbers an error on one table is the mean of, by cells in a box: releases times boxes without
            a common cell; many if it is left out.
    """

    mechanism: str
    epsilon: Fraction
    by_law: bool
    errors: Mapping[str, Mapping[int | str, float]]
    half_width: float | None
    box_half_widths: Mapping[int | str, float]
    poor: Mapping[str, float]
    numbers: Mapping[int | str, int] = field(default_factory=dict)

    def between(self, cells: int | str) -> tuple[float, float]:
        """The smallest and the largest error over all counts, in records, wider where they were simulated."""
        errors = [by_size[cells] for by_size in self.errors.values()]
        if self.by_law:
            return errors[0], errors[0]
        cell, box = WIDER_OF_ONE if len(errors) == 1 else WIDER
        wider = cell if cells == CELL else box
        down, up = wider, wider
        if len(errors) == 1 and cells != CELL:
            down, up = WIDER_BY_FEW.get(self.numbers.get(cells, 0), (wider, wider))
        return min(errors) / down, max(errors) * up

    def facts(self) -> dict[str, Any]:
        """The errors as JSON values."""
        return {
            "mechanism": self.mechanism,
            "epsilon": float(self.epsilon),
            "epsilon_exact": str(self.epsilon),
            "basis": "law" if self.by_law else "simulated",
            "rmse": {
                shape: {str(cells): error for cells, error in by_size.items()} for shape, by_size in self.errors.items()
            },
            "told": {str(cells): list(self.between(cells)) for cells in next(iter(self.errors.values()))},
            "interval_half_width": self.half_width,
            "box_interval_half_width": {str(cells): width for cells, width in self.box_half_widths.items()},
            "poor_share": dict(self.poor),
        }


@dataclass(frozen=True, eq=False)
class Forecaster:
    """Computes expected errors for a grid.

    Attributes:
        sensitivity: largest change of the counts by one privacy unit, in records.
        counts: public or invented counts by name, shape of the grid, for simulations.
        repeat: number of simulated releases for each of the counts.
        counted: the part of a release's epsilon that the mechanism has; a quality table takes the rest.
    """

    shape: tuple[int, ...]
    sensitivity: int
    asked: Sequence[QueryKind]
    counts: Mapping[str, Numbers]
    repeat: int
    counted: Fraction = Fraction(1)

    def expected(self, contender: Contender, epsilon: Fraction, progress: Progress = lambda step: None) -> Expected:
        """The errors of a mechanism at an epsilon."""
        progress(f"{contender.written}, epsilon {float(epsilon):g}")
        estimate = self._release_of_empty_table(contender, epsilon)
        unbiased, lawful = _unbiased_cells(estimate), estimate.is_unbiased
        if unbiased is not None and lawful:
            errors = {ANY: self._by_law(unbiased)}
        else:
            errors = {
                name: self._simulated(contender, epsilon, counts, self.asked) for name, counts in self.counts.items()
            }
        cell, widths, poor = None, {}, {}
        if unbiased is not None:
            cell, error = unbiased.half_width_of_cell(), math.sqrt(unbiased.variance)
            widths = {
                question.cells: max(unbiased.half_width_of_box(box) for box in _distinct_boxes(unbiased, question))
                for question in self.asked
            }
            poor = {name: poor_share(counts, error) for name, counts in self.counts.items()}
        return Expected(contender.written, epsilon, lawful, errors, cell, widths, poor, self._numbers())

    def ranks(
        self, expected: Sequence[Expected], sizes: Sequence[int | str], epsilon: Fraction
    ) -> list[tuple[bool, float]]:
        """Sorts before others what has smaller errors by factors, in the mean over all counts and questions.

        Mechanisms that tell next to nothing of cells come last: they have small errors where there is little to tell.
        """
        variance = noise_law(self.sensitivity / (epsilon * self.counted)).variance
        cells_asked = {question.cells: float(question.boxes.cells.mean()) for question in self.asked} | {CELL: 1.0}
        ranks = []
        for candidate in expected:
            logs = [
                math.log(max(by_size[size], LEAST_GAIN * math.sqrt(cells_asked[size] * variance)))
                for by_size in candidate.errors.values()
                for size in sizes
            ]
            ranks.append((self.says_little(candidate), sum(logs) / len(logs)))
        return ranks

    def says_little(self, one: Expected) -> bool:
        """Whether a mechanism is hardly nearer to cells than a table of equal cells, on half of the counts or more."""
        even = {name: float(counts.std()) for name, counts in self.counts.items()}
        uneven = [name for name, error in even.items() if error > 0]
        dull = [one.errors[ANY if one.by_law else name][CELL] >= LITTLE * even[name] for name in uneven]
        return 2 * sum(dull) >= len(dull) > 0

    def by_law(self, contender: Contender, epsilon: Fraction) -> bool:
        """Whether the errors are exact from the noise law; False if the mechanism refuses the epsilon."""
        try:
            return self._release_of_empty_table(contender, epsilon).is_unbiased
        except DphistError:
            return False

    def cell_error(self, contender: Contender, name: str, epsilon: Fraction) -> float:
        """The root mean squared error of a cell, in records; infinite if the mechanism refuses the epsilon.

        By the name `any` instead of that of counts, the error is that of the noise law.
        """
        try:
            if name != ANY:
                return self._simulated(contender, epsilon, self.counts[name], ())[CELL]
            unbiased = _unbiased_cells(self._release_of_empty_table(contender, epsilon))
        except DphistError:
            return math.inf
        return math.inf if unbiased is None else math.sqrt(unbiased.variance)

    def _release_of_empty_table(self, contender: Contender, epsilon: Fraction) -> Estimate:
        return self._release(np.zeros(self.shape, dtype=np.int64), contender, epsilon)

    def _release(self, exact: Numbers, contender: Contender, epsilon: Fraction) -> Estimate:
        return sanitize_with(exact, contender, epsilon * self.counted, self.sensitivity)

    def _numbers(self) -> dict[int | str, int]:
        cells = math.prod(self.shape)
        return {
            question.cells: self.repeat * max(1, int(cells / float(question.boxes.cells.mean())))
            for question in self.asked
        }

    def _by_law(self, unbiased: NoisyCells | NestedCells) -> dict[int | str, float]:
        errors: dict[int | str, float] = {CELL: math.sqrt(unbiased.variance)}
        for question in self.asked:
            variances = [unbiased.variance_of_sum(box) for box in _distinct_boxes(unbiased, question)]
            errors[question.cells] = math.sqrt(sum(variances) / len(variances))
        return errors

    def _simulated(
        self, contender: Contender, epsilon: Fraction, exact: Numbers, measured: Sequence[QueryKind]
    ) -> dict[int | str, float]:
        truths = [question.boxes.sums(exact) for question in measured]
        squares = np.zeros(1 + len(truths))
        for _ in range(self.repeat):
            values = self._release(exact, contender, epsilon).values
            squares[0] += np.mean((values - exact) ** 2)
            for number, (question, truth) in enumerate(zip(measured, truths, strict=True), 1):
                squares[number] += np.mean((question.boxes.sums(values) - truth) ** 2)
        roots = np.sqrt(squares / self.repeat).tolist()
        return dict(zip([CELL, *(question.cells for question in measured)], roots, strict=True))


def _unbiased_cells(estimate: Estimate) -> NoisyCells | NestedCells | None:
    """The unbiased cells of a mechanism of the central model."""
    if isinstance(estimate.unbiased, ReportedCells):
        raise TypeError("reports belong to the local model; see local.plan")
    return estimate.unbiased


def _distinct_boxes(unbiased: NoisyCells | NestedCells, question: QueryKind) -> Iterator[list[NDArray[np.int64]]]:
    """The boxes with different noise, as positions along each axis; one of one size if all cells have equal noise."""
    boxes = 1 if isinstance(unbiased, NoisyCells) and isinstance(question.cells, int) else None
    for low, high in zip(question.boxes.low[:boxes].tolist(), question.boxes.high[:boxes].tolist(), strict=True):
        yield [np.arange(start, stop) for start, stop in zip(low, high, strict=True)]
