"""The ledger: one charge, nothing beyond the total, terms that stay."""

from __future__ import annotations

import pickle
import stat
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from error_codes import coded, ledger_refuses
from hypothesis import given
from hypothesis import strategies as st
from ledger_scenario import HEALTH, WEEKLY, ledger, path, set_clock, url, url_of, week

from dphist_pipeline.ledger import database as ledger_database
from dphist_pipeline.ledger.entries import exact_text, read_exact
from dphist_pipeline.ledger.epsilon_text import as_text
from dphist_pipeline.ledger.errors import AlreadyCharged, FileExists, LedgerError
from dphist_pipeline.ledger.ledger import Account, Ledger, UnknownAccount
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.publishing.statements import Statement

# Accounts


def test_a_new_ledger_is_private_to_its_owner_and_alone_in_its_folder(ledger: Ledger, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["ledger.sqlite"]
    assert ledger.verify() == 2


def test_two_ledgers_never_share_an_id(tmp_path: Path) -> None:
    ids = {Ledger.create(url_of(tmp_path / f"{n}.sqlite")).id for n in range(3)}
    assert len(ids) == 3


def test_a_ledger_is_never_made_over_anything(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    before = path.read_bytes()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    for there in (path, tmp_path, tmp_path / "dangling"):
        with pytest.raises(FileExists):
            Ledger.create(url_of(there))
    assert path.read_bytes() == before
    with ledger_refuses("file_unusable"):
        Ledger.create(url_of(tmp_path / "no folder" / "ledger.sqlite"))
    assert sorted(file.name for file in tmp_path.iterdir()) == ["dangling", "ledger.sqlite"]


def test_a_ledger_that_could_not_be_filled_leaves_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ledger_database.SqliteFile, "create_tables", fail)
    with pytest.raises(KeyboardInterrupt):
        Ledger.create(url_of(path))
    assert list(path.parent.iterdir()) == []


def test_an_account_keeps_its_terms(ledger: Ledger) -> None:
    other = Account("labour", "serialno", "substitute", Fraction(1, 3), "yearly", "store-2")
    ledger.open_account(other)
    again = Ledger.open(ledger.url, ledger.id)
    assert again.accounts() == [HEALTH, other]
    assert again.account("labour") == other


def test_an_account_is_opened_once(ledger: Ledger) -> None:
    with ledger_refuses("account_exists", match="same terms"):
        ledger.open_account(HEALTH)
    with ledger_refuses("account_exists", match="total 26"):
        ledger.open_account(replace(HEALTH, total=Fraction(40)))
    assert ledger.verify() == 2


def test_a_total_is_only_raised_and_says_why(ledger: Ledger) -> None:
    ledger.raise_total("health", Fraction(40), "a second survey")
    assert ledger.account("health").total == 40
    for total in (Fraction(40), Fraction(26)):
        with ledger_refuses("total_not_larger"):
            ledger.raise_total("health", total, "why not")
    for reason in ("", "  ", "\u2800", "\u115f \u3164", "\ufe0f"):
        with ledger_refuses("reason_missing"):
            ledger.raise_total("health", Fraction(41), reason)
    assert ledger.entries()[-1].facts["reason"] == "a second survey"
    assert ledger.verify() == 3


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "Health"},
        {"name": "a" * 64},
        {"name": "health\n"},
        {"name": "../health"},
        {"name": ""},
        {"neighbours": "both"},
        {"renews": "monthly"},
        {"total": Fraction(0)},
        {"total": Fraction(-1)},
        {"total": Fraction(1_000_001)},
        {"total": Fraction(10**400)},
        {"total": 26.0},
        {"total": Fraction(1, 10**31)},
        {"privacy_unit": "x" * 100_000},
        {"privacy_unit": "a\x1b[31m"},
        {"store_id": "\ud800"},
    ],
)
def test_an_account_with_odd_terms_is_refused(ledger: Ledger, bad: dict[str, Any]) -> None:
    with ledger_refuses("not_recordable") as refusal:
        ledger.open_account(replace(replace(HEALTH, name="other"), **bad))
    assert len(str(refusal.value)) < 300
    assert ledger.verify() == 2


def test_an_unknown_account_comes_with_a_suggestion_and_the_command(ledger: Ledger) -> None:
    for ask in (
        lambda: ledger.account("helth"),
        lambda: Statement.of(ledger, "helth"),
        lambda: ledger.raise_total("helth", Fraction(40), "r"),
        lambda: ledger.check(replace(WEEKLY, account="helth")),
        lambda: ledger.charge(replace(WEEKLY, account="helth")),
    ):
        with pytest.raises(UnknownAccount, match=r"Did you mean 'health'.*dphist ledger open helth"):
            ask()
    with pytest.raises(UnknownAccount, match="dphist ledger open helth --for SPEC --total EPSILON"):
        ledger.check(replace(WEEKLY, account="helth"))


# Charges


def test_a_charge_is_found_again_as_it_was_made(ledger: Ledger) -> None:
    charge = ledger.charge(WEEKLY)
    assert (charge.number, charge.epsilon, charge.revision) == (3, Fraction(1, 2), 1)
    assert charge.hash == ledger.entries()[-1].hash
    assert Ledger.open(ledger.url, ledger.id).charges("weekly", "2026-03-02") == [charge]
    assert ledger.charges("weekly", "2026-03-09") == []


def test_the_same_charge_again_joins_and_spends_nothing(ledger: Ledger) -> None:
    first = ledger.charge(WEEKLY)
    assert ledger.charge(WEEKLY) == first
    assert Statement.of(ledger, "health").spent == Fraction(1, 2)
    assert ledger.verify() == 3


def test_a_charge_is_joined_even_when_the_account_is_used_up(ledger: Ledger) -> None:
    first = ledger.charge(replace(WEEKLY, epsilon=Fraction(26)))
    ledger.check(replace(WEEKLY, epsilon=Fraction(26)))
    assert ledger.charge(replace(WEEKLY, epsilon=Fraction(26))) == first


def test_a_changed_release_is_not_joined(ledger: Ledger) -> None:
    ledger.open_account(replace(HEALTH, name="labour"))
    ledger.charge(WEEKLY)
    for change, named in (
        ({"digest": "digest-2"}, "digest was 'digest-1', is now 'digest-2'"),
        ({"epsilon": Fraction(1, 3)}, "epsilon was '0.5', is now '1/3'"),
        ({"account": "labour"}, "account was 'health', is now 'labour'"),
    ):
        for ask in (ledger.check, ledger.charge):
            with pytest.raises(AlreadyCharged, match=f"{named}.*--revise --reason"):
                ask(replace(WEEKLY, **change))
    assert ledger.verify() == 4


def test_epsilons_that_read_alike_are_told_apart(ledger: Ledger) -> None:
    ledger.charge(replace(WEEKLY, epsilon=Fraction(1, 3) + Fraction(1, 10**29)))
    with pytest.raises(AlreadyCharged):
        ledger.charge(replace(WEEKLY, epsilon=Fraction(1, 3) + Fraction(2, 10**29)))


def test_a_revision_is_charged_again_and_both_are_kept(ledger: Ledger) -> None:
    first = ledger.charge(WEEKLY)
    second = ledger.charge(replace(WEEKLY, revision=2, digest="digest-2", reason="late records"))
    assert ledger.charges("weekly", "2026-03-02") == [first, second]
    assert Statement.of(ledger, "health").spent == 1
    assert ledger.charge(WEEKLY) == first


def test_a_revision_follows_the_last_one_and_says_why(ledger: Ledger) -> None:
    with ledger_refuses("revision_skipped", match="next one is 1"):
        ledger.charge(replace(WEEKLY, revision=2, reason="r"))
    ledger.charge(WEEKLY)
    with ledger_refuses("revision_skipped", match="next one is 2"):
        ledger.charge(replace(WEEKLY, revision=3, reason="r"))
    with ledger_refuses("reason_missing"):
        ledger.charge(replace(WEEKLY, revision=2))


def test_a_release_or_store_with_other_terms_is_refused_naming_each(ledger: Ledger) -> None:
    ledger.charge(WEEKLY)
    for ask in (ledger.check, ledger.charge):
        with ledger_refuses("account_disagrees") as refusal:
            ask(replace(WEEKLY, privacy_unit="row", neighbours="substitute"))
        assert "privacy_unit is 'patient_id' there but 'row' here" in str(refusal.value)
        assert "neighbours is 'add_remove' there but 'substitute' here" in str(refusal.value)
        with ledger_refuses("account_disagrees", match=r"store-1.*store-2.*One account serves one store"):
            ask(replace(WEEKLY, store_id="store-2"))


def test_three_thirds_are_exactly_one_and_no_more(ledger: Ledger) -> None:
    ledger.open_account(replace(HEALTH, name="thirds", total=Fraction(1)))
    for day in (1, 2, 3):
        ledger.charge(week(day, account="thirds", epsilon=Fraction(1, 3)))
    assert Statement.of(ledger, "thirds").left == 0
    with ledger_refuses("overspend"):
        ledger.charge(week(4, account="thirds", epsilon=Fraction(1, 1_000_000)))


def test_ten_tenths_are_exactly_one_and_no_more(ledger: Ledger) -> None:
    ledger.open_account(replace(HEALTH, name="tenths", total=Fraction(1)))
    for day in range(1, 11):
        ledger.charge(week(day, account="tenths", epsilon=Fraction("0.1")))
    with ledger_refuses("overspend"):
        ledger.charge(week(11, account="tenths", epsilon=Fraction(1, 1_000_000)))


def test_an_overspend_says_what_was_asked_what_is_left_who_spent_it_and_the_mend(ledger: Ledger) -> None:
    for day in range(1, 9):
        ledger.charge(week(day, epsilon=Fraction(3)))
    for ask in (ledger.check, ledger.charge):
        with ledger_refuses("overspend") as refusal:
            ask(week(20, epsilon=Fraction("2.25")))
        message = str(refusal.value)
        assert "weekly, period 2026-03-20, revision 1 asks for epsilon 2.25" in message
        assert "has 2 left of 26" in message
        assert "weekly, period 2026-03-08, revision 1 (3); weekly, period 2026-03-07" in message
        assert "2026-03-04" in message and "2026-03-03" not in message
        assert "and 3 more (9)" in message
        assert "dphist ledger raise health --total 26.25 --reason" in message
    assert Statement.of(ledger, "health").spent == 24
    ledger.raise_total("health", Fraction("26.25"), "as the message says")
    ledger.charge(week(20, epsilon=Fraction("2.25")))
    assert Statement.of(ledger, "health").left == 0


def test_the_smallest_lack_is_a_lack(ledger: Ledger) -> None:
    ledger.open_account(replace(HEALTH, name="scarce", total=1 - Fraction(1, 10**25)))
    with ledger_refuses("overspend"):
        ledger.charge(replace(WEEKLY, account="scarce", epsilon=Fraction(1)))


def test_accounts_do_not_pay_for_each_other(ledger: Ledger) -> None:
    ledger.open_account(replace(HEALTH, name="labour", total=Fraction(1)))
    ledger.charge(week(1, epsilon=Fraction(26)))
    ledger.charge(week(2, account="labour", epsilon=Fraction(1)))
    assert [Statement.of(ledger, name).left for name in ("health", "labour")] == [0, 0]


def test_a_check_adds_no_entry(ledger: Ledger, path: Path) -> None:
    ledger.check(WEEKLY)
    assert ledger.verify() == 2
    assert [file.name for file in path.parent.iterdir()] == ["ledger.sqlite"]


@pytest.mark.parametrize(
    "bad",
    [
        {"epsilon": Fraction(0)},
        {"epsilon": Fraction(-1)},
        {"epsilon": Fraction(1, 10**300)},
        {"epsilon": Fraction(51)},
        {"epsilon": 0.5},
        {"epsilon": Fraction(1, 3) + Fraction(1, 10**40)},
        {"revision": 0},
        {"revision": True},
        {"revision": 10**30},
        {"release": ""},
        {"release": "x" * 10**6},
        {"period": "a\nb"},
        {"digest": None},
        {"reason": "\u202etxt"},
        {"account": "\x00"},
    ],
)
def test_a_hostile_request_is_refused(ledger: Ledger, bad: dict[str, Any]) -> None:
    for ask in (ledger.check, ledger.charge):
        with ledger_refuses("not_recordable") as refusal:
            ask(replace(WEEKLY, **bad))
        assert len(str(refusal.value)) < 300
    assert ledger.verify() == 2


def test_a_refusal_crosses_processes_whole(ledger: Ledger) -> None:
    with ledger_refuses("overspend") as refusal:
        ledger.charge(replace(WEEKLY, epsilon=Fraction(27)))
    there = pickle.loads(pickle.dumps(refusal.value))
    assert (type(there), there.code) == (LedgerError, "overspend")
    assert (str(there), vars(there)) == (str(refusal.value), vars(refusal.value))


# Years


def test_a_yearly_account_begins_afresh_each_january(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.open_account(replace(HEALTH, name="yearly", total=Fraction(1), renews="yearly"))
    for year in (2031, 2032):
        set_clock(monkeypatch, year)
        for month in (1, 2):
            ledger.charge(replace(WEEKLY, account="yearly", period=f"{year}-0{month}-01"))
        with ledger_refuses("overspend", match=f"0 left of 1 in {year}.*1 January") as refusal:
            ledger.charge(replace(WEEKLY, account="yearly", period=f"{year}-03-01"))
        assert len(refusal.value.spenders) == 2
    standing = Statement.of(ledger, "yearly")
    assert (standing.year, standing.spent, standing.spent_ever, standing.left) == (2032, 1, 2, 0)
    set_clock(monkeypatch, 2033)
    assert Statement.of(ledger, "yearly").left == 1
    assert ledger.verify() == 7


def test_an_account_that_does_not_renew_adds_up_over_years(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for year in (2031, 2032):
        set_clock(monkeypatch, year)
        ledger.charge(replace(WEEKLY, period=str(year), epsilon=Fraction(13)))
    set_clock(monkeypatch, 2033)
    with ledger_refuses("overspend"):
        ledger.charge(replace(WEEKLY, period="2033"))


def test_a_clock_set_back_renews_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.open_account(replace(HEALTH, name="yearly", total=Fraction(1), renews="yearly"))
    set_clock(monkeypatch, 2032)
    ledger.charge(replace(WEEKLY, account="yearly", epsilon=Fraction(1)))
    set_clock(monkeypatch, 2031)
    late = replace(WEEKLY, account="yearly", period="later")
    with ledger_refuses("overspend"):
        ledger.charge(late)
    ledger.raise_total("yearly", Fraction(2), "more")
    for ask in (ledger.check, ledger.charge):
        with ledger_refuses("clock_behind", match="has an entry of 2032"):
            ask(late)
    set_clock(monkeypatch, 2032)
    ledger.charge(late)
    assert Statement.of(ledger, "yearly").spent == Fraction(3, 2)
    assert ledger.verify() == 6


def test_an_entry_of_a_later_year_renews_nothing_and_an_adoption_mends_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.open_account(replace(HEALTH, name="yearly", total=Fraction(1), renews="yearly"))
    charge = ledger.charge(replace(WEEKLY, account="yearly", epsilon=Fraction(1)))
    with monkeypatch.context() as later:
        set_clock(later, 2090)
        ledger.note(charge, "approved", "somebody who can write the file, or a wrong clock")
    again = replace(WEEKLY, account="yearly", period="later")
    with ledger_refuses("clock_behind"):
        ledger.charge(again)
    ledger.adopt("the clock was wrong", [], {}, Operator("ann", Ed25519PrivateKey.generate()))
    standing = Statement.of(ledger, "yearly")
    assert (standing.year, standing.left) == (int(charge.charged_at[:4]), 0)
    ledger.verify()


# Published values


def test_published_values_are_written_down_once(ledger: Ledger) -> None:
    charge = ledger.charge(WEEKLY)
    assert ledger.published_digest(charge) is None
    ledger.record_published(charge, "values-1")
    ledger.record_published(charge, "values-1")
    assert ledger.published_digest(charge) == "values-1"
    with ledger_refuses("published_differs"):
        ledger.record_published(charge, "values-2")
    assert ledger.verify() == 4


def test_a_charge_of_another_history_is_not_published(ledger: Ledger) -> None:
    charge = ledger.charge(WEEKLY)
    for foreign in (replace(charge, hash="0" * 64), replace(charge, revision=2), replace(charge, period="x")):
        with ledger_refuses("ledger_outdated"):
            ledger.record_published(foreign, "values-1")
        with ledger_refuses("ledger_outdated"):
            ledger.published_digest(foreign)
