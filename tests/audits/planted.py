"""Faults of a few lines each, planted beside the package: audits that miss one of them prove nothing.

Each is a mechanism, or measurements, with something wrong that has been printed or built before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
from grey_box import Audited, Counts, Log, LoggedCounts
from neighbours import Pair

from dphist_pipeline.confidential import measurements, noise, scores
from dphist_pipeline.confidential._queries import Contrasts, Query, Sums, WeightedSums
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.confidential.scores import Score
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import Mechanism, build
from dphist_pipeline.mechanisms.geometric import Geometric
from dphist_pipeline.mechanisms.sreb_gca import SReBGCA

Caught = Literal["replay", "black box"]


def exact_counts(counts: PrivateCounts) -> Counts:
    """What no mechanism may do: look at exact counts."""
    seen: Counts = counts._PrivateCounts__exact()  # type: ignore[attr-defined]
    return seen


class HalfTheScale(LoggedCounts):
    """Noise of half the scale."""

    def _scale(self, question: Query, budget: Budget) -> Fraction:
        return super()._scale(question, budget) / 2


class WithoutSensitivity(LoggedCounts):
    """Noise for one row, whatever one unit may change; and so scores that move by 1 for a neighbour, not for a row."""

    def _scale(self, question: Query, budget: Budget) -> Fraction:
        return super()._scale(question, budget) / self.sensitivity


class NoiseOfOneAxis(LoggedCounts):
    """Noise for the wavelet of a cube that counts the levels of its longest axis alone."""

    def _scale(self, question: Query, budget: Budget) -> Fraction:
        if not isinstance(question, Contrasts):
            return super()._scale(question, budget)
        return super()._scale(Contrasts((max(question.shape),)), budget)


class NoiseOfTheLightestCell(LoggedCounts):
    """Noise for weighted sums that covers a row in the cell of the smallest weights alone."""

    def _scale(self, question: Query, budget: Budget) -> Fraction:
        assert isinstance(question, WeightedSums)
        least = math.prod(int(np.abs(line).sum(axis=0).min()) for line in question.lines)
        return super()._scale(question, budget) * least / question.sensitivity(1)


@dataclass(frozen=True)
class WeighsByCounts(Mechanism):
    """Weights that follow from exact counts."""

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        noisy = counts.noisy_weighted_sums([1 + exact_counts(counts)[None] % 2], budget)
        return Estimate(counts.domain, noisy.estimates(), budget.charges)


@dataclass(frozen=True)
class Tilted(Mechanism):
    """Weights that are larger in one cell than in the others."""

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        noisy = counts.noisy_weighted_sums([np.array([[1, 3], [1, 1]])], budget)
        return Estimate(counts.domain, noisy.estimates(), budget.charges)


@contextmanager
def cells_without_noise() -> Iterator[None]:
    """Buckets of one cell whose costs have no noise, as DAWA is commonly coded: they cost 0 whatever the counts."""
    whole = measurements._noisy_buckets

    def bare(costs: Any, scale: Fraction) -> Counts:
        def short(scale: Fraction, size: int, draw: Any = noise.geometric) -> Counts:
            return np.append(np.zeros(costs[0].size, dtype=np.int64), draw(scale, size - costs[0].size))

        with patch.object(noise, "geometric", short):
            return whole(costs, scale)

    with patch.object(measurements, "_noisy_buckets", bare):
        yield


class RedrawnCells(LoggedCounts):
    """Draws noisy cells again until none is negative."""

    def noisy_cells(self, budget: Budget) -> Any:
        def positive(scale: Fraction, size: int, draw: Any = noise.discrete_laplace) -> Counts:
            while ((drawn := draw(scale, size)) + exact_counts(self) < 0).any():
                pass
            return drawn  # type: ignore[no-any-return]

        with patch.object(noise, "discrete_laplace", positive):
            return super().noisy_cells(budget)


class SumOfEveryBin(Sums):
    """For every bin, the sum of its group."""

    def answers(self, exact: Counts) -> Counts:
        return super().answers(exact)[self.groups]


class DrawPerBin(LoggedCounts):
    """Sums of groups as lines 9 to 11 of Chen et al. (2024) print them: a draw for every bin of a group."""

    def noisy_bins(self, groups: Counts, budget: Budget) -> Any:
        question = SumOfEveryBin(groups, self.domain.shape)
        return self._PrivateCounts__ask(question, budget)[0].astype(np.float64)  # type: ignore[attr-defined]


class PlantedScore(Score):
    """A score whose group has a candidate for every cell, and that claims to move by 1."""

    @property
    def constant(self) -> int:
        return 1

    def candidates(self, size: int) -> int:
        return size


@contextmanager
def among_the_scores(*planted: type[Score]) -> Iterator[None]:
    """The closed set with more classes: as if somebody had added a wrong one inside the privacy boundary."""
    with patch.object(scores, "SCORES", (*scores.SCORES, *planted)):
        yield


@dataclass(frozen=True)
class PrintedSReB(SReBGCA):
    """SReB_GCA as printed: the bins of a group have noise of their own."""

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        assert isinstance(counts, DrawPerBin)
        order, sums = self._shares(budget, counts.sensitivity)
        noisy = counts.noisy_cells(order)
        groups = np.zeros(counts.domain.shape, dtype=np.int64)
        values = counts.noisy_bins(groups, sums) / counts.domain.cells
        return Estimate(counts.domain, values, budget.charges, unbiased=noisy, groups=groups)


@dataclass(frozen=True)
class ExactGroups(Mechanism):
    """DPHR's grouping as printed: optimal over exact counts, for free."""

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        _, groups = np.unique(exact_counts(counts), return_inverse=True)
        sums = counts.noisy_sums(groups, budget)
        return Estimate(counts.domain, (sums.values / sums.sizes)[groups], budget.charges, groups=groups, sums=sums)


@dataclass(frozen=True)
class NearTheFirst(PlantedScore):
    """Minus how far each count is from the first: moves by 1, and candidates are the cells that it is given."""

    def scores(self, exact: Counts) -> Counts:
        return -np.abs(exact - exact[0])


@dataclass(frozen=True)
class ExactCandidates(Mechanism):
    """DPHR's candidates as printed: cells whose exact counts are near the first cell's."""

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        exact = exact_counts(counts)
        near = np.flatnonzero(np.abs(exact - exact[0]) <= 2)
        chosen = near[counts.choose([near], NearTheFirst(), budget)]
        return Estimate(counts.domain, np.full(counts.domain.shape, float(chosen[0])), budget.charges)


@dataclass(frozen=True)
class SpentTwice(Mechanism):
    """Shows one budget at two measurements, and publishes the mean of what they say."""

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        again = counts.noisy_cells(Budget(budget.epsilon, "again"))
        values = (counts.noisy_cells(budget).values + again.values) / 2
        return Estimate(counts.domain, values, budget.charges)


@dataclass(frozen=True)
class IsOccupied(PlantedScore):
    """1 for the right one of `empty` and `occupied`."""

    def candidates(self, size: int) -> int:
        return 2

    def scores(self, exact: Counts) -> Counts:
        return np.array([exact.sum() == 0, exact.sum() > 0], dtype=np.int64)


@dataclass(frozen=True)
class Occupied(Mechanism):
    """Tells of every cell whether it is occupied: a score that moves by 1, each time one unit comes near it."""

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        groups = [np.array([cell]) for cell in range(counts.domain.cells)]
        answers = counts.choose(groups, IsOccupied(), budget)
        return Estimate(counts.domain, answers.astype(np.float64), budget.charges)


KEPT: list[float] = []


@dataclass(frozen=True)
class NosyScore(PlantedScore):
    """Keeps what it was shown; see `attacks/test_mechanisms_that_peek.py` for why it must be planted."""

    def scores(self, exact: Counts) -> Counts:
        KEPT.append(float(exact.sum()))
        return exact.clip(0, 1)


@dataclass(frozen=True)
class Nosy(Mechanism):
    """Publishes what its score kept."""

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        KEPT.clear()
        counts.choose([np.arange(counts.domain.cells)], NosyScore(), budget)
        return Estimate(counts.domain, np.full(counts.domain.shape, sum(KEPT)), budget.charges)


@dataclass(frozen=True)
class ForgottenLevel(Mechanism):
    """A tree whose every level has the whole budget."""

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        levels = [np.zeros(counts.domain.cells, dtype=np.int64), np.arange(counts.domain.cells)]
        top, leaves = (
            counts.noisy_sums(groups, Budget(budget.epsilon, f"level_{number}")) for number, groups in enumerate(levels)
        )
        budget.spend()
        return Estimate(counts.domain, leaves.values + (top.values[0] - leaves.values.sum()) / 3, budget.charges)


@contextmanager
def half_in_the_sampler() -> Iterator[None]:
    """A sampler that takes half the scale that it is asked for: below every seam of the replay."""
    whole = noise.discrete_laplace
    with patch.object(noise, "discrete_laplace", lambda scale, size: whole(scale / 2, size)):
        yield


def planted(*classes: type[Score]) -> Callable[[], AbstractContextManager[None]]:
    """The context of a fault whose scores lie inside the privacy boundary."""
    return lambda: among_the_scores(*classes)


@dataclass(frozen=True)
class Fault:
    """A fault, neighbours that show it, and which audits must catch it.

    Attributes:
        shape: of the grid; one axis if None.
        trials: of the black box, enough to be sure beyond 1 - 10^-6; 0 where only the replay can see it.
    """

    name: str
    mechanism: Mechanism
    pair: Pair
    measurements: type[LoggedCounts] = LoggedCounts
    epsilon: Fraction = Fraction(1)
    trials: int = 8_000
    replay: bool = True
    within: Callable[[], AbstractContextManager[None]] = nullcontext
    sensitivity: int | None = None
    shape: tuple[int, ...] | None = None

    @property
    def audited(self) -> Audited:
        sensitivity = self.sensitivity or self.pair.sensitivity
        return Audited(self.mechanism, self.shape or self.pair.here.shape, sensitivity, self.epsilon, self.measurements)


def _pair(here: list[int], there: list[int]) -> Pair:
    return Pair(np.array(here, dtype=np.int64), np.array(there, dtype=np.int64))


SPLIT = _pair([3, 3, 0, 0], [3, 3, 1, 0])
APART, TOGETHER = _pair([0, 0], [1, 1]), _pair([0, 0], [1, 0])
FAULTS = [
    Fault("half the noise scale at the measurements", Geometric(), TOGETHER, HalfTheScale),
    Fault("half the noise scale in the sampler", Geometric(), TOGETHER, replay=False, within=half_in_the_sampler),
    Fault("Δ of add_remove under substitute", Geometric(), _pair([1, 0], [0, 1]), sensitivity=1),
    Fault("noise for one row of a unit that has two", build("ahp", {}), APART, WithoutSensitivity, trials=0),
    Fault("SReB_GCA as printed: a draw per bin of a group", PrintedSReB(), _pair([0] * 16, [1] + [0] * 15), DrawPerBin),
    Fault("DPHR as printed: groups on exact counts", ExactGroups(), _pair([1, 1], [1, 2])),
    Fault(
        "DPHR as printed: candidates by exact counts",
        ExactCandidates(),
        _pair([0, 1, 2], [0, 1, 3]),
        within=planted(NearTheFirst),
    ),
    Fault("a budget spent twice", SpentTwice(), TOGETHER, trials=24_000),
    Fault("a budget for every level of a tree", ForgottenLevel(), TOGETHER, trials=20_000),
    Fault(
        '"1 per neighbour" over several groups',
        Occupied(),
        APART,
        WithoutSensitivity,
        trials=16_000,
        within=planted(IsOccupied),
    ),
    Fault(
        "a cube's wavelet with the noise of a line",
        build("privelet", {}),
        _pair([0] * 8, [1] + [0] * 7),
        NoiseOfOneAxis,
        trials=0,
        shape=(2, 4),
    ),
    Fault("weights of one cell, noise of another", Tilted(), _pair([4, 5], [4, 6]), NoiseOfTheLightestCell, trials=0),
    Fault("half the noise scale of weighted sums", Tilted(), _pair([4, 5], [4, 6]), HalfTheScale, trials=0),
    Fault("weights that follow from counts", WeighsByCounts(), _pair([4, 5], [4, 6]), trials=0),
    Fault("half the noise scale of buckets", build("dawa", {}), SPLIT, HalfTheScale, trials=0),
    Fault("buckets of one cell without noise", build("dawa", {}), SPLIT, trials=0, within=cells_without_noise),
    Fault("a redraw until no cell is negative", Geometric(), _pair([0], [1]), RedrawnCells, Fraction(1, 2), 70_000),
    Fault("a score that keeps what it saw", Nosy(), TOGETHER, within=planted(NosyScore)),
]


def caught_by_replay(fault: Fault, runs: int = 40) -> list[str]:
    """What the replay finds; several runs, since noise decides whether a redraw happens."""
    with fault.within():
        for _ in range(runs):
            if found := fault.audited.replay(fault.pair.here, fault.pair.there).findings:
                return found
    return []


def shown_by_log(fault: Fault) -> Log:
    """One run of a fault, for tests of the log itself."""
    return fault.audited.run(fault.pair.here, Log()).log
