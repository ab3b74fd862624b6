"""`dphist doctor`: every fault is made to happen, is seen, and is gone once its mend was done."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from database_server import Server
from office import Office, left_by_older_version
from system.doctored import NAMES, all_well, examined

from dphist_pipeline.cli.operate.ledger_server import role_statements
from dphist_pipeline.health import _places as places
from dphist_pipeline.health import _spending as spending
from dphist_pipeline.health import doctor
from dphist_pipeline.ledger import opened as ledger_module
from dphist_pipeline.ledger.postgresql import WRITERS_LOCK
from dphist_pipeline.ledger.signing import Operator, key_path
from dphist_pipeline.mechanisms.geometric import Geometric
from dphist_pipeline.releasing.store import Key, Store

pytestmark = pytest.mark.draws_alike


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Office:
    """An office with a store, whose copies spare each test the making of one."""
    return Office(tmp_path_factory.mktemp("prepared") / "office").opened()


@pytest.fixture
def office(office: Office, prepared: Office) -> Office:
    """A copy of the prepared office, witness and all."""
    return prepared.copied_to(office.folder)


@pytest.mark.slow
def test_a_store_after_a_release_is_well_and_says_so_to_people_and_scripts(office: Office) -> None:
    office.released()
    all_well(examined(office))
    shown = office.run("doctor", "--store", office.store)
    assert shown.code == 0 and all(name in shown.out for name in NAMES) and "mend:" in shown.out


def opens(path: str, mode: int) -> Callable[[Office, pytest.MonkeyPatch], None]:
    return lambda office, patch: (office.folder / path).resolve().chmod(mode)


def has_key(content: bytes | None, mode: int = 0o600) -> Callable[[Office, pytest.MonkeyPatch], None]:
    def make(office: Office, patch: pytest.MonkeyPatch) -> None:
        key = office.folder / "other.key"
        Operator.load_or_make(key)
        if content is not None:
            key.write_bytes(content)
        key.chmod(mode)
        patch.setenv("DPHIST_OPERATOR_KEY", str(key))

    return make


def is_rotated(office: Office, patch: pytest.MonkeyPatch) -> None:
    new = office.folder / "new.key"
    assert office.run("ledger", "rotate-key", "--to", new, "--reason", "yearly", "--store", office.store).code == 0


def key_in_store(office: Office, patch: pytest.MonkeyPatch) -> None:
    shutil.copy(key_path(), office.store / "operator.key")
    patch.setenv("DPHIST_OPERATOR_KEY", str(office.store / "operator.key"))


def confidential_by_a_link(office: Office, patch: pytest.MonkeyPatch) -> None:
    (office.store / "confidential").rename(office.folder / "elsewhere")
    (office.store / "confidential").symlink_to(office.folder / "elsewhere")


def edited(office: Office, patch: pytest.MonkeyPatch) -> None:
    content = (office.store / "ledger.sqlite").read_bytes()
    (office.store / "ledger.sqlite").write_bytes(content.replace(b'"total":"10/1"', b'"total":"99/1"'))


def older(office: Office, patch: pytest.MonkeyPatch) -> None:
    """A ledger from before a release, put back."""
    shutil.copy(office.store / "ledger.sqlite", office.folder / "backup")
    office.released()
    shutil.copy(office.folder / "backup", office.store / "ledger.sqlite")


def older_and_unpublished(office: Office, patch: pytest.MonkeyPatch) -> None:
    older(office, patch)
    shutil.rmtree(office.store / "public" / "wards")


def cut(office: Office, patch: pytest.MonkeyPatch) -> None:
    """A ledger from before a decision, put back."""
    shutil.copy(office.store / "ledger.sqlite", office.folder / "backup")
    words = ("ledger", "raise", "health", "--total", "20", "--reason", "more", "--store", office.store)
    assert office.run(*words).code == 0
    shutil.copy(office.folder / "backup", office.store / "ledger.sqlite")


def witness_at(place: str) -> Callable[[Office, pytest.MonkeyPatch], None]:
    def move(office: Office, patch: pytest.MonkeyPatch) -> None:
        new = office.folder / place
        if not new.exists():
            shutil.copy(office.witness, new)
        patch.setattr(office, "witness", new)

    return move


def entered_at(*offsets: timedelta) -> Callable[[Office, pytest.MonkeyPatch], None]:
    """Decisions that were entered while the clock was wrong."""

    def enter(office: Office, patch: pytest.MonkeyPatch) -> None:
        with patch.context() as wrong:
            for number, offset in enumerate(offsets):
                at = f"{datetime.now(UTC) + offset:%Y-%m-%dT%H:%M:%SZ}"
                wrong.setattr(ledger_module, "utc_now", lambda at=at: at)
                words = ("ledger", "raise", "health", "--total", str(20 + number), "--reason", "more")
                done = office.run(*words, "--store", office.store)
                assert done.code == 0, done.err

    return enter


def too_old(office: Office, patch: pytest.MonkeyPatch) -> None:
    """A DuckDB of a version that this package does not take comes first on the path."""
    found = office.folder / "old" / "duckdb-0.9.1.dist-info"
    found.mkdir(parents=True)
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: duckdb\nVersion: 0.9.1\n")
    patch.syspath_prepend(str(found.parent))


def killed(office: Office, patch: pytest.MonkeyPatch) -> None:
    """A process is killed while it holds staged rows."""
    store = Store.open(office.store)
    child = os.fork()
    if child == 0:
        with store.run(Key("wards", "2026-03-02", 1)) as folder:
            (folder / "rows.parquet").write_bytes(b"exact")
            os._exit(9)
    os.waitpid(child, 0)


def dies_after_its_charge(office: Office, patch: pytest.MonkeyPatch) -> None:
    with patch.context() as broken:
        broken.setattr(Geometric, "release", lambda *given: 1 // 0)
        assert office.release().code == 1
    patch.setattr(spending, "UNFINISHED_AFTER", timedelta(0))


def test_a_charge_of_the_last_hours_is_said_and_not_that_all_is_published(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.released()
    assert examined(office)["runs"]["seen"].endswith("more than 6 hours ago is published, or waits for a person")
    office.write_spec(release="others")
    with monkeypatch.context() as broken:
        broken.setattr(Geometric, "release", lambda *given: 1 // 0)
        assert office.release().code == 1
    found = examined(office)["runs"]
    assert found["state"] == "ok" and "charged since, and not yet published: others" in found["seen"]


def withdrawn_by_another_user(office: Office, patch: pytest.MonkeyPatch) -> None:
    """Somebody enters it who may not write into the store."""
    office.released()
    (charge,) = Store.open(office.store).ledger().charges("wards", "all")
    Store.open(office.store).ledger().note(charge, "withdrawn", "wrong")


def held_for_long(office: Office, patch: pytest.MonkeyPatch) -> None:
    office.write_spec(publish="manual")
    office.released()
    assert examined(office)["approvals"]["state"] == "ok"
    patch.setattr(spending, "FORGOTTEN_AFTER", timedelta(0))


def unsigned_for_long(office: Office, patch: pytest.MonkeyPatch) -> None:
    words = ("--privacy-unit", "patient", "--neighbours", "add_remove", "--total", "4", "--signatures", "2")
    for command in (
        ("open", "twice", *words),
        ("raise", "twice", "--total", "5", "--reason", "more"),
    ):
        done = office.run("ledger", *command, "--store", office.store)
        assert done.code == 0, done.err
    assert examined(office)["approvals"]["state"] == "ok"
    patch.setattr(spending, "FORGOTTEN_AFTER", timedelta(seconds=-1))


def full_disk(office: Office, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(places, "LEAST", 10**9)


def little_disk(office: Office, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(places, "ENOUGH", 10**9)


def gone(path: str) -> Callable[[Office, pytest.MonkeyPatch], None]:
    return lambda office, patch: (office.folder / path).rename(office.folder / "gone")


# What happens: how it is done; the check that sees it; its state; a word of what was seen; a word of the mend.
FAULTS: dict[str, tuple[Callable[[Office, pytest.MonkeyPatch], None], str, str, str, str]] = {
    "no store": (gone("store/store.json"), "store", "fault", "there is no store", "dphist init"),
    "damaged store.json": (
        lambda office, patch: (office.store / "store.json").write_text("{}") and None,
        *("store", "fault", "cannot read", "put back|Mend"),
    ),
    "no public folder": (gone("store/public"), "store", "fault", "public is not there", "backup"),
    "store for everybody": (opens("store", 0o777), "store", "fault", "everybody can change", "chmod o-w"),
    "public for everybody": (opens("store/public", 0o777), "store", "fault", "everybody can change", "chmod o-w"),
    "confidential for all": (opens("store/confidential", 0o755), "confidential", "fault", "everybody", "chmod 700"),
    "confidential for a group": (opens("store/confidential", 0o750), "confidential", "fault", "its group", "chmod 700"),
    "no confidential folder": (gone("store/confidential"), "confidential", "fault", "is not there", "backup"),
    "a link": (confidential_by_a_link, "confidential", "fault", "is no folder", "not a link"),
    "no ledger": (gone("store/ledger.sqlite"), "ledger", "fault", "There is no ledger", "DPHIST_LEDGER"),
    "an edited ledger": (edited, "ledger", "fault", "do not fit its hash", "intact copy"),
    "an older ledger": (older, "ledger", "fault", "does not hold entry", "store adopt"),
    "ledger for everybody": (opens("store/ledger.sqlite", 0o644), "ledger_access", "fault", "everybody", "chmod o="),
    "no witness": (lambda office, patch: office.witness.unlink(), "witness", "fault", "no witness", "DPHIST_WITNESS"),
    "ledger behind witness": (older_and_unpublished, "witness", "fault", "has seen a charge", "store adopt"),
    "ledger without its end": (cut, "witness", "fault", "does not hold entry", "store adopt"),
    "witness in the store": (witness_at("store/w"), "witness", "fault", "lies inside the store", "DPHIST_WITNESS"),
    "witness is the ledger": (witness_at("store/ledger.sqlite"), "witness", "fault", "is the ledger", "DPHIST_WITNESS"),
    "witness for everybody": (
        lambda office, patch: office.witness.chmod(0o666),
        *("witness_access", "fault", "everybody", "chmod o="),
    ),
    "a key for everybody": (has_key(None, 0o644), "operator_key", "fault", "others may read", "chmod 600"),
    "no key but a file": (has_key(b"no key"), "operator_key", "fault", "cannot be read as a private key", "makes one"),
    "a stranger's key": (has_key(None), "operator_key", "warning", "of no operator", "dphist ledger add-key"),
    "a key that was replaced": (is_rotated, "operator_key", "warning", "was replaced", "DPHIST_OPERATOR_KEY"),
    "a key in the store": (key_in_store, "operator_key", "fault", "lies in the store", "Move it"),
    "clock days behind": (entered_at(timedelta(days=3)), "clock", "fault", "last entry is of", "timedatectl"),
    "clock behind": (entered_at(timedelta(minutes=30)), "clock", "warning", "last entry is of", "timedatectl"),
    "clock was set back": (
        entered_at(timedelta(), timedelta(hours=-2)),
        *("clock", "warning", "was set back between entries", "timedatectl"),
    ),
    "an unknown language": (
        lambda office, patch: (
            (office.store / "about.json").write_text('{"language": "de-AT", "publisher": "A"}') and None
        ),
        *("about", "warning", "there is no language 'de-AT'; the languages are de, en, fr", "about.json"),
    ),
    "a portal's field that says nothing": (
        lambda office, patch: (office.store / "about.json").write_text('{"trusted_data_holder": "maybe"}') and None,
        *("about", "warning", "'trusted_data_holder' is neither 'yes' nor 'no'", "about.json"),
    ),
    "full disk": (full_disk, "disk", "fault", "less than", "Free room"),
    "little disk": (little_disk, "disk", "warning", "less than", "Free room"),
    "an old DuckDB": (too_old, "versions", "fault", "duckdb is version 0.9.1, and at least", "pip install"),
    "a killed run": (killed, "runs", "warning", "killed run are still there: wards/2026-03-02", "next run deletes"),
    "an older version's cube": (
        lambda office, patch: left_by_older_version(office.store, "wards", "all", 1, "run") and None,
        *("runs", "warning", "wards/all", "next run deletes"),
    ),
    "charged, never published": (dies_after_its_charge, "runs", "warning", "wards, period all", "dphist release SPEC"),
    "withdrawn, not marked": (withdrawn_by_another_user, "runs", "warning", "do not say so: wards/", "it marks them"),
    "a release waits": (held_for_long, "approvals", "warning", "wards, period all", "dphist publish SPEC"),
    "a decision waits": (unsigned_for_long, "approvals", "warning", "decisions that nobody signed", "ledger sign"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_happens_is_seen_with_its_mend(office: Office, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    happens, check, state, seen, mend = FAULTS[name]
    happens(office, monkeypatch)
    finding = examined(office)[check]
    assert (finding["check"], finding["state"]) == (check, state), finding
    assert seen in finding["seen"] and any(word in finding["mend"] for word in mend.split("|")), finding
    if finding["mend"].startswith("chmod"):
        subprocess.run(["sh", "-c", finding["mend"]], check=True)
        assert examined(office)[check]["state"] != "fault"


@pytest.mark.slow
def test_what_a_killed_run_left_is_gone_after_the_next_release(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(office, monkeypatch)
    assert examined(office)["runs"]["state"] == "warning"
    office.released()
    all_well(examined(office))


def test_the_lock_of_a_killed_run_alone_holds_nothing_exact(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    killed(office, monkeypatch)
    (rows,) = (office.store / "confidential" / "runs").rglob("rows.parquet")
    shutil.rmtree(rows.parent)
    all_well(examined(office))


def test_a_run_under_way_is_no_fault(office: Office) -> None:
    with Store.open(office.store).run(Key("wards", "2026-03-02", 1)):
        all_well(examined(office))


def test_a_machine_that_only_releases_must_not_hold_a_key(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    finding = examined(office, "--releases-only")["operator_key"]
    assert finding["state"] == "fault" and "must only release" in finding["seen"]
    monkeypatch.setenv("DPHIST_OPERATOR_KEY", str(office.folder / "none.key"))
    found = examined(office, "--releases-only")
    all_well(found)
    assert "decides nothing" in found["operator_key"]["seen"]


@pytest.mark.slow
def test_nothing_that_is_found_depends_on_records(office: Office) -> None:
    office.released()
    told = []
    for records in (
        {"patient": [], "age": [], "ward": []},
        {"patient": ["x"] * 5000, "age": [1.0] * 5000, "ward": ["y"] * 5000},
    ):
        office.write_records(json.loads(json.dumps(records)))
        with Store.open(office.store).run(Key("wards", "all", 1)) as staged:
            (staged / "rows.parquet").write_bytes(b"r" * len(records["patient"]))
            found: dict[str, Any] = examined(office)
        found["clock"] = found["clock"] | {"seen": ""}
        told.append(found)
    assert told[0] == told[1]  # `doubtful`, too, which repeats what a publication says of itself


def test_a_store_on_a_small_disk_of_its_own_is_found(office: Office, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m", "none", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("this user may not mount a disk")
    try:
        (disk / "confidential").mkdir()
        (disk / "public").mkdir()
        finding = places.disk(doctor.open_what_can_be(disk, releases_only=False))
        assert finding.state == "fault" and f"in {disk}" in finding.seen
    finally:
        subprocess.run(["umount", disk], check=True)


def assert_lock_is_named(
    found: Callable[[], dict[str, dict[str, str]]], server: Server, ledger: str, user: str
) -> None:
    """Whoever holds the lock of all writers is named, once it is held for longer than any writer needs it."""
    import psycopg

    with psycopg.connect(f"host={server.folder} user={user} dbname={sa.make_url(ledger).database}") as session:
        session.execute(f"SELECT pg_advisory_xact_lock({WRITERS_LOCK})")
        told = found()["ledger_access"]
        assert told["state"] == "warning" and f"user {user} (process" in told["seen"], told
        number = told["mend"].partition("(")[2].partition(")")[0]
        assert server.psql("postgres", f"SELECT pg_terminate_backend({number})") == "t"
        session.close()
    assert found()["ledger_access"]["state"] == "ok"


def test_on_a_server_the_doctor_tells_what_the_database_user_may_do(
    office: Office, database_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, witness = database_server.new_database(), database_server.new_database()
    user = f"doctored_{os.getpid()}"
    database_server.psql("postgres", f"CREATE ROLE {user} LOGIN")
    monkeypatch.setattr(office, "witnessed", nullcontext)
    monkeypatch.setenv("DPHIST_LEDGER", ledger)
    monkeypatch.setenv("DPHIST_WITNESS", witness)
    shutil.rmtree(office.store)
    assert office.run("init", "--store", office.store).code == 0

    def found() -> dict[str, dict[str, str]]:
        told = office.run("doctor", "--json", "--store", office.store).json
        return {finding["check"]: finding for finding in told["checks"]}

    owned = found()
    assert {owned[name]["state"] for name in ("ledger_access", "witness_access", "witness")} == {"warning"}
    assert "superuser" in owned["ledger_access"]["seen"] and "ledger roles" in owned["ledger_access"]["mend"]
    assert "on the same server" in owned["witness"]["seen"] and "--witness" in owned["witness_access"]["mend"]
    for name, address in (("DPHIST_LEDGER", ledger), ("DPHIST_WITNESS", witness)):
        monkeypatch.setenv(name, address.replace("postgres@", f"{user}@"))
    assert found()["ledger"]["state"] == "fault"
    for address, of_witness in ((ledger, False), (witness, True)):
        statements = role_statements(user, "postgres", of_witness)
        database_server.psql(str(sa.make_url(address).database), statements)
    mended = found()
    assert {mended[name]["state"] for name in ("ledger", "ledger_access", "witness_access")} == {"ok"}, mended
    seen = mended["ledger_access"]["seen"]
    assert "can read and add, and change nothing; this machine only" in seen
    assert all(word in seen for word in ("spend", "revision", "reject", "withdraw", "state as published", "lock")), seen
    assert "plant rows" in mended["witness_access"]["seen"]
    assert_lock_is_named(found, database_server, ledger, user)
    for address, check in ((ledger, "ledger_access"), (witness, "witness_access")):
        name = str(sa.make_url(address).database)
        database_server.psql(name, f"GRANT CONNECT ON DATABASE {name} TO PUBLIC")
        told = found()[check]
        assert told["state"] == "warning" and "every user of the server may connect" in told["seen"], told
        assert ("--witness" in told["mend"]) == (check == "witness_access")
        database_server.psql(name, role_statements(user, "postgres", check == "witness_access"))
        assert found()[check]["state"] == "ok"
    database_server.psql(str(sa.make_url(ledger).database), f"REVOKE INSERT ON ledger_entry FROM {user}")
    assert "may not add" in found()["ledger_access"]["seen"]
    monkeypatch.setenv("DPHIST_LEDGER", witness)
    assert "no ledger" in found()["ledger"]["seen"]
