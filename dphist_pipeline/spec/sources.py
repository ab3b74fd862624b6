"""What a spec says of its records: the files, how they are written, whose rows they are, and the query over them."""

from __future__ import annotations

import glob
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import ValidationInfo

from dphist_pipeline.spec.refusals import FromEnvironment, Location, MistakesError, shown
from dphist_pipeline.spec.row_functions import is_time_format
from dphist_pipeline.spec.row_queries import RowQuery, read_row_query
from dphist_pipeline.spec.words import LONGEST_TEXT, text

EVERY_ROW = "row"
LONGEST_SOURCE = 4000
MOST_UNIT_COLUMNS = 10

Format = Literal["parquet", "csv", "duckdb", "postgres"]
FORMATS: Mapping[str, Format] = {
    **{".parquet": "parquet", ".csv": "csv", ".csv.gz": "csv", ".csv.zst": "csv"},
    ".duckdb": "duckdb",
}
SERVER = "postgres:"
STORE = "s3://"
NORMAL_FORMS = ("trim", "lower", "nfc")

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_SERVER = re.compile(r"postgres:\s*\{\{\s*env\.[A-Za-z_][A-Za-z0-9_]*\s*\}\}\s*", re.ASCII)


class Source(str):
    """A source as written, with `{{ env.X }}` in it; `resolved` is what it stands for and is never shown."""

    resolved: str

    def __new__(cls, written: str, resolved: str = "") -> Source:
        source = super().__new__(cls, written)
        source.resolved = resolved
        return source


class SqlFile(str):
    """The file of a query as written, and the query that was read from it and judged."""

    query: RowQuery


class PrivacyUnit(str):
    """Who is protected: a column, several that name a person together, or `row`. As text, their names with commas."""

    columns: tuple[str, ...]

    def __new__(cls, columns: tuple[str, ...]) -> PrivacyUnit:
        unit = super().__new__(cls, ",".join(columns))
        unit.columns = columns
        return unit

    def __reduce__(self) -> tuple[type[PrivacyUnit], tuple[tuple[str, ...]]]:
        return PrivacyUnit, (self.columns,)


def source(value: object) -> str:
    """Files of one kind, here or in an object store, by name or glob, or a server; with `{{ env.X }}`, as written.

    Raises:
        ValueError: for other kinds of files, and for addresses that are not left to the environment.
    """
    if not isinstance(value, str):
        raise ValueError(f"must be text, the name or glob of Parquet or CSV files, not {shown(value)}")
    if len(value) > LONGEST_SOURCE:
        raise ValueError(f"is longer than {LONGEST_SOURCE} characters; shorten it")
    if value.casefold().startswith(SERVER) or (isinstance(value, FromEnvironment) and SERVER in value.written):
        return _server(value)
    if value:
        for start in range(0, len(value), 200):
            text(f"x{value[start : start + 199]}")
    if "://" in value:
        _check_address(value)
    if value.casefold().endswith(".csv.bz2"):
        raise ValueError("is compressed by bzip2, which is not read; use .csv.gz or .csv.zst, or better, Parquet")
    if ending_of(value) is None:
        endings = ", ".join(ending for ending, kind in FORMATS.items() if kind in ("parquet", "csv"))
        raise ValueError(f"must end in .parquet or .csv, not {shown(value)}; name files ({endings}), not a folder")
    return Source(value.written, str(value)) if isinstance(value, FromEnvironment) else value


def _check_address(value: str) -> None:
    """Refuses addresses other than of Parquet files in an object store; keys never stand in one."""
    if not value.startswith(STORE):
        raise ValueError(
            "is an address; only files of this machine are read, Parquet files in an object store, as "
            "`s3://bucket/path/*.parquet`, and PostgreSQL, as `postgres:{{ env.NAME }}`: copy the files here first, or "
            "mount their store"
        )
    if not is_object(value):
        raise ValueError(
            "must be Parquet files in an object store, as `s3://bucket/path/*.parquet`: the bucket's whole name, then "
            "a path without ? and \\ and without empty parts or dots alone; keys come from the environment"
        )


def is_object(address: str) -> bool:
    """Whether an address, or a glob of some, is of Parquet files in an object store, and nothing else is said in it.

    DuckDB takes what follows a question mark for settings, keys among them.
    """
    bucket, _, path = address.removeprefix(STORE).partition("/")
    return (
        address.startswith(STORE)
        and _BUCKET.fullmatch(bucket) is not None
        and not {"", ".", ".."} & {*path.split("/")}
        and not {"?", "\\"} & {*path}
        and ending_of(path) == ".parquet"
    )


def in_store(given: str) -> bool:
    """Whether a checked source is of files in an object store."""
    return resolved(given).startswith(STORE)


def _server(value: str) -> Source:
    """A PostgreSQL database whose address, and with it the password, comes from the environment alone."""
    if not isinstance(value, FromEnvironment) or not _SERVER.fullmatch(value.written):
        raise ValueError(
            "names a server, whose address comes from the environment alone: write `postgres:{{ env.NAME }}`, and set "
            "NAME to what PostgreSQL calls a connection string"
        )
    address = str(value)[len(SERVER) :].strip()
    if not address or not address.isprintable():
        raise ValueError("names a server, and the variable is empty or holds control characters; set it")
    return Source(value.written, address)


def source_table(value: object, info: ValidationInfo) -> str | None:
    """The table of a database: there exactly where the source is one."""
    given = info.data.get("source")
    if given is None:
        return None
    if format_of(given) not in ("duckdb", "postgres"):
        if value is not None:
            raise ValueError("has no use with files of records; remove it")
        return None
    if value is None:
        raise ValueError("is required with a database: the table with the records, as `schema.table` or `table`")
    return str(text(value))


def format_of(given: str) -> Format:
    """What a checked source is."""
    return "postgres" if _SERVER.fullmatch(given) else FORMATS[ending_of(resolved(given)) or ""]


def resolved(given: str) -> str:
    """A checked source with what the environment gave, which is never shown."""
    return given.resolved if isinstance(given, Source) else given


def absolute_pattern(given: str, base: Path) -> str:
    """Checked files, by name or glob, as an absolute glob; signs in the base folder's name are escaped."""
    pattern = resolved(given)
    return pattern if Path(pattern).is_absolute() else str(Path(glob.escape(str(base))) / pattern)


def ending_of(name: str) -> str | None:
    """The ending that tells how a file is read, in lower case; None where it tells nothing."""
    return next((ending for ending in sorted(FORMATS, key=len)[::-1] if name.casefold().endswith(ending)), None)


def csv_delimiter(value: object) -> str:
    """One sign between the fields of a CSV file."""
    if not isinstance(value, str) or len(value) != 1 or not (value == "\t" or _is_sign(value)) or value in "\"'\\":
        raise ValueError(f'must be one sign such as "," or ";" or "\\t", not {shown(value)}')
    return value


def csv_quote(value: object) -> str:
    """The sign around quoted fields of a CSV file, or nothing where fields are never quoted."""
    if value not in ("", '"', "'"):
        raise ValueError(f'must be \'"\', "\'" or "" (no quoting), not {shown(value)}')
    return str(value)


def decimal_comma(value: object, info: ValidationInfo) -> bool:
    """Whether text numbers are written 3,5; not where the comma parts the fields already."""
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {shown(value)}")
    given, plain = info.data.get("source"), info.data.get("csv_quote") == ""
    if value and plain and info.data.get("csv_delimiter") == "," and given and format_of(given) == "csv":
        raise ValueError('cannot be where commas part the fields: declare `csv_delimiter: ";"`, or `csv_quote`')
    return value


def source_sql(value: object, info: ValidationInfo) -> SqlFile | None:
    """The file of a query over the source, read and judged."""
    if value is None:
        if info.data.get("trusted_sql"):
            raise ValueError("is required with `trusted_sql: true`: the file with the query")
        return None
    written = SqlFile(text(value))
    base = (info.context or {}).get("base")
    unit = getattr(info.data.get("privacy_unit"), "columns", (EVERY_ROW,))
    written.query = read_row_query(Path(base or ".") / written, str(written), unit=() if unit == (EVERY_ROW,) else unit)
    return written


def remarks(given: SqlFile | None, trusted_sql: bool, account: str) -> list[str]:
    """What to know about the query of a spec, a sentence or two each."""
    found = []
    if trusted_sql:
        found.append(
            "`trusted_sql` grants nothing any more: a query is judged row by row, or allowed in the ledger. The field "
            "stays part of the digest; remove it with the next revision."
        )
    if given is not None and given.query.needs_decision:
        found.append(
            f"{given}, {given.query.needs_decision}. So the query needs an operator's decision: "
            f"`dphist ledger allow {account} --query {shlex.quote(given)} --reason TEXT`. Then the privacy promise "
            "rests on the query, and audit and card say so."
        )
    return found


def privacy_unit(value: object) -> PrivacyUnit:
    """The column that names a person, several that do so together, or `row`."""
    if not isinstance(value, list | tuple):
        return PrivacyUnit((str(text(value)),))
    if not 1 <= len(value) <= MOST_UNIT_COLUMNS:
        raise ValueError(f"must be a column, or a list of up to {MOST_UNIT_COLUMNS} that name a person together")
    found: list[tuple[Location, str]] = []
    for number, column in enumerate(value):
        try:
            _check_part(text(column), value[:number], alone=len(value) == 1)
        except ValueError as error:
            found.append(((number,), str(error)))
    if found:
        raise MistakesError(found)
    unit = PrivacyUnit(tuple(map(str, value)))
    if len(unit) > LONGEST_TEXT:
        raise ValueError(f"has names of more than {LONGEST_TEXT} characters together; rename columns in `source_sql`")
    return unit


def _check_part(column: str, before: list[object] | tuple[object, ...], alone: bool) -> None:
    if column == EVERY_ROW and not alone:
        raise ValueError("`row` stands alone, where every row is another person")
    if "," in column:
        raise ValueError("holds a comma, which parts the names in the ledger; rename the column in `source_sql`")
    if column in before:
        raise ValueError(f"{shown(column)} is named twice; name it once")


def unit_normalise(value: object, info: ValidationInfo) -> tuple[str, ...]:
    """How text that names a person is brought into one form before it is compared, in this order."""
    known = ", ".join(NORMAL_FORMS)
    if not isinstance(value, list | tuple) or not all(form in NORMAL_FORMS for form in value):
        raise ValueError(f"must be a list of some of {known}, such as [trim, lower], not {shown(value)}")
    if len(set(value)) < len(value):
        raise ValueError("names a form twice; name each once")
    if value and info.data.get("privacy_unit") == EVERY_ROW:
        raise ValueError("has no use with `privacy_unit: row`; remove it")
    return tuple(value)


def period_format(value: object, info: ValidationInfo) -> str | None:
    """How dates are written in a period column that is text."""
    if value is None:
        return None
    if info.data.get("period_column", "") is None:
        raise ValueError("has no use without `period_column`; remove it")
    return date_format(value)


def date_format(value: object) -> str:
    """How dates are written, as `try_strptime` takes it."""
    pattern = text(value)
    if not is_time_format(pattern) or not any(year in pattern.replace("%%", "") for year in ("%Y", "%y", "%-y")):
        raise ValueError(
            'must say how a date is written, as "%d/%m/%Y", of %Y %y %m %d %H %I %M %S %f %p %b %B %j %a %A and other '
            f"signs, with a year; not {shown(value)}"
        )
    return str(pattern)


def _is_sign(value: str) -> bool:
    return value.isascii() and value.isprintable() and not value.isalnum()
