"""The ledger: who spent how much epsilon, kept for good, so that nothing is spent twice or beyond a total.

Append-only and hash-chained. A charge is one entry, checked and made in one transaction that holds the write lock from
its first statement; a database constraint, not only the check, keeps it unique. A run that finds its charge there uses
it.

Guards against: races, retries, crashes, edits by hand; a missing, foreign, or (by `require`) older ledger.
Not against: somebody who can write the file and rewrites the whole chain together with every audit.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import sqlalchemy as sa

from dphist_pipeline.base.reading import Reading
from dphist_pipeline.ledger import opened
from dphist_pipeline.ledger.books import Books
from dphist_pipeline.ledger.decisions import EVERYWHERE, Decision
from dphist_pipeline.ledger.entries import (
    SCHEMA_VERSION,
    Account,
    Charge,
    ChargeRequest,
    Entry,
    Note,
    NoteKind,
    charge_of,
    exact_text,
)
from dphist_pipeline.ledger.errors import LedgerError, UnknownAccount, not_recordable
from dphist_pipeline.ledger.individual import Granted
from dphist_pipeline.ledger.limits import refuse_no_reason, text_of
from dphist_pipeline.ledger.opened import OpenedLedger, Writing, verify_whole
from dphist_pipeline.ledger.postgresql import ledger_database
from dphist_pipeline.ledger.signing import Operator, is_public_key
from dphist_pipeline.ledger.witness import WitnessedCharge

__all__ = ["Account", "Charge", "ChargeRequest", "Ledger", "Note", "UnknownAccount"]


class Ledger(OpenedLedger):
    """A ledger that was found intact; made by `create` or `open`."""

    @classmethod
    def create(cls, url: str | sa.URL, operator: Operator | None = None) -> Ledger:
        """Makes a new ledger, readable by its owner alone, with a random id; never replaces a file.

        Decisions need the signature of `operator` from then on; without one, as in earlier versions, the first decision
        names the operator.
        """
        file = ledger_database(url)
        with file.creation() as draft, draft.transaction("write") as connection:
            draft.create_tables(connection)
            facts: dict[str, Any] = {"ledger": secrets.token_hex(16), "schema_version": SCHEMA_VERSION}
            facts |= {"operator": operator.facts()} if operator is not None else {"schema_version": 1}
            writing = Writing(connection, Books(draft.where), opened.present())
            writing.append("created", facts, operator=operator)
        return cls(file, verify_whole(file))

    @classmethod
    def open(cls, url: str | sa.URL, expected_id: str | None = None) -> Ledger:
        """Opens a ledger, verifying all of it; refuses a missing, altered or foreign one, and makes none.

        Without an id, any ledger is taken: for a store that is only being made.
        """
        file = ledger_database(url)
        books = verify_whole(file)
        books.refuse_moved(file.engine)
        if expected_id not in (None, books.ledger_id):
            raise LedgerError("ledger_foreign", where=file.where, found=books.ledger_id, expected=expected_id)
        return cls(file, books)

    # Decisions: signed by operators, and not needed by a release run.

    def open_account(
        self,
        account: Account,
        operator: Operator | None = None,
        source: Reading | None = None,
        also_of: Sequence[str] = (),
    ) -> None:
        """Opens an account: its terms are fixed from here on, only its total can be raised.

        Its total is an exact epsilon, in all or for each calendar year. `also_of`: other accounts of the same source.
        """
        if account.is_individual and self._file.engine != "sqlite":
            raise LedgerError("individual_on_server", where=self._file.where)
        with self._writing() as writing:
            writing.books.judge_account(account)
            if account.is_individual and source is None:
                raise LedgerError("individual_needs", account=account.name, what="--source")
            facts = {
                "privacy_unit": account.privacy_unit,
                "neighbours": account.neighbours,
                "total": exact_text(account.total),
                "renews": account.renews,
                "store": account.store_id,
                **({"signatures": account.signatures} if account.signatures > 1 else {}),
                **({"accounting": account.accounting} if account.is_individual else {}),
                **({"left_out": exact_text(account.left_out)} if account.left_out else {}),
            }
            writing.decide("opened", account.name, facts, operator)
            if source is not None:
                allowance = _allowance({"source": source.facts()}, "", also_of)
                writing.books.permissions.judge_allowed(account.name, allowance, waiting=True)
                writing.decide("allowed", account.name, allowance, operator)

    def raise_total(self, name: str, total: Fraction, reason: str, operator: Operator | None = None) -> None:
        """Gives an account a larger total, an exact epsilon of at most 10^6; the reason has 1 to 2000 characters."""
        text_of("account", name)
        with self._writing() as writing:
            writing.books.judge_raise(name, total, reason)
            writing.decide("raised", name, {"total": exact_text(total), "reason": reason}, operator)

    def allow(
        self,
        account: str,
        what: dict[str, Any],
        operator: Operator | None,
        reason: str = "",
        also_of: Sequence[str] = (),
    ) -> Decision | None:
        """Allows a source, a query, an engine or a folder of code lists; the same again changes nothing.

        Args:
            account: whose releases may use it; `EVERYWHERE` for folders of code lists.
            what: {"source": facts of a Reading}, {"query": {"sha256", "name", "tries"}}, {"engine": {"server",
                "name"}}, {"code_lists": {"folder", "name"}}, or {KIND: {"name"}} for a clock, version, check or waiver.
            reason: required for a query, and for what is decided by its name alone.
            Gives the decision that is in force; None where it waits for a second signature.
        """
        facts = _allowance(what, reason, also_of)
        refuse_unexplained(account, what, reason)
        # Decisions of all accounts are read: the source may belong to another one.
        with self._writing() as writing:
            for name in also_of if account == EVERYWHERE else (account, *also_of):
                writing.books.account(name)
            decision = writing.books.permissions.judge_allowed(account, facts, waiting=True)
            if decision is not None:
                return decision
            entry = writing.decide("allowed", account, facts, operator)
            return writing.books.permissions.allowed.get(entry.number)

    def disallow(self, number: int, reason: str, operator: Operator | None) -> Decision:
        """Takes back what was allowed: nothing more is read or drawn by it, and what was released stays."""
        refuse_no_reason("Taking back a decision", reason)
        with self._writing() as writing:
            decision = writing.books.permissions.judge_disallowed(number)
            writing.decide("disallowed", decision.account, {"decision": number, "reason": reason}, operator)
            return decision

    def add_key(self, name: str, key: str, operator: Operator) -> int | None:
        """Lets another operator decide, too; gives the number of the entry where it waits for a second signature."""
        facts = {"operator": _operator(name, key)}
        with self._writing() as writing:
            writing.books.permissions.judge_key(facts)
            entry = writing.decide("keyed", EVERYWHERE, facts, operator)
            return entry.number if entry.number in writing.books.permissions.waiting else None

    def rotate_key(self, name: str, key: str, reason: str, operator: Operator) -> None:
        """Puts another key (64 hexadecimal digits) in the place of the one that signs this.

        The old key decides nothing from then on; what it signed stays in force.
        """
        facts = {"operator": _operator(name, key), "reason": reason}
        refuse_no_reason("A key that takes another's place", reason)
        with self._writing() as writing:
            writing.books.permissions.judge_key(facts)
            writing.decide("rotated", EVERYWHERE, facts, operator)

    def list_waiting(self, operator: Operator | None) -> list[int] | None:
        """Says which decisions of earlier versions wait for a second signature, be it none; gives their numbers.

        None where nothing is to say: no account asks for two signatures, or it was said already. It needs no key then.
        """
        with self._writing() as writing:
            return writing.list_waiting(operator)

    def countersign(self, number: int, operator: Operator) -> None:
        """Gives the second signature of a decision that waits for it."""
        with self._writing() as writing:
            first = writing.books.judge_countersignature(number, operator.public)
            writing.decide("countersigned", str(first.account), {"decision": number}, operator)

    def adopt(
        self,
        reason: str,
        carried: Sequence[WitnessedCharge],
        elsewhere: Mapping[str, Fraction],
        operator: Operator,
        denies: bool = False,
        generation: int | None = None,
    ) -> Entry:
        """Starts a later generation of a store whose ledger or witness went missing.

        Args:
            carried: charges that the witness holds and this ledger does not, which count as spent.
            elsewhere: exact epsilon, at least 0, that was spent and that neither holds, by account.
            denies: whether the witness holds what this ledger does not, or does not hold the store's generation. It
                waits for a second signature then, if any account asks for two. What is carried over is denied as well.
            generation: its number, by default the next one.
        """
        with self._writing() as writing:
            books = writing.books
            denies = (denies or bool(carried)) and bool(books.permissions.two_signatures)
            if denies:  # from then on decisions say by themselves that they wait
                writing.list_waiting(operator)
            facts: dict[str, Any] = {
                "generation": generation or books.generation + 1,
                "reason": reason,
                "carried": [charge.facts() for charge in carried],
                "elsewhere": {account: exact_text(epsilon) for account, epsilon in sorted(elsewhere.items())},
            }
            facts |= {"denies": True} if denies else {}
            books.judge_adopted(facts)
            return writing.decide("adopted", EVERYWHERE, facts, operator)

    def note_look(self, account: str, release: str, period: str, spec: str, reason: str, operator: Operator) -> Entry:
        """Writes down that an operator is about to see exact numbers; none of them is entered.

        `spec` is its digest; the reason may be empty only before the account was charged.
        """
        text_of("account", account)
        facts = {"release": release, "period": period, "spec": spec, "reason": reason}
        with self._writing() as writing:
            writing.books.judge_look(account, facts)
            return writing.decide("looked", account, facts, operator)

    # What a release run enters.

    def check(self, request: ChargeRequest) -> None:
        """Refuses early whatever `charge` would refuse, including a ledger that cannot be written to.

        It promises nothing: another process may charge in between, and `charge` judges again.
        """
        with self._writing("rehearse") as writing:
            if writing.books.judge_charge(request, writing.books.year_at(writing.now)) is None:
                self._refuse_unlisted(writing)
                writing.books.refuse_wrong_clock(writing.now, request.days)

    def charge(self, request: ChargeRequest) -> Charge:
        """Charges a release's epsilon once and for good; gives the charge that paid for the same thing already.

        Atomic: the rules are judged and the entry is made in one transaction, under the lock that every writer takes.
        When it returns, the entry is durable, and any number of callers with equal requests get the same charge.
        A caller that gets an error, or is killed, may have been charged all the same: it asks again with the same
        request. Another request for the same release, period and revision is refused, never joined.
        """
        with self._writing() as writing:
            books = writing.books
            earlier_charge = books.judge_charge(request, books.year_at(writing.now))
            if earlier_charge is not None:
                return earlier_charge
            self._refuse_unlisted(writing)
            books.refuse_wrong_clock(writing.now, request.days)
            granted = _grant_facts(request.granted) if books.account(request.account).is_individual else {}
            facts: dict[str, Any] = {
                "epsilon": exact_text(request.epsilon),
                "digest": request.digest,
                "reason": request.reason,
                **({"held": True} if request.held else {}),
                **({"folder": vars(request.folder)} if request.folder else {}),
                **({"upstream_checked": request.upstream_checked} if request.upstream_checked else {}),
                **granted,
            }
            decision_numbers = [decision.number for decision in books.permissions.decisions_for(request)]
            # A number drawn at random: of two copies of a ledger, no two charges are the same entry.
            facts |= {"allowed": decision_numbers, "nonce": secrets.token_hex(16)} if decision_numbers else {}
            entry = writing.append("charged", facts, request.account, request)
            return charge_of(entry, entry.facts)

    def _refuse_unlisted(self, writing: Writing) -> None:
        """Refuses to charge where a server's own rules cannot know which decisions wait for a second signature."""
        permissions = writing.books.permissions
        unstated, waits = permissions.lacks_list_of_waiting, bool(permissions.waiting)
        if (unstated or waits) and self._file.lacks_list(writing.connection, unstated, waits):
            raise LedgerError("waiting_unlisted", where=self._file.where)

    def record_published(self, charge: Charge, values_digest: str) -> None:
        """Writes down which values a charge paid for; the same again does nothing, others are refused."""
        text_of("digest of the values", values_digest)
        self._enter_about(charge, "published", {"digest": values_digest})

    def note(self, charge: Charge, kind: NoteKind, text: str) -> None:
        """Writes down who approves a charge's publication, or why it was rejected or withdrawn; again: nothing."""
        self._enter_about(charge, kind, {"text": text})

    def _enter_about(self, charge: Charge, kind: str, facts: dict[str, str]) -> None:
        with self._writing() as writing:
            self._refuse_unknown_charge(writing.books, charge)
            if not writing.books.judge_publication(charge, kind, facts):
                writing.append(kind, {"charge": charge.number, **facts}, charge.account, charge)


def _grant_facts(granted: Granted | None) -> dict[str, Any]:
    """The facts that a charge to an individual account adds to its entry; its year is the entry's."""
    if granted is None:
        raise ValueError("a charge to an individual account whose rows were not filtered")
    facts = {**vars(granted), "everybody": exact_text(granted.everybody)}
    del facts["year"], facts["left_out"]
    return {"granted": facts | ({"left_out": exact_text(granted.left_out)} if granted.left_out else {})}


def _operator(name: str, key: str) -> dict[str, str]:
    """An operator as entries hold one; refuses what is no name, or no key."""
    text_of("name of an operator", name, longest=60)
    if not is_public_key(key):
        raise not_recordable("key", key, "the 64 hexadecimal digits that `dphist ledger key` shows")
    return {"name": name, "key": key}


def refuse_unexplained(account: str, what: Mapping[str, Any], reason: str) -> None:
    """Refuses to allow something without a reason where one is needed: a query, or what its name alone decides."""
    if reason or {"query", "clock", "version", "check", "waiver"} & what.keys():
        whose = "every account" if account == EVERYWHERE else f"account '{account}'"
        refuse_no_reason(f"Allowing what {whose} reads", reason)


def _allowance(what: dict[str, Any], reason: str, also_of: Sequence[str]) -> dict[str, Any]:
    return {**what, "reason": reason, **({"also_of": sorted(also_of)} if also_of else {})}
