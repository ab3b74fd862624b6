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

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.entries import Entry, seal
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.permissions import Permissions
from dphist_pipeline.ledger.signing import Operator

__all__ = ["path", "url"]

ANN, BEN, EVE = (Operator(name, Ed25519PrivateKey.generate()) for name in ("ann", "ben", "eve"))
ADMISSIONS = Reading("data/*.csv", "/office/data", "csv", csv_quote="", unit=("patient_id",))
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
    entry = entry if by is None else by.with_signature(entry)
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


MARKED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a raise that does not say that it waits": ("raised", "both", {"total": "27/1", "reason": "r"}),
    "a raise that need not wait": ("raised", "health", {"total": "27/1", "reason": "r", "waits": True}),
    "a key that does not say that it waits": ("keyed", EVERYWHERE, {"operator": EVE.facts()}),
    "an allowance that does not say": ("allowed", "both", {"engine": {"server": "s:1", "name": "s"}, "reason": ""}),
    "a source that two share": (
        "allowed",
        "health",
        {"source": replace(ADMISSIONS, csv_delimiter=";").facts(), "also_of": ["both"], "reason": ""},
    ),
    "what is for all accounts": ("allowed", EVERYWHERE, {"version": {"name": "duckdb=2.1"}, "reason": "tried"}),
    "a decision that takes back, and does not say": ("disallowed", "both", {"decision": 8, "reason": "r"}),
    "a key that takes another's place and waits": (
        "rotated",
        EVERYWHERE,
        {"operator": EVE.facts(), "reason": "r", "waits": True},
    ),
    "a second signature that waits": ("countersigned", "both", {"decision": 12, "waits": True}),
    "another word than true": ("raised", "both", {"total": "27/1", "reason": "r", "waits": 1}),
    "said to begin a second time": ("raised", "both", {"total": "27/1", "reason": "r", "waits": True, "stated": True}),
    "a list of what says so itself": ("listed", EVERYWHERE, {"waiting": [12]}),
    "an empty list": ("listed", EVERYWHERE, {"waiting": []}),
}


@pytest.mark.parametrize("forgery", MARKED)
def test_a_decision_that_waits_otherwise_than_the_rules_ask_is_damage(ledger: Ledger, forgery: str) -> None:
    kind, account, facts = MARKED[forgery]
    ledger.raise_total("both", HEALTH.total + 2, "more", ANN)  # entry 12 waits
    assert ledger.entries()[-1].facts["waits"] is True
    forge(ledger, kind, account, facts, BEN if kind == "countersigned" else ANN)
    says = "cannot be read" if facts.get("waits") == 1 and facts["waits"] is not True else "waits? for a second"
    with ledger_refuses("ledger_altered", match=f"entry 13.*{says}"):
        Ledger.open(ledger.url, ledger.id)


def test_a_decision_with_the_marks_that_the_rules_ask_for_would_be_taken(ledger: Ledger) -> None:
    forge(ledger, "raised", "both", {"total": "27/1", "reason": "r", "waits": True}, ANN)
    forge(ledger, "raised", "health", {"total": "27/1", "reason": "r"}, ANN)
    again = Ledger.open(ledger.url, ledger.id)
    assert [account.total for account in again.accounts()] == [27, 26]
    again.countersign(12, BEN)
    assert {account.total for account in Ledger.open(ledger.url, ledger.id).accounts()} == {27}


def test_a_charge_cannot_say_that_it_waits(ledger: Ledger) -> None:
    charged(ledger, allowed=[3], waits=True)
    with ledger_refuses("ledger_altered", match=r"entry 12.*cannot be read"):
        Ledger.open(ledger.url, ledger.id)


@pytest.fixture
def former(url: str, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    """A ledger to which an earlier version added decisions: 6 and 7 wait for a second signature, and do not say so."""
    marks = Permissions.marks
    with monkeypatch.context() as patch:
        patch.setattr(
            Permissions,
            "marks",
            lambda *asked: {name: True for name in marks(*asked) if name == "guards"},
        )
        made = Ledger.create(url, ANN)
        made.open_account(HEALTH, ANN, ADMISSIONS)
        made.add_key("ben", BEN.public, ANN)
        made.open_account(replace(HEALTH, name="both", signatures=2), ANN)
        made.raise_total("both", HEALTH.total + 1, "more", ANN)
        made.allow("both", QUERY, ANN, "joins wards")
    assert not any(entry.facts.keys() & {"waits", "stated"} for entry in made.entries())
    return Ledger.open(made.url, made.id)


def test_what_waited_before_decisions_said_so_waits_on_and_one_entry_lists_it(former: Ledger) -> None:
    before = [entry.body for entry in former.entries()]
    assert {*former.books().permissions.waiting} == {6, 7} and former.account("both").total == HEALTH.total
    former.raise_total(
        "both", HEALTH.total + 3, "yet more", ANN
    )  # as before: until something says so, rules are applied
    assert former.books().permissions.waiting_before_lists() == [6, 7, 8]
    assert former.list_waiting(BEN) == [6, 7, 8] and former.list_waiting(BEN) is None
    again = Ledger.open(former.url, former.id)
    assert {*again.books().permissions.waiting} == {6, 7, 8} and again.books().permissions.waiting_before_lists() == []
    assert [entry.body for entry in again.entries()][: len(before)] == before
    again.countersign(8, BEN)
    again.raise_total("both", HEALTH.total + 9, "and more", ANN)
    again = Ledger.open(former.url, former.id)
    assert again.account("both").total == HEALTH.total + 3 and again.entries()[-1].facts["waits"] is True
    assert again.verify() == 11


@pytest.mark.parametrize("listed", [[6], [6, 7, 5], [7, 6], [6.0, 7], []])
def test_a_list_of_other_decisions_than_those_that_wait_is_damage(former: Ledger, listed: list[float]) -> None:
    forge(former, "listed", EVERYWHERE, {"waiting": listed}, ANN)
    with ledger_refuses("ledger_altered", match=r"entry 8.*other decisions than those that wait"):
        Ledger.open(former.url, former.id)


def test_decisions_say_so_only_once_all_that_waits_is_listed_or_signed(former: Ledger) -> None:
    former.countersign(6, BEN)
    former.countersign(7, BEN)
    former.raise_total("both", HEALTH.total + 5, "more", ANN)
    assert [*former.entries()[-1].facts] == ["reason", "signed", "stated", "total", "waits", "year"]
    assert Ledger.open(former.url, former.id).account("both").total == HEALTH.total + 1


def test_what_says_so_while_something_waits_unlisted_is_damage(former: Ledger) -> None:
    forge(former, "raised", "both", {"total": "29/1", "reason": "r", "waits": True, "stated": True}, ANN)
    with ledger_refuses("ledger_altered", match=r"entry 8.*not the first decision that says"):
        Ledger.open(former.url, former.id)


def test_a_ledger_without_two_signatures_holds_what_earlier_versions_hold(url: str) -> None:
    made = Ledger.create(url, ANN)
    made.open_account(HEALTH, ANN, ADMISSIONS)
    made.add_key("ben", BEN.public, ANN)
    made.raise_total("health", HEALTH.total + 1, "more", ANN)
    assert not any(entry.facts.keys() & {"waits", "stated", "guards"} for entry in made.entries())


def test_a_charge_by_a_decision_in_force_would_be_taken(ledger: Ledger) -> None:
    charged(ledger, allowed=[3])
    assert Ledger.open(ledger.url, ledger.id).verify() == 12


def test_what_is_allowed_for_all_accounts_counts_beside_a_source_and_not_alone(ledger: Ledger) -> None:
    ledger.allow(EVERYWHERE, {"version": {"name": "duckdb=2.1"}}, ANN, "tested here")
    ledger.countersign(12, BEN)
    charged(ledger, allowed=[3, 12])
    assert Ledger.open(ledger.url, ledger.id).verify() == 14
    with ledger_refuses("not_allowed", match=r"DuckDB 2\.2 .*--engine duckdb=2\.2"):
        ledger.check(replace(week(16), source=ADMISSIONS, versions=("duckdb=2.2",)))
    assert ledger.charge(replace(week(16), source=ADMISSIONS, versions=("duckdb=2.1",))).allowed == (3, 12)
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
