"""What a ledger holds: accounts, charges and the hash-chained entries they are written as."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal

from dphist_pipeline.base.canonical_json import sha256
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.ledger.individual import Granted

NoteKind = Literal["approved", "rejected", "withdrawn"]

SCHEMA_VERSION = 2
_EXACT = re.compile(r"(0|[1-9][0-9]{0,39})/([1-9][0-9]{0,39})")


@dataclass(frozen=True)
class Account:
    """An account: whose privacy is spent, in what terms, and how much of it in all (or each calendar year).

    `signatures`: how many operators must sign a decision about it, 1 or 2. `accounting`: `summed`, every charge counts
    against the total; `individual`, see `ledger.individual`. `left_out`: share of the total that is set aside for the
    numbers of units that are left out for the first time in a year; 0 for none.
    """

    name: str
    privacy_unit: str
    neighbours: str
    total: Fraction
    renews: Literal["yearly"] | None
    store_id: str
    signatures: int = 1
    accounting: Literal["summed", "individual"] = "summed"
    left_out: Fraction = Fraction(0)

    @property
    def is_individual(self) -> bool:
        """Whether each unit pays for its own rows."""
        return self.accounting == "individual"


@dataclass(frozen=True)
class Folder:
    """A confidential folder: the random id that is kept in it, and what its machine was called."""

    id: str
    host: str


class OfARelease:
    """The names that say which revision of a release's period something belongs to."""

    release: str
    period: str
    revision: int

    @property
    def title(self) -> str:
        """'weekly, period 2026-03-02, revision 1'."""
        return f"{self.release}, period {self.period}, revision {self.revision}"


@dataclass(frozen=True)
class ChargeRequest(OfARelease):
    """A request to charge one release of one period, and the terms it believes its account to have."""

    account: str
    release: str
    period: str
    revision: int
    epsilon: Fraction
    digest: str
    reason: str
    privacy_unit: str
    neighbours: str
    store_id: str
    held: bool = False  # whether a person must approve its publication
    upstream_checked: str = ""  # why a person vouches for what the records come from, which nothing checked
    source: Reading | None = None  # what it would read, and how; None only in a ledger that knows no operator
    query: str | None = None  # SHA-256 of its query's file, which an operator signs
    query_name: str = ""  # that file as written
    engine: str = "duckdb"  # that would count; any other one needs a decision
    versions: tuple[str, ...] = ()  # of engines, `duckdb=2.1`, with which the suite did not pass: need a decision, too
    checks: tuple[str, ...] = ()  # of upstream assets, which hold it back where they fail: each needs a decision
    folder: Folder | None = None  # in which it would be drawn
    days: int | None = None  # length of its period; None without periods
    rows: int = 0  # R, the most rows of a unit that it counts
    quality: bool = False  # whether it asks for a quality table
    granted: Granted | None = None  # in an individual account, once its rows were filtered


@dataclass(frozen=True)
class Charge(OfARelease):
    """A charge as it stands in the ledger: `number` and `hash` are those of its entry, `held` as it was asked for."""

    number: int
    hash: str
    account: str
    release: str
    period: str
    revision: int
    epsilon: Fraction
    digest: str
    reason: str
    charged_at: str
    held: bool = False
    upstream_checked: str = ""  # as it was asked for
    # Numbers of the decisions that let it read what it read; none before decisions were made.
    allowed: tuple[int, ...] = ()
    # Whether it is known from the witness alone: the ledger that held it is gone, and it is never drawn again.
    lost: bool = False
    year: int = 0  # in which it counts
    folder: Folder | None = None  # the only one that draws for it; earlier versions named none
    granted: Granted | None = None  # in an individual account


@dataclass(frozen=True)
class Note:
    """A note on a charge: it is approved, rejected or withdrawn."""

    kind: NoteKind
    text: str  # who approves, or why it is rejected or withdrawn
    made_at: str  # when
    number: int  # of its entry
    hash: str  # of its entry


@dataclass(frozen=True)
class Look:
    """An operator saw exact numbers about the records of an account; the ledger holds none of these numbers."""

    account: str
    release: str
    period: str
    spec: str  # digest of the spec that said how they were read
    reason: str  # empty before the first charge of the account
    by: str  # name of the operator who signed
    made_at: str  # when
    number: int  # of its entry
    hash: str  # of its entry


@dataclass(frozen=True)
class Entry:
    """One row of the ledger. `hash` seals all the other fields, the previous entry's hash among them.

    `body` is canonical JSON. Its `year` is that of the clock, but never before the previous entry's:
    a clock that is set back cannot renew an account twice.
    """

    number: int
    kind: str
    account: str | None
    release: str | None
    period: str | None
    revision: int | None
    body: str
    previous_hash: str | None
    made_at: str
    hash: str

    @property
    def facts(self) -> dict[str, Any]:
        """The body, read."""
        read: dict[str, Any] = json.loads(self.body)
        return read


def seal(entry: Entry) -> str:
    """The hash that an entry must carry: SHA-256, in hex, over the canonical JSON of all its other fields."""
    fields = vars(entry).copy()
    del fields["hash"]
    return sha256(fields)


def charge_of(entry: Entry, facts: Mapping[str, Any]) -> Charge:
    """The charge that an entry of kind 'charged' states, with its facts.

    Raises:
        ValueError: the entry names no account or release, or its epsilon is not text for `read_exact`.
    """
    if entry.account is None or entry.release is None or entry.period is None or entry.revision is None:
        raise ValueError("a charge without its key")
    return Charge(
        *(entry.number, entry.hash, entry.account, entry.release, entry.period, entry.revision),
        epsilon=read_exact(facts["epsilon"]),
        digest=facts["digest"],
        reason=facts["reason"],
        charged_at=entry.made_at,
        held=facts.get("held", False),
        upstream_checked=facts.get("upstream_checked", ""),
        allowed=tuple(facts.get("allowed", ())),
        year=facts["year"],
        folder=Folder(**facts["folder"]) if "folder" in facts else None,
        granted=_grant_of(facts) if "granted" in facts else None,
    )


def _grant_of(facts: Mapping[str, Any]) -> Granted:
    stated = facts["granted"]
    amounts = {name: read_exact(stated[name]) for name in ("everybody", "left_out") if name in stated}
    return Granted(**{**stated, **amounts}, year=facts["year"])


def lost_charge(facts: Mapping[str, Any]) -> Charge:
    """A charge that an adoption carries over from the witness; `facts` are the fields of a `WitnessedCharge`."""
    return Charge(
        **{name: facts[name] for name in ("number", "hash", "account", "release", "period", "revision")},
        epsilon=read_exact(facts["epsilon"]),
        digest="",
        reason="charged before this store was adopted",
        charged_at=str(facts["year"]),
        lost=True,
        year=facts["year"],
    )


def note_of(entry: Entry) -> Note:
    """The note that an entry states."""
    kind: Any = entry.kind
    return Note(kind, entry.facts["text"], entry.made_at, entry.number, entry.hash)


def exact_text(amount: Fraction) -> str:
    """A fraction as entries spell it: '1/2', '26/1'."""
    return f"{amount.numerator}/{amount.denominator}"


@lru_cache
def read_exact(text: str) -> Fraction:
    """The fraction that `exact_text` wrote: at least 0, in lowest terms, at most 40 digits each.

    Raises:
        ValueError: any other spelling.
    """
    match = _EXACT.fullmatch(text)
    amount = Fraction(int(match[1]), int(match[2])) if match else None
    if amount is None or exact_text(amount) != text:
        raise ValueError("not a fraction as the ledger writes it")
    return amount
