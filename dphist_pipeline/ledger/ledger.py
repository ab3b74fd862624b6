"""The ledger: who spent how much epsilon, kept for good, so that nothing is spent twice or beyond a total.

Append-only and hash-chained. A charge is one entry, checked and made in one transaction that holds the write lock from
its first statement; a database constraint, not only the check, keeps it unique. A run that finds its charge there uses
it.

Guards against: races, retries, crashes, edits by hand; a missing, foreign, or (by `require`) older ledger.
Not against: somebody who can write the file and rewrites the whole chain together with every audit.
"""

from __future__ import annotations

import secrets
from typing import Any

import sqlalchemy as sa

from dphist_pipeline.ledger import opened
from dphist_pipeline.ledger.books import Books
from dphist_pipeline.ledger.deciding import DecidingLedger
from dphist_pipeline.ledger.entries import (
    SCHEMA_VERSION,
    Account,
    Charge,
    ChargeRequest,
    Note,
    NoteKind,
    Statement,
    as_text,
    charge_of,
    exact_text,
)
from dphist_pipeline.ledger.errors import LedgerForeign, UnknownAccount
from dphist_pipeline.ledger.limits import refuse_bad_request, text_of
from dphist_pipeline.ledger.opened import Writing, verified
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.ledger.tables import SqliteFile

__all__ = ["Account", "Charge", "ChargeRequest", "Ledger", "Note", "Statement", "UnknownAccount", "as_text"]


class Ledger(DecidingLedger):
    """A ledger that was found intact; made by `create` or `open`."""

    @classmethod
    def create(cls, url: str | sa.URL, operator: Operator | None = None) -> Ledger:
        """Makes a new ledger, readable by its owner alone, with a random id; never replaces a file.

        Args:
            url: where.
            operator: whose signature decisions need from then on; without one, as in earlier versions, the first
                decision names the operator.
        """
        file = SqliteFile.at(url)
        with file.creation() as draft, draft.transaction("write") as connection:
            draft.create_tables(connection)
            facts: dict[str, Any] = {"ledger": secrets.token_hex(16), "schema_version": SCHEMA_VERSION}
            facts |= {"operator": operator.facts()} if operator is not None else {"schema_version": 1}
            writing = Writing(connection, Books(draft.where), opened.utc_now())
            writing.append("created", facts, operator=operator)
        return cls(file, verified(file))

    @classmethod
    def open(cls, url: str | sa.URL, expected_id: str) -> Ledger:
        """Opens a ledger, verifying all of it; refuses a missing, altered or foreign one, and makes none."""
        file = SqliteFile.at(url)
        books = verified(file)
        if books.ledger_id != expected_id:
            raise LedgerForeign(where=file.where, found=books.ledger_id, expected=expected_id)
        return cls(file, books)

    def check(self, request: ChargeRequest) -> None:
        """Refuses early whatever `charge` would refuse, including a ledger that cannot be written to."""
        refuse_bad_request(request)
        with self._writing(request.account, request, intent="rehearse") as writing:
            writing.books.judge_charge(request, writing.books.year_at(writing.now))
            writing.books.refuse_clock_behind(writing.now)

    def charge(self, request: ChargeRequest) -> Charge:
        """Charges a release's epsilon once and for good; gives the charge that paid for the same thing already."""
        refuse_bad_request(request)
        with self._writing(request.account, request) as writing:
            books = writing.books
            joined = books.judge_charge(request, books.year_at(writing.now))
            if joined is not None:
                return joined
            books.refuse_clock_behind(writing.now)
            facts = {
                "epsilon": exact_text(request.epsilon),
                "digest": request.digest,
                "reason": request.reason,
                **({"held": True} if request.held else {}),
            }
            allowed = [decision.number for decision in books.permissions.required(request)]
            # A number drawn at random: of two copies of a ledger, no two charges are the same entry.
            facts |= {"allowed": allowed, "nonce": secrets.token_hex(16)} if allowed else {}
            entry = writing.append("charged", facts, request.account, request)
            return charge_of(entry, entry.facts)

    def record_published(self, charge: Charge, values_digest: str) -> None:
        """Writes down which values a charge paid for; the same again does nothing, others are refused."""
        text_of("digest of the values", values_digest)
        self._enter_about(charge, "published", {"digest": values_digest})

    def note(self, charge: Charge, kind: NoteKind, text: str) -> None:
        """Writes down who approves a charge's publication, or why it is rejected or withdrawn.

        The same again does nothing.
        """
        self._enter_about(charge, kind, {"text": text})

    def _enter_about(self, charge: Charge, kind: str, facts: dict[str, str]) -> None:
        with self._writing(charge.account, charge) as writing:
            self._refuse_unknown_charge(writing.books, charge)
            if not writing.books.judge_publication(charge, kind, facts):
                writing.append(kind, {"charge": charge.number, **facts}, charge.account, charge)
