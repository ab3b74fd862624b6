"""What `bayes` and `adaptive` share: experts on noisy cells, judged on cells that they have not seen, and mixed.

All of it is post-processing of one noisy answer. The halves of the cells are drawn from a stream that the answer itself
determines, so whoever resumes a release finds the same halves, weights and estimates.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate, Finding
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.solvers.expert_rules import Expert, Probes, estimates, fitted_rules
from dphist_pipeline.solvers.expert_weights import (
    estimated_errors,
    likelihood_weights,
    risk_weights,
    simplest_good,
    sure_share,
    surely_positive,
)

Reals = NDArray[np.float64]
Objective = Literal["absolute", "relative"]

MOST_JUDGED = 1 << 16  # cells on which experts are judged; a random part of more
ON_THE_SIMPLEST = 0.7  # first guess of its weight; the others share the rest
RELEVANT = 1e-4  # weight below which an expert is left out
CELLS = "the noisy counts as they are"
SIMPLE = (
    Expert("level", "one level for all cells, and rare exceptions", "level"),
    Expert("empty", "empty cells, and few other counts where the noisy ones insist", "lean"),
    Expert("values", "a spread of counts, and values that many cells share", "sparse"),
    Expert("crowds", "a spread of counts, and every value that cells crowd around", "crowded"),
)


def halves(noisy: NoisyCells) -> NDArray[np.uint64]:
    """A random word for each cell, which the published noisy counts determine; the lowest bit tells its half."""
    line = np.ascontiguousarray(noisy.values.ravel(), dtype="<f8")
    seed = hashlib.sha256(line.tobytes()).digest()
    return np.frombuffer(hashlib.shake_256(seed).digest(8 * line.size), dtype="<u8").astype(np.uint64)


def mixed(
    counts: PrivateCounts, noisy: NoisyCells, experts: Sequence[Expert], budget: Budget, objective: Objective
) -> Estimate:
    """The experts' estimates, mixed by what they are worth on cells that they have not seen.

    Args:
        counts: what the noisy cells were asked of.
        noisy: the answer.
        experts: the simplest first.
        budget: what paid for it.
        objective: the error to keep small: squared ones, or relative ones.
    """
    judged = _Judged(noisy, experts)
    by_likelihood, direct = judged.weights(objective == "absolute")
    values, parts = _refitted(noisy, experts, by_likelihood, direct, objective == "relative")
    found = [
        Finding(one.name, one.about, float(part), float(error))
        for one, part, error in zip(experts, parts[:-1], judged.errors, strict=True)
    ]
    cells = Finding("cells", CELLS, float(parts[-1]), noisy.variance)
    return Estimate(
        counts.domain,
        values.reshape(noisy.values.shape),
        budget.charges,
        unbiased=noisy,
        findings=tuple(sorted([*found, cells], key=lambda one: -one.weight)),
    )


class _Judged:
    """Experts fitted on one half of the cells, and what they say about the other half.

    Attributes:
        errors: estimated mean squared error of each expert, without bias, shape (experts,).
    """

    def __init__(self, noisy: NoisyCells, experts: Sequence[Expert]) -> None:
        line, scale, words = noisy.values.ravel(), float(noisy.scale), halves(noisy)
        folds = (words & np.uint64(1)).astype(np.bool_)
        chosen = np.sort(np.argsort(words >> np.uint64(1), kind="stable")[:MOST_JUDGED])
        self._probes, self._seen, self._variance = Probes.of(scale), line[chosen], noisy.variance
        offsets = self._probes.offsets
        self._parts = [
            estimates(one, fitted_rules(one, line, folds, scale), line, chosen, offsets, scale) for one in experts
        ]
        self._distances, self._covariances = self._judged([values for _, values in self._parts])
        self._risks = estimated_errors(self._distances, self._covariances, self._variance)
        self.errors = self._risks.mean(axis=1)

    def weights(self, by_risk: bool) -> tuple[Reals, Reals]:
        """Weights of the experts' priors, shape (experts,), and of estimates, shape (experts + 2,).

        The estimates are: those of the experts, that of the mixture of priors, and the noisy cells themselves.

        Args:
            by_risk: whether squared errors decide over the second weights; otherwise the mixture of priors has all.
        """
        priors, mixture = self._by_likelihood()
        alone = np.zeros(len(self._parts) + 2)
        alone[-2] = 1.0
        if not by_risk:
            return priors, alone
        more = self._judged([mixture, self._seen[:, None] + self._probes.offsets])
        distances, covariances = (
            np.concatenate([known, new]) for known, new in zip((self._distances, self._covariances), more, strict=True)
        )
        convex = risk_weights(distances, covariances, self._variance)
        before = estimated_errors(more[0][0], more[1][0], self._variance)
        after = [(convex[:, None] * rows).sum(axis=0) for rows in (distances, covariances)]
        share = sure_share(before - estimated_errors(after[0], after[1], self._variance))
        return priors, share * convex + (1.0 - share) * alone

    def _by_likelihood(self) -> tuple[Reals, Reals]:
        """Weights of priors under which unseen cells are likely, and the estimates of their mixture."""
        likely, experts = np.array([part[:, 0] for part, _ in self._parts]), len(self._parts)
        simplest = simplest_good(likely)
        first = np.full(experts, (1.0 - ON_THE_SIMPLEST) / experts)
        first[simplest] += ON_THE_SIMPLEST
        weights = likelihood_weights(likely, first, 3.0 * math.log(max(3, self._seen.size)))
        if not surely_positive(np.log((weights[:, None] * likely).sum(axis=0)) - np.log(likely[simplest])):
            weights = (np.arange(experts) == simplest).astype(np.float64)
        weights = np.where(weights < RELEVANT, 0.0, weights)
        weights /= weights.sum()
        together, total = np.zeros_like(self._parts[0][0]), np.zeros_like(self._parts[0][0])
        for weight, (part, values) in zip(weights, self._parts, strict=True):
            together += weight * part * values
            total += weight * part
        return weights, together / total

    def _judged(self, rules: Sequence[Reals]) -> tuple[Reals, Reals]:
        """How far each rule is from the noisy cells, and its covariance with the noise, shape (rules, cells) each."""
        return (
            np.array([values[:, 0] - self._seen for values in rules]),
            np.array([self._probes.covariances(values) for values in rules]),
        )


def _refitted(
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
            said = estimates(expert, rules, line, np.arange(line.size), np.zeros(1), scale, relative)
            likely, own = said[0][:, 0], said[1][:, 0]
            together += priors[number] * likely * own
            total += priors[number] * likely
            values += direct[number] * own
    values += direct[-2] * together / total
    return values, np.append(direct[:-2] + direct[-2] * priors, direct[-1])
