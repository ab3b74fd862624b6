"""One comparison from what a person asks to what they are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.domain import Domain
from dphist_pipeline.errors import DphistError
from dphist_pipeline.evaluation.contenders import Contender, all_contenders, parse_contender
from dphist_pipeline.evaluation.measuring import Score, compare
from dphist_pipeline.evaluation.plots import draw
from dphist_pipeline.evaluation.public_counts import read_counts
from dphist_pipeline.evaluation.score_tables import Table, cells_of, tables
from dphist_pipeline.evaluation.workloads import Workload, parse_workloads

NOTE = "compared with exact counts: for public or synthetic data only; nothing was charged"
WIDTH = 80


class NobodyServes(DphistError):
    """No mechanism of the registry serves the counts at these epsilons."""

    def __init__(self, reasons: dict[str, str]) -> None:
        self.reasons = reasons
        first = next(iter(reasons.values()), "none is installed")
        super().__init__(f"no mechanism serves these counts at these epsilons; the first one says: {first}")


@dataclass(frozen=True, eq=False)
class Study:
    """What will be compared, checked.

    Attributes:
        data: as it was named.
        exact: its counts.
        epsilons, contenders, workloads, repeat, sensitivity: see `comparing.compare`.
        left_out: mechanisms that were not asked for by name and do not serve, and why.
    """

    data: str
    exact: NDArray[np.int64]
    epsilons: tuple[Fraction, ...]
    contenders: tuple[Contender, ...]
    workloads: tuple[Workload, ...]
    repeat: int
    sensitivity: int
    left_out: dict[str, str]

    @property
    def releases(self) -> int:
        """How many releases it takes."""
        return len(self.contenders) * len(self.epsilons) * self.repeat

    def about(self) -> str:
        """One line on the data and the work."""
        cells = cells_of(self.exact.shape)
        return f"{self.data}: {cells}, {int(self.exact.sum()):,} records; sensitivity {self.sensitivity}"

    def run(self, progress: Callable[[str], None] = lambda step: None) -> Finding:
        """Releases and measures."""
        scores = compare(
            self.exact, self.contenders, self.epsilons, self.repeat, self.workloads, self.sensitivity, progress
        )
        return Finding(self, tuple(scores))


@dataclass(frozen=True, eq=False)
class Finding:
    """The scores of a study, and the ways to show them."""

    study: Study
    scores: tuple[Score, ...]

    def facts(self) -> dict[str, Any]:
        """As plain JSON values."""
        study = self.study
        return {
            "note": NOTE,
            "data": study.data,
            "shape": list(study.exact.shape),
            "records": int(study.exact.sum()),
            "sensitivity": study.sensitivity,
            "repeats": study.repeat,
            "mechanisms": [
                {"name": one.written, "mechanism": one.mechanism, "settings": dict(one.settings)}
                for one in study.contenders
            ],
            "left_out": study.left_out,
            "workloads": [workload.about for workload in study.workloads],
            "scores": [score.facts() for score in self.scores],
        }

    def tables(self) -> list[Table]:
        """Tables for a terminal; see `tables.tables`."""
        return tables(self.scores, self.study.workloads)

    def notes(self) -> str:
        """What a reader of the tables must know."""
        repeats = f"Means of {self.study.repeat} releases ± one standard error, in per cent; * is best."
        lines = [repeats if self.study.repeat > 1 else "One release each, so no standard errors; * is best."]
        lines.append("MRE: |error| / max(count, 1). KL: cut off at 0, half a record in every cell.")
        lines += [fill(f"Left out: {why}", WIDTH, subsequent_indent="  ") for why in self.study.left_out.values()]
        return "\n".join(lines)

    def draw(self, folder: Path) -> list[Path]:
        """Pictures of the scores; see `plots.draw`."""
        return draw(self.scores, self.study.data, folder)


def prepare(
    data: str,
    epsilons: Sequence[Fraction],
    mechanisms: Sequence[str] = (),
    workloads: Sequence[str] = (),
    repeat: int = 20,
    sensitivity: int = 1,
    shape: tuple[int, ...] | None = None,
) -> Study:
    """A study of counts, checked whole before the first release.

    Args:
        data: see `public_counts.read_counts`; also `shape`.
        epsilons: equal ones are taken once.
        mechanisms: as `contenders.parse_contender` reads them; for none, all that serve the counts.
        workloads: as `asking.parse_workloads` reads them.
        repeat: releases of each.
        sensitivity: the most that one privacy unit moves the counts.
    """
    asked = [parse_contender(written) for written in dict.fromkeys(mechanisms)]
    exact, unique, left_out = read_counts(data, shape), tuple(dict.fromkeys(epsilons)), dict[str, str]()
    domain = Domain.from_shape(exact.shape)
    for contender in asked:
        contender.check(domain, sensitivity, unique)
    if not asked:
        asked, left_out = all_contenders(domain, sensitivity, unique)
    if not asked:
        raise NobodyServes(left_out)
    chosen = tuple(parse_workloads(workloads, exact.shape))
    return Study(data, exact, unique, tuple(asked), chosen, repeat, sensitivity, left_out)
