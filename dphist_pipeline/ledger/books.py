"""The ledger's rules: what its entries add up to, and what may be entered next.

The same judgements stand before every new entry and are passed again on every old one by `replay`,
so that an entry which could not have been made honestly is found, whoever wrote it.

Nothing here touches a database. To `post` an entry is to add it to the sums, as a bookkeeper does; to `judge` is to
refuse what may not be entered. `Ledger.charge` judges, appends and posts in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import itemgetter
from typing import Any

from dphist_pipeline.ledger import clock, limits
from dphist_pipeline.ledger import errors as errors
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.entries import (
    Account,
    Charge,
    ChargeRequest,
    Entry,
    Folder,
    Look,
    Note,
    charge_of,
    lost_charge,
    note_of,
    read_exact,
)
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.ledger.individual import paid_by_year, price_of_left_out, price_of_row
from dphist_pipeline.ledger.permissions import Permissions
from dphist_pipeline.ledger.signing import signer_of

_Key = tuple[str, str]
# States of a charge's publication: where several hold, the first one counts.
_STATES = ("lost", "withdrawn", "rejected", "published", "approved", "waits", "unpublished")
OPEN_STATES = ("unpublished", "waits", "approved")  # the publication may still come, or be rejected


@dataclass
class Books:
    """The sums and decisions of all entries, in order."""

    where: str
    ledger_id: str = ""
    year: int = 0
    charged_last: str = ""  # when; or when the ledger was made, or the store adopted
    last: Entry | None = None
    accounts: dict[str, Account] = field(default_factory=dict)
    charges: dict[_Key, dict[int, Charge]] = field(default_factory=dict)
    published: dict[int, str] = field(default_factory=dict)
    rendered: dict[int, list[str]] = field(default_factory=dict)  # digests of pages, by versions before 0.3.0
    notes: dict[int, dict[str, Note]] = field(default_factory=dict)
    permissions: Permissions = field(default_factory=Permissions)
    looks: list[Look] = field(default_factory=list)
    generation: int = 1
    # Number of the latest adoption's entry; 0 without one. An operator adopts a store whose ledger or witness went
    # missing: a later generation begins, and no charge from before it draws any more.
    adopted_at: int = 0
    started_by: str = ""
    moved: tuple[str, str] | None = None  # to which database and address, if the ledger began in another one
    carried: set[str] = field(default_factory=set)
    paid: list[tuple[int, Charge]] = field(default_factory=list)  # with the entry that stated it
    # Rows about releases that were judged at an earlier opening: their epsilon is in the sums; charges and notes are
    # made of them once somebody asks for their release and period, see `revisions`.
    unposted: dict[_Key, list[Sequence[Any]]] = field(default_factory=dict)
    adoptions: list[tuple[int, int]] = field(default_factory=list)  # number of the entry, and its year
    elsewhere: list[tuple[int, str, Fraction]] = field(default_factory=list)  # number of an adoption, account, epsilon
    # Epsilon by account, then by year of the charges and how many adoptions came before them.
    _spent: dict[str, dict[tuple[int, int], Fraction]] = field(default_factory=dict)

    def post(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        """Adds an entry, checking only its signature; a decision that waits for a second signature changes nothing."""
        self.permissions.refuse_unsigned(entry)
        if entry.kind in ("adopted", "charged"):
            self.permissions.lapse_adoptions()
        waits = self.permissions.waits(entry, facts)
        if not waits:
            self._post(entry, facts)
        self.note_time("" if waits else entry.kind, entry.made_at)
        self.year, self.last = facts["year"], entry

    def note_time(self, kind: str, made_at: str) -> None:
        """Remembers when was charged last; of an entry's kind, and its time.

        Most decisions attest no time, for whoever made them did not look at the clock. An adoption starts over, unless
        it waited for a second signature; a further one, which then denies nothing and does not wait, does.
        """
        if kind in ("created", "charged", "adopted"):
            self.charged_last = made_at if kind == "adopted" else max(self.charged_last, made_at)

    def year_at(self, made_at: str, kind: str = "", waits: bool = False) -> int:
        """The year of an entry made at that time (UTC, to the second): the clock's, but never before the last entry's.

        An adoption takes the clock's year: so an operator mends entries that were made while a clock was wrong. One
        that `waits` for a second signature does not: it changes nothing yet.
        """
        return int(made_at[:4]) if kind == "adopted" and not waits else max(int(made_at[:4]), self.year)

    def refuse_wrong_clock(self, now: str, days: int | None) -> None:
        """Refuses to charge where the clock is behind the ledger, or far ahead of all that attests the time.

        `now` is UTC, to the second; `days` the length of the period that is released, None without periods.
        """
        clock.refuse_behind(self.where, now, self.year)
        days_allowed = [
            decision.name
            for decision in self.permissions.of(EVERYWHERE)
            if decision.kind == "clock" and decision.number > self.adopted_at
        ]
        clock.refuse_far_ahead(
            self.where, now, max([self.charged_last, *(f"{day}T00:00:00Z" for day in days_allowed)]), days
        )

    def refuse_moved(self, engine: str) -> None:
        """Refuses a ledger that was moved to a database of another kind than this one."""
        if self.moved is not None and self.moved[0] != engine:
            raise errors.LedgerMoved(where=self.where, to=self.moved[1])

    def account(self, name: str) -> Account:
        """An open account, by name."""
        if name not in self.accounts:
            raise errors.UnknownAccount(name, self.accounts)
        return self.accounts[name]

    def revisions(self, release: str, period: str) -> dict[int, Charge]:
        """The charges of a release and period, by revision."""
        for entry in (Entry(*row) for row in self.unposted.pop((release, period), ())):
            self._post(entry, entry.facts, added_up=True)
        return self.charges.get((release, period), {})

    def every_charge(self) -> list[Charge]:
        """Every charge, in the order of the ledger."""
        for key in [*self.unposted]:
            self.revisions(*key)
        self.paid.sort(key=itemgetter(0))
        return [charge for _, charge in self.paid]

    def spent(self, account: str, year: int | None) -> Fraction:
        """The exact epsilon spent of an account: in a year, or in all for None; 0 for an unknown account."""
        sums = self._spent.get(account, {}).items()
        return sum((spent for key, spent in sums if year is None or self._counts_in(year, *key)), Fraction(0))

    def _counts_in(self, asked_year: int, charge_year: int, adoptions_before: int) -> bool:
        """Whether a charge that is dated in `charge_year`, and was made after so many adoptions, counts in a year.

        It counts in its own. Where a later adoption was made in an earlier year, one of the two clocks was wrong, and
        nobody knows which: it counts in the adoption's year as well, and no year has its total twice.
        """
        # Counting too much is safe; otherwise a charge that a wrong clock dated in a later year would cost nothing in
        # this one.
        adopted_since = any(year == asked_year for _, year in self.adoptions[adoptions_before:])
        return charge_year == asked_year or (asked_year < charge_year and adopted_since)

    def counting_in(self, account: str, year: int) -> list[tuple[int, Fraction, Charge | None]]:
        """Charges that count in a year of an account: number of the entry since which they do, epsilon, and the charge.

        In the order of these numbers. What was spent elsewhere, and no ledger holds, has no charge. What is dated in a
        later year counts since an adoption in this one; see `_counts_in`.
        """
        years, found = dict(self.adoptions), list[tuple[int, Fraction, Charge | None]]()
        own = [(number, charge.year, charge.epsilon, charge) for number, charge in self.every_entry(account)]
        stated = [(number, years[number], epsilon, None) for number, of, epsilon in self.elsewhere if of == account]
        for number, charged, epsilon, charge in [*own, *stated]:
            adopted = [other for other, of in self.adoptions if other >= number and of == year]
            if charged == year:
                found.append((number, epsilon, charge))
            elif year < charged and adopted:
                found.append((adopted[0], epsilon, charge))
        return sorted(found, key=itemgetter(0))

    def every_entry(self, account: str) -> list[tuple[int, Charge]]:
        """The charges of an account, each with the number of the entry that states it, in the order of the ledger."""
        self.every_charge()
        return [(number, charge) for number, charge in self.paid if charge.account == account]

    def paid_at(self, account: str) -> int:
        """Number of the latest entry, a charge or an adoption, that changed what units of an account paid; no time."""
        return max([self.adopted_at, *(number for number, _ in self.every_entry(account))])

    def state(self, charge: Charge) -> str:
        """The state of a charge's publication, one of `_STATES`."""
        kinds = {"lost"} if charge.lost else {*self.notes.get(charge.number, {})}
        kinds |= {"published"} if charge.number in self.published else {"waits"} if charge.held else {"unpublished"}
        return next(state for state in _STATES if state in kinds)

    def judge_account(self, account: Account) -> None:
        """Refuses an account that cannot be opened."""
        limits.refuse_bad_account(account)
        if account.name in self.accounts:
            raise errors.account_exists(self.accounts[account.name], account)

    def judge_raise(self, name: str, total: Fraction, reason: str) -> None:
        """Refuses a new total that is not larger, or not within (0, 10^6], or not explained in 1 to 2000 characters."""
        account = self.account(name)
        limits.refuse_bad_total(total)
        if total <= account.total:
            raise errors.LedgerError("total_not_larger", name=name, total=as_text(account.total), asked=as_text(total))
        if account.left_out:
            limits.refuse_bad_share(replace(account, total=total))
        limits.refuse_no_reason(f"Raising the total of account '{name}'", reason)

    def judge_charge(self, request: ChargeRequest, year: int, recorded: bool = False) -> Charge | None:
        """The charge that paid for the same thing already; None where a new charge may be entered in that year.

        `recorded`: it stands in the ledger already, which keeps the decisions but not what was asked.
        """
        limits.refuse_bad_request(request)
        if request.account not in self.accounts:
            raise errors.UnknownAccount(request.account, self.accounts)
        account = self.accounts[request.account]
        _refuse_other_terms(account, request)
        revisions = self.revisions(request.release, request.period)
        if request.revision in revisions:
            return _matching_charge(revisions[request.revision], request)
        if not recorded:
            self.permissions.decisions_for(request)
        due = max(revisions, default=0) + 1
        if request.revision != due:
            raise errors.LedgerError("revision_skipped", asked=request, due=due)
        if due > 1:
            limits.refuse_no_reason(f"{request.title}: a revision", request.reason)
            self._refuse_taking_over(revisions.values(), request)
        if account.is_individual:
            self._refuse_uncounted(account, request, year)
        else:
            self._refuse_overspend(account, request, year)
        return None

    def judge_publication(self, charge: Charge, kind: str, facts: Mapping[str, Any]) -> bool:
        """Whether the same entry about a charge stands there already; refuses other values, and rejected ones."""
        if kind not in ("published", "rendered"):
            return self.judge_note(charge, kind, facts["text"])
        digest = limits.text_of(f"digest of the {'pages' if kind == 'rendered' else 'values'}", facts["digest"])
        self._refuse_rejected(charge)
        recorded_digest = self.published.get(charge.number)
        if kind == "rendered":  # nothing enters that any more
            if recorded_digest is None:
                raise ValueError("pages of what was not published")
            return digest in self.rendered.get(charge.number, ())
        if recorded_digest is not None and recorded_digest != digest:
            raise errors.LedgerError("published_differs", charge=charge, there=recorded_digest, asked=digest)
        return recorded_digest is not None

    def judge_note(self, charge: Charge, kind: str, text: str) -> bool:
        """Whether a charge carries the same note already; another note of its kind is refused.

        What is published is not rejected, and what is rejected is not approved, or published, any more.
        """
        limits.refuse_no_reason(f"{charge.title}: that it is {kind}", text)
        if kind != "rejected":
            self._refuse_rejected(charge)
        elif charge.number in self.published:
            raise errors.LedgerError("published_already", charge=charge)
        earlier_note = self.notes.get(charge.number, {}).get(kind)
        if earlier_note is not None and earlier_note.text != text:
            raise errors.LedgerError("noted_otherwise", charge=charge, note=earlier_note)
        return earlier_note is not None

    def _refuse_rejected(self, charge: Charge) -> None:
        note = self.notes.get(charge.number, {}).get("rejected")
        if note is not None:
            raise errors.LedgerError("rejected", charge=charge, note=note)

    def _refuse_taking_over(self, charges: Iterable[Charge], request: ChargeRequest) -> None:
        """Refuses a revision of what another host has not finished: that it never will is an operator's decision."""
        for charge in charges:
            if self.state(charge) in OPEN_STATES and charge.number > self.adopted_at and request.folder is not None:
                refuse_other_folder(charge, request.folder)

    def _refuse_uncounted(self, account: Account, request: ChargeRequest, year: int) -> None:
        """Refuses to charge an individual account from another host, by what others paid since, or to count nobody.

        In an individual account each unit pays for its own rows; `granted` names the state, the file that says what
        each has paid and may have counted: docs/decisions/individual-accounts.md. Before rows were filtered, the
        request names none, and only its price is judged.
        """
        granted, everybody = request.granted, Fraction(0)
        for charge in (each for _, each in self.every_entry(account.name) if each.number > self.adopted_at):
            if request.folder is not None and not charge.lost:
                refuse_other_folder(charge, request.folder)
        if request.rows < 1 or (granted is not None and granted.rows != request.rows):
            raise ValueError("a price of no rows, or of other rows")
        if granted is not None:
            if (granted.year, granted.after) != (year, self.paid_at(account.name)):
                raise errors.StateOvertaken(account=account.name)
            if any(charge.granted and charge.granted.state == granted.state for charge in self.every_charge()):
                raise ValueError("a state of two charges")
            everybody = granted.everybody
            if granted.left_out != price_of_left_out(account.total, account.left_out, everybody):
                raise ValueError("another price of the number of units left out")
        pays = paid_by_year(account.total, account.left_out, everybody)
        if price_of_row(request.epsilon, request.rows) > pays:
            raise errors.counts_nobody(request, account, everybody)

    def _refuse_overspend(self, account: Account, request: ChargeRequest, year: int) -> None:
        remaining = account.total - self.spent(account.name, year if account.renews else None)
        if request.epsilon > remaining:
            own = self.every_entry(account.name)
            before = {number: sum(adopted < number for adopted, _ in self.adoptions) for number, _ in own}
            spenders = [of for n, of in own if not account.renews or self._counts_in(year, of.year, before[n])]
            raise errors.overspend(request, account, remaining, spenders, year)

    def judge_look(self, name: str, facts: Mapping[str, str]) -> None:
        """Refuses a look at records of no account; and one without a reason, once the account was charged."""
        self.account(name)
        for of in ("release", "period", "spec"):
            limits.text_of(f"{of} of a look", facts[of])
        was_charged = any(account == name for account in self._spent)
        if was_charged or facts["reason"] != "":
            limits.refuse_no_reason(
                f"Looking at the records of account '{name}', which was charged before", facts["reason"]
            )

    def judge_adopted(self, facts: Mapping[str, Any]) -> None:
        """Refuses an adoption that is no later generation, or that carries what is charged here.

        A charge of an account that went missing with the ledger is carried, too: it counts once that is opened.
        """
        if type(facts["generation"]) is not int or facts["generation"] <= self.generation:
            raise ValueError("not a later generation")
        limits.refuse_no_reason("Adopting a store", facts["reason"])
        for account, epsilon in facts["elsewhere"].items():
            self.account(account)
            if read_exact(epsilon) < 0:
                raise ValueError("less than nothing was spent")
        for charge in map(lost_charge, facts["carried"]):
            known_charge = self.revisions(charge.release, charge.period).get(charge.revision)
            if known_charge is not None and known_charge.hash == charge.hash:
                raise ValueError("what is carried over is charged here as well")

    def judge_countersignature(self, number: int, key: str | None) -> Entry:
        """The decision that waits for a second signature, judged again; refuses the operator who gave the first."""
        first = self.permissions.judge_countersignature(number, key)
        if first.kind == "adopted":
            self.judge_adopted(first.facts)
        return first

    def _post(self, entry: Entry, facts: Mapping[str, Any], added_up: bool = False) -> None:
        """Adds what an entry that is in force says; `added_up`: the epsilon of a charge is in the sums already."""
        if entry.kind == "created" or (entry.kind == "keyed" and not self.permissions.are_signed):
            self.started_by = entry.hash
        self.permissions.post(entry, facts)
        match entry.kind:
            case "created":
                self.ledger_id = facts["ledger"]
            case "opened":
                self.accounts[str(entry.account)] = account_of(entry, facts)
            case "raised":
                account = self.accounts[str(entry.account)]
                # A raise that waited for a second signature may have been overtaken by a larger one.
                self.accounts[account.name] = replace(account, total=max(account.total, read_exact(facts["total"])))
            case "charged":
                self._spend(charge_of(entry, facts), entry, added_up)
            case "published" | "rendered" | "approved" | "rejected" | "withdrawn":
                self._post_about_charge(entry, facts["charge"], facts.get("digest", ""))
            case "looked":
                stated = (str(entry.account), facts["release"], facts["period"], facts["spec"], facts["reason"])
                by = self.permissions.names.get(signer_of(entry) or "", "")
                self.looks.append(Look(*stated, by, entry.made_at, entry.number, entry.hash))
            case "adopted" | "moved":
                self._post_elsewhere(entry, facts)
            case "countersigned":
                self._post_countersigned(entry, facts)

    def _post_about_charge(self, entry: Entry, charge: int, digest: str) -> None:
        if entry.kind == "published":
            self.published[charge] = digest
        elif entry.kind != "rendered":
            self.notes.setdefault(charge, {})[entry.kind] = note_of(entry)
        else:
            self.rendered.setdefault(charge, []).append(digest)

    def _post_countersigned(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        first = self.permissions.waiting.pop(facts["decision"], None)
        if first is not None:
            self._post(first, first.facts)
            self.permissions.add_second_signer(entry, first)

    def _post_elsewhere(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        if entry.kind == "moved":
            self.moved = facts["database"], facts["to"]
            return
        self.generation, self.adopted_at, self.started_by = facts["generation"], entry.number, entry.hash
        for carried_charge in facts["carried"]:
            charge = lost_charge(carried_charge)
            self.carried.add(charge.hash)
            self._spend(charge, entry)
        for account, epsilon in facts["elsewhere"].items():
            self.add_spent(account, facts["year"], read_exact(epsilon))
            self.elsewhere.append((entry.number, account, read_exact(epsilon)))
        self.adoptions.append((entry.number, facts["year"]))

    def _spend(self, charge: Charge, stated: Entry, added_up: bool = False) -> None:
        # Where another copy of the store charged the same period by itself, both are spent, and ours stands here.
        self.revisions(charge.release, charge.period)
        self.charges.setdefault((charge.release, charge.period), {}).setdefault(charge.revision, charge)
        self.paid.append((stated.number, charge))
        if not added_up:
            self.add_spent(charge.account, charge.year, charge.epsilon)

    def add_spent(self, account: str, year: int, epsilon: Fraction, before: int | None = None) -> None:
        """Adds an exact epsilon to what was spent of an account.

        `before`: how many adoptions came before the charges; all that are known when left out.
        """
        sums = self._spent.setdefault(account, {})
        key = year, len(self.adoptions) if before is None else before
        sums[key] = sums.get(key, Fraction(0)) + epsilon


def _matching_charge(charge: Charge, request: ChargeRequest) -> Charge:
    """The charge that is there, if it paid for the same thing."""
    if charge.lost:
        raise errors.LedgerError("charge_lost", charge=charge)
    sides: list[tuple[str, str | Fraction, str | Fraction]] = [
        ("the account", charge.account, request.account),
        ("epsilon", charge.epsilon, request.epsilon),
        ("the spec's digest", charge.digest, request.digest),
    ]
    differences = [side for side in sides if side[1] != side[2]]
    if differences:
        raise errors.AlreadyCharged(charge, differences)
    return charge


def refuse_other_folder(charge: Charge, folder: Folder) -> None:
    """Refuses to go on with a charge in another confidential folder than the one that it names.

    A charge that names none, by an earlier version, is not refused.
    """
    if charge.folder is not None and charge.folder.id != folder.id:
        raise errors.LedgerError("charged_elsewhere", charge=charge, there=charge.folder, here=folder)


def _refuse_other_terms(account: Account, request: ChargeRequest) -> None:
    sides = [(name, getattr(account, name), getattr(request, name)) for name in ("privacy_unit", "neighbours")]
    sides.append(("store", account.store_id, request.store_id))
    differences = [side for side in sides if side[1] != side[2]]
    if differences:
        raise errors.account_disagrees(account.name, differences)


def account_of(entry: Entry, facts: Mapping[str, Any]) -> Account:
    """The account that an entry of kind 'opened' states; nothing is judged here."""
    return Account(
        name=str(entry.account),
        privacy_unit=facts["privacy_unit"],
        neighbours=facts["neighbours"],
        total=read_exact(facts["total"]),
        renews=facts["renews"],
        store_id=facts["store"],
        signatures=facts.get("signatures", 1),
        accounting=facts.get("accounting", "summed"),
        left_out=read_exact(facts["left_out"]) if "left_out" in facts else Fraction(0),
    )
