"""Exact numbers about the rows of a source for an operator's terminal: periods, and spellings that are not declared."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.reading._positions import Positions
from dphist_pipeline.confidential.reading.ingest import in_period, moment_of, opened_source, prepared
from dphist_pipeline.confidential.reading.source import Source
from dphist_pipeline.sql_files import identifier, literal

MOST_SPELLINGS = 5
LONGEST_SPELLING = 60


@dataclass(frozen=True)
class SeenRows:
    """What was found in a source; it is told to a terminal, and to nothing else.

    Attributes:
        rows: of the source, its period, those whose period does not parse, and those with bytes that are no text.
        first: day that parsed, like `last`; empty without one.
        spellings: for each axis the commonest values that are not declared, and their rows; None where the engine
            failed on what rows hold, of which each is read alone then.
    """

    rows: tuple[int, int, int, int]
    first: str
    last: str
    spellings: list[list[tuple[str, int]] | None]

    def __repr__(self) -> str:
        return "SeenRows(withheld)"


def seen_rows(plan: CountingPlan, folder: Path) -> SeenRows | None:
    """Counts the rows of a source; None where the engine fails on what rows hold."""
    with opened_source(plan.source, folder, plan.time_zone) as (connection, opened):
        source, axes, parameters = prepared(plan, opened, connection)
        for axis in axes:
            if axis.table:
                connection.execute(axis.table, dict(axis.parameters))
        try:
            *rows, first, last = _periods(connection, plan, source, parameters)
            broken = _broken(connection, opened)
        except duckdb.Error:
            return None
        spellings = [_spellings(connection, plan, source, parameters, number, axis) for number, axis in enumerate(axes)]
    return SeenRows((*rows, broken), first or "", last or "", spellings)


def _periods(
    connection: duckdb.DuckDBPyConnection, plan: CountingPlan, source: Source, parameters: dict[str, object]
) -> tuple[Any, ...]:
    moment = "NULL" if plan.period_column is None else moment_of(plan, source, plan.period_column)
    told = f"{moment} AS moment, coalesce({in_period(plan, source)}, false) AS within"
    day = "CAST(TRY_CAST({}(moment) AS DATE) AS VARCHAR)"
    columns = f"count(*), count(*) FILTER (within), count(*) - count(moment), {day.format('min')}, {day.format('max')}"
    ((rows, within, unparsed, first, last),) = _asked(
        connection, f"SELECT {columns} FROM (SELECT {told} FROM ({source.relation}))", parameters
    )
    return rows, within, unparsed, first, last


def _broken(connection: duckdb.DuckDBPyConnection, opened: Source) -> int:
    """Rows of a CSV file with bytes that are no text in its encoding; 0 of other sources."""
    if not opened.is_csv:
        return 0
    holds = " OR ".join(f"contains({identifier(name)}, {literal(opened.replaced)})" for name in opened.types)
    ((rows,),) = _asked(connection, f"SELECT count(*) FROM ({opened.relation}) WHERE {holds}", dict(opened.parameters))
    return int(rows)


def _spellings(
    connection: duckdb.DuckDBPyConnection,
    plan: CountingPlan,
    source: Source,
    parameters: dict[str, object],
    number: int,
    read: Positions,
) -> list[tuple[str, int]] | None:
    axis = plan.domain.axes[number]
    written = f"left(TRY_CAST({identifier(axis.column)} AS VARCHAR), {LONGEST_SPELLING})"
    rows = f"SELECT {written} AS written, {read.value} AS value_{number}, {read.absent} AS absent_{number}"
    rows += f" FROM ({source.relation}) WHERE {in_period(plan, source)}"
    for level, step in enumerate(read.steps):
        place = f"{step} AS place_{number}"
        rows = f"SELECT *{f' REPLACE ({place})' if level else f', {place}'} FROM ({rows})"
    if read.joined:
        rows = f"SELECT staged.*, {read.joined} AS place_{number} FROM ({rows}) AS staged {read.join}"
    outside = f"({read.cell}) IS NULL" if axis.other_cell is None else f"({read.cell}) = {axis.other_cell}"
    rows = f"SELECT written, count(*) FROM ({rows}) WHERE written IS NOT NULL AND (absent_{number} OR {outside})"
    try:
        return _asked(connection, f"{rows} GROUP BY written ORDER BY 2 DESC, 1 LIMIT {MOST_SPELLINGS}", parameters)
    except duckdb.Error:
        return None


def _asked(connection: duckdb.DuckDBPyConnection, sql: str, parameters: dict[str, object]) -> list[Any]:
    """Rows of a statement, given the parameters that it names: DuckDB refuses others."""
    return connection.execute(
        sql, {name: value for name, value in parameters.items() if re.search(rf"\${name}\b", sql)}
    ).fetchall()
