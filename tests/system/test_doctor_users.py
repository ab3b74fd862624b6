"""`dphist doctor` for users of one machine who may do different things; needs root, who can be each of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from office import Office
from system.doctored import all_well, examined

pytestmark = pytest.mark.draws_alike

NOBODY = 65534


@contextmanager
def somebody(uid: int = NOBODY) -> Iterator[None]:
    """Has this process be another user of the machine, who comes back as root at the end."""
    if os.getuid() != 0:
        pytest.skip("only root can be another user")
    groups = os.getgroups()
    os.setgroups([])
    os.setresgid(uid, uid, 0)
    os.setresuid(uid, uid, 0)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setresuid(0, 0, 0)
        os.setresgid(0, 0, 0)
        os.setgroups(groups)


@pytest.fixture(scope="module")
def served() -> Iterator[Office]:
    """An office that belongs to a user who is not root, who has released once."""
    # Not below pytest's own folder, which root alone may enter.
    with tempfile.TemporaryDirectory(prefix="dphist_doctor_") as place, pytest.MonkeyPatch.context() as patch:
        Path(place).chmod(0o755)
        for name in ("DPHIST_STORE", "DPHIST_LEDGER", "DPHIST_WITNESS"):
            patch.delenv(name, raising=False)
        office = Office(Path(place) / "office")
        patch.chdir(office.folder)
        patch.setenv("DPHIST_OPERATOR_KEY", f"{place}/operator.key")
        office.opened().released()
        all_well(examined(office))  # and all that is imported is imported by root
        office.witness = Path(shutil.move(office.witness, office.folder / "witness.sqlite"))
        owned(office, NOBODY)
        (office.store / "store.json").chmod(0o644)
        yield office


def owned(office: Office, uid: int) -> None:
    for path in (office.folder, *office.folder.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)


@pytest.mark.slow
def test_a_user_who_releases_and_cannot_read_the_key_is_well(served: Office) -> None:
    with somebody():
        found = examined(served, "--releases-only")
    all_well(found)
    assert "cannot be read" in found["operator_key"]["seen"] or "decides nothing" in found["operator_key"]["seen"]
    assert "who releases; the store is nobody's" in found["user"]["seen"]


@pytest.mark.parametrize(
    ("path", "mode", "check", "seen"),
    [
        ("store/confidential", 0o500, "confidential", "cannot write into"),
        ("store/public", 0o555, "store", "cannot publish into"),
        ("store/ledger.sqlite", 0o400, "ledger_access", "cannot write"),
        ("store/ledger.sqlite", 0o000, "ledger", "cannot be"),
        ("witness.sqlite", 0o400, "witness", "cannot be written to"),
    ],
)
def test_what_the_releasing_user_may_not_do_is_a_fault(
    served: Office, path: str, mode: int, check: str, seen: str
) -> None:
    before = (served.folder / path).stat().st_mode
    (served.folder / path).chmod(mode)
    with somebody():
        found = json.loads(served.run("doctor", "--json", "--store", served.store).out)
    (served.folder / path).chmod(before)
    told = {finding["check"]: finding for finding in found["checks"]}
    assert told[check]["state"] == "fault" and seen in told[check]["seen"], told[check]


def test_another_user_is_told_who_releases_and_sees_nothing_confidential(served: Office) -> None:
    (served.folder / "store").chmod(0o755)
    with somebody(65533):
        found = json.loads(served.run("doctor", "--json", "--store", served.store).out)
    told = {finding["check"]: finding for finding in found["checks"]}
    assert told["user"]["state"] == "warning" and "that is nobody" in told["user"]["seen"]
    assert "as nobody, with the same DPHIST_ variables" in told["user"]["mend"]
    assert told["confidential"]["state"] == "ok" and "cannot look into it" in told["confidential"]["seen"]


def test_a_user_who_cannot_see_what_was_rejected_adopts_nothing(served: Office) -> None:
    before = served.entries()
    with somebody(65533):
        adopted = served.run("store", "adopt", "--reason", "only to try", "--store", served.store)
    assert adopted.code == 1 and "may not look into its confidential/" in adopted.err and served.entries() == before


def test_a_command_of_the_wrong_user_says_who_may_run_it(served: Office) -> None:
    opened = (served.store / "ledger.sqlite", served.witness, served.folder, served.store)
    modes = [path.stat().st_mode for path in opened]
    for path in opened:
        path.chmod(0o777)
    with somebody(65533):
        released = served.run(
            "release", served.folder / "spec.yaml", "--store", served.store, "--revise", "--reason", "x"
        )
    for path, mode in zip(opened, modes, strict=True):
        path.chmod(mode)
    assert released.code == 1 and "which user releases here" in released.err


def test_a_store_whose_description_is_closed_to_a_user_says_how_to_open_it(served: Office) -> None:
    (served.store / "store.json").chmod(0o600)
    with somebody(65533):
        shown = served.run("ledger", "show", "--store", served.store)
        found = served.run("doctor", "--store", served.store)
    (served.store / "store.json").chmod(0o644)
    assert shown.code == found.code == 1 and f"chmod a+r {served.store}/store.json" in shown.err
    assert f"chmod a+r {served.store}/store.json" in found.out


def test_a_release_that_root_ran_is_found_by_the_files_it_left(served: Office) -> None:
    os.chown(next((served.store / "confidential" / "journal").iterdir()), 0, 0)
    with somebody():
        found = examined(served)
    assert found["confidential"]["state"] == "fault" and "another user released here" in found["confidential"]["seen"]
    subprocess.run(["sh", "-c", found["confidential"]["mend"]], check=True)
    with somebody():
        assert examined(served)["confidential"]["state"] == "ok"
