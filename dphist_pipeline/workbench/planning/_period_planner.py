"""Which length of period suits an account: week, month, quarter and year side by side, for the same total a year.

Longer periods hold more records in each cell and share the total among fewer releases, so both help. What is lost is
news: fewer tables a year. Errors are those of plain noise in each cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.estimates.budget import LARGEST_EPSILON, SMALLEST_EPSILON
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.estimates.reliability import RELIABILITY
from dphist_pipeline.releasing.account_runway import AccountRunway
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.workbench.evaluation.score_tables import Table

# Days of a period, of a year of 365.25.
_DAYS = {"week": 7.0, "month": 30.4375, "quarter": 91.3125, "year": 365.25}
_BISECTIONS = 50


@dataclass(frozen=True)
class PeriodPlan:
    """What one length of period would give.

    Attributes:
        releases: in a year, at most.
        epsilon: of each, where the year's total is shared equally; None outside of the epsilons that are served.
        error: standard deviation of the noise in a cell, in rows.
        good, fair, poor: shares of cells, from the least to the largest of the stand-ins.
        total_for_fair: the total a year at which the average cell is fair; None if none that is served does.
    """

    period: str
    releases: int
    epsilon: float | None
    error: float | None
    good: tuple[float, float] | None
    fair: tuple[float, float] | None
    poor: tuple[float, float] | None
    total_for_fair: float | None


@dataclass(frozen=True)
class PeriodPlans:
    """All lengths, for one total a year.

    Attributes:
        records: that the spec's own period holds, by a public guess.
        plans: from the shortest period on; empty for a release without periods.
    """

    total: Fraction
    because: str
    records: float
    plans: tuple[PeriodPlan, ...]

    def facts(self) -> dict[str, Any]:
        """The plans as JSON values."""
        compared = [asdict(plan) for plan in self.plans]
        return {"total_a_year": str(self.total), "because": self.because, "compared": compared}

    def tables(self) -> Iterable[Table]:
        """The table, for a terminal."""
        if not self.plans:
            return []
        head = [
            "period",
            "a year",
            "epsilon each",
            "error of a cell",
            "good",
            "fair",
            "poor",
            "epsilon a year for a fair average cell",
        ]
        title = f"lengths of period, for epsilon {float(self.total):g} a year ({self.because})"
        return [(title, head, [_row(plan) for plan in self.plans])]

    def notes(self) -> list[str]:
        """What the table takes for granted."""
        if not self.plans:
            return []
        return [
            "Lengths of period: by plain noise, if the year's total is shared equally. Records grow with the days of "
            f"a period ({self.records:,.0f} in the spec's own). `max_rows_per_unit` holds for each period, so a longer "
            "one cuts more rows of the same people. Whether the account pays for it is said below.",
            *(["-: no release has so much or so little epsilon."] * any(plan.epsilon is None for plan in self.plans)),
        ]


def yearly_total(spec: ReleaseSpec, store: Path | None) -> Fraction | None:
    """What the account of a spec has for every year; None if it does not renew, or cannot be used."""
    statement = AccountRunway.statement(spec, store)
    if isinstance(statement, str) or statement.account.renews is None or statement.account.is_individual:
        return None
    return statement.total


def plan_periods(
    spec: ReleaseSpec, counts: Mapping[str, NDArray[np.int64]], records: float, yearly: Fraction | None
) -> PeriodPlans:
    """Compares lengths of period.

    Args:
        counts: stand-ins for a period of the spec's own length.
        yearly: what the account has for each year; None if it has one total for ever, or is not known. Then the
            spec's own releases of a year are the total.
    """
    if spec.period == "none":
        return PeriodPlans(Fraction(0), "", records, ())
    releases = AccountRunway.MOST_IN_A_YEAR[spec.period]
    total, basis = yearly, "the account's"
    if total is None:
        total, basis = spec.epsilon * releases, f"{releases} releases by the spec"
    plans = [_plan(spec, name, counts, records, total) for name in _DAYS]
    return PeriodPlans(total, basis, records, tuple(plans))


def _plan(
    spec: ReleaseSpec, period: str, counts: Mapping[str, NDArray[np.int64]], records: float, total: Fraction
) -> PeriodPlan:
    releases, longer = AccountRunway.MOST_IN_A_YEAR[period], _DAYS[period] / _DAYS[spec.period]
    epsilon, share = total / releases, spec.mechanism_epsilon / spec.epsilon
    epsilon_needed = _least_epsilon(spec.sensitivity, records * longer / spec.cells * RELIABILITY.fair)
    enough = None if epsilon_needed is None else float(epsilon_needed / share * releases)
    if not SMALLEST_EPSILON <= epsilon * share <= LARGEST_EPSILON:
        return PeriodPlan(period, releases, None, None, None, None, None, enough)
    error = math.sqrt(noise_law(spec.sensitivity / (epsilon * share)).variance)
    good_shares = [float(np.mean(cells * longer * RELIABILITY.good >= error)) for cells in counts.values()]
    poor = [float(np.mean(cells * longer * RELIABILITY.fair < error)) for cells in counts.values()]
    fair = [1 - one - other for one, other in zip(good_shares, poor, strict=True)]
    reliability = (_between(good_shares), _between(fair), _between(poor))
    return PeriodPlan(period, releases, float(epsilon), error, *reliability, enough)


def _between(shares: Sequence[float]) -> tuple[float, float]:
    return min(shares), max(shares)


def _least_epsilon(sensitivity: int, error: float) -> Fraction | None:
    """The least epsilon at which the noise in a cell has at most this standard deviation, to three digits."""
    if error <= 0 or math.sqrt(noise_law(sensitivity / LARGEST_EPSILON).variance) > error:
        return None
    low, high = float(SMALLEST_EPSILON), float(LARGEST_EPSILON)
    for _ in range(_BISECTIONS):
        middle = math.sqrt(low * high)
        far = math.sqrt(noise_law(sensitivity / Fraction(middle).limit_denominator(10**9)).variance) > error
        low, high = (middle, high) if far else (low, middle)
    return Fraction(f"{high:.3g}")


def _row(one: PeriodPlan) -> tuple[str, ...]:
    shares: Sequence[tuple[float, float] | None] = (one.good, one.fair, one.poor)
    return (
        one.period,
        f"{one.releases}",
        "-" if one.epsilon is None else f"{one.epsilon:.2g}",
        "-" if one.error is None else _two_digits(one.error),
        *("-" if share is None else _percents(*share) for share in shares),
        "-" if one.total_for_fair is None else _two_digits(one.total_for_fair),
    )


def _percents(low: float, high: float) -> str:
    least, most = f"{100 * max(low, 0):.0f}", f"{100 * max(high, 0):.0f}"
    return f"{least} %" if least == most else f"{least}–{most} %"


def _two_digits(number: float) -> str:
    return f"{number:.2g}" if number < 100 else f"{number:,.0f}"
