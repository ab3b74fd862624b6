"""Published tables inside any DuckDB database: the tables and macros of the catalogue, in a schema of their own.

    install(connection, "store")
    connection.sql("FROM dph.dph_box('dph.weekly_admissions', {'ward': 'surgery'})")

Nothing of it needs this package, or the store, once it is installed.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from dphist_pipeline.answering.catalogue import list_publications
from dphist_pipeline.answering.catalogue_tables import create_tables
from dphist_pipeline.errors import DphistError
from dphist_pipeline.sql_files import identifier


class NothingToInstall(DphistError):
    """A folder holds no published release."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        super().__init__(f"no release is published in {folder}; give a store, or a copy of its public folder")


class SchemaTaken(DphistError):
    """A schema of that name holds something else."""

    def __init__(self, schema: str) -> None:
        self.schema = schema
        super().__init__(
            f"the schema '{schema}' holds tables that were not installed here; give another name: `schema=`"
        )


def install(connection: duckdb.DuckDBPyConnection, folder: str | Path, schema: str = "dph") -> list[str]:
    """Copies every published table and all macros into a schema of the connection's database, and names the tables.

    Done again, it replaces what it installed before; another connection sees the old or the new.

    Args:
        connection: may be written to.
        folder: a store, or a copy of its public folder.
        schema: of the database that the connection uses.

    Raises:
        NothingToInstall: no release is published there.
        SchemaTaken: the schema holds something else.
        PublishedFilesDamaged: a published file is missing or altered.
    """
    public = Path(folder) / "public"
    found = list_publications(public if public.is_dir() else Path(folder))
    if not found:
        raise NothingToInstall(Path(folder))
    connection.execute("BEGIN TRANSACTION")
    try:
        _clear(connection, schema)
        create_tables(connection, found, schema)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return sorted({audit["release"] for _, audit in found})


def _clear(connection: duckdb.DuckDBPyConnection, schema: str) -> None:
    """Makes the schema, empty; refuses one that holds tables but none of ours."""
    tables = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = $schema AND database_name = current_database()",
        {"schema": schema},
    ).fetchall()
    if tables and ("dph_version",) not in tables:
        raise SchemaTaken(schema)
    if tables:
        connection.execute(f"DROP SCHEMA {identifier(schema)} CASCADE")
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {identifier(schema)}")
