"""A witness to test with: a store that is enrolled, charges, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.witness import ReadStanding, Standing, Witness, WitnessedCharge

STORE = "store-1"
ADOPT = "dphist store adopt --reason TEXT"
STARTED_BY = {1: "entry-1"}

ReadCharges = Callable[[], Iterable[WitnessedCharge]]


def new_witness(tmp_path: Path) -> Witness:
    """A witness that knows one store, with nothing charged yet."""
    made = Witness.at(tmp_path / "state" / "witness.sqlite")
    made.enrol(STORE, "entry-1")
    return made


def charge(number: int, **changes: Any) -> WitnessedCharge:
    made = WitnessedCharge(number, f"hash-{number}", "health", "weekly", f"week-{number}", 1, Fraction(1, 3), 2026)
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
        lambda: witness.check(STORE, of(generation, read, **more), 2026),
        lambda: witness.vouch(STORE, of(generation, read, **more)),
    ):
        with pytest.raises(LedgerError) as refusal:
            ask()
        found.append(refusal.value)
    assert witness.standing(STORE) == before
    return found
