"""What it costs to derive axes from a unit's own rows: processor time and memory, against counting rows alone.

    python benchmarks/unit_rows.py [--rows 1e7] [--repeats 2] [--to FILE]

Invented visits of four quarters of a year. Seconds are of the processor, all threads: the fewest of some turns over all
ways in one process. Memory is the most that a process of each way alone held. Writes JSON to
benchmarks/results/unit_rows.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rows import PROJECT

from dphist_pipeline.confidential import cube
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec

WARD = {"column": "ward", "values": ["surgery", "medicine", "maternity"], "other": True}
GAP = {"name": "gap", "of_unit": "days_since", "within": "30 days", "edges": [0, 2, 8, 31], "other": True}
VISIT = {"name": "visit", "of_unit": "number", "within": "period", "start": 1, "stop": 5, "width": 1, "above": True}
NEW = {"name": "new", "of_unit": "is_new", "of": "ward", "within": "30 days"}
WAYS: dict[str, dict[str, Any]] = {
    "rows": {"axes": [WARD], "max_rows_per_unit": 3},
    "one_per_cell": {"axes": [WARD], "max_rows_per_unit": 3, "take": "one_per_cell"},
    "days_since": {"axes": [WARD, GAP], "max_rows_per_unit": 3},
    "number, days_since, is_new": {"axes": [WARD, VISIT, GAP, NEW], "max_rows_per_unit": 3},
    "take first": {"axes": [WARD], "max_rows_per_unit": 1, "take": "first"},
}


def write(path: Path, rows: int) -> None:
    """Visits of 2026, in no order, of a third as many patients."""
    chance = np.random.default_rng(65)
    at = np.datetime64("2026-01-01T00:00:00") + chance.integers(0, 365 * 86_400, rows).astype("timedelta64[s]")
    wards = pa.array(["surgery", "medicine", "maternity", None]).take(pa.array(chance.integers(0, 4, rows)))
    columns = {"patient": chance.integers(0, rows // 3, rows), "at": at.astype("datetime64[us]"), "ward": wards}
    pq.write_table(pa.table(columns), path)


def measured(folder: str, way: str) -> tuple[float, int]:
    """Processor seconds of reading and counting in this process, and the most MB that it held since it began."""
    fields = {"release": "r", "source": "visits.parquet", "privacy_unit": "patient", "neighbours": "add_remove"}
    fields |= {"epsilon": "1", "account": "a", "mechanism": "geometric", "period": "year", "period_column": "at"}
    spec = ReleaseSpec.from_attributes({**fields, **WAYS[way]}, Path(folder))
    before = process_time()
    with tempfile.TemporaryDirectory() as private:
        cube.read_and_count(plan_of(spec, spec.period_named("2026-01-01")), Path(private))
    return process_time() - before, round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks/results/unit_rows.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "visits.parquet", int(given.rows))
        megabytes = {}
        for way in WAYS:
            with get_context("spawn").Pool(1) as alone:
                megabytes[way] = alone.apply(measured, (folder, way))[1]
        turns = [{way: measured(folder, way)[0] for way in WAYS} for _ in range(given.repeats)]
    fewest = {way: min(turn[way] for turn in turns) for way in WAYS}
    ways = [
        {
            "way": way,
            "processor_seconds": round(seconds, 2),
            "times_rows_alone": round(seconds / fewest["rows"], 2),
            "megabytes": megabytes[way],
        }
        for way, seconds in fewest.items()
    ]
    found = {"date": str(date.today()), "rows": int(given.rows), "repeats": given.repeats, "ways": ways}
    given.to.parent.mkdir(parents=True, exist_ok=True)
    given.to.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(given.to.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
