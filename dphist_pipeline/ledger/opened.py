"""A ledger that was found intact, and all that can be read in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from operator import attrgetter
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.ledger._checkpoint import judged_books
from dphist_pipeline.ledger._replay import follow
from dphist_pipeline.ledger.books import Books
from dphist_pipeline.ledger.clock import refuse_before_build
from dphist_pipeline.ledger.database import ENTRIES, Database, Intent
from dphist_pipeline.ledger.decisions import EVERYWHERE, Decision
from dphist_pipeline.ledger.entries import Account, Charge, ChargeRequest, Entry, Look, Note, OfARelease, seal
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.limits import refuse_blank, text_of
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.ledger.witness import Standing, WitnessedCharge

_columns = ENTRIES.c


class OpenedLedger:
    """A ledger that was found intact. Holds no connection between calls, and keeps what it adds up to.

    What is asked, and whether an entry may be made, is told by that and by the entries made since, each judged as in a
    whole ledger. So an edit of an earlier entry, while a program runs, misleads nobody; it is found when the ledger is
    opened or verified next. One thread at a time.

    `id` is what a store remembers, to know its ledger again.
    """

    def __init__(self, file: Database, books: Books) -> None:
        assert books.last is not None  # a ledger begins with an entry
        self.id = books.ledger_id
        self._file = file
        self._seen = books.last
        self._known: Books | None = books

    @property
    def place(self) -> Path | str:
        """The path of its file, or the address of its server's database."""
        return self._file.place

    @property
    def url(self) -> sa.URL:
        """Its address, without a password."""
        return self._file.url

    def discard(self) -> None:
        """Takes a ledger away that was made a moment ago."""
        self._file.discard()

    def books(self) -> Books:
        """The books of all entries, as they are now; callers read them, and change nothing in them."""
        with self._file.transaction("read") as connection:
            return self._current_books(connection)

    def decisions(self, account: str) -> list[Decision]:
        """The decisions in force for an account, oldest first; for `EVERYWHERE`, the folders of code lists."""
        return self.books().permissions.of(account)

    def decisions_of(self, charge: Charge) -> list[Decision]:
        """The decisions that a charge rests on, though they may have been taken back since."""
        ever = self.books().permissions.ever
        return [ever[number] for number in charge.allowed]

    def sources(self) -> list[Decision]:
        """Every source that any account may read, or that waits for a second signature."""
        return self.books().permissions.sources()

    def decisions_for(self, request: ChargeRequest) -> tuple[Decision, ...]:
        """The decisions that let a release read what it asks for, as they stand now.

        Raises:
            LedgerError: `not_allowed`, naming what differs, and the command that would allow it.
        """
        return self.books().permissions.decisions_for(request)

    def looks(self, account: str) -> list[Look]:
        """Every time that an operator saw exact numbers about an account's records, oldest first."""
        return [look for look in self.books().looks if look.account == account]

    def operators(self) -> dict[str, str]:
        """Names of operators by their public keys."""
        return dict(self.books().permissions.operators)

    def standing(self) -> Standing:
        """The store's generation and every charge, as the witness holds them."""
        books = self.books()
        # Two copies of the store may have charged one period; the witness holds the charge that stands.
        charges = [
            charge
            for charge in books.every_charge()
            if charge is books.revisions(charge.release, charge.period)[charge.revision]
        ]
        fields_of = attrgetter(*WitnessedCharge.__dataclass_fields__)
        return Standing(
            books.generation, books.started_by, tuple(WitnessedCharge(*fields_of(charge)) for charge in charges)
        )

    def head(self) -> tuple[int, int, str]:
        """The store's generation, which is 1 until it is adopted, and number and hash of the latest entry."""
        books = self.books()
        last = books.last or self._seen
        return books.generation, last.number, last.hash

    def adopted_at(self) -> int:
        """The number of the entry that began this generation; 0 for the first: charges before it are never drawn."""
        return self.books().adopted_at

    def waiting(self, number: int) -> Entry | None:
        """The decision of that number, if it waits for a second signature."""
        return self.books().permissions.waiting.get(number)

    def accounts(self) -> list[Account]:
        """All accounts with their totals as they are now, in the order they were opened."""
        return list(self.books().accounts.values())

    def account(self, name: str) -> Account:
        """One account with its total as it is now."""
        return self.books().account(text_of("account", name))

    def charges(self, release: str, period: str) -> list[Charge]:
        """The charges of a release and period, by revision."""
        return [charge for _, charge in sorted(self.books().revisions(release, period).items())]

    def published_digest(self, charge: Charge) -> str | None:
        """The digest of the values that were published for a charge, None before they were."""
        return self._of_charge(charge).published.get(charge.number)

    def notes(self, charge: Charge) -> dict[str, Note]:
        """The notes about a charge, by kind."""
        return self._of_charge(charge).notes.get(charge.number, {})

    def entries(self) -> list[Entry]:
        """Every entry, in order, as it is; `verify` tells whether they hold together."""
        with self._file.transaction("read") as connection:
            return list(all_entries(connection))

    def verify(self) -> int:
        """Reads the whole ledger again and checks every hash and every rule; gives the number of entries."""
        books = verify_whole(self._file, whole=True)
        if books.ledger_id != self.id:
            raise LedgerError("ledger_foreign", where=self._file.where, found=books.ledger_id, expected=self.id)
        self.require([("the ledger as this program opened it", self._seen.number, self._seen.hash)])
        return books.last.number if books.last else 0

    def holds(self, number: int, entry_hash: str) -> bool:
        """Whether the entry of that number has that hash."""
        with self._file.transaction("read") as connection:
            self._current_books(connection)  # refuses a ledger that was exchanged
            return connection.execute(sa.select(_columns.hash).where(_columns.number == number)).scalar() == entry_hash

    def require(self, witnesses: Iterable[tuple[str, int, str]], carried: Collection[str] = ()) -> None:
        """Refuses a ledger that lacks an entry which a published audit names.

        witnesses: (where it is named, for the message; number from 1; hash in hex) of each entry.
        """
        with self._file.transaction("read") as connection:
            rows = connection.execute(sa.select(_columns.number, _columns.hash))
            hashes = {row.number: row.hash for row in rows}
            hashes_known = self._current_books(connection).carried.union(carried)
        for seen_in, number, of in witnesses:
            if hashes.get(number) != of and of not in hashes_known:
                raise self._outdated_error(seen_in, number)

    def _of_charge(self, charge: Charge) -> Books:
        """The same, which must hold the charge."""
        books = self.books()
        self._refuse_unknown_charge(books, charge)
        return books

    @contextmanager
    def _writing(self, intent: Intent = "write") -> Iterator[Writing]:
        """A transaction that may add entries, judged by the books of the whole ledger."""
        with self._file.transaction(intent) as connection:
            books = self._current_books(connection)
            books.refuse_moved(self._file.engine)
            last = books.last
            try:
                yield Writing(connection, books, present())
            finally:
                if books.last is not last:  # an entry was posted to them that may never be committed
                    self._known = None

    def _current_books(self, connection: sa.Connection) -> Books:
        """The books of the whole ledger: those that are known, and the entries made since."""
        books = self._known
        last = (books.last if books else None) or self._seen
        entries = all_entries(connection, last.number - 1)  # one question: a server takes its time for each
        first_entry = next(entries, None)
        if first_entry is None or first_entry.hash != last.hash:
            raise self._outdated_error("this program, which opened it a moment ago,", last.number)
        self._known = None  # until the entries since are found to be intact
        if books is None:
            books = judged_books(self._file.where, connection)
        else:
            follow(books, entries)
        self._known = books
        return books

    def _refuse_unknown_charge(self, books: Books, charge: Charge) -> None:
        ledger_charge = books.revisions(charge.release, charge.period).get(charge.revision)
        if ledger_charge != charge:
            raise self._outdated_error("the charge to be published", charge.number)

    def _outdated_error(self, seen_in: str, number: int) -> LedgerError:
        return LedgerError("ledger_outdated", where=self._file.where, seen_in=seen_in, number=number)


def utc_now() -> str:
    """The time now, to the second: '2026-11-02T06:00:00Z'."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def present() -> str:
    """The time now, by a clock that may date an entry: not from before this version was built."""
    now = utc_now()
    refuse_before_build(now)
    return now


def verify_whole(file: Database, whole: bool = False) -> Books:
    """The books of a whole ledger, whose tables, hashes, signatures and rules were all checked: see `_checkpoint`.

    `whole`: every entry is judged again, whatever this user's note says.

    Raises:
        LedgerError: `ledger_missing`; `ledger_altered`, an entry breaks a rule, or the tables lack their triggers.
    """
    file.require_there()
    with file.transaction("read") as connection:
        file.verify_tables(connection)
        return judged_books(file.where, connection, whole)


def all_entries(connection: sa.Connection, after: int = 0) -> Iterator[Entry]:
    """Every entry, in order, or those after the number of one; rows are read as entries are taken.

    After 0 comes every entry, even one with a false number.
    """
    # Not `number > 0` for all of them: a false entry may have any number.
    rows = sa.select(*_columns).where(_columns.number > after) if after else sa.select(*_columns)
    for row in connection.execute(rows.order_by(_columns.number)):
        yield Entry(*row)


@dataclass(frozen=True)
class Writing:
    """A transaction that may add entries, the books that they are judged by, and the time."""

    connection: sa.Connection
    books: Books
    now: str

    def append(
        self,
        kind: str,
        facts: Mapping[str, Any],
        account: str | None = None,
        of: OfARelease | None = None,
        operator: Operator | None = None,
    ) -> Entry:
        """Writes the next entry, chained to the last, and signed by an operator where one decides."""
        for text in (facts.get("reason", ""), facts.get("text", "")):
            refuse_blank(f"What is entered as '{kind}'", text)
        last = self.books.last
        entry = Entry(
            number=last.number + 1 if last else 1,
            kind=kind,
            account=account,
            release=of.release if of else None,
            period=of.period if of else None,
            revision=of.revision if of else None,
            body=canonical_json({**facts, "year": self.books.year_at(self.now, kind, "waits" in facts)}),
            previous_hash=last.hash if last else None,
            made_at=self.now,
            hash="",
        )
        if operator is not None:
            entry = operator.with_signature(entry)
        entry = replace(entry, hash=seal(entry))
        self.connection.execute(sa.insert(ENTRIES).values(**vars(entry)))
        return entry

    def decide(self, kind: str, account: str, facts: Mapping[str, Any], operator: Operator | None) -> Entry:
        """Enters a decision, signed; a ledger that knows no operator yet learns of this one first."""
        operators = self.books.permissions.operators
        if operator is not None and not operators:
            self._post(self.append("keyed", {"operator": operator.facts()}, EVERYWHERE, operator=operator))
        if operators and (operator is None or operator.public not in operators):
            raise LedgerError("key_foreign", operators=", ".join(operators.values()))
        facts = {**facts, **self.books.permissions.marks(kind, account, facts)}
        return self._post(self.append(kind, facts, account, operator=operator))

    def list_waiting(self, operator: Operator | None) -> list[int] | None:
        """Enters which decisions of earlier versions wait, and gives their numbers; None where there is nothing to say.

        An empty list is entered, too: a server charges nothing before it.
        """
        if not self.books.permissions.lacks_list_of_waiting:
            return None
        numbers = self.books.permissions.waiting_before_lists()
        self.decide("listed", EVERYWHERE, {"waiting": numbers}, operator)
        return numbers

    def _post(self, entry: Entry) -> Entry:
        self.books.post(entry, entry.facts)
        return entry
