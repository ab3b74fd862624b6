"""Adaptive: add noise to every cell, let simple and complex models of the counts compete, and mix them.

Paper:    ours. Each model (an expert) is an empirical Bayes rule; see `bayes`. Weights by the likelihood of unseen
          cells: Smyth, Wolpert. Linearly combining density estimators via stacking. 1999. Weights by unbiased risk:
          Stein. Estimation of the mean of a multivariate normal distribution. 1981; here for discrete Laplace noise.
Privacy:  epsilon, all of it on `noisy_cells`. All that follows reads only noisy counts, so it is free; its random
          halves come from a stream that the noisy counts determine.
Domain:   any number of axes. Neighbours count along ordered axes; along axes of categories, all cells of a line do.
Cost:     about a second for 10^4 cells, half a minute for 10^6; memory about a kilobyte a cell, at most 2 GB at 10^6.
Bars:     the exact law of the noise, on `unbiased_estimate`. The estimates have no interval: each is drawn towards what
          its neighbours or all cells suggest, by more than its interval where the noise can explain the difference.
          Sums over long ranges: add up `unbiased_estimate`, or take `boost`; errors of estimates do not cancel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.confidential.doors import PrivateCounts
from dphist_pipeline.domain import Axis, CategoricalAxis
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.mechanisms import Mechanism

if TYPE_CHECKING:
    from dphist_pipeline.solvers.expert_rules import Expert

Level = tuple[str, str, NDArray[np.float64]]
RADII_ON_A_LINE, RADII_ON_A_GRID, ALONG_AN_AXIS = (1, 4, 16, 64, 256), (1, 2, 4, 8), (1, 4)


@dataclass(frozen=True)
class Adaptive(Mechanism):
    """Settings: objective, the errors to keep small: `absolute`, squared errors in records; or `relative`, errors by
    the count itself, counts below 1 taken as 1. None has to be set.
    """

    objective: Literal["absolute", "relative"] = "absolute"

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy cells, the experts on them, and their mixture."""
        from dphist_pipeline.mechanisms._experts import SIMPLE, mixed

        noisy = counts.noisy_cells(budget)
        experts = [*SIMPLE, *_on_neighbours(noisy, counts.domain.axes)]
        return mixed(counts, noisy, experts, budget, self.objective)


def _on_neighbours(noisy: NoisyCells, axes: tuple[Axis, ...]) -> list[Expert]:
    """Experts that hear, for each cell, a level that its neighbours suggest; the simpler ones first."""
    from dphist_pipeline.solvers.expert_rules import Expert
    from dphist_pipeline.solvers.neighbour_levels import groups_by_rank

    local, smooth = [], []
    for name, about, level in _levels(noisy, axes):
        groups = groups_by_rank(level)
        local.append(Expert(f"local {name}", f"counts are spread alike where {about} is alike", "sparse", None, groups))
        words = f"counts differ from {about} by a spread of steps"
        smooth.append(Expert(f"smooth {name}", words, "sparse", np.rint(level), groups))
    return local + smooth


def _levels(noisy: NoisyCells, axes: tuple[Axis, ...]) -> Iterator[Level]:
    """What neighbours suggest for each cell: a name, words, and levels of shape (cells,)."""
    from dphist_pipeline.solvers.neighbour_levels import window_means

    line, sides = noisy.values.ravel(), noisy.values.shape
    most = 2.0**62 / line.size
    whole = np.clip(noisy.values, -most, most).astype(np.int64)
    ordered = [not isinstance(axis, CategoricalAxis) for axis in axes]
    longest = max((side for side, along in zip(sides, ordered, strict=True) if along), default=0)
    for radius in RADII_ON_A_LINE if len(sides) == 1 else RADII_ON_A_GRID:
        if radius == 1 or 2 * radius < longest:
            radii = [radius if along else 0 for along in ordered]
            if any(radii):
                yield f"±{radius}", f"the mean up to {radius} cells away", window_means(whole, radii).ravel()
    if len(sides) == 1 and ordered[0]:
        yield from _segments(noisy)
        return
    for number, (axis, along) in enumerate(zip(axes, ordered, strict=True)):
        reaches = [radius for radius in ALONG_AN_AXIS if along and radius < axis.size]
        for radius in [*reaches, *([axis.size] if axis.size > 1 and len(sides) > 1 else [])]:
            radii = [radius if number == other else 0 for other in range(len(sides))]
            words = "whole lines" if radius == axis.size else f"±{radius}"
            about = f"the mean of the other cells along {axis.name}" + (
                "" if radius == axis.size else f" up to {radius} away"
            )
            yield f"{words} along {axis.name}", about, window_means(whole, radii).ravel()


def _segments(noisy: NoisyCells) -> Iterator[Level]:
    """Means of segments that were found without the cell, at the price of `noise_first` and at a higher one."""
    from dphist_pipeline.mechanisms._experts import halves
    from dphist_pipeline.solvers.neighbour_levels import segment_levels

    line = noisy.values.ravel()
    folds = (halves(noisy) & np.uint64(1)).astype(np.bool_)
    for name, price in (("segments", 2.0), ("long segments", 2.0 * max(1.0, math.log(line.size)))):
        levels = segment_levels(line, folds, price * noisy.variance)
        yield name, f"the mean of its {name.removesuffix('s')}", levels
