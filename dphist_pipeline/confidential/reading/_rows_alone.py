"""Staging where the engine fails on what rows hold: the same statement, over batches that shrink down to single rows.

The meaning of a row is what DuckDB gives for that row alone, and null in every declared column where that fails. So it
is a function of that row, and no record decides whether a run fails or what becomes of another's rows. That is why this
way is private: two neighbours differ in what comes of the rows in which they differ, and in nothing else. Nothing tells
that it was taken: no message, event or file that stays. It takes longer, and time is not part of the promise.

Nothing is converted by other means than the usual way: first all columns that the statement reads are copied as they
are stored, text by its bytes; a source on which that fails is damaged. Then the statement that stages rows runs over a
table of its own for each batch. A batch on which it fails is halved; the connection that failed is thrown away. A batch
of at most `FEW` rows is taken row by row. So rows that all fail alone cost fewer than two statements each, however many
there are, and one such row among n others costs 2 log2(n) + `FEW`; a row that fails alone takes 23 ms, half of it
for DuckDB's trace of its error, so a million of them take six hours.
Lack of memory, of disk and an interruption are no matter of a row, and stay failures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.confidential.reading.source import OpenedSource

if TYPE_CHECKING:  # PyArrow is loaded where rows are staged: who only checks a spec needs none
    import pyarrow as pa
    from pyarrow import parquet

MANY = 1 << 17  # rows of the first batches
FEW = 16
# Errors that are no matter of what rows hold; the first is no error of the others.
OF_THE_MACHINE: tuple[type[Exception], ...] = (
    duckdb.OutOfMemoryException,
    duckdb.IOException,
    duckdb.InterruptException,
)


@dataclass(frozen=True)
class Staging:
    """The statement that stages rows.

    Attributes:
        text: over the table `batch`.
        tables: statements that it needs once for each connection, with their parameters.
        parameters: its own.
    """

    text: str
    tables: tuple[tuple[str, Mapping[str, Any]], ...]
    parameters: Mapping[str, Any]


Prepare = Callable[[duckdb.DuckDBPyConnection, OpenedSource, Path, bool], Staging]


def stage_apart(
    connection: duckdb.DuckDBPyConnection, source: OpenedSource, needed: Collection[str], prepare: Prepare, staged: Path
) -> None:
    """Stages all rows of a source, each as it would be alone.

    Args:
        connection: of an engine that goes on after an error of its own (`disable_database_invalidation`).
        needed: the columns that the statement reads; others are not looked at.
        prepare: gives the statement over a source of the same columns that writes to a file; or, by its last argument,
            the one over a single row that is null in all columns.
    """
    # Columns that are not needed stay unread. The names are ours: a source may call a column `rowid`.
    copied = {f"column_{number}": identifier(column) for number, column in enumerate(source.types)}
    values = (
        f"{name if column in needed else f'CASE WHEN false THEN {name} END'} AS {copy}"
        for column, (copy, name) in zip(source.types, copied.items(), strict=True)
    )
    undecoded = f"SELECT {', '.join(values)} FROM ({source.relation})"
    copies = ", ".join(f"{copy} AS {name}" for copy, name in copied.items())
    # Tables of the engine, not temporary ones: later connections find them. In memory nothing is in a dictionary.
    connection.execute(f"CREATE TABLE undecoded AS {undecoded}", source.parameters)
    connection.execute(f"CREATE TABLE batch AS SELECT {copies} FROM undecoded WHERE false")
    import pyarrow as pa

    (total,) = connection.execute("SELECT count(*) FROM undecoded").fetchall()[0]
    part, parts = staged.with_name("part.parquet"), staged.with_name("parts.parquet")
    batch = replace(source, relation="SELECT * FROM batch", parameters={})
    engine = _Engine(connection, prepare(connection, batch, part, False), copies, part)
    nothing = _Engine(connection, prepare(connection, batch, part, True), copies, part)
    try:
        with _writer(parts) as write:
            write(engine.staged_batch(0, 0))  # none: so that there is a part
            failed = 0
            for rows in engine.rows_apart(total):
                failed += rows is None
                write(rows)
            alike = nothing.staged_batch(0, 0)
            if failed and alike is not None and "rows" in alike.column_names:
                place = alike.column_names.index("rows")
                write(alike.set_column(place, "rows", pa.array([failed] * len(alike), alike.schema.field(place).type)))
        _join(connection, parts, staged)
    finally:
        part.unlink(missing_ok=True)
        parts.unlink(missing_ok=True)
        engine.connection.close()
        nothing.connection.close()


class _Engine:
    """Runs the statement over batches, by connections that are thrown away when it fails."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, staging: Staging, named: str, part: Path) -> None:
        self._own, self._staging, self._named, self._part = connection, staging, named, part
        self.connection = self._fresh()

    def _fresh(self) -> duckdb.DuckDBPyConnection:
        connection = self._own.cursor()
        for table, parameters in self._staging.tables:
            connection.execute(table, parameters)
        return connection

    def rows_apart(self, total: int) -> Iterator[pa.Table | None]:
        """The staged rows of all batches, and None for each row on which the engine fails alone."""
        waiting = [(start, min(start + MANY, total)) for start in reversed(range(0, total, MANY))]
        while waiting:
            start, stop = waiting.pop()
            rows = self.staged_batch(start, stop)
            if rows is not None or stop - start == 1:
                yield rows
                continue
            middle = (start + stop) // 2
            few = stop - start <= FEW
            pieces = [(row, row + 1) for row in range(start, stop)] if few else [(start, middle), (middle, stop)]
            waiting += reversed(pieces)

    def staged_batch(self, start: int, stop: int) -> pa.Table | None:
        """The staged rows of a batch; None where the engine fails on it."""
        from pyarrow import parquet

        rows = f"SELECT {self._named} FROM undecoded WHERE rowid >= {start} AND rowid < {stop}"
        self.connection.execute(f"CREATE OR REPLACE TABLE batch AS {rows}")
        try:
            self.connection.execute(self._staging.text, self._staging.parameters)
            return parquet.read_table(self._part)
        except OF_THE_MACHINE:
            raise
        except duckdb.Error:
            self.connection.close()
            self.connection = self._fresh()
            return None


@contextmanager
def _writer(file: Path) -> Iterator[Callable[[pa.Table | None], None]]:
    """Writes tables of one schema to a file."""
    from pyarrow import parquet

    opened: list[parquet.ParquetWriter] = []

    def write(table: pa.Table | None) -> None:
        if table is None:
            return
        if not opened:
            opened.append(parquet.ParquetWriter(file, table.schema, compression="lz4", store_schema=False))
        if len(table) or table.schema != opened[0].schema:
            opened[0].write_table(table)

    try:
        yield write
    finally:
        for writer in opened:
            writer.close()


def _join(connection: duckdb.DuckDBPyConnection, parts: Path, staged: Path) -> None:
    """Puts the parts together as one statement over all rows would."""
    with closing(connection.cursor()) as last:
        given = f"read_parquet({literal(str(parts))})"
        names = [name for name, *_ in last.execute(f"DESCRIBE FROM {given}").fetchall()]
        rows = f"SELECT * FROM {given}"
        if "rows" in names:
            sums = [name for name in ("amount", "rows") if name in names]
            added = ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in sums)
            rows = f"SELECT * EXCLUDE ({', '.join(sums)}), {added} FROM {given} GROUP BY ALL"
        last.execute(f"COPY ({rows}) TO {literal(str(staged))} (FORMAT parquet, COMPRESSION lz4_raw)")
