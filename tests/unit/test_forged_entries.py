"""Entries that somebody wrote past our code, rightly chained and sealed: reading the ledger finds each by its rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from error_codes import ledger_refuses
from ledger_scenario import HEALTH, WEEKLY, path, raw, url, url_of, week

from dphist_pipeline.canonical_json import canonical_json
from dphist_pipeline.ledger.decisions import EVERYWHERE, SourceReading
from dphist_pipeline.ledger.entries import Entry, seal
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.signing import Operator

__all__ = ["path", "url"]

ANN, BEN, EVE = (Operator(name, Ed25519PrivateKey.generate()) for name in ("ann", "ben", "eve"))
ADMISSIONS = SourceReading("data/*.csv", "/office/data", "csv", unit=("patient_id",))
QUERY = {"query": {"sha256": "ab" * 32, "name": "joined.sql"}}
PAID = {"epsilon": "1/2", "digest": "digest-1", "reason": "", "nonce": "00" * 16}


@pytest.fixture
def ledger(url: str) -> Ledger:
    """Two operators, two accounts; decision 3 is in force, 4 was taken back by 5, 8 is of the account of both."""
    made = Ledger.create(url, ANN)
    made.open_account(HEALTH, ANN, ADMISSIONS)
    made.allow("health", QUERY, ANN, "joins wards")
    made.disallow(4, "no longer", ANN)
    made.add_key("ben", BEN.public, ANN)
    made.open_account(replace(HEALTH, name="both", signatures=2), ANN)
    made.allow("both", QUERY, ANN, "joins wards")
    made.countersign(8, BEN)
    made.note(made.charge(replace(WEEKLY, source=ADMISSIONS)), "approved", "Ada")
    return made


def forge(made: Ledger, kind: str, account: str, facts: dict[str, Any], by: Operator | None = None, **of: Any) -> None:
    """Inserts an entry by hand."""
    last = made.entries()[-1]
    body = canonical_json({**facts, "year": last.facts["year"]})
    key = {"release": None, "period": None, "revision": None, **of}
    entry = Entry(
        last.number + 1, kind, account, **key, body=body, previous_hash=last.hash, made_at=last.made_at, hash=""
    )
    entry = entry if by is None else by.signed(entry)
    values = vars(replace(entry, hash=seal(entry)))
    written = ", ".join("NULL" if value is None else repr(value) for value in values.values())
    raw(made.url, f"INSERT INTO ledger_entry ({', '.join(values)}) VALUES ({written})")


def charged(made: Ledger, **facts: Any) -> None:
    request = week(9)
    key = {"release": request.release, "period": request.period, "revision": 1}
    forge(made, "charged", "health", {**PAID, **facts}, **key)


def approved_again(made: Ledger) -> None:
    key = {"release": WEEKLY.release, "period": WEEKLY.period, "revision": 1}
    forge(made, "approved", "health", {"charge": 10, "text": "Ada"}, **key)


FORGERIES: dict[str, tuple[Callable[[Ledger], None], str]] = {
    "a charge without decisions": (charged, "without a decision"),
    "a charge by no decisions": (lambda made: charged(made, allowed=[]), "without a decision"),
    "a charge by a decision taken back": (lambda made: charged(made, allowed=[3, 4]), "without a decision"),
    "a charge by another account's": (lambda made: charged(made, allowed=[8]), "without a decision"),
    "a charge by what was never decided": (lambda made: charged(made, allowed=[99]), "without a decision"),
    "a second approval": (approved_again, "approved a second time"),
    "a decision made twice": (
        lambda made: forge(made, "allowed", "health", {"source": ADMISSIONS.facts(), "reason": ""}, ANN),
        "allowed a second time",
    ),
    "one operator for two, under another account": (
        lambda made: forge(made, "disallowed", "health", {"decision": 8, "reason": "mine"}, ANN),
        "8",
    ),
    "a key that another key signed": (
        lambda made: forge(made, "keyed", EVERYWHERE, {"operator": EVE.facts()}, EVE),
        "signature",
    ),
}


def test_what_is_written_by_our_code_holds_together(ledger: Ledger) -> None:
    assert ledger.verify() == 11
    assert [decision.number for decision in ledger.decisions("both")] == [8]


@pytest.mark.parametrize("forgery", FORGERIES)
def test_an_entry_that_breaks_a_rule_of_decisions_is_found(ledger: Ledger, forgery: str) -> None:
    write, says = FORGERIES[forgery]
    write(ledger)
    with ledger_refuses("ledger_altered", match=f"entry 12.*{says}"):
        Ledger.open(ledger.url, ledger.id)


def test_a_charge_by_a_decision_in_force_would_be_taken(ledger: Ledger) -> None:
    charged(ledger, allowed=[3])
    assert Ledger.open(ledger.url, ledger.id).verify() == 12


def test_what_is_allowed_for_all_accounts_counts_beside_a_source_and_not_alone(ledger: Ledger) -> None:
    ledger.allow(EVERYWHERE, {"version": {"name": "duckdb=2.1"}}, ANN, "tested here")
    ledger.countersign(12, BEN)
    charged(ledger, allowed=[3, 12])
    assert Ledger.open(ledger.url, ledger.id).verify() == 14
    with ledger_refuses("not_allowed", match=r"DuckDB 2\.2 .*--engine duckdb=2\.2"):
        ledger.check(replace(week(16), source=ADMISSIONS, version="duckdb=2.2"))
    assert ledger.charge(replace(week(16), source=ADMISSIONS, version="duckdb=2.1")).allowed == (3, 12)
    key = {"release": "weekly", "period": "2026-03-23", "revision": 1}
    forge(ledger, "charged", "health", {**PAID, "allowed": [12]}, **key)
    with ledger_refuses("ledger_altered", match=r"entry 16.*without a decision"):
        Ledger.open(ledger.url, ledger.id)


@pytest.mark.parametrize(
    ("account", "what"),
    [
        ("health", {"version": {"name": "duckdb=2.1"}}),
        ("health", {"clock": {"name": "2026-11-24"}}),
        (EVERYWHERE, {"version": {"name": "duckdb=newest"}}),
        (EVERYWHERE, {"clock": {"name": "tomorrow"}}),
        (EVERYWHERE, {"clock": {"name": "2026-11-24"}, "version": {"name": "duckdb=2.1"}}),
    ],
)
def test_a_decision_for_all_accounts_has_one_form(ledger: Ledger, account: str, what: dict[str, Any]) -> None:
    forge(ledger, "allowed", account, {**what, "reason": "mine"}, ANN)
    with ledger_refuses("ledger_altered", match=r"entry 12.*cannot be read"):
        Ledger.open(ledger.url, ledger.id)


@pytest.mark.parametrize("signer", [None, EVE], ids=["unsigned", "by another key"])
def test_the_first_key_of_an_old_ledger_is_signed_by_itself(path: Path, signer: Operator | None) -> None:
    old = Ledger.create(url_of(path))
    forge(old, "keyed", EVERYWHERE, {"operator": ANN.facts()}, signer)
    with ledger_refuses("ledger_altered", match="signature is missing or false"):
        Ledger.open(url_of(path), old.id)


def test_an_old_ledger_holds_no_unsigned_allowance(path: Path) -> None:
    old = Ledger.create(url_of(path))
    old.open_account(HEALTH)
    forge(old, "allowed", "health", {"source": ADMISSIONS.facts(), "reason": ""})
    with ledger_refuses("ledger_altered", match="signature"):
        Ledger.open(url_of(path), old.id)
