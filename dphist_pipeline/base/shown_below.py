"""Which published figures an office's rule of a minimum frequency replaces by words: post-processing, no protection.

A spec's `show_below: 10` asks for it. A figure below 10 reads "below 10" on cards and in files for people. The interval
beside it is left out, because its middle is the figure. Parquet keeps every number, and sums are sums of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.languages.texts import gettext

# A label may hold such words, too; those of a sentence end here.
_FIGURES = r" from about [0-9,]+ to about [0-9,]+(?=$| while |, and |:| \()"


class Masks(NamedTuple):
    """What of each cell is told in words, or left out.

    Attributes:
        estimate: whether the estimate is below the limit, of each cell.
        beside: whether either is: then no end of the interval is shown, nor an unbiased estimate beside a hidden one.
    """

    estimate: NDArray[np.bool_]
    unbiased: NDArray[np.bool_]
    beside: NDArray[np.bool_]

    def of(self, column: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Where a column tells words, and where it is left out; one that is no estimate is an end of the interval."""
        none = np.zeros_like(self.beside)
        if column == "estimate":
            return self.estimate, none
        return (self.unbiased, self.estimate & ~self.unbiased) if column.startswith("unbiased") else (none, self.beside)


def limit_of(audit: Mapping[str, Any]) -> int | None:
    """The least figure that is shown; None where every figure is."""
    limit = audit.get("show_below")
    return limit if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else None


def words_for(limit: int) -> str:
    """What stands in place of a figure."""
    return gettext("below %(limit)s", limit=limit)


def hidden_in_words(limit: int) -> str:
    """What the words for a hidden figure mean, for cards and notes."""
    return gettext(
        "Published figures below %(limit)s are told as words, and the interval beside them is left out, because the "
        "publisher has a rule of a minimum frequency. The noise protects people; this rule adds no protection: the "
        "Parquet files keep the numbers, totals hold them, and a figure below the limit need not be a count below it.",
        limit=limit,
    )


def not_drawn(limit: int) -> str:
    """What a picture says of figures that it leaves out."""
    return gettext("A figure below %(limit)s is not drawn, nor is its interval.", limit=limit)


def commands_hide(limit: int) -> str:
    """What a command says below figures that it told as words."""
    return (
        f"Figures below {limit} are told as words, without intervals: the spec's show_below. This protects nobody; "
        "--json, SQL and the Parquet files have the numbers."
    )


def compared_in_words(audit: Mapping[str, Any]) -> str:
    """What a publication says, if anything, of sudden changes; without figures if one is below the limit."""
    compared, limit = audit.get("compared") or {}, limit_of(audit)
    figures = [float(change[when]) for change in compared.get("changes", ()) for when in ("before", "now")]
    says = str(compared.get("says") or "")
    return says if limit is None or min(figures, default=limit) >= limit else without_figures(says)


def without_figures(says: str) -> str:
    """A sentence on sudden changes without what fell or rose from how much to how much."""
    return re.sub(_FIGURES, "", says)


def masks(limit: int | NDArray[np.float64], estimate: NDArray[np.float64], unbiased: NDArray[np.float64]) -> Masks:
    """What is told in words; nan is no figure, and no limit.

    Args:
        limit: of all cells, or one per cell.
        estimate: one number per cell, shape (n,).
        unbiased: one number per cell, shape (n,).
    """
    low, low_too = estimate < limit, unbiased < limit
    return Masks(low, low_too, low | low_too)
