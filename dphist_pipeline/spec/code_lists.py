"""Code lists: the categories of an axis in a public file, with what they belong to and what people call them.

A list is a table, a row a code. Coarser levels are columns of it (`levels: [state, region]`, from the finest), or, with
`parent_column`, every code names the code above it: then the categories are the codes that nobody names, and `levels`
gives names to their parents, grandparents and so on. What the list says is part of the spec's digest.

Messages tell a mistake by its rule and line. They hold nothing of the list, which may be another file by mistake.
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
from dphist_pipeline.spec.code_list_files import LARGEST_FILE, CodeListFolders, Decided, content_of_list
from dphist_pipeline.spec.refusals import MistakesError, shortened, shown

__all__ = ["CodeList", "CodeListFolders", "Decided", "read_code_list"]

MOST_MISTAKES = 20
MOST_CODES = 1_000_000
MOST_LEVELS = 10

Row = tuple[int, dict[str, str]]
Mistake = tuple[int, str]


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


def read_code_list(asked: Asked, decided: Decided | None) -> CodeList:
    """Reads and checks a code list.

    Args:
        asked: which file and columns.
        decided: gives the folders that an operator declared public; none allows no list.

    Raises:
        MistakesError: naming lines of the file, for codes that repeat, have no place in the hierarchy, or are their
            own ancestors, and for everything that a category may not hold.
    """
    columns = [asked.values_column, asked.label_column, asked.parent_column]
    columns += [] if asked.parent_column else list(asked.levels)
    rows = _rows(asked, decided, [column for column in columns if column])
    _check_codes(rows, asked.values_column)
    if asked.parent_column:
        leaves, levels = _from_parents(rows, asked)
    else:
        leaves, levels = rows, _from_columns(rows, asked.levels)
    values = tuple(row[asked.values_column] for _, row in leaves)
    labels = _labels(leaves, asked.label_column) if asked.label_column else ()
    return CodeList(values, levels, labels)


def _rows(asked: Asked, decided: Decided | None, columns: list[str]) -> list[Row]:
    """Line numbers and the wanted columns of every row, as text without blanks around it."""
    name = shortened(asked.shown, 300)
    reader = {".csv": _csv_rows, ".parquet": _parquet_rows}.get(asked.file.suffix.lower())
    if reader is None:
        raise _refused(f"{name} must be a .csv or .parquet file")
    rows: list[Row] = []
    whole = False
    with suppress(OSError, UnicodeError, csv.Error):
        for row in reader(_content(asked.file, name, decided), columns):
            rows.append(row)
            if len(rows) > MOST_CODES:
                raise _refused(f"{name} has more than {MOST_CODES:,} codes")
        whole = True
    if not (rows and whole):
        raise _refused(f"{name} holds no codes, or is not a readable table in UTF-8 with a header line")
    return rows


def _content(file: Path, name: str, decided: Decided | None) -> bytes:
    try:
        content = content_of_list(file, decided)
    except ValueError as error:
        problem = str(error)
    else:
        if len(content) <= LARGEST_FILE:
            return content
        problem = f"is larger than {LARGEST_FILE >> 20} MB, too large for a code list"
    raise _refused(f"{name} {problem}")


def _csv_rows(content: bytes, columns: list[str]) -> Iterator[Row]:
    text = content.decode("utf-8-sig")
    if "\0" in text:
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = next(reader, [])
    _check_header(header, columns)
    places = {column: header.index(column) for column in columns}
    for fields in reader:
        if fields:
            yield (
                reader.line_num,
                {name: fields[place].strip() if place < len(fields) else "" for name, place in places.items()},
            )


def _parquet_rows(content: bytes, columns: list[str]) -> Iterator[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(pa.BufferReader(content))
        _check_header(table.schema_arrow.names, columns)
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


def _check_header(header: list[str], columns: Iterable[str]) -> None:
    for column in columns:
        if header.count(column) != 1:
            problem = "is there twice" if column in header else "is not there"
            raise _refused(f"its column {shown(column)} {problem}. Check the names of its columns.")


def _check_codes(rows: list[Row], column: str) -> None:
    """Every code a category, and each once."""
    found: list[Mistake] = []
    seen: dict[str, str] = {}
    for number, row in rows:
        code, key = row[column], words.comparable(row[column])
        problem = _problem(code)
        if not problem and key in seen:
            problem = f"repeats an earlier code{'' if seen[key] == code else ', case ignored'}; keep one of them"
        if problem:
            found.append((number, problem))
        seen.setdefault(key, code)
    _refuse(found)


def _from_columns(rows: list[Row], names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """What each code belongs to, level by level; one group never belongs to two coarser ones."""
    found: list[Mistake] = []
    above: dict[tuple[str, str], str] = {}
    for number, row in rows:
        found += [(number, problem) for name in names if (problem := _group_problem(name, row[name]))]
        for finer, coarser in pairwise(names):
            if above.setdefault((finer, row[finer]), row[coarser]) != row[coarser]:
                found.append((number, f"its {finer} lies in another {coarser} on an earlier line"))
    _refuse(found)
    return {name: tuple(row[name] for _, row in rows) for name in names}


def _group_problem(name: str, group: str) -> str:
    if not group:
        return f"has no {name}; every code needs its place on every level"
    problem = _problem(group)
    return f"its {name} {problem}" if problem else ""


def _labels(rows: list[Row], column: str) -> tuple[str, ...]:
    """What people call each code, or nothing."""
    labels = [(number, row[column]) for number, row in rows]
    _refuse([(number, f"its label {problem}") for number, label in labels if label and (problem := _problem(label))])
    return tuple(label for _, label in labels)


def _from_parents(rows: list[Row], asked: Asked) -> tuple[list[Row], dict[str, tuple[str, ...]]]:
    """The codes that nobody names as a parent, and their ancestors level by level."""
    column, parent = asked.values_column, asked.parent_column or ""
    lines = {row[column]: number for number, row in rows}
    parents = {row[column]: row[parent] for _, row in rows}
    found = [
        (number, f"its {parent} is not a code of the list")
        for number, row in rows
        if row[parent] and row[parent] not in lines
    ]
    _refuse(found + [(lines[code], "is its own ancestor") for code in _on_cycles(parents)])
    above_others = set(parents.values())
    leaves = [(number, row) for number, row in rows if row[column] not in above_others]
    ancestors = [_ancestors(row[column], parents) for _, row in leaves]
    _refuse(
        [
            (number, "has more or fewer codes above it than `levels` names; every code needs its place on every level")
            for (number, _), above in zip(leaves, ancestors, strict=True)
            if len(above) != len(asked.levels)
        ]
    )
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


def _problem(word: str) -> str:
    """What keeps a text from being a category, without the text."""
    try:
        return words.problem_of_category(words.text(word))
    except ValueError as error:
        return str(error)


def _refuse(found: list[Mistake]) -> None:
    """Refuses a list with mistakes; how many there are is not told beyond the first few."""
    told = [f"line {number}: {problem}" for number, problem in sorted(found)[:MOST_MISTAKES]]
    if len(found) > MOST_MISTAKES:
        told.append("and more")
    if told:
        raise MistakesError([((), problem) for problem in told])


def _refused(what: str) -> MistakesError:
    return MistakesError([((), what)])
