"""Amounts of epsilon as people write them."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

_LONGEST_DECIMAL = 15
_LONGEST_FRACTION = 60


def as_text(amount: Fraction) -> str:
    """A fraction for people: '0.5', '26' where a decimal of at most 15 digits is exact, else '1/3'.

    Sums whose fraction would fill a line are rounded, and say so: 'about 0.123456789'.
    """
    with localcontext(prec=_LONGEST_FRACTION):
        decimal = Decimal(amount.numerator) / amount.denominator
    if Fraction(decimal) == amount and (amount.denominator == 1 or len(decimal.as_tuple().digits) <= _LONGEST_DECIMAL):
        return f"{decimal:f}"
    if amount.numerator.bit_length() + amount.denominator.bit_length() > 3 * _LONGEST_FRACTION:
        return f"about {float(amount):.9g}"
    return str(amount)
