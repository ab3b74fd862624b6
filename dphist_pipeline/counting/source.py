"""The files of a source and their columns: everything about them that may be refused."""

from __future__ import annotations

import csv
import glob
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from dphist_pipeline.errors import DphistError, did_you_mean
from dphist_pipeline.sql_files import literal

LONGEST_HEADER = 1 << 20
LONGEST_LINE = 1 << 26
SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
WHOLE_NUMBERS = (*SIGNED, *(f"U{name}" for name in SIGNED))
NUMBERS = (*WHOLE_NUMBERS, "FLOAT", "DOUBLE", "DECIMAL")
ZONED_TIMES = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_NS", *ZONED_TIMES)
# Served wherever a type is: text is parsed row by row, and a column without a type holds nothing but nulls.
ALWAYS = ("VARCHAR", "ENUM", "NULL")

Result = TypeVar("Result")


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
        types: DuckDB type of every column, without parameters; only VARCHAR for CSV. Where files disagree, words that
            say so and serve for nothing.
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
        """The type of a column, refused unless it is text, all null, or one of `allowed`."""
        if column not in self.types:
            # A CSV without a header line has a record in its place: its names are never shown.
            hint = "Check the header line." if self.is_csv else did_you_mean(column, self.types)
            raise ColumnRefused(column, f"is not in the source. {hint}")
        found = self.types[column]
        if found not in (*allowed, *ALWAYS):
            raise ColumnRefused(column, f"has type {found}, which cannot serve as {use}")
        return found


def find_files(pattern: str) -> tuple[Path, ...]:
    """The files that a source names, sorted; refuses a pattern without files, and what is not a file."""
    found = sorted(map(Path, glob.glob(pattern, recursive=True)))  # noqa: PTH207 - patterns are absolute
    if not found:
        raise SourceRefused(pattern, "no such file. Check `source`, which starts at the project's folder.")
    for path in found:
        if not str(path).isprintable():
            raise SourceRefused(pattern, "finds a file whose name cannot be printed; rename the file")
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
    # By default DuckDB raises on bad bytes in text, with the value in its message (so they become '?'), takes a column
    # for free of NaN where the file's statistics, which leave NaN out, show numbers, and lets a folder `patient=5` take
    # the place of the column `patient`.
    relation = (
        "SELECT * FROM read_parquet($files, union_by_name = true, utf8_validation = 'replace', "
        "can_have_nan = true, hive_partitioning = false)"
    )
    by_file = [_types(connection, relation, path) for path in files]
    parameters = {"files": [str(path) for path in files]}
    withheld(
        str(files[0].parent),
        "has files whose columns do not fit together. Give them the same types.",
        lambda: connection.execute(f"DESCRIBE {relation}", parameters).fetchall(),
    )
    names = dict.fromkeys(name for types in by_file for name in types)
    types = {name: _type_in_all({types.get(name, "nothing") for types in by_file}) for name in names}
    return Source(files, types, relation, parameters)


def _types(connection: duckdb.DuckDBPyConnection, relation: str, path: Path) -> dict[str, str]:
    """DuckDB types of a file's columns, with parameters.

    Time stamps in milliseconds are told apart, because reading one beyond the year 294247 raises, whatever the query.
    """

    def columns_and_milliseconds() -> tuple[list[Any], list[Any]]:
        columns = connection.execute(f"DESCRIBE {relation}", {"files": [str(path)]}).fetchall()
        in_milliseconds = (
            "SELECT name FROM parquet_schema($file) "
            "WHERE converted_type = 'TIMESTAMP_MILLIS' OR contains(logical_type, 'MILLIS=MilliSeconds')"
        )
        return columns, connection.execute(in_milliseconds, {"file": str(path)}).fetchall()

    damaged = "is not a readable Parquet file, or is cut off. Write it anew."
    columns, in_milliseconds = withheld(str(path), damaged, columns_and_milliseconds)
    types = {name: kind.strip('"') for name, kind, *_ in columns}
    return types | {name: "TIMESTAMP_MS" for (name,) in in_milliseconds if types.get(name, "").startswith("TIMESTAMP")}


def _type_in_all(types: set[str]) -> str:
    """The one type of a column, given its types in all files.

    Only whole numbers of several widths are read as one: other mixtures would be cast to a common type, which may
    raise, or merge two units into one.
    """
    known = types - {"NULL"} or types
    if len(known) == 1:
        return known.pop().partition("(")[0]
    return "HUGEINT" if known <= {*WHOLE_NUMBERS} else f"{' in some files and '.join(sorted(known))} in others"


def _csv(files: tuple[Path, ...], delimiter: str, quote: str) -> Source:
    """One reader for every distinct header line, so that files may order their columns differently."""
    by_header: dict[tuple[str, ...], list[str]] = {}
    for path in files:
        by_header.setdefault(_header(path, delimiter, quote), []).append(str(path))
    names = {frozenset(header) for header in by_header}
    if len(names) > 1:
        raise SourceRefused(str(files[0].parent), "has files whose header lines name different columns")
    # With padding, DuckDB's parallel reader fails on a line break inside quotes.
    parallel = "false" if quote else "true"
    parts = []
    for number, header in enumerate(by_header):
        columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header)
        parts.append(
            f"SELECT * FROM read_csv($files_{number}, auto_detect = false, header = true, "
            f"delim = {literal(delimiter)}, quote = {literal(quote)}, escape = {literal(quote)}, comment = '', "
            f"columns = {{{columns}}}, ignore_errors = true, null_padding = true, strict_mode = false, "
            f"parallel = {parallel}, hive_partitioning = false, "
            f"max_line_size = {LONGEST_LINE}, compression = 'none', encoding = 'utf-8')"
        )
    parameters = {f"files_{number}": paths for number, paths in enumerate(by_header.values())}
    types = dict.fromkeys(next(iter(by_header)), "VARCHAR")
    return Source(files, types, " UNION ALL BY NAME ".join(parts), parameters)


def _header(path: Path, delimiter: str, quote: str) -> tuple[str, ...]:
    """The column names in the first line of a CSV file; no message repeats them."""
    names: list[str] = []
    with suppress(OSError, UnicodeDecodeError, csv.Error):
        names = _first_line(path, delimiter, quote)
    if not names or not all(names) or len({name.lower() for name in names}) < len(names):
        raise SourceRefused(
            str(path),
            "cannot be read, or has no usable header line: column names in UTF-8, each once, apart by the declared "
            "`csv_delimiter`",
        )
    return tuple(names)


def _first_line(path: Path, delimiter: str, quote: str) -> list[str]:
    """The fields of a CSV file's first line; none where it is too long or holds a NUL."""
    with path.open("rb") as file:
        line = file.readline(LONGEST_HEADER)
    if len(line) == LONGEST_HEADER or b"\0" in line:
        return []
    quoting: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    return next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")], delimiter=delimiter, **quoting), [])


def withheld(where: str, problem: str, work: Callable[[], Result]) -> Result:
    """What `work` gives; an engine's error becomes ours.

    The engine's text may hold values, so ours is raised after it is gone: not even as `__context__` does it go along,
    which is why this is no context manager.
    """
    try:
        return work()
    except (duckdb.Error, RuntimeError, MemoryError, OSError, UnicodeError) as error:
        # DuckDB answers Ctrl-C with an error of its own.
        interrupted = isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted"
    if interrupted:
        raise KeyboardInterrupt
    raise SourceRefused(where, problem)
