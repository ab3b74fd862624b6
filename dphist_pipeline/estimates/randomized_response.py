"""With which probability a report says 1 in an interval: the law of each encoding of the local model. Public."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

Encoding = Literal["symmetric", "optimized", "grr"]


class QuestionSize(NamedTuple):
    """What a question asks a contributor for.

    Attributes:
        intervals: of one vector.
        values: that a contributor reports.
    """

    intervals: int
    values: int


MOST_ASKED = QuestionSize(intervals=10_000, values=255)


@dataclass(frozen=True)
class Odds:
    """The probabilities of a 1 in a vector.

    Attributes:
        elsewhere: q, in an interval without the value.
        gap: d = p - q.
    """

    elsewhere: float
    gap: float

    @property
    def there(self) -> float:
        """p, in the interval of the value."""
        return self.elsewhere + self.gap


def odds(encoding: Encoding, intervals: int, epsilon: Fraction) -> Odds:
    """The probabilities of an encoding, computed without cancellation for small epsilon.

    Args:
        encoding: of the interval; see `local.encoding` for the three encodings.
        intervals: of which one holds the value.
        epsilon: that one vector spends.
    """
    spent = float(epsilon)
    if encoding == "grr":
        others = math.exp(spent) + intervals
        return Odds(1 / others, math.expm1(spent) / others)
    if encoding == "symmetric":
        return Odds(1 / (1 + math.exp(spent / 2)), math.tanh(spent / 4))
    return Odds(1 / (1 + math.exp(spent)), math.tanh(spent / 2) / 2)
