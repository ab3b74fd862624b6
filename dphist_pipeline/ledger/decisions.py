"""What operators allow: a source with the way it is read, a query by its digest, an engine, folders of code lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from dphist_pipeline.base.reading import Reading

DecisionKind = Literal["source", "query", "engine", "code_lists", "clock", "version", "check", "waiver"]
NAMED = frozenset({"engine", "clock", "version", "check", "waiver"})  # of which the name says what is allowed
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
class Decision:
    """Something that an operator allowed, and that holds until it is disallowed."""

    account: str  # whose releases it is about; `EVERYWHERE` for folders of code lists
    kind: DecisionKind
    name: str  # what people call it: the address, the query's file, the folder as written, the day …
    reading: Reading | None = None
    query: str | None = None  # SHA-256 of a query's file, in hex
    # Whether an item of the query that raises is null; else, as in decisions of before, the release fails.
    tries: bool = False
    server: str | None = None  # of Spark, which `name` stood for: host and port, and no settings, which may be secret
    folder: str | None = None  # of code lists, links followed
    also_of: tuple[str, ...] = ()  # other accounts that the source belongs to
    reason: str = ""  # required for a query
    by: tuple[str, ...] = ()  # names of the operators who signed
    number: int = 0  # of its entry, like the two below
    hash: str = ""
    made_at: str = ""
