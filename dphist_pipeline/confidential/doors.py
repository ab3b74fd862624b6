"""The doors: the only methods that show anything of the exact counts, each for a share of the budget.

Why they are private. Let x and x' be the counts of neighbours: ||x - x'||_1 <= Δ, the sensitivity, whatever
the records are (bounding keeps at most so many rows of a unit, and what it keeps depends on that unit alone).
    noisy_cells   adds independent discrete Laplace noise of scale Δ/ε to every cell. The probability of an
                  output changes by at most the factor exp(ε/Δ) per unit of ||x - x'||_1: e^ε in all.
    noisy_sums    the same for the sums over the groups of a partition: sums move by at most ||x - x'||_1 together,
                  since every cell is in one group. One draw a group, shared by its cells.
    noisy_tree    noisy_sums for every level of a hierarchy, each with a budget of its own: they add up.
    noisy_contrasts   adds noise of scale (1 + h)·Δ/ε to the total of the line of cells, and to left half minus right
                  half of the line, of each half, … down to pairs of cells, on h levels. A cell is in one node a level,
                  so the sums of a level, and with them its differences, move by at most ||x - x'||_1 together; total
                  and differences by at most (1 + h)·||x - x'||_1, and e^ε follows as for noisy_cells.
    choose        for each of disjoint groups of cells, the candidate with the largest score plus geometric noise of
                  scale 2·c·Δ/ε, ties to the first. A score reads its own group alone and moves by at most c·d_g,
                  d_g = ||x_g - x'_g||_1. Hold the other candidates' noise: candidate r wins if its noise reaches a
                  whole number that moves by at most 2·c·d_g; P(noise >= k) falls by exp(-1/scale) a step, so the
                  probability changes by at most exp(ε·d_g/Δ), and over all groups by at most e^ε, for their d_g sum
                  to ||x - x'||_1. (A constant that is right for each group alone, but not times d_g, would not do.)
Counts and sums are cut off at ±2^52 before the noise (which brings counts no further apart) and the noisy value lies
within ±2^53, so int64 never wraps and float64 holds every value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from operator import index
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.confidential import noise
from dphist_pipeline.confidential.journal import Answers, Unrecorded
from dphist_pipeline.domain import Domain
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.budget import LARGEST_SCALE, Budget
from dphist_pipeline.estimates.noisy import NoisyCells, NoisyContrasts, NoisySums

LARGEST_COUNT = 1 << 52
LARGEST_SCORE = 1 << 61
HALF_BITS = 26


class DoorMisuse(DphistError):
    """A mechanism asked a door for something that it does not give."""


class PrivateCounts:
    """Exact counts behind doors.

    Args:
        domain: the declared grid.
        sensitivity: L1 sensitivity of the counts, Δ.
        load: gives the exact counts, int64, shape (domain.cells,); called only when a door must draw.
        answers: the journal of the release; without one, draws are recorded nowhere.
    """

    __slots__ = ("__answers", "__domain", "__load", "__scales", "__sensitivity")

    def __init__(
        self,
        domain: Domain,
        sensitivity: int,
        load: Callable[[], NDArray[np.int64]],
        answers: Answers | None = None,
    ) -> None:
        if index(sensitivity) < 1:
            raise DoorMisuse("sensitivity must be at least 1: the most that one privacy unit moves the counts")
        self.__domain, self.__sensitivity = domain, index(sensitivity)
        self.__load, self.__answers = load, Unrecorded() if answers is None else answers
        self.__scales: dict[str, Fraction] = {}

    @property
    def domain(self) -> Domain:
        """The declared grid."""
        return self.__domain

    @property
    def sensitivity(self) -> int:
        """L1 sensitivity of the counts."""
        return self.__sensitivity

    @property
    def scales(self) -> dict[str, Fraction]:
        """The scale of the noise that each step so far has bought."""
        return dict(self.__scales)

    def noisy_cells(self, budget: Budget) -> NoisyCells:
        """Every cell plus its own discrete Laplace noise of scale sensitivity/epsilon; spends the budget."""
        scale = self._scale(budget)
        values = self.__ask("noisy_cells", budget, scale, "", self.__exact)
        return NoisyCells(values.reshape(self.domain.shape), scale)

    def noisy_sums(self, groups: NDArray[np.int64], budget: Budget) -> NoisySums:
        """One noisy sum per group, one draw each; spends the budget.

        Args:
            groups: group number of every cell, shape of the domain, from 0 with none left out.
            budget: the share to spend.
        """
        scale = self._scale(budget)
        numbers = _group_numbers(groups, self.domain)
        sizes = np.bincount(numbers).astype(np.int64)
        partition = hashlib.sha256(numbers.tobytes()).hexdigest()
        values = self.__ask("noisy_sums", budget, scale, partition, lambda: _sums(self.__exact(), numbers))
        return NoisySums(values, sizes, scale)

    def noisy_tree(
        self, levels: Sequence[NDArray[np.int64]], budget: Budget, shares: Sequence[Fraction] | None = None
    ) -> list[NoisySums]:
        """Noisy sums of every node of a hierarchy; spends the budget, a share a level.

        Args:
            levels: for each level, from the top, the node number of every cell, shape of the domain.
            budget: a record touches one node a level, so the shares of the levels add up.
            shares: exact parts of the budget, one a level, that sum to 1; equal ones when left out.
        """
        if not isinstance(budget, Budget):
            raise DoorMisuse("a door takes a Budget, nothing else")
        parts = shares if shares is not None else [Fraction(1, len(levels))] * len(levels)
        smallest = budget.epsilon * min(parts)
        if self.sensitivity > LARGEST_SCALE * smallest:
            raise DoorMisuse(f"'{budget.step}' would add noise of a scale above 10^7 to a level: raise its epsilon")
        spent = budget.split(**{f"{budget.step}_level_{number}": part for number, part in enumerate(parts, 1)})
        return [self.noisy_sums(nodes, level) for nodes, level in zip(levels, spent, strict=True)]

    def noisy_contrasts(self, budget: Budget) -> NoisyContrasts:
        """The noisy total of the line of cells, and of every node the left half minus the right; spends the budget.

        Nodes are halves of halves of the line, in C order of the domain, padded to a power of two with cells that are
        known to be 0; nodes of padding alone are left out.
        """
        halvings = (self.domain.cells - 1).bit_length()
        scale = self._scale(budget, 1 + halvings)
        values = self.__ask("noisy_contrasts", budget, scale, "", lambda: _contrasts(self.__exact()))
        counts = [-(-self.domain.cells >> level) for level in range(halvings, 0, -1)]
        total, *levels = np.split(values, np.cumsum([1, *counts])[:-1])
        return NoisyContrasts(float(total[0]), tuple(levels), scale)

    def choose(
        self,
        groups: Sequence[NDArray[np.int64]],
        score: Callable[[NDArray[np.int64]], NDArray[np.int64]],
        candidates: Sequence[int],
        constant: int,
        budget: Budget,
    ) -> NDArray[np.int64]:
        """Privately chooses, for each of disjoint groups of cells, a candidate of large score; spends the budget.

        Args:
            groups: cell numbers of each group (in C order of the domain), no cell in two of them.
            score: a pure function from the exact counts of one group to whole scores, one per candidate, larger is
                better; moves by at most `constant` times the L1 distance between two groups of counts.
            candidates: how many candidates each group has, at least 2, by declaration and not by data.
            constant: see `score`.
            budget: the share to spend.

        Returns:
            The chosen candidate of each group, int64, shape (groups,).
        """
        if constant < 1 or min(candidates, default=0) < 2 or len(candidates) != len(groups):
            raise DoorMisuse("a choice needs at least two candidates for every group, and a constant of at least 1")
        cells = np.concatenate(groups)
        if cells.min() < 0 or cells.max() >= self.domain.cells or np.bincount(cells).max() > 1:
            raise DoorMisuse("the groups of a choice must hold cells of the domain, none of them twice")
        scale = 2 * constant * self._scale(budget)
        asked = [np.asarray(candidates, dtype=np.int64), *(np.append(group, -1) for group in groups)]
        partition = hashlib.sha256(np.concatenate(asked).astype("<i8").tobytes()).hexdigest()
        question = {"door": "choose", "epsilon": str(budget.spend()), "scale": str(scale), "partition": partition}

        def draw() -> NDArray[np.int64]:
            exact = self.__exact()
            scores = [score(exact[group]) for group in groups]
            if [part.shape for part in scores] != [(many,) for many in candidates]:
                raise DoorMisuse("a score must give one whole number for every declared candidate")
            return _noisy_winners(scores, scale)

        self.__scales[budget.step] = scale
        return self.__answers.answer(budget.step, question, draw)

    def _scale(self, budget: Budget, numbers: int = 1) -> Fraction:
        """Of the noise that covers so many numbers, each of which may move by the sensitivity."""
        if not isinstance(budget, Budget):
            raise DoorMisuse("a door takes a Budget, nothing else")
        scale = numbers * self.sensitivity / budget.epsilon
        if scale > LARGEST_SCALE:
            raise DoorMisuse(f"'{budget.step}' would add noise of scale {scale}; the most is 10^7: raise its epsilon")
        return scale

    def __ask(
        self,
        door: str,
        budget: Budget,
        scale: Fraction,
        partition: str,
        exact: Callable[[], NDArray[np.int64]],
    ) -> NDArray[np.float64]:
        question = {"door": door, "epsilon": str(budget.spend()), "scale": str(scale), "partition": partition}

        def draw() -> NDArray[np.int64]:
            sums = exact()
            return sums + noise.discrete_laplace(scale, sums.size)

        self.__scales[budget.step] = scale
        values = self.__answers.answer(budget.step, question, draw).astype(np.float64)
        values.flags.writeable = False
        return values

    def __exact(self) -> NDArray[np.int64]:
        exact = self.__load()
        if exact.shape != (self.domain.cells,) or exact.dtype != np.int64:
            raise DoorMisuse("exact counts must be int64, one per declared cell")
        return np.clip(exact, -LARGEST_COUNT, LARGEST_COUNT)

    def __repr__(self) -> str:
        return f"PrivateCounts({self.domain.cells} cells, sensitivity {self.sensitivity}; counts withheld)"

    def __reduce__(self) -> NoReturn:
        raise DoorMisuse("exact counts are not pickled or copied; pass the object itself")


def _noisy_winners(scores: Sequence[NDArray[np.int64]], scale: Fraction) -> NDArray[np.int64]:
    """The candidate of the largest score plus one-sided geometric noise in each group; the first of equal ones."""
    if any(part.dtype != np.int64 for part in scores):
        raise DoorMisuse("scores must be int64: floating-point sums move by more than their sensitivity")
    ends = np.cumsum([part.size for part in scores])[:-1]
    drawn = np.split(noise.geometric(scale, sum(part.size for part in scores)), ends)
    cut = [part.clip(-LARGEST_SCORE, LARGEST_SCORE) for part in scores]
    winners = [np.argmax(part + more) for part, more in zip(cut, drawn, strict=True)]
    return np.array(winners, dtype=np.int64)


def _group_numbers(groups: NDArray[np.int64], domain: Domain) -> NDArray[np.int64]:
    """A copy of the group numbers in the order of the cells, checked to be a partition."""
    if groups.shape != domain.shape or groups.dtype.kind not in "iu":
        raise DoorMisuse("groups must give every cell of the domain one whole group number")
    # A number of as many as there are cells leaves another out; looked at first, for bincount counts up to it.
    if groups.min() < 0 or groups.max() >= domain.cells or not np.bincount(groups.ravel().astype(np.int64)).all():
        raise DoorMisuse("groups must be numbered from 0 with none left out")
    return groups.astype(np.int64, order="C").ravel()


def _contrasts(exact: NDArray[np.int64]) -> NDArray[np.int64]:
    """The total, then for each level from the top the left halves minus the right ones, all cut off at ±2^52.

    Sums are cut off on every level: that brings the counts of neighbours no further apart.
    """
    sums, found = exact, []
    while sums.size > 1:
        left, right = np.append(sums, np.zeros(sums.size % 2, dtype=np.int64)).reshape(-1, 2).T
        found.append((left - right).clip(-LARGEST_COUNT, LARGEST_COUNT))
        sums = (left + right).clip(-LARGEST_COUNT, LARGEST_COUNT)
    return np.concatenate([sums, *reversed(found)])


def _sums(exact: NDArray[np.int64], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of non-overlapping groups, exactly, cut off at ±2^52.

    Halves of 26 bits are summed apart: float64 weights hold sums below 2^53 exactly, up to 2^26 cells.
    """
    high = np.bincount(numbers, weights=(exact >> HALF_BITS).astype(np.float64)).astype(np.int64)
    low = np.bincount(numbers, weights=(exact & ((1 << HALF_BITS) - 1)).astype(np.float64)).astype(np.int64)
    room = LARGEST_COUNT >> HALF_BITS
    sums = (np.clip(high, -2 * room, 2 * room) << HALF_BITS) + low
    return sums.clip(-LARGEST_COUNT, LARGEST_COUNT)
