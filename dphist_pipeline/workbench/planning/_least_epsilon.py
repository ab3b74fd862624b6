"""Finds the smallest epsilon at which the error of a cell is at most a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from dphist_pipeline.estimates.budget import LARGEST_EPSILON, SMALLEST_EPSILON
from dphist_pipeline.workbench.evaluation.contenders import Contender
from dphist_pipeline.workbench.planning._expected_errors import ANY, Forecaster

STEPS_OF_TEN = 90
LEAST, MOST = -6 * STEPS_OF_TEN, STEPS_OF_TEN + 40  # steps of the smallest and the largest epsilon; see `epsilon_at`
FARTHEST = 8.0  # the largest factor between the epsilons of two trials
CLOSE = Fraction(11, 10)


@dataclass(frozen=True)
class LeastEpsilon:
    """The smallest epsilon at which one mechanism reaches a target error.

    Attributes:
        by_law: True if the errors are exact from the noise law; False if they were simulated.
        epsilons: smallest epsilon of two digits, by name of the counts (`any` if exact); None if none reaches it.
    """

    mechanism: str
    by_law: bool
    epsilons: dict[str, Fraction | None]

    def facts(self) -> dict[str, Any]:
        """The epsilons as JSON values."""
        epsilons = {shape: None if epsilon is None else float(epsilon) for shape, epsilon in self.epsilons.items()}
        return {"mechanism": self.mechanism, "basis": "law" if self.by_law else "simulated", "epsilon": epsilons}


def least_epsilon(
    forecaster: Forecaster, contender: Contender, target: float, progress: Callable[[str], None] = lambda step: None
) -> LeastEpsilon:
    """The smallest epsilons at which the root mean squared error of a cell, in records, is at most the target.

    Exact to two digits if the errors are; within a tenth if they are simulated, because simulated errors vary.
    """
    progress(f"{contender.written}, error {target:g}")
    first = step_of(plain_epsilon(forecaster.sensitivity, target))
    by_law = forecaster.by_law(contender, epsilon_at(first))
    by_shape = {}
    for name in [ANY] if by_law else forecaster.counts:
        by_shape[name] = smallest(partial(forecaster.cell_error, contender, name), target, first, exactly=by_law)
    return LeastEpsilon(contender.written, by_law, by_shape)


def plain_epsilon(sensitivity: int, target: float) -> Fraction:
    """The epsilon at which plain Laplace noise in each cell has about the target error in records; 10^-6 to 50."""
    least, most = float(SMALLEST_EPSILON), float(LARGEST_EPSILON)
    return Fraction(min(most, max(least, math.sqrt(2) * sensitivity / target)))


def smallest(error: Callable[[Fraction], float], target: float, first: int, exactly: bool) -> Fraction | None:
    """The smallest epsilon of two digits whose error is at most the target; None if there is none.

    Args:
        error: the error at an epsilon; about inversely proportional to epsilon.
        first: the step of the first trial; see `epsilon_at`.
        exactly: True to search to one step, False to within a tenth.
    """
    low, high, at, trials = LEAST - 1, MOST + 1, first, 0
    while high - low > 1:
        reached = error(epsilon_at(at))
        low, high = (low, at) if reached <= target else (at, high)
        if not exactly and low >= LEAST and high <= MOST and epsilon_at(high) <= CLOSE * epsilon_at(low):
            break
        trials += 1
        factor = min(FARTHEST, max(1 / FARTHEST, reached / target))
        guess = step_of(Fraction(float(epsilon_at(at)) * factor)) if trials % 3 else (low + high) // 2
        at = min(max(guess, low + 1), high - 1)
    return epsilon_at(high) if high <= MOST else None


def epsilon_at(step: int) -> Fraction:
    """The number of two digits at a step of the list …, 0.098, 0.099, 0.1, 0.11, …; step 0 is 1, and 1 is 1.1."""
    power, digits = divmod(step, STEPS_OF_TEN)
    return Fraction(10 + digits, 10) * Fraction(10) ** power


def step_of(epsilon: Fraction) -> int:
    """The step of an epsilon above 0, rounded down; see `epsilon_at`."""
    power = 0
    while epsilon >= 10:
        epsilon, power = epsilon / 10, power + 1
    while epsilon < 1:
        epsilon, power = epsilon * 10, power - 1
    return power * STEPS_OF_TEN + int(epsilon * 10) - 10
