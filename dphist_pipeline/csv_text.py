"""CSV files as text: in which encoding they are written, copies of them in UTF-8, and their header lines.

Decoding never fails. In the encodings of one byte a sign, each byte is a sign of its own, also those to which
windows-1252 gives none: two texts that differ in a file differ when they are read. In UTF-8, bytes that are no text
become `LOST`. No byte of a line changes another line; in UTF-16 one would, so it is not read.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Collection, Iterator
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO, Any, Literal, get_args

Encoding = Literal["utf-8", "windows-1252", "latin-1"]
UTF_8: Encoding = "utf-8"
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
LOST = "\ufdd0"  # of Unicode's signs that no text holds
PIECE = 1 << 22
LONGEST_HEADER = 1 << 20  # bytes of a first line
COMPRESSIONS = {".csv.gz": "gzip", ".csv.zst": "zstd"}
WRITE_ANEW = "write it anew as UTF-8: `iconv -f UTF-16 -t UTF-8 OLD > NEW`"

# windows-1252 leaves five bytes without a sign; they stand for themselves, as in browsers.
_SIGNS = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256))


def _lost(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return LOST, error.end


codecs.register_error("dphist.lost", _lost)


def compression_of(path: Path) -> str:
    """How a file is compressed, by its name, as DuckDB and Arrow call it; `none` if it is not."""
    return next(
        (compression for ending, compression in COMPRESSIONS.items() if path.name.casefold().endswith(ending)), "none"
    )


def opened_csv(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked. Of one that is not compressed, no byte is read that nobody asks for."""
    if compression_of(path) == "none":
        file: IO[bytes] = path.open("rb", buffering=0)
        return file
    import pyarrow as pa

    unpacked: IO[bytes] = BufferedReader(pa.input_stream(str(path), compression=compression_of(path)))
    return unpacked


def decoded(file: IO[bytes], encoding: Encoding) -> Iterator[str]:
    """The text of a file, from where it stands, piece by piece; a mark of the encoding stays as U+FEFF."""
    decoder = codecs.getincrementaldecoder(UTF_8)("dphist.lost")
    while piece := file.read(PIECE):
        match encoding:
            case "latin-1":
                yield piece.decode("latin-1")
            case "windows-1252":
                yield codecs.charmap_decode(piece, "strict", _SIGNS)[0]
            case _:
                yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def is_utf8(file: IO[bytes]) -> bool:
    """Whether all bytes of a file, from where it stands, are text in UTF-8."""
    decoder = codecs.getincrementaldecoder(UTF_8)()
    try:
        while piece := file.read(PIECE):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def likely_encoding(start: bytes) -> Encoding | None:
    """The encoding that the first bytes of a file, not cut within a sign, look like; None for UTF-16 and the like."""
    if 3 * start.count(b"\0") > len(start) or start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return None
    return UTF_8 if is_utf8(BytesIO(start)) else "windows-1252"


def says_encoding(start: bytes) -> bool:
    """Whether the first bytes of a file tell its encoding: plain ASCII without a mark is written alike in most."""
    return not start.isascii()


_SEPARATOR = re.compile(r"\"?sep=.?\"?\s*", re.I)
_SIGNS_BETWEEN = {";": ";", "\t": "\\t", "|": "|", ",": ","}


def doubt_of_header(names: Collection[str], delimiter: str) -> str:
    """Why a first line that names one column may be no header line, or cut otherwise; tells no word of it.

    Empty where it names several: then it looks like one.
    """
    if all(len(name) > 1 and name[0] == name[-1] == '"' for name in names):
        return "the header's names stand in quotes: `csv_quote: '\"'`"
    if len(names) != 1:
        return ""
    (name,) = names
    if _SEPARATOR.fullmatch(name):
        return f"the first line is `sep=`, for spreadsheets: remove that line{_declared(name)}"
    counts = {sign: name.count(sign) for sign in _SIGNS_BETWEEN if sign != delimiter}
    sign = max(counts, key=counts.__getitem__)
    if counts[sign]:
        written = _SIGNS_BETWEEN[sign]
        return f'the header has one column: is `{written}` the delimiter? `csv_delimiter: "{written}"`'
    return "the first line names one column: if it is a title, remove the lines above the header line"


def doubt_of_line(line: str) -> str:
    """What else a first line may be that names no columns: empty, for spreadsheets, a title; tells no word of it."""
    if not line.strip():
        return "its first line is empty. Write "
    if _SEPARATOR.fullmatch(line):
        return f"its first line is `sep=`, for spreadsheets. Remove that line{_declared(line)}. Then write "
    filled = [part for part in re.split(r"[,;\t|]", line) if part.strip('" ')]
    if len(filled) == 1 and len(filled[0]) < len(line):
        return "if its first line is a title, remove the lines above the header line. Write "
    return ""


def _declared(line: str) -> str:
    sign = re.sub(r"(?i)sep=", "", line.strip('" \r\n'))[:1]
    return f', and declare `csv_delimiter: "{_SIGNS_BETWEEN[sign]}"`' if sign in _SIGNS_BETWEEN else ""


def header_names(line: str, delimiter: str, quote: str) -> list[str]:
    """The names of columns in a header line, without its end and a mark of the encoding.

    Raises:
        ValueError: a name is missing, there twice, or no text; told by places, for a line may be a record by mistake.
    """
    if not line or "\0" in line or LOST in line:
        raise ValueError("its first line is empty, or no text in this encoding")
    if line.startswith(codecs.BOM_UTF8.decode("latin-1")):
        raise ValueError("it begins with the mark of utf-8")
    quoting: dict[str, Any] = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    try:
        names = next(csv.reader([line], delimiter=delimiter, **quoting), [])
    except csv.Error:
        names = []
    lowered = [name.lower() for name in names]
    for place, name in enumerate(lowered, 1):
        if not name:
            raise ValueError(f"its first line has no name for column {place} of {len(names)}")
        if (first := lowered.index(name) + 1) < place:
            raise ValueError(f"its first line gives columns {first} and {place} the same name")
    if not names:
        raise ValueError("its first line names no column")
    return names
