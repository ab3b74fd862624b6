"""Columns made of a source's own, row by row: by the spec's query, or numbers from text with other signs in it."""

from __future__ import annotations

from dataclasses import replace

import duckdb

from dphist_pipeline.confidential.reading import _lengths as lengths
from dphist_pipeline.confidential.reading.source import (
    ALWAYS,
    TIMES,
    ColumnRefused,
    Source,
    SourceRefused,
    columns_of,
    lacks,
    plain_type,
)
from dphist_pipeline.declared_numbers import ARROW_DURATIONS, NUMBERS, physical_type
from dphist_pipeline.spec.sources import SqlFile
from dphist_pipeline.sql_files import identifier, literal

BLANKS = " \u00a0\u202f"  # that stand between thousands
# A query sees a length of time by Arrow as the whole number that it is stored as.
READ_BY_QUERIES = (*NUMBERS, *TIMES, *ALWAYS, *ARROW_DURATIONS, "BOOLEAN", "UUID")


def select_rows(connection: duckdb.DuckDBPyConnection, source: Source, file: SqlFile, unit: tuple[str, ...]) -> Source:
    """What the query of a spec gives, refused unless it fits the columns that the source has; no record is read.

    Args:
        file: of a query that was judged row by row, or allowed by an operator.
        unit: columns, as the query names them, that make up the privacy unit; only `row` where each row is its own.
    """
    query, by_name = file.query, {name.lower(): name for name in source.types}
    for column in sorted(source.lacking) if query.trusted and source.is_csv else ():  # it may read any
        raise ColumnRefused(column, lacks(source.lacking[column]))
    for column in sorted(query.columns):
        _check_readable(source, column, by_name, file)
    made_of = [query.outputs.get(column, ()) for column in unit]
    guarded = {by_name[column.lower()] for columns in made_of for column in columns}
    rows = _with_safe_text(source, guarded, _passed_on(source, file, unit))
    relation = f"WITH source AS NOT MATERIALIZED ({rows}) SELECT * FROM ({query.text}) AS given"
    problem = "does not fit the columns of the source, or gives two columns of one name"
    described = columns_of(connection, file, problem, relation, source.parameters)
    types = {name: plain_type(kind) for name, kind in described.items()}
    _check_names(source, file, types)
    unchanged = _unchanged(source, file, by_name, types)
    kept = {name: source.types[column] for name, column in unchanged.items()}
    by_server = {name: source.by_server[column] for name, column in unchanged.items() if column in source.by_server}
    starred = {*source.types} - {*query.excluded} if "*" in query.outputs else set()
    return replace(
        source,
        types={**types, **kept},
        relation=relation,
        lacking={column: called for column, called in source.lacking.items() if column in starred},
        server_times={},
        by_server=by_server,
    )


def _check_readable(source: Source, column: str, by_name: dict[str, str], written: str) -> None:
    name = by_name.get(column.lower())
    if name is None:
        raise ColumnRefused(column, f"is read by {written} and is not in the source. {source.nearest(column)}")
    if name in source.lacking:
        raise ColumnRefused(name, lacks(source.lacking[name]))
    kind = source.types[name]
    if kind not in READ_BY_QUERIES:
        raise ColumnRefused(column, f"has type {kind}, which a query cannot read row by row without failing")


def _passed_on(source: Source, file: SqlFile, unit: tuple[str, ...]) -> set[str]:
    """The unit's columns that the query gives as they are."""
    query = file.query
    starred = {*source.types} - {*query.excluded} if "*" in query.outputs else set()
    return {column for column in unit if column in starred or query.bare.get(column) == column}


def _with_safe_text(source: Source, guarded: set[str], passed_on: set[str]) -> str:
    """The source, with null for text that a query must not see.

    That is text of more than `lengths.LONGEST_TEXT` bytes, of which functions would make copies beyond all memory, and
    text that a unit is made of and that was not UTF-8: such bytes are read as one sign, so that a unit made of them may
    be that of somebody else, and what the query makes of the text would hide it.

    `guarded`: the columns that a unit is made of; `passed_on`: those that the query leaves as they are, however long.
    """
    replaced = []
    for column in (column for column, kind in source.types.items() if kind in lengths.TEXT):
        name = identifier(column)
        text = f"TRY_CAST({name} AS VARCHAR)"
        unsafe = [f"strlen({text}) > {lengths.LONGEST_TEXT}"] if column not in passed_on else []
        unsafe += [f"contains({text}, {literal(source.replaced)})"] if source.replaced and column in guarded else []
        if unsafe:
            replaced.append(f"CASE WHEN {' OR '.join(unsafe)} THEN NULL ELSE {name} END AS {name}")
    return f"SELECT * REPLACE ({', '.join(replaced)}) FROM ({source.relation})" if replaced else source.relation


def _check_names(source: Source, file: SqlFile, types: dict[str, str]) -> None:
    """Refuses a name that `*` and an item both give: DuckDB would rename one of them."""
    query = file.query
    if "*" in query.outputs:
        left_out = {name.lower() for name in query.excluded}
        starred = {name.lower() for name in source.types} - left_out
        twice = sorted(starred & {name.lower() for name in query.outputs})
        if twice:
            raise SourceRefused(file, f"gives the column {twice[0]!r} twice; write `* EXCLUDE ({twice[0]})`")


def _unchanged(source: Source, file: SqlFile, by_name: dict[str, str], types: dict[str, str]) -> dict[str, str]:
    """The columns that are passed on unchanged, and what the source calls them.

    Their types are as in the source, so that unsupported types stay unsupported. Of a trusted query, which may compute
    a column of the same name, only those of types that the engine does not know by themselves.
    """
    query, computed = file.query, {name.lower() for name in file.query.outputs}
    if query.trusted:
        return {
            name: name
            for name, kind in types.items()
            if (declared := source.types.get(name)) is not None
            and (declared not in READ_BY_QUERIES or declared != physical_type(declared) == kind)
        }
    starred = {name for name in types if "*" in query.outputs and name in source.types and name.lower() not in computed}
    return {name: name for name in starred} | {name: by_name[column.lower()] for name, column in query.bare.items()}


def with_plain_numbers(
    source: Source, columns: tuple[str, ...], decimal_comma: bool, thousands: str | None
) -> tuple[Source, dict[str, str]]:
    """The source with a column of numbers for each of `columns` that is text with other signs than a decimal point.

    With decimal commas a text with a point is no number, unless points stand between thousands: nobody knows what it
    parts. A sign between thousands stands before every three digits, else the text is no number.

    Args:
        columns: those that are read as numbers.

    Returns:
        The source, and under which name each of those columns has its numbers.
    """
    texts = [column for column in dict.fromkeys(columns) if source.types[column] in lengths.TEXT]
    if not texts or not (decimal_comma or thousands):
        return source, {}
    taken = {name.lower() for name in source.types}
    fresh = (name for number in range(len(taken) + len(texts)) if (name := f"number_{number}") not in taken)
    names = dict(zip(texts, fresh, strict=False))
    numbers = ", ".join(
        f"{_with_point(column, decimal_comma, thousands)} AS {identifier(name)}" for column, name in names.items()
    )
    types = {**source.types, **dict.fromkeys(names.values(), "VARCHAR")}
    relation = f"SELECT *, {numbers} FROM ({source.relation})"
    return replace(source, types=types, relation=relation), names


def _with_point(column: str, decimal_comma: bool, thousands: str | None) -> str:
    """SQL of a text number without signs between thousands and with a decimal point; null for other texts."""
    text = lengths.value_of(column, "VARCHAR")
    if thousands:
        signs, mark = BLANKS if thousands == " " else thousands, "," if decimal_comma else "."
        text = f"trim({text})"
        grouped = rf"[-+]?[0-9]{{1,3}}(?:[{signs}][0-9]{{3}})+(?:[{mark}][0-9]*)?"
        plain = (
            f"CASE WHEN regexp_full_match({text}, {literal(grouped)}) THEN translate({text}, {literal(signs)}, '') END"
        )
        text = f"CASE WHEN {text} = translate({text}, {literal(signs)}, '') THEN {text} ELSE {plain} END"
    return f"CASE WHEN contains({text}, '.') THEN NULL ELSE replace({text}, ',', '.') END" if decimal_comma else text
