"""The ledger: who spent how much epsilon, kept for good, so that nothing is ever spent twice or beyond.

Append-only and hash-chained. A charge is one entry, checked and made in one transaction that is alone from
its first statement; a database constraint, not only the check, keeps it unique. Whoever finds it there joins.

Guards against: races, retries, crashes, edits by hand; a missing, foreign, or (by `require`) older ledger.
Not against: somebody who can write the file and rewrites the whole chain together with every audit.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dphist_pipeline.canonical_json import canonical_json
from dphist_pipeline.ledger.books import Books
from dphist_pipeline.ledger.decisions import EVERYWHERE, Decision, SourceReading
from dphist_pipeline.ledger.entries import (
    SCHEMA_VERSION,
    Account,
    Charge,
    ChargeRequest,
    Entry,
    Note,
    NoteKind,
    Statement,
    as_text,
    charge_of,
    exact_text,
    seal,
)
from dphist_pipeline.ledger.errors import (
    AccountDisagrees,
    AccountExists,
    AlreadyCharged,
    KeyForeign,
    LedgerAltered,
    LedgerBusy,
    LedgerError,
    LedgerExists,
    LedgerForeign,
    LedgerMissing,
    LedgerOutdated,
    LedgerReadOnly,
    LedgerUnusable,
    LedgerUrlRefused,
    NotedOtherwise,
    NotRecordable,
    Overspend,
    PublishedAlready,
    PublishedDiffers,
    ReasonMissing,
    Rejected,
    RevisionSkipped,
    TotalNotLarger,
    UnknownAccount,
)
from dphist_pipeline.ledger.limits import (
    refuse_bad_account,
    refuse_bad_digest,
    refuse_bad_request,
    refuse_no_reason,
    text_of,
)
from dphist_pipeline.ledger.permissions import DECISIONS
from dphist_pipeline.ledger.replay import gather, replay
from dphist_pipeline.ledger.signing import Operator, is_public_key
from dphist_pipeline.ledger.tables import ENTRIES, SqliteFile
from dphist_pipeline.ledger.witness import WitnessedCharge

__all__ = [
    "Account",
    "AccountDisagrees",
    "AccountExists",
    "AlreadyCharged",
    "Charge",
    "ChargeRequest",
    "Entry",
    "Ledger",
    "LedgerAltered",
    "LedgerBusy",
    "LedgerError",
    "LedgerExists",
    "LedgerForeign",
    "LedgerMissing",
    "LedgerOutdated",
    "LedgerReadOnly",
    "LedgerUnusable",
    "LedgerUrlRefused",
    "NotRecordable",
    "Note",
    "NotedOtherwise",
    "Overspend",
    "PublishedAlready",
    "PublishedDiffers",
    "ReasonMissing",
    "Rejected",
    "RevisionSkipped",
    "Statement",
    "TotalNotLarger",
    "UnknownAccount",
    "as_text",
]

_columns = ENTRIES.c


class Ledger:
    """A ledger that was found intact; made by `create` or `open`.

    Holds no connection between calls. `id` is what a store remembers, to know its ledger again.
    """

    def __init__(self, file: SqliteFile, books: Books) -> None:
        if books.last is None:
            raise ValueError("a ledger begins with an entry")
        self.id = books.ledger_id
        self._file = file
        self._seen = books.last

    @classmethod
    def create(cls, url: str | sa.URL, operator: Operator | None = None) -> Ledger:
        """Makes a new ledger, readable by its owner alone, with a random id; never over anything.

        Args:
            url: where.
            operator: whose signature decisions need from then on. Without one it is as ledgers were before there were
                operators: nothing can be released by it until somebody decides.
        """
        file = SqliteFile.at(url)
        with file.creation() as draft, draft.transaction("write") as connection:
            draft.create_tables(connection)
            facts: dict[str, Any] = {"ledger": secrets.token_hex(16), "schema_version": SCHEMA_VERSION}
            facts |= {"operator": _facts_of(operator)} if operator is not None else {"schema_version": 1}
            _append(connection, Books(draft.where), utc_now(), "created", facts, operator=operator)
        return cls(file, _verified(file))

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    @classmethod
    def open(cls, url: str | sa.URL, expected_id: str) -> Ledger:
        """Opens a ledger, verifying all of it; refuses a missing, altered or foreign one, and makes none."""
        file = SqliteFile.at(url)
        books = _verified(file)
        if books.ledger_id != expected_id:
            raise LedgerForeign(file.where, books.ledger_id, expected_id)
        return cls(file, books)

    def open_account(
        self,
        account: Account,
        operator: Operator | None = None,
        source: SourceReading | None = None,
        also_of: Sequence[str] = (),
    ) -> None:
        """Opens an account: its terms are fixed from here on, only its total can be raised.

        Args:
            account: its terms.
            operator: who decides.
            source: that its releases may read, if it is known.
            also_of: other accounts that the source belongs to.
        """
        refuse_bad_account(account)
        facts = {
            "privacy_unit": account.privacy_unit,
            "neighbours": account.neighbours,
            "total": exact_text(account.total),
            "renews": account.renews,
            "store": account.store_id,
            **({"signatures": account.signatures} if account.signatures > 1 else {}),
        }
        with self._file.transaction("write") as connection:
            books = self._books(connection, account.name)
            books.judge_account(account)
            self._decide(connection, books, "opened", account.name, facts, operator)
            if source is not None:
                allowed = _allowance({"source": source.facts()}, "", also_of)
                books.permissions.judge_allowed(account.name, allowed)
                self._decide(connection, books, "allowed", account.name, allowed, operator)

    def raise_total(self, name: str, total: Fraction, reason: str, operator: Operator | None = None) -> None:
        """Gives an account a larger total, and writes down why."""
        text_of("account", name)
        with self._file.transaction("write") as connection:
            books = self._books(connection, name)
            books.judge_raise(name, total, reason)
            facts = {"total": exact_text(total), "reason": reason}
            self._decide(connection, books, "raised", name, facts, operator)

    def allow(
        self,
        account: str,
        what: dict[str, Any],
        operator: Operator | None,
        reason: str = "",
        also_of: Sequence[str] = (),
    ) -> Decision | None:
        """Allows a source, a query or a folder of code lists; the same again changes nothing.

        Args:
            account: whose releases may use it; `EVERYWHERE` for folders of code lists.
            what: {"source": facts of a SourceReading}, {"query": {"sha256", "name"}} or {"code_lists": {"folder",
                "name"}}.
            operator: who decides.
            reason: required for a query.
            also_of: other accounts that the source belongs to.

        Returns:
            The decision that is in force; None where it waits for a second signature.
        """
        facts = _allowance(what, reason, also_of)
        if reason or "query" in what:
            refuse_no_reason(f"Allowing what account '{account}' reads", reason)
        with self._file.transaction("write") as connection:
            books = self._books(connection, account)
            if account != EVERYWHERE:
                books.account(account)
            for other in also_of:
                books.account(other)
            there = books.permissions.judge_allowed(account, facts)
            if there is not None:
                return there
            entry = self._decide(connection, books, "allowed", account, facts, operator)
            return books.permissions.allowed.get(entry.number)

    def disallow(self, number: int, reason: str, operator: Operator | None) -> Decision:
        """Takes back what was allowed: nothing more is read or drawn by it, and what was released stays."""
        refuse_no_reason("Taking back a decision", reason)
        with self._file.transaction("write") as connection:
            made = next((entry for entry in _all(connection) if entry.number == number), None)
            books = self._books(connection, str(made.account) if made else EVERYWHERE)
            there = books.permissions.judge_disallowed(number, str(made.account) if made else EVERYWHERE)
            facts = {"decision": number, "reason": reason}
            self._decide(connection, books, "disallowed", there.account, facts, operator)
            return there

    def add_key(self, name: str, key: str, operator: Operator) -> None:
        """Lets another operator decide, too."""
        text_of("name of an operator", name, longest=60)
        if not is_public_key(key):
            raise NotRecordable("key", key, "the 64 hexadecimal digits that `dphist ledger key` shows")
        facts = {"operator": {"name": name, "key": key}}
        with self._file.transaction("write") as connection:
            books = self._books(connection, EVERYWHERE)
            books.permissions.judge_key(facts)
            self._decide(connection, books, "keyed", EVERYWHERE, facts, operator)

    def countersign(self, number: int, operator: Operator) -> None:
        """Gives the second signature of a decision that waits for it."""
        with self._file.transaction("write") as connection:
            made = next((entry for entry in _all(connection) if entry.number == number), None)
            account = str(made.account) if made else EVERYWHERE
            books = self._books(connection, account)
            books.permissions.judge_countersignature(number, operator.public)
            self._decide(connection, books, "countersigned", account, {"decision": number}, operator)

    def adopt(
        self,
        reason: str,
        carried: Sequence[WitnessedCharge],
        elsewhere: Mapping[str, Fraction],
        operator: Operator,
    ) -> tuple[int, str]:
        """Starts a new generation of a store whose ledger or witness went missing.

        Args:
            reason: why.
            carried: charges that the witness holds and this ledger does not: they count as spent.
            elsewhere: what was spent that neither holds, by account.
            operator: who decides.

        Returns:
            The generation, and the hash of the entry that started it.
        """
        with self._file.transaction("write") as connection:
            books = replay(self._file.where, _all(connection))
            facts = {
                "generation": books.generation + 1,
                "reason": reason,
                "carried": [{**vars(charge), "epsilon": exact_text(charge.epsilon)} for charge in carried],
                "elsewhere": {account: exact_text(epsilon) for account, epsilon in sorted(elsewhere.items())},
            }
            books.judge_adopted(facts)
            entry = self._decide(connection, books, "adopted", EVERYWHERE, facts, operator)
            return books.generation, entry.hash

    def decisions(self, account: str) -> list[Decision]:
        """What is allowed for an account now, oldest first; `EVERYWHERE`: folders of code lists."""
        with self._file.transaction("read") as connection:
            return gather(self._file.where, _some(connection, _columns.account == account)).permissions.of(account)

    def decisions_of(self, charge: Charge) -> list[Decision]:
        """The decisions that a charge rests on, though they may have been taken back since."""
        with self._file.transaction("read") as connection:
            found = _some(connection, sa.or_(_columns.number.in_(charge.allowed), _columns.kind == "countersigned"))
            books = gather(self._file.where, found)
        return [books.permissions.allowed[number] for number in charge.allowed]

    def sources(self) -> list[Decision]:
        """Every source that any account may read."""
        with self._file.transaction("read") as connection:
            books = gather(self._file.where, _some(connection, _columns.kind.in_(DECISIONS)))
        return [decision for decision in books.permissions.allowed.values() if decision.reading is not None]

    def allowed(self, request: ChargeRequest) -> tuple[Decision, ...]:
        """The decisions that let a release read what it asks for, as they stand now.

        Raises:
            NotAllowed: naming what differs, and the command that would allow it.
        """
        with self._file.transaction("read") as connection:
            books = gather(self._file.where, _some(connection, _columns.account == request.account))
        return books.permissions.required(request)

    def operators(self) -> dict[str, str]:
        """Names of operators by their public keys."""
        with self._file.transaction("read") as connection:
            return dict(gather(self._file.where, _some(connection, sa.false())).permissions.operators)

    def witnessed(self) -> tuple[int, str, list[WitnessedCharge]]:
        """The store's generation, the hash of the entry that began it, and every charge, for the witness."""
        with self._file.transaction("read") as connection:
            books = gather(self._file.where, _some(connection, _columns.kind == "charged"))
        shared = ("number", "hash", "account", "release", "period", "revision", "epsilon")
        made = [
            WitnessedCharge(**{name: getattr(charge, name) for name in shared}, year=year)
            for spent in books.spenders.values()
            for year, charge in spent
        ]
        return books.generation, books.started_by, sorted(made, key=lambda charge: charge.number)

    def adopted_at(self) -> int:
        """The number of the entry that began this generation; 0 for the first: charges before it are never drawn."""
        with self._file.transaction("read") as connection:
            return gather(self._file.where, _some(connection, sa.false())).adopted_at

    def accounts(self) -> list[Account]:
        """All accounts with their totals as they are now, in the order they were opened."""
        with self._file.transaction("read") as connection:
            return list(gather(self._file.where, _some(connection, _columns.kind == "raised")).accounts.values())

    def account(self, name: str) -> Account:
        """One account with its total as it is now."""
        text_of("account", name)
        with self._file.transaction("read") as connection:
            return gather(self._file.where, _some(connection, _columns.account == name)).account(name)

    def statement(self, name: str) -> Statement:
        """What an account holds, what was spent of it and by which charges, oldest first."""
        text_of("account", name)
        with self._file.transaction("read") as connection:
            books = gather(self._file.where, _some(connection, _columns.account == name))
            year = books.year_at(utc_now())
            others = gather(self._file.where, _some(connection, _columns.kind.in_(DECISIONS))).permissions.sharing(name)
            shared = []
            for other in others:
                of_other = gather(self._file.where, _some(connection, _columns.account == other))
                shared.append(of_other.statement(other, year))
            return replace(books.statement(name, year), shared=shared)

    def charges(self, release: str, period: str) -> list[Charge]:
        """What was charged for a release and period, by revision."""
        with self._file.transaction("read") as connection:
            books = gather(self._file.where, _some(connection, _of_period(release, period)))
        return [charge for _, charge in sorted(books.charges.get((release, period), {}).items())]

    def check(self, request: ChargeRequest) -> None:
        """Refuses early whatever `charge` would refuse, a ledger that cannot be written to among it."""
        refuse_bad_request(request)
        with self._file.transaction("rehearse") as connection:
            books = self._books(connection, request.account, request.release, request.period)
            books.judge_charge(request, books.year_at(utc_now()))

    def charge(self, request: ChargeRequest) -> Charge:
        """Charges a release's epsilon once and for good; joins the charge if this very one is there."""
        refuse_bad_request(request)
        with self._file.transaction("write") as connection:
            books = self._books(connection, request.account, request.release, request.period)
            now = utc_now()
            joined = books.judge_charge(request, books.year_at(now))
            if joined is not None:
                return joined
            facts = {
                "epsilon": exact_text(request.epsilon),
                "digest": request.digest,
                "reason": request.reason,
                **({"held": True} if request.held else {}),
            }
            allowed = [decision.number for decision in books.permissions.required(request)]
            # A number drawn at random: of two copies of a ledger, no two charges are the same entry.
            facts |= {"allowed": allowed, "nonce": secrets.token_hex(16)} if allowed else {}
            entry = _append(connection, books, now, "charged", facts, request.account, request)
            return charge_of(entry, entry.facts)

    def record_published(self, charge: Charge, values_digest: str) -> None:
        """Writes down which values a charge paid for; the same again does nothing, others are refused."""
        refuse_bad_digest(values_digest)
        with self._file.transaction("write") as connection:
            books = self._books(connection, charge.account, charge.release, charge.period)
            self._refuse_unknown_charge(books, charge)
            if not books.judge_published(charge, values_digest):
                facts = {"charge": charge.number, "digest": values_digest}
                _append(connection, books, utc_now(), "published", facts, charge.account, charge)

    def published_digest(self, charge: Charge) -> str | None:
        """The digest of the values that were published for a charge, None before they were."""
        with self._file.transaction("read") as connection:
            books = gather(self._file.where, _some(connection, _of_period(charge.release, charge.period)))
        self._refuse_unknown_charge(books, charge)
        return books.published.get(charge.number)

    def note(self, charge: Charge, kind: NoteKind, text: str) -> None:
        """Writes down who approves a charge's publication, or why it is rejected or withdrawn.

        The same again does nothing.
        """
        with self._file.transaction("write") as connection:
            books = self._books(connection, charge.account, charge.release, charge.period)
            self._refuse_unknown_charge(books, charge)
            if not books.judge_note(charge, kind, text):
                facts = {"charge": charge.number, "text": text}
                _append(connection, books, utc_now(), kind, facts, charge.account, charge)

    def notes(self, charge: Charge) -> dict[str, Note]:
        """What was said about a charge after it, by kind."""
        with self._file.transaction("read") as connection:
            books = gather(self._file.where, _some(connection, _of_period(charge.release, charge.period)))
        self._refuse_unknown_charge(books, charge)
        return books.notes.get(charge.number, {})

    def unpublished(self, release: str) -> list[Charge]:
        """What was charged for a release and is neither published nor rejected, by period and revision."""
        with self._file.transaction("read") as connection:
            return gather(self._file.where, _some(connection, _columns.release == release)).unpublished(release)

    def noted(self, kind: NoteKind) -> list[tuple[tuple[str, str, int], Note]]:
        """Every charge with a note of a kind, as (release, period, revision), and what was said."""
        with self._file.transaction("read") as connection:
            found = [entry for entry in _some(connection, _columns.kind == kind) if entry.kind == kind]
        return [
            (
                (str(entry.release), str(entry.period), int(entry.revision or 0)),
                Note(kind, entry.facts["text"], entry.made_at, entry.number),
            )
            for entry in found
        ]

    def hash_of(self, number: int) -> str:
        """The hash of an entry."""
        with self._file.transaction("read") as connection:
            return str(connection.execute(sa.select(_columns.hash).where(_columns.number == number)).scalar_one())

    def entries(self) -> list[Entry]:
        """Every entry, in order, as it is; `verify` tells whether they hold together."""
        with self._file.transaction("read") as connection:
            return list(_all(connection))

    def verify(self) -> int:
        """Reads the whole ledger again and checks every hash and every rule; gives the number of entries."""
        books = _verified(self._file)
        if books.ledger_id != self.id:
            raise LedgerForeign(self._file.where, books.ledger_id, self.id)
        self.require([("the ledger as this program opened it", self._seen.number, self._seen.hash)])
        return books.last.number if books.last else 0

    def require(self, witnesses: Iterable[tuple[str, int, str]]) -> None:
        """Refuses a ledger that lacks an entry which a published audit names: (where, number, hash)."""
        with self._file.transaction("read") as connection:
            rows = connection.execute(sa.select(_columns.number, _columns.hash))
            hashes = {row.number: row.hash for row in rows}
            carried = gather(self._file.where, _some(connection, sa.false())).carried
        for seen_in, number, of in witnesses:
            if hashes.get(number) != of and of not in carried:
                raise LedgerOutdated(self._file.where, seen_in, number)

    def close(self) -> None:
        """Ends the use of the ledger. Nothing is lost without it: no connection is kept anyway."""
        self._file.close()

    def _books(self, connection: sa.Connection, account: str, release: str = "", period: str = "") -> Books:
        """What a new entry for an account (and a release and period) is judged by."""
        seen = sa.select(_columns.hash).where(_columns.number == self._seen.number)
        if connection.execute(seen).scalar() != self._seen.hash:
            raise LedgerOutdated(self._file.where, "this program, which opened it a moment ago,", self._seen.number)
        which = sa.or_(_columns.account == account, _of_period(release, period))
        return gather(self._file.where, _some(connection, which))

    def _decide(
        self,
        connection: sa.Connection,
        books: Books,
        kind: str,
        account: str,
        facts: dict[str, Any],
        operator: Operator | None,
    ) -> Entry:
        """Enters a decision, signed; a ledger that knows no operator yet learns of this one first."""
        known = books.permissions.operators
        if operator is None and known:
            raise KeyForeign(known.values())
        now = utc_now()
        if operator is not None and not known:
            keyed = {"operator": _facts_of(operator)}
            first = _append(connection, books, now, "keyed", keyed, EVERYWHERE, operator=operator)
            books.post(first, first.facts)
        if operator is not None and operator.public not in known:
            raise KeyForeign(known.values())
        entry = _append(connection, books, now, kind, facts, account, operator=operator)
        books.post(entry, entry.facts)
        return entry

    def _refuse_unknown_charge(self, books: Books, charge: Charge) -> None:
        there = books.charges.get((charge.release, charge.period), {}).get(charge.revision)
        if there != charge:
            raise LedgerOutdated(self._file.where, "the charge to be published", charge.number)


def utc_now() -> str:
    """The time now, to the second: '2026-11-02T06:00:00Z'."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _verified(file: SqliteFile) -> Books:
    file.require_file()
    with file.transaction("read") as connection:
        file.verify_tables(connection)
        return replay(file.where, _all(connection))


def _all(connection: sa.Connection) -> Iterator[Entry]:
    for row in connection.execute(sa.select(*_columns).order_by(_columns.number)):
        yield Entry(*row)


def _some(connection: sa.Connection, which: sa.ColumnElement[bool]) -> Iterator[Entry]:
    """The entries asked for, every opening of an account, what is about the whole ledger, and the last, in order."""
    last = sa.select(sa.func.max(_columns.number)).scalar_subquery()
    general = sa.or_(_columns.kind.in_(("created", "opened")), _columns.account == EVERYWHERE)
    wanted = sa.or_(which, general, _columns.number == last)
    for row in connection.execute(sa.select(*_columns).where(wanted).order_by(_columns.number)):
        yield Entry(*row)


def _of_period(release: str, period: str) -> sa.ColumnElement[bool]:
    return sa.and_(_columns.release == release, _columns.period == period)


def _append(
    connection: sa.Connection,
    books: Books,
    made_at: str,
    kind: str,
    facts: dict[str, Any],
    account: str | None = None,
    key: Charge | ChargeRequest | None = None,
    operator: Operator | None = None,
) -> Entry:
    """Writes the next entry, chained to the last, and signed by an operator where one decides."""
    last = books.last
    unsealed = Entry(
        number=last.number + 1 if last else 1,
        kind=kind,
        account=account,
        release=key.release if key else None,
        period=key.period if key else None,
        revision=key.revision if key else None,
        body=canonical_json({**facts, "year": books.year_at(made_at)}),
        previous_hash=last.hash if last else None,
        made_at=made_at,
        hash="",
    )
    if operator is not None:
        unsealed = operator.signed(unsealed)
    entry = replace(unsealed, hash=seal(unsealed))
    connection.execute(sa.insert(ENTRIES).values(**vars(entry)))
    return entry


def _facts_of(operator: Operator) -> dict[str, str]:
    return {"name": operator.name, "key": operator.public}


def _allowance(what: dict[str, Any], reason: str, also_of: Sequence[str]) -> dict[str, Any]:
    return {**what, "reason": reason, **({"also_of": sorted(also_of)} if also_of else {})}
