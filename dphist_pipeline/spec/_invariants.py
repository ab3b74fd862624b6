"""Public figures that whole tables meet exactly: a file below a folder that an operator declared public.

A figure is a row of the file: the `level` that it is about (an axis of categories, or a level of one), the `value`
there, and how many `persons` or `rows` there are; the name of that column says what is counted. Every value of a level
has a figure. Several levels must be nested, and their figures must add up.

Messages tell a mistake by its rule and line. They hold nothing of the file, which may be another one by mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationInfo

from dphist_pipeline.base.domain import Axis, texts_at
from dphist_pipeline.spec._code_lists import Row, read_rows
from dphist_pipeline.spec.mistakes import MistakesError, echo, one_line

LARGEST = 10**12
COUNTS: tuple[Literal["persons", "rows"], ...] = ("persons", "rows")


class FiguresSpec(BaseModel):
    """The content of a file of figures: what they count, and line, level, value and figure of each row."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    counts: Literal["persons", "rows"]
    figures: tuple[tuple[int, str, str, int], ...]

    def as_json(self) -> dict[str, object]:
        """All fields as JSON values, without lines."""
        return {"counts": self.counts, "figures": [list(figure[1:]) for figure in self.figures]}

    def of(self, level: str) -> dict[str, int]:
        """The figures of a level, by value."""
        return {value: figure for _, name, value, figure in self.figures if name == level}

    def finest_level(self, axes: Sequence[Axis]) -> str:
        """The finest level that has figures.

        Raises:
            MistakesError: levels of several axes or of none, values without figures, contradictory figures.
        """
        names = list(dict.fromkeys(level for _, level, _, _ in self.figures))
        levels = {level for level in names if any(texts_at(axis, level) for axis in axes)}
        for line, level, _, _ in self.figures:
            if level not in levels:
                raise MistakesError(
                    [((), f"line {line}: its level is no axis of categories, or level of one, in `tables`")]
                )
        holding = [axis for axis in axes if all(texts_at(axis, level) for level in names)]
        if not holding:
            raise MistakesError([((), "holds levels of several axes; give figures for the levels of one axis only")])
        texts = {level: texts_at(holding[0], level) for level in names}
        for level in names:
            _check_values(self, level, set(texts[level]))
        finest = max(names, key=lambda level: len(set(texts[level])))
        for level in names:
            _check_sums(self, finest, level, dict(zip(texts[finest], texts[level], strict=True)), texts)
        return finest


def read_figures(path: object, info: ValidationInfo) -> FiguresSpec:
    """Reads the file of figures at a path, by the rules of code lists."""
    if not isinstance(path, str) or not path.strip():
        raise MistakesError([((), f"must be the path of a file such as codes/figures.csv, not {echo(path)}")])
    context = info.context or {}
    base, decided = context.get("base") or Path(), context.get("code_lists")
    name = one_line(str(Path(path)), 300)
    try:
        counts, rows = COUNTS[0], read_rows(base / path, name, decided, ["level", "value", COUNTS[0]])
    except MistakesError as mistakes:
        if "column 'persons' is not there" not in str(mistakes.found):
            raise
        counts, rows = COUNTS[1], read_rows(base / path, name, decided, ["level", "value", COUNTS[1]])
    return FiguresSpec(counts=counts, figures=tuple(_figure(row, counts) for row in rows))


def _figure(row: Row, counts: str) -> tuple[int, str, str, int]:
    line, fields = row
    text = fields[counts]
    if not (text.isascii() and text.isdecimal() and len(text) <= 13 and int(text) <= LARGEST):
        raise MistakesError([((), f"line {line}: must be a whole number from 0 to 10^12, without signs or commas")])
    return line, fields["level"], fields["value"], int(text)


def _check_values(figures: FiguresSpec, level: str, values: set[str]) -> None:
    """Every value has one figure."""
    seen: set[str] = set()
    for line, name, value, _ in figures.figures:
        if name != level:
            continue
        if value not in values:
            raise MistakesError([((), f"line {line}: its value is not among those of level {echo(level)}")])
        if value in seen:
            raise MistakesError([((), f"line {line}: repeats an earlier figure; keep one of them")])
        seen.add(value)
    if missing := len(values - seen):
        problem = (
            f"has no figure for {missing:,} of the {len(values):,} values of level {echo(level)} (`other` is one, too)"
        )
        raise MistakesError([((), problem)])


def _check_sums(
    figures: FiguresSpec, fine: str, coarse: str, above: dict[str, str], texts: dict[str, list[str]]
) -> None:
    """Figures of a finer level add up to those of a coarser one that it is nested in."""
    if len(set(zip(texts[fine], texts[coarse], strict=True))) != len(set(texts[fine])):
        raise MistakesError([((), f"has levels {echo(fine)} and {echo(coarse)}, which are not nested; keep one")])
    sums = dict.fromkeys(texts[coarse], 0)
    for value, figure in figures.of(fine).items():
        sums[above[value]] += figure
    for line, level, value, figure in figures.figures:
        if level == coarse and sums[value] != figure:
            raise MistakesError([((), f"line {line}: is not the sum of the figures of level {echo(fine)} in it")])
