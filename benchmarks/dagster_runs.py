"""What a click on "Materialize" and a backfill cost, beside the release's own job and runs in one process.

A weekly release of 100 cells from 20,000 rows in 52 weeks. Measured by turns, each in a store of its own, in seconds of
processor time with all children, and in processes: one week by the release's job and by what "Materialize" runs, with
the executor that Dagster takes unasked; 52 weeks by one backfill of the assets and by 52 runs of the job in one
process. Prints JSON.

    python benchmarks/dagster_runs.py [--rounds 5] [--weeks 52] [--to FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from processes import Usage, usage_of

FIRST, ROWS = date(2024, 1, 1), 20_000  # Dagster refuses partitions that have not ended
SPEC = f"""type: dphist_pipeline.HistogramRelease
attributes: {{release: weekly, source: visits.parquet, privacy_unit: patient, max_rows_per_unit: 2,
  neighbours: add_remove, epsilon: 1/4, account: health, mechanism: geometric, period: week, period_column: day,
  period_format: iso,
  first_period: {FIRST}, axes: [{{column: age, start: 0, stop: 100, width: 1}}]}}
"""
DEFINITIONS = """
from dphist_pipeline.integrations.dagster import release_definitions
from dphist_pipeline.releasing.release_spec import ReleaseSpec

defs = release_definitions(ReleaseSpec.load("spec.yaml"))
"""
OPENED = "ledger open health --privacy-unit patient --neighbours add_remove --total 100 --source visits.parquet"
IN_ONE_PROCESS = """
import sys
import dagster as dg
from project import defs
job = defs.resolve_job_def("weekly_job")
with dg.DagsterInstance.get() as instance:
    for week in sys.argv[1:]:
        assert job.execute_in_process(partition_key=week, instance=instance).success
"""
DAGSTER = ("-c", "from dagster._cli import main; main()")


def office(folder: Path, weeks: int) -> Path:
    """A project whose release has published nothing yet."""
    (folder / "home").mkdir(parents=True)
    (folder / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n", encoding="utf-8")
    for name, text in (("pyproject.toml", ""), ("spec.yaml", SPEC), ("project.py", DEFINITIONS)):
        (folder / name).write_text(text, encoding="utf-8")
    source = np.random.default_rng(1)
    days = np.datetime64(FIRST) + np.arange(7 * weeks)
    drawn = {"patient": source.integers(0, 5_000, ROWS), "age": source.integers(0, 100, ROWS)}
    pl.DataFrame({**drawn, "day": source.choice(days, ROWS)}).write_parquet(folder / "visits.parquet")
    for words in ("init", OPENED):
        seconds(folder, "-m", "dphist_pipeline", *words.split())
    return folder


def seconds(folder: Path, *words: str) -> dict[str, float]:
    """Processor and wall seconds of Python with these words in a project, and how many processes it took."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("DPHIST_", "DAGSTER_"))}
    places = {
        "DAGSTER_HOME": folder / "home",
        "DPHIST_WITNESS": folder / "witness",
        "XDG_CONFIG_HOME": folder / "config",
    }
    began = time.perf_counter()
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, *words],
            cwd=folder,
            env={**ours, **{name: str(place) for name, place in places.items()}, "PYTHONPATH": str(folder)},
            stdout=said,
            stderr=said,
        )
        tree, ended = Usage(), 0
        while not ended:  # a process that lives for less than a twentieth of a second may be missed
            tree = usage_of(process.pid, tree, started=True)
            time.sleep(0.05)
            ended, status, used = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit((folder / "said.txt").read_text(encoding="utf-8"))
    spent = {"cpu": used.ru_utime + used.ru_stime, "wall": time.perf_counter() - began}
    return {**spent, "processes": len(tree.by_process)}


def ways(weeks: Sequence[str]) -> dict[str, Callable[[Path], dict[str, float]]]:
    """How each way is run in a project."""
    first = json.dumps({"dagster/partition": weeks[0]})
    assets = (*DAGSTER, "asset", "materialize", "-f", "project.py", "--select", "*")
    return {
        "job": lambda at: seconds(
            at, *DAGSTER, "job", "execute", "-f", "project.py", "-j", "weekly_job", "--tags", first
        ),
        "materialize": lambda at: seconds(at, *assets, "--partition", weeks[0]),
        "runs": lambda at: seconds(at, "-c", IN_ONE_PROCESS, *weeks),
        "backfill": lambda at: seconds(at, *assets, "--partition-range", f"{weeks[0]}...{weeks[-1]}"),
    }


def measured(rounds: int, weeks: int) -> dict[str, object]:
    """Medians of each way, and of the ratios within a round."""
    keys = [str(FIRST + timedelta(weeks=week)) for week in range(weeks)]
    published = {"job": 1, "materialize": 1, "runs": weeks, "backfill": weeks}
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in published}
    for _ in range(rounds):
        for way, run in ways(keys).items():
            with tempfile.TemporaryDirectory(prefix="dphist_bench_") as folder:
                at = office(Path(folder) / "office", weeks)
                runs[way].append(run(at))
                found = len(list((at / "store" / "public").glob("weekly/period=*/revision=1/histogram.parquet")))
                if found != published[way]:
                    raise SystemExit(f"{way}: {found} weeks published\n{(at / 'said.txt').read_text(encoding='utf-8')}")

    def ratio(more: str, less: str) -> dict[str, float]:
        pairs = list(zip(runs[more], runs[less], strict=True))
        return {kind: statistics.median(a[kind] / b[kind] for a, b in pairs) for kind in ("cpu", "wall")}

    return {
        "rounds": rounds,
        "weeks": weeks,
        "seconds": {
            way: {kind: statistics.median(run[kind] for run in found) for kind in ("cpu", "wall", "processes")}
            for way, found in runs.items()
        },
        "materialize_by_job": ratio("materialize", "job"),
        "backfill_by_runs": ratio("backfill", "runs"),
    }


def main() -> None:
    """Measures all ways, and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--weeks", type=int, default=52)
    parser.add_argument("--to", type=Path)
    given = parser.parse_args()
    text = json.dumps(measured(given.rounds, given.weeks), indent=2)
    print(text)
    if given.to is not None:
        given.to.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
