"""What a database user who may only charge inserts by hand: it fails, or every release and replay goes on."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from database_server import Server
from error_codes import ledger_refuses
from office import Office

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.cli.operate.ledger_server import role_statements
from dphist_pipeline.ledger import opened, postgresql
from dphist_pipeline.ledger._replay import replay
from dphist_pipeline.ledger.entries import Entry, seal
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.permissions import Permissions
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.releasing.store import Store

pytestmark = pytest.mark.stand_in(
    "catalogue", "pictures", why="who may charge is decided before anything is drawn as a picture"
)

DECOYS = ("decoy", "other_decoy")
COLUMNS = [*Entry.__dataclass_fields__]
ODD: list[Any] = [
    *(None, "", " ", "x", "\u00a0", "a\u200bb", "z\u0007", 'Jörg 𠮷 "quoted" \\', "\U0001d173", "y" * 201, "y" * 2001),
    *(0, 1, -1, 2, 10**6 + 1, 10**12, 1.0, 0.5, True, False, [], [1], {}, {"id": "a"}, {"id": "a", "host": "b"}),
    *("1/2", "2/4", "0/1", "51/1", "1/0", "1/10000000", "-1/2", "1/3 ", "10/1", "9999999/1", "01/2", f"1/{10**31}"),
]


@dataclass
class Served:
    """An office whose ledger is on a server, with a user who may only charge."""

    office: Office
    server: Server
    address: str
    charger: str

    @property
    def database(self) -> str:
        return str(sa.make_url(self.address).database)

    @property
    def as_charger(self) -> str:
        return self.address.replace("postgres@", f"{self.charger}@")

    def ledger(self, address: str | None = None) -> Ledger:
        return Ledger.open(address or self.address, Store.open(self.office.store).ledger_id)

    @contextmanager
    def inserting(self) -> Iterator[psycopg.Connection[Any]]:
        words = f"host={self.server.folder} user={self.charger} dbname={self.database}"
        with psycopg.connect(words, autocommit=True) as connection:
            yield connection


@pytest.fixture
def served(office: Office, database_server: Server, monkeypatch: pytest.MonkeyPatch) -> Served:
    address, charger, decider = database_server.new_database(), f"charges_{os.getpid()}", f"decides_{os.getpid()}"
    monkeypatch.setenv("DPHIST_LEDGER", address)
    office.opened()
    for role in (charger, decider):
        with suppress(Exception):
            database_server.psql("postgres", f"CREATE ROLE {role} LOGIN")
    made = Served(office, database_server, address, charger)
    database_server.psql(made.database, role_statements(charger, decider))
    assert office.run("ledger", "raise", "health", "--total", "1000", "--reason", "r").code == 0
    office.allow()
    monkeypatch.setenv("DPHIST_LEDGER", made.as_charger)
    office.released()
    return made


def insert(connection: psycopg.Connection[Any], entry: Entry) -> bool:
    marks = ", ".join(["%s"] * len(COLUMNS))
    with suppress(psycopg.Error, UnicodeError):
        connection.execute(f"INSERT INTO ledger_entry ({', '.join(COLUMNS)}) VALUES ({marks})", [*vars(entry).values()])
        return True
    return False


def honest(
    ledger: Ledger, choose: random.Random, accounts: Sequence[str] = ("health",)
) -> tuple[Entry, dict[str, Any]]:
    """The next entry as a program that may charge could make one about a decoy of an account, and its facts."""
    books, account = ledger.books(), choose.choice(accounts)
    last, release = books.last, f"{choose.choice(DECOYS)}_of_{account}"
    assert last is not None
    period = choose.choice(["all", "2026-03-02", f"2025-{choose.randint(1, 12):02}-{choose.randint(1, 28):02}"])
    there = books.revisions(release, period)
    kind = choose.choice(["charged", "charged", "published", "rendered", "approved", "rejected", "withdrawn"])
    if not there or kind == "charged":
        kind, revision = "charged", max(there, default=0) + 1
        allowed = [decision.number for decision in ledger.decisions(account)]
        facts: dict[str, Any] = {
            "allowed": allowed,
            "digest": "d" * 64,
            "epsilon": choose.choice(["1/2", "1/3", "2/1"]),
        }
        facts |= {"reason": "late records" if revision > 1 else "", "nonce": "ab" * 16}
        facts |= {"held": True} if choose.random() < 0.3 else {}
        facts |= {"folder": {"id": "f" * 32, "host": "höst"}} if choose.random() < 0.5 else {}
    else:
        revision = choose.choice([*there])
        facts = {"charge": there[revision].number}
        stated = {"digest": choose.choice("vw" if kind == "rendered" else "v") * 64}
        facts |= stated if kind in ("published", "rendered") else {"text": choose.choice(["Jörg 𠮷", "wrong"])}
    made_at = opened.utc_now()
    facts["year"] = books.year_at(made_at)
    key = (last.number + 1, kind, account, release, period, revision)
    return Entry(*key, canonical_json(facts), last.hash, made_at, ""), facts  # type: ignore[arg-type]


def changed(entry: Entry, facts: dict[str, Any], choose: random.Random) -> Entry:
    """An entry of which something is as no program would make it; mostly its hash fits."""
    for _ in range(choose.choice([0, 1, 1, 1, 2, 3])):
        where = choose.random()
        if where < 0.55:
            name = choose.choice(
                [*facts, "held", "upstream_checked", "folder", "allowed", "extra", "signed", "operator"]
            )
            facts = {**facts, name: choose.choice([*ODD, facts.get(name)])}
            if choose.random() < 0.2:
                facts.pop(name)
        elif where < 0.9:
            name = choose.choice(COLUMNS[:-1])
            odd = {"kind": [*("charged", "published", "rendered", "approved", "created", "opened", "unheard")]}
            odd |= {"made_at": [f"{year}-06-30T12:00:00Z" for year in (1999, 2027, 2999)]}
            odd["made_at"] += ["2026-19-39T29:59:69Z", "2026-06-30", "9999-12-31T23:59:59Z"]
            odd |= {
                "account": ["*", "elsewhere"],
                "release": ["../up", "Wörter", "wards"],
                "period": ["never", "2999-01-01"],
            }
            entry = replace(entry, **{name: choose.choice([*odd.get(name, []), *ODD[:-10]])})
    body = canonical_json(facts)
    if choose.random() < 0.15:
        other = [json.dumps(facts), json.dumps(facts, ensure_ascii=False), body[:-1], "[]", "", "null", body + " "]
        body = choose.choice([*other, body[:-1] + ',"year":2026}', body.replace(":", ": ", 1), "{" * 5000])
    with suppress(TypeError, ValueError):
        entry = replace(entry, body=body)
        entry = replace(entry, hash=seal(entry))
    return replace(entry, hash="0" * 64) if choose.random() < 0.05 else entry


@pytest.mark.parametrize("times", [150, pytest.param(10_000, marks=pytest.mark.soak)])
def test_a_row_by_who_may_only_charge_fails_or_releases_and_replays_go_on(served: Served, times: int) -> None:
    choose, entered, kinds = random.Random(times), 0, set()
    ledger = served.ledger()
    ledger.raise_total("health", Fraction(100_000), "r", Operator.load())
    with served.inserting() as connection:
        for number in range(times):
            entry = changed(*honest(ledger, choose), choose)
            if entry.release == "wards" and entry.kind in ("withdrawn", "rejected", "charged"):
                continue  # well formed, this is what such a user is trusted with
            if insert(connection, entry):
                entered += 1
                kinds.add(entry.kind)
                try:
                    ledger.books()
                except LedgerError as error:
                    pytest.fail(f"row {number}: {entry}: {error}")
    assert entered > times / 20 and len(kinds) >= 5, (entered, kinds)
    assert served.office.released("--json").json["replayed"]
    served.office.write_spec(release="after")
    assert not served.office.released("--json").json["replayed"]
    assert served.office.run("ledger", "verify", "--json").code in (0, 1)
    assert served.ledger(served.as_charger).verify() == len(served.ledger().entries())
    print(f"{entered} of {times} rows were entered")


def test_honest_rows_of_every_kind_are_entered(served: Served) -> None:
    choose, ledger = random.Random(1), served.ledger()
    with served.inserting() as connection:
        for _ in range(40):
            entry, _ = honest(ledger, choose)
            entry = replace(entry, hash=seal(entry))
            before, fits = len(ledger.entries()), True
            follows = [*ledger.entries(), entry]
            try:
                replay("here", follows)
            except LedgerError as error:
                assert error.code == "ledger_altered"
                fits = False
            assert insert(connection, entry) == fits, entry
            assert len(ledger.entries()) == before + fits


SENSIBLE: dict[str, dict[str, Any]] = {
    "more than the total": {"epsilon": "50/1"},
    "a decision that does not exist": {"allowed": [999]},
    "no decision": {"allowed": ...},
    "the wrong year": {"year": 2031},
}


@pytest.mark.parametrize("what", [*SENSIBLE, "an unknown account", "a charge of another release", "twice"])
def test_a_sensible_row_that_the_ledger_would_not_enter_is_refused(served: Served, what: str) -> None:
    ledger = served.ledger()
    (charge,) = ledger.charges("wards", "all")
    entry, facts = honest(ledger, random.Random(0))
    entry = replace(entry, kind="charged", release="decoy", period="all", revision=1)
    facts = {"allowed": [*charge.allowed], "digest": "d", "epsilon": "1/2", "reason": "", "year": facts["year"]}
    facts = {name: value for name, value in {**facts, **SENSIBLE.get(what, {})}.items() if value is not ...}
    if what == "more than the total":
        with served.inserting() as connection:
            for number in range(1, 21):  # of 1000, 1/2 is spent
                reason = "r" if number > 1 else ""
                made = replace(entry, revision=number, body=canonical_json({**facts, "reason": reason}))
                made = replace(made, hash=seal(made))
                assert insert(connection, made) == (number < 20)
                entry = replace(entry, number=entry.number + 1, previous_hash=made.hash)
        assert ledger.verify() and ledger.books().spent("health", None) == 950 + Fraction(1, 2)
        return
    if what == "an unknown account":
        entry = replace(entry, account="elsewhere")
    if what == "a charge of another release":
        entry, facts = replace(entry, kind="published"), {"charge": charge.number, "digest": "v", "year": facts["year"]}
    if what == "twice":
        entry = replace(entry, release="wards", period="all")
    entry = replace(entry, body=canonical_json(facts))
    with served.inserting() as connection:
        assert not insert(connection, replace(entry, hash=seal(entry)))
    ledger.verify()


def former(served: Served) -> None:
    """The triggers of version 0.2."""
    body = postgresql._FORMER_NEXT
    served.server.psql(
        served.database,
        "CREATE OR REPLACE FUNCTION ledger_entry_always_next() RETURNS trigger LANGUAGE plpgsql "
        f"SET search_path = public, pg_temp AS $rule${body}$rule$",
    )


def test_a_ledger_with_former_rules_goes_on_and_its_owner_upgrades_it(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    former(served)
    office = served.office
    assert office.released("--json").json["replayed"]

    def access() -> dict[str, str]:
        told = office.run("doctor", "--json", "--store", office.store).json
        return next(finding for finding in told["checks"] if finding["check"] == "ledger_access")

    assert access()["state"] == "warning" and "dphist ledger upgrade" in access()["mend"]
    refused = office.run("ledger", "upgrade")
    assert refused.code == 1 and "may not do that" in refused.err
    monkeypatch.setenv("DPHIST_LEDGER", served.address)
    assert "From now on" in office.run("ledger", "upgrade").out
    assert "already" in office.run("ledger", "upgrade").out
    monkeypatch.setenv("DPHIST_LEDGER", served.as_charger)
    assert access()["state"] == "ok"
    office.write_spec(release="after")
    office.released()


def test_a_ledger_whose_decisions_do_not_say_that_they_wait_is_upgraded_by_its_owner(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    office, made, operator = served.office, served.ledger(), Operator.load()
    with monkeypatch.context() as patch:
        patch.setattr(Permissions, "marks", lambda *of: {})
        terms = replace(made.account("health"), name="two", signatures=2)
        made.open_account(terms, operator, replace(made.sources()[0].reading, csv_delimiter=";"), ["health"])
    assert office.released("--json").json["replayed"], "what was charged goes on"
    office.write_spec(release="after")
    refused = office.release()
    said = " ".join(refused.err.split())
    assert refused.code == 1 and "`dphist ledger upgrade`" in said and "nothing was charged" in said, said
    told = office.run("doctor", "--json", "--store", office.store).json
    access = next(finding for finding in told["checks"] if finding["check"] == "ledger_access")
    number = made.head()[1]
    assert f"entry {number}" in access["seen"] and access["mend"].endswith("dphist ledger upgrade")
    monkeypatch.setenv("DPHIST_LEDGER", served.address)
    assert f"waits for a second signature: entry {number}" in " ".join(office.run("ledger", "upgrade").out.split())
    assert "second signature" not in office.run("ledger", "upgrade").out
    assert "listed what waits" in office.run("ledger", "report").out
    monkeypatch.setenv("DPHIST_LEDGER", served.as_charger)
    assert not office.released("--json").json["replayed"]
    assert office.run("ledger", "verify", "--json").code == 0


def test_the_owner_takes_a_malformed_row_away_and_releases_go_on(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    former(served)
    office, ledger = served.office, served.ledger()
    entry, _ = honest(ledger, random.Random(0))
    with served.inserting() as connection:
        assert insert(connection, replace(entry, body="no JSON", hash="0" * 64))
    refused = office.release()
    assert refused.code == 1 and f"entry {entry.number}: " in refused.err
    served.server.psql(
        served.database,
        "BEGIN",
        "ALTER TABLE ledger_entry DISABLE TRIGGER never_changed",
        f"DELETE FROM ledger_entry WHERE number >= {entry.number}",
        "ALTER TABLE ledger_entry ENABLE TRIGGER never_changed",
        "COMMIT",
    )
    monkeypatch.setenv("DPHIST_LEDGER", served.address)
    assert office.run("ledger", "upgrade").code == 0
    monkeypatch.setenv("DPHIST_LEDGER", served.as_charger)
    assert office.released("--json").json["replayed"] and office.run("ledger", "verify").code == 0
    with served.inserting() as connection:
        assert not insert(connection, replace(entry, body="no JSON", hash="0" * 64))


def test_a_clock_days_ahead_of_the_server_is_refused_with_a_word(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "utc_now", lambda: "2099-01-01T00:00:00Z")
    ledger = served.ledger(served.as_charger)
    (charge,) = ledger.charges("wards", "all")
    with ledger_refuses("file_unusable", match="clock is more than a day ahead"):
        ledger.note(charge, "withdrawn", "wrong")
