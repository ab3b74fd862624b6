"""A ledger on a server with decisions that wait for a second signature: its rules read that they wait.

Accounts here: `two` asks for two signatures, `free` shares its source, `apart` reads other records by one signature.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from database_server import Server
from error_codes import ledger_refuses
from system.test_rows_by_who_charges import changed, honest
from unit.ledger_scenario import HEALTH, WEEKLY, url_of

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.cli.operate.ledger_server import role_statements
from dphist_pipeline.errors import TryAgain
from dphist_pipeline.ledger import opened, postgresql
from dphist_pipeline.ledger.database import Intent
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.entries import Entry, exact_text, seal
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.letters import DISGUISES, is_disguised
from dphist_pipeline.ledger.moving import move
from dphist_pipeline.ledger.permissions import Permissions
from dphist_pipeline.ledger.signing import Operator

ANN, BEN = (Operator(name, Ed25519PrivateKey.generate()) for name in ("ann", "ben"))
SHARED = Reading("data/*.csv", "/office/data", "csv", unit=("patient_id",))
OTHER = Reading("own/*.csv", "/office/own", "csv", unit=("patient_id",))
QUERY = {"query": {"sha256": "ab" * 32, "name": "joined.sql"}}
SPARK = {"engine": {"server": "spark:15002", "name": "spark"}}
VERSION = {"version": {"name": "duckdb=2.1"}}
OF = {
    "two": replace(WEEKLY, account="two", release="two_weekly", source=SHARED),
    "free": replace(WEEKLY, account="free", release="free_weekly", source=SHARED),
    "apart": replace(WEEKLY, account="apart", release="apart_weekly", source=OTHER),
}


@dataclass
class Waiting:
    """A ledger on a server, and its user who may only charge."""

    server: Server
    ledger: Ledger
    charger: str

    @property
    def database(self) -> str:
        return str(sa.make_url(self.ledger.url).database)

    @contextmanager
    def inserting(self) -> Iterator[psycopg.Connection[Any]]:
        words = f"host={self.server.folder} user={self.charger} dbname={self.database}"
        with psycopg.connect(words, autocommit=True) as connection:
            yield connection

    def as_charger(self) -> Ledger:
        return Ledger.open(self.server.address(self.database, self.charger), self.ledger.id)

    def number(self, kind: str, which: int = -1) -> int:
        return [entry.number for entry in self.ledger.entries() if entry.kind == kind][which]


def fill(made: Ledger) -> None:
    """Opens the three accounts; a query for `two` is countersigned and taken back by two, the rest is in force."""
    made.add_key("ben", BEN.public, ANN)
    made.open_account(replace(HEALTH, name="apart"), ANN, OTHER)
    made.open_account(replace(HEALTH, name="free"), ANN, SHARED)
    made.open_account(replace(HEALTH, name="two", signatures=2), ANN, SHARED, ["free"])
    countersign_all(made)
    made.allow("two", QUERY, ANN, "joins wards")
    countersign_all(made)
    made.disallow(max(made.books().permissions.allowed), "no longer", ANN)
    countersign_all(made)


def countersign_all(made: Ledger) -> None:
    for number in sorted(made.books().permissions.waiting):
        made.countersign(number, BEN)


def decide_without_effect(made: Ledger) -> None:
    """Enters a decision of each kind and account that waits for its second signature."""
    for decision in made.decisions("two") + made.decisions("free"):
        made.disallow(decision.number, "not any more", ANN)
    for account in ("two", "free"):
        made.allow(account, QUERY, ANN, "another reading")
        made.allow(account, SPARK, ANN)
        made.raise_total(account, made.account(account).total + 73, "more", ANN)
    made.allow(EVERYWHERE, VERSION, ANN, "tried")
    made.add_key("cleo", Ed25519PrivateKey.generate().public_key().public_bytes_raw().hex(), ANN)


@pytest.fixture
def waiting(database_server: Server) -> Waiting:
    made = Ledger.create(database_server.new_database(), ANN)
    charger, decider = (f"{what}_{os.getpid()}" for what in ("charges", "decides"))
    for role in (charger, decider):
        with suppress(Exception):
            database_server.psql("postgres", f"CREATE ROLE {role} LOGIN")
    of = Waiting(database_server, made, charger)
    database_server.psql(of.database, role_statements(charger, decider))
    fill(made)
    return of


COLUMNS = [*Entry.__dataclass_fields__]


def inserted(connection: psycopg.Connection[Any], entry: Entry) -> str:
    """What the server says to a row by hand; nothing where it takes it."""
    marks = ", ".join(["%s"] * len(COLUMNS))
    try:
        connection.execute(f"INSERT INTO ledger_entry ({', '.join(COLUMNS)}) VALUES ({marks})", [*vars(entry).values()])
    except (psycopg.Error, UnicodeError) as error:
        return str(error) or type(error).__name__
    return ""


def charge_by_hand(made: Ledger, account: str, allowed: list[int], epsilon: str = "1/2") -> Entry:
    """The next entry: a charge of a release of its own that names these decisions."""
    books, now = made.books(), opened.utc_now()
    assert books.last is not None
    facts = {"allowed": allowed, "digest": "d", "epsilon": epsilon, "nonce": "00" * 16, "reason": ""}
    body = canonical_json({**facts, "year": books.year_at(now)})
    key = (books.last.number + 1, "charged", account, f"by_hand_{books.last.number}", "all", 1)
    entry = Entry(*key, body, books.last.hash, now, "")
    return replace(entry, hash=seal(entry))


@pytest.mark.parametrize("account", OF)
def test_a_decision_that_waits_stops_no_release(waiting: Waiting, account: str) -> None:
    decide_without_effect(waiting.ledger)
    charge = waiting.as_charger().charge(OF[account])
    assert charge.allowed == tuple(
        decision.number for decision in waiting.ledger.decisions(account) if decision.kind == "source"
    )
    assert waiting.ledger.verify() == charge.number


@pytest.mark.parametrize("account", ["two", "free"])
@pytest.mark.parametrize("what", ["source", "query", "engine", "version", "total"])
def test_a_charge_by_hand_that_rests_on_what_waits_is_refused_until_the_second_signature(
    waiting: Waiting, account: str, what: str
) -> None:
    made = waiting.ledger
    (source,) = (decision.number for decision in made.decisions(account))
    stated: dict[str, Any] = {
        "source": {"source": replace(SHARED, csv_delimiter=";").facts()},
        **{"query": QUERY, "engine": SPARK, "version": VERSION},
    }
    if what == "total":
        made.raise_total(account, Fraction(99), "more", ANN)
    else:
        of = EVERYWHERE if what == "version" else account
        others = ["two" if account == "free" else "free"] if what == "source" else []
        assert made.allow(of, stated[what], ANN, "tried", others) is None
    (number,) = made.books().permissions.waiting
    allowed, epsilon = ([source], "27/1") if what == "total" else ([source, number], "1/2")
    with waiting.inserting() as connection:
        refusal = inserted(connection, charge_by_hand(made, account, allowed, epsilon))
        assert ("more than the account has left" if what == "total" else "without a decision") in refusal
        made.countersign(number, BEN)
        assert inserted(connection, charge_by_hand(made, account, allowed, epsilon)) == ""
    assert made.verify()


# Ledgers of earlier versions


def former_body(waiting: Waiting, body: str) -> None:
    waiting.server.psql(
        waiting.database,
        "CREATE OR REPLACE FUNCTION ledger_entry_always_next() RETURNS trigger LANGUAGE plpgsql "
        f"SET search_path = public, pg_temp AS $rule${body}$rule$",
    )


@pytest.fixture
def unmarked(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Decisions are entered as by an earlier version, which did not say that they wait."""
    marks = Permissions.marks
    with monkeypatch.context() as patch:
        patch.setattr(Permissions, "marks", lambda *asked: {name: True for name in marks(*asked) if name == "guards"})
        yield patch


def test_a_server_with_decisions_of_before_is_refused_until_they_are_listed(
    unmarked: pytest.MonkeyPatch, waiting: Waiting
) -> None:
    decide_without_effect(waiting.ledger)
    unmarked.undo()
    made, charges = waiting.ledger, waiting.as_charger()
    numbers = made.books().permissions.waiting_before_lists()
    assert len(numbers) == 10
    before = made.entries()
    for account, ask in itertools.product(OF, (charges.check, charges.charge)):
        with ledger_refuses("waiting_unlisted", match="`dphist ledger upgrade` once"):
            ask(OF[account])
    with waiting.inserting() as connection:
        for account in OF:
            (source,) = (decision.number for decision in made.decisions(account))
            assert "run dphist ledger upgrade" in inserted(connection, charge_by_hand(made, account, [source]))
    assert made.entries() == before
    assert made.list_waiting(BEN) == numbers
    for account in OF:
        assert charges.charge(OF[account]).allowed
    with waiting.inserting() as connection:
        two, free = (made.decisions(account)[0].number for account in ("two", "free"))
        for number in numbers:
            assert "without a decision" in inserted(connection, charge_by_hand(made, "two", [two, number]))
        assert "more than the account" in inserted(connection, charge_by_hand(made, "free", [free], "27/1"))
    countersign_all(made)
    assert made.books().permissions.waiting == {} and made.account("free").total == 99
    assert {decision.kind for decision in made.decisions("two")} == {"query", "engine"}
    assert made.verify() and Ledger.open(made.url, made.id)


@pytest.mark.parametrize("rules", ["former", "of this version"])
def test_a_ledger_of_before_in_which_nothing_waits_goes_on_after_its_rules_are_upgraded(
    waiting: Waiting, unmarked: pytest.MonkeyPatch, rules: str
) -> None:
    made = Ledger.create(waiting.server.new_database(), ANN)
    fill(made)
    unmarked.undo()
    assert made.books().permissions.lacks_list_of_waiting and not made.books().permissions.waiting
    if rules == "former":
        former_body(Waiting(waiting.server, made, waiting.charger), postgresql._FORMER_NEXT)
        assert made.charge(OF["free"]).allowed, "the server takes nothing as decided that waits"
        made._file.upgrade_rules()  # type: ignore[attr-defined]
    with ledger_refuses("waiting_unlisted", match="`dphist ledger upgrade` once"):
        made.charge(OF["two"])
    assert made.list_waiting(BEN) == [] and made.list_waiting(BEN) is None
    assert made.charge(OF["two"]).allowed and Ledger.open(made.url, made.id).verify() == made.head()[1]


@pytest.mark.parametrize("body", ["the place in the chain alone", "derived"])
def test_a_server_with_former_rules_goes_on_while_nothing_waits(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    former = "BEGIN RETURN NEW; END"
    if body == "derived":
        monkeypatch.setattr(postgresql, "_FORMER", {hashlib.sha256(former.encode()).hexdigest()})
    former_body(waiting, former if body == "derived" else postgresql._FORMER_NEXT)
    charges = waiting.as_charger()
    assert waiting.ledger._file.has_former_rules()  # type: ignore[attr-defined]
    assert charges.charge(OF["free"]).allowed
    waiting.ledger.raise_total("two", Fraction(99), "more", ANN)
    for account in ("two", "apart"):
        with ledger_refuses("waiting_unlisted", match="ledger upgrade"):
            charges.charge(OF[account])
    assert charges.charge(OF["free"]).number, "what was charged goes on"
    waiting.ledger._file.upgrade_rules()  # type: ignore[attr-defined]
    assert not waiting.ledger._file.has_former_rules()  # type: ignore[attr-defined]
    assert charges.charge(OF["two"]).allowed and waiting.ledger.verify()


def test_rules_of_every_earlier_version_are_known() -> None:
    """Their text stands in the history of `sql/ledger/always_next.sql`; this version's is none of them."""
    assert len(postgresql._FORMER) == 5 and not postgresql._is_former(postgresql._NEXT)


@pytest.mark.parametrize("where", ["file", "server"])
def test_a_ledger_that_moves_lists_what_waits(
    unmarked: pytest.MonkeyPatch, waiting: Waiting, tmp_path: Path, where: str
) -> None:
    source = Ledger.create(url_of(tmp_path / "ledger.sqlite"), ANN)
    fill(source)
    decide_without_effect(source)
    # The server's rules, which know no list yet, would refuse them one by one: by a source that waits to be taken back.
    assert all(source.charge(replace(asked, release=f"before_{name}")).allowed for name, asked in OF.items())
    if where == "file":
        source.list_waiting(ANN)
    unmarked.undo()
    numbers = sorted(source.books().permissions.waiting)
    moved = move(source.url, source.id, waiting.server.new_database(), ANN)
    assert (
        sorted(moved.books().permissions.waiting) == numbers and moved.books().permissions.waiting_before_lists() == []
    )
    assert [entry.kind for entry in moved.entries()].count("listed") == 1
    assert all(moved.charge(asked).allowed for asked in OF.values()) and moved.verify()


# Rows that come in between


def test_a_row_that_somebody_inserts_without_the_lock_makes_a_release_busy(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    charges, append = waiting.as_charger(), opened.Writing.append
    (source,) = waiting.ledger.decisions("apart")
    row = charge_by_hand(waiting.ledger, "apart", [source.number])

    def overtaken(self: opened.Writing, *words: Any, **more: Any) -> Entry:
        with waiting.inserting() as connection:
            assert inserted(connection, row) == ""
        return append(self, *words, **more)

    before = len(waiting.ledger.entries())
    monkeypatch.setattr(opened.Writing, "append", overtaken)
    with ledger_refuses("entry_overtaken", match="at the same moment.*never charged twice") as refusal:
        charges.charge(OF["free"])
    assert isinstance(refusal.value, TryAgain)
    monkeypatch.undo()
    assert len(waiting.ledger.entries()) == before + 1
    assert charges.charge(OF["free"]).number == before + 2 and waiting.ledger.verify() == before + 2


def test_a_row_that_is_not_committed_yet_makes_a_release_busy(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    charges, (source,) = waiting.as_charger(), waiting.ledger.decisions("apart")
    row, append, threads = charge_by_hand(waiting.ledger, "apart", [source.number]), opened.Writing.append, []

    def overtaken(self: opened.Writing, *words: Any, **more: Any) -> Entry:
        connection = psycopg.connect(f"host={waiting.server.folder} user={waiting.charger} dbname={waiting.database}")
        assert inserted(connection, row) == ""
        threads.append(threading.Timer(0.3, lambda: (connection.commit(), connection.close())))
        threads[-1].start()
        return append(self, *words, **more)

    monkeypatch.setattr(opened.Writing, "append", overtaken)
    with ledger_refuses("entry_overtaken"):
        charges.charge(OF["free"])
    monkeypatch.undo()
    threads[0].join()
    assert charges.charge(OF["free"]).number == row.number + 1


def test_who_neither_charges_nor_decides_may_not_connect(waiting: Waiting) -> None:
    stranger = f"stranger_{os.getpid()}"
    with suppress(Exception):
        waiting.server.psql("postgres", f"CREATE ROLE {stranger} LOGIN")
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(f"host={waiting.server.folder} user={stranger} dbname={waiting.database}")
    with waiting.inserting() as connection:
        assert connection.execute("SELECT count(*) FROM ledger_entry").fetchone()


def test_texts_are_judged_by_one_table_here_and_by_the_program(waiting: Waiting) -> None:
    """A letter at either end of each range, and the one beside it; 𝐀 and U+13439 were refused by the server alone."""
    ends = {letter + step for first, last in DISGUISES for letter in (first, last) for step in (-1, 0, 1)}
    letters = [
        chr(letter) for letter in sorted({*ends, 0x13439, 0x1D400}) if letter > 0 and not 0xD800 <= letter < 0xE000
    ]
    (source,) = waiting.ledger.decisions("apart")
    with waiting.inserting() as connection:
        for letter in letters:
            entry = replace(charge_by_hand(waiting.ledger, "apart", [source.number], "1/1000"), release="of_letters")
            revisions = waiting.ledger.books().revisions("of_letters", "all")
            body = canonical_json({**entry.facts, "reason": f"a{letter}b"})
            entry = replace(entry, body=body, revision=max(revisions, default=0) + 1)
            refusal = inserted(connection, replace(entry, hash=seal(entry)))
            assert ("a text that the ledger does not take" in refusal) == is_disguised(letter), (
                hex(ord(letter)),
                refusal,
            )
            assert refusal == "" or is_disguised(letter)
    assert waiting.ledger.verify()


class Rehearsing(Ledger):
    """A ledger to which nothing is added: what it would enter is inserted, judged by the server, and taken back."""

    @contextmanager
    def _writing(self, intent: Intent = "write") -> Iterator[opened.Writing]:
        with super()._writing("rehearse") as writing:
            yield writing


def decide_at_random(made: Ledger, choose: random.Random) -> None:
    """An operator decides something that takes no source away, or gives a second signature."""
    permissions = made.books().permissions
    account = choose.choice([*OF, EVERYWHERE])
    name = f"{choose.randrange(10**9):x}"
    harmless = [number for number, entry in permissions.waiting.items() if entry.kind != "disallowed"]
    match choose.choice(["raise", "query", "engine", "version", "take back", "sign", "sign"]):
        case "raise" if account != EVERYWHERE:
            made.raise_total(account, 1 + max(made.account(account).total, Fraction(choose.randint(1, 40))), "r", ANN)
        case "query" if account != EVERYWHERE:
            made.allow(account, {"query": {"sha256": "cd" * 32, "name": name}}, ANN, "r")
        case "engine" if account != EVERYWHERE:
            made.allow(account, {"engine": {"server": f"{name}:1", "name": name}}, ANN)
        case "version":
            made.allow(EVERYWHERE, {"version": {"name": f"duckdb={choose.randint(1, 99)}.1"}}, ANN, "r")
        case "take back":
            number = choose.choice(sorted(permissions.allowed))
            if account != "apart" and permissions.allowed[number].account != "apart":
                made.disallow(number, "r", ANN)
        case "sign" if harmless:
            made.countersign(choose.choice(harmless), BEN)


@pytest.mark.slow
@pytest.mark.parametrize("times", [300, pytest.param(10_000, marks=pytest.mark.soak)])
def test_after_a_row_by_who_may_only_charge_releases_of_other_accounts_go_on(waiting: Waiting, times: int) -> None:
    choose, made = random.Random(times), waiting.ledger
    made.raise_total("apart", Fraction(100_000), "r", ANN)
    made.raise_total("two", Fraction(100_000), "r", ANN)
    countersign_all(made)
    decide_without_effect(made)
    charges = waiting.as_charger()
    rehearsing = Rehearsing(charges._file, charges.books())
    entered, used_up, refused_for = 0, 0, Counter[str]()
    with waiting.inserting() as connection:
        for number in range(times):
            if choose.random() < 0.03:
                decide_at_random(made, choose)
            entry, facts = honest(made, choose, [*OF])
            if "allowed" in facts:
                permissions = made.books().permissions
                ever = [*permissions.ever, *permissions.waiting, 2]
                facts["allowed"] = choose.choice([facts["allowed"], facts["allowed"] + choose.sample(ever, 1)])
                left = made.account(str(entry.account)).total - made.books().spent(str(entry.account), None)
                all_left = [exact_text(left)] * 3 if 0 < left <= 50 else []
                facts["epsilon"] = choose.choice(["1/2", "1/3", "2/1", "20/1", "50/1", *all_left])
                entry = replace(entry, body=canonical_json(facts))
            refusal = inserted(connection, changed(entry, facts, choose))
            if refusal:
                refused_for[refusal.splitlines()[0][:60]] += 1
                continue
            entered += 1
            _, last, _ = made.head()
            for account, asked in OF.items():
                left = made.account(account).total - made.books().spent(account, None)
                release = replace(asked, release=f"honest_{account}", epsilon=Fraction(1, 1000))
                try:
                    assert rehearsing.charge(release).number == last + 1
                except LedgerError as error:
                    assert error.code == "overspend" and left < release.epsilon, (number, last, error)
                    assert account == "free"
                    used_up += 1
    assert entered > times / 20 and len(refused_for) > 10 and used_up, (entered, refused_for, used_up)
    assert made.verify() == made.head()[1]
    print(
        f"{entered} of {times} rows were entered; an account was used up after {used_up}; {refused_for.most_common(9)}"
    )
