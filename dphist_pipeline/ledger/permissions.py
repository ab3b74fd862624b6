"""The rules of decisions: who may decide, what is allowed now, and what a release must show to read anything.

Part of the ledger's books. A decision is signed by an operator's key that the ledger knows. Of an account that asks
for two signatures, a decision has no effect until a second operator has signed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dphist_pipeline.ledger.decision_errors import (
    DecisionUnknown,
    KeyKnown,
    NotAllowed,
    NotSigned,
    SignedAlready,
    SourceOfAnother,
)
from dphist_pipeline.ledger.decisions import EVERYWHERE, Decision, SourceReading
from dphist_pipeline.ledger.entries import ChargeRequest, Entry
from dphist_pipeline.ledger.signing import is_public_key, signer_of

DECISIONS = frozenset({"opened", "raised", "allowed", "disallowed", "keyed", "adopted", "countersigned"})
# Decisions that wait for a second signature, where their account asks for two.
_WAITING = frozenset({"raised", "allowed", "disallowed"})
# What earlier versions, which knew no operators, entered without a signature; a first operator signs for himself.
_ONCE_UNSIGNED = frozenset({"opened", "raised", "keyed"})


@dataclass
class Permissions:
    """Operators by public key, decisions by the number of their entry: those in force, and all that ever were."""

    operators: dict[str, str] = field(default_factory=dict)
    allowed: dict[int, Decision] = field(default_factory=dict)
    ever: dict[int, Decision] = field(default_factory=dict)
    waiting: dict[int, Entry] = field(default_factory=dict)
    two_signatures: set[str] = field(default_factory=set)
    _by: dict[int, str] = field(default_factory=dict)

    @property
    def keyed(self) -> bool:
        """Whether decisions are signed here; not in a ledger of an older version, until its first decision."""
        return bool(self.operators)

    def refuse_unsigned(self, entry: Entry) -> None:
        """Refuses a decision that no known operator signed; called for every entry that is read.

        Before a ledger of an older version knows an operator, nobody can have decided what that version did not know:
        whoever can write its file would plant there what stands once an operator appears.
        """
        must = self.keyed or entry.kind not in _ONCE_UNSIGNED
        if entry.kind in DECISIONS and must and signer_of(entry) not in self.operators:
            raise NotSigned(entry.kind)

    def signers(self, entry: Entry) -> tuple[str, ...]:
        """The names of the operators who signed an entry."""
        key = signer_of(entry)
        return (self.operators[key],) if key in self.operators else ()

    def waits(self, entry: Entry) -> bool:
        """Whether a decision has no effect yet; it then is kept until `countersigned`.

        Where an account asks for two signatures, so does the key of a third operator: by a key that one operator adds
        alone, that operator would give the second signature, too.
        """
        needed = entry.kind in _WAITING and entry.account in self.two_signatures
        if entry.kind == "keyed":
            needed = bool(self.two_signatures) and len(self.operators) > 1
        if not needed:
            return False
        self.waiting[entry.number] = entry
        self._by[entry.number] = signer_of(entry) or ""
        return True

    def judge_key(self, facts: Mapping[str, Any]) -> None:
        """Refuses an operator's key that is none, or is known."""
        operator = facts["operator"]
        if operator.keys() != {"name", "key"} or not is_public_key(operator["key"]):
            raise ValueError("not a public key")
        if operator["key"] in self.operators:
            raise KeyKnown(self.operators[operator["key"]])

    def judge_countersignature(self, number: int, key: str | None) -> Entry:
        """The decision that waits for a second signature, which must be another operator's."""
        if number not in self.waiting:
            raise DecisionUnknown(number, sorted(self.waiting))
        if key is not None and key == self._by[number]:
            raise SignedAlready(number, self.operators[key])
        first = self.waiting[number]
        if first.kind == "allowed":
            # While it waited, the source may have been allowed for another account.
            self.judge_allowed(str(first.account), first.facts)
        return first

    def judge_allowed(self, account: str, facts: Mapping[str, Any]) -> Decision | None:
        """The same decision, where it stands already; refuses a source that belongs to another account."""
        draft = decision_of(0, "", account, facts, "", ())
        for there in self.allowed.values():
            if there.account == account and _same(there, draft):
                return there
        if draft.reading is not None:
            others = self.owners(draft.reading) - {account, *draft.also_of}
            if others:
                raise SourceOfAnother(draft.reading.address, account, sorted(others))
        return None

    def judge_disallowed(self, number: int, account: str) -> Decision:
        """The decision that is taken back, which must be in force."""
        there = self.allowed.get(number)
        if there is None or there.account != account:
            raise DecisionUnknown(number, sorted(of.number for of in self.allowed.values() if of.account == account))
        return there

    def owners(self, reading: SourceReading) -> set[str]:
        """The accounts for which the same records are allowed."""
        return {of.account for of in self.allowed.values() if of.reading and of.reading.same_records(reading)}

    def sharing(self, account: str) -> list[str]:
        """Other accounts for which a source of this account is allowed as well."""
        readings = [of.reading for of in self.allowed.values() if of.account == account and of.reading]
        return sorted(set().union(*map(self.owners, readings)) - {account})

    def of(self, account: str) -> list[Decision]:
        """What is allowed for an account, in order."""
        return [decision for _, decision in sorted(self.allowed.items()) if decision.account == account]

    def required(self, request: ChargeRequest) -> tuple[Decision, ...]:
        """The decisions that let a release read what it asks for.

        Raises:
            NotAllowed: the source, its reading or the query was not decided on.
        """
        if request.source is None:
            if self.keyed:
                raise ValueError("a charge that names no source")
            return ()
        source = self._source(request.account, request.source)
        return (source,) if request.query is None else (source, self._query(request))

    def post_operator(self, facts: Mapping[str, Any]) -> None:
        """Adds an operator."""
        if "operator" in facts:
            self.operators[facts["operator"]["key"]] = facts["operator"]["name"]

    def post_allowed(self, entry: Entry, facts: Mapping[str, Any], by: tuple[str, ...]) -> None:
        """Adds what is allowed from here on."""
        made = decision_of(entry.number, entry.hash, str(entry.account), facts, entry.made_at, by)
        self.allowed[entry.number] = self.ever[entry.number] = made

    def _source(self, account: str, asked: SourceReading) -> Decision:
        decisions = [of for of in self.of(account) if of.reading is not None]
        for decision in reversed(decisions):
            if decision.reading is not None and not asked.differences(decision.reading):
                return decision
        near = [of.reading for of in decisions if of.reading is not None and of.reading.address == asked.address]
        differences = asked.differences(near[-1]) if near else []
        raise NotAllowed.source(account, asked, differences, [of.name for of in decisions])

    def _query(self, request: ChargeRequest) -> Decision:
        for decision in self.of(request.account):
            if decision.query is not None and decision.query == request.query:
                return decision
        raise NotAllowed.query(request.account, request.query_name, request.query_because)


def decision_of(
    number: int, digest: str, account: str, facts: Mapping[str, Any], made_at: str, by: Iterable[str]
) -> Decision:
    """The decision that an entry of kind 'allowed' states; a ValueError where it states none, or several."""
    found = [kind for kind in ("source", "query", "code_lists") if kind in facts]
    if len(found) != 1 or (found == ["code_lists"]) != (account == EVERYWHERE):
        raise ValueError("an allowance of nothing, or of several things")
    shared = {"also_of": tuple(facts.get("also_of", ())), "reason": facts["reason"], "by": tuple(by)}
    if found == ["source"]:
        reading = SourceReading.of_facts(facts["source"])
        return Decision(number, digest, account, "source", reading.address, made_at, reading=reading, **shared)
    if found == ["query"]:
        query = facts["query"]
        return Decision(number, digest, account, "query", query["name"], made_at, query=query["sha256"], **shared)
    folder = facts["code_lists"]
    return Decision(number, digest, account, "code_lists", folder["name"], made_at, folder=folder["folder"], **shared)


def _same(there: Decision, draft: Decision) -> bool:
    return (there.kind, there.reading, there.query, there.folder, there.also_of) == (
        draft.kind,
        draft.reading,
        draft.query,
        draft.folder,
        draft.also_of,
    )
