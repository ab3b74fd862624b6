"""Exact numbers about records, written to an operator's terminal and to nothing else: `dphist look`.

The only place where exact numbers are shown, and no account covers what somebody does after seeing them. So they take
one way: this module reads, counts and writes them to a terminal itself. It returns nothing, keeps nothing, and no error
that leaves it holds what a record held. Nothing but `releasing.operator_look` may import it (see the import contracts).

Of the source it shows periods, and spellings that are not declared; of the counts, axes and units.
"""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from dphist_pipeline.base.csv_text import LOST
from dphist_pipeline.base.domain import Axis, BinnedAxis, CalendarAxis, CategoricalAxis, day_of
from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.confidential import cube, row_tables
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.reading._positions import Positions
from dphist_pipeline.confidential.reading.ingest import in_period, moment_of, opened_source, prepare_rows, stage_rows
from dphist_pipeline.confidential.reading.source import OpenedSource, engine_settings, withheld
from dphist_pipeline.confidential.row_queries import ObservedRows
from dphist_pipeline.errors import Refused

MOST_ROWS = 1_000_000  # of a unit that are looked at
MOST_LINES = 5
MOST_SPELLINGS = 5
LONGEST_SPELLING = 60
REPLACEMENT = "\ufffd"  # what people know as the sign for bytes that are no text
UNTOLD = "not told: the engine failed on what a row holds, and the release reads each row alone"


class Terminal:
    """A terminal, by the file descriptor of an open file; anything else is refused."""

    def __init__(self, descriptor: int) -> None:
        if not os.isatty(descriptor):
            raise Refused(
                "`dphist look` shows exact numbers about records on a terminal only, and its output goes to a file, a "
                "pipe or a log. Run it in a terminal, without a redirection. Nothing was read, noted or spent.",
                code="no_terminal",
            )
        self._descriptor = descriptor

    def write(self, lines: Iterator[str]) -> None:
        """Writes lines; signs that could steer the terminal are written as escapes."""
        left = "".join(f"{_plain(line)}\n" for line in lines).encode("utf-8", "backslashreplace")
        while left:
            left = left[os.write(self._descriptor, left) :]


def show_records(plan: CountingPlan, folder: Path, terminal: Terminal) -> None:
    """Reads and counts the records of a plan as a release does, and writes exact numbers to a terminal.

    The caller deletes the private folder. Whether the plan asks for a quality table does not matter.

    Raises:
        SourceRefused, ColumnRefused: for the files as files; with no word of what a row holds.
    """
    problem = "could not be looked at to its end: a damaged file, a terminal that went away, or no memory or disk left"
    withheld(plan.source.written, problem, lambda: _show(plan, folder, terminal))


def _show(plan: CountingPlan, folder: Path, terminal: Terminal) -> None:
    of_period = plan if plan.per_unit is None else replace(plan, per_unit=replace(plan.per_unit, history=0))
    seen = count_source_rows(of_period, folder)
    staged = stage_rows(replace(plan, rows_seen=plan.max_rows_per_unit), folder)
    rows, most = _stage_rows(plan, staged, folder)
    plan = replace(plan, rows_seen=1 if plan.privacy_unit == "row" else max(plan.max_rows_per_unit, most))
    counts = cube.load_cube(cube.write_cube(plan, staged, folder))
    terminal.write(_lines(plan, seen, rows, counts, row_tables.load(folder)))


def _stage_rows(plan: CountingPlan, staged: Path, folder: Path) -> tuple[int, int]:
    """Rows of the period whose unit is known, and the most of one unit, at most `MOST_ROWS`."""
    rows = f"read_parquet({literal(str(staged))})"
    query = f"SELECT coalesce(sum(rows), 0), 1 FROM {rows}"
    if plan.privacy_unit != "row":
        query = f"SELECT coalesce(sum(n), 0), coalesce(max(n), 1) FROM (SELECT count(*) AS n FROM {rows} GROUP BY unit)"
    with duckdb.connect(config=engine_settings(folder)) as connection:
        ((total, most),) = connection.execute(query).fetchall()
    return int(total), min(int(most), MOST_ROWS)


def _lines(
    plan: CountingPlan, seen: SeenRows | None, rows: int, counts: NDArray[np.int64], observed: ObservedRows
) -> Iterator[str]:
    yield "EXACT NUMBERS, for an operator's eyes. Do not copy them; the ledger notes that you looked."
    if seen is None:
        yield f"rows of the source: {UNTOLD}"
    else:
        whole, within, unparsed, broken = seen.rows
        yield f"rows of the source{' that `keep` keeps' if plan.keep else ''}: {whole:,}"
        if plan.period_column is not None:
            yield f"  {plan.period_column} parses from {seen.first or 'no row'} to {seen.last or 'no row'}"
            yield f"  {plan.period_column} does not parse: {unparsed:,} (these fall into no period)"
        yield f"  in the period {plan.period.key}: {within:,}"
        if plan.source.needed:
            yield f"  outside the period, in files that were read for it: {whole - within - unparsed:,}"
            yield "  (counted in their own period only where it reads these files: `files_after`, `files_before`)"
        if plan.privacy_unit != "row":
            yield f"  of these without a privacy unit: {max(within - rows, 0):,}"
        if broken:
            encoding = plan.source.reading.csv_encoding
            yield f"rows with bytes that are no text in {encoding}: {broken:,} (the values that hold them are lost)"
            yield "  windows-1252 is what spreadsheets on Windows write: `csv_encoding: windows-1252`"
        if seen.unreadable is not None:
            yield f"unreadable lines: {seen.unreadable:,} (in no row above and in no number: see `csv_quote`)"
    yield f"rows in the period, of a known unit: {rows:,}"
    yield from _axis_lines(plan, seen, rows, observed)
    yield from _unit_lines(plan, observed)
    yield f"empty cells: {int((counts == 0).sum()):,} of {counts.size:,}"


def _axis_lines(plan: CountingPlan, seen: SeenRows | None, rows: int, observed: ObservedRows) -> Iterator[str]:
    spellings = seen.spellings if seen is not None else [None] * len(plan.axes_read.axes)
    by_axis = dict(zip((axis.name for axis in plan.axes_read.axes), spellings, strict=True))
    for axis, (unparsed, undeclared) in zip(plan.domain.axes, observed.failures, strict=True):
        common = by_axis.get(axis.name, [])  # what is derived has no spelling
        declared = f"declared {rows - unparsed - undeclared:,}"
        yield f"axis {axis.name}: {declared}, undeclared {undeclared:,}, not parsed {unparsed:,}"
        if common is None:
            yield f"  commonest undeclared: {UNTOLD}"
        for spelling, times in common or ():
            yield f"  undeclared: {spelling.replace(LOST, REPLACEMENT)!r} {times:,}"


def _unit_lines(plan: CountingPlan, observed: ObservedRows) -> Iterator[str]:
    if plan.privacy_unit == "row":
        yield "every row is its own unit: the bound cuts nothing"
        return
    histogram = [(number, units) for number, units in enumerate(observed.units.tolist(), 1) if units]
    for number, units in histogram[: 2 * MOST_LINES]:
        yield f"units with {number:,} rows in declared cells: {units:,}"
    if histogram[2 * MOST_LINES :]:
        more = sum(units for _, units in histogram[2 * MOST_LINES :])
        yield f"units with {histogram[2 * MOST_LINES][0]:,} rows or more, up to {histogram[-1][0]:,}: {more:,}"
    yield f"rows that the bound of {plan.max_rows_per_unit:,} cuts: {int(observed.cut.sum()):,}"
    start = 0
    for axis in plan.domain.axes:
        cut = observed.cut_by[start : start + axis.size]
        start += axis.size
        for place in np.argsort(-cut, kind="stable")[:MOST_LINES]:
            if cut[place]:
                yield f"  of these, {axis.name} = {_label(axis, int(place))}: {int(cut[place]):,}"


def _label(axis: Axis, place: int) -> str:
    if place == axis.other_cell:
        return "other"
    if isinstance(axis, CategoricalAxis):
        return repr(axis.values[place])
    assert isinstance(axis, BinnedAxis)
    lower, upper = (ends[place] for ends in axis.bounds)
    if isinstance(axis, CalendarAxis) and np.isfinite([lower, upper]).all():
        return f"{day_of(lower)} to {day_of(upper)}"
    if math.isinf(upper):
        return f"{lower:g} or more" if axis.closed == "left" else f"above {lower:g}"
    if math.isinf(lower):
        return f"below {upper:g}" if axis.closed == "left" else f"{upper:g} or less"
    return f"{lower:g} to {upper:g}"


def _plain(line: str) -> str:
    return "".join(repr(sign)[1:-1] if unicodedata.category(sign)[0] == "C" else sign for sign in line)


@dataclass(frozen=True)
class SeenRows:
    """What was found in a source; it is told to a terminal, and to nothing else.

    Attributes:
        rows: of the source, its period, those whose period does not parse, and those with bytes that are no text.
        first: day that parsed, like `last`; empty without one.
        unreadable: lines of CSV files that are no rows; None of other sources.
        spellings: for each axis the commonest values that are not declared, and their rows; None where the engine
            failed on what rows hold, of which each is read alone then.
    """

    rows: tuple[int, int, int, int]
    first: str
    last: str
    unreadable: int | None
    spellings: list[list[tuple[str, int]] | None]

    def __repr__(self) -> str:
        return "SeenRows(withheld)"


def count_source_rows(plan: CountingPlan, folder: Path) -> SeenRows | None:
    """Counts the rows of a source; None where the engine fails on what rows hold."""
    with opened_source(plan.source, folder, plan.time_zone) as (connection, opened):
        source, axes, parameters = prepare_rows(plan, opened, connection)
        for axis in axes:
            if axis.table:
                connection.execute(axis.table, dict(axis.parameters))
        try:
            *rows, first, last = _periods(connection, plan, source, parameters)
            broken, unreadable = _broken_rows(connection, opened), _unreadable(connection, opened)
        except duckdb.Error:
            return None
        spellings = [_spellings(connection, plan, source, parameters, number, axis) for number, axis in enumerate(axes)]
    return SeenRows((*rows, broken), first or "", last or "", unreadable, spellings)


def _periods(
    connection: duckdb.DuckDBPyConnection, plan: CountingPlan, source: OpenedSource, parameters: dict[str, object]
) -> tuple[Any, ...]:
    moment = "NULL" if plan.period_column is None else moment_of(plan, source, plan.period_column)
    selection = f"{moment} AS moment, coalesce({in_period(plan, source)}, false) AS within"
    day = "CAST(TRY_CAST({}(moment) AS DATE) AS VARCHAR)"
    columns = f"count(*), count(*) FILTER (within), count(*) - count(moment), {day.format('min')}, {day.format('max')}"
    ((rows, within, unparsed, first, last),) = _query(
        connection, f"SELECT {columns} FROM (SELECT {selection} FROM ({source.relation}))", parameters
    )
    return rows, within, unparsed, first, last


def _broken_rows(connection: duckdb.DuckDBPyConnection, opened: OpenedSource) -> int:
    """Rows of a CSV file with bytes that are no text in its encoding; 0 of other sources."""
    if not opened.is_csv:
        return 0
    holds = " OR ".join(f"contains({identifier(name)}, {literal(opened.replaced)})" for name in opened.types)
    ((rows,),) = _query(connection, f"SELECT count(*) FROM ({opened.relation}) WHERE {holds}", dict(opened.parameters))
    return int(rows)


def _unreadable(connection: duckdb.DuckDBPyConnection, opened: OpenedSource) -> int | None:
    """Lines of CSV files that have no row, because of their form; None of other sources."""
    if not opened.is_csv:
        return None
    ((lines,),) = _query(connection, f"SELECT count(*) FROM ({opened.unreadable})", dict(opened.parameters))
    return int(lines)


def _spellings(
    connection: duckdb.DuckDBPyConnection,
    plan: CountingPlan,
    source: OpenedSource,
    parameters: dict[str, object],
    number: int,
    read: Positions,
) -> list[tuple[str, int]] | None:
    axis = plan.axes_read.axes[number]
    spelling = f"left(TRY_CAST({identifier(axis.column)} AS VARCHAR), {LONGEST_SPELLING})"
    rows = f"SELECT {spelling} AS written, {read.value} AS value_{number}, {read.absent} AS absent_{number}"
    rows += f" FROM ({source.relation}) WHERE {in_period(plan, source)}"
    for level, step in enumerate(read.steps):
        place = f"{step} AS place_{number}"
        rows = f"SELECT *{f' REPLACE ({place})' if level else f', {place}'} FROM ({rows})"
    if read.joined:
        rows = f"SELECT staged.*, {read.joined} AS place_{number} FROM ({rows}) AS staged {read.join}"
    outside = f"({read.cell}) IS NULL" if axis.other_cell is None else f"({read.cell}) = {axis.other_cell}"
    rows = f"SELECT written, count(*) FROM ({rows}) WHERE written IS NOT NULL AND (absent_{number} OR {outside})"
    try:
        return _query(connection, f"{rows} GROUP BY written ORDER BY 2 DESC, 1 LIMIT {MOST_SPELLINGS}", parameters)
    except duckdb.Error:
        return None


def _query(connection: duckdb.DuckDBPyConnection, sql: str, parameters: dict[str, object]) -> list[Any]:
    """Queries, given the parameters that it names: DuckDB refuses others."""
    return connection.execute(
        sql, {name: value for name, value in parameters.items() if re.search(rf"\${name}\b", sql)}
    ).fetchall()
