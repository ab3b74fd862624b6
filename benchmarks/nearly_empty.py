"""How far is `adaptive` from `dpcube` on grids of 65,536 nearly empty cells?

Public grids, each thinned to so many records (with replacement, by a public seed) that N·ε is 257 and 2,571 at ε of
0.1. `boxes` is `adaptive` with `surroundings: boxes`, on the draws of `adaptive`. That setting was made while looking
at the first seven grids; nobody looked at those of `HELD_OUT` before it was finished. Kept are mean squared errors of
a cell, release by release; the file is written after every release, and a further run adds to it.

    python benchmarks/nearly_empty.py [--releases 10] [--sets NAME …] [--records N …] [--to FILE]

Data: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
from accuracy_sets import DATA
from numpy.typing import NDArray
from ranges import PROJECT, counted

import dphist_pipeline as dph
from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.mechanisms import _experts
from dphist_pipeline.solvers.cells import judged_experts
from dphist_pipeline.solvers.cells.expert_rules import Expert, Rule, estimates, fitted_rules

SIDE, EPSILON = 256, "0.1"
RECORDS = (2_571, 25_710)
CUBES = 10  # releases of `dpcube`, which takes no time, at once
SEEN = ("sf_cabs_start_256x256", "adult_gain_loss_256x256", "gowalla_256x256", "lc_funded_income_256x256")
ADAPTIVE: dict[str, dict[str, str]] = {"adaptive": {}, "boxes": {"surroundings": "boxes"}}
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
HELD_OUT: dict[str, Callable[[], Counts]] = {
    "nyc_pay_by_overtime": _pairs("salaries_nyc_fy2016_subset", ("regular_gross_paid", "total_ot_paid"), (1_000, 320)),
    "adult_age_by_weight": _pairs("adult", ("age", "fnlwgt"), (1, 5_000)),
    "nyc_taxi_zone_by_zone": _pairs("nyc_taxi_march_2019_sample", ("pulocationid", "dolocationid"), (1.04, 1.04)),
}
FILES = UNSEEN | HELD_OUT


@cache
def grid_of(name: str) -> Counts:
    """The counts of a set, read once."""
    return FILES[name]() if name in FILES else counted(name)


def thinned(counts: Counts, records: int) -> Counts:
    """Counts of so many records, drawn with replacement from those of a grid."""
    found: Counts = np.random.default_rng(1).multinomial(records, counts.ravel() / counts.sum()).reshape(counts.shape)
    return found


class _Kept:
    """A journal that draws once and then tells the same."""

    def __init__(self) -> None:
        self._answer: NDArray[np.int64] | None = None

    def answer(self, _step: str, _question: object, draw: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        if self._answer is None:
            self._answer = draw()
        return self._answer.copy()


@contextmanager
def _shared() -> Iterator[None]:
    """Within it, experts of one name are fitted once: those of one draw that both forms have in common."""
    known: dict[tuple[Any, ...], Any] = {}

    def fitted(expert: Expert, noisy: Any, folds: Any, scale: float) -> list[Rule]:
        key = ("fitted", expert.name, folds is None)
        if key not in known:
            known[key] = fitted_rules(expert, noisy, folds, scale)
        found: list[Rule] = known[key]
        return found

    def asked(expert: Expert, rules: Any, noisy: Any, chosen: Any, offsets: Any, *rest: Any) -> tuple[Any, Any]:
        key = ("asked", expert.name, chosen.size, offsets.size, id(rules))
        if key not in known:
            known[key] = (rules, estimates(expert, rules, noisy, chosen, offsets, *rest))
        found: tuple[Any, Any] = known[key][1]
        return found

    shared: dict[str, Any] = {"fitted_rules": fitted, "estimates": asked}
    with mock.patch.multiple(_experts, **shared), mock.patch.multiple(judged_experts, **shared):
        yield


def adaptive_errors(counts: Counts) -> dict[str, tuple[float, float]]:
    """Mean squared error of a cell by each form of `adaptive` on one draw, and the seconds that it took."""
    domain, journal, found = Domain.from_shape(counts.shape), _Kept(), {}
    with _shared():
        for who, settings in ADAPTIVE.items():
            start = time.process_time()
            private = PrivateCounts(domain, 1, lambda: counts.ravel(), journal)
            made = mechanisms.build("adaptive", settings).release(private, Budget(Fraction(EPSILON)))
            found[who] = float(((made.values - counts) ** 2).mean()), round(time.process_time() - start, 1)
    return found


def summary(errors: dict[str, list[float]]) -> dict[str, Any]:
    """Mean errors with their standard errors, and ratios to that of `dpcube`."""
    told = {}
    for who, each in errors.items():
        spread = float(np.std(each, ddof=1) / len(each) ** 0.5) if len(each) > 1 else float("nan")
        told[who] = {"mean": float(f"{np.mean(each):.4g}"), "standard_error": float(f"{spread:.2g}")}
    best = np.mean(errors["dpcube"])
    ratios = {who: round(float(np.mean(each) / best), 3) for who, each in errors.items()}
    more = np.subtract(errors["boxes"], errors["adaptive"])
    paired = (
        [float(f"{value:.2g}") for value in (more.mean(), more.std(ddof=1) / len(more) ** 0.5)] if len(more) > 1 else []
    )
    return {"errors": told, "by_dpcube": ratios, "boxes_less_adaptive": paired}


def main() -> None:
    """Adds rounds of releases until there are enough."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--releases", type=int, default=10)
    arguments.add_argument("--sets", nargs="+", default=[*SEEN, *FILES])
    arguments.add_argument("--records", nargs="+", type=int, default=RECORDS)
    arguments.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "nearly_empty.json")
    chosen = arguments.parse_args()
    rows: list[dict[str, Any]] = json.loads(chosen.to.read_text("utf-8"))["rows"] if chosen.to.exists() else []
    for name in chosen.sets:
        for records in chosen.records:
            if all((row["set"], row["records"]) != (name, records) for row in rows):
                rows.append({"set": name, "records": records, "held_out": name in HELD_OUT, "each": {}})
    for turn in range(chosen.releases):
        for row in (row for row in rows if row["set"] in chosen.sets and row["records"] in chosen.records):
            if len(row["each"].get("boxes", [])) > turn:
                continue
            counts, each = thinned(grid_of(row["set"]), row["records"]), row["each"]
            if len(each.setdefault("dpcube", [])) <= turn:
                for _ in range(CUBES):
                    made = dph.sanitize(counts, epsilon=EPSILON, sensitivity=1, mechanism="dpcube")
                    each["dpcube"].append(float(((made.values - counts) ** 2).mean()))
            for who, (error, seconds) in adaptive_errors(counts).items():
                each.setdefault(who, []).append(error)
                row.setdefault("processor_seconds", {})[who] = seconds
            row["summary"] = summary(each)
            print(turn, row["set"], row["records"], row["summary"], row["processor_seconds"], flush=True)
            chosen.to.parent.mkdir(parents=True, exist_ok=True)
            chosen.to.write_text(json.dumps({"epsilon": EPSILON, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
