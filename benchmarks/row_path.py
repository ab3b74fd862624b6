"""Where does the time of reading and counting go, beside a scan and one sort of packed (unit, cell) words?

Rows of `peers/compare.py` (400 cells, 2.42 rows a person in the mean, R = 3), from Parquet to counts: the fewest
processor seconds of each step, in one process, beside floors over the same rows: DuckDB's scan of the three columns,
and a scan that writes unit and cell as Parquet; one Polars sort of words of unit and cell. And DuckDB alone, keeping
three rows of a person: any, or chosen at random; `--without-kept` leaves that out, which needs the most memory.

    python benchmarks/row_path.py [--rows 1e7] [--repeats 3] [--without-kept] [--to FILE]

Writes JSON to benchmarks/results/row_path.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import fixed_task
import numpy as np
import polars as pl
from rows import PROJECT

sys.path.insert(0, str(Path(__file__).parent / "peers"))
from compare import _write_records

from dphist_pipeline.confidential import _bounding as bounding
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec

SIDE, BOUND = 20, 3
KEPT = """SELECT count(*) FROM (SELECT a, b, count(*) FROM (
    SELECT a, b, row_number() OVER (PARTITION BY person{order}) AS number FROM read_parquet('{file}')
) WHERE number <= 3 GROUP BY ALL)"""


def spec_of(file: Path) -> ReleaseSpec:
    """The release of `peers/compare.py`."""
    axes = [{"column": column, "start": 0, "stop": SIDE, "width": 1} for column in ("a", "b")]
    unit = {"privacy_unit": "person", "max_rows_per_unit": BOUND, "neighbours": "add_remove"}
    facts = {"release": "visits", "source": str(file), "epsilon": 1, "account": "office", "mechanism": "geometric"}
    return ReleaseSpec.from_attributes({**facts, **unit, "axes": axes}, file.parent)


def count(rows: pl.LazyFrame, key: bytes, step: Callable[[str, Callable[[], Any]], Any]) -> None:
    """The steps of counting a slice."""
    hashed = step("release: hash units", lambda: rows.select("hash", "code").collect(engine="streaming"))
    counts = np.zeros(SIDE**2, dtype=np.int64)
    codes = hashed["code"].to_numpy().astype(np.int64)
    step("release: count all rows", lambda: np.add.at(counts, codes, 1))
    runs = step("release: sort hashes of units", lambda: hashed["hash"].sort().rle().struct.unnest())
    crowded = runs.filter(pl.col("len") > BOUND)

    def correct() -> None:
        for (word,), number in bounding._corrections(rows, crowded, ["code"], BOUND, key, (SIDE**2,)):
            np.add.at(counts, word, number)

    step("release: bound those above", correct)


def turn(file: Path, folder: Path, spent: dict[str, list[float]], kept: bool) -> None:
    """Every step once; where memory takes several slices of the rows, the steps of all slices together."""
    seconds = defaultdict[str, float](float)

    def step(name: str, work: Callable[[], Any]) -> Any:
        begun = sum(os.times()[:2])
        made = work()
        seconds[name] += sum(os.times()[:2]) - begun
        return made

    spec, key = spec_of(file), bytes(32)
    staged = step("release: read, bin, stage", lambda: stage_rows(plan_of(spec, spec.period_named("all")), folder))
    for rows in bounding.slices(staged, ["code"], key):
        count(rows, key, step)
    words = pl.scan_parquet(staged).select(pl.col("unit").cast(pl.UInt64) * (1 << 32) + pl.col("code").cast(pl.UInt64))
    packed = step("floor: read staged words", lambda: words.collect(engine="streaming")["unit"])
    step("floor: sort them", lambda: packed.sort().rle())
    staged.unlink()
    with duckdb.connect() as connection:
        scan = "SELECT sum(person), sum(a), sum(b) FROM read_parquet('{file}')"
        step("floor: scan three columns", lambda: connection.execute(scan.format(file=file)).fetchall())
        cells = "SELECT person, CAST(a * 20 + b AS INTEGER) AS code FROM read_parquet('{file}')"
        copy = f"COPY ({cells}) TO '{{to}}' (FORMAT parquet)"
        step("floor: scan and write", lambda: connection.execute(copy.format(file=file, to=staged)).fetchall())
        staged.unlink()
        ways = (("any three rows", ""), ("three rows at random", " ORDER BY hash(rowid, 7)")) if kept else ()
        for name, order in ways:
            of = "(SELECT *, file_row_number AS rowid FROM read_parquet('{file}', file_row_number = true))"
            text = KEPT.format(order=order, file=file)
            text = text.replace(f"read_parquet('{file}')", of.format(file=file)) if order else text
            step(f"DuckDB keeps {name}", lambda text=text: connection.execute(text).fetchall())
    for name, spent_on_it in seconds.items():
        spent[name].append(spent_on_it)


def main() -> None:
    """Measures, and writes and prints JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--without-kept", action="store_true", help="leave out DuckDB that keeps three rows")
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks/results/row_path.json")
    given = parser.parse_args()
    spent, load = defaultdict[str, list[float]](list), []
    with tempfile.TemporaryDirectory() as name:
        folder, file, rows = Path(name), Path(name) / "records.parquet", int(given.rows)
        _write_records(file, rows, SIDE, round(rows / 2.42))
        for _ in range(given.repeats):
            turn(file, folder, spent, not given.without_kept)
            load.append(os.getloadavg()[0])
    result = {
        **{"date": str(date.today()), "processors": os.cpu_count(), "rows": rows, "repeats": given.repeats},
        **{"least_load": round(min(load), 1), "most_load": round(max(load), 1)},
        "fixed_task_seconds": round(fixed_task.seconds(), 3),
        "steps": {step: round(min(seconds), 2) for step, seconds in spent.items()},
    }
    text = json.dumps(result, indent=1) + "\n"
    given.to.parent.mkdir(exist_ok=True)
    given.to.write_text(text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
