"""Prepares and runs a comparison of mechanisms, and shows its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.errors import Refused
from dphist_pipeline.workbench.evaluation._plots import draw
from dphist_pipeline.workbench.evaluation._recommendation import (
    SIMPLEST,
    Recommendation,
    recommendations,
    same_as_geometric,
)
from dphist_pipeline.workbench.evaluation.contenders import Contender, choose_contenders
from dphist_pipeline.workbench.evaluation.measuring import MeasureResult, compare, compare_office_methods
from dphist_pipeline.workbench.evaluation.office_methods import (
    MARK,
    WITHOUT_EPSILON,
    OfficeMethod,
    parse_office_methods,
)
from dphist_pipeline.workbench.evaluation.public_counts import Numbers, read_counts
from dphist_pipeline.workbench.evaluation.score_tables import Table, format_epsilon, format_grid, tables
from dphist_pipeline.workbench.evaluation.workloads import EvaluationWorkload, parse_workloads

NOTE = "compared with exact counts: for public or synthetic data only; nothing was charged"
PUBLISHED = "compared with what was published: its own noise counts as if it were true; nothing was charged"
WIDTH = 80


def no_mechanism_serves(reasons: dict[str, str]) -> Refused:
    """No mechanism of the registry serves these counts at these epsilons."""
    first = next(iter(reasons.values()), "none is installed")
    return Refused(
        f"no mechanism serves these counts at these epsilons; the first one says: {first}", code="no_mechanism_serves"
    )


@dataclass(frozen=True, eq=False)
class ComparisonPlan:
    """A comparison that is checked but has not run.

    Attributes:
        data: name of the counts, as the user wrote it.
        exact: the counts, int64, any shape.
        epsilons: each release spends one of them.
        repeat: number of releases for each mechanism and epsilon.
        sensitivity: largest change of the counts by one privacy unit, in records.
        left_out: the reason by name of each mechanism that does not serve the counts.
        note: where the counts are from, and that nothing was charged.
        office_methods: methods without ε by name, measured beside the mechanisms.
    """

    data: str
    exact: NDArray[np.int64]
    epsilons: tuple[Fraction, ...]
    contenders: tuple[Contender, ...]
    workloads: tuple[EvaluationWorkload, ...]
    repeat: int
    sensitivity: int
    left_out: dict[str, str]
    note: str = NOTE
    office_methods: Mapping[str, OfficeMethod] = field(default_factory=dict)

    @property
    def releases(self) -> int:
        """Number of releases in the comparison."""
        return (len(self.contenders) * len(self.epsilons) + len(self.office_methods)) * self.repeat

    def about(self) -> str:
        """One line about the data."""
        grid = format_grid(self.exact.shape)
        return f"{self.data}: {grid}, {int(self.exact.sum()):,} records; sensitivity {self.sensitivity}"

    def run(self, progress: Callable[[str], None] = lambda step: None) -> Comparison:
        """Makes and measures all releases."""
        scores = compare(
            self.exact, self.contenders, self.epsilons, self.repeat, self.workloads, self.sensitivity, progress
        )
        scores += compare_office_methods(
            self.exact, self.office_methods, self.epsilons, self.repeat, self.workloads, progress
        )
        return Comparison(self, tuple(scores))


@dataclass(frozen=True, eq=False)
class Comparison:
    """The scores of a comparison."""

    plan: ComparisonPlan
    scores: tuple[MeasureResult, ...]

    def facts(self) -> dict[str, Any]:
        """The comparison as JSON values."""
        plan = self.plan
        facts = [score.facts() for score in self.scores if score.mechanism not in plan.office_methods]
        # One score of a method without ε stands for all epsilons.
        facts += [
            score.facts() | {"epsilon": None, "epsilon_exact": None}
            for score in self.scores
            if score.mechanism in plan.office_methods and score.epsilon == plan.epsilons[0]
        ]
        return {
            "note": plan.note,
            "data": plan.data,
            "shape": list(plan.exact.shape),
            "records": int(plan.exact.sum()),
            "sensitivity": plan.sensitivity,
            "repeats": plan.repeat,
            "mechanisms": [
                {"name": contender.written, "mechanism": contender.mechanism, "settings": dict(contender.settings)}
                for contender in plan.contenders
            ],
            "left_out": plan.left_out,
            "workloads": [workload.about for workload in plan.workloads],
            "scores": facts,
            "recommended": [recommendation.facts() for recommendation in self.recommended()],
        } | ({"without_epsilon": self._without_epsilon()} if plan.office_methods else {})

    def recommended(self) -> list[Recommendation]:
        """A mechanism for each kind of question and epsilon; see `recommendations`."""
        promising = [score for score in self.scores if score.mechanism not in self.plan.office_methods]
        return recommendations(promising, self.plan.workloads)

    def _without_epsilon(self) -> dict[str, str]:
        """What each method without ε does not promise, by name."""
        return {name: f"{WITHOUT_EPSILON} {method.against}" for name, method in self.plan.office_methods.items()}

    def tables(self, decimals: int | None = None) -> list[Table]:
        """Tables for a terminal; see `score_tables.tables`."""
        return tables(self.scores, self.plan.workloads, decimals)

    def notes(self) -> list[str]:
        """Lines that explain the tables."""
        means = f"Means of {self.plan.repeat} releases ± one standard error, in per cent; * is better than all others."
        lines = [_wrap(means) if self.plan.repeat > 1 else "One release each: no standard errors, so no star."]
        lines.append("MRE: |error| / max(count, 1). KL: cut off at 0, half a record in every cell.")
        within = (
            "95 % within: the error that no question of 95 % of the releases exceeds ((ε, δ)-usefulness at δ = 0.05)."
        )
        lines.append(_wrap(within))
        lines += [_wrap(f"{name}: {promise}.") for name, promise in self._without_epsilon().items()]
        if self.plan.office_methods:
            lines.append("Rows with (no ε) are the same in every table, and are never recommended.")
        lines += [_wrap(f"Left out: {reason}") for reason in self.plan.left_out.values()]
        return [*lines, *self._advice()]

    def _advice(self) -> list[str]:
        """The recommendations by epsilon, and which mechanisms fell back to `geometric`."""
        lines = list[str]()
        for epsilon in self.plan.epsilons if len(self.plan.contenders) > 1 else ():
            scores = [score for score in self.scores if score.epsilon == epsilon]
            lines += ["", f"Recommended at epsilon {format_epsilon(epsilon)}"]
            lines += [
                _wrap(f"  {recommendation.sentence()}")
                for recommendation in self.recommended()
                if recommendation.epsilon == epsilon
            ]
            if same := ", ".join(sorted(same_as_geometric(scores))):
                lines.append(_wrap(f"  Here {same} publishes the noisy cells themselves, as {SIMPLEST} does."))
        return lines

    def draw(self, folder: Path) -> list[Path]:
        """Draws pictures of the scores; see `_plots.draw`."""
        return draw(self.scores, self.plan.data, folder, noisy=self.plan.note == PUBLISHED)


def _wrap(text: str) -> str:
    return fill(text, WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def prepare(
    data: str,
    epsilons: Sequence[Fraction],
    mechanisms: Sequence[str] = (),
    workloads: Sequence[str] = (),
    repeat: int = 20,
    sensitivity: int = 1,
    shape: tuple[int, ...] | None = None,
    published: Numbers | None = None,
    office_methods: Sequence[str] = (),
) -> ComparisonPlan:
    """A comparison that is fully checked before its first release.

    Args:
        data: see `public_counts.read_counts`; with `published`, a description of it.
        epsilons: of the releases; each is taken once.
        mechanisms: see `contenders.parse_contender`; if empty, all that serve the counts.
        repeat: number of releases for each mechanism and epsilon.
        sensitivity: largest change of the counts by one privacy unit, in records.
        published: estimates of an earlier period in the place of counts, int64; None to read the counts.
        office_methods: see `office_methods.parse_office_methods`.
    """
    beside = {f"{name}{MARK}": method for name, method in parse_office_methods(office_methods).items()}
    exact, unique = read_counts(data, shape) if published is None else published, tuple(dict.fromkeys(epsilons))
    contenders, left_out = choose_contenders(mechanisms, Domain.from_shape(exact.shape), sensitivity, unique)
    if not contenders:
        raise no_mechanism_serves(left_out)
    questions = tuple(parse_workloads(workloads, exact.shape))
    note = NOTE if published is None else PUBLISHED
    return ComparisonPlan(data, exact, unique, contenders, questions, repeat, sensitivity, left_out, note, beside)
