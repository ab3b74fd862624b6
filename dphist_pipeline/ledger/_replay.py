"""Reads a ledger back: the chain, and every rule again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.books import Books, account_of
from dphist_pipeline.ledger.decisions import EVERYWHERE, DecisionKind
from dphist_pipeline.ledger.entries import SCHEMA_VERSION, Charge, ChargeRequest, Entry, charge_of, read_exact, seal
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.limits import refuse_no_reason, text_of
from dphist_pipeline.ledger.permissions import DECISIONS, MARKS, Permissions
from dphist_pipeline.ledger.signing import signer_of

_MADE_AT = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z")
_NOTE: tuple[set[str], set[str]] = ({"charge", "text"}, set())
# What a body must hold, by the kind of its entry, and what it may hold beside that.
_FACTS: dict[str, tuple[set[str], set[str]]] = {
    "created": ({"ledger", "schema_version"}, {"operator", "signed"}),
    "opened": (
        {"privacy_unit", "neighbours", "total", "renews", "store"},
        {"signatures", "signed", "accounting", "left_out"},
    ),
    "raised": ({"total", "reason"}, {"signed"}),
    "keyed": ({"operator"}, {"signed"}),
    "rotated": ({"operator", "reason"}, {"signed"}),
    "allowed": ({"reason"}, {*get_args(DecisionKind), "also_of", "signed"}),
    "disallowed": ({"decision", "reason"}, {"signed"}),
    "countersigned": ({"decision"}, {"signed"}),
    "adopted": ({"generation", "reason", "carried", "elsewhere"}, {"signed", "denies"}),
    "moved": ({"to", "database"}, {"signed"}),
    "looked": ({"release", "period", "spec", "reason"}, {"signed"}),
    "listed": ({"waiting"}, {"signed"}),
    "charged": ({"epsilon", "digest", "reason"}, {"held", "upstream_checked", "allowed", "nonce", "folder", "granted"}),
    "published": ({"charge", "digest"}, set()),
    "rendered": ({"charge", "digest"}, set()),
    "approved": _NOTE,
    "rejected": _NOTE,
    "withdrawn": _NOTE,
}


def replay(where: str, entries: Iterable[Entry]) -> Books:
    """The books of a whole ledger, of entries by rising number: checks the chain, and judges every entry again.

    Raises:
        LedgerError: `ledger_altered`, something is wrong with an entry, or there is none.
    """
    books = follow(Books(where), entries)
    if books.last is None:
        raise LedgerError("ledger_altered", where=where, problem="it holds no entry")
    return books


def follow(books: Books, entries: Iterable[Entry]) -> Books:
    """The books of a whole ledger, by those of its beginning, which was checked already, and the entries after it.

    The books are changed in place, and of no use after an error.

    Raises:
        LedgerError: `ledger_altered`, whatever is wrong with an entry.
    """
    for entry in entries:
        try:
            if seal(entry) != entry.hash:
                raise _BrokenRule("its contents do not fit its hash")
            if entry.kind not in _FACTS:
                raise ValueError("an unknown kind of entry")
            facts = entry.facts
            _refuse_broken_rule(books, entry, facts)
            books.post(entry, facts)
            continue
        except DphistError as error:
            problem = str(error).removesuffix(".")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            problem = "its contents cannot be read"
        number = entry.number if isinstance(entry.number, int) else "without a number"
        raise LedgerError("ledger_altered", where=f"{books.where}, entry {number}", number=number, problem=problem)
    return books


class _BrokenRule(DphistError):
    """What is wrong with an entry, to become part of a LedgerAltered."""


def _refuse_broken_rule(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    """Passes judgement on an entry that was made already, as if it were to be made now."""
    previous = books.last
    if entry.number != (previous.number + 1 if previous else 1):
        raise _BrokenRule("an entry before it is missing")
    if entry.previous_hash != (previous.hash if previous else None):
        raise _BrokenRule("it does not follow from the entry before it")
    required, optional = _FACTS[entry.kind]
    more = optional | {"year", *MARKS} if entry.kind in DECISIONS else optional | {"year"}
    if canonical_json(facts) != entry.body or not required | {"year"} <= facts.keys() <= required | more:
        raise ValueError("a body of another kind of entry")
    flags = (facts.get(name, True) for name in ("held", "denies", *MARKS))
    if not all(flag is True for flag in flags) or facts.get("upstream_checked", "unsaid") == "":
        raise ValueError("another word than true")
    if not _MADE_AT.fullmatch(entry.made_at) or facts["year"] != books.year_at(
        entry.made_at, entry.kind, "waits" in facts
    ):
        raise _BrokenRule("its year is not the one it was made in")
    if entry.kind == "created":
        _judge_created(books, entry, facts)
    elif entry.kind in DECISIONS:
        _judge_decision(books, entry, facts)
    elif entry.kind == "charged":
        _judge_charged(books, entry, facts)
    else:
        _judge_publication(books, entry, facts)


def _judge_created(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    if books.last is not None:
        raise _BrokenRule("the ledger begins a second time")
    if facts["schema_version"] not in (1, SCHEMA_VERSION):
        raise _BrokenRule("it was made by another version of this program, whose format is unknown here")
    text_of("ledger id", facts["ledger"])
    if (entry.account, entry.release, entry.period, entry.revision) != (None, None, None, None):
        raise _BrokenRule("the first entry belongs to no account or release")
    if (facts["schema_version"] == 1) == ("operator" in facts):
        raise _BrokenRule("it does not say who decides")
    if "operator" in facts:
        _judge_key(books, entry, facts)


def _judge_key(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    """Refuses a bad key, one that takes another's place without a reason, and a first operator who did not sign."""
    if entry.kind == "rotated":
        refuse_no_reason("A key that takes another's place", facts["reason"])
    books.permissions.judge_key(facts)
    false = not books.permissions.are_signed and signer_of(entry) != facts["operator"]["key"]
    if false or entry.account not in (None, EVERYWHERE):
        raise _BrokenRule("the operator's signature is missing or false")


def _judge_decision(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    if (entry.release, entry.period, entry.revision) != (None, None, None):
        raise _BrokenRule("it names a release but is of a whole account")
    account = str(entry.account)
    match entry.kind:
        case "opened":
            books.judge_account(account_of(entry, facts))
        case "raised":
            books.judge_raise(account, read_exact(facts["total"]), facts["reason"])
        case "keyed" | "rotated":
            _judge_key(books, entry, facts)
        case "allowed":
            _judge_allowed(books, account, facts)
        case "disallowed" | "countersigned":
            _judge_earlier(books, entry, facts["decision"])
        case "adopted":
            books.judge_adopted(facts)
            if facts["carried"] and "denies" not in facts and (books.permissions.stating or "stated" in facts):
                raise _BrokenRule("it carries over what the ledger does not hold, and does not say that it denies it")
        case "looked":
            books.judge_look(account, facts)
        case "moved":
            text_of("address", facts["to"])
            text_of("database", facts["database"])
        case "listed":
            # Compared as text: what a server reads as a number is one.
            numbers = str(books.permissions.waiting_before_lists())
            if account != EVERYWHERE or not books.permissions.lacks_list_of_waiting or str(facts["waiting"]) != numbers:
                raise _BrokenRule("it lists other decisions than those that wait for a second signature")
    _judge_marks(books.permissions, entry, facts)


def _judge_marks(permissions: Permissions, entry: Entry, facts: Mapping[str, Any]) -> None:
    """Refuses a decision that waits otherwise than the rules in force ask for; earlier versions did not say."""
    expected = permissions.marks(entry.kind, str(entry.account), facts)
    if "stated" in facts and "stated" not in expected:
        raise _BrokenRule("it is not the first decision that says whether it waits for a second signature")
    is_stated = permissions.stating or "stated" in facts
    if ("waits" in facts) != (is_stated and "waits" in expected):
        raise _BrokenRule("whether it waits for a second signature is not what the rules ask for")


def _judge_earlier(books: Books, entry: Entry, decision: int) -> None:
    """Refuses to take back, or to sign, a decision for which that cannot be done."""
    if entry.kind == "disallowed":
        books.permissions.judge_disallowed(decision, str(entry.account))
    else:
        books.judge_countersignature(decision, signer_of(entry))


def _judge_allowed(books: Books, account: str, facts: Mapping[str, Any]) -> None:
    if account != EVERYWHERE:
        books.account(account)
    waiting = books.permissions.strict or "guards" in facts or "stated" in facts
    if books.permissions.judge_allowed(account, facts, waiting) is not None:
        raise _BrokenRule("it is allowed a second time")


def _judge_charged(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    charge = charge_of(entry, facts)
    account = books.account(charge.account)
    request = ChargeRequest(
        *(charge.account, charge.release, charge.period, charge.revision, charge.epsilon, charge.digest, charge.reason),
        *(account.privacy_unit, account.neighbours, account.store_id),
        upstream_checked=charge.upstream_checked,
        folder=charge.folder,
        rows=charge.granted.rows if charge.granted else 0,
        granted=charge.granted,
    )
    if (charge.granted is not None) != account.is_individual:
        raise _BrokenRule(f"{charge.title} does not pay as its account asks for")
    if books.judge_charge(request, facts["year"], recorded=True) is not None:
        raise _BrokenRule(f"{charge.title} is charged a second time")
    own, general = (
        {decision.number for decision in books.permissions.of(name)} for name in (charge.account, EVERYWHERE)
    )
    allowed = {*charge.allowed}
    if books.permissions.are_signed and not (allowed & own and allowed <= own | general):
        raise _BrokenRule(f"{charge.title} is charged without a decision that allows it")


def _judge_publication(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    charge: Charge | None = books.revisions(str(entry.release), str(entry.period)).get(entry.revision or 0)
    if charge is None or (charge.number, charge.account) != (facts["charge"], entry.account):
        raise _BrokenRule("it is about what was not charged")
    if books.judge_publication(charge, entry.kind, facts):
        raise _BrokenRule(f"it is {entry.kind} a second time")
