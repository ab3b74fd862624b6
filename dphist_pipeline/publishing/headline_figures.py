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

from dphist_pipeline.base.languages.texts import pgettext
from dphist_pipeline.base.shown_below import words_for
from dphist_pipeline.estimates.reliability import judged_error
from dphist_pipeline.publishing.formatting import decimals_of, in_decimals

ERRORS_WIDE = 3.92  # so many standard deviations is an interval of a normal law wide, at 95 %
DECIMALS_OF_KNOWN = 4  # of a share or ratio of public figures
EVEN = 1.0  # by how many records the halves of an interval may differ: ends of counts are rounded


class HeadlineFigure(NamedTuple):
    """The number that is told first, with the interval that belongs beside it.

    Attributes:
        value: records, or what the question asks for; nan if it is not known.
        lower: lower end of the 95 % interval; nan if there is none.
        upper: upper end.
        half: half the width of the interval, if `value` is its middle; else None, and no ± may stand beside it.
        is_unbiased: whether it is the unbiased sum, not the estimate of the mechanism.
        decimals: how many its noise justifies, or that were asked for.
        limit: a figure below it is told as words, see `figure`; None where all are shown.
        hides: whether the number is below the limit, or the middle of the interval: then no end is told either.
        is_known: whether it follows from public figures alone: no interval stands beside it, and it is never hidden.
    """

    value: float
    lower: float
    upper: float
    half: float | None
    is_unbiased: bool
    decimals: int = 0
    limit: int | None = None
    hides: bool = False
    is_known: bool = False

    def __str__(self) -> str:
        """The number as text, with ± or the ends of its interval behind it; or words, and nothing behind them."""
        if self.is_known:
            return f"{self.text(self.value)} ({pgettext('reliability', 'known')})"
        if not self.has_ends:
            return self.figure(self.value)
        if self.half is not None:
            return f"{self.text(self.value)} ±{self.text(self.half)}"
        return f"{self.text(self.value)} ({self.text(self.lower)} to {self.text(self.upper)})"

    @property
    def has_ends(self) -> bool:
        """Whether an interval stands beside the number."""
        return not (math.isnan(self.lower) or self.hides or self.is_known)

    def figure(self, number: float) -> str:
        """A count as text, or the words in its place."""
        return words_for(self.limit) if self.limit is not None and number < self.limit else self.text(number)

    def text(self, number: float) -> str:
        """A number of the same unit, with the same decimals."""
        return in_decimals(number, self.decimals)

    @classmethod
    def of(cls, answer: Mapping[str, Any], decimals: int | None = None, limit: int | None = None) -> HeadlineFigure:
        """The number of an answer that is told first.

        The answer has the columns of a macro's row or the fields of an `Answer`: `estimate`, `unbiased`, `ci_lower`,
        `ci_upper` and `cells`; what is not known is None or nan. Without decimals, see `decimals_justified`; `limit` is
        that of the publication, see `shown_below`, and None for what is no count.
        """
        estimate, unbiased, lower, upper = (
            math.nan if (number := answer.get(name)) is None else float(number)
            for name in ("estimate", "unbiased", "ci_lower", "ci_upper")
        )
        if answer.get("basis") == "known":
            places = decimals if decimals is not None else 0 if estimate.is_integer() else DECIMALS_OF_KNOWN
            return cls(estimate, lower, upper, None, True, places, is_known=True)
        places = cls.decimals_justified(answer) if decimals is None else decimals
        is_unbiased = answer["cells"] != 1 and not math.isnan(unbiased)
        headline = unbiased if is_unbiased else estimate
        hides = limit is not None and (headline < limit or unbiased < limit)
        if not is_unbiased:
            return cls(estimate, lower, upper, None, False, places, limit, hides)
        below, above = unbiased - lower, upper - unbiased
        half = max(below, above) if abs(below - above) <= EVEN else None
        return cls(unbiased, lower, upper, half, True, places, limit, hides)

    @staticmethod
    def decimals_justified(answer: Mapping[str, Any]) -> int:
        """The number of decimals of an answer: by the deviation of its noise, or an interval that bins make wider."""
        error, lower, upper = (answer.get(name) for name in ("noise_error", "ci_lower", "ci_upper"))
        if error is None or not error > 0:
            error = math.nan if lower is None or upper is None else (upper - lower) / ERRORS_WIDE
        elif lower is not None and upper is not None:
            error = judged_error(error, lower, upper)
        return decimals_of(error)
