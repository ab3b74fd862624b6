"""What does counting cost by engine: DuckDB, Sail, and Spark with workers in JVMs of their own?

Counts the table of `rows.py` (208,080 cells): reading, binning, bounding and counting, and what comes back. A release
adds start-up and publishing, which are the same for every engine. Seconds by the clock, and seconds of all processes
that took part, JVMs and Sail's among them, which others on the machine disturb less. A server is started before, and
has counted 1,000 rows.

    python benchmarks/engines.py [--rows 1e7] [--repeats 3] [--engines duckdb sail spark] [--workers 1 2] [--keep FILE]

Spark is read from .spark/pyspark, where `make .spark/.ready` puts it. After every turn, JSON is written to
benchmarks/results/engines_<rows>.json; the same command goes on with the turns that lack.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from rich.console import Console
from rich.table import Table
from rows import write_rows

PROJECT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PROJECT / "tests"), str(PROJECT / "tests" / "unit")]
from source_scenario import spec  # noqa: E402
from spark_servers import local_cluster, sail  # noqa: E402

from dphist_pipeline.confidential.cube import read_and_count  # noqa: E402
from dphist_pipeline.confidential.engines import spark  # noqa: E402
from dphist_pipeline.releasing._plans import plan_of  # noqa: E402

# On a busy machine, a worker or the driver may not be heard of for minutes.
PATIENT = {
    "spark.network.timeout": "1800s",
    "spark.executor.heartbeatInterval": "60s",
    "spark.rpc.askTimeout": "1800s",
    "spark.worker.timeout": "1800",
}
AXES: list[dict[str, Any]] = [
    {"column": "age", "start": 0, "stop": 102, "width": 1},
    {"column": "sex", "values": ["female", "male"]},
    {"column": "region", "values": [f"region {number:02d}" for number in range(51)]},
    {"column": "income", "start": 0, "stop": 95_000, "width": 5000, "above": True},
]


def seconds_of_processors() -> float:
    """What this process and its living descendants have used, whatever sessions they are in."""
    ticks, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(folder.name)
        parents[number], ticks[number] = int(fields[1]), sum(map(int, fields[11:15]))
    ours, grown = {os.getpid()}, True
    while grown:
        more = {number for number, parent in parents.items() if parent in ours} - ours
        ours, grown = ours | more, bool(more)
    return sum(ticks[number] for number in ours if number in ticks) / os.sysconf("SC_CLK_TCK")


@contextmanager
def engine(name: str, folder: Path, workers: int) -> Iterator[str | None]:
    """The address of an engine; None for DuckDB."""
    if name == "duckdb":
        yield None
    elif name == "sail":
        with sail() as address:
            yield address
    else:
        with local_cluster(folder / f"spark_{workers}", workers, 3072, **PATIENT) as address:
            yield address


def counted(address: str | None, file: Path, bound: int | None) -> dict[str, float]:
    """Counts a file once."""
    with tempfile.TemporaryDirectory() as folder:
        unit = {"privacy_unit": "person", "max_rows_per_unit": bound}
        if bound is None:
            unit = {"privacy_unit": "row", "max_rows_per_unit": ...}
        declared = spec(Path(folder), source=str(file), axes=AXES, **unit)
        plan = plan_of(declared, declared.period_named("all"))
        clock, processors = time.perf_counter(), seconds_of_processors()
        if address is None:
            cube = read_and_count(plan, Path(folder))
        else:
            # Sail is asked for text here, all of which is UTF-8; a release refuses that.
            with mock.patch.object(spark, "SPARK", mock.Mock(fullmatch=lambda version: True)):
                cube = np.load(spark.write_cube(plan, address, Path(folder)))
        seconds = time.perf_counter() - clock
        return {"seconds": seconds, "processors": seconds_of_processors() - processors, "kept": int(cube.sum())}


def turns_of(
    row: dict[str, Any], address: str | None, files: tuple[Path, Path], repeats: int, write: Callable[[], None]
) -> None:
    """Measures the turns that a case lacks, of which each is written before the next."""
    file, few = files
    row["of_1000_rows"] = counted(address, few, row["bound"])
    while len(row["turns"]) < repeats:
        row["turns"].append({**counted(address, file, row["bound"]), "load": os.getloadavg()[0]})
        row |= {what: statistics.median(turn[what] for turn in row["turns"]) for what in row["turns"][0]}
        write()


def main() -> None:
    """Generates rows, measures, and shows the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--engines", nargs="+", default=["duckdb", "sail", "spark"])
    parser.add_argument("--workers", nargs="+", type=int, default=[2], help="of Spark, with one core each")
    parser.add_argument("--keep", type=Path, help="a file of such rows, written where it is missing, and kept")
    parser.add_argument("--anew", action="store_true", help="forget the turns that were measured before")
    given = parser.parse_args()
    target = PROJECT / "benchmarks" / "results" / f"engines_{int(given.rows)}.json"
    target.parent.mkdir(exist_ok=True)
    told: dict[str, Any] = {"rows": int(given.rows), "processors": os.cpu_count(), "engines": []}
    if target.exists() and not given.anew:
        told = json.loads(target.read_text())
    with tempfile.TemporaryDirectory(prefix="dphist_") as base:
        file, few = given.keep or Path(base) / "rows.parquet", Path(base) / "few.parquet"
        if not file.exists():
            write_rows(file, int(given.rows), "few")
        write_rows(few, 1000, "few")
        for name in given.engines:
            for workers in given.workers if name == "spark" else [os.cpu_count() or 1]:
                rows = [row_of(told["engines"], name, workers, bound) for bound in (None, 3)]
                if all(len(row["turns"]) >= given.repeats for row in rows):
                    continue
                with engine(name, Path(base), workers) as address:
                    for row in rows:
                        turns_of(row, address, (file, few), given.repeats, lambda: write(target, told))
    show(told)


def row_of(rows: list[dict[str, Any]], name: str, workers: int, bound: int | None) -> dict[str, Any]:
    """The measurements of a case, which may have none yet."""
    case = {"engine": name, "workers": workers, "bound": bound}
    found = next((row for row in rows if {key: row[key] for key in case} == case), None)
    if found is None:
        found = {**case, "turns": []}
        rows.append(found)
    return found


def write(target: Path, told: dict[str, Any]) -> None:
    """Writes what was measured so far; every engine must have kept as many rows as the others."""
    for bound in (None, 3):
        kept = {turn["kept"] for row in told["engines"] if row["bound"] == bound for turn in row["turns"]}
        assert len(kept) <= 1, kept
    target.write_text(json.dumps(told, indent=2) + "\n")


def show(told: dict[str, Any]) -> None:
    """The table of medians."""
    table = Table(title=f"{told['rows']:,} rows: seconds by the clock, and of all processors")
    for heading in ("engine", "workers", "rows a person", "clock", "processors", "clock, 1,000 rows"):
        table.add_column(heading, justify="right")
    for row in told["engines"]:
        seconds = [f"{row[what]:.1f}" for what in ("seconds", "processors")]
        small = f"{row['of_1000_rows']['seconds']:.1f}"
        table.add_row(row["engine"], str(row["workers"]), str(row["bound"] or "-"), *seconds, small)
    Console().print(table)


if __name__ == "__main__":
    main()
