"""Which mechanism is best, where the spread of the releases allows to say so; and the recommendation that follows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from dphist_pipeline.workbench.evaluation.measuring import AS_GEOMETRIC, MeasureResult
from dphist_pipeline.workbench.evaluation.workloads import EvaluationWorkload

MISTAKEN = 0.005  # the probability that a mechanism without an advantage is told apart from one other
SIMPLEST = "geometric"


@dataclass(frozen=True)
class Recommendation:
    """The mechanism to take for one kind of question at one epsilon.

    Attributes:
        questions: `cells`, or the description of a workload.
        times_geometric: its mean squared error, divided by that of `geometric`; None without `geometric`.
        alike: mechanisms whose error cannot be told apart from the least one by these releases.
    """

    epsilon: Fraction
    questions: str
    mechanism: str
    times_geometric: float | None
    alike: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """The recommendation as JSON values."""
        return {**asdict(self), "epsilon": float(self.epsilon), "alike": list(self.alike)}

    def sentence(self) -> str:
        """The recommendation and its reason in words."""
        reason = self._reason()
        remark = f"; these releases do not tell it from {', '.join(self.alike)}" if self.alike else ""
        return f"For {self.questions}: {self.mechanism}, {reason}{remark}."

    def _reason(self) -> str:
        if self.mechanism == SIMPLEST:
            return "the simplest, because no other is surely better"
        if self.times_geometric is None:
            return "of the least mean squared error"
        return f"whose mean squared error is {self.times_geometric:.2g} times that of {SIMPLEST}"


def recommendations(scores: Sequence[MeasureResult], workloads: Iterable[EvaluationWorkload]) -> list[Recommendation]:
    """The mechanism of the least mean squared error for cells and for each workload, at each epsilon.

    `geometric` is preferred where it cannot be told apart from the best, because it is the simplest.
    """
    measures = {"cells": "mse"} | {workload.about: f"{workload.name}_mse" for workload in workloads}
    recommended = []
    for epsilon in sorted({score.epsilon for score in scores}, reverse=True):
        scores_here = [score for score in scores if score.epsilon == epsilon]
        for questions, measure in measures.items():
            errors = [score for score in scores_here if (score.measure, score.at) == (measure, "")]
            recommended.append(_recommend(questions, competing(errors, scores_here)))
    return recommended


def _recommend(questions: str, errors: Sequence[MeasureResult]) -> Recommendation:
    best = leaders(errors)
    least = min(errors, key=lambda score: score.mean)
    winner = next((score for score in best if score.mechanism == SIMPLEST), least)
    simplest = next((score.mean for score in errors if score.mechanism == SIMPLEST), None)
    others = tuple(score.mechanism for score in best if score is not winner)
    times = winner.mean / simplest if simplest else None
    return Recommendation(winner.epsilon, questions, winner.mechanism, times, others)


def leaders(scores: Sequence[MeasureResult]) -> list[MeasureResult]:
    """The least mean of a measure at one epsilon, and all not told apart from it, one-sided, by Student's t."""
    least = min(scores, key=lambda score: score.mean)
    return [score for score in scores if score is least or not is_above(score, least)]


def is_above(score: MeasureResult, least: MeasureResult) -> bool:
    """Whether the mean of a measure is surely larger; never with fewer than three releases of each."""
    if score.standard_error is None or least.standard_error is None or min(score.repeats, least.repeats) < 3:
        return False
    factor = student_quantile(min(score.repeats, least.repeats) - 1)
    return score.mean - least.mean > factor * math.hypot(score.standard_error, least.standard_error)


def student_quantile(freedom: int) -> float:
    """The 1 - `MISTAKEN` quantile of Student's t for 2 or more degrees of freedom, around the normal quantile.

    Source: Abramowitz and Stegun, 26.7.5; 12 % too small for 2 degrees of freedom, 1.5 % for 4.
    """
    z = NormalDist().inv_cdf(1 - MISTAKEN)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / math.pow(freedom, power) for power, term in enumerate(terms, 1))


def competing(column: Sequence[MeasureResult], scores: Iterable[MeasureResult]) -> list[MeasureResult]:
    """The scores of a measure without those of mechanisms that published what `geometric` does, if it takes part."""
    same = same_as_geometric(scores)
    competitors = [score for score in column if score.mechanism not in same]
    return competitors if any(score.mechanism == SIMPLEST for score in competitors) else list(column)


def same_as_geometric(scores: Iterable[MeasureResult]) -> set[str]:
    """The mechanisms, other than `geometric`, whose every release at one epsilon was the noisy cells themselves."""
    return {
        score.mechanism
        for score in scores
        if score.measure == AS_GEOMETRIC and score.mean == 1 and score.mechanism != SIMPLEST
    }
