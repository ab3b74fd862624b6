"""A ledger to test with: an account, a release, hands that edit it, a clock that can be set."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dphist_pipeline.ledger import clock
from dphist_pipeline.ledger import opened as ledger_module
from dphist_pipeline.ledger.ledger import Account, ChargeRequest, Ledger

HEALTH = Account("health", "patient_id", "add_remove", Fraction(26), None, "store-1")
WEEKLY = ChargeRequest(
    "health", "weekly", "2026-03-02", 1, Fraction(1, 2), "digest-1", "", "patient_id", "add_remove", "store-1"
)


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the test's ledger is to be; `conftest.py` runs tests that open no file themselves on both databases."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return url_of(tmp_path / "ledger.sqlite")
    made: str = request.getfixturevalue("database_server").new_database()
    return made


@pytest.fixture
def ledger(url: str) -> Ledger:
    made = Ledger.create(url)
    made.open_account(HEALTH)
    return made


def week(day: int, **changes: Any) -> ChargeRequest:
    return replace(WEEKLY, period=f"2026-03-{day:02}", **changes)


def set_clock(monkeypatch: pytest.MonkeyPatch, year: int) -> None:
    """Time passes: the clock shows that year, and so do the newest files of the machine."""
    time_passes(monkeypatch, f"{year}-06-30T12:00:00Z")


def time_passes(monkeypatch: pytest.MonkeyPatch, now: str) -> None:
    monkeypatch.setattr(ledger_module, "utc_now", lambda: now)
    monkeypatch.setattr(clock, "machine_time", lambda: now)


def raw(place: Path | sa.URL, *statements: str) -> None:
    """An edit by hand that knows what it is doing: the triggers are away meanwhile, and come back."""
    if isinstance(place, sa.URL) and place.drivername == "postgresql":
        away, back = (f"ALTER TABLE ledger_entry {what} TRIGGER USER" for what in ("DISABLE", "ENABLE"))
        engine = sa.create_engine(place.set(drivername="postgresql+psycopg"))
        with engine.begin() as connection:
            for statement in (away, *statements, back):
                connection.exec_driver_sql(statement.replace("%", "%%"))
        engine.dispose()
        return
    file = place.database if isinstance(place, sa.URL) else place
    with closing(sqlite3.connect(str(file), isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)
