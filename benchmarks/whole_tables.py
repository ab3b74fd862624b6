"""How far from the truth are whole tables, beside the unbiased estimates and beside estimates cut off at 0?

Releases public counts with three mechanisms at two epsilons, makes the whole table of each release, and compares cells,
sums along each axis (on one axis: ranges at random places) and the total with the exact counts. Root mean squared
errors in records, over the releases. Also the seconds for a table of ten million cells. Prints a table, and writes JSON
to benchmarks/results/.

    python benchmarks/whole_tables.py [--releases 5] [--cells 10000000]

Data: $DPHIST_DATA, else ../shared/data beside the checkout, and invented sparse tables; without the data only these.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

import dphist_pipeline as dph
from dphist_pipeline.domain import Domain
from dphist_pipeline.estimates.whole_tables import whole_table

PROJECT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DPHIST_DATA", PROJECT.parent / "shared" / "data"))
LINES = ("hepth_4096", "medcost_4096")
MECHANISMS = ("geometric", "boost", "dpcube", "ahp")
EPSILONS = ("0.1", "1")
RANGES = 2_000


def tables() -> Iterator[tuple[str, np.ndarray]]:
    """Exact counts by name."""
    draws = np.random.Generator(np.random.PCG64(7))
    for shape in ((4096,), (60, 80), (20, 20, 20)):
        exact = np.zeros(shape, dtype=np.int64)
        exact[tuple(draws.integers(0, side, 40) for side in shape)] = draws.integers(1, 400, 40)
        yield f"sparse {' × '.join(map(str, shape))}", exact
    for name in filter(lambda one: (DATA / f"{one}.parquet").is_file(), LINES):
        yield name, np.array(pq.read_table(DATA / f"{name}.parquet")["count"].to_pylist(), dtype=np.int64)
    if (DATA / "gowalla_256x256.parquet").is_file():
        first, second, counts = (
            column.to_numpy() for column in pq.read_table(DATA / "gowalla_256x256.parquet").columns
        )
        exact = np.zeros((256, 256), dtype=np.int64)
        np.add.at(exact, (first, second), counts)
        yield "gowalla 256 × 256", exact
    if (DATA / "adult.parquet").is_file():
        people = pq.read_table(DATA / "adult.parquet", columns=["age", "workclass", "education"])
        codes = [
            np.unique([str(value) for value in column.to_pylist()], return_inverse=True)[1] for column in people.columns
        ]
        exact = np.zeros([int(code.max()) + 1 for code in codes], dtype=np.int64)
        np.add.at(exact, tuple(codes), 1)
        yield "adult age × workclass × education", exact


def errors(exact: np.ndarray, told: np.ndarray) -> dict[str, float]:
    """Squared errors: of cells, of sums along axes or of ranges, and of the total."""
    off = np.asarray(told - exact, dtype=np.float64)
    if off.ndim == 1:
        draws = np.random.Generator(np.random.PCG64(1)).integers(0, off.size + 1, (2, RANGES))
        sums = np.diff(np.concatenate([[0.0], np.cumsum(off)])[draws], axis=0)
    else:
        every = range(off.ndim)
        sums = np.concatenate([off.sum(axis=tuple(other for other in every if other != axis)) for axis in every])
    return {"cells": float((off**2).mean()), "sums": float((sums**2).mean()), "total": float(off.sum() ** 2)}


def measure(exact: np.ndarray, mechanism: str, epsilon: str, releases: int) -> dict[str, Any]:
    """Root mean squared errors of one case."""
    found: dict[str, list[dict[str, float]]] = {"unbiased": [], "cut_at_0": [], "whole": []}
    for _ in range(releases):
        made = dph.sanitize(exact, mechanism=mechanism, epsilon=epsilon, sensitivity=1)
        if made.unbiased is None:
            raise TypeError(f"{mechanism} has no unbiased cells")
        whole = whole_table(made.domain, made.values, made.unbiased, made.sums)
        for name, told in (
            ("unbiased", made.unbiased.values),
            ("cut_at_0", np.maximum(np.round(made.values), 0)),
            ("whole", whole.counts),
        ):
            found[name].append(errors(exact, told))
    return {
        name: {kind: math.sqrt(sum(one[kind] for one in runs) / releases) for kind in runs[0]}
        for name, runs in found.items()
    }


def seconds(cells: int) -> list[dict[str, Any]]:
    """Seconds for whole tables of many cells, by shape."""
    side = round(cells ** (1 / 3))
    found = []
    for shape in ((cells,), (round(math.sqrt(cells)),) * 2, (side,) * 3):
        exact = np.random.Generator(np.random.PCG64(1)).poisson(0.3, shape)
        made = dph.sanitize(exact, mechanism="geometric", epsilon="1/2", sensitivity=1)
        start = time.perf_counter()
        whole_table(Domain.from_shape(shape), made.values, made.unbiased)
        found.append({"shape": list(shape), "seconds": round(time.perf_counter() - start, 2)})
    return found


def main() -> None:
    """Measures, prints and writes JSON."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--releases", type=int, default=5)
    asked.add_argument("--cells", type=int, default=10_000_000)
    given = asked.parse_args()
    shown = Table("table", "epsilon", "mechanism", "error of", "unbiased", "cut at 0", "whole")
    cases = []
    for name, exact in tables():
        for epsilon in EPSILONS:
            for mechanism in MECHANISMS:
                found = measure(exact, mechanism, epsilon, given.releases)
                cases.append({"table": name, "epsilon": epsilon, "mechanism": mechanism, "rmse": found})
                for kind in ("cells", "sums", "total"):
                    numbers = (f"{found[told][kind]:,.3g}" for told in ("unbiased", "cut_at_0", "whole"))
                    shown.add_row(name, epsilon, mechanism, kind, *numbers)
    Console().print(shown)
    facts = {"measure": "root mean squared error in records", "releases": given.releases, "cases": cases}
    facts["large"] = seconds(given.cells)
    Console().print(facts["large"])
    results = PROJECT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    (results / "whole_tables.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
