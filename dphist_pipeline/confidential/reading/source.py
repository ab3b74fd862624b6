"""A source that can be read: its columns, and everything about it that may be refused."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any, TypeVar

import duckdb

from dphist_pipeline.base.sql_files import identifier
from dphist_pipeline.errors import Halted, did_you_mean

ZONED_TIMES = ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS")
TIMES = ("DATE", "TIMESTAMP", "TIMESTAMP_NS", *ZONED_TIMES)
# Served wherever a type is: text is parsed row by row, and a column without a type holds nothing but nulls.
ALWAYS = ("VARCHAR", "ENUM", "NULL")

# Shortly after the first day that DuckDB can write: a file may hold time stamps before it.
FIRST_TIME = "TIMESTAMP '290308-01-01 (BC) 00:00:00'"
BEFORE_ALL = "TIMESTAMP '-infinity'"

NOTHING_INSTALLED = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "enable_external_file_cache": False,
}

# Other settings, tried in turn while memory runs out. Every thread holds the long values of some thousand rows at once,
# so a single record may need more than an ordinary run may use; which means were enough shows in time alone.
ALL_MEANS: tuple[dict[str, Any], ...] = ({}, {"threads": 1}, {"threads": 1, "memory_limit": "80%"})
NO_MEMORY: tuple[type[Exception], ...] = (duckdb.OutOfMemoryException, MemoryError, OSError)  # the last by Arrow
MEANS: ContextVar[dict[str, Any]] = ContextVar("means", default=ALL_MEANS[0])
ERRORS: tuple[type[BaseException], ...] = (duckdb.Error, RuntimeError, MemoryError, OSError, UnicodeError)
UNIT_UNNAMED = "is a CSV file that names no unit, so its first line stays unread"
MEGABYTE = 10**6  # as DuckDB counts
Result = TypeVar("Result")


def memory_limit() -> int:
    """The bytes of memory that an engine may use, by `DPHIST_MEMORY` in the environment.

    Raises:
        Halted: that is no size.
    """
    memory = os.environ.get("DPHIST_MEMORY") or "3GB"
    if not re.fullmatch(r"[1-9]\d{0,5}[MG]B", memory):
        raise Halted(f"DPHIST_MEMORY is {memory!r}; write a whole number of MB or GB, as in 2GB", code="dphist_error")
    return int(memory[:-2]) * MEGABYTE * (1000 if memory.endswith("GB") else 1)


def engine_settings(folder: PurePath) -> dict[str, Any]:
    """How DuckDB is opened in a run's private folder, where it spills, below `spill`, what memory does not hold.

    Raises:
        Halted: `DPHIST_MEMORY` in the environment is no size.
    """
    return {
        **NOTHING_INSTALLED,
        # Else a file's statistics, and so other people's rows, decide how an expression treats a row.
        "disabled_optimizers": "statistics_propagation",
        "preserve_insertion_order": False,
        "memory_limit": f"{memory_limit() // MEGABYTE}MB",
        "max_temp_directory_size": "40GB",
        "temp_directory": str(folder / "spill"),
        **MEANS.get(),
    }


def plain_type(kind: str) -> str:
    """A DuckDB type without its parameters, which may be names that a file gives; a list stays a list.

    DECIMAL(4,2)[] is none that numbers have: what serves for numbers does not serve for lists of them.
    """
    head = kind.strip('"').partition("(")[0]
    return f"{head}[]" if kind.endswith("]") and not head.endswith("]") else head


def with_possible_times(types: Mapping[str, str], table: str) -> str:
    """SQL of the rows with -infinity for time stamps before `FIRST_TIME`: casts of those raise, whatever TRY says.

    That lies before every period and gives no day, as text that does not parse. `greatest` stands inside because DuckDB
    casts whole dictionaries: also entries that only rows of other periods have, which CASE alone passes on unchanged.
    It takes null for a time, so nulls go past it.

    Columns in milliseconds, which serve for nothing, are null altogether: a value that raises stands in a file's
    statistics, too, which DuckDB reads of every column that is selected.

    Args:
        types: DuckDB type of every column, without parameters, or words that several files' types make.
    """
    replaced = []
    for name, kind in types.items():
        column = identifier(name)
        if "TIMESTAMP_MS" in kind:
            replaced.append(f"CAST(NULL AS TIMESTAMP) AS {column}")
        elif kind == "TIMESTAMP":
            possible = f"greatest({column}, {FIRST_TIME})"
            whens = f"WHEN {column} < {FIRST_TIME} THEN {BEFORE_ALL} WHEN {column} IS NOT NULL THEN {possible}"
            replaced.append(f"CASE {whens} END AS {column}")
    columns = f" REPLACE ({', '.join(replaced)})" if replaced else ""
    return f"SELECT *{columns} FROM {table}"


def without_values(found: PurePath | str) -> str:
    """What messages call a file that was found, or a folder: folders called `column=value` may hold records' values.

    All from `=` to the next slash is left out.
    """
    return re.sub("=[^/]*", "=…", str(found))


class SourceRefused(Halted):
    """The source, as files, cannot be read: nothing was charged."""

    def __init__(self, where: str, problem: str) -> None:
        # As plain text: a source of the spec carries what the environment gave, and errors travel between processes.
        self.where, self.problem = str(where), problem
        super().__init__(f"source {where}: {problem}")


class ColumnRefused(Halted):
    """A column that the spec names is missing from the source, or of a type that it cannot have."""

    def __init__(self, column: str, problem: str) -> None:
        self.column, self.problem = column, problem
        super().__init__(f"column {column!r} {problem}")


@dataclass(frozen=True)
class OpenedSource:
    """Readable records with one set of columns."""

    # DuckDB type of every column, without parameters; only VARCHAR for CSV. Where files disagree, words that say so
    # and serve for nothing.
    types: Mapping[str, str]
    relation: str  # SQL that yields the rows, with `parameters` bound
    parameters: Mapping[str, Any]  # what `relation` takes
    is_csv: bool = False  # whether column names came from a header line, which may be a record by mistake
    # Types on the server of columns that it gives as text, where categories are compared by that type.
    by_server: Mapping[str, str] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)  # by column the first file without it, others having it
    unit: tuple[str, ...] = ()  # the columns of the privacy unit, which an operator decided on
    doubt: str = ""  # of the header line of a CSV file, without a word of it; empty if it looks like one
    unreadable: str = ""  # of CSV: SQL that yields a row for each line that has no row in `relation`, being unreadable
    replaced: str = ""  # the sign that bytes are read as which are no text in the source's encoding; empty if none are
    # Columns of days and times whose text in ISO 8601 a server writes itself, and their types there.
    server_times: Mapping[str, str] = field(default_factory=dict)

    def type_of(self, column: str, allowed: tuple[str, ...], use: str) -> str:
        """The type of a column, refused unless it is text, all null, or one of `allowed`."""
        if column in self.lacking:
            raise ColumnRefused(column, lacks(self.lacking[column]))
        if column not in self.types:
            self.refuse_missing([column])
        kind = self.types[column]
        if kind not in (*allowed, *ALWAYS):
            raise ColumnRefused(column, f"has type {kind}, which cannot serve as {use}")
        return kind

    def refuse_missing(self, columns: Iterable[str]) -> None:
        """Refuses columns that are not in the source, all in one message, with the nearest name of each."""
        missing = [column for column in dict.fromkeys(columns) if column not in self.types]
        hints = [self.nearest(column) for column in missing]
        others = [
            f"Nor is column {column!r}.{'' if hint == hints[0] else f' {hint}'}"
            for column, hint in zip(missing[1:], hints[1:], strict=True)
        ]
        if missing:
            raise ColumnRefused(missing[0], " ".join(["is not in the source.", hints[0], *others]))

    @property
    def names_unit(self) -> bool:
        """Whether a first line of CSV names all columns of the privacy unit, so that it is no record.

        Case and signs may differ; letters may not, since a value of a record may be near any name.
        """
        names = {_plain_name(name) for name in self.types if name not in self.lacking}
        return bool(self.unit) and all(_plain_name(column) in names for column in self.unit)

    def nearest(self, column: str) -> str:
        """What to say of a column that is missing: the nearest name that the source has, or another hint.

        A CSV file without a header line has a record in its place. So a name of it is shown only where the line names
        the privacy unit, too, whose columns an operator decided on; nobody can probe a record for other words.
        """
        if not self.is_csv:
            return did_you_mean(column, self.types)
        alike = [name for name in self.types if _plain_name(name) == _plain_name(column)]
        near = alike[:1] or get_close_matches(column, self.types, n=2, cutoff=0.6)
        if near and self.names_unit:
            counts = " Case, blanks and quotes count." if alike else ""
            return f"Did you mean {' or '.join(map(repr, near))}?{counts}"
        return f"{self.doubt or 'Check the header line'}."


def lacks(file: str) -> str:
    """What is said of a column that some files of a source have, and this one has not."""
    return f"is not in {file}, and other files of the source have it: a column that is used must be in every file"


def _plain_name(name: str) -> str:
    """The letters and digits of a name, whatever their case, and nothing between them."""
    return re.sub(r"[\W_]", "", name).casefold()


def withheld(
    where: str, problem: str, work: Callable[[], Result], caught: tuple[type[BaseException], ...] = ERRORS
) -> Result:
    """What `work` gives; an engine's error becomes ours.

    The engine's text may hold values, so ours is raised after it is gone: not even as `__context__` does it go along,
    which is why this is no context manager.

    Args:
        problem: the rest of the message, which holds no value: what is wrong and how to mend it.
        caught: errors whose text may hold values; those of Polars are caught besides.

    Raises:
        SourceRefused: with these words, in place of such an error.
        KeyboardInterrupt: in place of DuckDB's own error about Ctrl-C.
    """
    try:
        return work()
    except (*caught, *_errors_of_polars()) as error:
        # DuckDB answers Ctrl-C with an error of its own.
        interrupted = isinstance(error, duckdb.InterruptException) or str(error) == "Query interrupted"
    if interrupted:
        raise KeyboardInterrupt
    raise SourceRefused(where, problem)


def _errors_of_polars() -> tuple[type[BaseException], ...]:
    polars = sys.modules.get("polars")  # loaded before rows are counted; reading may do without it
    return () if polars is None else (polars.exceptions.PolarsError, polars.exceptions.PanicException)


def with_enough_memory(work: Callable[[], Result]) -> Result:
    """What `work` gives by the first of `ALL_MEANS` that are enough for it; whatever it opens has those.

    It is done from the start with each of them; the error of the last one goes on.
    """
    for means in ALL_MEANS:
        before = MEANS.set(means)
        try:
            return work()
        except NO_MEMORY:
            if means is ALL_MEANS[-1]:
                raise
        finally:
            MEANS.reset(before)
    raise AssertionError("there are no means")


def query_rows(
    connection: duckdb.DuckDBPyConnection, where: str, problem: str, sql: str, given: Mapping[str, Any] | None = None
) -> list[Any]:
    """Queries with quoted names and texts; an engine's error becomes ours: see `withheld`."""
    return withheld(where, problem, lambda: connection.execute(sql, given).fetchall())


def columns_of(
    connection: duckdb.DuckDBPyConnection, where: str, problem: str, rows: str, given: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The DuckDB types of the columns that a query gives, by name; the query is described and not run."""
    described = query_rows(connection, where, problem, f"DESCRIBE {rows}", given)
    return {name: kind for name, kind, *_ in described}


def refuse_shadowed(where: str, names: Iterable[str], folders: Iterable[str]) -> None:
    """Refuses folders called `column=value` whose column the files have, too, in upper or lower case."""
    if {name.lower() for name in names} & {name.lower() for name in folders}:
        raise SourceRefused(where, "has folders that are called as a column of its files; rename one")


def load(connection: duckdb.DuckDBPyConnection, extension: str, where: str, instead: str = "") -> None:
    """Loads an extension of DuckDB that the office has installed; nothing is ever downloaded.

    The connection has `NOTHING_INSTALLED` among its settings. `instead`: what else to do, from its comma on.
    """
    problem = (
        f"needs DuckDB's extension {extension} for version {duckdb.__version__}, which is not installed on this "
        f"machine. Install it once, as DuckDB's manual says{instead}; a release never downloads anything."
    )
    query_rows(connection, where, problem, f"LOAD {extension}")
