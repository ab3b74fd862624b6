"""The number of an answer that is told first, and what may stand beside it: the one rule for every page and command.

The sum of several cells is told by its unbiased estimate, which lies in the middle of the 95 % interval and whose error
adds up to what the interval says; sums of smoothed estimates keep the bias of each. A single cell is told by its
estimate, which is mostly closer to the truth than the noisy count that the interval belongs to; so it has the ends of
that interval beside it, and no ±.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

EVEN = 1.0  # by how many records the halves of an interval may differ: ends of counts are rounded


class ToldNumber(NamedTuple):
    """The number that is told first, with the interval that belongs beside it.

    Attributes:
        value: records, or what the question asks for; nan if it is not known.
        lower: lower end of the 95 % interval; nan if there is none.
        upper: upper end.
        half: half the width of the interval, if `value` is its middle; else None, and no ± may stand beside it.
        is_unbiased: whether it is the unbiased sum, not the estimate of the mechanism.
    """

    value: float
    lower: float
    upper: float
    half: float | None
    is_unbiased: bool

    def __str__(self) -> str:
        """The number as text, with ± or the ends of its interval behind it."""
        if self.half is not None:
            return f"{self.value:,.0f} ±{self.half:,.0f}"
        ends = "" if math.isnan(self.lower) else f" ({self.lower:,.0f} to {self.upper:,.0f})"
        return f"{self.value:,.0f}{ends}"


def told_number(answer: Mapping[str, Any]) -> ToldNumber:
    """The number of an answer that is told first.

    Args:
        answer: with the columns of a macro's row or the fields of an `Answer`: `estimate`, `unbiased`, `ci_lower`,
            `ci_upper` and `cells`; what is not known is None or nan.
    """
    estimate, unbiased, lower, upper = (
        math.nan if (number := answer.get(name)) is None else float(number)
        for name in ("estimate", "unbiased", "ci_lower", "ci_upper")
    )
    if answer["cells"] == 1 or math.isnan(unbiased):
        return ToldNumber(estimate, lower, upper, None, False)
    below, above = unbiased - lower, upper - unbiased
    half = max(below, above) if abs(below - above) <= EVEN else None
    return ToldNumber(unbiased, lower, upper, half, True)
