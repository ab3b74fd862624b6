"""What do reading and counting take, in processor time and memory, beside an earlier commit?

Rows are those of `rows.py`: 208,080 cells, at most three rows of a person, which 2 % of persons exceed (`few`) or
everybody (`all`). Each turn runs both commits, one after the other, each in a process of its own: seconds of the
processors for reading (records to staged rows) and for counting (staged rows to the cube), imports of Polars and
DuckDB included, and the most memory of the process. Both use one key, and must give the same counts. Ratios are of the
medians.

With `--staged`, staged rows are written at once and only counted, so that 10^8 rows need no table of records.

    python benchmarks/counting.py --before COMMIT [--rows 1e7] [--over few|all] [--memory 1GB] [--repeats 3] [--staged]

Adds the case to benchmarks/results/counting.json, or replaces it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
from rows import PROJECT, write_rows

TURN = """
import json, os, resource, sys, tempfile, time
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
spec = ReleaseSpec.from_attributes(json.loads(sys.argv[1]), Path(sys.argv[2]))
plan, begun = plan_of(spec, spec.period_named("all")), [sum(os.times()[:2])]
from dphist_pipeline.confidential import cube
from dphist_pipeline.confidential.reading.ingest import stage_rows
cube.secrets = SimpleNamespace(token_bytes=bytes)  # one key for both, so that they must keep the same rows
with tempfile.TemporaryDirectory(dir=sys.argv[2]) as folder:
    staged = Path(folder) / "rows.parquet"
    if len(sys.argv) > 3:
        os.link(sys.argv[3], staged)
    else:
        staged = stage_rows(plan, Path(folder))
    begun.append(sum(os.times()[:2]))
    counts = cube.load_cube(cube.write_cube(plan, staged, Path(folder)))
begun.append(sum(os.times()[:2]))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(chr(10) + json.dumps({"reading": begun[1] - begun[0], "counting": begun[2] - begun[1], "gigabytes": peak,
                  "process": begun[2], "kept": sha256(counts).hexdigest()}))
"""
AXES = [
    {"column": "age", "start": 0, "stop": 102, "width": 1},
    {"column": "sex", "values": ["female", "male"]},
    {"column": "region", "values": [f"region {number:02d}" for number in range(51)]},
    {"column": "income", "start": 0, "stop": 95_000, "width": 5000, "above": True},
]
SPEC = {
    **{"release": "census", "source": "rows.parquet", "privacy_unit": "person", "max_rows_per_unit": 3},
    **{"neighbours": "add_remove", "epsilon": 1, "account": "study", "mechanism": "geometric", "axes": AXES},
}
STAGED = """COPY (SELECT ({person}) * 2654435761 % 4294967291 AS unit, CAST(hash(i) % 208080 AS INTEGER) AS code
FROM (SELECT i, i * 982451653 % {rows} AS row FROM range({rows}) AS numbers(i))) TO '{file}' (FORMAT parquet)"""
WHAT = ("reading", "counting", "process", "gigabytes")


def write_staged(file: Path, rows: int, over: str) -> None:
    """Staged rows of the same persons, in cells at random."""
    many = rows * 8 // 10 // 50
    person = f"CASE WHEN row < {4 * many} THEN row // 4 ELSE row END" if over == "few" else "row // 5"
    duckdb.connect().execute(STAGED.format(person=person, rows=rows, file=file))


def turn(package: Path, folder: Path, memory: str, staged: Path | None) -> dict[str, Any]:
    """One reading and counting by the package in a folder."""
    settings = os.environ | {"PYTHONPATH": str(package)} | ({"DPHIST_MEMORY": memory} if memory else {})
    words = [sys.executable, "-c", TURN, json.dumps(SPEC), str(folder), *([str(staged)] if staged else [])]
    done = subprocess.run(words, cwd=folder, env=settings, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # DuckDB's bar stands before it
    return told


def main() -> None:
    """Measures one case, and prints it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="a commit to compare with")
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--over", choices=["few", "all"], default="few")
    parser.add_argument("--memory", default="", help="DPHIST_MEMORY; 3GB where it is left out")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--staged", action="store_true", help="count only")
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks/results/counting.json")
    given = parser.parse_args()
    rows = int(given.rows)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "before").mkdir()
        archive = subprocess.run(
            ["git", "archive", given.before, "dphist_pipeline", "sql"], cwd=PROJECT, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", str(folder / "before")], input=archive.stdout, check=True)
        staged = folder / "staged.parquet" if given.staged else None
        if staged is None:
            write_rows(folder / "rows.parquet", rows, given.over)
        else:
            write_staged(staged, rows, given.over)
        turns: dict[str, list[dict[str, Any]]] = {"before": [], "now": []}
        for _ in range(given.repeats):
            for version, package in (("before", folder / "before"), ("now", PROJECT)):
                turns[version].append(turn(package, folder, given.memory, staged))
    assert len({one["kept"] for both in turns.values() for one in both}) == 1
    medians: dict[str, Any] = {
        version: {what: round(statistics.median(one[what] for one in held), 3) for what in WHAT}
        for version, held in turns.items()
    }
    spent = {version: (0 if staged else held["reading"]) + held["counting"] for version, held in medians.items()}
    case = {
        **{"rows": rows, "over": given.over, "memory": given.memory or "3GB", "staged": given.staged},
        **{"repeats": given.repeats, "load": round(os.getloadavg()[0], 1), "commit_before": given.before},
        **{"ratio": round(spent["now"] / spent["before"], 3), **medians},
    }
    held = json.loads(given.to.read_text()) if given.to.exists() else []
    named = ("rows", "over", "memory", "staged")
    held = [one for one in held if any(one[name] != case[name] for name in named)] + [case]
    given.to.parent.mkdir(exist_ok=True)
    given.to.write_text(json.dumps(held, indent=1) + "\n")
    print(json.dumps(case, indent=1))


if __name__ == "__main__":
    main()
