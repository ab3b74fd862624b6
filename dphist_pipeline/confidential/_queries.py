"""The queries that measurements answer: a closed set of frozen classes, each with its sensitivity beside its proof.

Let x and x' be the counts of neighbours: ||x - x'||_1 <= Δ, whatever the records are (bounding keeps at most so many
rows of a unit, and what it keeps depends on that unit alone). Exact counts, and sums of them, are cut off at ±2^52,
which brings two sets of counts no further apart. A query computes whole numbers from them, and `sensitivity(delta)`
is how far these move, all together, for counts at L1 distance `delta`. The measurements add discrete Laplace noise of
scale s = sensitivity(Δ)/ε to each number: the probability of an output then changes by at most the factor exp(1/s) for
each step by which a number moves, in all by at most exp(sensitivity(delta)/s) = exp(ε·delta/Δ) <= e^ε. `Choice` and
`Buckets` have other noise and proofs of their own.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.confidential._plain_values import MeasurementMisuse, whole_number, whole_numbers
from dphist_pipeline.confidential.scores import Score, own_copy

Numbers = NDArray[np.int64]

LARGEST_COUNT = 1 << 52
HALF_BITS = 26
MOST_IN_A_LINE = 1 << 24
LARGEST_SAVING = 1 << 36
LARGEST_WEIGHT = 1 << 16
MOST_ON_AN_AXIS = 1 << 16


class Query(ABC):
    """A query: the numbers that a measurement computes from exact counts, and how far they move.

    Attributes:
        measurement: its name in the journal.
    """

    __slots__ = ()
    measurement: ClassVar[str]

    @abstractmethod
    def sensitivity(self, delta: int) -> int:
        """How far the noise must reach for counts at L1 distance `delta`: proved in each class.

        Args:
            delta: in rows, at least 1; measurements pass the L1 sensitivity of the counts, Δ.
        """

    @property
    def digest(self) -> str:
        """SHA-256 of the groups that are asked for, kept by the journal; empty where the domain says it all."""
        return ""


class Linear(Query):
    """Whole numbers that are sums and differences of counts."""

    __slots__ = ()

    @abstractmethod
    def answers(self, exact: Numbers) -> Numbers:
        """The exact numbers, each within ±2^52, one dimension.

        Args:
            exact: counts within ±2^52, shape (cells of the domain,), in C order.
        """


@dataclass(frozen=True, slots=True)
class Cells(Linear):
    """Every cell."""

    measurement: ClassVar[str] = "noisy_cells"

    def sensitivity(self, delta: int) -> int:
        """`delta`: the answers are the counts."""
        return delta

    def answers(self, exact: Numbers) -> Numbers:
        """The counts."""
        return exact


@dataclass(frozen=True, slots=True, eq=False)
class Sums(Linear):
    """The sum of every group of a partition of the cells; each has one draw, which its cells share.

    Attributes:
        groups: group number of every cell, from 0 with none left out; kept in the order of the cells.
        shape: of the domain.
    """

    groups: Numbers
    shape: tuple[int, ...]
    measurement: ClassVar[str] = "noisy_sums"

    def __post_init__(self) -> None:
        numbers = whole_numbers(self.groups, "groups")
        if numbers.shape != self.shape:
            raise MeasurementMisuse("groups must give every cell of the domain one whole group number")
        # A number as large as the number of cells leaves another one out; bincount would count up to it.
        if numbers.min() < 0 or numbers.max() >= numbers.size or not np.bincount(numbers.ravel()).all():
            raise MeasurementMisuse("groups must be numbered from 0 with none left out")
        object.__setattr__(self, "groups", numbers.ravel())

    def sensitivity(self, delta: int) -> int:
        """`delta`: every cell is in one group, so the sums move together by at most what the cells do."""
        return delta

    @property
    def sizes(self) -> Numbers:
        """The number of cells of each group."""
        return np.bincount(self.groups).astype(np.int64)

    @property
    def digest(self) -> str:
        """SHA-256 of the group numbers in the order of the cells."""
        return hashlib.sha256(self.groups.tobytes()).hexdigest()

    def answers(self, exact: Numbers) -> Numbers:
        """The sums, exactly, cut off at ±2^52.

        Halves of 26 bits are summed apart: float64 weights hold sums below 2^53 exactly, up to 2^26 cells.
        """
        high = np.bincount(self.groups, weights=(exact >> HALF_BITS).astype(np.float64)).astype(np.int64)
        low = np.bincount(self.groups, weights=(exact & ((1 << HALF_BITS) - 1)).astype(np.float64)).astype(np.int64)
        room = LARGEST_COUNT >> HALF_BITS
        sums = (np.clip(high, -2 * room, 2 * room) << HALF_BITS) + low
        return sums.clip(-LARGEST_COUNT, LARGEST_COUNT)


@dataclass(frozen=True, slots=True)
class Contrasts(Linear):
    """Along each axis in turn: the total of a line, and left half minus right half of it, of each half, … to pairs.

    A line is padded to a power of two with numbers known to be 0; halves of padding alone are left out. The first axis
    turns counts into such numbers, every other axis the numbers of the axis before it.

    Attributes:
        shape: of the domain.
    """

    shape: tuple[int, ...]
    measurement: ClassVar[str] = "noisy_contrasts"

    def sensitivity(self, delta: int) -> int:
        """delta times (1 + h) for each axis, h the times that it is halved: a number is in one half a level, so the
        sums of a level, and with them its differences, move together by at most what the numbers do; there are h
        levels of differences, and the total. The next axis starts from numbers that moved so far.
        """
        return delta * math.prod(1 + (size - 1).bit_length() for size in self.shape)

    def answers(self, exact: Numbers) -> Numbers:
        """In C order, along every axis the total, then the levels from the top; all cut off at ±2^52.

        Sums are cut off on every level: that brings the counts of neighbours no further apart.
        """
        sums = exact.reshape(self.shape)
        for axis in range(len(self.shape)):
            sums = np.moveaxis(_halves(np.moveaxis(sums, axis, 0)), 0, axis)
        return sums.ravel()


def _halves(sums: Numbers) -> Numbers:
    """Total and levels from the top along the first axis, from numbers within ±2^52."""
    found: list[Numbers] = []
    while len(sums) > 1:
        padded = np.concatenate([sums, np.zeros_like(sums[: len(sums) % 2])])
        left, right = padded[::2], padded[1::2]
        found.insert(0, (left - right).clip(-LARGEST_COUNT, LARGEST_COUNT))
        sums = (left + right).clip(-LARGEST_COUNT, LARGEST_COUNT)
    return np.concatenate([sums, *found])


@dataclass(frozen=True, slots=True, eq=False)
class WeightedSums(Linear):
    """Along each axis in turn: every number of a line times its own whole weight, and whole-weighted sums of the line.

    The first axis turns counts into such numbers, every other axis the numbers of the axis before it. The weights are
    part of the query, so they are known before counts are loaded; the journal keeps them (see `measurements`).

    Attributes:
        lines: for each axis the weights of a position: row 0 by itself, every other row in a sum; shape (1 + sums,
            positions), whole numbers within ±2^16.
        shape: of the domain, at most 2^16 positions on an axis.
    """

    lines: tuple[Numbers, ...]
    shape: tuple[int, ...]
    measurement: ClassVar[str] = "noisy_weighted_sums"

    def __post_init__(self) -> None:
        if type(self.lines) not in (list, tuple) or len(self.lines) != len(self.shape):
            raise MeasurementMisuse("weighted sums need a list or tuple of weights, an array for each axis")
        lines = tuple(whole_numbers(line, "weights") for line in self.lines)
        for line, size in zip(lines, self.shape, strict=True):
            if line.ndim != 2 or len(line) < 1 or line.shape[1] != size or size > MOST_ON_AN_AXIS:
                raise MeasurementMisuse(
                    f"weights need rows of one number for each position, at most {MOST_ON_AN_AXIS:,}"
                )
            if line.min() < -LARGEST_WEIGHT or line.max() > LARGEST_WEIGHT or not line.any():
                raise MeasurementMisuse(f"weights must lie within ±{LARGEST_WEIGHT:,}, and not all be 0")
        object.__setattr__(self, "lines", lines)

    def sensitivity(self, delta: int) -> int:
        """delta times, for each axis, the largest sum of the absolute weights of a position: a number that moves by 1
        moves every number that it is part of by its weight there, in all by the sum of its absolute weights, which is
        at most the largest such sum. The next axis starts from numbers that moved so far.
        """
        return delta * math.prod(int(np.abs(line).sum(axis=0).max()) for line in self.lines)

    @property
    def digest(self) -> str:
        """SHA-256 of the weights, of each axis the number of its rows, then row by row."""
        words = [np.append(len(line), line.ravel()) for line in self.lines]
        return hashlib.sha256(np.concatenate(words).astype("<i8").tobytes()).hexdigest()

    def answers(self, exact: Numbers) -> Numbers:
        """In C order of the numbers along each axis: the line times its weights, then the sums; cut off at ±2^52.

        Numbers are cut off after each axis: that brings those of neighbours no further apart.
        """
        sums = exact.reshape(self.shape)
        for axis, line in enumerate(self.lines):
            sums = np.moveaxis(_weighted_sums(line, np.moveaxis(sums, axis, 0)), 0, axis)
        return sums.ravel()


def _weighted_sums(line: Numbers, numbers: Numbers) -> Numbers:
    """The numbers along the first axis, within ±2^52, times row 0, then their sums by the other rows; exact, cut off.

    Halves of 26 bits are summed apart: 2^16 products of at most 2^26 · 2^16 fit. What the low halves have above 26 bits
    is carried to the high ones, which then tell alone whether a sum lies beyond ±2^52.
    """
    own, sums = line[0].reshape(-1, *[1] * (numbers.ndim - 1)), line[1:]
    high, low = numbers >> HALF_BITS, numbers & ((1 << HALF_BITS) - 1)
    high, low = (np.concatenate([own * half, np.tensordot(sums, half, axes=1)]) for half in (high, low))
    high, low = high + (low >> HALF_BITS), low & ((1 << HALF_BITS) - 1)
    room = LARGEST_COUNT >> HALF_BITS
    cut: Numbers = ((high.clip(-2 * room, 2 * room) << HALF_BITS) + low).clip(-LARGEST_COUNT, LARGEST_COUNT)
    return cut


@dataclass(frozen=True, slots=True, eq=False)
class Choice(Query):
    """For each of disjoint groups of cells, the candidate with the largest score plus noise, ties to the first.

    Noise is geometric, M = 0, 1, 2, … with P(M >= k) = exp(-k/s), of scale s = 2·c·Δ/ε, c the constant of the score.

    Why e^ε covers it. A score reads its own group alone and moves by at most c·d_g, d_g = ||x_g - x'_g||_1. Hold the
    noise of the other candidates: candidate r wins if its noise reaches a whole number that moves by at most 2·c·d_g,
    what the best of the others gains and what r loses. P(M >= k) falls by exp(-1/s) a step, so the probability that r
    wins changes by at most the factor exp(2·c·d_g/s) = exp(ε·d_g/Δ). Groups are disjoint, so the d_g sum to at most
    ||x - x'||_1 <= Δ, and over all groups the factor is at most e^ε. (A constant that holds for a neighbour, and not
    times d_g, would not do: one unit may have rows in several groups.)

    Attributes:
        groups: cell numbers of each group, in C order of the domain, no cell in two of them.
        score: of the closed set.
        cells: of the domain.
        candidates: how many each group has, at least 2; the score says so, from the size of the group.
    """

    groups: Sequence[Numbers]
    score: Score
    cells: int
    candidates: tuple[int, ...] = field(init=False)
    measurement: ClassVar[str] = "choose"

    def __post_init__(self) -> None:
        score = own_copy(self.score)
        if type(self.groups) not in (list, tuple) or not self.groups:
            raise MeasurementMisuse("the groups of a choice must be a list or tuple of arrays, at least one")
        groups = tuple(whole_numbers(group, "a group of a choice") for group in self.groups)
        if any(group.ndim != 1 or group.size == 0 for group in groups):
            raise MeasurementMisuse("a group of a choice must be a line of cell numbers")
        cells = np.concatenate(groups)
        if cells.min() < 0 or cells.max() >= self.cells or np.bincount(cells).max() > 1:
            raise MeasurementMisuse("the groups of a choice must hold cells of the domain, none of them twice")
        candidates = tuple(score.candidates(group.size) for group in groups)
        if min(candidates) < 2 or score.constant < 1:
            raise MeasurementMisuse(
                "a choice needs at least two candidates for every group, and a constant of at least 1"
            )
        for name, value in (("score", score), ("groups", groups), ("candidates", candidates)):
            object.__setattr__(self, name, value)

    def sensitivity(self, delta: int) -> int:
        """2·c·delta: proved above."""
        return self.score.sensitivity(delta)

    @property
    def digest(self) -> str:
        """SHA-256 of the numbers of candidates, then of the cells of each group, ended by -1."""
        words = [np.array(self.candidates, dtype=np.int64), *(np.append(group, -1) for group in self.groups)]
        return hashlib.sha256(np.concatenate(words).astype("<i8").tobytes()).hexdigest()

    def scores(self, exact: Numbers) -> list[Numbers]:
        """The scores of the candidates of each group, shape (candidates,) each.

        Args:
            exact: counts within ±2^52, shape (cells of the domain,), in C order.
        """
        scores = [self.score.scores(exact[group]) for group in self.groups]
        if any(part.dtype != np.int64 for part in scores):
            raise MeasurementMisuse("scores must be int64: floating-point sums move by more than their sensitivity")
        if [part.shape for part in scores] != [(many,) for many in self.candidates]:
            raise MeasurementMisuse("a score must give one whole number for every declared candidate")
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class Buckets(Query):
    """Which buckets of a line together cost least: their deviations from medians, minus noise, plus declared prices.

    Buckets are those of `solvers.dyadic_buckets`: n of one cell, n - 1 larger ones. Each has noise of its own, single
    cells too: geometric, M = 0, 1, 2, … with P(M >= k) = exp(-k/s), of scale s = 2·Δ/ε. Where the buckets start is the
    answer; no cost is shown, none is cut off after its noise, and no draw is repeated or left out.

    Why e^ε covers it. Let C_b be the cost of bucket b without noise, and d_b = ||x_b - x'_b||_1 for the cells of b. A
    step of one in one count moves the deviations of every bucket that holds it by at most 1
    (`dyadic_buckets.bucket_deviations`), and prices are the same whatever the counts: |C_b - C'_b| <= d_b.
    Let a draw M give x the split P. Then the draw M', with 2·d_b more for every bucket b of P and the same for all
    others, gives x' the same split. Compare P with a rival R. Buckets that are in both cancel. The others of P and the
    others of R cover the same cells, so the d_b of either sum to the same D. From x to x', the costs of the others of R
    fall by at most D, and those of the others of P rise by at most D; the noise of the latter takes off 2·D. So P keeps
    its lead on R, or remains equal to it, where the same declared order decides.
    M -> M' is one to one, and P(M) = P(M')·exp(Σ 2·d_b/s) over the buckets of P, which hold every cell once. So summed
    over all M that give P, P(x gives P) <= exp(2·||x - x'||_1/s)·P(x' gives P) <= e^ε·P(x' gives P).
    (Buckets of one cell cost the same for x and x'. They need noise all the same: a split of single cells has no other
    noise that could rise where its rivals become cheaper.)

    Attributes:
        line: cell numbers of the domain in C order, every cell once.
        savings: for each level of the line, from pairs upwards, how much less a bucket's price is than those of its two
            parts; whole numbers, 0 or more.
        cells: of the domain.
    """

    line: Numbers
    savings: tuple[int, ...]
    cells: int
    measurement: ClassVar[str] = "choose_buckets"

    def __post_init__(self) -> None:
        line = whole_numbers(self.line, "a line of cells")
        if line.shape != (self.cells,) or line.min() < 0 or line.max() >= self.cells or np.bincount(line).max() > 1:
            raise MeasurementMisuse("buckets need a line that holds every cell of the domain once")
        if not 2 <= self.cells <= MOST_IN_A_LINE:
            raise MeasurementMisuse(f"buckets are chosen on a line of 2 to {MOST_IN_A_LINE:,} cells")
        if type(self.savings) is not tuple or len(self.savings) != (self.cells - 1).bit_length():
            raise MeasurementMisuse("buckets need a tuple of savings, one for each level of the line")
        for saving in self.savings:
            whole_number(saving, "what a level of buckets saves", 0, LARGEST_SAVING)
        object.__setattr__(self, "line", line)

    def sensitivity(self, delta: int) -> int:
        """2·delta: proved above."""
        return 2 * delta

    @property
    def digest(self) -> str:
        """SHA-256 of the savings, then of the line."""
        words = np.concatenate([np.array(self.savings, dtype=np.int64), self.line])
        return hashlib.sha256(words.astype("<i8").tobytes()).hexdigest()

    def costs(self, exact: Numbers) -> list[Numbers]:
        """Deviations and prices, level by level, each within ±2^61.

        Args:
            exact: counts within ±2^52, shape (cells of the domain,), in C order.
        """
        from dphist_pipeline.solvers.trees.dyadic_buckets import bucket_deviations, bucket_prices

        deviations = bucket_deviations(exact[self.line])
        return [cost + price for cost, price in zip(deviations, bucket_prices(self.cells, self.savings), strict=True)]


QUERIES: tuple[type[Query], ...] = (Cells, Sums, Contrasts, WeightedSums, Choice, Buckets)
