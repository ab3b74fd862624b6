"""What laws of families tell of noise, as tests compare it with brute force."""

from __future__ import annotations

import math

import numpy as np

from dphist_pipeline.solvers.tables.crossed_levels import CrossedLaw
from dphist_pipeline.solvers.tables.level_estimates import LevelLaw
from dphist_pipeline.solvers.tables.wanted_tables import Axes


def told_covariance(law: LevelLaw | CrossedLaw, table: Axes) -> np.ndarray:
    """The told bound on the covariance of the cells of a table, as a matrix."""
    order = sorted(table)
    found = np.zeros((math.prod(law.sizes[axis] for axis in order),) * 2)
    for agreed, part in law.covariance(table).items():
        same = np.ones((1, 1))
        for axis in order:
            same = np.kron(same, np.eye(law.sizes[axis]) if axis in agreed else np.ones((law.sizes[axis],) * 2))
        found += part * same
    return found


def noisy_marginals(sizes: tuple[int, ...], variances: dict[Axes, float], seed: int) -> dict[Axes, np.ndarray]:
    """Whole numbers for the measured marginals, axes in ascending order."""
    rng = np.random.default_rng(seed)
    return {axes: rng.integers(-50, 50, [sizes[a] for a in sorted(axes)]).astype(float) for axes in variances}
