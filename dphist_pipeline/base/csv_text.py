"""CSV files as text: in which encoding they are written, copies of them in UTF-8, and their header lines.

Lines end at a line feed, with all carriage returns before it; where the header line ends in a carriage return alone,
at each of both. DuckDB ends a line at every carriage return, takes the last of CR CR LF for the beginning of the next
one, and cuts a text at a NUL. So a file that holds such signs, or ends of two kinds, is read from a copy with others in
their place (see `mark_line_ends`).

Decoding never fails. In the encodings of one byte a sign, each byte is a sign of its own, also those to which
windows-1252 gives none: two texts that differ in a file differ when they are read. In UTF-8, bytes that are no text
become `LOST`. No byte of a line changes another line; in UTF-16 one would, so it is not read.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterator
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import IO

from dphist_pipeline.base.reading import QUOTE_ALL, UTF_8, Encoding

LOST = "\ufdd0"  # of Unicode's signs that no text holds
BOM = "\ufeff"
MARK = "\ufdd1"  # as `LOST`; what follows it says which sign stood there
MARKED_MARK, MARKED_CR, MARKED_NUL = (f"{MARK}{letter}" for letter in "abc")
LONGEST_LINE = 1 << 20
PIECE = 1 << 22
LONGEST_HEADER = 1 << 20  # bytes of a first line
LONGEST_COLUMN = 1 << 17  # signs of a name
COMPRESSIONS = {".csv.gz": "gzip", ".csv.zst": "zstd"}
WRITE_ANEW = "write it anew as UTF-8: `iconv -f UTF-16 -t UTF-8 OLD > NEW`"

# windows-1252 leaves five bytes without a sign; they stand for themselves, as in browsers.
_SIGNS = "".join(bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(256))

_END = re.compile("\r*\n|\r")
_CRS = re.compile("\r+(\n?)")


def _replace_lost(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return LOST, error.end


codecs.register_error("dphist.lost", _replace_lost)


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


def decode_pieces(file: IO[bytes], encoding: Encoding) -> Iterator[str]:
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
    return _pieces_are(file, lambda text: True)


def is_plain(file: IO[bytes], cr_ends: bool) -> bool:
    """Whether DuckDB finds the lines of a file in UTF-8 as they are: all end in LF, or in CRLF, and nothing is marked.

    Args:
        cr_ends: whether the header line ends in a carriage return alone.
    """
    if cr_ends:
        return False
    carried, ends = "", set[bool]()

    def plain(text: str) -> bool:
        nonlocal carried
        text = carried + text
        carried, text = ("\r", text[:-1]) if text.endswith("\r") else ("", text)
        both, lines = text.count("\r\n"), text.count("\n")
        ends.update([True] * (both > 0) + [False] * (both < lines))
        return "\0" not in text and MARK not in text and text.count("\r") == both and len(ends) < 2

    return _pieces_are(file, plain) and not carried


def _pieces_are(file: IO[bytes], fine: Callable[[str], bool]) -> bool:
    decoder = codecs.getincrementaldecoder(UTF_8)()
    try:
        while piece := file.read(PIECE):
            if not fine(decoder.decode(piece)):
                return False
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def mark_line_ends(pieces: Iterator[str], cr_ends: bool) -> Iterator[str]:
    """A text whose lines DuckDB finds: signs that would end one, or cut a text, are marked; no two texts give the same.

    A carriage return at the end of the text belongs to the end of its line.
    """
    waiting = 0  # carriage returns at the end of the last piece; of more than the longest line, no row is read
    for piece in pieces:
        text = piece.replace(MARK, MARKED_MARK).replace("\0", MARKED_NUL)
        if cr_ends:
            yield text.replace("\r", "\n")
            continue
        rest = text.lstrip("\r")
        waiting = min(waiting + len(text) - len(rest), LONGEST_LINE)
        if rest:
            before = "" if rest[0] == "\n" else MARKED_CR * waiting
            body = rest.rstrip("\r")
            waiting = min(len(rest) - len(body), LONGEST_LINE)
            yield before + _CRS.sub(_mark_crs, body.replace("\r\n", "\n"))


def _mark_crs(found: re.Match[str]) -> str:
    return found[1] or MARKED_CR * min(len(found[0]), LONGEST_LINE)


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
    if len(names) != 1:
        return ""
    (name,) = names
    if _SEPARATOR.fullmatch(name):
        return f"the first line is `sep=`, for spreadsheets: remove that line{_declared_sign(name)}"
    counts = {sign: name.count(sign) for sign in _SIGNS_BETWEEN if sign != delimiter}
    sign = max(counts, key=counts.__getitem__)
    if counts[sign]:
        written = _SIGNS_BETWEEN[sign]
        return f'the header has one column: is `{written}` the delimiter? `csv_delimiter: "{written}"`'
    return "the first line names one column: if it is a title, remove the lines above the header line"


def doubt_of_line(line: str, quote: str) -> str:
    """What else a first line may be that names no columns: empty, for spreadsheets, a title; tells no word of it."""
    if not line.strip():
        return "its first line is empty. Write "
    if _SEPARATOR.fullmatch(line):
        return f"its first line is `sep=`, for spreadsheets. Remove that line{_declared_sign(line)}. Then write "
    if '"' in line and not quote:
        return "it has quotes: declare `csv_quote: rfc` if names stand in them. Else it takes "
    filled = [part for part in re.split(r"[,;\t|]", line) if part.strip('" ')]
    if len(filled) == 1 and len(filled[0]) < len(line):
        return "if its first line is a title, remove the lines above the header line. Write "
    return ""


def _declared_sign(line: str) -> str:
    sign = re.sub(r"(?i)sep=", "", line.strip('" \r\n'))[:1]
    return f', and declare `csv_delimiter: "{_SIGNS_BETWEEN[sign]}"`' if sign in _SIGNS_BETWEEN else ""


def first_line(text: str) -> tuple[str, str]:
    """The first line of a text, without its end, and that end: empty if there is none."""
    end = _END.search(text)
    return (text, "") if end is None else (text[: end.start()], end[0])


def sign_of(quote: str) -> str:
    """The quotation mark of a way of quoting, which without quotes no field may begin with."""
    return '"' if quote in ("", QUOTE_ALL) else quote


def _fields_of(line: str, delimiter: str, quote: str) -> list[str] | None:
    """The fields of a header line; None if it has not the form of RFC 4180, or, without quotes, has some."""
    sign = re.escape(sign_of(quote))
    field = f"{sign}(?:[^{sign}]|{sign}{sign})*{sign}|[^{sign}{re.escape(delimiter)}]*"
    if not quote:
        fields = line.split(delimiter)
        return None if any(field.startswith(sign_of("")) for field in fields) else fields
    if re.fullmatch(f"(?:{field})(?:{re.escape(delimiter)}(?:{field}))*", line) is None:
        return None
    found = re.findall(f"(?:^|{re.escape(delimiter)})({field})", line)
    return [
        text[1:-1].replace(2 * sign_of(quote), sign_of(quote)) if text.startswith(sign_of(quote)) else text
        for text in found
    ]


def header_names(line: str, delimiter: str, quote: str) -> list[str]:
    """The names of columns in a header line, without its end and a mark of the encoding.

    Raises:
        ValueError: a name is missing, there twice, or no text; told by places, for a line may be a record by mistake.
    """
    if not line or "\0" in line or LOST in line:
        raise ValueError("its first line is empty, or no text in this encoding")
    if line.startswith(BOM.encode().decode("latin-1")):
        raise ValueError("it begins with the mark of utf-8")
    names = _fields_of(line, delimiter, quote)
    if names is None and not quote:
        raise ValueError("its first line has quotes around names: declare `csv_quote: rfc`, or `all`")
    if names is None:
        raise ValueError("its first line has quotes that are not in pairs around whole names")
    if any(len(name) > LONGEST_COLUMN for name in names):
        raise ValueError(f"its first line has a name of more than {LONGEST_COLUMN:,} signs")
    lowered = [name.lower() for name in names]
    for place, name in enumerate(lowered, 1):
        if not name:
            raise ValueError(f"its first line has no name for column {place} of {len(names)}")
        if (first := lowered.index(name) + 1) < place:
            raise ValueError(f"its first line gives columns {first} and {place} the same name")
    return names
