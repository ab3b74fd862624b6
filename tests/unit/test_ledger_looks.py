"""A look at the records is a signed entry without a number; after a first charge it needs a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from error_codes import coded, ledger_refuses
from ledger_scenario import WEEKLY, ledger, path, url

from dphist_pipeline.ledger.errors import LedgerError, UnknownAccount
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.publishing.ledger_report import LedgerReport

__all__ = ["ledger", "path", "url"]

LOOK = ("health", "weekly", "2026-03-02", "digest-1")


def test_a_look_is_signed_and_says_who_when_and_by_which_spec(ledger: Ledger) -> None:
    operator = Operator.load_or_make()
    ledger.note_look(*LOOK, "", operator)
    (look,) = ledger.looks("health")
    assert (look.account, look.release, look.period, look.spec) == LOOK
    assert (look.by, look.reason, ledger.looks("other")) == (operator.name, "", [])
    facts = json.loads(ledger.entries()[-1].body)
    assert set(facts) == {"release", "period", "spec", "reason", "signed", "year"}
    ledger.verify()
    again = Ledger.open(ledger.url)
    assert again.looks("health") == [look]


def test_a_look_after_a_first_charge_needs_a_reason(ledger: Ledger) -> None:
    operator = Operator.load_or_make()
    ledger.charge(WEEKLY)
    with ledger_refuses("reason_missing"):
        ledger.note_look(*LOOK, "", operator)
    ledger.note_look(*LOOK, "the hospital sent other dates", operator)
    assert [look.reason for look in ledger.looks("health")] == ["the hospital sent other dates"]
    ledger.verify()


@pytest.mark.parametrize(
    ("look", "refused"),
    [
        (("nobody", *LOOK[1:]), "unknown_account"),
        (("health", "", *LOOK[2:]), "not_recordable"),
        (("health", "weekly", "2026-03-02", "x" * 201), "not_recordable"),
    ],
)
def test_a_look_that_says_too_little_is_refused(ledger: Ledger, look: tuple[str, str, str, str], refused: str) -> None:
    before = ledger.entries()
    with ledger_refuses(refused):
        ledger.note_look(*look, "", Operator.load_or_make())
    assert ledger.entries() == before


def test_whoever_is_no_operator_of_the_ledger_may_not_look(ledger: Ledger, tmp_path: Path) -> None:
    ledger.note_look(*LOOK, "", Operator.load_or_make())
    stranger = Operator.load_or_make(tmp_path / "another")
    before = ledger.entries()
    with ledger_refuses("key_foreign"):
        ledger.note_look(*LOOK, "", stranger)
    assert ledger.entries() == before


def test_the_report_repeats_that_somebody_looked(ledger: Ledger) -> None:
    ledger.note_look(*LOOK, "first day", Operator.load_or_make())
    (account,) = LedgerReport(ledger).facts()["accounts"]
    (told,) = [made for made in account["decisions"] if "looked" in made["did"]]
    assert (told["what"], told["reason"]) == ("release weekly, period 2026-03-02", "first day")
