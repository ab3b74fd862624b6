"""Adaptive: add noise to every cell, let simple and complex models of the counts compete, and mix them.

Paper:    ours. Each model (an expert) is an empirical Bayes rule; see `bayes`. All are averaged by the likelihood of
          unseen cells, less a cost: Hoeting, Madigan, Raftery, Volinsky. Bayesian model averaging: a tutorial. 1999.
          Plain ones (one level, empty cells, the level of the surroundings) cost least. A mixture cell by cell takes
          its place if it is surely likelier: Smyth, Wolpert. Linearly combining density estimators via stacking. 1999.
          Weights by unbiased risk: Stein. Estimation of the mean of a multivariate normal distribution. 1981; here
          for discrete Laplace noise.
Privacy:  epsilon, all of it on `noisy_cells`. All that follows reads only noisy counts, so it is free; its random
          halves come from a stream that the noisy counts determine.
Domain:   any number of axes. Neighbours count along ordered axes; along axes of categories, all cells of a line do.
Cost:     about a second for 10^4 cells, some ten seconds for 10^6 with 1 GB of memory.
Bars:     the exact law of the noise, on `unbiased_estimate`. The estimates have no interval: each is drawn towards what
          its neighbours or all cells suggest, by more than its interval where the noise can explain the difference.
          Sums over long ranges: add up `unbiased_estimate`, or take `boost`; errors of estimates do not cancel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Axis
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.noisy import NoisyCells
from dphist_pipeline.mechanisms import Mechanism, Setting

if TYPE_CHECKING:
    from dphist_pipeline.solvers.cells.expert_rules import Expert

Level = tuple[str, str, NDArray[np.float64]]
FEW = 16  # cells that tell a level
MANY = 64  # neighbours, of which a half says enough
RADII_ON_A_LINE, RADII_ON_A_GRID, ALONG_AN_AXIS = (1, 4, 16, 64, 256), (1, 2, 4, 8), (1, 4)
FLAT_ON_A_LINE, FLAT_ON_A_GRID = (8, 16, 32, 64, 128, 256), (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Adaptive(Mechanism):
    """Settings:"""

    objective: Annotated[
        Literal["absolute", "relative"],
        Setting(
            "the errors to keep small: `absolute`, squared errors in records; or `relative`, errors by the count "
            "itself, counts below 1 taken as 1. It need not be set."
        ),
    ] = "absolute"
    surroundings: Annotated[
        Literal["windows", "boxes"],
        Setting(
            "what neighbours tell: `windows`, means of the cells around; or `boxes`, besides, on grids of two or more "
            "ordered axes, how boxes of cells are halved, as for `multiscale`. `boxes` has less error where most cells "
            "are empty, and takes longer. Lines of one axis have the same bytes by both.",
            later=True,
        ),
    ] = "windows"

    def release(self, counts: PrivateCounts, budget: Budget) -> Estimate:
        """Noisy cells, the experts on them, and their mixture."""
        from dphist_pipeline.mechanisms._experts import FITTED, PLAIN, expert_mixture, halves

        noisy = counts.noisy_cells(budget)
        words = halves(noisy)
        folds = (words & np.uint64(1)).astype(np.bool_)
        axes = counts.domain.axes
        experts = [*PLAIN, *_flat(noisy, folds, axes), *FITTED, *_on_neighbours(noisy, folds, axes)]
        ordered = [axis for axis in axes if axis.size > 1 and axis.is_ordered]
        if self.surroundings == "boxes" and len(ordered) > 1:
            from dphist_pipeline.solvers.cells.expert_rules import Expert

            # No law is fitted, so a cell's own noise has no part in what the others say of it: no halves are needed.
            experts.append(Expert.in_boxes(_whole(noisy).astype(np.float64), float(noisy.scale)))
        return expert_mixture(counts, noisy, words, experts, budget, self.objective)


def _flat(noisy: NoisyCells, folds: NDArray[np.bool_], axes: tuple[Axis, ...]) -> list[Expert]:
    """Experts that give each cell the level of its surroundings.

    Nothing else is fitted, so a cell's own half may have a say.
    """
    from dphist_pipeline.solvers.cells.expert_rules import Expert
    from dphist_pipeline.solvers.cells.neighbour_levels import likely_levels

    whole, experts = _whole(noisy), []
    for name, place, radii in _windows(axes, FLAT_ON_A_LINE, FLAT_ON_A_GRID):
        if (cells := _most_cells(radii, whole.shape)) >= FEW:
            level = np.maximum(0.0, np.rint(likely_levels(whole, radii, folds, float(noisy.scale)).ravel()))
            about, pieces = f"counts equal to the level {place}", whole.size / cells
            experts.append(Expert(f"flat {name}", about, "level", level, pieces=pieces))
    return experts


def _on_neighbours(noisy: NoisyCells, folds: NDArray[np.bool_], axes: tuple[Axis, ...]) -> list[Expert]:
    """Experts that hear, for each cell, a level that its neighbours suggest."""
    from dphist_pipeline.solvers.cells.expert_rules import Expert
    from dphist_pipeline.solvers.cells.neighbour_levels import groups_by_rank

    local, smooth = [], []
    for name, about, level in _levels(noisy, folds, axes):
        groups = groups_by_rank(level)
        local.append(Expert(f"local {name}", f"counts are spread alike where {about} is alike", "sparse", None, groups))
        words = f"counts differ from {about} by a spread of steps"
        smooth.append(Expert(f"smooth {name}", words, "sparse", np.rint(level), groups))
    return local + smooth


def _levels(noisy: NoisyCells, folds: NDArray[np.bool_], axes: tuple[Axis, ...]) -> Iterator[Level]:
    """What neighbours suggest for each cell: a name, words, and levels of shape (cells,)."""
    for name, place, radii in _windows(axes, RADII_ON_A_LINE, RADII_ON_A_GRID):
        yield name, f"the mean {place}", _window_means(noisy, radii, folds)
    if len(axes) == 1 and axes[0].is_ordered:
        yield from _segments(noisy, folds)


def _windows(
    axes: tuple[Axis, ...], on_a_line: tuple[int, ...], on_a_grid: tuple[int, ...]
) -> Iterator[tuple[str, str, list[int]]]:
    """Boxes around a cell: a name, words, and how far they reach along each axis.

    Args:
        on_a_line: radii in cells if there is one axis.
        on_a_grid: radii of boxes in all directions if there are more.
    """
    ordered = [axis.is_ordered for axis in axes]
    longest = max((axis.size for axis, along in zip(axes, ordered, strict=True) if along), default=0)
    for radius in on_a_line if len(axes) == 1 else on_a_grid:
        if longest > 1 and (radius == 1 or 2 * radius < longest):
            yield f"±{radius}", f"up to {radius} cells away", [radius if along else 0 for along in ordered]
    if len(axes) == 1:
        return
    for number, (axis, along) in enumerate(zip(axes, ordered, strict=True)):
        before, after = [0] * number, [0] * (len(axes) - number - 1)
        for radius in [radius for radius in ALONG_AN_AXIS if along and radius < axis.size]:
            place = f"up to {radius} cells away along {axis.name}"
            yield f"±{radius} along {axis.name}", place, [*before, radius, *after]
        if axis.size > 1:
            yield f"line along {axis.name}", f"of the line along {axis.name}", [*before, axis.size, *after]


def _most_cells(radii: list[int], shape: tuple[int, ...]) -> int:
    """The number of cells in a box that no border cuts."""
    return math.prod(min(2 * radius + 1, side) for radius, side in zip(radii, shape, strict=True))


def _window_means(noisy: NoisyCells, radii: list[int], folds: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Means of the neighbours; by the other half alone if there are many, or if some cells share a box."""
    from dphist_pipeline.solvers.cells.neighbour_levels import window_means

    whole, shape = _whole(noisy), noisy.values.shape
    shared = any(0 < side <= 2 * radius for radius, side in zip(radii, shape, strict=True))
    return window_means(whole, radii, folds if shared or _most_cells(radii, shape) > MANY else None).ravel()


def _whole(noisy: NoisyCells) -> NDArray[np.int64]:
    """The noisy counts, cut off where sums of all of them would overflow."""
    most = 2.0**62 / noisy.values.size
    whole: NDArray[np.int64] = np.clip(noisy.values, -most, most).astype(np.int64)
    return whole


def _segments(noisy: NoisyCells, folds: NDArray[np.bool_]) -> Iterator[Level]:
    """Means of segments that were found without the cell, at the price of `noise_first` and at a higher one."""
    from dphist_pipeline.solvers.cells.neighbour_levels import segment_levels

    line = noisy.values.ravel()
    for name, price in (("segments", 2.0), ("long segments", 2.0 * max(1.0, math.log(line.size)))):
        levels = segment_levels(line, folds, price * noisy.variance)
        yield name, f"the mean of its {name.removesuffix('s')}", levels
