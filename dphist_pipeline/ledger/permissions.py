"""The rules of decisions: who may decide, what is allowed now, and what a release needs before it may read anything.

Part of the ledger's books. A decision is signed with the key of an operator that the ledger knows. For an account that
asks for two signatures, and for all that reads the same records, a decision has no effect until a second one signed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, get_args

from dphist_pipeline.base.reading import Reading
from dphist_pipeline.ledger import errors as errors
from dphist_pipeline.ledger.decisions import EVERYWHERE, FOR_ALL, NAMED, Decision, DecisionKind
from dphist_pipeline.ledger.entries import ChargeRequest, Entry
from dphist_pipeline.ledger.individual import KINDS
from dphist_pipeline.ledger.signing import is_public_key, signer_of

DECISIONS = frozenset(
    {
        *("opened", "raised", "allowed", "disallowed", "keyed", "rotated", "adopted", "countersigned", "moved"),
        *("looked", "listed"),
    }
)
# Facts of a decision beside its own, all of them true where they stand: that it waits for a second signature; that from
# it on decisions say so (`stated`), or rules hold that earlier versions did not have (`guards`). See `marks`.
MARKS = frozenset({"waits", "stated", "guards"})
# Decisions that wait for a second signature, where their account asks for two: see `Permissions._needs_two`.
_WAITING = frozenset({"raised", "allowed", "disallowed"})
# What earlier versions, which knew no operators, entered without a signature; a first operator signs for himself.
_ONCE_UNSIGNED = frozenset({"opened", "raised", "keyed"})


@dataclass
class Permissions:
    """Operators by public key, decisions by the number of their entry: those in force, and all that ever were.

    `replaced`: keys that decide no more, each with the key that took its place. `strict`: whether two signatures also
    guard what reads an account's records besides; not yet in a ledger to which only earlier versions added decisions.
    `stating`: whether decisions say by themselves that they wait; those of earlier versions did not.
    """

    operators: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # of operators by all their keys, replaced ones as well
    replaced: dict[str, str] = field(default_factory=dict)
    allowed: dict[int, Decision] = field(default_factory=dict)
    ever: dict[int, Decision] = field(default_factory=dict)
    waiting: dict[int, Entry] = field(default_factory=dict)
    lapsed: set[int] = field(default_factory=set)  # adoptions that waited until something was adopted or charged
    two_signatures: set[str] = field(default_factory=set)
    individual: set[str] = field(default_factory=set)  # accounts in which each unit pays for its own rows
    strict: bool = False
    stating: bool = False

    @property
    def are_signed(self) -> bool:
        """Whether decisions are signed here; not in a ledger of an older version, until its first decision."""
        return bool(self.operators)

    def refuse_unsigned(self, entry: Entry) -> None:
        """Refuses a decision that no known operator signed; called for every entry that is read.

        A ledger of an older version has no operator at first. Even then, decisions of kinds that the older version did
        not have are refused: somebody who can write the file may have planted them.
        """
        must = self.are_signed or entry.kind not in _ONCE_UNSIGNED
        if entry.kind in DECISIONS and must and signer_of(entry) not in self.operators:
            raise errors.LedgerError("not_signed", kind=entry.kind)

    def waits(self, entry: Entry, facts: Mapping[str, Any]) -> bool:
        """Whether a decision has no effect yet; it is then kept until it is countersigned.

        It says so itself; in a ledger of an earlier version, until one does, the rules are applied to it.
        """
        if entry.kind in DECISIONS:
            self.stating = self.stating or "stated" in facts or entry.kind == "listed"
            self.strict = self.strict or self.stating or "guards" in facts
        is_waiting = (
            "waits" in facts
            if self.stating
            else self._needs_two(entry.kind, str(entry.account), facts, strict=self.strict)
        )
        if is_waiting:
            self.waiting[entry.number] = entry
        return is_waiting

    @property
    def lacks_list_of_waiting(self) -> bool:
        """Whether an account asks for two signatures, and no entry says which decisions of earlier versions wait."""
        return bool(self.two_signatures) and not self.stating

    def waiting_before_lists(self) -> list[int]:
        """Decisions of earlier versions that wait, which neither they nor a later entry says."""
        return [] if self.stating else sorted(self.waiting)

    def lapse_adoptions(self) -> None:
        """Takes away adoptions that wait: what they were decided for has changed."""
        numbers = {number for number, entry in self.waiting.items() if entry.kind == "adopted"}
        self.lapsed |= numbers
        for number in numbers:
            del self.waiting[number]

    def marks(self, kind: str, account: str, facts: Mapping[str, Any]) -> dict[str, bool]:
        """The `MARKS` of a new decision, by what it states and by the rules in force."""
        is_double = bool(self.two_signatures or facts.get("signatures") == 2)
        guards = is_double and not self.strict
        stated = is_double and not self.stating and not self.waiting and kind != "listed"
        waits = (self.stating or stated) and self._needs_two(kind, account, facts, strict=True)
        return {name: True for name, holds in (("guards", guards), ("stated", stated), ("waits", waits)) if holds}

    def _needs_two(self, kind: str, account: str, facts: Mapping[str, Any], strict: bool) -> bool:
        """Whether the rules ask for a second signature.

        Also of what is about another account that shares records with one that asks for two, and of what is for all
        accounts: by either, one operator could spend more on the same people, or read them in another way. Where any
        account asks for two signatures, of the key of a third operator as well: otherwise one operator could add a
        second key of their own and give both signatures. A rotated key needs none: whoever holds it counts as the
        operator whose key it replaces, who could give that key away as well. See `_latest`.
        """
        two = self.two_signatures
        if kind == "keyed":
            return bool(two) and len(self.operators) > 1
        if kind == "adopted":
            # One operator, who can add a second key of their own in any case, would wait for nobody.
            return "denies" in facts and bool(two) and len(self.operators) > 1
        if kind not in _WAITING:
            return False
        if not strict or account in two:
            return account in two
        drafts = [decision_of(account, facts)] if kind == "allowed" else []
        theirs = [source for source in self.sources() if source.account in two]
        mine = [source for source in [*self.sources(), *drafts] if source.account == account]
        is_shared = any(account in decision.also_of for decision in theirs) or any(
            two & {*decision.also_of} for decision in mine
        )
        read = [decision.reading for decision in mine if decision.reading]
        same = any(decision.reading and decision.reading.same_records(own) for decision in theirs for own in read)
        # A waiver touches no records: it says that nothing is due.
        return (account == EVERYWHERE and "waiver" not in facts) or is_shared or same

    def sources(self, waiting: bool = True) -> list[Decision]:
        """Every source that any account may read, and those that `waiting` for a signature reserves."""
        decisions_waiting = (
            [decision for decision in self.waiting.values() if decision.kind == "allowed"] if waiting else []
        )
        decisions = [
            *self.allowed.values(),
            *(decision_of(str(decision.account), decision.facts) for decision in decisions_waiting),
        ]
        return [decision for decision in decisions if decision.reading is not None]

    def waiting_of(self, account: str) -> list[int]:
        """Decisions about an account that wait for a second signature; for `EVERYWHERE`, keys of further operators."""
        return sorted(number for number, entry in self.waiting.items() if entry.account == account)

    def post(self, entry: Entry, facts: Mapping[str, Any]) -> None:
        """Adds what a decision changes in who may decide, and in what is allowed."""
        match entry.kind:
            case "created" | "keyed" if "operator" in facts:
                self._know(facts["operator"])
            case "rotated":
                old = str(signer_of(entry))
                del self.operators[old]
                self.replaced[old] = facts["operator"]["key"]
                self._know(facts["operator"])
            case "opened":
                if facts.get("signatures") == 2:
                    self.two_signatures.add(str(entry.account))
                if facts.get("accounting") == "individual":
                    self.individual.add(str(entry.account))
            case "allowed":
                decision = decision_of(str(entry.account), facts)
                decision = replace(
                    decision, number=entry.number, hash=entry.hash, made_at=entry.made_at, by=self._signer(entry)
                )
                self.allowed[entry.number] = self.ever[entry.number] = decision
            case "disallowed":
                self.allowed.pop(facts["decision"], None)

    def _know(self, operator: Mapping[str, str]) -> None:
        self.operators[operator["key"]] = self.names[operator["key"]] = operator["name"]

    def add_second_signer(self, entry: Entry, first: Entry) -> None:
        """Adds the name of the second operator to a decision that has just come into force."""
        decision = self.allowed.get(first.number)
        if decision is not None:
            decision = replace(decision, by=(*decision.by, *self._signer(entry)))
            self.allowed[first.number] = self.ever[first.number] = decision

    def _signer(self, entry: Entry) -> tuple[str, ...]:
        key = signer_of(entry)
        return (self.names[key],) if key in self.names else ()

    def judge_key(self, facts: Mapping[str, Any]) -> None:
        """Refuses a malformed key, and a key that the ledger holds already, or that was replaced."""
        operator = facts["operator"]
        if operator.keys() != {"name", "key"} or not is_public_key(operator["key"]):
            raise ValueError("not a public key")
        if operator["key"] in self.names:
            raise errors.LedgerError("key_known", name=self.names[operator["key"]])

    def judge_countersignature(self, number: int, key: str | None) -> Entry:
        """The decision that waits for a second signature; refuses another one by the operator who gave the first."""
        if number in self.lapsed:
            raise errors.LedgerError("adoption_lapsed", number=number)
        if number not in self.waiting:
            raise errors.decision_unknown(number, self.waiting)
        first = self.waiting[number]
        if key is not None and key == self._latest(signer_of(first)):
            raise errors.LedgerError("signed_already", number=number, name=self.names[key])
        if first.kind == "keyed" and first.facts["operator"]["key"] in self.replaced:
            self.judge_key(first.facts)  # while it waited, an operator took that key, and replaced it
        if first.kind == "allowed":
            # While it waited, the source may have been allowed for another account.
            self.judge_allowed(str(first.account), first.facts)
        return first

    def _latest(self, key: str | None) -> str | None:
        """The key that a person decides with now, by one that they had."""
        while key in self.replaced:
            key = self.replaced[key]
        return key

    def judge_allowed(self, account: str, facts: Mapping[str, Any], waiting: bool = False) -> Decision | None:
        """The same decision, where it stands already; refuses a source of another account (`waiting`: or reserved)."""
        draft = decision_of(account, facts)
        if account in self.individual:
            self._refuse_second_reading(account, draft)
        for decision in self.allowed.values():
            same = draft.kind not in NAMED or decision.name == draft.name
            if decision.account == account and _what(decision) == _what(draft) and same:
                return decision
        if draft.reading is not None:
            others = self.owners(draft.reading, waiting) - {account, *draft.also_of}
            if others:
                raise errors.source_of_another(draft.name, account, sorted(others))
        return None

    def _refuse_second_reading(self, account: str, draft: Decision) -> None:
        """Refuses whatever an individual account does not read by the reading that it was opened with.

        What a unit paid is known by its name as text, which another reading of the same records would write otherwise.
        """
        reading, known = draft.reading, [each for each in self.ever.values() if each.account == account]
        fixed = next((each.reading for each in known if each.reading), reading)
        if reading is None or reading != fixed:
            raise errors.LedgerError("individual_reads_one", account=account)
        kinds = reading.unit_kinds
        if len(kinds) != len(reading.unit) or not KINDS.issuperset(kinds):
            found = ", ".join(kinds) or "not known: there are no such files yet"
            raise errors.LedgerError("individual_units", account=account, found=found)

    def judge_disallowed(self, number: int, account: str | None = None) -> Decision:
        """The decision that is taken back, which must be in force, and that account's if one is named."""
        decision = self.allowed.get(number)
        if decision is None or account not in (None, decision.account):
            raise errors.decision_unknown(number, self.allowed)
        return decision

    def owners(self, reading: Reading, waiting: bool = False) -> set[str]:
        """The accounts for which the same records are allowed, or reserved."""
        return {
            source.account
            for source in self.sources(waiting)
            if source.reading and source.reading.same_records(reading)
        }

    def sharing(self, account: str) -> list[str]:
        """Other accounts for which a source of this account is allowed as well."""
        readings = [
            decision.reading for decision in self.allowed.values() if decision.account == account and decision.reading
        ]
        return sorted(set().union(*map(self.owners, readings)) - {account})

    def of(self, account: str) -> list[Decision]:
        """The decisions in force for an account, in order."""
        return [decision for _, decision in sorted(self.allowed.items()) if decision.account == account]

    def decisions_for(self, request: ChargeRequest) -> tuple[Decision, ...]:
        """The decisions that let a release read what it asks for.

        Raises:
            LedgerError: `not_allowed`, there is none about the source, its reading, the query, the engine or a check;
                `not_individual`, no decision could allow it in such an account.
        """
        if request.account in self.individual:
            _refuse_unfiltered(request)
        if request.source is None:
            if self.are_signed:
                raise ValueError("a charge that names no source")
            return ()
        decisions = [self._source(request.account, request.source)]
        decisions += [] if request.query is None else [self._query(request)]
        decisions += [] if request.engine == "duckdb" else [self._engine(request.account, request.engine)]
        decisions += [self._version(name) for name in request.versions]
        decisions += [self._check(request.account, name) for name in request.checks]
        return tuple(decisions)

    def _source(self, account: str, reading: Reading) -> Decision:
        decisions = [decision for decision in self.of(account) if decision.reading is not None]
        for decision in reversed(decisions):
            if decision.reading is not None and not reading.differences(decision.reading):
                return decision
        if account in self.individual and decisions:
            raise errors.LedgerError("individual_reads_one", account=account)
        near = [
            decision.reading
            for decision in decisions
            if decision.reading is not None and decision.reading.address == reading.address
        ]
        last = near[-1] if near else None
        fields = reading.differences(last) if last else []
        raise errors.source_not_allowed(account, reading, last, fields, [decision.name for decision in decisions])

    def _query(self, request: ChargeRequest) -> Decision:
        for decision in reversed(self.of(request.account)):
            if decision.query is not None and decision.query == request.query:
                return decision
        raise errors.query_not_allowed(request.account, request.query_name)

    def _engine(self, account: str, engine: str) -> Decision:
        decisions = [decision for decision in self.of(account) if decision.server is not None]
        if not decisions:
            problem = f"has no server that is allowed for account '{account}'"
            command = f"dphist ledger allow {account} --{engine} ADDRESS"
            raise errors.LedgerError("not_allowed", what=f"`engine: {engine}`", problem=problem, command=command)
        return decisions[-1]

    def version(self, name: str) -> Decision | None:
        """The decision that allows a version of an engine, `duckdb=2.1`; None without one."""
        return next(
            (decision for decision in self.of(EVERYWHERE) if (decision.kind, decision.name) == ("version", name)), None
        )

    def _version(self, name: str) -> Decision:
        decision = self.version(name)
        if decision is None:
            raise errors.version_not_allowed(name)
        return decision

    def _check(self, account: str, name: str) -> Decision:
        for decision in self.of(account):
            if (decision.kind, decision.name) == ("check", name):
                return decision
        raise errors.check_not_allowed(account, name)


_what = attrgetter("kind", "reading", "query", "tries", "server", "folder", "also_of")


def decision_of(account: str, facts: Mapping[str, Any]) -> Decision:
    """The decision in the body of an entry of kind 'allowed', without number, hash, time and signers.

    Raises:
        ValueError: it states nothing, several things, or something `FOR_ALL` for one account, or the reverse.
    """
    kinds = [kind for kind in get_args(DecisionKind) if kind in facts]
    if len(kinds) != 1 or (kinds[0] in FOR_ALL) != (account == EVERYWHERE):
        raise ValueError("an allowance of nothing, or of several things")
    kind, stated = kinds[0], facts[kinds[0]]
    if kind in FOR_ALL and not FOR_ALL[kind].fullmatch(stated["name"]):
        raise ValueError("a name of another form")
    reading = Reading.of_facts(stated) if kind == "source" else None
    return Decision(
        account=account,
        kind=kind,
        name=reading.address if reading else stated["name"],
        reading=reading,
        query=stated["sha256"] if kind == "query" else None,
        tries=kind == "query" and stated.get("tries", False) is True,
        server=stated["server"] if kind == "engine" else None,
        folder=stated["folder"] if kind == "code_lists" else None,
        also_of=tuple(facts.get("also_of", ())),
        reason=facts["reason"],
    )


def _refuse_unfiltered(request: ChargeRequest) -> None:
    """Refuses what an individual account does not pay for, since no filter stands before it."""
    options = {
        "a quality table": request.quality,
        "`require: checks`": request.checks,
        "a signed query": request.query,
        f"`engine: {request.engine}`": request.engine != "duckdb",
    }
    for what in (name for name, value in options.items() if value):
        raise errors.LedgerError("not_individual", account=request.account, what=what)
