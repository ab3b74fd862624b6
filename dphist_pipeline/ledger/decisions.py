"""What operators allow: a source with the way it is read, a query by its digest, an engine, folders of code lists."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

DecisionKind = Literal["source", "query", "engine", "code_lists", "clock", "version", "check", "waiver"]
NAMED = frozenset({"engine", "clock", "version", "check", "waiver"})  # of which the name says what is allowed
# A sign of a glob, or a placeholder; doubled braces belong to `{{ env.X }}`.
_OPEN = re.compile(r"[*?[]|(?<!\{)\{[a-z]+\}(?!\})")
# Decisions about the whole ledger stand under this name; no account can have it.
EVERYWHERE = "*"
# What is decided for all accounts, with the form of its name.
FOR_ALL = {
    "code_lists": re.compile(r".+", re.DOTALL),
    "clock": re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII),
    "version": re.compile(r"(?:duckdb|polars)=\d{1,9}\.\d{1,9}", re.ASCII),
    # A release and a period of it that never comes, so that nothing is due; `+` for all later ones, too.
    "waiver": re.compile(r"[a-z][a-z0-9_]{0,62}/\d{4}-\d{2}-\d{2}\+?", re.ASCII),
}


@dataclass(frozen=True)
class SourceReading:
    """Where records are and how they are read: all that says what a row is, and whose."""

    address: str  # files, a server or an object store, as a spec writes it; `{{ env.X }}` stays as written
    folder: str | None  # what the address's folder resolves to, links followed; None for servers and object stores
    format: str  # parquet, csv, duckdb or postgres
    table: str | None = None  # of a database
    csv_delimiter: str = ","  # between fields
    csv_quote: str = ""  # around some fields, nothing, or `all` where every field is quoted
    csv_encoding: str = "utf-8"  # of CSV; a later field, which entries hold where it is another
    hive: bool = False  # whether folders called `column=value` give columns
    decimal_comma: bool = False  # whether text numbers are written 3,5
    # The sign between thousands of text numbers; a later field, which entries hold where there is one.
    thousands: str | None = None
    unit: tuple[str, ...] = ("row",)  # the columns that name a privacy unit, or `row`
    # What those columns hold (text, whole number, …), or nothing where any kind serves.
    unit_kinds: tuple[str, ...] = ()
    unit_normalise: tuple[str, ...] = ()  # the forms that names of units are brought into before they are compared
    lines: bool = False  # whether a CSV is read line by line, as from 0.3.0 on; a later field, which such entries hold

    def facts(self) -> dict[str, Any]:
        """As an entry holds it."""
        facts = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        unsaid = {"csv_encoding": "utf-8", "lines": False, "thousands": None}
        return {name: value for name, value in facts.items() if name not in unsaid or value != unsaid[name]}

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> SourceReading:
        """What `facts` wrote; a ValueError for anything else."""
        read: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()
        }
        decision = cls(**read)
        if decision.facts() != dict(facts) or not all(
            _is_plain(getattr(decision, field.name)) for field in fields(cls)
        ):
            raise ValueError("not a reading as the ledger writes it")
        return decision

    def same_records(self, other: SourceReading) -> bool:
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

    def differences(self, allowed: SourceReading) -> list[str]:
        """The fields in which this reading is not as allowed; `unit_kinds` is compared once the source is opened."""
        names = (field.name for field in fields(self) if field.name != "unit_kinds")
        return [name for name in names if getattr(self, name) != getattr(allowed, name)]


@dataclass(frozen=True)
class Decision:
    """Something that an operator allowed, and that holds until it is disallowed."""

    account: str  # whose releases it is about; `EVERYWHERE` for folders of code lists
    kind: DecisionKind
    name: str  # what people call it: the address, the query's file, the folder as written, the day …
    reading: SourceReading | None = None
    query: str | None = None  # SHA-256 of a query's file, in hex
    server: str | None = None  # of Spark, which `name` stood for: host and port, and no settings, which may be secret
    folder: str | None = None  # of code lists, links followed
    also_of: tuple[str, ...] = ()  # other accounts that the source belongs to
    reason: str = ""  # required for a query
    by: tuple[str, ...] = ()  # names of the operators who signed
    number: int = 0  # of its entry, like the two below
    hash: str = ""
    made_at: str = ""


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(part, str) and 0 < len(part) <= 4000 for part in value)
    return value is None or isinstance(value, bool) or (isinstance(value, str) and len(value) <= 4000)
