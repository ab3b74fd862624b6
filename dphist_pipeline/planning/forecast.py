"""One forecast from what a person asks to what they are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from dphist_pipeline.errors import DphistError
from dphist_pipeline.estimates.budget import LARGEST_EPSILON
from dphist_pipeline.evaluation.contenders import Contender, all_contenders, parse_contender
from dphist_pipeline.evaluation.score_tables import Table, cells_of, folded, written_epsilon
from dphist_pipeline.planning.account_runway import AccountRunway, account_runway
from dphist_pipeline.planning.expected_errors import CELL, Expected, Forecaster, questions
from dphist_pipeline.planning.least_epsilon import LeastEpsilon, least_epsilon
from dphist_pipeline.planning.stand_ins import declared_shapes, read_stand_in
from dphist_pipeline.releasing.store import Store, store_folder
from dphist_pipeline.spec.model import ReleaseSpec

AROUND = (Fraction(2), Fraction(1), Fraction(1, 2))
NOTE = "from the spec alone: no record was opened and nothing was charged"
SHAPES = "flat, skewed and sparse"
TINY = 0.01
MOST_REPEATS, ENOUGH_CELLS = 5, 20_000


@dataclass(frozen=True, eq=False)
class Study:
    """What will be forecast, checked.

    Attributes:
        spec: whose release it is.
        epsilons: largest first.
        contenders: the spec's own mechanism first.
        forecaster: the grid and the counts that may be seen.
        basis: what the counts are, in words.
        target: of the error of a cell, in records.
        left_out: mechanisms that do not serve, and why.
        lasts: what the account still pays for.
    """

    spec: ReleaseSpec
    epsilons: tuple[Fraction, ...]
    contenders: tuple[Contender, ...]
    forecaster: Forecaster
    basis: str
    target: float | None
    left_out: dict[str, str]
    lasts: AccountRunway

    @property
    def steps(self) -> int:
        """How many times `progress` will be told something."""
        return len(self.contenders) * (len(self.epsilons) + (self.target is not None))

    def run(self, progress: Callable[[str], None] = lambda step: None) -> Forecast:
        """Works everything out."""
        found = [
            self.forecaster.expected(contender, epsilon, progress)
            for epsilon in self.epsilons
            for contender in self.contenders
        ]
        costs = []
        if self.target is not None:
            costs = [least_epsilon(self.forecaster, contender, self.target, progress) for contender in self.contenders]
        return Forecast(self, tuple(found), tuple(costs))


@dataclass(frozen=True, eq=False)
class Forecast:
    """What a study found, and the ways to show it."""

    study: Study
    found: tuple[Expected, ...]
    costs: tuple[LeastEpsilon, ...]

    def facts(self) -> dict[str, Any]:
        """As JSON values."""
        study, spec = self.study, self.study.spec
        return {
            "note": NOTE,
            "release": spec.release,
            "shape": list(spec.domain.shape),
            "cells": spec.domain.cells,
            "sensitivity": spec.sensitivity,
            "epsilon": str(spec.epsilon),
            "measure": "root mean squared error in records, of (estimate - bounded count)",
            "simulated_on": study.basis,
            "repeats": study.forecaster.repeat,
            "expected": [one.facts() for one in self.found],
            "target_error": study.target,
            "needed": [one.facts() for one in self.costs],
            "left_out": study.left_out,
            "account": study.lasts.facts(),
        }

    def opening(self) -> list[str]:
        """What is forecast, in a few lines."""
        spec = self.study.spec
        cells = cells_of(spec.domain.shape)
        return [
            f"Forecast of {spec.release}, {NOTE}.",
            f"{cells}; one unit moves the counts by at most {spec.sensitivity:,}. Errors are root mean squared errors,",
            "in records, of what is published against the counts of the rows that are kept.",
        ]

    def tables(self) -> list[Table]:
        """For each epsilon a table of errors; then what the target costs."""
        sizes = [question.cells for question in self.study.forecaster.asked]
        whole = self.study.spec.domain.cells
        heads = ["all cells" if size == whole else f"{size:,}" for size in sizes]
        tables: list[Table] = []
        for epsilon in self.study.epsilons:
            rows = [self._row(one, sizes) for one in self.found if one.epsilon == epsilon]
            mine = " (the spec's)" if epsilon == self.study.spec.epsilon else ""
            title = f"epsilon {written_epsilon(epsilon)}{mine}: expected error of 1 cell, and of a sum of so many"
            tables.append((title, ["mechanism", "by", "1 cell", *heads, "95 % ±"], rows))
        if self.costs:
            title = f"the least epsilon for a root mean squared error of at most {self.study.target:g} in a cell"
            tables.append((title, ["mechanism", "by", "epsilon"], [self._cost(one) for one in self.costs]))
        return tables

    def notes(self) -> list[str]:
        """What a reader of the tables must know."""
        study, lines = self.study, list[str]()
        lines.append("law: exact for the noise, the only error there is. 95 % ±: how far the interval reaches that is")
        lines.append("published for a cell; - where there is none. A sum of cells is a box, or a range, of so many.")
        if not all(one.by_law for one in self.found):
            lines.append(f"sim: simulated on {study.basis}, {_times(study.forecaster.repeat)} each.")
        if study.left_out:
            lines.append(f"Do not serve this release: {', '.join(study.left_out)} (dphist mechanisms NAME).")
        lines.append(f"Account {study.lasts.account}: {study.lasts.says.rstrip('.')}.")
        return lines

    def _row(self, one: Expected, sizes: Sequence[int]) -> tuple[str, ...]:
        errors = (_errors(*one.between(size)) for size in (CELL, *sizes))
        width = "-" if one.half_width is None else short(one.half_width)
        return folded(one.mechanism), _basis(one.by_law), *errors, width

    def _cost(self, one: LeastEpsilon) -> tuple[str, str, str]:
        found = [epsilon for epsilon in one.epsilons.values() if epsilon is not None]
        if len(found) < len(one.epsilons):
            missing = " on some shapes" if found else ""
            epsilon = f"none up to {LARGEST_EPSILON}{missing}"
        else:
            epsilon = _between(float(min(found)), float(max(found)))
        return folded(one.mechanism), _basis(one.by_law), epsilon


def prepare(
    spec: ReleaseSpec,
    epsilons: Sequence[Fraction],
    mechanisms: Sequence[str],
    stand_in: str | None,
    target: float | None,
    records: int,
    repeat: int | None,
    store: Path | None,
) -> Study:
    """A forecast, checked whole before the first simulation.

    Args:
        spec: checked.
        epsilons: half, once and twice the spec's when empty.
        mechanisms: as a person writes them; all that serve when empty.
        stand_in: see `stand_ins.read_stand_in`; declared shapes without one.
        target: of the error of a cell, in records.
        records: of the declared shapes.
        repeat: simulated releases of each; as many as `enough_repeats` says when left out.
        store: as on the command line; needed for the account and for a published stand-in only.

    Raises:
        DphistError: for a mechanism or an epsilon that does not serve, and for a stand-in of another shape.
    """
    chosen = tuple(sorted(set(epsilons) or set(_around(spec)), reverse=True))
    contenders, left_out = _contenders(spec, chosen, mechanisms)
    if stand_in is None:
        basis, counts = (
            f"{SHAPES} counts of {records:,} records, hence from-to",
            declared_shapes(spec.domain.shape, records),
        )
    else:
        basis, only = read_stand_in(stand_in, spec, _public(spec, store))
        counts = {"stand-in": only}
    times = repeat or enough_repeats(spec.domain.cells)
    forecaster = Forecaster(spec.domain.shape, spec.sensitivity, questions(spec.domain.shape), counts, times)
    return Study(spec, chosen, contenders, forecaster, basis, target, left_out, account_runway(spec, store))


def enough_repeats(cells: int) -> int:
    """Fewer for large grids, whose many cells average the luck of a release."""
    return max(1, min(MOST_REPEATS, -(-ENOUGH_CELLS // cells)))


def _around(spec: ReleaseSpec) -> list[Fraction]:
    """The spec's epsilon, and half and twice as much where its mechanism serves those."""
    own, found = _own(spec), [spec.epsilon]
    for times in AROUND:
        try:
            own.check(spec.domain, spec.sensitivity, [times * spec.epsilon])
        except DphistError:
            continue
        found.append(times * spec.epsilon)
    return found


def _contenders(
    spec: ReleaseSpec, epsilons: Sequence[Fraction], written: Sequence[str]
) -> tuple[tuple[Contender, ...], dict[str, str]]:
    if written:
        asked = tuple(map(parse_contender, dict.fromkeys(written)))
        for contender in asked:
            contender.check(spec.domain, spec.sensitivity, epsilons)
        return asked, {}
    own = _own(spec)
    own.check(spec.domain, spec.sensitivity, epsilons)
    others, left_out = all_contenders(spec.domain, spec.sensitivity, epsilons)
    return (own, *(other for other in others if other != own)), left_out


def _own(spec: ReleaseSpec) -> Contender:
    """The spec's mechanism with its settings."""
    settings = tuple((name, str(value)) for name, value in spec.settings.items())
    named = ",".join(f"{name}={value}" for name, value in settings)
    return Contender(f"{spec.mechanism}:{named}" if named else spec.mechanism, spec.mechanism, settings)


def _public(spec: ReleaseSpec, store: Path | None) -> Path | None:
    try:
        return Store.open(store_folder(store)).public
    except DphistError:
        return None


def short(number: float) -> str:
    """Two digits: 0.012, 1.2, 12, 120, 1.2k, 12k, 1.2M, and 1.2e10 from there on."""
    if number == 0:
        return "0"
    rounded = float(f"{number:.2g}")
    for size, sign in ((1, ""), (1e3, "k"), (1e6, "M")):
        if rounded < 1000 * size:
            return f"{rounded / size:.7f}".rstrip("0").rstrip(".") + sign
    mantissa, _, exponent = f"{rounded:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def _between(low: float, high: float) -> str:
    return short(low) if short(low) == short(high) else f"{short(low)}–{short(high)}"


def _errors(low: float, high: float) -> str:
    """Errors far below one record are nothing to tell apart."""
    return _between(low, high) if low >= TINY else f"<{_between(TINY, max(TINY, high))}"


def _times(repeat: int) -> str:
    return "1 release" if repeat == 1 else f"{repeat} releases"


def _basis(by_law: bool) -> str:
    return "law" if by_law else "sim"
