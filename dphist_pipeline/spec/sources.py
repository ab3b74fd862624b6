"""What a spec reads: its source, how it is read, the privacy unit, the query over it; and which code lists it may read.

A source is of files, a database, an object store or a frame. Of placeholders in an address, such as
`data/{year}-{month}.parquet`, the finest decides which files a period needs: with `{day}` those of each of its days,
with `{month}` those of each month that it touches. So a file that is not there is noticed before anything is charged.

A spec names the file of a code list, so it could name any: the records of another release, or the store. Only files
below folders that an operator declared public in the ledger are read, and messages about a file that may not be read
are the same whether it exists or not.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
)

from dphist_pipeline.base.domain import CategoricalAxis, Domain
from dphist_pipeline.base.reading import ENCODINGS, OPTIONS, QUOTE_ALL, QUOTES, RFC, UTF_8, Encoding, Reading
from dphist_pipeline.base.unit_forms import NormalForm as NormalForm
from dphist_pipeline.errors import did_you_mean
from dphist_pipeline.spec._declared_instead import Instead, declared_instead
from dphist_pipeline.spec.fields import LONGEST_TEXT, Flag, Text, spec_field, text, tuple_of
from dphist_pipeline.spec.mistakes import FromEnvironment, Location, MistakesError, checker, echo
from dphist_pipeline.spec.periods import Period, PeriodRule
from dphist_pipeline.spec.signed_queries import SignedQuery, read_query_file

LARGEST_FILE = 1 << 26

_DESCRIPTORS = Path("/proc/self/fd")


@dataclass(frozen=True)
class CodeListFolders:
    """What an operator decided about code lists: which folders are public.

    `forbidden`: whether a file, its links resolved, is never a code list, such as a registered source or the store.
    """

    folders: tuple[Path, ...]
    forbidden: Callable[[Path], bool]


Decided = Callable[[], CodeListFolders]


def content_of_list(file: Path, decided: Decided | None) -> bytes:
    """The first bytes of a code list, one more than it may have.

    What is read is what was allowed: the path is resolved, judged, opened without following links, and the open file
    must still be the one at that path.

    Raises:
        ValueError: the file may not be read or is not there; the message is the same for both.
    """
    rule = CodeListFolders((), lambda path: True) if decided is None else decided()
    content = None
    with suppress(OSError, RuntimeError, ValueError):
        path = _allowed_path(file, rule)
        content = None if path is None else _read(path)
    if content is None:
        raise ValueError(
            "is no file below a folder that the ledger declares public for code lists, or is never one, as records "
            "and the store are. If the file is there and public, `dphist ledger allow --code-lists FOLDER` (or "
            "`dphist init --code-lists FOLDER`) declares its folder"
        )
    return content


def _allowed_path(file: Path, rule: CodeListFolders) -> Path | None:
    """The path with links resolved if an operator allowed it, else None."""
    path = file.resolve(strict=True)
    below = any(path != folder and path.is_relative_to(folder) for folder in _resolved_folders(rule.folders))
    return path if below and not rule.forbidden(path) else None


def _resolved_folders(folders: tuple[Path, ...]) -> list[Path]:
    """The folders that exist, with links resolved."""
    mistakes = []
    for folder in folders:
        with suppress(OSError, RuntimeError):
            mistakes.append(folder.resolve(strict=True))
    return mistakes


def _read(path: Path) -> bytes | None:
    """The content of a regular file; None if another file was put in its place."""
    # Without waiting, since a pipe would never open; it is no regular file.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) or not _is_at(descriptor, path):
            return None
        return stream.read(LARGEST_FILE + 1)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the file at this path, without following links."""
    if _DESCRIPTORS.is_dir():
        return (_DESCRIPTORS / str(descriptor)).readlink() == path
    return path.resolve(strict=True) == path and os.path.samestat(os.fstat(descriptor), path.lstat())


# Each placeholder as a glob, which finds the files of all periods.
GLOBS = {
    "year": "[0-9]" * 4,
    "month": "[0-9]" * 2,
    "week": "[0-9]" * 2,
    "day": "[0-9]" * 2,
    "period": "-".join("[0-9]" * digits for digits in (4, 2, 2)),
}
# Doubled braces belong to `{{ env.X }}`.
PLACEHOLDER = re.compile(r"(?<!\{)\{([^{}/]*)\}(?!\})")
NAMES = ", ".join(f"{{{name}}}" for name in GLOBS)


def placeholders_of(address: str) -> frozenset[str]:
    """The names of all placeholders of an address; `{{ env.X }}` is none."""
    return frozenset(PLACEHOLDER.findall(address))


def check_placeholders(address: str, secret: bool = False) -> None:
    """Refuses unknown placeholders, and those that name no stretch of time without others.

    No message shows an address that is `secret`.
    """
    names = placeholders_of(address)
    for name in sorted(names - GLOBS.keys()):
        placeholder = "a placeholder" if secret else f"{{{name[:60]}}}"
        hint = "" if secret else f". {did_you_mean(name[:60], GLOBS)}"
        raise ValueError(f"holds {placeholder} in braces, which is none of {NAMES}{hint}")
    if "week" in names and names & {"month", "day"}:
        raise ValueError(
            "holds {week} beside {month} or {day}; weeks cross the ends of months, so use {year} and {week} alone"
        )
    for name, needed in (("month", {"year"}), ("week", {"year"}), ("day", {"year", "month"})):
        if name in names and needed - names:
            missing = " and ".join(f"{{{other}}}" for other in sorted(needed - names, reverse=True))
            raise ValueError(f"holds {{{name}}}, which names a file only together with {missing}")


def as_glob(address: str) -> str:
    """The address with each placeholder as a glob: finds the files of every period."""
    return PLACEHOLDER.sub(lambda match: GLOBS.get(match[1], match[0]), address)


def fillings(address: str, period: Period, rule: PeriodRule, before: int = 0, after: int = 0) -> list[dict[str, str]]:
    """The values of each placeholder, for one address after another that a period needs; for `fill_placeholders`.

    Without a placeholder there is one filling, which is empty. `before`, `after`: so many stretches of time more, of
    the finest placeholder; with `{period}`, whole periods.
    """
    placeholders = placeholders_of(address)
    if not placeholders or period.start is None or period.end is None:
        return [{}]
    if "period" in placeholders and (before or after):
        periods = [period]
        for _ in range(before):
            periods.insert(0, rule.before(periods[0]))
        for _ in range(after):
            periods.append(rule.following(periods[-1]))
        return [filling for each in periods for filling in fillings(address, each, rule)]
    first, last = period.start.date(), period.end.date() - timedelta(days=1)
    addresses = []
    for day in _first_days(
        placeholders, _earlier(placeholders, first, before), _later(placeholders, last, after), rule
    ):
        year, week = rule.week_number(day)
        parts = {
            "year": f"{year if 'week' in placeholders else day.year:04}",
            "month": f"{day.month:02}",
            "week": f"{week:02}",
            "day": f"{day.day:02}",
            "period": period.key,
        }
        addresses.append(parts)
    return addresses


def own_files_span(address: str, period: Period, rule: PeriodRule, before: int = 0, after: int = 0) -> Period:
    """The stretch of time whose rows some period looks for in this period's own files; other rows there are in none.

    It is of whole periods, and one for all own files together. A period that reads `after` files after its own finds
    rows in files that are named later, and so on. `before`, `after`: as of `fillings`.
    """
    names, start, end = placeholders_of(address), period, period
    if period.start is None or period.end is None:
        return period
    if "period" in names:
        for _ in range(after):
            start = rule.before(start)
        for _ in range(before):
            end = rule.following(end)
    else:
        first, last = _stretch(names, period.start.date(), rule)[0], period.end.date() - timedelta(days=1)
        last = _stretch(names, last, rule)[1]
        start, end = (rule.containing(day) for day in (_earlier(names, first, after), _later(names, last, before)))
    return Period(period.key, start.start, end.end)


def _stretch(names: frozenset[str], day: date, rule: PeriodRule) -> tuple[date, date]:
    """The first and the last day of the stretch that the finest placeholder names, of the one with a day."""
    if "day" in names:
        return day, day
    if "week" in names:
        following = rule.next_week(day)
        return following - timedelta(days=7), following - timedelta(days=1)
    first = day.replace(day=1) if "month" in names else day.replace(month=1, day=1)
    return first, (_next_month if "month" in names else _next_year)(first) - timedelta(days=1)


def fill_placeholders(address: str, parts: Mapping[str, str]) -> str:
    """The address with some of its placeholders replaced, by name."""
    return PLACEHOLDER.sub(lambda match: parts.get(match[1], match[0]), address)


def _earlier(names: frozenset[str], day: date, steps: int) -> date:
    """The day so many stretches of the finest placeholder earlier."""
    if not steps:
        return day
    if "day" in names or "week" in names:
        return day - timedelta(days=steps * (1 if "day" in names else 7))
    months = 12 * day.year + day.month - 1 - steps * (1 if "month" in names else 12)
    return date(months // 12, months % 12 + 1, 1)


def _later(names: frozenset[str], day: date, steps: int) -> date:
    """The day so many stretches of the finest placeholder later; the last of its month where months are counted."""
    if not steps:
        return day
    if "day" in names or "week" in names:
        return _earlier(names, day, -steps)
    return _next_month(_earlier(names, day, -steps)) - timedelta(days=1)


def _first_days(names: frozenset[str], first: date, last: date, rule: PeriodRule) -> Iterator[date]:
    """A day in each stretch of time that the finest placeholder names, from the first day on."""
    following: Callable[[date], date]
    if "day" in names:
        following = _next_day
    elif "week" in names:
        following = rule.next_week
    elif "month" in names:
        following = _next_month
    else:
        following = _next_year if "year" in names else lambda day: last + timedelta(days=1)
    day = first
    while day <= last:
        yield day
        day = following(day)


def _next_day(day: date) -> date:
    return day + timedelta(days=1)


def _next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=31)).replace(day=1)


def _next_year(day: date) -> date:
    return date(day.year + 1, 1, 1)


EVERY_ROW = "row"
LONGEST_SOURCE = 4000
MOST_UNIT_COLUMNS = 10

Format = Literal["parquet", "csv", "duckdb", "postgres", "frame"]
FORMATS: Mapping[str, Format] = {
    **{".parquet": "parquet", ".csv": "csv", ".csv.gz": "csv", ".csv.zst": "csv"},
    ".duckdb": "duckdb",
}
SERVER = "postgres:"
STORE = "s3://"
FRAME = "frame:"
ISO = "iso"
_PLAIN_NAMES = {
    **{"utf8": "utf-8", "cp1252": "windows-1252"},
    **{"latin1": "latin-1", "iso-8859-1": "latin-1"},
}
_OF_QUOTES = "rfc (quotes where a field needs them), none (no quotes), or all (every field quoted)"
_OF_ENCODINGS = f"of CSV files: {', '.join(ENCODINGS)}"
AN_ISO_DATE = "2026-09-14"  # whose day and month cannot be taken for each other
# As DuckDB and Spark call text.
TEXT = ("VARCHAR", "ENUM", "STRING", "string")

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", re.ASCII)
_FRAME = re.compile(r"frame:[a-z][a-z0-9_]{0,62}", re.ASCII)
_SERVER = re.compile(r"postgres:\s*\{\{\s*env\.[A-Za-z_][A-Za-z0-9_]*\s*\}\}\s*", re.ASCII)

SESSION = "session"  # instead of an address: the session of Spark that is active in the program that runs a release
USUAL_PORT = "15002"
_SPARK = re.compile(
    r"sc://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::([0-9]{1,5}))?(/(?:;[A-Za-z0-9_-]+=[!-:<-~]*)*)?", re.ASCII
)


class Source(str):
    """A source as written, with `{{ env.X }}` in it; `resolved` is what it stands for and is never shown."""

    resolved: str

    def __new__(cls, written: str, resolved: str | None = None) -> Self:
        source = super().__new__(cls, written)
        source.resolved = written if resolved is None else resolved
        return source

    @property
    def in_store(self) -> bool:
        """Whether it is of files in an object store."""
        return self.resolved.startswith(STORE)

    @property
    def bucket(self) -> str:
        """The bucket of a source in an object store."""
        return self.resolved.removeprefix(STORE).partition("/")[0]

    @property
    def is_object(self) -> bool:
        """Whether it names Parquet files in an object store, by address or glob, and holds no settings.

        DuckDB takes what follows a question mark for settings, keys among them.
        """
        path = self.resolved.removeprefix(STORE).partition("/")[2]
        return (
            self.in_store
            and _BUCKET.fullmatch(self.bucket) is not None
            and not {"", ".", ".."} & {*path.split("/")}
            and not {"?", "\\"} & {*path}
            and ending_of(path) == ".parquet"
        )


class SqlFile(str):
    """The file of a query as written, and the query that was read from it."""

    query: SignedQuery


class PrivacyUnit(str):
    """Who is protected: a column, several that name a person together, or `row`. As text, their names with commas."""

    columns: tuple[str, ...]

    def __new__(cls, columns: tuple[str, ...]) -> PrivacyUnit:
        unit = super().__new__(cls, ",".join(columns))
        unit.columns = columns
        return unit

    def __reduce__(self) -> tuple[type[PrivacyUnit], tuple[tuple[str, ...]]]:
        return PrivacyUnit, (self.columns,)


def source(value: object) -> Source:
    """Files of one kind, here or in an object store, by name or glob, a server or a frame; `{{ env.X }}` as written.

    Raises:
        ValueError: for other kinds of files, and for addresses that are not left to the environment.
    """
    if not isinstance(value, str):
        raise ValueError(f"must be text, the name or glob of Parquet or CSV files, not {echo(value)}")
    if len(value) > LONGEST_SOURCE:
        raise ValueError(f"is longer than {LONGEST_SOURCE} characters; shorten it")
    if value.casefold().startswith(SERVER) or (isinstance(value, FromEnvironment) and SERVER in value.written):
        return _server(value)
    if value.casefold().startswith(FRAME):
        return _frame(value)
    for start in range(0, len(value), LONGEST_TEXT - 1):
        text(f"x{value[start : start + LONGEST_TEXT - 1]}")
    if "://" in value:
        _check_address(value)
    if value.casefold().endswith(".csv.bz2"):
        raise ValueError("is compressed by bzip2, which is not read; use .csv.gz or .csv.zst, or better, Parquet")
    if ending_of(value) is None:
        endings = ", ".join(ending for ending, kind in FORMATS.items() if kind in ("parquet", "csv"))
        raise ValueError(f"must end in .parquet or .csv, not {echo(value)}; name files ({endings}), not a folder")
    check_placeholders(value, secret=isinstance(value, FromEnvironment))
    return Source(value.written, str(value)) if isinstance(value, FromEnvironment) else Source(value)


def _check_address(value: str) -> None:
    """Refuses addresses other than of Parquet files in an object store; keys never stand in one."""
    if not value.startswith(STORE):
        raise ValueError(
            "is an address; only files of this machine are read, Parquet files in an object store, as "
            "`s3://bucket/path/*.parquet`, and PostgreSQL, as `postgres:{{ env.NAME }}`: copy the files here first, or "
            "mount their store"
        )
    if not Source(value).is_object:
        raise ValueError(
            "must be Parquet files in an object store, as `s3://bucket/path/*.parquet`: the bucket's whole name, then "
            "a path without ? and \\ and without empty parts or dots alone; keys come from the environment"
        )


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


def server_of(address: str) -> str:
    """The server that a resolved address names, without its settings: `sc://host:port` or `session`.

    Raises:
        ValueError: for anything else, and for settings of a literal address that hold a secret.
    """
    if address == SESSION:
        return SESSION
    match, secret = _SPARK.fullmatch(address), isinstance(address, FromEnvironment)
    if match is None or len(address) > 4000:
        value = "what the variable holds" if secret else echo(address)
        raise ValueError(f"must be a server of Spark Connect, as sc://host:15002, or `session`, not {value}")
    if not secret and ";token=" in (match[3] or "").lower():
        raise ValueError("holds a token, which would stand in the ledger; set a variable, and write {{ env.NAME }}")
    return f"sc://{match[1].lower()}:{match[2] or USUAL_PORT}"


def _frame(value: str) -> Source:
    """A data frame that a Python program hands over, by the name that an operator allows."""
    if isinstance(value, FromEnvironment) or not _FRAME.fullmatch(value):
        raise ValueError(
            "is a data frame that a Python program hands over; name it `frame:NAME`, NAME of lower-case letters, "
            f"digits and _, beginning with a letter, at most 63 characters, not {echo(value)}"
        )
    return Source(value)


def format_of(address: str) -> Format:
    """The format of a checked source."""
    if address.startswith(FRAME):
        return "frame"
    return "postgres" if _SERVER.fullmatch(address) else FORMATS[ending_of(resolved_address(address)) or ""]


def resolved_address(address: str) -> str:
    """A checked source with `{{ env.X }}` resolved, never shown; other text as it is."""
    return address.resolved if isinstance(address, Source) else address


def absolute_pattern(address: str, base: Path) -> str:
    """Files, by name or glob, as an absolute glob; signs in the base folder's name are escaped."""
    pattern = resolved_address(address)
    return pattern if Path(pattern).is_absolute() else str(Path(glob.escape(str(base))) / pattern)


def ending_of(name: str) -> str | None:
    """The ending of a file's name that tells its format, in lower case; None for an unknown ending."""
    return next((ending for ending in sorted(FORMATS, key=len)[::-1] if name.casefold().endswith(ending)), None)


def remarks_of_letters(source: str | None, encoding: Encoding, domain: Domain) -> list[str]:
    """What to know of the encoding of CSV files; nothing unless a category has letters beyond ASCII."""
    if encoding != UTF_8 or source is None or FORMATS.get(ending_of(source) or "") != "csv":
        return []
    axes = [axis for axis in domain.axes if isinstance(axis, CategoricalAxis)]
    names = [axis.name for axis in axes if not all(value.isascii() for value in axis.values)]
    return [
        f"Categories of '{name}' have letters beyond ASCII. CSV is read as UTF-8: in a file in Latin-1 or Windows-1252 "
        "they are undeclared, and nothing but `dphist look` tells. Write `csv_encoding: windows-1252` for such a file."
        for name in names[:1]
    ]


# Not %z and %Z: they give a time with an offset, which is another kind.
_DIRECTIVE = re.compile(r"%(?:-[dmHIMSyj]|[YymdHIMSfpbBjaA%])")
LONGEST_FORMAT = 200


def is_time_format(text: str) -> bool:
    """Whether `try_strptime` takes a text as a format of dates or times without an offset; %% is a percent sign."""
    text = text.replace("%%", "")
    plain, directives = _DIRECTIVE.subn("", text)
    return directives > 0 and "%" not in plain and len(text) <= LONGEST_FORMAT


def date_format(value: str) -> str:
    """How dates are written, such as "%d/%m/%Y", as `try_strptime` takes it."""
    if not is_time_format(value) or not any(year in value.replace("%%", "") for year in ("%Y", "%y", "%-y")):
        raise ValueError(
            'must say how a date is written, as "%d/%m/%Y", of %Y %y %m %d %H %I %M %S %f %p %b %B %j %a %A and other '
            f"signs, with a year; not {echo(value)}"
        )
    return value


def format_of_text(value: str) -> str:
    """How dates in a column of text are written, as `date_format`; or `iso`, which is the default said aloud."""
    try:
        return value if value == ISO else date_format(value)
    except ValueError as error:
        problem = f"{error}; or iso, for dates such as 2026-03-02"
    raise ValueError(problem)


def undeclared_dates(field: str) -> str:
    """What is wrong with a column of text whose dates are written in nobody knows which way; `field` would say it."""
    return (
        f"is text, and the spec does not say how its dates are written. Write `{field}: iso`"
        f"{' beside `calendar`' if field == 'format' else ''} for ISO dates, as {AN_ISO_DATE} (the digest of the spec "
        f'stays), or `{field}: "%d.%m.%Y"` for dates written 14.09.2026. '
        "No record was read, and nothing was charged"
    )


def _usual_encoding(value: object) -> Encoding:
    """How CSV files are written, by a usual name of the encoding, such as cp1252 or Latin-1."""
    name = _PLAIN_NAMES.get(value.lower(), value.lower()) if isinstance(value, str) else value
    for encoding in ENCODINGS:
        if name == encoding:
            return encoding
    raise ValueError(f"must be one of {', '.join(ENCODINGS)}, not {echo(value)}")


def _apart(columns: tuple[str, ...]) -> tuple[str, ...]:
    mistakes: list[tuple[Location, str]] = []
    for number, column in enumerate(columns):
        if column == EVERY_ROW and len(columns) > 1:
            mistakes.append(((number,), "`row` means that every row is another person; leave it out beside columns"))
        elif "," in column:
            problem = "holds a comma, which separates names in the ledger; rename the column in `source_sql`"
            mistakes.append(((number,), problem))
        elif column in columns[:number]:
            mistakes.append(((number,), f"{echo(column)} is named twice; name it once"))
    if mistakes:
        raise MistakesError(mistakes)
    return columns


_UNIT_COLUMNS = checker(Annotated[tuple[Text, ...], AfterValidator(_apart), tuple_of(1, MOST_UNIT_COLUMNS)])


def privacy_unit(value: object) -> PrivacyUnit:
    """The column that names a person, several that do so together, or `row`."""
    unit = PrivacyUnit(_UNIT_COLUMNS(value) if isinstance(value, list | tuple) else (text(value),))
    if len(unit) > LONGEST_TEXT:
        raise ValueError(f"has names of more than {LONGEST_TEXT} characters together; rename columns in `source_sql`")
    return unit


TextFormat = Annotated[Text, AfterValidator(format_of_text)]
IN_DIGEST, LATER = spec_field(digest=True), spec_field(digest=True, later=True)


class RecordSource(BaseModel):
    """Where records are, how they are read, and whose they are: what a spec declares and an operator allows."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    source: Annotated[
        Source,
        BeforeValidator(source),
        spec_field(digest=True, description="Parquet or CSV files, such as data/admissions/*.parquet"),
    ]
    # One sign, of ASCII, that is no letter, digit, quote or backslash; or a tab.
    csv_delimiter: Annotated[
        str,
        Field(strict=True, pattern=r"^[\t !#-&(-/:-@\[\]-`{-~]$", description='one sign such as "," or ";" or "\\t"'),
        IN_DIGEST,
    ] = ","
    # Held as in digests: the quotation mark, nothing, or `all`.
    csv_quote: Annotated[
        str,
        Field(strict=True, pattern=f"^(rfc|none|{QUOTE_ALL}|[\"']?)$", description=_OF_QUOTES),
        AfterValidator(lambda word: QUOTES.get(word, word)),
        IN_DIGEST,
    ] = RFC
    csv_encoding: Annotated[
        Encoding, BeforeValidator(_usual_encoding), spec_field(digest=True, later=True, description=_OF_ENCODINGS)
    ] = UTF_8
    source_table: Annotated[Text | None, LATER] = None
    hive: Annotated[Flag, LATER] = False
    decimal_comma: Annotated[Flag, LATER] = False
    thousands: Annotated[
        Literal[".", ",", " ", "'"] | None,
        spec_field(digest=True, later=True, description="the sign between thousands of numbers in text"),
    ] = None
    privacy_unit: Annotated[
        PrivacyUnit,
        BeforeValidator(privacy_unit),
        spec_field(
            digest=True,
            description="the column that names a person, or `row` where every row is another person",
            examples=["patient_id"],
        ),
    ]
    # How text that names a person is brought into one form before it is compared, in this order.
    unit_normalise: Annotated[tuple[NormalForm, ...], tuple_of(), Field(examples=["[trim, lower]"]), LATER] = ()

    _base: Path = PrivateAttr(default_factory=Path.cwd)

    def model_post_init(self, context: Any) -> None:
        """Keeps the folder that relative paths start from, which is told beside the fields."""
        if context:
            self._base = context["base"]

    @field_validator("csv_quote", mode="before")
    @classmethod
    def _no_quotes_without_csv(cls, quote: object, info: ValidationInfo) -> object:
        """The digest of a spec without CSV stays as it was before `rfc` was the default."""
        without = "source" in info.data and format_of(info.data["source"]) != "csv"
        return "" if without and quote == RFC else quote

    @field_validator("source_table")
    @classmethod
    def _of_a_database(cls, table: str | None, info: ValidationInfo) -> str | None:
        if "source" in info.data:
            database = format_of(info.data["source"]) in ("duckdb", "postgres")
            if table is not None and not database:
                raise ValueError("has no use with files of records; remove it")
            if table is None and database:
                raise ValueError(
                    "is required with a database: the table with the records, as `schema.table` or `table`"
                )
        return table

    @field_validator("decimal_comma")
    @classmethod
    def _commas_do_not_part_fields(cls, comma: bool, info: ValidationInfo) -> bool:
        parted = (info.data.get("csv_delimiter"), info.data.get("csv_quote")) == (",", "")
        if comma and parted and "source" in info.data and format_of(info.data["source"]) == "csv":
            raise ValueError(
                'cannot be used where commas separate the fields: declare `csv_delimiter: ";"`, or `csv_quote: rfc`'
            )
        return comma

    @field_validator("thousands")
    @classmethod
    def _signs_of_numbers_differ(cls, sign: str | None, info: ValidationInfo) -> str | None:
        if sign in (".", ",") and (sign == ".") != info.data.get("decimal_comma", False):
            other = (
                "true`: decimals stand after a comma then" if sign == "." else "false`: decimals stand after a point"
            )
            raise ValueError(f"{sign!r} needs `decimal_comma: {other}")
        parted = (info.data.get("csv_delimiter"), info.data.get("csv_quote")) == (sign, "")
        if sign is not None and parted and "source" in info.data and format_of(info.data["source"]) == "csv":
            raise ValueError(f"cannot be {sign!r} where that separates the fields: declare `csv_quote`")
        return sign

    @field_validator("unit_normalise")
    @classmethod
    def _each_form_once(cls, forms: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if len(set(forms)) < len(forms):
            raise ValueError("names a form twice; name each once")
        if forms and info.data.get("privacy_unit") == EVERY_ROW:
            raise ValueError("has no use with `privacy_unit: row`; remove it")
        return forms

    @property
    def source_format(self) -> Format:
        """The format of the source, by its name."""
        return format_of(self.source)

    @property
    def has_files(self) -> bool:
        """Whether the source is of files of this machine."""
        return self.source_format not in ("postgres", "frame") and not self.source.in_store

    @property
    def base(self) -> Path:
        """The folder that relative paths start from."""
        return self._base

    @property
    def source_pattern(self) -> str:
        """The source as an absolute glob, of the files of all periods.

        Of a server, a frame or an object store what is written, and never its address.
        """
        return (
            absolute_pattern(as_glob(resolved_address(self.source)), self.base) if self.has_files else str(self.source)
        )

    @property
    def reading(self) -> Reading:
        """The reading that an operator would allow; the address as a spec or a command wrote it."""
        kind = self.source_format
        ways = {field.name: getattr(self, name) for name, field in OPTIONS.items()}
        folder, unit = self._source_folder, self.privacy_unit.columns
        return Reading(str(self.source), folder, kind, unit=unit, lines=kind == "csv", **ways)

    @property
    def _source_folder(self) -> str | None:
        """The folder that an address of files lies in, links followed; None for servers and object stores."""
        if not self.has_files:
            return None
        plain = Path(self.base, as_glob(self.source.resolved)).parent
        # The base's own name may hold signs of a glob; only the address's count.
        base = str(self.base)
        folders = [each for each in (plain, *plain.parents) if not glob.has_magic(str(each).removeprefix(base))]
        return os.path.realpath(folders[0])


def read_query(value: object, info: ValidationInfo) -> SqlFile:
    """The file of a query over the source; relative names start from the project's folder."""
    file = SqlFile(text(value))
    file.query = read_query_file(Path((info.context or {}).get("base") or ".") / file, str(file))
    return file


def remarks(query_file: SqlFile | None, trusted_sql: bool, account: str, unit: Collection[str]) -> list[str]:
    """What to know about the query of a spec, a sentence or two each.

    Args:
        trusted_sql: whether the spec has the field of this name, which grants nothing.
        unit: the columns that name a privacy unit.
    """
    sentences = []
    if trusted_sql:
        sentences.append(
            "`trusted_sql` grants nothing any more: an operator signs each query in the ledger. The field stays part "
            "of the digest; remove it with the next revision."
        )
    if query_file is not None:
        sentences.append(
            f"The privacy promise rests on {query_file}, and audit and card say so. An operator signs its text: "
            f"`dphist ledger allow {account} --query {shlex.quote(query_file)} --reason TEXT`."
        )
        if (instead := declared_instead(query_file.query.text, unit)) is not None:
            sentences.append(_in_its_place(query_file, instead))
    return sentences


def _in_its_place(query_file: str, instead: Instead) -> str:
    """A sentence on the declared columns that say the same as a query."""
    if not instead.lines:
        return f"{query_file} says nothing that the spec does not: leave `source_sql` out, and nobody signs anything."
    names = ", ".join(f"`{new}` for `{old}`" for old, new in instead.renamed.items())
    return (
        f"Without `source_sql` and a signature, these lines say the same as {query_file}, for dates and times without "
        f"an offset: `{instead.lines}`{f', with {names} in axes and `period_column`' if names else ''}."
    )
