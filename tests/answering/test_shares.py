"""Shares of a whole that the noise has brought to nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from by_hand import SCALE

from dphist_pipeline.answering.boxes import Cells
from dphist_pipeline.answering.notes import NO_WHOLE
from dphist_pipeline.answering.ratios import share_of_box
from dphist_pipeline.domain import CategoricalAxis, Domain
from dphist_pipeline.estimates.noisy import NoisyCells

DOMAIN = Domain((CategoricalAxis("ward", "ward", ("a", "b"), False),))


@pytest.mark.parametrize("noisy", [[0, 0], [3, -3], [-2, -1]])
def test_there_is_no_share_of_a_whole_that_is_estimated_at_nothing(noisy: list[int]):
    values = np.array(noisy)
    found = share_of_box(Cells(DOMAIN, values.astype(float), NoisyCells(values, SCALE)), {"ward": "a"}, {})
    assert math.isnan(found.estimate) and math.isnan(found.noise_error) and found.note == NO_WHOLE
    assert 0 <= found.ci_lower <= found.ci_upper <= 1
