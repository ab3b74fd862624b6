"""What attackers who did not build it found: each of these once worked."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from error_codes import ledger_refuses

from dphist_pipeline.base.canonical_json import canonical_json
from dphist_pipeline.base.reading import Reading
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.entries import Account, Entry, seal
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing import _engine_choice as engines
from dphist_pipeline.releasing.run import Run
from dphist_pipeline.releasing.spec_check import load_spec
from dphist_pipeline.releasing.store import Store
from dphist_pipeline.releasing.store_decisions import files_of
from tests.office import Office

pytestmark = pytest.mark.draws_alike

HEALTH = Account("health", "patient_id", "add_remove", Fraction(26), None, "store-1")
SECRET = Reading("secret/*.parquet", "/office/secret", "parquet", unit=("patient_id",))
ANN, BEN, CAROL = (Operator(name, Ed25519PrivateKey.generate()) for name in ("ann", "ben", "carol"))


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    made = Office(tmp_path / "office").opened()
    monkeypatch.chdir(made.folder)
    return made


def _planted(path: Path, kind: str, facts: dict[str, object]) -> None:
    """Adds an entry by hand, as whoever can write the ledger's file, but not sign, would."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        last = Entry(*connection.execute("SELECT * FROM ledger_entry ORDER BY number DESC LIMIT 1").fetchone())
        body = canonical_json({**facts, "year": last.facts["year"]})
        account = "*" if kind == "adopted" else "health"
        bare = Entry(last.number + 1, kind, account, None, None, None, body, last.hash, last.made_at, "")
        values = tuple(vars(replace(bare, hash=seal(bare))).values())
        connection.execute(f"INSERT INTO ledger_entry VALUES ({', '.join('?' * len(values))})", values)


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("allowed", {"source": SECRET.facts(), "reason": ""}),
        ("adopted", {"generation": 2, "reason": "mine", "carried": [], "elsewhere": {}}),
    ],
)
def test_an_unsigned_decision_is_planted_in_the_ledger_of_an_earlier_version(
    tmp_path: Path, kind: str, facts: dict[str, object]
) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
    old = Ledger.create(url)
    old.open_account(HEALTH)
    with ledger_refuses("not_signed"):
        old.allow("health", {"source": SECRET.facts()}, None)
    _planted(tmp_path / "ledger.sqlite", kind, facts)
    with ledger_refuses("ledger_altered", match="without the signature"):
        Ledger.open(url, old.id)


def test_one_operator_adds_a_second_key_of_his_own_and_signs_twice(tmp_path: Path) -> None:
    ledger = Ledger.create(f"sqlite:///{tmp_path / 'ledger.sqlite'}", ANN)
    ledger.open_account(replace(HEALTH, signatures=2), ANN)
    ledger.add_key("ben", BEN.public, ANN)  # nobody else could sign that
    ledger.add_key("carol", CAROL.public, ANN)
    (number,) = ledger.books().permissions.waiting_of(EVERYWHERE)
    assert CAROL.public not in ledger.operators()
    with ledger_refuses("signed_already"):
        ledger.countersign(number, ANN)
    ledger.countersign(number, BEN)
    assert ledger.operators()[CAROL.public] == "carol" and ledger.books().permissions.waiting_of(EVERYWHERE) == []
    assert (
        dict(Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite'}", ledger.id).books().permissions.operators)
        == ledger.operators()
    )


def test_a_source_that_waits_for_a_signature_becomes_that_of_two_accounts(tmp_path: Path) -> None:
    ledger = Ledger.create(f"sqlite:///{tmp_path / 'ledger.sqlite'}", ANN)
    ledger.add_key("ben", BEN.public, ANN)
    ledger.open_account(replace(HEALTH, signatures=2), ANN)
    ledger.open_account(replace(HEALTH, name="other"), ANN)
    assert ledger.allow("health", {"source": SECRET.facts()}, ANN) is None
    with ledger_refuses("source_of_another"):
        ledger.allow("other", {"source": SECRET.facts()}, ANN)
    ledger.countersign(Statement.of(ledger, "health").waiting[0], BEN)
    with ledger_refuses("source_of_another"):
        ledger.allow("other", {"source": SECRET.facts()}, ANN)
    assert ledger.allow("other", {"source": SECRET.facts()}, ANN, also_of=["health"]) is None, "one signature"


@pytest.mark.slow
def test_a_decision_is_taken_back_between_counting_and_drawing(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    with office.witnessed():
        store = Store.open(office.store)
        spec = load_spec(office.folder / "spec.yaml", store)

        first = Run.begin(spec, store, None, datetime.now(UTC))
        first.ledger.charge(first.request)  # and was killed
        counted = Run.count

        def taken_back(*given: Any) -> Path:
            cube = counted(*given)
            (decision,) = store.ledger().decisions("health")
            store.ledger().disallow(decision.number, "a court says so", Operator.load())
            return cube

        monkeypatch.setattr(Run, "count", taken_back)
        with ledger_refuses("not_allowed"):
            Run.begin(spec, store, None, datetime.now(UTC)).draw()
        assert not store.journal(first.key).exists()


def test_what_was_disallowed_since_the_charge_is_not_read(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    with office.witnessed():
        store = Store.open(office.store)
        spec = load_spec(office.folder / "spec.yaml", store)
        killed = Run.begin(spec, store, None, datetime.now(UTC))
        killed.ledger.charge(killed.request)
        (decision,) = store.ledger().decisions("health")
        store.ledger().disallow(decision.number, "a court says so", Operator.load())
        monkeypatch.setattr(engines, "count", lambda *given: pytest.fail("records were read"))
        with ledger_refuses("not_allowed"):
            Run.begin(spec, store, None, datetime.now(UTC)).draw()


def test_records_that_the_environment_names_are_declared_a_code_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "adm.csv").write_text("patient\n")
    reading = Reading("data/{{ env.DPHIST_TEST }}.csv", str(tmp_path / "data"), "csv")
    monkeypatch.setenv("DPHIST_TEST", "adm")
    assert files_of(reading) == [str(tmp_path / "data" / "adm.csv")]
    monkeypatch.setenv("DPHIST_TEST", "none")
    assert files_of(reading) == []
    monkeypatch.delenv("DPHIST_TEST")
    assert files_of(reading) == [str(tmp_path / "data" / "adm.csv")]


def test_a_witness_inside_the_store_is_copied_with_it(office: Office) -> None:
    inside = office.store / "witness.sqlite"
    shutil.copy(office.witness, inside)
    with mock.patch.object(office, "witness", inside):
        ran = office.release()
    assert ran.code == 1 and "lies inside the store" in ran.err


@pytest.mark.slow
def test_a_ledger_put_back_below_its_publications_is_adopted_and_draws_nothing_again(office: Office) -> None:
    backup = (office.store / "ledger.sqlite").read_bytes()
    office.released()
    (office.store / "ledger.sqlite").write_bytes(backup)
    assert "dphist store adopt --reason TEXT" in office.release().err
    ran = office.run("store", "adopt", "--reason", "the disk died", "--store", office.store, "--json")
    assert ran.code == 0 and ran.json["carried"] == ["wards, period all, revision 1"], ran.err
    assert "never drawn again" in office.release().err


@pytest.mark.slow
def test_a_ledger_put_back_without_its_witness_is_not_adopted_below_its_publications(office: Office) -> None:
    backup = (office.store / "ledger.sqlite").read_bytes()
    office.released()
    (office.store / "ledger.sqlite").write_bytes(backup)
    office.witness.unlink()
    ran = office.run("store", "adopt", "--reason", "x", "--spent-elsewhere", "health=0", "--store", office.store)
    assert ran.code == 1 and "does not hold entry" in ran.err


@pytest.mark.slow
def test_a_copy_that_was_killed_after_its_charge_is_adopted_and_counts_both(office: Office) -> None:
    copy = office.folder / "copy"
    shutil.copytree(office.store, copy)
    with office.witnessed():
        store = Store.open(copy)
        attempt = Run.begin(load_spec(office.folder / "spec.yaml", store), store, None, datetime.now(UTC))
        attempt.ledger.charge(attempt.request)  # and was killed before the witness knew
    office.released()
    ran = office.run("store", "adopt", "--reason", "the original is lost", "--store", copy, "--json")
    assert ran.code == 0 and ran.json["carried"] == ["wards, period all, revision 1"], ran.err
    with office.witnessed():
        spent = Statement.of(Store.open(copy).ledger(), "health").spent
    assert spent == 2 * attempt.spec.epsilon, "that of the copy, and that of the original"
    ran = office.run("release", office.folder / "spec.yaml", "--store", copy)
    assert ran.code == 1 and not (copy / "public" / "wards").exists()


@pytest.mark.parametrize("stated", [["health=-1"], ["health=1e-50"], ["health=1", "health=0"], ["health=1e55"]])
def test_what_was_spent_elsewhere_is_no_amount(office: Office, stated: list[str]) -> None:
    options = [word for each in stated for word in ("--spent-elsewhere", each)]
    before = office.entries()
    ran = office.run("store", "adopt", "--reason", "x", *options, "--store", office.store)
    assert ran.code != 0 and "unexpected" not in ran.err and office.entries() == before


def test_a_command_that_allows_another_folder_than_the_spec_names_says_so(office: Office) -> None:
    elsewhere = office.folder / "elsewhere"
    (elsewhere / "data").mkdir(parents=True)
    (elsewhere / "pyproject.toml").touch()
    shutil.copy(office.folder / "spec.yaml", elsewhere / "spec.yaml")
    ran = office.run("release", elsewhere / "spec.yaml", "--store", office.store)
    assert "in another folder" in ran.err and "run in the project of the spec" in ran.err
    assert str(office.folder) not in ran.err


def test_a_decision_taken_back_by_one_of_two_is_not_said_to_be(office: Office) -> None:
    with office.witnessed():
        ledger = Store.open(office.store).ledger()
        ledger.add_key("ben", BEN.public, Operator.load())
        ledger.open_account(replace(HEALTH, name="twice", store_id=Store.open(office.store).id, signatures=2), BEN)
        ledger.allow("twice", {"query": {"sha256": "0" * 64, "name": "q.sql"}}, BEN, "checked")
        (number,) = Statement.of(ledger, "twice").waiting
        ledger.countersign(number, Operator.load())
    ran = office.run("ledger", "disallow", str(number), "--reason", "x", "--store", office.store)
    assert ran.code == 0 and "not in force yet" in ran.out and "No longer" not in ran.out


@pytest.mark.slow
@pytest.mark.parametrize("what", ["disallow", "raise", "allow"])
def test_a_decision_is_not_undone_by_putting_the_ledger_back_to_before_it(office: Office, what: str) -> None:
    office.released()
    before = (office.store / "ledger.sqlite").read_bytes()
    words = {
        "disallow": ["disallow", "3", "--reason", "wrong folder"],
        "raise": ["raise", "health", "--total", "11", "--reason", "more"],
        "allow": ["allow", "health", "--source", "data/more.parquet"],
    }
    assert office.run("ledger", *words[what], "--store", office.store).code == 0
    (office.store / "ledger.sqlite").write_bytes(before)
    office.write_attributes_alone(release="again")
    refused = office.release()
    assert refused.code == 1 and "put back from a backup" in refused.err
    assert (office.store / "ledger.sqlite").read_bytes() == before, "it charged before it was refused"
    assert office.run("ledger", "verify", "--store", office.store).code == 1
    assert office.run("ledger", "raise", "health", "--total", "12", "--reason", "x", "--store", office.store).code == 1
    assert not office.published("again").exists()
