"""Experts that were fitted on one half of the cells, judged on the other half, and the weights that follow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.cells._expert_weights import (
    averaging_weights,
    estimated_errors,
    likelihood_weights,
    risk_weights,
    sure_share,
    surely_likelier,
)
from dphist_pipeline.solvers.cells.expert_rules import Expert, Probes, estimates, fitted_rules

Reals = NDArray[np.float64]

MOST_JUDGED = 1 << 16  # cells on which experts are judged; a random part of more
ON_THE_AVERAGE = 0.98  # first guess of its weight in a mixture; all experts share the rest
SURE_OF_A_MIXTURE = 3.0  # standard errors that its likelihood must gain over the average
RELEVANT = 1e-4  # weight below which an expert is left out


@dataclass(frozen=True, eq=False)
class Judged:
    """What experts say about cells that they have not seen.

    Attributes:
        seen: noisy counts of the judged cells, shape (cells,).
        variance: of the noise.
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
            experts: in any order.
            line: noisy counts, shape (n,).
            scale, variance: of the noise.
            words: a random word for each cell; the lowest bit tells its half, the others whether it is judged.
        """
        folds, probes = (words & np.uint64(1)).astype(np.bool_), Probes.of(scale)
        chosen = np.sort(np.argsort(words >> np.uint64(1), kind="stable")[:MOST_JUDGED])
        said = [
            estimates(one, fitted_rules(one, line, folds, scale), line, chosen, probes.offsets, scale)
            for one in experts
        ]
        costs = np.array([one.cost for one in experts])
        return cls(line[chosen], variance, probes, [part for part, _ in said], [part for _, part in said], costs)

    @property
    def errors(self) -> Reals:
        """Estimated mean squared error of each expert, without bias, shape (experts,)."""
        found: Reals = estimated_errors(*self._judged(self.values), self.variance).mean(axis=1)
        return found

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
