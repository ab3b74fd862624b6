"""A period is compared with the published ones before it: by command, on its card, in its audit, and under Dagster."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import dagster as dg
import pytest
from office import Office
from system.orchestrated import defined

from dphist_pipeline.answering.past_periods import PeriodComparison
from dphist_pipeline.publishing.published_files import read_audit

pytestmark = pytest.mark.stand_in(
    "catalogue", "pictures", why="periods are compared by their published files, and told as text"
)

WEEKS = ["2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23"]
WEEKLY: dict[str, Any] = {
    **{
        "period": "week",
        "period_column": "admitted_on",
        "period_format": "iso",
        "first_period": "2025-03-03",
        "epsilon": "1",
    },
    **{"max_rows_per_unit": 1},
}
USUAL, RENAMED = {"surgery": 900, "medicine": 1_500}, {"Surgery": 900, "medicine": 1_500}
SENTENCE = "surgery fell from about {} to about {} while other rose by as much: was a code renamed?"


def records(weeks: Mapping[str, Mapping[str, int]]) -> dict[str, list[Any]]:
    """So many people of each ward, of ages in turn, in each week."""
    rows = [
        (ward, day, number) for day, wards in weeks.items() for ward, count in wards.items() for number in range(count)
    ]
    return {
        "patient": [f"p{number}" for number in range(len(rows))],
        "age": [float(10 + 30 * (number % 3)) for *_, number in rows],
        "ward": [ward for ward, *_ in rows],
        "admitted_on": [date.fromisoformat(day) for _, day, _ in rows],
    }


@pytest.fixture
def renamed(office: Office) -> Office:
    """An office whose source writes another code from the second week on."""
    office.opened().write_spec(**WEEKLY)
    office.write_records(records({WEEKS[0]: USUAL, WEEKS[1]: RENAMED, WEEKS[2]: RENAMED}))
    return office


def check_of(office: Office, week: str, **changes: Any) -> tuple[bool, str]:
    """What Dagster's check says of a week."""
    with dg.DagsterInstance.ephemeral() as instance:
        job = defined(office, **{**WEEKLY, **changes}).resolve_job_def("wards_job")
        run = job.execute_in_process(instance=instance, partition_key=week, raise_on_error=False)
        (found,) = (one for one in run.get_asset_check_evaluations() if one.check_name == "values_like_past")
        return found.passed, found.description or ""


def test_a_renamed_code_is_told_by_command_card_audit_and_json(renamed: Office) -> None:
    first = renamed.released("--period", WEEKS[0], "--json").json
    assert "compared" not in first
    second = renamed.released("--period", WEEKS[1])
    (line,) = [line for line in second.out.splitlines() if "code renamed" in line]
    facts = renamed.released("--period", WEEKS[1], "--json").json["compared"]
    assert facts["periods"] == [WEEKS[0]] and line.endswith(facts["says"])
    changed = {one["value"]: (one["before"], one["now"]) for one in facts["changes"] if one["axis"] == "ward"}
    assert changed.keys() == {"surgery", "other"} and changed["surgery"][0] > 800 > 100 > changed["surgery"][1]
    about = [f"{round(max(0.0, count)):,}" for count in changed["surgery"]]
    assert facts["says"] == SENTENCE.format(*about)
    card = (renamed.published(period=WEEKS[1]) / "card.html").read_text()
    assert card.index(facts["says"]) < card.index("These are counts of")


@pytest.mark.slow
def test_a_renamed_code_fails_a_check_of_dagster(renamed: Office) -> None:
    assert check_of(renamed, WEEKS[0]) == (True, "no period before is published")
    passed, told = check_of(renamed, WEEKS[1])
    assert not passed and told.startswith("surgery fell from about") and told.endswith("was a code renamed?")
    assert not check_of(renamed, WEEKS[2])[0]


@pytest.mark.slow
def test_weeks_that_are_alike_say_which_weeks_were_looked_at(office: Office) -> None:
    office.opened().write_spec(**WEEKLY)
    office.write_records(records(dict.fromkeys(WEEKS, USUAL)))
    for week in WEEKS:
        ran = office.released("--period", week)
        assert "Compared" not in ran.out
    found = PeriodComparison.of_audit(read_audit(office.published(period=WEEKS[3])))
    assert found.facts == {"periods": WEEKS[2::-1], "changes": [], "says": ""}
    assert "Compared" not in (office.published(period=WEEKS[3]) / "card.html").read_text()


@pytest.mark.slow
def test_a_revision_is_compared_with_latest_revisions_of_other_periods_alone(renamed: Office) -> None:
    for week in WEEKS[:2]:
        renamed.released("--period", week)
    renamed.write_records(records({WEEKS[0]: USUAL, WEEKS[1]: USUAL, WEEKS[2]: USUAL}))
    mended = renamed.released("--period", WEEKS[1], "--revise", "--reason", "codes", "--json").json
    assert mended["compared"] == {"periods": [WEEKS[0]], "changes": [], "says": ""}
    third = renamed.released("--period", WEEKS[2], "--json").json
    assert third["compared"] == {"periods": [WEEKS[1], WEEKS[0]], "changes": [], "says": ""}
    assert renamed.run("withdraw", "wards", WEEKS[1], "--reason", "wrong").code == 0
    again = renamed.released("--period", WEEKS[2], "--revise", "--reason", "again", "--json").json
    assert again["compared"]["periods"] == [WEEKS[0]]


@pytest.mark.slow
def test_a_revision_says_that_the_card_of_the_next_period_tells_the_earlier_figure(renamed: Office) -> None:
    for week in WEEKS[:2]:
        renamed.released("--period", week)
    told = renamed.released("--period", WEEKS[0], "--revise", "--reason", "codes").out
    assert "`dphist store pages wards` renders that card anew" in " ".join(told.split())
    last = renamed.released("--period", WEEKS[1], "--revise", "--reason", "codes", "--json").json
    assert "warnings" not in last  # no card comes after it


@pytest.mark.slow
def test_a_period_that_is_damaged_is_left_out_and_stops_nothing(renamed: Office) -> None:
    renamed.released("--period", WEEKS[0])
    (renamed.published(period=WEEKS[0]) / "groups.parquet").write_bytes(b"")
    ran = renamed.release("--period", WEEKS[1])
    folder = renamed.published(period=WEEKS[1])
    assert folder.exists() and "compared" not in read_audit(folder), ran.err


@pytest.mark.slow
def test_weeks_that_count_other_rows_are_not_compared(renamed: Office) -> None:
    renamed.released("--period", WEEKS[0])
    renamed.write_spec(**{**WEEKLY, "max_rows_per_unit": 2})
    assert "compared" not in renamed.released("--period", WEEKS[1], "--json").json


@pytest.mark.slow
def test_last_years_week_keeps_a_feast_from_ringing(office: Office) -> None:
    office.opened().write_spec(**{**WEEKLY, "epsilon": "1/2"})
    feast, year = {"surgery": 900, "medicine": 100}, timedelta(days=371)  # it came a week earlier
    days = [date.fromisoformat(week) for week in WEEKS[:3]]
    usual_days = [day - ago for day in days[:2] for ago in (year, timedelta(0))]
    weeks = {str(day): USUAL for day in usual_days} | {str(day): feast for day in (days[2] - year, days[2])}
    office.write_records(records(weeks))
    said = {week: office.released("--period", week, "--json").json.get("compared") for week in sorted(weeks)}
    last, now = said[str(days[2] - year)], said[str(days[2])]
    assert "the total fell" in last["says"] or "medicine fell" in last["says"]
    assert now["says"] == "" and str(days[2] - year) in now["periods"]


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["boost", "structure_first"])
def test_mechanisms_that_smooth_or_group_are_compared_by_what_they_measured(renamed: Office, mechanism: str) -> None:
    ward = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
    renamed.write_spec(**WEEKLY, mechanism=mechanism, axes=[ward])
    for week in WEEKS[:2]:
        said = renamed.released("--period", week, "--json").json
    if mechanism == "structure_first":  # measures groups alone: the total has noise of its own, values have none
        assert said["compared"]["says"] == ""
    else:
        assert said["compared"]["says"].startswith("surgery fell from about")


@pytest.mark.slow
def test_a_family_is_compared_by_the_smallest_table_of_each_axis(renamed: Office) -> None:
    ward = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
    age = {"column": "age", "start": 0, "stop": 100, "width": 25, "other": True}
    renamed.write_spec(**WEEKLY, mechanism="tables", axes=[age, ward], tables={"all": 2})
    for week in WEEKS[:2]:
        said = renamed.released("--period", week, "--json").json
    assert said["compared"]["says"].startswith("surgery fell from about")
    folder = renamed.published(period=WEEKS[1])
    assert said["compared"]["says"] in (folder / "card.html").read_text()
    for asked in (["--changes"], ["--over", ",".join(WEEKS[:2])]):
        where = ["--where", "ward = 'surgery'", *asked, "--json"]
        named = renamed.run("answer", "wards", *where).json
        assert named == renamed.run("answer", named["release"], *where).json and len(named["rows"]) == 1
