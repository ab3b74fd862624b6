"""How much each expert counts: by the likelihood of cells it has not seen, and by an unbiased estimate of its error."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compiled

Reals = NDArray[np.float64]

STEPS = 60  # of expectation maximisation
DESCENTS = 2000  # of projected gradients
SURE_OF_MANY = 3.0  # the same for a gain that is the best of many: noise alone reaches √(2·ln 30) = 2.6
PROOF = 6.0  # gain of a log-likelihood that counts in any case
FAR = 4.0  # times the best estimated error, beyond which an estimate is no candidate


def averaging_weights(likely: Reals, costs: Reals) -> Reals:
    """Weights of experts by the likelihood of all cells together, less what each expert costs: Bayesian averaging.

    Where few records decide, no expert is surely the best, and an average of those that are near it errs less than any
    choice; where many do, one has all of the weight.

    Args:
        likely: likelihood of every cell under every expert that has not seen the cell, shape (experts, n).
        costs: fall of the log-likelihood before any cell is seen, shape (experts,).

    Returns:
        Shape (experts,); they sum to 1.
    """
    logs = np.log(likely).sum(axis=1) - costs
    weights = np.exp(logs - logs.max())
    found: Reals = weights / weights.sum()
    return found


def surely_likelier(gains: Reals, errors: float) -> bool:
    """Whether a log-likelihood has surely risen: by enough of its standard errors, or by PROOF as a whole.

    Unseen cells gain g or more with a probability of at most exp(-g) if they follow the model that is left. So a large
    gain is sure even if few cells brought it and its standard error is large.

    Args:
        gains: of each cell, shape (n,).
        errors: standard errors that are enough.
    """
    error = float(gains.std()) * math.sqrt(gains.size)
    return bool(gains.sum() > max(1.0, min(errors * error, PROOF)))


def sure_share(gains: Reals) -> float:
    """How far to trust the mean gain of chosen weights: 0 up to SURE_OF_MANY standard errors, near 1 far above.

    Args:
        gains: of each cell, shape (n,).
    """
    mean, error = float(gains.mean()), float(gains.std()) / math.sqrt(gains.size)
    return max(0.0, 1.0 - (SURE_OF_MANY * error / mean) ** 2) if mean > 0.0 else 0.0


def likelihood_weights(likely: Reals, first: Reals, trust: float) -> Reals:
    """Weights of a mixture of experts under which the cells are likely, drawn towards a first guess.

    Args:
        likely: see `averaging_weights`.
        first: weights to start from, shape (experts,); they sum to 1.
        trust: number of cells that the first guess counts for.
    """
    weights = first.copy()
    for _ in range(STEPS):
        weights = (_responsibilities(likely, weights) + trust * first) / (likely.shape[1] + trust)
    return weights


@compiled
def _responsibilities(likely: Reals, weights: Reals) -> Reals:
    """Sum over cells of each expert's share in the cell's likelihood, shape (experts,)."""
    sums = np.zeros(weights.size)
    for cell in range(likely.shape[1]):
        total = 0.0
        for expert in range(weights.size):
            total += weights[expert] * likely[expert, cell]
        for expert in range(weights.size):
            sums[expert] += weights[expert] * likely[expert, cell] / total
    return sums


def risk_weights(errors: Reals, covariances: Reals, variance: float) -> Reals:
    """Convex weights of the estimates whose combination has the least estimated squared error.

    Args:
        errors: estimate minus noisy count, shape (estimates, n).
        covariances: estimated covariance of estimate and noise, shape (estimates, n).
        variance: of the noise.

    Returns:
        Shape (estimates,); they sum to 1, and none is negative.
    """
    risks = estimated_errors(errors, covariances, variance).mean(axis=1)
    near = np.flatnonzero(risks <= FAR * max(0.0, float(risks.min())) + variance / 100)
    products = _products(errors[near]) / (errors.shape[1] * variance)
    lines = covariances[near].mean(axis=1) / variance
    rate = 1.0 / (2.0 * np.trace(products) + 1e-3)
    weights = np.full(near.size, 1.0 / near.size)
    ahead, pace = weights, 1.0
    for _ in range(DESCENTS):
        slope = 2.0 * ((products * ahead).sum(axis=1) + lines)
        new = _onto_simplex(ahead - rate * slope)
        faster = (1.0 + math.sqrt(1.0 + 4.0 * pace**2)) / 2.0
        ahead, weights, pace = new + (pace - 1.0) / faster * (new - weights), new, faster
    found = np.zeros(risks.size)
    found[near] = weights
    return found


def estimated_errors(errors: Reals, covariances: Reals, variance: float) -> Reals:
    """Unbiased estimate of the squared error of each cell, any shape.

    Args:
        errors, covariances, variance: see `risk_weights`.
    """
    found: Reals = errors**2 + 2.0 * covariances - variance
    return found


@compiled
def _products(errors: Reals) -> Reals:
    """Inner products of all pairs of rows, in one order of summation."""
    found = np.zeros((errors.shape[0], errors.shape[0]))
    for row in range(errors.shape[0]):
        for column in range(row + 1):
            total = 0.0
            for cell in range(errors.shape[1]):
                total += errors[row, cell] * errors[column, cell]
            found[row, column] = found[column, row] = total
    return found


def _onto_simplex(point: Reals) -> Reals:
    """The nearest point with non-negative entries that sum to 1."""
    falling = np.sort(point)[::-1]
    over = (np.cumsum(falling) - 1.0) / np.arange(1, point.size + 1)
    kept = np.flatnonzero(falling > over)[-1]
    nearest: Reals = np.maximum(0.0, point - over[kept])
    return nearest
