"""How far from the truth are whole counts of a table, beside its estimates, as they were and as they are?

Releases every public set with some mechanisms at two epsilons and makes the whole table of each release in both ways.
Told are mean squared errors of cells, of sums along each axis (on one axis: of ranges at random places) and of the
total, with the standard error of the difference between whole cells and estimates over releases; and mean errors of
cells by their true count, in standard deviations of an unbiased cell, with their standard errors. A row says whether
the set chose a constant. Also the seconds for a large table. Prints a table, and writes JSON.

    python benchmarks/whole_tables.py [--releases 10] [--cells 1000000] [--keep]

`--keep` writes docs/measured/whole_tables.json, else benchmarks/results/whole_tables.json.

Data: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_sets import SETS, CountSet
from rich.console import Console
from rich.table import Table

import dphist_pipeline as dph
from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.estimates.noisy import ReportedCells
from dphist_pipeline.estimates.whole_tables import Way, WholeTable

PROJECT = Path(__file__).resolve().parent.parent
KEPT = PROJECT / "docs/measured/whole_tables.json"
CHOSE = ("sf_cabs", "lc_funded", "brazil_homes", "adult_people", "taxi_zone_hour", "hepth", "medcost")
MECHANISMS = ("geometric", "boost", "dpcube")
EPSILONS = ("1", "0.1")
RANGES = 2_000
WAYS = ("before", "whole")
SIZES = {"0": 0, "below 1": 1, "1 to 3": 3, "3 to 10": 10, "above 10": math.inf}


def sums_of(off: np.ndarray) -> np.ndarray:
    """Errors of sums along every axis; on one axis, of ranges at random places."""
    if off.ndim == 1:
        draws = np.random.Generator(np.random.PCG64(1)).integers(0, off.size + 1, (2, RANGES))
        return np.diff(np.concatenate([[0.0], np.cumsum(off)])[draws], axis=0).ravel()
    every = range(off.ndim)
    return np.concatenate([off.sum(axis=tuple(other for other in every if other != axis)) for axis in every])


def by_size(exact: np.ndarray, deviation: float, errors: dict[str, np.ndarray]) -> dict[str, Any]:
    """Mean errors, and their standard errors, of cells whose true count lies in a range of deviations."""
    low, found = -1.0, {}
    for name, most in SIZES.items():
        high = max(most * deviation, 0.5)
        chosen = (exact > low) & (exact <= high)
        low = high
        if chosen.any():
            found[name] = {"cells": int(chosen.sum())}
            for kind, of in errors.items():
                means = of[:, chosen].mean(axis=1)
                found[name] |= {kind: [digits(means.mean()), digits(means.std(ddof=1) / len(means) ** 0.5)]}
    return found


def digits(number: float) -> float:
    """Four of them."""
    return float(f"{number:.4g}")


def number_of(way: str, mechanism: str) -> int:
    """How whole counts are fitted before, and by what publications of the mechanism say now."""
    return Way.SHIFTS if way == "before" else mechanisms.build(mechanism, {}).whole_way


def measure(name: str, exact: np.ndarray, mechanism: str, epsilon: str, releases: int) -> dict[str, Any]:
    """One case."""
    off: dict[str, list[np.ndarray]] = {"estimate": [], **{way: [] for way in WAYS}}
    deviation = 0.0
    for _ in range(releases):
        made = dph.sanitize(exact, mechanism=mechanism, epsilon=epsilon, sensitivity=1)
        if made.unbiased is None or isinstance(made.unbiased, ReportedCells):
            raise TypeError(f"{mechanism} has no unbiased cells")
        deviation = math.sqrt(made.unbiased.variance)
        off["estimate"].append(made.values - exact)
        for way in WAYS:
            counts = WholeTable.fit(made.domain, made.values, made.unbiased, way=number_of(way, mechanism)).counts
            off[way].append(counts - exact)
    cells = {kind: np.array([one.ravel() for one in of]) for kind, of in off.items()}
    squares = {kind: (of.astype(np.float64) ** 2).mean(axis=1) for kind, of in cells.items()}
    apart = squares["whole"] - squares["estimate"]
    return {
        **{"set": name, "role": "chose" if name in CHOSE else "held out", "epsilon": epsilon, "mechanism": mechanism},
        "cells": {kind: digits(of.mean()) for kind, of in squares.items()},
        "difference": [digits(apart.mean()), digits(apart.std(ddof=1) / releases**0.5)],
        "sums": {kind: digits(np.mean([(sums_of(one) ** 2).mean() for one in of])) for kind, of in off.items()},
        "total": {kind: digits(np.mean([float(one.sum()) ** 2 for one in of])) for kind, of in off.items()},
        "by_size": by_size(exact.ravel(), deviation, cells),
    }


def seconds(cells: int) -> list[dict[str, Any]]:
    """Seconds of the processor for whole tables of many cells, by shape."""
    side = round(cells ** (1 / 3))
    found = []
    for shape in ((cells,), (round(math.sqrt(cells)),) * 2, (side,) * 3):
        exact = np.random.Generator(np.random.PCG64(1)).poisson(0.3, shape)
        made = dph.sanitize(exact, mechanism="geometric", epsilon="1/2", sensitivity=1)
        took = {}
        for way in WAYS:
            start = time.process_time()
            WholeTable.fit(Domain.from_shape(shape), made.values, made.unbiased, way=number_of(way, "geometric"))
            took[way] = round(time.process_time() - start, 2)
        found.append({"shape": list(shape), **took})
    return found


def summary(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """In how many cases whole cells have no larger error, and large cells a mean error within two of its own of 0."""
    found = {}
    for role in ("held out", "chose"):
        own = [case for case in cases if case["role"] == role]
        large = [case["by_size"]["above 10"] for case in own if "above 10" in case["by_size"]]
        within = {
            kind: sum(abs(mean) <= 2 * error + 0.01 for mean, error in (one[kind] for one in large))
            for kind in ("estimate", *WAYS)
        }
        ratios = [case["cells"]["whole"] / case["cells"]["estimate"] for case in own]
        found[role] = {
            **{"cases": len(own), "no_larger": sum(one <= 1 for one in ratios), "largest_ratio": digits(max(ratios))},
            **{"median_ratio": digits(float(np.median(ratios))), "with_large_cells": len(large), "mean_is_0": within},
        }
    return found


def main() -> None:
    """Measures, prints and writes JSON."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--releases", type=int, default=10)
    asked.add_argument("--cells", type=int, default=1_000_000)
    asked.add_argument("--keep", action="store_true")
    given = asked.parse_args()
    cases = []
    for name, found in SETS.items():
        if isinstance(found, CountSet):
            exact = found.load()
            cases += [
                measure(name, exact, mechanism, epsilon, given.releases)
                for epsilon in EPSILONS
                for mechanism in MECHANISMS
            ]
            print(name, flush=True)
    shown = Table("set", "epsilon", "mechanism", "cells: estimate", "before", "whole", "above 10: before", "whole")
    for case in cases:
        large = case["by_size"].get("above 10", {})
        errors = (f"{large[way][0]:.2f} ± {large[way][1]:.2f}" if large else "" for way in WAYS)
        numbers = (f"{number:,.3g}" for number in case["cells"].values())
        shown.add_row(case["set"], case["epsilon"], case["mechanism"], *numbers, *errors)
    Console().print(shown)
    facts = {"releases": given.releases, "summary": summary(cases), "large": seconds(given.cells), "cases": cases}
    Console().print(facts["summary"], facts["large"])
    target = KEPT if given.keep else PROJECT / "benchmarks/results/whole_tables.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(facts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
