"""What a card is made of, and the small words that several sections use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, ReportedCells
from dphist_pipeline.publishing.plots_page import exact, named
from dphist_pipeline.publishing.plots_sums import Grid


@dataclass(frozen=True, eq=False)
class Facts:
    """A publication: its cells, and its audit before digests of files are in it.

    Attributes:
        grid: every declared cell.
        audit: see `release_files.write_release`.
    """

    grid: Grid
    audit: Mapping[str, Any]

    @property
    def epsilon(self) -> Fraction:
        """Of the whole publication."""
        return Fraction(self.audit["epsilon"])

    @property
    def title(self) -> str:
        """What people call the release."""
        return str(self.audit.get("title") or self.audit["release"])

    @property
    def period(self) -> str:
        """The stretch of time in words, half-open as periods are; empty where there is none."""
        if self.audit["period"] == "all":
            return ""
        start, end = self.audit.get("period_start"), self.audit.get("period_end")
        if not start or not end:
            return f"from {self.audit['period']}"
        return f"from {start[:10]} up to, but without, {end[:10]}"

    @property
    def by_row(self) -> bool:
        """Whether every row is another person."""
        return str(self.audit["privacy_unit"]) == "row"

    @property
    def unit(self) -> str:
        """One privacy unit, as HTML."""
        return "row" if self.by_row else f"<q>{named(str(self.audit['privacy_unit']))}</q>"

    @property
    def substitute(self) -> bool:
        """Whether units are in any case there, and only what they hold is hidden."""
        neighbours: str = self.audit["neighbours"]
        return neighbours == "substitute"

    @property
    def drawn(self) -> NoisyCells | NestedCells | None:
        """What a mechanism of the central model paid for: cells with noise that was drawn for them."""
        if isinstance(self.grid.unbiased, ReportedCells):
            raise TypeError("contributors made the noise of these cells")
        return self.grid.unbiased

    @property
    def reported(self) -> ReportedCells:
        """What the reports of the local model say."""
        if not isinstance(self.grid.unbiased, ReportedCells):
            raise TypeError("these cells were not estimated from reports")
        return self.grid.unbiased

    @property
    def smoothed(self) -> bool:
        """Whether estimates differ from the noisy counts that intervals come from."""
        unbiased = self.grid.unbiased
        return unbiased is None or not np.array_equal(unbiased.values, self.grid.values)


def number(value: Fraction) -> str:
    """An epsilon: by its digits where they end soon, else as a fraction with the decimals that begin it."""
    places = next((places for places in range(7) if (value * 10**places).denominator == 1), None)
    if places is not None:
        return f"{float(value):.{places}f}"
    return f"{value.numerator}/{value.denominator} (about {float(value):.4g})" if value.denominator < 10**6 else (
        f"about {float(value):.6g}"
    )  # fmt: skip


def factor(epsilon: Fraction) -> str:
    """e^epsilon in words, rounded up."""
    power = float(epsilon)
    if power > 13:
        return f"10<sup>{math.ceil(power / math.log(10))}</sup>"
    exponential = math.exp(power)
    digits = 2 if exponential < 10 else 0
    return f"{math.ceil(exponential * 10**digits - 1e-9) / 10**digits:,.{digits}f}"


def swayed(epsilon: Fraction) -> tuple[str, str]:
    """From an even chance: the least and the greatest that somebody may believe afterwards."""
    most = 1 / (1 + math.exp(-float(epsilon)))
    if most > 0.9999:
        return "below 0.01 %", "above 99.99 %"
    digits = 0 if most < 0.98 else 2
    high = math.ceil(most * 100 * 10**digits - 1e-9) / 10**digits
    return f"{100 - high:.{digits}f} %", f"{high:.{digits}f} %"


def entries(shown: Mapping[str, str]) -> str:
    """Facts by name, all of it HTML."""
    listed = "".join(f"<dt>{name}</dt><dd>{fact}</dd>" for name, fact in shown.items())
    return f"<dl class='facts'>{listed}</dl>"


def counted(amount: int, one: str, many: str) -> str:
    """An amount with its word."""
    return f"1 {one}" if amount == 1 else f"{amount:,} {many}"


def rounded(value: float) -> str:
    """How far noise reaches, in records."""
    return exact(value)
