"""Shares and changes: the levels of their intervals, and wholes that the noise has brought to nothing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from by_hand import SCALE

from dphist_pipeline.answering.boxes import Cells
from dphist_pipeline.answering.notes import NO_WHOLE
from dphist_pipeline.answering.ratios import change, share_of_box
from dphist_pipeline.domain import CategoricalAxis, Domain
from dphist_pipeline.estimates.noisy import NoisyCells

DOMAIN = Domain((CategoricalAxis("ward", "ward", ("a", "b"), False),))


def published(noisy: list[int], scale: Fraction) -> Cells:
    values = np.array(noisy, dtype=float)
    return Cells(DOMAIN, values, NoisyCells(values, scale))


@pytest.mark.parametrize("scale", [Fraction(2), Fraction(20)], ids=str)
def test_two_intervals_that_hold_together_miss_with_2_5_percent_each(scale: Fraction):
    q = math.exp(-1 / scale)
    reach = next(c for c in range(10**4) if 2 * q ** (c + 1) / (1 + q) <= 0.025)
    share = share_of_box(published([900, 2100], scale), {"ward": "a"}, {})
    assert share.ci_lower == pytest.approx((900 - reach) / (900 - reach + 2100 + reach))
    assert share.ci_upper == pytest.approx((900 + reach) / (900 + reach + 2100 - reach))
    # Draws of two laws: the intervals of both periods are added.
    other = next(c for c in range(10**4) if 2 * (q * q) ** (c + 1) / (1 + q * q) <= 0.025)
    moved = change(published([900, 2100], scale), published([950, 2100], scale / 2), {"ward": "a"})
    assert (moved.ci_lower, moved.ci_upper) == (50 - reach - other, 50 + reach + other)


@pytest.mark.parametrize("noisy", [[0, 0], [3, -3], [-2, -1]])
def test_there_is_no_share_of_a_whole_that_is_estimated_at_nothing(noisy: list[int]):
    values = np.array(noisy)
    found = share_of_box(Cells(DOMAIN, values.astype(float), NoisyCells(values, SCALE)), {"ward": "a"}, {})
    assert math.isnan(found.estimate) and math.isnan(found.noise_error) and found.note == NO_WHOLE
    assert 0 <= found.ci_lower <= found.ci_upper <= 1
