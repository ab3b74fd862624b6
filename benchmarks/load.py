"""A hundred releases due in the same minute, by Dagster's own daemon: is each done once, and what does it take?

One weekly release of 100 cells from 20,000 rows for each of them, all from one project, one account and one ledger
in a file, `max_concurrent_runs` as given. The schedules are started, the daemon runs, and at one minute all of them
fire. The measure ends when the last publication is in the ledger.

Processor seconds and memory are those of the daemon with all processes that it starts, looked at twice a second: a
process's last half second may be missing. Memory is proportional: what processes share is counted once. Wall time
depends on who else uses the machine. Prints JSON.

    python benchmarks/load.py [--releases 100] [--at-once 2] [--minutes 120] [--to FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import polars as pl

from dphist_pipeline.releasing.store import Store

ROWS = 20_000
SPEC = """type: dphist_pipeline.HistogramRelease
attributes: {{release: {name}, source: visits.parquet, privacy_unit: patient, max_rows_per_unit: 2,
  neighbours: add_remove, epsilon: 1/10, account: health, mechanism: geometric, period: week, period_column: day,
  period_format: iso,
  first_period: {first}, axes: [{{column: age, start: 0, stop: 100, width: 1}}], schedule: "{cron}"}}
"""
PROJECT = """
from pathlib import Path

import dagster as dg

from dphist_pipeline.integrations.dagster import release_definitions
from dphist_pipeline.releasing.release_spec import ReleaseSpec

specs = sorted((Path(__file__).parent / "specs").glob("*.yaml"))
defs = dg.Definitions.merge(*(release_definitions(ReleaseSpec.load(spec)) for spec in specs))
"""
# What the page on deployment says, with runs that wait in a queue.
INSTANCE = """
telemetry: {{enabled: false}}
nux: {{enabled: false}}
run_retries: {{enabled: false}}
compute_logs: {{module: dagster._core.storage.noop_compute_log_manager, class: NoOpComputeLogManager}}
concurrency: {{runs: {{max_concurrent_runs: {at_once}}}}}
"""
OPENED = "ledger open health --privacy-unit patient --neighbours add_remove --total {total} --source visits.parquet"
DONE = ("SUCCESS", "FAILURE", "CANCELED")


class Project:
    """An office whose releases are due at one minute, in a folder of its own."""

    def __init__(self, folder: Path, releases: int, at_once: int) -> None:
        self.folder, self.home, self.releases = folder, folder / "home", releases
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("DPHIST_", "DAGSTER_"))}
        places = {
            "DAGSTER_HOME": self.home,
            "DPHIST_STORE": folder / "store",
            "DPHIST_WITNESS": folder / "witness.sqlite",
            "XDG_CONFIG_HOME": folder / "config",
        }
        self.environment = {**ours, **{name: str(place) for name, place in places.items()}}
        for made in (self.home, folder / "specs"):
            made.mkdir(parents=True)
        (self.home / "dagster.yaml").write_text(INSTANCE.format(at_once=at_once), encoding="utf-8")
        (folder / "pyproject.toml").touch()
        (folder / "project.py").write_text(PROJECT, encoding="utf-8")
        today = datetime.now(UTC).date()
        self.week = today - timedelta(days=today.weekday() + 7)
        source = np.random.default_rng(1)
        days = np.datetime64(self.week) + np.arange(7)
        drawn = {"patient": source.integers(0, 5_000, ROWS), "age": source.integers(0, 100, ROWS)}
        pl.DataFrame({**drawn, "day": source.choice(days, ROWS)}).write_parquet(folder / "visits.parquet")
        self.run("-m", "dphist_pipeline", "init")
        self.run("-m", "dphist_pipeline", *OPENED.format(total=releases).split())

    def schedule(self, due: datetime) -> None:
        """Writes every spec with that minute, and starts its schedule."""
        for number in range(self.releases):
            name, cron = f"load_{number:03}", f"{due.minute} {due.hour} * * *"
            text = SPEC.format(name=name, first=self.week, cron=cron)
            (self.folder / "specs" / f"{name}.yaml").write_text(text, encoding="utf-8")
        self.run("-m", "dagster", "schedule", "start", "--start-all", "-f", "project.py")

    def run(self, *words: str) -> None:
        """Runs Python with these words in the project."""
        command = [sys.executable, *words]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stdout + done.stderr)

    def runs(self) -> Counter[str]:
        """How many runs Dagster knows, by status."""
        with dg.DagsterInstance.from_config(str(self.home)) as instance:
            return Counter(run.status.value for run in instance.get_runs())

    def entries(self) -> list[Any]:
        """Every entry of the ledger."""
        return Store.open(self.folder / "store").ledger().entries()


class Watched:
    """The processes that belong to a folder's Dagster: their seconds, and the memory that they share counted once."""

    def __init__(self, home: Path) -> None:
        self.mark = f"DAGSTER_HOME={home}".encode()
        self.ours: dict[tuple[str, str], float] = {}
        self.theirs: set[tuple[str, str]] = set()
        self.peak = self.largest = 0.0
        self.most = 0
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watched:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self.stopped.wait(0.5):
            held = [memory for place in Path("/proc").glob("[0-9]*") if (memory := self._look(place)) is not None]
            self.peak = max(self.peak, sum(held))
            self.largest, self.most = max([self.largest, *held]), max(self.most, len(held))

    def _look(self, place: Path) -> float | None:
        """Notes a process's seconds; gives its gigabytes, None where it is another's."""
        try:
            words = (place / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            process = (place.name, words[19])  # a number may be used again, but never from the same moment on
            if process in self.theirs:
                return None
            if process not in self.ours and self.mark not in (place / "environ").read_bytes().split(b"\0"):
                self.theirs.add(process)
                return None
            self.ours[process] = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
            rolled = (place / "smaps_rollup").read_text(encoding="ascii")
            return int(rolled.partition("\nPss:")[2].split()[0]) / 1e6
        except (OSError, IndexError, ValueError):
            return None


def measured(releases: int, at_once: int, minutes: float) -> dict[str, Any]:
    """One run of the whole: what was done, how often, and what it took."""
    with tempfile.TemporaryDirectory(prefix="dphist_load_") as folder:
        project = Project(Path(folder) / "office", releases, at_once)
        # Time enough to start; the daemon looks at every schedule about once in half a minute.
        due = (datetime.now(UTC) + timedelta(minutes=3)).replace(second=0, microsecond=0)
        project.schedule(due)
        os.environ["DPHIST_WITNESS"] = project.environment["DPHIST_WITNESS"]
        command = [sys.executable, "-m", "dagster._daemon", "run", "-f", "project.py"]
        with (project.folder / "daemon.log").open("wb") as log, Watched(project.home) as watched:
            daemon = subprocess.Popen(
                command, cwd=project.folder, env=project.environment, stdout=log, stderr=log, start_new_session=True
            )
            try:
                late = datetime.now(UTC) >= due
                finished = _wait(project, due, minutes)
            finally:
                daemon.terminate()
                daemon.wait(timeout=120)
        return _report(project, watched, due, finished, late)


def _wait(project: Project, due: datetime, minutes: float) -> float:
    """Seconds from the minute that all are due at until the last run has ended."""
    end = due + timedelta(minutes=minutes)
    while datetime.now(UTC) < end:
        time.sleep(2)
        found = project.runs()
        if sum(found[state] for state in DONE) >= project.releases:
            break
    finished = (datetime.now(UTC) - due).total_seconds()
    time.sleep(70)  # another minute passes: nothing is asked for again
    return finished


def _report(project: Project, watched: Watched, due: datetime, finished: float, late: bool) -> dict[str, Any]:
    entries = project.entries()
    kinds = Counter(entry.kind for entry in entries)
    charged = Counter((entry.release, entry.period) for entry in entries if entry.kind == "charged")
    published = list((project.folder / "store" / "public").glob("load_*/period=*/revision=*/histogram.parquet"))
    asked = sorted(entry.made_at for entry in entries if entry.kind == "charged")
    _, whole, missing = Store.open(project.folder / "store").verify()
    return {
        "releases": project.releases,
        "due": due.isoformat(),
        "late": late,
        "runs": dict(project.runs()),
        "charged": kinds["charged"],
        "charged_twice": [list(key) for key, times in charged.items() if times > 1],
        "published": len(published),
        "whole": whole,
        "missing": missing,
        "first_and_last_charge": [*asked[:1], *asked[-1:]],
        "wall_seconds": round(finished, 1),
        "cpu_seconds": round(sum(watched.ours.values()), 1),
        "processes": len(watched.ours),
        "processes_at_once": watched.most,
        "peak_gigabytes": round(watched.peak, 2),
        "largest_process_gigabytes": round(watched.largest, 2),
        "processors": os.cpu_count(),
        "load_average": [round(load, 1) for load in os.getloadavg()],
    }


def main() -> None:
    """Measures once, and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=2, help="runs that Dagster lets work at the same time")
    parser.add_argument("--minutes", type=float, default=120, help="how long to wait at most")
    parser.add_argument("--to", type=Path)
    given = parser.parse_args()
    found = measured(given.releases, given.at_once, given.minutes) | {"at_once": given.at_once}
    text = json.dumps(found, indent=2)
    print(text)
    if given.to is not None:
        given.to.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
