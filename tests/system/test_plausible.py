"""A period that cannot be right says so first, and waits for a person where its spec asks for that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from office import Office
from publishing.carded import Read
from system.orchestrated import defined, said
from system.test_compared import RENAMED, USUAL, WEEKLY, WEEKS, check_of, records

from dphist_pipeline.answering.cells_beyond_chance import CellsAboveZero, cells_above_zero
from dphist_pipeline.releasing.due import charges_of
from dphist_pipeline.releasing.spec_check import load_spec
from dphist_pipeline.releasing.store import Store

pytestmark = pytest.mark.draws_alike

WITHOUT = {"surgery": 0}


@pytest.fixture
def office(office: Office) -> Office:
    with_three_weeks(office.opened())
    return office


def with_three_weeks(office: Office, **changes: Any) -> None:
    """A usual week, one without a record, and one with a renamed code."""
    office.write_records(records({WEEKS[0]: USUAL, WEEKS[1]: WITHOUT, WEEKS[2]: RENAMED}))
    office.write_spec(**WEEKLY, **changes)


@pytest.fixture
def begun(office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    """Another one, where periods in doubt wait for a person; the usual week is published."""
    other = Office(tmp_path / "begun").prepared(with_usual_week)
    monkeypatch.setenv("DPHIST_WITNESS", str(other.witness))
    monkeypatch.chdir(other.folder)
    return other


def with_usual_week(office: Office) -> None:
    with_three_weeks(office, publish="if_plausible")
    office.released("--period", WEEKS[0])


def cells_of(office: Office, week: str) -> CellsAboveZero:
    return cells_above_zero([office.published(period=week)])


@pytest.mark.slow
def test_a_week_without_records_begins_with_that_on_card_and_command(office: Office) -> None:
    usual = office.released("--period", WEEKS[0])
    assert "holds 0" not in usual.out
    empty = office.released("--period", WEEKS[1])
    assert "The interval of the total holds 0" in empty.out and "are all records there?" in empty.out
    again = office.released("--period", WEEKS[1], "--json").json
    assert again["replayed"] and again["total_holds_zero"]
    page = Read((office.published(period=WEEKS[1]) / "card.html").read_text()).text
    first, second = page.index("The records may be missing: the interval of the total"), page.index("the total fell")
    assert first < second < page.index("These are counts of")
    assert "may be missing" not in (office.published(period=WEEKS[0]) / "card.html").read_text()


@pytest.mark.slow
def test_cells_of_a_week_without_records_tell_no_more_than_chance_makes(office: Office) -> None:
    for week in WEEKS[:2]:
        office.released("--period", week)
    assert cells_of(office, WEEKS[0]).tell
    found = cells_of(office, WEEKS[1])
    assert not found.tell and found.cells == 21 and 0.4 < found.by_chance < 0.6


@pytest.mark.slow
def test_one_cell_far_above_zero_or_many_a_little_tell_something(office: Office) -> None:
    office.released("--period", WEEKS[1])
    folder = office.published(period=WEEKS[1])
    audit, table = json.loads((folder / "audit.json").read_bytes()), pq.read_table(folder / "histogram.parquet")
    width = table["unbiased_estimate"].to_numpy() - table["ci_lower"].to_numpy()

    def told(counts: Any) -> bool:
        """As if the file held other counts; digests are not looked at here."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("dphist_pipeline.answering.cells_beyond_chance.read_audit", lambda folder: audit)
            changed = table.set_column(
                table.schema.get_field_index("unbiased_estimate"), "unbiased_estimate", pa.array(counts, pa.float64())
            )
            pq.write_table(changed, folder / "histogram.parquet")
            return cells_above_zero([folder]).tell

    places = np.arange(21)
    assert not told(np.where(places < 2, width + 2, 0.0)), "two of 21: chance alone makes 0.5"
    assert told(np.where(places < 6, width + 2, 0.0))
    assert told(np.where(places < 1, 4 * width, 0.0))


def test_noise_alone_is_taken_for_records_in_at_most_one_of_a_thousand(office: Office) -> None:
    """Of independent cells; the other rule, about one cell far above zero, is Markov's inequality."""
    from dphist_pipeline.answering.cells_beyond_chance import BY_CHANCE, _at_least

    for cells in (30, 300, 30_000):
        number = next(n for n in range(1, cells + 1) if _at_least(n, cells / 40) <= float(BY_CHANCE))
        above = np.random.default_rng([37, cells]).binomial(cells, 1 / 40, 100_000)
        assert (above >= number).mean() <= 1e-3


@pytest.mark.slow
def test_first_visits_are_no_sign_of_another_spelling_and_a_first_row_is_never_cut(office: Office) -> None:
    gap = {"name": "gap", "of_unit": "days_since", "within": "30 days", "edges": [0, 2, 8], "other": True}
    for mode in ("first", "all"):
        office.write_spec(**WEEKLY, axes=[gap], take=mode, release=f"{mode}_visits", publish="if_plausible")
        assert ("keeps rows out of the counts" in office.run("check", "spec.yaml").out) == (mode == "all")
        assert "Published" in office.released("--period", WEEKS[0]).out


@pytest.mark.slow
def test_an_axis_that_is_nearly_all_other_is_told_with_what_to_do(office: Office) -> None:
    told = {
        WEEKS[0]: USUAL,
        WEEKS[1]: {"Surgery": 900, "Medicine": 1_500},
        WEEKS[2]: {"Surgery": 900, "medicine": 100},
        WEEKS[3]: WITHOUT,
    }
    office.write_records(records(told))
    for week in (WEEKS[0], WEEKS[2]):
        assert "nearly all rows" not in office.released("--period", week).out
    week = WEEKS[1]
    shown = " ".join(office.released("--period", week).out.split())
    assert "`other` holds nearly all rows along ward, and no declared value stands out of its noise" in shown
    for named in (f"dphist look SPEC --period {week}", "`decimal_comma`", "`spellings`", "`publish: if_plausible`"):
        assert named in shown
    assert f"dphist withdraw wards {week} --reason TEXT" in shown
    (said,) = office.released("--period", week, "--json").json["warnings"]
    assert said.startswith("`other` holds nearly all rows along ward")
    empty = " ".join(office.released("--period", WEEKS[3]).out.split())
    assert "`period_format`" in empty and f"dphist look SPEC --period {WEEKS[3]}" in empty
    assert f"dphist withdraw wards {WEEKS[3]} --reason TEXT" in empty and "nearly all rows" not in empty


def test_a_period_that_is_nearly_all_other_waits_where_the_spec_asks_for_it(office: Office) -> None:
    office.write_spec(**WEEKLY, publish="if_plausible")
    office.write_records(records({WEEKS[0]: {"Surgery": 900, "Medicine": 1_500}}))
    waiting = office.released("--period", WEEKS[0], "--json").json
    assert waiting["awaits_approval"] and waiting["why"] == "Nearly all rows are `other` along ward."


@pytest.mark.slow
@pytest.mark.parametrize("week", [1, 2], ids=["no records", "a renamed code"])
def test_a_period_in_doubt_waits_for_a_person_where_the_spec_asks_for_it(begun: Office, week: int) -> None:
    waiting = begun.released("--period", WEEKS[week], "--json").json
    assert waiting["awaits_approval"] and not begun.published(period=WEEKS[week]).exists()
    why = "code renamed?" if week == 2 else "the interval of the total holds 0"
    assert why in waiting["why"].lower() and not any(sign.isdigit() for sign in waiting["why"].replace(" 0", ""))
    told = begun.released("--period", WEEKS[week]).out
    assert "`publish: if_plausible`" in told and "dphist publish SPEC" in told
    doctor = {one["check"]: one for one in begun.run("doctor", "--json").json["checks"]}
    assert f"1 releases wait for approval (wards, period {WEEKS[week]}," in doctor["approvals"]["seen"]
    assert f"wards {WEEKS[week]}" not in doctor["due"]["seen"] + doctor["runs"]["seen"]
    with begun.witnessed():
        store = Store.open(begun.store)
        assert [store.is_marked_for_approval(charge) for charge, _ in charges_of(store.ledger(), "wards")] == [
            False,
            True,
        ]
    spent = begun.run("ledger", "show", "health", "--json").json[0]["spent"]
    assert spent == "2"
    done = begun.run("publish", begun.folder / "spec.yaml", "--period", WEEKS[week], "--approved-by", "Ada", "--json")
    assert done.json["approved"]["by"] == "Ada"
    doctor = {one["check"]: one for one in begun.run("doctor", "--json").json["checks"]}
    assert doctor["doubtful"]["state"] == "ok", "a person looked at it"
    page = Read((begun.published(period=WEEKS[week]) / "card.html").read_text()).text
    assert "so ε covers it, and the period stays charged" in page
    assert "only if nobody looked at the records meanwhile" in page
    assert "said of periods as they are drawn, not of those that were let out" in page
    assert begun.run("ledger", "show", "health", "--json").json[0]["spent"] == spent


@pytest.mark.slow
def test_the_doctor_says_which_published_periods_may_be_wrong_until_somebody_acts(office: Office) -> None:
    def seen() -> tuple[str, str]:
        (found,) = [one for one in office.run("doctor", "--json").json["checks"] if one["check"] == "doubtful"]
        return found["state"], found["seen"]

    office.released("--period", WEEKS[0])
    assert seen()[0] == "ok"
    office.released("--period", WEEKS[1])
    office.released("--period", WEEKS[2])
    state, said = seen()
    assert state == "warning" and f"wards {WEEKS[1]}; wards {WEEKS[2]}; wards {WEEKS[1]}: the interval of its" in said
    for week in WEEKS[1:3]:
        assert office.run("withdraw", "wards", week, "--reason", "wrong records").code == 0
    assert seen()[0] == "ok"


@pytest.mark.slow
def test_an_edit_of_the_spec_is_no_approval_of_a_period_that_was_held_in_doubt(begun: Office) -> None:
    begun.released("--period", WEEKS[1])
    begun.write_attributes_alone(**WEEKLY, publish="automatic")
    waiting = begun.released("--period", WEEKS[1], "--json").json
    assert waiting["awaits_approval"]
    assert "held back under `publish: if_plausible`" in begun.released("--period", WEEKS[1]).out
    assert not begun.published(period=WEEKS[1]).exists()
    published = begun.released("--period", WEEKS[0], "--json").json
    assert published["replayed"], "what went out by itself replays"
    done = begun.run("publish", begun.folder / "spec.yaml", "--approved-by", "Ada", "--json")
    assert done.json["approved"]["by"] == "Ada" and begun.published(period=WEEKS[1]).exists()
    assert begun.released("--period", WEEKS[1], "--json").json["replayed"]


@pytest.mark.slow
def test_a_plausible_period_goes_out_by_itself_and_its_card_says_the_rule(begun: Office) -> None:
    assert "waits for a person" in (begun.published(period=WEEKS[0]) / "card.html").read_text()
    late = begun.run("publish", begun.folder / "spec.yaml", "--period", WEEKS[0], "--approved-by", "Ada")
    assert late.code == 1 and "published before" in late.err


@pytest.mark.slow
def test_a_period_in_doubt_can_be_rejected_and_stays_charged(office: Office) -> None:
    office.write_spec(**WEEKLY, publish="if_plausible")
    office.released("--period", WEEKS[1])
    assert office.run("reject", "wards", WEEKS[1], "--reason", "no file came").code == 0
    assert office.run("ledger", "show", "health", "--json").json[0]["spent"] == "1"
    assert office.release("--period", WEEKS[1]).code == 1


def test_the_rule_is_off_by_default_and_changes_no_digest(office: Office) -> None:
    before = load_spec(office.folder / "spec.yaml", office.store)
    office.write_spec(**WEEKLY, publish="if_plausible")
    after = load_spec(office.folder / "spec.yaml", office.store)
    assert (before.publish, after.publish) == ("automatic", "if_plausible") and before.digest == after.digest


@pytest.mark.slow
def test_under_dagster_a_period_in_doubt_fails_its_run_and_names_the_way_out(office: Office) -> None:
    assert check_of(office, WEEKS[0], publish="if_plausible")[0]
    with dg.DagsterInstance.ephemeral() as instance:
        job = defined(office, **WEEKLY, publish="if_plausible").resolve_job_def("wards_job")
        run = job.execute_in_process(instance=instance, partition_key=WEEKS[1], raise_on_error=False)
    assert not run.success and "dphist publish SPEC" in said(run) and "holds 0" in said(run)
    assert not office.published(period=WEEKS[1]).exists()
