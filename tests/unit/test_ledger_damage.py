"""The ledger: missing, foreign, read-only, edited, restored; each is noticed."""

from __future__ import annotations

import os
import sqlite3
import tempfile
import traceback
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from error_codes import coded, ledger_refuses
from ledger_scenario import HEALTH, WEEKLY, ledger, path, raw, url, url_of, week

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.ledger import database as ledger_database
from dphist_pipeline.ledger.entries import Entry, seal
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.publishing.statements import Statement

# Ledgers that are not as they were


def test_a_missing_ledger_is_refused_and_none_is_made(path: Path) -> None:
    with ledger_refuses("ledger_missing", match="DPHIST_LEDGER"):
        Ledger.open(url_of(path), "id")
    assert not path.exists()


def test_a_ledger_that_goes_away_is_refused_and_none_is_made(ledger: Ledger, path: Path) -> None:
    path.unlink()
    for ask in (lambda: ledger.charge(WEEKLY), lambda: ledger.check(WEEKLY), ledger.verify, ledger.accounts):
        with ledger_refuses("ledger_missing"):
            ask()
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"garbage" * 1000, b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_file_that_is_no_ledger_is_refused(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with ledger_refuses("ledger_altered") as refusal:
        Ledger.open(url_of(path), "id")
    assert "sqlite3" not in "".join(traceback.format_exception(refusal.value))
    assert path.read_bytes() == content


def test_another_database_is_no_ledger(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE other (a)")
    with ledger_refuses("ledger_altered", match="holds no ledger"):
        Ledger.open(url_of(path), "id")


def test_a_foreign_ledger_is_refused(ledger: Ledger, path: Path) -> None:
    with ledger_refuses("ledger_foreign", match=ledger.id):
        Ledger.open(url_of(path), "another")


def test_a_ledger_exchanged_under_a_running_program_is_refused(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    other = Ledger.create(url_of(tmp_path / "other.sqlite"))
    other.open_account(HEALTH)
    (tmp_path / "other.sqlite").replace(path)
    for ask in (ledger.check, ledger.charge):
        with ledger_refuses("ledger_outdated"):
            ask(WEEKLY)
    with ledger_refuses("ledger_foreign"):
        ledger.verify()


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_read_only_ledger_is_refused_but_can_be_read(ledger: Ledger, path: Path, what: str) -> None:
    place, mode = (path, 0o444) if what == "file" else (path.parent, 0o555)
    place.chmod(mode)
    try:
        for ask in (lambda: ledger.check(WEEKLY), lambda: ledger.charge(WEEKLY)):
            with ledger_refuses("file_unusable", match="chmod"):
                ask()
        with ledger_refuses("file_unusable"):
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
            with ledger_refuses("file_unusable"):
                ledger.check(WEEKLY)
        finally:
            os.seteuid(0)


def test_a_ledger_held_by_another_program_is_busy_and_charges_nothing(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_database, "BUSY_SECONDS", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with ledger_refuses("file_busy", match="never charged twice") as refusal:
            ledger.charge(WEEKLY)
        assert ledger.accounts() == [HEALTH]
    assert "sqlite3" not in "".join(traceback.format_exception(refusal.value))
    assert ledger.verify() == 2


def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    path = tmp_path / "a b%20#?é.sqlite"
    url = sqlalchemy.URL.create("sqlite", database=str(path))
    made = Ledger.create(url)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert Ledger.open(url.render_as_string(), made.id).verify() == 1


def test_the_file_is_written_with_a_rollback_journal_and_extra_sync(ledger: Ledger, path: Path) -> None:
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


def refused_everywhere(ledger: Ledger, path: Path) -> LedgerError:
    with ledger_refuses("ledger_altered"):
        Ledger.open(url_of(path), ledger.id)
    with ledger_refuses("ledger_altered") as refusal:
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


def test_an_edit_between_opening_and_charging_misleads_no_charge_and_is_found(used: Ledger, path: Path) -> None:
    left = Statement.of(used, "health").left
    everything = week(16, epsilon=left)
    raw(path, "UPDATE ledger_entry SET body = replace(body, '1/2', '1/9') WHERE number = 6")
    for ask in (used.check, used.charge):
        with ledger_refuses("overspend"):
            ask(replace(everything, epsilon=left + Fraction(1, 9)))
    used.check(everything)
    assert used.charge(everything).number == 8
    assert refused_everywhere(used, path).number == 6


def test_entries_made_since_the_opening_are_judged_as_in_a_whole_ledger(used: Ledger, path: Path) -> None:
    other = Ledger.open(url_of(path), used.id)
    other.charge(week(16))
    raw(path, "UPDATE ledger_entry SET body = replace(body, '1/2', '1/9') WHERE number = 8")
    for ask in (used.check, used.charge, used.check):
        with ledger_refuses("ledger_altered") as refusal:
            ask(week(23))
        assert refusal.value.number == 8


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
    body = changes.pop("body", None) or canonical_json({**entry.facts, **changes.pop("facts", {})})
    changed = replace(entry, **changes, body=body)
    return replace(changed, hash=seal(changed))


FORGERIES: dict[str, Callable[[Entry], Entry]] = {
    "beyond the total": lambda last: sealed(last, facts={"epsilon": "45/1"}),
    "not in lowest terms": lambda last: sealed(last, facts={"epsilon": "2/4"}),
    "nothing": lambda last: sealed(last, facts={"epsilon": "0/1"}),
    "negative": lambda last: sealed(last, facts={"epsilon": "-1/2"}),
    "a number": lambda last: sealed(last, facts={"epsilon": 0.5}),
    "one fact more": lambda last: sealed(last, facts={"note": "x"}),
    "held, in other words": lambda last: sealed(last, facts={"held": 1}),
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
        last, kind="raised", body=canonical_json({"total": "50/1", "reason": "r", "year": last.facts["year"]})
    ),
    "a publication of what was not charged": lambda last: sealed(
        last, kind="published", body=canonical_json({"charge": 7, "digest": "d", "year": last.facts["year"]})
    ),
    "a publication of another charge": lambda last: sealed(
        last,
        kind="published",
        period=WEEKLY.period,
        revision=2,
        body=canonical_json({"charge": 3, "digest": "d", "year": last.facts["year"]}),
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
    with ledger_refuses("ledger_outdated", match=r"entry 7 .*period=2026-03-09.*older backup.*never continue"):
        reopened.require([witness])
    for ask in (lambda: used.charge(week(16)), used.verify):
        if used._seen.number == 7:
            with ledger_refuses("ledger_outdated"):
                ask()


def test_a_restored_ledger_that_was_used_again_is_found(used: Ledger, path: Path) -> None:
    last = used.entries()[-1]
    raw(path, "DELETE FROM ledger_entry WHERE number = 7")
    restored = Ledger.open(url_of(path), used.id)
    assert restored.charge(week(9, digest="digest-2")).number == 7
    assert restored.verify() == 7
    with ledger_refuses("ledger_outdated"):
        restored.require([("an audit", last.number, last.hash)])
    with ledger_refuses("ledger_outdated"):
        restored.require([("an audit", 10**30, last.hash)])
