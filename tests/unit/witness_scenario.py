"""A witness to test with: a store that is enrolled, charges, what is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.witness import ReadStanding, Standing, Witness, WitnessedCharge

STORE = "store-1"
ADOPT = "dphist store adopt --reason TEXT"
STARTED_BY = {1: "entry-1"}

ReadCharges = Callable[[], Iterable[WitnessedCharge]]


def new_witness(tmp_path: Path) -> Witness:
    """A witness in a file that knows one store, with nothing charged yet."""
    return enrolled(tmp_path / "state" / "witness.sqlite")


def enrolled(address: str | Path) -> Witness:
    """A new witness that knows one store."""
    made = Witness.at(address)
    made.enrol(STORE, "entry-1")
    return made


@pytest.fixture
def witness_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the test's witness is to be; `conftest.py` runs tests that open no file themselves on both databases."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return str(tmp_path / "state" / "witness.sqlite")
    made: str = request.getfixturevalue("database_server").new_database()
    return made


@pytest.fixture
def witness(witness_url: str) -> Witness:
    """A witness that knows one store, with nothing charged yet."""
    return enrolled(witness_url)


def rows(witness: Witness) -> list[list[tuple[object, ...]]]:
    """All that a witness holds."""
    with witness._file.session("read") as connection:
        tables = witness._file.tables.sorted_tables
        return [sorted(map(tuple, connection.execute(sa.select(table)))) for table in tables]


def hashed(word: object) -> str:
    """64 hexadecimal digits, as entries and answers have: those of a number are that entry's."""
    return hashlib.sha256(str(word).encode()).hexdigest()


def charge(number: int, **changes: Any) -> WitnessedCharge:
    made = WitnessedCharge(number, hashed(number), "health", "weekly", f"week-{number}", 1, Fraction(1, 3), 2026)
    return replace(made, **changes)


def charges(*numbers: int) -> ReadCharges:
    return lambda: [charge(number) for number in numbers]


def of(generation: int, read: ReadCharges, started_by: str | None = None) -> ReadStanding:
    """Reads a ledger at a generation, which began as the tests have it unless another entry is named."""
    return lambda: Standing(generation, started_by or STARTED_BY.get(generation, "entry-9"), tuple(read()))


def held(witness: Witness) -> list[int]:
    standing = witness.standing(STORE)
    assert standing is not None
    return [charge.number for charge in standing.charges]


def refusals(witness: Witness, generation: int, read: ReadCharges, **more: Any) -> list[LedgerError]:
    """What `vouch` refuses, and `check` before it; the witness stays as it was."""
    found = []
    before = witness.standing(STORE)
    for ask in (
        lambda: witness.check(STORE, of(generation, read, **more)),
        lambda: witness.vouch(STORE, of(generation, read, **more)),
    ):
        with pytest.raises(LedgerError) as refusal:
            ask()
        found.append(refusal.value)
    assert witness.standing(STORE) == before
    return found


def address(witness: Witness) -> str:
    """Where another process finds a witness."""
    return str(witness._file.url)
