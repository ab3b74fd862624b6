"""Decisions that somebody would make who holds no operator's key, or only one of two."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from attempts import Attempt, check_nobody_reads
from office import OPEN_HEALTH, Office
from refusing import check_changes_nothing, check_refused

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.ledger.entries import Entry, exact_text, seal
from dphist_pipeline.ledger.signing import Operator

pytestmark = pytest.mark.draws_alike

Patch = pytest.MonkeyPatch
FOREIGN = "is not one of this ledger's"


@pytest.fixture
def office(office: Office) -> Office:
    office.opened()
    (office.folder / "codes").mkdir()
    (office.folder / "units.sql").write_text("SELECT ward AS patient, age FROM source")
    return office


DECISIONS = [
    ["ledger", *[word.replace("health", "own") for word in OPEN_HEALTH]],
    ["ledger", *[word.replace("health", "own") for word in OPEN_HEALTH], "--source", "private/*.parquet"],
    ["ledger", "allow", "health", "--source", "private/*.parquet"],
    ["ledger", "allow", "health", "--source", "data/admissions.parquet", "--unit-normalise", "lower"],
    ["ledger", "allow", "health", "--query", "units.sql", "--reason", "mine"],
    ["ledger", "allow", "--code-lists", "codes"],
    ["ledger", "disallow", "3", "--reason", "mine"],
    ["ledger", "raise", "health", "--total", "99", "--reason", "mine"],
    ["ledger", "add-key", "KEY", "--name", "eve"],
    ["ledger", "sign", "3"],
    ["store", "adopt", "--reason", "mine"],
]


def own_key(office: Office, monkeypatch: Patch, name: str = "eve") -> str:
    """Another operator's key, which is in use from here on; its public half."""
    monkeypatch.setenv("DPHIST_OPERATOR_KEY", str(office.folder.with_name(f"{name}.key")))
    ran = office.run("ledger", "key")
    assert ran.code == 0, ran.err
    return ran.out.split()[0]


@pytest.mark.parametrize("words", DECISIONS, ids=lambda words: " ".join(words[:3]))
def test_a_key_of_ones_own_decides_nothing(office: Office, monkeypatch: Patch, words: list[str]) -> None:
    public = own_key(office, monkeypatch)
    asked = [public if word == "KEY" else word for word in words]
    says = "no decision that this is about" if "sign" in words else FOREIGN
    check_changes_nothing(office, lambda: office.run(*asked), says)


@pytest.mark.slow
def test_without_any_key_releases_run_and_nothing_is_decided(
    office: Office, monkeypatch: Patch, tmp_path: Path
) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "nobody"))
    monkeypatch.delenv("DPHIST_OPERATOR_KEY", raising=False)
    before = office.entries()
    for words in DECISIONS[:8]:
        check_refused(office.run(*words), "operator's key", "is not there", "Nothing was decided")
    assert office.entries() == before
    attempt = Attempt(office).write()
    success, told = attempt.by_dagster()
    assert success, told
    assert attempt.write(release="others").by_command().code == 0
    assert not (tmp_path / "nobody").exists()


def inserted(office: Office, kind: str, account: str, facts: dict[str, object], key: Path | None = None) -> None:
    """Writes an entry past our code, rightly chained, and signed by a key that the ledger does not hold."""
    with closing(sqlite3.connect(office.store / "ledger.sqlite")) as connection, connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(ledger_entry)")]
        last = Entry(*connection.execute("SELECT * FROM ledger_entry ORDER BY number DESC LIMIT 1").fetchone())
        made = replace(
            last,
            **{"number": last.number + 1, "previous_hash": last.hash, "kind": kind, "account": account, "hash": ""},
            **{"release": None, "period": None, "revision": None},
            body=canonical_json({**facts, "year": last.facts["year"]}),
        )
        if key is not None:
            made = Operator.load(key).with_signature(made)
        made = replace(made, hash=seal(made))
        marks = ", ".join("?" for _ in columns)
        connection.execute(f"INSERT INTO ledger_entry VALUES ({marks})", [vars(made)[name] for name in columns])


RAISED = ("raised", "health", {"total": exact_text(Fraction(99)), "reason": "mine"})
LISTS = ("allowed", "*", {"code_lists": {"name": "data", "folder": "/"}, "reason": ""})


@pytest.mark.parametrize("entry", [RAISED, LISTS], ids=["raised", "code lists"])
@pytest.mark.parametrize("signed", [False, True])
def test_a_decision_that_is_inserted_by_hand_stops_everything(
    office: Office, monkeypatch: Patch, entry: tuple[str, str, dict[str, object]], signed: bool
) -> None:
    own_key(office, monkeypatch)
    inserted(office, *entry, key=office.folder.with_name("eve.key") if signed else None)
    monkeypatch.delenv("DPHIST_OPERATOR_KEY")
    for words in (["ledger", "show"], ["ledger", "verify"], ["ledger", "raise", "health", "--total", "20"]):
        more = ["--reason", "more"] if "raise" in words else []
        check_refused(office.run(*words, *more), "altered or damaged", "signature")
    check_nobody_reads(Attempt(office).write(), "altered or damaged", "signature", dagster=signed)


def test_a_key_that_is_inserted_by_hand_is_no_operators(office: Office, monkeypatch: Patch) -> None:
    public = own_key(office, monkeypatch)
    facts = {"operator": {"name": "eve", "key": public}}
    inserted(office, "keyed", "*", facts, key=office.folder.with_name("eve.key"))
    check_refused(office.run("ledger", "show"), "altered or damaged", "signature")
    check_refused(office.release(), "altered or damaged", "signature")


def test_a_ledger_that_is_swapped_for_ones_own_is_another_ledger(office: Office, monkeypatch: Patch) -> None:
    own_key(office, monkeypatch)
    own = Office(office.folder.with_name("own"))
    assert own.run("init", "--store", own.store).code == 0
    shutil.copy(own.store / "ledger.sqlite", office.store / "ledger.sqlite")
    check_refused(office.release(), "is another one")


# Two signatures


def two(office: Office, monkeypatch: Patch) -> str:
    """An account `two` that asks for two signatures, with ben as second operator; ben's public key."""
    public = own_key(office, monkeypatch, "ben")
    monkeypatch.delenv("DPHIST_OPERATOR_KEY")
    for words in (
        ["add-key", public, "--name", "ben"],
        ["open", "two", *OPEN_HEALTH[2:], "--signatures", "2"],
    ):
        ran = office.run("ledger", *words)
        assert ran.code == 0, ran.err
    return public


@pytest.mark.slow
def test_one_of_two_operators_alone_allows_and_raises_nothing(office: Office, monkeypatch: Patch) -> None:
    two(office, monkeypatch)
    (office.folder / "wages").mkdir()
    office.write_records(name="wages/wages.parquet")
    ran = office.run("ledger", "allow", "two", "--source", "wages/wages.parquet")
    assert ran.code == 0 and "another operator must sign it" in ran.out
    attempt = Attempt(office).write(account="two", source="wages/wages.parquet")
    check_nobody_reads(attempt, "is not allowed for account 'two'", dagster=False)
    number = str(len(office.entries()))
    check_changes_nothing(office, lambda: office.run("ledger", "sign", number), "was signed by", "another operator's")
    own_key(office, monkeypatch)
    check_changes_nothing(office, lambda: office.run("ledger", "sign", number), FOREIGN)
    own_key(office, monkeypatch, "ben")
    assert office.run("ledger", "sign", number).code == 0
    ran = attempt.by_command()
    assert ran.code == 0, ran.err
    audit = json.loads((office.published() / "audit.json").read_bytes())
    assert [len(decision["by"]) for decision in audit["allowed"]] == [2]


@pytest.mark.slow
def test_one_operator_opens_no_other_account_on_the_records_of_two(office: Office, monkeypatch: Patch) -> None:
    two(office, monkeypatch)
    (office.folder / "wages").mkdir()
    office.write_records(name="wages/wages.parquet")
    assert office.run("ledger", "allow", "two", "--source", "wages/wages.parquet").code == 0
    waits = str(len(office.entries()))
    terms = ("--privacy-unit", "patient", "--neighbours", "add_remove", "--total", "1000", "--source")
    for files in ("wages/wages.parquet", "wages/*.parquet"):
        refused = ("ledger", "open", "rich", *terms, files)
        check_changes_nothing(office, lambda words=refused: office.run(*words), "--also-of two")
    ran = office.run("ledger", "open", "rich", *terms, "wages/*.parquet", "--also-of", "two")
    assert ran.code == 0 and "to be signed" in ran.out, ran.err
    own_key(office, monkeypatch, "ben")
    assert office.run("ledger", "sign", waits).code == 0
    attempt = Attempt(office).write(account="rich", source="wages/*.parquet", epsilon=40)
    check_nobody_reads(attempt, "nothing is allowed yet", dagster=False)


@pytest.mark.slow
def test_an_operator_does_not_give_the_second_signature_by_a_second_key_of_ones_own(
    office: Office, monkeypatch: Patch
) -> None:
    two(office, monkeypatch)
    puppet = own_key(office, monkeypatch, "puppet")
    monkeypatch.delenv("DPHIST_OPERATOR_KEY")
    office.run("ledger", "add-key", puppet, "--name", "puppet")
    keyed = str(len(office.entries()))
    office.run("ledger", "raise", "two", "--total", "40", "--reason", "more")
    raised = str(len(office.entries()))
    own_key(office, monkeypatch, "puppet")
    check_refused(office.run("ledger", "sign", keyed), FOREIGN)
    check_refused(office.run("ledger", "sign", raised), FOREIGN)
    (told,) = office.run("ledger", "show", "two", "--json").json
    assert told["total"] == "10"
    own_key(office, monkeypatch, "ben")
    assert office.run("ledger", "sign", keyed).code == 0, "with ben's signature, the key is an operator's"
    own_key(office, monkeypatch, "puppet")
    assert office.run("ledger", "sign", raised).code == 0
