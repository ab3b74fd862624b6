"""Claims of papers with their verdicts, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from dphist_pipeline.evaluation.measuring import Score


@dataclass(frozen=True)
class Verdict:
    """In how many settings a claim holds, fails, or cannot be told from noise."""

    holds: int = 0
    fails: int = 0
    open: int = 0

    @classmethod
    def over(cls, settings: Iterable[bool | None]) -> Verdict:
        """From one answer a setting."""
        answers = list(settings)
        return cls(answers.count(True), answers.count(False), answers.count(None))

    def __str__(self) -> str:
        settings = self.holds + self.fails + self.open
        if settings == 0:
            return "–"
        word = "in part"
        if self.holds == settings:
            word = "**holds**"
        elif self.holds == 0:
            word = "**fails**" if self.fails else "open"
        return f"{word}: {self.holds} of {settings}" + (f", {self.open} within noise" if self.open else "")


@dataclass(frozen=True)
class Claim:
    """What a paper says, and whether it holds as printed and once the algorithm is private.

    Attributes:
        printed: how the printed form does; words where it was not measured apart, None where it is private.
    """

    where: str
    says: str
    printed: Verdict | str | None
    private: Verdict
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A paper's part of the report."""

    paper: str
    setting: str
    claims: Sequence[Claim]
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = ()
    scores: dict[str, list[Score]] = field(default_factory=dict)
    series: dict[str, Any] = field(default_factory=dict)  # what else a figure shows, as JSON values

    def markdown(self) -> str:
        """The section."""
        lines = [f"## {self.paper}", "", self.setting, ""]
        rows = [
            [claim.where, claim.says, str(claim.printed) if claim.printed else "sound as printed", str(claim.private)]
            for claim in self.claims
        ]
        lines += table(["where", "claim", "as printed (not private)", "private"], rows)
        lines += [f"- {claim.where}: {claim.note}" for claim in self.claims if claim.note]
        for title, head, body in self.tables:
            lines += ["", f"### {title}", "", *table(head, body)]
        return "\n".join(lines) + "\n"

    def facts(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "paper": self.paper,
            "setting": self.setting,
            "claims": [asdict(claim) for claim in self.claims],
            "scores": {name: [score.facts() for score in found] for name, found in self.scores.items()},
            "series": self.series,
        }


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table, and an empty line."""
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows), ""]


def shown(score: Score | None) -> str:
    """A mean with its standard error."""
    if score is None:
        return "–"
    error = "" if score.standard_error is None else f" ± {score.standard_error:.2g}"
    return f"{score.mean:.3g}{error}"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
