"""By which clock a charge may be dated: one that is neither before this version, nor behind, nor far ahead."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from database_server import Server
from error_codes import coded, ledger_refuses
from ledger_scenario import HEALTH, WEEKLY, ledger, path, time_passes, url, url_of, week

from dphist_pipeline.ledger import clock, opened
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.moving import move
from dphist_pipeline.ledger.signing import Operator

__all__ = ["ledger", "path", "url"]

START = datetime(2026, 11, 24, 12, tzinfo=UTC)
Later = Callable[[int], None]


def written(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


@pytest.fixture(autouse=True)
def before_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ledgers are made at a time of these tests, whatever the day on which they run."""
    monkeypatch.setattr(opened, "utc_now", lambda: written(START - timedelta(hours=6)))


@pytest.fixture
def later(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Later:
    """A ledger that was charged, on a machine that is older; sets its clock to some days after the charge."""
    time_passes(monkeypatch, written(START))
    ledger.charge(WEEKLY)
    monkeypatch.setattr(clock, "machine_time", lambda: "2026-01-01T00:00:00Z")
    return lambda days: monkeypatch.setattr(opened, "utc_now", lambda: written(START + timedelta(days=days)))


@pytest.mark.parametrize(("days", "most"), [(7, 99), (31, 123), (366, 458), (None, 458)])
def test_a_release_may_be_late_by_a_quarter_of_a_year_and_its_period(
    ledger: Ledger, later: Later, days: int | None, most: int
) -> None:
    asked = week(9, days=days)
    later(most + 1)
    for ask in (ledger.check, ledger.charge):
        with ledger_refuses("clock_ahead", match=f"the ledger, is {written(START)}: {most + 1} days"):
            ask(asked)
    ledger.check(WEEKLY)
    assert ledger.charge(WEEKLY).number == 3, "what was charged before needs no clock"
    later(most)
    ledger.check(asked)
    ledger.charge(asked)
    later(2 * most)
    assert ledger.charge(week(16, days=days)).number == 5, "the last charge attests its time"
    assert ledger.verify() == 5


def test_a_newer_file_of_the_machine_says_that_time_has_passed(
    ledger: Ledger, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    later(3000)
    monkeypatch.setattr(clock, "machine_time", lambda: written(START + timedelta(days=2900)))
    with ledger_refuses("clock_ahead", match="a file of this machine's system, is 2034-11-02"):
        ledger.charge(week(9, days=7))
    monkeypatch.setattr(clock, "machine_time", lambda: written(START + timedelta(days=2901)))
    ledger.charge(week(9, days=7))


def test_a_new_ledger_is_charged_though_the_machine_is_old(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "machine_time", lambda: "2026-01-01T00:00:00Z")
    monkeypatch.setattr(opened, "utc_now", lambda: "2040-01-01T00:00:00Z")
    made = Ledger.create(url)
    made.open_account(HEALTH)
    made.charge(replace(WEEKLY, days=7))


def test_the_newest_file_of_the_machine_counts_and_missing_ones_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = {"old": 1_700_000_000, "new": 1_790_000_000}
    for name, at in times.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (at, at))
    monkeypatch.setattr(clock, "_OF_THIS_MACHINE", [str(tmp_path / name) for name in ("old", "missing", "new")])
    assert clock.machine_time() == "2026-09-21T14:13:20Z"
    far = SimpleNamespace(stat=lambda: SimpleNamespace(st_mtime=2.0**40))  # not every file system can store it
    monkeypatch.setattr(clock, "Path", lambda place: far)
    assert clock.machine_time() == "9999-12-31T00:00:00Z"
    monkeypatch.setattr(clock, "_OF_THIS_MACHINE", [])
    assert clock.machine_time() == "1970-01-01T00:00:00Z"


def test_no_file_that_tells_the_time_is_one_of_records() -> None:
    """When a file of records was written may depend on who is in it."""
    system = ("/run/", "/var/lib/", "/usr/lib/", "/lib/")
    own = {clock.__file__, os.__file__}
    assert all(place.startswith(system) or place in own or Path(place).is_file() for place in clock._OF_THIS_MACHINE)
    assert all(Path(place).is_absolute() for place in clock._OF_THIS_MACHINE)


def test_a_clock_before_the_year_of_build_enters_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    charge = ledger.charge(WEEKLY)
    monkeypatch.setattr(opened, "utc_now", lambda: f"{clock.BUILT - 1}-12-31T23:59:59Z")
    for ask in (
        lambda: Ledger.create(f"sqlite:///{tmp_path}/new.sqlite"),
        lambda: ledger.open_account(replace(HEALTH, name="more")),
        lambda: ledger.check(week(9)),
        lambda: ledger.charge(week(9)),
        lambda: ledger.note(charge, "approved", "ann"),
    ):
        with pytest.raises(
            LedgerError,
            check=coded("clock_before_build"),
            match=rf"built in {clock.BUILT}.*nothing was entered.*the same command again",
        ):
            ask()
    assert len(ledger.entries()) == 3 and not (tmp_path / "new.sqlite").exists()
    monkeypatch.setattr(opened, "utc_now", lambda: f"{clock.BUILT}-01-01T00:00:00Z")
    assert Ledger.open(ledger.url, ledger.id).verify() == 3


@pytest.mark.parametrize(
    ("day", "right"),
    [
        *[("2026-11-24", True), ("2026-11-23", True), ("2026-11-25", True), ("2026-11-22", False)],
        *[("2026-11-26", False), ("tomorrow", False), ("", False)],
    ],
)
def test_a_day_is_that_of_the_clock_in_some_time_zone(day: str, right: bool) -> None:
    assert clock.is_day_of(day, written(START)) is right


def test_a_ledger_is_not_moved_by_a_clock_before_the_year_of_build(
    path: Path, database_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = Operator("ann", Ed25519PrivateKey.generate())
    made, target = Ledger.create(url_of(path), ann), database_server.new_database()
    monkeypatch.setattr(opened, "utc_now", lambda: f"{clock.BUILT - 1}-12-31T23:59:59Z")
    with ledger_refuses("clock_before_build"):
        move(made.url, made.id, target, ann)
    monkeypatch.setattr(opened, "utc_now", lambda: f"{clock.BUILT}-12-31T23:59:59Z")
    assert move(made.url, made.id, target, ann).verify() == 2
