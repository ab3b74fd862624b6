"""What does a release of a weekly table cost when many weeks are published already?

A table of 30 cells with a period a week, by `geometric`. For each number of published weeks a store gets that many by
one Python process, without catalogue and pages; one release makes those, and the next ones are measured: whole
processes of `dphist release`, the processor seconds with those of child processes, and the bytes that a release wrote.
All stores take turns. `fixed_task.py` tells how fast the machine is.

    python benchmarks/many_periods.py [--weeks 0 300 1000] [--repeats 5] [--keep FOLDER] [--to FILE]

At 0 weeks each turn has a new store. Stores of the others are kept in a folder, where 1,000 weeks take ten minutes.
Writes JSON to benchmarks/results/many_periods.json.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import fixed_task
import yaml
from rows import PROJECT, timed

from dphist_pipeline.answering import building
from dphist_pipeline.releasing.release import release
from dphist_pipeline.releasing.spec_check import load_spec

FIRST = date(2005, 1, 3)
ROWS = """COPY (
    SELECT i AS person, hash(3 * i) % 100 AS age, substr('fmx', CAST(1 + hash(3 * i + 1) % 3 AS INTEGER), 1) AS sex,
        DATE '{first}' + 7 * CAST(i % {weeks} AS INTEGER) AS day
    FROM range({weeks} * 20) AS numbers(i) ORDER BY day
) TO '{file}' (FORMAT parquet)"""
SPEC: dict[str, Any] = {
    **{"release": "weekly", "privacy_unit": "person", "max_rows_per_unit": 1, "neighbours": "add_remove"},
    **{"epsilon": 1, "account": "study", "mechanism": "geometric", "period": "week", "period_column": "day"},
    "axes": [
        {"column": "age", "start": 0, "stop": 100, "width": 10},
        {"column": "sex", "values": ["f", "m", "x"]},
    ],
}


def prepare(folder: Path, source: Path, weeks: int) -> None:
    """A store in a folder, with so many published weeks."""
    folder.mkdir()
    store = ["--store", str(folder / "store")]
    spec = {"type": "dphist_pipeline.HistogramRelease", "attributes": {**SPEC, "source": str(source)}}
    (folder / "release.yaml").write_text(yaml.safe_dump(spec))
    account = ["--privacy-unit", "person", "--neighbours", "add_remove", "--total", "100000", "--source", str(source)]
    timed(["-P", "-m", "dphist_pipeline", "init", *store], folder, "")
    timed(["-P", "-m", "dphist_pipeline", "ledger", "open", "study", *account, *store], folder, "")
    own = {"DPHIST_WITNESS": str(folder / "witness.sqlite"), "DPHIST_OPERATOR_KEY": str(folder / "operator.key")}
    with mock.patch.dict(os.environ, own), mock.patch.object(building, "build_apart"):
        loaded = load_spec(folder / "release.yaml")
        for week in range(weeks):
            release(loaded, folder / "store", period=str(FIRST + timedelta(weeks=week)))


def released(folder: Path) -> dict[str, float]:
    """One release of the next week, and the bytes of the files that were written below the public folder."""
    public = folder / "store" / "public"
    week = len([*public.glob("weekly/period=*")])
    before = {file: file.stat().st_ino for file in public.rglob("*") if file.is_file()}
    words = ["release", str(folder / "release.yaml"), "--store", str(folder / "store")]
    words += ["--period", str(FIRST + timedelta(weeks=week))]
    used = timed(["-P", "-m", "dphist_pipeline", *words], folder, "")
    files = [file for file in public.rglob("*") if file.is_file() and before.get(file) != file.stat().st_ino]
    return {**used, "written": sum(file.stat().st_size for file in files if file.name != "catalog.duckdb")}


def measure(weeks: list[int], repeats: int, keep: Path | None) -> dict[str, Any]:
    """The figures of some turns, and how quick and how busy the machine was."""
    turns, load, fixed = defaultdict[int, list[dict[str, float]]](list), [], []
    with tempfile.TemporaryDirectory() as name:
        base = keep or Path(name)
        source = base / "rows.parquet"
        base.mkdir(exist_ok=True)
        if not source.exists():
            duckdb.connect().execute(ROWS.format(first=FIRST, weeks=max(weeks) + 40, file=source))
        for number in filter(None, weeks):
            if not (base / str(number)).exists():
                prepare(base / str(number), source, number)
            released(base / str(number))
        for turn in range(repeats):
            for number in weeks:
                folder = base / str(number) if number else Path(name) / f"none {turn}"
                if not number:
                    prepare(folder, source, 0)
                turns[number].append(released(folder))
            load.append(os.getloadavg()[0])
            fixed.append(fixed_task.seconds())
    first = statistics.median(turn["processors"] for turn in turns[weeks[0]])
    rows = [
        {
            **{"weeks": number, "processors": round(statistics.median(turn["processors"] for turn in of), 3)},
            "by_first": round(statistics.median(turn["processors"] for turn in of) / first, 2),
            "least_by_first": round(
                min(turn["processors"] for turn in of) / min(turn["processors"] for turn in turns[weeks[0]]), 2
            ),
            "written": int(statistics.median(turn["written"] for turn in of)),
        }
        for number, of in turns.items()
    ]
    return {
        **{"date": str(date.today()), "processors": os.cpu_count(), "repeats": repeats},
        **{"least_load": round(min(load), 1), "most_load": round(max(load), 1)},
        **{"fixed_task_seconds": round(min(fixed), 3), "releases": rows},
    }


def main() -> None:
    """Measures, and writes and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weeks", type=int, nargs="+", default=[0, 300, 1000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="a folder of stores, made where they lack, and used again")
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks/results/many_periods.json")
    given = parser.parse_args()
    text = json.dumps(measure(given.weeks, given.repeats, given.keep), indent=1) + "\n"
    given.to.parent.mkdir(exist_ok=True)
    given.to.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
