"""Ingest: DuckDB reads the source and writes, for each row in a declared cell, its unit and its cell number."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from itertools import zip_longest
from pathlib import Path
from typing import Any

import duckdb

from dphist_pipeline.counting.positions import Positions, positions
from dphist_pipeline.counting.source import NUMBERS, TIMES, ZONED_TIMES, Source, find_files, open_source, withheld
from dphist_pipeline.domain import BinnedAxis, CalendarAxis
from dphist_pipeline.spec.model import ReleaseSpec
from dphist_pipeline.spec.periods import Period
from dphist_pipeline.sql_files import identifier, literal, statement

CATEGORIES = (*NUMBERS, "BOOLEAN", "DATE", "UUID")
UNITS = (*NUMBERS, "UUID")
UNITS_THAT_FIT_INT64 = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
DATES_AND_TIMES = "dates, time stamps in micro- or nanoseconds, or text of those"
MEMORY = "4GB"
SPILL = "40GB"


def stage_rows(spec: ReleaseSpec, period: Period, folder: Path) -> Path:
    """Writes the rows of a period that lie in declared cells.

    Args:
        spec: checked.
        period: whose rows to take.
        folder: private; also holds what DuckDB spills.

    Returns:
        A Parquet file: `code`, the cell number, int32; `unit`, int64 or text, unless each row is its own unit.

    Raises:
        SourceRefused, ColumnRefused: for the files as files; never for what a row holds.
    """
    files = find_files(spec.source_pattern)
    staged = folder / "rows.parquet"
    with _connection(files, folder, spec.time_zone) as connection:
        source = open_source(connection, files, spec.csv_delimiter, spec.csv_quote)
        _check_types(spec, source)
        axes = [positions(axis, number) for number, axis in enumerate(spec.domain.axes)]
        query = _stage_statement(spec, source, axes, staged)
        parameters = {**source.parameters, **_ends(spec, source, period)}

        def stage() -> None:
            for axis in axes:
                if axis.table:
                    connection.execute(axis.table, dict(axis.parameters))
                else:
                    parameters.update(axis.parameters)
            connection.execute(query, parameters)

        withheld(spec.source, "could not be read to its end: a damaged file, or no memory or disk left", stage)
    return staged


@contextmanager
def _connection(files: tuple[Path, ...], folder: Path, time_zone: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB that can reach the source and the run's folder and nothing else, and whose settings are final."""
    settings: dict[str, Any] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "enable_external_file_cache": False,
        # Else a file's statistics, and so other people's rows, decide how an expression treats a row.
        "disabled_optimizers": "statistics_propagation",
        "preserve_insertion_order": False,
        "memory_limit": MEMORY,
        "max_temp_directory_size": SPILL,
        "temp_directory": str(folder / "spill"),
    }
    allowed = {folder, *(path.parent for path in files), *(path.resolve().parent for path in files)}
    connection = duckdb.connect(config=settings)
    try:
        withheld(
            time_zone,
            "is a time zone that DuckDB does not know; use its common name",
            lambda: connection.execute(f"SET TimeZone = {literal(time_zone)}"),
        )
        connection.execute(f"SET allowed_directories = [{', '.join(literal(f'{path}/') for path in allowed)}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


def _check_types(spec: ReleaseSpec, source: Source) -> None:
    """Refuses columns that are missing or cannot serve, before any row is read."""
    for axis in spec.domain.axes:
        if isinstance(axis, CalendarAxis):
            source.type_of(axis.column, TIMES, f"a calendar axis, which takes {DATES_AND_TIMES}")
        elif isinstance(axis, BinnedAxis):
            source.type_of(axis.column, NUMBERS, "a binned axis, which takes numbers or text that holds numbers")
        else:
            source.type_of(axis.column, CATEGORIES, "a categorical axis, which takes text, whole numbers and the like")
    if spec.privacy_unit != "row":
        source.type_of(spec.privacy_unit, UNITS, "a privacy unit, which takes text, whole numbers or UUIDs")
    if spec.period_column is not None:
        source.type_of(spec.period_column, TIMES, f"a period column, which takes {DATES_AND_TIMES}")


def _stage_statement(spec: ReleaseSpec, source: Source, axes: list[Positions], staged: Path) -> str:
    """Nested projections: values, places by join, places by search, the cell number."""
    unit = [] if spec.privacy_unit == "row" else ["unit"]
    values = [f"{axis.value} AS value_{number}" for number, axis in enumerate(axes)]
    values += [f"{_unit(spec.privacy_unit, source)} AS unit" for _ in unit]
    rows = f"SELECT {', '.join(values)} FROM ({source.relation}) WHERE {_in_period(spec, source)}"
    places = ", ".join(f"{axis.place} AS place_{number}" for number, axis in enumerate(axes))
    rows = f"SELECT staged.*, {places} FROM ({rows}) AS staged {' '.join(axis.join for axis in axes)}"
    for level in zip_longest(*(axis.steps for axis in axes)):
        replaced = [f"{step} AS place_{number}" for number, step in enumerate(level) if step]
        rows = f"SELECT * REPLACE ({', '.join(replaced)}) FROM ({rows})"
    code = " + ".join(f"({axis.cell}) * {stride}" for axis, stride in zip(axes, spec.domain.strides, strict=True))
    columns = ", ".join(["code", *unit])
    return statement(
        "ingest/stage_rows",
        columns=columns,
        cells=f"SELECT CAST({code} AS INTEGER) AS {columns} FROM ({rows})",
        kept=" AND ".join(f"{name} IS NOT NULL" for name in ["code", *unit]),
        target=literal(str(staged)),
    )


def _unit(column: str, source: Source) -> str:
    """The unit of a row, null where it cannot be told: such rows are dropped, else they would share one unit."""
    name, kind = identifier(column), source.types[column]
    if kind in UNITS_THAT_FIT_INT64:
        return f"CAST({name} AS BIGINT)"
    text = f"TRY_CAST({name} AS VARCHAR)"
    if kind in ("FLOAT", "DOUBLE"):
        return f"CASE WHEN isnan({name}) THEN NULL WHEN {name} = 0 THEN '0.0' ELSE {text} END"
    if kind in ("VARCHAR", "ENUM") and not source.is_csv:
        # Bytes that are not UTF-8 are read as '?'. Two people whose names differ in such bytes alone would become
        # one unit, and bounding them together would make the kept rows of one depend on the other.
        return f"CASE WHEN contains({text}, '?') THEN NULL ELSE {text} END"
    return text


def _moment_type(spec: ReleaseSpec, source: Source) -> str:
    """What the period column is compared as: text may name an offset, and without one is in the spec's zone."""
    kind = source.types[str(spec.period_column)]
    zoned = kind in (*ZONED_TIMES, "VARCHAR", "ENUM")
    return "TIMESTAMP WITH TIME ZONE" if zoned else "TIMESTAMP"


def _in_period(spec: ReleaseSpec, source: Source) -> str:
    if spec.period_column is None:
        return "true"
    kind = _moment_type(spec, source)
    moment = f"TRY_CAST({identifier(spec.period_column)} AS {kind})"
    return f"{moment} >= CAST($period_start AS {kind}) AND {moment} < CAST($period_end AS {kind})"


def _ends(spec: ReleaseSpec, source: Source, period: Period) -> dict[str, str]:
    if spec.period_column is None or period.start is None or period.end is None:
        return {}
    ends = {"period_start": period.start, "period_end": period.end}
    if _moment_type(spec, source) == "TIMESTAMP":
        return {name: moment.replace(tzinfo=None).isoformat(sep=" ") for name, moment in ends.items()}
    return {name: moment.astimezone(UTC).isoformat(sep=" ") for name, moment in ends.items()}
