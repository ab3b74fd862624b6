"""The process that writes the catalogue: it has read no record, and is given SQL and public rows alone.

DuckDB pads its files with whatever lay in the memory of its process. So a process of its own runs the statements, which
the one that releases gives it. It has an empty environment, imports DuckDB and nothing of ours, and ends with its
input: nothing is left of it where the process that started it is killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.base.sql_files import identifier, literal

SCRIPT = Path(__file__).with_name("_duckdb_alone.py")
# By the process and the thread that opened it: neither a fork nor another thread may share it.
_open: dict[tuple[int, int], CatalogueProcess] = {}


class ProcessEnded(Exception):
    """The process is gone: it was killed, or could not start."""


class CatalogueProcess:
    """A process that runs statements; it starts with the first one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def connect(self, scratch: Path) -> duckdb.DuckDBPyConnection:
        """A connection by one thread to a database in memory, as far as the catalogue needs one.

        The one before is closed. `scratch`: a folder that both processes see, for rows.
        """
        self.run(None, {"threads": 1})
        return cast("duckdb.DuckDBPyConnection", _Connection(self, scratch))

    def run(self, statement: str | None, parameters: Any) -> list[tuple[Any, ...]]:
        """The rows that a statement gives; None in its place opens a connection with some settings, or closes it.

        Raises:
            Exception: of DuckDB, of the same class as there.
            ProcessEnded: there is no answer.
        """
        process = self._process = self._process or _start_process()
        assert process.stdin is not None and process.stdout is not None
        answer = ""
        with suppress(OSError):  # it has ended
            process.stdin.write(json.dumps([statement, parameters]) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        if not answer:
            self._process = None
            with suppress(OSError):  # a statement that it never read
                process.communicate()
            raise ProcessEnded(f"its process ended with {process.wait()}.")
        rows = json.loads(answer)
        if isinstance(rows, dict):
            raise getattr(duckdb, rows["error"], duckdb.Error)(rows["message"])
        return [tuple(row) for row in rows]

    def end(self) -> None:
        """Ends it."""
        if self._process is not None:
            self._process.kill()
            with suppress(OSError, ValueError):  # a statement that it never read
                self._process.communicate()


@contextmanager
def catalogue_process() -> Iterator[CatalogueProcess]:
    """The process of this thread, which ends with the outermost of such contexts."""
    own = (os.getpid(), threading.get_ident())
    if own in _open:
        yield _open[own]
        return
    process = _open[own] = CatalogueProcess()
    try:
        yield process
    finally:
        del _open[own]
        process.end()


def _start_process() -> subprocess.Popen[str]:
    # The environment is part of the memory of a process, so it is empty: it gets no credentials.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(SCRIPT), str(Path(duckdb.__file__).parents[1])],
        env={},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="ascii",
    )


class _Connection:
    """As much of DuckDB's connection as the catalogue needs; its statements are run by the other process."""

    def __init__(self, process: CatalogueProcess, scratch: Path) -> None:
        self._process, self._file, self._rows = process, scratch / "rows.parquet", list[tuple[Any, ...]]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessEnded):
            self._process.run(None, None)  # closes the database, whose file is whole then

    def execute(self, statement: str, parameters: object = None) -> Self:
        """Runs a statement, and reads at once what it gives."""
        self._rows = self._process.run(statement, parameters)
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows of the last statement."""
        return self._rows

    def register(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> None:
        """Has rows read by a name; they go through a file."""
        with pq.ParquetWriter(self._file, rows.schema, compression="lz4", write_statistics=False) as file:
            for batch in rows.to_batches() if isinstance(rows, pa.Table) else rows:
                file.write_batch(batch)
        self.execute(f"CREATE TEMP VIEW {identifier(name)} AS FROM read_parquet({literal(str(self._file))})")

    def unregister(self, name: str) -> None:
        """Forgets them."""
        self._file.unlink(missing_ok=True)
        with suppress(duckdb.Error, ProcessEnded):  # after an error, which is told
            self.execute(f"DROP VIEW {identifier(name)}")
