"""What operators decide: signed, chained, by one person or two; and what a charge must show."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from error_codes import ledger_refuses
from ledger_scenario import HEALTH, WEEKLY, path, raw, set_clock, url, url_of, week

from dphist_pipeline.base.reading import Reading
from dphist_pipeline.ledger.decisions import EVERYWHERE
from dphist_pipeline.ledger.errors import UnknownAccount
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.permissions import Permissions
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.ledger.witness import WitnessedCharge
from dphist_pipeline.publishing.ledger_report import LedgerReport
from dphist_pipeline.publishing.statements import Statement

__all__ = ["path", "url"]

ANN, BEN, EVE = (Operator(name, Ed25519PrivateKey.generate()) for name in ("ann", "ben", "eve"))
ADMISSIONS = Reading("data/*.csv", "/office/data", "csv", unit=("patient_id",))
ASKED = replace(WEEKLY, source=ADMISSIONS)
QUERY = {"query": {"sha256": "ab" * 32, "name": "joined.sql"}}


@pytest.fixture
def ledger(url: str) -> Ledger:
    made = Ledger.create(url, ANN)
    made.open_account(HEALTH, ANN, ADMISSIONS)
    return made


def reopened(made: Ledger) -> Ledger:
    """The same ledger, with every signature and rule checked again."""
    return Ledger.open(made.url, made.id)


def test_a_charge_names_the_decision_that_allows_it(ledger: Ledger) -> None:
    charge = ledger.charge(ASKED)
    (decision,) = ledger.decisions_of(charge)
    assert charge.allowed == (decision.number,) and decision.reading == ADMISSIONS and decision.by == ("ann",)
    assert reopened(ledger).charges("weekly", "2026-03-02") == [charge]


def test_a_charge_names_a_version_that_was_allowed_for_all_accounts_too(ledger: Ledger) -> None:
    version = ledger.allow(EVERYWHERE, {"version": {"name": "duckdb=2.1"}}, ANN, "tried on our records")
    assert version is not None
    charge = ledger.charge(replace(ASKED, versions=("duckdb=2.1",)))
    assert version.number in charge.allowed and len(charge.allowed) == 2
    assert reopened(ledger).charges("weekly", "2026-03-02") == [charge]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"csv_quote": "'"}, "csv_quote is rfc there, ' here"),
        ({"csv_quote": '"', "lines": True}, "CSV is read otherwise now"),
        ({"csv_delimiter": ";"}, "csv_delimiter"),
        ({"hive": True}, "hive"),
        ({"decimal_comma": True}, "decimal_comma"),
        ({"thousands": "."}, "thousands is nothing there, '.' here"),
        ({"unit_normalise": ("lower",)}, "unit_normalise is nothing there, lower here"),
        ({"unit": ("visit",)}, "unit is patient_id there, visit here"),
        ({"folder": "/elsewhere/data"}, "is allowed for account 'health' in another folder"),
        ({"table": "main.t", "format": "duckdb"}, "table"),
        ({"address": "data/../data/*.csv"}, "is not allowed for account 'health'; allowed are data/*.csv"),
    ],
)
def test_another_reading_of_an_allowed_source_is_refused_with_the_command(
    ledger: Ledger, changes: dict[str, object], says: str
) -> None:
    asked = replace(ASKED, source=replace(ADMISSIONS, **changes))  # type: ignore[arg-type]
    for ask in (ledger.check, ledger.charge, ledger.decisions_for):
        with ledger_refuses("not_allowed") as refused:
            ask(asked)
        assert says in str(refused.value) and "dphist ledger allow health --source" in str(refused.value)
        assert "/office" not in str(refused.value) and "/elsewhere" not in str(refused.value)
    assert [entry.kind for entry in ledger.entries()] == ["created", "opened", "allowed"]


def test_a_charge_that_names_no_source_is_refused_where_operators_decide(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="no source"):
        ledger.charge(WEEKLY)


def test_what_a_unit_holds_is_no_difference_between_a_spec_and_a_decision(ledger: Ledger) -> None:
    known = replace(ADMISSIONS, address="more/*.csv", unit_kinds=("text",))
    ledger.allow("health", {"source": known.facts()}, ANN)
    (decision,) = ledger.decisions_for(replace(ASKED, source=replace(known, unit_kinds=())))
    assert decision.reading == known


def test_a_query_is_allowed_by_its_digest_and_a_reason(ledger: Ledger) -> None:
    asked = replace(ASKED, query="ab" * 32, query_name="joined.sql")
    with ledger_refuses("not_allowed", match="as its text stands now: the promise rests on it") as refused:
        ledger.charge(asked)
    assert "dphist ledger allow health --query joined.sql --reason TEXT" in str(refused.value)
    with ledger_refuses("reason_missing"):
        ledger.allow("health", QUERY, ANN)
    ledger.allow("health", QUERY, ANN, "joins wards, a row a visit")
    assert len(ledger.charge(asked).allowed) == 2
    with ledger_refuses("not_allowed"):
        ledger.charge(replace(week(9), source=ADMISSIONS, query="cd" * 32, query_name="joined.sql"))


def test_a_query_that_is_signed_again_to_try_its_items_is_another_decision_and_the_newer_one(ledger: Ledger) -> None:
    asked = replace(ASKED, query="ab" * 32, query_name="joined.sql")
    ledger.allow("health", QUERY, ANN, "joins wards, a row a visit")
    assert not ledger.decisions_for(asked)[1].tries
    tried = {"query": {**QUERY["query"], "tries": True}}
    made = ledger.allow("health", tried, ANN, "joins wards, a row a visit")
    assert made is not None and made.tries and ledger.decisions_for(asked)[1] == made
    assert ledger.allow("health", tried, ANN, "again") == made


def test_the_same_decision_again_changes_nothing(ledger: Ledger) -> None:
    before = ledger.entries()
    assert ledger.allow("health", {"source": ADMISSIONS.facts()}, ANN) == ledger.decisions("health")[0]
    assert ledger.entries() == before


def test_what_is_taken_back_is_read_no_more(ledger: Ledger) -> None:
    charge = ledger.charge(ASKED)
    number = ledger.decisions("health")[0].number
    ledger.disallow(number, "wrong folder", ANN)
    assert ledger.charge(ASKED) == charge, "what was charged stays so, and replays"
    for ask in (lambda: ledger.charge(replace(week(9), source=ADMISSIONS)), lambda: ledger.decisions_for(ASKED)):
        with ledger_refuses("not_allowed"):
            ask()
    assert [decision.number for decision in ledger.decisions_of(charge)] == [number]
    with ledger_refuses("decision_unknown"):
        ledger.disallow(number, "again", ANN)
    reopened(ledger)


def test_a_source_belongs_to_one_account_unless_sharing_is_decided(ledger: Ledger) -> None:
    other = replace(HEALTH, name="other", total=Fraction(4))
    with ledger_refuses("source_of_another", match="--also-of health"):
        ledger.open_account(other, ANN, replace(ADMISSIONS, address="/office/data/*.csv", csv_quote="'"))
    ledger.open_account(other, ANN, ADMISSIONS, ["health"])
    ledger.charge(ASKED)
    (shared,) = Statement.of(ledger, "other").shared
    assert (shared.account.name, shared.spent) == ("health", Fraction(1, 2))
    assert [of.account.name for of in Statement.of(ledger, "health").shared] == ["other"]


def test_a_source_is_shared_with_open_accounts_alone(ledger: Ledger) -> None:
    before, more = ledger.entries(), replace(ADMISSIONS, address="more/*.csv")
    with pytest.raises(UnknownAccount, match="labor"):
        ledger.allow("health", {"source": more.facts()}, ANN, also_of=["labor"])
    assert ledger.entries() == before


def test_a_source_of_another_account_is_refused_whatever_was_decided_since(ledger: Ledger) -> None:
    ledger.open_account(replace(HEALTH, name="other"), ANN)
    ledger.add_key("ben", BEN.public, ANN)
    for decide in (
        lambda: ledger.allow("other", {"source": ADMISSIONS.facts()}, ANN),
        lambda: ledger.open_account(replace(HEALTH, name="third"), ANN, ADMISSIONS),
    ):
        with ledger_refuses("source_of_another", match="--also-of health"):
            decide()
    assert reopened(ledger).decisions("other") == []


def test_a_source_that_waits_is_reserved_and_signed_only_by_itself(ledger: Ledger) -> None:
    ledger.add_key("ben", BEN.public, ANN)
    ledger.open_account(replace(HEALTH, name="twice", signatures=2), ANN)
    new = replace(ADMISSIONS, address="new/*.csv", folder="/office/new")
    assert ledger.allow("twice", {"source": new.facts()}, ANN) is None
    (number,) = Statement.of(ledger, "twice").waiting
    with ledger_refuses("source_of_another", match="--also-of twice"):
        ledger.allow("health", {"source": new.facts()}, ANN)
    assert ledger.allow("health", {"source": new.facts()}, ANN, also_of=["twice"]) is None
    ledger.countersign(Statement.of(ledger, "health").waiting[0], BEN)
    with ledger_refuses("source_of_another"):
        ledger.countersign(number, BEN)
    assert reopened(ledger).decisions("twice") == []


def test_nobody_without_a_known_key_decides_anything(ledger: Ledger) -> None:
    before = ledger.entries()
    for decide in (
        lambda: ledger.open_account(replace(HEALTH, name="own"), EVE, ADMISSIONS),
        lambda: ledger.allow("health", QUERY, EVE, "mine"),
        lambda: ledger.raise_total("health", Fraction(99), "mine", EVE),
        lambda: ledger.disallow(3, "mine", EVE),
        lambda: ledger.add_key("eve", EVE.public, EVE),
        lambda: ledger.adopt("mine", [], {}, EVE),
        lambda: ledger.raise_total("health", Fraction(99), "unsigned"),
        lambda: ledger.open_account(replace(HEALTH, name="own")),
    ):
        with ledger_refuses("key_foreign"):
            decide()
    assert ledger.entries() == before


@pytest.mark.parametrize("forge", ["unsigned", "of another entry", "of another key"])
def test_a_decision_written_past_our_code_is_no_decision(ledger: Ledger, path: Path, forge: str) -> None:
    from dphist_pipeline.base.canonical_json import canonical_json
    from dphist_pipeline.ledger.entries import seal

    last = ledger.entries()[-1]
    facts = {"query": QUERY["query"], "reason": "mine", "year": last.facts["year"]}
    made = replace(
        last, number=last.number + 1, previous_hash=last.hash, body=canonical_json(facts), hash="", kind="allowed"
    )
    if forge == "of another entry":
        made = replace(made, body=canonical_json({**facts, "signed": last.facts["signed"]}))
    elif forge == "of another key":
        made = EVE.with_signature(made)
    made = replace(made, hash=seal(made))
    columns = ", ".join(vars(made))
    values = ", ".join("NULL" if value is None else repr(value) for value in vars(made).values())
    raw(path, f"INSERT INTO ledger_entry ({columns}) VALUES ({values})")
    with ledger_refuses("ledger_altered", match="signature"):
        reopened(ledger)
    with ledger_refuses("ledger_altered", match="signature"):
        ledger.charge(replace(ASKED, query="ab" * 32, query_name="joined.sql"))


def test_a_second_operator_is_added_by_the_first(ledger: Ledger) -> None:
    ledger.add_key("ben", BEN.public, ANN)
    with ledger_refuses("key_known", match="ben"):
        ledger.add_key("ben again", BEN.public, ANN)
    for no_key in ("", "ben", BEN.public.upper(), BEN.public[:-1], BEN.public + "0", "zz" * 32):
        with ledger_refuses("not_recordable", match="the 64 hexadecimal digits"):
            ledger.add_key("carl", no_key, ANN)
    ledger.allow("health", QUERY, BEN, "joins wards")
    assert ledger.decisions("health")[-1].by == ("ben",)
    assert list(reopened(ledger).operators().values()) == ["ann", "ben"]


def test_an_account_may_ask_for_two_signatures(ledger: Ledger) -> None:
    ledger.add_key("ben", BEN.public, ANN)
    twice = replace(HEALTH, name="twice", signatures=2)
    reading = replace(ADMISSIONS, address="own/*.csv", folder="/office/own")
    ledger.open_account(twice, ANN, reading)
    asked = replace(ASKED, account="twice", source=reading)
    assert ledger.decisions("twice") == []
    with ledger_refuses("not_allowed"):
        ledger.charge(asked)
    (number,) = Statement.of(ledger, "twice").waiting
    with ledger_refuses("signed_already"):
        ledger.countersign(number, ANN)
    with ledger_refuses("key_foreign"):
        ledger.countersign(number, EVE)
    ledger.countersign(number, BEN)
    assert ledger.charge(asked).allowed == (number,)
    assert ledger.decisions("twice")[0].by == ("ann", "ben")
    ledger.raise_total("twice", Fraction(40), "more weeks", BEN)
    assert ledger.account("twice").total == 26
    ledger.countersign(Statement.of(ledger, "twice").waiting[0], ANN)
    assert reopened(ledger).account("twice").total == 40 and Statement.of(ledger, "twice").waiting == []


TWICE = replace(HEALTH, name="twice", total=Fraction(4), signatures=2)


@pytest.mark.parametrize("signed", [True, False], ids=["allowed", "waits"])
def test_one_operator_opens_no_second_account_on_records_that_two_sign_for(url: str, signed: bool) -> None:
    made = Ledger.create(url, ANN)
    made.add_key("ben", BEN.public, ANN)
    made.open_account(TWICE, ANN, ADMISSIONS)
    first = Statement.of(made, "twice").waiting[0]
    if signed:
        made.countersign(first, BEN)
    other = replace(HEALTH, name="other", total=Fraction(1000))
    with ledger_refuses("source_of_another", match="--also-of twice"):
        made.open_account(other, ANN, ADMISSIONS)
    made = reopened(made)
    made.open_account(other, ANN, ADMISSIONS, ["twice"])
    (number,) = Statement.of(made, "other").waiting
    with ledger_refuses("not_allowed"):
        made.charge(replace(ASKED, account="other"))
    made.raise_total("other", Fraction(2000), "more", ANN)
    made.allow("other", QUERY, ANN, "another reading")
    assert made.account("other").total == 1000 and made.decisions("other") == []
    reopened(made).countersign(number, BEN)
    assert reopened(made).charge(replace(ASKED, account="other")).allowed == (number,)
    if not signed:  # by then it is that of another account, too: the first one says so
        with ledger_refuses("source_of_another"):
            made.countersign(first, BEN)


def test_an_account_that_shared_its_records_first_waits_for_two_from_then_on(ledger: Ledger) -> None:
    ledger.add_key("ben", BEN.public, ANN)
    ledger.open_account(replace(HEALTH, name="apart"), ANN)
    ledger.open_account(TWICE, ANN, replace(ADMISSIONS, csv_delimiter=";"), ["health"])
    ledger.raise_total("health", Fraction(99), "more", ANN)
    ledger.raise_total("apart", Fraction(99), "more", ANN)
    assert [reopened(ledger).account(name).total for name in ("health", "apart")] == [26, 99]
    overlapping = replace(ADMISSIONS, address="data/january.csv")
    assert ledger.allow("apart", {"source": overlapping.facts()}, ANN, also_of=["twice"]) is None
    ledger.raise_total("apart", Fraction(100), "more", ANN)
    assert reopened(ledger).account("apart").total == 99


FOR_EVERYBODY = [
    {"version": {"name": "duckdb=2.1"}},
    {"clock": {"name": "2026-03-02"}},
    {"code_lists": {"name": "codes", "folder": "/office/codes"}},
]


@pytest.mark.parametrize("what", FOR_EVERYBODY, ids=["version", "clock", "code lists"])
def test_what_is_for_all_accounts_waits_for_two_where_any_account_does(
    ledger: Ledger, what: dict[str, dict[str, str]]
) -> None:
    ledger.add_key("ben", BEN.public, ANN)
    ledger.open_account(TWICE, ANN)
    assert ledger.allow(EVERYWHERE, what, ANN, "tried") is None and ledger.decisions(EVERYWHERE) == []
    (number,) = ledger.books().permissions.waiting_of(EVERYWHERE)
    ledger.countersign(number, BEN)
    assert [made.by for made in reopened(ledger).decisions(EVERYWHERE)] == [("ann", "ben")]
    ledger.disallow(number, "not any more", ANN)
    assert len(reopened(ledger).decisions(EVERYWHERE)) == 1, "taking it back waits, too"
    assert ledger.allow(EVERYWHERE, {"waiver": {"name": "weekly/2026-03-02"}}, ANN, "closed") is not None


def test_what_an_earlier_version_decided_stays_and_the_next_decision_waits(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That version did not mark decisions, and one operator shared the records of an account that asks for two."""
    ledger.add_key("ben", BEN.public, ANN)
    with monkeypatch.context() as patch:
        patch.setattr(Permissions, "marks", lambda self, kind, account, facts: {})
        ledger.open_account(TWICE, ANN, replace(ADMISSIONS, csv_delimiter=";"), ["health"])
        ledger.raise_total("health", Fraction(99), "more", ANN)
    assert not any("guards" in entry.facts for entry in ledger.entries())
    again = reopened(ledger)
    assert again.account("health").total == 99
    if again.url.drivername != "sqlite":  # whose own rules cannot know that the source for `twice` waits
        with ledger_refuses("waiting_unlisted"):
            again.charge(ASKED)
        assert again.list_waiting(ANN)
    assert again.charge(ASKED).allowed
    again.raise_total("health", Fraction(100), "more", ANN)
    assert reopened(again).account("health").total == 99
    assert any("guards" in entry.facts for entry in again.entries()[-3:])


def test_a_raise_that_was_overtaken_while_it_waited_lowers_no_total(ledger: Ledger) -> None:
    ledger.add_key("ben", BEN.public, ANN)
    ledger.open_account(replace(HEALTH, name="twice", signatures=2), ANN)
    for total in (40, 50):
        ledger.raise_total("twice", Fraction(total), "more releases", ANN)
    assert ledger.account("twice").total == HEALTH.total
    for number, total in zip(reversed(Statement.of(ledger, "twice").waiting), (50, 50), strict=True):
        ledger.countersign(number, BEN)
        assert ledger.account("twice").total == reopened(ledger).account("twice").total == total


def test_folders_of_code_lists_are_for_all_accounts(ledger: Ledger) -> None:
    made = ledger.allow(EVERYWHERE, {"code_lists": {"name": "codes", "folder": "/office/codes"}}, ANN)
    assert made is not None and [of.folder for of in reopened(ledger).decisions(EVERYWHERE)] == ["/office/codes"]
    assert made not in ledger.decisions("health")


def test_two_copies_of_a_ledger_never_make_the_same_charge(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_clock(monkeypatch, 2026)
    copy = path.with_name("copy.sqlite")
    copy.write_bytes(path.read_bytes())
    assert ledger.charge(ASKED).hash != Ledger.open(url_of(copy), ledger.id).charge(ASKED).hash


def test_a_ledger_of_an_earlier_version_allows_nothing_until_somebody_decides(path: Path) -> None:
    old = Ledger.create(url_of(path))
    old.open_account(HEALTH)
    charged = old.charge(WEEKLY)
    with ledger_refuses("not_allowed", match="nothing is allowed yet"):
        old.charge(replace(week(9), source=ADMISSIONS))
    assert old.charge(ASKED) == charged, "what was charged before is joined, and replays at no cost"
    old.allow("health", {"source": ADMISSIONS.facts()}, ANN)
    assert old.charge(replace(week(9), source=ADMISSIONS)).allowed
    with ledger_refuses("key_foreign"):
        old.allow("health", QUERY, EVE, "mine")
    assert [entry.kind for entry in reopened(old).entries()][-3:] == ["keyed", "allowed", "charged"]


def lost(period: str = "2026-03-09", epsilon: Fraction = Fraction(25)) -> WitnessedCharge:
    return WitnessedCharge(9, "f" * 64, "health", "weekly", period, 1, epsilon, 2026)


def test_what_an_adoption_carries_over_is_spent_and_never_drawn_again(ledger: Ledger) -> None:
    first = ledger.charge(ASKED)
    ledger.adopt("ledger put back", [lost()], {"health": Fraction(1, 4)}, ANN)
    standing = ledger.standing()
    assert (standing.generation, standing.started_by) == (2, ledger.entries()[-1].hash)
    assert ledger.adopted_at() > first.number
    again = replace(week(9), source=ADMISSIONS)
    with ledger_refuses("charge_lost"):
        ledger.charge(again)
    assert Statement.of(ledger, "health").spent == Fraction(1, 2) + 25 + Fraction(1, 4)
    with ledger_refuses("overspend"):
        ledger.charge(replace(again, revision=2, reason="lost"))
    ledger.require([("an audit of the lost ledger", 9, "f" * 64)])
    assert [charge.hash for charge in reopened(ledger).standing().charges] == [first.hash, "f" * 64]


def test_of_a_period_that_two_copies_charged_ours_stands_and_both_are_spent(ledger: Ledger) -> None:
    ours = ledger.charge(replace(week(9), source=ADMISSIONS))
    ledger.adopt("two copies went on", [lost()], {}, ANN)
    assert [charge.hash for charge in ledger.standing().charges] == [ours.hash]
    assert ledger.charge(replace(week(9), source=ADMISSIONS)) == ours
    assert Statement.of(reopened(ledger), "health").spent == ours.epsilon + lost().epsilon


def test_a_lost_charge_counts_once_its_account_is_opened_again(ledger: Ledger) -> None:
    ledger.adopt("put back from before it was opened", [replace(lost(), account="later")], {}, ANN)
    source = replace(ADMISSIONS, address="later/january.csv")
    ledger.open_account(replace(HEALTH, name="later"), ANN, source)
    assert Statement.of(reopened(ledger), "later").spent == 25 and Statement.of(ledger, "health").spent == 0
    with ledger_refuses("overspend"):
        ledger.charge(replace(week(2), account="later", epsilon=Fraction(2), source=source))


# Adoptions that wait


@pytest.fixture
def by_two(url: str) -> Ledger:
    """One account asks for two signatures, and another one does not."""
    made = Ledger.create(url, ANN)
    made.add_key("ben", BEN.public, ANN)
    made.open_account(HEALTH, ANN, ADMISSIONS)
    made.open_account(TWICE, ANN)
    return made


def adopt(ledger: Ledger, *carried: WitnessedCharge, **more: Any) -> int:
    return ledger.adopt("put back", carried, {}, ANN, denies=True, **more).number


def test_an_adoption_that_denies_waits_and_changes_nothing_until_another_signs(by_two: Ledger) -> None:
    before = by_two.charge(ASKED)
    number = adopt(by_two, lost("2026-03-16", Fraction(1)))
    for made in (by_two, reopened(by_two)):
        assert made.standing().generation == 1 and made.adopted_at() == 0 and made.waiting(number)
        assert Statement.of(made, "health").spent == before.epsilon
        assert made.charges("weekly", "2026-03-16") == []
    with ledger_refuses("signed_already"):
        by_two.countersign(number, ANN)
    by_two.countersign(number, BEN)
    for made in (by_two, reopened(by_two)):
        assert (made.standing().generation, made.adopted_at()) == (2, number) and made.waiting(number) is None
        assert made.standing().started_by == made.entries()[number - 1].hash
        assert Statement.of(made, "health").spent == before.epsilon + 1
    with ledger_refuses("charge_lost"):
        by_two.charge(replace(ASKED, period="2026-03-16"))
    assert by_two.charge(replace(ASKED, period="2026-03-23")).number == number + 2


def test_an_adoption_that_denies_nothing_does_not_wait(by_two: Ledger) -> None:
    by_two.adopt("its clock was wrong", [], {}, ANN)
    assert reopened(by_two).standing().generation == 2


def test_where_one_operator_decides_alone_an_adoption_does_not_wait_for_nobody(ledger: Ledger) -> None:
    ledger.open_account(TWICE, ANN)
    adopt(ledger)
    assert reopened(ledger).standing().generation == 2


@pytest.mark.parametrize("by", ["adoption", "charge"])
def test_an_adoption_that_waits_lapses_with_a_later_adoption_or_charge(by_two: Ledger, by: str) -> None:
    first = adopt(by_two)
    second = adopt(by_two) if by == "adoption" else by_two.charge(ASKED).number
    for made in (by_two, reopened(by_two)):
        with ledger_refuses("adoption_lapsed", match="dphist store adopt --reason TEXT"):
            made.countersign(first, BEN)
        assert made.standing().generation == 1
    if by == "adoption":
        by_two.countersign(second, BEN)
        assert reopened(by_two).standing().generation == 2


def test_what_a_decision_changes_meanwhile_does_not_end_the_waiting(by_two: Ledger) -> None:
    number = adopt(by_two)
    by_two.raise_total("health", Fraction(99), "more", ANN)
    by_two.countersign(number, BEN)
    assert by_two.standing().generation == 2 and by_two.account("health").total == 99


def test_an_adoption_that_waits_gives_no_year_back(by_two: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, 2030)
    by_two.charge(ASKED)
    set_clock(monkeypatch, 2027)
    adopt(by_two)
    with ledger_refuses("clock_behind"):
        by_two.charge(replace(ASKED, period="2026-03-16"))


def test_a_generation_may_be_above_that_of_another_copy_and_never_below_its_own(by_two: Ledger) -> None:
    by_two.adopt("above another copy", [], {}, ANN, generation=5)
    assert reopened(by_two).standing().generation == 5
    with pytest.raises(ValueError, match="not a later generation"):
        by_two.adopt("again", [], {}, ANN, generation=5)


def test_a_report_says_who_decided_what_and_what_became_of_charges(ledger: Ledger) -> None:
    charge = ledger.charge(ASKED)
    ledger.note(charge, "rejected", "too soon")
    found = LedgerReport(ledger).facts()
    (account,) = found["accounts"]
    assert [(made["by"], made["did"]) for made in account["decisions"]] == [
        ("ann", "opened the account"),
        ("ann", "allowed a source"),
    ]
    assert [account[name] for name in ("total", "spent", "left")] == ["26", "0.5", "25.5"]
    (told,) = account["charges"]
    assert (told["state"], told["notes"], told["epsilon"]) == ("rejected", ["rejected: too soon"], "0.5")
    assert LedgerReport(ledger, 1999).facts()["accounts"][0]["charges"] == []


def test_a_new_key_takes_the_place_of_the_old_one_and_what_was_signed_stays(ledger: Ledger) -> None:
    charge = ledger.charge(ASKED)
    ledger.rotate_key("ann", BEN.public, "yearly", ANN)
    assert ledger.operators() == {BEN.public: "ann"}
    assert ledger.books().permissions.names == {ANN.public: "ann", BEN.public: "ann"}
    before = ledger.entries()
    for decide in (
        lambda: ledger.allow("health", QUERY, ANN, "joins wards"),
        lambda: ledger.rotate_key("ann", EVE.public, "again", ANN),
        lambda: ledger.add_key("eve", EVE.public, ANN),
    ):
        with ledger_refuses("key_foreign"):
            decide()
    for known in (ANN, BEN):
        with ledger_refuses("key_known", match="ann"):
            ledger.add_key("ann again", known.public, BEN)
        with ledger_refuses("key_known", match="ann"):
            ledger.rotate_key("ann", known.public, "back", BEN)
    with ledger_refuses("reason_missing"):
        ledger.rotate_key("ann", EVE.public, "", BEN)
    assert ledger.entries() == before
    ledger.allow("health", QUERY, BEN, "joins wards")
    again = reopened(ledger)
    assert again.charge(ASKED) == charge and again.charge(replace(week(9), source=ADMISSIONS)).allowed == charge.allowed
    assert [made.by for made in again.decisions("health")] == [("ann",), ("ann",)]
    said = {row["did"]: (row["by"], row["what"]) for row in LedgerReport(again).facts()["general"]}
    assert said["replaced their key"] == ("ann", "ann")


def test_one_person_with_two_keys_in_turn_gives_one_signature(ledger: Ledger) -> None:
    ledger.add_key("ben", BEN.public, ANN)
    ledger.open_account(replace(HEALTH, name="twice", signatures=2), ANN)
    ledger.raise_total("twice", Fraction(40), "more weeks", ANN)
    new, newer = (Operator("ann", Ed25519PrivateKey.generate()) for _ in range(2))
    ledger.rotate_key("ann", new.public, "yearly", ANN)
    ledger.rotate_key("ann", newer.public, "yearly", new)
    (number,) = Statement.of(ledger, "twice").waiting
    with ledger_refuses("signed_already", match="ann"):
        ledger.countersign(number, newer)
    reopened(ledger).countersign(number, BEN)
    assert reopened(ledger).account("twice").total == 40


def test_a_key_that_waits_and_is_replaced_meanwhile_never_comes_into_force(ledger: Ledger) -> None:
    ledger.add_key("ben", BEN.public, ANN)
    ledger.open_account(replace(HEALTH, name="twice", signatures=2), ANN)
    number = ledger.add_key("eve", EVE.public, ANN)
    assert number is not None
    newer = Operator("ann", Ed25519PrivateKey.generate())
    ledger.rotate_key("ann", EVE.public, "yearly", ANN)
    ledger.rotate_key("ann", newer.public, "yearly", EVE)
    with ledger_refuses("key_known"):
        ledger.countersign(number, BEN)
    assert reopened(ledger).operators() == {BEN.public: "ben", newer.public: "ann"}
