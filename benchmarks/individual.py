"""What does a release to an individual account cost beside one to a summed account, and how much noise does it save?

The account has a total of 2 a year, and weeks count at most three rows of a unit. The summed account pays for 52 weeks,
which leaves each an epsilon of 2/52; in the individual one each week has 0.5. The first week holds a row of every unit,
so that the state of the year knows them all. The second is measured: of 8 units for 10 rows 2 % have five rows, and
the others one or two. Both accounts release it in turns, each turn but the first as a revision: `dphist release`, spec
to published files, in a process of its own. Processor seconds are compared, which others on the machine disturb less.

    python benchmarks/individual.py [--rows 1e7] [--units 2e7] [--repeats 3] [--folder FOLDER]

JSON is written to benchmarks/results/individual_<rows>.json. 10^7 rows of 2·10^7 units take 4 GB of disk in FOLDER.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import yaml
from rich.console import Console
from rich.table import Table
from rows import timed

PROJECT = Path(__file__).resolve().parent.parent
WEEKS = ("2026-01-05", "2026-01-12")
EPSILON = {"individual": "1/2", "summed": "1/26"}
FIRST = "SELECT row AS place, row AS unit FROM range({units}) AS numbers(row)"
# As in `rows.py`; units are taken from all of the year by a step that visits each once.
SECOND = """SELECT row AS place, CASE
        WHEN row < {persons} THEN row
        WHEN row < {persons} + 4 * {many} THEN (row - {persons}) // 4
        ELSE {many} + row - {persons} - 4 * {many}
    END * 982451653 % {units} AS unit
FROM range({rows}) AS numbers(row)"""
RECORDS = """COPY (
    SELECT
        unit * 2654435761 % 4294967291 AS unit, DATE '{day}' AS day, CAST(hash(2 * place) % 102 AS INTEGER) AS age,
        'region ' || lpad(CAST(hash(2 * place + 1) % 51 AS VARCHAR), 2, '0') AS region
    FROM ({units}) ORDER BY hash(place)
) TO '{file}' (FORMAT parquet, COMPRESSION zstd)"""


def write_records(folder: Path, rows: int, units: int) -> None:
    """A file for each week."""
    persons = rows * 8 // 10
    first = FIRST.format(units=units)
    second = SECOND.format(rows=rows, units=units, persons=persons, many=persons // 50)
    for day, of_week in zip(WEEKS, (first, second), strict=True):
        with duckdb.connect() as connection:
            connection.execute("SET preserve_insertion_order = false")
            connection.execute(f"SET temp_directory = '{folder}/spilled'")
            connection.execute(RECORDS.format(day=day, units=of_week, file=folder / f"{day}.parquet"))


def prepare(folder: Path, records: Path, accounting: str) -> None:
    """A store, an account and a spec in a folder, and the first week released."""
    folder.mkdir()
    attributes = {
        **{"release": "weekly", "source": f"{records}/*.parquet", "privacy_unit": "unit", "neighbours": "add_remove"},
        **{"max_rows_per_unit": 3, "epsilon": EPSILON[accounting], "account": "study", "mechanism": "geometric"},
        **{"period": "week", "period_column": "day", "first_period": WEEKS[0]},
        "axes": [
            {"column": "age", "start": 0, "stop": 102, "width": 1},
            {"column": "region", "values": [f"region {number:02d}" for number in range(51)]},
        ],
    }
    spec = {"type": "dphist_pipeline.HistogramRelease", "attributes": attributes}
    (folder / "release.yaml").write_text(yaml.safe_dump(spec))
    store = ["--store", str(folder / "store")]
    timed(["-m", "dphist_pipeline", "init", *store], folder, "")
    terms = ["--privacy-unit", "unit", "--neighbours", "add_remove", "--total", "2", "--renews", "yearly"]
    terms += ["--accounting", accounting, "--source", f"{records}/*.parquet"]
    timed(["-m", "dphist_pipeline", "ledger", "open", "study", *terms, *store], folder, "")
    released(folder, WEEKS[0])


def released(folder: Path, week: str, turn: int = 0) -> dict[str, float]:
    """One release; each turn but the first is a revision."""
    revise = ["--revise", "--reason", f"turn {turn}"] if turn else []
    words = ["release", str(folder / "release.yaml"), "--period", week, "--store", str(folder / "store"), *revise]
    return timed(["-m", "dphist_pipeline", *words], folder, "")


def facts_of(folder: Path, turns: list[dict[str, float]]) -> dict[str, float]:
    """The medians of all turns, and the standard deviation of the noise in a cell, in rows."""
    audit = folder / f"store/public/weekly/period={WEEKS[1]}/revision=1/audit.json"
    q = math.exp(-1 / float(Fraction(json.loads(audit.read_text())["charges"][0]["noise_scale"])))
    most = max(turn["gigabytes"] for turn in turns)
    medians = {name: statistics.median(turn[name] for turn in turns) for name in ("seconds", "processors")}
    return {**medians, "gigabytes": most, "deviation": math.sqrt(2 * q) / (1 - q)}


def main() -> None:
    """Generates records, measures, and shows the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=10**7)
    parser.add_argument("--units", type=lambda text: int(float(text)), default=2 * 10**7)
    parser.add_argument("--repeats", type=int, default=3, choices=range(1, 4))  # the year pays for no more
    parser.add_argument("--folder", type=Path, help="where records and stores lie meanwhile")
    given = parser.parse_args()
    base = Path(tempfile.mkdtemp(dir=given.folder))
    try:
        records = base / "records"
        records.mkdir()
        write_records(records, given.rows, given.units)
        for accounting in EPSILON:
            prepare(base / accounting, records, accounting)
        turns: dict[str, list[dict[str, float]]] = {accounting: [] for accounting in EPSILON}
        for turn in range(given.repeats):
            for accounting, measured in turns.items():
                measured.append(released(base / accounting, WEEKS[1], turn))
        facts: dict[str, Any] = {name: facts_of(base / name, measured) for name, measured in turns.items()}
    finally:
        shutil.rmtree(base)
    own, summed = facts["individual"], facts["summed"]
    ratios = {f"ratio_of_{name}": own[name] / summed[name] for name in ("processors", "seconds", "deviation")}
    sizes = {"rows": given.rows, "units": given.units, "processor_cores": os.cpu_count(), "repeats": given.repeats}
    target = PROJECT / "benchmarks/results" / f"individual_{given.rows}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps({**sizes, **ratios, **facts, "turns": turns}, indent=2) + "\n")
    table = Table("account", "epsilon", "deviation of a cell", "processor seconds", "seconds", "gigabytes")
    for name, measured_facts in facts.items():
        cells = (f"{measured_facts[what]:.1f}" for what in ("deviation", "processors", "seconds", "gigabytes"))
        table.add_row(name, EPSILON[name], *cells)
    Console().print(table, target)


if __name__ == "__main__":
    main()
