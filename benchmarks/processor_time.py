"""What does each command of `dphist` cost, as a multiple of importing DuckDB, Polars, PyArrow and NumPy?

Processor seconds of whole processes, with those of their child processes: `init`, `ledger open`, `check`, `release` of
5,000 and of 10^6 rows (200 cells, `geometric`, the first release of its name), a replay, `ledger show` and `answer`;
and `release --all-due` of one week and of 100 weeks (200 rows each). Each command runs in a process of its own, in a
new store each turn, and an import of the four packages runs before it. The JSON holds medians and fewest of all turns,
each also as a multiple of the imports; `fixed_task.py` tells how fast the machine is. The first turn, which writes
compiled modules, is left out.

    python benchmarks/processor_time.py [--repeats 7] [--beside CHECKOUT] [--to FILE]

`--beside` runs the program of another checkout, too, in the same turns, and tells each command's ratio to it.

Writes JSON to benchmarks/results/processor_time.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import fixed_task
import yaml
from rows import PROJECT, timed
from startup import ROWS, SPEC

FIRST, WEEKS = date(2024, 1, 1), 100
IMPORTS = ["-c", "import duckdb, numpy, polars, pyarrow"]
SIZES = {"5,000 rows": 5_000, "10^6 rows": 10**6}


def commands(folder: Path, base: Path) -> Iterator[tuple[str, list[str]]]:
    """The commands of one turn, in their order."""
    store = ["--store", str(folder / "store")]
    specs = {size: folder / f"release_{rows}.yaml" for size, rows in SIZES.items()}
    yield "init", ["init", *store]
    for size, spec in specs.items():
        name, source = f"census_{SIZES[size]}", str(base / f"{SIZES[size]}.parquet")
        attributes = {**SPEC, "release": name, "account": name, "source": source}
        spec.write_text(yaml.safe_dump({"type": "dphist_pipeline.HistogramRelease", "attributes": attributes}))
        account = ["--privacy-unit", "person", "--neighbours", "add_remove", "--total", "1", "--source", source]
        yield "ledger open", ["ledger", "open", name, *account, *store]
        yield "check", ["check", str(spec), *store]
    for size, spec in specs.items():
        yield f"release, {size}", ["release", str(spec), *store]
    yield "replay", ["release", str(specs["5,000 rows"]), *store]
    yield "ledger show", ["ledger", "show", *store]
    yield "answer", ["answer", name, "--where", "age in [20, 40) and sex = 'female'", *store]


def due(folder: Path, base: Path) -> Iterator[tuple[str, list[str]]]:
    """One week that is due, and 100 that are due at once, each in a store of its own."""
    source = base / "weeks.parquet"
    for weeks in (1, WEEKS):
        store, spec = ["--store", str(folder / f"store_{weeks}")], folder / f"due_{weeks}.yaml"
        last = str(FIRST + timedelta(weeks=weeks - 1))
        periods = {"period": "week", "period_column": "day", "first_period": str(FIRST), "last_period": last}
        attributes = {**SPEC, "source": str(source), **periods}
        spec.write_text(yaml.safe_dump({"type": "dphist_pipeline.HistogramRelease", "attributes": attributes}))
        account = ["--privacy-unit", "person", "--neighbours", "add_remove", "--total", "1000", "--source", str(source)]
        yield "init", ["init", *store]
        yield "ledger open", ["ledger", "open", str(SPEC["account"]), *account, *store]
        yield f"release --all-due, {weeks} due", ["release", str(spec), "--all-due", *store]


def measure(repeats: int, beside: Path | None) -> dict[str, Any]:
    """The figures of some turns, and how quick and how busy the machine was."""
    seconds, load, fixed = defaultdict[str, list[float]](list), [], []
    before = defaultdict[str, list[float]](list)
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        for rows in SIZES.values():
            copy = ROWS.replace("range(10000)", f"range({rows})").format(file=base / f"{rows}.parquet")
            duckdb.connect().execute(copy)
        days = f"SELECT DATE '{FIRST}' + CAST(i % {7 * WEEKS} AS INTEGER) AS day, i AS person,"
        copy = ROWS.replace("SELECT i AS person,", days).replace("range(10000)", f"range({200 * WEEKS})")
        duckdb.connect().execute(copy.format(file=base / "weeks.parquet"))
        for turn in range(repeats + 1):
            if turn == 1:
                seconds.clear()
                before.clear()
            for checkout, figures_of in ((PROJECT, seconds), *([(beside, before)] if beside else [])):
                folder = base / f"{turn} {checkout == beside}"
                folder.mkdir()
                os.environ["PYTHONPATH"] = str(checkout)
                ours = due(folder, base) if checkout == PROJECT else ()
                for command, words in chain(commands(folder, base), ours):
                    seconds["imports"].append(timed(IMPORTS, folder, "")["processors"])
                    whole = timed(["-P", "-m", "dphist_pipeline", *words], folder, "")
                    figures_of[command].append(whole["processors"])
            load.append(os.getloadavg()[0])
            fixed.append(fixed_task.seconds())
    described = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]  # `+`: some file differs from the commit
    commit = subprocess.run(described, cwd=PROJECT, capture_output=True, text=True, check=False).stdout.strip()
    rows = [
        {"command": command} | figures(found, seconds["imports"]) | ratio(found, before[command])
        for command, found in seconds.items()
    ]
    return {
        **{"date": str(date.today()), "commit": commit, "processors": os.cpu_count(), "repeats": repeats},
        **{"least_load": round(min(load), 1), "most_load": round(max(load), 1)},
        **{"fixed_task_seconds": round(min(fixed), 3), "commands": rows},
    }


def figures(seconds: list[float], imports: list[float]) -> dict[str, float]:
    """Median and fewest seconds, and these as multiples of those of the imports."""
    return {
        **{"median": round(statistics.median(seconds), 3), "fewest": round(min(seconds), 3)},
        "median_by_imports": round(statistics.median(seconds) / statistics.median(imports), 2),
        "fewest_by_imports": round(min(seconds) / min(imports), 2),
    }


def ratio(seconds: list[float], before: list[float]) -> dict[str, float]:
    """Of the medians and of the fewest seconds, to those of the other checkout; empty where that did not run."""
    if not before:
        return {}
    return {
        "median_before": round(statistics.median(before), 3),
        "median_by_before": round(statistics.median(seconds) / statistics.median(before), 2),
        "fewest_by_before": round(min(seconds) / min(before), 2),
    }


def main() -> None:
    """Measures, and writes and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--beside", type=Path, help="another checkout of the project")
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks/results/processor_time.json")
    given = parser.parse_args()
    text = json.dumps(measure(given.repeats, given.beside), indent=1) + "\n"
    given.to.parent.mkdir(exist_ok=True)
    given.to.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
