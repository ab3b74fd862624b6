"""Claims of papers with their verdicts, as Markdown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dphist_pipeline.workbench.evaluation.measuring import MeasureResult


@dataclass(frozen=True)
class Verdict:
    """In how many settings a claim holds, fails, lies within noise, or turns with what the paper does not tell."""

    holds: int = 0
    fails: int = 0
    open: int = 0
    turns: int = 0

    @classmethod
    def over(cls, settings: Iterable[bool | None]) -> Verdict:
        """From one answer a setting."""
        answers = list(settings)
        return cls(answers.count(True), answers.count(False), answers.count(None))

    @classmethod
    def agreeing(cls, settings: Iterable[Collection[bool | None]]) -> Verdict:
        """From the answers at each value of a setting that the paper does not tell: it holds where all agree."""
        found = [set(answers) for answers in settings]
        turns = sum({True, False} <= answers for answers in found)
        holds, fails = (found.count({answer}) for answer in (True, False))
        return cls(holds, fails, len(found) - holds - fails - turns, turns)

    def __str__(self) -> str:
        settings = self.holds + self.fails + self.open + self.turns
        if settings == 0:
            return "–"
        word = "in part"
        if self.holds == settings:
            word = "**holds**"
        elif self.holds == 0:
            word = "turns" if self.turns else "**fails**" if self.fails else "open"
        noise = f", {self.open} within noise" if self.open else ""
        turns = f", {self.turns} turning with what is not told" if self.turns else ""
        return f"{word}: {self.holds} of {settings}{noise}{turns}"


@dataclass(frozen=True)
class Claim:
    """What a paper says, and whether it holds as printed and once the algorithm is private.

    Attributes:
        where: as the paper calls it, or a part of it: `Figure 9 (a)`. In parentheses: beside that figure or table, and
            not in the paper, so that the claim does not decide what becomes of it.
        printed: how the printed form does, where that is another and not private; words where it was not measured
            apart, None where there is no other form.
        figures: what was measured of the private form, in a few words.
        printed_figures: what was measured of the printed form.
        unjudged: the reason why the claim cannot be judged, such as a setting that the paper does not tell. What was
            found at settings of ours is told beside it, and does not decide what becomes of the figure or table.
    """

    where: str
    says: str
    printed: Verdict | str | None
    private: Verdict
    note: str = ""
    figures: str = ""
    printed_figures: str = ""
    unjudged: str = ""


def in_words(verdict: str, unjudged: str) -> str:
    """A verdict, or why there is none and what was found all the same."""
    if not unjudged:
        return verdict
    return f"cannot be judged: {unjudged}" + (f"; here {verdict}" if verdict != str(Verdict()) else "")


@dataclass(frozen=True)
class Section:
    """A paper's part of the report.

    Attributes:
        contenders: who takes part, each with every share and setting.
        data: what was counted, in a few words.
        drawn: numbers that a picture of the documentation draws.
        few: what `--quick` leaves out, in a few words.
    """

    paper: str
    setting: str
    claims: Sequence[Claim]
    tables: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]] = ()
    scores: dict[str, list[MeasureResult]] = field(default_factory=dict)
    series: dict[str, Any] = field(default_factory=dict)  # what else a figure shows, as JSON values
    contenders: dict[str, str] = field(default_factory=dict)
    data: str = ""
    drawn: dict[str, Any] = field(default_factory=dict)
    few: str = "nothing"

    def markdown(self) -> str:
        """The section."""
        lines = [f"## {self.paper}", "", self.setting, ""]
        rows = [
            [
                claim.where,
                claim.says,
                in_words(str(claim.printed), claim.unjudged) if claim.printed else "no other form",
                in_words(str(claim.private), claim.unjudged),
            ]
            for claim in self.claims
        ]
        lines += table(["where", "claim", "as printed (not private)", "private"], rows)
        lines += [f"- {claim.where}: {claim.note}" for claim in self.claims if claim.note]
        if self.contenders:
            lines += ["", "### Who takes part", "", *table(["who", "shares and settings"], self.contenders.items())]
        for title, head, body in self.tables:
            lines += ["", f"### {title}", "", *table(head, body)]
        return "\n".join(lines) + "\n"

    def facts(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "paper": self.paper,
            "setting": self.setting,
            "claims": [asdict(claim) for claim in self.claims],
            "contenders": self.contenders,
            "scores": {name: [self._row(score) for score in found] for name, found in self.scores.items()},
            "series": self.series,
        }

    def kept(self) -> dict[str, Any]:
        """What the documentation keeps of it: claims, tables, and who took part."""
        return {
            **{name: value for name, value in self.facts().items() if name not in ("scores", "series")},
            "data": self.data,
            "tables": [{"title": title, "head": head, "rows": rows} for title, head, rows in self.tables],
            "drawn": self.drawn,
        }

    def _row(self, score: MeasureResult) -> dict[str, Any]:
        return {**score.facts(), "settings": self.contenders.get(score.mechanism, "")}


def rewrite(path: Path, text: str) -> None:
    """Writes a file beside it first, so that who is interrupted leaves the old one or the new one whole.

    Args:
        path: of the file.
        text: all that it is to hold.
    """
    beside = path.with_suffix(".new")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table, and an empty line."""
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows), ""]


def shown(score: MeasureResult | None) -> str:
    """A mean with its standard error."""
    if score is None:
        return "–"
    error = "" if score.standard_error is None else f" ± {score.standard_error:.2g}"
    return f"{score.mean:.3g}{error}"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
