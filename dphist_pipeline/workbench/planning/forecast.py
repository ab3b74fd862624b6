"""Prepares and runs a forecast of errors, and shows its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.budget import LARGEST_EPSILON
from dphist_pipeline.releasing.account_runway import AccountRunway
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.workbench.evaluation.contenders import Contender, choose_contenders
from dphist_pipeline.workbench.evaluation.score_tables import Table, format_epsilon, format_grid, wrap_name
from dphist_pipeline.workbench.planning._bounds import (
    Bound,
    UnitSizes,
    advice,
    advice_on_shares,
    compare_bounds,
    find_units,
    table_of,
    table_of_shares,
)
from dphist_pipeline.workbench.planning._dpcube_theory import dpcube_theory
from dphist_pipeline.workbench.planning._expected_errors import CELL, Expected, Forecaster, questions, questions_of
from dphist_pipeline.workbench.planning._least_epsilon import LeastEpsilon, least_epsilon
from dphist_pipeline.workbench.planning._period_planner import PeriodPlans, plan_periods, yearly_total
from dphist_pipeline.workbench.planning.expected_quality import notes_on_quality
from dphist_pipeline.workbench.planning.stand_ins import (
    declared_shapes,
    folder_if_any,
    published_before,
    read_stand_in,
    records_unknown,
)

DEFAULT_FACTORS = (Fraction(2), Fraction(1), Fraction(1, 2))
NOTE = "from the spec and what is published: no record was opened and nothing was charged"
SHAPES = "flat, skewed and sparse (smooth, rough), steep and peaked"
TINY = 0.01
LONG_LINE, SEARCHING = 2_000, ("multiscale", "workload")  # cells, and what searches for weights on a line
# How many mechanisms stand beside the spec's own; `--all` shows every one.
BEST = 3
# Simulated releases of each mechanism: one on each of several tables, more on the only one.
MOST_REPEATS, ENOUGH_CELLS = 5, 20_000


@dataclass(frozen=True, eq=False)
class ForecastPlan:
    """A forecast that is checked but has not run.

    Attributes:
        epsilons: largest first.
        contenders: mechanisms, the spec's own first.
        target: error of a cell whose epsilon is searched, in records; None for no search.
        left_out: the reason by name of each mechanism that does not serve the release.
        units: how many units hold how many rows, where something public says so; for an advice on the bound.
        records: that a period is expected to hold; None where nobody said it.
        periods: other lengths of period for the same total a year.
        by_counts: mechanisms that are left out because their errors follow from the counts, and nobody said how many
            records there are.
        whole: whether all tables and notes are shown, not those alone that a decision needs.
        bounds_asked: whether the table of bounds is asked for.
    """

    spec: ReleaseSpec
    epsilons: tuple[Fraction, ...]
    contenders: tuple[Contender, ...]
    forecaster: Forecaster
    basis: str | None
    target: float | None
    left_out: dict[str, str]
    runway: AccountRunway
    units: UnitSizes | None = None
    records: float | None = None
    periods: PeriodPlans | None = None
    by_counts: tuple[str, ...] = ()
    every: bool = False
    whole: bool = False
    bounds_asked: bool = False

    @property
    def epsilon(self) -> Fraction:
        """The epsilon at which all mechanisms are compared: the spec's, if it is among those asked for."""
        return self.spec.epsilon if self.spec.epsilon in self.epsilons else self.epsilons[0]

    @property
    def shown(self) -> int:
        """How many mechanisms the tables show."""
        return len(self.contenders) if self.every else min(len(self.contenders), 1 + BEST)

    @property
    def steps(self) -> int:
        """Number of calls of `progress`."""
        others = len(self.epsilons) - 1 + (self.target is not None)
        return len(self.contenders) + self.shown * others

    def run(self, progress: Callable[[str], None] = lambda step: None) -> Forecast:
        """Computes errors of all mechanisms at one epsilon, and of the spec's own and the best ones at others."""
        results = [self.forecaster.expected(contender, self.epsilon, progress) for contender in self.contenders]
        best = self._best(results)
        expected: list[Expected] = []
        for epsilon in self.epsilons:
            if epsilon == self.epsilon:
                expected += results
            else:
                expected += [self.forecaster.expected(one, epsilon, progress) for one in best]
        costs = []
        if self.target is not None:
            costs = [least_epsilon(self.forecaster, one, self.target, progress) for one in best]
        return Forecast(self, tuple(expected), tuple(costs), tuple(one.written for one in best))

    def _best(self, expected: Sequence[Expected]) -> list[Contender]:
        """The spec's own mechanism, then those that rank first for the workloads that were named, else for all."""
        workloads = [size for size in self.decided_by if isinstance(size, str)]
        ranks = self.forecaster.ranks(expected, workloads or self.decided_by, self.epsilon)
        places = sorted(range(1, len(expected)), key=lambda place: ranks[place])[: self.shown - 1]
        return [self.contenders[place] for place in (0, *sorted(places))]

    @property
    def decided_by(self) -> list[int | str]:
        """Cells, sums of about a tenth of the cells, and each workload: of these a best mechanism is named."""
        sizes = [question.cells for question in self.forecaster.asked]
        tenth = self.spec.domain.cells / 10
        sums = [cells for cells in sizes if isinstance(cells, int)]
        nearest = sorted(sums, key=lambda cells: abs(cells - tenth))[:1]
        return [CELL, *nearest, *(cells for cells in sizes if isinstance(cells, str))]


@dataclass(frozen=True, eq=False)
class Forecast:
    """The result of a forecast.

    Attributes:
        found: expected errors, of all mechanisms at `plan.epsilon`, of those that are shown at the others.
        costs: the smallest epsilon of each mechanism for the target error; empty without a target.
        shown: the mechanisms in the tables, the spec's own first.
    """

    plan: ForecastPlan
    found: tuple[Expected, ...]
    costs: tuple[LeastEpsilon, ...]
    shown: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """The forecast as JSON values."""
        plan, spec = self.plan, self.plan.spec
        return {
            "note": NOTE,
            "release": spec.release,
            "shape": list(spec.domain.shape),
            "cells": spec.domain.cells,
            "sensitivity": spec.sensitivity,
            "epsilon": str(spec.epsilon),
            "measure": "root mean squared error in records, of (estimate - bounded count)",
            "simulated_on": plan.basis,
            "repeats": plan.forecaster.repeat,
            "expected": [expected.facts() for expected in self.found],
            "target_error": plan.target,
            "needed": [cost.facts() for cost in self.costs],
            "left_out": plan.left_out,
            "recommended": self.recommended(),
            "theory": " ".join(dpcube_theory(spec, plan.contenders)),
            "account": asdict(plan.runway),
            **({"quality": notes_on_quality(spec, plan.records)} if spec.quality is not None else {}),
            **({"bounds": self._bounds_as_facts()} if plan.units is not None else {}),
            **({"periods": plan.periods.facts()} if plan.periods is not None and plan.periods.plans else {}),
        }

    def _bounds_as_facts(self) -> dict[str, Any]:
        assert self.plan.units is not None
        errors = ("cell_error", "total_error", "share_bias", "share_error")
        bounds = [asdict(bound) | {name: getattr(bound, name) for name in errors} for bound in self.bounds]
        facts = {"from": self.plan.units.basis, "tried": bounds, "advice": advice(self.bounds, self.plan.units.basis)}
        return facts | (
            {"counted_by_itself": self.plan.units.counted_by_itself}
            if self.bounds and self.plan.units.counted_by_itself
            else {}
        )

    @cached_property
    def bounds(self) -> list[Bound]:
        """Bias and noise of several bounds on the rows of a unit; empty where nothing public says what they hold."""
        return [] if self.plan.units is None else compare_bounds(self.plan.spec, self.plan.units)

    def opening(self) -> list[str]:
        """Lines that say what is forecast."""
        spec = self.plan.spec
        cells = format_grid(spec.domain.shape)
        return [
            f"Forecast of {spec.release}, {NOTE}.",
            f"{cells}; one unit changes the counts by at most {spec.sensitivity:,}.",
            "Errors are root mean squared errors, in records, of the published estimates.",
            *self._needs_records(),
        ]

    def _needs_records(self) -> list[str]:
        """What `--records` would add; nothing where counts stand in for the records."""
        plan = self.plan
        if plan.forecaster.counts:
            return []
        more = (
            f", and compares {', '.join(plan.by_counts)}, whose errors follow from the counts" if plan.by_counts else ""
        )
        return [
            "Nobody said how many records a period will hold. --records N, an order of magnitude from public "
            f"knowledge, tells how many cells will be poor{more}."
        ]

    def decision(self) -> list[str]:
        """Lines for who reads no table: the spec's own mechanism, the best one if ranges tell it, and the bound."""
        plan = self.plan
        own = next(expected for expected in self.found if expected.epsilon == plan.epsilon)
        errors = [f"of {_name_for_readers(size)} {_errors(*own.between(size), None)}" for size in plan.decided_by]
        lines = [f"With {own.mechanism} at epsilon {float(plan.epsilon):g}, expect errors {', '.join(errors)}."]
        by_law = all(expected.by_law for expected in self.found)
        lines += [_recommendation(recommendation, by_law) for recommendation in self.recommended()]
        lines += [*self._says_little(), *self._poor_cells()]
        if plan.units is not None:
            lines.append(advice(self.bounds, plan.units.basis))
        return lines

    def _says_little(self) -> list[str]:
        """Where the spec's own mechanism, or every one, is hardly nearer than a table of equal cells."""
        at_epsilon = [expected for expected in self.found if expected.epsilon == self.plan.epsilon]
        dull = [self.plan.forecaster.says_little(one) for one in at_epsilon]
        if not dull[0]:
            return []
        who = "no mechanism is" if all(dull) and len(dull) > 1 else f"{at_epsilon[0].mechanism} is not"
        return [
            f"Of single cells, {who} clearly nearer than a table that holds the same in every cell, at epsilon "
            f"{float(self.plan.epsilon):g}: declare fewer cells, or longer periods."
        ]

    def tables(self, decimals: int | None = None) -> list[Table]:
        """For each epsilon a table of errors; then a table of epsilons for the target.

        Errors have two digits unless `decimals` are asked for.
        """
        plan = self.plan
        sizes, whole = [question.cells for question in plan.forecaster.asked], plan.spec.domain.cells
        heads = ["all cells" if size == whole else f"{size:,}" if isinstance(size, int) else size for size in sizes]
        tables: list[Table] = []
        for epsilon in plan.epsilons:
            at_epsilon = (
                expected for expected in self.found if expected.epsilon == epsilon and expected.mechanism in self.shown
            )
            rows = [self._row(one, sizes, decimals) for one in at_epsilon]
            mine = " (the spec's)" if epsilon == plan.spec.epsilon else ""
            title = f"epsilon {format_epsilon(epsilon)}{mine}: expected error by number of cells in a sum"
            tables.append(
                (title, ["mechanism", "by", "1 cell", *heads, "95 % ±", *["poor"] * bool(plan.forecaster.counts)], rows)
            )
        if self.costs:
            title = f"the least epsilon for a root mean squared error of at most {plan.target:g} in a cell"
            tables.append((title, ["mechanism", "by", "epsilon"], [self._cost(cost) for cost in self.costs]))
        if self.bounds and (plan.whole or plan.bounds_asked):
            assert plan.units is not None
            number = partial(short, decimals=decimals)
            tables.append(table_of(self.bounds, plan.spec.max_rows_per_unit, plan.units.basis, number))
            tables.append(table_of_shares(self.bounds, plan.spec.max_rows_per_unit))
        return [*tables, *(plan.periods.tables() if plan.periods is not None and plan.whole else [])]

    def notes(self) -> list[str]:
        """Lines that explain the tables."""
        plan = self.plan
        results = [expected for expected in self.found if expected.mechanism in self.shown]
        by_law = any(result.by_law for result in results) or any(cost.by_law for cost in self.costs)
        law = "law: exact, because noise is the only error. " if by_law else ""
        none = "; - if there is none" if any(result.half_width is None for result in results) else ""
        lines = [
            f"{law}95 % ±: half the width of the published interval of a cell{none}.",
            "A sum of cells is a box, or on one axis a range.",
        ]
        if plan.forecaster.counts:
            noise = f"poor: the share of cells whose noise is more than a quarter of their count, on {plan.basis}."
            lines.append(noise + self._what_decides_poor())
        if not all(expected.by_law for expected in self.found):
            repeat = plan.forecaster.repeat
            lines.append(f"sim: simulated on {plan.basis}, {repeat} release{'s' if repeat > 1 else ''} each.")
        if plan.units is not None and self.bounds:
            if plan.whole or plan.bounds_asked:
                lines.append("Rows beyond those seen are in no line of the table of bounds.")
            lines += filter(None, [advice_on_shares(self.bounds), plan.units.counted_by_itself])
        lines += notes_on_quality(plan.spec, plan.records)
        lines += self._rest() if plan.whole else self._what_else()
        return [*lines, f"Account {plan.runway.account}: {plan.runway.says.rstrip('.')}."]

    def _rest(self) -> list[str]:
        """Notes that no decision needs."""
        plan = self.plan
        lines = dpcube_theory(plan.spec, plan.contenders)
        lines += plan.periods.notes() if plan.periods is not None else []
        if plan.left_out:
            lines.append(f"Do not serve this release: {', '.join(plan.left_out)} (dphist mechanisms NAME).")
        return lines

    def _what_else(self) -> list[str]:
        """What `--all` shows."""
        plan = self.plan
        others = len(plan.contenders) - len(self.shown)
        compared = {contender.mechanism for contender in plan.contenders}
        searching = () if plan.every else (name for name in SEARCHING if name not in compared)
        slow = [name for name in searching if _is_slow(Contender(name, name), plan.spec.domain.shape)]
        more = [
            *([f"{others} more of the mechanisms that were compared"] if others else []),
            *([f"{' and '.join(slow)}, whose weights take long here"] if slow else []),
            *(["half and twice this epsilon"] if len(plan.epsilons) == 1 else []),
            *(["other bounds"] if self.bounds and not plan.bounds_asked else []),
            *(["other lengths of period"] if plan.periods is not None and plan.periods.plans else []),
        ]
        return [f"--all shows {', '.join(more)}."] if more else []

    def _what_decides_poor(self) -> str:
        """On which shapes fewest and most cells are poor with the first mechanism that tells it, in a sentence."""
        poor = next((expected.poor for expected in self.found if expected.poor), {})
        if len(poor) < 2:
            return ""
        least, most = (f"{pick(poor.values()):.0%} on `{pick(poor, key=poor.__getitem__)}`" for pick in (min, max))
        return (
            f" How unevenly records lie over the cells decides it: {least} counts, {most} counts. Public counts of the "
            "same kind (another year, another country) tell one number: --stand-in FILE."
        )

    def _poor_cells(self) -> list[str]:
        """At which epsilons most cells will be poor with the spec's own mechanism."""
        first = self.found[0].mechanism
        bad = [
            expected.epsilon
            for expected in self.found
            if expected.mechanism == first and expected.poor and min(expected.poor.values()) > 0.5
        ]
        if not bad:
            return []
        return [
            f"Most cells will be poor with {first} at epsilon {', '.join(map(format_epsilon, bad))}: declare fewer."
        ]

    def recommended(self) -> list[dict[str, Any]]:
        """For cells, sums of a tenth of the cells and each workload: the least error on the worst of the counts.

        `alike` names the mechanisms whose range of errors overlaps with that.
        """
        if len(self.plan.contenders) == 1:
            return []
        at_epsilon = [expected for expected in self.found if expected.epsilon == self.plan.epsilon]
        recommendations = []
        for question in self.plan.decided_by:
            best = min(at_epsilon, key=lambda one: one.between(question)[1])
            most = best.between(question)[1]
            mechanisms = [one.mechanism for one in at_epsilon if one is not best and one.between(question)[0] <= most]
            recommendations.append(
                {
                    "epsilon": float(self.plan.epsilon),
                    "questions": _name_for_readers(question),
                    "mechanism": best.mechanism,
                    "rmse": best.between(question)[1],
                    "alike": mechanisms,
                }
            )
        return recommendations

    def _row(self, one: Expected, sizes: Sequence[int | str], decimals: int | None) -> tuple[str, ...]:
        errors = (_errors(*one.between(size), decimals) for size in (CELL, *sizes))
        width = "-" if one.half_width is None else short(one.half_width, decimals)
        poor = [_percents(one.poor)] * bool(self.plan.forecaster.counts)
        return wrap_name(one.mechanism), _basis(one.by_law), *errors, width, *poor

    def _cost(self, one: LeastEpsilon) -> tuple[str, str, str]:
        epsilons = [epsilon for epsilon in one.epsilons.values() if epsilon is not None]
        if len(epsilons) < len(one.epsilons):
            missing = " on some shapes" if epsilons else ""
            epsilon = f"none up to {LARGEST_EPSILON}{missing}"
        else:
            epsilon = _between(float(min(epsilons)), float(max(epsilons)))
        return wrap_name(one.mechanism), _basis(one.by_law), epsilon


def prepare(
    spec: ReleaseSpec,
    epsilons: Sequence[Fraction],
    mechanisms: Sequence[str],
    stand_in: str | None,
    target: float | None,
    records: int | None,
    repeat: int | None,
    store: Path | None,
    units_by_rows: str | None = None,
    workloads: Sequence[str] = (),
    whole: bool = False,
) -> ForecastPlan:
    """A forecast that is fully checked before its first simulation.

    Args:
        epsilons: of releases; if empty the spec's, with `whole` half and twice of it, too.
        mechanisms: see `contenders.parse_contender`; if empty, all that serve the release.
        stand_in: see `stand_ins.read_stand_in`; None for what this release published before, else invented shapes.
        target: error of a cell whose epsilon is searched, in records; None for no search.
        records: total of each invented shape, which are taken then; None for what was published. If nothing was, only
            mechanisms are forecast whose errors follow from the law of the noise.
        repeat: number of simulated releases; None for `enough_repeats`.
        store: as on the command line; needed only for the account, a published stand-in and a quality table.
        units_by_rows: see `bounds.find_units`; None for the quality table of the stand-in, or of the release itself.
        workloads: see `workloads.parse_workloads`; a mechanism is recommended for each.
        whole: whether all mechanisms and all tables are shown, not those alone that a decision needs.

    Raises:
        DphistError: a mechanism does not serve the release at an epsilon, the stand-in has another shape, or the number
            of records is needed.
    """
    own, shape = _own_mechanism(spec), spec.domain.shape
    epsilons_asked = tuple(
        sorted(set(epsilons or (_default_epsilons(spec, own) if whole else [spec.epsilon])), reverse=True)
    )
    counted = spec.mechanism_epsilon / spec.epsilon
    served = [epsilon * counted for epsilon in epsilons_asked]
    contenders, left_out = choose_contenders(mechanisms, spec.domain, spec.sensitivity, served, first=own)
    if not (whole or mechanisms):
        contenders = tuple(contender for contender in contenders if contender == own or not _is_slow(contender, shape))
    public = folder_if_any(store)
    basis: str | None = None
    counts: Mapping[str, NDArray[np.int64]] = {}
    if stand_in is not None:
        basis, only = read_stand_in(stand_in, spec, public)
        counts = {"stand-in": only}
    elif records is None and (earlier := published_before(spec, public)) is not None:
        basis, counts = earlier.about, {"stand-in": earlier.counts}
    elif records is not None:
        basis, counts = f"{SHAPES} counts of {records:,} records, hence from-to", declared_shapes(shape, records)
    times = repeat or enough_repeats(spec.domain.cells, len(counts))
    questions_asked = [questions_of(workload, shape) for workload in dict.fromkeys(workloads)]
    forecaster = Forecaster(shape, spec.sensitivity, [*questions(shape), *questions_asked], counts, times, counted)
    by_counts: list[str] = []
    if not counts:
        by_counts = [one.written for one in contenders if not forecaster.by_law(one, epsilons_asked[0])]
        if by_counts and (mechanisms or own.written in by_counts):
            raise records_unknown(by_counts if mechanisms else [own.written])
        contenders = tuple(one for one in contenders if one.written not in by_counts)
    units = find_units(spec, units_by_rows, [*filter(None, [stand_in]), spec.release], public)
    runway = AccountRunway.of(spec, store)
    records_held = float(next(iter(counts.values())).sum()) if counts else None
    return ForecastPlan(
        *(spec, epsilons_asked, contenders, forecaster, basis, target, left_out, runway, units, records_held),
        by_counts=tuple(by_counts),
        periods=None if records_held is None else plan_periods(spec, counts, records_held, yearly_total(spec, store)),
        every=whole or bool(mechanisms),
        whole=whole,
        bounds_asked=units_by_rows is not None,
    )


def enough_repeats(cells: int, tables: int) -> int:
    """The default number of simulated releases of a table, 1 to 5.

    One is enough where there are several tables, whose errors differ more than releases do; one release of a large grid
    averages over many cells.
    """
    return 1 if tables > 1 else max(1, min(MOST_REPEATS, -(-ENOUGH_CELLS // cells)))


def _is_slow(contender: Contender, shape: tuple[int, ...]) -> bool:
    """Whether a mechanism searches long for its weights, which a release does once and a forecast many times."""
    lines = contender.mechanism == "workload" or (contender.mechanism == "multiscale" and len(shape) == 1)
    return lines and max(shape) > LONG_LINE


def _default_epsilons(spec: ReleaseSpec, own: Contender) -> list[Fraction]:
    """The spec's epsilon, and half and twice as much if its mechanism serves these."""
    epsilons = [spec.epsilon]
    for times in DEFAULT_FACTORS:
        try:
            own.check(spec.domain, spec.sensitivity, [times * spec.mechanism_epsilon])
        except DphistError:
            continue
        epsilons.append(times * spec.epsilon)
    return epsilons


def _own_mechanism(spec: ReleaseSpec) -> Contender:
    """The spec's mechanism with its settings."""
    plain = spec.plain_settings.items()
    settings = tuple((name, value if isinstance(value, tuple) else str(value)) for name, value in plain)
    settings_text = ",".join(f"{name}={value}" for name, value in spec.settings.items())
    return Contender(f"{spec.mechanism}:{settings_text}" if settings_text else spec.mechanism, spec.mechanism, settings)


def _name_for_readers(question: int | str) -> str:
    """What is asked, for readers."""
    if question == CELL:
        return "cells"
    return question if isinstance(question, str) else f"sums of {question:,} cells"


def _recommendation(one: Mapping[str, Any], by_law: bool) -> str:
    """Which mechanism is the best one for some questions, or that counts decide it, in a sentence.

    Args:
        by_law: whether all errors follow from the law of the noise, so that counts decide nothing.
    """
    title, error = f"{one['questions']}, epsilon {one['epsilon']:g}", short(one["rmse"])
    if not one["alike"]:
        return f"Least error of {title}: {one['mechanism']}, {error}."
    mechanisms = [wrap_name(name).replace("\n", "") for name in one["alike"][:BEST]]
    more = f" and {len(one['alike']) - BEST} more" if len(one["alike"]) > BEST else ""
    if by_law:
        return f"Least error of {title}: {one['mechanism']}, {error}; as small with {', '.join(mechanisms)}{more}."
    return (
        f"Least error of {title}: these counts do not tell which mechanism is the best. On them the error of "
        f"{one['mechanism']} is at most about {error}; that of {', '.join(mechanisms)}{more} may be as small, or "
        "smaller."
    )


def short(number: float, decimals: int | None = None) -> str:
    """The text of a number from 0 on, with two digits: 0.012, 1.2, 12, 120, 1.2k, 1.2M, 1.2e10; or with `decimals`."""
    if decimals is not None:
        return f"{number:,.{decimals}f}"
    if number == 0:
        return "0"
    rounded = float(f"{number:.2g}")
    for size, sign in ((1, ""), (1e3, "k"), (1e6, "M")):
        if rounded < 1000 * size:
            return f"{rounded / size:.7f}".rstrip("0").rstrip(".") + sign
    mantissa, _, exponent = f"{rounded:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def _between(low: float, high: float, decimals: int | None = None) -> str:
    least, most = short(low, decimals), short(high, decimals)
    return least if least == most else f"{least}–{most}"


def _errors(low: float, high: float, decimals: int | None) -> str:
    """A range of errors; without chosen decimals, errors below 0.01 records are all shown as <0.01."""
    if decimals is not None or low >= TINY:
        return _between(low, high, decimals)
    return f"<{_between(TINY, max(TINY, high))}"


def _percents(shares: Mapping[str, float]) -> str:
    """A range of shares in percent; - without any."""
    if not shares:
        return "-"
    low, high = (f"{100 * share:.0f}" for share in (min(shares.values()), max(shares.values())))
    return f"{low} %" if low == high else f"{low}–{high} %"


def _basis(by_law: bool) -> str:
    return "law" if by_law else "sim"
