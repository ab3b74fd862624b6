"""Reads the names and types of a file's columns, from a Parquet schema or a CSV header line. Reads no values."""

from __future__ import annotations

import glob
import re
from contextlib import closing, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dphist_pipeline.base.csv_text import (
    LONGEST_HEADER,
    WRITE_ANEW,
    decode_pieces,
    header_names,
    likely_encoding,
    opened_csv,
    says_encoding,
)
from dphist_pipeline.base.reading import UTF_8, Encoding
from dphist_pipeline.errors import Refused
from dphist_pipeline.spec.mistakes import one_line
from dphist_pipeline.spec.sources import FORMATS, ending_of

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["number", "date", "text", "boolean", "useless"]

DELIMITERS = (",", ";", "\t", "|")
# Numbers, dates and times. A first line with one of them is a record, and its values must not be written anywhere.
_VALUE = re.compile(
    r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T].*)?|\d\d:\d\d.*", re.ASCII
)

_QUOTED = re.compile(r'"[^"]*"')


def columns_unknown(file: str, problem: str) -> Refused:
    """The columns of a file cannot be read."""
    return Refused(f"{one_line(file, 300)}: {problem}", code="columns_unknown")


@dataclass(frozen=True)
class FileColumn:
    """A column as its file declares it.

    Attributes:
        kind: the kind of axis or period that can use the column; `useless` for none.
        type: name of the Arrow type; empty for CSV, where every column is text.
    """

    name: str
    kind: Kind
    type: str = ""


@dataclass(frozen=True)
class FileLayout:
    """The columns of a file, and the delimiter of a CSV file.

    Attributes:
        delimiter: between fields of a CSV file; empty for Parquet.
        quote: around fields of a CSV file; empty where the header line is none with quotes.
        encoding: that the bytes of a CSV file's header line look like.
        says_encoding: whether they tell it; plain ASCII is written alike in most.
    """

    file: Path
    columns: tuple[FileColumn, ...]
    delimiter: str = ""
    quote: str = '"'
    encoding: Encoding = UTF_8
    says_encoding: bool = True


def read_layout(source: str) -> FileLayout:
    """The columns of a Parquet or CSV file, or of the first file of a glob.

    Raises:
        Refused: there is no such file, it is not a table, or it has no header line.
    """
    file = _first_file(source)
    return _parquet(file) if ending_of(file.name) == ".parquet" else _csv(file)


def _first_file(source: str) -> Path:
    path = Path(source)
    try:
        files = [path] if path.exists() else sorted(map(Path, glob.glob(source, recursive=True)))  # noqa: PTH207
        regular = bool(files) and files[0].is_file()
    except (OSError, ValueError):
        files, regular = [], False
    if not files:
        raise columns_unknown(source, "there is no such file")
    if not regular:
        raise columns_unknown(source, "is not a regular file; name Parquet or CSV files, as in data/*.parquet")
    if FORMATS.get(ending_of(files[0].name) or "") not in ("parquet", "csv"):
        raise columns_unknown(source, "must end in .parquet, .csv, .csv.gz or .csv.zst; for others leave out --from")
    if glob.has_magic(str(files[0])):
        raise columns_unknown(source, "has one of * ? [ in its name, which no release reads; rename the file")
    return files[0]


def _parquet(file: Path) -> FileLayout:
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
    return FileLayout(file, tuple(FileColumn(field.name, _kind(field.type), str(field.type)) for field in schema))


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


def _csv(file: Path) -> FileLayout:
    start = _first_bytes(file)
    encoding = likely_encoding(start)
    if encoding is None:
        raise columns_unknown(str(file), f"its bytes look like UTF-16, which is not read; {WRITE_ANEW}")
    text = "".join(decode_pieces(BytesIO(start), encoding))
    line, problem = text.partition("\n")[0].removeprefix("\ufeff").rstrip("\r"), ""
    # Signs inside quotes part no fields.
    bare = _QUOTED.sub("", line)
    delimiter = max(DELIMITERS, key=(bare if any(sign in bare for sign in DELIMITERS) else line).count)
    quote = '"'
    with suppress(ValueError):
        header_names(line, delimiter, "")
        quote = '"' if '"' not in line else ""  # a quote within a name, as in `height in 5"`
    try:
        names = header_names(line, delimiter, quote)
        # A column whose name is blanks alone can be named by no spec.
        problem = "" if all(name.strip() for name in names) else "its first line names a column by blanks alone"
    except ValueError as error:
        problem = str(error)
    if problem:
        raise columns_unknown(
            str(file),
            f"{problem}. The first line names every column once, as in card{delimiter}age{delimiter}kind: write such a "
            "line above the records",
        )
    if any(_VALUE.fullmatch(name.strip()) for name in names):
        raise columns_unknown(
            str(file),
            "its first line holds numbers or dates, so it seems to be a record, and none of it is shown; write a line "
            f"with the names of the columns above it, as in card{delimiter}age{delimiter}kind",
        )
    columns = tuple(FileColumn(name, "text") for name in names)
    return FileLayout(file, columns, delimiter, quote, encoding, says_encoding(start))


def _first_bytes(file: Path) -> bytes:
    """The bytes of the first line with its end; no byte after it is read of a file that is not compressed."""
    problem = "its first line is longer than a megabyte, and no header line"
    try:
        with closing(opened_csv(file)) as stream:
            start = stream.readline(LONGEST_HEADER)
        if len(start) < LONGEST_HEADER:
            return start
    except OSError as error:
        problem = f"cannot be read: {error.strerror or 'is no archive of its kind'}"
    raise columns_unknown(str(file), problem)
