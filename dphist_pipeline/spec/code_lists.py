"""Code lists: the categories of an axis in a public file, with what they belong to and what people call them.

A list is a table, a row a code. Coarser levels are columns of it (`levels: [state, region]`, from the finest), or, with
`parent_column`, every code names the code above it: then the categories are the codes that nobody names, and `levels`
gives names to their parents, grandparents and so on. What the list says is part of the spec's digest.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from dphist_pipeline.spec import words
from dphist_pipeline.spec.refusals import MistakesError, named, shortened, shown

LARGEST_FILE = 1 << 26
MOST_CODES = 1_000_000
MOST_LEVELS = 10

Row = tuple[int, dict[str, str]]


@dataclass(frozen=True)
class CodeList:
    """What a code list says.

    Attributes:
        values: the categories, in order of the file.
        levels: for each level by name, from the finest, what each category belongs to.
        labels: what people call each category, or nothing.
    """

    values: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Asked:
    """What an axis says of its code list: where it is (and what messages call it), and which columns hold what."""

    file: Path
    shown: str
    values_column: str
    levels: tuple[str, ...] = ()
    label_column: str | None = None
    parent_column: str | None = None


def read_code_list(asked: Asked) -> CodeList:
    """Reads and checks a code list.

    Raises:
        MistakesError: naming lines of the file, for codes that repeat, have no place in the hierarchy, or are their
            own ancestors, and for everything that a category may not hold.
    """
    columns = [asked.values_column, asked.label_column, asked.parent_column]
    columns += [] if asked.parent_column else list(asked.levels)
    rows = _rows(asked, [column for column in columns if column])
    _check_codes(rows, asked.values_column)
    if asked.parent_column:
        leaves, levels = _from_parents(rows, asked)
    else:
        leaves, levels = rows, _from_columns(rows, asked.levels)
    values = tuple(row[asked.values_column] for _, row in leaves)
    labels = tuple(_label(row[asked.label_column]) for _, row in leaves) if asked.label_column else ()
    return CodeList(values, levels, labels)


def _rows(asked: Asked, columns: list[str]) -> list[Row]:
    """Line numbers and the wanted columns of every row, as text without blanks around it."""
    file, name = asked.file, shortened(asked.shown, 300)
    size = _size(file)
    if size is None:
        raise _refused(f"there is no file {name}; a code list is a CSV or Parquet file, relative to the project")
    if size > LARGEST_FILE:
        raise _refused(f"{name} is larger than {LARGEST_FILE >> 20} MB, too large for a code list")
    readers = {".csv": _csv_rows, ".parquet": _parquet_rows}
    if file.suffix.lower() not in readers:
        raise _refused(f"{name} must be a .csv or .parquet file")
    rows: list[Row] = []
    whole = False
    with suppress(OSError, UnicodeError, csv.Error):
        for row in readers[file.suffix.lower()](file, columns):
            rows.append(row)
            if len(rows) > MOST_CODES:
                raise _refused(f"{name} has more than {MOST_CODES:,} codes")
        whole = True
    if not (rows and whole):
        raise _refused(f"{name} holds no codes, or is not a readable table in UTF-8 with a header line")
    return rows


def _size(file: Path) -> int | None:
    """Bytes of a file; none where there is no file that can be read."""
    with suppress(OSError):
        if file.is_file():
            return file.stat().st_size
    return None


def _csv_rows(file: Path, columns: list[str]) -> Iterator[Row]:
    text = file.read_bytes().decode("utf-8-sig")
    if "\0" in text:
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = next(reader, [])
    # What stands in the first line of a file without a header is nobody's business.
    _check_header(header, columns, "Check its header line.")
    places = {column: header.index(column) for column in columns}
    for fields in reader:
        if fields:
            yield (
                reader.line_num,
                {name: fields[place].strip() if place < len(fields) else "" for name, place in places.items()},
            )


def _parquet_rows(file: Path, columns: list[str]) -> Iterator[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(file)
        names = table.schema_arrow.names
        _check_header(names, columns, f"It has {', '.join(map(shown, names[:20]))}.")
        if table.metadata.num_rows > MOST_CODES:
            raise _refused(f"it has more than {MOST_CODES:,} codes")
        held = table.read(columns=columns)
    except pa.ArrowException:
        return
    for number, row in enumerate(_as_python(held), 1):
        yield number, {name: "" if value is None else str(value).strip() for name, value in row.items()}


def _as_python(table: Any) -> list[dict[str, object]]:
    """The rows of an Arrow table; none where one holds what Python cannot, such as the year 294276."""
    with suppress(ValueError, OverflowError):
        rows: list[dict[str, object]] = table.to_pylist()
        return rows
    return []


def _check_header(header: list[str], columns: Iterable[str], hint: str) -> None:
    for column in columns:
        if header.count(column) != 1:
            problem = "is there twice" if column in header else "is not there"
            raise _refused(f"its column {shown(column)} {problem}. {hint}")


def _check_codes(rows: list[Row], column: str) -> None:
    """Every code a category, and each once."""
    try:
        words.named_categories([row[column] for _, row in rows], lambda place: f"line {rows[place][0]}")
    except MistakesError as mistakes:
        found = [(f"line {rows[int(at[0])][0]}: " if at else "") + what for at, what in mistakes.found]
    else:
        return
    raise MistakesError([((), what) for what in found])


def _from_columns(rows: list[Row], names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """What each code belongs to, level by level; one group never belongs to two coarser ones."""
    found: list[str] = []
    above: dict[tuple[str, str], tuple[str, int]] = {}
    for number, row in rows:
        for name in names:
            found += _group_mistake(number, name, row[name])
        for finer, coarser in pairwise(names):
            group, owner = row[finer], row[coarser]
            first, line = above.setdefault((finer, group), (owner, number))
            if first != owner:
                where = f"lies in {named(coarser)} {shown(first)} on line {line}"
                found.append(f"line {number}: {named(finer)} {shown(group)} {where}")
    if found:
        raise MistakesError([((), what) for what in found])
    return {name: tuple(row[name] for _, row in rows) for name in names}


def _group_mistake(number: int, name: str, group: str) -> list[str]:
    if not group:
        return [f"line {number}: has no {named(name)}; every code needs its place on every level"]
    try:
        words.category(group)
    except ValueError as error:
        return [f"line {number}: {named(name)} {error}"]
    return []


def _from_parents(rows: list[Row], asked: Asked) -> tuple[list[Row], dict[str, tuple[str, ...]]]:
    """The codes that nobody names as a parent, and their ancestors level by level."""
    column, parent = asked.values_column, asked.parent_column or ""
    lines = {row[column]: number for number, row in rows}
    parents = {row[column]: row[parent] for _, row in rows}
    found = [
        f"line {number}: its {named(parent)} {shown(row[parent])} is not a code of the list"
        for number, row in rows
        if row[parent] and row[parent] not in lines
    ]
    found += [f"line {lines[code]}: {shown(code)} is its own ancestor" for code in _on_cycles(parents)]
    if found:
        raise MistakesError([((), what) for what in found])
    above_others = set(parents.values())
    leaves = [(number, row) for number, row in rows if row[column] not in above_others]
    ancestors = [_ancestors(row[column], parents) for _, row in leaves]
    for (number, row), above in zip(leaves, ancestors, strict=True):
        if len(above) != len(asked.levels):
            found.append(
                f"line {number}: {shown(row[column])} has {len(above)} codes above it, and `levels` names "
                f"{len(asked.levels)}; every code needs its place on every level"
            )
    if found:
        raise MistakesError([((), what) for what in found])
    return leaves, {name: tuple(above[place] for above in ancestors) for place, name in enumerate(asked.levels)}


def _on_cycles(parents: Mapping[str, str]) -> list[str]:
    """Codes that are their own ancestors."""
    done: set[str] = set()
    cyclic = []
    for code in parents:
        path: dict[str, int] = {}
        at = code
        while at in parents and at not in done and at not in path:
            path[at] = len(path)
            at = parents[at]
        if at in path:
            cyclic += [other for other, place in path.items() if place >= path[at]]
        done.update(path)
    return cyclic


def _ancestors(code: str, parents: Mapping[str, str]) -> list[str]:
    above = []
    while parent := parents[code]:
        above.append(parent)
        code = parent
    return above


def _label(text: str) -> str:
    return words.category(text) if text else ""


def _refused(what: str) -> MistakesError:
    return MistakesError([((), what)])
