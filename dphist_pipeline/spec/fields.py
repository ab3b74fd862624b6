"""Kinds of fields that several parts of a spec share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticKnownError

from dphist_pipeline.spec.digest import declared
from dphist_pipeline.spec.refusals import shown

LARGEST_SHOWN_BELOW = 1000
Flag = Annotated[bool, Field(strict=True)]
# A rule of an office about what it prints: the numbers stay as they are.
ShowBelow = Annotated[int | None, Field(strict=True, ge=2, le=LARGEST_SHOWN_BELOW), declared(digest=False)]


@dataclass(frozen=True)
class Listed(BeforeValidator):
    """How a list becomes a tuple.

    Attributes:
        least: fewest items.
        most: most items; None for any number.
    """

    least: int = 0
    most: int | None = None


def listed(least: int = 0, most: int | None = None) -> Listed:
    """Lists as tuples; sets are refused, since they have no order. Stands last in a type.

    Args:
        most: most items; None for any number.
    """

    def as_tuple(value: object) -> tuple[object, ...]:
        if not isinstance(value, list | tuple):
            raise PydanticKnownError("tuple_type")
        size = {"field_type": "Tuple", "actual_length": len(value)}
        if len(value) < least:
            raise PydanticKnownError("too_short", {**size, "min_length": least})
        if most is not None and len(value) > most:
            raise PydanticKnownError("too_long", {**size, "max_length": most})
        return tuple(value)

    return Listed(as_tuple, least=least, most=most)


def no_flag(value: object) -> object:
    """The value of a number's field: `true` and `false` are no numbers, though Python takes them for 1 and 0.

    Raises:
        ValueError: for one of them.
    """
    if isinstance(value, bool):
        raise ValueError(f"must be a number, not {shown(value)}")
    return value


def whole(value: object, least: int, most: int | None = None) -> int:
    """A whole number within bounds.

    Args:
        most: largest number; None for no bound.

    Raises:
        ValueError: for everything else, text and 3.0 included.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"must be a whole number, not {shown(value)}")
    if value < least or (most is not None and value > most):
        bounds = f"at least {least:,}" if most is None else f"between {least:,} and {most:,}"
        raise ValueError(f"must be {bounds}, not {shown(value)}")
    return value
