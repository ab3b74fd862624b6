"""Bounds on the tails of weighted sums of draws, against the exact distribution."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.noisy import NestedCells, contrast_sizes
from dphist_pipeline.mechanisms.privelet import Privelet
from dphist_pipeline.solvers.trees.haar import inverse_haar

SCALES = [Fraction(1, 3), Fraction(1), Fraction(4)]
SUMS = [[(1, 1)], [(2, 1), (1, 1)], [(5, 1), (3, 2), (1, 4)], [(4, 1), (3, 1)], [(1, 1), (0, 7)]]


def exact(scale: Fraction, weights: list[tuple[int, int]]) -> np.ndarray:
    """P(|sum| > c) for c = 0, 1, …, by convolution."""
    reach = 60 * math.ceil(scale)
    q = math.exp(-1 / scale)
    whole = np.arange(-reach, reach + 1)
    draw = (1 - q) / (1 + q) * q ** np.abs(whole)
    found = np.ones(1)
    for weight, number in weights:
        spread = np.zeros(2 * reach * weight + 1)
        spread[:: max(weight, 1)] += draw if weight else draw.sum()
        for _ in range(number):
            found = np.convolve(found, spread)
    half = found.size // 2
    both = found[half:] + found[half::-1]
    both[0] = found[half]
    return 1 - np.cumsum(both)


@pytest.mark.parametrize("weights", SUMS, ids=str)
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_no_sum_goes_farther_than_its_bound_and_the_bound_is_near(
    scale: Fraction, weights: list[tuple[int, int]]
) -> None:
    tail = noise_law(scale).tail_of_sum(weights)
    assert tail is not None
    most = weights[0][0]
    outside = exact(scale, weights)[: 8 * most * math.ceil(scale) + 1]
    bound = tail.factor * np.exp(-tail.rate * np.arange(outside.size))
    assert (outside <= bound + 1e-12).all()
    # P(|sum| >= c) at a step of the heaviest draw: its own tail is exact there.
    assert outside[-2] / bound[-1] > 0.2


def test_the_tail_of_one_draw_is_exact_between_whole_numbers() -> None:
    tail = noise_law(Fraction(3)).tail_of_sum([(1.0, 1)])
    outside = exact(Fraction(3), [(1, 1)])
    assert tail is not None
    np.testing.assert_allclose(tail.factor * np.exp(-tail.rate * np.arange(1, 20)), outside[:19], rtol=1e-6)


def test_without_a_single_heaviest_draw_there_is_no_bound() -> None:
    assert noise_law(Fraction(2)).tail_of_sum([(1.0, 2), (0.5, 1)]) is None


@pytest.mark.parametrize("cells", [1, 2, 5, 8, 100])
def test_the_tail_of_privelet_is_that_of_its_inverse_transform(cells: int) -> None:
    counts = PrivateCounts(Domain.from_shape((cells,)), 1, lambda: np.zeros(cells, dtype=np.int64))
    unbiased = Privelet().release(counts, Budget(Fraction(1))).unbiased
    assert isinstance(unbiased, NestedCells)
    numbers = 1 + sum(contrast_sizes(cells))
    in_cell = np.abs([inverse_haar(row, (cells,))[0] for row in np.eye(numbers)])
    weights, numbers = np.unique(in_cell[in_cell > 0], return_counts=True)
    expected = noise_law(unbiased.scale).tail_of_sum(list(zip(weights.tolist(), numbers.tolist(), strict=True)))
    assert unbiased.tail == expected or (expected is not None and unbiased.tail is not None)
    if expected is not None and unbiased.tail is not None:
        assert (unbiased.tail.rate, unbiased.tail.factor) == pytest.approx((expected.rate, expected.factor))
