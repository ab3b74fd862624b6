"""One history of a ledger gives the same answers in a file and on a server, with the user's note or without."""

from __future__ import annotations

import hashlib
import os
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from database_server import Server
from unit.ledger_scenario import HEALTH, WEEKLY, url_of

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.ledger import _checkpoint, opened
from dphist_pipeline.ledger._replay import replay
from dphist_pipeline.ledger.database import ENTRIES
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.entries import Entry, seal
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.permissions import Permissions
from dphist_pipeline.ledger.signing import Operator

KEYS = [Operator(name, Ed25519PrivateKey.from_private_bytes(bytes([n] * 32))) for n, name in enumerate("abcd", 1)]
READINGS = [
    Reading(f"{name}.csv", "/office/data", "csv", csv_delimiter=delimiter, unit=("patient_id",))
    for name, delimiter in (("one", ","), ("one", ";"), ("two", ","), ("three", ","))
]
NAMES = ("first", "second", "third")
# Of letters on which versions of Unicode, or a server's rules before, disagree.
TEXTS = (*["r"] * 8, "late \u00fc", "\U0001d400", "a\U00013439b", "\u3000", "a\u200bb", "\U000e0020", "\U0001fb93")
STEPS = 40


@dataclass
class Both:
    """A ledger in a file, and one on a server, to which the same is done."""

    file: Ledger
    server: Ledger

    def do(self, act: Callable[[Ledger], Any]) -> str:
        """What both say to an act: nothing, or the code of a refusal."""
        told = answer(self.server, act)
        if told == "waiting_unlisted":  # which a file never says
            return self.do(lambda made: made.list_waiting(KEYS[0]))
        assert told == answer(self.file, act), told
        return told


def answer(made: Ledger, act: Callable[[Ledger], Any]) -> str:
    try:
        act(made)
    except LedgerError as error:
        return error.code
    return ""


def standing(made: Ledger) -> dict[str, Any]:
    """All that a ledger adds up to, but times, hashes and what is drawn at random."""
    books = made.books()
    charges = [replace(charge, hash="", charged_at="") for charge in books.every_charge()]
    return {
        "accounts": books.accounts,
        "spent": {name: books.spent(name, None) for name in books.accounts},
        "charges": charges,
        "states": [books.state(charge) for charge in books.every_charge()],
        "waiting": sorted(books.permissions.waiting),
        "unlisted": books.permissions.waiting_before_lists(),
        "allowed": {n: replace(one, hash="", made_at="") for n, one in books.permissions.allowed.items()},
        "operators": books.permissions.operators,
        "entries": [(entry.kind, sorted(entry.facts)) for entry in made.entries()],
    }


def charge_by_hand(both: Both, facts: dict[str, Any], key: tuple[str, str, str, int]) -> str:
    """Inserts a charge past the program: what a server's rules say, and for a file what reading it would say."""
    if both.server.books().permissions.lacks_list_of_waiting:
        assert answer(both.server, lambda made: _insert(made, _charge(made, facts, key))) == "ledger_altered"
        return both.do(lambda made: made.list_waiting(KEYS[0]))
    told = {_told_by_hand(made, _charge(made, facts, key)) for made in (both.server, both.file)}
    assert len(told) == 1, (facts, told)
    return told.pop()


def _charge(made: Ledger, facts: dict[str, Any], key: tuple[str, str, str, int]) -> Entry:
    books, now = made.books(), opened.utc_now()
    assert books.last is not None
    body = canonical_json({**facts, "nonce": "00" * 16, "year": books.year_at(now)})
    entry = Entry(books.last.number + 1, "charged", *key, body, books.last.hash, now, "")
    return replace(entry, hash=seal(entry))


def _told_by_hand(made: Ledger, entry: Entry) -> str:
    is_fitting = answer(made, lambda made: replay("here", [*made.entries(), entry])) == ""
    if made.url.drivername == "sqlite" and not is_fitting:
        return "refused"
    told = answer(made, lambda made: _insert(made, entry))
    assert (told == "") == is_fitting, (told, entry)
    return "refused" if told else ""


def _insert(made: Ledger, entry: Entry) -> None:
    with made._file.transaction("write") as connection:
        connection.execute(sa.insert(ENTRIES).values(**vars(entry)))


def step(both: Both, choose: random.Random) -> tuple[str, str]:
    """One act, and what both said."""
    made = both.file
    books = made.books()
    account, reason, by = choose.choice(NAMES), choose.choice(TEXTS), choose.choice(KEYS[:2] * 4 + KEYS)
    others = choose.sample([name for name in NAMES if name != account], choose.choice([0, 0, 1, 2]))
    number = choose.randint(1, len(made.entries()) + 1)
    waiting = sorted(books.permissions.waiting)
    reading = choose.choice(READINGS)
    what: list[dict[str, Any]] = [
        {"source": reading.facts()},
        {"query": {"sha256": "ab" * 32, "name": "q.sql"}},
        {"engine": {"server": "spark:1", "name": "spark"}},
        {"check": {"name": "asset:check"}},
    ]
    general: list[dict[str, Any]] = [
        {"version": {"name": "duckdb=2.1"}},
        {"clock": {"name": "2026-03-02"}},
        {"waiver": {"name": "weekly/2026-03-02"}},
        {"code_lists": {"name": "codes", "folder": "/office/codes"}},
    ]
    kind = choose.choice(
        ["open", "allow", "allow", "allow for all", "disallow", "raise", "key", "rotate", "adopt", "list", "look"]
        + ["sign"] * 5
        + ["charge", "charge by hand", "publish", "note"] * 3
    )
    period = f"2026-03-{choose.choice([2, 9, 16]):02}"
    release = f"{account}_weekly"
    revisions = books.revisions(release, period)
    revision = max(revisions, default=0) + 1
    charge_number = choose.choice(sorted(revisions)) if revisions else 0
    epsilon = choose.choice([Fraction(1, 2), Fraction(3), Fraction(20)])
    new = Operator("new", Ed25519PrivateKey.from_private_bytes(bytes([choose.randint(1, 99)] * 32)))
    match kind:
        case "open":
            terms = replace(HEALTH, name=account, signatures=choose.choice([1, 2]))
            source = choose.choice([None, reading])
            told = both.do(lambda made: made.open_account(terms, by, source, others if source else ()))
        case "allow":
            stated = choose.choice(what)
            told = both.do(lambda made: made.allow(account, stated, by, reason, others if "source" in stated else ()))
        case "allow for all":
            stated = choose.choice(general)
            told = both.do(lambda made: made.allow(EVERYWHERE, stated, by, reason))
        case "disallow":
            number = choose.choice([number, *books.permissions.allowed])
            told = both.do(lambda made: made.disallow(number, reason, by))
        case "raise":
            total = Fraction(choose.randint(20, 60))
            told = both.do(lambda made: made.raise_total(account, total, reason, by))
        case "key":
            told = both.do(lambda made: made.add_key(new.name, new.public, by))
        case "rotate":
            told = both.do(lambda made: made.rotate_key(new.name, new.public, reason, by))
        case "sign":
            number = choose.choice(waiting or [number])
            told = both.do(lambda made: made.countersign(number, by))
        case "list":
            told = both.do(lambda made: made.list_waiting(by))
        case "look":
            told = both.do(lambda made: made.note_look(account, release, period, "digest", reason, by))
        case "adopt" if choose.random() < 0.3:
            told = both.do(lambda made: made.adopt(reason, [], {account: Fraction(1, 3)}, by))
        case "charge":
            asked = replace(WEEKLY, account=account, release=release, period=period, revision=revision, epsilon=epsilon)
            own = [decision.reading for decision in books.permissions.of(account) if decision.reading]
            asked = replace(
                asked, source=choose.choice([reading, *own * 4]), reason=choose.choice(TEXTS) if revision > 1 else ""
            )
            asked = replace(
                asked, query=choose.choice([None, None, "ab" * 32]), engine=choose.choice(["duckdb", "duckdb", "spark"])
            )
            asked = replace(asked, versions=choose.choice([(), (), ("duckdb=2.1",)]))
            told = both.do(lambda made: made.charge(asked))
        case "charge by hand":
            numbers = sorted({entry.number for entry in made.entries() if entry.kind == "allowed"})
            own_numbers = [decision.number for decision in books.permissions.of(account)][:1]
            more = choose.sample(numbers, min(len(numbers), choose.choice([0, 0, 1, 2])))
            allowed = [*own_numbers, *(number for number in more if number not in own_numbers)]
            facts = {"allowed": allowed, "digest": "d", "epsilon": f"{epsilon.numerator}/{epsilon.denominator}"}
            facts |= {"reason": reason if revision > 1 else ""}
            told = charge_by_hand(both, facts, (account, release, period, revision))
        case "publish" if revisions:
            digest = choose.choice("vw") * 64
            told = both.do(lambda made: made.record_published(of_charge(made, release, period, charge_number), digest))
        case "note" if revisions:
            word: Any = choose.choice(["approved", "rejected", "withdrawn"])
            told = both.do(lambda made: made.note(of_charge(made, release, period, charge_number), word, reason))
        case _:
            told = "nothing"
    return kind, told


def of_charge(made: Ledger, release: str, period: str, revision: int) -> Any:
    return made.books().revisions(release, period)[revision]


@pytest.mark.slow
@pytest.mark.parametrize("histories", [15, pytest.param(300, marks=pytest.mark.soak)])
def test_a_history_gives_the_same_answers_in_a_file_and_on_a_server(
    histories: int, database_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_checkpoint, "FEWEST", 3)
    address, told = database_server.new_database(), Counter[tuple[str, str]]()
    decide, marks, digest, before = opened.Writing.decide, Permissions.marks, hashlib.sha256(), False

    def decide_in_a_version(writing: opened.Writing, *words: Any) -> Entry:
        """Enters a decision as this version does, or as the one `before` it, which did not say that one waits."""
        with monkeypatch.context() as patch:
            if before and not writing.books.permissions.stating:
                patch.setattr(Permissions, "marks", lambda *of: {"guards": True} if "guards" in marks(*of) else {})
            return decide(writing, *words)

    monkeypatch.setattr(opened.Writing, "decide", decide_in_a_version)
    for history in range(histories):
        choose = random.Random(f"history {history}")
        begins = choose.choice([0, 0, STEPS // 2])  # so many acts are an earlier version's
        before = begins > 0
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"notes_{history}"))
        both = Both(Ledger.create(url_of(tmp_path / f"{history}.sqlite"), KEYS[0]), Ledger.create(address, KEYS[0]))
        both.do(lambda made: made.add_key(KEYS[1].name, KEYS[1].public, KEYS[0]))
        both.do(lambda made: made.open_account(replace(HEALTH, name="first"), KEYS[0], READINGS[0]))
        terms = replace(HEALTH, name="second", signatures=choose.choice([1, 2]))
        both.do(lambda made, terms=terms: made.open_account(terms, KEYS[0], READINGS[1], ["first"]))
        for number in range(STEPS):
            before = number < begins
            kind, said = step(both, choose)
            told[kind, said] += 1
            digest.update(f"{kind} {said}\n".encode())
            if choose.random() < 0.2:
                both = Both(*(Ledger.open(made.url, made.id) for made in (both.file, both.server)))
        noted = [standing(Ledger.open(made.url, made.id)) for made in (both.file, both.server)]
        monkeypatch.setenv("XDG_STATE_HOME", os.devnull)
        whole = [standing(Ledger.open(made.url, made.id)) for made in (both.file, both.server)]
        for made in (both.file, both.server):
            made.verify()
        assert noted[0] == noted[1] == whole[0] == whole[1]
        both.server.discard()
    print(f"{histories} histories, digest of all answers {digest.hexdigest()[:16]}:", sorted(told.items()))
    assert {kind for kind, said in told if said == ""} >= {
        "sign",
        "list",
        "charge",
        "charge by hand",
        "disallow",
        "raise",
    }
    assert len({said for _, said in told}) > 8
