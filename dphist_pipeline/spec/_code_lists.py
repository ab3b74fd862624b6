"""Code lists: the categories of an axis in a public file, with their groups and labels.

A list is a table, a row a code. Coarser levels are columns of it (`levels: [state, region]`, from the finest), or, with
`parent_column`, every code names the code above it: then the categories are the codes that nobody names, and `levels`
gives names to their parents, grandparents and so on. What the list says is part of the spec's digest.

Messages tell a mistake by its rule and line. They hold nothing of the list, which may be another file by mistake.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from dphist_pipeline.spec import fields
from dphist_pipeline.spec.fields import PublishedName, Text, tuple_of
from dphist_pipeline.spec.mistakes import Location, MistakesError, echo, one_line
from dphist_pipeline.spec.sources import LARGEST_FILE, Decided, content_of_list

MOST_MISTAKES = 20
MOST_CODES = 1_000_000
MOST_LEVELS = 10

Row = tuple[int, dict[str, str]]
Mistake = tuple[int, str]
Columns = Sequence[str] | Callable[[Sequence[str]], Sequence[str]]  # by name, or which of a header


@dataclass(frozen=True)
class CodeList:
    """The content of a code list; `levels` and `labels` have a group or label (may be empty) for each category."""

    values: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()


def _named_once(levels: tuple[str, ...]) -> tuple[str, ...]:
    mistakes: list[tuple[Location, str]] = [
        ((number,), f"{echo(level)} is named twice; name it once")
        for number, level in enumerate(levels)
        if level in levels[:number]
    ]
    if mistakes:
        raise MistakesError(mistakes)
    return levels


class CodeListFields(BaseModel):
    """The fields of an axis about its code list: the file, and the columns of values, labels, levels and parents."""

    model_config = ConfigDict(frozen=True)

    column: Text = Field(description="the column of the source")
    values_from: Text
    values_column: Text = Field(default_factory=lambda axis: axis["column"])
    label_column: Text | None = None
    parent_column: Text | None = None
    levels: Annotated[
        tuple[PublishedName, ...],
        Field(examples=["[state], columns of the code list from the finest level"]),
        AfterValidator(_named_once),
        tuple_of(0, MOST_LEVELS),
    ] = ()


def read_code_list(declared: CodeListFields, base: Path, decided: Decided | None) -> CodeList:
    """Reads and checks a code list.

    A relative path starts from `base`; without `decided`, no list is allowed.

    Raises:
        MistakesError: naming lines of the file, for codes that repeat, have no place in the hierarchy, or are their own
            ancestors, and for everything that a category may not hold.
    """
    columns = [declared.values_column, declared.label_column, declared.parent_column]
    columns += [] if declared.parent_column else list(declared.levels)
    name = one_line(str(Path(declared.values_from)), 300)
    rows = read_rows(base / declared.values_from, name, decided, [column for column in columns if column])
    _check_codes(rows, declared.values_column)
    if declared.parent_column:
        leaves, levels = _from_parents(rows, declared.values_column, declared.parent_column, declared.levels)
    else:
        leaves, levels = rows, _from_columns(rows, declared.levels)
    values = tuple(row[declared.values_column] for _, row in leaves)
    labels = _labels(leaves, declared.label_column) if declared.label_column else ()
    return CodeList(values, levels, labels)


def read_spellings(file: str, base: Path, decided: Decided | None) -> dict[str, str]:
    """Reads a list of accepted spellings: for each text in the column `spelling`, the category in the column `value`.

    Raises:
        MistakesError: naming lines of the file, for spellings that repeat, and for all that no category may hold.
    """
    rows = read_rows(base / file, one_line(str(Path(file)), 300), decided, ["spelling", "value"])
    mistakes: list[Mistake] = []
    spellings: dict[str, str] = {}
    for number, row in rows:
        spelling, value = row["spelling"], row["value"]
        mistakes += [(number, f"its {name} {problem}") for name, text in row.items() if (problem := _problem(text))]
        if spelling in spellings:
            mistakes.append((number, "repeats an earlier spelling; keep one of them"))
        spellings[spelling] = value
    refuse_lines(mistakes)
    return spellings


def read_rows(file: Path, name: str, decided: Decided | None, columns: Columns) -> list[Row]:
    """Line numbers and the wanted columns of every row of a public file, as text without blanks around it."""
    reader = {".csv": _csv_rows, ".parquet": _parquet_rows}.get(file.suffix.lower())
    if reader is None:
        raise _mistake(f"{name} must be a .csv or .parquet file")
    rows: list[Row] = []
    whole = False
    with suppress(OSError, UnicodeError, csv.Error):
        for row in reader(_content(file, name, decided), columns):
            rows.append(row)
            if len(rows) > MOST_CODES:
                raise _mistake(f"{name} has more than {MOST_CODES:,} codes")
        whole = True
    if not (rows and whole):
        raise _mistake(f"{name} holds no row, or is not a readable table in UTF-8 with a header line")
    return rows


def _content(file: Path, name: str, decided: Decided | None) -> bytes:
    try:
        content = content_of_list(file, decided)
        problem = f"is larger than {LARGEST_FILE >> 20} MB, too large for a code list"
    except ValueError as error:
        content, problem = None, str(error)
    if content is None or len(content) > LARGEST_FILE:
        raise _mistake(f"{name} {problem}")
    return content


def _csv_rows(content: bytes, wanted: Columns) -> Iterator[Row]:
    text = content.decode("utf-8-sig")
    if "\0" in text:
        return
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header = next(reader, [])
    columns = _check_header(header, wanted)
    places = {column: header.index(column) for column in columns}
    for parts in reader:
        if parts:
            yield (
                reader.line_num,
                {name: parts[place].strip() if place < len(parts) else "" for name, place in places.items()},
            )


def _parquet_rows(content: bytes, wanted: Columns) -> Iterator[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(pa.BufferReader(content))
        columns = _check_header(table.schema_arrow.names, wanted)
        if table.metadata.num_rows > MOST_CODES:
            raise _mistake(f"it has more than {MOST_CODES:,} codes")
        rows = table.read(columns=columns)
    except pa.ArrowException:
        return
    for number, row in enumerate(_as_python(rows), 1):
        yield number, {name: "" if value is None else str(value).strip() for name, value in row.items()}


def _as_python(table: Any) -> list[dict[str, object]]:
    """The rows of an Arrow table; no rows if a value does not fit Python's types, such as the year 294276.

    Nanoseconds become microseconds first: Arrow reads them as another type where pandas happens to be installed.
    """
    import pyarrow as pa

    with suppress(ValueError, OverflowError):
        kinds = [
            pa.timestamp("us", kind.tz)
            if pa.types.is_timestamp(kind)
            else pa.duration("us")
            if pa.types.is_duration(kind)
            else kind
            for kind in table.schema.types
        ]
        schema = pa.schema(zip(table.schema.names, kinds, strict=True))
        rows: list[dict[str, object]] = table.cast(schema).to_pylist()
        return rows
    return []


def _check_header(header: Sequence[str], wanted: Columns) -> list[str]:
    columns = list(wanted(header) if callable(wanted) else wanted)
    for column in columns:
        if header.count(column) != 1:
            problem = "is there twice" if column in header else "is not there"
            raise _mistake(f"its column {echo(column)} {problem}. Check the names of its columns.")
    return columns


def _check_codes(rows: list[Row], column: str) -> None:
    """Refuses codes that cannot be categories, and codes that repeat."""
    mistakes: list[Mistake] = []
    seen: dict[str, str] = {}
    for number, row in rows:
        code, key = row[column], fields.comparable(row[column])
        problem = _problem(code)
        if not problem and key in seen:
            ignoring = "" if seen[key] == code else ", case and hidden signs ignored"
            problem = f"repeats an earlier code{ignoring}; keep one of them"
        if problem:
            mistakes.append((number, problem))
        seen.setdefault(key, code)
    refuse_lines(mistakes)


def _from_columns(rows: list[Row], names: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """The group of each code on each level; a group that lies in two coarser groups is refused."""
    mistakes: list[Mistake] = []
    above: dict[tuple[str, str], str] = {}
    for number, row in rows:
        mistakes += [(number, problem) for name in names if (problem := _group_problem(name, row[name]))]
        for finer, coarser in pairwise(names):
            if above.setdefault((finer, row[finer]), row[coarser]) != row[coarser]:
                mistakes.append((number, f"its {finer} lies in another {coarser} on an earlier line"))
    refuse_lines(mistakes)
    return {name: tuple(row[name] for _, row in rows) for name in names}


def _group_problem(name: str, group: str) -> str:
    if not group:
        return f"has no {name}; every code needs its place on every level"
    problem = _problem(group)
    return f"its {name} {problem}" if problem else ""


def _labels(rows: list[Row], column: str) -> tuple[str, ...]:
    labels = [(number, row[column]) for number, row in rows]
    refuse_lines(
        [(number, f"its label {problem}") for number, label in labels if label and (problem := _problem(label))]
    )
    return tuple(label for _, label in labels)


def _from_parents(
    rows: list[Row], column: str, parent: str, names: tuple[str, ...]
) -> tuple[list[Row], dict[str, tuple[str, ...]]]:
    """The codes that no code names as its parent, and their ancestors level by level."""
    lines = {row[column]: number for number, row in rows}
    parents = {row[column]: row[parent] for _, row in rows}
    mistakes = [
        (number, f"its {parent} is not a code of the list")
        for number, row in rows
        if row[parent] and row[parent] not in lines
    ]
    refuse_lines(mistakes + [(lines[code], "is its own ancestor") for code in _on_a_cycle(parents)])
    above_others = set(parents.values())
    leaves = [(number, row) for number, row in rows if row[column] not in above_others]
    ancestors = [_ancestors(row[column], parents) for _, row in leaves]
    problem = "has more or fewer codes above it than `levels` names; every code needs its place on every level"
    refuse_lines(
        [(number, problem) for (number, _), above in zip(leaves, ancestors, strict=True) if len(above) != len(names)]
    )
    return leaves, {name: tuple(above[place] for above in ancestors) for place, name in enumerate(names)}


def _on_a_cycle(parents: Mapping[str, str]) -> list[str]:
    """The codes of one cycle of ancestors, if there is any."""
    try:
        TopologicalSorter({code: [parent] for code, parent in parents.items() if parent in parents}).prepare()
    except CycleError as error:
        return list(error.args[1][1:])
    return []


def _ancestors(code: str, parents: Mapping[str, str]) -> list[str]:
    above = []
    while parent := parents[code]:
        above.append(parent)
        code = parent
    return above


def _problem(word: str) -> str:
    """Why a text cannot be a category, without quoting it; an empty text if it can."""
    try:
        return fields.problem_of_category(fields.text(word))
    except ValueError as error:
        return str(error)


def refuse_lines(mistakes: list[Mistake]) -> None:
    """Refuses a list with mistakes (pairs of line and problem), if there are any.

    The message names the first ones and does not tell the total number.
    """
    lines = [f"line {number}: {problem}" for number, problem in sorted(mistakes)[:MOST_MISTAKES]]
    if len(mistakes) > MOST_MISTAKES:
        lines.append("and more")
    if lines:
        raise MistakesError([((), problem) for problem in lines])


def _mistake(problem: str) -> MistakesError:
    return MistakesError([((), problem)])
