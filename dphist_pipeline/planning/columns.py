"""Reads the names and types of a file's columns, from a Parquet schema or a CSV header line. Reads no values."""

from __future__ import annotations

import codecs
import csv
import glob
import re
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from dphist_pipeline.errors import Refused
from dphist_pipeline.spec.refusals import shortened
from dphist_pipeline.spec.sources import FORMATS, ending_of

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["number", "date", "text", "boolean", "useless"]

LONGEST_HEADER = 1 << 20
DELIMITERS = (",", ";", "\t", "|")
COMPRESSIONS = {".csv.gz": "gzip", ".csv.zst": "zstd"}
# Numbers, dates and times. A first line with one of them is a record, and its values must not be written anywhere.
_VALUE = re.compile(
    r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d\d:\d\d.*", re.ASCII
)

_QUOTED = re.compile(r'"[^"]*"')


def columns_unknown(file: str, problem: str) -> Refused:
    """The columns of a file cannot be read."""
    return Refused(f"{shortened(file, 300)}: {problem}", code="columns_unknown")


@dataclass(frozen=True)
class Column:
    """A column as its file declares it.

    Attributes:
        name: as in the file.
        kind: the kind of axis or period that can use the column; `useless` for none.
        type: name of the Arrow type; empty for CSV, where every column is text.
    """

    name: str
    kind: Kind
    type: str = ""


@dataclass(frozen=True)
class Layout:
    """The columns of a file, and the delimiter of a CSV file.

    Attributes:
        file: the file that was read.
        columns: in the order of the file.
        delimiter: between fields of a CSV file; empty for Parquet.
        quote: around fields of a CSV file; empty for Parquet, or if neither the header line has quotes nor a
            spreadsheet seems to have written the file.
    """

    file: Path
    columns: tuple[Column, ...]
    delimiter: str = ""
    quote: str = ""


def read_layout(named: str) -> Layout:
    """The columns of a file, or of the first file of a glob.

    Args:
        named: path or glob of Parquet or CSV files.

    Raises:
        Refused: there is no such file, it is not a table, or it has no header line.
    """
    file = _first_file(named)
    return _parquet(file) if ending_of(file.name) == ".parquet" else _csv(file)


def _first_file(named: str) -> Path:
    path = Path(named)
    try:
        found = [path] if path.exists() else sorted(map(Path, glob.glob(named, recursive=True)))  # noqa: PTH207
        regular = bool(found) and found[0].is_file()
    except (OSError, ValueError):
        found, regular = [], False
    if not found:
        raise columns_unknown(named, "there is no such file")
    if not regular:
        raise columns_unknown(named, "is not a regular file; name Parquet or CSV files, as in data/*.parquet")
    if FORMATS.get(ending_of(found[0].name) or "") not in ("parquet", "csv"):
        raise columns_unknown(named, "must end in .parquet, .csv, .csv.gz or .csv.zst; for others leave out --from")
    if glob.has_magic(str(found[0])):
        raise columns_unknown(named, "has one of * ? [ in its name, which no release reads; rename the file")
    return found[0]


def _parquet(file: Path) -> Layout:
    import pyarrow as pa
    from pyarrow import parquet

    schema = None
    try:
        schema = parquet.read_schema(file)
    except OSError as error:
        problem = error.strerror or "is cut off"
    except (pa.ArrowException, ValueError):
        problem = "is not a readable Parquet file"
    if schema is None:
        raise columns_unknown(str(file), f"cannot be read: {problem}")
    return Layout(file, tuple(Column(field.name, _kind(field.type), str(field.type)) for field in schema))


def _kind(kind: pa.DataType) -> Kind:
    from pyarrow import types

    if types.is_dictionary(kind):
        return _kind(kind.value_type)
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind) or (types.is_timestamp(kind) and kind.unit in ("us", "ns")):
        return "date"
    texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    return "text" if texts or types.is_null(kind) or str(kind) == "extension<arrow.uuid>" else "useless"


def _csv(file: Path) -> Layout:
    line, marked = _header_line(file)
    # Signs inside quotes part no fields.
    bare = _QUOTED.sub("", line)
    delimiter = max(DELIMITERS, key=(bare if any(sign in bare for sign in DELIMITERS) else line).count)
    # Spreadsheets begin a file with a mark of its encoding, or part fields by semicolons, and quote where they must.
    quote = '"' if '"' in line or marked or delimiter == ";" else ""
    quoting: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    names = next(csv.reader([line], delimiter=delimiter, **quoting), [])
    if not names or not all(name.strip() for name in names) or len({name.lower() for name in names}) < len(names):
        raise columns_unknown(str(file), "its first line must name every column once, in UTF-8")
    if any(_VALUE.fullmatch(name.strip()) for name in names):
        raise columns_unknown(str(file), "its first line holds numbers or dates, so it is a record; add a header line")
    return Layout(file, tuple(Column(name, "text") for name in names), delimiter, quote)


def _header_line(file: Path) -> tuple[str, bool]:
    """The first line, and whether a mark of the encoding stands before it.

    Uses no buffer, so that no byte after this line is read of a file that is not compressed.
    """
    problem = "its first line is no header line in UTF-8"
    try:
        with closing(_opened(file)) as stream:
            line = stream.readline(LONGEST_HEADER)
        text = line.decode("utf-8-sig").rstrip("\r\n")
        if text and "\0" not in text and len(line) < LONGEST_HEADER:
            return text, line.startswith(codecs.BOM_UTF8)
    except UnicodeDecodeError:
        pass
    except OSError as error:
        problem = f"cannot be read: {error.strerror or 'is no archive of its kind'}"
    raise columns_unknown(str(file), problem)


def _opened(file: Path) -> IO[bytes]:
    compression = COMPRESSIONS.get(ending_of(file.name) or "")
    if compression is None:
        stream: IO[bytes] = file.open("rb", buffering=0)
        return stream
    import io

    import pyarrow as pa

    unpacked: IO[bytes] = io.BufferedReader(pa.input_stream(str(file), compression=compression))
    return unpacked
