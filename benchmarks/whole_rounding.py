"""What does rounding to whole numbers add to the squared error of a cell by `dpcube`, and what can be had back?

Releases every public set and fits each release twice: rounded by place, as publications of 2026-11-27 have it, and led
by the cells' own noisy counts, as new ones do. A case is a set and an epsilon. Told are the mean squared error of
estimates, what the fit of non-negative numbers adds to it, and what rounding adds to that: by place, by cells, to the
nearest whole number (which loses sums), and f · (1 - f) for fractions f, which rounding adds that keeps sums and knows
nothing else. Also the squared error of sums along axes, or of ranges on a line. All are pairs on the same draws, with
standard errors over releases. Writes JSON after each case.

    python benchmarks/whole_rounding.py [--releases 10] [--output benchmarks/results/whole_rounding.json]

Data: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from accuracy_sets import SETS, CountSet
from whole_tables import CHOSE, EPSILONS, PROJECT, digits, sums_of

import dphist_pipeline as dph
from dphist_pipeline.estimates import whole_tables
from dphist_pipeline.estimates.whole_tables import Way, WholeTable
from dphist_pipeline.solvers.whole_counts.nested_rounding import round_nested

WAYS = {"by place": Way.OWN_SUMS, "by cells": Way.LED_BY_CELLS}


def released(exact: np.ndarray, epsilon: str) -> dict[str, float]:
    """Squared errors of one release."""
    made, fitted = dph.sanitize(exact, mechanism="dpcube", epsilon=epsilon, sensitivity=1), []

    def kept(table: np.ndarray, *more: Any) -> np.ndarray:
        fitted.append(table.copy())
        return round_nested(table, *more)

    with patch.object(whole_tables, "round_nested", kept):
        counts = {
            name: WholeTable.fit(made.domain, made.values, made.unbiased, way=way).counts for name, way in WAYS.items()
        }
    real, fraction = fitted[0], fitted[0] % 1

    def error(table: np.ndarray) -> float:
        return float(((table - exact) ** 2).mean())

    found = {"estimate": error(made.values), "fit": error(real) - error(made.values)}
    found |= {name: error(of) - error(real) for name, of in counts.items()}
    found |= {"nearest": error(np.rint(real)) - error(real), "f (1 - f)": float((fraction * (1 - fraction)).mean())}
    found |= {f"whole less estimate, {name}": error(of) - error(made.values) for name, of in counts.items()}
    tables = {"estimate": made.values, **counts, "nearest": np.rint(real)}
    return found | {f"sums, {name}": float((sums_of(of - exact) ** 2).mean()) for name, of in tables.items()}


def measured(name: str, exact: np.ndarray, epsilon: str, releases: int) -> dict[str, Any]:
    """One case: of each number its mean and its standard error over releases."""
    lines = [released(exact, epsilon) for _ in range(releases)]
    row: dict[str, Any] = {"set": name, "role": "chose" if name in CHOSE else "held out", "epsilon": epsilon}
    for what in lines[0]:
        values = np.array([line[what] for line in lines])
        row[what] = [digits(values.mean()), digits(values.std(ddof=1) / releases**0.5)]
    return row


def main() -> None:
    """Measures all public sets, prints them, and writes JSON."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--releases", type=int, default=10)
    asked.add_argument("--output", type=Path, default=PROJECT / "benchmarks/results/whole_rounding.json")
    given = asked.parse_args()
    given.output.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for name, found in SETS.items():
        for epsilon in EPSILONS if isinstance(found, CountSet) else ():
            rows.append(measured(name, found.load(), epsilon, given.releases))
            print(json.dumps(rows[-1]), flush=True)
            given.output.write_text(json.dumps({"releases": given.releases, "rows": rows}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
