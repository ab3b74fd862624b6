"""Reports as they reach the curator: Parquet files, or lines of text, read in batches of bounded memory.

A report names the question it answers, has a random id of 16 bytes and a body. Whatever cannot be one is refused and
counted, never raised: how many were refused, and why, tells of reports only, and may be shown.

    Parquet   columns `question` (text), `report_id` and `report` (binary)
    text      a line for each report: question, id and body in hex, with a space between
"""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dphist_pipeline.errors import DphistError
from dphist_pipeline.local.question import Question
from dphist_pipeline.local.repeated import Repeated
from dphist_pipeline.local.tally import Tally

Bytes = NDArray[np.uint8]
Made = TypeVar("Made")

BATCH = 1 << 18  # reports at once, or fewer
BATCH_BYTES = 1 << 24  # where they are long
FEWEST = 64  # where a file only says so
STREAMED = 1 << 20
ID_BYTES = 16
NAMED = 16  # characters of a question's digest, by which a report names it
COLUMNS = ("question", "report_id", "report")

UNREADABLE, OTHER_QUESTION, WRONG_LENGTH = "unreadable", "other question", "wrong length"
MALFORMED, DUPLICATE = "malformed", "duplicate"
REFUSALS = (UNREADABLE, OTHER_QUESTION, WRONG_LENGTH, MALFORMED, DUPLICATE)


class ReportsUnreadable(DphistError):
    """A file that holds no reports."""

    def __init__(self, path: Path | str, problem: str) -> None:
        self.path, self.problem = path, problem
        super().__init__(f"the reports at {path} {problem}")


@dataclass(frozen=True, eq=False)
class Batch:
    """Reports to one question, each with an id and a body of the right length.

    Attributes:
        ids: uint8, shape (reports, 16).
        bodies: uint8, shape (reports, bytes of a report).
        refused: how many were left out of this batch, by reason.
    """

    ids: Bytes
    bodies: Bytes
    refused: Counter[str] = field(default_factory=Counter)


def files_at(pattern: str) -> list[Path]:
    """The files that an absolute glob finds, in order of their names; folders are passed over."""
    found = map(Path, glob.glob(pattern, recursive=True))  # noqa: PTH207 - absolute patterns
    return sorted(path for path in found if not path.is_dir())


def tallied(question: Question, files: Sequence[Path]) -> tuple[Tally, dict[str, int]]:
    """Counts the reports in Parquet files: each id once, the first report that has it.

    Reads ids once for every 16 million reports, to know which come twice, then everything once. Some hundred megabytes
    of memory, whatever the number of reports; 25 bytes more for each id that comes twice.

    Args:
        question: which they answer.
        files: read in order.

    Returns:
        The tally of what is accepted; how many were refused, by reason, zeros included.

    Raises:
        ReportsUnreadable: a file is no Parquet file with the columns of reports.
    """
    files = list(files)
    seen = [_state(file) for file in files]
    # Counted, not read off footers: those say what their writers want.
    repeated = Repeated.of(lambda: ids_of(files), sum(len(ids) for ids in ids_of(files)))
    tally, refused = Tally(question), Counter[str]()
    for batch in batches(question, files):
        refused += batch.refused
        again = repeated.again(batch.ids)
        refused[DUPLICATE] += int(np.count_nonzero(again))
        tally.add(batch.bodies[~again] if again.any() else batch.bodies)
    for file, state in zip(files, seen, strict=True):
        if _state(file) != state:
            raise ReportsUnreadable(file, "changed while they were counted; count them again")
    refused[MALFORMED] = tally.malformed
    return tally, {reason: refused[reason] for reason in REFUSALS}


def _state(file: Path) -> tuple[int, int, int] | None:
    """What changes with a file; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def batches(question: Question, files: Sequence[Path]) -> Iterator[Batch]:
    """Everything in Parquet files that may be a report to a question."""
    yield from _read(files, COLUMNS, question.report_bytes, lambda rows: _batch(question, rows))


def ids_of(files: Sequence[Path]) -> Iterator[Bytes]:
    """All ids in Parquet files, uint8, shapes (any, 16), those of refused reports included."""
    yield from _read(files, ("report_id",), ID_BYTES, _ids)


def _ids(rows: Any) -> Bytes:
    ids = _plain(rows.column("report_id"), ID_BYTES)
    fits = _of_length(ids, ID_BYTES)
    return _matrix(ids if pc.all(fits).as_py() in (True, None) else ids.filter(fits), ID_BYTES)


def _read(files: Sequence[Path], columns: Sequence[str], width: int, made: Callable[[Any], Made]) -> Iterator[Made]:
    """What is made of rows of files, so many at once that neither reports of that width nor theirs fill the memory."""
    for file in files:
        problem = None
        opened = _opened(file)
        rows = max(1, min(BATCH, BATCH_BYTES // width, max(FEWEST, BATCH_BYTES // max(1, _longest(opened.metadata)))))
        try:
            yield from map(made, opened.iter_batches(rows, columns=list(columns), use_threads=False))
        except (pa.ArrowException, OSError) as error:
            problem = f"cannot be read to their end ({type(error).__name__}); send the file again"
        if problem:
            raise ReportsUnreadable(file, problem)


@contextmanager
def report_file(question: Question, path: Path) -> Iterator[Callable[[Bytes, Bytes], None]]:
    """A new Parquet file of reports; called with ids and bodies, it adds them, shapes as in `Batch`."""
    kinds = [pa.string(), pa.binary(ID_BYTES), pa.binary(question.report_bytes)]
    schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)))
    name = pa.array([question.digest[:NAMED]], pa.string())
    with pq.ParquetWriter(
        path, schema, compression="none", use_dictionary=["question"], write_statistics=False
    ) as writer:

        def add(ids: Bytes, bodies: Bytes) -> None:
            names = name.take(pa.array(np.zeros(len(ids), dtype=np.int32)))
            writer.write_batch(pa.record_batch([names, _fixed(ids), _fixed(bodies)], schema=schema))

        yield add


def _opened(file: Path) -> Any:
    try:
        # Or whole files, and whole columns, would lie in memory.
        opened = pq.ParquetFile(file, pre_buffer=False, buffer_size=STREAMED)
        found = [(field.name, field.type) for field in opened.schema_arrow]
    except FileNotFoundError:
        problem = "are not there; check the path"
    except (pa.ArrowException, OSError, ValueError) as error:
        problem = f"are no Parquet file ({type(error).__name__}); lines of text go to standard input"
        if file.is_dir():
            problem = "are a folder; name the files in it"
    else:
        misfit = next((name for name in COLUMNS if not _fits([kind for has, kind in found if has == name], name)), None)
        if misfit is None:
            return opened
        problem = (
            f"have no column {misfit!r} of the right type, or two of them; a file of reports has `question` (text), "
            "`report_id` and `report` (binary)"
        )
    raise ReportsUnreadable(file, problem)


def _longest(metadata: Any) -> int:
    """Bytes of a row of a file, at most: on average over a row group, as its footer says."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return max((group.total_byte_size // max(1, group.num_rows) for group in groups), default=1)


def _fits(kinds: list[Any], name: str) -> bool:
    if len(kinds) != 1:
        return False
    kind = kinds[0]
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if name == "question":
        return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _batch(question: Question, rows: Any) -> Batch:
    """The reports of some rows; of those that are none, the first reason counts."""
    widths = (NAMED, ID_BYTES, question.report_bytes)
    names, ids, bodies = (_plain(rows.column(name), width) for name, width in zip(COLUMNS, widths, strict=True))
    conditions = {
        UNREADABLE: pc.and_(_of_length(ids, ID_BYTES), bodies.is_valid()),
        OTHER_QUESTION: pc.fill_null(pc.equal(names, question.digest[:NAMED]), False),
        WRONG_LENGTH: _of_length(bodies, question.report_bytes),
    }
    refused, kept = Counter[str](), np.ones(len(rows), dtype=np.bool_)
    for reason, holds in conditions.items():
        fine = kept & holds.to_numpy(zero_copy_only=False)
        refused[reason] = int(np.count_nonzero(kept) - np.count_nonzero(fine))
        kept = fine
    if not kept.all():
        ids, bodies = ids.filter(pa.array(kept)), bodies.filter(pa.array(kept))
    return Batch(_matrix(ids, ID_BYTES), _matrix(bodies, question.report_bytes), refused)


def _plain(column: Any, width: int) -> Any:
    """A column of text or bytes, whatever wrote its file; in a dictionary, values of other lengths become empty."""
    if pa.types.is_dictionary(column.type):
        # A file of some kilobytes can point at one huge value a million times.
        words = column.dictionary
        words = pc.if_else(_of_length(words, width), words, pa.scalar(b"").cast(words.type))
        column = pa.DictionaryArray.from_arrays(column.indices, words).dictionary_decode()
    if pa.types.is_large_binary(column.type):
        return column.cast(pa.binary())
    return column


def _of_length(column: Any, length: int) -> Any:
    return pc.fill_null(pc.equal(pc.binary_length(column), length), False)


def _matrix(column: Any, width: int) -> Bytes:
    """Values that all have the same length, as rows of bytes."""
    if len(column) == 0:
        return np.empty((0, width), dtype=np.uint8)
    buffers = column.buffers()
    first = column.offset * width
    if pa.types.is_binary(column.type):
        first = int(np.frombuffer(buffers[1], dtype=np.int32)[column.offset])
    return np.frombuffer(buffers[-1], dtype=np.uint8)[first : first + len(column) * width].reshape(-1, width)


def _fixed(rows: Bytes) -> Any:
    content = pa.py_buffer(np.ascontiguousarray(rows))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(rows.shape[1]), len(rows), [None, content])
