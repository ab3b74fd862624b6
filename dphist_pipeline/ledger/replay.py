"""Reads a ledger back: the chain, and every rule again, for the whole of it or for a part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dphist_pipeline.canonical_json import canonical_json
from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.books import Books, account_of
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.entries import (
    SCHEMA_VERSION,
    Charge,
    ChargeRequest,
    Entry,
    charge_of,
    read_exact,
    seal,
)
from dphist_pipeline.ledger.errors import LedgerAltered, key_text
from dphist_pipeline.ledger.limits import refuse_bad_digest, refuse_bad_request, text_of
from dphist_pipeline.ledger.permissions import DECISIONS
from dphist_pipeline.ledger.signing import signer_of

_MADE_AT = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]Z")
SIGNED = DECISIONS | {"created"}
_FACTS = {
    "created": {"ledger", "schema_version", "year"},
    "opened": {"privacy_unit", "neighbours", "total", "renews", "store", "year"},
    "raised": {"total", "reason", "year"},
    "keyed": {"operator", "year"},
    "allowed": {"reason", "year"},
    "disallowed": {"decision", "reason", "year"},
    "countersigned": {"decision", "year"},
    "adopted": {"generation", "reason", "carried", "elsewhere", "year"},
    "charged": {"epsilon", "digest", "reason", "year"},
    "published": {"charge", "digest", "year"},
    "approved": {"charge", "text", "year"},
    "rejected": {"charge", "text", "year"},
    "withdrawn": {"charge", "text", "year"},
}
_OPTIONAL = {
    "created": {"operator"},
    "opened": {"signatures"},
    "allowed": {"source", "query", "code_lists", "also_of"},
    "charged": {"held", "allowed", "nonce"},
}


def replay(where: str, entries: Iterable[Entry]) -> Books:
    """The books of a whole ledger: checks the chain, and passes every judgement on every entry again."""
    books = Books(where)
    for entry in entries:
        _add(books, entry, _refuse_broken_rule)
    if books.last is None:
        raise LedgerAltered(where, None, "it holds no entry")
    return books


def gather(where: str, entries: Iterable[Entry]) -> Books:
    """The books of a part of a ledger: checks each entry's own hash, and takes the rules as kept."""
    books = Books(where)
    for entry in entries:
        _add(books, entry, None)
    return books


def _add(books: Books, entry: Entry, judge: Callable[[Books, Entry, Mapping[str, Any]], None] | None) -> None:
    """Posts an entry that is what its hash says; whatever is wrong with it becomes one LedgerAltered."""
    try:
        if seal(entry) != entry.hash:
            problem = "its contents do not fit its hash"
        else:
            facts = entry.facts
            if judge is not None:
                judge(books, entry, facts)
            books.post(entry, facts)
            return
    except DphistError as error:
        problem = str(error).removesuffix(".")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        problem = "its contents cannot be read"
    raise LedgerAltered(books.where, entry.number if isinstance(entry.number, int) else None, problem)


def _refuse_broken_rule(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    """Passes judgement on an entry that was made already, as if it were to be made now."""
    previous = books.last
    if entry.number != (previous.number + 1 if previous else 1):
        raise _BrokenRuleError("an entry before it is missing")
    if entry.previous_hash != (previous.hash if previous else None):
        raise _BrokenRuleError("it does not follow from the entry before it")
    optional = _OPTIONAL.get(entry.kind, set()) | ({"signed"} if entry.kind in SIGNED else set())
    required = _FACTS.get(entry.kind)
    if required is None or canonical_json(facts) != entry.body or not required <= set(facts) <= required | optional:
        raise ValueError("an unknown kind of entry, or a body of another one")
    if facts.get("held", True) is not True:
        raise ValueError("another word than true")
    if not _MADE_AT.fullmatch(entry.made_at) or facts["year"] != books.year_at(entry.made_at, entry.kind):
        raise _BrokenRuleError("its year is not the one it was made in")
    _JUDGE[entry.kind](books, entry, facts)


class _BrokenRuleError(DphistError):
    """What is wrong with an entry, to become part of a LedgerAltered."""


def _rejudge_created(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    if books.last is not None:
        raise _BrokenRuleError("the ledger begins a second time")
    if facts["schema_version"] not in (1, SCHEMA_VERSION):
        raise _BrokenRuleError("it was made by another version of this program, whose format is unknown here")
    text_of("ledger id", facts["ledger"])
    if (entry.account, entry.release, entry.period, entry.revision) != (None, None, None, None):
        raise _BrokenRuleError("the first entry belongs to no account or release")
    if (facts["schema_version"] == 1) == ("operator" in facts):
        raise _BrokenRuleError("it does not say who decides")
    if "operator" in facts:
        books.permissions.judge_key(facts)
        if signer_of(entry) != facts["operator"]["key"]:
            raise _BrokenRuleError("the operator's signature is missing or false")


def _rejudge_opened(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    _refuse_key(entry)
    books.judge_account(account_of(entry, facts))


def _rejudge_raised(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    _refuse_key(entry)
    books.judge_raise(str(entry.account), read_exact(facts["total"]), facts["reason"])


def _rejudge_keyed(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    _refuse_key(entry)
    books.permissions.judge_key(facts)
    first = not books.permissions.keyed
    if entry.account != EVERYWHERE or (first and signer_of(entry) != facts["operator"]["key"]):
        raise _BrokenRuleError("the operator's signature is missing or false")


def _rejudge_allowed(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    _refuse_key(entry)
    account = str(entry.account)
    if account != EVERYWHERE:
        books.account(account)
    if books.permissions.judge_allowed(account, facts) is not None:
        raise _BrokenRuleError("it is allowed a second time")


def _rejudge_disallowed(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    _refuse_key(entry)
    books.permissions.judge_disallowed(facts["decision"], str(entry.account))


def _rejudge_countersigned(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    _refuse_key(entry)
    books.permissions.judge_countersignature(facts["decision"], signer_of(entry))


def _rejudge_adopted(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    _refuse_key(entry)
    books.judge_adopted(facts)


def _rejudge_charged(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    charge = charge_of(entry, facts)
    account = books.account(charge.account)
    request = ChargeRequest(
        account=charge.account,
        release=charge.release,
        period=charge.period,
        revision=charge.revision,
        epsilon=charge.epsilon,
        digest=charge.digest,
        reason=charge.reason,
        privacy_unit=account.privacy_unit,
        neighbours=account.neighbours,
        store_id=account.store_id,
    )
    refuse_bad_request(request)
    if books.judge_charge(request, facts["year"], recorded=True) is not None:
        raise _BrokenRuleError(f"{key_text(charge)} is charged a second time")
    decisions = {decision.number for decision in books.permissions.of(charge.account)}
    if books.permissions.keyed and (not charge.allowed or not decisions.issuperset(charge.allowed)):
        raise _BrokenRuleError(f"{key_text(charge)} is charged without a decision that allows it")


def _charge_meant(books: Books, entry: Entry, facts: Mapping[str, Any]) -> Charge:
    there = books.charges.get((str(entry.release), str(entry.period)), {}).get(entry.revision or 0)
    if there is None or (there.number, there.account) != (facts["charge"], entry.account):
        raise _BrokenRuleError("it is about what was not charged")
    return there


def _rejudge_note(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    if books.judge_note(_charge_meant(books, entry, facts), entry.kind, facts["text"]):
        raise _BrokenRuleError(f"it is {entry.kind} a second time")


def _rejudge_published(books: Books, entry: Entry, facts: Mapping[str, Any]) -> None:
    there = _charge_meant(books, entry, facts)
    refuse_bad_digest(facts["digest"])
    if books.judge_published(there, facts["digest"]):
        raise _BrokenRuleError("it is published a second time")


_JUDGE: dict[str, Callable[[Books, Entry, Mapping[str, Any]], None]] = {
    "created": _rejudge_created,
    "opened": _rejudge_opened,
    "raised": _rejudge_raised,
    "keyed": _rejudge_keyed,
    "allowed": _rejudge_allowed,
    "disallowed": _rejudge_disallowed,
    "countersigned": _rejudge_countersigned,
    "adopted": _rejudge_adopted,
    "charged": _rejudge_charged,
    "published": _rejudge_published,
    "approved": _rejudge_note,
    "rejected": _rejudge_note,
    "withdrawn": _rejudge_note,
}


def _refuse_key(entry: Entry) -> None:
    if (entry.release, entry.period, entry.revision) != (None, None, None):
        raise _BrokenRuleError("it names a release but is of a whole account")
