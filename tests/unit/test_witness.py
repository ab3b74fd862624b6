"""The witness: a store that is copied, or put back from a backup, is noticed before it draws again."""

from __future__ import annotations

import shutil
from fractions import Fraction
from pathlib import Path

import pytest
from error_codes import coded, ledger_refuses
from ledger_scenario import HEALTH, url_of, week
from witness_scenario import (
    ADOPT,
    STORE,
    charge,
    charges,
    hashed,
    held,
    of,
    refusals,
    rows,
    witness,
    witness_url,
)

from dphist_pipeline.ledger.errors import AnswerDrawnElsewhere, LedgerError, WitnessMissing
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.witness import Witness, place_of


def test_a_new_store_stands_at_generation_one_without_charges(witness: Witness) -> None:
    standing = witness.standing(STORE)
    assert standing is not None
    assert (standing.generation, standing.started_by) == (1, "entry-1")
    assert standing.charges == ()


def test_it_gives_back_the_charges_as_they_were_vouched_for(witness: Witness) -> None:
    both = [charge(3), charge(5, epsilon=Fraction("0.1"), year=2027, revision=2)]
    for known in (both[:1], both, both):
        witness.vouch(STORE, of(1, lambda known=known: known))
    standing = witness.standing(STORE)
    assert standing is not None and standing.charges == tuple(both)


def test_stores_do_not_know_of_each_other(witness: Witness) -> None:
    witness.enrol("store-2", "entry-1")
    witness.vouch("store-2", of(1, lambda: [charge(3, hash=hashed("other"))]))
    witness.vouch(STORE, of(1, charges(3)))
    witness.vouch_answer("store-2", hashed("other"), "counts", hashed("a"))
    with pytest.raises(WitnessMissing, match=r"charge d9298a10d1b07358 of store store-1"):
        witness.vouch_answer(STORE, hashed("other"), "counts", hashed("b"))


def test_what_is_not_enrolled_is_unknown(witness: Witness, tmp_path: Path) -> None:
    assert witness.standing("store-2") is None
    assert Witness.at(tmp_path / "none.sqlite").standing(STORE) is None
    assert not (tmp_path / "none.sqlite").exists()


def test_a_check_writes_nothing(witness: Witness) -> None:
    before = rows(witness)
    witness.check(STORE, of(1, charges(3)))
    assert rows(witness) == before


def test_places_are_remembered_and_a_move_is_told_once(witness: Witness, tmp_path: Path) -> None:
    here = place_of(tmp_path)
    assert str(tmp_path) in here and str(tmp_path.stat().st_ino) in here
    assert witness.note_place(STORE, here) is None
    assert witness.note_place(STORE, here) is None
    assert witness.note_place(STORE, "elsewhere") == here
    assert witness.note_place(STORE, "elsewhere") is None
    assert witness.note_place(STORE, here) == "elsewhere"
    assert witness.note_place(STORE, here) is None


def test_a_ledgers_own_charges_are_vouched_for(witness: Witness, tmp_path: Path) -> None:
    ledger = Ledger.create(url_of(tmp_path / "ledger.sqlite"))
    ledger.open_account(HEALTH)
    made = ledger.charge(week(2))
    ledger.record_published(made, "values")
    read = ledger.standing().charges
    assert [(c.number, c.hash, c.release, c.period, c.revision) for c in read] == [
        (made.number, made.hash, "weekly", "2026-03-02", 1)
    ]
    assert read[0].epsilon == Fraction(1, 2) and read[0].year == int(made.charged_at[:4])
    witness.vouch(STORE, of(1, lambda: ledger.standing().charges))
    assert held(witness) == [made.number]


# Refusals


def test_a_store_is_enrolled_once(witness: Witness) -> None:
    for hash_ in ("entry-1", "other"):
        with ledger_refuses("store_enrolled", match=STORE):
            witness.enrol(STORE, hash_)


def test_an_unknown_store_is_refused_with_the_way_out(witness: Witness) -> None:
    for ask in (
        lambda: witness.vouch("store-2", of(1, charges(3))),
        lambda: witness.check("store-2", of(1, charges())),
        lambda: witness.vouch_answer("store-2", hashed(3), "counts", hashed("a")),
        lambda: witness.note_place("store-2", "here"),
    ):
        with pytest.raises(WitnessMissing, match=f"DPHIST_WITNESS.*{ADOPT}") as refusal:
            ask()
        assert "store-2" in str(refusal.value)


def test_a_lost_witness_is_refused_and_none_is_made(witness: Witness) -> None:
    witness._file.discard()
    for refusal in refusals(witness, 1, charges(3)):
        assert isinstance(refusal, WitnessMissing) and ADOPT in str(refusal)
    with pytest.raises(WitnessMissing):
        rows(witness)


@pytest.mark.parametrize("numbers", [(), (3,), (5,), (5, 3), (4, 5), (3, 4, 5)])
def test_a_ledger_without_a_witnessed_charge_is_refused(witness: Witness, numbers: tuple[int, ...]) -> None:
    witness.vouch(STORE, of(1, charges(3, 5)))
    for refusal in refusals(witness, 1, charges(*numbers)):
        assert refusal.code == "ledger_behind_witness"
        missing = 5 if numbers[:1] == (3,) else 3
        assert (refusal.charge.release, refusal.charge.period, refusal.charge.revision) == (
            "weekly",
            f"week-{missing}",
            1,
        )
        assert f"weekly, period week-{missing}, revision 1" in str(refusal) and ADOPT in str(refusal)


def test_the_year_of_a_charge_is_the_ledgers_business_alone(witness: Witness) -> None:
    first = charge(3, year=2027)
    witness.vouch(STORE, of(1, lambda: [first]))
    for ask in (witness.check, witness.vouch):
        ask(STORE, of(1, lambda: [first, charge(4)]))
    assert held(witness) == [3, 4]


# Copies


def test_of_three_copies_with_one_charge_each_for_a_period_one_is_vouched_for(witness: Witness) -> None:
    copies = [lambda name=name: [charge(3, hash=hashed(name))] for name in ("a", "b", "c")]
    witness.vouch(STORE, of(1, copies[1]))
    for copy in (copies[0], copies[2]):
        assert {refusal.code for refusal in refusals(witness, 1, copy)} == {"ledger_behind_witness"}
    witness.vouch(STORE, of(1, copies[1]))


@pytest.mark.parametrize("seconds", [0, 1])
def test_of_three_copied_ledgers_one_draws(
    witness: Witness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """Within one second, copies make charges with one hash, so that only the answers tell them apart."""
    original = Ledger.create(url_of(tmp_path / "0.sqlite"))
    original.open_account(HEALTH)
    drawn, refused = [], []
    for copy in range(1, 4):
        shutil.copy(tmp_path / "0.sqlite", tmp_path / f"{copy}.sqlite")
    for copy in range(1, 4):
        ledger = Ledger.open(url_of(tmp_path / f"{copy}.sqlite"), original.id)
        moment = f"2026-06-30T12:00:{copy * seconds:02}Z"
        monkeypatch.setattr("dphist_pipeline.ledger.opened.utc_now", lambda moment=moment: moment)
        made = ledger.charge(week(2))
        try:
            witness.vouch(STORE, of(1, lambda ledger=ledger: ledger.standing().charges))
            witness.vouch_answer(STORE, made.hash, "counts", hashed(f"drawn by {copy}"))
            drawn.append(copy)
        except LedgerError as refusal:
            refused.append(refusal.code)
    assert drawn == [1]
    assert refused == ["ledger_behind_witness" if seconds else "answer_drawn_elsewhere"] * 2


def test_two_copies_that_draw_one_step_differently_cannot_both_go_on(witness: Witness) -> None:
    witness.vouch(STORE, of(1, charges(3, 4)))
    for _ in range(2):
        witness.vouch_answer(STORE, hashed(3), "counts", hashed("a"))
        with pytest.raises(AnswerDrawnElsewhere, match=r"'counts'.*Nothing of this draw was used.*--revise"):
            witness.vouch_answer(STORE, hashed(3), "counts", hashed("b"))
    witness.vouch_answer(STORE, hashed(3), "structure", hashed("b"))
    witness.vouch_answer(STORE, hashed(4), "counts", hashed("b"))


def test_no_answer_is_vouched_for_before_its_charge(witness: Witness) -> None:
    with pytest.raises(WitnessMissing, match=f"charge {hashed(3)[:16]}"):
        witness.vouch_answer(STORE, hashed(3), "counts", hashed("a"))


# Adoption


def test_an_adopted_copy_goes_on_with_its_own_charges_and_the_others_are_refused(witness: Witness) -> None:
    witness.vouch(STORE, of(1, charges(3, 4)))
    witness.begin_generation(STORE, of(2, charges(3), "entry-9"))
    for refusal in refusals(witness, 1, charges(3, 4)):
        assert refusal.code == "store_superseded" and (refusal.generation, refusal.current) == (1, 2)
        assert "This copy draws no more" in str(refusal)
    again = charge(10, period="week-4")
    witness.vouch(STORE, of(2, lambda: [charge(3), again]))
    assert held(witness) == [3, 10]


def test_the_latest_head_of_each_generation_is_kept_and_superseded_copies_note_none(witness: Witness) -> None:
    assert witness.head(STORE, 1) is None
    for number in (3, 5, 5, 4):
        witness.note_head(STORE, 1, number, hashed(number))
        witness.note_head(STORE, 1, number, hashed("a second entry of that number"))
    assert witness.head(STORE, 1) == (5, hashed(5))
    with ledger_refuses("witness_outdated"):
        witness.note_head(STORE, 2, 6, hashed(6))
    witness.begin_generation(STORE, of(2, charges(3), "entry-9"))
    with ledger_refuses("store_superseded"):
        witness.note_head(STORE, 1, 6, hashed(6))
    witness.note_head(STORE, 2, 4, hashed("adopted"))
    assert (witness.head(STORE, 1), witness.head(STORE, 2)) == ((5, hashed(5)), (4, hashed("adopted")))


def test_an_answer_of_a_superseded_copy_without_its_charge_is_refused(witness: Witness) -> None:
    witness.vouch(STORE, of(1, charges(3, 4)))
    witness.vouch_answer(STORE, hashed(3), "counts", hashed("a"))
    witness.begin_generation(STORE, of(2, charges(3), "entry-9"))
    with ledger_refuses("store_superseded"):
        witness.vouch_answer(STORE, hashed(4), "counts", hashed("a"))
    with pytest.raises(AnswerDrawnElsewhere):
        witness.vouch_answer(STORE, hashed(3), "counts", hashed("drawn by the adopted copy"))
    witness.vouch_answer(STORE, hashed(3), "counts", hashed("a"))


def test_an_adoption_may_be_repeated_but_not_by_another_copy(witness: Witness) -> None:
    for _ in range(2):
        witness.begin_generation(STORE, of(2, charges(3), "entry-9"))
    witness.vouch(STORE, of(2, charges(3, 10)))
    witness.begin_generation(STORE, of(2, charges(3), "entry-9"))
    assert held(witness) == [3, 10]
    for generation, hash_ in ((2, "other"), (1, "entry-1"), (1, "other")):
        with ledger_refuses("store_superseded"):
            witness.begin_generation(STORE, of(generation, charges(3), hash_))
    for refusal in refusals(witness, 2, charges(3, 10), started_by="other"):
        assert refusal.code == "store_superseded" and "another generation 2" in str(refusal)
    witness.vouch(STORE, of(2, charges(3, 10), started_by="entry-9"))


def test_a_lost_witness_begins_anew_by_an_adoption(witness: Witness) -> None:
    witness._file.discard()
    witness.begin_generation(STORE, of(5, charges(3, 4), "entry-9"))
    witness.vouch(STORE, of(5, charges(3, 4, 10)))
    assert held(witness) == [3, 4, 10]
    witness.vouch_answer(STORE, hashed(3), "counts", hashed("a"))


def test_a_witness_that_missed_an_adoption_is_told(witness: Witness) -> None:
    for refusal in refusals(witness, 2, charges()):
        assert refusal.code == "witness_outdated" and ADOPT in str(refusal)
    witness.begin_generation(STORE, of(3, charges(), "entry-9"))
    witness.vouch(STORE, of(3, charges(10)))
