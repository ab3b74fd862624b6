"""Calls macros about publications: in the store's catalogue, or in one in memory if the store's does not hold them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from types import MappingProxyType

import duckdb
import pyarrow as pa

from dphist_pipeline.answering._macros import inner_macros, macro
from dphist_pipeline.answering.catalogue import NAME, Catalogue
from dphist_pipeline.answering.catalogue_tables import create_tables
from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.errors import Refused
from dphist_pipeline.estimates.chosen_cells import QuestionRefused
from dphist_pipeline.publishing.published_files import PublishedFolder, read_audit

OPEN_AT_ONCE = 4
# These take a fifth of the time of a small answer, and no query of ours gains by them.
IDLE_OPTIMIZERS = "statistics_propagation,projection_pullup,join_elimination,common_subplan,common_subexpressions"


def foreign_catalogue(folder: Path) -> Refused:
    """A catalogue whose macros reach for files or the network; no catalogue of ours does."""
    return Refused(
        f"the catalogue in {folder} asks for files or the network, which no catalogue of ours does: it was kept "
        "from both. Somebody altered it. Fetch it from where you trust who publishes; in a store, release again.",
        code="foreign_catalogue",
    )


@dataclass(frozen=True)
class CatalogueSource:
    """A publication and its key in a catalogue; one that is renamed has another key than in the store's catalogue."""

    folder: Path
    digest: str
    release: str
    period: str
    revision: int
    renamed: bool = False


@dataclass(frozen=True)
class _InMemory:
    """A connection whose tables hold publications; it gets a macro when that is called: all take half a second."""

    connection: duckdb.DuckDBPyConnection
    macros: set[str] = field(default_factory=set)
    making: Lock = field(default_factory=Lock)

    def with_macro(self, name: str) -> duckdb.DuckDBPyConnection:
        with self.making:
            for one in {*inner_macros(name), name} - self.macros:
                self.connection.execute(macro(one))
                self.macros.add(one)
        return self.connection


def call_macro(
    sources: tuple[CatalogueSource, ...],
    macro_name: str,
    columns: str,
    arguments: Sequence[object],
    named: Mapping[str, object] = MappingProxyType({}),
    tables: Mapping[str, pa.Table] = MappingProxyType({}),
) -> pa.Table:
    """The rows of a macro about publications that have one name.

    `columns` are SQL; `arguments` follow the name of the release; `tables` are rows that the macro reads, by name.

    Raises:
        QuestionRefused: the macro refuses the question.
        Refused: the catalogue's macro is none of ours.
    """
    connection, within = _macro_connection(sources, macro_name)
    release = literal(f"{within}{identifier(sources[0].release)}")
    given = ", ".join([release, *("?" for _ in arguments), *(f"{name} := ?" for name in named)])
    query = f"SELECT {columns} FROM {within}{macro_name}({given})"
    cursor = connection.cursor()
    for name, rows in tables.items():
        cursor.register(name, rows)
    try:
        # A relation would be planned twice, once for its columns: planning is most of the time of an answer.
        cursor.execute(f"CREATE TEMP TABLE answered AS {query}", [*arguments, *named.values()])
        return cursor.table("answered").to_arrow_table()
    except duckdb.InvalidInputException as error:
        problem = str(error).partition(f"{macro_name}: ")[2]
        if not problem:
            raise
    except duckdb.PermissionException:
        raise foreign_catalogue(_public(sources)) from None
    raise QuestionRefused("", problem)


def _public(sources: tuple[CatalogueSource, ...]) -> Path:
    return PublishedFolder(sources[0].folder).release.parent


def _macro_connection(sources: tuple[CatalogueSource, ...], macro_name: str) -> tuple[duckdb.DuckDBPyConnection, str]:
    """A connection that has the macro and whose tables hold the publications, and the prefix of their names."""
    public = _public(sources)
    # A process that was forked must not use its parent's connections, so the number of the process is part of the key.
    with suppress(OSError):
        facts = (public / NAME).stat()
        connection, digests = _catalogue(os.getpid(), public, (facts.st_ino, facts.st_mtime_ns))
        if all(source.digest in digests and not source.renamed for source in sources):
            return connection, "catalogue."
    return _in_memory(os.getpid(), sources).with_macro(macro_name), ""


def _connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(f"SET disabled_optimizers = '{IDLE_OPTIMIZERS}'")
    return connection


@lru_cache(maxsize=OPEN_AT_ONCE)
def _catalogue(process: int, public: Path, file: tuple[int, int]) -> tuple[duckdb.DuckDBPyConnection, frozenset[str]]:
    connection = _connection()
    return connection, Catalogue(public).attach(connection)


@lru_cache(maxsize=OPEN_AT_ONCE)
def _in_memory(process: int, sources: tuple[CatalogueSource, ...]) -> _InMemory:
    connection = _connection()
    names = ({"release": one.release, "period": one.period} for one in sources)
    audits = ({**read_audit(one.folder), **name} for one, name in zip(sources, names, strict=True))
    publications = [(one.folder, audit) for one, audit in zip(sources, audits, strict=True)]
    create_tables(connection, publications, macros=(), described=False)  # nobody reads comments here
    return _InMemory(connection)
