"""Noisy tables pulled towards the tables that their margins alone would give, as far as noise hides the difference.

What a table tells beyond a model of its margins is its interaction, seen through noise of a known variance v: the
deviations along all of its axes of the difference from the model. What else differs are the margins; the model has
better ones, and their noise is not in v. In each cell a factor of an interaction is kept, f = c·m^(2p)/(c·m^(2p) + v),
where m is the cell of the model, as if interactions varied by c·m^(2p). The power p and c are those with the least
estimated squared error. The error of keeping fixed factors f of interactions d is the sum of (1 - f)²·(d² - v) + f²·v
without bias, whatever the law of the noise. Few constants are chosen for many cells, so that the choice hardly biases
it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.whole_counts.marginal_fit import on_simplex

Reals = NDArray[np.float64]

POWERS = (0.0, 0.5, 1.0)
# Interactions that vary from e^-6 to e^6 times as much as noise.
_RATIOS = np.exp(np.arange(-6.0, 6.5, 0.5))
# Standard deviations by which keeping an interaction of three or more axes must promise more than keeping none: in so
# many tables some always look real. For pairs this costs more than it gains (public records of 1,000 rows at ε = 1).
_SURELY = 2.0
_LEAST_MODEL = 0.25  # rows: a cell of the model below counts as this, so that no cell is beyond reach
_MOST_PASSES, _NEAR_ENOUGH, _LEAST = 20, 1e-3, 1e-9


def lean_on_margins(
    values: Reals, margins: Sequence[tuple[tuple[int, ...], Reals]], total: float, variance: float
) -> Reals:
    """A noisy table pulled towards the table that its margins alone give.

    Without margins it is pulled towards an even one, and is not negative afterwards.

    Args:
        values: any shape.
        margins: the axes that each has, rising, and its sums, which are not negative and sum to the total.
        total: of the model; positive.
        variance: of the noise in a cell of the interaction, in rows squared.
    """
    if margins:
        return shrink_towards(values, without_interaction(values.shape, margins), variance)
    return on_simplex(shrink_towards(values, np.full(values.shape, total / values.size), variance), total)


def shrink_towards(values: Reals, model: Reals, variance: float) -> Reals:
    """A noisy table pulled towards a model of it.

    Args:
        values: any shape.
        model: not negative, shape of `values`.
        variance: of the noise in a cell of the interaction, in rows squared.

    Returns:
        float64, shape of `values`; O(cells) for each of 75 tried factors.
    """
    away = _deviations(values - model)
    squares = away * away
    clear = squares - variance
    best, best_factors = float(clear.sum()), np.zeros_like(away)
    # The squared noise of a cell varies by about twice the square of its variance.
    price = _SURELY * variance * math.sqrt(2) if away.ndim > 2 else 0.0
    kept_whole = variance * away.size + price * math.sqrt(away.size)
    if kept_whole < best:
        best, best_factors = kept_whole, np.ones_like(away)
    for power in POWERS:
        weights = np.maximum(model, _LEAST_MODEL) ** (2 * power)
        weights /= weights.mean()
        for ratio in _RATIOS:
            factors = ratio * weights / (ratio * weights + 1)
            risk = float((((1 - factors) ** 2) * clear).sum() + variance * (factors * factors).sum())
            if price:
                risk += price * math.sqrt(float(((1 - (1 - factors) ** 2) ** 2).sum()))
            if risk < best:
                best, best_factors = risk, factors
    return model + best_factors * away


def _deviations(away: Reals) -> Reals:
    """The part of a table whose sums along every axis are 0."""
    for axis in range(away.ndim):
        away = away - away.mean(axis=axis, keepdims=True)
    return away


def without_interaction(shape: Sequence[int], margins: Sequence[tuple[tuple[int, ...], Reals]]) -> Reals:
    """The table that has given margins and no interaction beyond them, by proportional fitting.

    Args:
        margins: the axes that each has, rising, and its sums, which are not negative; all have one total.

    Returns:
        Not negative; its margins are met as nearly as they agree. O(cells · margins) for each of at most 20 passes.
    """
    model = np.ones(shape)
    spread = [
        (tuple(axis for axis in range(len(shape)) if axis not in axes), sums.reshape(_along(shape, axes)))
        for axes, sums in margins
    ]
    for _ in range(_MOST_PASSES):
        farthest = 0.0
        for over, wanted in spread:
            factors = wanted / np.maximum(model.sum(axis=over, keepdims=True), _LEAST)
            model = model * factors
            farthest = max(farthest, float(np.abs(factors - 1.0)[wanted > 0].max(initial=0.0)))
        if farthest <= _NEAR_ENOUGH:
            break
    return model


def _along(shape: Sequence[int], axes: tuple[int, ...]) -> list[int]:
    return [size if axis in axes else 1 for axis, size in enumerate(shape)]
