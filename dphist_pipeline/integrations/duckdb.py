"""Published tables inside any DuckDB database: the tables and macros of the catalogue, in a schema of their own.

    install(connection, "store")
    connection.sql("FROM dph.dph_box('dph.weekly_admissions', {'ward': 'surgery'})")

Nothing of it needs this package, or the store, once it is installed.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from dphist_pipeline.answering.catalogue import Catalogue
from dphist_pipeline.answering.catalogue_tables import create_tables
from dphist_pipeline.base.sql_files import identifier
from dphist_pipeline.errors import Refused


def nothing_to_install(folder: Path) -> Refused:
    """A folder holds no published release."""
    return Refused(
        f"no release is published in {folder}; give a store, or a copy of its public folder", code="nothing_to_install"
    )


def schema_taken(schema: str) -> Refused:
    """A schema of that name holds something else."""
    return Refused(
        f"the schema '{schema}' holds tables that were not installed here; give another name: `schema=`",
        code="schema_taken",
    )


def install(connection: duckdb.DuckDBPyConnection, folder: str | Path, schema: str = "dph") -> list[str]:
    """Copies every published table and all macros into a schema of the connection's database, and names the tables.

    Run it again, and it replaces what it installed before; another connection sees the old or the new. The folder is a
    store's, or a copy of its public folder.

    Raises:
        Refused: no release is published there, or the schema holds something else.
        PublishedFilesDamaged: a published file is missing or altered.
    """
    public = Path(folder) / "public"
    publications = Catalogue(public if public.is_dir() else Path(folder)).publications()
    if not publications:
        raise nothing_to_install(Path(folder))
    connection.execute("BEGIN TRANSACTION")
    try:
        _clear(connection, schema)
        create_tables(connection, publications, schema)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return sorted({audit["release"] for _, audit in publications})


def _clear(connection: duckdb.DuckDBPyConnection, schema: str) -> None:
    """Makes the schema, empty; refuses one that holds tables but none of ours."""
    tables = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = $schema AND database_name = current_database()",
        {"schema": schema},
    ).fetchall()
    if tables and ("dph_version",) not in tables:
        raise schema_taken(schema)
    if tables:
        connection.execute(f"DROP SCHEMA {identifier(schema)} CASCADE")
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(schema)}")
