"""What is said about a charge after it, and what it forbids: in whatever order two of them come, one is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from error_codes import coded, ledger_refuses
from ledger_scenario import WEEKLY, ledger, path, url, url_of

from dphist_pipeline.ledger.books import Books
from dphist_pipeline.ledger.errors import LedgerError
from dphist_pipeline.ledger.ledger import Charge, Ledger
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.due import unpublished_charges

__all__ = ["ledger", "path", "url"]


@pytest.fixture
def charge(ledger: Ledger) -> Charge:
    return ledger.charge(replace(WEEKLY, held=True))


def test_a_charge_says_for_good_that_it_is_held(ledger: Ledger, charge: Charge) -> None:
    assert charge.held and ledger.charge(WEEKLY) == charge
    assert not ledger.charge(replace(WEEKLY, revision=2, reason="late records")).held
    assert [made.held for made in ledger.charges("weekly", "2026-03-02")] == [True, False]
    assert "held" not in ledger.entries()[-1].facts
    assert ledger.verify() == 4


def test_what_is_neither_published_nor_rejected_is_unpublished(ledger: Ledger, charge: Charge) -> None:
    made = [charge, *(ledger.charge(replace(WEEKLY, period=f"2026-03-{day}")) for day in (30, 23, 16))]
    ledger.charge(replace(WEEKLY, release="monthly"))
    assert unpublished_charges(ledger, "weekly") == [made[0], *made[:0:-1]]
    ledger.note(made[1], "rejected", "wrong codes")
    ledger.record_published(made[2], "digest")
    ledger.note(made[3], "approved", "Ada")
    assert unpublished_charges(ledger, "weekly") == [made[0], made[3]]
    assert [(key, note.text) for key, note in Statement.charges_with_note(ledger, "rejected")] == [
        (("weekly", "2026-03-30", 1), "wrong codes")
    ]


def test_what_is_rejected_is_neither_approved_nor_published(ledger: Ledger, charge: Charge) -> None:
    ledger.note(charge, "approved", "Ada")
    ledger.note(charge, "rejected", "wrong codes")
    ledger.note(charge, "rejected", "wrong codes")
    before = ledger.entries()
    with ledger_refuses("noted_otherwise"):
        ledger.note(charge, "rejected", "never mind")
    for refused in (
        lambda: ledger.note(charge, "approved", "Ada"),
        lambda: ledger.note(charge, "withdrawn", "wrong codes"),
        lambda: ledger.record_published(charge, "digest"),
    ):
        with pytest.raises(
            LedgerError,
            check=coded("rejected"),
            match=r"weekly, period 2026-03-02, revision 1 was rejected on .*: wrong codes",
        ):
            refused()
    assert ledger.entries() == before and ledger.verify() == len(before)


def test_what_is_published_is_not_rejected(ledger: Ledger, charge: Charge) -> None:
    with ledger_refuses("reason_missing"):
        ledger.note(charge, "rejected", "")
    with ledger_refuses("reason_missing"):
        ledger.note(charge, "rejected", "\u2800\u115f")
    ledger.record_published(charge, "digest")
    with ledger_refuses("published_already", match="dphist withdraw weekly 2026-03-02"):
        ledger.note(charge, "rejected", "wrong codes")
    assert ledger.verify() == 4


def test_entries_of_pages_that_earlier_versions_made_are_read(ledger: Ledger, charge: Charge) -> None:
    with pytest.raises(ValueError, match="not published"):
        ledger._enter_about(charge, "rendered", {"digest": "pages"})
    ledger.record_published(charge, "digest")
    for digest in ("pages", "pages", "later pages", "pages"):
        ledger._enter_about(charge, "rendered", {"digest": digest})
    assert ledger.verify() == 6 and len(Ledger.open(ledger.url, ledger.id).entries()) == 6


@pytest.mark.parametrize(("kind", "said"), [("published", "digest of the values"), ("rendered", "digest of the pages")])
def test_a_digest_that_is_none_is_called_what_it_is_of(ledger: Ledger, charge: Charge, kind: str, said: str) -> None:
    with ledger_refuses("not_recordable", match=said):
        ledger.books().judge_publication(charge, kind, {"digest": ""})


@pytest.mark.parametrize("order", [("published", "rejected"), ("rejected", "published")])
def test_a_ledger_that_says_both_is_found_altered(
    ledger: Ledger, charge: Charge, order: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger_refuses("ledger_altered") as found:
        with monkeypatch.context() as careless:
            careless.setattr(Books, "judge_note", lambda *_: False)
            careless.setattr(Books, "judge_publication", lambda *_: False)
            for kind in order:
                if kind == "published":
                    ledger.record_published(charge, "digest")
                else:
                    ledger.note(charge, "rejected", "wrong codes")
        Ledger.open(ledger.url, ledger.id)
    # A server refuses the entry itself.
    assert vars(found.value).get("number") == (5 if ledger.url.drivername == "sqlite" else None)


def test_a_statement_says_what_became_of_every_charge(ledger: Ledger, charge: Charge) -> None:
    def states() -> list[str]:
        statement = Statement.of(ledger, charge.account)
        return [statement.states[made.number] for made in statement.charges]

    assert states() == ["waits"]
    ledger.note(charge, "approved", "Ada")
    assert states() == ["approved"]
    ledger.record_published(charge, "digest")
    assert states() == ["published"]
    ledger.note(charge, "withdrawn", "wrong codes")
    assert states() == ["withdrawn"]
    said = Statement.of(ledger, charge.account).notes[charge.number]
    assert [(note.kind, note.text) for note in said] == [("approved", "Ada"), ("withdrawn", "wrong codes")]


def test_a_statement_says_what_was_rejected_and_what_is_not_out_yet(ledger: Ledger, charge: Charge) -> None:
    ledger.note(charge, "rejected", "wrong codes")
    later = ledger.charge(replace(WEEKLY, period="2026-03-09", held=False))
    assert Statement.of(ledger, charge.account).states == {charge.number: "rejected", later.number: "unpublished"}
