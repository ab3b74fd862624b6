"""Privelet: noise on the Haar wavelet of a line of cells, so that long ranges carry little of it.

Paper:    Xiao, Wang, Gehrke. Differential privacy via wavelet transforms. ICDE 2010, TKDE 2011; its one-dimensional
          form. Its weighted coefficients with weighted noise are these whole numbers with equal noise, divided.
Privacy:  epsilon on `noisy_contrasts`: the total and, for every node, the left half minus the right one. A record moves
          one number a level, so the noise has the scale (1 + log2 of the cells, rounded up) · sensitivity / epsilon.
Domain:   one axis, ordered. Other numbers of cells than powers of two are padded with cells known to be empty.
Cost:     O(cells).
Bars:     on the estimates, which are unbiased, and on every range of cells: the variance is exact, or a bound where the
          last nodes reach beyond the cells; the interval is 95 % by a calibrated factor. `boost` is less noisy.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noise_law import tail_of_sum
from dphist_pipeline.estimates.noisy import NestedCells, NoisyContrasts, SharedNoise
from dphist_pipeline.mechanisms import DomainRefused, Mechanism


@dataclass(frozen=True)
class Privelet(Mechanism):
    """Settings: none."""

    def check(self, domain: Domain, sensitivity: int, epsilon: Fraction) -> None:
        """Refuses more than one axis, and noise outside the sampler's range."""
        if len(domain.axes) != 1:
            raise DomainRefused(
                "privelet", f"serves one axis, not {len(domain.axes)}; for cubes use `boost` or `dpcube`"
            )
        Budget(epsilon, "the total and every contrast").scale(sensitivity * (1 + (domain.cells - 1).bit_length()))

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy contrasts, and the cells that they determine."""
        wavelet = counts.noisy_contrasts(budget)
        cells = cells_of(wavelet, counts.domain.cells)
        shared = shared_noise_of(wavelet)
        # A cell is the total over the cells, plus or minus the contrast of each node that holds it over its cells.
        weights = [(1 / width, 1) for part in shared[:-1] for width in part.widths]
        tail = tail_of_sum(wavelet.scale, [(1 / 2 ** len(wavelet.contrasts), 1), *weights])
        unbiased = NestedCells(cells, wavelet.scale, shared, tail)
        return Estimate(counts.domain, cells, budget.charges, unbiased=unbiased)


def cells_of(wavelet: NoisyContrasts, cells: int) -> NDArray[np.float64]:
    """The cells that have this total and these contrasts, the padding left out; shape (cells,)."""
    from dphist_pipeline.solvers.haar import inverse_haar

    coefficients = np.zeros(1 << len(wavelet.contrasts))
    coefficients[0] = wavelet.total
    for level, contrasts in enumerate(wavelet.contrasts):
        coefficients[1 << level :][: contrasts.size] = contrasts
    return inverse_haar(coefficients)[:cells]


def shared_noise_of(wavelet: NoisyContrasts) -> tuple[SharedNoise, ...]:
    """The covariance of the cells, by the formula of `solvers.regular_tree` for a binary tree with one top node.

    The contrast of a node of N cells is sqrt(N) times the coefficient of a unit vector: its precision is N / variance.
    """
    from dphist_pipeline.solvers.regular_tree import shared_noise

    halvings = len(wavelet.contrasts)
    widths = [1 << (halvings - level) for level in range(halvings + 1)]
    precisions = [width / wavelet.variance for width in [widths[0], *widths[:-1]]]
    parts = shared_noise(widths, precisions)
    return tuple(SharedNoise(part, (width,)) for part, width in zip(parts, widths, strict=True))
