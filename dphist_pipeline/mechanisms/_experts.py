"""What `bayes` and `adaptive` share: experts on noisy cells, judged on cells that they have not seen, and mixed.

All of it is post-processing of one noisy answer. The halves of the cells are drawn from a stream that the answer itself
determines, so whoever resumes a release finds the same halves, weights and estimates.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate, Finding
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.solvers.cells.expert_rules import Expert, estimates, fitted_rules
from dphist_pipeline.solvers.cells.judged_experts import RELEVANT, Judged

Reals = NDArray[np.float64]
Objective = Literal["absolute", "relative"]

CELLS = "the noisy counts as they are"
PLAIN = (
    Expert("level", "one level for all cells, and rare exceptions", "level"),
    Expert("empty", "empty cells, and few other counts where the noisy ones insist", "lean"),
)
FITTED = (
    Expert("values", "a spread of counts, and values that many cells share", "sparse"),
    Expert("crowds", "a spread of counts, and every value that cells crowd around", "crowded"),
)


def halves(noisy: NoisyCells) -> NDArray[np.uint64]:
    """A random uint64 word for each cell, in C order, which the noisy counts determine; the lowest bit is its half."""
    line = np.ascontiguousarray(noisy.values.ravel(), dtype="<f8")
    seed = hashlib.sha256(line.tobytes()).digest()
    return np.frombuffer(hashlib.shake_256(seed).digest(8 * line.size), dtype="<u8").astype(np.uint64)


def expert_mixture(
    counts: PrivateCounts,
    noisy: NoisyCells,
    words: NDArray[np.uint64],
    experts: Sequence[Expert],
    budget: Budget,
    objective: Objective,
) -> Estimate:
    """The experts' estimates, mixed by what they are worth on cells that they have not seen.

    Args:
        words: see `halves`.
        objective: the error to keep small: squared ones, or relative ones.
    """
    judged = Judged.of(experts, noisy.values.ravel(), float(noisy.scale), noisy.variance, words)
    by_likelihood, direct = judged.weights(objective == "absolute")
    values, parts = _refit_experts(noisy, experts, by_likelihood, direct, objective == "relative")
    findings = [
        Finding(one.name, one.about, float(part), float(error))
        for one, part, error in zip(experts, parts[:-1], judged.errors, strict=True)
    ]
    cells = Finding("cells", CELLS, float(parts[-1]), noisy.variance)
    return Estimate(
        counts.domain,
        values.reshape(noisy.values.shape),
        budget.charges,
        unbiased=noisy,
        findings=tuple(sorted([*findings, cells], key=lambda one: (-one.weight, one.error))),
    )


def _refit_experts(
    noisy: NoisyCells, experts: Sequence[Expert], priors: Reals, direct: Reals, relative: bool
) -> tuple[Reals, Reals]:
    """Estimates of experts fitted on all cells, by weights from unseen ones; and the part of each, the cells last."""
    line, scale = noisy.values.ravel(), float(noisy.scale)
    direct = np.where(direct < RELEVANT, 0.0, direct)
    direct /= direct.sum()
    together, total = np.zeros(line.size), np.zeros(line.size)
    values = direct[-1] * line
    for number, expert in enumerate(experts):
        if max(priors[number], direct[number]) > 0.0:
            rules = fitted_rules(expert, line, None, scale)
            answers = estimates(expert, rules, line, np.arange(line.size), np.zeros(1), scale, relative)
            likely, own = answers[0][:, 0], answers[1][:, 0]
            together += priors[number] * likely * own
            total += priors[number] * likely
            values += direct[number] * own
    values += direct[-2] * together / total
    return values, np.append(direct[:-2] + direct[-2] * priors, direct[-1])
