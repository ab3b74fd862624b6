"""What does Dagster cost: the demo through it in one process, beside the same releases without it.

Each run is a process of its own with a fresh store: it makes the store, releases the population and eight weeks of
admissions, and answers what the demo shows. Runs with and without Dagster take turns. Seconds of processor time are
those of the process and of its children; the difference of the medians is the cost. Also: the seconds to load 100
releases, beside those to import Dagster. Prints JSON.

    python benchmarks/dagster_overhead.py [--rounds 5] [--persons 1000000] [--to FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[1]
WAYS = ("dagster", "without")
LOADED = 100

RUN = """
import sys
from dagster_project import demo, synthetic
synthetic.PERSONS = demo.PERSONS = int(sys.argv[2])
synthetic.PATIENTS = demo.PATIENTS = max(1, synthetic.PERSONS * 6 // 100)
if sys.argv[1] == "without":
    demo.release_everything = demo.release_without_dagster
if sys.argv[1] == "people":
    (demo.FOLDER / "data").mkdir(parents=True)
    demo.write_people()
else:
    demo.main()
"""
LOAD = """
import sys
import dagster as dg
if sys.argv[1] == "load":
    from pathlib import Path
    from dagster_project.definitions import defs
    definitions = defs()
    definitions.get_repository_def()
    assert len(list(definitions.jobs)) == int(sys.argv[2])
"""


def project(folder: Path) -> Path:
    """A copy of the demo's project, which has made nothing."""
    shutil.copytree(PROJECT / "dagster_project", folder / "dagster_project")
    shutil.copy(PROJECT / "pyproject.toml", folder)
    return folder


def seconds(folder: Path, program: str, *words: str) -> dict[str, float]:
    """Processor and wall seconds of a program in a folder, with its children's."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("DPHIST_", "DAGSTER_"))}
    environment = {**ours, "PYTHONPATH": os.pathsep.join([str(folder), str(PROJECT)])}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words], cwd=folder, env=environment, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words} ended with {process.returncode}")
    return {"cpu": used.ru_utime + used.ru_stime, "wall": time.perf_counter() - began}


def overhead(rounds: int, persons: int, folder: Path) -> dict[str, Any]:
    """Seconds of each run by turns, and the difference of their medians."""
    home = project(folder / "demo")
    seconds(home, RUN, "people", str(persons))
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way in WAYS:
            runs[way].append(seconds(home, RUN, way, str(persons)))
            for made in (home / "demo").iterdir():
                if made.name != "data":
                    shutil.rmtree(made) if made.is_dir() else made.unlink()
    return summary(runs, "dagster", "without")


def loading(rounds: int, folder: Path) -> dict[str, Any]:
    """Seconds to load definitions of 100 releases, beside those to import Dagster."""
    home = project(folder / "many")
    specs = home / "dagster_project" / "defs"
    text = (specs / "weekly_admissions" / "defs.yaml").read_text(encoding="utf-8")
    shutil.rmtree(specs)
    for number in range(LOADED):
        (specs / f"r{number}").mkdir(parents=True)
        made = text.replace("release: weekly_admissions", f"release: r{number}")
        (specs / f"r{number}" / "defs.yaml").write_text(made, encoding="utf-8")
    runs: dict[str, list[dict[str, float]]] = {"load": [], "import": []}
    for _ in range(rounds):
        for way, found in runs.items():
            found.append(seconds(home, LOAD, way, str(LOADED)))
    return summary(runs, "load", "import")


def summary(runs: dict[str, list[dict[str, float]]], more: str, less: str) -> dict[str, Any]:
    """Medians, and the median of the differences within a round."""
    found: dict[str, Any] = {way: {kind: middle(made, kind) for kind in ("cpu", "wall")} for way, made in runs.items()}
    pairs = list(zip(runs[more], runs[less], strict=True))
    found["more"] = {kind: statistics.median(a[kind] - b[kind] for a, b in pairs) for kind in ("cpu", "wall")}
    found["each"] = {way: [round(run["cpu"], 2) for run in made] for way, made in runs.items()}
    return found


def middle(runs: Sequence[dict[str, float]], kind: str) -> float:
    return statistics.median(run[kind] for run in runs)


def main() -> None:
    """Measures both, and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--persons", type=int, default=1_000_000)
    parser.add_argument("--to", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dphist_bench_") as folder:
        report = {
            "persons": given.persons,
            "rounds": given.rounds,
            "demo": overhead(given.rounds, given.persons, Path(folder)),
            "load_100": loading(given.rounds, Path(folder)),
        }
    text = json.dumps(report, indent=2)
    print(text)
    if given.to is not None:
        given.to.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
