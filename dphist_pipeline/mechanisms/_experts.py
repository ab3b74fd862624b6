"""What `bayes` and `adaptive` share: experts on noisy cells, judged on cells that they have not seen, and mixed.

All of it is post-processing of one noisy answer. The halves of the cells are drawn from a stream that the answer itself
determines, so whoever resumes a release finds the same halves, weights and estimates.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.solvers.expert_rules import Expert, Probes, estimates, fitted_rules
from dphist_pipeline.solvers.expert_weights import (
    estimated_errors,
    likelihood_weights,
    risk_weights,
    simplest_good,
)

Reals = NDArray[np.float64]

MOST_JUDGED = 1 << 16  # cells on which experts are judged; a random part of more
ON_THE_SIMPLEST = 0.7  # first guess of its weight; the others share the rest
SURE = 2.0  # standard errors by which a gain must be sure before it counts fully or nearly so
RELEVANT = 1e-4  # of the weight, below which an expert is left out of the estimate


@dataclass(frozen=True)
class Found:
    """What became of an expert.

    Attributes:
        name, about: see `Expert`.
        weight: its part of the estimate.
        error: estimated mean squared error by itself, in records squared, without bias.
    """

    name: str
    about: str
    weight: float
    error: float


@dataclass(frozen=True, eq=False)
class Mixture:
    """Estimates, and what was found.

    Attributes:
        values: shape of the cells.
        found: every expert.
        error: estimated mean squared error of the mixture, in records squared.
    """

    values: Reals
    found: tuple[Found, ...]
    error: float


def stream(noisy: Reals, words: int) -> NDArray[np.uint64]:
    """Random words that the published noisy counts determine.

    Args:
        noisy: the answer of a door.
        words: number of words.
    """
    seed = hashlib.sha256(np.ascontiguousarray(noisy, dtype="<f8").tobytes()).digest()
    return np.frombuffer(hashlib.shake_256(seed).digest(8 * words), dtype="<u8").astype(np.uint64)


def mixed(noisy: NoisyCells, experts: list[Expert]) -> Mixture:
    """The experts' estimates, mixed.

    Args:
        noisy: the answer of the door.
        experts: the simplest first.
    """
    line, scale = noisy.values.ravel(), float(noisy.scale)
    words = stream(line, line.size)
    folds = (words & np.uint64(1)).astype(np.bool_)
    chosen = np.sort(np.argsort(words >> np.uint64(1), kind="stable")[:MOST_JUDGED])
    probes = Probes.of(scale)
    judged = [
        estimates(one, fitted_rules(one, line, folds, scale), line, chosen, probes.offsets, scale) for one in experts
    ]
    likely = np.array([part[:, 0] for part, _ in judged])
    simplest = simplest_good(likely, range(len(experts)))
    first = np.full(len(experts), (1.0 - ON_THE_SIMPLEST) / len(experts))
    first[simplest] += ON_THE_SIMPLEST
    weights = likelihood_weights(likely, first, 3.0 * math.log(max(3, chosen.size)))
    gain = np.log((weights[:, None] * likely).sum(axis=0)) - np.log(likely[simplest])
    if gain.sum() <= gain.std() * math.sqrt(chosen.size):
        weights = (np.arange(len(experts)) == simplest).astype(np.float64)
    together = sum(w * part * values for w, (part, values) in zip(weights, judged, strict=True))
    total = sum(w * part for w, (part, _) in zip(weights, judged, strict=True))
    # The candidates for the unbiased risk: the mixture by likelihood, every expert, and the noisy cells themselves.
    seen = line[chosen]
    by_likelihood = together / total
    rows = [by_likelihood, *(values for _, values in judged), seen[:, None] + probes.offsets]
    errors = np.array([row[:, 0] - seen for row in rows])
    covariances = np.array([probes.covariances(row) for row in rows])
    risks = estimated_errors(errors, covariances, noisy.variance)
    convex = risk_weights(errors, covariances, noisy.variance)
    moved = estimated_errors(
        (convex[:, None] * errors).sum(axis=0), (convex[:, None] * covariances).sum(axis=0), noisy.variance
    )
    share = _sure_share(risks[0] - moved)
    return _refitted(noisy, experts, weights, convex, share, risks)


def _sure_share(gains: Reals) -> float:
    """How far to trust a mean gain: 0 up to SURE standard errors, 1 for gains far above."""
    mean, error = float(gains.mean()), float(gains.std()) / math.sqrt(gains.size)
    return max(0.0, 1.0 - (SURE * error / mean) ** 2) if mean > 0 else 0.0


def _refitted(
    noisy: NoisyCells, experts: list[Expert], weights: Reals, convex: Reals, share: float, risks: Reals
) -> Mixture:
    """The estimates of experts that are fitted on all cells, mixed by weights that were found on unseen ones."""
    line, scale = noisy.values.ravel(), float(noisy.scale)
    everywhere = np.arange(line.size)
    together, total, alone = np.zeros(line.size), np.zeros(line.size), np.zeros(line.size)
    for number, expert in enumerate(experts):
        direct = share * convex[1 + number]
        if max(weights[number], direct) < RELEVANT:
            continue
        rules = fitted_rules(expert, line, None, scale)
        likely, values = estimates(expert, rules, line, everywhere, np.zeros(1), scale)
        together += weights[number] * likely[:, 0] * values[:, 0]
        total += weights[number] * likely[:, 0]
        alone += direct * values[:, 0]
    on_cells, on_mixture = share * convex[-1], 1.0 - share + share * convex[0]
    counted = 1.0 - share * convex[1:-1][(weights < RELEVANT) & (share * convex[1:-1] < RELEVANT)].sum()
    values = (alone + on_cells * line + on_mixture * together / total) / counted
    parts = on_mixture * weights + share * convex[1:-1]
    found = [
        Found(one.name, one.about, float(part), float(risk.mean()))
        for one, part, risk in zip(experts, parts, risks[1:-1], strict=True)
    ]
    found.append(Found("cells", "the noisy counts as they are", float(on_cells), noisy.variance))
    return Mixture(values.reshape(noisy.values.shape), tuple(found), float(risks[0].mean()))
