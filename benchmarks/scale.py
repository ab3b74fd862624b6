"""Where does the time of a release go, by its rows and cells, and what does publishing cost beside DuckDB's COPY?

A grid of releases by `geometric`, spec to published files, of the rows of `rows.py`: age 102 × sex 2 × region 51, and
income in 20, 96 or 961 bins, which are 10,404 to 9,998,244 cells. Every release is the second one of its store, a
revision: the first one only makes the store's files. For each step, seconds of the processors in the process itself;
the pictures and the catalogue, which have processes of their own, are one step; its seconds are theirs.

Publishing is compared with DuckDB's `COPY` of the published table to Parquet (zstd), in turns with the release, by as
many threads. Start-up, which is the same release of the 10,404 cells, is left out of the ratio.

    python benchmarks/scale.py [--rows 1e6 --rows 1e7] [--repeats 3] [--bound 3] [--to FILE]

Writes JSON to benchmarks/results/scale.json, after each release.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import yaml
from rows import PROJECT, prepare, timed, write_rows

INCOMES = {10_404: 0, 208_080: 20, 998_784: 96, 9_998_244: 961}
RELEASE = """
import json, os, resource, sys, time
spec, store, reason, told = sys.argv[1:]
steps = []
def note(step):
    steps.append((step, time.perf_counter(), sum(os.times()[:2])))
began = time.perf_counter()
from pathlib import Path
from dphist_pipeline.releasing import release
from dphist_pipeline.releasing.spec_check import load_spec
from dphist_pipeline.releasing.store import Store
spec, store = load_spec(Path(spec), Path(store)), Store.open(Path(store))
release.release(spec, store, reason=reason, progress=note)
note("end")
ends = [("imports and checks", began, 0.0), *steps]
spent = {name: round(after[2] - before, 3) for (name, _, before), after in zip(ends, ends[1:])}
spent["catalogue's process"] = round(sum(os.times()[2:4]), 3)
most = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
seconds = round(time.perf_counter() - began, 2)
Path(told).write_text(json.dumps({"steps": spent, "seconds": seconds, "gigabytes": most / 2**20}))
"""
COPY = """import duckdb, sys
duckdb.sql(f"COPY (FROM read_parquet('{sys.argv[1]}')) TO '{sys.argv[2]}' (FORMAT parquet, COMPRESSION zstd)")"""


def with_cells(folder: Path, source: Path, bound: int, cells: int) -> Path:
    """A store with a first release, and the spec of more: its axes have so many cells."""
    prepare(folder, source, bound)
    spec = yaml.safe_load((folder / "release.yaml").read_text())
    income = spec["attributes"]["axes"].pop()
    bins = INCOMES[cells]
    if bins:
        width = {20: 5000, 96: 1000, 961: 100}[bins]
        spec["attributes"]["axes"].append({**income, "width": width, "stop": width * (bins - 1)})
    (folder / "release.yaml").write_text(yaml.safe_dump(spec))
    released(folder, "")
    return folder


def released(folder: Path, reason: str) -> dict[str, Any]:
    """One release of a prepared folder, and what its steps took."""
    told = folder / "told.json"
    used = timed(["-c", RELEASE, str(folder / "release.yaml"), str(folder / "store"), reason, str(told)], folder, "")
    return {**json.loads(told.read_text()), "processors": round(used["processors"], 2), "load": os.getloadavg()[0]}


def copied(folder: Path, turn: int) -> float:
    """Processor seconds of DuckDB's COPY of what a folder published last."""
    table = folder / f"store/public/census/period=all/revision={turn}/histogram.parquet"
    return timed(["-c", COPY, str(table), str(folder / "copy.parquet")], folder, "")["processors"]


def main() -> None:
    """Measures the grid, and prints each release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, action="append", help="default: 10^6 and 10^7")
    parser.add_argument("--cells", type=int, action="append", choices=list(INCOMES), help="default: all")
    parser.add_argument("--bound", type=int, default=0, help="rows a person; 0: every row is another person")
    parser.add_argument("--repeats", type=int, default=3, help="of which medians are told")
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks/results/scale.json")
    given = parser.parse_args()
    given.to.parent.mkdir(exist_ok=True)
    held = json.loads(given.to.read_text()) if given.to.exists() else {"runs": []}
    for rows in map(int, given.rows or [1e6, 1e7]):
        base = Path(tempfile.mkdtemp())
        try:
            write_rows(base / "rows.parquet", rows, "few")
            for cells in given.cells or INCOMES:
                folder = with_cells(base / str(cells), base / "rows.parquet", given.bound, cells)
                turns = [
                    {**released(folder, f"turn {turn}"), "copy": copied(folder, turn + 2)}
                    for turn in range(given.repeats)
                ]
                found = {"rows": rows, "cells": cells, "bound": given.bound, **_medians(turns)}
                held["runs"] = [run for run in held["runs"] if not _same(run, found)] + [found]
                given.to.write_text(json.dumps(held, indent=1) + "\n")
                print(json.dumps(found), flush=True)
                shutil.rmtree(folder)
        finally:
            shutil.rmtree(base)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one[name] == other[name] for name in ("rows", "cells", "bound"))


def _medians(turns: list[dict[str, Any]]) -> dict[str, Any]:
    """The median of every figure."""
    figures = ("seconds", "processors", "copy", "gigabytes", "load")
    steps = {name: round(statistics.median(turn["steps"][name] for turn in turns), 2) for name in turns[0]["steps"]}
    told = {name: round(statistics.median(turn[name] for turn in turns), 2) for name in figures}
    return {**told, "repeats": len(turns), "steps": steps}


if __name__ == "__main__":
    main()
