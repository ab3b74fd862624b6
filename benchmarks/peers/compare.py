"""The same task by five peers and by this package: seconds, processor time, memory, error, and what each one promises.

The task: a histogram over public keys a × b of rows that belong to persons, at most 3 rows of a person, ε = 1 for
adding or removing a person. Two in a thousand persons have more than 3 rows; with `--rows-a-person 2.42`, 17 in a
hundred. Rows are invented, by a seeded generator. `floor` is what no contender can do without, and no release: Polars
alone keeps 3 rows of a person and counts.

Every contender runs alone, in a process of its own, from Parquet to all released counts in memory; the release of this
package from its spec to published files with card, catalogue and ledger. Start-up (imports, a session of Spark) is
shown apart. Each peer lives in an environment of its own, which is made here on first use with pinned versions, from
the package index that pip knows. Tumult needs Java 17. A run above the memory or the seconds allowed is ended, and says
so. What cannot be installed or run is listed with its reason.

    python benchmarks/peers/compare.py [--rows 1000000 …] [--sides 100 1000] [--only NAME …] [--to results.json]
    python benchmarks/peers/compare.py --sides 20 --rows-a-person 2.42 --to benchmarks/results/peers_whole.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from peer_task import READY
from processes import Usage, usage_of
from promises import PROMISES
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
BOUND, EPSILON, SEED = 3, 1.0, 20261122
OWN = ("release", "count_cube", "floor")
# Names and versions that were measured; what they need besides is left to pip.
PEERS = {
    "opendp": ("opendp[polars]==0.16.0", "pyarrow==26.0.1"),
    "pipeline_dp": ("pipeline-dp==0.3.1", "python-dp==1.1.5", "dp-accounting", "pyarrow==26.0.1"),
    "smartnoise_sql": ("smartnoise-sql==1.0.10", "pyarrow"),
    "tumult": ("tmlt-analytics==0.21.0", "tmlt-core==0.19.1"),
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn<1.7", "pyarrow==26.0.1"),
}
SPEC = """
type: dphist_pipeline.HistogramRelease
attributes:
  {{release: visits, source: "{records}", privacy_unit: person, max_rows_per_unit: {bound}, neighbours: add_remove,
   epsilon: {epsilon}, account: office, mechanism: geometric,
   axes: [{{column: a, start: 0, stop: {side}, width: 1}}, {{column: b, start: 0, stop: {side}, width: 1}}]}}
"""


@dataclass(frozen=True)
class Limits:
    """When a run is ended."""

    gigabytes: float
    seconds: float


@dataclass(frozen=True)
class Run:
    """What one contender did; seconds by the clock and of all processors, gigabytes at the peak."""

    contender: str
    rows: int
    cells: int
    ended: str = ""  # why there are no counts; empty if there are
    start_up: float = 0.0
    seconds: float = 0.0
    start_up_processor: float = 0.0
    processor: float = 0.0
    gigabytes: float = 0.0
    cells_released: int = 0
    mean_absolute_error: float = 0.0
    error_of_total: float = 0.0


def main() -> None:
    """Runs the matrix, and writes JSON and a table."""
    asked = _arguments()
    limits, environments = Limits(asked.gigabytes, asked.seconds), asked.environments.resolve()
    kept = json.loads(asked.to.read_text(encoding="utf-8"))["runs"] if asked.keep else []
    runs = [Run(**run) for run in kept]
    missing = {name: _environment(environments / name, name) for name in PEERS if name in asked.only}
    with tempfile.TemporaryDirectory(prefix="dphist_peers_", dir=asked.folder and asked.folder.resolve()) as scratch:
        for rows in asked.rows:
            for side in asked.sides:
                records = Path(scratch) / "records.parquet"
                exact = _write_records(records, rows, side, round(rows / asked.rows_a_person))
                for name in asked.only:
                    run = Run(name, rows, side**2, ended=missing.get(name, ""))
                    if not run.ended:
                        with tempfile.TemporaryDirectory(dir=scratch) as folder:
                            run = _measured(name, rows, records, exact, Path(folder), environments, limits)
                    runs.append(run)
                    print(run, file=sys.stderr, flush=True)
                    _write(asked.to, runs, limits, asked.rows_a_person)
    _print(runs)


def _arguments() -> argparse.Namespace:
    contenders = (*OWN, *PEERS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7])
    parser.add_argument(
        "--sides", type=int, nargs="+", default=[100, 1000], help="values of an axis; cells are squares"
    )
    parser.add_argument("--rows-a-person", type=float, default=1.25, help="in the mean; everybody has at least one")
    parser.add_argument("--only", nargs="+", choices=contenders, default=contenders)
    parser.add_argument("--gigabytes", type=float, default=8.0, help="a run above it is ended")
    parser.add_argument("--seconds", type=float, default=900.0, help="a run above it is ended")
    parser.add_argument("--environments", type=Path, default=PROJECT / "benchmarks" / "results" / "peers")
    parser.add_argument(
        "--folder", type=Path, default=None, help="for records; the system's temporary folder if left out"
    )
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "peers.json")
    parser.add_argument("--keep", action="store_true", help="add to the runs that the file holds")
    return parser.parse_args()


def _environment(folder: Path, name: str) -> str:
    """Makes a peer's environment unless it is there; gives the reason where that failed."""
    if (folder / "ready").exists():
        return ""
    steps = [
        [sys.executable, "-m", "venv", folder],
        [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--prefer-binary", *PEERS[name]],
    ]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"not installed: {done.stderr.strip().splitlines()[-1]}"
    (folder / "ready").touch()
    return ""


def _write_records(records: Path, rows: int, side: int, persons: int) -> np.ndarray:
    """Writes rows of so many persons, each of whom has at least one; gives the exact counts."""
    draws = np.random.default_rng(SEED)
    person = np.concatenate([np.arange(persons), draws.integers(0, persons, rows - persons)])
    a, b = draws.integers(0, side, rows), np.minimum(draws.exponential(side / 5, rows).astype(np.int64), side - 1)
    pq.write_table(pa.table({"person": person, "a": a, "b": b}), records)
    return np.bincount(a * side + b, minlength=side**2).reshape(side, side)


def _measured(
    name: str, rows: int, records: Path, exact: np.ndarray, folder: Path, environments: Path, limits: Limits
) -> Run:
    side = exact.shape[0]
    if name in OWN:
        script, python = HERE / f"ours_{name}.py", Path(sys.executable)
    else:
        script, python = HERE / f"peer_{name}.py", environments / name / "bin" / "python"
    settings = dict(os.environ, PYTHONWARNINGS="ignore", PYTHONPATH=str(PROJECT) if name in OWN else "")
    if name == "release":
        settings |= _office(folder, records, side, settings)
    command = [python, script, records, side, BOUND, EPSILON, folder, time.time()]
    used, ended = _watched([str(word) for word in command], settings, folder, limits)
    run = {"contender": name, "rows": rows, "cells": exact.size, "gigabytes": round(used.bytes / 1e9, 2)}
    if ended:
        return Run(**run, ended=ended, processor=round(used.processor, 1))
    told = json.loads((folder / "seconds.json").read_text(encoding="utf-8"))
    released = np.load(folder / "counts.npy")
    return Run(
        **run,
        start_up=round(told["start_up"], 2),
        seconds=round(told["release"], 2),
        start_up_processor=round(used.at_start, 2),
        processor=round(used.processor - used.at_start, 2),
        cells_released=int(np.isfinite(released).sum()),
        mean_absolute_error=round(float(np.nanmean(np.abs(released - exact))), 3),
        error_of_total=round(float(np.nansum(released) - exact.sum()), 1),
    )


def _watched(command: list[str], settings: dict[str, str], folder: Path, limits: Limits) -> tuple[Usage, str]:
    """Runs a command, and ends it and what it started where it takes too much."""
    used, began, ended = Usage(), time.monotonic(), ""
    with (folder / "said.txt").open("w", encoding="utf-8") as said:
        # Spark leaves folders where it is started.
        process = subprocess.Popen(command, cwd=folder, env=settings, stdout=said, stderr=said, start_new_session=True)
        while process.poll() is None:
            used = usage_of(process.pid, used, started=not (folder / READY).exists())
            if used.bytes > limits.gigabytes * 1e9:
                ended = f"above {limits.gigabytes:g} GB"
            elif time.monotonic() - began > limits.seconds:
                ended = f"above {limits.seconds:g} s"
            if ended:
                os.killpg(process.pid, signal.SIGKILL)  # its own session: nothing else is in it
                break
            time.sleep(0.1)
        process.wait()
    if not ended and process.returncode:
        ended = f"failed: {(folder / 'said.txt').read_text(encoding='utf-8').strip().splitlines()[-1][:200]}"
    return used, ended


def _office(folder: Path, records: Path, side: int, settings: dict[str, str]) -> dict[str, str]:
    """Makes the store of an office and its account, which operators do once; gives its environment."""
    (folder / "pyproject.toml").touch()
    (folder / "spec.yaml").write_text(
        SPEC.format(records=records, bound=BOUND, epsilon=EPSILON, side=side), encoding="utf-8"
    )
    own = {"DPHIST_WITNESS": str(folder / "witness.sqlite"), "DPHIST_OPERATOR_KEY": str(folder / "operator.key")}
    unit = ["--privacy-unit", "person", "--neighbours", "add_remove", "--total", "10", "--source", str(records)]
    for words in (["init"], ["ledger", "open", "office", *unit]):
        command = [sys.executable, "-m", "dphist_pipeline", *words, "--store", str(folder / "store")]
        subprocess.run(command, cwd=folder, env=settings | own, check=True, capture_output=True)
    return own


def _write(target: Path, runs: list[Run], limits: Limits, rows_a_person: float) -> None:
    task = {"bound": BOUND, "epsilon": EPSILON, "neighbours": "add_remove", "seed": SEED}
    report = {
        "task": task | {"rows_a_person": rows_a_person},
        "measured": datetime.now(UTC).date().isoformat(),
        "machine": {
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "load_at_the_end": round(os.getloadavg()[0], 1),
        },
        "limits": asdict(limits),
        "versions": {name: list(pins) for name, pins in PEERS.items()} | {"ours": [version("dphist-pipeline")]},
        "promises": PROMISES,
        "runs": [asdict(run) for run in runs],
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _print(runs: list[Run]) -> None:
    table = Table("contender", "rows", "cells", "start-up s", "s", "processor s", "GB", "cells out", "error")
    for run in runs:
        measured = (
            run.start_up,
            run.seconds,
            run.processor,
            run.gigabytes,
            run.cells_released,
            run.mean_absolute_error,
        )
        shown = [run.ended, *[""] * 5] if run.ended else map(str, measured)
        table.add_row(run.contender, f"{run.rows:,}", f"{run.cells:,}", *shown)
    Console().print(table)


if __name__ == "__main__":
    main()
