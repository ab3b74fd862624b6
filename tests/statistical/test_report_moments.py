"""Means and sums of bin middles from reports: their told errors are the errors that happen, and their intervals hold.

The answers are those of `report_moments`, which `test_reported_means` finds equal to the macros'. A test of the size
of an error must refuse one that is 30 % too small or too large.
"""

from __future__ import annotations

import numpy as np
import pytest
from report_moments import ReportMoments
from reported import ENCODINGS, Encoding
from scipy import stats  # type: ignore[import-untyped]
from statistical.test_report_intervals import ATOMS, COUNTS, drawn, refused

from examples import mostly_soaked

MIDDLES = np.array([2.0, 7, 15, 25, 35, 47.5, 62.5, 80])
UNLIKELY = 1e-9
OFF = 2.0


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.3])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_errors_of_means_and_sums_of_middles_are_those_that_happen(encoding: Encoding, share: float) -> None:
    runs = 1500
    found = [ReportMoments(one, MIDDLES) for one in drawn(encoding, 2.0, 10 * COUNTS, 300, ATOMS, share, runs)]
    truth_of_sum, truth_of_mean = float(MIDDLES @ COUNTS) * 10, float(MIDDLES @ COUNTS / COUNTS.sum())
    for errors in (
        [(one.sum - truth_of_sum) / one.sum_error for one in found],
        [(one.mean - truth_of_mean) / one.mean_error for one in found],
    ):
        squares = float(np.square(errors).sum())
        low, high = stats.chi2.ppf([UNLIKELY / 2, 1 - UNLIKELY / 2], runs)
        # A mean of few rows is skewed: its square is not quite that of a normal number.
        assert 0.95 * low < squares < 1.05 * high
        assert not 0.95 * low < squares * 0.7**2 < 1.05 * high and not 0.95 * low < squares * 1.3**2 < 1.05 * high


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "scale", "share"),
    mostly_soaked([(1.0, 1, 0.4), (2.0, 10, 1.0), (6.0, 1, 0.9), (12.0, 0.025, 0.4)], [1, 3]),
)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_intervals_of_means_and_sums_of_middles_hold(
    encoding: Encoding, epsilon: float, scale: float, share: float
) -> None:
    counts, runs = (COUNTS * scale).astype(np.int64), 1200
    truth_of_sum, truth_of_mean = float(MIDDLES @ counts), float(MIDDLES @ counts / counts.sum())
    held = {"sum": 0, "mean": 0, "narrow sum": 0, "narrow mean": 0, "off": 0}
    for one in drawn(encoding, epsilon, counts, 30, ATOMS, share, runs):
        moments = ReportMoments(one, MIDDLES)
        for name, ends, truth in (
            ("sum", moments.sum_interval(), truth_of_sum),
            ("mean", moments.mean_interval(), truth_of_mean),
        ):
            middle, half = (ends[0] + ends[1]) / 2, (ends[1] - ends[0]) / 2
            held[name] += abs(truth - middle) <= half
            held[f"narrow {name}"] += abs(truth - middle) <= 0.7 * half
        held["off"] += moments.sum_interval(OFF)[1] >= truth_of_sum + OFF * counts.sum()  # all rows above the middles
    assert not refused(held["off"], runs, 0.975), held
    assert not refused(held["sum"], runs, 0.95) and not refused(held["mean"], runs, 0.95), held
    if scale == 10:  # of fewer reports, the correction makes intervals wider
        assert refused(held["narrow sum"], runs, 0.95) and refused(held["narrow mean"], runs, 0.95), held
