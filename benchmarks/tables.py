"""How noisy are families of tables, beside marginals of one released grid, and how long does choosing take?

On public counts: all one-, two- and three-way tables of brazil (age × sex × urban × adults × children) and of adult
(age, education, marital status, race, sex, hours), each family on its own, at two epsilons. Mean squared error of a
cell, over tables and releases, of `tables`, and of the same marginals summed from one grid that `geometric`, `boost` or
`dpcube` released. On declared sizes alone: all pairs of ten, twenty and fifty axes, all triples of thirty: variance by
the law of the noise, how many marginals are measured, how far above the lower bound, seconds and memory. Prints tables,
and writes JSON to benchmarks/results/.

    python benchmarks/tables.py [--releases 5] [--output benchmarks/results/tables.json]

Data: $DPHIST_DATA, else ../shared/data beside the checkout; without it only the declared sizes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

import dphist_pipeline as dph
from dphist_pipeline.base.domain import Domain, Family
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.mechanisms.tables import Tables, shares_for

PROJECT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DPHIST_DATA", PROJECT.parent / "shared" / "data"))
GRIDS = ("geometric", "boost", "dpcube")
EPSILONS = ("0.1", "1")


def brazil() -> np.ndarray:
    """Age × sex × urban × adults × children."""
    cube = pl.read_parquet(DATA / "brazil_age_sex_urban_adults_children.parquet")
    names = ["age", "sex", "urban", "adults", "children"]
    counts = np.zeros([int(cube[name].max() or 0) + 1 for name in names], dtype=np.int64)
    np.add.at(counts, tuple(cube[name].to_numpy() for name in names), cube["count"].to_numpy())
    return counts


def adult() -> np.ndarray:
    """Age in 15 bins × education × marital status × race × sex × hours in 10 bins."""
    rows = pl.read_parquet(DATA / "adult.parquet")
    codes = [(rows["age"].to_numpy() - 15) // 5, rows["hours_per_week"].to_numpy() // 10]
    codes += [
        rows[name].fill_null("?").cast(pl.Categorical).to_physical().to_numpy()
        for name in ("education", "marital_status", "race", "sex")
    ]
    counts = np.zeros([int(code.max()) + 1 for code in codes], dtype=np.int64)
    np.add.at(counts, tuple(codes), 1)
    return counts


def family_of(shape: tuple[int, ...], together: int) -> Family:
    """All tables of so many axes."""
    tables = tuple(combinations(range(len(shape)), together))
    names = tuple("_".join(map(str, table)) for table in tables)
    return Family(Domain.from_shape(shape), tuple(range(len(shape))), names, tables, (1.0,) * len(tables), 10_000_000)


def summed(counts: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """A marginal of a grid."""
    return counts.sum(axis=tuple(axis for axis in range(counts.ndim) if axis not in axes))


def released(family: Family, exact: np.ndarray, epsilon: str) -> list[np.ndarray]:
    """The tables of one release of the family."""

    def counts_of(axes: frozenset[int]) -> PrivateCounts:
        marginal = summed(exact, tuple(sorted(axes))).ravel()
        return PrivateCounts(family.grid(axes), 1, lambda: marginal)

    measured = [counts_of(axes) for axes in shares_for(family).marginals]
    made = Tables().release_family(family, measured, Budget(Fraction(epsilon)))
    return [table.values for table in made.tables.values()]


def errors(exact: np.ndarray, releases: int) -> Iterator[dict[str, Any]]:
    """Mean squared errors of a cell by number of axes, epsilon and mechanism."""
    for epsilon in EPSILONS:
        grids = {
            name: [dph.sanitize(exact, mechanism=name, epsilon=epsilon, sensitivity=1).values for _ in range(releases)]
            for name in GRIDS
        }
        for together in (1, 2, 3):
            family = family_of(exact.shape, together)
            truth = [summed(exact, table) for table in family.tables]
            own = [released(family, exact, epsilon) for _ in range(releases)]
            row = {"axes_together": together, "epsilon": epsilon, "tables": _mean(own, truth)}
            row |= {
                name: _mean([[summed(grid, table) for table in family.tables] for grid in made], truth)
                for name, made in grids.items()
            }
            best = min(row[name] for name in GRIDS)
            shares = shares_for(family)
            law = shares.mean_variance / float(epsilon) ** 2
            yield {**row, "by_law": law, "best_of_today_over_tables": best / row["tables"]}


def public(releases: int) -> Iterator[dict[str, Any]]:
    """The public sets."""
    if not DATA.is_dir():
        print("public sets: not measured, there is no data at $DPHIST_DATA or ../shared/data")
        return
    for name, read in {"brazil": brazil, "adult": adult}.items():
        for row in errors(read(), releases):
            yield {"set": name, **row}


def _mean(releases: list[list[np.ndarray]], truth: list[np.ndarray]) -> float:
    return float(
        np.mean(
            [[((table - exact) ** 2).mean() for table, exact in zip(made, truth, strict=True)] for made in releases]
        )
    )


def strategies() -> Iterator[dict[str, Any]]:
    """All pairs, or triples, of many axes: what is measured, and how long it takes to choose."""
    draws = np.random.Generator(np.random.PCG64(3))
    for axes, together in ((10, 2), (20, 2), (50, 2), (30, 3)):
        shapes = {"2": (2,) * axes, "10": (10,) * axes, "2 to 20": tuple(draws.integers(2, 21, axes).tolist())}
        for sizes, shape in shapes.items():
            family, began = family_of(shape, together), time.process_time()
            found = shares_for(family)
            seconds = time.process_time() - began
            cells = math.prod(shape)
            # Every table summed from one grid with noise in each cell, as by `geometric`.
            grid = float(np.mean([2.0 * cells / math.prod(shape[a] for a in table) for table in family.tables]))
            yield {
                "axes": axes,
                "together": together,
                "sizes": sizes,
                "tables": len(family.tables),
                "measured": len(found.marginals),
                "variance": found.mean_variance,
                "equal_shares_of_the_tables": 2.0 * len(family.tables) ** 2,
                "one_noisy_grid": grid,
                "over_lower_bound": found.mean_variance / (found.bound or math.nan),
                "cpu_seconds": seconds,
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }


def _shown(rows: list[dict[str, Any]], title: str) -> None:
    table = Table(*(rows[0] if rows else ["nothing"]), title=title)
    for row in rows:
        table.add_row(*(f"{cell:,.3g}" if isinstance(cell, float) else str(cell) for cell in row.values()))
    Console(width=200).print(table)


def main() -> None:
    """Runs everything, prints it, and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=5)
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "results" / "tables.json")
    asked = parser.parse_args()
    asked.output.parent.mkdir(exist_ok=True)
    # The strategies first: of the grids of the public sets memory stays in use.
    names = ("tables_of_many_axes", "mean_squared_error_of_a_cell")
    found: dict[str, Any] = {"releases": asked.releases, **{name: [] for name in names}}
    for name, rows in zip(names, (strategies(), public(asked.releases)), strict=True):
        for row in rows:
            found[name].append(row)
            # Whatever was measured stays, however long the rest takes.
            asked.output.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
            print(json.dumps(row), flush=True)
    _shown(found[names[1]], "mean squared error of a cell")
    _shown(found[names[0]], "all pairs or triples of axes, variance in units of (sensitivity/epsilon)²")


if __name__ == "__main__":
    main()
