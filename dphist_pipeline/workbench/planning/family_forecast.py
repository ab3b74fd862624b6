"""Expected errors of a family of tables, from the law of its noise: exact, without a simulation, without a record."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dphist_pipeline.base.domain import Family
from dphist_pipeline.errors import Refused, did_you_mean, first_of
from dphist_pipeline.estimates.budget import LARGEST_EPSILON
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.mechanisms.tables import law_of, shares_for
from dphist_pipeline.releasing.known_tables import wholly_known
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.workbench.evaluation.score_tables import format_epsilon
from dphist_pipeline.workbench.planning.expected_quality import notes_on_quality
from dphist_pipeline.workbench.planning.expected_reliability import poor_tables

NOTE = "Standard errors of a cell in rows, by the law of the noise; no record was opened and nothing was charged"
MOST_NAMED = 10
_ROUNDS, _BISECTIONS = 4, 40
# The least weight of a table without a target, beside the largest: below it, its numbers would be of use to nobody.
LEAST_WEIGHT = 0.01


def unknown_table(problem: str) -> Refused:
    """A target for a table that the family does not have, or that no epsilon reaches."""
    return Refused(problem, code="unknown_table")


@dataclass(frozen=True)
class Enough:
    """The smallest epsilon that reaches targets.

    Attributes:
        epsilon: of a release, with what its quality table takes.
        weights: that reach the targets there, by table.
        errors: the standard error of a cell of every table at this epsilon and with these weights, in rows.
    """

    epsilon: Fraction
    weights: Mapping[str, float]
    errors: Mapping[str, float]


@dataclass(frozen=True)
class FamilyForecast:
    """What a family's tables cost and tell.

    Attributes:
        errors: by epsilon, largest first: the standard error of a cell of each table, in rows.
        records: expected in a period; None where nobody said it.
        enough: the smallest epsilon that reaches all targets, with the weights and errors there; None without targets.
        quality: what to know of the quality table, a sentence each.
        known: advice on tables that public figures tell already; empty without any.
    """

    errors: Mapping[Fraction, Mapping[str, float]]
    cells: Mapping[str, int]
    measured: int
    targets: Mapping[str, float]
    records: int | None
    enough: Enough | None
    quality: tuple[str, ...] = ()
    known: str = ""

    def facts(self) -> dict[str, Any]:
        """Everything as JSON values."""
        values: dict[str, Any] = {
            "tables": dict(self.cells),
            "measured": self.measured,
            "records": self.records,
            "errors": [
                {
                    "epsilon": str(epsilon),
                    "by_table": dict(by),
                    "poor_tables": None if self.records is None else poor_tables(self.cells, by, self.records),
                }
                for epsilon, by in self.errors.items()
            ],
        }
        values |= {"quality": list(self.quality)} if self.quality else {}
        values |= {"known": self.known} if self.known else {}
        if self.enough is not None:
            reached = {"weights": dict(self.enough.weights), "by_table": dict(self.enough.errors)}
            values |= {"targets": dict(self.targets), "enough": {"epsilon": str(self.enough.epsilon), **reached}}
        return values

    def table(self, decimals: int | None = None) -> tuple[str, list[str], list[tuple[str, ...]]]:
        """The errors, in three digits or so many decimals, with targets too: title, header, rows."""
        columns = {f"ε = {format_epsilon(epsilon)}": errors for epsilon, errors in self.errors.items()}
        if self.enough is not None:
            reached = f"ε = {format_epsilon(self.enough.epsilon)}, its weights"
            columns |= {"target": self.targets, reached: self.enough.errors}
        rows = [
            (name, f"{cells:,}", *(_rows(errors.get(name), decimals) for errors in columns.values()))
            for name, cells in self.cells.items()
        ]
        return "Standard error of a cell, in rows", ["table", "cells", *columns], rows

    def notes(self) -> list[str]:
        """What the targets need, and where the numbers come from."""
        notes = [
            *([self.known] if self.known else []),
            *self._poor_cells(),
            *self.quality,
            f"{self.measured:,} marginals are measured. {NOTE}.",
        ]
        if self.enough is not None:
            weights = ", ".join(
                f"{name}: {weight:g}" for name, weight in self.enough.weights.items() if abs(weight - 1) > 0.01
            )
            advice = f", with `weights: {{{weights}}}`" if weights else ""
            at = format_epsilon(self.enough.epsilon)
            notes = [f"All targets are reached from epsilon {at} on{advice}.", *self._untargeted(at), *notes]
        return notes

    def _poor_cells(self) -> list[str]:
        """In how many tables the average cell is poor, at each epsilon."""
        if self.records is None:
            return [
                "In which tables the average cell is poor, --records N tells: how many records a period will hold, an "
                "order of magnitude from public knowledge."
            ]
        notes = []
        for epsilon, errors in self.errors.items():
            poor = poor_tables(self.cells, errors, self.records)
            share = sum(self.cells[name] for name in poor) / sum(self.cells.values())
            which = f"{len(poor):,} of {len(self.cells):,} tables is poor ({share:.0%} of all cells are there)"
            notes.append(
                f"At epsilon {format_epsilon(epsilon)} the average cell of {which if poor else 'no table is poor'} if "
                f"a period holds {self.records:,} records."
            )
        return [*notes, "Where few cells hold most rows, most cells of other tables may be poor, too."]

    def _untargeted(self, at: str) -> list[str]:
        """A sentence on the errors of the tables that have no target."""
        assert self.enough is not None
        others = {name: error for name, error in self.enough.errors.items() if name not in self.targets}
        if not others:
            return []
        worst = max(others, key=others.__getitem__)
        tables = "One table has" if len(others) == 1 else f"{len(others):,} tables have"
        return [
            f"{tables} no target: at epsilon {at} with these weights, errors of up to {_rows(others[worst])} rows in a "
            f"cell ({worst}). `--target-error` is a target for all of them."
        ]


def forecast_family(
    spec: ReleaseSpec,
    epsilons: Sequence[Fraction],
    targets: Mapping[str, float],
    every: float | None,
    records: int | None,
) -> FamilyForecast:
    """The errors of every table, and the smallest epsilon that reaches wanted ones.

    Args:
        epsilons: of releases; if empty half, once and twice the spec's.
        targets: wanted standard errors of a cell by table, in rows, beside and before those of the spec.
        every: wanted for all other tables; None if they do not matter.

    Raises:
        Refused: a target names no table, or is not reached by the largest epsilon.
    """
    family = spec.family
    assert family is not None
    targets = {**(spec.tables.targets if spec.tables is not None else {}), **targets}
    for name in targets:
        if name not in family.names:
            raise unknown_table(f"the family has no table {name[:60]!r}. {did_you_mean(name, family.names)}")
    target_errors = {name: every for name in family.names if every is not None} | dict(targets)
    epsilons_shown = sorted(set(epsilons) or {spec.epsilon * factor for factor in (2, 1, Fraction(1, 2))}, reverse=True)
    sensitivity, known = _larger_sensitivity(spec), dict.fromkeys(wholly_known(spec), 0.0)
    target_errors = {name: error for name, error in target_errors.items() if name not in known}
    enough = _enough(family, sensitivity, target_errors) if target_errors else None
    if enough is not None:
        enough = replace(enough, errors={**enough.errors, **known})
    return FamilyForecast(
        {epsilon: _errors(family, sensitivity, epsilon) | known for epsilon in epsilons_shown},
        {name: family.grid(axes).cells for name, axes in zip(family.names, family.tables, strict=True)},
        len(shares_for(family).marginals),
        target_errors,
        records,
        enough,
        tuple(notes_on_quality(spec, records)),
        advice_on_known(spec),
    )


def errors_of_tables(spec: ReleaseSpec) -> dict[str, float]:
    """The standard error of a cell of each table at the spec's epsilon, in rows; 0 where all cells are known."""
    assert spec.family is not None
    known = dict.fromkeys(wholly_known(spec), 0.0)
    return _errors(spec.family, _larger_sensitivity(spec), spec.epsilon) | known


def advice_on_known(spec: ReleaseSpec) -> str:
    """To leave tables out that public figures tell already; empty where there are none."""
    names = wholly_known(spec)
    if not names:
        return ""
    return (
        f"Every cell of {first_of(names, MOST_NAMED)} is known from public figures: the error is 0. Known tables need "
        "not stand in `list`: what is measured serves all tables there, so without them others may get more of "
        "epsilon, and tables that have their axes tell their counts as known, too."
    )


def _rows(error: float | None, decimals: int | None = None) -> str:
    """An error with so many decimals, else with three digits, and no exponent."""
    if error is None:
        return ""
    return f"{float(f'{error:.3g}'):,.12g}" if decimals is None else f"{error:,.{decimals}f}"


def _larger_sensitivity(spec: ReleaseSpec) -> Fraction:
    """The sensitivity, larger by what a quality table takes of epsilon: that is not the mechanism's."""
    return spec.sensitivity * spec.epsilon / spec.mechanism_epsilon


def _errors(family: Family, sensitivity: Fraction, epsilon: Fraction) -> dict[str, float]:
    """The standard error of a cell of each table; at one of several levels, the root of the mean variance."""
    shares = shares_for(family)
    law = law_of(
        family,
        {
            axes: noise_law(sensitivity / (epsilon * part)).variance
            for axes, part in zip(shares.marginals, shares.parts, strict=True)
        },
    )
    return {
        name: math.sqrt(law.variance_of_cell(frozenset(axes)))
        for name, axes in zip(family.names, family.tables, strict=True)
    }


def _enough(family: Family, sensitivity: Fraction, target_errors: Mapping[str, float]) -> Enough:
    """The smallest epsilon that reaches wanted errors, in steps of a thousandth, and its weights.

    Weights begin at one over the squared target, and grow where a table is farther from its target than others. They
    have two digits, and no table's is less than a hundredth of the largest.
    """
    weights = {
        name: target_errors.get(name, math.inf) ** -2 or LEAST_WEIGHT * min(target_errors.values()) ** -2
        for name in family.names
    }
    best: Enough | None = None
    for _ in range(_ROUNDS):
        most = max(weights.values())
        # As a person would write them into the spec.
        weights = {name: float(f"{max(LEAST_WEIGHT, weight / most):.2g}") for name, weight in weights.items()}
        tried = replace(family, weights=tuple(weights.values()))
        epsilon = _smallest(tried, sensitivity, target_errors)
        errors = _errors(tried, sensitivity, epsilon or LARGEST_EPSILON)
        if epsilon is not None and (best is None or epsilon < best.epsilon):
            best = Enough(epsilon, dict(weights), errors)
        weights = {
            name: weight * (errors[name] / target_errors.get(name, math.inf) or 1) for name, weight in weights.items()
        }
    if best is None:
        raise unknown_table(f"no epsilon up to {LARGEST_EPSILON} reaches all targets; ask for larger errors")
    return best


def _smallest(family: Family, sensitivity: Fraction, target_errors: Mapping[str, float]) -> Fraction | None:
    """The smallest epsilon that reaches wanted errors, by bisection; None if the largest one does not."""

    def reaches(epsilon: Fraction) -> bool:
        errors = _errors(family, sensitivity, epsilon)
        return all(errors[name] <= error for name, error in target_errors.items())

    if not reaches(LARGEST_EPSILON):
        return None
    low, high = Fraction(0), LARGEST_EPSILON
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    step = Fraction(1, 10 ** max(3, 3 - math.floor(math.log10(float(high)))))
    return -(-high // step) * step
