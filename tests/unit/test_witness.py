"""The witness: a store that is copied, or put back from a backup, is noticed before it draws again."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import tempfile
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from ledger_scenario import HEALTH, PROCESSES, raw, url_of, week

from dphist_pipeline.ledger import tables as ledger_tables
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.witness import ReadCharges, Witness, WitnessedCharge, place_of, witnessed
from dphist_pipeline.ledger.witness_errors import (
    AnswerDrawnElsewhere,
    ChargeBeforeWitness,
    LedgerBehindWitness,
    StoreEnrolled,
    StoreSuperseded,
    WitnessAddressRefused,
    WitnessAltered,
    WitnessBusy,
    WitnessError,
    WitnessMissing,
    WitnessOutdated,
    WitnessUnwritable,
)

STORE = "store-1"
RACERS = 20
ADOPT = "dphist store adopt --reason TEXT"


@pytest.fixture(autouse=True)
def no_state_of_the_developer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DPHIST_WITNESS", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def witness(tmp_path: Path) -> Witness:
    made = Witness.at()
    assert made.where == str(tmp_path / "state" / "dphist" / "witness.sqlite")
    made.enrol(STORE, "entry-1")
    return made


def charge(number: int, **changes: Any) -> WitnessedCharge:
    made = WitnessedCharge(number, f"hash-{number}", "health", "weekly", f"week-{number}", 1, Fraction(1, 3), 2026)
    return replace(made, **changes)


def charges(*numbers: int) -> ReadCharges:
    return lambda: [charge(number) for number in numbers]


def held(witness: Witness) -> list[int]:
    standing = witness.standing(STORE)
    assert standing is not None
    return [charge.number for charge in standing.charges]


# What it holds


def test_a_new_store_stands_at_generation_one_without_charges(witness: Witness) -> None:
    standing = witness.standing(STORE)
    assert standing is not None
    assert (standing.store_id, standing.generation, standing.started_by) == (STORE, 1, "entry-1")
    assert (standing.year, standing.charges, standing.place) == (0, (), None)


def test_it_gives_back_the_charges_as_they_were_vouched_for(witness: Witness) -> None:
    both = [charge(3), charge(5, epsilon=Fraction("0.1"), year=2027, revision=2)]
    for known in (both[:1], both, both):
        witness.vouch(STORE, 1, lambda known=known: known)
    standing = witness.standing(STORE)
    assert standing is not None and standing.charges == tuple(both) and standing.year == 2027


def test_stores_do_not_know_of_each_other(witness: Witness) -> None:
    witness.enrol("store-2", "entry-1")
    witness.vouch("store-2", 1, lambda: [charge(3, hash="other")])
    witness.vouch(STORE, 1, charges(3))
    witness.vouch_answer("store-2", "other", "counts", "a")
    with pytest.raises(WitnessMissing, match=r"charge other of store store-1"):
        witness.vouch_answer(STORE, "other", "counts", "b")


def test_what_is_not_enrolled_is_unknown(witness: Witness, tmp_path: Path) -> None:
    assert witness.standing("store-2") is None
    assert Witness.at(tmp_path / "none.sqlite").standing(STORE) is None
    assert not (tmp_path / "none.sqlite").exists()


def test_a_check_writes_nothing(witness: Witness) -> None:
    content = Path(witness.where).read_bytes()
    witness.check(STORE, 1, charges(3), 2026)
    assert Path(witness.where).read_bytes() == content


def test_places_are_remembered_and_a_move_is_told_once(witness: Witness, tmp_path: Path) -> None:
    here = place_of(tmp_path)
    assert str(tmp_path) in here and str(tmp_path.stat().st_ino) in here
    assert witness.note_place(STORE, here) is None
    assert witness.note_place(STORE, here) is None
    assert witness.note_place(STORE, "elsewhere") == here
    assert witness.note_place(STORE, "elsewhere") is None
    assert witness.note_place(STORE, here) == "elsewhere"
    standing = witness.standing(STORE)
    assert standing is not None and standing.place == here


def test_a_ledgers_own_charges_are_vouched_for(witness: Witness, tmp_path: Path) -> None:
    ledger = Ledger.create(url_of(tmp_path / "ledger.sqlite"))
    ledger.open_account(HEALTH)
    made = ledger.charge(week(2))
    ledger.record_published(made, "values")
    read = witnessed(ledger.entries())
    assert [(c.number, c.hash, c.release, c.period, c.revision) for c in read] == [
        (made.number, made.hash, "weekly", "2026-03-02", 1)
    ]
    assert read[0].epsilon == Fraction(1, 2) and read[0].year == int(made.charged_at[:4])
    witness.vouch(STORE, 1, lambda: witnessed(ledger.entries()))
    assert held(witness) == [made.number]


# Refusals


def refusals(witness: Witness, generation: int, read: ReadCharges, **more: Any) -> list[WitnessError]:
    """What `vouch` refuses, and `check` before it; the witness stays as it was."""
    found = []
    before = witness.standing(STORE)
    for ask in (
        lambda: witness.check(STORE, generation, read, 2026, **more),
        lambda: witness.vouch(STORE, generation, read, **more),
    ):
        with pytest.raises(WitnessError) as refusal:
            ask()
        found.append(refusal.value)
    assert witness.standing(STORE) == before
    return found


def test_a_store_is_enrolled_once(witness: Witness) -> None:
    for hash_ in ("entry-1", "other"):
        with pytest.raises(StoreEnrolled, match=STORE):
            witness.enrol(STORE, hash_)


def test_an_unknown_store_is_refused_with_the_way_out(witness: Witness) -> None:
    for ask in (
        lambda: witness.vouch("store-2", 1, charges(3)),
        lambda: witness.check("store-2", 1, charges(), 2026),
        lambda: witness.vouch_answer("store-2", "hash-3", "counts", "a"),
        lambda: witness.note_place("store-2", "here"),
    ):
        with pytest.raises(WitnessMissing, match=f"DPHIST_WITNESS.*{ADOPT}") as refusal:
            ask()
        assert "store-2" in str(refusal.value)


def test_a_lost_witness_is_refused_and_none_is_made(witness: Witness) -> None:
    path = Path(witness.where)
    path.unlink()
    for refusal in refusals(witness, 1, charges(3)):
        assert isinstance(refusal, WitnessMissing) and ADOPT in str(refusal)
    assert not path.exists()


@pytest.mark.parametrize("numbers", [(), (3,), (5,), (5, 3), (4, 5), (3, 4, 5)])
def test_a_ledger_without_a_witnessed_charge_is_refused(witness: Witness, numbers: tuple[int, ...]) -> None:
    witness.vouch(STORE, 1, charges(3, 5))
    for refusal in refusals(witness, 1, charges(*numbers)):
        assert isinstance(refusal, LedgerBehindWitness)
        missing = 5 if numbers[:1] == (3,) else 3
        assert (refusal.release, refusal.period, refusal.revision) == ("weekly", f"week-{missing}", 1)
        assert f"weekly, period week-{missing}, revision 1" in str(refusal) and ADOPT in str(refusal)


def test_a_charge_dated_before_a_witnessed_one_is_refused(witness: Witness) -> None:
    first = charge(3, year=2027)
    witness.vouch(STORE, 1, lambda: [first])
    with pytest.raises(ChargeBeforeWitness, match="2026.*2027.*clock"):
        witness.vouch(STORE, 1, lambda: [first, charge(4)])
    with pytest.raises(ChargeBeforeWitness, match="2026.*2027.*clock"):
        witness.check(STORE, 1, lambda: [first], 2026)
    witness.check(STORE, 1, lambda: [first], 2027)
    assert held(witness) == [3]


# Copies


def test_of_three_copies_with_one_charge_each_for_a_period_one_is_vouched_for(witness: Witness) -> None:
    copies = [lambda name=name: [charge(3, hash=name)] for name in ("a", "b", "c")]
    witness.vouch(STORE, 1, copies[1])
    for copy in (copies[0], copies[2]):
        assert {type(refusal) for refusal in refusals(witness, 1, copy)} == {LedgerBehindWitness}
    witness.vouch(STORE, 1, copies[1])


@pytest.mark.parametrize("seconds", [0, 1])
def test_of_three_copied_ledgers_one_draws(
    witness: Witness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """Within one second, copies make charges with one hash, so that only the answers tell them apart."""
    original = Ledger.create(url_of(tmp_path / "0.sqlite"))
    original.open_account(HEALTH)
    drawn, refused = [], []
    for copy in range(1, 4):
        shutil.copy(tmp_path / "0.sqlite", tmp_path / f"{copy}.sqlite")
    for copy in range(1, 4):
        ledger = Ledger.open(url_of(tmp_path / f"{copy}.sqlite"), original.id)
        moment = f"2026-06-30T12:00:{copy * seconds:02}Z"
        monkeypatch.setattr("dphist_pipeline.ledger.ledger.utc_now", lambda moment=moment: moment)
        made = ledger.charge(week(2))
        try:
            witness.vouch(STORE, 1, lambda ledger=ledger: witnessed(ledger.entries()))
            witness.vouch_answer(STORE, made.hash, "counts", f"drawn by {copy}")
            drawn.append(copy)
        except (AnswerDrawnElsewhere, LedgerBehindWitness) as refusal:
            refused.append(type(refusal))
    assert drawn == [1]
    assert refused == [LedgerBehindWitness if seconds else AnswerDrawnElsewhere] * 2


def test_two_copies_that_draw_one_step_differently_cannot_both_go_on(witness: Witness) -> None:
    witness.vouch(STORE, 1, charges(3, 4))
    for _ in range(2):
        witness.vouch_answer(STORE, "hash-3", "counts", "a")
        with pytest.raises(AnswerDrawnElsewhere, match="'counts'.*Nothing of this draw was used.*--revise"):
            witness.vouch_answer(STORE, "hash-3", "counts", "b")
    witness.vouch_answer(STORE, "hash-3", "structure", "b")
    witness.vouch_answer(STORE, "hash-4", "counts", "b")


def test_no_answer_is_vouched_for_before_its_charge(witness: Witness) -> None:
    with pytest.raises(WitnessMissing, match="charge hash-3"):
        witness.vouch_answer(STORE, "hash-3", "counts", "a")


# Adoption


def test_an_adopted_copy_goes_on_with_its_own_charges_and_the_others_are_refused(witness: Witness) -> None:
    witness.vouch(STORE, 1, charges(3, 4))
    witness.begin_generation(STORE, 2, "entry-9", charges(3))
    for refusal in refusals(witness, 1, charges(3, 4)):
        assert isinstance(refusal, StoreSuperseded) and (refusal.generation, refusal.current) == (1, 2)
        assert "This copy draws no more" in str(refusal)
    again = charge(10, period="week-4")
    witness.vouch(STORE, 2, lambda: [charge(3), again])
    assert held(witness) == [3, 10]


def test_an_answer_of_a_superseded_copy_is_refused_where_the_adopted_one_lacks_its_charge(witness: Witness) -> None:
    witness.vouch(STORE, 1, charges(3, 4))
    witness.vouch_answer(STORE, "hash-3", "counts", "a")
    witness.begin_generation(STORE, 2, "entry-9", charges(3))
    with pytest.raises(StoreSuperseded):
        witness.vouch_answer(STORE, "hash-4", "counts", "a")
    with pytest.raises(AnswerDrawnElsewhere):
        witness.vouch_answer(STORE, "hash-3", "counts", "drawn by the adopted copy")
    witness.vouch_answer(STORE, "hash-3", "counts", "a")


def test_an_adoption_may_be_repeated_but_not_by_another_copy(witness: Witness) -> None:
    for _ in range(2):
        witness.begin_generation(STORE, 2, "entry-9", charges(3))
    witness.vouch(STORE, 2, charges(3, 10))
    witness.begin_generation(STORE, 2, "entry-9", charges(3))
    assert held(witness) == [3, 10]
    for generation, hash_ in ((2, "other"), (1, "entry-1"), (1, "other")):
        with pytest.raises(StoreSuperseded):
            witness.begin_generation(STORE, generation, hash_, charges(3))
    for refusal in refusals(witness, 2, charges(3, 10), started_by_hash="other"):
        assert isinstance(refusal, StoreSuperseded) and "another generation 2" in str(refusal)
    witness.vouch(STORE, 2, charges(3, 10), started_by_hash="entry-9")


def test_a_lost_witness_begins_anew_by_an_adoption(witness: Witness, tmp_path: Path) -> None:
    Path(witness.where).unlink()
    witness.begin_generation(STORE, 5, "entry-9", charges(3, 4))
    witness.vouch(STORE, 5, charges(3, 4, 10))
    assert held(witness) == [3, 4, 10]
    witness.vouch_answer(STORE, "hash-3", "counts", "a")


def test_a_witness_that_missed_an_adoption_is_told(witness: Witness) -> None:
    for refusal in refusals(witness, 2, charges()):
        assert isinstance(refusal, WitnessOutdated) and ADOPT in str(refusal)
    witness.begin_generation(STORE, 3, "entry-9", charges())
    witness.vouch(STORE, 3, charges(10))


# Where it lies


def test_it_is_private_to_its_owner(witness: Witness) -> None:
    path = Path(witness.where)
    witness.vouch(STORE, 1, charges(3))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in path.parent.iterdir()] == ["witness.sqlite"]


def test_its_place_is_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.mark.parametrize(
    "address", ["postgresql://user:secret@host/db", "sqlite://", "sqlite:///relative", "relative", "~/w", "/a\0b", "/"]
)
def test_an_address_that_names_no_file_is_refused(address: str) -> None:
    with pytest.raises(WitnessAddressRefused, match="DPHIST_WITNESS") as refusal:
        Witness.at(address)
    assert "secret" not in str(refusal.value)
    assert ("PostgreSQL comes later" in str(refusal.value)) == (
        address.startswith(("postgresql", "sqlite://")) and address != "sqlite:///relative"
    )


def test_it_is_never_the_ledger(witness: Witness, tmp_path: Path) -> None:
    path, other = Path(witness.where), tmp_path / "other"
    other.write_bytes(b"")
    witness.refuse_ledger(other)
    witness.refuse_ledger(tmp_path / "none")
    (tmp_path / "symbolic").symlink_to(path)
    (tmp_path / "hard").hardlink_to(path)
    (tmp_path / "folder").symlink_to(path.parent)
    for ledger in (path, tmp_path / "symbolic", tmp_path / "hard", tmp_path / "folder" / path.name):
        with pytest.raises(WitnessAddressRefused, match="is the ledger"):
            witness.refuse_ledger(ledger)
    unmade = Witness.at(tmp_path / "folder" / "new")
    with pytest.raises(WitnessAddressRefused, match="is the ledger"):
        unmade.refuse_ledger(path.parent / "new")


def test_it_does_not_lie_in_the_store(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (tmp_path / "link").symlink_to(store)
    Witness.at(tmp_path / "storehouse" / "w").refuse_inside(store)
    for inside in (store / "w", store / "a" / "b" / "w", tmp_path / "link" / "w", store / "a" / ".." / "w"):
        with pytest.raises(WitnessAddressRefused, match="inside the store"):
            Witness.at(inside).refuse_inside(store)
        with pytest.raises(WitnessAddressRefused, match="inside the store"):
            Witness.at(inside).refuse_inside(tmp_path / "link")
        Witness.at(inside).refuse_inside(store, allow_inside=True)


def test_a_home_that_cannot_be_written_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    for ask in (
        lambda: Witness.at().enrol(STORE, "entry-1"),
        lambda: Witness.at().begin_generation(STORE, 1, "entry-1", charges()),
    ):
        with pytest.raises(WitnessUnwritable, match="set DPHIST_WITNESS"):
            ask()
    assert Witness.at().standing(STORE) is None


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_witness_is_refused_before_anything_is_charged(witness: Witness, what: str) -> None:
    path = Path(witness.where)
    place, mode = (path, 0o400) if what == "file" else (path.parent, 0o500)
    place.chmod(mode)
    try:
        for refusal in refusals(witness, 1, charges(3)):
            assert isinstance(refusal, WitnessUnwritable) and "write permission" in str(refusal)
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
                assert isinstance(refusal, WitnessUnwritable)
        finally:
            os.seteuid(0)


def test_a_witness_that_is_held_is_busy(witness: Witness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_tables, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(witness.where, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for refusal in refusals(witness, 1, charges(3)):
            assert isinstance(refusal, WitnessBusy) and "The witness at" in str(refusal)


# Files that are no witness


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_file_is_refused_and_stays(tmp_path: Path, content: bytes) -> None:
    witness = Witness.at(tmp_path / "w.sqlite")
    Path(witness.where).write_bytes(content)
    for ask in (
        lambda: witness.enrol(STORE, "entry-1"),
        lambda: witness.begin_generation(STORE, 1, "entry-1", charges()),
        lambda: witness.standing(STORE),
        lambda: witness.vouch(STORE, 1, charges(3)),
        lambda: witness.vouch_answer(STORE, "hash-3", "counts", "a"),
    ):
        with pytest.raises(WitnessAltered, match="The witness at") as refusal:
            ask()
        assert "sqlite3" not in "".join(traceback.format_exception(refusal.value))
    assert Path(witness.where).read_bytes() == content


def test_a_ledger_is_no_witness(tmp_path: Path) -> None:
    Ledger.create(url_of(tmp_path / "ledger.sqlite"))
    with pytest.raises(WitnessAltered, match="holds no witness"):
        Witness.at(tmp_path / "ledger.sqlite").enrol(STORE, "entry-1")


def test_a_witness_of_a_newer_version_is_refused(witness: Witness) -> None:
    raw(Path(witness.where), "INSERT INTO witness VALUES (2)", "CREATE TABLE more (a)", "DROP TRIGGER IF EXISTS x")
    for refusal in refusals_unread(witness):
        assert isinstance(refusal, WitnessAltered) and "schema version is 2" in str(refusal)


def refusals_unread(witness: Witness) -> list[WitnessError]:
    found = []
    for ask in (lambda: witness.standing(STORE), lambda: witness.vouch(STORE, 1, charges(3))):
        with pytest.raises(WitnessError) as refusal:
            ask()
        found.append(refusal.value)
    return found


TABLES = ("witness", "generation", "charge", "answer", "place")


def filled(witness: Witness) -> None:
    witness.vouch(STORE, 1, charges(3, 4))
    witness.vouch_answer(STORE, "hash-3", "counts", "a")
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
        assert isinstance(refusal, WitnessAltered) and "rules" in str(refusal)


def test_a_charge_with_a_damaged_price_is_refused(witness: Witness) -> None:
    filled(witness)
    raw(Path(witness.where), "UPDATE charge SET epsilon = '0.5'")
    for refusal in refusals_unread(witness):
        assert isinstance(refusal, WitnessAltered) and "without a price" in str(refusal)


# Races


def at_once(barrier: Any) -> None:
    global _barrier
    _barrier = barrier


def ask_at_once(ask: Callable[..., Any], *arguments: Any) -> str:
    _barrier.wait(60)
    try:
        ask(*arguments)
    except WitnessError as refusal:
        return type(refusal).__name__
    return "done"


def race(ask: Callable[..., Any], *arguments: tuple[Any, ...]) -> list[str]:
    """What became of each of the calls, made at the same moment by a process each."""
    pool = PROCESSES.Pool(len(arguments), at_once, (PROCESSES.Barrier(len(arguments)),))
    try:
        return pool.starmap_async(ask_at_once, [(ask, *each) for each in arguments], chunksize=1).get(timeout=120)
    finally:
        pool.terminate()
        pool.join()


def enrolled(where: str, store: str) -> None:
    Witness.at(where).enrol(store, "entry-1")


def vouched(where: str, known: list[WitnessedCharge]) -> None:
    Witness.at(where).vouch(STORE, 1, lambda: known)


def charged_and_vouched(where: str, ledger_path: Path, ledger_id: str, day: int) -> None:
    ledger = Ledger.open(url_of(ledger_path), ledger_id)
    ledger.charge(week(day))
    Witness.at(where).vouch(STORE, 1, lambda: witnessed(ledger.entries()))


def answered(where: str, digest: str) -> None:
    Witness.at(where).vouch_answer(STORE, "hash-3", "counts", digest)


def adopted(where: str, hash_: str) -> None:
    Witness.at(where).begin_generation(STORE, 2, hash_, charges(3))


def test_twenty_stores_are_enrolled_at_once_in_a_witness_that_is_not_there_yet(tmp_path: Path) -> None:
    where = str(tmp_path / "new" / "w.sqlite")
    assert race(enrolled, *((where, f"store-{number}") for number in range(RACERS))) == ["done"] * RACERS
    assert all(Witness.at(where).standing(f"store-{number}") for number in range(RACERS))
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["w.sqlite"]


def test_twenty_processes_vouch_for_the_same_charges(witness: Witness) -> None:
    known = [charge(3), charge(4), charge(5)]
    assert race(vouched, *((witness.where, known),) * RACERS) == ["done"] * RACERS
    assert held(witness) == [3, 4, 5]


def test_twenty_processes_with_a_charge_each_are_all_vouched_for(witness: Witness, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger.create(url_of(path))
    ledger.open_account(HEALTH)
    days = range(1, RACERS + 1)
    assert race(charged_and_vouched, *((witness.where, path, ledger.id, day) for day in days)) == ["done"] * RACERS
    standing = witness.standing(STORE)
    assert standing is not None and standing.charges == tuple(witnessed(ledger.entries()))
    assert len(standing.charges) == RACERS


def test_of_twenty_copies_at_once_one_is_vouched_for(witness: Witness) -> None:
    found = race(vouched, *((witness.where, [charge(3, hash=f"copy-{number}")]) for number in range(RACERS)))
    assert sorted(found) == ["LedgerBehindWitness"] * (RACERS - 1) + ["done"]
    assert held(witness) == [3]


def test_of_twenty_answers_at_once_one_is_vouched_for(witness: Witness) -> None:
    witness.vouch(STORE, 1, charges(3))
    found = race(answered, *((witness.where, f"digest-{number}") for number in range(RACERS)))
    assert sorted(found) == ["AnswerDrawnElsewhere"] * (RACERS - 1) + ["done"]


def test_of_twenty_adoptions_at_once_one_stands(witness: Witness) -> None:
    found = race(adopted, *((witness.where, f"entry-{number}") for number in range(RACERS)))
    assert sorted(found) == ["StoreSuperseded"] * (RACERS - 1) + ["done"]
    assert held(witness) == [3]


def test_a_witness_may_cross_a_fork(witness: Witness) -> None:
    witness.vouch(STORE, 1, charges(3))
    child = os.fork()
    if child == 0:
        try:
            witness.vouch(STORE, 1, charges(3, 4))
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    witness.vouch(STORE, 1, charges(3, 4, 5))
    assert held(witness) == [3, 4, 5]


# Kills


def kill_at(moment: int) -> None:
    """Makes this process kill itself right before its statement, commit or file operation of that number."""
    moments = iter(range(moment + 1))

    def mortal(*_: Any, **__: Any) -> None:
        if next(moments, moment) == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    for event in ("before_cursor_execute", "after_cursor_execute", "commit"):
        sa.event.listen(sa.Engine, event, mortal)
    for name in ("link", "mkdir", "fsync", "unlink"):
        real = getattr(os, name)
        setattr(os, name, lambda *args, real=real, **options: (mortal(), real(*args, **options))[1])


def whole_life(witness: Witness) -> None:
    if witness.standing(STORE) is None:
        witness.enrol(STORE, "entry-1")
    witness.vouch(STORE, 1, charges(3, 4))
    witness.vouch_answer(STORE, "hash-3", "counts", "a")


def test_a_kill_anywhere_leaves_a_witness_that_the_same_calls_complete(tmp_path: Path) -> None:
    states: list[tuple[int, ...] | None] = []
    status = -1
    while status != 0:
        witness = Witness.at(tmp_path / str(len(states)) / "w.sqlite")
        child = os.fork()
        if child == 0:
            try:
                kill_at(len(states))
                whole_life(witness)
            except BaseException:
                os._exit(1)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL)
        standing = witness.standing(STORE)
        states.append(None if standing is None else tuple(charge.number for charge in standing.charges))
        whole_life(witness)
        assert held(witness) == [3, 4]
        with pytest.raises(AnswerDrawnElsewhere):
            witness.vouch_answer(STORE, "hash-3", "counts", "b")
    assert set(states) == {None, (), (3, 4)} and len(states) > 50
