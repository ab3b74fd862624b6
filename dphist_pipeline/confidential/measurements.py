"""The measurements: the only methods that show anything of the exact counts, each for a share of the budget.

A noisy measurement asks one query of a closed set. What the query computes from exact counts, how far
that moves between neighbours, and why its noise covers it, is proved in `_queries` and `scores`. Measurements spend
their in-memory `Budget` (a release has charged its account before), add the noise, and make the answer durable in the
journal before a mechanism sees it. Everything that a mechanism passes is checked, and copied into plain values, before
the budget is spent and exact counts are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import index
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential._plain_values import MeasurementMisuse as MeasurementMisuse
from dphist_pipeline.confidential._queries import (
    LARGEST_COUNT,
    Buckets,
    Cells,
    Choice,
    Contrasts,
    Linear,
    Query,
    Sums,
    WeightedSums,
)
from dphist_pipeline.confidential.journal import AnswerStore
from dphist_pipeline.confidential.row_queries import Limits, ObservedRows, RowQuery
from dphist_pipeline.confidential.scores import Score
from dphist_pipeline.estimates.budget import LARGEST_EPSILON, LARGEST_SCALE, SMALLEST_EPSILON, Budget
from dphist_pipeline.estimates.lines import NoisyWeightedSums, weighted_line
from dphist_pipeline.estimates.noisy import NoisyCells, NoisyContrasts, NoisySums

LARGEST_SCORE = 1 << 61
PARTS = (1, *(1 << power for power in range(8, 17)))  # into how many parts an amount may split a row


class PrivateCounts:
    """Exact counts behind measurements.

    Args:
        domain: the declared grid.
        sensitivity: L1 sensitivity of the counts, Δ.
        load: gives the exact counts, int64, shape (domain.cells,); called only when a measurement must draw.
        answers: the journal of the release; studies on public data have none, and their draws are recorded nowhere.
        parts: of a row, a power of two, where an amount splits rows: then exact counts are of parts, which one unit
            moves by `sensitivity` times as many (the proof is in `cube`), noise is drawn in parts, and answers are in
            rows, which a double holds exactly.
    """

    __slots__ = ("__answers", "__domain", "__load", "__parts", "__scales", "__sensitivity")

    def __init__(
        self,
        domain: Domain,
        sensitivity: int,
        load: Callable[[], NDArray[np.int64]],
        answers: AnswerStore | None = None,
        parts: int = 1,
    ) -> None:
        if index(parts) not in PARTS or (index(parts) > 1) != (domain.amount is not None):
            raise MeasurementMisuse("a row has parts where an amount splits it: a power of two from 2^8 to 2^16")
        if index(sensitivity) < 1:
            raise MeasurementMisuse("sensitivity must be at least 1: the most that one privacy unit moves the counts")
        self.__domain, self.__sensitivity = domain, index(sensitivity)
        self.__load, self.__answers, self.__parts = load, answers, index(parts)
        self.__scales: dict[str, Fraction] = {}

    @property
    def domain(self) -> Domain:
        """The declared grid."""
        return self.__domain

    @property
    def sensitivity(self) -> int:
        """L1 sensitivity of the counts, in rows."""
        return self.__sensitivity

    @property
    def scales(self) -> dict[str, Fraction]:
        """The scale of the noise of each step so far, in rows; of a choice, in the unit of its scores."""
        return dict(self.__scales)

    def noisy_cells(self, budget: Budget) -> NoisyCells:
        """Every cell plus its own discrete Laplace noise of scale sensitivity/epsilon; spends the budget."""
        values, scale = self.__measure(Cells(), budget)
        return NoisyCells(values.reshape(self.domain.shape), scale, self.__parts)

    def noisy_sums(self, groups: NDArray[np.int64], budget: Budget) -> NoisySums:
        """One noisy sum per group, one draw each; spends the budget.

        Args:
            groups: group number of every cell, shape of the domain, from 0 with none left out.
        """
        query = Sums(groups, self.domain.shape)
        values, scale = self.__measure(query, budget)
        return NoisySums(values, query.sizes, scale)

    def noisy_tree(
        self, levels: Sequence[NDArray[np.int64]], budget: Budget, shares: Sequence[Fraction] | None = None
    ) -> list[NoisySums]:
        """Noisy sums of every node of a hierarchy; spends the budget, a share a level.

        Args:
            levels: for each level, from the top, the node number of every cell, shape of the domain.
            budget: a record touches one node a level, so the shares of the levels add up.
            shares: exact parts of the budget, one a level, that sum to 1; equal ones when left out.
        """
        _refuse_all_but_budgets(budget)
        level_shares = shares if shares is not None else [Fraction(1, len(levels))] * len(levels)
        smallest = budget.epsilon * min(level_shares)
        if self.sensitivity > LARGEST_SCALE * smallest:
            raise MeasurementMisuse(
                f"'{budget.step}' would add noise of a scale above 10^7 to a level: raise its epsilon"
            )
        level_budgets = budget.split(
            **{f"{budget.step}_level_{number}": share for number, share in enumerate(level_shares, 1)}
        )
        return [self.noisy_sums(nodes, level) for nodes, level in zip(levels, level_budgets, strict=True)]

    def noisy_contrasts(self, budget: Budget) -> NoisyContrasts:
        """Noisy totals, and left halves minus right ones, along every axis; spends the budget."""
        values, scale = self.__measure(Contrasts(self.domain.shape), budget)
        return NoisyContrasts(values, self.domain.shape, scale)

    def noisy_weighted_sums(self, lines: Sequence[NDArray[np.int64]], budget: Budget) -> NoisyWeightedSums:
        """Noisy whole-weighted sums along every axis; spends the budget.

        The weights were found by a search in floating point, and another machine may find others. So the journal keeps
        them first, and whoever resumes goes on with those that were asked.

        Args:
            lines: for each axis the weights of a position: row 0 by itself, every other row in a sum; shape (1 + sums,
                positions).
        """
        _refuse_all_but_budgets(budget)
        query = WeightedSums(lines, self.domain.shape)  # type: ignore[arg-type]
        if self.__answers is not None:
            packed_lines = np.concatenate([np.append(len(line), line.ravel()) for line in query.lines])
            weights_facts = {"door": "weights", "epsilon": "0", "scale": "0", "partition": ""}
            stored_lines = self.__answers.answer(f"{budget.step}_weights", weights_facts, lambda: packed_lines)
            query = WeightedSums(_unpack_lines(stored_lines, self.domain.shape), self.domain.shape)
        values, scale = self.__measure(query, budget)
        return NoisyWeightedSums(values, tuple(map(weighted_line, query.lines)), scale)

    def choose(self, groups: Sequence[NDArray[np.int64]], score: Score, budget: Budget) -> NDArray[np.int64]:
        """Privately chooses, for each of disjoint groups of cells, a candidate of large score; spends the budget.

        Args:
            groups: a list of the cell numbers of each group (in C order of the domain), no cell in two of them.
            score: an instance of a class in `scores.SCORES`; it says how many candidates a group has, at least 2.

        Returns:
            The chosen candidate of each group, int64, shape (groups,).
        """
        return self.__ask(Choice(groups, score, self.domain.cells), budget)[0]

    def choose_buckets(self, line: NDArray[np.int64], savings: tuple[int, ...], budget: Budget) -> NDArray[np.int64]:
        """Privately splits a line of cells into buckets of like counts; spends the budget.

        Args:
            line: cell numbers (in C order of the domain), every cell once.
            savings: what the price of a bucket is below those of its two parts, for each level from pairs upwards.

        Returns:
            The places on the line where the buckets start, int64, rising from 0, shape (buckets,).
        """
        return self.__ask(Buckets(line, savings, self.domain.cells), budget)[0]

    def _scale(self, query: Query, budget: Budget) -> Fraction:
        """The scale of the noise that covers a query, in parts of a row; refused above 10^7."""
        return _scale_of(query.sensitivity(self.sensitivity * self.__parts), budget)

    def __measure(self, query: Linear, budget: Budget) -> tuple[NDArray[np.float64], Fraction]:
        answer, scale = self.__ask(query, budget)
        return _read_only(answer, self.__parts), scale / self.__parts

    def __ask(self, query: Query, budget: Budget) -> tuple[NDArray[np.int64], Fraction]:
        """The answer to a query, and the scale of its noise."""
        _refuse_all_but_budgets(budget)
        if self.__parts > 1 and type(query) is not Cells:
            raise MeasurementMisuse("parts of rows are measured cell by cell: `noisy_cells`")
        scale = self._scale(query, budget)
        facts = _spend(query, budget, scale)
        self.__scales[budget.step] = scale / self.__parts

        def draw() -> NDArray[np.int64]:
            return _noisy_answer(query, self.__exact(), scale)

        answer = draw() if self.__answers is None else self.__answers.answer(budget.step, facts, draw)
        return answer, scale

    def __exact(self) -> NDArray[np.int64]:
        exact = self.__load()
        if exact.shape != (self.domain.cells,) or exact.dtype != np.int64:
            raise MeasurementMisuse("exact counts must be int64, one per declared cell")
        return np.clip(exact, -LARGEST_COUNT, LARGEST_COUNT)

    def __repr__(self) -> str:
        return f"PrivateCounts({self.domain.cells} cells, sensitivity {self.sensitivity}; counts withheld)"

    def __reduce__(self) -> NoReturn:
        raise MeasurementMisuse("exact counts are not pickled or copied; pass the object itself")


class PrivateRows:
    """Exact numbers about the first rows of each unit, behind a measurement of their own.

    Args:
        limits: R and T, in rows of a unit, and what neighbours are.
        load: gives the exact numbers; called only when a measurement must draw.
        answers: the journal of the release.
    """

    __slots__ = ("__answers", "__limits", "__load")

    def __init__(self, limits: Limits, load: Callable[[], ObservedRows], answers: AnswerStore) -> None:
        self.__limits, self.__load, self.__answers = limits, load, answers

    def noisy(self, query: RowQuery, budget: Budget) -> tuple[NDArray[np.float64], Fraction]:
        """Every number of a query plus its own discrete Laplace noise, and its scale; spends the budget.

        Args:
            query: of a class in `row_queries.ROW_QUERIES`; no mechanism makes one.

        Returns:
            Whole numbers within ±2^52, shape (numbers,), and the scale of the noise in each, an exact fraction.
        """
        _refuse_all_but_budgets(budget)
        scale = _scale_of(query.sensitivity(self.__limits), budget)
        facts = _spend(query, budget, scale)

        def draw() -> NDArray[np.int64]:
            exact = query.answers(self.__load()).astype(np.int64)
            return _noisy(exact.clip(-LARGEST_COUNT, LARGEST_COUNT), scale)

        return _read_only(self.__answers.answer(budget.step, facts, draw)), scale

    def __repr__(self) -> str:
        return "PrivateRows(numbers withheld)"

    def __reduce__(self) -> NoReturn:
        raise MeasurementMisuse("exact numbers are not pickled or copied; pass the object itself")


def _scale_of(sensitivity: int, budget: Budget) -> Fraction:
    scale = sensitivity / budget.epsilon
    if scale > LARGEST_SCALE:
        raise MeasurementMisuse(
            f"'{budget.step}' would add noise of scale {scale}; the most is 10^7: raise its epsilon"
        )
    return scale


def _spend(query: Query | RowQuery, budget: Budget, scale: Fraction) -> dict[str, str]:
    """Spends a budget; gives what the journal keeps of the query that it pays for, which no answer is part of."""
    # Journals call a measurement `door`: their files were written so, and are compared word for word.
    facts = {"door": query.measurement, "epsilon": str(budget.spend())}
    return {**facts, "scale": str(scale), "partition": query.digest}


def _unpack_lines(packed_lines: NDArray[np.int64], shape: Sequence[int]) -> tuple[NDArray[np.int64], ...]:
    """The weights along each axis, from the number of their rows and the rows."""
    lines = []
    for size in shape:
        end = 1 + int(packed_lines[0]) * size
        lines.append(packed_lines[1:end].reshape(-1, size))
        packed_lines = packed_lines[end:]
    return tuple(lines)


def _read_only(answer: NDArray[np.int64], parts: int = 1) -> NDArray[np.float64]:
    values = answer.astype(np.float64) / parts
    values.flags.writeable = False
    return values


def _refuse_all_but_budgets(budget: object) -> None:
    if type(budget) is not Budget or type(budget.epsilon) is not Fraction:
        raise MeasurementMisuse("a measurement takes a Budget, nothing else, and no subclass of it")
    if not SMALLEST_EPSILON <= budget.epsilon <= LARGEST_EPSILON:
        raise MeasurementMisuse(f"the epsilon of the Budget '{budget.step}' was changed after the Budget was made")


def _noisy_answer(query: Query, exact: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
    """The answer to a query: its exact numbers with noise."""
    if isinstance(query, Choice):
        return _noisy_winners(query.scores(exact), scale)
    if isinstance(query, Buckets):
        return _noisy_buckets(query.costs(exact), scale)
    assert isinstance(query, Linear)
    return _noisy(query.answers(exact), scale)


def _noisy(exact: NDArray[np.int64], scale: Fraction) -> NDArray[np.int64]:
    """Whole numbers within ±2^52, each plus its own discrete Laplace noise, cut off at ±2^52.

    The result is clip(x + Z, ±2^52) for the noise Z before it is cut off at ±2^53, so it is a function of x + Z alone
    and as private as that: where |Z| <= 2^53 the noise is Z itself; where Z > 2^53, x + 2^53 and x + Z are both at
    least 2^52, and the result is 2^52; likewise below. int64 holds all sums, and float64 holds every result.
    """
    noisy = exact + noise.discrete_laplace(scale, exact.size)
    return np.clip(noisy, -LARGEST_COUNT, LARGEST_COUNT, out=noisy)


def _noisy_winners(scores: Sequence[NDArray[np.int64]], scale: Fraction) -> NDArray[np.int64]:
    """The candidate of the largest score plus one-sided geometric noise in each group; the first of equal ones.

    Scores are cut off at ±2^61, which brings them no further apart. Noise ends at 2^62, so sums stay below 2^63. That
    end is no post-processing of noise without an end, as it is in `_noisy`. It is sound because measurements refuse
    scales above 10^7: then a draw reaches 2^62 with a probability below 10^(-10^11), and only after 10^14 steps of a
    refinement, so no run that ends has seen it.
    """
    ends = np.cumsum([part.size for part in scores])[:-1]
    noises = np.split(noise.geometric(scale, sum(part.size for part in scores)), ends)
    capped_scores = [part.clip(-LARGEST_SCORE, LARGEST_SCORE) for part in scores]
    winners = [np.argmax(part + more) for part, more in zip(capped_scores, noises, strict=True)]
    return np.array(winners, dtype=np.int64)


def _noisy_buckets(costs: Sequence[NDArray[np.int64]], scale: Fraction) -> NDArray[np.int64]:
    """The starts of the buckets that together cost least, each minus its own one-sided geometric noise.

    Nothing is cut off but noise at 2^62, as in `_noisy_winners`: sums beyond int64 are made of Python's whole numbers.
    """
    from dphist_pipeline.solvers.trees.dyadic_buckets import cheapest_buckets

    noises = noise.geometric(scale, sum(part.size for part in costs))
    ends = np.cumsum([part.size for part in costs])[:-1]
    noisy = [part - less for part, less in zip(costs, np.split(noises, ends), strict=True)]
    fits = all(int(np.abs(part).max()) * costs[0].size < 1 << 62 for part in noisy)
    return cheapest_buckets(noisy if fits else [part.astype(object) for part in noisy])
