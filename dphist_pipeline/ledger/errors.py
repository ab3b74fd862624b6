"""Why a ledger or its witness refuses, or an operator's decision: what is wrong, where, and how to mend it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from shlex import quote
from typing import TYPE_CHECKING

from dphist_pipeline.errors import Halted, TryAgain, did_you_mean, how_to_install
from dphist_pipeline.ledger.epsilon_text import as_text

if TYPE_CHECKING:
    from dphist_pipeline.base.reading import Reading
    from dphist_pipeline.ledger.entries import Account, Charge, ChargeRequest

ADOPT = "`dphist store adopt --reason TEXT`"
# What follows a refusal of a row that only the witness holds. Nobody can tell it from what a restored backup lacks.
_DENIED = (
    "Was the ledger, or the whole store, put back from a backup, or is this a copy? Then put the newer ledger back. If "
    f"that one is lost, or nothing was put back and the row was entered by hand: {ADOPT}. It counts as spent every "
    "charge that the witness holds, never less, and what was charged but not drawn is released anew, at its price. An "
    "operator who knows that nothing was drawn for a charge gives its price back: `dphist ledger raise {account} "
    "--total TOTAL --reason TEXT`."
)
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


# By the code of an error; `problem` is the whole message of codes that are not here.
MESSAGES = {
    # The file of a ledger or of a witness: `noun` says which of the two.
    "file_exists": "{where} is there already. Use it as it is, or make the new {noun} elsewhere.",
    "file_busy": (
        "The {noun} at {where} was in use by another program for more than {seconds:g} seconds. Run the same command "
        "again once it is free: it is never charged twice."
    ),
    "file_unusable": (
        "The {noun} at {where} cannot be used: {problem}. Mend that, then run the same command again: it is never "
        "charged twice."
    ),
    "connection_lost": (
        "The {noun} at {where} cannot be used: {problem}. Run the same command again: it is never charged twice."
    ),
    "ledger_missing": (
        "There is no ledger at {where}. Put it back, or set DPHIST_LEDGER to where it is now. Only `dphist init` makes "
        "a ledger, with its store; a new one cannot replace one that was charged."
    ),
    "ledger_foreign": (
        "The ledger at {where} is another one: its id is {found}, this store was made with {expected}. Put this "
        "store's own ledger back, or point DPHIST_LEDGER at it."
    ),
    "ledger_moved": (
        "The ledger at {where} was moved to {to}, and takes no entry any more. Set DPHIST_LEDGER to {to}, with your "
        "user's name before the host. Was the command that moved it cut short? Then run it again first."
    ),
    "ledger_altered": (
        "The ledger at {where}: {problem}. It was altered or damaged, so nothing is charged to it. Put back an intact "
        "copy that holds every entry up to the latest release; never edit it by hand."
    ),
    "waiting_unlisted": (
        "The server of the ledger at {where} does not know which decisions of an earlier version wait for a second "
        "signature, so nothing was charged: as the owner of its tables, with an operator's key, run `dphist ledger "
        "upgrade` once, then the same command again."
    ),
    "entry_overtaken": (
        "Another program entered something into the {noun} at {where} at the same moment. Nothing was entered. Run the "
        "same command again: it is never charged twice."
    ),
    "ledger_outdated": (
        "The ledger at {where} does not hold entry {number} as {seen_in} states it. Was the ledger restored from an "
        "older backup? Put back the newer ledger; never continue with this one, which has forgotten what was spent. "
        f"If the newer one is lost: {ADOPT}, which counts as spent what the witness holds."
    ),
    # Accounts and charges.
    "reason_missing": "{what} needs a reason, kept in the ledger for good: add --reason '...'.",
    "total_not_larger": "Account '{name}' has a total of {total}; {asked} is not larger. A total can only be raised.",
    "revision_skipped": (
        "{asked.title} cannot be charged, the next one is {due}. Revisions are numbered without gaps from 1."
    ),
    "charge_lost": (
        "{charge.title} was charged before this store was adopted, so that it is never drawn again. What was published "
        "of it stays as it is. To release that period anew, at its price: dphist release with --revise --reason TEXT."
    ),
    "charged_elsewhere": (
        "{charge.title} was charged on host {there.host}, whose confidential folder {there.id:.12} alone may draw for "
        "it; this one is {here.id:.12} on {here.host}. Nothing was drawn or spent. Run the command there, or put that "
        f"folder back; if it is lost: {ADOPT}, then release anew, at its price: --revise --reason TEXT."
    ),
    # Individual accounts.
    "individual_needs": "Account '{account}' cannot be opened with `--accounting individual` without {what}.",
    "individual_on_server": (
        "The ledger at {where} is on a server, whose rules do not know individual accounts: keep the ledger in a file."
    ),
    "individual_reads_one": (
        "Account '{account}' reads by the one source that it was opened with, since what each unit has paid is known "
        "by its name as that source gives it: open another account for anything else."
    ),
    "individual_units": (
        "Account '{account}' pays by the names of its units, which must be text, whole numbers or UUIDs in files that "
        "are there; what their columns hold is {found}."
    ),
    "not_individual": "Account '{account}' is an individual one, which {what} cannot be charged to: leave it out.",
    "state_overtaken": "Another charge to account '{account}' came first, or a new year began.",
    # Publications.
    "published_differs": (
        "{charge.title} was published already with values {there:.16}, not {asked:.16}. One charge pays for one set of "
        "values. Keep the published files; were the journal's answers lost or changed, charge a new revision: --revise "
        "--reason '...'."
    ),
    "noted_otherwise": (
        "{charge.title} was {note.kind} already, on {note.made_at:.10}: '{note.text}'. It stays as it is."
    ),
    "rejected": (
        "{charge.title} was rejected on {note.made_at:.10}: {note.text}. It is not published, and what it spent stays "
        "spent. To release that period anew, at its price: dphist release with --revise --reason TEXT, for a reason "
        "that was not given before."
    ),
    "published_already": (
        "{charge.title} was published already, so that it cannot be rejected. Take it back, marked for everybody: "
        "dphist withdraw {charge.release} {charge.period} --reason TEXT."
    ),
    # Decisions and their signatures.
    "operator_key_unusable": (
        "The operator's key, {where}, {problem}. Decisions are signed with it, releases do not need it: `dphist init` "
        "makes one, and DPHIST_OPERATOR_KEY names another place. Nothing was decided."
    ),
    "operator_key_open": (
        "The operator's key, {where}, is not its owner's alone: {problem}. Nothing was decided. Close it: {mend}. If "
        "somebody may have copied or changed it, replace it then: dphist ledger rotate-key --to FILE --reason TEXT."
    ),
    "not_signed": "A decision ('{kind}') without the signature of an operator whose key the ledger holds.",
    "key_foreign": (
        "This operator's key is not one of this ledger's; it holds those of: {operators}. Use one of them "
        "(DPHIST_OPERATOR_KEY names its file), or have one of them add yours: dphist ledger add-key KEY --name NAME. "
        "Nothing was decided."
    ),
    "key_known": "The ledger holds this key already, of {name}. Nothing was changed.",
    "signed_already": "Entry {number} was signed by {name} already; the second signature is another operator's.",
    "adoption_lapsed": (
        "Entry {number}, an adoption, is not what ledger and witness ask for now: something was charged or adopted "
        "since, or the witness has seen more. Nothing was changed. If the store still needs it, an operator runs "
        f"{ADOPT} again, and another one signs the new entry."
    ),
    "not_allowed": "{what} {problem}. Nothing was read or spent. Whoever keeps the ledger can allow it: {command}",
    # Decisions about it come one version after programs that read them: see *Another version of DuckDB or Polars*.
    "other_polars": (
        "Polars would decide which rows are kept, and the Polars of this installation ({minor}) is not the one that "
        f"the promise was tested with. Nothing was read or spent. Install by the pins: {how_to_install()}"
    ),
    # A clock that cannot be right: what it says, what speaks against it, and the way out.
    "clock_behind": (
        "The ledger at {where} has an entry of {year}, and this machine's clock says {now}. The year decides what an "
        "account has left, so nothing was charged. Set the clock right and run the same command again. Was it made "
        f"while a clock was wrong: {ADOPT}; what is dated ahead then counts in this year too, and releases go on."
    ),
    "clock_before_build": (
        "This machine's clock says {now}, and this version was built in {built}. The year decides what an account has "
        "left, so nothing was entered or charged. Set the clock right (timedatectl set-ntp true), then run the same "
        "command again."
    ),
    "clock_ahead": (
        "This machine's clock says {now}. The newest time that anything else attests, {by}, is {newest}: {days} days "
        "before, and this release may be charged {most} days after it. A clock that is ahead spends totals of years to "
        "come, and releases periods before their rows are there. Nothing was read or charged to the ledger at {where}. "
        "Set the clock right, or, if it is right, have an operator say so: dphist ledger allow --clock {now:.10} "
        "--reason TEXT. Then run the same command again."
    ),
    # A witness.
    "witness_altered": (
        "The witness at {where} cannot be used: {problem}. Put back an intact one. If there is none, set "
        f"DPHIST_WITNESS to a new file or an empty database, and run {ADOPT} for every store that it knew."
    ),
    "store_enrolled": "The witness at {where} knows store {store_id} already. A new store takes a new id.",
    "witness_outdated": (
        "The witness at {where} is at generation {known} of store {store_id}, its ledger at {generation}: the witness "
        f"was put back from a backup, or an adoption was interrupted. Put back the newer witness, or run {ADOPT}."
    ),
    "ledger_behind_witness": (
        "The witness at {where} has seen a charge that this ledger does not hold as entry {charge.number}: "
        "{charge.title}, epsilon {epsilon} of account '{charge.account}'. Nothing was drawn. "
        + _DENIED.replace("{account}", "{charge.account}")
    ),
    "ledger_lacks_head": (
        "The ledger at {ledger} does not hold entry {number} as the witness at {where} has seen it. Nothing was drawn. "
        + _DENIED.replace("{account}", "ACCOUNT")
    ),
    "answer_drawn_elsewhere": (
        "A copy of this store has drawn the answer to '{step}' already, as the witness at {where} saw, or this store's "
        "journal was lost, or somebody entered that by hand. Nothing of this draw was used, and the same call costs "
        "nothing more. Release from that copy, put the journal back, or release anew, at its price: --revise --reason "
        "TEXT. An operator who knows that nothing was drawn for this charge gives its price back: `dphist ledger raise "
        "{account} --total TOTAL --reason TEXT`."
    ),
}


class LedgerError(Halted):
    """Anything that a ledger or its witness refuses, before a charge or after it.

    `code` names the message in `MESSAGES`, by default by the class; `culprit` fills it, and is kept by name.
    """

    def __init__(self, code: str = "", **culprit: object) -> None:
        super().__init__(code=code)
        vars(self).update(culprit)
        self.args = (MESSAGES.get(self.code, "{problem}").format(**culprit),)


class LedgerBusy(LedgerError, TryAgain):
    """A file in use, or a server that does not answer, or no longer; a charge that was under way may have been made."""


class StateOvertaken(LedgerError, TryAgain):
    """What units had paid when rows were filtered is not what they have paid now; they are filtered again."""


class FileExists(LedgerError):
    """A ledger or a witness was to be made where there is one."""


class LedgerMoved(LedgerError):
    """A ledger that takes no entry any more, and names its successor."""


class OperatorKeyUnusable(LedgerError):
    """No key file, or one that holds no key."""


class OperatorKeyOpen(LedgerError):
    """A key file that others can read, change or replace; `mend` is the command that closes it."""

    problem: str
    mend: str


class AnswerDrawnElsewhere(LedgerError):
    """A copy of the store has drawn the answer, or this store's journal was lost."""


class UnknownAccount(LedgerError):
    """An account that was never opened."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name, self.known = name, tuple(sorted(known))
        hint = did_you_mean(name, self.known) if self.known else "No account is open yet."
        super().__init__(
            problem=f"The ledger holds no account '{name}'. {hint} To open it as a spec says, and let it read the "
            f"source: `dphist ledger open {quote(name)} --for SPEC --total EPSILON`."
        )


class AlreadyCharged(LedgerError):
    """A released period is asked for again with other contents: (what, as charged, as asked)."""

    def __init__(self, there: Charge, differences: Sequence[tuple[str, str | Fraction, str | Fraction]]) -> None:
        self.there, self.differences = there, differences
        words = [
            [as_text(side) if isinstance(side, Fraction) else side for side in difference] for difference in differences
        ]
        changes = "; ".join(f"{term} was '{then}', is now '{now}'" for term, then, now in words)
        super().__init__(
            problem=f"{there.title} was charged already, at {there.charged_at}, for something else: {changes}. Undo "
            "the change to get the same release again at no cost, or charge a new revision: --revise --reason '...'."
        )


class WitnessMissing(LedgerError):
    """No witness, or one that does not know the store, or a charge of it."""

    def __init__(self, where: str, unknown: str = "") -> None:
        finding = f"The witness at {where} does not know {unknown}" if unknown else f"There is no witness at {where}"
        super().__init__(
            problem=f"{finding}. Set DPHIST_WITNESS to the witness that this store had. If it is lost, and no copy of "
            f"this store is in use: {ADOPT}."
        )


def address_refused(noun: str, problem: str) -> LedgerError:
    """A place where a ledger or a witness cannot be."""
    sentence = f"The {noun} cannot be kept there: {problem}. {_MENDED_ADDRESS[noun]}"
    return LedgerError("address_refused", problem=sentence, noun=noun)


def not_recordable(name: str, value: object, rule: str) -> LedgerError:
    """A value that the ledger does not take."""
    text = repr(value)
    problem = f"{name} {text if len(text) <= 60 else text[:57] + '...'}: it must be {rule}."
    return LedgerError("not_recordable", problem=problem)


def account_exists(there: Account, account: Account) -> LedgerError:
    """An account was to be opened a second time."""
    renews = f", renewed {there.renews}" if there.renews else ""
    terms = (
        f"with privacy unit '{there.privacy_unit}', neighbours '{there.neighbours}', total {as_text(there.total)}"
        f"{renews}, store {there.store_id}"
    )
    problem = (
        f"Account '{there.name}' is open already, "
        f"{'with the same terms: nothing to do' if there == account else terms}. Terms are fixed once; for a larger "
        f"total: `dphist ledger raise {there.name} --total ... --reason ...`; for other terms: another account."
    )
    return LedgerError("account_exists", problem=problem)


def account_disagrees(name: str, differences: Sequence[tuple[str, str, str]]) -> LedgerError:
    """A spec or a store has other terms than its account: (what, the account's, the release's)."""
    differences_text = "; ".join(f"{term} is '{ours}' there but '{theirs}' here" for term, ours, theirs in differences)
    mend = "Correct the spec, or open another account for these terms."
    if any(what == "store" for what, _, _ in differences):
        mend += " One account serves one store only: release into the store it was opened for."
    return LedgerError(
        "account_disagrees", problem=f"Account '{name}' was opened with other terms: {differences_text}. {mend}"
    )


def overspend(
    request: ChargeRequest, account: Account, remaining: Fraction, spenders: Sequence[Charge], year: int
) -> LedgerError:
    """An account does not hold what a release asks for."""
    total_needed = as_text(account.total + request.epsilon - remaining)
    when, wait = (f" in {year}", "wait for 1 January, ") if account.renews else ("", "")
    problem = (
        f"{request.title} asks for epsilon {as_text(request.epsilon)}, but account '{account.name}' has "
        f"{as_text(remaining)} left of {as_text(account.total)}{when}. {_spenders_text(spenders)} Lower `epsilon`, "
        f"{wait}or raise the total: `dphist ledger raise {account.name} --total {total_needed} --reason '...'`."
    )
    return LedgerError("overspend", problem=problem, request=request, left=remaining, spenders=tuple(spenders))


def counts_nobody(request: ChargeRequest, account: Account, everybody: Fraction) -> LedgerError:
    """A charge to an individual account of which one row costs more than a unit may pay in a year."""
    pays = account.total * (1 - account.left_out) - everybody
    problem = (
        f"{request.title} would count nobody: a row costs {as_text(request.epsilon / request.rows)} of epsilon, and in "
        f"account '{account.name}' a unit has at most {as_text(max(pays, Fraction(0)))} for its rows this year; lower "
        "`epsilon`, or wait for 1 January."
    )
    return LedgerError("counts_nobody", problem=problem, request=request)


def _spenders_text(charges: Sequence[Charge]) -> str:
    """Names the latest releases that spent an account, and sums up the others."""
    if not charges:
        return "Nothing was spent yet."
    spenders = [f"{charge.title} ({as_text(charge.epsilon)})" for charge in charges[: -_SPENDERS_SHOWN - 1 : -1]]
    rest = charges[:-_SPENDERS_SHOWN]
    if rest:
        spenders.append(f"and {len(rest)} more ({as_text(sum((c.epsilon for c in rest), Fraction(0)))})")
    return f"Spent by {'; '.join(spenders)}."


def decision_unknown(number: int, known: Iterable[int]) -> LedgerError:
    """An entry that is no decision, is not in force, or does not wait for a signature."""
    numbers = ", ".join(map(str, sorted(known)))
    problem = (
        f"Entry {number} is no decision that this is about. "
        f"{f'These are: {numbers}.' if numbers else 'There is none.'} See `dphist ledger show`."
    )
    return LedgerError("decision_unknown", problem=problem)


def source_of_another(address: str, account: str, others: Sequence[str]) -> LedgerError:
    """A source that belongs to another account."""
    problem = (
        f"Source {address} belongs to account {' and '.join(map(repr, others))}. What '{account}' spends "
        "on the same people adds to that: to share the source, and see both totals summed, add "
        f"{' '.join(f'--also-of {other}' for other in others)}."
    )
    return LedgerError("source_of_another", problem=problem)


def source_not_allowed(
    account: str, reading: Reading, near: Reading | None, fields: Sequence[str], known: Iterable[str]
) -> LedgerError:
    """For a source; `fields`: in which it is not as `near`, a reading that is allowed for the same address."""
    allowed = ", ".join(sorted(set(known)))
    if near is None:
        listing = f"allowed are {allowed}" if allowed else "nothing is allowed yet"
        problem = f"is not allowed for account '{account}'; {listing}"
    elif [*fields] == ["folder"]:
        # The folder itself is not shown: the environment may have given it.
        problem = (
            f"is allowed for account '{account}' in another folder: relative addresses start at the project of the "
            "spec, those of a decision at the project in which it is made, and links are followed. The command is "
            "to be run in the project of the spec"
        )
    else:
        # That a CSV is read otherwise now stands last, and tells of quotes, too.
        told = sorted({*fields} - ({"csv_quote"} if "lines" in fields else set()), key="lines".__eq__)
        reasons = "; ".join(reading.difference_in_words(field, near) for field in told)
        problem = f"is allowed for account '{account}' to be read in another way: {reasons}"
    command = f"dphist ledger allow {account} {reading.options}"
    return LedgerError("not_allowed", what=f"Source {reading.address}", problem=problem, command=command)


def version_not_allowed(name: str) -> LedgerError:
    """Refuses an engine of a version that the suite did not pass with, `duckdb=2.1`; `polars=` where there is none."""
    engine, _, minor = name.partition("=")
    if engine == "polars":
        return LedgerError("other_polars", minor=minor or "missing")
    problem = (
        "would read the records, and the promise was tested with another minor version: that which an installation "
        "of this package brings"
    )
    command = f"dphist ledger allow --engine {name} --reason TEXT"
    return LedgerError("not_allowed", what=f"DuckDB {minor}", problem=problem, command=command)


def check_not_allowed(account: str, name: str) -> LedgerError:
    """Refuses a check of an upstream asset, such as raw/visits:complete, that nobody allowed."""
    problem = (
        f"would hold releases of account '{account}' back where it fails, so that whether a period appears depends "
        "on records: that needs a decision"
    )
    command = f"dphist ledger allow {account} --check {name} --reason TEXT"
    return LedgerError("not_allowed", what=f"Check {name}", problem=problem, command=command)


def query_not_allowed(account: str, name: str) -> LedgerError:
    """Refuses a query that nobody signed."""
    command = f"dphist ledger allow {account} --query {quote(name)} --reason TEXT"
    problem = (
        f"needs a decision for account '{account}', as its text stands now: the promise rests on it. What is charged "
        "already goes on once that is made, for nothing"
    )
    return LedgerError("not_allowed", what=f"Query {name}", problem=problem, command=command)


def store_superseded(where: str, store_id: str, generation: int, current: int) -> LedgerError:
    """Another copy of the store was adopted."""
    own = f"generation {generation}" if generation != current else f"another generation {generation}"
    problem = (
        f"Another copy of store {store_id} was adopted: the witness at {where} is at generation {current}, "
        f"this copy at {own}. This copy draws no more. Release from the adopted copy; only if that one is lost: "
        f"{ADOPT}."
    )
    return LedgerError("store_superseded", problem=problem, generation=generation, current=current)
