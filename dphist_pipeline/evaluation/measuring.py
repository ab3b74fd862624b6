"""Releases public counts again and again by several mechanisms, and measures every release."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.evaluation import metrics
from dphist_pipeline.evaluation.contenders import Contender
from dphist_pipeline.evaluation.workloads import Workload
from dphist_pipeline.releasing.pipeline import sanitize

Wholes = NDArray[np.integer[Any]]
# What was measured and where: ("range_mse", "50"), or ("mse", "") over all cells.
Measure = tuple[str, str]


@dataclass(frozen=True)
class Score:
    """One measure of one mechanism at one epsilon, over all repeats.

    Attributes:
        mechanism: as it was asked for.
        epsilon: of each release.
        measure: its name; see `measure`.
        at: the length of ranges, or the class of counts, that it is about; empty where it is about all.
        mean: over the repeats.
        standard_error: of the mean; None with fewer than two repeats.
        repeats: releases that it was measured in.
    """

    mechanism: str
    epsilon: Fraction
    measure: str
    at: str
    mean: float
    standard_error: float | None
    repeats: int

    def facts(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {**vars(self), "epsilon": float(self.epsilon), "epsilon_exact": str(self.epsilon)}


def compare(
    exact: Wholes,
    contenders: Sequence[Contender],
    epsilons: Sequence[Fraction],
    repeat: int,
    workloads: Sequence[Workload],
    sensitivity: int = 1,
    progress: Callable[[str], None] = lambda step: None,
) -> list[Score]:
    """Scores of every contender at every epsilon.

    Args:
        exact: public or synthetic counts, any shape.
        contenders: checked against the shape and the epsilons.
        epsilons: one release spends one of them.
        repeat: releases for each contender and epsilon, with fresh noise each.
        workloads: questions that every release is asked.
        sensitivity: the most that one privacy unit moves the counts.
        progress: told who is next, once for every release.
    """
    scores: list[Score] = []
    truths = [workload.answers(exact) for workload in workloads]
    for contender in contenders:
        _warm_up(contender, exact.ndim, sensitivity)
        for epsilon in epsilons:
            runs = []
            for _ in range(repeat):
                progress(f"{contender.written}, epsilon {float(epsilon):g}")
                start = time.perf_counter()
                made = released(exact, contender, epsilon, sensitivity)
                seconds = time.perf_counter() - start
                runs.append({("seconds", ""): seconds, **measure(exact, made, workloads, truths)})
            scores += summed_up(contender.written, epsilon, runs)
    return scores


def released(exact: Wholes, contender: Contender, epsilon: Fraction, sensitivity: int = 1) -> Estimate:
    """One release of public counts, which no ledger records."""
    settings: dict[str, Any] = dict(contender.settings)
    return sanitize(exact, mechanism=contender.mechanism, epsilon=epsilon, sensitivity=sensitivity, **settings)


def measure(
    exact: Wholes, made: Estimate, workloads: Sequence[Workload], truths: Sequence[Sequence[Wholes]]
) -> dict[Measure, float]:
    """Every measure of one release.

    Over all cells: `mse`, `sse`, `mae`, `mre`, `kl`; `mre` at each class of counts; `weighted_variance` and
    `reconstruction_sse` (by cells) of groups, where there are groups; and for every workload, at each of its parts and
    over all of them alike, `<workload>_mse`, `<workload>_mre`, `<workload>_mae`.
    """
    values = made.values
    found: dict[Measure, float] = {
        ("mse", ""): metrics.mean_squared_error(exact, values),
        ("sse", ""): metrics.sum_squared_error(exact, values),
        ("mae", ""): metrics.mean_absolute_error(exact, values),
        ("mre", ""): metrics.mean_relative_error(exact, values),
        ("kl", ""): metrics.kl_divergence(exact, values),
    }
    found |= {("mre", size): error for size, error in metrics.relative_error_by_size(exact, values).items()}
    if made.groups is not None:
        found["weighted_variance", ""] = metrics.weighted_variance(exact, made.groups)
        found["reconstruction_sse", ""] = metrics.weighted_variance(exact, made.groups, by="cells")
    for workload, truth in zip(workloads, truths, strict=True):
        found |= workload.errors(truth, values)
    return found


def summed_up(written: str, epsilon: Fraction, runs: Iterable[dict[Measure, float]]) -> list[Score]:
    """Mean and standard error of every measure over the runs that have it."""
    gathered: dict[Measure, list[float]] = {}
    for run in runs:
        for key, value in run.items():
            gathered.setdefault(key, []).append(value)
    return [Score(written, epsilon, *key, *_mean(values), len(values)) for key, values in gathered.items()]


def _mean(values: list[float]) -> tuple[float, float | None]:
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else None
    return float(np.mean(values)), error


def _warm_up(contender: Contender, axes: int, sensitivity: int) -> None:
    """Compiles what a mechanism compiles on first use, so that no release is timed with it."""
    with suppress(DphistError):
        released(np.ones((4,) * min(axes, 6), dtype=np.int64), contender, Fraction(1), sensitivity)
