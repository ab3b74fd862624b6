"""The real daemon over minutes: each missed period once, no refusal again, a killed run finished at its price."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
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
from dphist_pipeline.spec.loading import load_spec

here = Path(__file__).parent
release = Geometric.release


def dies_once(self, counts, budget):
    if not (here / "died").exists():
        (here / "died").touch()
        os._exit(9)  # charged, and not one door has answered
    return release(self, counts, budget)


Geometric.release = dies_once
parts = [release_definitions(load_spec(here / name)) for name in ("spec.yaml", "late.yaml", "eager.yaml")]
defs = dg.Definitions.merge(*parts, dg.Definitions(assets=[dg.AssetSpec(["raw", "visits"])]))
"""
SETTINGS = """
telemetry: {enabled: false}
nux: {enabled: false}
run_retries: {enabled: true, max_retries: 3}
run_coordinator: {module: dagster._core.run_coordinator, class: DefaultRunCoordinator}
"""


def weekly(first: date) -> dict[str, Any]:
    return {"period": "week", "period_column": "admitted_on", "first_period": first.isoformat()}


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
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    more = {"DAGSTER_HOME": str(home), "DPHIST_STORE": str(office.store), "PYTHONPATH": path}
    environment = {**os.environ, **more}
    for schedule in ("wards_schedule", "late_schedule"):
        words = ["-m", "dagster", "schedule", "start", schedule, "-f", "project.py"]
        subprocess.run([sys.executable, *words], cwd=office.folder, env=environment, check=True, capture_output=True)
    with (office.folder / "daemon.log").open("wb") as log:
        words = ["-m", "dagster._daemon", "run", "-f", "project.py"]
        daemon = subprocess.Popen([sys.executable, *words], cwd=office.folder, env=environment, stdout=log, stderr=log)
        try:
            for _ in range(100):
                time.sleep(3)
                if (
                    len(runs(home, "late_job")) >= 2
                    and charges(office) == 4
                    and "SUCCESS" in str(runs(home, "wards_job"))
                ):
                    break
            time.sleep(65)  # another tick
        finally:
            daemon.terminate()
            daemon.wait(timeout=60)
    told = (office.folder / "daemon.log").read_text()[-3000:]
    assert charges(office) == 4, told
    published = {name.split("/")[1] for name in public_files(office) if name.startswith("wards/")}
    assert published == {f"period={week}" for week in weeks}
    assert finished(home) == {week.isoformat(): 1 for week in weeks[1:]}, told
    retried = [run for run in runs(home, "wards_job") if run[2]]
    assert len(retried) == 1 and (office.folder / "died").exists()
    late = runs(home, "late_job")
    assert late and {status for status, _, _ in late} == {"FAILURE"} and not any(again for _, _, again in late)
    assert not runs(home, "eager_job"), "no week became due while the daemon ran"


def finished(home: Path) -> Counter[str | None]:
    return Counter(week for status, week, _ in runs(home, "wards_job") if status == "SUCCESS")


def runs(home: Path, job: str) -> list[tuple[str, str | None, str | None]]:
    """Status, partition and number of the retry of each run of a job."""
    with dg.DagsterInstance.from_config(str(home)) as instance:
        found = instance.get_runs(dg.RunsFilter(job_name=job))
        return [
            (run.status.value, run.tags.get("dagster/partition"), run.tags.get("dagster/retry_number")) for run in found
        ]
