"""Firm thresholds against a search through all thresholds: sums hold, and large parts keep what they have."""

from __future__ import annotations

import numpy as np
import pytest

from dphist_pipeline.solvers.whole_counts.firm_sums import FIRM, MOST_DEVIATIONS, firm_parts
from dphist_pipeline.solvers.whole_counts.marginal_fit import GroupSums, fit_to_sums

DRAWS = np.random.Generator(np.random.PCG64(20261126))


def by_search(values: np.ndarray, total: float, deviation: float) -> np.ndarray:
    """The least of 30,000 thresholds that does not leave too much."""
    for some in np.split(np.linspace(0, MOST_DEVIATIONS * deviation, 30_000)[:, None], 300):
        line = (values - some) * FIRM / (FIRM - 1)
        found = np.where(values <= some, 0, np.where(values >= FIRM * some, values, line))
        if (enough := found.sum(axis=1) <= total).any():
            break
    return found[enough.argmax()] if enough.any() else found[-1]


def test_the_threshold_is_the_least_that_brings_the_sum_down() -> None:
    for _ in range(20):
        values = np.concatenate([DRAWS.normal(0, 5, 15), DRAWS.uniform(0, 200, 3)])
        total = max(values.sum(), 0.0)
        found, wanted = (
            firm_parts(values, np.zeros(18, dtype=np.int64), np.array([total]), 5.0),
            by_search(values, total, 5),
        )
        if abs(wanted.sum() - total) < 1:  # else the largest threshold leaves too much, and all parts take the rest
            assert found == pytest.approx(wanted, abs=0.3)


def test_each_whole_has_its_sum_and_no_part_is_negative() -> None:
    labels = DRAWS.integers(0, 30, 500)
    values, targets = DRAWS.normal(3, 20, 500), DRAWS.uniform(0, 400, 30)
    found = firm_parts(values, labels, targets, 20.0)
    held = np.isin(np.arange(30), labels)
    assert found.min() >= 0 and np.abs(np.bincount(labels, found, 30) - targets)[held].max() < 0.3


def test_large_parts_pay_less_for_the_noise_of_empty_ones_than_with_a_shift() -> None:
    """Half of 16 parts are large. They pay only where the noise of the empty ones sums to less than 0."""
    values = DRAWS.normal(0, 1, (2_000, 16))
    values[:, :8] += 100
    labels, targets = np.repeat(np.arange(2_000), 16), values.sum(axis=1)
    firm, shift = (
        (found.reshape(values.shape) - values)[:, :8].mean()
        for found in (
            firm_parts(values.ravel(), labels, targets, 1.0),
            fit_to_sums(values.ravel(), [GroupSums(labels, targets)]),
        )
    )
    # What empty parts lack is 0.4·√8 records in the mean, for eight parts: 0.14 each, varying by 0.005.
    assert -0.17 < firm < -0.11 and shift < -0.22


def test_parts_that_need_nothing_stay_as_they_are() -> None:
    values = np.array([3.0, 0.5, 8.0])
    assert np.array_equal(firm_parts(values, np.zeros(3, dtype=np.int64), np.array([11.5]), 1.0), values)
