"""A ledger to test with: an account, a release, hands that edit it, a clock that can be set."""

from __future__ import annotations

import multiprocessing
import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dphist_pipeline.ledger import opened as ledger_module
from dphist_pipeline.ledger.ledger import Account, ChargeRequest, Ledger

HEALTH = Account("health", "patient_id", "add_remove", Fraction(26), None, "store-1")
WEEKLY = ChargeRequest(
    "health", "weekly", "2026-03-02", 1, Fraction(1, 2), "digest-1", "", "patient_id", "add_remove", "store-1"
)
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["dphist_pipeline.ledger.ledger"])


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    made = Ledger.create(url_of(path))
    made.open_account(HEALTH)
    return made


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
