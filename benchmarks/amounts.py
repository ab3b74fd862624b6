"""Rows, sums and means of an amount: error beside two other ways at one epsilon and bounds, coverage, and time.

    python benchmarks/amounts.py [--releases 4e4] [--rows 1e7] [--to FILE]

Writes JSON to benchmarks/results/amounts.json. `errors`: standard deviations of rows, sum and mean over many releases
of the same records: of two ends; of OpenDP's Laplace noise on a clipped sum and on a count, epsilon halved; and of
Google's rule, written anew: amounts less the middle, added up, and a count, epsilon halved. `coverage`: the share of
95 % intervals that hold, and how many standard errors that is off 95 %. `seconds`: of the processor, for reading,
bounding and counting rows alone and with the amount, the fewest of two turns in one process.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import opendp.prelude as dp
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from rows import PROJECT

from dphist_pipeline.base.domain import AmountAxis
from dphist_pipeline.confidential.cube import write_cube
from dphist_pipeline.confidential.noise import discrete_laplace
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.estimates.amounts import AmountFigures
from dphist_pipeline.estimates.laws import noise_law
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec

Reals = NDArray[np.float64]
PARTS = 1 << 16
KEPT, EPSILON = 3, Fraction(1, 2)
# Ends of the amount, how many rows, their mean, and how many cells are summed.
SETTINGS = (
    *((0.0, 20_000.0, 400, 1_500.0, 1), (0.0, 20_000.0, 30, 1_500.0, 1), (0.0, 500.0, 4_000, 60.0, 4)),
    *((-100.0, 50.0, 300, -20.0, 1), (-500.0, -10.0, 2_000, -80.0, 3), (10.0, 90.0, 60, 40.0, 2)),
)


def records(low: float, high: float, rows: int, mean: float) -> Reals:
    """Amounts with a long tail around a mean; some lie beyond the ends."""
    draws = np.random.default_rng(1)
    spread = draws.lognormal(0.0, 1.0, rows) / math.exp(0.5)
    return low + (mean - low) * spread


def split(amounts: Reals, low: float, high: float) -> tuple[float, float, float]:
    """Parts of all rows at the upper end and at the lower, and the sum of the amounts, cut to the ends."""
    cut = np.clip(amounts, low, high)
    upper = np.floor((cut - low) / (high - low) * PARTS + 0.5).sum()
    return upper, amounts.size * PARTS - upper, float(cut.sum())


def errors(releases: int) -> list[dict[str, Any]]:
    """Standard deviations of rows, sum and mean, of this way and of two others, and this way's by theirs."""
    low, high, rows, mean, _ = SETTINGS[0]
    upper, lower, total = split(records(low, high, rows, mean), low, high)
    scale = KEPT / EPSILON
    noise = discrete_laplace(scale * PARTS, 2 * releases).reshape(2, releases)
    ours_upper, ours_lower = (upper + noise[0]) / PARTS, (lower + noise[1]) / PARTS
    ours = high * ours_upper + low * ours_lower

    dp.enable_features("contrib")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    half = EPSILON / 2
    draw_sum = dp.m.make_laplace(*space, scale=float(KEPT * max(abs(low), abs(high)) / half))
    draw_count = dp.m.make_laplace(*space, scale=float(KEPT / half))
    few = min(releases, 20_000)
    opendp = np.array([draw_sum(total) for _ in range(few)])
    opendp_rows = np.array([draw_count(float(rows)) for _ in range(few)])

    generator, middle = np.random.default_rng(2), (low + high) / 2
    moved = total - rows * middle + generator.laplace(0, float(KEPT * (high - low) / 2 / half), releases)
    counted = rows + generator.laplace(0, float(KEPT / half), releases)
    google = moved + middle * counted
    draws = {
        "two ends": {"rows": ours_upper + ours_lower, "sum": ours, "mean": ours / (ours_upper + ours_lower)},
        "OpenDP: clipped sum, and count": {"rows": opendp_rows, "sum": opendp, "mean": opendp / opendp_rows},
        "Google: middle taken off, and count": {"rows": counted, "sum": google, "mean": middle + moved / counted},
    }
    spread = {way: {what: float(figure.std()) for what, figure in one.items()} for way, one in draws.items()}
    own = spread["two ends"]
    return [
        {"way": way, **one, **{f"two_ends_by_it_{what}": own[what] / one[what] for what in one}}
        for way, one in spread.items()
    ]


def coverage(releases: int) -> list[dict[str, Any]]:
    """How often the intervals of rows, sum and mean hold the true numbers of kept rows with cut amounts."""
    scale, found = KEPT / EPSILON, []
    law = noise_law(scale, PARTS)
    for low, high, rows, mean, cells in SETTINGS:
        axis = AmountAxis("cost", "cost", low, high)
        upper, lower, total = split(records(low, high, rows, mean), low, high)
        truth = {"rows": float(rows), "sum": total, "mean": total / rows}
        noise = discrete_laplace(scale * PARTS, 2 * cells * releases).reshape(2, cells, releases).sum(axis=1)
        held = dict.fromkeys(truth, 0)
        for more, less in noise.T.tolist():
            one = AmountFigures(axis, law, PARTS, (upper + more) / PARTS, (lower + less) / PARTS, cells)
            for figure in one.figures:
                held[figure.what] += figure.lower <= truth[figure.what] <= figure.upper
        error = math.sqrt(0.95 * 0.05 / releases)
        found.append(
            {
                **{"low": low, "high": high, "rows": rows, "mean": mean, "cells": cells},
                **{f"{name}_held": number / releases for name, number in held.items()},
                **{f"{name}_standard_errors": (number / releases - 0.95) / error for name, number in held.items()},
            }
        )
    return found


def seconds(rows: int) -> list[dict[str, Any]]:
    """Processor seconds of reading, bounding and counting, with the amount and without it, the lower of two each."""
    draws = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        columns = {
            "person": pa.array(draws.integers(0, rows // 4, rows)),
            "ward": pa.array(draws.integers(0, 30, rows).astype(str)),
            "cost": pa.array(draws.lognormal(7, 1, rows)),
        }
        pq.write_table(pa.table(columns), base / "visits.parquet")
        ward = {"column": "ward", "values": [str(number) for number in range(30)], "other": True}
        cost = {"column": "cost", "amount": [0, 20000]}
        taken: dict[str, float] = {}
        for name, axes in 2 * [("rows", [ward]), ("amount", [ward, cost])]:
            fields = {
                "release": "costs",
                "source": "visits.parquet",
                "privacy_unit": "person",
                "max_rows_per_unit": KEPT,
            }
            fields |= {"neighbours": "add_remove", "epsilon": "1/2", "account": "a", "mechanism": "geometric"}
            spec = ReleaseSpec.from_attributes({**fields, "axes": axes}, base)
            plan = plan_of(spec, spec.period_named("all"))
            with tempfile.TemporaryDirectory(dir=base) as run:
                start = time.process_time()
                write_cube(plan, stage_rows(plan, Path(run)), Path(run))
                taken[name] = min(time.process_time() - start, taken.get(name, math.inf))
    return [{"way": way, "seconds": one, "times_rows_alone": one / taken["rows"]} for way, one in taken.items()]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--releases", type=float, default=4e4)
    arguments.add_argument("--rows", type=float, default=1e7)
    arguments.add_argument("--to", type=Path, default=PROJECT / "benchmarks/results/amounts.json")
    asked = arguments.parse_args()
    releases, rows = int(asked.releases), int(asked.rows)
    found: dict[str, Any] = {"date": str(date.today()), "releases": releases, "rows": rows}
    found |= {"errors": errors(releases), "coverage": coverage(releases), "seconds": seconds(rows)}
    asked.to.parent.mkdir(parents=True, exist_ok=True)
    asked.to.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(asked.to.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
