"""The error theory of DPCube (Xiao et al. 2012, sections 4.2 and 4.4), for continuous Laplace noise of scale Δ/α.

A query counts s of the n cells of one box. Phase I gave every cell noise of scale Δ/α₁, phase II the sum of the box
noise of scale Δ/α₂. Errors are in records. Mended here:
- Theorem 4.2 bounds |the sum of the noise| by the sum of |the noise|, so it holds for all queries at once, and for
  every error ε, not only below 1 as lemma 4.1 says.
- Theorem 4.4: the bias is at most γ·s·(n - s)/n, which min(s, n - s)·γ exceeds by up to a factor of 2. The proof adds
  the bias without its sign; |bias| + E|noise| is a bound, and the exact error is |a| + b·exp(-|a|/b).
- Theorem 4.5 takes η as given and the noise of phase I as independent of it. But η holds that noise. The formula is the
  mean error over all counts that may lie behind η, each as likely; it is not the mean error of the algorithm on given
  counts, which theorem 4.4's exact form gives.
- Theorem 4.6 weights cells and sum alike even where α₁ differs from α₂. `weighted` takes weights by the variances, as
  `dpcube` does; for s = n equation (35) has no density, and the error is still defined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
NODES = 8192


@dataclass(frozen=True)
class QueryParameters:
    """Parameters of a query in a box; the defaults are those of table II, with s nearly half of n.

    Attributes:
        cells: in the box, n.
        query: cells that are counted, s.
        first, second: α₁ and α₂, the epsilons of both phases.
        smoothness: the most by which two cells of the box differ, γ, in records.
        inconsistency: of both views of the query, η, in records.
        sensitivity: Δ, in records.
    """

    cells: int = 11
    query: int = 5
    first: float = 0.05
    second: float = 0.15
    smoothness: float = 5.0
    inconsistency: float = 5.0
    sensitivity: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.query <= self.cells:
            raise ValueError(f"a query counts 1 to {self.cells} cells of its box, not {self.query}")
        if min(self.first, self.second) <= 0:
            raise ValueError("both epsilons are above 0")

    @property
    def largest_bias(self) -> float:
        """The most by which an even share of the box's sum is off, in records: γ·s·(n - s)/n."""
        return self.smoothness * self.query * (self.cells - self.query) / self.cells

    @property
    def share_of_noise(self) -> float:
        """Scale of the noise that a query has of the box's sum, in records: s·Δ/(n·α₂)."""
        return self.query / self.cells * self.sensitivity / self.second


def cells_usefulness(cells: int, alpha: float, delta: float, sensitivity: int = 1) -> float:
    """Theorem 4.2: the error that no counting query on noisy cells exceeds, with probability 1 - delta, in records.

    Args:
        cells: in the cube, m; with the cells of one query it holds for that query.
        alpha: epsilon of the cells.
    """
    return cells * math.log(cells / delta) * sensitivity / alpha


def uniform_usefulness(setting: QueryParameters, delta: float, printed: bool = False) -> float:
    """Theorem 4.4, equation (32): the error of uniform estimation that is not exceeded with probability 1 - delta.

    Args:
        printed: with the paper's bound on the bias, min(s, n - s)·γ.
    """
    return _bias(setting, printed) + setting.share_of_noise * math.log(1 / delta)


def uniform_bound(setting: QueryParameters, printed: bool = False) -> float:
    """Theorem 4.4, equation (33): a bound on the expected error of uniform estimation in a box of smoothness γ."""
    return _bias(setting, printed) + setting.share_of_noise


def uniform_error(setting: QueryParameters, bias: float) -> float:
    """The exact expected error of uniform estimation where an even share of the true sum is off.

    Args:
        setting: the query and its box; the smoothness is not used.
        bias: by how much it is off, of either sign, in records.
    """
    scale = setting.share_of_noise
    return abs(bias) + scale * math.exp(-abs(bias) / scale)


def error_given_inconsistency(setting: QueryParameters) -> float:
    """Theorem 4.5, equation (34): the expected error of uniform estimation given η; see above for what it is."""
    return expected_magnitude([(setting.sensitivity / setting.first, setting.query)], setting.inconsistency)


def least_squares_error(setting: QueryParameters, weighted: bool = True) -> float:
    """Theorem 4.6, equation (35): the expected error of least squares over cells and sum of the box.

    Args:
        weighted: by the variances of both views; False for the paper's equal weights.
    """
    first, second, n, s = setting.first, setting.second, setting.cells, setting.query
    moved_share = second**2 / (first**2 + n * second**2) if weighted else 1 / (n + 1)
    cell, whole = setting.sensitivity / first, setting.sensitivity / second
    return expected_magnitude(
        [(s * moved_share * whole, 1), ((1 - s * moved_share) * cell, s), (s * moved_share * cell, n - s)]
    )


def cells_error(setting: QueryParameters) -> float:
    """The expected error of the query on cells alone, which have the epsilon of both phases together."""
    return expected_magnitude([(setting.sensitivity / (setting.first + setting.second), setting.query)])


def break_even_smoothness(setting: QueryParameters) -> float:
    """The γ up to which uniform estimation of the query beats plain noise on cells, in records; inf if it always does.

    At this γ the largest bias makes both expected errors equal; 0 if uniform estimation has more noise even without.
    """
    scale, target = setting.share_of_noise, cells_error(setting)
    if target <= scale:
        return 0.0
    if setting.query == setting.cells:
        return math.inf
    low, high = 0.0, target
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if middle + scale * math.exp(-middle / scale) < target else (low, middle)
    return low / (setting.query * (setting.cells - setting.query) / setting.cells)


def density_of_sum(values: Reals, draws: int, alpha: float) -> Reals:
    """Theorem 3.3, equation (2): the density of a sum of Laplace draws of scale 1/alpha; the integral as a finite sum.

    Args:
        values: where, any shape.
        draws: how many are summed, at least 1.
    """
    n, z = draws, np.abs(values)
    density = np.zeros_like(z)
    for k in range(n):
        density += math.comb(n - 1, k) * math.gamma(n + k) * z ** (n - 1 - k) / (2 * alpha) ** k
    dense: Reals = density * alpha**n / (2**n * math.gamma(n) ** 2) * np.exp(-alpha * z)
    return dense


def expected_magnitude(draws: Sequence[tuple[float, int]], centre: float = 0.0) -> float:
    """E|centre + a sum of independent Laplace draws|, within about 10⁻⁶ of its value.

    E|X| = 2/π · ∫₀^∞ (1 - Re φ(t)) / t² dt for the characteristic function φ, here cos(centre·t) · Π (1 + b²t²)^-k; by
    the midpoint rule in θ with t = tan(θ)/c, whose integrand is smooth and periodic.

    Args:
        draws: scale of the draws, and how many have it.
        centre: what the noise is added to.
    """
    terms = [(abs(scale), number) for scale, number in draws if scale and number]
    if not terms:
        return abs(centre)
    spread = math.sqrt(2 * math.fsum(number * scale**2 for scale, number in terms) + centre**2)
    angles = (np.arange(NODES) + 0.5) * (math.pi / 2 / NODES)
    times = np.tan(angles) / spread
    log = -sum(number * np.log1p((scale * times) ** 2) for scale, number in terms)
    rest = -np.expm1(log) + 2 * np.exp(log) * np.sin(centre * times / 2) ** 2
    return float(spread * np.mean(rest / np.sin(angles) ** 2))


def _bias(setting: QueryParameters, printed: bool) -> float:
    if printed:
        return setting.smoothness * min(setting.query, setting.cells - setting.query)
    return setting.largest_bias
