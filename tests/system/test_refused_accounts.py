"""Refusals of accounts, ledgers and stores: one clear message, nothing spent, nothing left behind."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from office import OPEN_HEALTH, Office
from refusing import check_changes_nothing

pytestmark = pytest.mark.draws_alike


def test_a_release_without_its_account_is_refused(office: Office) -> None:
    office.opened().write_spec(account="helth")
    check_changes_nothing(office, office.release, "no account 'helth'", "Did you mean 'health'?", "dphist ledger open")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"privacy_unit": "ward"}, "privacy_unit is 'patient' there but 'ward' here"),
        ({"neighbours": "substitute"}, "'add_remove' there but 'substitute' here"),
        ({"epsilon": 11}, "asks for epsilon 11, but account 'health' has 10 left of 10"),
    ],
)
def test_an_account_that_disagrees_or_holds_too_little_is_refused(office: Office, changes: Any, says: str) -> None:
    office.opened().write_spec(**changes)
    check_changes_nothing(office, office.release, says)


@pytest.mark.parametrize("name", ["rows", "Health", "a b", "[bold]", "x" * 64])
def test_no_account_is_opened_that_no_spec_can_name(office: Office, name: str) -> None:
    office.opened()
    check_changes_nothing(office, lambda: office.run("ledger", "open", name, *OPEN_HEALTH[2:]), "ACCOUNT")


@pytest.mark.slow
def test_a_changed_spec_for_a_released_period_is_refused(office: Office) -> None:
    office.opened().released()
    office.write_spec(epsilon=1)
    check_changes_nothing(office, office.release, "wards, period all", "charged already", "--revise --reason")
    office.write_spec(title="Admissions", owners=["team:statistics"])
    assert "Already published" in office.released().out


def missing(ledger: Path) -> None:
    ledger.unlink()


def read_only(ledger: Path) -> None:
    ledger.chmod(0o444)


def edited(ledger: Path) -> None:
    with closing(sqlite3.connect(ledger)) as connection, connection:
        rule = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'never_updated'").fetchone()[0]
        connection.execute("DROP TRIGGER never_updated")
        connection.execute("UPDATE ledger_entry SET body = replace(body, '1/2', '1/4') WHERE kind = 'charged'")
        connection.execute(rule)


def older(ledger: Path) -> None:
    shutil.copy(ledger.with_name("backup"), ledger)


def damaged(ledger: Path) -> None:
    ledger.write_bytes(b"no database" * 100)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (missing, "Put it back"),
        (read_only, "cannot be written to. Give yourself write permission"),
        (edited, "was altered or damaged"),
        (damaged, "was altered or damaged"),
        (older, "restored from an older backup? Put back the newer ledger"),
    ],
)
def test_a_ledger_that_cannot_be_trusted_is_refused(office: Office, harm: Callable[[Path], None], says: str) -> None:
    ledger = office.opened().store / "ledger.sqlite"
    shutil.copy(ledger, ledger.with_name("backup"))
    office.released()
    office.write_spec(release="other_wards")
    harm(ledger)
    check_changes_nothing(office, office.release, str(ledger), says)


@pytest.mark.slow
def test_two_stores_cannot_spend_one_account(office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    office.opened()
    other = Office(tmp_path / "other").folder / "store"
    assert office.run("init", "--store", other).code == 0
    check_changes_nothing(office, lambda: office.release("--store", str(other)), "no account 'health'")
    monkeypatch.setenv("DPHIST_LEDGER", f"sqlite:///{office.store / 'ledger.sqlite'}")
    check_changes_nothing(office, lambda: office.release("--store", str(other)), "is another one", "DPHIST_LEDGER")
    described = other / "store.json"
    ours = re.search(r'"ledger_id": "\w+"', (office.store / "store.json").read_text())[0]
    described.write_text(re.sub(r'"ledger_id": "\w+"', ours, described.read_text()))
    check_changes_nothing(
        office, lambda: office.release("--store", str(other)), "store is", "One account serves one store only"
    )
    assert list((other / "confidential").glob("*/*")) == []


def test_a_store_is_made_once_and_an_account_is_opened_once(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.write_spec()
    check_changes_nothing(office, office.release, "there is no store at", "dphist init")
    office.opened()
    check_changes_nothing(office, lambda: office.run("init"), "something is there already")
    check_changes_nothing(office, lambda: office.run("ledger", *OPEN_HEALTH), "is open already")
    monkeypatch.setenv("DPHIST_LEDGER", f"sqlite:///{office.store / 'ledger.sqlite'}")
    check_changes_nothing(office, lambda: office.run("init", "--store", "second"), "is there already")
