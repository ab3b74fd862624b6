"""Opening the files of a source: which they are, and what columns they have; no record is read."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping
from pathlib import Path, PurePath
from urllib.parse import unquote_to_bytes

import duckdb

from dphist_pipeline.confidential.plan import SourcePlan
from dphist_pipeline.confidential.reading._csv_files import open_csv
from dphist_pipeline.confidential.reading.source import (
    WHOLE_NUMBERS,
    Source,
    SourceRefused,
    asked,
    columns_of,
    plain_type,
    refuse_shadowed,
    with_possible_times,
    without_values,
)
from dphist_pipeline.spec.sources import ending_of

DAMAGED = "is not a readable Parquet file, or is cut off. Write it anew."


def find_files(pattern: str, written: str | None = None) -> tuple[Path, ...]:
    """The files that a source names, sorted; refuses a pattern without files, and what is not a file.

    Args:
        pattern: absolute.
        written: what messages call it, where the environment gave a part of it.
    """
    found = sorted(map(Path, glob.glob(pattern, recursive=True)))  # noqa: PTH207 - patterns are absolute
    if not found:
        raise SourceRefused(written or pattern, "no such file. Check `source`, which starts at the project's folder.")
    for path in found:
        if not str(path).isprintable():
            raise SourceRefused(written or pattern, "finds a file whose name cannot be printed; rename the file")
        if not path.is_file():
            raise SourceRefused(without_values(path), "is not a file; name files, as in `data/*.parquet`")
        if glob.has_magic(str(path)):
            raise SourceRefused(without_values(path), "has one of the characters * ? [ in its name; rename the file")
    return tuple(found)


def open_files(
    connection: duckdb.DuckDBPyConnection, files: tuple[Path, ...], source: SourcePlan, copies: Path | None = None
) -> Source:
    """Reads the columns of files, and nothing else.

    Args:
        files: sorted, at least one.
        source: how they are written, and whether their folders give columns.
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
    """The columns that folders called `column=value` give, the same for all files.

    Args:
        files: paths or addresses, at least one.
        where: what messages call them together.
    """
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
    found = {tuple(part.partition("=")[0] for part in path.parts[:-1] if part in folders) for path in files}
    if len(found) > 1 or not all(found):
        raise SourceRefused(where, "is read with `hive: true`, and not all files lie in folders called `column=value`")
    (names,) = found
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
        where: what messages call them together.
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
    """DuckDB types of a file's columns, with parameters.

    Time stamps in milliseconds are told apart, because reading one beyond the year 294247 raises, whatever the query.
    """
    columns = columns_of(connection, called, problem, relation, {"files": [file]})
    milliseconds = (
        "SELECT name FROM parquet_schema($file) "
        "WHERE converted_type = 'TIMESTAMP_MILLIS' OR contains(logical_type, 'MILLIS=MilliSeconds')"
    )
    in_milliseconds = asked(connection, called, problem, milliseconds, {"file": file})
    types = {name: kind.strip('"') for name, kind in columns.items()}
    return types | {name: "TIMESTAMP_MS" for (name,) in in_milliseconds if types.get(name, "").startswith("TIMESTAMP")}


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
    told = sorted(kind if kind.startswith("DECIMAL") else plain_type(kind) for kind in known)
    return f"{' in some files and '.join(told)} in others"
