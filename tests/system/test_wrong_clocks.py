"""Clocks that were wrong while a store was charged, and the way back: ledger and witness together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from office import OPEN_HEALTH, Office, Ran
from refusing import check_refused

from dphist_pipeline.ledger import opened

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
    office.opened()
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
    assert release(office, "ahead", "spent").code == 0, "what was published is there for nothing"
    assert office.run("ledger", "verify", "--store", office.store).code == 0
    # A second adoption counts nothing a second time, and the year in which it is dated does not renew either.
    adopt(office)
    assert (left(office, "spent"), left(office, "health")) == ("0", "19/2")
    clock("2027-02-01T12:00:00Z")
    assert left(office, "spent") == {"yearly": "1/2", "never": "0"}[renews]
    clock("2028-02-01T12:00:00Z")
    assert left(office, "spent") == {"yearly": "1", "never": "0"}[renews]


def test_a_clock_that_is_a_day_behind_the_ledger_goes_on_in_the_later_year(office: Office, clock: Clock) -> None:
    opened_account(office, "spent", "yearly")
    clock("2031-01-01T00:00:01Z")
    assert release(office, "first", "spent").code == 0
    clock("2030-12-31T23:59:59Z")
    done = release(office, "second", "spent")
    assert done.code == 0, done.err
    check_refused(release(office, "third", "spent"), "has 0 left of 1 in 2031")
    clock("2030-12-30T23:59:59Z")
    check_refused(release(office, "fourth", "health"), "has an entry of 2031")
