"""Where are cells better told by `adaptive_boxes` than by `adaptive`, which `--serves cells` names elsewhere?

Public lines and grids of 4,096 to 65,536 cells, at those epsilons from 0.001 on that make records, times epsilon, 0.01
to 0.1 of the cells (grids with many records are thinned, by a public seed): mean squared errors of a cell by both,
release by release. What the rule says was written while looking at the sets of `SEEN`; those of `HELD_OUT` were
measured once, afterwards. The file is written after each set, and what it holds is not measured again.

    python benchmarks/few_records.py [--releases 3] [--sets NAME …] [--to FILE]

Data: $DPHIST_DATA, else ../shared/data beside the checkout. Ten minutes on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from accuracy_sets import DATA, SETS
from nearly_empty import FILES, thinned
from nearly_empty import HELD_OUT as GRIDS_HELD_OUT
from numpy.typing import NDArray
from ranges import PROJECT, counted

import dphist_pipeline as dph

LEAST_EPSILON, THINNED = 0.001, 25_710
KNOWN = (0.01, 0.03, 0.1)  # records times epsilon, by the number of cells
BOTH = ("adaptive", "adaptive_boxes")
Counts = NDArray[np.int64]


def _line(file: str, column: str, width: float, cells: int) -> Callable[[], Counts]:
    """One column in bins from 0; what lies outside is not counted."""

    def counts() -> Counts:
        places = (pl.read_parquet(DATA / f"{file}.parquet")[column].drop_nulls().to_numpy() // width).astype(np.int64)
        return np.bincount(places[(places >= 0) & (places < cells)], minlength=cells)

    return counts


SEEN: dict[str, Callable[[], Counts]] = {
    "medcost": SETS["medcost"].load,
    "adult_capital_loss": SETS["adult_capital_loss"].load,
    "acs_income_by_100": _line("acs_pums_person_100k", "pincp", 100, 15_551),
    "adult_weight_by_100": _line("adult", "fnlwgt", 100, 15_000),
    "adult_gain_loss_256x256": lambda: counted("adult_gain_loss_256x256"),
    "gowalla_256x256": lambda: thinned(counted("gowalla_256x256"), THINNED),
    "sf_cabs_start_256x256": lambda: thinned(counted("sf_cabs_start_256x256"), THINNED),
    "acs_age_by_income": FILES["acs_age_by_income"],
}
HELD_OUT: dict[str, Callable[[], Counts]] = {
    "md_salaries": SETS["md_salaries"].load,
    "baltimore_pay_by_20": _line("salaries_baltimore_fy2017", "gross_pay", 20, 10_000),
    "nyc_salaries_by_20": _line("salaries_nyc_fy2016_subset", "base_salary", 20, 11_000),
    "taxi_fares_by_cent": _line("nyc_taxi_march_2019_sample", "fare_amount", 0.01, 10_000),
    "lc_funded_income_256x256": lambda: thinned(counted("lc_funded_income_256x256"), THINNED),
    **GRIDS_HELD_OUT,
}


def measured(name: str, counts: Counts, releases: int) -> list[dict[str, Any]]:
    """A row for each of `KNOWN`."""
    rows = []
    for known in KNOWN:
        epsilon = f"{known * counts.size / counts.sum():.3g}"
        if float(epsilon) < LEAST_EPSILON:
            continue
        errors = {
            who: [
                float(
                    ((dph.sanitize(counts, mechanism=who, epsilon=epsilon, sensitivity=1).values - counts) ** 2).mean()
                )
                for _ in range(releases)
            ]
            for who in BOTH
        }
        means = {who: float(np.mean(each)) for who, each in errors.items()}
        row = {"set": name, "held_out": name in HELD_OUT, "cells": counts.size, "axes": counts.ndim, "known": known}
        row |= {"epsilon": epsilon, "releases": releases, **means}
        row |= {f"{who}_standard_error": float(np.std(each, ddof=1) / releases**0.5) for who, each in errors.items()}
        rows.append(row | {"boxes_by_adaptive": means["adaptive_boxes"] / means["adaptive"]})
        print(name, known, epsilon, *(f"{mean:.4g}" for mean in means.values()), flush=True)
    return rows


def main() -> None:
    """Measures the sets that the file does not hold."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--releases", type=int, default=3)
    reader.add_argument("--sets", nargs="+", default=[*SEEN, *HELD_OUT])
    reader.add_argument("--to", type=Path, default=PROJECT / "docs/measured/few_records.json")
    given = reader.parse_args()
    rows = json.loads(given.to.read_text(encoding="utf-8"))["rows"] if given.to.is_file() else []
    for name in given.sets:
        if name in {row["set"] for row in rows}:
            continue
        rows += measured(name, (SEEN | HELD_OUT)[name](), given.releases)
        given.to.write_text(json.dumps({"rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
