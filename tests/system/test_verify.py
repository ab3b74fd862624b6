"""`dphist ledger verify` beside the ledger itself: a witness that is gone, an end that was cut off."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from office import Office
from system.doctored import all_well, examined

from dphist_pipeline.ledger.database import SqliteFile
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.mechanisms.geometric import Geometric
from dphist_pipeline.releasing.store import Store

pytestmark = pytest.mark.draws_alike


def cut_last(ledger: Path, kind: str) -> None:
    """Takes the last entry away from a ledger's file, as nothing but an editor of databases can."""
    with closing(sqlite3.connect(ledger)) as file:
        for name in SqliteFile.triggers:
            file.execute(f"DROP TRIGGER {name}")
        last = "number = (SELECT max(number) FROM ledger_entry)"
        assert file.execute(f"SELECT kind FROM ledger_entry WHERE {last}").fetchall() == [(kind,)]
        file.execute(f"DELETE FROM ledger_entry WHERE {last}")
        for sql in SqliteFile.triggers.values():
            file.execute(sql)
        file.commit()


def verify(office: Office, *words: str) -> tuple[int, str]:
    done = office.run("ledger", "verify", "--store", office.store, *words)
    return done.code, " ".join((done.out + done.err).split())


@pytest.mark.slow
def test_a_ledger_that_lost_its_last_publication_is_found_and_mended_for_nothing(office: Office) -> None:
    office.opened().released()
    before = office.entries()
    cut_last(office.store / "ledger.sqlite", "published")
    code, said = verify(office)
    assert code == 1 and "is there, and the ledger has no entry that it was published" in said
    found = examined(office)["ledger"]
    assert found["state"] == "fault" and "wards, period all, revision 1" in found["seen"], found
    assert "dphist release SPEC" in found["mend"]
    office.released()
    assert [row[1] for row in office.entries()] == [row[1] for row in before]
    assert verify(office)[0] == 0
    all_well(examined(office))


@pytest.mark.slow
def test_a_release_under_way_is_not_taken_for_a_cut_ledger(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.opened()
    seen = []
    original = Store.published

    def looked(store: Store, key: object) -> Path:
        place = original(store, key)  # type: ignore[arg-type]
        if looking and not seen:
            seen.append(place)
            looking.clear()
            office.released()  # right before somebody looks whether its files are there
        return place

    looking: list[bool] = []
    with monkeypatch.context() as broken:
        broken.setattr(Geometric, "release", lambda *given: 1 // 0)
        assert office.release().code == 1
    monkeypatch.setattr(Store, "published", looked)
    looking.append(True)
    code, said = verify(office)
    assert code == 0 and "1 publication is whole" in said and seen


@pytest.mark.parametrize("linked", ["revision", "period"])
def test_a_linked_folder_is_named_by_verify_and_by_a_replay(office: Office, linked: str, tmp_path: Path) -> None:
    office.with_release()
    folder = office.published() if linked == "revision" else office.published().parent
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    problem = f"{folder.name} is a link: what is published must lie in the public folder itself"
    code, said = verify(office)
    replay = office.release()
    assert (code, replay.code) == (1, 1) and problem in said and problem in " ".join(replay.err.split())


@pytest.mark.slow
@pytest.mark.parametrize("what", ["gone", "of another store"])
def test_a_missing_witness_is_told_after_all_else_was_checked(office: Office, what: str, tmp_path: Path) -> None:
    office.with_release()
    assert verify(office)[0] == 0
    assert office.run("ledger", "verify", "--store", office.store, "--json").json["witnessed"] is True
    kept = shutil.move(office.witness, tmp_path / "kept")
    if what == "of another store":
        other = Office(tmp_path / "other").of_its_own()
        shutil.copy(other.witness, office.witness)
    code, said = verify(office)
    assert code == 1 and "6 entries were read, every hash and every sum holds, and 1 of the publications" in said, said
    assert ("There is no witness at" if what == "gone" else "does not know store") in said
    assert "DPHIST_WITNESS" in said and "store adopt" in said
    assert office.run("ledger", "verify", "--store", office.store, "--json").code == 1
    shutil.move(kept, office.witness)
    assert verify(office)[0] == 0


@pytest.mark.slow
def test_a_witness_that_saw_another_charge_is_told(office: Office) -> None:
    office.opened()
    shutil.copy(office.store / "ledger.sqlite", office.folder / "backup")
    office.released()
    shutil.copy(office.folder / "backup", office.store / "ledger.sqlite")
    shutil.rmtree(office.store / "public" / "wards")
    code, said = verify(office)
    assert code == 1 and "store adopt" in said


@pytest.mark.slow
def test_a_witness_that_this_user_may_only_read_will_do(office: Office) -> None:
    office.with_release()
    office.witness.chmod(0o400)
    assert verify(office)[0] == 0


def test_a_ledger_of_the_first_version_has_no_witness_until_its_first_decision(office: Office) -> None:
    office.opened()
    (office.store / "ledger.sqlite").unlink()
    office.witness.unlink()
    made = Ledger.create(f"sqlite:///{office.store}/ledger.sqlite")
    described = office.store / "store.json"
    described.write_text(described.read_text().replace(Store.open(office.store).ledger_id, made.id))
    code, said = verify(office)
    assert code == 0 and "no witness yet" in said
    words = ("--privacy-unit", "patient", "--neighbours", "add_remove", "--total", "4")
    assert office.run("ledger", "open", "late", *words, "--store", office.store).code == 0
    code, said = verify(office)
    assert code == 0 and "no witness" not in said
