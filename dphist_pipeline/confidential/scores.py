"""The scores by which measurements choose: a closed set of frozen classes, each with its constant beside its proof.

A score gives every candidate of a group of cells a whole number, larger is better, from the exact counts of that group
alone. Its `constant` c says how far: for any two sets of counts x and x' of the group, no score moves by more than
c·||x - x'||_1. Counts are whole, so it is enough to prove that a step of one in one count moves no score by more than
c; the steps from x to x' add up. Parameters are public: mechanisms compute them from settings and noisy answers.

A measurement takes an instance of a class in `SCORES`, no subclass and nothing that merely looks like one, and works
with a copy that it makes itself. So no code of a mechanism runs on exact counts. A mechanism that needs another score
adds a class here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.confidential._plain_values import MeasurementMisuse, whole_number, whole_numbers

Numbers = NDArray[np.int64]
Centre = Literal["median", "mean"]

MOST_CELLS = 1 << 14  # the time of a last start grows with the square of the cells
LARGEST_CEILING = 1_000_000
LARGEST_PARAMETER = 1 << 52


class Score(ABC):
    """Whole numbers for the candidates of a group of cells; subclasses are frozen dataclasses without a `__dict__`."""

    __slots__ = ()

    @property
    @abstractmethod
    def constant(self) -> int:
        """The most that a score moves for each step of one in one count of its group; at least 1."""

    @abstractmethod
    def candidates(self, size: int) -> int:
        """How many candidates a group of so many cells has, by declaration; refuses sizes that it does not serve."""

    @abstractmethod
    def scores(self, exact: Numbers) -> Numbers:
        """The score of every candidate, int64, from the exact counts of one group, each within ±2^52.

        Args:
            exact: shape (cells of the group,), in the group's order.
        """

    def sensitivity(self, delta: int) -> int:
        """How far the score of one candidate moves against that of another, for counts at L1 distance `delta`.

        One may rise by constant·delta while the other falls by as much.

        Args:
            delta: in rows, at least 1.
        """
        return 2 * self.constant * delta


@dataclass(frozen=True, slots=True)
class LastStartByDeviations(Score):
    """Where the last of so many buckets of a line starts: minus the cost of the cheapest split that has this start.

    A bucket costs the absolute deviations of its counts from their median. Candidates are the cells buckets - 1, …,
    size - 1, for each bucket holds at least one cell.

    Constant 1: a step in one count moves the cost of every bucket that holds it by at most 1
    (`absolute_deviation.deviations`: clipped counts are no further apart, for a fixed centre a sum of |count - centre|
    moves by at most 1, and a minimum over centres no further). A split has one bucket that holds the count, and the
    cheapest split is again a minimum (`bucket_splits.costs_of_last_starts`).

    Attributes:
        buckets: how many, at least 2.
    """

    buckets: int

    def __post_init__(self) -> None:
        whole_number(self.buckets, "the number of buckets", 2, MOST_CELLS)

    @property
    def constant(self) -> int:
        """1: proved above."""
        return 1

    def candidates(self, size: int) -> int:
        """One for each start that leaves a cell for every bucket before it."""
        return _starts(size, self.buckets)

    def scores(self, exact: Numbers) -> Numbers:
        """Minus the cost of the cheapest split with each start; O(cells² · buckets)."""
        from dphist_pipeline.solvers.groups.absolute_deviation import deviations
        from dphist_pipeline.solvers.groups.bucket_splits import costs_of_last_starts

        return -costs_of_last_starts(deviations(exact), self.buckets)


@dataclass(frozen=True, slots=True)
class LastStartBySquares(Score):
    """As `LastStartByDeviations`, where a bucket costs the squared error of its counts around their mean, rounded up.

    Counts are first cut off at 0 and at a ceiling F that is declared without looking at the data.

    Constant 2F - 1: cutting off brings counts no further apart, and then a step in one count moves the cost of every
    bucket that holds it by at most 2F - 1 (`bucket_splits.squared_errors`). The rest is as there: one bucket of a split
    holds the count, and a minimum moves no further than what it is taken of.

    Attributes:
        buckets: how many, at least 2.
        count_ceiling: F, from 1 to 1,000,000.
    """

    buckets: int
    count_ceiling: int

    def __post_init__(self) -> None:
        whole_number(self.buckets, "the number of buckets", 2, MOST_CELLS)
        whole_number(self.count_ceiling, "the ceiling of counts", 1, LARGEST_CEILING)

    @property
    def constant(self) -> int:
        """2F - 1: proved above."""
        return 2 * self.count_ceiling - 1

    def candidates(self, size: int) -> int:
        """One for each start that leaves a cell for every bucket before it."""
        return _starts(size, self.buckets)

    def scores(self, exact: Numbers) -> Numbers:
        """Minus the cost of the cheapest split with each start; O(cells² · buckets)."""
        from dphist_pipeline.solvers.groups.bucket_splits import costs_of_last_starts, squared_errors

        return -costs_of_last_starts(squared_errors(exact, self.count_ceiling), self.buckets)


@dataclass(frozen=True, slots=True)
class CutByDeviations(Score):
    """Where a line is cut in two: minus the absolute deviations of both parts, each from its own centre, and a price.

    Candidates are, with `may_keep`, first to keep the line whole, which has no price; then every cut, after the first
    cell, the second, ….

    Constant 1 with medians and 2 with means: a count lies on one side of a cut, and a step in it moves the deviations
    of that side by at most 1 from the median and by at most 2 from the mean, also when rounded down
    (`absolute_deviation.deviations_of_cuts`). The price is the same whatever the counts.

    Attributes:
        centre: `median` or `mean`.
        price: what a cut costs beside its deviations, 0 or more.
        may_keep: whether to keep the line whole is a candidate.
    """

    centre: Centre
    price: int
    may_keep: bool

    def __post_init__(self) -> None:
        kinds = (type(self.centre), type(self.may_keep))
        if kinds != (str, bool) or self.centre not in get_args(Centre):
            raise MeasurementMisuse("a cut has `centre` median or mean, and `may_keep` True or False")
        whole_number(self.price, "the price of a cut", 0, LARGEST_PARAMETER)

    @property
    def constant(self) -> int:
        """1 or 2: proved above."""
        return 1 if self.centre == "median" else 2

    def candidates(self, size: int) -> int:
        """Every cut, and one more where the line may stay whole."""
        return size if self.may_keep else size - 1

    def scores(self, exact: Numbers) -> Numbers:
        """Minus deviations and price; O(cells · log cells)."""
        from dphist_pipeline.solvers.groups.absolute_deviation import deviations_of_cuts

        costs = deviations_of_cuts(exact, self.centre)
        costs[1:] += self.price
        return -costs if self.may_keep else -costs[1:]


@dataclass(frozen=True, slots=True)
class CutByBalance(Score):
    """Where a line is cut so that each part has half of the count: minus |count before - count after|.

    Candidates are the cuts after the first cell, the second, ….

    Constant 1: a count lies on one side of a cut, so a step in it moves the difference by 1, and its absolute value by
    at most 1 (`absolute_deviation.imbalances`).
    """

    @property
    def constant(self) -> int:
        """1: proved above."""
        return 1

    def candidates(self, size: int) -> int:
        """Every cut."""
        return size - 1

    def scores(self, exact: Numbers) -> Numbers:
        """Minus the imbalance of every cut; O(cells)."""
        from dphist_pipeline.solvers.groups.absolute_deviation import imbalances

        return -imbalances(exact)


@dataclass(frozen=True, slots=True, eq=False)
class NextByNearness(Score):
    """Which cell of a group comes after its first one: minus how far each is from it in count, and in declared steps.

    Candidates are all cells of the group but the first.

    Constant 1: a score reads the count of the first cell and of one other; a step in either moves |count - first count|
    by at most 1. Steps are the same whatever the counts.

    Attributes:
        steps: how far each candidate is from the first cell by declaration, 0 or more; shape (candidates,).
    """

    steps: Numbers

    def __post_init__(self) -> None:
        steps = whole_numbers(self.steps, "steps to the candidates")
        if steps.ndim != 1 or steps.size == 0 or steps.min() < 0 or steps.max() > LARGEST_PARAMETER:
            raise MeasurementMisuse("steps to the candidates must be whole numbers from 0 to 2^52, one a candidate")
        steps.flags.writeable = False
        object.__setattr__(self, "steps", steps)

    @property
    def constant(self) -> int:
        """1: proved above."""
        return 1

    def candidates(self, size: int) -> int:
        """All cells but the first; there must be a step for each."""
        if size != self.steps.size + 1:
            raise MeasurementMisuse("a score by nearness needs one step for every cell of its group but the first")
        return size - 1

    def scores(self, exact: Numbers) -> Numbers:
        """Minus the distances; O(cells)."""
        scores: Numbers = -np.abs(exact[1:] - exact[0]) - self.steps
        return scores


def _starts(size: int, buckets: int) -> int:
    if size > MOST_CELLS:
        raise MeasurementMisuse(
            f"a start of the last bucket is chosen among at most {MOST_CELLS:,} cells, not {size:,}"
        )
    return size - (buckets - 1)


SCORES: tuple[type[Score], ...] = (
    LastStartByDeviations,
    LastStartBySquares,
    CutByDeviations,
    CutByBalance,
    NextByNearness,
)


def own_copy(score: object) -> Score:
    """A score of the closed set, made anew from the parameters of the one given: checked again, and nobody else's.

    Classes are compared by identity: a class may say of itself that it equals another.

    Args:
        score: of a mechanism, so of any class; `MeasurementMisuse` for one outside `SCORES`, or with wrong parameters.
    """
    for known in SCORES:
        if type(score) is known:
            return known(*(getattr(score, field.name) for field in fields(known)))  # type: ignore[arg-type]
    raise MeasurementMisuse("a score must be an instance of a class in confidential.scores.SCORES, and of no subclass")
