"""Plain values: what measurements take from a mechanism is checked by its exact type and copied.

A subclass of a number, list or array can carry methods that Python calls in the middle of a computation. So nothing
of that kind comes near exact counts: numbers are exactly `int`, arrays are copied into base NumPy arrays.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import Halted


class MeasurementMisuse(Halted):
    """A mechanism asked a measurement for something that it does not give."""


def whole_number(value: object, what: str, low: int, high: int) -> int:
    """The value, if it is exactly an `int` from `low` to `high`; raises `MeasurementMisuse` for all else.

    Args:
        value: of a mechanism, so of any class; True and False are refused.
    """
    if type(value) is not int or not low <= value <= high:
        raise MeasurementMisuse(f"{what} must be a whole number, a plain int from {low} to {high}")
    return value


def whole_numbers(values: object, what: str) -> NDArray[np.int64]:
    """A copy of an array of integers as a base NumPy array, int64, in C order, same shape.

    Unsigned numbers from 2^63 become negative, so that a check for negative numbers refuses them, too.

    Args:
        values: of a mechanism, so of any class; `MeasurementMisuse` unless an array of integers, signed or not, of any
            width.
    """
    if not issubclass(type(values), np.ndarray):
        raise MeasurementMisuse(f"{what} must be a NumPy array of whole numbers")
    plain = np.asarray(values)  # the data of a subclass as a base array; none of its methods is called
    if plain.dtype.kind not in "iu":
        raise MeasurementMisuse(f"{what} must be a NumPy array of whole numbers")
    return plain.astype(np.int64, order="C")
