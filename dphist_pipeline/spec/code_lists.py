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

from dphist_pipeline.spec import words
from dphist_pipeline.spec.refusals import Location, MistakesError, shortened, shown

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
    if not file.is_file():
        raise _refused(f"there is no file {name}; a code list is a CSV or Parquet file, relative to the project")
    if file.stat().st_size > LARGEST_FILE:
        raise _refused(f"{name} is larger than {LARGEST_FILE >> 20} MB, too large for a code list")
    readers = {".csv": _csv_rows, ".parquet": _parquet_rows}
    if file.suffix.lower() not in readers:
        raise _refused(f"{name} must be a .csv or .parquet file")
    rows: list[Row] = []
    with suppress(OSError, UnicodeError, csv.Error):
        for row in readers[file.suffix.lower()](file, columns):
            rows.append(row)
            if len(rows) > MOST_CODES:
                raise _refused(f"{name} has more than {MOST_CODES:,} codes")
    if not rows:
        raise _refused(f"{name} holds no codes, or is not a readable table in UTF-8 with a header line")
    return rows


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
    for number, row in enumerate(held.to_pylist(), 1):
        yield number, {name: "" if value is None else str(value).strip() for name, value in row.items()}


def _check_header(header: list[str], columns: Iterable[str], hint: str) -> None:
    for column in columns:
        if header.count(column) != 1:
            problem = "is there twice" if column in header else "is not there"
            raise _refused(f"its column {shown(column)} {problem}. {hint}")


def _check_codes(rows: list[Row], column: str) -> None:
    """Every code a category, and each once."""
    try:
        words.categories([row[column] for _, row in rows])
    except MistakesError as mistakes:
        found = [(at, what) for at, what in mistakes.found]
    else:
        return
    lines = [number for number, _ in rows]
    raise MistakesError([((), _at_line(lines, at, what)) for at, what in found])


def _at_line(lines: list[int], at: Location, what: str) -> str:
    """A mistake of one category, told by its line; an earlier one that it names likewise."""
    said = what
    if "repeats values[" in what:
        before, _, after = what.partition("values[")
        earlier, _, rest = after.partition("]")
        said = f"{before}line {lines[int(earlier)]}{rest}"
    return f"line {lines[int(at[0])]}: {said}" if at else said


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
                found.append(f"line {number}: {finer} {shown(group)} lies in {coarser} {shown(first)} on line {line}")
    if found:
        raise MistakesError([((), what) for what in found])
    return {name: tuple(row[name] for _, row in rows) for name in names}


def _group_mistake(number: int, name: str, group: str) -> list[str]:
    if not group:
        return [f"line {number}: has no {name}; every code needs its place on every level"]
    try:
        words.category(group)
    except ValueError as error:
        return [f"line {number}: {name} {error}"]
    return []


def _from_parents(rows: list[Row], asked: Asked) -> tuple[list[Row], dict[str, tuple[str, ...]]]:
    """The codes that nobody names as a parent, and their ancestors level by level."""
    column, parent = asked.values_column, str(asked.parent_column)
    lines = {row[column]: number for number, row in rows}
    parents = {row[column]: row[parent] for _, row in rows}
    found = [
        f"line {number}: its {parent} {shown(row[parent])} is not a code of the list"
        for number, row in rows
        if row[parent] and row[parent] not in lines
    ]
    found += [f"line {lines[code]}: {shown(code)} is its own ancestor" for code in _on_cycles(parents)]
    if found:
        raise MistakesError([((), what) for what in found])
    named = set(parents.values())
    leaves = [(number, row) for number, row in rows if row[column] not in named]
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
