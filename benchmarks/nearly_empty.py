"""How far is `adaptive` from `dpcube` on grids of 65,536 nearly empty cells?

Public grids, each thinned to so many records (with replacement, by a public seed) that N·ε is 257 and 2,571 at ε of
0.1. Nobody looked at the last three grids before this was measured. Kept are mean squared errors of a cell, release by
release; the file is written after every round of releases, and a further run adds to it.

    python benchmarks/nearly_empty.py [--releases 10] [--sets NAME …] [--to FILE]

Data: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from accuracy_sets import DATA
from numpy.typing import NDArray
from ranges import PROJECT, counted

import dphist_pipeline as dph

SIDE, EPSILON = 256, "0.1"
RECORDS = (2_571, 25_710)
SEEN = ("sf_cabs_start_256x256", "adult_gain_loss_256x256", "gowalla_256x256", "lc_funded_income_256x256")
CONTENDERS: dict[str, dict[str, Any]] = {"dpcube": {"mechanism": "dpcube"}, "adaptive": {"mechanism": "adaptive"}}
Counts = NDArray[np.int64]


def _pairs(file: str, columns: tuple[str, str], widths: tuple[float, float]) -> Callable[[], Counts]:
    """A grid of two columns in bins from 0; what lies outside is not counted."""

    def grid() -> Counts:
        table = pl.read_parquet(DATA / f"{file}.parquet").select(columns).drop_nulls()
        places = np.floor(table.to_numpy() / np.array(widths)).astype(np.int64)
        inside = places[((places >= 0) & (places < SIDE)).all(axis=1)]
        counts: Counts = np.zeros((SIDE, SIDE), dtype=np.int64)
        np.add.at(counts, tuple(inside.T), 1)
        return counts

    return grid


UNSEEN: dict[str, Callable[[], Counts]] = {
    "baltimore_salary_by_pay": _pairs("salaries_baltimore_fy2017", ("annual_salary", "gross_pay"), (1_000, 1_000)),
    "acs_age_by_income": _pairs("acs_pums_person_100k", ("agep", "pincp"), (1, 1_000)),
    "nyc_taxi_distance_by_fare": _pairs("nyc_taxi_march_2019_sample", ("trip_distance", "fare_amount"), (0.15, 0.5)),
}


@cache
def grid_of(name: str) -> Counts:
    """The counts of a set, read once."""
    return UNSEEN[name]() if name in UNSEEN else counted(name)


def thinned(counts: Counts, records: int) -> Counts:
    """Counts of so many records, drawn with replacement from those of a grid."""
    found: Counts = np.random.default_rng(1).multinomial(records, counts.ravel() / counts.sum()).reshape(counts.shape)
    return found


def summary(errors: dict[str, list[float]]) -> dict[str, Any]:
    """Mean errors with their standard errors, and ratios to that of `dpcube`."""
    told = {}
    for who, each in errors.items():
        spread = float(np.std(each, ddof=1) / len(each) ** 0.5) if len(each) > 1 else float("nan")
        told[who] = {"mean": float(f"{np.mean(each):.4g}"), "standard_error": float(f"{spread:.2g}")}
    best = np.mean(errors["dpcube"])
    return {"errors": told, "by_dpcube": {who: round(float(np.mean(each) / best), 3) for who, each in errors.items()}}


def main() -> None:
    """Adds rounds of releases until there are enough."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--releases", type=int, default=10)
    arguments.add_argument("--sets", nargs="+", default=[*SEEN, *UNSEEN])
    arguments.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "nearly_empty.json")
    chosen = arguments.parse_args()
    rows: list[dict[str, Any]] = json.loads(chosen.to.read_text("utf-8"))["rows"] if chosen.to.exists() else []
    for name in chosen.sets:
        for records in RECORDS:
            if all((row["set"], row["records"]) != (name, records) for row in rows):
                rows.append({"set": name, "records": records, "unseen": name in UNSEEN, "each": {}})
    for turn in range(chosen.releases):
        for row in rows:
            lacking = [who for who in CONTENDERS if len(row["each"].get(who, [])) <= turn]
            if not lacking or row["set"] not in chosen.sets:
                continue
            counts = thinned(grid_of(row["set"]), row["records"])
            for who in lacking:
                start = time.process_time()
                made = dph.sanitize(counts, epsilon=EPSILON, sensitivity=1, **CONTENDERS[who])
                row["each"].setdefault(who, []).append(float(((made.values - counts) ** 2).mean()))
                row.setdefault("processor_seconds", {})[who] = round(time.process_time() - start, 1)
            row["summary"] = summary(row["each"])
            print(turn, row["set"], row["records"], row["summary"]["by_dpcube"], row["processor_seconds"], flush=True)
            chosen.to.parent.mkdir(parents=True, exist_ok=True)
            chosen.to.write_text(json.dumps({"epsilon": EPSILON, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
