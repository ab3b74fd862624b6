"""What operators decide, entered in the ledger with their signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dphist_pipeline.ledger import opened
from dphist_pipeline.ledger.decisions import EVERYWHERE, Decision, SourceReading
from dphist_pipeline.ledger.entries import Account, exact_text
from dphist_pipeline.ledger.errors import NotRecordable
from dphist_pipeline.ledger.limits import refuse_bad_account, refuse_no_reason, text_of
from dphist_pipeline.ledger.opened import OpenedLedger, Writing, all_entries
from dphist_pipeline.ledger.replay import replay
from dphist_pipeline.ledger.signing import Operator, is_public_key
from dphist_pipeline.ledger.witness import WitnessedCharge


class DecidingLedger(OpenedLedger):
    """A ledger that takes decisions; a release run needs none of this."""

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
        with self._writing(account.name, decisions=True) as writing:
            writing.books.judge_account(account)
            writing.decide("opened", account.name, facts, operator)
            if source is not None:
                allowed = _allowance({"source": source.facts()}, "", also_of)
                writing.books.permissions.judge_allowed(account.name, allowed)
                writing.decide("allowed", account.name, allowed, operator)

    def raise_total(self, name: str, total: Fraction, reason: str, operator: Operator | None = None) -> None:
        """Gives an account a larger total, and writes down why."""
        text_of("account", name)
        with self._writing(name) as writing:
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
        # Decisions of all accounts are read: the source may belong to another one.
        with self._writing(account, decisions=True) as writing:
            for name in also_of if account == EVERYWHERE else (account, *also_of):
                writing.books.account(name)
            there = writing.books.permissions.judge_allowed(account, facts)
            if there is not None:
                return there
            entry = writing.decide("allowed", account, facts, operator)
            return writing.books.permissions.allowed.get(entry.number)

    def disallow(self, number: int, reason: str, operator: Operator | None) -> Decision:
        """Takes back what was allowed: nothing more is read or drawn by it, and what was released stays."""
        refuse_no_reason("Taking back a decision", reason)
        with self._writing(account := self._account_of(number)) as writing:
            there = writing.books.permissions.judge_disallowed(number, account)
            writing.decide("disallowed", account, {"decision": number, "reason": reason}, operator)
            return there

    def add_key(self, name: str, key: str, operator: Operator) -> int | None:
        """Lets another operator decide, too; gives the number of the entry where it waits for a second signature."""
        text_of("name of an operator", name, longest=60)
        if not is_public_key(key):
            raise NotRecordable("key", key, "the 64 hexadecimal digits that `dphist ledger key` shows")
        facts = {"operator": {"name": name, "key": key}}
        with self._writing(EVERYWHERE) as writing:
            writing.books.permissions.judge_key(facts)
            entry = writing.decide("keyed", EVERYWHERE, facts, operator)
            return entry.number if entry.number in writing.books.permissions.waiting else None

    def countersign(self, number: int, operator: Operator) -> None:
        """Gives the second signature of a decision that waits for it."""
        with self._writing(account := self._account_of(number), decisions=True) as writing:
            writing.books.permissions.judge_countersignature(number, operator.public)
            writing.decide("countersigned", account, {"decision": number}, operator)

    def adopt(
        self,
        reason: str,
        carried: Sequence[WitnessedCharge],
        elsewhere: Mapping[str, Fraction],
        operator: Operator,
    ) -> int:
        """Starts a new generation of a store whose ledger or witness went missing, and gives its number.

        Args:
            reason: why.
            carried: charges that the witness holds and this ledger does not: they count as spent.
            elsewhere: what was spent that neither holds, by account.
            operator: who decides.
        """
        with self._file.transaction("write") as connection:
            books = replay(self._file.where, all_entries(connection))
            facts = {
                "generation": books.generation + 1,
                "reason": reason,
                "carried": [{**vars(charge), "epsilon": exact_text(charge.epsilon)} for charge in carried],
                "elsewhere": {account: exact_text(epsilon) for account, epsilon in sorted(elsewhere.items())},
            }
            books.judge_adopted(facts)
            Writing(connection, books, opened.utc_now()).decide("adopted", EVERYWHERE, facts, operator)
            return books.generation

    def _account_of(self, number: int) -> str:
        """Whose an entry is; `EVERYWHERE` where there is no such entry, for the judgement to refuse."""
        return next((str(entry.account) for entry in self.entries() if entry.number == number), EVERYWHERE)


def _allowance(what: dict[str, Any], reason: str, also_of: Sequence[str]) -> dict[str, Any]:
    return {**what, "reason": reason, **({"also_of": sorted(also_of)} if also_of else {})}
