"""What a spec's query gives of a source, and numbers from text with other signs in it."""

from __future__ import annotations

from dataclasses import replace

import duckdb

from dphist_pipeline.base.declared_numbers import ARROW_DURATIONS, NUMBERS, physical_type
from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.confidential.reading import _lengths as lengths
from dphist_pipeline.confidential.reading.source import (
    ALWAYS,
    TIMES,
    ColumnRefused,
    OpenedSource,
    SourceRefused,
    columns_of,
    lacks,
    plain_type,
)
from dphist_pipeline.spec.sources import SqlFile

BLANKS = " \u00a0\u202f"  # that stand between thousands
# A query sees a length of time by Arrow as the whole number that it is stored as.
READ_BY_QUERIES = (*NUMBERS, *TIMES, *ALWAYS, *ARROW_DURATIONS, "BOOLEAN", "UUID")


def select_rows(
    connection: duckdb.DuckDBPyConnection, source: OpenedSource, file: SqlFile, tries: bool
) -> OpenedSource:
    """What the query of a spec gives, refused unless it fits the columns that the source has; no record is read.

    Args:
        file: of a query that an operator signed, which may read any column.
        tries: whether an item that raises is null; where DuckDB does not bind it so, it stays as it was signed.
    """
    for column in sorted(source.lacking) if source.is_csv else ():
        raise ColumnRefused(column, lacks(source.lacking[column]))
    problem = "does not fit the columns of the source, or gives two columns of one name"
    texts = dict.fromkeys([file.query.tried, file.query.text] if tries else [file.query.text])
    for number, text in enumerate(texts, 1):
        relation = f"WITH source AS NOT MATERIALIZED ({_with_short_text(source)}) SELECT * FROM ({text}) AS given"
        try:
            described = columns_of(connection, file, problem, relation, source.parameters)
            break
        except SourceRefused:
            if number == len(texts):
                raise
    types = {name: plain_type(kind) for name, kind in described.items()}
    # A query may compute a column of any name. Types that the engine does not know by themselves stay unsupported.
    kept = {
        name: declared
        for name, kind in types.items()
        if (declared := source.types.get(name)) is not None
        and (declared not in READ_BY_QUERIES or declared != physical_type(declared) == kind)
    }
    by_server = {name: source.by_server[name] for name in kept if name in source.by_server}
    return replace(source, types={**types, **kept}, relation=relation, lacking={}, server_times={}, by_server=by_server)


def _with_short_text(source: OpenedSource) -> str:
    """The source, with null for text of more than `lengths.LONGEST_TEXT` bytes.

    Functions of a query would make copies of it beyond all memory.
    """
    replaced = []
    for name in (identifier(column) for column, kind in source.types.items() if kind in lengths.TEXT):
        is_long = f"strlen(TRY_CAST({name} AS VARCHAR)) > {lengths.LONGEST_TEXT}"
        replaced.append(f"CASE WHEN {is_long} THEN NULL ELSE {name} END AS {name}")
    return f"SELECT * REPLACE ({', '.join(replaced)}) FROM ({source.relation})" if replaced else source.relation


def with_plain_numbers(
    source: OpenedSource, columns: tuple[str, ...], decimal_comma: bool, thousands: str | None
) -> tuple[OpenedSource, dict[str, str]]:
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
