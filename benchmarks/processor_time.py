"""What does each command of `dphist` cost, as a multiple of importing DuckDB, Polars, PyArrow and NumPy?

Processor seconds of whole processes, with those of their child processes: `init`, `ledger open`, `check`, `release` of
5,000 and of 10^6 rows (200 cells, `geometric`, the first release of its name) and `answer`. Each runs in a process of
its own, in a new store each turn, and an import of the four packages runs before it. The JSON holds medians and fewest
of all turns, each also as a multiple of the imports; `fixed_task.py` tells how fast the machine is. The first turn,
which writes compiled modules, is left out.

    python benchmarks/processor_time.py [--repeats 7] [--to FILE]

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
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import fixed_task
import yaml
from rows import PROJECT, timed
from startup import ROWS, SPEC

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
    yield "answer", ["answer", name, "--where", "age in [20, 40) and sex = 'female'", *store]


def measure(repeats: int) -> dict[str, Any]:
    """The figures of some turns, and how quick and how busy the machine was."""
    seconds, load, fixed = defaultdict[str, list[float]](list), [], []
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        for rows in SIZES.values():
            copy = ROWS.replace("range(10000)", f"range({rows})").format(file=base / f"{rows}.parquet")
            duckdb.connect().execute(copy)
        for turn in range(repeats + 1):
            folder = base / str(turn)
            folder.mkdir()
            if turn == 1:
                seconds.clear()
            for command, words in commands(folder, base):
                seconds["imports"].append(timed(IMPORTS, folder, "")["processors"])
                seconds[command].append(timed(["-m", "dphist_pipeline", *words], folder, "")["processors"])
            load.append(os.getloadavg()[0])
            fixed.append(fixed_task.seconds())
    described = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]  # `+`: some file differs from the commit
    commit = subprocess.run(described, cwd=PROJECT, capture_output=True, text=True, check=False).stdout.strip()
    rows = [{"command": command} | figures(found, seconds["imports"]) for command, found in seconds.items()]
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


def main() -> None:
    """Measures, and writes and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks/results/processor_time.json")
    given = parser.parse_args()
    text = json.dumps(measure(given.repeats), indent=1) + "\n"
    given.to.parent.mkdir(exist_ok=True)
    given.to.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
