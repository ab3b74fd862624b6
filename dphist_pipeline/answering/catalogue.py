"""Builds the catalogue: one DuckDB file with every published table and the macros that answer questions.

The file is built from the public files and renamed into place. So it can be read during a publication, copied anywhere,
and attached read-only in plain DuckDB. For each release it holds a table of its cells (all periods and revisions, with
the number of each cell) and two views of it; see `views`. The other tables are those of `catalogue_rows.TABLES`:

    dph_releases       one row per publication: its privacy promise, and the scale and variance of a draw of its noise;
                       for a release of the local model, the error law of estimates from reports instead
    dph_bins           one row per position along an axis of a grid: its bin or category; each level of a hierarchy has
                       rows of its own; `atoms` is the number of report intervals in the bin
    dph_half_widths    for each noise scale, the half width of a 95 % interval by number of cells in the sum (`_of_two`:
                       97.5 %, so that two such intervals hold together)
    dph_covariance     for linear estimates: the covariance of two cells is the sum of the coefficients of the levels on
                       which both lie in the same node; a node is `width` cells wide along each axis
    dph_quality_rows   the quality tables of publications that have one: one row per number, in the order of the file
    dph_version        one row: the version of the macros and tables
    dph_linear_widths  for each noise scale, the half width of a 95 % interval of a linear estimate in standard
                       deviations, by the number of draws with the same variance
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.answering.catalogue_rows import (
    TABLES,
    bin_rows,
    comments_of,
    covariance_rows,
    grid_of,
    is_linear,
    most_draws,
    quality_table,
    release_rows,
    width_rows,
)
from dphist_pipeline.answering.macros import MACROS, macro
from dphist_pipeline.answering.row_quality import read_rows
from dphist_pipeline.answering.views import CELLS, Described, macro_comment, table_comments, view_statements
from dphist_pipeline.publishing.parquet_tables import OUR_COLUMNS
from dphist_pipeline.publishing.release_files import read_audit
from dphist_pipeline.releasing.store import Key
from dphist_pipeline.sql_files import identifier, literal

NAME = "catalog.duckdb"
ROWS = "dph_rows"
Publication = tuple[Path, dict[str, Any]]  # its folder, and its audit
OLDEST_DUCKDB = "v1.4.0"  # the oldest version that can read the file


def build_catalogue(public: Path, scratch: Path) -> Path:
    """Writes `catalog.duckdb` beside the releases; programs that have the old file open keep reading it.

    Args:
        public: the store's public folder.
        scratch: a private folder on the same file system, for the draft.

    Raises:
        PublishedFilesDamaged: a published file is missing or altered.
    """
    draft, catalogue = scratch / NAME, public / NAME
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH {literal(str(draft))} AS catalogue (STORAGE_VERSION '{OLDEST_DUCKDB}')")
        connection.execute("USE catalogue")
        create_tables(connection, list_publications(public))
    draft.chmod(0o644)
    # A program that opened the old catalogue to write and was killed leaves this file, and DuckDB refuses a new
    # catalogue beside it.
    catalogue.with_name(f"{NAME}.wal").unlink(missing_ok=True)
    return draft.replace(catalogue)


def is_up_to_date(public: Path, folder: Path) -> bool:
    """Whether the catalogue can be read, has the current macros, and contains a publication as it is now.

    Args:
        public: the store's public folder.
        folder: of the publication.
    """
    digest = json.loads((folder / "audit.json").read_bytes())["audit_digest"]
    with duckdb.connect() as connection:
        return digest in attach_catalogue(connection, public)


def attach_catalogue(connection: duckdb.DuckDBPyConnection, public: Path) -> frozenset[str]:
    """Attaches the catalogue as `catalogue`, and returns the audit digests of its publications.

    Returns an empty set if the catalogue cannot be read or has other macros.

    Args:
        connection: to a database in memory; an open file would share an older file of that name in this process.
        public: the store's public folder.
    """
    try:
        connection.execute(f"ATTACH {literal(str(public / NAME))} AS catalogue (READ_ONLY)")
        known = connection.execute("SELECT audit_digest FROM catalogue.dph_releases").fetchall()
        made_by = connection.execute("SELECT version FROM catalogue.dph_version").fetchall()
    except duckdb.Error:  # the file is missing or damaged, or another version made it
        return frozenset()
    return frozenset(digest for (digest,) in known) if made_by == [(_version(),)] else frozenset()


def _version() -> str:
    """A digest of tables and macros, so that a catalogue of an older version is rebuilt."""
    tables = [f"{columns}{comments_of(columns)}" for _, columns in TABLES.values()]
    columns = [*("period", "revision", "cell_number", "a_lower", "a_upper", "b", "b_label"), *OUR_COLUMNS]
    axes = [{"column": "a", "edges": [0, 1]}, {"column": "b", "values": ["c"], "labels": ["C"]}]
    views = view_statements("", Described.of("example", columns, [{"axes": axes}]), set())
    told = [*tables, *views, *map(macro, MACROS)]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def list_publications(public: Path) -> list[Publication]:
    """Every publication, ordered by release, period and revision.

    Ignores folders that were renamed, and publications that were withdrawn.

    Args:
        public: the store's public folder.
    """
    folders = [path.parent for path in public.glob("*/period=*/revision=*/audit.json")]
    found = []
    for folder in folders:
        if folder.name.removeprefix("revision=").isdecimal():
            audit = read_audit(folder)
            key = Key(audit["release"], audit["period"], audit["revision"])
            if folder == public / key.public_place and "withdrawn" not in audit:
                found.append((folder, audit))
    return sorted(found, key=lambda publication: [publication[1][name] for name in ("release", "period", "revision")])


def create_tables(
    connection: duckdb.DuckDBPyConnection, publications: list[Publication], schema: str | None = None
) -> None:
    """Creates all tables, views and macros of the catalogue.

    Args:
        connection: to DuckDB.
        publications: as `list_publications` returns them.
        schema: an existing, empty schema; None for the current schema of the connection.
    """
    within = "" if schema is None else f"{identifier(schema)}."
    for name, (about, columns) in TABLES.items():
        with _registered(connection, columns.empty_table()):
            connection.execute(f"CREATE TABLE {within}{name} AS FROM {ROWS}")
        _run(connection, table_comments(within, name, about, comments_of(columns)))
    connection.execute(f"INSERT INTO {within}dph_version VALUES ($version)", {"version": _version()})
    for name in MACROS:
        connection.execute(macro(name, schema))
        connection.execute(macro_comment(within, name))
    _describe(connection, within, publications)
    of = {name: list(made) for name, made in groupby(publications, key=lambda one: str(one[1]["release"]))}
    for release, made in of.items():
        columns = _cells(connection, f"{within}{identifier(CELLS + release)}", made)
        described = Described.of(release, columns, [audit for _, audit in made])
        _run(connection, view_statements(within, described, set(of)))


def _cells(connection: duckdb.DuckDBPyConnection, table: str, publications: list[Publication]) -> list[str]:
    """Creates the table of a release, with all periods and revisions, and returns its columns."""
    columns = {"period": pa.string(), "revision": pa.int64(), "cell_number": pa.int64()}
    for folder, _ in publications:  # a revision may have other axes
        for field in pq.read_schema(folder / "histogram.parquet"):
            if columns.setdefault(field.name, field.type) != field.type:
                columns[field.name] = pa.string()
    with _registered(connection, pa.schema(list(columns.items())).empty_table()):
        connection.execute(f"CREATE TABLE {table} AS FROM {ROWS}")
    for folder, audit in publications:
        # ParquetFile, because `read_table` would read the names of the folders as columns.
        rows = pq.ParquetFile(folder / "histogram.parquet").read()
        rows = rows.append_column("cell_number", pa.array(np.arange(rows.num_rows)))
        insert = f"INSERT INTO {table} BY NAME SELECT *, $period AS period, $revision AS revision FROM {ROWS}"
        with _registered(connection, rows):
            connection.execute(insert, {"period": audit["period"], "revision": audit["revision"]})
    return list(columns)


def _describe(connection: duckdb.DuckDBPyConnection, within: str, publications: list[Publication]) -> None:
    """Fills the tables that describe publications."""
    audits = [audit for _, audit in publications]
    most: dict[tuple[bool, str], int] = {}
    for audit in audits:
        if audit["unbiased_noise_scale"] is not None:
            law = (is_linear(audit), str(audit["unbiased_noise_scale"]))
            most[law] = max(most.get(law, 1), most_draws(audit))
    grids = {grid_of(audit): audit for audit in audits}
    for table, rows in [
        ("dph_releases", release_rows(audits)),
        ("dph_covariance", covariance_rows(audits)),
        *(("dph_quality_rows", quality_table(audit, read_rows(folder))) for folder, audit in publications),
        *(("dph_bins", bin_rows(audit)) for audit in grids.values()),
        *(
            ("dph_linear_widths" if linear else "dph_half_widths", width_rows(linear, scale, draws))
            for (linear, scale), draws in most.items()
        ),
    ]:
        with _registered(connection, rows):
            connection.execute(f"INSERT INTO {within}{table} BY NAME FROM {ROWS}")
    connection.execute(
        f"UPDATE {within}dph_releases AS r SET is_latest = r.revision = "
        f"(SELECT max(l.revision) FROM {within}dph_releases AS l WHERE l.release = r.release AND l.period = r.period)"
    )


@contextmanager
def _registered(connection: duckdb.DuckDBPyConnection, rows: pa.Table) -> Iterator[None]:
    """Arrow rows as `ROWS`, a name that no release can have."""
    connection.register(ROWS, rows)
    try:
        yield
    finally:
        connection.unregister(ROWS)


def _run(connection: duckdb.DuckDBPyConnection, statements: Iterable[str]) -> None:
    for statement in statements:
        connection.execute(statement)
