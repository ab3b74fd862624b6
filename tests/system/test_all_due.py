"""`dphist release --all-due` and several specs: each period by itself, in one process, and one catalogue at the end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from fork_server import PROCESSES
from system.small_release import EPSILON, NAME, WEEKS, Project, assert_whole, charges, prepared
from typer.testing import CliRunner, Result

from dphist_pipeline.answering import building
from dphist_pipeline.cli.app import app
from dphist_pipeline.errors import TryAgain
from dphist_pipeline.releasing.due import Due, charges_of
from dphist_pipeline.releasing.public_folder import PublicFolder
from dphist_pipeline.releasing.release import Outcome, release_several
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.run import Run
from dphist_pipeline.releasing.store_decisions import StoreDecisions

DUE = WEEKS[:4]
ENDS = {"first_period": DUE[0], "last_period": DUE[-1]}
NOW = datetime(2024, 12, 1, tzinfo=UTC)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """Four weeks are due."""
    made = Project.make(tmp_path / "project", **ENDS)
    with made.witnessed():
        yield made


def released(project: Project, *specs: Path, all_due: bool = True, now: datetime = NOW) -> list[Outcome]:
    found = [ReleaseSpec.load(spec) for spec in specs or (project.spec,)]
    return list(release_several(found, project.store(), all_due=all_due, now=now))


def another(project: Project, name: str, **changes: Any) -> Path:
    """The spec of another release of the same records and account."""
    spec = project.folder / f"{name}.yaml"
    document = json.loads(project.spec.read_text())
    document["attributes"] |= {"release": name, **changes}
    spec.write_text(json.dumps(document))
    return spec


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["release", *map(str, words)], standalone_mode=False)


def code_of(ran: Result) -> int:
    """The exit code; of a command that returns, what it returned."""
    return ran.return_value or ran.exit_code


def catalogued(project: Project) -> list[tuple[str, str]]:
    with duckdb.connect(project.root / "public" / "catalog.duckdb", read_only=True) as connection:
        query = "SELECT release, period FROM dph_releases ORDER BY release, period"
        return connection.execute(query).fetchall()


def due(project: Project, now: datetime = NOW) -> list[str]:
    store = project.store()
    return Due.of_spec(ReleaseSpec.load(project.spec), store, store.ledger(), now).keys


def test_what_is_due_follows_from_spec_clock_and_ledger(project: Project) -> None:
    assert due(project) == DUE
    second = datetime.fromisoformat(DUE[2]).replace(tzinfo=UTC)  # when the second week is over
    assert due(project, second) == DUE[:2] and due(project, second - timedelta(seconds=1)) == DUE[:1]
    project.write_spec(**ENDS, release_delay_days=7)
    assert due(project, second) == DUE[:1]
    project.write_spec(last_period=DUE[-1])
    assert due(project) == DUE[-1:], "without `first_period`, before a charge, the latest alone"
    project.release(DUE[1])
    assert due(project) == DUE[2:], "without it, what comes after the first charge"
    project.write_spec(**ENDS)
    assert due(project) == [DUE[0], *DUE[2:]]
    StoreDecisions.of(project.store()).waive(NAME, DUE[2], "no records came", False)
    assert due(project) == [DUE[0], DUE[3]]


def test_a_release_without_periods_is_due_once(project: Project) -> None:
    whole = another(
        project, "whole", period="none", period_column=None, period_format=None, first_period=None, last_period=None
    )
    assert [outcome.period for outcome in released(project, whole)] == ["all"]
    assert released(project, whole) == []


def test_all_that_is_due_is_published_oldest_first_with_one_catalogue(project: Project, monkeypatch) -> None:
    built, build = [], building.build_apart
    monkeypatch.setattr(building, "build_apart", lambda *given: (built.append(given), build(*given)))
    outcomes = released(project)
    assert [outcome.period for outcome in outcomes] == DUE and all(outcome.publication for outcome in outcomes)
    assert len(built) == 1 and catalogued(project) == [(NAME, week) for week in DUE]
    assert [charge.period for charge, _ in charges_of(project.ledger(), NAME)] == DUE
    assert project.spent() == len(DUE) * EPSILON
    assert released(project) == [] and len(built) == 1


def test_a_card_that_was_there_compares_with_the_period_that_came_before_it(project: Project) -> None:
    project.release(DUE[2])
    card = project.published(DUE[2]) / "card.html"
    alone = card.read_text()
    released(project)
    assert card.read_text() != alone
    assert f"{NAME}/period={DUE[2]}/revision=1" in PublicFolder(project.store()).render().same


def test_an_account_that_is_used_up_stops_its_spec_and_says_what_is_left(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project", total=2 * EPSILON, **ENDS)
    with project.witnessed():
        *published, stopped = released(project)
        assert [outcome.period for outcome in published] == DUE[:2]
        assert stopped.error is not None and getattr(stopped.error, "code", "") == "overspend"
        assert stopped.period == DUE[2] and stopped.remaining == tuple(DUE[3:])
        assert catalogued(project) == [(NAME, week) for week in DUE[:2]]
        ran = run(project.spec, "--all-due", "--store", project.root, "--json")
        (failed,) = json.loads(ran.stdout)["failed"]
        assert code_of(ran) == 1 and failed["remaining"] == DUE[3:] and failed["error"]["code"] == "overspend"
        assert f"1 more due period of {NAME} not tried: {DUE[3]}" in ran.stderr


def test_a_spec_that_fails_stops_no_other(project: Project) -> None:
    broken, missing = project.folder / "broken.yaml", project.folder / "missing.yaml"
    broken.write_text("release: [")
    closed = another(project, "closed", account="nobodys")
    other = another(project, "other", last_period=DUE[0])
    ran = run(broken, missing, closed, other, project.spec, "--all-due", "--store", project.root, "--json")
    told = json.loads(ran.stdout)
    assert code_of(ran) == 1
    assert [(one["release"], one["period"]) for one in told["published"]] == [
        ("other", DUE[0]),
        *((NAME, week) for week in DUE),
    ]
    assert [one.get("spec", one.get("release")) for one in told["failed"]] == [str(broken), str(missing), "closed"]
    assert told["failed"][-1]["remaining"] == DUE[1:] and not told["failed"][-1]["error"]["charged"]
    assert {name for name, _ in catalogued(project)} == {NAME, "other"}


def test_a_period_whose_file_is_missing_stops_no_other(project: Project) -> None:
    project.write_spec(**ENDS, source="{period}.parquet")
    project.allow()
    for week in (DUE[0], *DUE[2:]):
        shutil.copy(project.source, project.folder / f"{week}.parquet")
    outcomes = released(project)
    assert [outcome.period for outcome in outcomes if outcome.publication is None] == [DUE[1]]
    assert due(project) == [DUE[1]]


def test_an_error_that_may_pass_stops_its_spec_and_exits_with_75(project: Project, monkeypatch) -> None:
    class Lost(TryAgain):
        pass

    draw = Run.draw

    def lost(run: Run, *given: Any) -> None:
        if run.key.period == DUE[1]:
            raise Lost("the connection was lost")
        draw(run, *given)

    monkeypatch.setattr(Run, "draw", lost)
    ran = run(project.spec, "--all-due", "--store", project.root, "--json")
    told = json.loads(ran.stdout)
    assert code_of(ran) == 75 and told["failed"][0]["remaining"] == DUE[2:]
    assert [one["period"] for one in told["published"]] == DUE[:1] and len(catalogued(project)) == 1


def test_what_waits_for_a_person_stops_nothing(project: Project) -> None:
    project.write_spec(**ENDS, publish="manual")
    ran = run(project.spec, "--all-due", "--store", project.root, "--json")
    told = json.loads(ran.stdout)
    assert code_of(ran) == 0 and [one["period"] for one in told["waiting"]] == DUE
    assert charges(project, DUE[-1]) == [1] and due(project) == DUE, "it is told again, and costs nothing"
    assert run(project.spec, "--all-due", "--store", project.root, "--json").stdout == ran.stdout
    assert project.spent() == len(DUE) * EPSILON


def test_several_specs_release_their_latest_period(project: Project) -> None:
    other = another(project, "other")
    for replayed in (False, True):
        ran = run(other, project.spec, "--store", project.root, "--json")
        found = [(one["release"], one["period"], one["replayed"]) for one in json.loads(ran.stdout)["published"]]
        assert found == [("other", DUE[-1], replayed), (NAME, DUE[-1], replayed)]
    for words in (("--period", DUE[0]), ("--revise", "--reason", "again")):
        assert run(project.spec, "--all-due", *words).exit_code and run(project.spec, other, *words).exit_code


def _child(project: Project, kill_at: int, said: Any) -> None:
    boundaries = prepared(project, kill_at)
    released(project)
    said.send(boundaries)


def killed_at(project: Project, kill_at: int) -> list[str]:
    """The boundaries that a call for all that is due crosses in a process of its own; none if it was killed at one."""
    ours, theirs = PROCESSES.Pipe(duplex=False)
    child = PROCESSES.Process(target=_child, args=(project, kill_at, theirs))
    child.start()
    theirs.close()
    try:
        return list(ours.recv())
    except EOFError:
        return []
    finally:
        child.join()


@pytest.mark.slow
@pytest.mark.parametrize("places", [6, pytest.param(60, marks=pytest.mark.soak)])
def test_a_call_that_is_killed_anywhere_is_finished_by_the_same_call(tmp_path: Path, places: int) -> None:
    fresh = Project.make(tmp_path / "fresh", catalogued=True, **ENDS | {"last_period": DUE[1]})
    with fresh.witnessed():
        whole = killed_at(fresh.copy(tmp_path / "whole"), 0)
    # Also within the catalogue, which comes last.
    places_of = [1 + number * (len(whole) - 1) // places for number in range(places + 1)]
    for place in [*places_of, len(whole) - 10]:
        killed = fresh.copy(tmp_path / f"{place}")
        with killed.witnessed():
            assert killed_at(killed, place) == []
            drawn = killed.files("confidential/journal")
            assert [outcome.error for outcome in released(killed) if outcome.error] == []
            for week in DUE[:2]:
                assert charges(killed, week) == [1]
                assert_whole(killed.published(week))
            assert killed.spent() == 2 * EPSILON
            now = killed.files("confidential/journal")
            assert len(now) == 2 and drawn.items() <= now.items(), "drawn twice"
            assert catalogued(killed) == [(NAME, week) for week in DUE[:2]]
            assert (killed.root / "public" / "index.html").is_file()
        shutil.rmtree(killed.folder)


@pytest.mark.slow
def test_figures_of_what_was_due_stand_in_files_and_on_cards_of_earlier_periods(project: Project) -> None:
    project.release(DUE[0])
    figures = [{"name": "young", "share": {"age": [0, 20]}}]
    project.write_spec(**ENDS, figures=figures)
    assert len(released(project)) == 3
    public = project.root / "public" / NAME
    with duckdb.connect() as connection:
        told = connection.execute(f"SELECT period, figure FROM '{public}/latest/figures.parquet' ORDER BY 1").fetchall()
    assert told == [(week, "young") for week in DUE]
    assert all("young" in card.read_text() for card in public.glob("period=*/revision=1/card.html"))
