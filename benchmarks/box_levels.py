"""How near are boxes by `multiscale` with `levels: weighed` to the best mechanism with a proved epsilon?

Mean squared errors of 2,000 random boxes and of 2,000 boxes with a corner at the first cell, for each grid and epsilon,
over at least ten releases. The shares were chosen while looking at the four grids of DPBench (`chosen_on`), whose other
errors are those of `ranges.py`, kept in docs/measured/ranges.json. On the other grids, of which no constant was chosen,
everybody is measured here: `geometric`, `boost`, `workload`, `adaptive_grid`, `multiscale` with both settings, and HB.
The file is written after each case; what it holds is not measured again.

    python benchmarks/box_levels.py [--releases 10] [--to FILE] [--sets NAME …] [--epsilons E …]

Data: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from range_peers import hierarchy
from ranges import DATA, GRIDS, PROJECT, counted, workloads

import dphist_pipeline as dph

WEIGHED = "multiscale, weighed"
KEPT = PROJECT / "docs" / "measured" / "ranges.json"
PROVED = ("geometric", "boost", "workload", "multiscale", "adaptive_grid", "dawa", "Identity", "HB")
# File, and for each axis a column, where its bins begin, their width, and how many; what lies outside is not counted.
UNSEEN = {
    "acs_age_income": ("acs_pums_person_100k", ("agep", 18, 1, 80), ("pincp", 0, 1_000, 200)),
    "taxi_zones": ("nyc_taxi_march_2019_sample", ("pulocationid", 0, 1, 266), ("dolocationid", 0, 1, 266)),
    "baltimore_pay": ("salaries_baltimore_fy2017", ("annual_salary", 0, 1_000, 251), ("gross_pay", 0, 1_000, 245)),
    "nyc_pay": ("salaries_nyc_fy2016_subset", ("base_salary", 0, 1_000, 220), ("regular_gross_paid", 0, 1_000, 220)),
    "adult_age_hours": ("adult", ("age", 17, 1, 74), ("hours_per_week", 0, 1, 100)),
}
EPSILONS = (0.1, 1.0)

Values = NDArray[Any]
Release = Callable[[float], Values]


def binned(file: str, *axes: tuple[str, int, int, int]) -> Values:
    """Counts of the records of a file."""
    table = pl.read_parquet(DATA / f"{file}.parquet").drop_nulls([column for column, *_ in axes])
    bins = [(table[column].to_numpy() - start) // width for column, start, width, _ in axes]
    shape = tuple(many for *_, many in axes)
    inside = np.all([(each >= 0) & (each < many) for each, many in zip(bins, shape, strict=True)], axis=0)
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, tuple(each[inside].astype(np.int64) for each in bins), 1)
    return counts


def ours(counts: Values, mechanism: str, **settings: str) -> Release:
    """A mechanism as a function of epsilon."""
    return lambda epsilon: (
        dph.sanitize(counts, mechanism=mechanism, epsilon=str(epsilon), sensitivity=1, **settings).values
    )


def everybody_on(name: str, counts: Values) -> dict[str, Release]:
    """Who is measured on a grid: on those of DPBench, the others' errors are kept."""
    weighed = {WEIGHED: ours(counts, "multiscale", levels="weighed")}
    if name in GRIDS:
        return weighed
    others = ("geometric", "boost", "workload", "adaptive_grid", "multiscale")
    hb: dict[str, Release] = {"HB": lambda epsilon: hierarchy(counts, epsilon)}
    return weighed | {other: ours(counts, other) for other in others} | hb


def kept(name: str, epsilon: float, workload: str) -> dict[str, tuple[float, float]]:
    """Kept errors of everybody with a proved epsilon on a grid, with standard errors."""
    rows = json.loads(KEPT.read_text(encoding="utf-8"))
    (row,) = [row for row in rows if (row["set"], row["epsilon"], row["workload"]) == (name, epsilon, workload)]
    return {who: (row["mse"][who], row["standard_error"][who]) for who in PROVED}


def measured(name: str, epsilon: float, releases: int) -> list[dict[str, Any]]:
    """A row for each workload."""
    counts = counted(name) if name in GRIDS else binned(*UNSEEN[name])
    asked = {kind: (boxes, boxes.sums(counts)) for kind, boxes in workloads(counts.shape).items()}
    errors: dict[str, dict[str, list[float]]] = {kind: {} for kind in asked}
    for who, release in everybody_on(name, counts).items():
        for _ in range(releases):
            values = np.asarray(release(epsilon), dtype=np.float64)
            for kind, (boxes, exact) in asked.items():
                errors[kind].setdefault(who, []).append(float(np.mean((boxes.sums(values) - exact) ** 2)))
    rows = []
    for kind, all_errors in errors.items():
        found = kept(name, epsilon, kind) if name in GRIDS else {}
        found |= {who: (float(np.mean(each)), _standard_error(each)) for who, each in all_errors.items()}
        rows.append(_row(name, counts, epsilon, kind, found) | {"releases": releases, "chosen_on": name in GRIDS})
    return rows


def _row(name: str, counts: Values, epsilon: float, kind: str, found: dict[str, tuple[float, float]]) -> dict[str, Any]:
    best = min((who for who in found if who != WEIGHED), key=lambda who: found[who][0])
    (mine, spread), (least, spread_of_best) = found[WEIGHED], found[best]
    ratio = mine / least
    return {
        "set": name,
        "cells": counts.size,
        "records": int(counts.sum()),
        "epsilon": epsilon,
        "workload": kind,
        "best": best,
        "ratio": ratio,
        "standard_error": ratio * float(np.hypot(spread / mine, spread_of_best / least)),
        "mse": {who: error for who, (error, _) in found.items()},
        "standard_errors": {who: error for who, (_, error) in found.items()},
    }


def _standard_error(errors: list[float]) -> float:
    return float(np.std(errors, ddof=1) / len(errors) ** 0.5)


def main() -> None:
    """Measures what is not yet in the file, case by case."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--releases", type=int, default=10)
    arguments.add_argument("--sets", nargs="+", default=[*GRIDS, *UNSEEN])
    arguments.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    arguments.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "box_levels.json")
    chosen = arguments.parse_args()
    rows = json.loads(chosen.to.read_text(encoding="utf-8")) if chosen.to.exists() else []
    for epsilon in chosen.epsilons:
        for name in chosen.sets:
            if not any((row["set"], row["epsilon"]) == (name, epsilon) for row in rows):
                rows += measured(name, epsilon, chosen.releases)
                for row in rows[-2:]:
                    told = f"{row['ratio']:.2f} ± {row['standard_error']:.2f} of {row['best']}"
                    print(name, epsilon, row["workload"], told, flush=True)
                chosen.to.parent.mkdir(parents=True, exist_ok=True)
                chosen.to.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
