"""Tables of databases as sources: attached read-only, and nothing is ever installed or downloaded for it.

PostgreSQL gives every column as text, made by the server: its own types hold values that DuckDB's have no place for (a
number that is NaN, a day in the year 100,000), on which a reader would fail. Such text is parsed row by row, as CSV is.
"""

from __future__ import annotations

import duckdb

from dphist_pipeline.base.sql_files import identifier, literal, statement
from dphist_pipeline.confidential.reading.source import (
    OpenedSource,
    SourceRefused,
    columns_of,
    load,
    plain_type,
    query_rows,
    with_possible_times,
)
from dphist_pipeline.errors import did_you_mean

OFFICE = "office"
EXTENSION = "postgres_scanner"
# Kinds of tables that hold rows: views are queries, and nobody has judged those.
_HOLD_ROWS = {"r", "p", "m"}
_TIMES = {"date", "timestamp", "timestamptz"}
# As which categories are compared with a column's text.
_MEANT = {
    **{"int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "numeric": "NUMERIC"},
    **{"float4": "FLOAT", "float8": "DOUBLE", "bool": "BOOLEAN", "uuid": "UUID", "date": "DATE"},
}
_READ_AS_TEXT = {
    *("bool", "int2", "int4", "int8", "numeric", "float4", "float8"),
    *("text", "varchar", "bpchar", "uuid", "enum"),
}


def attach_file(connection: duckdb.DuckDBPyConnection, path: str, written: str) -> None:
    """Attaches a DuckDB file, to be read only."""
    problem = "cannot be opened as a DuckDB database: damaged, of another version, or open for writing elsewhere"
    query_rows(connection, written, problem, f"ATTACH {literal(path)} AS {OFFICE} (READ_ONLY)")


def attach_server(connection: duckdb.DuckDBPyConnection, address: str, written: str) -> None:
    """Attaches a PostgreSQL database, to be read only; its address is never shown.

    address: a connection string of PostgreSQL, password and all.
    """
    load(connection, EXTENSION, written)
    problem = "cannot be reached. Check the address in the environment, the password, and whether the server runs."
    query_rows(connection, written, problem, f"ATTACH {literal(address)} AS {OFFICE} (TYPE postgres, READ_ONLY)")


def open_file_table(connection: duckdb.DuckDBPyConnection, table: str, written: str) -> OpenedSource:
    """The columns of a table in the attached DuckDB file.

    table: as `table`, in the schema `main`, or as `schema.table`; views and computed columns are refused.
    """
    schema, name = _parts(table, "main")
    query = "SELECT table_name, sql FROM duckdb_tables() WHERE database_name = $office AND schema_name = $schema"
    places = {"office": OFFICE, "schema": schema}
    tables = dict(query_rows(connection, written, "has no readable list of tables", query, places))
    if name not in tables:
        raise SourceRefused(written, f"has no table {table!r} (views are not read). {did_you_mean(name, tables)}")
    if "GENERATED ALWAYS" in str(tables[name]).upper():
        raise SourceRefused(written, f"has computed columns in {table!r}, which may fail on a row; copy the table")
    relation = f"SELECT * FROM {OFFICE}.{identifier(schema)}.{identifier(name)}"
    described = columns_of(connection, written, "cannot be read", relation)
    types = {column: plain_type(kind) for column, kind in described.items()}
    return OpenedSource(types, with_possible_times(types, f"({relation})"), {})


def open_server_table(connection: duckdb.DuckDBPyConnection, table: str, written: str) -> OpenedSource:
    """The columns of a table in the attached PostgreSQL database.

    table: as `table`, in the schema `public`, or as `schema.table`; views are refused.
    """
    schema, name = _parts(table, "public")
    query = statement("ingest/postgres_columns", schema=literal(schema), table=literal(name))
    columns = query_rows(connection, written, "does not answer", _of_server(query))
    if not columns:
        raise SourceRefused(written, f"has no table {table!r}, or none that its user may see. Check `source_table`.")
    kind, encoding = columns[0][0], columns[0][1]
    if kind not in _HOLD_ROWS:
        raise SourceRefused(written, f"has {table!r}, which is no table; name one, or copy the view into a table")
    if encoding != "UTF8":
        raise SourceRefused(written, "is not encoded in UTF-8, so that a row may fail; copy the table elsewhere")
    types = {column: _kind(type_name, generated) for _, _, column, type_name, generated in columns}
    texts = ", ".join(
        _as_text(column, type_name) for _, _, column, type_name, _ in columns if types[column] == "VARCHAR"
    )
    if not texts:
        raise SourceRefused(written, f"has no column in {table!r} that can be read as text")
    rows = f"SELECT {texts} FROM {identifier(schema)}.{identifier(name)}"
    meant = {column: _MEANT[name] for _, _, column, name, _ in columns if types[column] == "VARCHAR" and name in _MEANT}
    times = {column: kind.upper() for _, _, column, kind, _ in columns if kind in _TIMES and types[column] == "VARCHAR"}
    return OpenedSource(types, _of_server(rows), {}, by_server=meant, server_times=times)


def _of_server(query: str) -> str:
    """SQL that has the server answer a query."""
    return f"SELECT * FROM postgres_query({literal(OFFICE)}, {literal(query)})"


def _kind(type_name: str, generated: str) -> str:
    """The type that the column is read as: text, or its own kind, which no axis takes."""
    if generated == "v":
        return "GENERATED"
    if type_name in _READ_AS_TEXT | _TIMES:
        return "VARCHAR"
    return "INTERVAL of PostgreSQL" if type_name == "interval" else type_name.upper()


def _as_text(column: str, type_name: str) -> str:
    """The server's own text of a column; of times the one that no setting of the server changes."""
    name = identifier(column)
    text = f"to_json({name}) #>> '{{}}'" if type_name in _TIMES else f"{name}::text"
    return f"{text} AS {name}"


def _parts(table: str, schema: str) -> tuple[str, str]:
    before, dot, name = table.rpartition(".")
    return (before, name) if dot else (schema, table)
