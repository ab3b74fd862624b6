"""The real daemon over minutes: each missed period once, no refusal again, a killed run finished at its price."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from office import RECORDS, Office
from system.orchestrated import charges, public_files

pytestmark = pytest.mark.soak

PROJECT = """
import os
from pathlib import Path

import dagster as dg

from dphist_pipeline.integrations.dagster import release_definitions
from dphist_pipeline.mechanisms.geometric import Geometric
from dphist_pipeline.releasing.release_spec import ReleaseSpec

here = Path(__file__).parent
release = Geometric.release


def dies_once(self, counts, budget):
    if not (here / "died").exists():
        (here / "died").touch()
        os._exit(9)  # charged, and not one measurement has answered
    return release(self, counts, budget)


Geometric.release = dies_once
parts = [release_definitions(ReleaseSpec.load(here / name)) for name in ("spec.yaml", "late.yaml", "eager.yaml")]
defs = dg.Definitions.merge(*parts, dg.Definitions(assets=[dg.AssetSpec(["raw", "visits"])]))
"""
SETTINGS = """
telemetry: {enabled: false}
nux: {enabled: false}
run_retries: {enabled: true, max_retries: 3}
run_coordinator: {module: dagster._core.run_coordinator, class: DefaultRunCoordinator}
"""


def weekly(first: date) -> dict[str, Any]:
    return {"period": "week", "period_column": "admitted_on", "period_format": "iso", "first_period": first.isoformat()}


def test_the_daemon_releases_each_missed_week_once_and_never_repeats_a_refusal(office: Office) -> None:
    today = datetime.now(UTC).date()
    monday = today - timedelta(days=today.weekday())
    weeks = [monday - timedelta(weeks=back) for back in (4, 3, 2, 1)]
    home = office.folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text(SETTINGS)
    office.opened().write_records({**RECORDS, "admitted_on": weeks})
    office.write_spec(**weekly(weeks[0]), release="late", deps=["raw/visits"], schedule="* * * * *")
    (office.folder / "spec.yaml").rename(office.folder / "late.yaml")
    office.write_spec(**weekly(weeks[0]), release="eager", automation="eager")
    (office.folder / "spec.yaml").rename(office.folder / "eager.yaml")
    office.write_spec(**weekly(weeks[0]), schedule="* * * * *")
    office.released("--period", weeks[0].isoformat())
    (office.folder / "project.py").write_text(PROJECT)
    for schedule in ("wards_schedule", "late_schedule"):
        dagster(office, home, "schedule", "start", schedule)

    def done() -> bool:
        wards = "SUCCESS" in str(runs(home, "wards_job"))
        return len(runs(home, "late_job")) >= 1 and charges(office) == 4 and wards

    with daemon(office, home):
        wait_for(done)
        time.sleep(65)  # another tick
    told = (office.folder / "daemon.log").read_text()[-3000:]
    assert charges(office) == 4, told
    published = {name.split("/")[1] for name in public_files(office) if name.startswith("wards/")}
    assert published == {f"period={week}" for week in weeks}
    assert finished(home) == {week.isoformat(): 1 for week in weeks[1:]}, told
    retried = [run for run in runs(home, "wards_job") if run[2]]
    assert len(retried) == 1 and (office.folder / "died").exists()
    late = runs(home, "late_job")
    assert late and {status for status, _, _ in late} == {"FAILURE"} and not any(again for _, _, again in late)
    assert len(late) == 1, "a refused period is asked for again after an hour"
    assert not runs(home, "eager_job"), "its sensor is stopped until somebody starts it"


AUTOMATED = """
from pathlib import Path

import dagster as dg

from dphist_pipeline.integrations.dagster import release_definitions
from dphist_pipeline.releasing.release_spec import ReleaseSpec

here = Path(__file__).parent
parts = [release_definitions(ReleaseSpec.load(here / name)) for name in ("spec.yaml", "cron.yaml")]
visits = dg.AssetSpec(["raw", "visits"], partitions_def=dg.DailyPartitionsDefinition("{first}"))
defs = dg.Definitions.merge(*parts, dg.Definitions(assets=[visits]))
"""


def test_the_daemon_asks_for_each_week_once_by_its_automation_conditions(office: Office) -> None:
    today = datetime.now(UTC).date()
    monday = today - timedelta(days=today.weekday())
    weeks = [monday - timedelta(weeks=back) for back in (4, 3, 2, 1)]
    home = office.folder / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text(SETTINGS)
    office.opened().write_records({**RECORDS, "admitted_on": weeks})
    automated = {**weekly(weeks[0]), "deps": ["raw/visits"], "epsilon": "1/10"}
    office.write_spec(**automated, release="cron", automation="on_cron", schedule="* * * * *")
    (office.folder / "spec.yaml").rename(office.folder / "cron.yaml")
    office.write_spec(**automated, automation="eager")
    (office.folder / "project.py").write_text(AUTOMATED.replace("{first}", weeks[0].isoformat()))
    dagster(office, home, "sensor", "start", "default_automation_condition_sensor")
    with daemon(office, home):
        arrive(home, weeks[0], 14)
        wait_for(lambda: published(office) == {"wards": weeks[:2], "cron": weeks[:2]})
        arrive(home, weeks[2], 6)  # one day is missing
        time.sleep(65)
        assert charges(office) == 4
        arrive(home, weeks[2] + timedelta(days=6), 1)
        wait_for(lambda: published(office) == {"wards": weeks[:3], "cron": weeks[:3]})
        time.sleep(95)  # more ticks ask for nothing more
    told = (office.folder / "daemon.log").read_text()[-3000:]
    assert published(office) == {"wards": weeks[:3], "cron": weeks[:3]} and charges(office) == 6, told
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert {run.status.value for run in instance.get_runs()} == {"SUCCESS"}, told


def arrive(home: Path, first: date, days: int) -> None:
    """Says that visits of some days are there."""
    with dg.DagsterInstance.from_config(str(home)) as instance:
        for passed in range(days):
            day = (first + timedelta(days=passed)).isoformat()
            instance.report_runless_asset_event(dg.AssetMaterialization(["raw", "visits"], partition=day))


def published(office: Office) -> dict[str, list[date]]:
    """The weeks of each release that are out."""
    found: dict[str, set[date]] = {}
    for name in public_files(office):
        release, period, *_ = name.split("/")
        found.setdefault(release, set()).add(date.fromisoformat(period.removeprefix("period=")))
    return {release: sorted(weeks) for release, weeks in found.items()}


def environment(office: Office, home: Path) -> dict[str, str]:
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "DAGSTER_HOME": str(home), "DPHIST_STORE": str(office.store), "PYTHONPATH": path}


def dagster(office: Office, home: Path, *words: str) -> None:
    """Runs a command of Dagster on the project of the office."""
    command = [sys.executable, "-m", "dagster", *words, "-f", "project.py"]
    subprocess.run(command, cwd=office.folder, env=environment(office, home), check=True, capture_output=True)


@contextmanager
def daemon(office: Office, home: Path) -> Iterator[None]:
    """The real daemon, while the body runs."""
    command = [sys.executable, "-m", "dagster._daemon", "run", "-f", "project.py"]
    with (office.folder / "daemon.log").open("wb") as log:
        started = subprocess.Popen(command, cwd=office.folder, env=environment(office, home), stdout=log, stderr=log)
        try:
            yield
        finally:
            started.terminate()
            started.wait(timeout=60)


def wait_for(done: Callable[[], bool]) -> None:
    """Waits for minutes at most; what comes after says what is missing."""
    for _ in range(150):
        if done():
            return
        time.sleep(3)


def finished(home: Path) -> Counter[str | None]:
    return Counter(week for status, week, _ in runs(home, "wards_job") if status == "SUCCESS")


def runs(home: Path, job: str) -> list[tuple[str, str | None, str | None]]:
    """Status, partition and number of the retry of each run of a job."""
    with dg.DagsterInstance.from_config(str(home)) as instance:
        found = instance.get_runs(dg.RunsFilter(job_name=job))
        return [
            (run.status.value, run.tags.get("dagster/partition"), run.tags.get("dagster/retry_number")) for run in found
        ]
