"""Why a ledger refuses: each error carries what it is about, and says how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from shlex import quote

from dphist_pipeline.errors import DphistError, did_you_mean
from dphist_pipeline.ledger.entries import Account, Charge, ChargeRequest, Note, as_text

_SPENDERS_SHOWN = 5


class LedgerError(DphistError):
    """Anything that a ledger refuses."""


class LedgerUrlRefused(LedgerError):
    """The ledger's address is not one that can be used."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"The ledger's address cannot be used: {problem}. Write it as sqlite:////absolute/path/ledger.sqlite."
        )


class LedgerExists(LedgerError):
    """A ledger was to be made where something is already."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(f"{where} is there already. Use it as it is, or make the new ledger elsewhere.")


class LedgerMissing(LedgerError):
    """No ledger where one should be."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(
            f"There is no ledger at {where}. Put it back, or set DPHIST_LEDGER to where it is now. Only "
            "`dphist init` makes a ledger, with its store; a new one cannot replace one that was charged."
        )


class LedgerForeign(LedgerError):
    """An intact ledger, but of another store."""

    def __init__(self, where: str, found: str, expected: str) -> None:
        self.where, self.found, self.expected = where, found, expected
        super().__init__(
            f"The ledger at {where} is another one: its id is {found}, this store was made with {expected}. "
            "Put this store's own ledger back, or point DPHIST_LEDGER at it."
        )


class LedgerAltered(LedgerError):
    """A ledger that does not hold together: edited by hand, damaged, or no ledger at all."""

    def __init__(self, where: str, number: int | None, problem: str) -> None:
        self.where, self.number, self.problem = where, number, problem
        place = where if number is None else f"{where}, entry {number}"
        super().__init__(
            f"The ledger at {place}: {problem}. It was altered or damaged, so nothing is charged to it. "
            "Put back an intact copy that holds every entry up to the latest release; never edit it by hand."
        )


class LedgerOutdated(LedgerError):
    """A published audit, or a rejection, names an entry that the ledger does not hold."""

    def __init__(self, where: str, seen_in: str, number: int) -> None:
        self.where, self.seen_in, self.number = where, seen_in, number
        super().__init__(
            f"The ledger at {where} does not hold entry {number} as {seen_in} states it. Was the ledger "
            "restored from an older backup? Put back the newer ledger; never continue with this one, "
            "which has forgotten what was spent. If the newer one is lost: `dphist store adopt --reason TEXT`, which "
            "counts as spent what the witness holds."
        )


class LedgerReadOnly(LedgerError):
    """A ledger that cannot be written to."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(
            f"The ledger at {where} cannot be written to. Give yourself write permission on the file "
            "and on its folder (chmod u+w), or mount the disk for writing."
        )


class LedgerBusy(LedgerError):
    """Somebody else held the ledger for too long."""

    def __init__(self, where: str, seconds: float) -> None:
        self.where, self.seconds = where, seconds
        super().__init__(
            f"The ledger at {where} was in use by another program for more than {seconds:g} seconds. "
            "Nothing was charged; run the same command again once it is free."
        )


class LedgerUnusable(LedgerError):
    """The file system or the database engine failed."""

    def __init__(self, where: str, problem: str) -> None:
        self.where, self.problem = where, problem
        super().__init__(
            f"The ledger at {where} could not be used: {problem}. "
            "Look at the disk and the folder, then run the same command again: it is never charged twice."
        )


class NotRecordable(LedgerError):
    """A value that the ledger does not take."""

    def __init__(self, what: str, value: object, rule: str) -> None:
        shown = repr(value)
        self.what, self.value, self.rule = what, value, rule
        super().__init__(f"{what} {shown if len(shown) <= 60 else shown[:57] + '...'}: it must be {rule}.")


class ReasonMissing(LedgerError):
    """A step that must say why does not."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} needs a reason, kept in the ledger for good: add --reason '...'.")


class UnknownAccount(LedgerError):
    """An account that was never opened; `unit` and `neighbours` are the terms to open it with, where they are known."""

    def __init__(self, name: str, known: Iterable[str], unit: str = "COLUMN", neighbours: str = "add_remove") -> None:
        self.name, self.known = name, tuple(sorted(known))
        hint = did_you_mean(name, self.known) if self.known else "No account is open yet."
        super().__init__(
            f"The ledger holds no account '{name}'. {hint} To open it: `dphist ledger open {name} "
            f"--privacy-unit {quote(unit)} --neighbours {neighbours} --total EPSILON --source FILES`."
        )

    def on_terms(self, unit: str, neighbours: str) -> UnknownAccount:
        """The same, where the terms to open it with are known."""
        return UnknownAccount(self.name, self.known, unit, neighbours)


class AccountExists(LedgerError):
    """An account was to be opened a second time."""

    def __init__(self, there: Account, asked: Account) -> None:
        self.there, self.asked = there, asked
        terms = "with the same terms: nothing to do" if there == asked else f"with {_terms(there)}"
        super().__init__(
            f"Account '{there.name}' is open already, {terms}. Terms are fixed once; for a larger total: "
            f"`dphist ledger raise {there.name} --total ... --reason ...`; for other terms: another account."
        )


class TotalNotLarger(LedgerError):
    """A total was to be raised to what it is or less."""

    def __init__(self, name: str, total: Fraction, asked: Fraction) -> None:
        self.name, self.total, self.asked = name, total, asked
        super().__init__(
            f"Account '{name}' has a total of {as_text(total)}; {as_text(asked)} is not larger. "
            "A total can only be raised: ask for more than it is."
        )


class AccountDisagrees(LedgerError):
    """A spec or a store has other terms than its account: (what, the account's, the release's)."""

    def __init__(self, name: str, differences: Sequence[tuple[str, str, str]]) -> None:
        self.name, self.differences = name, tuple(differences)
        listed = "; ".join(f"{what} is '{ours}' there but '{theirs}' here" for what, ours, theirs in differences)
        mend = "Correct the spec, or open another account for these terms."
        if any(what == "store" for what, _, _ in differences):
            mend += " One account serves one store only: release into the store it was opened for."
        super().__init__(f"Account '{name}' was opened with other terms: {listed}. {mend}")


class AlreadyCharged(LedgerError):
    """A released period is asked for again with other contents: (what, as charged, as asked)."""

    def __init__(self, there: Charge, differences: Sequence[tuple[str, str, str]]) -> None:
        self.there, self.differences = there, tuple(differences)
        listed = "; ".join(f"{what} was '{then}', is now '{now}'" for what, then, now in differences)
        super().__init__(
            f"{key_text(there)} was charged already, at {there.charged_at}, for something else: {listed}. "
            "Undo the change to get the same release again for nothing, or charge a new revision: "
            "--revise --reason '...'."
        )


class RevisionSkipped(LedgerError):
    """A revision that does not follow the last one."""

    def __init__(self, request: ChargeRequest, due: int) -> None:
        self.request, self.due = request, due
        super().__init__(
            f"{request.release}, period {request.period}: revision {request.revision} cannot be charged, "
            f"the next one is {due}. Revisions are numbered without gaps from 1."
        )


class PublishedDiffers(LedgerError):
    """One charge was to be published with two different contents."""

    def __init__(self, charge: Charge, there: str, asked: str) -> None:
        self.charge, self.there, self.asked = charge, there, asked
        super().__init__(
            f"{key_text(charge)} was published already with values {there[:16]}, not {asked[:16]}. "
            "One charge pays for one set of values. Keep the published files; were the journal's answers "
            "lost or changed, charge a new revision: --revise --reason '...'."
        )


class NotedOtherwise(LedgerError):
    """A publication was approved, or withdrawn, already, in other words."""

    def __init__(self, charge: Charge, note: Note) -> None:
        self.charge, self.note = charge, note
        super().__init__(
            f"{key_text(charge)} was {note.kind} already, on {note.made_at[:10]}: '{note.text}'. It stands once, and "
            "stays as it is."
        )


class Rejected(LedgerError):
    """A release whose publication was rejected while it waited: it is not approved or published any more."""

    def __init__(self, charge: Charge, note: Note) -> None:
        self.charge, self.note = charge, note
        super().__init__(
            f"{key_text(charge)} was rejected on {note.made_at[:10]}: {note.text}. It is not published, and what it "
            "spent stays spent. To release that period anew, at its price: dphist release with --revise --reason TEXT, "
            "for a reason that was not given before."
        )


class PublishedAlready(LedgerError):
    """A publication that is rejected, though it is out."""

    def __init__(self, charge: Charge) -> None:
        self.charge = charge
        super().__init__(
            f"{key_text(charge)} was published already, so that it cannot be rejected. Take it back, marked for "
            f"everybody: dphist withdraw {charge.release} {charge.period} --reason TEXT."
        )


class Overspend(LedgerError):
    """An account does not hold what a release asks for."""

    def __init__(
        self, request: ChargeRequest, account: Account, left: Fraction, spenders: Sequence[Charge], year: int
    ) -> None:
        self.request, self.account, self.left = request, account, left
        self.spenders, self.year = tuple(spenders), year
        needed = as_text(account.total + request.epsilon - left)
        when, wait = (f" in {year}", "wait for 1 January, ") if account.renews else ("", "")
        super().__init__(
            f"{key_text(request)} asks for epsilon {as_text(request.epsilon)}, but account '{account.name}' "
            f"has {as_text(left)} left of {as_text(account.total)}{when}. {_spenders(self.spenders)} "
            f"Lower `epsilon`, {wait}or raise the total: "
            f"`dphist ledger raise {account.name} --total {needed} --reason '...'`."
        )


def key_text(charge: Charge | ChargeRequest) -> str:
    """'weekly, period 2026-03-02, revision 1'."""
    return f"{charge.release}, period {charge.period}, revision {charge.revision}"


def _spenders(charges: Sequence[Charge]) -> str:
    """Names the latest releases that spent an account, and sums up the others."""
    if not charges:
        return "Nothing was spent yet."
    shown = [f"{key_text(charge)} ({as_text(charge.epsilon)})" for charge in charges[: -_SPENDERS_SHOWN - 1 : -1]]
    others = charges[:-_SPENDERS_SHOWN]
    if others:
        shown.append(f"and {len(others)} more ({as_text(sum((c.epsilon for c in others), Fraction(0)))})")
    return f"Spent by {'; '.join(shown)}."


def _terms(account: Account) -> str:
    renews = f", renewed {account.renews}" if account.renews else ""
    return (
        f"privacy unit '{account.privacy_unit}', neighbours '{account.neighbours}', "
        f"total {as_text(account.total)}{renews}, store {account.store_id}"
    )


class ChargeLost(LedgerError):
    """A period that was charged in an earlier life of the store, whose ledger or answers are gone."""

    def __init__(self, charge: Charge) -> None:
        self.charge = charge
        super().__init__(
            f"{key_text(charge)} was charged before this store was adopted, so that it is never drawn again. What was "
            "published of it stays as it is. To release that period anew, at its price: dphist release with --revise "
            "--reason TEXT."
        )


class ClockBehind(LedgerError):
    """This machine's clock lies in an earlier year than the ledger's last entry."""

    def __init__(self, where: str, year: int, now: str) -> None:
        self.where, self.year, self.now = where, year, now
        super().__init__(
            f"The ledger at {where} has an entry of {year}, and this machine's clock says {now}. The year decides what "
            "an account has left, so nothing was charged. Set the clock right; if the entry was made while a clock was "
            "wrong: `dphist store adopt --reason TEXT`."
        )
