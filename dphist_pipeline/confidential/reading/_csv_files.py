"""CSV files, compressed or not: read as declared, with nothing guessed.

A line of more than `LONGEST_LINE` bytes is no row, and lines around it are read as if it were not there. DuckDB holds
some 2,000 lines at a time, so that lines of any number and content fit the memory of `ingest`.

DuckDB leaves out a whole line for one byte that is no UTF-8, and fails on some bytes of Latin-1. So files with such
bytes, or in a declared encoding, are read from copies in UTF-8 (see `csv_text`).
"""

from __future__ import annotations

from contextlib import closing, suppress
from io import BytesIO
from pathlib import Path

from dphist_pipeline import csv_text
from dphist_pipeline.confidential.plan import SourcePlan
from dphist_pipeline.confidential.reading.source import Source, SourceRefused, refuse_shadowed, without_values
from dphist_pipeline.sql_files import literal

LONGEST_LINE = 1 << 20


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
        by_header.setdefault(_header(path, source), []).append(path)
    if len({frozenset(header) for header in by_header}) > 1:
        raise SourceRefused(where, "has files whose header lines name different columns")
    header = next(iter(by_header))
    refuse_shadowed(where, header, folders)
    read = {path: path for path in files}
    if copies is not None and (source.csv_encoding != csv_text.UTF_8 or not all(map(_is_utf8, files))):
        read = {path: _copy(path, source.csv_encoding, copies / str(number)) for number, path in enumerate(files)}
    reading = _reading(read[files[0]], source, bool(folders))
    parts = []
    for number, columns in enumerate(by_header):
        declared = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in columns)
        parts.append(f"SELECT * FROM read_csv($files_{number}, columns = {{{declared}}}, {reading})")
    parameters = {f"files_{number}": [str(read[path]) for path in of] for number, of in enumerate(by_header.values())}
    types = dict.fromkeys((*header, *folders), "VARCHAR")
    return Source(types, " UNION ALL BY NAME ".join(parts), parameters, is_csv=True, replaced=csv_text.LOST)


def _reading(path: Path, source: SourcePlan, hive: bool) -> str:
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


def _copy(path: Path, encoding: csv_text.Encoding, folder: Path) -> Path:
    """A copy in UTF-8, in folders `column=value` as those of the file."""
    copied = folder.joinpath(*(part for part in path.parts[:-1] if part.find("=") > 0), "rows.csv")
    copied.parent.mkdir(parents=True)
    with closing(csv_text.opened_csv(path)) as file, copied.open("wb") as copy:
        copy.writelines(text.encode() for text in csv_text.decoded(file, encoding))
    return copied


def _header(path: Path, source: SourcePlan) -> tuple[str, ...]:
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
