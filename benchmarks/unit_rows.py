"""What it costs to derive axes from a unit's own rows: processor time and memory, against counting rows alone.

    python benchmarks/unit_rows.py [ROWS]

Invented visits of four quarters of a year, in one process for each way; seconds are of the processor, all threads.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from multiprocessing import get_context
from pathlib import Path
from time import process_time, time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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


def measured(folder: str, way: str) -> dict[str, float]:
    """Reads and counts in this process."""
    fields = {"release": "r", "source": "visits.parquet", "privacy_unit": "patient", "neighbours": "add_remove"}
    fields |= {"epsilon": "1", "account": "a", "mechanism": "geometric", "period": "year", "period_column": "at"}
    spec = ReleaseSpec.from_attributes({**fields, **WAYS[way]}, Path(folder))
    before, began = process_time(), time()
    with tempfile.TemporaryDirectory() as private:
        cube.read_and_count(plan_of(spec, spec.period_named("2026-01-01")), Path(private))
    return {
        "processor_seconds": round(process_time() - before, 2),
        "seconds": round(time() - began, 2),
        "megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
    }


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "visits.parquet", rows)
        found = {}
        for way in WAYS:
            with get_context("spawn").Pool(1) as alone:
                found[way] = alone.apply(measured, (folder, way))
    for one in found.values():
        one["times_rows_alone"] = round(one["processor_seconds"] / found["rows"]["processor_seconds"], 2)
    print(json.dumps({"rows": rows, "ways": found}, indent=1))


if __name__ == "__main__":
    main()
