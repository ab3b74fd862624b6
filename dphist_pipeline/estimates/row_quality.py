"""What the doors said of rows: what the bound cuts, and what fails to be a declared value. Public."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

PLACES = ("declared", "other", "dropped")
FAILURES = ("unparsed", "undeclared")


@dataclass(frozen=True, eq=False)
class RowTable:
    """Noisy numbers of one kind, bought together.

    Attributes:
        statistics: what each number counts: `units`, `rows`, `unparsed`, `undeclared` or `cut`.
        axes: the axis that each number is about; None for all of them.
        positions: along the axis, from 0, or the rows held, from 1; None for other numbers.
        categories: what the position is called; None for `other`.
        values: the numbers, not rounded up to 0.
        scale: of the discrete Laplace noise in each.
        step: that bought them.
        epsilon: what they cost.
    """

    statistics: tuple[str, ...]
    axes: tuple[str | None, ...]
    positions: tuple[int | None, ...]
    categories: tuple[str | None, ...]
    values: NDArray[np.float64]
    scale: Fraction
    step: str
    epsilon: Fraction

    def concerns(self, axes: Collection[str]) -> bool:
        """Whether the numbers say something of a table with these axes: all but rows cut by another axis do."""
        return self.statistics[0] != "cut" or self.axes[0] is None or self.axes[0] in axes


def table_of(statistic: str, axis: str | None) -> tuple[str, str | None]:
    """Names the table that a number about rows was bought in; numbers of one table stand together.

    Args:
        statistic: what the number counts; see `RowTable`.
        axis: that it is about; None for all of them.
    """
    return (FAILURES[0], None) if statistic in FAILURES else (statistic, axis)
