"""What a card says of the reliability of its cells is what the answer about each of them says."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import by_hand
import numpy as np
import pytest
from by_hand import AGE, WARD

from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, SharedNoise, Unbiased
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.publishing.picture_sums import Grid, marginal


def of_cells(unbiased: Unbiased) -> Counter[str]:
    """The words by the law of each cell, as pictures without sums have them."""
    domain = by_hand.estimate([AGE, WARD]).domain
    sums = marginal(Grid.of_all(domain, unbiased.values, unbiased), [0, 1], [60, 60])
    assert sums.low is not None and sums.errors is not None
    rows = zip(unbiased.values.flat, sums.errors.flat, sums.low.flat, strict=True)
    return Counter(RELIABILITY.word(*map(float, row)) for row in rows)


@pytest.mark.parametrize("linear", [False, True])
def test_cells_are_counted_by_the_word_of_each(linear: bool) -> None:
    values = np.linspace(-20, 180, 15).reshape(5, 3)
    noisy = NoisyCells(values, Fraction(6))
    unbiased = NestedCells(values, Fraction(6), (SharedNoise(noisy.variance, (1, 1)),)) if linear else noisy
    found = RELIABILITY.cells(unbiased)
    assert Counter(found) == of_cells(unbiased) and sum(found.values()) == 15 and 0 not in found.values()
    told = f"Of 15 cells, {found['good']} are good, {found['fair']} are fair and {found['poor']} are poor."
    assert RELIABILITY.sentence([unbiased]) == told


def test_cells_that_are_all_alike_or_unknown_are_told_as_that() -> None:
    noisy = NoisyCells(np.full(12, 1e4), Fraction(6))
    assert RELIABILITY.sentence([noisy, noisy]) == "All 24 cells are good."
    assert RELIABILITY.sentence([NoisyCells(np.zeros(1), Fraction(6))]) == "The cell is poor."
    assert RELIABILITY.sentence([None]) == ""
