"""The ledger's rules: what its entries add up to, and what may be entered next.

The same judgements stand before every new entry and are passed again on every old one by `replay`,
so that an entry which could not have been made honestly is found, whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from dphist_pipeline.ledger.entries import (
    Account,
    Charge,
    ChargeRequest,
    Entry,
    Note,
    Statement,
    as_text,
    charge_of,
    read_exact,
)
from dphist_pipeline.ledger.errors import (
    AccountDisagrees,
    AccountExists,
    AlreadyCharged,
    NotedOtherwise,
    Overspend,
    PublishedAlready,
    PublishedDiffers,
    Rejected,
    RevisionSkipped,
    TotalNotLarger,
    UnknownAccount,
    key_text,
)
from dphist_pipeline.ledger.limits import refuse_bad_account, refuse_bad_total, refuse_no_reason

_Key = tuple[str, str]


@dataclass
class Books:
    """What a run of entries, in order, adds up to; of the whole ledger, or of a part of it.

    A part that holds all entries of an account and all of a release and period is enough to judge
    a charge to that account for that release and period.
    """

    where: str
    ledger_id: str = ""
    year: int = 0
    last: Entry | None = None
    accounts: dict[str, Account] = field(default_factory=dict)
    charges: dict[_Key, dict[int, Charge]] = field(default_factory=dict)
    published: dict[int, str] = field(default_factory=dict)
    notes: dict[int, dict[str, Note]] = field(default_factory=dict)
    spenders: dict[str, list[tuple[int, Charge]]] = field(default_factory=dict)
    _spent: dict[tuple[str, int | None], Fraction] = field(default_factory=dict)

    def post(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        """Adds an entry, without judging it."""
        _POST[entry.kind](self, entry, facts)
        self.year, self.last = facts["year"], entry

    def year_at(self, made_at: str) -> int:
        """The year of an entry made then: that of the clock, but never an earlier one than the last."""
        return max(int(made_at[:4]), self.year)

    def account(self, name: str) -> Account:
        """An open account, by name."""
        if name not in self.accounts:
            raise UnknownAccount(name, self.accounts)
        return self.accounts[name]

    def spent(self, account: Account, year: int) -> Fraction:
        """What counts against an account's total in a year: that year's charges if it renews, else all."""
        return self._spent.get((account.name, year if account.renews else None), Fraction(0))

    def statement(self, name: str, year: int) -> Statement:
        """An account's standing in a year."""
        account = self.account(name)
        spent = self.spent(account, year)
        charges = [charge for _, charge in self.spenders.get(name, [])]
        return Statement(
            account=account,
            year=year,
            total=account.total,
            spent=spent,
            spent_ever=self._spent.get((name, None), Fraction(0)),
            left=account.total - spent,
            charges=charges,
            states={charge.number: self._state(charge) for charge in charges},
            notes={charge.number: [*self.notes.get(charge.number, {}).values()] for charge in charges},
        )

    def _state(self, charge: Charge) -> str:
        """What became of a charge's publication, in a word."""
        notes = self.notes.get(charge.number, {})
        for decided in ("withdrawn", "rejected"):
            if decided in notes:
                return decided
        if charge.number in self.published:
            return "published"
        return "approved" if "approved" in notes else "waits" if charge.held else "unpublished"

    def judge_account(self, account: Account) -> None:
        """Refuses an account that cannot be opened."""
        if account.name in self.accounts:
            raise AccountExists(self.accounts[account.name], account)
        refuse_bad_account(account)

    def judge_raise(self, name: str, total: Fraction, reason: str) -> None:
        """Refuses a new total that is not larger, or not explained."""
        account = self.account(name)
        refuse_bad_total(total)
        if total <= account.total:
            raise TotalNotLarger(name, account.total, total)
        refuse_no_reason(f"Raising the total of account '{name}'", reason)

    def judge_charge(self, request: ChargeRequest, year: int) -> Charge | None:
        """The charge to join when this very thing is paid for already; None when it may be entered now."""
        if request.account not in self.accounts:
            raise UnknownAccount(request.account, self.accounts, request.privacy_unit, request.neighbours)
        account = self.accounts[request.account]
        _refuse_other_terms(account, request)
        there = self.charges.get((request.release, request.period), {})
        if request.revision in there:
            return _joined(there[request.revision], request)
        due = max(there, default=0) + 1
        if request.revision != due:
            raise RevisionSkipped(request, due)
        if due > 1:
            refuse_no_reason(f"{key_text(request)}: a revision", request.reason)
        self._refuse_overspend(account, request, year)
        return None

    def judge_published(self, charge: Charge, digest: str) -> bool:
        """Whether these values stand there already as the charge's; other values are refused, and rejected ones."""
        self._refuse_rejected(charge)
        there = self.published.get(charge.number)
        if there is not None and there != digest:
            raise PublishedDiffers(charge, there, digest)
        return there is not None

    def judge_note(self, charge: Charge, kind: str, text: str) -> bool:
        """Whether a charge carries this very note already; another one of its kind is refused.

        What is published is not rejected, and what is rejected is not approved, or published, any more.
        """
        refuse_no_reason(f"{key_text(charge)}: that it is {kind}", text)
        if kind != "rejected":
            self._refuse_rejected(charge)
        elif charge.number in self.published:
            raise PublishedAlready(charge)
        there = self.notes.get(charge.number, {}).get(kind)
        if there is not None and there.text != text:
            raise NotedOtherwise(charge, there)
        return there is not None

    def unpublished(self, release: str) -> list[Charge]:
        """What was charged for a release and is neither published nor rejected, by period and revision."""
        return [
            charge
            for (of, _), revisions in sorted(self.charges.items())
            for _, charge in sorted(revisions.items())
            if of == release
            and charge.number not in self.published
            and "rejected" not in self.notes.get(charge.number, {})
        ]

    def _refuse_rejected(self, charge: Charge) -> None:
        note = self.notes.get(charge.number, {}).get("rejected")
        if note is not None:
            raise Rejected(charge, note)

    def _refuse_overspend(self, account: Account, request: ChargeRequest, year: int) -> None:
        left = account.total - self.spent(account, year)
        if request.epsilon > left:
            spenders = self.spenders.get(account.name, [])
            counted = [charge for of, charge in spenders if of == year or not account.renews]
            raise Overspend(request, account, left, counted, year)

    def _post_created(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        self.ledger_id = facts["ledger"]

    def _post_opened(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        account = account_of(entry, facts)
        self.accounts[account.name] = account

    def _post_raised(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        account = self.accounts[str(entry.account)]
        self.accounts[account.name] = replace(account, total=read_exact(facts["total"]))

    def _post_charged(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        charge = charge_of(entry, facts)
        self.charges.setdefault((charge.release, charge.period), {})[charge.revision] = charge
        self.spenders.setdefault(charge.account, []).append((facts["year"], charge))
        for span in (facts["year"], None):
            key = (charge.account, span)
            self._spent[key] = self._spent.get(key, Fraction(0)) + charge.epsilon

    def _post_published(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        self.published[facts["charge"]] = facts["digest"]

    def _post_note(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        kind: Any = entry.kind
        note = Note(kind, facts["text"], entry.made_at, entry.number)
        self.notes.setdefault(facts["charge"], {})[entry.kind] = note


_POST: dict[str, Callable[[Books, Entry, Mapping[str, Any]], None]] = {
    "created": Books._post_created,
    "opened": Books._post_opened,
    "raised": Books._post_raised,
    "charged": Books._post_charged,
    "published": Books._post_published,
    "approved": Books._post_note,
    "rejected": Books._post_note,
    "withdrawn": Books._post_note,
}


def _joined(there: Charge, request: ChargeRequest) -> Charge:
    """The charge that is there, if it paid for the same thing."""
    differences = []
    if there.account != request.account:
        differences.append(("the account", there.account, request.account))
    if there.epsilon != request.epsilon:
        differences.append(("epsilon", as_text(there.epsilon), as_text(request.epsilon)))
    if there.digest != request.digest:
        differences.append(("the spec's digest", there.digest, request.digest))
    if differences:
        raise AlreadyCharged(there, differences)
    return there


def _refuse_other_terms(account: Account, request: ChargeRequest) -> None:
    sides = [
        ("privacy_unit", account.privacy_unit, request.privacy_unit),
        ("neighbours", account.neighbours, request.neighbours),
        ("store", account.store_id, request.store_id),
    ]
    differences = [side for side in sides if side[1] != side[2]]
    if differences:
        raise AccountDisagrees(account.name, differences)


def account_of(entry: Entry, facts: Mapping[str, Any]) -> Account:
    """The account that an entry of kind 'opened' states."""
    return Account(
        name=str(entry.account),
        privacy_unit=facts["privacy_unit"],
        neighbours=facts["neighbours"],
        total=read_exact(facts["total"]),
        renews=facts["renews"],
        store_id=facts["store"],
    )
