"""The smallest epsilon that brings the error of a cell down to a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from dphist_pipeline.estimates.budget import LARGEST_EPSILON, SMALLEST_EPSILON
from dphist_pipeline.evaluation.contenders import Contender
from dphist_pipeline.planning.expected_errors import ANY, Forecaster

STEPS_OF_TEN = 90
LEAST, MOST = -6 * STEPS_OF_TEN, STEPS_OF_TEN + 40  # the steps of the smallest and of the largest epsilon
FARTHEST = 8.0  # times an epsilon, from one trial to the next
CLOSE = Fraction(11, 10)


@dataclass(frozen=True)
class LeastEpsilon:
    """What a target costs with one mechanism.

    Attributes:
        mechanism: as it was asked for.
        by_law: whether the law of the noise says so; else it was simulated.
        epsilons: by shape of the counts (`any` by law): the smallest epsilon, of two digits, that reaches the target;
            None where none does.
    """

    mechanism: str
    by_law: bool
    epsilons: dict[str, Fraction | None]

    def facts(self) -> dict[str, Any]:
        """As JSON values."""
        found = {shape: None if found is None else float(found) for shape, found in self.epsilons.items()}
        return {"mechanism": self.mechanism, "basis": "law" if self.by_law else "simulated", "epsilon": found}


def least_epsilon(
    forecaster: Forecaster, contender: Contender, target: float, progress: Callable[[str], None] = lambda step: None
) -> LeastEpsilon:
    """The smallest epsilons at which the root mean squared error of a cell is at most the target.

    By law to two digits; where errors are simulated, to within a tenth, which their luck allows.
    """
    progress(f"{contender.written}, error {target:g}")
    first = step_of(plain_epsilon(forecaster.sensitivity, target))
    by_law = forecaster.by_law(contender, epsilon_at(first))
    found = {}
    for name in [ANY] if by_law else forecaster.counts:
        found[name] = smallest(partial(forecaster.cell_error, contender, name), target, first, exactly=by_law)
    return LeastEpsilon(contender.written, by_law, found)


def plain_epsilon(sensitivity: int, target: float) -> Fraction:
    """About what plain noise on every cell needs, within the epsilons that there are."""
    least, most = float(SMALLEST_EPSILON), float(LARGEST_EPSILON)
    return Fraction(min(most, max(least, math.sqrt(2) * sensitivity / target)))


def smallest(error: Callable[[Fraction], float], target: float, first: int, exactly: bool) -> Fraction | None:
    """The least epsilon of two digits whose error is at most the target; None where no epsilon's is.

    Args:
        error: of an epsilon; falls, about in proportion, as it grows.
        target: in the same units.
        first: the step to begin with.
        exactly: down to one step; else to within a tenth.
    """
    low, high, at, trials = LEAST - 1, MOST + 1, first, 0
    while high - low > 1:
        found = error(epsilon_at(at))
        low, high = (low, at) if found <= target else (at, high)
        if not exactly and low >= LEAST and high <= MOST and epsilon_at(high) <= CLOSE * epsilon_at(low):
            break
        trials += 1
        factor = min(FARTHEST, max(1 / FARTHEST, found / target))
        guess = step_of(Fraction(float(epsilon_at(at)) * factor)) if trials % 3 else (low + high) // 2
        at = min(max(guess, low + 1), high - 1)
    return epsilon_at(high) if high <= MOST else None


def epsilon_at(step: int) -> Fraction:
    """Numbers of two digits in order: …, 0.098, 0.099, 0.1, 0.11, …; step 0 is 1."""
    power, digits = divmod(step, STEPS_OF_TEN)
    return Fraction(10 + digits, 10) * Fraction(10) ** power


def step_of(epsilon: Fraction) -> int:
    """The step of a number of two digits."""
    power = 0
    while epsilon >= 10:
        epsilon, power = epsilon / 10, power + 1
    while epsilon < 1:
        epsilon, power = epsilon * 10, power - 1
    return power * STEPS_OF_TEN + int(epsilon * 10) - 10
