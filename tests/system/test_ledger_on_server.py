"""A ledger on a PostgreSQL server: an office's whole round, users with rights of their own, lost connections, moving.

The tests of ledgers, races and kills run on a server as well, in `make outside`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from database_server import Server
from error_codes import ledger_refuses
from office import Office, ran
from system.small_release import EPSILON, Project, charges
from unit.ledger_scenario import HEALTH, WEEKLY, url_of

from dphist_pipeline.cli.operate.ledger_server import role_statements
from dphist_pipeline.ledger import moving, postgresql
from dphist_pipeline.ledger.errors import LedgerError, LedgerMoved
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.moving import move
from dphist_pipeline.ledger.postgresql import PostgresDatabase
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.ledger.witness import Witness

pytestmark = pytest.mark.stand_in(
    "catalogue", "pictures", why="a ledger elsewhere changes nothing of a card or a catalogue"
)


def test_an_office_with_ledger_and_witness_on_a_server_works_as_with_files(
    office: Office, database_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DPHIST_LEDGER", "DPHIST_WITNESS"):
        monkeypatch.setenv(name, database_server.new_database())
    monkeypatch.setattr(office, "witnessed", lambda: _nothing())
    office.opened()
    assert not (office.store / "ledger.sqlite").exists()
    office.allow()
    first = office.released()
    assert "replayed" not in first.out.lower() and office.released("--json").json["replayed"]
    assert office.released("--revise", "--reason", "late records", "--json").json["revision"] == 2
    office.write_spec(release="more", epsilon=10)
    office.allow()
    refused = office.release()
    assert refused.code == 1 and "has 9 left of 10" in " ".join(refused.err.split())
    assert office.run("ledger", "raise", "health", "--total", "40", "--reason", "r").code == 0
    assert office.run("ledger", "verify", "--json").json["publications"] == 2
    shown = office.run("ledger", "show", "health", "--json").json
    assert shown[0]["spent"] == "1"
    assert office.run("store", "adopt", "--reason", "put back").code == 0


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def test_the_witness_is_never_in_the_ledgers_database(
    office: Office, database_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = database_server.new_database()
    for again in (address, address.replace("postgres@", "").replace("?host=", "?sslmode=prefer&host=")):
        monkeypatch.setenv("DPHIST_LEDGER", address)
        monkeypatch.setenv("DPHIST_WITNESS", again)
        refused = ran("init", "--store", office.store)
        assert refused.code == 1 and "ledger" in refused.err and not office.store.exists()
    Ledger.create(address)
    with (
        ledger_refuses("address_refused", match="holds a ledger"),
        database_server.forwarded() as number,
    ):
        Witness.at(f"postgresql://postgres@localhost:{number}/{sa.make_url(address).database}").enrol("s", "e")


# Users of the server


def as_user(address: str, user: str) -> str:
    return address.replace("postgres@", f"{user}@")


def test_one_user_charges_another_decides_and_neither_changes_an_entry(database_server: Server) -> None:
    address, other = database_server.new_database(), database_server.new_database()
    made, witness = Ledger.create(address), Witness.at(other)
    witness.enrol("store-1", made.standing().started_by)
    charger, decider = (f"{what}_{os.getpid()}" for what in ("charger", "decider"))
    ledger_name, witness_name = (str(sa.make_url(of).database) for of in (address, other))
    database_server.psql("postgres", f"CREATE ROLE {charger} LOGIN", f"CREATE ROLE {decider} LOGIN")
    with ledger_refuses("file_unusable", match="ledger roles"):
        Ledger.open(as_user(address, charger), made.id)
    database_server.psql(ledger_name, role_statements(charger, decider))
    database_server.psql(witness_name, role_statements(charger, decider, witness=True))
    charges_by = Ledger.open(as_user(address, charger), made.id)
    decides_by = Ledger.open(as_user(address, decider), made.id)

    with ledger_refuses("file_unusable", match="ledger roles"):
        charges_by.open_account(HEALTH)
    decides_by.open_account(HEALTH)
    charges_by.check(WEEKLY)
    charge = charges_by.charge(WEEKLY)
    charges_by.record_published(charge, "values-1")
    charging = Witness.at(as_user(other, charger))
    charging.check("store-1", charges_by.standing)
    charging.vouch("store-1", charges_by.standing)
    charging.note_head("store-1", *charges_by.head())
    for later in (charging, Witness.at(as_user(other, decider))):
        adopted = replace(charges_by.standing(), generation=2, started_by="an adoption")
        if later is charging:  # it would end what is under way
            with ledger_refuses("file_unusable", match="ledger roles"):
                later.begin_generation("store-1", lambda adopted=adopted: adopted)
        else:
            later.begin_generation("store-1", lambda adopted=adopted: adopted)
            assert later.standing("store-1") == adopted
    with ledger_refuses("file_unusable", match="ledger roles"):
        charges_by.raise_total("health", HEALTH.total + 1, "r")
    with ledger_refuses("file_unusable", match="ledger roles"):
        decides_by.charge(replace(WEEKLY, period="2026-03-09"))
    for user, database in ((charger, ledger_name), (decider, ledger_name), (charger, witness_name)):
        table = "ledger_entry" if database == ledger_name else "charge"
        for statement in (
            f"UPDATE {table} SET number = 9",
            f"DELETE FROM {table}",
            f"TRUNCATE {table} CASCADE",
            f"ALTER TABLE {table} DISABLE TRIGGER USER",
            f"DROP TABLE {table} CASCADE",
        ):
            with pytest.raises(subprocess.CalledProcessError):
                database_server.psql(database, statement, user=user)
    assert made.verify() == 4


def test_rules_that_are_gone_from_the_server_are_noticed(database_server: Server) -> None:
    for statement in (
        "ALTER TABLE ledger_entry DISABLE TRIGGER never_changed",
        "DROP TRIGGER never_emptied ON ledger_entry",
        "DROP INDEX charged_once",
        "CREATE OR REPLACE FUNCTION ledger_entry_always_next() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RETURN NEW; END'",
        "CREATE RULE swallowed AS ON INSERT TO ledger_entry DO INSTEAD NOTHING",
    ):
        address = database_server.new_database()
        made = Ledger.create(address)
        made.verify()
        database_server.psql(str(sa.make_url(address).database), statement)
        with ledger_refuses("ledger_altered", match="rules"):
            made.verify()


def test_a_server_that_may_forget_a_commit_is_refused(database_server: Server) -> None:
    made = Ledger.create(database_server.new_database())
    try:
        database_server.psql("postgres", "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf(), pg_sleep(0.3)")
        with ledger_refuses("file_unusable", match="fsync off"):
            made.verify()
    finally:
        database_server.psql("postgres", "ALTER SYSTEM RESET fsync", "SELECT pg_reload_conf(), pg_sleep(0.3)")
    assert made.verify() == 1


# Connections that are lost


@pytest.mark.parametrize(
    ("message", "after", "charged"),
    [
        (b"pg_advisory_xact_lock", False, False),
        (b"INSERT INTO ledger_entry", False, False),
        (b"INSERT INTO ledger_entry", True, False),
        (b"COMMIT\0", False, False),
        (b"COMMIT\0", True, True),
    ],
)
def test_a_connection_lost_around_the_commit_of_a_charge_never_charges_twice(
    database_server: Server, message: bytes, after: bool, charged: bool
) -> None:
    address = database_server.new_database()
    made = Ledger.create(address)
    made.open_account(HEALTH)
    with database_server.forwarded(message, after) as port:
        far = f"postgresql://postgres@localhost:{port}/{sa.make_url(address).database}"
        with ledger_refuses("connection_lost", match=r"connection was refused or lost.*never charged twice"):
            Ledger.open(far, made.id).charge(WEEKLY)
    assert len(made.charges("weekly", "2026-03-02")) == charged
    assert made.charge(WEEKLY).number == 3 and made.verify() == 3


def test_a_release_whose_session_the_server_ends_is_finished_by_the_same_call(
    database_server: Server, tmp_path: Path
) -> None:
    project = Project.make(tmp_path / "project", server=database_server)
    ended: list[str] = []

    def end_sessions(connection: sa.Connection) -> None:
        if connection.engine.dialect.name == "postgresql" and not ended and charging:
            ended.append("once")
            database_server.psql(
                "postgres",
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'dphist'",
            )

    charging: list[str] = []
    sa.event.listen(sa.Engine, "commit", end_sessions)
    try:
        with ledger_refuses("connection_lost", match="lost"):
            project.release(progress=lambda step: charging.append(step) if step == "charging the account" else None)
    finally:
        sa.event.remove(sa.Engine, "commit", end_sessions)
    assert ended and charges(project) == [] and not project.files("confidential/journal")
    assert project.release().audit["revision"] == 1
    assert charges(project) == [1] and project.spent() == EPSILON


def test_a_server_that_is_not_there_is_refused_without_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "s3cret-word")
    for address in ("postgresql://me@localhost:1/office", "postgresql://me@/office?host=/nowhere"):
        with ledger_refuses("connection_lost", match="cannot be used: the connection was refused or lost") as refusal:
            Ledger.open(address, "id")
        assert "s3cret-word" not in str(refusal.value) and refusal.value.__context__ is None


def test_another_machine_is_reached_by_tls_with_its_name_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOSTADDR", "PGSSLMODE", "PGOPTIONS"):
        monkeypatch.setenv(name, {"PGHOSTADDR": "10.0.0.1", "PGSSLMODE": "disable", "PGOPTIONS": "-cfsync=off"}[name])
    given: dict[str, Any] = {}
    monkeypatch.setattr("psycopg.connect", lambda **words: given.update(words) or _refuse())
    for host in ("db.office.example", "10.1.2.3"):
        with pytest.raises(LedgerError):
            Ledger.open(f"postgresql://me@{host}/office", "id")
        assert (given["sslmode"], given["hostaddr"], given["host"]) == ("verify-full", "", host)
        assert "synchronous_commit=on" in given["options"]
    assert not postgresql.is_local("db.localhost.example") and not postgresql.is_local("127.0.0.1.example")
    assert all(map(postgresql.is_local, ("127.0.0.2", "::1", "localhost", "/run/postgresql")))


def _refuse() -> None:
    raise OSError


def test_a_missing_driver_names_the_package_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("psycopg")

    monkeypatch.setattr(postgresql.sa, "create_engine", missing)
    with ledger_refuses("address_refused", match=re.escape("pip install -c constraints.txt '.[postgresql]'")):
        PostgresDatabase.at("postgresql://me@localhost/office")


# Moving


def test_a_ledger_moves_with_every_hash_and_the_old_one_says_where_it_is(
    office: Office, database_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.opened()
    office.released()
    before, address = office.entries(), database_server.new_database()
    moved = office.run("ledger", "move", address, "--json").json
    assert moved["entries"] == len(before) + 1
    for words in (["release", office.folder / "spec.yaml"], ["ledger", "show"], ["ledger", "verify"]):
        refused = office.run(*words)
        assert refused.code == 1 and f"Set DPHIST_LEDGER to {moved['address']}" in " ".join(refused.err.split())
    monkeypatch.setenv("DPHIST_LEDGER", address)
    assert office.released("--json").json["replayed"]
    assert office.run("ledger", "verify", "--json").json["publications"] == 1
    assert office.released("--revise", "--reason", "late records", "--json").json["revision"] == 2
    rows = database_server.psql(str(sa.make_url(address).database), "SELECT hash FROM ledger_entry ORDER BY number")
    assert rows.split("\n")[: len(before) + 1] == [row[-1] for row in office.entries()]
    assert "moved the ledger" in office.run("ledger", "report").out


@pytest.mark.parametrize("at", ["before the old one is closed", "before the new one is there"])
def test_a_move_that_is_killed_leaves_one_ledger_to_go_on_with(
    database_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    source, operator = url_of(tmp_path / "ledger.sqlite"), Operator.load_or_make(tmp_path / "key")
    made = Ledger.create(source, operator)
    made.open_account(HEALTH, operator)
    address, entries = database_server.new_database(), made.entries()
    child = os.fork()
    if child == 0:
        dialect = "sqlite" if at == "before the old one is closed" else "postgresql"

        def die(connection: sa.Connection) -> None:
            if connection.engine.dialect.name == dialect:
                os.kill(os.getpid(), signal.SIGKILL)

        sa.event.listen(sa.Engine, "commit", die)
        moving.move(source, made.id, address, operator)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    with pytest.raises(LedgerError):
        Ledger.open(address, made.id)
    if at == "before the old one is closed":
        assert Ledger.open(source, made.id).entries() == entries
    else:
        for ask in (lambda: Ledger.open(source, made.id), lambda: made.open_account(replace(HEALTH, name="more"))):
            with pytest.raises(LedgerMoved):
                ask()
        elsewhere = database_server.new_database()
        with pytest.raises(LedgerMoved):
            move(source, made.id, elsewhere, operator)
    moved = move(source, made.id, address, operator)
    assert moved.entries()[:-1] == entries and moved.entries()[-1].kind == "moved"
    moved.open_account(replace(HEALTH, name="more"), operator)
    with pytest.raises(LedgerError):
        move(source, made.id, address, operator)
