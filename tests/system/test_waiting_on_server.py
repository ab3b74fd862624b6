"""A ledger on a server with decisions that wait for a second signature: its rules read that they wait.

Accounts here: `two` asks for two signatures, `free` shares its source, `apart` reads other records by one signature.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from database_server import Server
from unit.ledger_scenario import HEALTH, WEEKLY

from dphist_pipeline.canonical_json import canonical_json
from dphist_pipeline.cli.operate.ledger_server import role_statements
from dphist_pipeline.ledger import opened
from dphist_pipeline.ledger.decisions import EVERYWHERE, SourceReading
from dphist_pipeline.ledger.entries import Entry, seal
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.signing import Operator

ANN, BEN = (Operator(name, Ed25519PrivateKey.generate()) for name in ("ann", "ben"))
SHARED = SourceReading("data/*.csv", "/office/data", "csv", unit=("patient_id",))
OTHER = SourceReading("own/*.csv", "/office/own", "csv", unit=("patient_id",))
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
        made.raise_total(account, Fraction(99), "more", ANN)
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
