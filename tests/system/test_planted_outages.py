"""Twenty outages of a source, planted by command and through Dagster: none is silent but those that no cell can show.

A weekly CSV file feeds a release by age, ward and cost. Three weeks went well; in the fourth something is wrong. What
cannot be seen in published numbers is named as undetectable in the threat model, with what guards against it instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from object_server import ObjectServer
from office import Office
from system.copied import bucket, copied, object_server  # noqa: F401
from system.orchestrated import defined, said

from dphist_pipeline.integrations.dagster import _base as base
from dphist_pipeline.releasing.due import Due
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import Store
from examples import mostly_soaked

pytestmark = pytest.mark.stand_in(
    "catalogue", "pictures", why="what is told of a period is read from its published files; cards are text here"
)

WEEKS = ["2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23"]
THIS = WEEKS[3]
COLUMNS = ("patient", "admitted_on", "age", "ward", "cost")
ROWS = 1_800
THREAT_MODEL = Path(__file__).parents[2] / "docs" / "explanation" / "threat-model.md"
GUARDS = Path(__file__).parents[2] / "docs" / "how-to" / "data-engineer.md"
SPEC: dict[str, Any] = {
    **{"source": "data/{period}.csv", "csv_quote": '"', "max_rows_per_unit": 2, "epsilon": "1"},
    **{
        "period": "week",
        "period_column": "admitted_on",
        "period_format": "iso",
        "first_period": WEEKS[0],
        "freshness": 3,
    },
    "axes": [
        {"column": "age", "start": 0, "stop": 100, "width": 25, "other": True},
        {"column": "ward", "values": ["surgery", "medicine", "pädiatrie"], "other": True},
        {"column": "cost", "start": 0, "stop": 1000, "width": 250, "above": True, "other": True},
    ],
}
Row = Mapping[str, str]


def rows(week: str, number: int = ROWS) -> list[dict[str, str]]:
    """The records of a week: each fifth patient comes twice."""
    first = date.fromisoformat(week)
    wards, made = ("surgery", "medicine", "medicine", "pädiatrie"), []
    for row in range(number):
        hours = timedelta(hours=8 + (37 * row) % 150)
        made.append(
            {
                "patient": f"p{row % (4 * number // 5)}",
                "admitted_on": (datetime(first.year, first.month, first.day) + hours).isoformat(),
                "age": str(20 + (7 * row) % 60),
                "ward": wards[row % 4],
                "cost": f"{(13 * row) % 900}.5",
            }
        )
    return made


def text(records: Sequence[Row], separator: str = ",", columns: Sequence[str] = COLUMNS) -> str:
    lines = [separator.join(columns)]
    lines += [separator.join(row[name] for name in columns) for row in records]
    return "\n".join(lines) + "\n"


def changed(column: str, change: Callable[[str], str]) -> str:
    """The file of this week with one column written otherwise."""
    return text([{**row, column: change(row[column])} for row in rows(THIS)])


def later(row: Row, hours: int) -> str:
    return (datetime.fromisoformat(row["admitted_on"]) + timedelta(hours=hours)).isoformat()


@dataclass(frozen=True)
class Outage:
    """What is wrong with the file of this week, and what says so.

    Attributes:
        file: its content; None where there is no file.
        says: words of the command, of the card and of Dagster; empty for what no published cell can show.
        refused: whether nothing is charged.
        named: words of threat model and guide about an outage that cannot be seen.
    """

    file: str | bytes | None
    says: str = ""
    refused: bool = False
    named: str = ""


DELIVERED_TWICE = text([*rows(THIS), *({**row, "patient": f"again {row['patient']}"} for row in rows(THIS))])
SHIFTED = [{**row, "admitted_on": later(row, 24)} for row in rows(THIS)]
IN_ANOTHER_ZONE = [{**row, "admitted_on": later(row, 5)} for row in rows(THIS)]
OLD_WITH_NEW_DAYS = [{**row, "admitted_on": later(row, 7 * 24)} for row in rows(WEEKS[2])]
OUTAGES = {
    "late": Outage(None, "2026-03-23.csv", refused=True),
    "empty": Outage(text([]), "are all records there?"),
    "half a file": Outage(text(rows(THIS)[: ROWS // 2]), "are all records there?"),
    "a doubled file": Outage(DELIVERED_TWICE, "was anything delivered twice?"),
    "a renamed code": Outage(
        changed("ward", lambda ward: ward.replace("surgery", "SUR")), "while other rose by as much: was a code renamed?"
    ),
    "a changed case": Outage(
        changed("ward", lambda ward: ward.replace("medicine", "Medicine")),
        "while other rose by as much: was a code renamed?",
    ),
    "a date format": Outage(changed("admitted_on", lambda day: f"{day[8:10]}/{day[5:7]}/{day[:4]}"), "records there?"),
    "a separator": Outage(text(rows(THIS), ";"), "the header has one column: is `;` the delimiter?", refused=True),
    "a decimal comma": Outage(
        changed("cost", lambda cost: f'"{cost.replace(".", ",")}"'), "while other rose by as much: was a code renamed?"
    ),
    "an encoding": Outage(  # a value of CSV with bytes that are no UTF-8 is none that was declared
        text(rows(THIS)).encode("latin-1"), "while other rose by as much: was a code renamed?"
    ),
    "a wrong time zone": Outage(text(IN_ANOTHER_ZONE), named="a wrong time zone"),
    "a shifted week": Outage(text(SHIFTED), named="days that are shifted"),
    "a missing column": Outage(text(rows(THIS), columns=[*COLUMNS[:3], "cost"]), "ward", refused=True),
    "a column of another meaning": Outage(changed("age", lambda age: str(2026 - int(age))), "fell from about"),
    "a unit that became constant": Outage(changed("patient", lambda _: "p1"), "are all records there?"),
    "a unit that became unique": Outage(
        text([{**row, "patient": f"visit {number}"} for number, row in enumerate(rows(THIS))]),
        named="a unit that became unique",
    ),
    "a small truncation": Outage(text(rows(THIS)[: 19 * ROWS // 20]), named="a small truncation"),
    "an old file again": Outage(text(rows(WEEKS[2])), "are all records there?"),
    "an old file with new days": Outage(text(OLD_WITH_NEW_DAYS), named="an old file with new days"),
}


@pytest.fixture(scope="module")
def good_weeks(tmp_path_factory: pytest.TempPathFactory) -> Office:
    """An office with three good weeks in its store, to be copied."""
    made = Office(tmp_path_factory.mktemp("good") / "office").opened()
    made.write_spec(**SPEC)
    for week in WEEKS[:3]:
        plant(made, text(rows(week)), week)
        ran = made.run("release", made.folder / "spec.yaml", "--store", made.store, "--period", week)
        assert ran.code == 0, ran.err
    return made


@pytest.fixture
def fed(office: Office, good_weeks: Office) -> Office:
    """An office with three good weeks in its store."""
    return good_weeks.copied_to(office.folder)


def plant(office: Office, file: str | bytes | None, week: str = THIS) -> None:
    if file is not None:
        (office.folder / "data" / f"{week}.csv").write_bytes(file.encode() if isinstance(file, str) else file)


def spent(office: Office) -> str:
    return str(office.run("ledger", "show", "health", "--json").json[0]["spent"])


def run_in_dagster(
    office: Office, instance: dg.DagsterInstance, week: str = THIS
) -> tuple[dg.ExecuteInProcessResult, dict[str, str]]:
    """A run of a week, and what its failed checks say."""
    job = defined(office, **SPEC).resolve_job_def("wards_job")
    run = job.execute_in_process(instance=instance, partition_key=week, raise_on_error=False)
    failed = {one.check_name: one.description or "" for one in run.get_asset_check_evaluations() if not one.passed}
    return run, failed


@pytest.mark.slow
@pytest.mark.parametrize("name", OUTAGES)
def test_a_command_says_what_is_wrong_or_the_guide_names_it(fed: Office, name: str) -> None:
    outage = OUTAGES[name]
    plant(fed, outage.file)
    ran = fed.release("--period", THIS)
    told = " ".join((ran.out + ran.err).split())
    assert (ran.code == 1, spent(fed)) == ((True, "3") if outage.refused else (False, "4")), told
    if outage.says:
        assert outage.says in told
    else:
        assert "Compared" not in told and "holds 0" not in told
    if not outage.refused:
        card = (fed.published(period=THIS) / "card.html").read_text()
        assert (outage.says or "Counts of") in card or not outage.says


SOME = ("late", "half a file", "a renamed code", "a missing column", "a wrong time zone")  # one of each kind


@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_soaked(OUTAGES, [list(OUTAGES).index(name) for name in SOME]))
def test_dagster_says_what_is_wrong_or_the_guide_names_it(fed: Office, instance: dg.DagsterInstance, name: str) -> None:
    outage = OUTAGES[name]
    plant(fed, outage.file)
    run, failed = run_in_dagster(fed, instance)
    if outage.refused:
        assert not run.success and outage.says in said(run) and spent(fed) == "3"
    elif outage.says:
        assert run.success and outage.says in failed["values_like_past"]
    else:
        assert run.success and not failed


@pytest.mark.slow
def test_a_week_as_usual_rings_nowhere(fed: Office, instance: dg.DagsterInstance) -> None:
    plant(fed, text(rows(THIS)))
    run, failed = run_in_dagster(fed, instance)
    assert run.success and not failed
    told = fed.released("--period", THIS).out
    assert "Compared" not in told and "holds 0" not in told


def test_what_no_published_cell_shows_is_named_with_what_guards_against_it() -> None:
    undetectable = {name: outage.named for name, outage in OUTAGES.items() if not outage.says}
    assert len(undetectable) == 5
    for page in (THREAT_MODEL, GUARDS):
        told = " ".join(page.read_text(encoding="utf-8").lower().split())
        assert [name for name, words in undetectable.items() if words not in told] == []


@pytest.mark.slow
def test_a_schedule_that_died_is_told_by_what_is_due_and_by_the_next_run(
    fed: Office, instance: dg.DagsterInstance
) -> None:
    store, later_on = Store.open(fed.store), datetime(2026, 4, 15, tzinfo=UTC)
    spec = ReleaseSpec.load(fed.folder / "spec.yaml")
    with fed.witnessed():
        assert Due.to_run(spec, store, store.ledger(), later_on, WEEKS[0]) == [THIS, "2026-03-30", "2026-04-06"]
    told = fed.run("doctor", "--due", "--store", fed.store)
    found = re.search(rf"(\d+) periods due since 2026-03-30: wards {THIS}", told.out)
    assert told.code == 1 and found and int(found[1]) >= 3, told.out
    plant(fed, text(rows("2026-03-30")), "2026-03-30")
    _, failed = run_in_dagster(fed, instance, "2026-03-30")
    assert failed == {"no_period_missing": f"missing: {THIS}"}
    assert f"due since 2026-03-30: wards {THIS}" in fed.run("doctor", "--due", "--store", fed.store).out
    words = ("waive", "wards", THIS, "--and-later", "--reason", "it ended", "--store", fed.store)
    assert fed.run("ledger", *words).code == 0
    assert fed.run("doctor", "--due", "--store", fed.store).code == 0


@pytest.mark.outside
def test_a_bucket_that_is_away_fails_the_command_and_the_run(
    copied: Office,  # noqa: F811
    bucket: ObjectServer,  # noqa: F811
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(base, "WAITS", (0, 0, 0))
    bucket.rule = lambda method, path: "InternalError"
    failed = copied.release()
    assert failed.code in (1, 75) and "cannot be" in failed.err and "dphist store publish" in failed.err
    job = defined(copied).resolve_job_def("wards_job")
    run = job.execute_in_process(instance=instance, raise_on_error=False)
    (copy,) = [one for one in run.get_asset_check_evaluations() if one.check_name == "copied" and not one.passed]
    assert run.success and "dphist store publish" in str(copy.description)
