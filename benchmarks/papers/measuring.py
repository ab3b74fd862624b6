"""Repeated releases of public counts by mechanisms of the package and by printed forms, measured alike."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import hypot, isfinite, log

import numpy as np
from printed import Printed
from rich.console import Console
from rich.progress import track

from dphist_pipeline import mechanisms, sanitize
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms.dpcube import NoiseMultiple, PaperVariance
from dphist_pipeline.workbench.evaluation.measuring import MeasureResult, aggregate_scores, measure
from dphist_pipeline.workbench.evaluation.workloads import EvaluationWorkload

Contestant = Callable[[np.ndarray, Fraction, np.random.Generator], Estimate]
SEED = 1099
NOTHING: tuple[EvaluationWorkload, ...] = ()


@dataclass(frozen=True)
class Private:
    """A mechanism of the package, with its settings."""

    mechanism: str
    sensitivity: int
    settings: dict[str, object]

    def __call__(self, exact: np.ndarray, epsilon: Fraction, random: np.random.Generator) -> Estimate:
        """A release."""
        return sanitize(exact, mechanism=self.mechanism, epsilon=epsilon, sensitivity=self.sensitivity, **self.settings)

    def __str__(self) -> str:
        return told(self.mechanism, self.sensitivity, **self.settings)


@dataclass(frozen=True)
class AsPrinted:
    """A printed form, not private. What it really spends stands in the place of its charge."""

    algorithm: Callable[[np.ndarray, float, np.random.Generator], Printed]
    settings: str

    def __call__(self, exact: np.ndarray, epsilon: Fraction, random: np.random.Generator) -> Estimate:
        """What it publishes."""
        made = self.algorithm(exact, float(epsilon), random)
        return Estimate(Domain.from_shape(exact.shape), made.values, (("printed", made.spent),), groups=made.groups)

    def __str__(self) -> str:
        return f"as printed, not private: {self.settings}"


@dataclass(frozen=True)
class ByEpsilon:
    """A mechanism whose settings follow epsilon; between two epsilons those of the nearer one by their ratio."""

    settings: Mapping[str, Private]
    source: str

    def __call__(self, exact: np.ndarray, epsilon: Fraction, random: np.random.Generator) -> Estimate:
        """A release."""
        nearest = min(self.settings, key=lambda one: abs(log(float(Fraction(one)) / float(epsilon))))
        return self.settings[nearest](exact, epsilon, random)

    def __str__(self) -> str:
        (mechanism, *_) = (one.mechanism for one in self.settings.values())
        each = (f"at ε = {at} {str(one).partition(': ')[2]}" for at, one in self.settings.items())
        return f"{mechanism}: {self.source}: {'; '.join(each)}"


def private(mechanism: str, sensitivity: int = 1, **settings: object) -> Private:
    """A mechanism of the package, with its settings."""
    return Private(mechanism, sensitivity, settings)


def ahp_of_its_authors() -> ByEpsilon:
    """AHP with the share and the threshold that its authors' code has at each epsilon, as DPBench quotes them.

    A comment at the end of `dpcomp_core/monolithic/ahp.py`, an early file of DPBench's code, lists them as "from their
    implementation".
    """
    chosen = {"1": ("1/2", 0.4), "0.1": ("17/20", 0.35), "0.01": ("13/20", 0.9)}
    settings = {at: private("ahp", order_share=share, eta=eta) for at, (share, eta) in chosen.items()}
    return ByEpsilon(settings, "as in its authors' code, which DPBench quotes")


def as_printed(algorithm: Callable[[np.ndarray, float, np.random.Generator], Printed], settings: str) -> AsPrinted:
    """A printed form, and its shares in words."""
    return AsPrinted(algorithm, settings)


def told(mechanism: str, sensitivity: int = 1, **settings: object) -> str:
    """A mechanism with every setting, those that were left out at their defaults."""
    every = vars(mechanisms.build(mechanism, settings))
    words = ", ".join(f"{name} {_written(value)}" for name, value in every.items())
    return f"{mechanism}: {words or 'no settings'}; Δ = {sensitivity}"


def _written(value: object) -> str:
    if isinstance(value, PaperVariance | NoiseMultiple):
        ((rule, number),) = vars(value).items()
        return f"{{{rule}: {number:g}}}"
    return str(value)


def scores(
    name: str,
    exact: np.ndarray,
    contestants: Mapping[str, Contestant],
    epsilons: Sequence[str],
    repeat: int,
    workloads: Sequence[EvaluationWorkload] = NOTHING,
) -> list[MeasureResult]:
    """Scores of all contestants; one that does not serve these counts has none. `spent` is the real epsilon."""
    random, found, absent = np.random.default_rng(SEED), list[MeasureResult](), dict[str, str]()
    truths = [workload.answers(exact) for workload in workloads]
    todo = [(who, epsilon) for who in contestants for epsilon in map(Fraction, epsilons)]
    for who, epsilon in track(todo, name, console=Console(stderr=True), transient=True):
        runs = []
        try:
            contestants[who](np.ones((4,) * exact.ndim, dtype=np.int64), epsilon, random)  # compiles
            for _ in range(repeat):
                start = time.process_time()
                made = contestants[who](exact, epsilon, random)
                seconds = time.process_time() - start
                spent = float(sum(charge for _, charge in made.charges))
                runs.append({("seconds", ""): seconds, **measure(exact, made, workloads, truths)})
                if isfinite(spent):
                    runs[-1]["spent", ""] = spent
        except DphistError as error:
            absent[who] = str(error)
        found += aggregate_scores(who, epsilon, runs)
    for who, why in absent.items():
        print(f"  {name}: {who} takes no part: {why}")
    return found


class Board:
    """Scores by who, epsilon, measure and place."""

    def __init__(self, found: Sequence[MeasureResult]) -> None:
        self.found = {(one.mechanism, one.epsilon, one.measure, one.at): one for one in found}

    def get(self, who: str, epsilon: str, measure: str, at: str = "") -> MeasureResult | None:
        """One score, or None for who took no part."""
        return self.found.get((who, Fraction(epsilon), measure, at))

    def places(self, measure: str) -> list[str]:
        """Where a measure was taken, without the whole."""
        return list(dict.fromkeys(at for _, _, kind, at in self.found if kind == measure and at))


def smaller(one: MeasureResult | None, other: MeasureResult | None) -> bool | None:
    """Whether one error is below another by more than two standard errors of both; None where nobody can say."""
    if one is None or other is None:
        return None
    noise = 2 * hypot(one.standard_error or 0.0, other.standard_error or 0.0)
    return None if abs(one.mean - other.mean) <= noise else one.mean < other.mean


def times(pairs: Iterable[tuple[MeasureResult | None, MeasureResult | None]], of: str) -> str:
    """How the first errors relate to the second ones, from the least ratio: `0.5 to 3 times geometric's`."""
    found = [one.mean / other.mean for one, other in pairs if one and other and other.mean]
    return f"{min(found):.3g} to {max(found):.3g} times {of}'s" if found else ""
