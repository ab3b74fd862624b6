"""A key that takes another's place, by the command: the old one decides nothing more, and releases go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from office import Office

from dphist_pipeline.ledger.signing import Operator, key_path

RAISE = ("ledger", "raise", "health", "--total")


@pytest.mark.slow
def test_an_operator_decides_with_a_new_key_and_the_old_one_is_refused(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "keys" / "2027.key"
    store = ("--store", office.store)
    office.opened().released()
    rotate = ("ledger", "rotate-key", "--to", new, "--reason", "yearly", *store)
    done = office.run(*rotate)
    assert done.code == 0 and f"DPHIST_OPERATOR_KEY={new}" in done.out, done.err
    refused = office.run(*RAISE, "20", "--reason", "more", *store)
    assert refused.code == 1 and "not one of this ledger's" in refused.err
    entries = office.entries()
    assert office.run(*rotate).code == 0 and office.entries() == entries, "the same again changes nothing"
    monkeypatch.setenv("DPHIST_OPERATOR_KEY", str(new))
    assert office.run(*rotate).code == 2, "a key does not take its own place"
    assert office.run(*RAISE, "20", "--reason", "more", *store).code == 0
    assert "Already published" in office.released().out
    office.write_spec(release="later")
    office.released()
    assert office.run("ledger", "verify", *store).code == 0


def test_an_operator_who_leaves_hands_over_to_the_next(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, next_key = ("--store", office.opened().store), tmp_path / "next.key"
    public = Operator.load_or_make(next_key).public
    handed = office.run("ledger", "rotate-key", "--key", public, "--name", "Eve", "--reason", "retires", *store)
    assert handed.code == 0 and "Decides from now on: Eve" in handed.out, handed.err
    monkeypatch.setenv("DPHIST_OPERATOR_KEY", str(next_key))
    assert office.run(*RAISE, "20", "--reason", "more", *store).code == 0


def test_a_person_who_takes_a_key_over_counts_as_the_operator_who_gave_it(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, deputy, heir = ("--store", office.opened().store), tmp_path / "deputy.key", tmp_path / "heir.key"
    opens = ("--privacy-unit", "patient", "--neighbours", "add_remove", "--total", "4", "--signatures", "2")
    assert office.run("ledger", "open", "twice", *opens, *store).code == 0
    added = Operator.load_or_make(deputy).public
    assert office.run("ledger", "add-key", added, "--name", "Deputy", *store).code == 0
    assert office.run("ledger", "raise", "twice", "--total", "5", "--reason", "more", *store).code == 0
    number = len(office.entries())
    key = Operator.load_or_make(heir).public
    handed = office.run("ledger", "rotate-key", "--key", key, "--name", "Eve", "--reason", "retires", *store)
    assert handed.code == 0 and "Eve signs in your place: both keys count as one operator" in handed.out
    monkeypatch.setenv("DPHIST_OPERATOR_KEY", str(heir))
    refused = office.run("ledger", "sign", str(number), *store)
    assert refused.code == 1 and "the second signature is another operator's" in refused.err
    monkeypatch.setenv("DPHIST_OPERATOR_KEY", str(deputy))
    assert office.run("ledger", "sign", str(number), *store).code == 0


@pytest.mark.parametrize("given", ["nothing", "both", "no name", "in the store", "the old one"])
def test_a_wrong_new_key_is_refused_before_anything_is_made(office: Office, tmp_path: Path, given: str) -> None:
    office.opened()
    new, key = tmp_path / "new.key", "ab" * 32
    words: dict[str, list[str | Path]] = {
        "nothing": [],
        "both": ["--to", new, "--key", key, "--name", "Eve"],
        "no name": ["--key", key],
        "in the store": ["--to", office.store / "new.key"],
        "the old one": ["--to", key_path()],
    }
    before, kept = office.state(), key_path().read_bytes()
    done = office.run("ledger", "rotate-key", *words[given], "--reason", "yearly", "--store", office.store)
    assert done.code == 2 and office.state() == before and not new.exists() and key_path().read_bytes() == kept
