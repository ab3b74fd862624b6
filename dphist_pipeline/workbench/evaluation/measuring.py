"""Releases public counts repeatedly with several mechanisms, and measures the errors of every release."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.releasing.sanitizing import sanitize
from dphist_pipeline.workbench.evaluation import metrics
from dphist_pipeline.workbench.evaluation.contenders import Contender
from dphist_pipeline.workbench.evaluation.office_methods import OfficeMethod
from dphist_pipeline.workbench.evaluation.workloads import EvaluationWorkload

Wholes = NDArray[np.integer[Any]]
# (name, part): ("range_mse", "50"), or ("mse", "") over all cells.
Measure = tuple[str, str]
MISSED = Fraction(1, 20)
MOST_VALUES = 100
AS_GEOMETRIC = "as_geometric"  # 1 for a release of the noisy cells themselves, else 0


@dataclass(frozen=True)
class MeasureResult:
    """One measure of one mechanism at one epsilon, over all repeats.

    Attributes:
        mechanism: with its settings, as the user wrote it.
        measure: name of the measure; see `measure`.
        at: the length of the ranges, or the class of counts; empty if the measure is over all of them.
        mean: over the repeats.
        standard_error: of the mean; None for fewer than two repeats.
    """

    mechanism: str
    epsilon: Fraction
    measure: str
    at: str
    mean: float
    standard_error: float | None
    repeats: int

    def facts(self) -> dict[str, Any]:
        """The score as JSON values."""
        return {**vars(self), "epsilon": float(self.epsilon), "epsilon_exact": str(self.epsilon)}


def compare(
    exact: Wholes,
    contenders: Sequence[Contender],
    epsilons: Sequence[Fraction],
    repeat: int,
    workloads: Sequence[EvaluationWorkload],
    sensitivity: int = 1,
    progress: Callable[[str], None] = lambda step: None,
) -> list[MeasureResult]:
    """The scores of every mechanism at every epsilon.

    Args:
        exact: public or synthetic counts, any shape.
        repeat: number of releases for each mechanism and epsilon, with fresh noise.
        sensitivity: largest change of the counts by one privacy unit, in records.
    """
    scores: list[MeasureResult] = []
    truths = [workload.answers(exact) for workload in workloads]
    for contender in contenders:
        _warm_up(contender, exact.ndim, sensitivity)
        for epsilon in epsilons:
            runs = []
            for _ in range(repeat):
                progress(f"{contender.written}, epsilon {float(epsilon):g}")
                start = time.perf_counter()
                estimate = sanitize_with(exact, contender, epsilon, sensitivity)
                seconds = time.perf_counter() - start
                geometric_scores = {(AS_GEOMETRIC, ""): float(is_noisy_cells(estimate))}
                runs.append(
                    {("seconds", ""): seconds, **geometric_scores, **measure(exact, estimate, workloads, truths)}
                )
            scores += aggregate_scores(contender.written, epsilon, runs)
            scores += usefulness(contender.written, epsilon, runs)
    return scores


def compare_office_methods(
    exact: Wholes,
    methods: Mapping[str, OfficeMethod],
    epsilons: Sequence[Fraction],
    repeat: int,
    workloads: Sequence[EvaluationWorkload],
    progress: Callable[[str], None] = lambda step: None,
) -> list[MeasureResult]:
    """The scores of methods without ε, measured once and repeated at every epsilon, for tables that show both.

    Args:
        exact: public or synthetic counts, any shape.
        methods: by their names in tables.
        repeat: number of tables by each method, with fresh draws.
    """
    scores: list[MeasureResult] = []
    truths, domain = [workload.answers(exact) for workload in workloads], Domain.from_shape(exact.shape)
    draws = np.random.default_rng()
    for name, method in methods.items():
        runs = []
        for _ in range(repeat):
            progress(name)
            start = time.perf_counter()
            values = method.publish(exact.astype(np.int64), draws)
            seconds = time.perf_counter() - start
            estimate = Estimate(domain, values, ())
            runs.append({("seconds", ""): seconds, **measure(exact, estimate, workloads, truths)})
        measured = aggregate_scores(name, epsilons[0], runs) + usefulness(name, epsilons[0], runs)
        scores += [replace(score, epsilon=epsilon) for epsilon in epsilons for score in measured]
    return scores


def sanitize_with(exact: Wholes, contender: Contender, epsilon: Fraction, sensitivity: int = 1) -> Estimate:
    """One release of public counts by a mechanism with settings; no ledger records it.

    Args:
        exact: public or synthetic counts, any shape.
        sensitivity: in records.
    """
    settings: dict[str, Any] = dict(contender.settings)
    return sanitize(exact, mechanism=contender.mechanism, epsilon=epsilon, sensitivity=sensitivity, **settings)


def measure(
    exact: Wholes, estimate: Estimate, workloads: Sequence[EvaluationWorkload], truths: Sequence[Sequence[Wholes]]
) -> dict[Measure, float]:
    """All measures of one release.

    Over all cells: `mse`, `sse`, `mae`, `mre`, `kl`. For each class of counts: `mre`; for each of the smallest exact
    counts, up to a hundred: `mre_of_value`. If the mechanism groups cells:
    `weighted_variance` and `reconstruction_sse`. For each workload, for each of its parts and as the mean over the
    parts: `<workload>_mse`, `<workload>_mre`, `<workload>_mae`; over all questions together `<workload>_max`, the
    largest absolute error.

    Args:
        exact: public or synthetic counts, any shape.
        truths: the exact answers of each workload; see `Workload.answers`.
    """
    values = estimate.values
    errors: dict[Measure, float] = {
        ("mse", ""): metrics.mean_squared_error(exact, values),
        ("sse", ""): metrics.sum_squared_error(exact, values),
        ("mae", ""): metrics.mean_absolute_error(exact, values),
        ("mre", ""): metrics.mean_relative_error(exact, values),
        ("kl", ""): metrics.kl_divergence(exact, values),
    }
    errors |= {("mre", size): error for size, error in metrics.relative_error_by_size(exact, values).items()}
    by_value = metrics.relative_error_by_value(exact, values, MOST_VALUES)
    errors |= {("mre_of_value", str(value)): error for value, error in by_value.items()}
    if estimate.groups is not None:
        errors["weighted_variance", ""] = metrics.weighted_variance(exact, estimate.groups)
        errors["reconstruction_sse", ""] = metrics.weighted_variance(exact, estimate.groups, by="cells")
    for workload, truth in zip(workloads, truths, strict=True):
        errors |= workload.errors(truth, values)
    return errors


def is_noisy_cells(estimate: Estimate) -> bool:
    """Whether a mechanism published the noisy cells themselves, as `geometric` does."""
    return estimate.is_unbiased and isinstance(estimate.unbiased, NoisyCells)


def aggregate_scores(contender: str, epsilon: Fraction, runs: Iterable[dict[Measure, float]]) -> list[MeasureResult]:
    """The mean and standard error of every measure over the runs that have it."""
    gathered: dict[Measure, list[float]] = {}
    for run in runs:
        for key, value in run.items():
            gathered.setdefault(key, []).append(value)
    return [MeasureResult(contender, epsilon, *key, *_mean(values), len(values)) for key, values in gathered.items()]


def usefulness(
    contender: str, epsilon: Fraction, runs: Sequence[dict[Measure, float]], missed: Fraction = MISSED
) -> list[MeasureResult]:
    """Measure `<workload>_useful`: the error that no question exceeds in a share 1 - missed of the releases.

    It is the ε of (ε, δ)-usefulness (Blum, Ligett, Roth 2008; Xiao et al. 2012, section 3.3) at δ = missed, as
    observed: the smallest number that enough releases stay within, so of fewer than 1/missed releases the largest.
    """
    scores = []
    for measure in [name for name, _ in runs[0] if name.endswith("_max")]:
        largest = sorted(run[measure, ""] for run in runs)
        within = largest[math.ceil((1 - missed) * len(largest)) - 1]
        name = f"{measure.removesuffix('_max')}_useful"
        scores.append(MeasureResult(contender, epsilon, name, str(float(missed)), within, None, len(largest)))
    return scores


def _mean(values: list[float]) -> tuple[float, float | None]:
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
    return float(np.mean(values)), error


def _warm_up(contender: Contender, axes: int, sensitivity: int) -> None:
    """Makes a small release, so that no timed release includes the compilation of a mechanism."""
    with suppress(DphistError):
        sanitize_with(np.ones((4,) * min(axes, 6), dtype=np.int64), contender, Fraction(1), sensitivity)
