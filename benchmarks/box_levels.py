"""How near are boxes by `adaptive_boxes` and `multiscale` to the best other mechanism with a proved epsilon?

Mean squared errors of 2,000 random boxes and of 2,000 boxes with a corner at the first cell, for each grid and epsilon,
over at least ten releases. Everybody is measured here: `geometric`, `boost`, `workload`, `adaptive_grid`, HB, and those
that are judged, `adaptive_boxes` and `multiscale` with each setting of `levels`; but of the four grids of DPBench, most
are those of `ranges.py`, kept in docs/measured/ranges.json. Grids on which something was chosen are marked: the shares
of `weighed` on those of DPBench, the share of the total of `overlapping` on those and on `SEEN`, the numbers of
`adaptive_boxes` on all but `UNSEEN`. Nothing was chosen on `UNSEEN`, nor were its errors known before.
The file is written after each case; what it holds is not measured again, and who is missing is added.

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

WEIGHED, OVERLAPPING = "multiscale, weighed", "multiscale, overlapping"
JUDGED = ("multiscale", WEIGHED, OVERLAPPING, "adaptive_boxes")
KEPT = PROJECT / "docs" / "measured" / "ranges.json"
PROVED = ("geometric", "boost", "workload", "multiscale", "adaptive_grid", "dawa", "Identity", "HB")
# File, and for each axis a column, where its bins begin, their width, and how many; what lies outside is not counted.
SEEN = {
    "acs_age_income": ("acs_pums_person_100k", ("agep", 18, 1, 80), ("pincp", 0, 1_000, 200)),
    "taxi_zones": ("nyc_taxi_march_2019_sample", ("pulocationid", 0, 1, 266), ("dolocationid", 0, 1, 266)),
    "baltimore_pay": ("salaries_baltimore_fy2017", ("annual_salary", 0, 1_000, 251), ("gross_pay", 0, 1_000, 245)),
    "nyc_pay": ("salaries_nyc_fy2016_subset", ("base_salary", 0, 1_000, 220), ("regular_gross_paid", 0, 1_000, 220)),
    "adult_age_hours": ("adult", ("age", 17, 1, 74), ("hours_per_week", 0, 1, 100)),
    "adult_age_weight": ("adult", ("age", 17, 1, 74), ("fnlwgt", 0, 5_000, 100)),
    "france_hours": ("eurostat_lfs_france_50k", ("HWUSUAL", 0, 1, 80), ("HWACTUAL", 0, 1, 80)),
    "acs_wages_income": ("acs_pums_person_100k", ("wagp", 0, 1_000, 200), ("pincp", 0, 1_000, 200)),
    "taxi_fares": ("nyc_taxi_march_2019_sample", ("trip_distance", 0, 0.1, 200), ("fare_amount", 0, 0.5, 128)),
    "idaho_costs": ("pums_housing_idaho_2006", ("HINCP", 0, 1_000, 200), ("SMOCP", 0, 50, 100)),
    "acs_age_pension": ("acs_pums_person_100k", ("agep", 18, 1, 80), ("retp", 1, 250, 256)),
}
UNSEEN = {
    "adult_weight_hours": ("adult", ("fnlwgt", 0, 5_000, 100), ("hours_per_week", 0, 1, 100)),
    "california_age_income": ("pums_california_1000", ("age", 18, 1, 76), ("income", 0, 1_000, 200)),
    "idaho_income_insurance": ("pums_housing_idaho_2006", ("HINCP", 0, 1_000, 200), ("INSP", 0, 25, 100)),
    "nyc_overtime": ("salaries_nyc_fy2016_subset", ("ot_hours", 0, 5, 200), ("total_ot_paid", 0, 200, 250)),
    "nyc_other_pay": ("salaries_nyc_fy2016_subset", ("base_salary", 0, 1_000, 220), ("total_other_pay", 0, 100, 200)),
    "taxi_tips": ("nyc_taxi_march_2019_sample", ("tip_amount", 0, 0.1, 128), ("total_amount", 0, 0.5, 128)),
    "acs_age_social": ("acs_pums_person_100k", ("agep", 18, 1, 80), ("ssp", 1, 250, 128)),
    "acs_interest_pension": ("acs_pums_person_100k", ("intp", 1, 100, 100), ("retp", 1, 500, 100)),
}
EPSILONS = (0.1, 1.0)

Values = NDArray[Any]
Release = Callable[[float], Values]


def binned(file: str, *axes: tuple[str, int, float, int]) -> Values:
    """Counts of the records of a file."""
    table = pl.read_parquet(DATA / f"{file}.parquet").drop_nulls([column for column, *_ in axes])
    bins = [np.floor((table[column].to_numpy() - start) / width) for column, start, width, _ in axes]
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
    found = {who: ours(counts, "multiscale", levels=who.partition(", ")[2]) for who in (WEIGHED, OVERLAPPING)}
    found["adaptive_boxes"] = ours(counts, "adaptive_boxes")
    if name in GRIDS:
        return found
    others = ("geometric", "boost", "workload", "adaptive_grid", "multiscale")
    hb: dict[str, Release] = {"HB": lambda epsilon: hierarchy(counts, epsilon)}
    return found | {other: ours(counts, other) for other in others} | hb


def kept(name: str, epsilon: float, workload: str) -> dict[str, tuple[float, float]]:
    """Kept errors of everybody with a proved epsilon on a grid, with standard errors."""
    rows = json.loads(KEPT.read_text(encoding="utf-8"))
    (row,) = [row for row in rows if (row["set"], row["epsilon"], row["workload"]) == (name, epsilon, workload)]
    return {who: (row["mse"][who], row["standard_error"][who]) for who in PROVED}


def measured(name: str, epsilon: float, releases: int, known: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each workload, with those that the known rows of this case lack."""
    counts = counted(name) if name in GRIDS else binned(*{**SEEN, **UNSEEN}[name])
    asked = {kind: (boxes, boxes.sums(counts)) for kind, boxes in workloads(counts.shape).items()}
    found: dict[str, dict[str, tuple[float, float]]] = {
        kind: kept(name, epsilon, kind) if name in GRIDS else {} for kind in asked
    }
    for row in known:
        found[row["workload"]] |= {who: (row["mse"][who], row["standard_errors"][who]) for who in row["mse"]}
    for who, release in everybody_on(name, counts).items():
        if all(who in each for each in found.values()):
            continue
        errors: dict[str, list[float]] = {kind: [] for kind in asked}
        for _ in range(releases):
            values = np.asarray(release(epsilon), dtype=np.float64)
            for kind, (boxes, exact) in asked.items():
                errors[kind].append(float(np.mean((boxes.sums(values) - exact) ** 2)))
        for kind, each in errors.items():
            found[kind][who] = (float(np.mean(each)), _standard_error(each))
    return [
        _row(name, counts, epsilon, kind, each) | {"releases": releases, "chosen_on": name not in UNSEEN}
        for kind, each in found.items()
    ]


def _row(name: str, counts: Values, epsilon: float, kind: str, found: dict[str, tuple[float, float]]) -> dict[str, Any]:
    best = min((who for who in found if who not in JUDGED), key=lambda who: found[who][0])
    least, spread_of_best = found[best]
    ratios = {who: found[who][0] / least for who in JUDGED}
    return {
        "set": name,
        "cells": counts.size,
        "filled": float((counts > 0).mean()),
        "records": int(counts.sum()),
        "epsilon": epsilon,
        "workload": kind,
        "best": best,
        "ratios": ratios,
        "standard_errors_of_ratios": {
            who: ratios[who] * float(np.hypot(found[who][1] / found[who][0], spread_of_best / least)) for who in JUDGED
        },
        "mse": {who: error for who, (error, _) in found.items()},
        "standard_errors": {who: error for who, (_, error) in found.items()},
    }


def _standard_error(errors: list[float]) -> float:
    return float(np.std(errors, ddof=1) / len(errors) ** 0.5)


def main() -> None:
    """Measures what is not yet in the file, case by case."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--releases", type=int, default=10)
    arguments.add_argument("--sets", nargs="+", default=[*UNSEEN, *GRIDS, *SEEN])
    arguments.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS))
    arguments.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "box_levels.json")
    chosen = arguments.parse_args()
    rows = json.loads(chosen.to.read_text(encoding="utf-8")) if chosen.to.exists() else []
    for name in chosen.sets:
        for epsilon in chosen.epsilons:
            known = [row for row in rows if (row["set"], row["epsilon"]) == (name, epsilon)]
            if known and all(set(JUDGED) <= set(row["mse"]) for row in known):
                continue
            found = measured(name, epsilon, chosen.releases, known)
            rows = [row for row in rows if row not in known] + found
            for row in found:
                told = ", ".join(f"{who} {ratio:.2f}" for who, ratio in row["ratios"].items())
                print(name, epsilon, row["workload"], f"by {row['best']}: {told}", flush=True)
            chosen.to.parent.mkdir(parents=True, exist_ok=True)
            chosen.to.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
