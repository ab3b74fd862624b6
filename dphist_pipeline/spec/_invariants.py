"""Public figures that a family of tables meets exactly: files below a folder that an operator declared public.

A file is a table of counts. Its last column is called `persons` or `rows`, for what is counted; the columns before it
are axes of categories, or levels of them, and a row gives the figure of one combination of their values. Every
combination has a figure, and an axis without a column is summed over. A file with the columns `level` and `value` gives
figures by one level at a time, for several levels one after another.

Figures by other levels, or by fewer axes, must be sums of the finest ones: one table of figures holds all others.
Tables of figures that only cross, such as county by sex and county by age, are refused: whether whole numbers that meet
several of them exist cannot be decided in a useful time, and whole counts are fitted within the groups of one.

Messages tell a mistake by its rule and line. They hold nothing of the file, which may be another one by mistake.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationInfo

from dphist_pipeline.base.domain import Axis, Figures, texts_at
from dphist_pipeline.spec._code_lists import MOST_MISTAKES, Row, read_rows
from dphist_pipeline.spec.mistakes import Location, MistakesError, echo, one_line

LARGEST = 10**12
COUNTS: tuple[Literal["persons", "rows"], ...] = ("persons", "rows")
NO_LEVEL = "is no axis of categories, or level of one, in `tables`"

Names = tuple[str, ...]


class FigureRow(NamedTuple):
    """A row of a file of figures.

    Attributes:
        file: where the spec names the file, below `invariants`.
        line: in the file.
        levels: the axes, or levels of axes, of its table.
        values: along these.
        figure: None where the file holds no whole number from 0 to `LARGEST`.
        is_headed: whether the header of the file names the levels, and not a field of the row.
    """

    file: tuple[int, ...]
    line: int
    levels: Names
    values: Names
    figure: int | None
    is_headed: bool = False


class FiguresSpec(BaseModel):
    """The content of files of figures: what they count, and their rows."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    counts: Literal["persons", "rows"]
    rows: tuple[FigureRow, ...]

    def as_json(self) -> dict[str, object]:
        """All fields as JSON values, without files and lines."""
        rows = [
            [row.levels[0], row.values[0], row.figure]
            if len(row.levels) == 1
            else [list(row.levels), list(row.values), row.figure]
            for row in self.rows
        ]
        return {"counts": self.counts, "figures": rows}

    def finest(self, axes: Sequence[Axis]) -> Figures:
        """The figures of which all others are sums.

        Raises:
            MistakesError: everything that is wrong in the files, by line: levels and values that tables do not have,
                combinations without figures, figures that contradict each other.
        """
        tables: dict[Names, list[FigureRow]] = {}
        for row in self.rows:
            tables.setdefault(row.levels, []).append(row)
        mistakes = [mistake for levels, rows in tables.items() for mistake in _of_levels(levels, rows, axes)]
        _refuse(mistakes)
        figures: dict[Names, dict[Names, FigureRow]] = {}
        for levels, rows in tables.items():
            figures[levels] = {}
            mistakes += _of_values(rows, [texts_at(_axis_of(level, axes), level) for level in levels], figures[levels])
        _refuse(mistakes)
        finest = _finest(tables, axes)
        for levels in tables:
            mistakes += _of_sums(finest, levels, figures, axes)
        _refuse(mistakes)
        values = [tuple(dict.fromkeys(row.values[place] for row in tables[finest])) for place in range(len(finest))]
        return Figures(
            finest,
            tuple(values),
            np.array([figures[finest][one].figure for one in product(*values)], dtype=np.int64).reshape(
                [len(texts) for texts in values]
            ),
        )


def read_figures(paths: object, info: ValidationInfo) -> FiguresSpec:
    """Reads the file of figures at a path, or those of a list of paths, by the rules of code lists."""
    several = isinstance(paths, list) and bool(paths)
    rows: list[FigureRow] = []
    counted: dict[Literal["persons", "rows"], tuple[int, ...]] = {}
    mistakes: list[tuple[Location, str]] = []
    for number, path in enumerate(paths if isinstance(paths, list) and paths else [paths]):
        at = (number,) if several else ()
        try:
            counts, of_file = _read_file(path, at, info)
        except MistakesError as found:
            mistakes += [((*at, *place), problem) for place, problem in found.found]
        else:
            counted[counts] = at
            rows += of_file
    if mistakes:
        raise MistakesError(mistakes)
    if len(counted) > 1:
        raise MistakesError([((), "must all count `persons`, or all count `rows`")])
    return FiguresSpec(counts=next(iter(counted)), rows=tuple(rows))


def _read_file(
    path: object, at: tuple[int, ...], info: ValidationInfo
) -> tuple[Literal["persons", "rows"], list[FigureRow]]:
    if not isinstance(path, str) or not path.strip():
        raise MistakesError([((), f"must be the path of a file such as codes/figures.csv, not {echo(path)}")])
    context = info.context or {}
    name = one_line(str(Path(path)), 300)
    rows = read_rows((context.get("base") or Path()) / path, name, context.get("code_lists"), _columns)
    *levels, last = rows[0][1]
    counts = next(one for one in COUNTS if one == last)
    is_headed = levels != ["level", "value"]

    def row_of(row: Row) -> FigureRow:
        line, fields = row
        *values, text = fields.values()
        is_figure = text.isascii() and text.isdecimal() and len(text) <= 13 and int(text) <= LARGEST
        figure = int(text) if is_figure else None
        if is_headed:
            return FigureRow(at, line, tuple(levels), tuple(values), figure, is_headed=True)
        return FigureRow(at, line, (values[0],), (values[1],), figure)

    return counts, [row_of(row) for row in rows]


def _columns(header: Sequence[str]) -> list[str]:
    """The columns of a file of figures that are read: what figures are given by, and the figures."""
    if {"level", "value"} <= set(header):
        return ["level", "value", COUNTS[0] if COUNTS[0] in header else COUNTS[1]]
    if len(header) < 2 or header[-1] not in COUNTS:
        problem = (
            "its columns must be axes of the spec, or levels of them, and at last `persons` or `rows`, for what is "
            "counted; or `level`, `value` and that one"
        )
        raise MistakesError([((), problem)])
    return list(header)


def _refuse(mistakes: Sequence[tuple[FigureRow | None, str]]) -> None:
    """Refuses figures with mistakes, if there are any: the first ones by file and line, and not how many there are."""
    ordered = sorted(mistakes, key=lambda one: (one[0] is not None, one[0][:2] if one[0] else ()))
    found: list[tuple[Location, str]] = [(row.file if row else (), problem) for row, problem in ordered[:MOST_MISTAKES]]
    if len(ordered) > MOST_MISTAKES:
        found.append(((), "has more mistakes than these"))
    if found:
        raise MistakesError(found)


Mistakes = Iterator[tuple[FigureRow | None, str]]


def _axis_of(level: str, axes: Sequence[Axis]) -> Axis:
    return next(axis for axis in axes if texts_at(axis, level))


def _of_levels(levels: Names, rows: Sequence[FigureRow], axes: Sequence[Axis]) -> Mistakes:
    """Levels that no axis has, or of which two are of one axis."""
    row, axis_of = rows[0], {level: axis.name for level in levels for axis in axes if texts_at(axis, level)}
    for number, level in enumerate(levels, 1):
        if level not in axis_of:
            column = f"line 1: its column {number}" if row.is_headed else f"line {row.line}: its level"
            yield row, f"{column} {NO_LEVEL}"
        elif any(axis_of.get(other) == axis_of[level] for other in levels[: number - 1]):
            yield row, f"line 1: its column {number} is a level of the same axis as an earlier one; keep the finer one"


def _of_values(rows: Sequence[FigureRow], texts: Sequence[Sequence[str]], figures: dict[Names, FigureRow]) -> Mistakes:
    """Texts that are no figures, values that levels do not have, repetitions, and combinations without a figure.

    Args:
        texts: along each level, its values.
        figures: is filled with the rows by their values.
    """
    values = [dict.fromkeys(of_level) for of_level in texts]
    levels = rows[0].levels
    for row in rows:
        if row.figure is None:
            yield row, f"line {row.line}: must be a whole number from 0 to 10^12, without signs or commas"
        unknown = [level for level, value, known in zip(levels, row.values, values, strict=True) if value not in known]
        for level in unknown:
            yield row, f"line {row.line}: its value is not among those of level {echo(level)}"
        if not unknown and figures.setdefault(row.values, row) is not row:
            yield row, f"line {row.line}: repeats an earlier figure; keep one of them"
    every = math.prod(map(len, values))
    if missing := every - len(figures):
        first = next(one for one in product(*values) if one not in figures)
        of = f"combinations of {_named(levels)}" if len(levels) > 1 else f"values of level {_named(levels)}"
        without = " with ".join(map(echo, first))
        says = f"has no figure for {missing:,} of the {every:,} {of} (`other` is one, too), such as {without}"
        yield rows[0]._replace(line=0), says


def _finest(tables: Mapping[Names, object], axes: Sequence[Axis]) -> Names:
    """The levels of the table of figures that holds all others."""
    by_axis: dict[str, list[str]] = {}
    for level in dict.fromkeys(level for levels in tables for level in levels):
        by_axis.setdefault(_axis_of(level, axes).name, []).append(level)
    along: list[str] = []
    for axis in (axis for axis in axes if axis.name in by_axis):
        texts = {level: texts_at(axis, level) for level in by_axis[axis.name]}
        fine = max(texts, key=lambda level: len(set(texts[level])))
        along.append(fine)
        for level, coarse in texts.items():
            if len(set(zip(texts[fine], coarse, strict=True))) != len(set(texts[fine])):
                problem = f"has levels {echo(fine)} and {echo(level)}, which are not nested; keep one"
                raise MistakesError([((), problem)])
    sizes = {_axis_of(level, axes).name: len(set(texts_at(_axis_of(level, axes), level))) for level in along}
    for levels in tables:
        if sizes == {_axis_of(level, axes).name: len(set(texts_at(_axis_of(level, axes), level))) for level in levels}:
            return levels
    named = " and ".join(f"({_named(levels)})" for levels in islice(tables, 4))
    problem = (
        f"has figures by {named}, and by none that holds all of them: give those by ({_named(tuple(along))}), "
        "of which the others are sums, or keep one"
    )
    raise MistakesError([((), problem)])


def _of_sums(
    finest: Names, levels: Names, figures: Mapping[Names, Mapping[Names, FigureRow]], axes: Sequence[Axis]
) -> Mistakes:
    """Figures that are not the sum of the finest ones in them."""
    if levels == finest:
        return
    # For each level: where the finest figures have its axis, and the value that holds each of theirs.
    above = []
    for level in levels:
        axis = _axis_of(level, axes)
        place = next(place for place, fine in enumerate(finest) if texts_at(axis, fine))
        above.append((place, dict(zip(texts_at(axis, finest[place]), texts_at(axis, level), strict=True))))
    sums = dict.fromkeys(figures[levels], 0)
    for values, row in figures[finest].items():
        sums[tuple(of_value[values[place]] for place, of_value in above)] += row.figure or 0
    within = f"of level {_named(finest)}" if len(finest) == 1 else f"by {_named(finest)}"
    for values, row in figures[levels].items():
        if sums[values] != row.figure:
            yield row, f"line {row.line}: is not the sum of the figures {within} in it"


def _named(levels: Names) -> str:
    return ", ".join(map(echo, levels))
