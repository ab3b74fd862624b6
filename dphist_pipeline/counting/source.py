"""The files of a source and their columns: everything about them that may be refused."""

from __future__ import annotations

import csv
import glob
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from dphist_pipeline.errors import DphistError, did_you_mean
from dphist_pipeline.sql_files import literal

LONGEST_HEADER = 1 << 20
LONGEST_LINE = 1 << 26
WHOLE_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
NUMBERS = (*WHOLE_NUMBERS, *(f"U{name}" for name in WHOLE_NUMBERS), "FLOAT", "DOUBLE", "DECIMAL")
TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE")


class SourceRefused(DphistError):
    """The source, as files, cannot be read: nothing was charged."""

    def __init__(self, where: str, problem: str) -> None:
        self.where, self.problem = where, problem
        super().__init__(f"source {where}: {problem}")


class ColumnRefused(DphistError):
    """A column that the spec names is missing from the source, or of a type that it cannot have."""

    def __init__(self, column: str, problem: str) -> None:
        self.column, self.problem = column, problem
        super().__init__(f"column {column!r} {problem}")


@dataclass(frozen=True)
class Source:
    """Readable files with one set of columns.

    Attributes:
        files: absolute paths, sorted.
        types: DuckDB type of every column, without parameters; only VARCHAR for CSV.
        relation: SQL that yields the rows, with `parameters` bound.
        parameters: what `relation` takes.
    """

    files: tuple[Path, ...]
    types: Mapping[str, str]
    relation: str
    parameters: Mapping[str, Any]

    @property
    def is_csv(self) -> bool:
        """Whether column names came from a header line, which may be a record by mistake."""
        return self.files[0].suffix.lower() == ".csv"

    def type_of(self, column: str, allowed: tuple[str, ...], use: str) -> str:
        """The type of a column, refused unless it is text or one of `allowed`."""
        if column not in self.types:
            # A CSV without a header line has a record in its place: its names are never shown.
            hint = "Check the header line." if self.is_csv else did_you_mean(column, self.types)
            raise ColumnRefused(column, f"is not in the source. {hint}")
        found = self.types[column]
        if found not in (*allowed, "VARCHAR", "ENUM"):
            raise ColumnRefused(column, f"has type {found}, which cannot serve as {use}")
        return found


def find_files(pattern: str) -> tuple[Path, ...]:
    """The files that a source names, sorted; refuses a pattern without files, and what is not a file."""
    found = sorted(map(Path, glob.glob(pattern, recursive=True)))  # noqa: PTH207 - patterns are absolute
    if not found:
        raise SourceRefused(pattern, "no such file. Check `source`, which starts at the project's folder.")
    for path in found:
        if not path.is_file():
            raise SourceRefused(str(path), "is not a file; name files, as in `data/*.parquet`")
        if glob.has_magic(str(path)):
            raise SourceRefused(str(path), "has one of the characters * ? [ in its name; rename the file")
    return tuple(found)


def open_source(connection: duckdb.DuckDBPyConnection, files: tuple[Path, ...], delimiter: str, quote: str) -> Source:
    """Reads the columns of files, and nothing else."""
    endings = {path.suffix.lower() for path in files}
    if len(endings) > 1:
        raise SourceRefused(str(files[0].parent), f"mixes {' and '.join(sorted(endings))} files; name one kind")
    if endings == {".csv"}:
        return _csv(files, delimiter, quote)
    return _parquet(connection, files)


def _parquet(connection: duckdb.DuckDBPyConnection, files: tuple[Path, ...]) -> Source:
    # Bad bytes in text become '?': DuckDB's default is to raise, with the value in its message.
    relation = "SELECT * FROM read_parquet($files, union_by_name = true, utf8_validation = 'replace')"
    parameters = {"files": [str(path) for path in files]}
    for path in files:
        with withheld(f"{path}", "is not a readable Parquet file, or is cut off. Write it anew."):
            connection.execute("SELECT count(*) FROM parquet_schema($file)", {"file": str(path)}).fetchall()
    with withheld(str(files[0].parent), "has files whose columns do not fit together. Give them the same types."):
        columns = connection.execute(f"DESCRIBE {relation}", parameters).fetchall()
    types = {name: kind.partition("(")[0] for name, kind, *_ in columns}
    return Source(files, types, relation, parameters)


def _csv(files: tuple[Path, ...], delimiter: str, quote: str) -> Source:
    """One reader for every distinct header line, so that files may order their columns differently."""
    by_header: dict[tuple[str, ...], list[str]] = {}
    for path in files:
        by_header.setdefault(_header(path, delimiter, quote), []).append(str(path))
    names = {frozenset(header) for header in by_header}
    if len(names) > 1:
        raise SourceRefused(str(files[0].parent), "has files whose header lines name different columns")
    parts = []
    for number, header in enumerate(by_header):
        columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header)
        parts.append(
            f"SELECT * FROM read_csv($files_{number}, auto_detect = false, header = true, "
            f"delim = {literal(delimiter)}, quote = {literal(quote)}, escape = {literal(quote)}, comment = '', "
            f"columns = {{{columns}}}, ignore_errors = true, null_padding = true, strict_mode = false, "
            f"max_line_size = {LONGEST_LINE}, compression = 'none', encoding = 'utf-8')"
        )
    parameters = {f"files_{number}": paths for number, paths in enumerate(by_header.values())}
    types = dict.fromkeys(next(iter(by_header)), "VARCHAR")
    return Source(files, types, " UNION ALL BY NAME ".join(parts), parameters)


def _header(path: Path, delimiter: str, quote: str) -> tuple[str, ...]:
    """The column names in the first line of a CSV file; no message repeats them."""
    with path.open("rb") as file:
        line = file.readline(LONGEST_HEADER)
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        text = ""
    quoting: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    names = next(csv.reader([text], delimiter=delimiter, **quoting), []) if text and "\0" not in text else []
    if not names or not all(names) or len({name.lower() for name in names}) < len(names):
        raise SourceRefused(
            str(path),
            "has no usable header line: column names in UTF-8, each once, apart by the declared `csv_delimiter`",
        )
    return tuple(names)


@contextmanager
def withheld(where: str, problem: str) -> Iterator[None]:
    """Turns an engine's error into ours; its text may hold values, so neither it nor its traceback is kept."""
    failed = False
    try:
        yield
    except duckdb.Error:
        failed = True
    if failed:
        raise SourceRefused(where, problem)
