"""What does `dphist` cost before it works: help, a check, and a release of 200 cells from 10,000 rows?

Each command runs in a process of its own, in turns with `python -c pass`, which is the floor. The release is
`geometric`, spec to published files: the first one of a new store, and revisions of it, in a store of its own each
turn. Seconds by the clock and of the processors, with those of child processes: the median of all turns, and the
fewest, which others on the machine disturbed least. The first release on a machine also makes the empty catalogue that
every later first release of a store adds to.

    python benchmarks/startup.py [--repeats 5] [--to FILE]

Writes JSON to benchmarks/results/startup.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import yaml
from rows import PROJECT, timed

ROWS = """COPY (
    SELECT i AS person, CAST(floor(100 * ((hash(8 * i + 1) >> 11) / 9007199254740992.0)) AS INTEGER) AS age,
        CASE WHEN hash(8 * i + 2) % 2 = 0 THEN 'female' ELSE 'male' END AS sex
    FROM range(10000) AS numbers(i)
) TO '{file}' (FORMAT parquet)"""
SPEC: dict[str, Any] = {
    **{"release": "census", "privacy_unit": "person", "max_rows_per_unit": 1, "neighbours": "add_remove"},
    **{"epsilon": 1, "account": "study", "mechanism": "geometric"},
    "axes": [
        {"column": "age", "start": 0, "stop": 100, "width": 1},
        {"column": "sex", "values": ["female", "male"]},
    ],
}


def turn(folder: Path) -> dict[str, dict[str, float]]:
    """Every command once, in a new store."""
    folder.mkdir()
    source, spec, store = folder / "rows.parquet", folder / "release.yaml", ["--store", str(folder / "store")]
    duckdb.connect().execute(ROWS.format(file=source))
    attributes = {**SPEC, "source": str(source)}
    spec.write_text(yaml.safe_dump({"type": "dphist_pipeline.HistogramRelease", "attributes": attributes}))
    account = ["--privacy-unit", "person", "--neighbours", "add_remove", "--total", "1000", "--source", str(source)]
    commands = {
        "floor": ["-c", "pass"],
        "help": ["-m", "dphist_pipeline", "--help"],
        "init": ["-m", "dphist_pipeline", "init", *store],
        "open": ["-m", "dphist_pipeline", "ledger", "open", "study", *account, *store],
        "check": ["-m", "dphist_pipeline", "check", str(spec), *store],
        "first_release": ["-m", "dphist_pipeline", "release", str(spec), *store],
        "revision": ["-m", "dphist_pipeline", "release", str(spec), *store, "--revise", "--reason", "again"],
    }
    return {name: timed(words, folder, "") for name, words in commands.items()}


def main() -> None:
    """Measures, prints the medians and writes them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks/results/startup.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        turns = [turn(Path(base, str(number))) for number in range(given.repeats)]
    of = {"median": statistics.median, "fewest": min}
    result: dict[str, Any] = {"processors": os.cpu_count(), "repeats": given.repeats, "load": os.getloadavg()[0]}
    for told, function in of.items():
        result[told] = {
            name: {what: round(function(one[name][what] for one in turns), 3) for what in ("seconds", "processors")}
            for name in turns[0]
        }
    given.to.parent.mkdir(exist_ok=True)
    given.to.write_text(json.dumps(result, indent=1) + "\n")
    sys.stdout.write(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
