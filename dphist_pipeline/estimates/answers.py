"""Answers with their 95 % intervals, as Python holds them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

from dphist_pipeline.estimates.reliability import RELIABILITY, judged_error

Basis = Literal["unbiased", "linear", "groups", "noise_only", "known"]


@dataclass(frozen=True)
class Answer:
    """An estimated count with its 95 % interval.

    Attributes:
        estimate: sum of the published estimates, in records; the mechanism may have smoothed them. If the ends of the
            box cut bins, it assumes that their rows are spread evenly.
        unbiased: the number that the interval belongs to: the sum of the unbiased estimates, in records, or the middle
            of what the intervals of two measurements share; nan if the mechanism paid for none.
        ci_lower: lower end of the interval, below 0 where the noise reaches there. The interval holds the true
            (bounded) count with a probability of at least 95 %, if the box was chosen without looking at the
            estimates. It is cut off at what public figures leave. If the ends of the box cut bins, it runs from the
            lower end for the bins within the box to the upper end for the bins around it, and holds however the rows
            lie (for estimates from reports with 93.8 %, because their error law is skewed). nan if there is no
            interval.
        ci_upper: upper end of the interval; nan if there is no interval.
        basis: `unbiased` if the interval follows from the exact law of independent noise; `linear` if it follows from
            the variance of linear estimates or of reports, times a calibrated factor; `known` if the count is a public
            figure, which both ends are; `noise_only` if there is none.
        cells: number of cells in the sum; cut bins count.
        noise_error: standard deviation of the noise in records, cut bins in full, of two measurements that of the
            better one; nan if it is not known.
        note: why there is no interval, or why the estimate lies outside it; else empty.
        capped: what the bound on rows cut, and how far that moves a share, a ratio or a rate; that it is unknown, if
            no quality table tells; else empty. Changes speak of it where a quality table tells.
        chance: for changes and ratios, whether the interval covers the chance of counts, too; else empty.
    """

    estimate: float
    unbiased: float
    ci_lower: float
    ci_upper: float
    basis: Basis
    cells: int
    noise_error: float = math.nan
    note: str = ""
    capped: str = ""
    chance: str = ""

    @property
    def reliability(self) -> str:
        """How far the count can be trusted: `good`, `fair` or `poor`, see `RELIABILITY`; empty without an interval.

        `known` for a public figure.
        """
        return "known" if self.basis == "known" else RELIABILITY.word(self.unbiased, self.judged_error, self.ci_lower)

    @property
    def judged_error(self) -> float:
        """What `reliability` judges: the noise, or a quarter of the interval where cut bins make it far wider."""
        return judged_error(self.noise_error, self.ci_lower, self.ci_upper)


@dataclass(frozen=True)
class RangeAnswer:
    """The estimated count in a range whose ends may cut bins.

    `ci_lower` and `ci_upper` hold the true (bounded) count with at least 95 %, wherever the rows lie within a bin; for
    estimates from reports with 93.8 % if bins are cut, because the error law of reports is skewed.

    Attributes:
        inner: count in the bins within the range.
        outer: count in the bins that overlap the range; equals `inner` if both ends are edges.
    """

    inner: Answer
    outer: Answer

    @property
    def covers(self) -> str:
        """`exactly` if both ends are edges of bins, else `partly`."""
        return "exactly" if self.inner.cells == self.outer.cells else "partly"

    @property
    def ci_lower(self) -> float:
        """Lower end of the interval, in records."""
        return self.inner.ci_lower

    @property
    def ci_upper(self) -> float:
        """Upper end of the interval, in records."""
        return self.outer.ci_upper


@dataclass(frozen=True)
class Quantile:
    """An estimated quantile with its 95 % interval, in axis units (days since 1970-01-01 on a calendar axis).

    Attributes:
        estimate: assumes that the rows of the quantile's bin are spread evenly; nan if the bin is open or not known.
        ci_lower: lower end of the interval. The interval holds the quantile's bin with at least 95 %, for all
            quantiles of a box at once, and assumes nothing about the position of rows in a bin. nan if there is none.
        ci_upper: upper end of the interval; nan if there is no interval.
        basis, note, capped: see `Answer`.
        bin_lower: lower end of the first bin at whose upper end the share q of the rows is reached, its first number if
            the axis is declared `whole`, as for all ends here; nan if the box is estimated at 0 or below.
        bin_upper: its upper end.
        bin: the bin in words, such as 2 to 3.
        ci_bins: the interval in words, too.
    """

    estimate: float
    ci_lower: float
    ci_upper: float
    basis: Basis
    cells: int
    bin_lower: float
    bin_upper: float
    note: str = ""
    capped: str = ""
    bin: str = field(default="", compare=False)
    ci_bins: str = field(default="", compare=False)


Found = TypeVar("Found", Answer, Quantile)


def found_in_row(kind: type[Found], row: Mapping[str, Any]) -> Found:
    """An answer from a row of a macro by its columns: null is nan, or no note; lacking ones keep their defaults."""
    known: dict[str, Any] = {one.name: row[one.name] for one in fields(kind) if one.name in row}
    return kind(
        **known
        | {
            n: "" if n in ("note", "capped", "chance", "bin", "ci_bins") else math.nan
            for n, fact in known.items()
            if fact is None
        }
    )
