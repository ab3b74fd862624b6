"""Replay on neighbours: each measurement's answer on x is kept, and the mechanism is run again on x' with them.

Then all that a mechanism does must be the same, and what a measurement computed from exact counts may have moved by no
more than the noise that it really drew pays for. So the loss of a measurement is not what it declares, but
    sum over what it computed of |computed - computed'| / scale          for Laplace noise, for every draw of it
    sum over groups of 2 · max |score - score'| / scale                  for a choice
    2 · max over splits of the sum of |cost - cost'| / scale             for buckets, if every cost has a draw
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential import measurements, noise
from dphist_pipeline.confidential._queries import LARGEST_COUNT
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.confidential.row_queries import ROW_QUERIES
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms import Mechanism

Counts = NDArray[np.int64]
INFINITE = Fraction(10**30)
ROW_MEASUREMENTS = {question.measurement for question in ROW_QUERIES}


@dataclass
class Asked:
    """One question to a measurement, and what it did to answer.

    Attributes:
        draws: kind, scale and numbers of all noise that was drawn for it.
        computed: the numbers that noise was added to; else the answer without the noise that was drawn last.
        scores: of each group of a choice.
        costs: of all buckets, level by level.
        groups, constant: what was asked of a choice.
        weight: how far weighted sums may move for a step of one count.
    """

    step: str
    question: dict[str, str]
    draws: list[tuple[str, Fraction, Counts]] = field(default_factory=list)
    computed: Counts | None = None
    scores: list[Counts] = field(default_factory=list)
    costs: list[Counts] = field(default_factory=list)
    groups: Sequence[Counts] = ()
    constant: int = 0
    weight: int = 0

    @property
    def measurement(self) -> str:
        return self.question["door"]

    @property
    def epsilon(self) -> Fraction:
        return Fraction(self.question["epsilon"])

    def shape(self) -> Any:
        """All but the numbers: must be the same on neighbours."""
        drawn = [(kind, scale, numbers.size) for kind, scale, numbers in self.draws]
        sizes = [part.shape for part in (*self.scores, *self.costs)]
        return self.step, self.question, drawn, sizes, self.constant

    def loss(self, other: Asked) -> Fraction:
        """How far the probability of any answer can change, as a logarithm; `other` has the same shape."""
        if self.scores:
            moved = sum(int(np.abs(a - b).max()) for a, b in zip(self.scores, other.scores, strict=True))
            scales = [scale for kind, scale, _ in self.draws if kind == "geometric"]
            return 2 * _paid(moved, scales)
        if self.costs:
            drawn = sum(numbers.size for _, _, numbers in self.draws)
            enough = drawn == sum(part.size for part in self.costs)
            scales = [scale for kind, scale, _ in self.draws if kind == "geometric" and enough]
            return 2 * _paid(_moved_split(self.costs, other.costs), scales)
        scales = [scale for kind, scale, _ in self.draws if kind == "discrete_laplace"]
        return _paid(_l1(self.computed, other.computed), scales)


def _paid(moved: int, scales: list[Fraction]) -> Fraction:
    if moved == 0:
        return Fraction(0)
    return sum((moved / scale for scale in scales), Fraction(0)) if scales else INFINITE


def _moved_split(here: Sequence[Counts], there: Sequence[Counts]) -> int:
    """The most that the buckets of one split moved together; what noise must cover for P and for its rivals."""
    best = np.abs(here[0] - there[0])
    for one, other in zip(here[1:], there[1:], strict=True):
        pairs = 2 * one.size
        both = best[:pairs:2] + best[1:pairs:2]
        best = np.concatenate([np.maximum(np.abs(one - other), both), best[pairs:]])
    return int(best[0])


def _cut(numbers: Counts) -> Counts:
    return numbers.clip(-LARGEST_COUNT, LARGEST_COUNT)


def _l1(here: Counts | None, there: Counts | None) -> int:
    if here is None or there is None or here.shape != there.shape:
        return int(INFINITE)
    return sum(abs(int(a) - int(b)) for a, b in zip(here.tolist(), there.tolist(), strict=True))


class LoggedCounts(PrivateCounts):
    """Counts behind measurements that tell their log of choices."""

    def __init__(
        self, domain: Domain, sensitivity: int, load: Callable[[], Counts], answers: Any = None, parts: int = 1
    ) -> None:
        super().__init__(domain, sensitivity, load, answers, parts)
        self.log = answers

    def choose(self, groups: Any, score: Any, budget: Budget) -> Counts:
        if isinstance(self.log, Log):
            self.log.choice = (groups, score.constant)
        return super().choose(groups, score, budget)

    def noisy_weighted_sums(self, lines: Any, budget: Budget) -> Any:
        if isinstance(self.log, Log):
            self.log.weight = math.prod(max(sum(map(abs, column)) for column in line.T.tolist()) for line in lines)
        return super().noisy_weighted_sums(lines, budget)


class Log:
    """A journal in memory that keeps what every measurement did.

    Args:
        frozen: answers by step, which stand whatever is drawn now.
        silent: whether measurements that have an answer do not even draw, as after a crash.
    """

    def __init__(self, frozen: Mapping[str, Counts] | None = None, silent: bool = False) -> None:
        self.answers, self.silent = dict(frozen or {}), silent
        self.asked: list[Asked] = []
        self.stray: list[str] = []
        self.choice: tuple[Sequence[Counts], int] = ((), 0)
        self.weight = 0
        self._drawing: Asked | None = None

    def answer(self, step: str, question: Mapping[str, str], draw: Callable[[], Counts]) -> Counts:
        """The frozen answer, else what is drawn."""
        asked = Asked(step, dict(question), weight=self.weight)
        if asked.measurement == "weights":  # free: they must not depend on counts
            if not self.silent and not np.array_equal(self.answers.setdefault(step, draw()), draw()):
                self.stray.append("weights that differ")
            return self.answers[step].copy()
        if asked.measurement == "choose":
            asked.groups, asked.constant = self.choice
        elif asked.measurement == "choose_buckets":
            asked.constant = 1
        self.asked.append(asked)
        if not self.silent:
            self._drawing = asked
            drawn = draw()
            self._drawing = None
            laplace = [numbers for kind, _, numbers in asked.draws if kind == "discrete_laplace"]
            fits = laplace and laplace[-1].size == drawn.size
            # Answers are cut off at ±2^52: what noise was added to is noted, and believed where it gives the answer.
            if not fits or asked.computed is None or not np.array_equal(_cut(asked.computed + laplace[-1]), drawn):
                asked.computed = drawn - laplace[-1] if fits else drawn
            if not asked.scores and not asked.costs and not fits:
                asked.draws.clear()  # no noise that covers the answer
            self.answers.setdefault(step, drawn)
        return self.answers[step].copy()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Notes every draw of noise, wherever it is drawn, and what measurements add it to."""
        with (
            patch.multiple(
                noise,
                discrete_laplace=self._noted("discrete_laplace", noise.discrete_laplace),
                geometric=self._noted("geometric", noise.geometric),
            ),
            patch.multiple(
                measurements,
                _noisy=self._before(measurements._noisy),
                _noisy_winners=self._before(measurements._noisy_winners),
                _noisy_buckets=self._before(measurements._noisy_buckets),
            ),
        ):
            yield

    def _before(self, add_noise: Callable[[Any, Fraction], Counts]) -> Callable[[Any, Fraction], Counts]:
        def noted(exact: Any, scale: Fraction) -> Counts:
            if self._drawing is not None and self._drawing.measurement == "choose_buckets":
                self._drawing.costs = [part.copy() for part in exact]
            elif self._drawing is not None and isinstance(exact, list):
                self._drawing.scores = [part.copy() for part in exact]
            elif self._drawing is not None:
                self._drawing.computed = exact.copy()
            return add_noise(exact, scale)

        return noted

    def _noted(self, kind: str, sampler: Callable[[Fraction, int], Counts]) -> Callable[[Fraction, int], Counts]:
        def draw(scale: Fraction, size: int) -> Counts:
            drawn = sampler(scale, size)
            if self._drawing is None:
                self.stray.append(f"{kind} noise")
            else:
                self._drawing.draws.append((kind, scale, drawn.copy()))
            return drawn

        return draw


@dataclass(frozen=True)
class Verdict:
    """What a replay found, and for each kind of measurement the largest part that it lost of what it may lose."""

    findings: list[str]
    tightness: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """One run of a mechanism: what it asked and what it gave."""

    log: Log
    estimate: Estimate

    def gave(self) -> Any:
        """All of the estimate, comparable."""
        made = self.estimate
        arrays = (made.values, made.groups, made.unbiased and made.unbiased.values, made.sums and made.sums.values)
        return [None if array is None else (array.shape, array.tobytes()) for array in arrays], made.charges


@dataclass(frozen=True)
class Audited:
    """What is audited: a mechanism with its measurements, and what it may spend on whom."""

    mechanism: Mechanism
    shape: tuple[int, ...]
    sensitivity: int
    epsilon: Fraction
    measurements: type[LoggedCounts] = LoggedCounts

    def run(self, exact: Counts, log: Log) -> Run:
        """One run, with every draw noted."""
        counts = self.measurements(Domain.from_shape(self.shape), self.sensitivity, lambda: exact, log)
        with log.listening():
            return Run(log, self.mechanism.release(counts, Budget(self.epsilon)))

    def replay(self, here: Counts, there: Counts) -> Verdict:
        """What is wrong between two neighbours; nothing, for a private mechanism."""
        first = self.run(here, Log())
        try:
            second = self.run(there, Log(first.log.answers))
            resumed = self.run(there, Log(first.log.answers, silent=True))
        except Exception as error:
            return Verdict([f"fails on a neighbour: {type(error).__name__}"])
        found = [f"{kind} outside a measurement" for kind in {*first.log.stray, *second.log.stray}]
        if [asked.shape() for asked in first.log.asked] != [asked.shape() for asked in second.log.asked]:
            return Verdict([*found, "asks its measurements something else on a neighbour"])
        if not first.gave() == second.gave() == resumed.gave():
            found.append("the estimate depends on more than the answers")
        if [asked.question for asked in resumed.log.asked] != [asked.question for asked in first.log.asked]:
            found.append("asks its measurements something else when it resumes")
        found += misspent(first, self.epsilon)
        lost = losses(
            first.log.asked, second.log.asked, (there - here).reshape(self.shape), self.sensitivity, self.epsilon
        )
        return Verdict(found + lost.findings, lost.tightness)


def misspent(run: Run, epsilon: Fraction) -> list[str]:
    """Questions that were not charged, and charges that do not sum exactly to the declared epsilon."""
    asked = [(asked.step, asked.epsilon) for asked in run.log.asked]
    charged = [charge for charge in run.estimate.charges if not charge[0].endswith("(forfeited)")]
    found = [] if asked == charged else ["what measurements took is not what was charged"]
    if sum((share for _, share in run.estimate.charges), Fraction(0)) != epsilon:
        found.append("charges do not sum to the declared epsilon")
    return found


def losses(
    first: Sequence[Asked], second: Sequence[Asked], moved: Counts, sensitivity: int, epsilon: Fraction
) -> Verdict:
    """Measurements whose computations moved further than they declare, or than their noise pays for."""
    distance = int(np.abs(moved).sum())
    found, total, whole, tightness = [], Fraction(0), Fraction(0), dict[str, float]()
    if distance > sensitivity:
        found.append(f"counts moved by {distance} and the declared sensitivity is {sensitivity}")
    for here, there in zip(first, second, strict=True):
        # What is seen of rows moves though no count does: these measurements have a sensitivity of their own.
        loss, allowed = (
            here.loss(there),
            here.epsilon * (1 if here.measurement in ROW_MEASUREMENTS else Fraction(distance, sensitivity)),
        )
        total, whole = total + loss, whole + allowed
        if allowed:
            tightness[here.measurement] = max(tightness.get(here.measurement, 0.0), float(loss / allowed))
        if loss > allowed:
            found.append(
                f"{here.measurement} '{here.step}' took epsilon {float(here.epsilon):.3g} and lost {float(loss):.3g}"
            )
        found += [f"{here.measurement} '{here.step}' {problem}" for problem in _beyond(here, there, moved, distance)]
    if total > min(epsilon, whole):
        found.append(f"all measurements together lost {float(total):.3g} of {float(epsilon):.3g}")
    return Verdict(found, tightness)


def _beyond(here: Asked, there: Asked, moved: Counts, distance: int) -> list[str]:
    """Where what a measurement computed moved by more than its constant times what the counts did."""
    if here.scores:
        parts = zip(here.groups, here.scores, there.scores, strict=True)
        reach = [
            (int(np.abs(a - b).max()), here.constant * int(np.abs(moved.ravel()[group]).sum())) for group, a, b in parts
        ]
        return [f"moved a score by {most}, and may by {allowed}" for most, allowed in reach if most > allowed]
    if here.costs:
        most = _moved_split(here.costs, there.costs)
        return [f"moved a split by {most}, and may by {distance}"] if most > distance else []
    contrasts = math.prod(1 + (size - 1).bit_length() for size in moved.shape)
    constants = {"noisy_cells": 1, "noisy_sums": 1, "noisy_contrasts": contrasts}
    constants["noisy_weighted_sums"] = here.weight
    shift, allowed = _l1(here.computed, there.computed), constants.get(here.measurement, 0) * distance
    if here.measurement in constants and shift > allowed:
        return [f"moved by {shift}, and may by {allowed}"]
    return []
