"""Files of queries that a release shall answer well: public files below a folder that an operator declared public.

A query is a row of the file: a range of cells along one `axis`, from `from` to `to`, and its `weight`. On an axis of
numbers or dates, `from` and `to` are edges of bins, and the range ends before `to`; on an axis of categories they are
categories, and both belong to it. Left empty, they are the first cell, and the last one before `other`; `other` names
that cell. A box is a range along every axis with rows, in each single cell of the others; its weight is the product. A
row of weight 0 counts for nothing.

Messages tell a mistake by its rule and line. They hold nothing of the file, which may be another one by mistake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import ValidationInfo

from dphist_pipeline.base.domain import Axis, BinnedAxis, CalendarAxis, CategoricalAxis, Domain, number_of_day
from dphist_pipeline.spec._code_lists import Mistake, Row, read_rows, refuse_lines
from dphist_pipeline.spec.mistakes import MistakesError, echo, one_line

SETTING, MECHANISM = "queries", "workload"
COLUMNS = ["axis", "from", "to", "weight"]
MOST_QUERIES = 10_000
LARGEST_WEIGHT = 1_000_000
_WEIGHT = re.compile(r"[0-9]{1,15}(\.[0-9]{1,20})?([eE]-?[0-9]{1,2})?")

Ends = dict[object, int]


@dataclass(frozen=True)
class QueryFile:
    """The content of a file of queries, named as in the spec; each row has the number of its line, and a weight."""

    name: str
    rows: tuple[Row, ...]
    weights: tuple[float, ...]

    def __str__(self) -> str:
        return self.name


def with_queries(settings: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    """The settings with the content of the file of queries that they name, read by the rules of code lists."""
    if SETTING not in settings or info.data.get("mechanism") != MECHANISM:
        return settings
    try:
        return {**settings, SETTING: _read(settings[SETTING], info.context or {})}
    except MistakesError as mistakes:
        problems = [((SETTING, *at), problem) for at, problem in mistakes.found]
    raise MistakesError(problems)


def _read(path: object, context: Mapping[str, Any]) -> QueryFile:
    if not isinstance(path, str) or not path.strip():
        raise MistakesError([((), f"must be the path of a file such as codes/queries.csv, not {echo(path)}")])
    file, name = (context.get("base") or Path()) / path, one_line(str(Path(path)), 300)
    rows = read_rows(file, name, context.get("code_lists"), COLUMNS)
    if len(rows) > MOST_QUERIES:
        raise MistakesError([((), f"{name} has more than {MOST_QUERIES:,} queries")])
    problem = f"its weight must be a number from 0 to {LARGEST_WEIGHT:,}, without signs or commas"
    weights = [_weight(row["weight"]) for _, row in rows]
    refuse_lines([(line, problem) for (line, _), weight in zip(rows, weights, strict=True) if weight is None])
    return QueryFile(name, tuple(rows), tuple(weight for weight in weights if weight is not None))


def _weight(text: str) -> float | None:
    weight = float(text) if _WEIGHT.fullmatch(text) else -1.0
    return weight if 0 <= weight <= LARGEST_WEIGHT else None


def by_cells(settings: Mapping[str, Any], domain: Domain | None) -> dict[str, Any]:
    """The settings as a mechanism takes them; a query is axis number, first cell, cell after the last, weight.

    While the grid is not known (None), one query stands for all.

    Raises:
        MistakesError: naming lines that are no range of the grid.
    """
    queries = settings.get(SETTING)
    if not isinstance(queries, QueryFile):
        return dict(settings)
    return {**settings, SETTING: ((0, 0, 1, 1.0),) if domain is None else _cells(queries, domain)}


def _cells(queries: QueryFile, domain: Domain) -> tuple[tuple[int, int, int, float], ...]:
    numbers = {axis.name: number for number, axis in enumerate(domain.axes)}
    ends = [_ends(axis) for axis in domain.axes]
    ranges, wrong = [], list[Mistake]()
    for (line, row), weight in zip(queries.rows, queries.weights, strict=True):
        if row["axis"] not in numbers:
            wrong.append((line, "its axis is no axis of this release"))
            continue
        number = numbers[row["axis"]]
        axis, (firsts, lasts) = domain.axes[number], ends[number]
        low, high = firsts.get(_place(axis, row["from"])), lasts.get(_place(axis, row["to"]))
        if low is None or high is None:
            wrong.append((line, f"its `{'from' if low is None else 'to'}` is no {_end_in_words(axis)}"))
        elif low >= high:
            wrong.append((line, "its range holds no cell; `from` comes first"))
        elif weight > 0:
            ranges.append((number, low, high, weight))
    try:
        refuse_lines(wrong)
        if ranges:
            return tuple(ranges)
        mistakes = MistakesError([((), "holds no query with a weight above 0")])
    except MistakesError as error:
        mistakes = error
    raise MistakesError([(("settings", SETTING, *at), problem) for at, problem in mistakes.found])


def _ends(axis: Axis) -> tuple[Ends, Ends]:
    """The first cell by what `from` may say, and the cell after the last by what `to` may say."""
    declared = axis.size - axis.other
    if isinstance(axis, CategoricalAxis):
        firsts: Ends = {value: cell for cell, value in enumerate(axis.values)}
        lasts: Ends = {value: cell + 1 for cell, value in enumerate(axis.values)}
    else:
        assert isinstance(axis, BinnedAxis), "amounts have a mechanism without such files"
        firsts = {edge: cell + axis.below for cell, edge in enumerate(axis.edges)}
        lasts = dict(firsts)
    if axis.other:
        firsts.setdefault("other", declared)
        lasts.setdefault("other", axis.size)
    return {**firsts, "": 0}, {**lasts, "": declared}


def _place(axis: Axis, text: str) -> object:
    """What `from` or `to` says, as a key of `_ends`: text, or the number of an edge."""
    with suppress(ValueError):
        if isinstance(axis, CalendarAxis):
            return float(number_of_day(date.fromisoformat(text)))
        if not isinstance(axis, CategoricalAxis):
            return float(text)
    return text


def _end_in_words(axis: Axis) -> str:
    if isinstance(axis, CategoricalAxis):
        return f"category of axis {echo(axis.name)}"
    return f"{'first day' if isinstance(axis, CalendarAxis) else 'edge'} of a bin of axis {echo(axis.name)}"
