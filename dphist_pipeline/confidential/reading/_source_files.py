"""Opening the files of a source: which they are, and what columns they have; no record is read.

CSV files, compressed or not, are read as declared, with nothing guessed: DuckDB finds lines, which are text, and SQL
splits each alone (see `_csv_lines`). A line of more than `LONGEST_LINE` bytes is no row, and lines around it are read
as if it were not there. DuckDB holds pieces of some 8 MB at a time, so that lines of any number and content fit the
memory of `ingest`.

DuckDB leaves out a whole line for one byte that is no UTF-8, and fails on some bytes of Latin-1. It ends a line at
every carriage return, and cuts it at a NUL. So files with such bytes, or in a declared encoding, are read from copies
in UTF-8 (see `csv_text`).
"""

from __future__ import annotations

import base64
import glob
import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, suppress
from io import BytesIO
from pathlib import Path, PurePath
from urllib.parse import unquote_to_bytes

import duckdb

from dphist_pipeline.base import csv_text
from dphist_pipeline.base.declared_numbers import NUMBERS, WHOLE_NUMBERS
from dphist_pipeline.base.reading import UTF_8, Encoding, Reading
from dphist_pipeline.base.sql_files import identifier, literal
from dphist_pipeline.confidential.plan import SourcePlan
from dphist_pipeline.confidential.reading._csv_lines import LINE, LineForm
from dphist_pipeline.confidential.reading._units import whole_text
from dphist_pipeline.confidential.reading.source import (
    OpenedSource,
    SourceRefused,
    columns_of,
    plain_type,
    query_rows,
    refuse_shadowed,
    with_possible_times,
    without_values,
)
from dphist_pipeline.spec.sources import ending_of

DAMAGED = "is not a readable Parquet file, or is cut off. Write it anew."
# Where there are more files than that for each thread, DuckDB reads one a thread and holds 2,000 lines of up to 1 MiB.
FILES_TOGETHER = 2


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
) -> OpenedSource:
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
    folders = folder_columns(files, above) if source.reading.hive else ()
    if endings == {".parquet"}:
        called = {str(path): without_values(path) for path in files}
        return open_parquet(connection, called, where, folders, numbers=source.number_columns)
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
    numbers: Collection[str] = (),
) -> OpenedSource:
    """Reads the columns of Parquet files, and nothing else.

    Args:
        files: what messages call each file, by its address, in order.
        problem: what to say of a file that cannot be opened.
        numbers: columns that become text where they are numbers in some files and text, or other numbers, in others.
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
    as_text = {name for name in numbers if _differ_as_numbers({types.get(name, "nothing") for types in by_file})}
    if as_text:
        relation, parameters = _with_text(relation, dict(zip(files, by_file, strict=True)), as_text)
        by_file = [types | dict.fromkeys(as_text, "VARCHAR") for types in by_file]
    unfit = "has files whose columns do not fit together. Give them the same types."
    columns_of(connection, where, unfit, relation, parameters)
    lacking = _lacking([*zip(files.values(), by_file, strict=True)])
    types = {name: _type_in_all({types.get(name, "nothing") for types in by_file}) for name in names}
    relation = with_possible_times(types, relation.removeprefix("SELECT * FROM "))
    return OpenedSource(types | dict.fromkeys(folders, "VARCHAR"), relation, parameters, lacking=lacking, replaced="?")


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
    special = dict(query_rows(connection, called, problem, told_apart, {"file": file}))
    described = "SELECT value FROM parquet_kv_metadata($file) WHERE key = 'ARROW:schema'"
    for (text,) in query_rows(connection, called, problem, described, {"file": file}):
        special |= {name: f"DURATION_{unit}" for name, unit in _durations(text).items()}
    types = {name: kind.strip('"') for name, kind in columns.items()}
    # DuckDB gives a second column of one name another name. The schema lists columns depth first, below one root.
    fields = "SELECT name, coalesce(num_children, 0) FROM parquet_schema($file)"
    if _repeats(query_rows(connection, called, problem, fields, {"file": file})):
        raise SourceRefused(called, "has two columns of one name, perhaps in upper and lower case; rename one")
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
    import pyarrow as pa  # loaded here: who only checks a spec seldom needs it

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


def _repeats(fields: list[tuple[str, int]]) -> bool:
    """Whether two columns have one name, in whatever case; `fields`: name and number of children, depth first."""
    names, open_children = [], [1]
    for name, children in fields:
        while open_children[-1] == 0:
            open_children.pop()
        open_children[-1] -= 1
        if len(open_children) == 2:
            names.append(name.lower())
        open_children.append(children)
    return len({*names}) < len(names)


def _differ_as_numbers(types: set[str]) -> bool:
    """Whether a column is a number or text in every file, and not of one type that reading would give it anyway."""
    known = types - {"NULL"}
    served = all(plain_type(kind) in (*NUMBERS, "VARCHAR") for kind in known)
    return served and len(known) > 1 and not known <= {*WHOLE_NUMBERS}


def _with_text(
    relation: str, types: Mapping[str, Mapping[str, str]], columns: Collection[str]
) -> tuple[str, dict[str, list[str]]]:
    """The rows of files, with columns as text: files with the same types of these are read together.

    One reader for all would cast their values to a common type first, and whole numbers to floats.
    """
    groups: dict[tuple[str, ...], list[str]] = {}
    for file, kinds in types.items():
        groups.setdefault(tuple(kinds[name] for name in sorted(columns)), []).append(file)
    parts = []
    for number, group in enumerate(groups):
        made = [
            f"{text} AS {identifier(name)}"
            for name, kind in zip(sorted(columns), group, strict=True)
            for quoted in [identifier(name)]
            for text in [whole_text(quoted, kind) if kind in ("FLOAT", "DOUBLE") else f"TRY_CAST({quoted} AS VARCHAR)"]
        ]
        read = relation.replace("$files", f"$files_{number}").replace(
            "SELECT *", f"SELECT * REPLACE ({', '.join(made)})"
        )
        parts.append(read)
    return (
        f"SELECT * FROM ({' UNION ALL BY NAME '.join(parts)})",
        {f"files_{number}": group for number, group in enumerate(groups.values())},
    )


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


def _lacking(by_file: Sequence[tuple[str, Collection[str]]]) -> dict[str, str]:
    """By column that some files have and others have not, the first that has it not.

    `by_file`: what messages call a file, which may be the same for several, and its columns.
    """
    columns = dict.fromkeys(name for _, names in by_file for name in names)
    return {
        column: next(called for called, names in by_file if column not in names)
        for column in columns
        if not all(column in names for _, names in by_file)
    }


def open_csv(
    files: tuple[Path, ...], source: SourcePlan, folders: tuple[str, ...], copies: Path | None
) -> OpenedSource:
    """Reads header lines, and checks that archives are whole.

    One reader for every distinct header line, so that files may order their columns differently. A column that some
    files lack is null there, and serves for nothing: see `Source.lacking`.

    Args:
        files: sorted, at least one, all with the same ending.
        folders: columns that the folders' names give; empty without `hive`.
        copies: private, for copies in UTF-8; None if columns are looked at and no row is read.

    Raises:
        SourceRefused: for a damaged archive, and for header lines that do not serve; none is shown.
    """
    where, encoding = without_values(files[0].parent), source.reading.csv_encoding
    if folders and copies is not None and any("=" in part for part in copies.parts):
        raise SourceRefused(where, "is read with `hive: true` by a store in a folder called `column=value`; move that")
    by_header: dict[tuple[str, ...], list[Path]] = {}
    cr_ends = {}
    for path in files:
        _check_whole(path)
        names, cr_ends[path] = _csv_header(path, source.reading)
        by_header.setdefault(names, []).append(path)
    headers = [(without_values(of[0]), names) for names, of in by_header.items()]
    header = _all_names(headers)
    refuse_shadowed(where, header, folders)
    read = {path: path for path in files}
    is_plain = encoding == UTF_8 and (copies is None or all(_is_plain(path, cr_ends[path]) for path in files))
    if copies is not None and not is_plain:
        read = {
            path: _copy_marked(path, encoding, cr_ends[path], copies / str(number)) for number, path in enumerate(files)
        }
    form = LineForm(source.reading.csv_delimiter, source.reading.csv_quote, marked=not is_plain)
    before, after = _lines_reading(read[files[0]], folders)
    parts: list[str] = []
    unreadable: list[str] = []
    parameters: dict[str, list[str]] = {}
    for columns, paths in by_header.items():
        given = {
            f"files_{len(parts)}_{start}": [str(read[path]) for path in paths[start : start + FILES_TOGETHER]]
            for start in range(0, len(paths), FILES_TOGETHER)
        }
        lines = " UNION ALL ".join(f"{before}${name}{after}" for name in given)
        parts.append(form.rows(lines, columns, folders))
        unreadable.append(form.unreadable(lines, len(columns)))
        parameters.update(given)
    types = dict.fromkeys((*header, *folders), "VARCHAR")
    doubts = (
        f"{called}: {doubt}"
        for called, names in headers
        if (doubt := csv_text.doubt_of_header(names, source.reading.csv_delimiter))
    )
    return OpenedSource(
        types,
        " UNION ALL BY NAME ".join(parts),
        parameters,
        is_csv=True,
        lacking=_lacking(headers),
        doubt=next(doubts, ""),
        replaced=csv_text.LOST,
        unreadable=" UNION ALL ".join(unreadable),
    )


def _all_names(headers: Sequence[tuple[str, tuple[str, ...]]]) -> list[str]:
    """The names of all header lines, each once; refuses two that differ in case alone, without repeating them.

    `headers`: what messages call a file, and its names.
    """
    by_lower: dict[str, str] = {}
    for called, names in headers:
        if any(by_lower.setdefault(name.lower(), name) != name for name in names):
            raise SourceRefused(
                called, "names a column in other letters than another file, in upper or lower case; write it alike"
            )
    return [*by_lower.values()]


def _lines_reading(path: Path, folders: tuple[str, ...]) -> tuple[str, str]:
    """SQL before and after the name of files, that gives their lines: nothing guessed, and no line that fails.

    Without a delimiter, DuckDB cuts a line at a NUL; what would stand behind it has a column, or it would be an error.
    """
    columns = "".join(f", {identifier(name)}" for name in folders)
    return (
        f"SELECT {LINE}{columns} FROM read_csv(",
        f""", columns = {{{LINE}: 'VARCHAR', "=more": 'VARCHAR'}}, auto_detect = false, header = true, """
        "delim = '', quote = '', escape = '', comment = '', "
        "ignore_errors = true, null_padding = true, strict_mode = false, parallel = true, "
        f"hive_partitioning = {str(bool(folders)).lower()}, hive_types_autocast = false, "
        f"max_line_size = {csv_text.LONGEST_LINE}, compression = {literal(csv_text.compression_of(path))}, "
        "encoding = 'utf-8')",
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


def _is_plain(path: Path, cr_ends: bool) -> bool:
    with closing(csv_text.opened_csv(path)) as file:
        return csv_text.is_plain(file, cr_ends)


def _copy_marked(path: Path, encoding: Encoding, cr_ends: bool, folder: Path) -> Path:
    """A copy in UTF-8 whose lines DuckDB finds, in folders `column=value` as those of the file."""
    copied = folder.joinpath(*(part for part in path.parts[:-1] if part.find("=") > 0), "rows.csv")
    copied.parent.mkdir(parents=True)
    with closing(csv_text.opened_csv(path)) as file, copied.open("wb") as copy:
        copy.writelines(
            text.encode() for text in csv_text.mark_line_ends(csv_text.decode_pieces(file, encoding), cr_ends)
        )
    return copied


def _csv_header(path: Path, reading: Reading) -> tuple[tuple[str, ...], bool]:
    """The column names in the first line of a CSV file; no message repeats them, or says which are alike.

    With whether that line, and so each of the file, ends at a carriage return alone.
    """
    start, doubt = b"", ""
    with suppress(OSError), closing(csv_text.opened_csv(path)) as file:
        start = file.read(csv_text.LONGEST_HEADER)
        line, end = csv_text.first_line("".join(csv_text.decode_pieces(BytesIO(start), reading.csv_encoding)))
        line = "" if len(start) == csv_text.LONGEST_HEADER and not end else line.removeprefix(csv_text.BOM)
        with suppress(ValueError):
            return tuple(csv_text.header_names(line, reading.csv_delimiter, reading.csv_quote)), end == "\r"
        doubt = csv_text.doubt_of_line(line, reading.csv_quote)
    likely = csv_text.likely_encoding(start.partition(b"\n")[0])
    mend = "" if likely == reading.csv_encoding else f"; its bytes look like {likely}: declare `csv_encoding: {likely}`"
    if likely is None:
        mend = f"; its bytes look like UTF-16, which is not read: {csv_text.WRITE_ANEW}"
    raise SourceRefused(
        without_values(path),
        f"cannot be read, or has no usable header line: {doubt}column names in {reading.csv_encoding}, each once, "
        f"apart by the declared `csv_delimiter`{mend}",
    )
