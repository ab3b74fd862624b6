"""Clocks that were wrong while a store was charged, and the way back: ledger and witness together."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from office import OPEN_HEALTH, WARD, Office, Ran
from refusing import check_refused

from dphist_pipeline.health import doctor
from dphist_pipeline.ledger import clock as clocks
from dphist_pipeline.ledger import opened
from dphist_pipeline.releasing.store import Store

pytestmark = pytest.mark.stand_in("catalogue", "pictures", why="charges by wrong clocks")

Clock = Callable[[str], None]
RENEWING = {"yearly": ("--renews", "yearly"), "never": ()}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Sets the clock of this machine, to the second."""
    return lambda now: monkeypatch.setattr(opened, "utc_now", lambda: now)


@pytest.fixture(params=["files", pytest.param("server", marks=pytest.mark.outside)])
def office(request: pytest.FixtureRequest, office: Office, monkeypatch: pytest.MonkeyPatch) -> Office:
    """An office with two accounts; ledger and witness lie in files, or in two databases of a server."""
    if request.param == "server":
        for name in ("DPHIST_LEDGER", "DPHIST_WITNESS"):
            monkeypatch.setenv(name, request.getfixturevalue("database_server").new_database())
        monkeypatch.setattr(office, "witnessed", contextlib.nullcontext)
    # Made at a time of these tests, whatever the day on which they run.
    monkeypatch.setattr(opened, "utc_now", lambda: "2026-11-24T06:00:00Z")
    office.of_its_own().write_records()
    office.write_spec()
    office.allow()
    return office


def opened_account(office: Office, name: str, renews: str) -> None:
    """An account with a total of 1 that may read what `health` may read."""
    words = [{"health": name, "10": "1"}.get(word, word) for word in OPEN_HEALTH]
    assert office.run("ledger", *words, *RENEWING[renews], "--store", office.store).code == 0
    reading = ("--source", "data/admissions.parquet", "--also-of", "health")
    assert office.run("ledger", "allow", name, *reading, "--store", office.store).code == 0


def release(office: Office, name: str, account: str, **changes: Any) -> Ran:
    office.write_spec(release=name, account=account, **changes)
    return office.release()


def left(office: Office, account: str) -> str:
    shown: str = office.run("ledger", "show", account, "--store", office.store, "--json").json[0]["left"]
    return shown


def adopt(office: Office) -> None:
    done = office.run("store", "adopt", "--reason", "the clock was a year ahead", "--store", office.store)
    assert done.code == 0, done.err


@pytest.mark.slow
@pytest.mark.parametrize("renews", RENEWING)
def test_after_an_adoption_a_charge_dated_ahead_counts_now_and_releases_go_on(
    office: Office, clock: Clock, renews: str
) -> None:
    opened_account(office, "spent", renews)
    clock("2027-11-24T12:00:00Z")
    assert release(office, "ahead", "spent").code == 0
    clock("2026-11-24T12:00:00Z")
    for account in ("spent", "health"):
        refused = release(office, f"more_{account}", account)
        check_refused(refused, "has an entry of 2027, and this machine's clock says 2026-11-24")
        assert "nothing was charged" in " ".join(refused.err.split()) and "dphist store adopt" in refused.err
    adopt(office)
    assert left(office, "spent") == "1/2"
    for account in ("spent", "health"):
        done = release(office, f"more_{account}", account)
        assert done.code == 0, done.err
    assert left(office, "spent") == "0"
    check_refused(release(office, "third", "spent"), "has 0 left of 1")
    assert release(office, "ahead", "spent").code == 0, "what was published is there at no cost"
    assert office.run("ledger", "verify", "--store", office.store).code == 0
    # A second adoption counts nothing a second time, and the year in which it is dated does not renew either.
    adopt(office)
    assert (left(office, "spent"), left(office, "health")) == ("0", "19/2")
    clock("2027-02-01T12:00:00Z")
    assert left(office, "spent") == {"yearly": "1/2", "never": "0"}[renews]
    clock("2028-02-01T12:00:00Z")
    assert left(office, "spent") == {"yearly": "1", "never": "0"}[renews]


@pytest.mark.slow
def test_a_clock_that_is_a_day_behind_the_ledger_goes_on_in_the_later_year(
    office: Office, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened_account(office, "spent", "yearly")
    monkeypatch.setattr(clocks, "machine_time", lambda: "2031-01-01T00:00:01Z")
    clock("2031-01-01T00:00:01Z")
    assert release(office, "first", "spent").code == 0
    clock("2030-12-31T23:59:59Z")
    done = release(office, "second", "spent")
    assert done.code == 0, done.err
    check_refused(release(office, "third", "spent"), "has 0 left of 1 in 2031")
    clock("2030-12-30T23:59:59Z")
    check_refused(release(office, "fourth", "health"), "has an entry of 2031")


def entries(office: Office) -> int:
    with office.witnessed():
        return len(Store.open(office.store).ledger().entries())


@pytest.mark.slow
def test_a_clock_before_its_time_enters_nothing_and_the_same_command_works_later(office: Office, clock: Clock) -> None:
    before = entries(office)
    clock("2020-06-30T12:00:00Z")
    account = ("open", "another", "--privacy-unit", "patient", "--neighbours", "add_remove", "--total", "2")
    asks = {
        "init": lambda: office.run("init", "--store", office.folder / "another"),
        "open": lambda: office.run("ledger", *account, "--renews", "yearly", "--store", office.store),
        "release": office.release,
        "adopt": lambda: office.run("store", "adopt", "--reason", "a wrong clock", "--store", office.store),
    }
    if "DPHIST_LEDGER" in os.environ:  # whose database has this store's ledger already
        del asks["init"]
    for ask in asks.values():
        check_refused(ask(), "clock says 2020-06-30", f"built in {clocks.BUILT}", "run the same command again")
    assert entries(office) == before and not (office.folder / "another").exists()
    clock(f"{clocks.BUILT}-12-31T12:00:00Z")
    for ask in asks.values():
        assert ask().code == 0


def test_a_doctor_knows_the_year_of_build_and_a_clock_far_ahead(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told() -> list[str]:
        with office.witnessed():
            found = {finding.check: finding for finding in doctor.examine(office.store)}["clock"]
        return [found.state, found.seen, found.mend]

    assert told()[0] == "ok"
    monkeypatch.setattr(clocks, "BUILT", 9000)
    state, seen, mend = told()
    assert state == "fault" and "was built in 9000" in seen and "timedatectl" in mend
    monkeypatch.setattr(clocks, "BUILT", 2026)
    monkeypatch.setattr(clocks, "IDLE", -timedelta(days=400))
    state, seen, mend = told()
    assert state == "fault" and "clock says" in seen and "dphist ledger allow --clock" in mend


WEEKLY = {
    "period": "week",
    "period_column": "day",
    "period_format": "iso",
    "source": "data/days.parquet",
    "axes": [WARD],
}


@pytest.mark.slow
def test_a_clock_a_year_ahead_releases_no_week_until_an_operator_says_it_is_right(
    office: Office, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "machine_time", lambda: "2026-05-01T00:00:00Z")
    office.write_records({"patient": ["ann"], "ward": ["surgery"], "day": [date(2026, 3, 3)]}, "data/days.parquet")
    office.write_spec(**WEEKLY)
    office.allow()
    clock("2026-11-24T12:00:00Z")
    assert office.release("--period", "2026-03-02").code == 0
    # Whoever decides something else while the clock is wrong says nothing about the clock.
    clock("2027-11-24T12:00:00Z")
    assert office.run("ledger", "raise", "health", "--total", "11", "--reason", "r", "--store", office.store).code == 0
    before = entries(office)
    for week in ("2026-03-09", "2025-11-24"):
        says = (
            "clock says 2027-11-24",
            "the ledger, is 2026-11-24T12:00:00Z: 365 days",
            "may be charged 99 days after",
        )
        check_refused(office.release("--period", week), *says, "Nothing was read or charged")
    assert office.release("--period", "2026-03-02").code == 0, "what was published is there at no cost"
    assert entries(office) == before
    # The way out that the message names: a person who knows the day, and says why.
    allow = ("ledger", "allow", "--store", office.store, "--clock")
    check_refused(
        office.run(*allow, "2026-11-24", "--reason", "r"), "clock says 2027-11-24T12:00:00Z", "Nothing was decided"
    )
    check_refused(office.run(*allow, "2027-11-24"), "--reason")
    assert entries(office) == before
    done = office.run(*allow, "2027-11-24", "--reason", "the store was idle for a year", "--json")
    assert done.json["kind"] == "clock" and done.json["reason"] == "the store was idle for a year"
    assert "2027-11-24" in office.run("ledger", "show", "--store", office.store).out
    report = office.run("ledger", "report", "--store", office.store, "--json").json["general"]
    assert ("said that the clock is right", "2027-11-24") in [(one["did"], one["what"]) for one in report]
    # Taken back, it counts no more; said again, the refused release goes on.
    back = ("ledger", "disallow", str(done.json["entry"]), "--reason", "r", "--store", office.store)
    assert office.run(*back).code == 0
    check_refused(office.release("--period", "2026-03-09"), "clock says 2027-11-24")
    assert office.run(*allow, "2027-11-24", "--reason", "it is right").code == 0
    done = office.release("--period", "2026-03-09")
    assert done.code == 0, done.err
    assert office.run("ledger", "verify", "--store", office.store).code == 0


@pytest.mark.slow
def test_an_adoption_forgets_what_an_operator_said_of_a_clock_that_was_wrong(
    office: Office, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "machine_time", lambda: "2026-05-01T00:00:00Z")
    clock("2036-11-24T12:00:00Z")
    said = ("ledger", "allow", "--clock", "2036-11-24", "--reason", "it is right", "--store", office.store)
    assert office.run(*said).code == 0
    assert office.release().code == 0
    clock("2026-11-24T12:00:00Z")
    adopt(office)
    assert release(office, "now", "health").code == 0
    clock("2036-11-24T12:00:00Z")
    check_refused(release(office, "later", "health"), "the ledger, is 2026-11-24T12:00:00Z")
