"""Reports as they reach the curator: Parquet files, or lines of text, read in batches of bounded memory.

A report names the question it answers, has a random id of 16 bytes and a body. Rows that are no valid report are
refused and counted; their content never raises an error. The numbers of refused reports, by reason, may be shown,
because contributors perturbed everything in a report before they sent it.

    Parquet   columns `question` (text), `report_id` and `report` (binary)
    text      a line for each report: question, id and body in hex, with a space between
"""

from __future__ import annotations

import glob
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any, BinaryIO

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.base.random_words import random_words
from dphist_pipeline.base.sql_files import statement
from dphist_pipeline.errors import Refused
from dphist_pipeline.local.question import Question
from dphist_pipeline.local.tally import Tally

Bytes = NDArray[np.uint8]

BATCH = 1 << 18  # most reports in a batch
BATCH_BYTES = 1 << 24  # most bytes of a batch, where reports are long
ROOM = 1 << 20  # bytes of a row group beside its reports: pages, dictionaries
STREAMED = 1 << 20  # bytes of the buffer that a file is read through
CHUNK = 1 << 22  # bytes of text that are read at once
MEMORY: dict[str, str | int | float | list[str]] = {
    "memory_limit": "64MB",
    "threads": 1,
}  # of DuckDB, while it looks for repeated ids
ID_BYTES = 16
NAMED = 16  # characters of a question's digest, by which a report names it
MOST_NAMED = 100
COLUMNS = ("question", "report_id", "report")

UNREADABLE, OTHER_QUESTION, WRONG_LENGTH = "unreadable", "other question", "wrong length"
MALFORMED, DUPLICATE = "malformed", "duplicate"
REFUSALS = (UNREADABLE, OTHER_QUESTION, WRONG_LENGTH, MALFORMED, DUPLICATE)

_ANY_REPORT = re.compile(rb"[0-9a-f]{%d} [0-9A-Fa-f]{%d} [0-9A-Fa-f]+" % (NAMED, 2 * ID_BYTES))


def reports_unreadable(path: Path | str, problem: str) -> Refused:
    """A file from which reports cannot be read."""
    return Refused(f"the reports at {path} {problem}", code="reports_unreadable")


def no_room_for_ids(problem: str) -> Refused:
    """The temporary folder is too small to look for repeated ids in."""
    return Refused(
        f"repeated ids of reports cannot be found with the temporary folder {gettempdir()} ({problem}), which "
        "needs about 50 bytes for each report. Free space there, or set TMPDIR to a larger folder.",
        code="no_room_for_ids",
    )


@dataclass(frozen=True, eq=False)
class Batch:
    """Reports to one question, each with an id and a body of the right length.

    Attributes:
        ids: uint8, shape (reports, 16).
        bodies: uint8, shape (reports, bytes of a report).
    """

    ids: Bytes
    bodies: Bytes
    refused: Counter[str] = field(default_factory=Counter)


def files_at(pattern: str) -> list[Path]:
    """The regular files that match an absolute glob, sorted by name; `**` reaches into folders."""
    files = map(Path, glob.glob(pattern, recursive=True))  # noqa: PTH207 - absolute patterns
    return sorted(path for path in files if path.is_file())


def tally_of(question: Question, files: Sequence[Path]) -> tuple[Tally, dict[str, int]]:
    """Counts the reports in Parquet files; of several reports with one id, only the first counts.

    Reads all files twice: first for the ids that are repeated, then for the reports.

    Returns:
        The tally of accepted reports, and the number of refused ones for every reason in `REFUSALS`.

    Raises:
        Refused: a file is no Parquet file with the columns of reports, or changed meanwhile.
    """
    files = list(files)
    states = [_state(file) for file in files]
    repeated = repeated_reports(batch.ids for batch in batches(question, files))
    tally, refused, start = Tally(question), Counter[str](), 0
    for batch in batches(question, files):
        refused += batch.refused
        first, last = np.searchsorted(repeated, [start, start + len(batch.ids)])
        tally.add(np.delete(batch.bodies, repeated[first:last] - start, axis=0) if first < last else batch.bodies)
        start += len(batch.ids)
    for file, state in zip(files, states, strict=True):
        if _state(file) != state:
            raise reports_unreadable(file, "changed while they were counted; count them again")
    refused[MALFORMED], refused[DUPLICATE] = tally.malformed, repeated.size
    return tally, {reason: refused[reason] for reason in REFUSALS}


def repeated_reports(ids: Iterable[Bytes]) -> NDArray[np.int64]:
    """The reports whose id an earlier report has, by their numbers from 0, rising; shape (repeated reports,).

    DuckDB groups the ids within `MEMORY` and spills the rest to a temporary folder. Ids are combined with a random key
    first, so that nobody can choose ids that collide in DuckDB's hash tables.

    Args:
        ids: of all reports in order, uint8, shapes (any, 16).

    Raises:
        Refused: DuckDB has too little memory or disk.
    """
    try:
        return _repetitions(ids)
    except duckdb.Error as error:
        problem = type(error).__name__
    raise no_room_for_ids(problem)


def _repetitions(ids: Iterable[Bytes]) -> NDArray[np.int64]:
    key, number = random_words(2), 0
    with TemporaryDirectory() as spill, duckdb.connect(config={**MEMORY, "temp_directory": spill}) as connection:
        connection.execute("SET enable_progress_bar = false")  # it goes to standard output, where scripts read JSON
        connection.execute("CREATE TABLE ids (number BIGINT, upper UBIGINT, lower UBIGINT)")
        for batch in ids:
            upper, lower = (np.ascontiguousarray(batch).view(np.uint64) ^ key).T
            numbers = np.arange(number, number := number + len(batch))
            connection.register("batch", pa.table({"number": numbers, "upper": upper, "lower": lower}))
            connection.execute("INSERT INTO ids FROM batch")
        return np.asarray(connection.execute(statement("local/repeated_reports")).fetchnumpy()["number"])


def _state(file: Path) -> tuple[int, int, int] | None:
    """Inode, size and time of change of a file; None if there is none."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def batches(question: Question, files: Sequence[Path]) -> Iterator[Batch]:
    """The rows of Parquet files that may be reports to a question, in batches that fit into memory."""
    for file in files:
        problem, parquet = None, _open_file(file)
        fitting = (
            BATCH_BYTES // question.report_bytes,
            max(1, BATCH_BYTES // _longest_row(parquet.metadata, question.report_bytes)),
        )
        try:
            for rows in parquet.iter_batches(max(1, min(BATCH, *fitting)), columns=list(COLUMNS), use_threads=False):
                yield _batch(question, rows)
        except (pa.ArrowException, OSError) as error:
            problem = f"cannot be read to their end ({type(error).__name__}); send the file again"
        if problem:
            raise reports_unreadable(file, problem)


def questions_named(files: Sequence[Path]) -> set[str]:
    """The questions that rows of Parquet files name, by the first digits of their digests; at most a hundred."""
    digests = set[str]()
    for file in files:
        problem, parquet = None, _open_file(file)
        fitting = max(1, BATCH_BYTES // _longest_row(parquet.metadata, NAMED))
        try:
            for rows in parquet.iter_batches(min(BATCH, fitting), columns=["question"], use_threads=False):
                names = pc.unique(_plain(rows.column("question"), NAMED))
                digests |= set(names.filter(_of_length(names, NAMED)).slice(0, MOST_NAMED).to_pylist())
                if len(digests) >= MOST_NAMED:
                    return digests
        except (pa.ArrowException, OSError) as error:
            problem = f"cannot be read to their end ({type(error).__name__}); send the file again"
        if problem:
            raise reports_unreadable(file, problem)
    return digests


@contextmanager
def report_file(question: Question, path: Path) -> Iterator[Callable[[Bytes, Bytes], None]]:
    """A new Parquet file of reports, in place of an old one; gives a function that adds ids and bodies; see `Batch`."""
    kinds = [pa.string(), pa.binary(ID_BYTES), pa.binary(question.report_bytes)]
    schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)))
    name = pa.array([question.digest[:NAMED]], pa.string())
    with pq.ParquetWriter(
        path, schema, compression="none", use_dictionary=["question"], write_statistics=False
    ) as writer:

        def add(ids: Bytes, bodies: Bytes) -> None:
            names = name.take(pa.array(np.zeros(len(ids), dtype=np.int32)))
            writer.write_batch(
                pa.record_batch([names, _fixed_size_array(ids), _fixed_size_array(bodies)], schema=schema)
            )

        yield add


def keep_lines(question: Question, lines: BinaryIO, path: Path) -> Counter[str]:
    """Copies reports from lines of text into a new Parquet file, in batches; gives the lines refused, by reason.

    Args:
        lines: open in bytes; read to its end. Empty lines do not count.
    """
    digits = 2 * ID_BYTES, 2 * question.report_bytes
    report_pattern = re.compile(
        rb"%b ([0-9A-Fa-f]{%d}) ([0-9A-Fa-f]{%d})" % (question.digest[:NAMED].encode(), *digits)
    )
    refused = Counter[str]()
    with report_file(question, path) as add:
        for chunk in _chunks(lines, NAMED + sum(digits) + len(b"  \r")):
            written_lines = [line for line in chunk.replace(b"\r\n", b"\n").removesuffix(b"\r").split(b"\n") if line]
            reports = [report for report in map(report_pattern.fullmatch, written_lines) if report]
            others = sum(
                not line.startswith(report_pattern.pattern[:NAMED]) and bool(_ANY_REPORT.fullmatch(line))
                for line in written_lines
            )
            add(*(_from_hex([report[part] for report in reports], digits[part - 1] // 2) for part in (1, 2)))
            refused += Counter({UNREADABLE: len(written_lines) - len(reports) - others, OTHER_QUESTION: others})
    return refused


def _chunks(lines: BinaryIO, longest: int) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time; a line that is longer than any report is cut to one character."""
    rest = b""
    while chunk := lines.read(CHUNK):
        whole, newline, rest = (rest + chunk).rpartition(b"\n")
        if newline:
            yield whole
        rest = rest if len(rest) <= max(CHUNK, longest) else b"?"
    if rest:
        yield rest


def _from_hex(texts: list[bytes], width: int) -> Bytes:
    return np.frombuffer(bytes.fromhex(b"".join(texts).decode("ascii")), dtype=np.uint8).reshape(-1, width)


def _open_file(file: Path) -> Any:
    if file.exists() and not file.is_dir() and not file.is_file():
        raise reports_unreadable(file, "are no file: a pipe or a device; name files")
    try:
        # Without these settings pyarrow holds whole files, or whole columns, in memory.
        parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=STREAMED)
        columns = [(field.name, field.type) for field in parquet.schema_arrow]
    except FileNotFoundError:
        problem = "are not there; check the path"
    except (pa.ArrowException, OSError, ValueError) as error:
        problem = f"are no Parquet file ({type(error).__name__}); lines of text go to standard input"
        if file.is_dir():
            problem = "are a folder; name the files in it"
    else:
        misfit = next(
            (name for name in COLUMNS if not _fits([kind for has, kind in columns if has == name], name)), None
        )
        if misfit is None:
            return parquet
        problem = (
            f"have no column {misfit!r} of the right type, or two of them; a file of reports has `question` (text), "
            "`report_id` and `report` (binary)"
        )
    raise reports_unreadable(file, problem)


def _longest_row(metadata: Any, body: int) -> int:
    """The length in bytes that a row may have by the file's footer; rows are read singly where one may be huge.

    A row group with more bytes than its rows need for bodies of `body` bytes may hold them all in one row, or in one
    word to which all rows point.
    """
    longest = 1
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        fitting = group.num_rows * (body + ID_BYTES + NAMED + 16) + ROOM
        rows = max(1, group.num_rows) if group.total_byte_size <= fitting else 1
        longest = max(longest, group.total_byte_size // rows)
    return longest


def _fits(kinds: list[Any], name: str) -> bool:
    if len(kinds) != 1:
        return False
    kind = kinds[0].value_type if pa.types.is_dictionary(kinds[0]) else kinds[0]
    if name == "question":
        return kind in (pa.string(), pa.large_string())
    return kind in (pa.binary(), pa.large_binary()) or bool(pa.types.is_fixed_size_binary(kind))


def _batch(question: Question, rows: Any) -> Batch:
    """Splits rows into reports and refused rows; a row is refused for the first reason that applies."""
    widths = (NAMED, ID_BYTES, question.report_bytes)
    names, ids, bodies = (_plain(rows.column(name), width) for name, width in zip(COLUMNS, widths, strict=True))
    conditions = {
        UNREADABLE: pc.and_(_of_length(ids, ID_BYTES), bodies.is_valid()),
        OTHER_QUESTION: pc.fill_null(pc.equal(names, question.digest[:NAMED]), False),
        WRONG_LENGTH: _of_length(bodies, question.report_bytes),
    }
    refused, is_counted = Counter[str](), np.ones(len(rows), dtype=np.bool_)
    for reason, holds in conditions.items():
        fine = is_counted & holds.to_numpy(zero_copy_only=False)
        refused[reason] = int(np.count_nonzero(is_counted) - np.count_nonzero(fine))
        is_counted = fine
    mask = pa.array(is_counted)
    return Batch(as_matrix(ids.filter(mask), ID_BYTES), as_matrix(bodies.filter(mask), question.report_bytes), refused)


def _plain(column: Any, width: int) -> Any:
    """A column without a dictionary; words of the dictionary that have another length become empty.

    Else a file of some kilobytes could point at one huge word a million times, and fill the memory.
    """
    if not pa.types.is_dictionary(column.type):
        return column
    words = column.dictionary
    words = pc.if_else(_of_length(words, width), words, pa.scalar(b"").cast(words.type))
    return pa.DictionaryArray.from_arrays(column.indices, words).dictionary_decode()


def _of_length(column: Any, length: int) -> Any:
    return pc.fill_null(pc.equal(pc.binary_length(column), length), False)


def as_matrix(column: Any, width: int) -> Bytes:
    """Binary values of one length in an Arrow array, none of them null, as rows of bytes, shape (values, width)."""
    if len(column) == 0:
        return np.empty((0, width), dtype=np.uint8)
    fixed = column.cast(pa.binary(width))
    return np.frombuffer(fixed.buffers()[1], np.uint8)[fixed.offset * width :][: len(fixed) * width].reshape(-1, width)


def _fixed_size_array(rows: Bytes) -> Any:
    content = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(rows.shape[1]), len(rows), [None, content])
