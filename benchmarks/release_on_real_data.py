"""How far are released counts from the exact ones, and how long does a release take?

Runs the command line itself, `dphist release`, 20 times on public data with each of two mechanisms, and compares every
released cell with the exact count of the records in it. The data are public, so their exact counts may be shown; for
records that are not, nothing but the noise's own law may be said. Prints a table, and writes JSON to
benchmarks/results/.

    python benchmarks/release_on_real_data.py [--runs 20]

Data: $DPHIST_DATA, else ../shared/data beside the checkout; without them it says so and does nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml
from rich.console import Console
from rich.progress import track
from rich.table import Table

PROJECT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DPHIST_DATA", PROJECT.parent / "shared" / "data"))
EDUCATION = [
    "Preschool",
    "1st-4th",
    "5th-6th",
    "7th-8th",
    "9th",
    "10th",
    "11th",
    "12th",
    "HS-grad",
    "Some-college",
    "Assoc-voc",
    "Assoc-acdm",
    "Bachelors",
    "Masters",
    "Prof-school",
    "Doctorate",
]


BRAZIL = {"age": 101, "sex": 2, "urban": 2, "adults": 20, "children": 17}


@dataclass(frozen=True)
class Case:
    """One release to repeat: its spec, and the exact count of every declared cell, in declared order."""

    name: str
    data: str
    mechanism: str
    attributes: dict[str, Any]
    exact: Callable[[pl.DataFrame], np.ndarray]
    rows: Callable[[pl.DataFrame], pl.DataFrame] | None = None


def adult_counts(records: pl.DataFrame) -> np.ndarray:
    """Age in 5 years from 15 (and above 95) × education × hours per week in tens."""
    age = ((records["age"].to_numpy() - 15) // 5).clip(max=16)
    education = records["education"].replace_strict(EDUCATION, range(16), return_dtype=pl.Int64).to_numpy()
    hours = records["hours_per_week"].to_numpy() // 10
    cells = np.ravel_multi_index((age, education, hours), (17, 16, 10))
    return np.bincount(cells, minlength=17 * 16 * 10)


def income_counts(records: pl.DataFrame) -> np.ndarray:
    """Income in 200 bins of 1,000 from 0; what lies outside is not counted."""
    income = records["pincp"].to_numpy()
    inside = (income >= 0) & (income < 200_000)
    return np.bincount((income[inside] // 1_000).astype(int), minlength=200)


def brazil_rows(cube: pl.DataFrame) -> pl.DataFrame:
    """The published cube as one row a person."""
    return cube.select(pl.exclude("count").repeat_by("count")).explode(list(BRAZIL))


def brazil_counts(records: pl.DataFrame) -> np.ndarray:
    """Age × sex × urban × adults × children."""
    cells = np.ravel_multi_index(tuple(records[name].to_numpy() for name in BRAZIL), tuple(BRAZIL.values()))
    return np.bincount(cells, minlength=math.prod(BRAZIL.values()))


CASES = (
    Case(
        "adult: age × education × hours per week",
        "adult.parquet",
        "dpcube",
        {
            "release": "adult_hours",
            "privacy_unit": "row",
            "neighbours": "add_remove",
            "epsilon": 1,
            "axes": [
                {"column": "age", "start": 15, "stop": 95, "width": 5, "above": True},
                {"column": "education", "values": EDUCATION},
                {"column": "hours_per_week", "start": 0, "stop": 100, "width": 10},
            ],
        },
        adult_counts,
    ),
    Case(
        "brazil: five axes",
        "brazil_age_sex_urban_adults_children.parquet",
        "dpcube",
        {
            "release": "brazil",
            "privacy_unit": "row",
            "neighbours": "add_remove",
            "epsilon": 1,
            "axes": [{"column": name, "start": 0, "stop": size, "width": 1} for name, size in BRAZIL.items()],
        },
        brazil_counts,
        brazil_rows,
    ),
    Case(
        "acs income: 200 bins, households",
        "acs_pums_person_100k.parquet",
        "noise_first",
        {
            "release": "acs_income",
            "privacy_unit": "serialno",
            "max_rows_per_unit": 3,
            "neighbours": "add_remove",
            "epsilon": "0.1",
            "axes": [{"column": "pincp", "name": "income", "start": 0, "stop": 200_000, "width": 1_000}],
        },
        income_counts,
    ),
)


def dphist(*arguments: str, folder: Path) -> dict[str, Any]:
    """Runs the command line in a process of its own, and reads what it prints as JSON."""
    command = [sys.executable, "-m", "dphist_pipeline", *arguments, "--json"]
    # Nothing is left in the state and configuration of whoever runs this.
    own = {"DPHIST_WITNESS": str(folder / "witness.sqlite"), "DPHIST_OPERATOR_KEY": str(folder / "operator.key")}
    done = subprocess.run(command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def measure(case: Case, mechanism: str, runs: int) -> dict[str, Any]:
    """Errors and seconds of repeated releases; each run is a revision of its own, charged like any other."""
    records = pl.read_parquet(DATA / case.data)
    absolute, squared, seconds = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder, source = Path(name), DATA / case.data
        if case.rows is not None:
            records, source = case.rows(records), folder / "rows.parquet"
            records.write_parquet(source)
        exact = case.exact(records)
        attributes = {"source": str(source), "account": "study", "mechanism": mechanism, **case.attributes}
        spec = {"type": "dphist_pipeline.HistogramRelease", "attributes": attributes}
        (folder / "release.yaml").write_text(yaml.safe_dump(spec))
        unit, neighbours = case.attributes["privacy_unit"], case.attributes["neighbours"]
        dphist("init", folder=folder)
        account = ("--privacy-unit", unit, "--neighbours", neighbours, "--total", "1000")
        dphist("ledger", "open", "study", *account, "--source", str(source), folder=folder)
        for run in track(range(runs), f"{case.name}, {mechanism}", console=Console(stderr=True)):
            revise = ("--revise", "--reason", f"run {run + 1}") if run else ()
            start = time.perf_counter()
            made = dphist("release", "release.yaml", *revise, folder=folder)
            seconds.append(time.perf_counter() - start)
            error = pl.read_parquet(Path(made["path"]) / "histogram.parquet")["estimate"].to_numpy() - exact
            absolute.append(np.abs(error).mean())
            squared.append((error**2).mean())
    rows = case.attributes.get("max_rows_per_unit", 1)
    q = math.exp(-float(case.attributes["epsilon"]) / rows)
    return {
        "case": case.name,
        "mechanism": mechanism,
        "epsilon": str(case.attributes["epsilon"]),
        "sensitivity": rows,
        "cells": exact.size,
        "records": int(exact.sum()),
        "runs": runs,
        "mean_absolute_error": _mean(absolute),
        "expected_of_geometric_absolute": 2 * q / (1 - q * q),
        "mean_squared_error": _mean(squared),
        "expected_of_geometric_squared": 2 * q / (1 - q) ** 2,
        "seconds": _mean(seconds),
    }


def _mean(values: list[float]) -> dict[str, float]:
    return {"mean": float(np.mean(values)), "standard_error": float(np.std(values, ddof=1) / math.sqrt(len(values)))}


def main() -> None:
    """Measures every case and shows the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    if not DATA.is_dir():
        print(f"skipped: no data at {DATA}; set DPHIST_DATA to the folder that holds {CASES[0].data}")
        return
    results = [measure(case, name, runs) for case in CASES for name in ("geometric", case.mechanism)]
    target = PROJECT / "benchmarks" / "results" / "release_on_real_data.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(results, indent=2) + "\n")
    table = Table("release", "cells", "ε", "Δ", "mechanism", "mean |error|", "MSE", "seconds")
    for result in results:
        measured = (
            f"{result[name]['mean']:.4g} ± {result[name]['standard_error']:.2g}"
            for name in ("mean_absolute_error", "mean_squared_error", "seconds")
        )
        facts = (result["case"], f"{result['cells']:,}", result["epsilon"], str(result["sensitivity"]))
        table.add_row(*facts, result["mechanism"], *measured)
    Console(width=160).print(table)
    print(f"JSON: {target.relative_to(PROJECT)}")


if __name__ == "__main__":
    main()
