"""Numbers of a spec, epsilon among them: read exactly by their decimal digits."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Annotated

from pydantic import BeforeValidator

from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.budget import LARGEST_EPSILON, SMALLEST_EPSILON
from dphist_pipeline.spec.refusals import shown

MOST_FLOAT_DIGITS = 15
LARGEST_EDGE = 10**15
LONGEST_NUMBER = 60
LARGEST_DENOMINATOR = 10**30

_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_RATIO = re.compile(r"[+-]?\d+/\d+", re.ASCII)


def exact(value: object) -> Fraction:
    """The number that the digits say: 0.1 is one tenth, "1/3" a third.

    NumPy's numbers count as what they hold. A float32 holds 0.1 as 0.10000000149011612, which has too many digits.

    Args:
        value: a number of Python or NumPy, a Decimal or Fraction, or text.

    Raises:
        ValueError: for what is not a finite number, or a float with more digits than a double surely keeps.
    """
    if isinstance(value, str):
        return _from_text(value)
    if isinstance(value, bool):  # which is an int
        raise ValueError(_no_number(value))
    if isinstance(value, Decimal):
        return _from_text(str(value))
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Integral):
        if abs(value) >= 10**LONGEST_NUMBER:
            raise ValueError("is a number of more than 60 digits; give a shorter one")
        return Fraction(int(value))
    if isinstance(value, Real):
        return _from_float(value)
    raise ValueError(_no_number(value))


def edge(value: object) -> Fraction:
    """A bin edge or a bin width: exact, and at most 10^15 away from zero.

    Args:
        value: see `exact`; in the unit of its axis.

    Raises:
        ValueError: as `exact`, and beyond 10^15, where doubles no longer tell neighbouring edges apart.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("must be finite; for an open end write `below: true` or `above: true`")
    number = exact(value)
    if abs(number) > LARGEST_EDGE:
        raise ValueError("lies beyond 10^15, where doubles become too coarse; use a larger unit on this axis")
    return number


def digits(number: Fraction) -> str:
    """A fraction as short text for messages: decimal digits if they are exact, else a ratio or an approximation."""
    if number.denominator == 1:
        return str(number.numerator)
    near = repr(float(number))
    ratio = f"{number.numerator}/{number.denominator}"
    return near if Fraction(near) == number else ratio if len(ratio) <= LONGEST_NUMBER else f"about {near}"


def _no_number(value: object) -> str:
    return f'must be a number such as 0.5, or text such as "1/3", not {shown(value)}'


def _from_text(value: str) -> Fraction:
    if len(value) > LONGEST_NUMBER:
        raise ValueError("is a number of more than 60 characters; give a shorter one")
    word = value.strip()
    if _DECIMAL.fullmatch(word):
        return Fraction(word)
    if _RATIO.fullmatch(word) and int(word.partition("/")[2]):
        return Fraction(word)
    raise ValueError(f'must be a number such as 0.5 or "1/3", not {shown(value)}')


def _from_float(value: Real) -> Fraction:
    number = float(value)  # NumPy's float64 is a float that writes itself otherwise
    if not math.isfinite(number):
        raise ValueError(f"must be a finite number, not {number!r}")
    if number != value:
        raise ValueError("has more digits than a double keeps; quote them")
    written = repr(number)
    mantissa = written.lstrip("-").partition("e")[0].replace(".", "").strip("0")
    if len(mantissa) > MOST_FLOAT_DIGITS:
        raise ValueError(f'has more than 15 digits, which a double rounds; quote it, as in "{written}"')
    return Fraction(written)


def parse_epsilon(value: object) -> Fraction:
    """The epsilon of one release, within [10^-6, 50].

    Raises:
        Refused: for other numbers and for what is no number.
    """
    try:
        return checked_epsilon(value)
    except ValueError as error:
        problem = str(error)
    raise Refused(f"epsilon {problem}", code="epsilon_error")


def checked_epsilon(value: object) -> Fraction:
    """As `parse_epsilon`, for the spec, which adds the place.

    Raises:
        ValueError: for other numbers, for a denominator of more than 30 digits, and for what is no number.
    """
    number = exact(value)
    if not SMALLEST_EPSILON <= number <= LARGEST_EPSILON:
        raise ValueError(f"must lie between 10^-6 and 50, not {shown(value)}")
    if number.denominator > LARGEST_DENOMINATOR:
        raise ValueError("needs a denominator of more than 30 digits; give fewer digits")
    return number


Edge = Annotated[Fraction, BeforeValidator(edge)]
Epsilon = Annotated[Fraction, BeforeValidator(checked_epsilon)]
