"""Ingest: DuckDB reads the source and writes, for each row in a declared cell, its unit and its cell number.

Where each row is its own unit, it counts while it reads, and writes one number a cell instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from urllib.parse import unquote

import duckdb

from dphist_pipeline.base.declared_numbers import DURATIONS, NUMBERS, keys_of
from dphist_pipeline.base.domain import SECONDS, AmountAxis, BinnedAxis, ByText, CalendarAxis
from dphist_pipeline.base.sql_files import identifier, literal, statement
from dphist_pipeline.confidential._row_words import names_of, words_of
from dphist_pipeline.confidential.plan import CountingPlan, SourcePlan
from dphist_pipeline.confidential.reading import _databases as databases
from dphist_pipeline.confidential.reading import _object_stores as object_stores
from dphist_pipeline.confidential.reading import _rows_alone as rows_alone
from dphist_pipeline.confidential.reading._derived import select_rows, with_plain_numbers
from dphist_pipeline.confidential.reading._moments import wall_clock
from dphist_pipeline.confidential.reading._positions import (
    MARKS,
    UNDECLARED,
    UNPARSED,
    Positions,
    mark_words,
    positions,
)
from dphist_pipeline.confidential.reading._source_files import find_files, open_files
from dphist_pipeline.confidential.reading._units import UNITS, kind_of, unit_sql
from dphist_pipeline.confidential.reading.column_sql import (
    CATEGORIES,
    check_kept,
    kept_rows,
    numbers_of,
    with_derived_columns,
)
from dphist_pipeline.confidential.reading.source import (
    ALWAYS,
    TIMES,
    UNIT_UNNAMED,
    ColumnRefused,
    OpenedSource,
    SourceRefused,
    columns_of,
    engine_settings,
    query_rows,
    with_enough_memory,
    withheld,
)
from dphist_pipeline.spec.declared_columns import inputs_of
from dphist_pipeline.spec.sources import TEXT, undeclared_dates

DATES_AND_TIMES = "dates, time stamps in micro- or nanoseconds, or text of those"
USE_OF_UNIT = "a privacy unit, which takes text, whole numbers or UUIDs"


def stage_rows(plan: CountingPlan, folder: Path) -> Path:
    """Writes the rows of a period, whose unit is known, that lie in declared cells.

    Args:
        folder: private; also holds what DuckDB spills.

    Returns:
        A Parquet file: `code`, the cell number, int32, and `unit`, int64 or text; or, where each row is its own unit,
        `code` and `rows`, how many there are, int64, also of no cell, whose code is null. With an amount, `code` is the
        number in the grid without it, and `amount`, int32, how many parts of the row the upper end has; or, where each
        row is its own unit, their sum, int64. For a quality table all rows that lie in no cell, and `marks`, int64; see
        `positions.mark_words`.

    Raises:
        SourceRefused, ColumnRefused: for the files as files; never for what a row holds.
    """
    try:
        return _stage_rows(plan, folder)
    except SourceRefused as error:
        refused = error
    # A file's name holds what the environment gave, which may be a secret.
    written = plan.source.written
    raise refused if str(written) == written.resolved else SourceRefused(written, refused.problem)


def _stage_rows(plan: CountingPlan, folder: Path) -> Path:
    staged = folder / "rows.parquet"
    unordered, ordered = folder / "unordered.parquet", folder / "ordered.parquet"
    target = staged if plan.per_unit is None else unordered

    def stage() -> None:
        if not _staged_at_once(plan, folder, target):
            _stage_apart(plan, folder, target)
        if plan.per_unit is not None:
            _put_in_order(plan, folder, unordered, ordered)

    withheld(plan.source.written, _unread_problem(plan.source), lambda: with_enough_memory(stage))
    if plan.per_unit is not None:
        # Loaded here: who only checks a spec needs no Polars.
        from dphist_pipeline.base.guarded_polars import guarded_polars
        from dphist_pipeline.confidential.reading._unit_rows import derive_rows

        unordered.unlink()
        with guarded_polars():
            withheld(plan.source.written, _unread_problem(plan.source), lambda: derive_rows(plan, ordered, staged))
        ordered.unlink()
    return staged


def _put_in_order(plan: CountingPlan, folder: Path, unordered: Path, ordered: Path) -> None:
    """Writes the staged rows of each unit together, in the order of `unit_values`."""
    places = [f"along_{number}" for number in range(len(plan.axes_read.axes))]
    marks = [] if plan.rows_seen is None else list(mark_words(len(places)))
    amount = [] if plan.axes_read.amount is None else ["amount"]
    statement_text = statement(
        "ingest/order_rows",
        staged=literal(str(unordered)),
        columns=", ".join(["unit", "moment", *places, *amount, *marks]),
        target=literal(str(ordered)),
    )
    with closing(duckdb.connect(config={**engine_settings(folder), "preserve_insertion_order": True})) as connection:
        connection.execute(statement_text)


def _staged_at_once(plan: CountingPlan, folder: Path, staged: Path) -> bool:
    """Writes all rows by one statement; or says that the engine failed on something that may be what a row holds.

    A query may look at many rows at once, so that none of them has a meaning alone: its failure goes on.
    """
    try:
        with opened_source(plan.source, folder, plan.time_zone) as (connection, source):
            _stage(plan, in_folders_of_period(connection, plan, source), connection, staged)
    except rows_alone.OF_THE_MACHINE:
        raise
    except duckdb.Error:
        if plan.source.query is not None:
            raise
        return False
    return True


def _stage_apart(plan: CountingPlan, folder: Path, staged: Path) -> None:
    """Writes all rows, each as it would be alone (see `rows_alone`)."""

    def prepare(
        connection: duckdb.DuckDBPyConnection, batch: OpenedSource, part: Path, empty: bool
    ) -> rows_alone.Staging:
        return _staging(plan, batch, connection, part, empty)

    with opened_source(plan.source, folder, plan.time_zone, goes_on=True) as (connection, source):
        source = in_folders_of_period(connection, plan, source)
        rows_alone.stage_apart(connection, source, _read_columns(plan, source), prepare, staged)


def _read_columns(plan: CountingPlan, source: OpenedSource) -> set[str]:
    """The columns of a source that staging reads without a query."""
    columns = {axis.column for axis in plan.axes_read.axes} | {plan.period_column}
    columns |= set() if plan.privacy_unit == "row" else {*plan.privacy_unit.columns}
    columns |= inputs_of(plan.derive, plan.keep)
    return {column for column in source.types if column in columns}


def _stage(plan: CountingPlan, source: OpenedSource, connection: duckdb.DuckDBPyConnection, staged: Path) -> None:
    """Writes the rows of an opened source."""
    staging = _staging(plan, source, connection, staged)
    for table, given in staging.tables:
        connection.execute(table, given)
    connection.execute(staging.text, staging.parameters)


def _staging(
    plan: CountingPlan, source: OpenedSource, connection: duckdb.DuckDBPyConnection, staged: Path, empty: bool = False
) -> rows_alone.Staging:
    """The statement that stages an opened source; `empty`: a single row in its place, null in all columns."""
    source, axes, parameters = prepare_rows(plan, source, connection, empty)
    tables = tuple((axis.table, dict(axis.parameters)) for axis in axes if axis.table)
    return rows_alone.Staging(_stage_statement(plan, source, axes, staged), tables, parameters)


def prepare_rows(
    plan: CountingPlan, source: OpenedSource, connection: duckdb.DuckDBPyConnection, empty: bool = False
) -> tuple[OpenedSource, list[Positions], dict[str, object]]:
    """The rows that a plan reads of an opened source, where their values lie, and what statements about them take."""
    source_plan, reading = plan.source, plan.source.reading
    source = replace(source, unit=_unit_of(plan))
    if source_plan.query is not None:
        source = select_rows(connection, source, source_plan.query, source_plan.tries)
    if empty:
        none = f"(SELECT * FROM ({source.relation}) WHERE false)"
        source = replace(source, relation=f"SELECT given.* FROM (SELECT 1) AS one LEFT JOIN {none} AS given ON true")
    source = with_derived_columns(source, plan.derive)
    _check_types(plan, source)
    as_numbers = (*(axis.column for axis in plan.axes_read.axes if axis.reads == "numbers"), *numbers_of(plan.keep))
    source, numbers = with_plain_numbers(source, as_numbers, reading.decimal_comma, reading.thousands)
    types = _with_digits(plan, source, connection)
    axes = [
        positions(read, number, types[read.column], source.by_server.get(read.column, ""), plan.parts)
        for number, axis in enumerate(plan.axes_read.axes)
        for read in [replace(axis, column=numbers.get(axis.column, axis.column)) if axis.reads == "numbers" else axis]
    ]
    source = kept_rows(source, plan.keep, types, numbers)
    parameters: dict[str, object] = {**source.parameters, **_ends(plan)}
    for axis in axes:
        parameters.update({} if axis.table else axis.parameters)
    return source, axes, parameters


def _with_digits(plan: CountingPlan, source: OpenedSource, connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """The types of a source's columns, decimals that are compared with their parameters; no record is read."""
    columns = [*(axis.column for axis in plan.axes_read.axes), *(one.column for one in plan.keep)]
    decimals = [column for column in columns if source.types[column] == "DECIMAL"]
    if not decimals:
        return dict(source.types)
    problem = "has decimals of a kind that cannot be read"
    described = columns_of(connection, plan.source.written, problem, source.relation, source.parameters)
    return {**source.types, **{column: described[column] for column in decimals}}


def _unit_of(plan: CountingPlan) -> tuple[str, ...]:
    return () if plan.privacy_unit == "row" else plan.privacy_unit.columns


def _unread_problem(found: SourcePlan) -> str:
    """The text of a message about a source that could not be read to its end."""
    trusted = ", or a row on which the allowed query fails" if found.query is not None else ""
    store = ", a store that gave no answer or whose files changed" if found.written.in_store else ""
    return f"could not be read to its end: a damaged file{store}, or no memory or disk left{trusted}"


def unit_kinds(source: SourcePlan, folder: Path) -> tuple[str, ...]:
    """What the columns of a unit hold (see `kind_of`), by the types of a source's columns; no record is read.

    Raises:
        SourceRefused, ColumnRefused: there are no files yet, or no such column, or its type names no unit.
    """
    with opened_source(source, folder, rows=False) as (_, opened):
        opened = replace(opened, unit=source.reading.unit)
        return tuple(kind_of(opened.type_of(column, UNITS, USE_OF_UNIT)) for column in opened.unit)


def check_columns(plan: CountingPlan, folder: Path) -> dict[str, str]:
    """The types of the columns that a plan names; refuses them as `stage_rows` would. No record is read.

    The first line of a CSV file may be a record. So a line that does not name the unit is compared with nothing else.
    The types are DuckDB's, of the rows that the plan's query gives if it has one; its period does not matter.
    """
    with opened_source(plan.source, folder, plan.time_zone, rows=False) as (connection, source):
        if source.is_csv and plan.privacy_unit == "row":
            raise SourceRefused(plan.source.written, UNIT_UNNAMED)
        source = replace(source, unit=_unit_of(plan))
        for column in source.unit if source.is_csv and not source.names_unit else ():
            source.type_of(column, UNITS, USE_OF_UNIT)
        if plan.source.query is not None:
            source = select_rows(connection, source, plan.source.query, plan.source.tries)
        source = with_derived_columns(source, plan.derive)
        _check_types(plan, source)
        named = (*source.unit, plan.period_column, *(axis.column for axis in plan.axes_read.axes))
        columns = (*named, *sorted(inputs_of(plan.derive, plan.keep)))
        types = {**source.types, **source.server_times}
        return {column: types[column] for column in columns if column is not None}


@contextmanager
def opened_source(
    source: SourcePlan, folder: Path, time_zone: str = "UTC", goes_on: bool = False, rows: bool = True
) -> Iterator[tuple[duckdb.DuckDBPyConnection, OpenedSource]]:
    """A DuckDB that can reach the source and the run's folder and nothing else, and the source's columns.

    Args:
        time_zone: of times without an offset, as `Europe/Zurich`; a name that DuckDB does not know is refused.
        goes_on: whether other connections to it serve after one of them met an error of the engine's own.
        rows: whether rows are read, and not the columns alone.
    """
    objects = object_stores.find_objects(source.written, source.needed) if source.written.in_store else ()
    files = () if objects or source.reading.format == "postgres" else files_of(source)
    settings = engine_settings(folder)
    if source.query is not None:  # DuckDB would move what two expressions share out of the TRY around each
        settings["disabled_optimizers"] += ",common_subexpressions"
    if goes_on:
        settings["disable_database_invalidation"] = True
    allowed = {folder, *(path.parent for path in files), *(path.resolve().parent for path in files)}
    with (
        TemporaryDirectory(dir=folder, prefix="copies_") as copies,
        closing(duckdb.connect(config=settings)) as connection,
    ):
        problem = "is a time zone that DuckDB does not know; use its common name"
        query_rows(connection, time_zone, problem, f"SET TimeZone = {literal(time_zone)}")
        if goes_on:  # for other connections, too
            connection.execute(f"SET GLOBAL TimeZone = {literal(time_zone)}")
        _attach(source, files, connection)
        connection.execute(f"SET allowed_directories = [{', '.join(literal(f'{path}/') for path in allowed)}]")
        if objects:
            connection.execute(f"SET allowed_paths = [{', '.join(map(literal, objects))}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection, _columns(source, files, objects, connection, Path(copies) if rows else None)


def files_of(source: SourcePlan) -> tuple[Path, ...]:
    """The files of a source that is in files here, sorted; refuses what leads out of the folder that was allowed."""
    written = str(source.written) if str(source.written) != source.written.resolved else None
    files = tuple(sorted({file for each in source.needed or [source.pattern] for file in find_files(each, written)}))
    folder = source.reading.folder
    if folder is not None and not all(path.resolve().is_relative_to(folder) for path in files):
        raise SourceRefused(source.written, "is a link out of the folder that was allowed; copy the files into it")
    return files


def _attach(source: SourcePlan, files: tuple[Path, ...], connection: duckdb.DuckDBPyConnection) -> None:
    """Attaches the database, or reaches the object store, that a plan names, if it names one."""
    if source.written.in_store:
        object_stores.reach(connection, source.written)
    elif source.reading.format == "postgres":
        databases.attach_server(connection, source.written.resolved, source.written)
    elif source.reading.format == "duckdb":
        if len(files) > 1:
            raise SourceRefused(source.written, "finds several databases, and a release reads one; name its file")
        databases.attach_file(connection, str(files[0]), source.written)


def _columns(
    source: SourcePlan,
    files: tuple[Path, ...],
    objects: tuple[str, ...],
    connection: duckdb.DuckDBPyConnection,
    copies: Path | None,
) -> OpenedSource:
    reading, table = source.reading, str(source.reading.table)
    if reading.format == "postgres":
        return databases.open_server_table(connection, table, source.written)
    if reading.format == "duckdb":
        return databases.open_file_table(connection, table, source.written)
    if objects:
        return object_stores.open_objects(connection, objects, source.written, reading.hive, source.number_columns)
    return open_files(connection, files, source, copies)


def _check_types(plan: CountingPlan, source: OpenedSource) -> None:
    """Refuses columns that are missing or cannot serve, before any row is read."""
    columns = (*_unit_of(plan), *(axis.column for axis in plan.axes_read.axes), plan.period_column)
    source.refuse_missing(column for column in columns if column is not None)
    for axis in plan.axes_read.axes:
        if isinstance(axis, CalendarAxis):  # reads days
            kind = source.type_of(axis.column, TIMES, f"a calendar axis, which takes {DATES_AND_TIMES}")
            _refuse_needless_format(source, axis.column, kind, axis.format, "format")
        elif isinstance(axis, ByText):
            use = "a categorical axis, which takes text, whole numbers and the like"
            kind = source.type_of(axis.column, CATEGORIES, use)
            if refused := keys_of(axis, source.by_server.get(axis.column, kind)).refused:
                raise ColumnRefused(axis.column, refused)
        else:
            _check_numbers(axis, source)
    if plan.privacy_unit != "row":
        for column in plan.privacy_unit.columns:
            source.type_of(column, UNITS, USE_OF_UNIT)
        _check_unit_kinds(plan, source)
    if plan.period_column is not None:
        kind = source.type_of(plan.period_column, TIMES, f"a period column, which takes {DATES_AND_TIMES}")
        _refuse_needless_format(source, plan.period_column, kind, plan.period_format, "period_format")
    for column, field in plan.undeclared_dates.items():
        if source.types[column] in TEXT and column not in source.server_times:
            raise ColumnRefused(column, undeclared_dates(field))
    check_kept(source, plan.keep)


def _check_numbers(axis: BinnedAxis | AmountAxis, source: OpenedSource) -> None:
    if isinstance(axis, AmountAxis):
        source.type_of(axis.column, NUMBERS, "an amount, which takes numbers or text that holds numbers")
        return
    use = "a binned axis, which takes numbers or text that holds numbers"
    kind = source.type_of(axis.column, (*NUMBERS, *DURATIONS), use)
    if kind in DURATIONS and axis.unit is None:
        problem = f"has type {kind}, a length of time, and no `unit` says what the axis counts"
        raise ColumnRefused(axis.column, f"{problem}; write `unit: days`, or another of {', '.join(SECONDS)}")
    if kind not in (*DURATIONS, "NULL") and axis.unit is not None:
        problem = f"has type {kind}, and `unit` is for lengths of time"
        raise ColumnRefused(axis.column, f"{problem}; remove `unit`: the numbers count as they are")


def _check_unit_kinds(plan: CountingPlan, source: OpenedSource) -> None:
    """Refuses a unit of another kind than was decided on: other values of it might be one person, or several."""
    for column, decided in zip(plan.privacy_unit.columns, plan.source.reading.unit_kinds, strict=False):
        kind = kind_of(source.types[column])
        if plan.source.number_columns and {kind, decided} <= {"text", "whole number", "number"}:
            continue
        if "NULL" not in (kind, decided) and kind != decided:
            problem = f"holds {kind}, and was {decided} when the source was allowed; have it allowed anew"
            raise ColumnRefused(column, problem)


def _refuse_needless_format(source: OpenedSource, column: str, kind: str, declared: str | None, field: str) -> None:
    """Refuses a format of dates for a column that is no text."""
    kind = source.server_times.get(column, kind)
    if declared and kind not in ALWAYS:
        raise ColumnRefused(column, f"has type {kind}, which needs no `{field}`; remove that")


def _stage_statement(plan: CountingPlan, source: OpenedSource, axes: list[Positions], staged: Path) -> str:
    """Nested projections: values and names, units, places step by step, places by join, the cell number."""
    unit = [] if plan.privacy_unit == "row" else ["unit"]
    values = [f"{axis.value} AS value_{number}" for number, axis in enumerate(axes)]
    if unit:
        reading = plan.source.reading
        point = "," if reading.decimal_comma else "."
        named = unit_sql(plan.privacy_unit.columns, reading.unit_normalise, source, point)
        values += [f"{text} AS {name}" for name, text in named.names.items()]
    found = [f"value_{number}" for number in range(len(axes))]
    if plan.per_unit is not None and plan.period_column is not None:
        values.append(f"{moment_of(plan, source, plan.period_column)} AS moment")
        found.append("moment")
    if plan.rows_seen is not None:
        values += [f"{axis.absent} AS absent_{number}" for number, axis in enumerate(axes)]
        found += [f"absent_{number}" for number in range(len(axes))]
    rows = f"SELECT {', '.join(values)} FROM ({source.relation}) WHERE {in_period(plan, source)}"
    if unit:
        for step in named.steps:
            made = ", ".join(f"{text} AS {name}" for name, text in step.items())
            rows = f"SELECT * REPLACE ({made}) FROM ({rows})"
        rows = f"SELECT {', '.join(found)}, {named.unit} AS unit FROM ({rows}) WHERE {named.known}"
    for level, steps in enumerate(zip_longest(*(axis.steps for axis in axes))):
        places = ", ".join(f"{step} AS place_{number}" for number, step in enumerate(steps) if step)
        rows = f"SELECT *{f' REPLACE ({places})' if level else f', {places}'} FROM ({rows})"
    joined = [f"{axis.joined} AS place_{number}" for number, axis in enumerate(axes) if axis.joined]
    rows = f"SELECT {', '.join(['staged.*', *joined])} FROM ({rows}) AS staged {' '.join(axis.join for axis in axes)}"
    codes = _codes(plan, axes)
    selected = [*(f"{code} AS {name}" for name, code in codes.items()), *unit]
    counted = "*, count(*) AS rows"
    if plan.axes_read.amount is not None:
        parts = axes[plan.axes_read.amount].parts
        # Where rows are put in order, those without an amount come last.
        selected.append(f"{parts if plan.per_unit is None else f'coalesce({parts}, {plan.parts + 1})'} AS amount")
        counted = "* EXCLUDE (amount), count(*) AS rows, CAST(sum(amount) AS BIGINT) AS amount"
    if plan.rows_seen is not None:
        selected += _marks(plan, axes)
    return statement(
        "ingest/stage_rows",
        columns="*" if unit else counted,
        cells=f"SELECT {', '.join(selected)} FROM ({rows})",
        kept=" AND ".join(f"{name} IS NOT NULL" for name in codes) if unit and plan.rows_seen is None else "true",
        grouped="" if unit else "GROUP BY ALL",
        target=literal(str(staged)),
    )


def _codes(plan: CountingPlan, axes: list[Positions]) -> dict[str, str]:
    """SQL of the cell's number; or, where tables are counted instead of the grid, of the words that hold a row.

    Where something is derived of a unit's rows: of a row's time and its positions, undeclared values last.
    """
    if plan.per_unit is not None:
        places = {
            f"along_{number}": f"CAST(coalesce({read.cell}, {axis.size}) AS INTEGER)"
            for number, (axis, read) in enumerate(zip(plan.axes_read.axes, axes, strict=True))
        }
        return {"moment": "CASE WHEN isfinite(moment) THEN epoch_us(moment) END", **places}
    if not plan.marginals:
        steps = zip(axes, plan.domain.strides_of_rows, strict=True)
        code = " + ".join(f"({axis.cell}) * {step}" for axis, step in steps)
        return {"code": f"CAST({code} AS INTEGER)"}
    words = words_of(plan.domain)
    sums = [" + ".join(f"CAST({axes[axis].cell} AS BIGINT) * {stride}" for axis, stride in word) for word in words]
    return dict(zip(names_of(words), sums, strict=True))


def _marks(plan: CountingPlan, axes: list[Positions]) -> list[str]:
    """SQL of numbers with a digit for each axis, which says whether the row's value is declared."""
    digits = []
    for number, (axis, read) in enumerate(zip(plan.axes_read.axes, axes, strict=True)):
        outside = f"({read.cell}) IS NULL" if axis.other_cell is None else f"({read.cell}) = {axis.other_cell}"
        outside = read.outside or outside
        digit = f"CASE WHEN absent_{number} THEN {UNPARSED} WHEN {outside} THEN {UNDECLARED} ELSE 0 END"
        digits.append(f"CAST({digit} AS BIGINT)")
    return [
        " + ".join(f"{digits[axis]} * {MARKS ** (axis - within[0])}" for axis in within) + f" AS {name}"
        for name, within in mark_words(len(axes)).items()
    ]


def moment_of(plan: CountingPlan, source: OpenedSource, column: str) -> str:
    """SQL of the local wall clock of a row by the period's column, null where that does not parse."""
    return wall_clock(column, source.types[column], plan.period_format)


def in_period(plan: CountingPlan, source: OpenedSource) -> str:
    """SQL of whether a row happened in the plan's period, or `outside` of it: local wall clock is compared.

    It is null, and takes no row, where the row's time does not parse.
    """
    if plan.period_column is None:
        return "true"
    moment = moment_of(plan, source, plan.period_column)
    within = f"{moment} >= CAST($period_start AS TIMESTAMP) AND {moment} < CAST($period_end AS TIMESTAMP)"
    return f"NOT ({within})" if plan.outside else within


def in_folders_of_period(
    connection: duckdb.DuckDBPyConnection, plan: CountingPlan, source: OpenedSource
) -> OpenedSource:
    """The source without files in folders `column=value` of another period: DuckDB would open and read them all.

    One file stays in each list, which may not be empty; its rows are in another period by themselves.
    """
    begins = f"{plan.period_column}="
    if not plan.source.reading.hive or plan.source.query is not None or plan.period_column is None or not _ends(plan):
        return source
    lists = {name: files for name, files in source.parameters.items() if isinstance(files, list)}
    values = {
        file: unquote(part.removeprefix(begins), errors="replace")
        for file in chain.from_iterable(lists.values())
        for part in PurePath(file).parts[:-1]
        if part.startswith(begins)
    }
    if not values:
        return source
    of_folders = f"SELECT unnest($folders) AS {identifier(plan.period_column)}"
    found = f"SELECT {identifier(plan.period_column)} FROM ({of_folders}) WHERE {in_period(plan, source)}"
    folders = connection.execute(found, {"folders": sorted(set(values.values())), **_ends(plan)}).fetchall()
    in_it = {value for (value,) in folders}
    kept = {name: [file for file in files if values.get(file) in in_it] or files[:1] for name, files in lists.items()}
    return replace(source, parameters={**source.parameters, **kept})


def _ends(plan: CountingPlan) -> dict[str, str]:
    if plan.period_column is None or plan.reads_from is None or plan.period.end is None:
        return {}
    ends = {"period_start": plan.reads_from, "period_end": plan.period.end}
    return {name: moment.replace(tzinfo=None).isoformat(sep=" ") for name, moment in ends.items()}
