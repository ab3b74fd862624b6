"""How far off are whole tables of a family, beside the estimates that they are fitted to, and how long does a fit take?

On public counts: all pairs, and all one-, two- and three-way tables, of brazil (age × sex × urban × adults × children)
and of adult (age, education, marital status, race, sex, hours), and families in which one table has all axes. Mean
squared error of a cell by the number of axes of a table, of `estimate` and of `whole`, over releases, with its standard
error. On invented records of many axes: the same at 10^5 and 10^8 rows, with seconds of CPU. Prints tables, and writes
JSON.

    python benchmarks/whole_families.py [--releases 10] [--output benchmarks/results/whole_families.json]

Data: $DPHIST_DATA, else ../shared/data beside the checkout; without it only the invented records.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from tables import DATA, EPSILONS, PROJECT, adult, brazil, summed

from dphist_pipeline.base.domain import Domain, Family
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.whole_families import fit_population
from dphist_pipeline.mechanisms.tables import Tables, shares_for

WHO = ("estimate", "whole")
Marginal = Callable[[tuple[int, ...]], np.ndarray]


def family_of(shape: tuple[int, ...], *together: int) -> Family:
    """All tables of so many axes, for each of some numbers."""
    tables = tuple(table for many in together for table in combinations(range(len(shape)), many))
    names = tuple("_".join(map(str, table)) for table in tables)
    return Family(Domain.from_shape(shape), tuple(range(len(shape))), names, tables, (1.0,) * len(tables), 10_000_000)


def compared(family: Family, exact: Marginal, epsilon: str, releases: int) -> dict[str, Any]:
    """Mean squared errors of a cell by number of axes, and the seconds of a fit."""
    errors: dict[int, list[tuple[float, float]]] = defaultdict(list)
    seconds, records = 0.0, 0
    for _ in range(releases):
        private_counts = [behind(family, axes, exact) for axes in shares_for(family).marginals]
        made = Tables().release_family(family, private_counts, Budget(Fraction(epsilon))).tables
        began = time.process_time()
        population = fit_population(made)
        seconds += time.process_time() - began
        records = max(records, len(population.rows))
        for name, axes in zip(family.names, family.tables, strict=True):
            truth, table = exact(axes), made[name]
            whole = population.table(table.domain)
            errors[len(axes)].append((((table.values - truth) ** 2).mean(), ((whole - truth) ** 2).mean()))
    # A release has a row: the mean error of each of WHO, shape (releases, 2).
    of = {f"{many}-way": np.reshape(pairs, (releases, -1, 2)).mean(axis=1) for many, pairs in sorted(errors.items())}
    spread = {name: np.std(means, axis=0, ddof=1) / releases**0.5 for name, means in of.items() if releases > 1}
    return {
        "tables": len(family.tables),
        "epsilon": epsilon,
        **{f"{who}, {name}": float(of[name].mean(axis=0)[place]) for place, who in enumerate(WHO) for name in of},
        **{f"{who}, {name}, error": float(spread[name][place]) for place, who in enumerate(WHO) for name in spread},
        "distinct_records": records,
        "cpu_seconds_of_a_fit": seconds / releases,
    }


def behind(family: Family, axes: frozenset[int], exact: Marginal) -> PrivateCounts:
    """A marginal behind its measurements."""
    counts = exact(tuple(sorted(axes))).ravel()
    return PrivateCounts(family.grid(axes), 1, lambda: counts)


def public(releases: int) -> Iterator[dict[str, Any]]:
    """The public sets."""
    for name, read in {"brazil": brazil, "adult": adult}.items():
        counts = read()
        for together in ((2,), (3,), (1, 2, 3), (1, 2, counts.ndim)):
            for epsilon in EPSILONS:
                family = family_of(counts.shape, *together)
                found = compared(family, lambda axes, counts=counts: summed(counts, axes), epsilon, releases)
                yield {"set": name, "axes_together": " ".join(map(str, together)), **found}


def invented(axes: int, size: int, rows: int) -> Marginal:
    """Marginals of invented records with a few kinds of people."""
    draws = np.random.Generator(np.random.PCG64(5))
    many = min(rows, 10**6)
    kinds = draws.integers(0, 5, many)
    shares = [draws.dirichlet(np.full(size, 0.3), 5).cumsum(axis=1) for _ in range(axes)]
    codes = [np.minimum((draws.random(many)[:, None] > along[kinds]).sum(axis=1), size - 1) for along in shares]

    def exact(chosen: tuple[int, ...]) -> np.ndarray:
        cells = np.zeros(many, dtype=np.int64)
        for axis in chosen:
            cells = cells * size + codes[axis]
        found = np.bincount(cells, minlength=size ** len(chosen)) * (rows // many)
        return found.reshape([size] * len(chosen))

    return exact


def many_axes() -> Iterator[dict[str, Any]]:
    """All pairs of many axes of ten values, one release each."""
    for axes, rows in ((10, 10**5), (10, 10**8), (20, 10**5), (20, 10**8)):
        family = family_of((10,) * axes, 2)
        yield {"axes": axes, "rows": rows, **compared(family, invented(axes, 10, rows), "1", 1)}


def _shown(rows: list[dict[str, Any]], title: str) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row)) or ["nothing"]
    table = Table(*columns, title=title)
    for row in rows:
        cells = (row.get(name, "") for name in columns)
        table.add_row(*(f"{cell:,.3g}" if isinstance(cell, float) else str(cell) for cell in cells))
    Console(width=240).print(table)


def main() -> None:
    """Runs everything, prints it, and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "results" / "whole_families.json")
    asked = parser.parse_args()
    asked.output.parent.mkdir(exist_ok=True)
    found: dict[str, Any] = {"releases": asked.releases, "public_sets": [], "pairs_of_many_axes": []}
    if not DATA.is_dir():
        print("public sets: not measured, there is no data at $DPHIST_DATA or ../shared/data")
    measured = {"public_sets": public(asked.releases) if DATA.is_dir() else [], "pairs_of_many_axes": many_axes()}
    for name, rows in measured.items():
        for row in rows:
            found[name].append(row)
            # Whatever was measured stays, however long the rest takes.
            asked.output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
            print(json.dumps(row), flush=True)
    _shown(found["public_sets"], "mean squared error of a cell")
    _shown(found["pairs_of_many_axes"], "all pairs of many axes of ten values, one release each")


if __name__ == "__main__":
    main()
