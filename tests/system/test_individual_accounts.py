"""Individual accounts: a patient pays for counted rows alone, is left out once a year is paid, and never pays twice."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from system.small_release import ACCOUNT, WEEKS, Project
from unit.ledger_scenario import time_passes

from dphist_pipeline.confidential import individual
from dphist_pipeline.errors import DphistError
from dphist_pipeline.ledger.entries import Charge
from dphist_pipeline.ledger.individual import PARTS
from dphist_pipeline.ledger.ledger import Ledger
from dphist_pipeline.releasing import _individual as releasing
from dphist_pipeline.releasing.run import Run

INDIVIDUAL = {"accounting": "individual", "renews": "yearly"}
# By patient, how many rows a week.
PATIENTS = {"often": 3, "seldom": 1, "always": 10}
NOW = "2026-11-24T06:00:00Z"


def rows_of(patients: dict[str, int], weeks: int = 20) -> dict[str, list[Any]]:
    days = [
        (patient, date.fromisoformat(WEEKS[week]) + timedelta(days=number % 7))
        for week in range(weeks)
        for patient, many in patients.items()
        for number in range(many)
    ]
    return {
        "patient_id": [patient for patient, _ in days],
        "age": [7 for _ in days],
        "ward": ["surgery" for _ in days],
        "admitted_on": [day for _, day in days],
    }


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An account with a total of 2 a year; a release costs 0.5 for at most three rows of a patient."""
    time_passes(monkeypatch, NOW)
    return made(tmp_path / "project")


def made(folder: Path, patients: dict[str, int] = PATIENTS, **changes: Any) -> Project:
    terms = {**INDIVIDUAL, **changes.pop("terms", {})}
    changes = {"epsilon": "0.5", "max_rows_per_unit": 3, **changes}
    return Project.make(folder, Fraction(2), rows=rows_of(patients), terms=terms, **changes)


@pytest.fixture
def totals(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows were counted, by every count so far."""
    counted: list[int] = []

    def spy(plan: Any, staged: Path, state: Any) -> Path:
        cube = real(plan, staged, state)
        counted.append(int(np.load(cube).sum()))
        return cube

    real = individual.count_granted
    monkeypatch.setattr(individual, "count_granted", spy)
    return counted


def charges(project: Project) -> list[Charge]:
    return project.ledger().books().every_charge()


def folder(project: Project) -> Path:
    return project.root / "confidential" / "years" / ACCOUNT


def state(project: Project, charge: Charge) -> Path:
    assert charge.granted is not None
    return folder(project) / f"{charge.granted.state}.parquet"


def paid(project: Project, of: Charge | None = None) -> list[tuple[float, int, int]]:
    """What each patient has paid, the rows that count, and whether it is left out; by a charge's state."""
    read = pq.read_table(state(project, of or charges(project)[-1])).to_pydict()
    return sorted(zip((one / PARTS for one in read["paid"]), read["rows"], read["left"], strict=True))


def test_three_rows_a_week_are_counted_in_four_weeks_and_then_left_out(project: Project, totals: list[int]) -> None:
    for week in range(13):
        project.release(WEEKS[week])
    # At 1/6 a row twelve rows are paid: 3 a week in four weeks, so of 10 a week; 1 a week in twelve.
    assert totals == [7] * 4 + [1] * 8 + [0]
    assert [rows for _, rows, _ in paid(project)] == [0, 0, 0]
    assert [total for total, _, _ in paid(project)] == [2.0, 2.0, 2.0]


def test_a_patient_is_left_out_for_the_first_time_once_a_year(project: Project) -> None:
    found = []
    for week in range(7):
        project.release(WEEKS[week])
        found.append(Counter(left for _, _, left in paid(project)))
    assert [left[2] for left in found] == [0, 0, 0, 0, 2, 0, 0]
    assert [left[1] for left in found] == [0, 0, 0, 0, 0, 2, 2]


def test_a_charge_names_its_state_and_what_came_before(project: Project) -> None:
    project.release(WEEKS[0])
    project.release(WEEKS[1])
    first, second = (charge.granted for charge in charges(project))
    assert first is not None and second is not None
    assert (second.rows, second.everybody, second.year, second.after) == (3, 0, 2026, charges(project)[0].number)
    stated = individual.whole_state(state(project, charges(project)[1]), {})
    assert stated is not None and stated.facts["before"] == first.state
    assert len({individual.whole_state(state(project, charge), {}).key for charge in charges(project)}) == 1  # type: ignore[union-attr]


def test_a_revision_pays_anew(project: Project, totals: list[int]) -> None:
    project.release(WEEKS[0])
    project.release(WEEKS[0], reason="the source was corrected")
    assert [round(total, 9) for total, _, _ in paid(project)] == [round(1 / 3, 9), 1, 1]
    assert totals == [7, 7]


def test_a_new_year_begins_with_nothing_paid_and_another_key(
    project: Project, monkeypatch: pytest.MonkeyPatch, totals: list[int]
) -> None:
    for week in range(5):
        project.release(WEEKS[week])
    last = charges(project)[-1]
    before = individual.whole_state(state(project, last), {})
    time_passes(monkeypatch, "2027-01-02T06:00:00Z")
    project.release(WEEKS[5])
    assert totals[-2:] == [1, 7]
    after = individual.whole_state(state(project, charges(project)[-1]), {})
    assert before is not None and after is not None and before.key != after.key
    # The year is over, and all that was charged in it is published: its states are gone.
    assert [path.name for path in folder(project).glob("*.parquet")] == [state(project, charges(project)[-1]).name]


# What becomes of states.


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(bytes(content))


def richer(path: Path) -> None:
    """A state by hand that says that nobody has paid; everything else is as it was."""
    with pq.ParquetFile(path) as file:
        table, facts = file.read(), file.metadata.metadata
    poorer = table.set_column(1, "paid", pa.array([0] * len(table), pa.int64()))
    with pq.ParquetWriter(path, individual.SCHEMA) as writer:
        writer.write_table(poorer)
        writer.add_key_value_metadata({name: facts[name] for name in facts if name.startswith(b"dphist")})


@pytest.mark.parametrize("damage", [Path.unlink, cut, flipped, richer])
def test_a_lost_or_damaged_state_is_paid_by_everybody(
    project: Project, damage: Callable[[Path], None], totals: list[int]
) -> None:
    for week in range(3):
        project.release(WEEKS[week])
    damage(state(project, charges(project)[-1]))
    project.release(WEEKS[3])
    granted = charges(project)[-1].granted
    assert granted is not None and granted.everybody == Fraction(1, 2)
    # Two weeks by their state, and 0.5 for the third: 1/2 is left to who had three rows a week.
    assert totals[-1] == 7
    project.release(WEEKS[4])
    assert totals[-1] == 1 and charges(project)[-1].granted.everybody == Fraction(1, 2)  # type: ignore[union-attr]


def test_states_of_other_charges_are_none_under_another_name(project: Project, totals: list[int]) -> None:
    for week in range(3):
        project.release(WEEKS[week])
    first, second = state(project, charges(project)[1]), state(project, charges(project)[2])
    swap = first.with_suffix(".swap")
    shutil.copy(first, swap)
    shutil.copy(second, first)
    swap.rename(second)
    project.release(WEEKS[3])
    assert charges(project)[-1].granted.everybody == Fraction(3, 2)  # type: ignore[union-attr]  # of all three charges


def test_where_all_states_are_gone_nobody_has_more_than_the_total(project: Project, totals: list[int]) -> None:
    for week in range(4):
        project.release(WEEKS[week])
        shutil.rmtree(folder(project))
    with pytest.raises(DphistError) as refused:
        project.release(WEEKS[4])
    assert refused.value.code == "counts_nobody" and len(charges(project)) == 4
    assert totals[:4] == [7, 7, 7, 7]


def test_a_state_that_names_units_in_another_way_is_foreign(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.release(WEEKS[0])
    monkeypatch.setattr(individual, "form_of_units", lambda reading: "another form")
    project.release(WEEKS[1])
    assert charges(project)[-1].granted.everybody == Fraction(1, 2)  # type: ignore[union-attr]


def test_only_the_newest_states_stay_and_those_of_charges_that_may_still_draw(project: Project) -> None:
    for week in range(6):
        project.release(WEEKS[week])
    assert {path.stem for path in folder(project).glob("*.parquet")} == {
        charge.granted.state for charge in charges(project)[-2:] if charge.granted
    }


# Runs that were killed, that race, and that join.


class Killed(BaseException):
    """As if the process had died."""


def killed(*_: Any, **__: Any) -> None:
    raise Killed


def released_and_killed(project: Project, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, week: int) -> None:
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(where, name, killed)
        project.release(WEEKS[week])


def test_a_state_whose_charge_was_never_made_does_not_count(
    project: Project, monkeypatch: pytest.MonkeyPatch, totals: list[int]
) -> None:
    project.release(WEEKS[0])
    for _ in range(5):
        released_and_killed(project, monkeypatch, Ledger, "charge", 1)
    assert len(list(folder(project).glob("*.parquet"))) == 2  # each attempt deletes what the last one left
    project.release(WEEKS[1])
    assert [round(total, 9) for total, _, _ in paid(project)] == [round(1 / 3, 9), 1, 1]


def test_a_run_that_was_killed_after_its_charge_is_finished_by_its_own_state(
    project: Project, monkeypatch: pytest.MonkeyPatch, totals: list[int]
) -> None:
    released_and_killed(project, monkeypatch, Run, "_vouch", 0)
    for week in range(1, 6):  # meanwhile others pay, and the year is used up
        project.release(WEEKS[week])
    # The source changed: a patient who was not there is not counted, and nobody has more rows than were paid.
    rows = rows_of({**PATIENTS, "new": 3, "seldom": 9})
    pq.write_table(pa.table(rows), project.source)
    project.release(WEEKS[0])
    assert totals[-1] == 7  # 3 + 3 + 1, as the state of the first charge says
    assert len(charges(project)) == 6


def test_a_charge_that_must_still_draw_and_lacks_its_state_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    released_and_killed(project, monkeypatch, Run, "_vouch", 0)
    state(project, charges(project)[0]).unlink()
    with pytest.raises(DphistError) as refused:
        project.release(WEEKS[0])
    assert (refused.value.code, refused.value.charged) == ("state_lost", True)
    project.release(WEEKS[0], reason="its state was lost")
    assert [charge.granted.everybody for charge in charges(project) if charge.granted] == [0, Fraction(1, 2)]


def test_a_run_that_was_killed_on_31_december_is_finished_on_2_january_by_the_old_year(
    project: Project, monkeypatch: pytest.MonkeyPatch, totals: list[int]
) -> None:
    for week in range(4):
        project.release(WEEKS[week])
    time_passes(monkeypatch, "2026-12-31T23:59:00Z")
    released_and_killed(project, monkeypatch, Run, "_vouch", 4)
    time_passes(monkeypatch, "2027-01-02T06:00:00Z")
    project.release(WEEKS[5])
    assert totals[-1] == 7
    kept = state(project, charges(project)[4])
    assert kept.exists()  # its charge may still draw, though the year is over
    project.release(WEEKS[4])
    assert totals[-1] == 1 and len(charges(project)) == 6
    project.release(WEEKS[6])
    assert not kept.exists()


def test_a_new_year_between_filter_and_commit_filters_again(
    project: Project, monkeypatch: pytest.MonkeyPatch, totals: list[int]
) -> None:
    for week in range(4):
        project.release(WEEKS[week])
    counted = individual.count_granted

    def midnight(*arguments: Any) -> Path:
        time_passes(monkeypatch, "2027-01-01T00:00:01Z")
        return counted(*arguments)

    monkeypatch.setattr(individual, "count_granted", midnight)
    project.release(WEEKS[4])
    assert totals[-2:] == [1, 7]
    assert charges(project)[-1].year == 2027 and [rows for _, rows, _ in paid(project)] == [1, 3, 3]


def test_a_charge_between_filter_and_commit_filters_again_and_reads_once(
    project: Project, monkeypatch: pytest.MonkeyPatch, totals: list[int]
) -> None:
    project.release(WEEKS[0])
    counted, read, reads = individual.count_granted, Run.stage, []
    others = iter([1])

    def overtaken(*arguments: Any) -> Path:
        cube = counted(*arguments)
        for week in others:  # by a program that knows no lock, as one on a copy of this folder
            monkeypatch.setattr(releasing.States, "locked", lambda self: _unlocked())
            kept = shutil.copy(cube, cube.with_suffix(".kept"))
            project.release(WEEKS[week])
            shutil.move(kept, cube)
        return cube

    def reading(run: Run, place: Path) -> Any:
        reads.append(run.key.period)
        return read(run, place)

    monkeypatch.setattr(individual, "count_granted", overtaken)
    monkeypatch.setattr(Run, "stage", reading)
    project.release(WEEKS[2])
    assert reads == [WEEKS[2], WEEKS[1]]
    assert [charge.period for charge in charges(project)] == [*WEEKS[:2], WEEKS[2]]
    assert [round(total, 9) for total, _, _ in paid(project)] == [0.5, 1.5, 1.5]


def _unlocked() -> Any:
    from contextlib import nullcontext

    return nullcontext()


def test_who_joins_counts_by_the_state_of_the_charge_and_drops_its_own_count(
    project: Project, monkeypatch: pytest.MonkeyPatch, totals: list[int]
) -> None:
    for week in range(3):
        project.release(WEEKS[week])
    counted, first = individual.count_granted, iter([True])

    def overtaken(*arguments: Any) -> Path:
        cube = counted(*arguments)
        if next(first, False):
            monkeypatch.setattr(releasing.States, "locked", lambda self: _unlocked())
            kept = shutil.copy(cube, cube.with_suffix(".kept"))
            released_and_killed(project, monkeypatch, Run, "_vouch", 3)
            # Another reading than that of the charge: everybody has three rows now.
            shutil.move(kept, cube)
        return cube

    pq.write_table(pa.table(rows_of({**PATIENTS, "seldom": 2})), project.source)
    monkeypatch.setattr(individual, "count_granted", overtaken)
    project.release(WEEKS[3])
    assert len(charges(project)) == 4
    joined = state(project, charges(project)[3])
    assert sum(pq.read_table(joined).to_pydict()["rows"]) == totals[-1] == 8


def test_an_account_in_use_is_left_after_a_while_and_the_same_call_may_be_tried_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = project.store()
    monkeypatch.setattr(releasing, "WAIT_SECONDS", 0.2)
    with releasing.States.of(store, store.ledger(), ACCOUNT).locked(), pytest.raises(DphistError) as refused:
        project.release(WEEKS[0])
    assert (refused.value.code, refused.value.try_again, refused.value.charged) == ("account_in_use", True, False)
    assert charges(project) == []


# What such an account refuses, each in a sentence.


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"quality": {"share": "1/10", "rows": 5}}, "a quality table"),
        ({"engine": "spark"}, "`engine: spark`"),
        ({"source_sql": "query.sql"}, "a signed query"),
    ],
)
def test_what_the_filter_does_not_see_is_refused(project: Project, changes: dict[str, Any], what: str) -> None:
    (project.folder / "query.sql").write_text("SELECT * FROM source", encoding="utf-8")
    project.write_spec(**{"epsilon": "0.5", "max_rows_per_unit": 3, **changes})
    with pytest.raises(DphistError, match="individual") as refused:
        project.release(WEEKS[0])
    assert what in str(refused.value) and charges(project) == []


def test_a_price_that_counts_nobody_is_refused_before_anything_is_read(project: Project) -> None:
    project.write_spec(epsilon="9", max_rows_per_unit=3)
    with pytest.raises(DphistError) as refused:
        project.release(WEEKS[0])
    assert refused.value.code == "counts_nobody" and not folder(project).exists()
