"""Amounts of epsilon as the ledger writes them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphist_pipeline.ledger.entries import exact_text, read_exact
from dphist_pipeline.ledger.epsilon_text import as_text


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Fraction(1, 2), "0.5"),
        (Fraction(26), "26"),
        (Fraction(0), "0"),
        (Fraction(1, 3), "1/3"),
        (Fraction(-1, 8), "-0.125"),
        (Fraction("0.05"), "0.05"),
        (Fraction("0.00000123456789012345"), "0.00000123456789012345"),
        (Fraction("1.000000000000001"), "1000000000000001/1000000000000000"),
        (Fraction(1, 3**9000), "about 0"),
    ],
)
def test_an_amount_is_shown_exactly_when_it_fits(amount: Fraction, text: str) -> None:
    assert as_text(amount) == text


@given(st.fractions(min_value=0, max_value=10**6, max_denominator=10**30))
def test_a_written_fraction_is_read_back_exactly(amount: Fraction) -> None:
    assert read_exact(exact_text(amount)) == amount
    assert as_text(amount).startswith("about") or Fraction(as_text(amount)) == amount


@pytest.mark.parametrize("text", ["1", "0.5", "2/4", "-1/2", "1/0", "1/2\n", "01/2", "١/2", "9" * 5000 + "/1"])
def test_another_spelling_of_a_fraction_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match="not a fraction"):
        read_exact(text)
