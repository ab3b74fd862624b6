"""CSV files, compressed or not: read as declared, with nothing guessed.

A line of more than `LONGEST_LINE` bytes is no row, and lines around it are read as if it were not there. DuckDB holds
some 2,000 lines at a time, so that lines of any number and content fit the memory of `ingest`.
"""

from __future__ import annotations

import csv
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any

from dphist_pipeline.confidential.plan import SourcePlan
from dphist_pipeline.confidential.reading.source import Source, SourceRefused, refuse_shadowed, without_values
from dphist_pipeline.spec.sources import ending_of
from dphist_pipeline.sql_files import literal

LONGEST_HEADER = 1 << 20
LONGEST_LINE = 1 << 20
PIECE = 1 << 22
COMPRESSIONS = {".csv": "none", ".csv.gz": "gzip", ".csv.zst": "zstd"}


def open_csv(files: tuple[Path, ...], source: SourcePlan, folders: tuple[str, ...]) -> Source:
    """Reads header lines, and checks that archives are whole.

    One reader for every distinct header line, so that files may order their columns differently.

    Args:
        files: sorted, at least one, all with the same ending.
        folders: columns that the folders' names give; empty without `hive`.

    Raises:
        SourceRefused: for a damaged archive, and for header lines that do not serve; none is shown.
    """
    delimiter, quote = source.csv_delimiter, source.csv_quote
    by_header: dict[tuple[str, ...], list[str]] = {}
    for path in files:
        _check_whole(path)
        by_header.setdefault(_header(path, delimiter, quote), []).append(str(path))
    where = without_values(files[0].parent)
    if len({frozenset(header) for header in by_header}) > 1:
        raise SourceRefused(where, "has files whose header lines name different columns")
    header = next(iter(by_header))
    refuse_shadowed(where, header, folders)
    reading = _reading(files, delimiter, quote, bool(folders))
    parts = []
    for number, columns in enumerate(by_header):
        declared = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in columns)
        parts.append(f"SELECT * FROM read_csv($files_{number}, columns = {{{declared}}}, {reading})")
    parameters = {f"files_{number}": paths for number, paths in enumerate(by_header.values())}
    types = dict.fromkeys((*header, *folders), "VARCHAR")
    return Source(types, " UNION ALL BY NAME ".join(parts), parameters, is_csv=True)


def _reading(files: tuple[Path, ...], delimiter: str, quote: str, hive: bool) -> str:
    """How every file is read: nothing guessed, and no line that fails."""
    # With padding, DuckDB's parallel reader fails on a line break inside quotes.
    parallel = "false" if quote else "true"
    return (
        "auto_detect = false, header = true, "
        f"delim = {literal(delimiter)}, quote = {literal(quote)}, escape = {literal(quote)}, comment = '', "
        "ignore_errors = true, null_padding = true, strict_mode = false, "
        f"parallel = {parallel}, hive_partitioning = {str(hive).lower()}, hive_types_autocast = false, "
        f"max_line_size = {LONGEST_LINE}, compression = {literal(_compression(files[0]))}, encoding = 'utf-8'"
    )


def _check_whole(path: Path) -> None:
    """Refuses an archive that is damaged or cut off: DuckDB would read up to the damage, and say nothing."""
    whole = _compression(path) == "none"
    if not whole:
        with suppress(OSError), closing(_opened(path)) as file:
            while file.read(PIECE):
                pass
            whole = True
    if not whole:
        raise SourceRefused(without_values(path), "is damaged, cut off, or no archive of its kind. Write it anew.")


def _opened(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked."""
    if _compression(path) == "none":
        return path.open("rb")
    import pyarrow as pa

    opened: IO[bytes] = pa.input_stream(str(path), compression=_compression(path))
    return opened


def _compression(path: Path) -> str:
    return COMPRESSIONS[ending_of(path.name) or ".csv"]


def _header(path: Path, delimiter: str, quote: str) -> tuple[str, ...]:
    """The column names in the first line of a CSV file; no message repeats them."""
    names: list[str] = []
    with suppress(OSError, UnicodeDecodeError, csv.Error):
        names = _first_line(path, delimiter, quote)
    if not names or not all(names) or len({name.lower() for name in names}) < len(names):
        raise SourceRefused(
            without_values(path),
            "cannot be read, or has no usable header line: column names in UTF-8, each once, apart by the declared "
            "`csv_delimiter`",
        )
    return tuple(names)


def _first_line(path: Path, delimiter: str, quote: str) -> list[str]:
    """The fields of a CSV file's first line; none where it is too long or holds a NUL."""
    with closing(_opened(path)) as file:
        start = file.read(LONGEST_HEADER)
    line, _, _ = start.partition(b"\n")
    if len(line) == LONGEST_HEADER or b"\0" in line:
        return []
    quoting: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    return next(csv.reader([line.decode("utf-8-sig").rstrip("\r\n")], delimiter=delimiter, **quoting), [])
