"""What does a release of very many rows cost beside a bare GROUP BY over the same file?

The floor is DuckDB's `SELECT count(*) FROM (SELECT bins, count(*) … GROUP BY ALL)` over one Parquet file, each time in
a process of its own. The release is `dphist release` of the same table by `geometric`, spec to published files, with
208,080 cells. Both run in turns. Start-up is the same release of 1,000 rows: what imports, ledger, publishing of all
cells and the catalogue take whatever the rows. The ratios leave it out, of seconds by the clock and of seconds of the
processors, which others on the machine disturb less; the median of all turns is shown, and the largest memory.

Invented rows, whose law is written in SQL below: row i has the values of hash(8i + 1 … 6); age 102 × sex 2 × region 51
(the first ones are more frequent) × income (log-normal) in 20 bins. Rows stand in an order that mixes persons. With
`--over few`, of 8 persons for 10 rows 2 % have five rows, and the others one or two; with `--over all`, all have five.

    python benchmarks/rows.py [--rows 1e7] [--bound 3] [--over few|all] [--memory 2GB] [--repeats 5] [--keep FILE]
    python benchmarks/rows.py --all --rows 1e8 --keep FOLDER

With `--all` it measures all cases of a number of rows, one after the other: no bound, a bound that few exceed, the same
with 2 GB, and a bound that all exceed. JSON is written to benchmarks/results/rows_<rows>_<bound>_<over>[_<memory>].json
after every turn; the same command goes on with the turns that lack, or begins anew with `--anew`. 10^8 rows take 0.9 GB
of disk, and as much again while they are bounded.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import yaml
from rich.console import Console
from rich.table import Table

PROJECT = Path(__file__).resolve().parent.parent
ROWS = """COPY (
    SELECT
        ({person}) * 2654435761 % 4294967291 AS person,
        CAST(floor(102 * sqrt({u1}) * {u2}) AS INTEGER) AS age,
        CASE WHEN {u3} < 0.5 THEN 'female' ELSE 'male' END AS sex,
        'region ' || lpad(CAST(CAST(floor(51 * {u4} * {u4}) AS INTEGER) AS VARCHAR), 2, '0') AS region,
        CAST(floor(20000 * exp(0.7 * sqrt(-2 * ln({u5} + 1e-16)) * cos(2 * pi() * {u6}))) AS INTEGER) AS income
    FROM (SELECT i, i * 982451653 % {rows} AS row FROM range({rows}) AS numbers(i))
) TO '{file}' (FORMAT parquet, COMPRESSION zstd)"""
FLOOR = """import duckdb, sys
duckdb.sql(f"SELECT count(*) FROM (SELECT age, sex, region, least(income // 5000, 19) AS bin, count(*)"
           f" FROM read_parquet('{sys.argv[1]}') GROUP BY ALL)").fetchall()"""


CASES: list[dict[str, Any]] = [
    {"bound": 0, "over": "few", "memory": ""},
    {"bound": 3, "over": "few", "memory": ""},
    {"bound": 3, "over": "few", "memory": "2GB"},
    {"bound": 3, "over": "all", "memory": ""},
]


def write_rows(file: Path, rows: int, over: str) -> None:
    """The generated table."""
    persons = rows * 8 // 10
    many = persons // 50
    person = "row // 5"
    if over == "few":
        person = (
            f"CASE WHEN row < {persons} THEN row WHEN row < {persons + 4 * many} THEN (row - {persons}) // 4"
            f" ELSE {many} + row - {persons + 4 * many} END"
        )
    uniform = {f"u{number}": f"((hash(i * 8 + {number}) >> 11) / 9007199254740992.0)" for number in range(1, 7)}
    draft = file.with_name(f"{file.name}.draft")
    duckdb.connect().execute(ROWS.format(person=person, rows=rows, file=draft, **uniform))
    draft.replace(file)  # so that a file of this name is whole


def timed(words: list[str], folder: Path, memory: str) -> dict[str, float]:
    """Seconds by the clock and of processors, and gigabytes, of a command that must succeed."""
    own = {"DPHIST_WITNESS": str(folder / "witness.sqlite"), "DPHIST_OPERATOR_KEY": str(folder / "operator.key")}
    settings = os.environ | own | ({"DPHIST_MEMORY": memory} if memory else {})
    settings.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed: nobody compiles modules at every start
    begun = time.perf_counter()
    process = os.posix_spawn(
        sys.executable,
        [sys.executable, *words],
        settings,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, str(folder / "said.txt"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)],
    )
    _, status, used = os.wait4(process, 0)
    if status:
        sys.exit(f"{' '.join(words)} failed")
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "processors": used.ru_utime + used.ru_stime, "gigabytes": used.ru_maxrss / 2**20}


def prepare(folder: Path, source: Path, bound: int) -> None:
    """A store, an account and a spec in a folder."""
    unit = "person" if bound else "row"
    axes = [
        {"column": "age", "start": 0, "stop": 102, "width": 1},
        {"column": "sex", "values": ["female", "male"]},
        {"column": "region", "values": [f"region {number:02d}" for number in range(51)]},
        {"column": "income", "start": 0, "stop": 95_000, "width": 5000, "above": True},
    ]
    attributes = {
        **{"release": "census", "source": str(source), "privacy_unit": unit, "neighbours": "add_remove"},
        **({"max_rows_per_unit": bound} if bound else {}),
        **{"epsilon": 1, "account": "study", "mechanism": "geometric", "axes": axes},
    }
    folder.mkdir()
    spec = {"type": "dphist_pipeline.HistogramRelease", "attributes": attributes}
    (folder / "release.yaml").write_text(yaml.safe_dump(spec))
    store = ["--store", str(folder / "store")]
    timed(["-m", "dphist_pipeline", "init", *store], folder, "")
    account = ["--privacy-unit", unit, "--neighbours", "add_remove", "--total", "1000", "--source", str(source)]
    timed(["-m", "dphist_pipeline", "ledger", "open", "study", *account, *store], folder, "")


def released(folder: Path, turn: int, memory: str) -> dict[str, float]:
    """One release of a prepared folder; each but the first is a revision."""
    revise = ["--revise", "--reason", f"turn {turn}"] if turn else []
    words = ["release", str(folder / "release.yaml"), "--store", str(folder / "store"), *revise]
    return timed(["-m", "dphist_pipeline", *words], folder, memory)


def measure(base: Path, file: Path, given: argparse.Namespace, target: Path) -> dict[str, Any]:
    """The turns of floor, start-up and release that the target lacks."""
    turns = [] if given.anew or not target.exists() else json.loads(target.read_text())["turns"]
    few = base / "few.parquet"
    write_rows(few, 1000, given.over)
    prepare(base / "all", file, given.bound)
    prepare(base / "small", few, given.bound)
    for turn in range(given.repeats - len(turns)):
        turns.append(
            {
                "floor": timed(["-c", FLOOR, str(file)], base, ""),
                "start_up": released(base / "small", turn, given.memory),
                "release": released(base / "all", turn, given.memory),
                "empty_floor": timed(["-c", FLOOR, str(few)], base, ""),
                "load": os.getloadavg()[0],
            }
        )
        target.write_text(json.dumps(summed_up(turns, given), indent=2) + "\n")
    return summed_up(turns, given)


def summed_up(turns: list[dict[str, Any]], given: argparse.Namespace) -> dict[str, Any]:
    """Medians of turns."""

    def ratio(what: str) -> float:
        return statistics.median(
            (turn["release"][what] - turn["start_up"][what]) / (turn["floor"][what] - turn["empty_floor"][what])
            for turn in turns
        )

    return {
        **{"rows": int(given.rows), "bound": given.bound, "over": given.over, "memory": given.memory or "3GB"},
        **{"cells": 208_080, "processors": os.cpu_count(), "repeats": len(turns)},
        **{f"ratio_of_{what}": ratio(what) for what in ("seconds", "processors")},
        **{
            name: {what: statistics.median(turn[name][what] for turn in turns) for what in ("seconds", "processors")}
            for name in ("floor", "start_up", "release")
        },
        "gigabytes": max(turn["release"]["gigabytes"] for turn in turns),
        "turns": turns,
    }


def main() -> None:
    """Generates rows, measures, and shows the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--bound", type=int, default=0, help="rows a person; 0: every row is another person")
    parser.add_argument("--over", choices=["few", "all"], default="few")
    parser.add_argument("--memory", default="", help="DPHIST_MEMORY of the release")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--keep", type=Path, help="a file, or folder, of such rows, written where it lacks, and kept")
    parser.add_argument("--all", action="store_true", help="all cases; what is given of the others does not matter")
    parser.add_argument("--anew", action="store_true", help="forget the turns that were measured before")
    given = parser.parse_args()
    for case in CASES if given.all else [{}]:
        measured(argparse.Namespace(**{**vars(given), **case}))


def measured(given: argparse.Namespace) -> None:
    """Measures one case, and shows its table."""
    named = f"rows_{int(given.rows)}_{given.bound}_{given.over}{given.memory and f'_{given.memory}'}.json"
    target = PROJECT / "benchmarks" / "results" / named
    target.parent.mkdir(exist_ok=True)
    base = Path(tempfile.mkdtemp())
    try:
        file = (given.keep or base / "rows.parquet").resolve()
        if given.all or file.is_dir():
            file.mkdir(parents=True, exist_ok=True)
            file /= f"rows_{int(given.rows)}_{given.over}.parquet"
        if not file.exists():
            write_rows(file, int(given.rows), given.over)
        result = measure(base, file, given, target)
    finally:
        shutil.rmtree(base)
    table = Table("", "seconds", "of processors")
    for name in ("floor", "start_up", "release"):
        table.add_row(name, *(f"{result[name][what]:.2f}" for what in ("seconds", "processors")))
    table.add_row("ratio", f"{result['ratio_of_seconds']:.2f}", f"{result['ratio_of_processors']:.2f}")
    Console().print(table)
    print(f"{result['gigabytes']:.2f} GB at most. JSON: {target.relative_to(PROJECT)}")


if __name__ == "__main__":
    main()
