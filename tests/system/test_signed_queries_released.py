"""Queries: nothing is drawn by one before its text is signed, and what was drawn before needs no signature."""

from __future__ import annotations

import hashlib
import json
import shlex
from typing import Any

import pytest
import typer
from office import Office

from dphist_pipeline.cli.operate import ledger as ledger_commands
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.releasing import _plans as plans
from dphist_pipeline.releasing import publisher
from dphist_pipeline.releasing.sanitizing import MechanismRun
from dphist_pipeline.releasing.store import Store

pytestmark = pytest.mark.stand_in("catalogue", "pictures", why="who decides about a query, not how a release looks")

CLEANED = "SELECT patient, CAST(age AS DOUBLE) AS age, ward FROM source"
ALLOW = ("ledger", "allow", "health", "--query", "q.sql", "--reason", "a row stays a row of its patient")
NEEDED = "Query q.sql needs a decision for account 'health', as its text stands now"


@pytest.fixture
def asking(office: Office) -> Office:
    """An office whose spec has a query that nobody signed."""
    office.opened()
    (office.folder / "q.sql").write_text(CLEANED)
    office.write_attributes_alone(source_sql="q.sql")
    return office


class Killed(BaseException):
    """The end of a process, wherever it is."""


def killed_in(office: Office, patch: pytest.MonkeyPatch, where: Any, name: str) -> None:
    """A release by version 0.2, which judged this query row by row; it is killed there."""

    def kill(*given: object, **named: object) -> None:
        raise Killed

    with patch.context() as earlier:
        earlier.setattr(plans, "_query_of", lambda spec: {})
        earlier.setattr(where, name, kill)
        with pytest.raises(Killed):
            office.release()


def charges(office: Office) -> int:
    return sum(entry[1] == "charged" for entry in office.entries())


def test_a_missing_reason_is_told_before_the_text_is_shown(asking: Office) -> None:
    ran = asking.run(*ALLOW[: ALLOW.index("--reason")])
    assert ran.code == 1 and "--reason" in ran.err and "SELECT" not in ran.out


def test_nothing_is_read_or_charged_before_the_text_is_signed(asking: Office) -> None:
    before = asking.state()
    ran = asking.release()
    assert ran.code == 1 and NEEDED in ran.err and asking.state() == before
    (command,) = [
        line for line in ran.err.replace("\n", " ").split(": ") if "ledger allow health --query q.sql" in line
    ]
    assert shlex.split(command)[:5] == ["dphist", *ALLOW[:4]]
    assert asking.run(*ALLOW).code == 0
    asking.released()
    assert charges(asking) == 1


def test_the_text_is_shown_before_it_is_signed_with_no_sign_hidden(asking: Office) -> None:
    text = "SELECT patient, age, ward FROM source -- \x1b[2K\u202e[red]all[/]\n"
    (asking.folder / "q.sql").write_text(text, encoding="utf-8")
    ran = asking.run(*ALLOW)
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    assert ran.code == 0 and "SELECT patient, age, ward FROM source" in ran.out and digest in ran.out
    assert "\x1b[2K" not in ran.out and "\u202e" not in ran.out and "\\u001b" in ran.out and "[red]all[/]" in ran.out


def test_at_a_terminal_it_is_asked_and_a_digest_signs_that_text_alone(
    asking: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = asking.entries()
    monkeypatch.setattr(ledger_commands, "at_a_terminal", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda *given, **named: False)
    ran = asking.run(*ALLOW)
    digest = hashlib.sha256(CLEANED.encode()).hexdigest()[:32]
    assert ran.code == 1 and f"--yes {digest}" in ran.err.replace("\n", "") and asking.entries() == before
    assert asking.run(*ALLOW, "--yes", digest.replace(digest[0], "0" if digest[0] != "0" else "1")).code == 1
    assert asking.entries() == before
    assert asking.run(*ALLOW, "--yes", digest).code == 0
    (asking.folder / "q.sql").write_text(CLEANED + " ")
    assert asking.run(*ALLOW, "--yes", digest).code == 1


def test_answers_in_the_journal_are_published_without_a_decision(
    asking: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_in(asking, monkeypatch, publisher, "publish")
    (asking.folder / "data/admissions.parquet").unlink()  # whoever runs the query fails now
    asking.released()
    audit = json.loads((asking.published() / "audit.json").read_bytes())
    assert audit["query"]["by_row"] is True and charges(asking) == 1


def test_a_measurement_without_an_answer_needs_the_signature_and_the_same_charge_goes_on(
    asking: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed_in(asking, monkeypatch, MechanismRun, "estimate")
    assert charges(asking) == 1
    ran = asking.release()
    assert ran.code == 1 and NEEDED in ran.err and "goes on" in ran.err.replace("\n", " ")
    assert asking.run(*ALLOW).code == 0
    asking.released()
    audit = json.loads((asking.published() / "audit.json").read_bytes())
    assert audit["query"]["by_row"] is False and charges(asking) == 1
    assert "rests on a query that an operator allowed" in (asking.published() / "card.html").read_text()


def test_a_query_that_was_signed_before_runs_as_it_was_signed_until_it_is_signed_again(asking: Office) -> None:
    asking.write_records({"patient": ["ann", "bob"], "age": ["3", "x"], "ward": ["surgery", "surgery"]})
    sha256 = hashlib.sha256(CLEANED.encode()).hexdigest()
    with asking.witnessed():
        signed = {"query": {"sha256": sha256, "name": "q.sql"}}  # as version 0.2 wrote it
        Store.open(asking.store).ledger().allow("health", signed, Operator.load(), "a row stays a row")
    ran = asking.release()
    assert ran.code == 1 and "on which the allowed query fails" in ran.err and charges(asking) == 0
    assert asking.run(*ALLOW).code == 0
    entry = json.loads(next(text for text in asking.entries()[-1] if '"tries"' in str(text)))
    assert entry["query"] == {"sha256": sha256, "name": "q.sql", "tries": True}
    asking.released()


def test_a_spec_says_at_once_what_its_query_needs(asking: Office) -> None:
    ran = asking.run("check", "spec.yaml")
    assert "ledger allow health --query q.sql" in " ".join((ran.out + ran.err).split())
