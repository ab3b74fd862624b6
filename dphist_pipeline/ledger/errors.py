"""Why a ledger refuses, or an operator's decision: what is wrong, where, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from shlex import quote
from typing import TYPE_CHECKING, ClassVar

from dphist_pipeline.errors import Halted, TryAgain, did_you_mean
from dphist_pipeline.ledger.amounts import as_text
from dphist_pipeline.ledger.readings import options_of, said_of

if TYPE_CHECKING:
    from dphist_pipeline.ledger.decisions import SourceReading
    from dphist_pipeline.ledger.entries import Account, Charge, ChargeRequest

ADOPT = "`dphist store adopt --reason TEXT`"
READ_ONLY = (
    "it cannot be written to. Give yourself write permission on the file and on its folder (chmod u+w), or mount the "
    "disk for writing"
)
NETWORK_DISK = (
    "it is on a network file system ({kind}), where SQLite's locks do not keep two machines from writing at once. Keep "
    "it on this machine's own disk, or on a PostgreSQL server (see `dphist ledger move --help`)"
)
NO_RIGHT = (
    "this database user may not do that. `dphist ledger roles` shows the statements that let one user charge, and "
    "another one decide"
)
_MENDED_ADDRESS = {
    "ledger": "Write its address as sqlite:////absolute/path/ledger.sqlite or postgresql://user@host/database.",
    "witness": (
        "Set DPHIST_WITNESS to the absolute path of a file outside the store that is no ledger, in a folder that you "
        "may write to, or to postgresql://user@host/database, in which no ledger is."
    ),
}
_SPENDERS_SHOWN = 5


class LedgerError(Halted):
    """Anything that a ledger refuses, before a charge or after it.

    `message` is a template for the culprit, which is given and kept by name.
    """

    message: ClassVar[str] = "{problem}"

    def __init__(self, **culprit: object) -> None:
        vars(self).update(culprit)
        super().__init__(self.message.format(**culprit))


# The file of a ledger or of a witness: `noun` says which of the two.
class AddressRefused(LedgerError):
    """A place where a ledger or a witness cannot be."""

    def __init__(self, noun: str, problem: str) -> None:
        super().__init__(problem=f"The {noun} cannot be kept there: {problem}. {_MENDED_ADDRESS[noun]}", noun=noun)


class FileExists(LedgerError):
    message = "{where} is there already. Use it as it is, or make the new {noun} elsewhere."


class FileBusy(LedgerError, TryAgain):
    message = (
        "The {noun} at {where} was in use by another program for more than {seconds:g} seconds. Run the same command "
        "again once it is free: it is never charged twice."
    )


class FileUnusable(LedgerError):
    message = (
        "The {noun} at {where} cannot be used: {problem}. Mend that, then run the same command again: it is never "
        "charged twice."
    )


class ConnectionLost(LedgerError, TryAgain):
    """A server that does not answer, or no longer; a charge that was under way may have been made."""

    message = "The {noun} at {where} cannot be used: {problem}. Run the same command again: it is never charged twice."


class LedgerMissing(LedgerError):
    message = (
        "There is no ledger at {where}. Put it back, or set DPHIST_LEDGER to where it is now. Only `dphist init` makes "
        "a ledger, with its store; a new one cannot replace one that was charged."
    )


class LedgerForeign(LedgerError):
    message = (
        "The ledger at {where} is another one: its id is {found}, this store was made with {expected}. Put this "
        "store's own ledger back, or point DPHIST_LEDGER at it."
    )


class LedgerMoved(LedgerError):
    message = (
        "The ledger at {where} was moved to {to}, and takes no entry any more. Set DPHIST_LEDGER to {to}, with your "
        "user's name before the host. Was the command that moved it cut short? Then run it again first."
    )


class LedgerAltered(LedgerError):
    message = (
        "The ledger at {where}: {problem}. It was altered or damaged, so nothing is charged to it. Put back an intact "
        "copy that holds every entry up to the latest release; never edit it by hand."
    )


class LedgerOutdated(LedgerError):
    message = (
        "The ledger at {where} does not hold entry {number} as {seen_in} states it. Was the ledger restored from an "
        "older backup? Put back the newer ledger; never continue with this one, which has forgotten what was spent. "
        f"If the newer one is lost: {ADOPT}, which counts as spent what the witness holds."
    )


# Accounts and charges.


class NotRecordable(LedgerError):
    """A value that the ledger does not take."""

    def __init__(self, what: str, value: object, rule: str) -> None:
        shown = repr(value)
        super().__init__(problem=f"{what} {shown if len(shown) <= 60 else shown[:57] + '...'}: it must be {rule}.")


class ReasonMissing(LedgerError):
    message = "{what} needs a reason, kept in the ledger for good: add --reason '...'."


class UnknownAccount(LedgerError):
    """An account that was never opened; `unit` and `neighbours` are the terms to open it with, where they are known."""

    def __init__(self, name: str, known: Iterable[str], unit: str = "COLUMN", neighbours: str = "add_remove") -> None:
        self.name, self.known = name, tuple(sorted(known))
        hint = did_you_mean(name, self.known) if self.known else "No account is open yet."
        super().__init__(
            problem=f"The ledger holds no account '{name}'. {hint} To open it: `dphist ledger open {name} "
            f"--privacy-unit {quote(unit)} --neighbours {neighbours} --total EPSILON --source FILES`."
        )

    def on_terms(self, unit: str, neighbours: str) -> UnknownAccount:
        """The same error, where the terms to open the account with are known."""
        return UnknownAccount(self.name, self.known, unit, neighbours)


class AccountExists(LedgerError):
    """An account was to be opened a second time."""

    def __init__(self, there: Account, asked: Account) -> None:
        renews = f", renewed {there.renews}" if there.renews else ""
        terms = (
            f"with privacy unit '{there.privacy_unit}', neighbours '{there.neighbours}', total {as_text(there.total)}"
            f"{renews}, store {there.store_id}"
        )
        super().__init__(
            problem=f"Account '{there.name}' is open already, "
            f"{'with the same terms: nothing to do' if there == asked else terms}. Terms are fixed once; for a larger "
            f"total: `dphist ledger raise {there.name} --total ... --reason ...`; for other terms: another account."
        )


class TotalNotLarger(LedgerError):
    message = "Account '{name}' has a total of {total}; {asked} is not larger. A total can only be raised."


class AccountDisagrees(LedgerError):
    """A spec or a store has other terms than its account: (what, the account's, the release's)."""

    def __init__(self, name: str, differences: Sequence[tuple[str, str, str]]) -> None:
        listed = "; ".join(f"{what} is '{ours}' there but '{theirs}' here" for what, ours, theirs in differences)
        mend = "Correct the spec, or open another account for these terms."
        if any(what == "store" for what, _, _ in differences):
            mend += " One account serves one store only: release into the store it was opened for."
        super().__init__(problem=f"Account '{name}' was opened with other terms: {listed}. {mend}")


class AlreadyCharged(LedgerError):
    """A released period is asked for again with other contents: (what, as charged, as asked)."""

    def __init__(self, there: Charge, differences: Sequence[tuple[str, str | Fraction, str | Fraction]]) -> None:
        self.there, self.differences = there, differences
        words = [[as_text(of) if isinstance(of, Fraction) else of for of in told] for told in differences]
        listed = "; ".join(f"{what} was '{then}', is now '{now}'" for what, then, now in words)
        super().__init__(
            problem=f"{there.title} was charged already, at {there.charged_at}, for something else: {listed}. Undo the "
            "change to get the same release again for nothing, or charge a new revision: --revise --reason '...'."
        )


class RevisionSkipped(LedgerError):
    message = "{asked.title} cannot be charged, the next one is {due}. Revisions are numbered without gaps from 1."


class Overspend(LedgerError):
    """An account does not hold what a release asks for."""

    def __init__(
        self, request: ChargeRequest, account: Account, left: Fraction, spenders: Sequence[Charge], year: int
    ) -> None:
        needed = as_text(account.total + request.epsilon - left)
        when, wait = (f" in {year}", "wait for 1 January, ") if account.renews else ("", "")
        super().__init__(
            problem=f"{request.title} asks for epsilon {as_text(request.epsilon)}, but account '{account.name}' has "
            f"{as_text(left)} left of {as_text(account.total)}{when}. {_spent_by(spenders)} Lower `epsilon`, {wait}or "
            f"raise the total: `dphist ledger raise {account.name} --total {needed} --reason '...'`.",
            request=request,
            left=left,
            spenders=tuple(spenders),
        )


def _spent_by(charges: Sequence[Charge]) -> str:
    """Names the latest releases that spent an account, and sums up the others."""
    if not charges:
        return "Nothing was spent yet."
    shown = [f"{charge.title} ({as_text(charge.epsilon)})" for charge in charges[: -_SPENDERS_SHOWN - 1 : -1]]
    others = charges[:-_SPENDERS_SHOWN]
    if others:
        shown.append(f"and {len(others)} more ({as_text(sum((c.epsilon for c in others), Fraction(0)))})")
    return f"Spent by {'; '.join(shown)}."


class ChargeLost(LedgerError):
    message = (
        "{charge.title} was charged before this store was adopted, so that it is never drawn again. What was published "
        "of it stays as it is. To release that period anew, at its price: dphist release with --revise --reason TEXT."
    )


class ChargedElsewhere(LedgerError):
    message = (
        "{charge.title} was charged on host {there.host}, whose confidential folder {there.id:.12} alone may draw for "
        "it; this one is {here.id:.12} on {here.host}. Nothing was drawn or spent. Run the command there, or put that "
        f"folder back; if it is lost: {ADOPT}, then release anew, at its price: --revise --reason TEXT."
    )


# Publications.


class PublishedDiffers(LedgerError):
    message = (
        "{charge.title} was published already with values {there:.16}, not {asked:.16}. One charge pays for one set of "
        "values. Keep the published files; were the journal's answers lost or changed, charge a new revision: --revise "
        "--reason '...'."
    )


class NotedOtherwise(LedgerError):
    message = "{charge.title} was {note.kind} already, on {note.made_at:.10}: '{note.text}'. It stays as it is."


class Rejected(LedgerError):
    message = (
        "{charge.title} was rejected on {note.made_at:.10}: {note.text}. It is not published, and what it spent stays "
        "spent. To release that period anew, at its price: dphist release with --revise --reason TEXT, for a reason "
        "that was not given before."
    )


class PublishedAlready(LedgerError):
    message = (
        "{charge.title} was published already, so that it cannot be rejected. Take it back, marked for everybody: "
        "dphist withdraw {charge.release} {charge.period} --reason TEXT."
    )


# Decisions and their signatures.


class OperatorKeyUnusable(LedgerError):
    message = (
        "The operator's key, {where}, {problem}. Decisions are signed with it, releases do not need it: `dphist init` "
        "makes one, and DPHIST_OPERATOR_KEY names another place. Nothing was decided."
    )


class OperatorKeyOpen(LedgerError):
    """A key file that others can read, change or replace; `mend` is the command that closes it."""

    problem: str
    mend: str
    message = (
        "The operator's key, {where}, is not its owner's alone: {problem}. Nothing was decided. Close it: {mend}. If "
        "somebody may have copied or changed it, replace it then: dphist ledger rotate-key --to FILE --reason TEXT."
    )


class NotSigned(LedgerError):
    message = "A decision ('{kind}') without the signature of an operator whose key the ledger holds."


class KeyForeign(LedgerError):
    message = (
        "This operator's key is not one of this ledger's; it holds those of: {operators}. Use one of them "
        "(DPHIST_OPERATOR_KEY names its file), or have one of them add yours: dphist ledger add-key KEY --name NAME. "
        "Nothing was decided."
    )


class KeyKnown(LedgerError):
    message = "The ledger holds this key already, of {name}. Nothing was changed."


class DecisionUnknown(LedgerError):
    """An entry that is no decision, is not in force, or does not wait for a signature."""

    def __init__(self, number: int, known: Iterable[int]) -> None:
        listed = ", ".join(map(str, sorted(known)))
        super().__init__(
            problem=f"Entry {number} is no decision that this is about. "
            f"{f'These are: {listed}.' if listed else 'There is none.'} See `dphist ledger show`."
        )


class SignedAlready(LedgerError):
    message = "Entry {number} was signed by {name} already; the second signature is another operator's."


class SourceOfAnother(LedgerError):
    """A source that belongs to another account."""

    def __init__(self, address: str, account: str, others: Sequence[str]) -> None:
        super().__init__(
            problem=f"Source {address} belongs to account {' and '.join(map(repr, others))}. What '{account}' spends "
            "on the same people adds to that: to share the source, and see both totals summed, add "
            f"{' '.join(f'--also-of {other}' for other in others)}."
        )


class NotAllowed(LedgerError):
    message = "{what} {problem}. Nothing was read or spent. Whoever keeps the ledger can allow it: {command}"

    @classmethod
    def source(
        cls, account: str, asked: SourceReading, near: SourceReading | None, fields: Sequence[str], known: Iterable[str]
    ) -> NotAllowed:
        """For a source; `fields`: in which it is not as `near`, a reading that is allowed for the same address."""
        allowed = ", ".join(sorted(set(known)))
        if near is None:
            said = f"allowed are {allowed}" if allowed else "nothing is allowed yet"
            problem = f"is not allowed for account '{account}'; {said}"
        elif [*fields] == ["folder"]:
            # The folder itself is not shown: the environment may have given it.
            problem = (
                f"is allowed for account '{account}' in another folder: relative addresses start at the project of the "
                "spec, those of a decision at the project in which it is made, and links are followed. The command is "
                "to be run in the project of the spec"
            )
        else:
            listed = "; ".join(said_of(field, near, asked) for field in fields)
            problem = f"is allowed for account '{account}' to be read in another way: {listed}"
        command = f"dphist ledger allow {account} {options_of(asked)}"
        return cls(what=f"Source {asked.address}", problem=problem, command=command)

    @classmethod
    def version(cls, name: str) -> NotAllowed:
        """For an engine of a version that the suite did not pass with, `duckdb=2.1`."""
        what = name.replace("duckdb=", "DuckDB ")
        problem = (
            "would read the records, and the promise was tested with another minor version: that which an installation "
            "of this package brings"
        )
        return cls(what=what, problem=problem, command=f"dphist ledger allow --engine {name} --reason TEXT")

    @classmethod
    def check(cls, account: str, name: str) -> NotAllowed:
        """For a check of an upstream asset, such as raw/visits:complete."""
        problem = (
            f"would hold releases of account '{account}' back where it fails, so that whether a period appears depends "
            "on records: that needs a decision"
        )
        return cls(
            what=f"Check {name}", problem=problem, command=f"dphist ledger allow {account} --check {name} --reason TEXT"
        )

    @classmethod
    def query(cls, account: str, name: str, because: str) -> NotAllowed:
        """For a query that is not known to work row by row."""
        command = f"dphist ledger allow {account} --query {quote(name)} --reason TEXT"
        problem = f"needs a decision for account '{account}', as it stands now: {because.rstrip('. ')}"
        return cls(what=f"Query {name}", problem=problem, command=command)
