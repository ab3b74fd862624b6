"""How many rows can be missing or undeclared on an axis, by what the counts hold under `other`. Public.

A quality table sees the first T rows of a unit, the counts hold R of them: `other` bounds the rows that failed, but not
by itself. Of n rows of a unit in cells, o of them in `other`, bounding keeps a random sample. So in the mean it keeps
o·min(R, n)/n of them, and a quality table sees at most o·min(T, n)/n, which is at most T/R times as much. Units are
sampled independently. By Chernoff's inequality, with a probability of at least 1 - δ each, for L = log(1/δ),
    the mean of what is kept is at most  M = ((√(2RL) + √(2RL + 4K)) / 2)²,  where K rows were kept;
    what is seen is at most              μ + TL/3 + √((TL/3)² + 2TLμ),       where μ = M·T/R.
K is at most its noisy number and the reach of its noise. Rows that another axis drops lie in no cell; they are at most
the noisy number of dropped rows and the reach of its noise. Where every row is a unit, all rows are kept and seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.laws import LEVEL, noise_law
from dphist_pipeline.estimates.noisy import NestedCells, NoisyCells, Unbiased, exact_sum

# Bounds may miss with a tenth of what intervals may: these then hold, joined with them, at their stated level.
MISSED = (1 - LEVEL) / 10
Row = Mapping[str, Any]


@dataclass(frozen=True)
class RowsInOther:
    """What noisy counts say of the rows under `other` of an axis.

    Attributes:
        count: unbiased.
        cells: whose noise is in it: positions along each axis.
        unbiased: the noisy counts.
    """

    count: float
    cells: Sequence[Any]
    unbiased: NoisyCells | NestedCells

    def most(self, missed: float) -> float:
        """The rows at most, but with a probability of `missed`."""
        variance = np.array([self.unbiased.variance_of_sum(self.cells)])
        return max(0.0, self.count + float(self.unbiased.law.chernoff_reach(variance, 2 * missed)[0]))


def rows_in_other(domain: Domain, unbiased: Unbiased | None) -> dict[str, RowsInOther]:
    """By name of axis, for those that have `other`; empty where no noisy cells are published.

    Args:
        domain: of one published table.
        unbiased: noise in groups of cells alone bounds nothing, nor do reports.
    """
    if not isinstance(unbiased, NoisyCells | NestedCells):
        return {}
    found = {}
    for number, axis in enumerate(domain.axes):
        if axis.other_cell is not None:
            cells = [np.arange(size) for size in domain.shape]
            cells[number] = np.array([axis.other_cell])
            found[axis.name] = RowsInOther(
                exact_sum(np.atleast_1d(unbiased.values.take(axis.other_cell, number))), cells, unbiased
            )
    return found


def most_failed(
    rows: Sequence[Row],
    has_other: Mapping[str, bool],
    tables: Iterable[tuple[Domain, Unbiased | None]],
    bound: int | None,
    seen: int,
) -> dict[str | None, float]:
    """The rows that can have failed on an axis at most, and under None those in `other` of any axis; in rows.

    All hold together, but with a probability of `MISSED`. An axis that nothing bounds is not named.

    Args:
        rows: of a quality table; without its rows by place, nothing is bounded.
        has_other: by axis of the spec, whether rows that fail on it are counted under `other`; else they are dropped.
        tables: that are published; the first one that has an axis tells of it.
        bound: R, the most rows of a unit that count; None where every row is a unit.
        seen: T, the most rows of a unit that the quality table sees.
    """
    missed = float(MISSED) / (1 + 3 * len(has_other))
    dropped = next((row for row in rows if (row["statistic"], row["category"]) == ("rows", "dropped")), None)
    if dropped is None:
        return {}
    reach = noise_law(Fraction(dropped["noise_scale"])).half_width(Fraction(1 - 2 * missed))
    others: dict[str, RowsInOther] = {}
    for domain, unbiased in tables:
        others = rows_in_other(domain, unbiased) | others
    lost = max(0.0, dropped["estimate"] + reach)
    inside = {
        name: _seen_at_most(others[name].most(missed), bound, seen, missed) for name in has_other if name in others
    }
    found: dict[str | None, float] = {}
    for axis, kept in has_other.items():
        elsewhere = lost if any(not other for name, other in has_other.items() if name != axis) else 0.0
        if not kept:
            found[axis] = lost
        elif axis in inside:
            found[axis] = math.ceil(inside[axis] + elsewhere)
    if {axis for axis, kept in has_other.items() if kept} <= inside.keys():
        found[None] = math.ceil(math.fsum(inside.values()))
    return found


def _seen_at_most(kept: float, bound: int | None, seen: int, missed: float) -> float:
    """Rows in cells that a quality table sees at most, if the counts hold at most `kept` of them."""
    if bound is None:
        return kept
    log = math.log(1 / missed)
    mean = ((math.sqrt(2 * bound * log) + math.sqrt(2 * bound * log + 4 * kept)) / 2) ** 2
    mean, third = mean * seen / bound, seen * log / 3
    return mean + third + math.sqrt(third**2 + 2 * seen * log * mean)
