"""The ledger: one charge whatever races, nothing beyond the total, no edit unnoticed."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sqlite3
import stat
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dphist_pipeline.privacy import ledger as ledger_module
from dphist_pipeline.privacy import ledger_tables
from dphist_pipeline.privacy.ledger import (
    Account,
    AccountDisagrees,
    AccountExists,
    AlreadyCharged,
    ChargeRequest,
    Ledger,
    LedgerAltered,
    LedgerBusy,
    LedgerError,
    LedgerExists,
    LedgerForeign,
    LedgerMissing,
    LedgerOutdated,
    LedgerReadOnly,
    LedgerUnusable,
    LedgerUrlRefused,
    NotRecordable,
    Overspend,
    PublishedDiffers,
    ReasonMissing,
    RevisionSkipped,
    TotalNotLarger,
    UnknownAccount,
    as_text,
)
from dphist_pipeline.privacy.ledger_entries import Entry, canonical, exact_text, read_exact, seal

HEALTH = Account("health", "patient_id", "add_remove", Fraction(26), None, "store-1")
WEEKLY = ChargeRequest(
    "health", "weekly", "2026-03-02", 1, Fraction(1, 2), "digest-1", "", "patient_id", "add_remove", "store-1"
)
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["dphist_pipeline.privacy.ledger"])


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    made = Ledger.create(url_of(path))
    made.open_account(HEALTH)
    yield made
    made.close()


def week(day: int, **changes: Any) -> ChargeRequest:
    return replace(WEEKLY, period=f"2026-03-{day:02}", **changes)


def set_clock(monkeypatch: pytest.MonkeyPatch, year: int) -> None:
    monkeypatch.setattr(ledger_module, "utc_now", lambda: f"{year}-06-30T12:00:00Z")


def raw(path: Path, *statements: str) -> None:
    """An edit by hand that knows what it is doing: the triggers are away meanwhile, and come back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)


# Accounts


def test_a_new_ledger_is_private_to_its_owner_and_alone_in_its_folder(ledger: Ledger, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["ledger.sqlite"]
    assert ledger.verify() == 2


def test_two_ledgers_never_share_an_id(tmp_path: Path) -> None:
    ids = {Ledger.create(url_of(tmp_path / f"{n}.sqlite")).id for n in range(3)}
    assert len(ids) == 3


def test_a_ledger_is_never_made_over_anything(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for there in (path, tmp_path, tmp_path / "dangling"):
        with pytest.raises(LedgerExists):
            Ledger.create(url_of(there))
    assert path.read_bytes() == before
    with pytest.raises(LedgerUnusable):
        Ledger.create(url_of(tmp_path / "no folder" / "ledger.sqlite"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["dangling", "ledger.sqlite"]


def test_a_ledger_that_could_not_be_filled_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ledger_tables.SqliteFile, "create_tables", fail)
    with pytest.raises(KeyboardInterrupt):
        Ledger.create(url_of(path))
    assert list(path.parent.iterdir()) == []


def test_an_account_keeps_its_terms(ledger: Ledger, path: Path) -> None:
    other = Account("labour", "serialno", "substitute", Fraction(1, 3), "yearly", "store-2")
    ledger.open_account(other)
    again = Ledger.open(url_of(path), ledger.id)
    assert again.accounts() == [HEALTH, other]
    assert again.account("labour") == other


def test_an_account_is_opened_once(ledger: Ledger) -> None:
    with pytest.raises(AccountExists, match="same terms"):
        ledger.open_account(HEALTH)
    with pytest.raises(AccountExists, match="total 26"):
        ledger.open_account(replace(HEALTH, total=Fraction(40)))
    assert ledger.verify() == 2


def test_a_total_is_only_raised_and_says_why(ledger: Ledger) -> None:
    ledger.raise_total("health", Fraction(40), "a second survey")
    assert ledger.account("health").total == 40
    for total in (Fraction(40), Fraction(26)):
        with pytest.raises(TotalNotLarger):
            ledger.raise_total("health", total, "why not")
    for reason in ("", "  "):
        with pytest.raises(ReasonMissing):
            ledger.raise_total("health", Fraction(41), reason)
    assert ledger.entries()[-1].facts["reason"] == "a second survey"
    assert ledger.verify() == 3


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "Health"},
        {"name": "a" * 64},
        {"name": "health\n"},
        {"name": "../health"},
        {"name": ""},
        {"neighbours": "both"},
        {"renews": "monthly"},
        {"total": Fraction(0)},
        {"total": Fraction(-1)},
        {"total": Fraction(1_000_001)},
        {"total": Fraction(10**400)},
        {"total": 26.0},
        {"total": Fraction(1, 10**31)},
        {"privacy_unit": "x" * 100_000},
        {"privacy_unit": "a\x1b[31m"},
        {"store_id": "\ud800"},
    ],
)
def test_an_account_with_odd_terms_is_refused(ledger: Ledger, bad: dict[str, Any]) -> None:
    with pytest.raises(NotRecordable) as refusal:
        ledger.open_account(replace(replace(HEALTH, name="other"), **bad))
    assert len(str(refusal.value)) < 300
    assert ledger.verify() == 2


def test_an_unknown_account_comes_with_a_suggestion_and_the_command(ledger: Ledger) -> None:
    for ask in (
        lambda: ledger.account("helth"),
        lambda: ledger.statement("helth"),
        lambda: ledger.raise_total("helth", Fraction(40), "r"),
        lambda: ledger.check(replace(WEEKLY, account="helth")),
        lambda: ledger.charge(replace(WEEKLY, account="helth")),
    ):
        with pytest.raises(UnknownAccount, match=r"Did you mean 'health'.*dphist ledger open helth"):
            ask()


# Charges


def test_a_charge_is_found_again_as_it_was_made(ledger: Ledger, path: Path) -> None:
    charge = ledger.charge(WEEKLY)
    assert (charge.number, charge.epsilon, charge.revision) == (3, Fraction(1, 2), 1)
    assert charge.hash == ledger.entries()[-1].hash
    assert Ledger.open(url_of(path), ledger.id).charges("weekly", "2026-03-02") == [charge]
    assert ledger.charges("weekly", "2026-03-09") == []


def test_the_same_charge_again_joins_and_spends_nothing(ledger: Ledger) -> None:
    first = ledger.charge(WEEKLY)
    assert ledger.charge(WEEKLY) == first
    assert ledger.statement("health").spent == Fraction(1, 2)
    assert ledger.verify() == 3


def test_a_charge_is_joined_even_when_the_account_is_used_up(ledger: Ledger) -> None:
    first = ledger.charge(replace(WEEKLY, epsilon=Fraction(26)))
    ledger.check(replace(WEEKLY, epsilon=Fraction(26)))
    assert ledger.charge(replace(WEEKLY, epsilon=Fraction(26))) == first


def test_a_changed_release_is_not_joined(ledger: Ledger) -> None:
    ledger.open_account(replace(HEALTH, name="labour"))
    ledger.charge(WEEKLY)
    for change, named in (
        ({"digest": "digest-2"}, "digest was 'digest-1', is now 'digest-2'"),
        ({"epsilon": Fraction(1, 3)}, "epsilon was '0.5', is now '1/3'"),
        ({"account": "labour"}, "account was 'health', is now 'labour'"),
    ):
        for ask in (ledger.check, ledger.charge):
            with pytest.raises(AlreadyCharged, match=f"{named}.*--revise --reason"):
                ask(replace(WEEKLY, **change))
    assert ledger.verify() == 4


def test_epsilons_that_read_alike_are_told_apart(ledger: Ledger) -> None:
    ledger.charge(replace(WEEKLY, epsilon=Fraction(1, 3) + Fraction(1, 10**29)))
    with pytest.raises(AlreadyCharged):
        ledger.charge(replace(WEEKLY, epsilon=Fraction(1, 3) + Fraction(2, 10**29)))


def test_a_revision_is_charged_again_and_both_are_kept(ledger: Ledger) -> None:
    first = ledger.charge(WEEKLY)
    second = ledger.charge(replace(WEEKLY, revision=2, digest="digest-2", reason="late records"))
    assert ledger.charges("weekly", "2026-03-02") == [first, second]
    assert ledger.statement("health").spent == 1
    assert ledger.charge(WEEKLY) == first


def test_a_revision_follows_the_last_one_and_says_why(ledger: Ledger) -> None:
    with pytest.raises(RevisionSkipped, match="next one is 1"):
        ledger.charge(replace(WEEKLY, revision=2, reason="r"))
    ledger.charge(WEEKLY)
    with pytest.raises(RevisionSkipped, match="next one is 2"):
        ledger.charge(replace(WEEKLY, revision=3, reason="r"))
    with pytest.raises(ReasonMissing):
        ledger.charge(replace(WEEKLY, revision=2))


def test_a_release_or_store_with_other_terms_is_refused_naming_each(ledger: Ledger) -> None:
    ledger.charge(WEEKLY)
    for ask in (ledger.check, ledger.charge):
        with pytest.raises(AccountDisagrees) as refusal:
            ask(replace(WEEKLY, privacy_unit="row", neighbours="substitute"))
        assert "privacy_unit is 'patient_id' there but 'row' here" in str(refusal.value)
        assert "neighbours is 'add_remove' there but 'substitute' here" in str(refusal.value)
        with pytest.raises(AccountDisagrees, match=r"store-1.*store-2.*One account serves one store"):
            ask(replace(WEEKLY, store_id="store-2"))


def test_three_thirds_are_exactly_one_and_no_more(ledger: Ledger) -> None:
    ledger.open_account(replace(HEALTH, name="thirds", total=Fraction(1)))
    for day in (1, 2, 3):
        ledger.charge(week(day, account="thirds", epsilon=Fraction(1, 3)))
    assert ledger.statement("thirds").left == 0
    with pytest.raises(Overspend):
        ledger.charge(week(4, account="thirds", epsilon=Fraction(1, 1_000_000)))


def test_ten_tenths_are_exactly_one_and_no_more(ledger: Ledger) -> None:
    ledger.open_account(replace(HEALTH, name="tenths", total=Fraction(1)))
    for day in range(1, 11):
        ledger.charge(week(day, account="tenths", epsilon=Fraction("0.1")))
    with pytest.raises(Overspend):
        ledger.charge(week(11, account="tenths", epsilon=Fraction(1, 1_000_000)))


def test_an_overspend_says_what_was_asked_what_is_left_who_spent_it_and_the_mend(ledger: Ledger) -> None:
    for day in range(1, 9):
        ledger.charge(week(day, epsilon=Fraction(3)))
    for ask in (ledger.check, ledger.charge):
        with pytest.raises(Overspend) as refusal:
            ask(week(20, epsilon=Fraction("2.25")))
        message = str(refusal.value)
        assert "weekly, period 2026-03-20, revision 1 asks for epsilon 2.25" in message
        assert "has 2 left of 26" in message
        assert "weekly, period 2026-03-08, revision 1 (3); weekly, period 2026-03-07" in message
        assert "2026-03-04" in message and "2026-03-03" not in message
        assert "and 3 more (9)" in message
        assert "dphist ledger raise health --total 26.25 --reason" in message
    assert ledger.statement("health").spent == 24
    ledger.raise_total("health", Fraction("26.25"), "as the message says")
    ledger.charge(week(20, epsilon=Fraction("2.25")))
    assert ledger.statement("health").left == 0


def test_the_smallest_lack_is_a_lack(ledger: Ledger) -> None:
    ledger.open_account(replace(HEALTH, name="scarce", total=1 - Fraction(1, 10**25)))
    with pytest.raises(Overspend):
        ledger.charge(replace(WEEKLY, account="scarce", epsilon=Fraction(1)))


def test_accounts_do_not_pay_for_each_other(ledger: Ledger) -> None:
    ledger.open_account(replace(HEALTH, name="labour", total=Fraction(1)))
    ledger.charge(week(1, epsilon=Fraction(26)))
    ledger.charge(week(2, account="labour", epsilon=Fraction(1)))
    assert [ledger.statement(name).left for name in ("health", "labour")] == [0, 0]


def test_a_check_adds_no_entry(ledger: Ledger, path: Path) -> None:
    ledger.check(WEEKLY)
    assert ledger.verify() == 2
    assert [file.name for file in path.parent.iterdir()] == ["ledger.sqlite"]


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": Fraction(0)},
        {"epsilon": Fraction(-1)},
        {"epsilon": Fraction(1, 10**300)},
        {"epsilon": Fraction(51)},
        {"epsilon": 0.5},
        {"epsilon": Fraction(1, 3) + Fraction(1, 10**40)},
        {"revision": 0},
        {"revision": True},
        {"revision": 10**30},
        {"release": ""},
        {"release": "x" * 10**6},
        {"period": "a\nb"},
        {"digest": None},
        {"reason": "\u202etxt"},
        {"account": "\x00"},
    ],
)
def test_a_hostile_request_is_refused(ledger: Ledger, bad: dict[str, Any]) -> None:
    for ask in (ledger.check, ledger.charge):
        with pytest.raises(NotRecordable) as refusal:
            ask(replace(WEEKLY, **bad))
        assert len(str(refusal.value)) < 300
    assert ledger.verify() == 2


def test_a_refusal_crosses_processes_whole(ledger: Ledger) -> None:
    with pytest.raises(Overspend) as refusal:
        ledger.charge(replace(WEEKLY, epsilon=Fraction(27)))
    there = pickle.loads(pickle.dumps(refusal.value))
    assert type(there) is Overspend
    assert (str(there), vars(there)) == (str(refusal.value), vars(refusal.value))


# Years


def test_a_yearly_account_begins_afresh_each_january(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.open_account(replace(HEALTH, name="yearly", total=Fraction(1), renews="yearly"))
    for year in (2031, 2032):
        set_clock(monkeypatch, year)
        for month in (1, 2):
            ledger.charge(replace(WEEKLY, account="yearly", period=f"{year}-0{month}-01"))
        with pytest.raises(Overspend, match=f"0 left of 1 in {year}.*1 January") as refusal:
            ledger.charge(replace(WEEKLY, account="yearly", period=f"{year}-03-01"))
        assert len(refusal.value.spenders) == 2
    standing = ledger.statement("yearly")
    assert (standing.year, standing.spent, standing.spent_ever, standing.left) == (2032, 1, 2, 0)
    set_clock(monkeypatch, 2033)
    assert ledger.statement("yearly").left == 1
    assert ledger.verify() == 7


def test_an_account_that_does_not_renew_adds_up_over_years(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for year in (2031, 2032):
        set_clock(monkeypatch, year)
        ledger.charge(replace(WEEKLY, period=str(year), epsilon=Fraction(13)))
    set_clock(monkeypatch, 2033)
    with pytest.raises(Overspend):
        ledger.charge(replace(WEEKLY, period="2033"))


def test_a_clock_set_back_renews_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.open_account(replace(HEALTH, name="yearly", total=Fraction(1), renews="yearly"))
    set_clock(monkeypatch, 2032)
    ledger.charge(replace(WEEKLY, account="yearly", epsilon=Fraction(1)))
    set_clock(monkeypatch, 2031)
    late = replace(WEEKLY, account="yearly", period="later")
    with pytest.raises(Overspend):
        ledger.charge(late)
    ledger.raise_total("yearly", Fraction(2), "more")
    ledger.charge(late)
    assert ledger.statement("yearly").spent == Fraction(3, 2)
    assert ledger.verify() == 6


# Published values


def test_published_values_are_written_down_once(ledger: Ledger) -> None:
    charge = ledger.charge(WEEKLY)
    assert ledger.published_digest(charge) is None
    ledger.record_published(charge, "values-1")
    ledger.record_published(charge, "values-1")
    assert ledger.published_digest(charge) == "values-1"
    with pytest.raises(PublishedDiffers):
        ledger.record_published(charge, "values-2")
    assert ledger.verify() == 4


def test_a_charge_of_another_history_is_not_published(ledger: Ledger) -> None:
    charge = ledger.charge(WEEKLY)
    for foreign in (replace(charge, hash="0" * 64), replace(charge, revision=2), replace(charge, period="x")):
        with pytest.raises(LedgerOutdated):
            ledger.record_published(foreign, "values-1")
        with pytest.raises(LedgerOutdated):
            ledger.published_digest(foreign)


# Ledgers that are not as they were


def test_a_missing_ledger_is_refused_and_none_is_made(path: Path) -> None:
    with pytest.raises(LedgerMissing, match="DPHIST_LEDGER"):
        Ledger.open(url_of(path), "id")
    assert not path.exists()


def test_a_ledger_that_goes_away_is_refused_and_none_is_made(ledger: Ledger, path: Path) -> None:
    path.unlink()
    for ask in (lambda: ledger.charge(WEEKLY), lambda: ledger.check(WEEKLY), ledger.verify, ledger.accounts):
        with pytest.raises(LedgerMissing):
            ask()
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_file_that_is_no_ledger_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerAltered) as refusal:
        Ledger.open(url_of(path), "id")
    assert "sqlite3" not in "".join(traceback.format_exception(refusal.value))
    assert path.read_bytes() == content


def test_another_database_is_no_ledger(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (a)")
    with pytest.raises(LedgerAltered, match="holds no ledger"):
        Ledger.open(url_of(path), "id")


def test_a_foreign_ledger_is_refused(ledger: Ledger, path: Path) -> None:
    with pytest.raises(LedgerForeign, match=ledger.id):
        Ledger.open(url_of(path), "another")


def test_a_ledger_exchanged_under_a_running_program_is_refused(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    other = Ledger.create(url_of(tmp_path / "other.sqlite"))
    other.open_account(HEALTH)
    (tmp_path / "other.sqlite").replace(path)
    for ask in (ledger.check, ledger.charge):
        with pytest.raises(LedgerOutdated):
            ask(WEEKLY)
    with pytest.raises(LedgerForeign):
        ledger.verify()


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_ledger_is_refused_but_can_be_read(ledger: Ledger, path: Path, what: str) -> None:
    place, mode = (path, 0o444) if what == "file" else (path.parent, 0o555)
    place.chmod(mode)
    try:
        for ask in (lambda: ledger.check(WEEKLY), lambda: ledger.charge(WEEKLY)):
            with pytest.raises(LedgerReadOnly, match="chmod"):
                ask()
        with pytest.raises(LedgerReadOnly):
            ledger.raise_total("health", Fraction(40), "r")
        assert Ledger.open(url_of(path), ledger.id).accounts() == [HEALTH]
    finally:
        place.chmod(0o755)
    assert ledger.verify() == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_ledger_that_belongs_to_others_is_found_out_by_a_trial_write(what: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755 if what == "folder" else 0o777)
        path = Path(folder) / "ledger.sqlite"
        ledger = Ledger.create(url_of(path))
        ledger.open_account(HEALTH)
        path.chmod(0o666 if what == "folder" else 0o644)
        os.seteuid(65534)
        try:
            with pytest.raises(LedgerReadOnly):
                ledger.check(WEEKLY)
        finally:
            os.seteuid(0)


def test_a_ledger_held_by_another_program_is_busy_and_charges_nothing(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_tables, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerBusy, match="Nothing was charged") as refusal:
            ledger.charge(WEEKLY)
        assert ledger.accounts() == [HEALTH]
    assert "sqlite3" not in "".join(traceback.format_exception(refusal.value))
    assert ledger.verify() == 2


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:secret@host/db",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=rw",
        "sqlite:///x?mode=rw",
        "sqlite+aiosqlite:///x",
        "no url",
        "sqlite:///a\0b",
    ],
)
def test_an_address_that_names_no_sqlite_file_is_refused_without_its_secrets(url: str) -> None:
    for ask in (lambda: Ledger.create(url), lambda: Ledger.open(url, "id")):
        with pytest.raises(LedgerUrlRefused) as refusal:
            ask()
        assert "secret" not in str(refusal.value)


def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    path = tmp_path / "a b%20#?é.sqlite"
    url = sqlalchemy.URL.create("sqlite", database=str(path))
    made = Ledger.create(url)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert Ledger.open(url.render_as_string(), made.id).verify() == 1


def test_the_file_is_written_with_a_rollback_journal_and_extra_sync(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger._file.transaction("read") as connection:
        settings = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]
    assert settings == ["delete", 3, 1, 60_000]


# Edits by hand


@pytest.fixture
def used(ledger: Ledger) -> Ledger:
    """Entries: 1 created, 2 opened, 3 charged, 4 published, 5 raised, 6 charged (a revision), 7 charged."""
    first = ledger.charge(WEEKLY)
    ledger.record_published(first, "values-1")
    ledger.raise_total("health", Fraction(40), "more")
    ledger.charge(replace(WEEKLY, revision=2, reason="late"))
    ledger.charge(week(9))
    assert ledger.verify() == 7
    return ledger


def refused_everywhere(ledger: Ledger, path: Path) -> LedgerAltered:
    with pytest.raises(LedgerAltered):
        Ledger.open(url_of(path), ledger.id)
    with pytest.raises(LedgerAltered) as refusal:
        ledger.verify()
    assert "never edit it by hand" in str(refusal.value)
    return refusal.value


@pytest.mark.parametrize("statement", ["UPDATE ledger_entry SET body = '{}'", "DELETE FROM ledger_entry"])
def test_the_table_itself_refuses_to_change_or_forget(used: Ledger, path: Path, statement: str) -> None:
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="only grows"),
    ):
        connection.execute(statement)
    assert used.verify() == 7


def copy_of(number: int, into: int, previous_hash: str, own_hash: str, verb: str = "INSERT") -> str:
    return (
        f"{verb} INTO ledger_entry SELECT {into}, kind, account, release, period, revision, body, "
        f"{previous_hash}, made_at, {own_hash} FROM ledger_entry WHERE number = {number}"
    )


def by_hand(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)


def test_the_table_itself_refuses_a_replacement_and_a_gap(used: Ledger, path: Path) -> None:
    for into in (3, 9):
        with pytest.raises(sqlite3.IntegrityError, match="only grows"):
            by_hand(path, copy_of(3, into, "previous_hash", "hash", verb="INSERT OR REPLACE"))
    assert used.verify() == 7


def test_the_table_itself_refuses_a_second_opening_charge_or_publication(used: Ledger, path: Path) -> None:
    last = used.entries()[-1].hash
    for number in (2, 3, 4):
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            by_hand(path, copy_of(number, 8, f"'{last}'", "'x'"))
    assert used.verify() == 7


COLUMNS = {
    "number": "20",
    "kind": "'raised'",
    "account": "'labour'",
    "release": "'monthly'",
    "period": "'2027-01-01'",
    "revision": "7",
    "body": "replace(body, '1/2', '1/3')",
    "previous_hash": "(SELECT hash FROM ledger_entry WHERE number = 2)",
    "made_at": "'2020-01-01T00:00:00Z'",
    "hash": f"'{'0' * 64}'",
}


def test_every_column_is_tried() -> None:
    assert set(COLUMNS) == set(Entry.__dataclass_fields__)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("number", [6, 7])
def test_an_edit_of_any_column_is_found(used: Ledger, path: Path, column: str, number: int) -> None:
    value = "50" if column == "number" and number == 7 else COLUMNS[column]
    if column == "previous_hash":
        raw(path, "UPDATE ledger_entry SET previous_hash = 'taken away' WHERE number = 3")
    raw(path, f"UPDATE ledger_entry SET {column} = {value} WHERE number = {number}")
    assert refused_everywhere(used, path).number is not None


@pytest.mark.parametrize("value", ["x'ff00'", "CAST(x'ff' AS TEXT)", "1.5", "''", "'[]'", "'1e999'"])
def test_a_body_of_another_kind_is_found(used: Ledger, path: Path, value: str) -> None:
    raw(path, f"UPDATE ledger_entry SET body = {value} WHERE number = 6")
    assert "1e999" not in str(refused_everywhere(used, path))


def test_an_edit_between_opening_and_charging_is_found_by_the_charge(used: Ledger, path: Path) -> None:
    raw(path, "UPDATE ledger_entry SET body = replace(body, '1/2', '1/9') WHERE number = 6")
    for ask in (used.check, used.charge):
        with pytest.raises(LedgerAltered) as refusal:
            ask(week(16))
        assert refusal.value.number == 6


@pytest.mark.parametrize("number", range(1, 7))
def test_a_deleted_entry_is_found(used: Ledger, path: Path, number: int) -> None:
    raw(path, f"DELETE FROM ledger_entry WHERE number = {number}")
    assert refused_everywhere(used, path).number == number + 1


def test_swapped_entries_are_found(used: Ledger, path: Path) -> None:
    swap = "UPDATE ledger_entry SET number = {} WHERE number = {}"
    raw(path, swap.format(100, 6), swap.format(6, 7), swap.format(7, 100))
    assert refused_everywhere(used, path).number == 6


def test_an_extra_entry_is_found(used: Ledger, path: Path) -> None:
    last = used.entries()[-1].hash
    raw(path, copy_of(5, 8, f"'{last}'", "'x'"))
    assert refused_everywhere(used, path).number == 8


def test_an_edit_that_mends_its_own_hash_and_the_next_link_is_found_one_entry_later(used: Ledger, path: Path) -> None:
    charged = used.entries()[5]
    cheaper = sealed(charged, facts={"epsilon": "1/3"})
    raw(
        path,
        "PRAGMA foreign_keys=OFF",
        f"UPDATE ledger_entry SET body = '{cheaper.body}', hash = '{cheaper.hash}' WHERE number = 6",
        f"UPDATE ledger_entry SET previous_hash = '{cheaper.hash}' WHERE number = 7",
    )
    assert refused_everywhere(used, path).number == 7


def test_missing_triggers_and_indexes_are_found(used: Ledger, path: Path) -> None:
    for statement in (
        "DROP TRIGGER never_updated",
        "DROP INDEX charged_once",
        "CREATE TRIGGER late AFTER INSERT ON ledger_entry BEGIN SELECT 1; END",
    ):
        kept = path.read_bytes()
        by_hand(path, statement)
        refused_everywhere(used, path)
        path.write_bytes(kept)
    assert used.verify() == 7


def sealed(entry: Entry, **changes: Any) -> Entry:
    body = changes.pop("body", None) or canonical({**entry.facts, **changes.pop("facts", {})})
    changed = replace(entry, **changes, body=body)
    return replace(changed, hash=seal(changed))


FORGERIES: dict[str, Callable[[Entry], Entry]] = {
    "beyond the total": lambda last: sealed(last, facts={"epsilon": "45/1"}),
    "not in lowest terms": lambda last: sealed(last, facts={"epsilon": "2/4"}),
    "nothing": lambda last: sealed(last, facts={"epsilon": "0/1"}),
    "negative": lambda last: sealed(last, facts={"epsilon": "-1/2"}),
    "a number": lambda last: sealed(last, facts={"epsilon": 0.5}),
    "one fact more": lambda last: sealed(last, facts={"note": "x"}),
    "another year": lambda last: sealed(last, facts={"year": 2999}),
    "an earlier year": lambda last: sealed(last, facts={"year": 1999}),
    "no such time": lambda last: sealed(last, made_at="yesterday"),
    "a skipped revision": lambda last: sealed(last, revision=3),
    "a charge without its period": lambda last: sealed(last, kind="raised", period=None),
    "an unknown kind": lambda last: sealed(last, kind="refunded"),
    "an unknown account": lambda last: sealed(last, account="labour"),
    "a gap in the numbers": lambda last: sealed(last, number=9),
    "another spelling": lambda last: sealed(last, body=last.body.replace(":", ": ")),
    "a raise that names a release": lambda last: sealed(
        last, kind="raised", body=canonical({"total": "50/1", "reason": "r", "year": last.facts["year"]})
    ),
    "a publication of what was not charged": lambda last: sealed(
        last, kind="published", body=canonical({"charge": 7, "digest": "d", "year": last.facts["year"]})
    ),
    "a publication of another charge": lambda last: sealed(
        last,
        kind="published",
        period=WEEKLY.period,
        revision=2,
        body=canonical({"charge": 3, "digest": "d", "year": last.facts["year"]}),
    ),
    "not chained": lambda last: sealed(last, previous_hash="0" * 64),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_last_entry_that_breaks_a_rule_is_found_though_its_hash_fits(used: Ledger, path: Path, forgery: str) -> None:
    forged = FORGERIES[forgery](used.entries()[-1])
    assert forged != used.entries()[-1] and seal(forged) == forged.hash
    columns = asdict(forged)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        assignments = ", ".join(f"{name} = :{name}" for name in columns)
        connection.execute(f"UPDATE ledger_entry SET {assignments} WHERE number = 7", columns)
        for _, sql in triggers:
            connection.execute(sql)
    assert refused_everywhere(used, path).number == forged.number


def test_a_lost_last_entry_is_found_by_the_audit_that_names_it(used: Ledger, path: Path) -> None:
    last = used.entries()[-1]
    witness = ("weekly/period=2026-03-09", last.number, last.hash)
    used.require([witness])
    raw(path, "DELETE FROM ledger_entry WHERE number = 7")
    reopened = Ledger.open(url_of(path), used.id)
    with pytest.raises(LedgerOutdated, match=r"entry 7 .*period=2026-03-09.*older backup.*never continue"):
        reopened.require([witness])
    for ask in (lambda: used.charge(week(16)), used.verify):
        if used._seen.number == 7:
            with pytest.raises(LedgerOutdated):
                ask()


def test_a_restored_ledger_that_was_used_again_is_found(used: Ledger, path: Path) -> None:
    last = used.entries()[-1]
    raw(path, "DELETE FROM ledger_entry WHERE number = 7")
    restored = Ledger.open(url_of(path), used.id)
    assert restored.charge(week(9, digest="digest-2")).number == 7
    assert restored.verify() == 7
    with pytest.raises(LedgerOutdated):
        restored.require([("an audit", last.number, last.hash)])
    with pytest.raises(LedgerOutdated):
        restored.require([("an audit", 10**30, last.hash)])


# Races


def at_once(barrier: Any, path: Path, ledger_id: str) -> None:
    global _barrier, _ledger
    _barrier, _ledger = barrier, Ledger.open(url_of(path), ledger_id)


def charge_at_once(request: ChargeRequest) -> Any:
    _barrier.wait(60)
    try:
        charge = _ledger.charge(request)
    except Overspend:
        return None
    _ledger.record_published(charge, "values-1")
    return charge


def race(path: Path, ledger_id: str, requests: list[ChargeRequest]) -> list[Any]:
    barrier = PROCESSES.Barrier(len(requests))
    pool = PROCESSES.Pool(len(requests), at_once, (barrier, path, ledger_id))
    try:
        return pool.map_async(charge_at_once, requests, chunksize=1).get(timeout=60)
    finally:
        pool.terminate()
        pool.join()


def test_twenty_processes_on_one_key_make_one_charge(ledger: Ledger, path: Path) -> None:
    charges = race(path, ledger.id, [WEEKLY] * 20)
    assert len(set(charges)) == 1 and charges[0] is not None
    assert ledger.verify() == 4
    assert ledger.statement("health").spent == Fraction(1, 2)


def test_twenty_keys_with_room_for_ten_make_exactly_ten_charges(ledger: Ledger, path: Path) -> None:
    ledger.open_account(replace(HEALTH, name="ten", total=Fraction(5)))
    charges = race(path, ledger.id, [week(day, account="ten") for day in range(1, 21)])
    assert len({charge for charge in charges if charge}) == 10
    assert charges.count(None) == 10
    assert ledger.statement("ten").left == 0
    assert ledger.verify() == 23


def test_a_ledger_object_may_cross_a_fork(ledger: Ledger) -> None:
    ledger.charge(week(1))
    child = os.fork()
    if child == 0:
        try:
            ledger.charge(week(2))
        except BaseException:
            os._exit(1)
        os._exit(0)
    ledger.charge(week(3))
    assert os.waitpid(child, 0)[1] == 0
    assert ledger.verify() == 5


def test_killed_before_the_commit_nothing_is_charged(ledger: Ledger, path: Path) -> None:
    child = os.fork()
    if child == 0:
        ledger_module.charge_of = lambda *_: os.kill(os.getpid(), 9)
        ledger.charge(WEEKLY)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 9
    assert ledger.verify() == 2
    assert ledger.charge(WEEKLY).number == 3


# A model


AMOUNTS = st.sampled_from([Fraction(1, 3), Fraction(1, 2), Fraction("0.1"), Fraction(1), Fraction(2)])
NAMES = st.sampled_from(["a", "b"])
STEPS = st.one_of(
    st.tuples(st.just("open"), NAMES, AMOUNTS),
    st.tuples(st.just("raise"), NAMES, AMOUNTS),
    st.tuples(st.just("charge"), NAMES, AMOUNTS, st.integers(1, 3), st.integers(1, 3), st.sampled_from(["d", "e"])),
)


class Model:
    """The ledger's rules said again, as simply as possible."""

    def __init__(self) -> None:
        self.totals: dict[str, Fraction] = {}
        self.charged: dict[tuple[int, int], tuple[str, Fraction, str]] = {}

    def open(self, name: str, total: Fraction) -> bool:
        return name not in self.totals and self.totals.update({name: total}) is None

    def raised(self, name: str, total: Fraction) -> bool:
        return total > self.totals.get(name, total) and self.totals.update({name: total}) is None

    def charge(self, name: str, epsilon: Fraction, period: int, revision: int, digest: str) -> bool:
        key, what = (period, revision), (name, epsilon, digest)
        if name not in self.totals or key in self.charged:
            return name in self.totals and self.charged[key] == what
        follows = revision == 1 or (period, revision - 1) in self.charged
        if not follows or self.spent(name) + epsilon > self.totals[name]:
            return False
        self.charged[key] = what
        return True

    def spent(self, name: str) -> Fraction:
        return sum((epsilon for of, epsilon, _ in self.charged.values() if of == name), Fraction(0))


def did(step: Callable[[], object]) -> bool:
    try:
        step()
    except LedgerError:
        return False
    return True


def step_in_both(ledger: Ledger, model: Model, step: tuple[Any, ...]) -> None:
    kind, name, amount, *key = step
    if kind == "open":
        account = replace(HEALTH, name=name, total=amount)
        assert did(lambda: ledger.open_account(account)) == model.open(name, amount)
    elif kind == "raise":
        assert did(lambda: ledger.raise_total(name, amount, "r")) == model.raised(name, amount)
    else:
        period, revision, digest = key
        request = replace(
            WEEKLY,
            account=name,
            period=str(period),
            revision=revision,
            epsilon=amount,
            digest=digest,
            reason="r",
        )
        checked = did(lambda: ledger.check(request))
        assert checked == did(lambda: ledger.charge(request)) == model.charge(name, amount, *key)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=15))
def test_any_sequence_of_steps_does_what_a_simple_model_says(steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ledger, model = Ledger.create(url_of(Path(folder) / "l.sqlite")), Model()
        for step in steps:
            step_in_both(ledger, model, step)
        assert {account.name: account.total for account in ledger.accounts()} == model.totals
        assert {name: ledger.statement(name).spent for name in model.totals} == {
            name: model.spent(name) for name in model.totals
        }
        ledger.verify()


# Amounts


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Fraction(1, 2), "0.5"),
        (Fraction(26), "26"),
        (Fraction(0), "0"),
        (Fraction(1, 3), "1/3"),
        (Fraction(-1, 8), "-0.125"),
        (Fraction("0.05"), "0.05"),
        (Fraction("0.00000123456789012345"), "0.00000123456789012345"),
        (Fraction("1.000000000000001"), "1000000000000001/1000000000000000"),
        (Fraction(1, 3**9000), "about 0"),
    ],
)
def test_an_amount_is_shown_exactly_when_it_fits(amount: Fraction, text: str) -> None:
    assert as_text(amount) == text


@given(st.fractions(min_value=0, max_value=10**6, max_denominator=10**30))
def test_a_written_fraction_is_read_back_exactly(amount: Fraction) -> None:
    assert read_exact(exact_text(amount)) == amount
    assert as_text(amount).startswith("about") or Fraction(as_text(amount)) == amount


@pytest.mark.parametrize("text", ["1", "0.5", "2/4", "-1/2", "1/0", "1/2\n", "01/2", "١/2", "9" * 5000 + "/1"])
def test_another_spelling_of_a_fraction_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match="not a fraction"):
        read_exact(text)
