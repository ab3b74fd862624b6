"""A backfill whose run is killed midway goes on: each partition is charged once, at its price, and released."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from fractions import Fraction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

import dagster as dg
import pytest
from fork_server import PROCESSES
from system import small_release
from system.small_release import EPSILON, FILES, NAME, WEEKS, Project, assert_whole, charges

from dphist_pipeline.answering import building
from dphist_pipeline.answering.catalogue import Catalogue
from dphist_pipeline.integrations.dagster import release_definitions
from dphist_pipeline.mechanisms.geometric import Geometric
from dphist_pipeline.publishing.statements import Statement
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from dphist_pipeline.releasing.store import FOLDER

pytestmark = pytest.mark.outside

BUILD_APART = building.build_apart  # as shipped
SECOND_WEEK = -1  # in place of a boundary
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
BACKFILLED = WEEKS[:3]
PUBLISHED = dg.AssetKey([NAME, "published"])


def backfill(project: Project) -> bool:
    """The run that an asset backfill of all weeks makes, on the instance that is kept in the project's folder."""
    ends = {"dagster/asset_partition_range_start": BACKFILLED[0], "dagster/asset_partition_range_end": BACKFILLED[-1]}
    spec = ReleaseSpec.load(project.spec)
    job = release_definitions(spec).resolve_job_def(f"{NAME}_job")
    with instance_of(project) as instance:
        return job.execute_in_process(instance=instance, tags=ends, run_config=QUIET, raise_on_error=False).success


def instance_of(project: Project) -> dg.DagsterInstance:
    home = project.folder / "dagster_home"
    home.mkdir(exist_ok=True)
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    return dg.DagsterInstance.from_config(str(home))


def child(project: Project, kill_at: int, said: Connection) -> None:
    boundaries = small_release.prepared(project, max(kill_at, 0))
    if kill_at == SECOND_WEEK:
        Geometric.release = dies_at_second(Geometric.release, project)  # type: ignore[method-assign]
    done = backfill(project)
    said.send((done, tuple(boundaries)))


def dies_at_second(release: Callable[..., Any], project: Project) -> Callable[..., Any]:
    """A mechanism whose process is killed in the second week, when it is charged and no measurement has answered."""

    def dying(*given: Any) -> Any:
        if project.published(BACKFILLED[0]).exists():
            os.kill(os.getpid(), signal.SIGKILL)
        return release(*given)

    return dying


def started(project: Project, kill_at: int = 0) -> tuple[bool, tuple[str, ...]] | None:
    """Backfills in a child, which kills itself right before boundary `kill_at`; None where it was killed."""
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=child, args=(project, kill_at, theirs))
    process.start()
    theirs.close()
    with ours:
        try:
            return ours.recv()  # type: ignore[no-any-return]
        except EOFError:
            return None
        finally:
            process.join()


@pytest.fixture
def fresh(tmp_path: Path) -> Project:
    return Project.make(tmp_path / "fresh", first_period=WEEKS[0])


def paid(project: Project) -> dict[str, list[Fraction]]:
    """What was charged for each week."""
    statement = Statement.of(project.ledger(), small_release.ACCOUNT)
    return {week: [made.epsilon for made in statement.charges if made.period == week] for week in BACKFILLED}


def killed_and_finished(fresh: Project, folder: Path, kill_at: int) -> int:
    """Kills a backfill at a boundary and goes on; gives how many weeks had been charged by then."""
    project = fresh.copy(folder / f"at{kill_at}")
    assert started(project, kill_at) is None
    before, drawn, shown = paid(project), project.files("confidential/journal"), project.files("public")
    assert all(prices in ([], [EPSILON]) for prices in before.values()), before
    with project.witnessed(), mock.patch.dict(os.environ, {"DPHIST_STORE": str(project.root)}):
        assert backfill(project), f"after boundary {kill_at}"
    assert paid(project) == {week: [EPSILON] for week in BACKFILLED}
    assert project.spent() == len(BACKFILLED) * EPSILON
    assert all(charges(project, week) == [1] for week in BACKFILLED)
    for week in BACKFILLED:
        assert_whole(project.published(week))
    now = project.files("confidential/journal")
    assert len(now) == len(BACKFILLED) and drawn.items() <= now.items(), "drawn twice"
    assert shown.items() <= project.files("public").items(), "published twice"
    assert len(project.files("public")) == len(FILES) * len(BACKFILLED)
    left = [name for name in project.files("confidential") if not name.startswith(("journal/", FOLDER))]
    assert not left, "left in the confidential store"
    with instance_of(project) as instance:
        assert instance.get_materialized_partitions(PUBLISHED) == set(BACKFILLED)
    return sum(map(len, before.values()))


def test_a_backfill_of_many_weeks_starts_one_process_for_all_catalogues(fresh: Project, monkeypatch) -> None:
    monkeypatch.setattr(building, "build_apart", BUILD_APART)
    started, start = [], subprocess.Popen.__init__
    monkeypatch.setattr(
        subprocess.Popen, "__init__", lambda process, *of, **how: (started.append(of), start(process, *of, **how))[1]
    )
    with fresh.witnessed(), mock.patch.dict(os.environ, {"DPHIST_STORE": str(fresh.root)}):
        assert backfill(fresh)
    ours = [of for of in started if "dphist" in str(of[0][3:4])]  # Dagster's own read the output of steps
    assert len(ours) == 1 and Catalogue(fresh.root / "public").is_complete()
    assert paid(fresh) == {week: [EPSILON] for week in BACKFILLED}


def test_a_backfill_killed_midway_is_finished_at_its_price(fresh: Project, tmp_path: Path) -> None:
    assert killed_and_finished(fresh, tmp_path, SECOND_WEEK) == 2


@pytest.mark.soak
def test_a_backfill_killed_at_any_time_is_finished_at_its_price(fresh: Project, tmp_path: Path) -> None:
    whole = started(fresh.copy(tmp_path / "whole"))
    assert whole is not None and whole[0]
    moments = range(1, len(whole[1]), max(1, len(whole[1]) // 16))
    assert {killed_and_finished(fresh, tmp_path, moment) for moment in moments} == {0, 1, 2, 3}
