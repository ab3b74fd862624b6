"""Privelet: noise on the Haar wavelet of the cells, so that long ranges carry little of it.

Paper:    Xiao, Wang, Gehrke. Differential privacy via wavelet transforms. ICDE 2010, TKDE 2011; for ordered axes,
          all of them transformed. Its weighted coefficients with weighted noise are these whole numbers with equal
          noise, divided.
Privacy:  epsilon on `noisy_contrasts`: totals, and for every node the left half minus the right one, along each axis. A
          record moves one number a level, so the noise has the scale sensitivity / epsilon times 1 + log2 of the cells,
          rounded up, for each axis: 64 for two axes of 100.
Domain:   any number of axes, ordered. Axes are padded to a power of two with cells known to be empty. Over all boxes,
          `boost` is less noisy, and so is `geometric` below about 400 cells on a line and 500 × 500 in a square.
Cost:     O(cells · axes).
Bars:     on the estimates, which are unbiased, and on every box of cells: the variance is exact; the interval is
          95 % by a calibrated factor.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.laws import Tail, noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyContrasts, SharedNoise
from dphist_pipeline.mechanisms import Mechanism


@dataclass(frozen=True)
class Privelet(Mechanism):
    """Settings: none."""

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses noise outside the sampler's range."""
        levels = math.prod(1 + _halvings(size) for size in domain.shape)
        Budget(epsilon, "all totals and contrasts").scale(sensitivity * levels)

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy contrasts, and the cells that they determine."""
        from dphist_pipeline.solvers.trees.haar import inverse_haar

        wavelet, shape = counts.noisy_contrasts(budget), counts.domain.shape
        cells = inverse_haar(wavelet.values.reshape(wavelet.sizes), shape)
        unbiased = NestedCells(cells, wavelet.scale, shared_noise_of(wavelet), _tail_in_a_cell(wavelet))
        return Estimate(counts.domain, cells, budget.charges, unbiased=unbiased)


def shared_noise_of(wavelet: NoisyContrasts) -> tuple[SharedNoise, ...]:
    """The covariance of the cells: along a line by the formula of `solvers.regular_tree` for a binary tree with one top
    node, and over several axes the product of the lines', since the wavelet is one along each axis.

    The contrast of a node of N cells is sqrt(N) times the coefficient of a unit vector: its precision is N / variance.
    A cell depends on the nodes that hold it alone, and all of these are measured: so it is exact beside padding, too.
    """
    variances = [wavelet.variance, *[1.0] * (len(wavelet.shape) - 1)]
    lines = [_shared_along(size, variance) for size, variance in zip(wavelet.shape, variances, strict=True)]
    terms = (
        SharedNoise(math.prod(part for part, _ in parts), tuple(width for _, width in parts))
        for parts in product(*lines)
    )
    # Total and root of an axis are known alike, so no noise is shared by all of it; one axis keeps its term of 0.
    return tuple(part for part in terms if part.coefficient or len(lines) == 1)


def _shared_along(size: int, variance: float) -> list[tuple[float, int]]:
    """Coefficients and widths of the noise that the cells of a line share, from the root."""
    from dphist_pipeline.solvers.trees.regular_tree import shared_noise

    widths = [1 << level for level in range(_halvings(size), -1, -1)]
    parts = shared_noise(widths, [width / variance for width in [widths[0], *widths[:-1]]])
    return list(zip(parts, widths, strict=True))


def _tail_in_a_cell(wavelet: NoisyContrasts) -> Tail | None:
    """A bound on the noise of a cell, which is a sum over all numbers that hold it, of signs and weights.

    Along a line, the cell is the total over all cells, plus or minus the contrast of each node that holds it over the
    node's cells. Weights of several axes are multiplied.
    """
    weights = Counter({1.0: 1})
    for size in wavelet.shape:
        line = Counter([1 / (1 << level) for level in (_halvings(size), *range(_halvings(size), 0, -1))])
        weights = _products(weights, line)
    drawn: Sequence[tuple[float, int]] = list(weights.items())
    law = noise_law(wavelet.scale)
    tail = law.tail_of_sum(drawn)
    return law.bound_of_sum(drawn) if tail is None and len(wavelet.shape) > 1 else tail


def _products(one: Counter[float], other: Counter[float]) -> Counter[float]:
    products = Counter[float]()
    for weight, number in one.items():
        for factor, times in other.items():
            products[weight * factor] += number * times
    return products


def _halvings(size: int) -> int:
    """The number of times that a line of cells is halved."""
    return (size - 1).bit_length()
