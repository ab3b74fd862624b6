"""How records are read: one description, which specs declare, operators allow, the ledger holds, readers obey.

A new way of reading is a field here, with its option and its words; a field of `spec.sources.RecordSource`, which
checks what is written; and what it does in `confidential/reading`. Entries of the ledger hold these fields by name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal, get_args

Encoding = Literal["utf-8", "windows-1252", "latin-1"]  # of CSV files
UTF_8: Encoding = "utf-8"
ENCODINGS: tuple[Encoding, ...] = get_args(Encoding)
QUOTE_ALL = "all"  # in the place of a quotation mark: every field is quoted
RFC = "rfc"
QUOTES = {RFC: '"', "none": ""}  # by what specs write, as digests and decisions hold it
# A sign of a glob, or a placeholder; doubled braces belong to `{{ env.X }}`.
_OPEN = re.compile(r"[*?[]|(?<!\{)\{[a-z]+\}(?!\})")
_TABS = {"\t": "tabs"}
LINE_BY_LINE = """
- Quotes are read: `csv_quote: rfc` is the default. Take `all` if every field is quoted, and `none` if none ever is.
- A line with another number of fields than the header, or with a quote out of place, is in no number: nobody's row.
- Text of several lines is cut into lines, and one within it may count as somebody's row. Only `all` rules that out.
"""


def quote_in_words(quote: str) -> str:
    """A way of quoting as specs write it, of the form that digests hold."""
    return next((word for word, held in QUOTES.items() if held == quote), quote)


def _way(
    words: Callable[[Any], str],
    option: str = "",
    help: tuple[str, str] = ("", ""),  # noqa: A002 - as click calls it
    of_csv: bool = False,
    later: bool = False,
    written: Callable[[Any], str] | None = None,
) -> dict[str, Any]:
    """How specs, options and operators' texts show a field of a reading.

    Args:
        words: what an operator reads before she signs; empty where there is nothing to say.
        option: its field in specs, and, with dashes, its option of `dphist ledger open` and `allow`; empty for what
            follows from others.
        help: the option's metavar and what it says.
        of_csv: whether it is of CSV files alone.
        later: whether entries hold it only where it is not the default, as those do that are older than the field.
        written: how specs and options write a value, where that is not as it is held.
    """
    return {"words": words, "option": option, "help": help, "of_csv": of_csv, "later": later, "written": written}


@dataclass(frozen=True)
class Reading:
    """Where records are and how they are read: all that says what a row is, and whose."""

    address: str  # files, a server or an object store, as a spec writes it; `{{ env.X }}` stays as written
    # What the address's folder resolves to, links followed; None for servers, object stores and studies.
    folder: str | None
    format: str  # parquet, csv, duckdb, postgres or frame
    table: str | None = field(
        default=None,
        metadata=_way(
            lambda table: f"table {table}" if table is not None else "",
            "source_table",
            ("TABLE", "The table of a database that holds the records."),
        ),
    )
    csv_delimiter: str = field(
        default=",",
        metadata=_way(
            lambda sign: f"CSV with {_TABS.get(sign, sign)} between fields",
            "csv_delimiter",
            ("SIGN", "The sign between fields of CSV."),
            of_csv=True,
        ),
    )
    # Around some fields; empty for none; `all` where every field is quoted.
    csv_quote: str = field(
        default='"',
        metadata=_way(
            lambda sign: {"": "no field quoted", QUOTE_ALL: "every field quoted"}.get(
                sign, f"{sign} around some fields"
            ),
            "csv_quote",
            ("HOW", "Quotes in CSV: rfc (where a field needs them), none, or all."),
            of_csv=True,
            written=quote_in_words,
        ),
    )
    csv_encoding: Encoding = field(
        default=UTF_8,
        metadata=_way(
            lambda name: f"written in {name}" if name != UTF_8 else "",
            "csv_encoding",
            ("NAME", "How CSV is encoded: utf-8, windows-1252 or latin-1."),
            of_csv=True,
            later=True,
        ),
    )
    hive: bool = field(
        default=False,
        metadata=_way(
            lambda hive: "columns of folders called column=value" if hive else "",
            "hive",
            ("", "Folders called `column=value` give columns."),
        ),
    )
    decimal_comma: bool = field(
        default=False,
        metadata=_way(
            lambda comma: "numbers written 3,5" if comma else "", "decimal_comma", ("", "Numbers are written 3,5.")
        ),
    )
    thousands: str | None = field(
        default=None,
        metadata=_way(
            lambda sign: f"{sign!r} between thousands" if sign else "",
            "thousands",
            ("SIGN", "The sign between thousands of numbers: . , ' or a space."),
            later=True,
        ),
    )
    unit: tuple[str, ...] = ("row",)  # the columns that name a privacy unit, or `row`
    # What those columns hold (text, whole number, …), or nothing where any kind serves.
    unit_kinds: tuple[str, ...] = field(
        default=(), metadata=_way(lambda kinds: f"units named by {', '.join(kinds)}" if kinds else "")
    )
    unit_normalise: tuple[str, ...] = field(
        default=(),
        metadata=_way(
            lambda forms: f"names of units compared after {', '.join(forms)}" if forms else "",
            "unit_normalise",
            ("FORMS", "How names of units are made alike: trim_all,fold,number."),
        ),
    )
    # Whether a CSV is read line by line, as from 0.3.0 on.
    lines: bool = field(
        default=False, metadata=_way(lambda lines: "each line alone" if lines else "", of_csv=True, later=True)
    )

    def facts(self) -> dict[str, Any]:
        """As an entry holds it."""
        held = {each.name: each for each in fields(self)}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
            if not held[name].metadata.get("later") or value != held[name].default
        }

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Reading:
        """What `facts` wrote; a ValueError for anything else."""
        read: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()
        }
        reading = cls(**read)
        if reading.facts() != dict(facts) or not all(map(_is_plain, vars(reading).values())):
            raise ValueError("not a reading as the ledger writes it")
        return reading

    def same_records(self, other: Reading) -> bool:
        """Whether two readings are of the same files or table, however they are read."""
        return (self.folder, self.name, self.table) == (other.folder, other.name, other.table)

    @property
    def name(self) -> str:
        """The address without its folder, which may be spelled in several ways: from the first glob or placeholder."""
        if self.folder is None:
            return self.address
        parts = self.address.split("/")
        first = next((number for number, part in enumerate(parts) if _OPEN.search(part)), len(parts) - 1)
        return "/".join(parts[first:])

    def differences(self, allowed: Reading) -> list[str]:
        """The fields in which this reading is not as allowed; `unit_kinds` is compared once the source is opened."""
        names = (each.name for each in fields(self) if each.name != "unit_kinds")
        return [name for name in names if getattr(self, name) != getattr(allowed, name)]

    def difference_in_words(self, name: str, allowed: Reading) -> str:
        """How a field is not as allowed. No folder is shown: the environment may have given it."""
        if name == "folder":
            return "folder has moved: a link or a variable leads elsewhere than when it was allowed"
        if name == "lines":
            before = "it was allowed as CSV was read before 0.3.0, and CSV is read otherwise now"
            return f"{before}:{LINE_BY_LINE}Allow it anew"
        written = next(each.metadata.get("written") for each in fields(self) if each.name == name) or _option_text
        return f"{name} is {written(getattr(allowed, name))} there, {written(getattr(self, name))} here"

    @property
    def options(self) -> str:
        """The options of `dphist ledger open` and `allow` that say how a source is read, quoted for a shell."""
        return " ".join([f"--source {shlex.quote(self.address)}", *self._ways()])

    def _ways(self) -> Iterator[str]:
        for name, each in OPTIONS.items():
            value, option = getattr(self, each.name), option_of(name)
            if value == each.default or (each.metadata["of_csv"] and self.format != "csv"):
                continue
            text = ",".join(value) if isinstance(value, tuple) else (each.metadata["written"] or str)(value)
            yield option if value is True else f"{option} {shlex.quote(text)}"

    @property
    def called(self) -> str:
        """The address, and the options that say how it is read: one file may be allowed in several ways."""
        before = " (as CSV was read before 0.3.0)" if self.format == "csv" and not self.lines else ""
        return " ".join([self.address, *self._ways()]) + before

    @property
    def in_words(self) -> str:
        """The source and how it is read, as an operator sees it before she signs."""
        place = f"{self.address} in {self.folder}" if self.folder is not None else self.address
        shown = [
            each for each in fields(self) if each.metadata and (self.format == "csv" or not each.metadata["of_csv"])
        ]
        words = (each.metadata["words"](getattr(self, each.name)) for each in shown)
        return "; ".join([place, *filter(None, words)])


# The fields that an option sets, by their name in specs.
OPTIONS: Mapping[str, Field[Any]] = {
    each.metadata["option"]: each for each in fields(Reading) if each.metadata.get("option")
}


def option_of(name: str) -> str:
    """The option of `dphist ledger open` and `allow` that is a spec's field of that name."""
    return f"--{name}".replace("_", "-")


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(part, str) and 0 < len(part) <= 4000 for part in value)
    return value is None or isinstance(value, bool) or (isinstance(value, str) and len(value) <= 4000)


def _option_text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if value not in (None, "") else "nothing"
