"""What the other noisy cells say about a cell: means of its neighbours and of its segment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.solvers.cells._shared_level import sign_unit
from dphist_pipeline.solvers.groups.segmentation import bucket_means, v_optimal

Reals = NDArray[np.float64]
Numbers = NDArray[np.int64]

TOP = 32  # cells in the group with the highest levels; groups double from there


def window_means(noisy: Numbers, radii: Sequence[int], folds: NDArray[np.bool_] | None = None) -> Reals:
    """The mean of the cells within a box around each cell, without the cell itself or without its half.

    Of cells with the same box, the one with the larger count has the smaller mean of the others: their order would tell
    their counts. So halves should be used where many cells have nearly the same box.

    Args:
        noisy: whole numbers, any shape, at most 2^62 over the number of cells in size: window sums are exact then.
        radii: how far the box reaches along each axis, in cells; it is cut off at the border.
        folds: the half that each cell is in, shape (cells,): only cells of the other half count. None: all others do.

    Returns:
        Shape of the cells; a cell whose box holds no other has the mean of all others, or 0 if there are none.
    """
    if folds is None:
        everyone, number = _box_sums(noisy, radii)
        sums, sizes = everyone - noisy, number - 1
        rest = (noisy.sum() - noisy) / max(1, noisy.size - 1)
    else:
        half = folds.reshape(noisy.shape)
        parts = [_box_sums(np.where(half == fold, noisy, 0), radii, half == fold) for fold in (False, True)]
        sums, sizes = (np.where(half, first, second) for first, second in zip(*parts, strict=True))
        totals, numbers = (
            [part[half == fold].sum() for fold in (False, True)] for part in (noisy, np.ones_like(noisy))
        )
        means = [total / max(1, number) for total, number in zip(totals, numbers, strict=True)]
        rest = np.where(half, means[0], means[1])
    around: Reals = np.where(sizes > 0, sums / np.maximum(sizes, 1), rest)
    return around


def likely_levels(noisy: Numbers, radii: Sequence[int], folds: NDArray[np.bool_], scale: float) -> Reals:
    """The level of each cell's surroundings, by one step from means towards what makes the cells there most likely.

    A mean of n cells with Laplace noise of scale b has the variance 2b²/n. Signs of their distances to a first guess
    bring it near b²/n, as `shared_level` tells. Guesses for a cell's surroundings are means of the other half of the
    cells: even a twenty-fifth of a cell's own noise in its level would make the level look better than all others. No
    cell has a say in its own level. O(cells · axes).

    Args:
        noisy, radii: see `window_means`.
        folds: the half that each cell is in, shape (cells,).
    """
    half, likeliest = folds.reshape(noisy.shape), np.empty(noisy.shape)
    for fold in (False, True):
        known = half != fold
        sums, sizes = _box_sums(np.where(known, noisy, 0), radii, known)
        rest = noisy[known].sum() / max(1, np.count_nonzero(known))
        guess = np.rint(np.where(sizes > 0, sums / np.maximum(sizes, 1), rest)).astype(np.int64)
        signs = np.sign(noisy - guess)
        levels = window_means(guess, radii) + sign_unit(scale) * window_means(signs, radii)
        likeliest[~known] = levels[~known]
    return likeliest


def _box_sums(
    noisy: Numbers, radii: Sequence[int], counted: NDArray[np.bool_] | None = None
) -> tuple[Numbers, Numbers]:
    """Sum and number of the counted cells in each cell's box."""
    sums, sizes = noisy, np.ones(noisy.shape, dtype=np.int64) if counted is None else counted.astype(np.int64)
    for axis, radius in enumerate(radii):
        side = noisy.shape[axis]
        low, high = np.maximum(np.arange(side) - radius, 0), np.minimum(np.arange(side) + radius + 1, side)
        sums, sizes = _between(sums, axis, low, high), _between(sizes, axis, low, high)
    return sums, sizes


def _between(values: Numbers, axis: int, low: Numbers, high: Numbers) -> Numbers:
    """Sums of the values from low to before high along an axis; running sums may wrap around, differences do not."""
    start = np.zeros_like(values.take([0], axis))
    running = np.concatenate([start, np.cumsum(values, axis=axis)], axis=axis)
    sums: Numbers = running.take(high, axis) - running.take(low, axis)
    return sums


def segment_levels(line: Reals, folds: NDArray[np.bool_], price: float) -> Reals:
    """For each cell the mean of its segment; its own half of the cells has a say neither in segments nor in means.

    Args:
        line: noisy cells in order, shape (n,).
        folds: the half that each cell is in, shape (n,).
        price: of a segment; see `v_optimal`.
    """
    levels, places = np.empty(line.size), np.arange(line.size)
    for fold in (False, True):
        own, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if others.size == 0:
            others = own
        after = np.searchsorted(others, places)
        left, right = np.maximum(after - 1, 0), np.minimum(after, others.size - 1)
        nearest = np.where(np.abs(others[left] - places) <= np.abs(others[right] - places), left, right)
        means = bucket_means(line[others], v_optimal(line[others], price))
        levels[own] = means[nearest[own]]
    return levels


def groups_by_rank(levels: Reals) -> Numbers:
    """Groups of cells with similar levels: the highest few, as many again, then ever twice as many.

    Args:
        levels: one number per cell, shape (n,).

    Returns:
        Group number per cell, shape (n,), from 0 for the highest levels. Equal levels are parted by place.
    """
    order = np.argsort(-levels, kind="stable")
    groups, start, size, group = np.zeros(levels.size, dtype=np.int64), 0, TOP, 0
    while start < levels.size:
        end = start + size if levels.size - start - size >= size // 2 else levels.size
        groups[order[start:end]] = group
        start, size, group = end, size * (2 if group else 1), group + 1
    return groups
