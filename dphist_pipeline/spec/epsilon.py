"""Epsilon as people write it: read by its decimal digits, held as an exact fraction."""

from __future__ import annotations

from fractions import Fraction

from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.budget import LARGEST_EPSILON, SMALLEST_EPSILON
from dphist_pipeline.spec.numbers import exact
from dphist_pipeline.spec.refusals import shown

LARGEST_DENOMINATOR = 10**30


class EpsilonError(DphistError):
    """An epsilon that is not an exact number within its range."""

    def __init__(self, value: object, problem: str) -> None:
        self.value = value
        super().__init__(f"epsilon {problem}")


def parse_epsilon(value: object) -> Fraction:
    """The epsilon of one release, within [10^-6, 50].

    Raises:
        EpsilonError: for other numbers and for what is no number.
    """
    try:
        return checked_epsilon(value)
    except ValueError as error:
        problem = str(error)
    raise EpsilonError(value, problem)


def checked_epsilon(value: object) -> Fraction:
    """As `parse_epsilon`, for the spec, which adds the place: raises ValueError."""
    number = exact(value)
    if not SMALLEST_EPSILON <= number <= LARGEST_EPSILON:
        raise ValueError(f"must lie between 10^-6 and 50, not {shown(value)}")
    if number.denominator > LARGEST_DENOMINATOR:
        raise ValueError("needs a denominator of more than 30 digits; give fewer digits")
    return number
