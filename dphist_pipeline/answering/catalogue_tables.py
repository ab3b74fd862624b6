"""Fills the tables of a catalogue: all publications at once, or some that are added to those that it holds.

Macros read as the cells of a release its own, and those of tables of its family that may answer for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.answering._catalogue_places import CELLS, Places
from dphist_pipeline.answering._catalogue_schemas import BETTER, BOUNDED, TABLES, comments_of
from dphist_pipeline.answering._macros import KNOWN_GROUP, MACROS, inner_macros, macro, source
from dphist_pipeline.answering._views import (
    ReleaseView,
    ViewColumn,
    asked_statements,
    family_statements,
    is_comment,
    macro_comment,
    table_comments,
    title_comments,
    view_statements,
)
from dphist_pipeline.answering.catalogue_rows import (
    KEY,
    Audit,
    bin_rows,
    charge_rows,
    covariance_rows,
    distance_rows,
    group_rows,
    known_rows,
    line_rows,
    moment_rows,
    most_draws,
    quality_table,
    release_rows,
    whole_of,
    width_rows,
    width_table,
)
from dphist_pipeline.answering.quality_tables import PublishedQuality
from dphist_pipeline.base.published_columns import KINDS_OF_VALUES
from dphist_pipeline.base.sql_files import identifier
from dphist_pipeline.estimates.family_choice import FamilyChoice
from dphist_pipeline.estimates.known_figures import KnownFigures
from dphist_pipeline.publishing.derived_files import grid_of
from dphist_pipeline.publishing.parquet_tables import GROUP_ROWS
from dphist_pipeline.publishing.published_estimate import published_figures
from dphist_pipeline.publishing.published_files import PublishedFolder, read_audit
from dphist_pipeline.spec.axes import domain_of
from dphist_pipeline.spec.fields import EVERY_REVISION

Publication = tuple[Path, Mapping[str, Any]]  # its folder, and its audit
ROWS = "dph_rows"
APART = 1 << 40  # between the first cell numbers of two tables; no table has so many cells
_columns_in_sql: dict[str, str] = {}  # by table, with the types that DuckDB has for Arrow's: to ask takes longest
Answering = Mapping[str, Sequence[tuple[str, int]]]  # by release, the other tables and the numbers of their first cells


def create_tables(
    connection: duckdb.DuckDBPyConnection,
    publications: Sequence[Publication],
    schema: str | None = None,
    macros: Iterable[str] = MACROS,
    described: bool = True,
) -> None:
    """Creates all tables, views and macros of the catalogue, of publications by release, period and revision.

    `schema`: an existing, empty one for all of it; see `Places`. `macros`: each takes some 25 ms of CPU; those of
    `INNER` that they ask come with them. `described`: tables, views and columns have comments for readers: half of the
    time without macros.
    """
    places = Places(schema)
    if schema is None:
        connection.execute(f"CREATE SCHEMA {places.internals_schema}")
    for name, (about, columns) in TABLES.items():
        if name not in _columns_in_sql:
            with _rows_as_table(connection, columns.empty_table()):
                described_rows = connection.execute(f"DESCRIBE {ROWS}").fetchall()
                named = [f"{identifier(column)} {kind}" for column, kind, *_ in described_rows]
                _columns_in_sql[name] = ", ".join(named)
        connection.execute(f"CREATE TABLE {places.table(name)} ({_columns_in_sql[name]})")
        _run(connection, table_comments(places.table(name), about, comments_of(columns)), described)
    connection.execute(f"INSERT INTO {places.table('dph_version')} (version) VALUES ($version)", {"version": version()})
    for name in dict.fromkeys(one for asked in macros for one in (*inner_macros(asked), asked)):
        _run(connection, [macro(name, schema), macro_comment(places, name)], described)
    add_publications(connection, publications, schema, described)


def add_publications(
    connection: duckdb.DuckDBPyConnection,
    publications: Sequence[Publication],
    schema: str | None = None,
    described: bool = True,
) -> None:
    """Adds publications, by release, period and revision, to a catalogue that does not hold them.

    A release that is there had their axes before. A publication of a family comes with all its tables.
    """
    places = Places(schema)
    there, answered = releases_in(connection, places), answering_tables(connection, places)
    of = {name: list(made) for name, made in groupby(publications, key=lambda one: str(one[1]["release"]))}
    _describe(connection, places, publications)
    shown: dict[str, ReleaseView] = {}
    for release, made in of.items():
        if release not in there:
            columns = _create_cells(connection, places.cells(release), made)
            shown[release] = ReleaseView.of(release, columns, [audit for _, audit in made])
            _run(connection, view_statements(places, shown[release], there | set(of)), described)
        for folder, audit in made:
            _insert_cells(connection, places, release, folder, audit)
        title = _title(connection, places, release)
        _run(connection, title_comments(places, release, title, there | set(of)), described)
    answering = answering_tables(connection, places)
    changed = [name for name in of if name not in there or answered.get(name) != answering.get(name)]
    make_asked_views(connection, places, changed, answering, shown, described)
    for family, table in _families_in(connection, places):
        _run(connection, family_statements(places, family, table), described)


def remove_release(connection: duckdb.DuckDBPyConnection, release: str) -> None:
    """Removes the cells, views and publications of a release; bins and widths stay, for other releases."""
    places, names = Places(), [release]
    if release + EVERY_REVISION not in releases_in(connection, places):
        names.append(release + EVERY_REVISION)
    for name in names:
        connection.execute(f"DROP VIEW {identifier(name)}")
        connection.execute(f"DROP VIEW {places.macro_view(name)}")
    connection.execute(f"DROP TABLE {places.cells(release)}")
    for table in [name for name, (_, columns) in TABLES.items() if "release" in columns.names]:
        connection.execute(f"DELETE FROM {places.table(table)} WHERE release = $release", {"release": release})


def releases_in(connection: duckdb.DuckDBPyConnection, places: Places) -> set[str]:
    """The releases that a catalogue holds."""
    rows = connection.execute(f"SELECT DISTINCT release FROM {places.table('dph_releases')}").fetchall()
    return {release for (release,) in rows}


def _families_in(connection: duckdb.DuckDBPyConnection, places: Places) -> list[tuple[str, str]]:
    """The families of a catalogue with one of their tables each, but those whose name another view has."""
    releases = places.table("dph_releases")
    query = f"SELECT family, min(release) FROM {releases} WHERE family IS NOT NULL GROUP BY ALL ORDER BY ALL"
    names = releases_in(connection, places)
    names |= {release + EVERY_REVISION for release in names}
    return [(family, table) for family, table in connection.execute(query).fetchall() if family not in names]


@cache
def version() -> str:
    """A digest of tables, views and macros, so that a catalogue of an older version is rebuilt."""
    tables = [f"{columns}{comments_of(columns)}" for _, columns in TABLES.values()]
    columns = [*("period", "revision", "cell_number", "a_lower", "a_upper", "b", "b_label"), *KINDS_OF_VALUES]
    axes = [{"column": "a", "edges": [0, 1]}, {"column": "b", "values": ["c"], "labels": ["C"]}]
    views = list(view_statements(Places(), ReleaseView.of("example", columns, [{"axes": axes}]), set()))
    columns_asked = [ViewColumn(name, "VARCHAR", "") for name in columns]
    views = [*views, *asked_statements(Places(), "example", columns_asked, [("other", 1, columns_asked)])]
    views = [*views, *family_statements(Places(), "family", "example")]
    statements = [*tables, *views, *title_comments(Places(), "example", "Example", set()), source()]
    return hashlib.sha256("\n".join(statements).encode()).hexdigest()[:16]


def _create_cells(connection: duckdb.DuckDBPyConnection, table: str, publications: Sequence[Publication]) -> list[str]:
    """Creates the table of a release, without rows, and returns its columns."""
    columns = {"period": pa.string(), "revision": BOUNDED, "cell_number": BOUNDED}
    for folder, _ in publications:  # a revision may have other axes
        for field in pq.read_schema(folder / "histogram.parquet"):
            if columns.setdefault(field.name, field.type) != field.type:
                columns[field.name] = pa.string()
    for name, kind in KINDS_OF_VALUES.items():  # files of an older version may lack some
        columns.setdefault(name, pa.type_for_alias(kind))
    columns |= {"group_id": BOUNDED, "whole_count": pa.int64(), KNOWN_GROUP: BOUNDED}  # at most as many groups as cells
    with _rows_as_table(connection, pa.schema(list(columns.items())).empty_table()):
        connection.execute(f"CREATE TABLE {table} AS FROM {ROWS}")
    return list(columns)


def _insert_cells(
    connection: duckdb.DuckDBPyConnection, places: Places, release: str, folder: Path, audit: Mapping[str, Any]
) -> None:
    """Adds the cells of a publication, in declared order, with whole counts; `cell_number` counts from 0."""
    # ParquetFile, because `read_table` would read the names of the folders as columns. Texts stay dictionaries.
    path = folder / "histogram.parquet"
    text_columns = [field.name for field in pq.read_schema(path) if field.type == pa.string()]
    file = pq.ParquetFile(path, read_dictionary=text_columns)
    known = published_figures(folder, audit)
    numbers = file.read(["estimate", "unbiased_estimate", *([] if known is None else ["ci_lower", "ci_upper"])])
    if "amount" in audit:  # parts of rows have no whole counts
        counts = pa.nulls(numbers.num_rows, pa.int64())
    else:
        whole = whole_of(folder, audit, numbers)
        _insert(connection, places.table("dph_distances"), distance_rows(audit, whole))
        counts = pa.array(whole.counts.ravel())
    groups = pa.nulls(numbers.num_rows, BOUNDED) if known is None else pa.array(known.groups.ravel(), BOUNDED)
    batches = _with_more(file, _told(numbers, known), {"whole_count": counts, KNOWN_GROUP: groups})
    insert = (
        f"INSERT INTO {places.cells(release)} BY NAME SELECT *, $period AS period, $revision AS revision FROM {ROWS}"
    )
    with _rows_as_table(connection, batches):
        connection.execute(insert, {"period": audit["period"], "revision": audit["revision"]})


def _told(numbers: pa.Table, known: KnownFigures | None) -> pa.Table:
    """The numbers of all cells, moved so that they meet public figures; intervals keep their widths."""
    if known is None:
        return numbers
    shape = known.groups.shape
    moved = (
        known.met(numbers["unbiased_estimate"].to_numpy().reshape(shape)).ravel()
        - numbers["unbiased_estimate"].to_numpy()
    )
    return pa.table([pa.array(column.to_numpy() + moved) for column in numbers.columns], numbers.column_names)


def _with_more(file: pq.ParquetFile, numbers: pa.Table, more: Mapping[str, pa.Array]) -> pa.RecordBatchReader:
    """The published cells, read a part at a time but for the `numbers` that were read, with more columns."""
    axis_columns = [name for name in file.schema_arrow.names if name not in numbers.column_names]
    fields = [file.schema_arrow.field(name) for name in axis_columns] + list(numbers.schema)
    added = [pa.field(name, values.type) for name, values in more.items()]
    schema = pa.schema([*fields, *added, pa.field("cell_number", pa.int64())])

    def batches() -> Iterator[Any]:
        start = 0
        for batch in file.iter_batches(GROUP_ROWS, columns=axis_columns):
            end = start + batch.num_rows
            read = numbers.slice(start, batch.num_rows).combine_chunks().to_batches()[0].columns
            beside = [*(values[start:end] for values in more.values()), pa.array(np.arange(start, end))]
            yield pa.RecordBatch.from_arrays([*batch.columns, *read, *beside], schema=schema)
            start = end

    return pa.RecordBatchReader.from_batches(schema, batches())


def _describe(connection: duckdb.DuckDBPyConnection, places: Places, publications: Sequence[Publication]) -> None:
    """Adds publications, and their grids and scales of noise, to the tables that describe them."""
    audits = [audit for _, audit in publications]
    known = {grid for (grid,) in connection.execute(f"SELECT DISTINCT grid FROM {places.table('dph_bins')}").fetchall()}
    sums = [
        (pq.ParquetFile(sums).read(), audit)
        for folder, audit in publications
        if (sums := PublishedFolder(folder).sums).exists()
    ]
    grouped = [group_rows(audit, rows) for rows, audit in sums]
    figures = [(audit, published_figures(folder, audit)) for folder, audit in publications]
    grids = {grid: audit for audit in audits if (grid := grid_of(audit)) not in known}
    lines = {
        line for (line,) in connection.execute(f"SELECT DISTINCT width FROM {places.table('dph_lines')}").fetchall()
    }
    tried = connection.execute(f"SELECT noise_scale FROM {places.table('dph_moments')}").fetchall()
    scales = {str(audit["unbiased_noise_scale"]) for audit in audits if audit["unbiased_noise_scale"] is not None}
    scales -= {scale for (scale,) in tried}
    better = better_rows(audits)
    for name, added in [
        ("dph_releases", release_rows(audits)),
        ("dph_covariance", covariance_rows(audits)),
        ("dph_moments", moment_rows(sorted(scales))),
        ("dph_lines", line_rows(audits, lines)),
        *(("dph_groups", rows) for rows in grouped),
        *(("dph_quality_rows", _quality(folder, audit)) for folder, audit in publications),
        *(("dph_known", known_rows(audit, known)) for audit, known in figures if known is not None),
        *(("dph_bins", bin_rows(audit)) for audit in grids.values()),
        ("dph_better", better),
    ]:
        _insert(connection, places.table(name), added)
    _add_charges(connection, places, publications)
    if better.num_rows:  # no release's numbers depend on those of others
        _number_better_tables(connection, places)
    _add_widths(connection, places, audits, grouped)
    releases = places.table("dph_releases")
    latest = f"SELECT release, period, max(revision) AS revision FROM {releases} GROUP BY ALL"
    connection.execute(
        f"UPDATE {releases} AS r SET is_latest = r.revision = l.revision FROM ({latest}) AS l "
        "WHERE l.release = r.release AND l.period = r.period AND is_latest IS DISTINCT FROM (r.revision = l.revision)"
    )


def _add_charges(connection: duckdb.DuckDBPyConnection, places: Places, publications: Sequence[Publication]) -> None:
    """Adds the steps of publications. Tables of a family share theirs, which stand once, under the family's name."""
    audits = [audit for _, audit in publications if "family" not in audit]
    families = {folder.parents[1] for folder, audit in publications if "family" in audit}
    audits += [read_audit(family) for family in sorted(families) if (family / "audit.json").is_file()]
    table, rows = places.table("dph_charges"), charge_rows(audits)
    _insert(connection, table, rows)
    # The tables of a family may come one after another.
    connection.execute(
        f"DELETE FROM {table} WHERE rowid NOT IN "
        f"(SELECT min(c.rowid) FROM {table} AS c GROUP BY c.release, c.period, c.revision, c.number)"
    )


def _quality(folder: Path, audit: Mapping[str, Any]) -> pa.Table:
    quality = PublishedQuality(folder, audit)
    return quality_table(audit, quality.rows, quality.most_failed())


def _add_widths(
    connection: duckdb.DuckDBPyConnection,
    places: Places,
    audits: Sequence[Mapping[str, Any]],
    grouped: Sequence[pa.Table],
) -> None:
    """Has the tables of widths reach as far as the largest publication of each scale of noise needs."""
    most: dict[tuple[str, str], int] = {}
    for audit in audits:
        if audit["unbiased_noise_scale"] is not None:
            law = (width_table(audit), str(audit["unbiased_noise_scale"]))
            most[law] = max(most.get(law, 1), most_draws(audit))
    for rows in grouped:
        law = ("dph_half_widths", rows["noise_scale"][0].as_py())
        most[law] = max(most.get(law, 1), 2 * rows.num_rows)
    for (name, scale), draws in most.items():
        number, table = "draws" if name == "dph_linear_widths" else "cells", places.table(name)
        widest = f"SELECT max({number}) FROM {table} WHERE noise_scale = $scale"
        (there,) = connection.execute(widest, {"scale": scale}).fetchall()[0]
        if there is None or there < draws:
            connection.execute(f"DELETE FROM {table} WHERE noise_scale = $scale", {"scale": scale})
            _insert(connection, table, width_rows(name, scale, draws))


def _title(connection: duckdb.DuckDBPyConnection, places: Places, release: str) -> str:
    """The title of the last publication of a release, or its name."""
    latest = "ORDER BY period DESC, revision DESC LIMIT 1"
    query = f"SELECT title FROM {places.table('dph_releases')} WHERE release = $release {latest}"
    (title,) = connection.execute(query, {"release": release}).fetchall()[0]
    return title or release


def _insert(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    if rows.num_rows:
        with _rows_as_table(connection, rows):
            connection.execute(f"INSERT INTO {table} BY NAME FROM {ROWS}")


@contextmanager
def _rows_as_table(connection: duckdb.DuckDBPyConnection, rows: pa.Table | pa.RecordBatchReader) -> Iterator[None]:
    """Arrow rows as `ROWS`, a name that no release can have."""
    connection.register(ROWS, rows)
    try:
        yield
    finally:
        connection.unregister(ROWS)


def _run(connection: duckdb.DuckDBPyConnection, statements: Iterable[str], described: bool) -> None:
    """Runs statements, without the comments among them unless tables, views and columns are described."""
    for statement in statements:
        if described or not is_comment(statement):
            connection.execute(statement)


def better_rows(audits: Sequence[Audit]) -> Any:
    """The rows of `dph_better` for publications; those of one family, period and revision are looked at together.

    Others have none. `first_number` is left to be filled in: it depends on all publications of a release.
    """
    families: dict[tuple[Any, ...], dict[str, Any]] = {}
    for audit in audits:
        if "family" in audit:
            key = (audit["family"], audit["period"], audit["revision"])
            families.setdefault(key, {})[str(audit["release"])] = audit
    rows: list[dict[str, Any]] = []
    for tables in families.values():
        domains = {name: domain_of(audit["axes"]) for name, audit in tables.items()}
        for release, by, boxed, best in FamilyChoice(domains, tables.__getitem__).all_better():
            named = {name: tables[release][name] for name in KEY}
            rows.append({**named, "names": {"by": by, "boxed": boxed}, "best": best})
    return pa.Table.from_pylist(rows, BETTER)


def _number_better_tables(connection: duckdb.DuckDBPyConnection, places: Places) -> None:
    """Fills in `first_number`; the numbers do not depend on the order in which publications were added.

    Each is a multiple of the cells of its table, so that the position of a cell along an axis follows from its number
    as in the table itself.
    """
    better, releases = places.table("dph_better"), places.table("dph_releases")
    connection.execute(f"""
        UPDATE {better} AS b SET first_number = n.first_number
        FROM (
            SELECT
                r.release, r.period, r.revision, r.best,
                (dense_rank() OVER (PARTITION BY r.release ORDER BY r.best, r.cells) * {APART} + r.cells - 1)
                    // r.cells * r.cells AS first_number
            FROM (
                SELECT DISTINCT b.release, b.period, b.revision, b.best, r.cells
                FROM {better} AS b JOIN {releases} AS r
                    ON r.release = b.best AND r.period = b.period AND r.revision = b.revision
            ) AS r
        ) AS n
        WHERE n.release = b.release AND n.period = b.period AND n.revision = b.revision AND n.best = b.best
            AND b.first_number IS DISTINCT FROM n.first_number
    """)


def answering_tables(connection: duckdb.DuckDBPyConnection, places: Places) -> Answering:
    """The tables that answer for others, in order."""
    tables: dict[str, list[tuple[str, int]]] = {}
    query = f"SELECT DISTINCT release, best, first_number FROM {places.table('dph_better')} ORDER BY ALL"
    for release, best, first in connection.execute(query).fetchall():
        tables.setdefault(release, []).append((best, first))
    return tables


def make_asked_views(
    connection: duckdb.DuckDBPyConnection,
    places: Places,
    releases: Sequence[str],
    others: Answering,
    new: Mapping[str, ReleaseView],
    described: bool,
) -> None:
    """Makes the views that macros read; the cells are there, and those of tables that answer for them."""
    # DuckDB is slow to list columns; of a release for which no other table answers, their types are not needed.
    alone = [release for release in releases if release in new and not others.get(release)]
    columns = {name: [ViewColumn(one, "", new[name].comments[one]) for one in new[name].columns] for name in alone}
    if len(columns) < len(releases):
        columns = _columns_of_cells(connection, places)
    for release in releases:
        tables = [(table, first, columns[table]) for table, first in others.get(release, [])]
        _run(connection, asked_statements(places, release, columns[release], tables), described)


def _columns_of_cells(connection: duckdb.DuckDBPyConnection, places: Places) -> dict[str, list[ViewColumn]]:
    """The columns of the cells of all releases."""
    query = """
        SELECT table_name, column_name, data_type, coalesce(comment, '') FROM duckdb_columns()
        WHERE database_name = current_database() AND schema_name = $schema
            AND starts_with(table_name, $prefix)
        ORDER BY table_name, column_index
    """
    columns: dict[str, list[ViewColumn]] = {}
    for table, *column in connection.execute(query, {"schema": places.internals_schema, "prefix": CELLS}).fetchall():
        columns.setdefault(table.removeprefix(CELLS), []).append(ViewColumn(*column))
    return columns
