"""The witness's file: where it lies, who may read it, and what is no witness."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import traceback
from contextlib import closing
from pathlib import Path

import pytest
from error_codes import coded, ledger_refuses
from ledger_scenario import raw, url_of
from witness_scenario import STORE, charges, hashed, new_witness, of, refusals

from dphist_pipeline.ledger import database as ledger_database
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.witness import Witness


@pytest.fixture(autouse=True)
def no_state_of_the_developer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPHIST_WITNESS", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    return new_witness(tmp_path)


# Where it lies


def test_it_is_private_to_its_owner(witness: Witness) -> None:
    path = Path(witness.where)
    witness.vouch(STORE, of(1, charges(3)))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["witness.sqlite"]


def test_its_place_is_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Witness.at().where == str(tmp_path / "state" / "dphist" / "witness.sqlite")
    monkeypatch.setenv("XDG_STATE_HOME", "relative/does/not/count")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert Witness.at().where == str(tmp_path / "home" / ".local" / "state" / "dphist" / "witness.sqlite")
    monkeypatch.setenv("DPHIST_WITNESS", str(tmp_path / "named?#%20.sqlite"))
    assert Witness.at().where == str(tmp_path / "named?#%20.sqlite")
    Witness.at().enrol(STORE, "entry-1")
    assert (tmp_path / "named?#%20.sqlite").is_file()
    monkeypatch.setenv("DPHIST_WITNESS", url_of(tmp_path / "by_url.sqlite"))
    assert Witness.at().where == str(tmp_path / "by_url.sqlite")
    assert Witness.at(tmp_path / "given").where == str(tmp_path / "given")


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///relative", "relative", "~/w", "/a\0b", "/"])
def test_an_address_that_names_no_file_is_refused(address: str) -> None:
    with ledger_refuses("address_refused", match="DPHIST_WITNESS"):
        Witness.at(address)


def test_other_databases_are_refused_without_their_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPHIST_WITNESS", "postgresql://user:secret@host/db")
    with ledger_refuses("address_refused", match="holds a password") as refusal:
        Witness.at()
    assert "secret" not in str(refusal.value)


def test_it_is_never_the_ledger(witness: Witness, tmp_path: Path) -> None:
    path, other = Path(witness.where), tmp_path / "other"
    other.write_bytes(b"")
    witness.refuse_ledger(other)
    witness.refuse_ledger(tmp_path / "none")
    (tmp_path / "symbolic").symlink_to(path)
    (tmp_path / "hard").hardlink_to(path)
    (tmp_path / "folder").symlink_to(path.parent)
    for ledger in (path, tmp_path / "symbolic", tmp_path / "hard", tmp_path / "folder" / path.name):
        with ledger_refuses("address_refused", match="is the ledger"):
            witness.refuse_ledger(ledger)
    unmade = Witness.at(tmp_path / "folder" / "new")
    with ledger_refuses("address_refused", match="is the ledger"):
        unmade.refuse_ledger(path.parent / "new")


def test_it_does_not_lie_in_the_store(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (tmp_path / "link").symlink_to(store)
    Witness.at(tmp_path / "storehouse" / "w").refuse_inside(store)
    for inside in (store / "w", store / "a" / "b" / "w", tmp_path / "link" / "w", store / "a" / ".." / "w"):
        with ledger_refuses("address_refused", match="inside the store"):
            Witness.at(inside).refuse_inside(store)
        with ledger_refuses("address_refused", match="inside the store"):
            Witness.at(inside).refuse_inside(tmp_path / "link")


def test_a_home_that_cannot_be_written_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    for ask in (
        lambda: Witness.at().enrol(STORE, "entry-1"),
        lambda: Witness.at().begin_generation(STORE, of(1, charges(), "entry-1")),
    ):
        with ledger_refuses("file_unusable", match="set DPHIST_WITNESS"):
            ask()
    assert Witness.at().standing(STORE) is None


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_witness_is_refused_before_anything_is_charged(witness: Witness, what: str) -> None:
    path = Path(witness.where)
    place, mode = (path, 0o400) if what == "file" else (path.parent, 0o500)
    place.chmod(mode)
    try:
        for refusal in refusals(witness, 1, charges(3)):
            assert refusal.code == "file_unusable" and "write permission" in str(refusal)
    finally:
        place.chmod(0o700)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_witness_of_somebody_else_is_found_out_by_a_trial_write() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        witness = Witness.at(Path(folder) / "w.sqlite")
        witness.enrol(STORE, "entry-1")
        Path(witness.where).chmod(0o644)
        os.seteuid(65534)
        try:
            for refusal in refusals(witness, 1, charges(3)):
                assert refusal.code == "file_unusable"
        finally:
            os.seteuid(0)


def test_a_witness_that_is_held_is_busy(witness: Witness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_database, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(witness.where, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for refusal in refusals(witness, 1, charges(3)):
            assert refusal.code == "file_busy" and "The witness at" in str(refusal)


# Files that are no witness


def refusals_unread(witness: Witness) -> list[LedgerError]:
    found = []
    for ask in (lambda: witness.standing(STORE), lambda: witness.vouch(STORE, of(1, charges(3)))):
        with pytest.raises(LedgerError) as refusal:
            ask()
        found.append(refusal.value)
    return found


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_file_is_refused_and_stays(tmp_path: Path, content: bytes) -> None:
    witness = Witness.at(tmp_path / "w.sqlite")
    Path(witness.where).write_bytes(content)
    for ask in (
        lambda: witness.enrol(STORE, "entry-1"),
        lambda: witness.begin_generation(STORE, of(1, charges(), "entry-1")),
        lambda: witness.standing(STORE),
        lambda: witness.vouch(STORE, of(1, charges(3))),
        lambda: witness.vouch_answer(STORE, hashed(3), "counts", hashed("a")),
    ):
        with ledger_refuses("witness_altered", match="The witness at") as refusal:
            ask()
        assert "sqlite3" not in "".join(traceback.format_exception(refusal.value))
    assert Path(witness.where).read_bytes() == content


def test_a_ledger_is_no_witness(tmp_path: Path) -> None:
    Ledger.create(url_of(tmp_path / "ledger.sqlite"))
    with ledger_refuses("address_refused", match="holds a ledger"):
        Witness.at(tmp_path / "ledger.sqlite").enrol(STORE, "entry-1")


def test_a_witness_of_a_newer_version_is_refused(witness: Witness) -> None:
    raw(Path(witness.where), "INSERT INTO witness VALUES (2)", "CREATE TABLE more (a)", "DROP INDEX charge_by_hash")
    for refusal in refusals_unread(witness):
        assert refusal.code == "witness_altered" and "schema version is 2" in str(refusal)


TABLES = ("witness", "generation", "charge", "answer", "place")


def filled(witness: Witness) -> None:
    witness.vouch(STORE, of(1, charges(3, 4)))
    witness.vouch_answer(STORE, hashed(3), "counts", hashed("a"))
    witness.note_place(STORE, "here")


@pytest.mark.parametrize("table", TABLES)
def test_its_rows_are_neither_changed_nor_deleted_nor_replaced(witness: Witness, table: str) -> None:
    filled(witness)
    with closing(sqlite3.connect(witness.where, isolation_level=None)) as connection:
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        assert rows
        first = connection.execute(f"SELECT name FROM pragma_table_info('{table}')").fetchone()[0]
        for statement in (
            f"DELETE FROM {table}",
            f"UPDATE {table} SET {first} = '7'",
            f"INSERT OR REPLACE INTO {table} SELECT * FROM {table} LIMIT 1",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="only grows"):
                connection.execute(statement)
        assert connection.execute(f"SELECT * FROM {table}").fetchall() == rows


def test_a_charge_of_a_period_is_not_replaced_at_another_position(witness: Witness) -> None:
    filled(witness)
    with closing(sqlite3.connect(witness.where, isolation_level=None)) as connection:
        names = [row[0] for row in connection.execute("SELECT name FROM pragma_table_info('charge')")]
        moved = ", ".join("9" if name == "position" else name for name in names)
        with pytest.raises(sqlite3.IntegrityError, match="only grows"):
            connection.execute(f"INSERT OR REPLACE INTO charge SELECT {moved} FROM charge LIMIT 1")


def test_a_witness_without_its_triggers_is_refused(witness: Witness) -> None:
    with closing(sqlite3.connect(witness.where)) as connection:
        connection.execute("DROP TRIGGER answer_never_deleted")
    for refusal in refusals_unread(witness):
        assert refusal.code == "witness_altered" and "rules" in str(refusal)


def test_a_charge_with_a_damaged_price_is_refused(witness: Witness) -> None:
    filled(witness)
    raw(Path(witness.where), "UPDATE charge SET epsilon = '0.5'")
    for refusal in refusals_unread(witness):
        assert refusal.code == "witness_altered" and "not written as one" in str(refusal)
