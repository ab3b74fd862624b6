"""Budgets: shares sum to the whole exactly, and each is used once."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.estimates.budget import LARGEST_EPSILON, SMALLEST_EPSILON, Budget, BudgetMisuse

USES: dict[str, Callable[[Budget], object]] = {
    "spend": Budget.spend,
    "split": lambda budget: budget.split(first="1/2", second="1/2"),
    "forfeit": Budget.forfeit,
}


def total(budget: Budget) -> Fraction:
    return sum((epsilon for _, epsilon in budget.charges), Fraction(0))


def test_three_thirds_are_exactly_the_whole() -> None:
    budget = Budget(Fraction(1, 10))
    for share in budget.split(a="1/3", b="1/3", c="1/3"):
        share.spend()
    assert budget.charges == (("a", Fraction(1, 30)), ("b", Fraction(1, 30)), ("c", Fraction(1, 30)))
    assert total(budget) == Fraction(1, 10)


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=3), min_size=1, max_size=3))
def test_whatever_is_split_again_and_again_sums_to_the_whole(weights: list[list[int]]) -> None:
    budget = last = Budget(Fraction(7, 3))
    for depth, parts in enumerate(weights):
        shares = {f"{depth}-{number}": Fraction(part, sum(parts)) for number, part in enumerate(parts)}
        *rest, last = last.split(**shares)
        for share in rest:
            share.spend()
    last.forfeit()
    assert total(budget) == Fraction(7, 3)


@pytest.mark.parametrize(
    "shares",
    [
        {},
        {"a": "1/2"},
        {"a": "1/2", "b": "1/3"},
        {"a": "2/3", "b": "2/3"},
        {"a": "0.3333333333333333", "b": "0.3333333333333333", "c": "0.3333333333333333"},
        {"a": "1/2", "b": "499999999999999999999/1000000000000000000000"},
    ],
)
def test_shares_that_do_not_sum_to_one_are_refused(shares: dict[str, str]) -> None:
    budget = Budget(Fraction(1))
    with pytest.raises(BudgetMisuse, match="not to 1"):
        budget.split(**shares)
    assert budget.charges == ()


@pytest.mark.parametrize("shares", [("1", "0"), ("3/2", "-1/2"), ("-1/2", "3/2"), ("1999999/2000000", "1/2000000")])
def test_a_share_of_nothing_or_less_is_refused(shares: tuple[str, str]) -> None:
    budget = Budget(Fraction(1))
    with pytest.raises(BudgetMisuse, match="outside"):
        budget.split(a=shares[0], b=shares[1])
    assert budget.charges == ()


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), SMALLEST_EPSILON * Fraction(9, 10), Fraction(51)])
def test_an_epsilon_out_of_range_is_refused(epsilon: Fraction) -> None:
    with pytest.raises(BudgetMisuse, match="outside"):
        Budget(epsilon)


@pytest.mark.parametrize("epsilon", [SMALLEST_EPSILON, LARGEST_EPSILON])
def test_the_ends_of_the_range_are_in_it(epsilon: Fraction) -> None:
    assert Budget(epsilon).spend() == epsilon


@pytest.mark.parametrize("epsilon", [1, 0.5, float("nan"), float("inf"), "1", None, np.float64(1)])
def test_only_a_fraction_is_an_epsilon(epsilon: object) -> None:
    with pytest.raises(TypeError):
        Budget(epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("second", USES)
@pytest.mark.parametrize("first", USES)
def test_a_budget_is_used_once(first: str, second: str) -> None:
    budget = Budget(Fraction(1))
    USES[first](budget)
    charges = budget.charges
    with pytest.raises(BudgetMisuse, match="already"):
        USES[second](budget)
    assert budget.charges == charges


def test_what_is_forfeited_is_charged_under_its_own_name() -> None:
    budget = Budget(Fraction(1))
    asked, given_up = budget.split(asked="1/4", given_up="3/4")
    given_up.forfeit()
    asked.spend()
    assert budget.charges == (("given_up (forfeited)", Fraction(3, 4)), ("asked", Fraction(1, 4)))


@pytest.mark.parametrize("parts", [("1/3", "2/3"), ("2/3", "1/3"), ("1/2", "1/2")])
def test_every_share_must_pay_for_noise_of_at_most_ten_million(parts: tuple[str, str]) -> None:
    shares = {"first": parts[0], "second": parts[1]}
    least = min(map(Fraction, parts))
    whole = Budget(Fraction(1, 1000)).split_for_noise(int(10**4 * least), **shares)
    assert max(share.scale(int(10**4 * least)) for share in whole) <= 10**7
    with pytest.raises(BudgetMisuse, match="10\\^7"):
        Budget(Fraction(1, 1000)).split_for_noise(int(10**4 * least) + 1, **shares)


def test_splitting_alone_charges_nothing() -> None:
    budget = Budget(Fraction(1))
    budget.split(a="1/2", b="1/2")
    assert budget.charges == ()


def test_two_shares_of_one_name_are_not_both_spent() -> None:
    left, right = Budget(Fraction(1)).split(left="1/2", right="1/2")
    left.split(cells=1)[0].spend()
    with pytest.raises(BudgetMisuse, match="this name"):
        right.split(cells=1)[0].spend()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_budget_cannot_be_duplicated(duplicate: Callable[[Budget], object]) -> None:
    with pytest.raises(BudgetMisuse, match="copied"):
        duplicate(Budget(Fraction(1)))


def test_numpy_integers_do_not_wrap_around_inside_an_epsilon() -> None:
    # A Fraction keeps them, and its products then overflow silently: a scale a thousand times too small.
    one: Any = np.int64(1)
    large: Any = Fraction(one, one * 10**6)
    assert isinstance(large.numerator, np.integer)
    budget = Budget(large * 3)
    assert type(budget.epsilon.numerator) is type(budget.epsilon.denominator) is int
    share, rest = Budget(Fraction(50)).split(
        share=Fraction(one, one * (10**6 + 3)), rest=Fraction(10**6 + 2, 10**6 + 3)
    )
    assert type(share.epsilon.denominator) is int
    assert share.epsilon + rest.epsilon == 50
