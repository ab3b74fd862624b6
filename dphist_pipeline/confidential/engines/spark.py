"""Spark as the engine: it reads, bins, bounds and counts in one plan, and gives back the rows of each cell, no others.

The plan is SQL over Parquet files, with the steps of `reading.positions`. Expressions whose result depends on the
engine are not used: `spark_columns` refuses the columns that would need them. Rows of a unit are kept in the order of
`bounding.row_order`, in 64-bit arithmetic that wraps around.

Spark shows the text of a plan on its pages and writes it to its event log, so the key is no literal of the plan. It is
the only row of a local relation, of which Spark shows the name of the column.
"""

from __future__ import annotations

import logging
import re
import secrets
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import parquet

from dphist_pipeline.base.domain import BinnedAxis, ByText
from dphist_pipeline.confidential._bounding import (
    CODE_STEP,
    COPY_STEP,
    KEY_BYTES,
    LAST_SHIFT,
    MIX,
    row_order,
    unit_words,
)
from dphist_pipeline.confidential.engines._spark_columns import Columns, columns_of
from dphist_pipeline.confidential.plan import CountingPlan
from dphist_pipeline.confidential.reading._positions import Positions, positions
from dphist_pipeline.confidential.reading._source_files import DAMAGED
from dphist_pipeline.confidential.reading.ingest import check_columns, files_of
from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused, withheld

Numbers = NDArray[np.int64]

SESSION = "session"  # instead of an address: the active session of the program that runs the release
USUAL_PORT = 15002
REACHED_SECONDS = 20
MOST_RETRIES = 6  # at distances from 50 ms that grow fourfold: about a minute
SETTINGS = {
    "spark.sql.ansi.enabled": "false",  # else sums and products beyond 64 bits raise, and do not wrap around
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    # Else a file's statistics, and so other people's rows, decide whether a row is read.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
# They write an engine's message, values and all, or whole plans to the program's output.
LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "pyspark.sql.connect.logging")
SPARK = re.compile(r"4\.\S+ [0-9a-f]{40}")  # what the JVM's Spark says of itself: its version, and its commit
FLOAT = re.compile(r"\b\d+(?:\.\d+(?:e[+-]?\d+)?|e[+-]?\d+)\b")
# A unit's copies of a row are numbered in blocks: one list of all would not fit where a unit has 10^8.
BLOCK = 1024


def write_cube(plan: CountingPlan, address: str, folder: Path) -> Path:
    """Has Spark count the kept rows of every cell into `cube.npy`, as `cube.write_cube` does here.

    Args:
        plan: over Parquet files, which Spark must find at the same place.
        address: of a Spark Connect server, as `sc://host:port`; or `SESSION`. Shown in no message.

    Raises:
        SourceRefused, ColumnRefused: for the files as files, an engine that does not answer, and one that would give
            other counts than DuckDB; never for what a row holds.
    """
    columns, files, before = open_source(plan, folder)
    where, caught = plan.source.written, (Exception,)
    silent = "cannot be counted by Spark: the server that was allowed does not answer, or no session is active"
    failed = (
        "could not be counted by Spark: its server went away, its workers do not find a file at the same place, or no "
        "memory or disk is left. Nothing was charged; Spark's own pages say more, to people who may see records"
    )
    with _quiet():
        session = withheld(where, silent, lambda: _session(address), caught)
        is_done = False
        try:
            _refuse_other(withheld(where, silent, lambda: _traits(session), caught), columns, where)
            counts, rows = withheld(where, failed, lambda: _count_cells(session, plan, columns, files), caught)
            is_done = True
        finally:
            with suppress(Exception):
                if is_done:  # a server that has failed may be gone, and is asked nothing more
                    session.catalog.dropTempView("secret")
                if address != SESSION:
                    session.release_session_on_close = is_done
                    session.stop()
                    # PySpark closes a session again when it is collected, and with it threads that later ones share.
                    session.client.close = bool
    if rows != sum(footer.num_rows for footer in before) or before != _footers(files, where):
        raise SourceRefused(
            where, "is not the same for Spark as here, or changed while it was read. Nothing was charged"
        )
    np.save(folder / "cube.npy", counts)
    return folder / "cube.npy"


def open_source(plan: CountingPlan, folder: Path) -> tuple[Columns, tuple[Path, ...], list[parquet.FileMetaData]]:
    """Columns, files and footers of a source that Spark reads as DuckDB does; no record is read.

    Args:
        folder: private, for DuckDB, which checks the columns first.

    Raises:
        SourceRefused, ColumnRefused: as `write_cube`.
    """
    check_columns(plan, folder)
    files, where = files_of(plan.source), plan.source.written
    # Spark takes some names for patterns, and leaves files out whose names begin so.
    if any({*str(file)} & {*"{}\\:"} or file.name.startswith(("_", ".")) for file in files):
        raise SourceRefused(where, r"has a file with one of { } \ : in its path, or _ or . before its name; rename it")
    footers = _footers(files, where)
    return columns_of(plan, footers), files, footers


def _footers(files: Sequence[Path], where: str) -> list[parquet.FileMetaData]:
    return withheld(where, DAMAGED, lambda: [parquet.read_metadata(file) for file in files], (Exception,))


@contextmanager
def _quiet() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


def _session(address: str) -> Any:
    """A session of our own, so that settings and views are seen by nobody else."""
    if address == SESSION:
        from pyspark.sql import SparkSession

        active: Any = SparkSession.getActiveSession()
        session: Any = active.newSession()
    else:
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        # PySpark asks a server that is not there again and again, for ten minutes.
        server = urlsplit(address)
        socket.create_connection((server.hostname, server.port or USUAL_PORT), REACHED_SECONDS).close()
        session = RemoteSession.builder.remote(address).create()
        # Else a server that dies in the count is asked for ten minutes, by each statement.
        (policy, *_) = session.client.get_retry_policies()
        session.client.set_retry_policies([type(policy)(max_retries=MOST_RETRIES)])
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    return session


def _traits(session: Any) -> tuple[bool, bool]:
    """Whether an engine orders rows as `bounding.row_order` does, asked with a public key, and whether it reads text as
    it stands. Spark does; engines that check whether text is UTF-8 fail where it is not."""
    key, units = bytes(range(KEY_BYTES)), ["", "é\0", "-9223372036854775808", "x" * 71]
    codes, copies = np.array([[0, 1, 2**31, 2**62]]), np.array([0, 5, 2**31, 3])
    _view(session, "secret", {"key": pa.array([key], pa.binary())})
    _view(session, "asked", {"unit": units, "code": codes[0], "copy": copies})
    placed = (
        session.sql(f"SELECT copy, place FROM ({_places_sql('SELECT * FROM asked', ['code'])})").toArrow().to_pydict()
    )
    expected = zip(
        copies.tolist(), row_order(unit_words(units, key), codes, copies).view(np.int64).tolist(), strict=True
    )
    version = session.sql("SELECT version() AS found").toArrow()["found"][0].as_py()
    as_it_stands = SPARK.fullmatch(version) is not None and not session.conf.get("spark.plugins", "")
    return dict(zip(placed["copy"], placed["place"], strict=True)) == dict(expected), as_it_stands


def _refuse_other(traits: tuple[bool, bool], columns: Columns, where: str) -> None:
    exact, as_it_stands = traits
    if not exact:
        raise SourceRefused(where, "is computed by Spark in another way than by DuckDB, so other rows would be kept")
    if columns.text and not as_it_stands:
        problem = "is text, and this engine fails on text that is not UTF-8: one row could make a release fail. Write"
        raise ColumnRefused(
            columns.text[0], f"{problem} whole numbers, have Spark itself count, or use `engine: duckdb`"
        )


def _view(session: Any, name: str, columns: dict[str, Any]) -> None:
    session.createDataFrame(pa.table(columns)).createOrReplaceTempView(name)


def _count_cells(session: Any, plan: CountingPlan, columns: Columns, files: Sequence[Path]) -> tuple[Numbers, int]:
    """Kept rows of every cell, shape (cells,), and how many rows the files have."""
    session.read.schema(columns.schema).parquet(*map(str, files)).createOrReplaceTempView("source")
    read = [columns.read(axis) for axis in plan.domain.axes]
    axes = [positions(axis, number) for number, axis in enumerate(read)]
    for number, (axis, position) in enumerate(zip(read, axes, strict=True)):
        if isinstance(axis, ByText):
            texts = columns.texts_of(axis)
            places = {"category": list(texts), "position": np.array([*texts.values()], dtype=np.int64)}
            _view(session, f"categories_{number}", places)
        elif position.table:
            assert isinstance(axis, BinnedAxis), "a spec with an amount has no Spark"
            ends = np.array(axis.edges)
            _view(session, f"bins_{number}", {"bin": np.arange(axis.bins), "lower": ends[:-1], "upper": ends[1:]})
    cells = _cells(plan, columns, axes)
    if plan.privacy_unit != "row":
        _view(session, "secret", {"key": pa.array([secrets.token_bytes(KEY_BYTES)], pa.binary())})
        cells = _bounded_words_sql(cells, ["code"], plan.max_rows_per_unit)
    rows = "count(*)" if plan.privacy_unit == "row" else "sum(rows)"
    table = session.sql(f"SELECT code, {rows} AS rows FROM ({cells}) GROUP BY code").toArrow()
    counts = np.zeros(plan.domain.cells, dtype=np.int64)
    counts[table["code"].to_numpy()] = table["rows"].to_numpy()
    return counts, session.sql("SELECT count(*) AS rows FROM source").toArrow()["rows"][0].as_py()


def _cells(plan: CountingPlan, columns: Columns, axes: Sequence[Positions]) -> str:
    """SQL of the rows in a declared cell: `code`, and `unit` unless each row is its own."""
    unit = [] if plan.privacy_unit == "row" else ["unit"]
    values = [f"{columns.value_of(axis)} AS value_{number}" for number, axis in enumerate(plan.domain.axes)]
    values += [f"{columns.unit} AS unit"] if unit else []
    rows = f"SELECT {', '.join(values)} FROM source WHERE {columns.in_period}"
    kept = [*(f"value_{number}" for number in range(len(axes))), *unit]
    for steps in zip_longest(*(axis.steps for axis in axes)):
        made = {f"place_{number}": _spark_sql(step, axes[number]) for number, step in enumerate(steps) if step}
        passed = [name for name in kept if name not in made]
        rows = f"SELECT {', '.join([*passed, *(f'{step} AS {name}' for name, step in made.items())])} FROM ({rows})"
        kept = [*passed, *made]
    joined = [f"{axis.joined} AS place_{number}" for number, axis in enumerate(axes) if axis.joined]
    rows = (
        f"SELECT {', '.join([*kept, *joined])} FROM ({rows}) {' '.join(_spark_sql(axis.join, axis) for axis in axes)}"
    )
    code = " + ".join(f"({axis.cell}) * {stride}" for axis, stride in zip(axes, plan.domain.strides, strict=True))
    rows = f"SELECT {', '.join([f'CAST({code} AS BIGINT) AS code', *unit])} FROM ({rows})"
    return f"SELECT * FROM ({rows}) WHERE {' AND '.join(f'{name} IS NOT NULL' for name in ('code', *unit))}"


def _spark_sql(sql: str, axis: Positions) -> str:
    """SQL of a place for Spark: numbers that are doubles, and not decimals, and the edges, a parameter for DuckDB."""
    sql = FLOAT.sub(r"\g<0>D", sql)
    for name, edges in axis.parameters.items():
        edges_sql = f"array({', '.join(f'{edge!r}D' for edge in edges)})" if f"${name}," in sql else ""  # type: ignore[attr-defined]
        sql = re.sub(rf"list_extract\(\${name}, ([^()]*)\)", rf"try_element_at({edges_sql}, CAST(\1 AS INT))", sql)
    return sql


def _bounded_words_sql(cells: str, words: Sequence[str], most: int) -> str:
    """SQL of words and how many kept rows have them: of each unit the first `most` rows in the order of the key.

    Only the rows of units with more than `most` are put in order. Those of all others are counted without their units.
    """
    names, number = ", ".join(words), "CAST({} AS BIGINT)".format
    above = f"SELECT unit AS owner FROM ({cells}) GROUP BY unit HAVING count(*) > {most}"
    rows = f"SELECT owner AS unit, {names}, count(*) AS copies FROM ({cells}) LEFT JOIN ({above}) ON unit = owner"
    rows = f"{rows} GROUP BY owner, {names}"
    last = "CASE WHEN unit IS NULL THEN 0 ELSE copies - 1 END"
    rows = f"SELECT *, explode(sequence({number(0)}, {number(last)}, {number(BLOCK)})) AS block FROM ({rows})"
    numbers = f"explode(sequence(block, least(block + {BLOCK - 1}, {number(last)})))"
    rows = (
        f"SELECT unit, {names}, CASE WHEN unit IS NULL THEN copies ELSE 1 END AS rows, {numbers} AS copy FROM ({rows})"
    )
    place = f"PARTITION BY unit, CASE WHEN unit IS NULL THEN {words[0]} END ORDER BY place < 0, place, {names}, copy"
    rows = f"SELECT *, row_number() OVER ({place}) AS rank FROM ({_places_sql(rows, words, ['rows'])})"
    return f"SELECT {names}, rows FROM ({rows}) WHERE unit IS NULL OR rank <= {most}"


def _places_sql(rows: str, words: Sequence[str], more: Sequence[str] = ()) -> str:
    """SQL of rows with their `place`, which is `bounding.row_order` with the 64 bits taken as a signed number."""
    kept = ", ".join(["unit", *words, *more, "copy"])
    # As `bounding.unit_words`: 60 bits, which no engine takes for a negative number.
    digest = "sha2(concat(key, CAST(CAST(unit AS STRING) AS BINARY)), 256)"
    rows = (
        f"SELECT {kept}, CAST(conv(substr({digest}, 1, 15), 16, 10) AS BIGINT) AS place FROM ({rows}) CROSS JOIN secret"
    )
    for word, step in [*((word, CODE_STEP) for word in words), ("copy", COPY_STEP)]:
        place = f"place + {word} * {_signed_sql(step)}"
        for shift, factor in MIX:
            rows = f"SELECT {kept}, {place} AS place FROM ({rows})"
            place = f"(place ^ shiftrightunsigned(place, {shift})) * {_signed_sql(factor)}"
        rows = f"SELECT {kept}, {place} AS place FROM ({rows})"
        rows = f"SELECT {kept}, place ^ shiftrightunsigned(place, {LAST_SHIFT}) AS place FROM ({rows})"
    return rows


def _signed_sql(word: int) -> str:
    return f"{word - (1 << 64) if word >> 63 else word}L"
