"""The canary: what may never leave the confidential side, and a search of every place where it could turn up.

Planted are unique tokens, one unique number, and exact counts of five digits and more. The noise is frozen to large
known numbers, so no released value equals an exact count by chance, and whatever the search finds is a leak.
"""

from __future__ import annotations

import json
import re
import sqlite3
import struct
import traceback
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow.parquet as pq
from office import SPEC, Office

from dphist_pipeline.releasing.store import FOLDER

UNDECLARED, UNIT, UNPARSABLE, HEADER, ROW = (
    "zyxwvCategoryzyxwv",
    "zyxwvUnitzyxwv",
    "zyxwv12,5zyxwv",
    "zyxwvHeaderzyxwv",
    "zyxwvRowzyxwv",
)
NUMBER = 73.8203125
# Rows in the cells (0, surgery), (0, medicine), (other, other), and rows that go to no cell.
SURGERY, MEDICINE, OTHER, DROPPED = 48_611, 25_847, 13_291, 19_973
TOTAL = SURGERY + MEDICINE + OTHER + DROPPED
COUNTS = (SURGERY, MEDICINE, OTHER, DROPPED, TOTAL, TOTAL - DROPPED, SURGERY + MEDICINE)
TOKENS = ("zyxwv", str(NUMBER))
FROZEN_NOISE = 10**6 + 3


def fails(error: Exception) -> Callable[..., Any]:
    """A function that raises an error, to stand where another one is called."""

    def instead(*_: Any, **__: Any) -> Any:
        raise error

    return instead


def frozen_noise(size: int) -> np.ndarray:
    """Multiples of `FROZEN_NOISE` by different steps: DuckDB packs the steps from row to row, less the smallest one."""
    return np.arange(1, size + 1) ** 2 * FROZEN_NOISE


CHANGES: dict[str, Any] = {
    "axes": [{**SPEC["axes"][0], "column": "age_text", "name": "age"}, SPEC["axes"][1]],
    "max_rows_per_unit": 1,
}


def records() -> dict[str, np.ndarray]:
    """Rows, a unit each, that give exactly these counts."""
    sizes = (SURGERY, MEDICINE, OTHER, DROPPED)
    units = np.array([f"{UNIT}{number}" for number in range(TOTAL)], dtype=object)
    units[TOTAL - DROPPED :] = None
    return {
        "patient": units,
        "age_text": np.repeat(np.array(["3", str(NUMBER), UNPARSABLE, "7"], dtype=object), sizes),
        "ward": np.repeat(np.array(["surgery", "medicine", UNDECLARED, "surgery"], dtype=object), sizes),
    }


def csv(header: str = "patient,age_text,ward") -> str:
    """A CSV file with tokens in its rows, and with stray quotes and short lines."""
    rows = [f"{UNIT}{number},{ROW},surgery" for number in range(40)]
    return "\n".join([header, *rows, f'"{ROW},{ROW}', ROW, f"{ROW},1,{UNDECLARED},{ROW}", ""])


def leaks(office: Office, **said: str) -> list[str]:
    """Everything that leaked: into files other than the source and the journal, and into what was said.

    Args:
        office: its folder is searched, temporary files and home folder included.
        said: texts by where they were said.
    """
    found = [f"{where}: {leak}" for where, text in said.items() for leak in _in_text(text)]
    for path in sorted(office.folder.rglob("*")):
        place = path.relative_to(office.folder)
        if place.parts[0] == "data" or place.parts[:3] == ("store", "confidential", "journal") or not path.is_file():
            continue
        if place.parts[:2] == ("store", "confidential") and place.name != FOLDER:
            found.append(f"{place} is left in the confidential store")
        found += [f"{place}: {leak}" for text in [str(place), *_texts(path)] for leak in _in_text(text)]
        found += [f"{place}: {leak}" for leak in _in_bytes(path)]
    return found


def chain(error: BaseException | None) -> str:
    """All that an orchestrator could write down of an exception: it, its cause, its context, their notes."""
    texts, seen = [], set[int]()
    waiting = [error]
    while waiting:
        here = waiting.pop()
        if here is None or id(here) in seen:
            continue
        seen.add(id(here))
        texts += [str(here), repr(here), repr(vars(here)), *traceback.format_exception(here)]
        waiting += [here.__cause__, here.__context__]
    return "\n".join(texts)


def _in_text(text: str) -> Iterator[str]:
    yield from (f"the token {token}" for token in TOKENS if token in text)
    bare = re.sub(r"(?<=\d)[,_ ](?=\d{3}(?!\d))", "", text)
    numbers = {int(digits) for digits in re.findall(r"(?<![0-9A-Za-z])(?<!\d\.)\d{5,7}(?![0-9A-Za-z])", bare)}
    yield from (f"the exact count {count}" for count in COUNTS if count in numbers)


def _in_bytes(path: Path) -> Iterator[str]:
    """Tokens, and exact counts as eight bytes: by chance they do not come up.

    Files of DuckDB are an exception in two ways, because its metadata is cut into short pieces, each of which begins
    with a pointer of many zeros. The larger byte first is not looked for: any two bytes may follow a pointer, and
    DuckDB writes numbers the other way round. And bytes that lie on both sides of the begin of a piece are no number.
    """
    content = path.read_bytes()
    is_duckdb = path.suffix == ".duckdb"
    kinds = ("<q", "<d") if is_duckdb else ("<q", "<d", ">q", ">d")
    yield from (f"the token {token}" for token in TOKENS if token.encode() in content)
    for count in COUNTS:
        found = [place.start() for kind in kinds for place in re.finditer(re.escape(struct.pack(kind, count)), content)]
        if any(not (is_duckdb and _is_cut(content, place)) for place in found):
            yield f"the exact count {count} as bytes"


def _is_cut(content: bytes, place: int) -> bool:
    """Whether eight bytes of a DuckDB file lie in two pieces of its metadata, of which a block has 64."""
    (block,) = struct.unpack("<Q", content[4136:4144])
    piece = (block - 8) // 64 // 8 * 8
    within = (place - 12_288) % block - 8
    return within % piece > piece - 8


def _texts(path: Path) -> Iterator[str]:
    """The content of a file as text: every value and the footer of a Parquet file, every row of a database."""
    if path.suffix == ".parquet":
        file = pq.ParquetFile(path)
        yield f"{file.metadata} {file.metadata.metadata} {file.schema} {file.schema_arrow}"
        yield from (str(file.metadata.row_group(n).to_dict()) for n in range(file.metadata.num_row_groups))
        for column in file.read().to_pydict().values():
            yield "\n".join(f"{value:.0f}" if isinstance(value, float) else str(value) for value in column)
    elif path.suffix in (".sqlite", ".db"):
        with closing(sqlite3.connect(path)) as connection:
            yield from _rows(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")
    elif path.suffix == ".duckdb":
        with duckdb.connect(path, read_only=True) as connection:
            yield from _rows(connection, "SELECT schema_name, table_name FROM duckdb_tables()")
    elif path.suffix == ".json":
        yield str(json.loads(path.read_bytes()))
    else:
        yield path.read_bytes().decode("utf-8", "replace")


def _rows(connection: Any, tables: str) -> Iterator[str]:
    """Every value of every table, a line each; what Dagster packed is unpacked, and its pictures are looked at."""
    for names in connection.execute(tables).fetchall():
        table = ".".join(f'"{name}"' for name in names)
        for row in connection.execute(f"SELECT * FROM {table}").fetchall():
            text = "\n".join(f"{value:.0f}" if isinstance(value, float) else _unpacked(value) for value in row)
            yield "\n".join([text, *(str(b64decode(found)) for found in re.findall(r"base64,([\w+/=]+)", text))])


def _unpacked(value: object) -> str:
    if not isinstance(value, bytes):
        return str(value)
    with suppress(zlib.error):
        value = zlib.decompress(value)
    return value.decode("utf-8", "replace")
