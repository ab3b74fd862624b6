"""Epsilon as people write it: read by its decimal digits, held as an exact fraction."""

from __future__ import annotations

from fractions import Fraction

from dphist_pipeline.errors import DphistError
from dphist_pipeline.privacy.budget import LARGEST_EPSILON, SMALLEST_EPSILON
from dphist_pipeline.spec.numbers import exact
from dphist_pipeline.spec.refusals import shown

LARGEST_TOTAL = Fraction(1_000_000)
LARGEST_DENOMINATOR = 10**30


class EpsilonError(DphistError):
    """An epsilon, or an account's total of them, that is not an exact number within its range."""

    def __init__(self, what: str, value: object, problem: str) -> None:
        self.what, self.value = what, value
        super().__init__(f"{what} {problem}")


def parse_epsilon(value: object) -> Fraction:
    """The epsilon of one release, within [10^-6, 50].

    Raises:
        EpsilonError: for other numbers and for what is no number.
    """
    try:
        return checked_epsilon(value)
    except ValueError as error:
        problem = str(error)
    raise EpsilonError("epsilon", value, problem)


def parse_total(value: object) -> Fraction:
    """The total of an account, above 0 and at most 10^6.

    Raises:
        EpsilonError: for other numbers and for what is no number.
    """
    try:
        return _within(exact(value), value, SMALLEST_EPSILON, LARGEST_TOTAL, "10^-6 and 10^6")
    except ValueError as error:
        problem = str(error)
    raise EpsilonError("the total", value, problem)


def checked_epsilon(value: object) -> Fraction:
    """As `parse_epsilon`, for the spec, which adds the place: raises ValueError."""
    return _within(exact(value), value, SMALLEST_EPSILON, LARGEST_EPSILON, "10^-6 and 50")


def _within(number: Fraction, written: object, least: Fraction, most: Fraction, bounds: str) -> Fraction:
    if not least <= number <= most:
        raise ValueError(f"must lie between {bounds}, not {shown(written)}")
    if number.denominator > LARGEST_DENOMINATOR:
        raise ValueError("needs a denominator of more than 30 digits; give fewer digits")
    return number
