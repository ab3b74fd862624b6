"""Experts that were fitted on one half of the cells, judged on the other half, and the weights that follow.

An expert counts by the likelihood of cells it has not seen, and by an unbiased estimate of its error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers._compiled import compile_function
from dphist_pipeline.solvers.cells.expert_rules import Expert, Probes, estimates, fitted_rules

Reals = NDArray[np.float64]

STEPS = 60  # of expectation maximisation
DESCENTS = 2000  # of projected gradients
SURE_OF_MANY = 3.0  # the same for a gain that is the best of many: noise alone reaches √(2·ln 30) = 2.6
PROOF = 6.0  # gain of a log-likelihood that counts in any case
FAR = 4.0  # times the best estimated error, beyond which an estimate is no candidate


def averaging_weights(likely: Reals, costs: Reals) -> Reals:
    """Weights of experts by the likelihood of all cells together, less what each expert costs: Bayesian averaging.

    Where few records decide, no expert is surely the best, and an average of those that are near it errs less than any
    choice; where many do, one has all of the weight. The weights, shape (experts,), sum to 1.

    Args:
        likely: likelihood of every cell under every expert that has not seen the cell, shape (experts, n).
        costs: fall of the log-likelihood before any cell is seen, shape (experts,).
    """
    logs = np.log(likely).sum(axis=1) - costs
    weights = np.exp(logs - logs.max())
    shares: Reals = weights / weights.sum()
    return shares


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


@compile_function
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
    """Convex weights of the estimates whose combination has the least estimated squared error, shape (estimates,).

    Args:
        errors: estimate minus noisy count, shape (estimates, n).
        covariances: estimated covariance of estimate and noise, shape (estimates, n).
    """
    risks = estimated_errors(errors, covariances, variance).mean(axis=1)
    near = np.flatnonzero(risks <= FAR * max(0.0, float(risks.min())) + variance / 100)
    products = _products(errors[near]) / (errors.shape[1] * variance)
    lines = covariances[near].mean(axis=1) / variance
    rate = 1.0 / (2.0 * np.trace(products) + 1e-3)
    weights = _least_on_simplex(products, lines, rate)
    shares = np.zeros(risks.size)
    shares[near] = weights
    return shares


def estimated_errors(errors: Reals, covariances: Reals, variance: float) -> Reals:
    """Unbiased estimate of the squared error of each cell, any shape.

    Args:
        errors, covariances, variance: see `risk_weights`.
    """
    squares: Reals = errors**2 + 2.0 * covariances - variance
    return squares


@compile_function
def _products(errors: Reals) -> Reals:
    """Inner products of all pairs of rows, in one order of summation."""
    products = np.zeros((errors.shape[0], errors.shape[0]))
    for row in range(errors.shape[0]):
        for column in range(row + 1):
            total = 0.0
            for cell in range(errors.shape[1]):
                total += errors[row, cell] * errors[column, cell]
            products[row, column] = products[column, row] = total
    return products


@compile_function
def _least_on_simplex(products: Reals, lines: Reals, rate: float) -> Reals:
    """Weights that sum to 1, none negative, of the least w'Pw + 2·l'w: projected gradients with momentum.

    The order of additions is part of what was published: sums of rows as NumPy has them.
    """
    size = lines.size
    weights = np.full(size, 1.0 / size)
    ahead, pace = weights.copy(), 1.0
    for _ in range(DESCENTS):
        down = np.empty(size)
        for row in range(size):
            down[row] = ahead[row] - rate * (2.0 * (_sum_as_numpy(ahead * products[row]) + lines[row]))
        new = _onto_simplex(down)
        if np.array_equal(new, ahead) and np.array_equal(new, weights):
            break  # no later step would move it
        faster = (1.0 + math.sqrt(1.0 + 4.0 * pace**2)) / 2.0
        ahead, weights, pace = new + (pace - 1.0) / faster * (new - weights), new, faster
    return weights


@compile_function
def _sum_as_numpy(values: Reals) -> float:
    """The sum in the order in which NumPy adds up to 128 numbers that lie side by side."""
    total, whole = 0.0, values.size - values.size % 8 if values.size >= 8 else 0
    if whole:
        parts = values[:8].copy()
        for start in range(8, whole, 8):
            parts += values[start : start + 8]
        total = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]))
    for place in range(whole, values.size):
        total += values[place]
    return total


@compile_function
def _onto_simplex(point: Reals) -> Reals:
    """The nearest point with non-negative entries that sum to 1."""
    falling = np.sort(point)[::-1]
    total, over = 0.0, 0.0
    for place in range(falling.size):
        total += falling[place]
        if falling[place] > (total - 1.0) / (place + 1):
            over = (total - 1.0) / (place + 1)
    return np.maximum(0.0, point - over)


MOST_JUDGED = 1 << 16  # cells on which experts are judged; a random part of more
ON_THE_AVERAGE = 0.98  # first guess of its weight in a mixture; all experts share the rest
SURE_OF_A_MIXTURE = 3.0  # standard errors that its likelihood must gain over the average
RELEVANT = 1e-4  # weight below which an expert is left out


@dataclass(frozen=True, eq=False)
class Judged:
    """What experts say about cells that they have not seen.

    Attributes:
        seen: noisy counts of the judged cells, shape (cells,).
        probes: changes of the noisy counts at which rules are looked at.
        likely: likelihood of each cell at each change, by expert, shape (cells, changes) each.
        values: the estimates, the same.
        costs: of the experts, shape (experts,); see `Expert.cost`.
    """

    seen: Reals
    variance: float
    probes: Probes
    likely: Sequence[Reals]
    values: Sequence[Reals]
    costs: Reals

    @classmethod
    def of(
        cls, experts: Sequence[Expert], line: Reals, scale: float, variance: float, words: NDArray[np.uint64]
    ) -> Judged:
        """Fits and asks all experts.

        Args:
            line: noisy counts, shape (n,).
            words: a random word for each cell; the lowest bit tells its half, the others whether it is judged.
        """
        folds, probes = (words & np.uint64(1)).astype(np.bool_), Probes.of(scale)
        chosen = np.sort(np.argsort(words >> np.uint64(1), kind="stable")[:MOST_JUDGED])
        answers = [
            estimates(one, fitted_rules(one, line, folds, scale), line, chosen, probes.offsets, scale)
            for one in experts
        ]
        costs = np.array([one.cost for one in experts])
        return cls(line[chosen], variance, probes, [part for part, _ in answers], [part for _, part in answers], costs)

    @property
    def errors(self) -> Reals:
        """Estimated mean squared error of each expert, without bias, shape (experts,)."""
        risks: Reals = estimated_errors(*self._judged(self.values), self.variance).mean(axis=1)
        return risks

    def weights(self, by_risk: bool) -> tuple[Reals, Reals]:
        """Weights of the experts' priors, shape (experts,), and of estimates, shape (experts + 2,).

        The estimates are: those of the experts, that of the mixture of priors, and the noisy cells themselves.

        Args:
            by_risk: whether squared errors decide over the second weights; otherwise the mixture of priors has all.
        """
        priors, mixture = self._by_likelihood()
        alone = np.zeros(len(self.values) + 2)
        alone[-2] = 1.0
        if not by_risk:
            return priors, alone
        distances, covariances = self._judged([*self.values, mixture, self.seen[:, None] + self.probes.offsets])
        convex = risk_weights(distances, covariances, self.variance)
        before = estimated_errors(distances[-2], covariances[-2], self.variance)
        after = [(convex[:, None] * rows).sum(axis=0) for rows in (distances, covariances)]
        share = sure_share(before - estimated_errors(after[0], after[1], self.variance))
        return priors, share * convex + (1.0 - share) * alone

    def _by_likelihood(self) -> tuple[Reals, Reals]:
        """Weights of priors under which unseen cells are likely, and the estimates of their mixture."""
        likely = np.array([part[:, 0] for part in self.likely])
        average = averaging_weights(likely, self.costs)
        first = ON_THE_AVERAGE * average + (1.0 - ON_THE_AVERAGE) / average.size
        weights = likelihood_weights(likely, first, 3.0 * math.log(max(3, self.seen.size)))
        gains = np.log((weights[:, None] * likely).sum(axis=0)) - np.log((average[:, None] * likely).sum(axis=0))
        if not surely_likelier(gains, SURE_OF_A_MIXTURE):
            weights = average
        weights = np.where(weights < RELEVANT, 0.0, weights)
        weights /= weights.sum()
        together, total = np.zeros_like(self.likely[0]), np.zeros_like(self.likely[0])
        for weight, part, values in zip(weights, self.likely, self.values, strict=True):
            together += weight * part * values
            total += weight * part
        return weights, together / total

    def _judged(self, rules: Sequence[Reals]) -> tuple[Reals, Reals]:
        """How far each rule is from the noisy cells, and its covariance with the noise, shape (rules, cells) each."""
        return (
            np.array([values[:, 0] - self.seen for values in rules]),
            np.array([self.probes.covariances(values) for values in rules]),
        )
