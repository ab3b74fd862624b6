"""Entries of the ledger: what hash and signature cover, in which year a charge counts; addresses of ledgers."""

from __future__ import annotations

from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from error_codes import ledger_refuses
from ledger_scenario import HEALTH, WEEKLY, ledger, path, time_passes, url

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.ledger.entries import Entry, seal
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.signing import Operator, signer_of

__all__ = ["ledger", "path", "url"]

ANN = Operator("ann", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
ENTRY = Entry(3, "charged", "health", "weekly", "2026-03-02", 1, '{"year":2026}', "ab" * 32, "2026-03-02T06:00:00Z", "")
OTHER: dict[str, Any] = {
    **{"number": 4, "kind": "published", "account": "labour", "release": None, "period": "2026-03-09", "revision": 2},
    **{"body": '{"year":2027}', "previous_hash": "ac" * 32, "made_at": "2026-03-02T06:00:01Z", "hash": "cd" * 32},
}


def test_the_hash_of_an_entry_never_changes_between_versions() -> None:
    assert seal(ENTRY) == "f2f8a167a80f0c6e96171e832e1368b75c86a5db286966551cb4867554941c71"


@pytest.mark.parametrize("name", [field.name for field in fields(Entry) if field.name != "hash"])
def test_hash_and_signature_cover_every_field_of_an_entry(name: str) -> None:
    assert seal(replace(ENTRY, **{name: OTHER[name]})) != seal(ENTRY)
    signed = ANN.with_signature(ENTRY)
    assert signer_of(signed) == ANN.public
    value = OTHER[name] if name != "body" else canonical_json({**signed.facts, "year": 2027})
    assert signer_of(replace(signed, **{name: value})) is None


def test_the_hash_is_made_of_the_other_fields_alone() -> None:
    assert seal(replace(ENTRY, hash=OTHER["hash"])) == seal(ENTRY)
    signed = ANN.with_signature(ENTRY)
    assert signer_of(replace(signed, hash=OTHER["hash"])) == ANN.public


def test_a_charge_made_by_a_clock_a_day_behind_counts_in_the_ledgers_year(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.open_account(replace(HEALTH, name="yearly", total=Fraction(1), renews="yearly"))
    for now, period in (("2031-01-01T00:00:01Z", "first"), ("2030-12-31T23:59:59Z", "second")):
        time_passes(monkeypatch, now)
        charge = ledger.charge(replace(WEEKLY, account="yearly", period=period))
        assert charge.year == 2031
    for now in ("2030-12-31T23:59:59Z", "2031-06-30T12:00:00Z"):
        time_passes(monkeypatch, now)
        with ledger_refuses("overspend", match="0 left of 1 in 2031"):
            ledger.charge(replace(WEEKLY, account="yearly", period="third"))
    assert [made.year for made in Ledger.open(ledger.url, ledger.id).standing().charges] == [2031, 2031]


# Addresses


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://user:secret@host/db",
        "postgresql://user@/db",
        "postgresql://user@host",
        "postgresql://user@one,two/db",
        "postgresql://user@host/db?sslmode=require",
        "postgresql://user@host/db?options=-csearch_path=secret",
        "postgresql+psycopg2://user:secret@host/db",
        "mysql://user:secret@host/db",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=rw",
        "sqlite:///x?mode=rw",
        "sqlite+aiosqlite:///x",
        "no url",
        "sqlite:///a\0b",
    ],
)
def test_an_address_that_names_no_database_is_refused_without_its_secrets(address: str) -> None:
    for ask in (lambda: Ledger.create(address), lambda: Ledger.open(address, "id")):
        with ledger_refuses("address_refused") as refusal:
            ask()
        assert "secret" not in str(refusal.value)
