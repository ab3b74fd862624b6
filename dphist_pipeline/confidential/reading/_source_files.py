"""Opening the files of a source: which they are, and what columns they have; no record is read.

CSV files, compressed or not, are read as declared, with nothing guessed. A line of more than `LONGEST_LINE` bytes is no
row, and lines around it are read as if it were not there. DuckDB holds some 2,000 lines at a time, so that lines of any
number and content fit the memory of `ingest`.

DuckDB leaves out a whole line for one byte that is no UTF-8, and fails on some bytes of Latin-1. So files with such
bytes, or in a declared encoding, are read from copies in UTF-8 (see `csv_text`).
"""

from __future__ import annotations

import base64
import glob
import os
from collections.abc import Mapping
from contextlib import closing, suppress
from io import BytesIO
from pathlib import Path, PurePath
from urllib.parse import unquote_to_bytes

import duckdb
import pyarrow as pa

from dphist_pipeline import csv_text
from dphist_pipeline.confidential.plan import SourcePlan
from dphist_pipeline.confidential.reading.source import (
    Source,
    SourceRefused,
    asked,
    columns_of,
    plain_type,
    refuse_shadowed,
    with_possible_times,
    without_values,
)
from dphist_pipeline.declared_numbers import WHOLE_NUMBERS
from dphist_pipeline.spec.sources import ending_of
from dphist_pipeline.sql_files import literal

DAMAGED = "is not a readable Parquet file, or is cut off. Write it anew."
LONGEST_LINE = 1 << 20


def find_files(pattern: str, written: str | None = None) -> tuple[Path, ...]:
    """The files that an absolute pattern names, sorted; refuses a pattern without files, and what is not a file.

    `written`: what messages call it, where the environment gave a part of it.
    """
    files = sorted(map(Path, glob.glob(pattern, recursive=True)))  # noqa: PTH207 - patterns are absolute
    if not files:
        raise SourceRefused(written or pattern, "no such file. Check `source`, which starts at the project's folder.")
    for path in files:
        if not str(path).isprintable():
            raise SourceRefused(written or pattern, "finds a file whose name cannot be printed; rename the file")
        if not path.is_file():
            raise SourceRefused(without_values(path), "is not a file; name files, as in `data/*.parquet`")
        if glob.has_magic(str(path)):
            raise SourceRefused(without_values(path), "has one of the characters * ? [ in its name; rename the file")
    return tuple(files)


def open_files(
    connection: duckdb.DuckDBPyConnection, files: tuple[Path, ...], source: SourcePlan, copies: Path | None = None
) -> Source:
    """Reads the columns of files, and nothing else.

    Args:
        copies: private, for copies of CSV files; None if no row is read.
    """
    endings = {ending_of(path.name) or path.suffix.lower() for path in files}
    where = without_values(files[0].parent)
    if len(endings) > 1:
        raise SourceRefused(where, f"mixes {' and '.join(sorted(endings))} files; name one kind")
    # Of folders that ought to be called `column=value`, one that is not may still be called as a value is.
    above = without_values(Path(os.path.commonpath([path.parent for path in files])).parent)
    folders = folder_columns(files, above) if source.hive else ()
    if endings == {".parquet"}:
        return open_parquet(connection, {str(path): without_values(path) for path in files}, where, folders)
    return open_csv(files, source, folders, copies)


def folder_columns(files: tuple[PurePath, ...], where: str) -> tuple[str, ...]:
    """The columns that folders called `column=value` give, the same for all files, of which there is one or more."""
    folders = {part for path in files for part in path.parts[:-1] if part.find("=") > 0}
    for column, _, value in (folder.partition("=") for folder in sorted(folders)):
        if "\\" in column:
            raise SourceRefused(where, "has folders with a backslash in the column's name. Rename them.")
        if "=" in value or not _is_text(value):
            raise SourceRefused(
                where,
                f"has folders called `{column}=…` whose value cannot be read: it must be UTF-8 once its %XX are "
                "decoded, and hold no other `=`, which is written %3D. Rename them.",
            )
    columns = {tuple(part.partition("=")[0] for part in path.parts[:-1] if part in folders) for path in files}
    if len(columns) > 1 or not all(columns):
        raise SourceRefused(where, "is read with `hive: true`, and not all files lie in folders called `column=value`")
    (names,) = columns
    return names


def _is_text(value: str) -> bool:
    """Whether a folder's value is UTF-8, once its %XX are decoded."""
    try:
        unquote_to_bytes(value).decode()
    except UnicodeDecodeError:
        return False
    return True


def open_parquet(
    connection: duckdb.DuckDBPyConnection,
    files: Mapping[str, str],
    where: str,
    folders: tuple[str, ...],
    problem: str = DAMAGED,
) -> Source:
    """Reads the columns of Parquet files, and nothing else.

    Args:
        files: what messages call each file, by its address, in order.
        problem: what to say of a file that cannot be opened.
    """
    # By default DuckDB raises on bad bytes in text, with the value in its message (so they become '?'), takes a column
    # for free of NaN where the file's statistics, which leave NaN out, show numbers, and lets a folder `patient=5` take
    # the place of the column `patient`.
    reading = (
        "SELECT * FROM read_parquet($files, union_by_name = true, utf8_validation = 'replace', "
        "can_have_nan = true, hive_types_autocast = false, hive_partitioning = "
    )
    by_file = [_types(connection, f"{reading}false)", file, called, problem) for file, called in files.items()]
    names = dict.fromkeys(name for types in by_file for name in types)
    refuse_shadowed(where, names, folders)
    relation = f"{reading}{str(bool(folders)).lower()})"
    parameters = {"files": list(files)}
    unfit = "has files whose columns do not fit together. Give them the same types."
    columns_of(connection, where, unfit, relation, parameters)
    types = {name: _type_in_all({types.get(name, "nothing") for types in by_file}) for name in names}
    relation = with_possible_times(types, relation.removeprefix("SELECT * FROM "))
    return Source(types | dict.fromkeys(folders, "VARCHAR"), relation, parameters, replaced="?")


def _types(
    connection: duckdb.DuckDBPyConnection, relation: str, file: str, called: str, problem: str
) -> dict[str, str]:
    """DuckDB types of a file's columns, with parameters; and some that DuckDB reads as others, told apart.

    Time stamps in milliseconds, because reading one beyond the year 294247 raises, whatever the query. Floats of 16
    bits, which have shortest texts of their own. Lengths of time by Arrow, which DuckDB reads as whole numbers.
    """
    columns = columns_of(connection, called, problem, relation, {"files": [file]})
    told_apart = (
        "SELECT name, CASE WHEN logical_type = 'Float16Type()' THEN 'FLOAT16' ELSE 'TIMESTAMP_MS' END "
        "FROM parquet_schema($file) WHERE converted_type = 'TIMESTAMP_MILLIS' OR logical_type = 'Float16Type()' "
        "OR contains(logical_type, 'MILLIS=MilliSeconds')"
    )
    special = dict(asked(connection, called, problem, told_apart, {"file": file}))
    described = "SELECT value FROM parquet_kv_metadata($file) WHERE key = 'ARROW:schema'"
    for (text,) in asked(connection, called, problem, described, {"file": file}):
        special |= {name: f"DURATION_{unit}" for name, unit in _durations(text).items()}
    types = {name: kind.strip('"') for name, kind in columns.items()}
    stored = {"FLOAT16": "FLOAT", "TIMESTAMP_MS": "TIMESTAMP"}
    return types | {
        name: kind for name, kind in special.items() if types.get(name, "").startswith(stored.get(kind, "BIGINT"))
    }


def _durations(described: bytes) -> dict[str, str]:
    """Units of the columns that are lengths of time, by what Arrow wrote of its types; none where that is unreadable.

    Polars reads the types of its own that PyArrow does not know.
    """
    message = b""
    with suppress(ValueError):
        message = base64.b64decode(described)
    with suppress(pa.ArrowException, OSError, ValueError):
        kinds = {field.name: field.type for field in pa.ipc.read_schema(pa.py_buffer(message))}
        return {name: kind.unit.upper() for name, kind in kinds.items() if pa.types.is_duration(kind)}
    import polars as pl

    with suppress(Exception, pl.exceptions.PanicException):
        empty = pl.read_ipc_stream(BytesIO(message))
        return {
            name: str(kind.time_unit).upper() for name, kind in empty.schema.items() if isinstance(kind, pl.Duration)
        }
    return {}


def _type_in_all(types: set[str]) -> str:
    """The one type of a column, given its types in all files.

    Only whole numbers of several widths are read as one: other mixtures would be cast to a common type, which may
    raise, or merge two units into one.
    """
    known = types - {"NULL"} or types
    if len(known) == 1:
        return plain_type(known.pop())
    if known <= {*WHOLE_NUMBERS}:
        return "HUGEINT"
    kinds = sorted(kind if kind.startswith("DECIMAL") else plain_type(kind) for kind in known)
    return f"{' in some files and '.join(kinds)} in others"


def open_csv(files: tuple[Path, ...], source: SourcePlan, folders: tuple[str, ...], copies: Path | None) -> Source:
    """Reads header lines, and checks that archives are whole.

    One reader for every distinct header line, so that files may order their columns differently.

    Args:
        files: sorted, at least one, all with the same ending.
        folders: columns that the folders' names give; empty without `hive`.
        copies: private, for copies in UTF-8; None if columns are looked at and no row is read.

    Raises:
        SourceRefused: for a damaged archive, and for header lines that do not serve; none is shown.
    """
    where = without_values(files[0].parent)
    if folders and copies is not None and any("=" in part for part in copies.parts):
        raise SourceRefused(where, "is read with `hive: true` by a store in a folder called `column=value`; move that")
    by_header: dict[tuple[str, ...], list[Path]] = {}
    for path in files:
        _check_whole(path)
        by_header.setdefault(_csv_header(path, source), []).append(path)
    if len({frozenset(header) for header in by_header}) > 1:
        raise SourceRefused(where, "has files whose header lines name different columns")
    header = next(iter(by_header))
    refuse_shadowed(where, header, folders)
    read = {path: path for path in files}
    if copies is not None and (source.csv_encoding != csv_text.UTF_8 or not all(map(_is_utf8, files))):
        read = {
            path: _copy_in_utf8(path, source.csv_encoding, copies / str(number)) for number, path in enumerate(files)
        }
    reading = _csv_reading(read[files[0]], source, bool(folders))
    parts = []
    for number, columns in enumerate(by_header):
        declared = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in columns)
        parts.append(f"SELECT * FROM read_csv($files_{number}, columns = {{{declared}}}, {reading})")
    parameters = {f"files_{number}": [str(read[path]) for path in of] for number, of in enumerate(by_header.values())}
    types = dict.fromkeys((*header, *folders), "VARCHAR")
    return Source(types, " UNION ALL BY NAME ".join(parts), parameters, is_csv=True, replaced=csv_text.LOST)


def _csv_reading(path: Path, source: SourcePlan, hive: bool) -> str:
    """How every file is read: nothing guessed, and no line that fails."""
    # With padding, DuckDB's parallel reader fails on a line break inside quotes.
    delimiter, quote, parallel = source.csv_delimiter, source.csv_quote, "false" if source.csv_quote else "true"
    return (
        "auto_detect = false, header = true, "
        f"delim = {literal(delimiter)}, quote = {literal(quote)}, escape = {literal(quote)}, comment = '', "
        "ignore_errors = true, null_padding = true, strict_mode = false, "
        f"parallel = {parallel}, hive_partitioning = {str(hive).lower()}, hive_types_autocast = false, "
        f"max_line_size = {LONGEST_LINE}, compression = {literal(csv_text.compression_of(path))}, encoding = 'utf-8'"
    )


def _check_whole(path: Path) -> None:
    """Refuses an archive that is damaged or cut off: DuckDB would read up to the damage, and say nothing."""
    whole = csv_text.compression_of(path) == "none"
    if not whole:
        with suppress(OSError), closing(csv_text.opened_csv(path)) as file:
            while file.read(csv_text.PIECE):
                pass
            whole = True
    if not whole:
        raise SourceRefused(without_values(path), "is damaged, cut off, or no archive of its kind. Write it anew.")


def _is_utf8(path: Path) -> bool:
    with closing(csv_text.opened_csv(path)) as file:
        return csv_text.is_utf8(file)


def _copy_in_utf8(path: Path, encoding: csv_text.Encoding, folder: Path) -> Path:
    """A copy in UTF-8, in folders `column=value` as those of the file."""
    copied = folder.joinpath(*(part for part in path.parts[:-1] if part.find("=") > 0), "rows.csv")
    copied.parent.mkdir(parents=True)
    with closing(csv_text.opened_csv(path)) as file, copied.open("wb") as copy:
        copy.writelines(text.encode() for text in csv_text.decoded(file, encoding))
    return copied


def _csv_header(path: Path, source: SourcePlan) -> tuple[str, ...]:
    """The column names in the first line of a CSV file; no message repeats them, or says which are alike."""
    start = b""
    with suppress(OSError), closing(csv_text.opened_csv(path)) as file:
        start = file.read(csv_text.LONGEST_HEADER)
        line, _, rest = "".join(csv_text.decoded(BytesIO(start), source.csv_encoding)).partition("\n")
        line = "" if len(start) == csv_text.LONGEST_HEADER and not rest else line.removeprefix("\ufeff").rstrip("\r")
        with suppress(ValueError):
            return tuple(csv_text.header_names(line, source.csv_delimiter, source.csv_quote))
    likely = csv_text.likely_encoding(start.partition(b"\n")[0])
    mend = "" if likely == source.csv_encoding else f"; its bytes look like {likely}: declare `csv_encoding: {likely}`"
    if likely is None:
        mend = f"; its bytes look like UTF-16, which is not read: {csv_text.WRITE_ANEW}"
    raise SourceRefused(
        without_values(path),
        f"cannot be read, or has no usable header line: column names in {source.csv_encoding}, each once, apart by the "
        f"declared `csv_delimiter`{mend}",
    )
