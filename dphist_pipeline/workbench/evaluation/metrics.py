"""Errors of estimates against exact counts, which are public or synthetic. All counts are in records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Wholes = NDArray[np.integer[Any]]
SMALLEST_DENOMINATOR = 1.0
SMOOTHING = 0.5


def sum_squared_error(exact: Wholes, estimate: Reals) -> float:
    """Sum of (estimate - exact)², in records squared.

    Args:
        exact, estimate: counts, any shape, the same for both.
    """
    return float(((estimate - exact) ** 2).sum())


def mean_squared_error(exact: Wholes, estimate: Reals) -> float:
    """Mean of (estimate - exact)², in records squared.

    Args:
        exact, estimate: counts, any shape, the same for both.
    """
    return float(((estimate - exact) ** 2).mean())


def mean_absolute_error(exact: Wholes, estimate: Reals) -> float:
    """Mean of |estimate - exact|, in records.

    Args:
        exact, estimate: counts, any shape, the same for both.
    """
    return float(np.abs(estimate - exact).mean())


def mean_relative_error(exact: Wholes, estimate: Reals, least: float = SMALLEST_DENOMINATOR) -> float:
    """Mean of |estimate - exact| / max(exact, least).

    Args:
        exact, estimate: counts, any shape, the same for both.
        least: smallest denominator in records; the δ of Chen et al. 2024.
    """
    return float((np.abs(estimate - exact) / np.maximum(exact, least)).mean())


def size_classes(largest: int) -> Iterator[tuple[int, int]]:
    """Classes of counts as (lowest, highest): 0, 1, 2 to 5, 6 to 10, 11 to 20, 21 to 50, …"""
    yield 0, 0
    lowest, tens = 1, 1
    while lowest <= largest:
        for step in (1, 2, 5):
            if step * tens >= lowest and step * tens != 2:
                yield lowest, step * tens
                lowest = step * tens + 1
            if lowest > largest:
                return
        tens *= 10


def relative_error_by_size(exact: Wholes, estimate: Reals) -> dict[str, float]:
    """Mean relative error by class of the exact count, for every class that has a cell; see `class_name`.

    Args:
        exact, estimate: counts, any shape, the same for both.
    """
    errors = (np.abs(estimate - exact) / np.maximum(exact, SMALLEST_DENOMINATOR)).ravel()
    classes = list(size_classes(int(exact.max())))
    numbers = np.searchsorted([lowest for lowest, _ in classes], exact.ravel(), side="right") - 1
    cells = np.bincount(numbers, minlength=len(classes))
    sums = np.bincount(numbers, weights=errors, minlength=len(classes))
    return {class_name(*classes[number]): float(sums[number] / cells[number]) for number in np.flatnonzero(cells)}


def relative_error_by_value(exact: Wholes, estimate: Reals, most: int | None = None) -> dict[int, float]:
    """Mean relative error of the cells with the same exact count, by rising count (Chen et al. 2024, equation 33).

    Args:
        exact, estimate: counts, any shape, the same for both.
        most: of how many counts, the smallest ones; None for all.
    """
    values, numbers, cells = np.unique(exact, return_inverse=True, return_counts=True)
    errors = np.abs(estimate - exact) / np.maximum(exact, SMALLEST_DENOMINATOR)
    means = np.bincount(numbers.ravel(), weights=errors.ravel()) / cells
    return dict(zip(values[:most].tolist(), means[:most].tolist(), strict=True))


def class_name(lowest: int, highest: int) -> str:
    """The name of a class of counts: 0, or 2-5."""
    return str(lowest) if lowest == highest else f"{lowest}-{highest}"


def kl_divergence(exact: Wholes, estimate: Reals, smoothing: float = SMOOTHING) -> float:
    """Kullback-Leibler divergence of the estimated distribution over cells from the exact one, in nats.

    The sum of p·ln(p/q) with p = (exact + smoothing) / its sum and q = (max(estimate, 0) + smoothing) / its sum. The
    papers' sum is undefined if an estimate is 0 or negative; half a record in every cell of both makes it finite, and 0
    only if the distributions are equal. It does not depend on the totals.

    Args:
        exact, estimate: counts, any shape, the same for both.
        smoothing: records that are added to every cell.
    """
    p, q = exact + smoothing, np.maximum(estimate, 0.0) + smoothing
    p, q = p / p.sum(), q / q.sum()
    # Rounding errors may make the sum slightly negative.
    return max(0.0, float((p * np.log(p / q)).sum()))


def weighted_variance(exact: Wholes, groups: Wholes, by: str = "records") -> float:
    """The weighted sum over groups of the variance of exact counts within a group.

    Args:
        exact, groups: counts and group numbers of the cells, any shape, the same for both.
        by: weight of a group: its `records`, as in Xiao et al. 2012 (section 6.2, figure 14: "the number of data points
            in the partition"), or its `cells`, for which the result is the squared error of the group means.
    """
    numbers, counts = groups.ravel(), exact.ravel().astype(np.float64)
    cells = np.bincount(numbers)
    records = np.bincount(numbers, weights=counts)
    squared = np.bincount(numbers, weights=(counts - (records / np.maximum(cells, 1))[numbers]) ** 2)
    if by == "cells":
        return float(squared.sum())
    return float((records * squared / np.maximum(cells, 1)).sum())
