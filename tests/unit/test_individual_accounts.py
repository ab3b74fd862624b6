"""Individual accounts: a unit pays for counted rows alone, is left out once a year is paid, and pays no less."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from unit.individual_scenario import READING, TERMS, Office, plan_for
from unit.ledger_scenario import time_passes

from dphist_pipeline.base.domain import AmountAxis, Domain
from dphist_pipeline.confidential import row_filter
from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger import _replay, moving
from dphist_pipeline.ledger.books import Books
from dphist_pipeline.ledger.entries import Account
from dphist_pipeline.ledger.individual import PARTS, Granted, first_left_out, paid_by_year, price_of_row
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.ledger.signing import Operator
from dphist_pipeline.releasing import _individual_charge as releasing
from dphist_pipeline.releasing.store import Store

PATIENTS = {"often": 3, "seldom": 1, "always": 10}
THIRD, HALF = Fraction(1, 3), Fraction(1, 2)


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    """An account with a total of 2 a year; a charge costs 0.5 and counts at most three rows of a patient."""
    time_passes(monkeypatch, "2026-11-24T06:00:00Z")
    return Office.open(tmp_path / "office")


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(DphistError) as refused:
        call()
    assert str(refused.value).count(". ") == 0, "one sentence"
    return refused.value.code


# What a year pays.


def test_three_rows_a_week_are_counted_in_four_weeks_and_then_left_out(office: Office) -> None:
    # At 1/6 a row twelve rows are paid: 3 a week in four weeks, as of 10 a week.
    assert [office.week(week, PATIENTS) for week in range(6)] == [7] * 4 + [1] * 2
    assert office.paid() == [(1, 1, 0), (2, 0, 1), (2, 0, 1)] and [left for _, _, left in office.paid(4)] == [0, 2, 2]


def test_prices_are_whole_parts_and_rounded_up_where_they_must_be() -> None:
    for rows in range(1, 17):
        assert price_of_row(Fraction(123457, 10**6), rows) == Fraction(123457, 10**6) / rows * PARTS
    assert 0 < price_of_row(Fraction(1, 10**9), 17) - Fraction(1, 10**9) / 17 * PARTS < 1
    # A share of 1/20 for `left_out`: 0.5 pays eleven rows, 0.475 twelve.
    year = paid_by_year(Fraction(2), Fraction(1, 20), Fraction(0))
    assert [year // price_of_row(epsilon, 3) for epsilon in (HALF, Fraction(475, 1000))] == [11, 12]


def test_from_which_charge_on_a_unit_is_left_out_follows_from_charges_alone(office: Office) -> None:
    prices = [(price_of_row(HALF, 3), 3)] * 14
    year = paid_by_year(Fraction(2), Fraction(0), Fraction(0))
    assert [first_left_out(rows, year, prices) for rows in (3, 10, 1)] == [4, 4, 12]
    assert first_left_out(1, year, prices[:12]) is None


def test_a_price_that_changes_within_a_year_and_is_no_divisor_leaves_nobody_above_the_total(office: Office) -> None:
    for week, (epsilon, most) in enumerate([(HALF, 3), (Fraction(1, 7), 5), (Fraction(3, 10), 1), (HALF, 2)] * 3):
        office.week(week, PATIENTS, epsilon=epsilon, rows=most)
    assert all(total <= 2 for total, _, _ in office.paid())
    assert office.paid()[-1][0] > 2 - Fraction(1, 7) / 5 - HALF


def test_a_revision_pays_anew(office: Office) -> None:
    office.week(0, PATIENTS)
    assert office.week(0, PATIENTS, revision=2, reason="the source was corrected") == 7
    assert office.paid() == [(THIRD, 1, 0), (1, 3, 0), (1, 3, 0)]


def test_who_counts_once_in_a_cell_pays_for_one_of_equal_rows(office: Office, tmp_path: Path) -> None:
    rows = {"unit": ["often"] * 4, "code": pa.array([1, 1, 1, 2], pa.int32())}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    for distinct, kept in ((False, 3), (True, 2)):
        plan = replace(plan_for(3), distinct=distinct)
        place = tmp_path / f"{kept}.parquet"
        state = row_filter.write_state(plan, tmp_path / "rows.parquet", place, {}, None, 1, 100)
        assert pq.read_table(place)["paid"].to_pylist() == [kept]
        counted = row_filter.count_granted(plan, tmp_path / "rows.parquet", state)
        assert counted.sum() == kept


def test_an_amount_moves_as_many_parts_as_the_rows_that_a_unit_pays_for(office: Office, tmp_path: Path) -> None:
    cost, parts = Domain((AmountAxis("cost", "cost", 0.0, 10.0),)), 1 << 8
    plan = replace(plan_for(3), domain=cost, parts=parts)
    rows = {"unit": ["often"] * 5 + ["other"], "code": pa.array([0] * 6, pa.int32())}
    pq.write_table(
        pa.table(rows | {"amount": pa.array([0, 256, 7, 9, 256, 100], pa.int32())}), tmp_path / "rows.parquet"
    )
    for pays, kept in ((100, 3), (20, 2), (9, 0)):  # at 10 a row
        place = tmp_path / f"{kept}.parquet"
        state = row_filter.write_state(plan, tmp_path / "rows.parquet", place, {}, None, 10, pays)
        counted = row_filter.count_granted(plan, tmp_path / "rows.parquet", state)
        assert counted.shape == (2,) and counted.sum() == parts * (kept + min(kept, 1))
        assert pq.read_table(place)["paid"].to_pylist().count(10 * kept) >= 1


def test_a_year_may_begin_without_rows(office: Office) -> None:
    assert [office.week(week, patients) for week, patients in enumerate([{}, PATIENTS, {}])] == [0, 7, 0]
    assert office.everybody() == [0, 0, 0] and office.paid()[-1] == (HALF, 0, 0)


def test_units_are_named_once_for_a_charge_and_again_for_another_year(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.week(0, PATIENTS)
    rows, named = office.rows(PATIENTS), lambda: {*rows.staged_rows[1].parent.glob("rows_*")}
    rows.counts(rows.charge(office.request(1)))
    assert len(named()) == 1
    time_passes(monkeypatch, "2027-01-02T06:00:00Z")
    rows.charge(office.request(2))
    assert len(named()) == 2


def test_a_larger_total_gives_everybody_more(office: Office) -> None:
    for week in range(5):
        office.week(week, PATIENTS)
    office.ledger.raise_total("health", Fraction(5, 2), "more", Operator.load())
    assert office.week(5, PATIENTS) == 7


def test_a_charge_names_its_state_and_what_came_before_and_a_year_has_one_key(office: Office) -> None:
    office.week(0, PATIENTS)
    office.week(1, PATIENTS)
    (first, second), states = office.charges(), [row_filter.whole_state(office.file(place), {}) for place in (0, 1)]
    assert first.granted is not None and second.granted is not None and states[0] is not None and states[1] is not None
    assert second.granted.after == first.number and second.granted.year == 2026
    assert states[1].facts["before"] == first.granted.state and states[0].key == states[1].key
    assert "often" not in office.file().read_bytes().decode("latin-1")
    assert office.file().stat().st_mode & 0o077 == 0


def test_a_new_year_begins_with_nothing_paid_and_another_key(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    for week in range(5):
        office.week(week, PATIENTS)
    before = row_filter.whole_state(office.file(), {})
    time_passes(monkeypatch, "2027-01-02T06:00:00Z")
    assert office.week(5, PATIENTS) == 7
    after = row_filter.whole_state(office.file(), {})
    assert before is not None and after is not None and before.key != after.key
    # The year is over, and all that was charged in it is published: its states are gone.
    assert [*office.states.glob("*.parquet")] == [office.file()]


# The number of units that are left out.

SHARE = {"left_out": Fraction(1, 20)}
TENTH = Fraction(1, 10)


@pytest.fixture
def telling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    """The same account, of which a twentieth pays for the numbers of units left out."""
    time_passes(monkeypatch, "2026-11-24T06:00:00Z")
    return Office.open(tmp_path / "telling", **SHARE)


def test_a_share_of_the_total_leaves_eleven_rows_and_tells_once_who_is_left_out(telling: Office) -> None:
    weeks = [(telling.week(week, PATIENTS), telling.left_out) for week in range(6)]
    assert weeks == [(7, 0)] * 3 + [(2 + 1 + 2, 0), (1, 2), (1, 0)]  # 0.5 pays for eleven rows of 1.9
    assert telling.bought() == [TENTH] * 6 and telling.paid()[-1] == (Fraction(11, 6), 0, 1)
    # A price that the rest still pays for counts them again, and they are not left out for the first time any more.
    assert telling.week(6, PATIENTS, epsilon=Fraction(1, 100)) == 7
    assert [telling.week(7, PATIENTS), telling.left_out] == [1, 0]


def test_who_never_had_a_row_or_has_none_now_is_not_left_out(telling: Office) -> None:
    for week in range(5):
        telling.week(week, {"often": 3 if week < 4 else 0, "new": 0})
        assert telling.left_out == 0
    telling.week(5, {"often": 1})
    assert telling.left_out == 1


def test_who_goes_on_or_joins_takes_the_number_from_the_state(telling: Office) -> None:
    for week in range(4):
        telling.week(week, PATIENTS)
    telling.rows(PATIENTS).charge(telling.request(4))  # nothing is drawn
    telling.week(5, PATIENTS)
    assert [telling.week(4, {"others": 3}), telling.left_out] == [0, 2]  # its own reading leaves out nobody


@pytest.mark.parametrize("damage", [Path.unlink, "foreign"])
def test_once_a_state_was_lost_no_charge_of_the_year_has_such_a_number(
    telling: Office, monkeypatch: pytest.MonkeyPatch, damage: Any
) -> None:
    telling.week(0, PATIENTS)
    if damage == "foreign":
        monkeypatch.setattr(row_filter, "form_of_units", lambda reading: "another form")
    else:
        damage(telling.file())
    telling.week(1, PATIENTS)
    telling.week(2, PATIENTS)
    time_passes(monkeypatch, "2027-01-02T06:00:00Z")
    telling.week(3, PATIENTS)
    assert telling.bought() == [TENTH, 0, 0, TENTH]


def test_the_price_follows_the_total_and_a_total_that_no_noise_follows_is_refused(telling: Office) -> None:
    telling.week(0, PATIENTS)
    telling.ledger.raise_total("health", Fraction(4), "more", Operator.load())
    telling.week(1, PATIENTS)
    assert telling.bought() == [TENTH, 2 * TENTH]
    more = lambda: telling.ledger.raise_total("health", Fraction(1001), "more", Operator.load())  # noqa: E731
    assert refusal(more) == "not_recordable"
    telling.ledger.verify()


@pytest.mark.parametrize("left_out", [Fraction(0), 2 * TENTH])
def test_the_ledger_takes_no_other_price_of_the_number(telling: Office, left_out: Fraction) -> None:
    telling.week(0, PATIENTS)
    charge = telling.charges()[0]
    assert charge.granted is not None
    granted = replace(charge.granted, state="0" * 32, after=charge.number, left_out=left_out)
    with pytest.raises(ValueError):
        telling.ledger.charge(telling.request(1, granted=granted))
    with pytest.raises(ValueError):  # nor any once everybody paid for a lost state
        telling.ledger.charge(telling.request(1, granted=replace(granted, everybody=HALF, left_out=TENTH)))


@pytest.mark.parametrize("planted", [False, True])
def test_all_numbers_of_a_year_move_by_one_with_a_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: bool
) -> None:
    time_passes(monkeypatch, "2026-11-24T06:00:00Z")
    if planted:  # `left` is set in every charge that leaves a unit out
        real = row_filter.statement
        twice = lambda *a, **k: real(*a, **k).replace("WHEN left_before > 0 THEN 1 ", "")  # noqa: E731
        monkeypatch.setattr(row_filter, "statement", twice)
    here, there = (Office.open(tmp_path / name, **SHARE) for name in ("with", "without"))
    moved = 0
    for week in range(8):
        others = {"other": 3, "later": 3 if week > 1 else 0}
        here.week(week, {**others, "unit": 3})
        there.week(week, others)
        moved += abs(here.left_out - there.left_out)
    assert moved == (4 if planted else 1)


def test_a_charge_that_was_dated_ahead_costs_everybody_its_number_too(
    telling: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    time_passes(monkeypatch, "2027-03-01T06:00:00Z")
    telling.week(0, PATIENTS)
    time_passes(monkeypatch, "2026-11-30T06:00:00Z")
    telling.ledger.adopt("the clock was ahead", (), {"health": Fraction(0)}, Operator.load())
    telling.week(1, PATIENTS)
    assert telling.everybody() == [0, HALF + TENTH] and telling.bought() == [TENTH, 0]
    time_passes(monkeypatch, "2027-01-02T06:00:00Z")
    telling.week(2, PATIENTS)  # goes on from the state of its own year
    assert telling.everybody()[-1] == 0 and telling.bought()[-1] == TENTH


def test_what_everybody_paid_stays_a_number_that_the_ledger_can_write(office: Office) -> None:
    for week in range(2):
        office.week(week, PATIENTS, epsilon=Fraction(10**27, 10**29 + 1 + 2 * week))
        office.file().unlink()
    office.week(2, PATIENTS)
    exact = sum((charge.epsilon for charge in office.charges()[:2]), Fraction(0))
    assert 0 <= office.everybody()[-1] - exact <= Fraction(1, PARTS)
    office.ledger.verify()


# States that are lost, damaged, swapped, old or foreign.


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def richer(path: Path) -> None:
    """By hand: nobody has paid; everything else is as it was."""
    with pq.ParquetFile(path) as file:
        table, facts = file.read(), file.metadata.metadata
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table.set_column(1, "paid", pa.array([0] * len(table), pa.int64())))
        writer.add_key_value_metadata({name: facts[name] for name in facts if name.startswith(b"dphist")})


@pytest.mark.parametrize("damage", [Path.unlink, cut, richer])
def test_a_lost_or_damaged_state_is_paid_by_everybody(office: Office, damage: Callable[[Path], None]) -> None:
    for week in range(3):
        office.week(week, PATIENTS)
    damage(office.file())
    # Two weeks by their state, 0.5 for the third: who had three rows a week has 1/2 left.
    assert [office.week(3, PATIENTS), office.week(4, PATIENTS)] == [7, 1]
    assert office.everybody() == [0, 0, 0, HALF, HALF]


def test_no_byte_of_a_state_changes_without_being_noticed(office: Office) -> None:
    office.week(0, PATIENTS)
    content, place = office.file().read_bytes(), office.file().with_name("0.parquet")
    for number in range(0, len(content), 3):
        place.write_bytes(content[:number] + bytes([content[number] ^ 0x15]) + content[number + 1 :])
        assert row_filter.whole_state(place, {}) is None
    place.write_bytes(content)
    assert row_filter.whole_state(place, {}) == replace(row_filter.whole_state(office.file(), {}), path=place)  # type: ignore[type-var]


def test_a_state_under_the_name_of_another_is_none(office: Office) -> None:
    for week in range(3):
        office.week(week, PATIENTS)
    first, second, swap = office.file(1), office.file(2), office.file(2).with_name("swap")
    for path, name in ((first, swap), (second, first), (swap, second)):
        path.rename(name)
    office.week(3, PATIENTS)
    assert office.everybody()[-1] == Fraction(3, 2)


def test_a_state_that_was_put_back_from_a_backup_serves_as_long_as_it_is_the_newest(office: Office) -> None:
    office.week(0, PATIENTS)
    backup = shutil.copytree(office.states, office.folder / "backup")
    office.week(1, PATIENTS)
    office.week(2, PATIENTS)
    shutil.rmtree(office.states)
    shutil.copytree(backup, office.states)
    # 1/6 or 1/2 by the first week's state, and 0.5 for each of the two others.
    assert [office.week(3, PATIENTS), office.week(4, PATIENTS)] == [7, 1] and office.everybody()[-1] == 1


def test_where_all_states_are_gone_nobody_has_more_than_the_total(office: Office) -> None:
    for week in range(4):
        assert office.week(week, PATIENTS) == 7
        shutil.rmtree(office.states)
    assert refusal(lambda: office.week(4, PATIENTS)) == "counts_nobody" and len(office.charges()) == 4


def test_a_state_that_names_units_in_another_form_is_foreign(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.week(0, PATIENTS)
    monkeypatch.setattr(row_filter, "form_of_units", lambda reading: "another form")
    office.week(1, PATIENTS)
    assert office.everybody() == [0, HALF]


def test_the_form_of_units_changes_with_the_reading_and_where_names_are_normalised_with_duckdb(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folded = replace(READING, unit_normalise=("fold",))
    forms = [row_filter.form_of_units(reading) for reading in (READING, replace(READING, unit_kinds=("UUID",)), folded)]
    monkeypatch.setattr(row_filter, "installed_minor", lambda name: "9.9")
    assert len({*forms, row_filter.form_of_units(folded)}) == 4
    assert row_filter.form_of_units(READING) == forms[0]


def test_only_the_newest_states_stay_and_those_of_charges_that_may_still_draw(office: Office) -> None:
    for week in range(6):
        office.week(week, PATIENTS, published=week != 1)
    assert {*office.states.glob("*.parquet")} == {office.file(1), office.file(4), office.file(5)}


# Attempts that end early, that race, and that join.


class Killed(BaseException):
    """As if the process had died."""


def killed(*_: Any) -> None:
    raise Killed


def test_a_state_whose_charge_was_never_made_does_not_count(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    office.week(0, PATIENTS)
    for _ in range(3):
        with monkeypatch.context() as patched, pytest.raises(Killed):
            patched.setattr(Ledger, "charge", killed)
            office.week(1, PATIENTS)
    assert len([*office.states.glob("*.parquet")]) == 2  # each attempt deletes what the last one left
    assert office.week(1, PATIENTS) == 7
    assert office.paid() == [(THIRD, 1, 0), (1, 3, 0), (1, 3, 0)]


def test_a_state_is_durable_before_its_charge(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for name in ("sync_file", "sync_folder"):
        real = getattr(row_filter, name)
        monkeypatch.setattr(row_filter, name, lambda path, real=real, name=name: (done.append(name), real(path)))
    charge = Ledger.charge
    monkeypatch.setattr(Ledger, "charge", lambda self, request: (done.append("charge"), charge(self, request))[1])
    office.week(0, PATIENTS)
    assert done == ["sync_file", "sync_folder", "charge"]


def test_who_goes_on_after_a_crash_counts_as_many_rows_as_were_paid(office: Office) -> None:
    office.rows(PATIENTS).charge(office.request(0))  # nothing is drawn
    for week in range(1, 6):  # meanwhile the year is used up
        office.week(week, PATIENTS)
    # The source has changed: who is not in the state is not counted, and nobody has more rows than were paid.
    assert office.week(0, {**PATIENTS, "new": 3, "seldom": 9, "always": 2}) == 3 + 1 + 2
    assert len(office.charges()) == 6


def test_a_charge_that_must_still_draw_and_lacks_its_state_is_refused_and_a_revision_pays_anew(office: Office) -> None:
    office.rows(PATIENTS).charge(office.request(0))
    office.file().unlink()
    rows = office.rows(PATIENTS)
    with pytest.raises(DphistError) as refused:
        rows.counts(rows.charge(office.request(0)))
    assert refused.value.code == "state_lost"
    office.week(0, PATIENTS, revision=2, reason="its state was lost")
    assert office.everybody() == [0, HALF]


def test_what_was_charged_on_31_december_is_finished_on_2_january_by_the_old_year(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    for week in range(4):
        office.week(week, PATIENTS)
    time_passes(monkeypatch, "2026-12-31T23:59:00Z")
    charge = office.rows(PATIENTS).charge(office.request(4))
    time_passes(monkeypatch, "2027-01-02T06:00:00Z")
    assert office.week(5, PATIENTS) == 7
    kept = office.file(4)
    assert kept.exists()  # its charge may still draw, though the year is over
    assert office.week(4, PATIENTS, published=False) == 1 and len(office.charges()) == 6
    releasing.States.of(office.store, office.ledger, "health").note_answered(charge)
    office.week(6, PATIENTS)
    assert not kept.exists() and not kept.with_suffix(".answered").exists()


def at_the_commit(monkeypatch: pytest.MonkeyPatch, happens: Iterator[Callable[[], object]]) -> None:
    """Something happens between filter and commit, by a program that knows no lock, as one beside a copy."""
    charge = Ledger.charge

    def overtaken(self: Ledger, request: Any) -> Any:
        monkeypatch.setattr(releasing.States, "lock", lambda self: nullcontext())
        next(happens, lambda: None)()
        return charge(self, request)

    monkeypatch.setattr(Ledger, "charge", overtaken)


def test_a_new_year_between_filter_and_commit_filters_again(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    for week in range(4):
        office.week(week, PATIENTS)
    at_the_commit(monkeypatch, iter([lambda: time_passes(monkeypatch, "2027-01-01T00:00:01Z")]))
    assert office.week(4, PATIENTS) == 7
    assert office.charges()[-1].year == 2027 and [rows for _, rows, _ in office.paid()] == [1, 3, 3]


def test_a_charge_between_filter_and_commit_filters_again_and_reads_once(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    for week in range(3):
        office.week(week, PATIENTS)
    another = Office(office.folder, Ledger.open(office.ledger.url))
    # It has a folder of states of its own, so that this one must think that it is lost.
    monkeypatch.setattr(Office, "rows", _reading_once(Office.rows, reads := []))
    at_the_commit(monkeypatch, iter([lambda: another.week(3, PATIENTS)]))
    assert office.week(4, PATIENTS) == 1
    assert [charge.period for charge in office.charges()] == ["00", "01", "02", "03", "04"]
    assert office.paid() == [(Fraction(5, 6), 1, 0), (2, 0, 2), (2, 0, 2)]
    assert len(reads) == 2  # one reading each


def _reading_once(rows: Any, reads: list[int]) -> Any:
    def counted(self: Office, *arguments: Any) -> Any:
        made = rows(self, *arguments)
        read = made.read
        made.read = lambda: (reads.append(1), read())[1]
        return made

    return counted


def test_an_adoption_between_filter_and_commit_filters_again(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def adopt() -> None:
        Ledger.open(office.ledger.url).adopt("restored", (), {"health": Fraction(3, 2)}, Operator.load())

    at_the_commit(monkeypatch, iter([adopt]))
    office.week(0, PATIENTS)
    assert office.everybody() == [Fraction(3, 2)]
    assert refusal(lambda: office.week(1, PATIENTS, epsilon=Fraction(8, 5), rows=1)) == "counts_nobody"


def test_who_joins_a_charge_drops_its_own_count(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    another = Office(office.folder, Ledger.open(office.ledger.url))
    at_the_commit(monkeypatch, iter([lambda: another.rows({"often": 1, "seldom": 2}).charge(another.request(0))]))
    assert office.week(0, PATIENTS) == 1 + 1  # not its own 3 + 1 + 3: a patient has the rows that the charge paid for
    assert len(office.charges()) == 1 and office.paid() == [(Fraction(1, 6), 1, 0), (THIRD, 2, 0)]


def test_an_account_in_use_is_left_after_a_while_and_the_same_call_may_be_tried_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(releasing, "WAIT_SECONDS", 0.1)
    states = releasing.States.of(office.store, office.ledger, "health")
    with states.lock(), pytest.raises(DphistError) as refused:
        office.week(0, PATIENTS)
    assert (refused.value.code, refused.value.try_again) == ("account_in_use", True)
    assert office.charges() == []


# Planted faults: what each guards, in a year in which a patient with three rows a week comes to the guarded place.

Plant = Callable[[pytest.MonkeyPatch], None]


def lost_of_a_year(office: Office, weeks: Iterable[int], rows: int = 3) -> Fraction:
    """What a patient with so many rows a week loses in these weeks: 1/6 for each row that was measured."""
    return sum((Fraction(office.week(week, {"often": rows}), 6) for week in weeks), Fraction(0))


def overtaken_by_a_charge(office: Office, monkeypatch: pytest.MonkeyPatch) -> Fraction:
    """Three weeks are paid for; at the commit of another one a fourth is charged."""
    paid, another = lost_of_a_year(office, range(3)), Office(office.folder, Ledger.open(office.ledger.url))
    between: list[Fraction] = []
    at_the_commit(monkeypatch, iter([lambda: between.append(lost_of_a_year(another, [3]))]))
    return paid + lost_of_a_year(office, [4]) + sum(between, Fraction(0))


def overtaken_by_a_joiner(office: Office, monkeypatch: pytest.MonkeyPatch) -> Fraction:
    """Somebody who reads a row of the patient makes the charge that a reader of three rows joins."""
    another = Office(office.folder, Ledger.open(office.ledger.url))
    at_the_commit(monkeypatch, iter([lambda: another.rows({"often": 1}).charge(another.request(0))]))
    return lost_of_a_year(office, range(6))


def without_files(office: Office, monkeypatch: pytest.MonkeyPatch) -> Fraction:
    """After each charge its file is lost."""
    lost = Fraction(0)
    for week in range(3):
        lost += lost_of_a_year(office, [week])
        shutil.rmtree(office.states)
    return lost + lost_of_a_year(office, range(3, 6))


def of_an_absent_patient(office: Office, monkeypatch: pytest.MonkeyPatch) -> Fraction:
    """The patient has no rows for three weeks, as after an erasure, and comes back."""
    lost = lost_of_a_year(office, range(4)) + lost_of_a_year(office, range(4, 7), rows=0)
    return lost + lost_of_a_year(office, [7])


def finished_late(office: Office, monkeypatch: pytest.MonkeyPatch) -> Fraction:
    """A run is killed before its measurements, and goes on with more rows when the year is used up."""
    office.rows({"often": 1}).charge(office.request(0))
    return lost_of_a_year(office, range(1, 6)) + lost_of_a_year(office, [0])


def reads_the_ledger_after_the_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    charge = Ledger.charge

    def late(self: Ledger, request: Any) -> Any:
        after = self.books().paid_at("health")
        return charge(self, replace(request, granted=replace(request.granted, after=after)))

    monkeypatch.setattr(Ledger, "charge", late)


def charges_whatever_came_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Books, "paid_at", lambda self, account: 0)


def keeps_what_a_refused_attempt_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    real, first = releasing._counts, dict[Path, Any]()

    def of_the_first(plan: Any, staged: Path, state: Any) -> Any:
        if staged not in first:
            first[staged] = real(plan, staged, state)
        return first[staged]

    monkeypatch.setattr(releasing, "_counts", of_the_first)


def joins_by_its_own_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    real = releasing.GrantedRows.counts
    own = lambda self, charge: self._counted[1] if self._counted[0] else real(self, charge)  # noqa: E731
    monkeypatch.setattr(releasing.GrantedRows, "counts", own)


def takes_a_lost_file_as_nothing_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    newest = releasing.States._newest
    free = lambda *given: (*newest(*given)[:2], Fraction(0))  # noqa: E731
    monkeypatch.setattr(releasing.States, "_newest", free)


def forgets_who_has_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    real = row_filter.statement
    only_here = lambda *a, **k: real(*a, **k).replace("FULL JOIN", "RIGHT JOIN")  # noqa: E731
    monkeypatch.setattr(row_filter, "statement", only_here)


def finishes_by_the_newest_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    real = row_filter.statement
    whole = lambda *a, **k: real(*a, **k).replace("SELECT units.unit, state.rows", "SELECT units.unit, 3 AS rows")  # noqa: E731
    monkeypatch.setattr(row_filter, "statement", whole)


@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize(
    ("plant", "year"),
    [
        (reads_the_ledger_after_the_filter, overtaken_by_a_charge),
        (charges_whatever_came_between, overtaken_by_a_charge),
        (keeps_what_a_refused_attempt_counted, overtaken_by_a_charge),
        (joins_by_its_own_rows, overtaken_by_a_joiner),
        (takes_a_lost_file_as_nothing_paid, without_files),
        (forgets_who_has_no_rows, of_an_absent_patient),
        (finishes_by_the_newest_reading, finished_late),
    ],
    ids=lambda part: part.__name__,
)
def test_a_patient_loses_at_most_the_total_and_a_planted_fault_would_lose_more(
    office: Office, monkeypatch: pytest.MonkeyPatch, plant: Plant, year: Any, planted: bool
) -> None:
    if planted:
        plant(monkeypatch)
    assert (year(office, monkeypatch) > 2) == planted


def test_whoever_sweeps_beside_a_charge_leaves_its_state(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(office.folder, "store", office.ledger.id)
    assert store.confidential == office.store.confidential
    at_the_commit(monkeypatch, iter([store.sweep]))
    assert office.week(0, PATIENTS) == 7 and office.file().exists()


def test_a_run_that_was_killed_in_december_before_its_charge_pays_in_january(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    for week in range(4):
        office.week(week, PATIENTS)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(Ledger, "charge", killed)
        office.week(4, PATIENTS)
    time_passes(monkeypatch, "2027-01-02T06:00:00Z")
    assert office.week(4, PATIENTS) == 7 and office.charges()[-1].year == 2027
    assert office.paid() == [(Fraction(1, 6), 1, 0), (HALF, 3, 0), (HALF, 3, 0)]


def test_no_rows_and_units_that_are_all_spent_give_an_ordinary_charge(office: Office) -> None:
    assert [office.week(week, {"often": 3}) for week in range(6)] == [3] * 4 + [0] * 2
    assert office.week(6, {}) == 0 and len(office.charges()) == 7


# Clocks and adoptions.


def test_a_charge_dated_ahead_is_paid_by_everybody_after_an_adoption_and_goes_on_in_its_own_year(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.week(0, PATIENTS)
    time_passes(monkeypatch, "2027-03-01T06:00:00Z")
    office.week(1, PATIENTS)
    time_passes(monkeypatch, "2026-11-30T06:00:00Z")
    office.ledger.adopt("the clock was ahead", (), {"health": Fraction(0)}, Operator.load())
    office.week(2, PATIENTS)
    # The state of the first week went when a later year began; so both are paid by everybody.
    assert office.everybody() == [0, 0, 1]
    time_passes(monkeypatch, "2027-01-02T06:00:00Z")
    office.week(3, PATIENTS)
    assert office.everybody()[-1] == 0 and office.paid()[-1] == (1, 3, 0)  # with the week that was dated ahead


# What such an account refuses, each in a sentence.


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"renews": None}, "individual_needs"),
        ({"neighbours": "substitute"}, "individual_needs"),
        ({"privacy_unit": "row"}, "individual_needs"),
        ({"left_out": Fraction(1)}, "not_recordable"),
        ({"left_out": Fraction(-1, 20)}, "not_recordable"),
        ({"left_out": Fraction(1, 10**9)}, "not_recordable"),
        ({"accounting": "summed", "left_out": Fraction(1, 20)}, "not_recordable"),
        ({"accounting": "concentrated"}, "not_recordable"),
    ],
)
def test_terms_that_an_individual_account_cannot_have(office: Office, terms: dict[str, Any], code: str) -> None:
    another = replace(TERMS, name="another", **terms)
    assert refusal(lambda: office.ledger.open_account(another, Operator.load(), READING)) == code


@pytest.mark.parametrize("kinds", [(), ("number",), ("NULL",), ("text", "text")])
def test_units_whose_names_may_be_staged_in_several_ways_are_refused(office: Office, kinds: tuple[str, ...]) -> None:
    another, reading = replace(TERMS, name="another"), replace(READING, address="b.parquet", unit_kinds=kinds)
    assert refusal(lambda: office.ledger.open_account(another, Operator.load(), reading)) == "individual_units"
    assert refusal(lambda: office.ledger.open_account(another, Operator.load())) == "individual_needs"
    assert [account.name for account in office.ledger.accounts()] == ["health"]


@pytest.mark.parametrize(
    "what",
    [
        {"source": replace(READING, csv_quote="").facts()},
        {"source": replace(READING, unit_kinds=("UUID",)).facts()},
        {"source": replace(READING, address="others.parquet").facts()},
        {"query": {"sha256": "0" * 64, "name": "query.sql", "tries": True}},
        {"engine": {"name": "sc://here", "server": "here"}},
        {"check": {"name": "raw/visits:complete"}},
    ],
)
def test_nothing_but_the_source_of_the_opening_is_ever_allowed(office: Office, what: dict[str, Any]) -> None:
    allow = lambda: office.ledger.allow("health", what, Operator.load(), "a reason")  # noqa: E731
    assert refusal(allow) == "individual_reads_one"
    office.ledger.disallow(office.ledger.decisions("health")[0].number, "not now", Operator.load())
    assert refusal(allow) == "individual_reads_one"
    assert office.ledger.allow("health", {"source": READING.facts()}, Operator.load()) is not None


@pytest.mark.parametrize(
    "changes", [{"quality": True}, {"checks": ("raw/visits:complete",)}, {"query": "0" * 64}, {"engine": "spark"}]
)
def test_what_the_filter_does_not_see_is_refused(office: Office, changes: dict[str, Any]) -> None:
    # Also before anything is read: no decision of an operator could allow it.
    for judge in (office.ledger.check, office.ledger.decisions_for):
        assert refusal(lambda judge=judge: judge(office.request(0, **changes))) == "not_individual"


def test_a_release_by_another_source_is_not_told_to_allow_it(office: Office) -> None:
    for address in ("frame:patients", "others.parquet"):
        other = office.request(0, source=replace(READING, address=address))
        assert refusal(lambda other=other: office.ledger.check(other)) == "individual_reads_one"  # type: ignore[misc]
    office.ledger.disallow(office.ledger.decisions("health")[0].number, "not now", Operator.load())
    with pytest.raises(DphistError) as refused:
        office.ledger.check(office.request(0))
    assert refused.value.code == "not_allowed"


def test_a_charge_that_could_count_nobody_is_refused_before_it_is_made(office: Office) -> None:
    assert refusal(lambda: office.ledger.check(office.request(0, epsilon=Fraction(7)))) == "counts_nobody"
    office.ledger.check(office.request(0, epsilon=Fraction(6)))


def test_a_ledger_on_a_server_has_no_such_account(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    target, of_file = f"sqlite:///{office.folder}/moved.sqlite", moving.ledger_database
    as_server = lambda url: of_server(of_file(url)) if str(url) == target else of_file(url)  # noqa: E731
    monkeypatch.setattr(moving, "ledger_database", as_server)
    move = lambda: moving.move(office.ledger.url, office.ledger.id, target, Operator.load())  # noqa: E731
    assert refusal(move) == "individual_on_server"
    office.week(0, PATIENTS)  # it is where it was
    of_server(office.ledger._file)
    another = replace(TERMS, name="another")
    assert refusal(lambda: office.ledger.open_account(another, Operator.load(), READING)) == "individual_on_server"


def of_server(database: Any) -> Any:
    """A database in a file that says that it is on a server."""
    database.__class__ = type("Served", (type(database),), {"engine": "postgresql"})
    return database


def test_another_host_is_refused(office: Office) -> None:
    office.week(0, PATIENTS)
    other = replace(office.request(1), folder=replace(office.request(1).folder, id="1" * 32))  # type: ignore[type-var]
    with pytest.raises(DphistError) as refused:
        office.ledger.check(other)
    assert refused.value.code == "charged_elsewhere"


@pytest.mark.parametrize("kind", ["opened", "charged"])
def test_a_program_that_knows_no_individual_accounts_refuses_the_ledger(
    office: Office, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    office.week(0, PATIENTS)
    needed, known = _replay._FACTS[kind]
    monkeypatch.setitem(_replay._FACTS, kind, (needed, known - {"accounting", "left_out", "granted"}))
    with pytest.raises(DphistError) as refused:
        Ledger.open(office.ledger.url).verify()
    assert refused.value.code == "ledger_altered"


@pytest.mark.parametrize("states", [True, False])
def test_a_charge_that_does_not_pay_as_its_account_asks_for_is_an_altered_ledger(
    office: Office, monkeypatch: pytest.MonkeyPatch, states: bool
) -> None:
    if states:  # one that names a state, in a summed account
        summed = replace(TERMS, name="summed", accounting="summed")
        office.ledger.open_account(summed, Operator.load(), READING, also_of=("health",))
    granted = Granted(3, "0" * 32, office.ledger.books().adopted_at, Fraction(0), 2026) if states else None
    request = office.request(0, account="summed" if states else "health", granted=granted)
    with monkeypatch.context() as patched:
        patched.setattr(Account, "is_individual", property(lambda self: states))
        office.ledger.charge(request)
    with pytest.raises(DphistError) as refused:
        Ledger.open(office.ledger.url).verify()
    assert refused.value.code == "ledger_altered"


def test_the_ledger_holds_together_and_takes_no_state_twice(office: Office) -> None:
    office.week(0, PATIENTS)
    office.ledger.verify()
    granted = office.charges()[0].granted
    assert granted is not None
    again = replace(granted, after=office.charges()[0].number)
    with pytest.raises(ValueError):
        office.ledger.charge(office.request(1, granted=again))
    with pytest.raises(ValueError):
        office.ledger.charge(office.request(1))
