"""What macros read as the cells of a release: its own, and those of tables of its family that may answer for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from dphist_pipeline.answering._catalogue_places import CELLS, Places
from dphist_pipeline.answering._catalogue_schemas import BETTER
from dphist_pipeline.answering._family_choice import FamilyChoice
from dphist_pipeline.answering._views import Column, asked_statements, is_comment
from dphist_pipeline.answering.catalogue_rows import KEY, Audit
from dphist_pipeline.spec.axes import domain_of

APART = 1 << 40  # between the first cell numbers of two tables; no table has so many cells

Answering = Mapping[str, Sequence[tuple[str, int]]]  # by release, the other tables and the numbers of their first cells


def better_rows(audits: Sequence[Audit]) -> Any:
    """The rows of `dph_better` for publications; those of one family are looked at together, others have none.

    `first_number` is left to be filled in: it depends on all publications of a release.

    Args:
        audits: those of one family, period and revision are looked at together; others give no row.
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


def number_better_tables(connection: duckdb.DuckDBPyConnection, places: Places) -> None:
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
    found: dict[str, list[tuple[str, int]]] = {}
    asked = f"SELECT DISTINCT release, best, first_number FROM {places.table('dph_better')} ORDER BY ALL"
    for release, best, first in connection.execute(asked).fetchall():
        found.setdefault(release, []).append((best, first))
    return found


def make_asked_views(
    connection: duckdb.DuckDBPyConnection,
    places: Places,
    releases: Sequence[str],
    others: Answering,
    described: bool,
) -> None:
    """Makes the views that macros read.

    Args:
        releases: whose views are made; their cells are there, and those of the tables that answer for them.
    """
    if not releases:
        return
    columns = _columns_of_cells(connection, places)
    for release in releases:
        named = [(table, first, columns[table]) for table, first in others.get(release, [])]
        for statement in asked_statements(places, release, columns[release], named):
            if described or not is_comment(statement):
                connection.execute(statement)


def _columns_of_cells(connection: duckdb.DuckDBPyConnection, places: Places) -> dict[str, list[Column]]:
    """The columns of the cells of all releases."""
    asked = """
        SELECT table_name, column_name, data_type, coalesce(comment, '') FROM duckdb_columns()
        WHERE database_name = current_database() AND schema_name = $schema
            AND starts_with(table_name, $prefix)
        ORDER BY table_name, column_index
    """
    found: dict[str, list[Column]] = {}
    for table, *column in connection.execute(asked, {"schema": places.internals_schema, "prefix": CELLS}).fetchall():
        found.setdefault(table.removeprefix(CELLS), []).append(Column(*column))
    return found
