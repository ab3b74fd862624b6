"""Are whole counts of every level as near as its estimates, and is their mean error 0 for large and for small regions?

Families of one axis at three levels, on public counts: lines of 4,096 cells in groups of 16 and of 256, grids of
64 x 64 in squares, blocks of a census, departments, and zones and ages crossed with another axis. For each level: mean
squared errors of `estimate` and `whole` with the standard error of their difference, over releases, and mean errors by
the size of the true count, in standard deviations of an estimate. A row says whether the set chose a constant. Prints
a table, and writes JSON, in which rows of sets that were not asked stay.

    python benchmarks/whole_levels.py [SET ...] [--releases 10] [--output benchmarks/results/whole_levels.json]

Data: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from tables import DATA, EPSILONS, PROJECT
from whole_families import _shown, behind

from dphist_pipeline.base.domain import Axis, BinnedAxis, CategoricalAxis, Domain, Family
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.whole_families import fit_population
from dphist_pipeline.mechanisms.tables import Tables, shares_for

Codes = list[np.ndarray]
CHOSE = ("hepth_4096", "income_4096", "adult_capital_loss_4096", "taxi_zones", "departments", "departments_by_pay")
LOOKED_AT = ("gowalla", "lc_req_all_4096", "waitakere", "brazil_ages")  # before the last constant was chosen
SIZES = {"0": 0, "below 1": 1, "1 to 3": 3, "3 to 10": 10, "above 10": np.inf}


def in_groups(counts: np.ndarray, *widths: int) -> tuple[Codes, np.ndarray]:
    """Neighbours together."""
    return [np.arange(len(counts)) // width for width in (1, *widths)], counts


def line(name: str) -> tuple[Codes, np.ndarray]:
    """A line of 4,096 cells, or the blocks of Waitakere."""
    counts = pl.read_parquet(DATA / f"{name}.parquet")["count"].to_numpy().astype(np.int64)
    return in_groups(counts, 16, 256) if len(counts) == 4096 else in_groups(counts, 10, 100)


def grid(name: str) -> tuple[Codes, np.ndarray]:
    """Squares of 4 x 4 cells, in squares of 4 x 4, twice."""
    across, down, held = (column.to_numpy() // 4 ** (place < 2) for place, column in enumerate(cells_of(name)))
    quads = [(across // side % 4 * 4 + down // side % 4) * side * side for side in (16, 4, 1)]
    counts = np.zeros(4096, dtype=np.int64)
    np.add.at(counts, sum(quads), held)
    return in_groups(counts, 16, 256)


def cells_of(name: str) -> list[pl.Series]:
    """Two positions and a count."""
    return pl.read_parquet(DATA / f"{name}.parquet").get_columns()


def nested(rows: pl.DataFrame, levels: Sequence[pl.Expr], crossed: pl.Expr | None = None) -> tuple[Codes, np.ndarray]:
    """Counts of records in levels, the coarsest first, and by a column of whole numbers."""
    names = [f"level{place}" for place in range(len(levels))]
    keys = rows.select(level.alias(name) for level, name in zip(levels, names, strict=True))
    places = keys.unique().sort(names).with_row_index("code")
    codes = [
        np.unique(
            np.array(["|".join(map(str, row)) for row in places.select(names[:many]).rows()]), return_inverse=True
        )
        for many in range(len(names), 0, -1)
    ]
    found = keys.join(places, on=names, how="left", maintain_order="left")["code"].to_numpy().astype(np.int64)
    order = np.argsort(codes[0][1])
    by = np.zeros(len(rows), dtype=np.int64) if crossed is None else rows.select(crossed).to_series().to_numpy()
    counts = np.zeros((places.height, int(by.max()) + 1), dtype=np.int64)
    np.add.at(counts, (codes[0][1][found], by), 1)
    return [of[order] for _, of in codes], counts if crossed is not None else counts[:, 0]


def departments(pay: bool) -> tuple[Codes, np.ndarray]:
    """Employees of Baltimore by letter, agency and department."""
    rows = pl.read_parquet(DATA / "salaries_baltimore_fy2017.parquet")
    code = pl.col("dept_id")
    step = (pl.col("annual_salary") // 20_000).clip(0, 7).cast(pl.Int64)
    return nested(rows, [code.str.slice(0, 1), code.str.slice(0, 3), code], step if pay else None)


def zones(hours: bool = True) -> tuple[Codes, np.ndarray]:
    """Rides of taxis in New York by fifties, tens and zones, and by four hours of the day."""
    rows, zone = pl.read_parquet(DATA / "nyc_taxi_march_2019_sample.parquet"), pl.col("pulocationid")
    hour = (pl.col("tpep_pickup_datetime").dt.hour() // 4).cast(pl.Int64)
    return nested(rows, [zone // 50, zone // 10, zone], hour if hours else None)


def ages() -> tuple[Codes, np.ndarray]:
    """Ages of Brazil by twenty, five and one years, and adults in the household."""
    cube = pl.read_parquet(DATA / "brazil_age_sex_urban_adults_children.parquet")
    counts = np.zeros((101, 20), dtype=np.int64)
    np.add.at(counts, (cube["age"].to_numpy(), cube["adults"].to_numpy()), cube["count"].to_numpy())
    return in_groups(counts, 5, 20)


SETS: dict[str, Callable[[], tuple[Codes, np.ndarray]]] = {
    **{name: lambda name=name: line(name) for name in CHOSE[:3]},  # type: ignore[misc]
    "taxi_zones": zones,
    "departments": lambda: departments(False),
    "departments_by_pay": lambda: departments(True),
    "gowalla": lambda: grid("gowalla_256x256"),
    "lc_req_all_4096": lambda: line("lc_req_all_4096"),
    "waitakere": lambda: line("waitakere_meshblock_2006_1340"),
    "brazil_ages": ages,
    "medcost_4096": lambda: line("medcost_4096"),
    "mdsalary_fa_4096": lambda: line("mdsalary_fa_4096"),
    "adult_gain_loss": lambda: grid("adult_gain_loss_256x256"),
    "lc_funded_income": lambda: grid("lc_funded_income_256x256"),
    "sf_cabs_start": lambda: grid("sf_cabs_start_256x256"),
}


def family_of(codes: Codes, crossed: int) -> Family:
    """A table for each level, the coarsest first, each by the crossed axis."""
    names, axes = [f"level{place}" for place in range(len(codes))], list[Axis]()
    for place, of in enumerate(codes):
        first = np.unique(of, return_index=True)[1]
        above = {names[up]: tuple(f"{up}_{codes[up][one]}" for one in first) for up in range(place + 1, len(codes))}
        values = tuple(f"{place}_{one}" for one in of[first])
        axes.append(CategoricalAxis(names[place], "place", values, False, above))
    many = len(axes)
    if crossed:
        axes.append(BinnedAxis("by", "by", tuple(map(float, range(crossed + 1)))))
    tables = tuple((place, many) if crossed else (place,) for place in reversed(range(many)))
    columns = (*[0] * many, *[1] * bool(crossed))
    return Family(Domain(tuple(axes)), columns, tuple(reversed(names)), tables, (1.0,) * many, 10_000_000)


def counts_of(codes: Codes, counts: np.ndarray) -> Callable[[tuple[int, ...]], np.ndarray]:
    """Exact marginals."""

    def exact(axes: Sequence[int]) -> np.ndarray:
        found = counts.reshape(len(counts), -1)
        levels = [axis for axis in sorted(axes) if axis < len(codes)]
        if levels:
            of, rows = codes[levels[0]], found
            found = np.zeros((int(of.max()) + 1, rows.shape[1]), dtype=np.int64)
            np.add.at(found, of, rows)
        else:
            found = found.sum(axis=0, keepdims=True)
        found = found if len(codes) in axes else found.sum(axis=1, keepdims=True)
        return found.reshape(
            [size for size, kept in zip(found.shape, (levels, len(codes) in axes), strict=True) if kept]
        )

    return exact


def by_size(exact: np.ndarray, estimate: np.ndarray, whole: np.ndarray) -> dict[str, Any]:
    """Mean errors of cells by their true counts, and the standard error of that of the estimates."""
    deviation, low, found = float(estimate.std()), -1.0, {}
    for name, most in SIZES.items():
        high = max(most * deviation, 0.5)
        chosen = (exact > low) & (exact <= high)
        low = high
        if chosen.any():
            means = [errors[:, chosen].mean(axis=1) for errors in (estimate, whole)]
            spread = [float(one.std(ddof=1) / len(one) ** 0.5) for one in means]
            facts = {"cells": int(chosen.sum()), "estimate": float(means[0].mean()), "estimate_error": spread[0]}
            found[name] = {**facts, "whole": float(means[1].mean()), "whole_error": spread[1]}
    return found


def measured(name: str, epsilon: str, releases: int) -> Iterator[dict[str, Any]]:
    """The levels of one set."""
    codes, counts = SETS[name]()
    of, exact = family_of(codes, counts.shape[1] if counts.ndim == 2 else 0), counts_of(codes, counts)
    errors: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {table: [] for table in of.names}
    for _ in range(releases):
        private_counts = [behind(of, axes, exact) for axes in shares_for(of).marginals]
        made = Tables().release_family(of, private_counts, Budget(Fraction(epsilon))).tables
        population = fit_population(made)
        for table, axes in zip(of.names, of.tables, strict=True):
            truth, whole = exact(axes).ravel(), population.table(made[table].domain).ravel()
            errors[table].append((made[table].values.ravel() - truth, whole - truth))
    role = "chose" if name in CHOSE else "looked at" if name in LOOKED_AT else "held out"
    for table, axes in zip(of.names, of.tables, strict=True):
        estimate, whole = (np.array(part) for part in zip(*errors[table], strict=True))
        squares = [(part**2).mean(axis=1) for part in (estimate, whole)]
        apart = squares[1] - squares[0]
        yield {
            "set": name,
            "role": role,
            "epsilon": epsilon,
            "level": table,
            "cells": estimate.shape[1],
            "releases": releases,
            "estimate": float(squares[0].mean()),
            "whole": float(squares[1].mean()),
            "difference": float(apart.mean()),
            "error_of_difference": float(apart.std(ddof=1) / releases**0.5),
            "by_size": by_size(exact(axes).ravel(), estimate, whole),
        }


def main() -> None:
    """Measures, prints and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", default=[*SETS])
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "results" / "whole_levels.json")
    asked = parser.parse_args()
    if not DATA.is_dir():
        parser.error("there is no data at $DPHIST_DATA or ../shared/data")
    asked.output.parent.mkdir(exist_ok=True)
    found = json.loads(asked.output.read_text("utf-8"))["levels"] if asked.output.exists() else []
    for name in asked.sets:
        for epsilon in EPSILONS:
            made = list(measured(name, epsilon, asked.releases))
            found = [row for row in found if (row["set"], row["epsilon"]) != (name, epsilon)] + made
            # Whatever was measured stays, however long the rest takes.
            asked.output.write_text(json.dumps({"levels": found}, indent=1) + "\n", "utf-8")
    rows = [
        {
            **{key: row[key] for key in row if key != "by_size"},
            **{size: one["whole"] for size, one in row["by_size"].items()},
        }
        for row in found
    ]
    _shown(rows, "mean squared errors by level; mean errors of whole counts by true count in deviations of an estimate")


if __name__ == "__main__":
    main()
