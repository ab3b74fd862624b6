"""NoiseFirst: which price `penalty: auto` takes, on cells whose best price is known."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.laws import noise_law

FLAT = np.full(2000, 50)
UNLIKE = np.random.default_rng(7).geometric(0.001, 2000)


class Kept:
    """A journal that gives the first answer again, so that two settings see the same noisy cells."""

    def __init__(self):
        self.answers = {}

    def answer(self, step, question, draw):
        return self.answers.setdefault(step, draw()).copy()


def released(counts, penalty, journal):
    exact = np.asarray(counts, dtype=np.int64)
    private_counts = PrivateCounts(Domain.from_shape(exact.shape), 1, lambda: exact, journal)
    return mechanisms.build("noise_first", {"penalty": penalty}).release(private_counts, Budget(Fraction(1, 10)))


@pytest.mark.parametrize(("counts", "best"), [(FLAT, "bic"), (UNLIKE, "paper")], ids=["flat", "unlike"])
def test_auto_takes_the_price_that_errs_less(counts, best):
    journal = Kept()
    runs = {penalty: released(counts, penalty, journal).values for penalty in ("paper", "bic", "auto")}
    error = {penalty: ((values - counts) ** 2).mean() for penalty, values in runs.items()}
    assert min(error["paper"], error["bic"]) == error[best]
    assert np.array_equal(runs["auto"], runs[best])
    assert not np.array_equal(runs["paper"], runs["bic"])


def test_the_papers_price_of_a_bucket_is_two_variances_of_the_noise():
    # Two cells d apart deviate from their mean by d²/2 together: one bucket is cheaper for d below twice the noise.
    class Apart:
        def __init__(self, variances):
            self.variances = variances

        def answer(self, step, question, draw):
            scale = Fraction(question["scale"])
            return np.array([0, round((2 * self.variances * noise_law(scale).variance) ** 0.5)])

    assert released([0, 0], "paper", Apart(1.9)).groups.tolist() == [0, 0]
    assert released([0, 0], "paper", Apart(2.1)).groups.tolist() == [0, 1]


def test_the_papers_price_merges_less_than_the_bic_price():
    journal = Kept()
    assert released(FLAT, "paper", journal).groups.max() > 10 * released(FLAT, "bic", journal).groups.max()
