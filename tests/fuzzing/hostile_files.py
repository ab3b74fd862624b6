"""CSV and Parquet files as nobody should write them, with tokens among their values, and the same without.

A file comes with its twin: the same as a file (its header line, or its columns, types and way of writing), with plain
values in place of all that records hold. Whether it can be read may not depend on which of the two it is.
"""

from __future__ import annotations

import gzip
import io
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from canary import HEADER as CANARY
from canary import NUMBER, ROW, UNDECLARED, UNIT, UNPARSABLE

Thing = TypeVar("Thing")


class Choices:
    """Reads choices from the front of an input; where it has ended, every choice is the first."""

    def __init__(self, content: bytes) -> None:
        self._left = content

    def number(self, below: int) -> int:
        """A whole number from 0, below 65,536."""
        taken = self.bytes(1 if below <= 256 else 2)
        return int.from_bytes(taken, "little") % below

    def one_of(self, things: Sequence[Thing]) -> Thing:
        """One of some things."""
        return things[self.number(len(things))]

    def bytes(self, many: int) -> bytes:
        """The next bytes, as many as are left."""
        taken, self._left = self._left[:many], self._left[many:]
        return taken

    def rest(self) -> bytes:
        """All that is left."""
        return self._left


Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Hostile:
    """Files to read.

    Attributes:
        files: content by name.
        twin: the same as files, with plain values; none where they may be damaged as files.
        rows: at most so many rows can be in them.
    """

    files: Files
    twin: Files | None
    rows: int


AGE = {"column": "age", "start": 0, "stop": 30, "width": 10, "above": True, "other": True}
WARD = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
WEEKS = {"column": "day", "calendar": "week", "start": "2026-01-05", "stop": "2026-02-02", "other": True}
PLAIN: dict[str, Any] = {
    **{"release": "admissions", "privacy_unit": "person", "max_rows_per_unit": 2, "neighbours": "add_remove"},
    **{"epsilon": 1, "account": "tests", "mechanism": "geometric", "axes": [AGE, WARD]},
}
SPECS: list[dict[str, Any]] = [
    PLAIN,
    {**PLAIN, "privacy_unit": "row", "max_rows_per_unit": 1},
    {**PLAIN, "privacy_unit": ["person", "ward"], "unit_normalise": ["trim", "lower", "nfc"]},
    {**PLAIN, "period": "week", "period_column": "day", "time_zone": "America/Sao_Paulo"},
    {**PLAIN, "axes": [WEEKS, {**AGE, "stop": 50_000, "width": 10}], "time_zone": "Asia/Kolkata"},
    {**PLAIN, "source_sql": "query.sql"},
    {
        **PLAIN,
        "derive": [
            {"column": "noted", "first_of": [{"column": "day", "format": "%d/%m/%Y"}, {"column": "day"}]},
            {"column": "years", "years_between": ["age", "noted"]},
            {"column": "hour", "part": "hour", "of": "day"},
            {"column": "letter", "first_letters": 1, "of": "ward"},
        ],
        "keep": [{"column": "hour", "from": 0, "to": 23}, {"column": "letter", "is": ["s", "m"]}],
        "axes": [{"column": "years", "edges": [-2000, 0, 100, 1000, 2030]}],
    },
]
CSV_SPECS = [
    *(dict(spec, csv_delimiter=delimiter) for delimiter in (",", ";") for spec in SPECS),
    *(dict(spec, csv_quote=quote) for quote in ('"', "'") for spec in SPECS[:3]),
    dict(PLAIN, csv_delimiter="\t", decimal_comma=True, csv_quote='"'),
    dict(PLAIN, period="month", period_column="day", period_format="%d/%m/%Y"),
    dict(PLAIN, axes=[{**WEEKS, "format": "%Y%m%d"}, WARD], csv_delimiter="|"),
]
PARQUET_SPECS = [*SPECS, dict(PLAIN, decimal_comma=True), dict(PLAIN, axes=[{**WARD, "column": "person", "name": "x"}])]
QUERY = """\
SELECT person, ward, TRY_CAST(age AS DOUBLE) + 1 AS age, lower(TRY_CAST(ward AS VARCHAR)) AS w
FROM source WHERE TRY_CAST(age AS DOUBLE) >= 0 OR TRY_CAST(day AS DATE) IS NULL
"""
PERIODS = {"week": "2026-01-05", "month": "2026-01-01", "none": "all"}

# CSV

ENCODINGS = ["raw", "utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1", "cp037", "utf-7", "shift_jis"]
PACKED: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("csv", bytes),
    ("csv", bytes),
    ("csv", bytes),
    ("csv.gz", lambda content: gzip.compress(content, 1, mtime=0)),
    ("csv.zst", lambda content: bytes(pa.compress(content, codec="zstd", asbytes=True))),
]
HEADER = b"person,age,ward,day\n"
ROWS = f"""\
{UNIT}1,{NUMBER},{UNDECLARED},2026-01-06
{UNIT}2,{UNPARSABLE},surgery,06/01/2026
{ROW}
"{UNIT}3","5","{ROW}
,5",medicine,20260106,{ROW},{ROW}
'{UNIT}4',1e400,'',9999-12-31 24:00
,,,
""".encode()
CSV_HEAD = 3
CSV_SEEDS = [bytes([0, 0, 0]) + HEADER.replace(b"age", CANARY.encode()) + ROWS]
CSV_SEEDS += [bytes([number, 0, 0]) + HEADER + ROWS for number in range(len(CSV_SPECS))]
CSV_SEEDS += [bytes([0, number, packing]) + HEADER + ROWS for number in range(1, 9) for packing in (0, 3, 4)]
CSV_TOKENS = [
    *(token.encode() for token in (UNIT, str(NUMBER), UNDECLARED, UNPARSABLE, ROW, "surgery", "5", "inf", "1e999")),
    *(b",", b";", b"\t", b"|", b'"', b"'", b'""', b"\\", b"\n", b"\r", b"\r\n", b"\0"),
    *(b"\n\n", b"\xff", b"\xef\xbb\xbf", b" ", b"nan"),
    *(b"person", b"age", b"ward", b"day", b"PERSON", b"2026-01-06", b"294247-01-10 04:00:54.775807", b"-infinity"),
    *(b"x" * 70_000, b"," * 3000, b"zyxwv" * 999, b"\xed\xa0\x80", b"\xc3", "é".encode(), "e\u0301".encode(), b"1,5"),
]  # fmt: skip


def csv_files(content: bytes) -> tuple[dict[str, Any], Hostile]:
    """The spec and the file that an input stands for: three choices, then the text."""
    number, coding, packing = content[:CSV_HEAD].ljust(CSV_HEAD, b"\0")
    spec = CSV_SPECS[number % len(CSV_SPECS)]
    body = _encoded(content[CSV_HEAD:].replace(b",", spec.get("csv_delimiter", ",").encode()), coding)
    ending, pack = PACKED[packing % len(PACKED)]
    header, _, _ = body.partition(b"\n")
    delimiter = spec.get("csv_delimiter", ",").encode()
    twin = header + b"\n" + delimiter.join(PLAIN_TEXT.values()) + b"\n"
    rows = body.count(b"\n") + body.count(b"\r") + 1
    return spec, Hostile({f"a.{ending}": pack(body)}, {f"a.{ending}": pack(twin)}, rows)


def _encoded(body: bytes, coding: int) -> bytes:
    name = ENCODINGS[coding % len(ENCODINGS)]
    return body if name == "raw" else body.decode("utf-8", "replace").encode(name, "replace")


# Parquet

INT96_DAY, INT96_NANOSECONDS = 2_451_944, 14_706_789_000_000  # 2001-02-03 04:05:06.789
INT96 = struct.pack("<qi", INT96_NANOSECONDS, INT96_DAY)
INT96_HOSTILE = [
    struct.pack("<qi", *pair)
    for pair in [(-1, 0), (2**63 - 1, 2**31 - 1), (-(2**63), -(2**31)), (0, 2**31 - 1), (2**63 - 1, INT96_DAY)]
]
NUMBERS = [0, 5, -1, 1, 2**7 - 1, 2**15, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1, 738_203_125, 0x7FF8 << 48]
TEXTS = [
    *(b"", b"surgery", b"5", b"?", b"a\0b", b"\xff\xfe", b"\xed\xa0\x80zyxwv", b"2026-01-06", b"infinity"),
    *(b"1e999", b"1,5"),
    *(text.encode() for text in (UNIT, str(NUMBER), UNDECLARED, UNPARSABLE, ROW)),
    b"zyxwv" * 30_000,
]  # fmt: skip

PLAIN_TEXT = {"person": b"a", "age": b"5", "ward": b"surgery", "day": b"2026-01-06"}

_WIDTHS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_FIXED: list[pa.DataType] = [
    *(pa.float64(), pa.int64(), pa.int32(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")),
    pa.timestamp("ns"),
    *(pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32()),
    *(pa.timestamp("ms"), pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("ns", "Asia/Kolkata")),
    *(pa.time32("ms"), pa.time64("us"), pa.duration("us"), pa.date64()),
]  # fmt: skip
_WIDE: list[pa.DataType] = [
    *(pa.decimal128(4, 2), pa.decimal128(18, 0), pa.decimal128(38, 10), pa.binary(16)),
    *(pa.decimal256(76, 0), pa.decimal256(40, 39)),
]
_TEXT: list[pa.DataType] = [pa.string(), pa.string(), pa.large_string(), pa.binary()]
_FITTING: dict[str, list[pa.DataType]] = {
    "person": [pa.string(), pa.int64(), pa.decimal128(18, 0), pa.uint64(), pa.float64(), pa.binary(16)],
    "age": [pa.float64(), pa.string(), pa.int32(), pa.decimal128(38, 10), pa.float32(), pa.uint64(), pa.float16()],
    "ward": [pa.string(), pa.large_string(), pa.int64(), pa.date32(), pa.float64(), pa.bool_()],
    "day": [
        pa.timestamp("us"),
        pa.timestamp("ms"),
        pa.date32(),
        pa.timestamp("us", "UTC"),
        pa.timestamp("ns"),
        pa.string(),
    ],
}
_NESTED: list[tuple[pa.DataType, Any]] = [
    (pa.list_(pa.int64()), [5]),
    (pa.list_(pa.decimal128(4, 2)), [5]),
    (pa.struct([("zyxwv", pa.string())]), {"zyxwv": ROW}),
    (pa.map_(pa.string(), pa.int64()), [(ROW, 5)]),
    (pa.list_(pa.list_(pa.string())), [[ROW]]),
    (pa.null(), None),
    (pa.bool_(), True),
]


def _column(choices: Choices, rows: int, name: str) -> tuple[pa.Array, pa.Array]:
    """A column, hostile and plain: mostly of a type that can serve."""
    nulls = [choices.number(4) == 3 for _ in range(rows)]
    fate = choices.number(24)
    if fate == 23:
        kind, value = choices.one_of(_NESTED)
        return pa.array([None if null else value for null in nulls], kind), pa.nulls(rows, kind)
    kind = choices.one_of(_FITTING[name] if fate < 20 else [*_FIXED, *_WIDE, *_TEXT])
    hostile, plain = _filled(choices, kind, nulls, name)
    # Text in a dictionary is an ENUM to some engines.
    in_dictionary = fate == 19 and pa.types.is_string(kind)
    return (hostile.dictionary_encode(), plain.dictionary_encode()) if in_dictionary else (hostile, plain)


def _filled(choices: Choices, kind: pa.DataType, nulls: list[bool], name: str) -> tuple[pa.Array, pa.Array]:
    if pa.types.is_boolean(kind):
        return pa.array([choices.number(2) == 1 for _ in nulls]), pa.array([False] * len(nulls))
    if kind in _TEXT:
        return _text([None if null else choices.one_of(TEXTS) for null in nulls], kind, PLAIN_TEXT[name])
    if kind in _WIDE:
        return _wide(kind, [choices.bytes(32) for _ in nulls], nulls)
    return _fixed(kind, [choices.one_of(NUMBERS) for _ in nulls], nulls)


def _fixed(kind: pa.DataType, numbers: list[int], nulls: list[bool]) -> tuple[pa.Array, pa.Array]:
    """Numbers by their bits, whatever the type makes of them."""
    width = kind.bit_width
    signed = [(number + (1 << width - 1)) % (1 << width) - (1 << width - 1) for number in numbers]
    found = [
        pa.array(values, _WIDTHS[width], mask=np.array(nulls, dtype=bool)) for values in (signed, [1] * len(nulls))
    ]
    return found[0].view(kind), found[1].view(kind)


def _text(texts: list[bytes | None], kind: pa.DataType, good: bytes) -> tuple[pa.Array, pa.Array]:
    """Text that may not be UTF-8, which Arrow is not told."""
    plain = [None if text is None else good for text in texts]
    storage = pa.large_binary() if kind == pa.large_string() else pa.binary()
    hostile, tame = (pa.array(values, storage).view(kind) for values in (texts, plain))
    return hostile, tame


def _wide(kind: pa.DataType, values: list[bytes], nulls: list[bool]) -> tuple[pa.Array, pa.Array]:
    width = kind.bit_width // 8

    def array(parts: list[bytes]) -> pa.Array:
        valid = pa.array([not null for null in nulls], pa.bool_()).buffers()[1]
        return pa.Array.from_buffers(kind, len(parts), [valid, pa.py_buffer(b"".join(parts))])

    return array([part.ljust(width, b"\xff")[:width] for part in values]), array([bytes(width)] * len(values))


def parquet_files(content: bytes) -> tuple[dict[str, Any], Hostile]:
    """The spec and the files that an input stands for.

    Raises:
        pyarrow.ArrowException: for what Arrow does not write.
    """
    choices = Choices(content)
    spec = choices.one_of(PARQUET_SPECS)
    rows, many, damaged = choices.number(6), 1 + (choices.number(6) == 5), choices.number(5) == 4
    options, in_int96 = _options(choices)
    files, twin = {}, {}
    for number in range(many):
        hostile, plain = _table(choices, rows)
        files[f"{number}.parquet"] = _written(hostile, options)
        twin[f"{number}.parquet"] = _written(plain, options)
        if in_int96:
            other = choices.one_of(INT96_HOSTILE)
            files[f"{number}.parquet"] = files[f"{number}.parquet"].replace(INT96, other)
    if damaged:
        files = {name: _damaged(choices, whole) for name, whole in files.items()}
    return spec, Hostile(files, None if damaged else twin, rows * many)


def _options(choices: Choices) -> tuple[dict[str, Any], bool]:
    in_int96 = choices.number(8) == 7
    return {
        "compression": "none" if in_int96 else choices.one_of(["none", "snappy", "zstd"]),
        "use_dictionary": not in_int96 and choices.number(2) == 0,
        "write_statistics": choices.number(3) < 2,
        "store_schema": choices.number(3) < 2,
        "data_page_version": choices.one_of(["1.0", "2.0"]),
        "version": choices.one_of(["2.6", "2.4", "1.0"]),
        "row_group_size": choices.one_of([100, 2]),
        "use_deprecated_int96_timestamps": in_int96,
    }, in_int96


def _table(choices: Choices, rows: int) -> tuple[pa.Table, pa.Table]:
    hostile, plain = {}, {}
    for name in ("person", "age", "ward", "day"):
        fate = choices.number(16)
        if fate == 15:
            continue
        called = name.upper() if fate == 14 else name
        hostile[called], plain[called] = _column(choices, rows, name)
        if pa.types.is_timestamp(plain[called].type) and plain[called].type.unit in ("us", "ns"):
            moment = pa.array([981_173_106_789] * rows, pa.timestamp("ms")).cast(plain[called].type)
            plain[called] = moment if choices.number(3) == 2 else plain[called]
            hostile[called] = moment if choices.number(3) == 2 else hostile[called]
    return pa.table(hostile), pa.table(plain)


def _written(table: pa.Table, options: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def _damaged(choices: Choices, whole: bytes) -> bytes:
    """Some bytes changed, near the end more often than elsewhere, or the file cut off."""
    content = bytearray(whole)
    for _ in range(1 + choices.number(5)):
        place = int.from_bytes(choices.bytes(3), "little")
        spot = (len(content) - 1 - place % min(len(content), 700)) if choices.number(2) else place % len(content)
        content[spot] = choices.number(256)
    return bytes(content[: -1 - choices.number(256)]) if choices.number(8) == 7 else bytes(content)


PARQUET_SEEDS = [
    bytes([number % len(PARQUET_SPECS), 5, 0, 0]) + random.Random(number).randbytes(400) for number in range(48)
]
