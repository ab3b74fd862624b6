"""Epsilon adds up exactly, is shown rounded up, and agrees with an accountant that is not ours."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from audited_ways import WAYS, Way, serves
from grey_box import Asked, Audited, Log
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.publishing.parquet_tables import rounded_up
from examples import mostly_audited

CELLS, SENSITIVITY = 6, 3
GRID = 1e-4  # the accountant rounds every loss up to a multiple of it
EPSILONS = [Fraction(1), Fraction(7, 3)]


@pytest.fixture(scope="module")
def accountant() -> Any:
    """Google's privacy loss distributions; not among the extras, for the reason given."""
    reason = "dp-accounting 0.6 holds attrs below 24, so it is no extra; pip install --no-deps dp-accounting dm-tree …"
    found = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution", reason=reason)
    return found


def queries_asked(way: Way, epsilon: Fraction) -> list[Asked]:
    mechanism = way.built()
    assert mechanism is not None
    assert serves(mechanism, (CELLS,), SENSITIVITY, epsilon)
    run = Audited(mechanism, (CELLS,), SENSITIVITY, epsilon).run(np.arange(CELLS) ** 2, Log())
    return run.log.asked


def distribution(accountant: Any, asked: Asked) -> Any:
    """The privacy loss of one measurement, from the noise that it drew and how far its numbers may move."""
    (drawn,) = asked.draws
    kind, scale, _ = drawn
    if kind == "geometric":
        from dp_accounting.pld.common import DifferentialPrivacyParameters

        loss = float(2 * asked.constant * SENSITIVITY / scale)
        return accountant.from_privacy_parameters(DifferentialPrivacyParameters(loss, 0.0))
    if asked.measurement == "noisy_weighted_sums":
        return accountant.from_discrete_laplace_mechanism(float(1 / scale), SENSITIVITY * asked.weight)
    levels = 1 + (CELLS - 1).bit_length() if asked.measurement == "noisy_contrasts" else 1
    return accountant.from_discrete_laplace_mechanism(float(1 / scale), SENSITIVITY * levels)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", mostly_audited(EPSILONS, [1]), ids=str)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_another_accountant_finds_the_same_epsilon_for_what_measurements_drew(
    accountant: Any, way: Way, epsilon: Fraction
) -> None:
    asked = queries_asked(way, epsilon)
    whole = distribution(accountant, asked[0])
    for measurement in asked[1:]:
        whole = whole.compose(distribution(accountant, measurement))
    taken = sum((measurement.epsilon for measurement in asked), Fraction(0))
    assert float(whole.get_epsilon_for_delta(0.0)) == pytest.approx(float(taken), abs=2 * GRID * len(asked))
    assert taken <= epsilon


@pytest.mark.slow
def test_another_accountant_adds_budgets_as_we_do(accountant: Any) -> None:
    from dp_accounting.pld.common import DifferentialPrivacyParameters

    shares = Budget(Fraction(1)).split(a="1/3", b="1/6", c="1/2")
    parts = [
        accountant.from_privacy_parameters(DifferentialPrivacyParameters(float(part.epsilon), 0.0)) for part in shares
    ]
    found = parts[0].compose(parts[1]).compose(parts[2]).get_epsilon_for_delta(0.0)
    assert found == pytest.approx(1, abs=3 * GRID)


EXACT = st.fractions(Fraction(1, 10**6), 50, max_denominator=10**30)


@pytest.mark.slow
@given(EXACT)
def test_an_epsilon_is_shown_as_the_least_double_that_is_not_below_it(epsilon: Fraction) -> None:
    shown = rounded_up(epsilon)
    assert Fraction(shown) >= epsilon > Fraction(math.nextafter(shown, -math.inf))


@given(EXACT, st.lists(st.integers(1, 1000), min_size=1, max_size=30))
def test_any_shares_sum_to_the_whole_and_shown_as_doubles_to_no_less(epsilon: Fraction, weights: list[int]) -> None:
    budget = Budget(max(epsilon, Fraction(sum(weights), 10**6)))  # so large that no share is refused
    names = {f"share_{number}": Fraction(weight) / sum(weights) for number, weight in enumerate(weights)}
    for share in budget.split(**names):
        share.spend()
    charged = [charge for _, charge in budget.charges]
    assert sum(charged, Fraction(0)) == budget.epsilon
    assert sum(map(Fraction, map(rounded_up, charged))) >= budget.epsilon


def test_the_nearest_double_would_be_too_small_for_a_third() -> None:
    assert Fraction(float(Fraction(1, 3))) < Fraction(1, 3) <= Fraction(rounded_up(Fraction(1, 3)))
