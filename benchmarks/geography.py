"""Six levels of geography in one family: how accurate is each level, do tables agree, how long does all of it take?

An invented country of states, counties, tracts, groups and blocks, with uneven numbers of children, crossed with ten
ages. Six tables: ages of the country, and of each level. For each table:

- the exact variance of a cell, in the mean, for the shares that `tables` chooses, for equal shares of all six tables,
  and where the blocks alone are measured; in units of (sensitivity / epsilon)²;
- of one release at epsilon 1: the mean squared error of a cell, and how many intervals hold, of cells and of sums over
  drawn sets of places by a range of ages; and how far two tables disagree on a sum that both have.

Then `dphist release` makes the same family from a file of rows, in a process of its own: seconds and memory, beside the
same with 1,000 rows and 100 blocks. Prints tables, and writes JSON.

    python benchmarks/geography.py [--blocks 1e6] [--rows 1e7] [--output benchmarks/results/geography.json]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import yaml
from rich.console import Console
from rich.table import Table
from rows import timed

from dphist_pipeline.base.domain import BinnedAxis, CategoricalAxis, Domain, Family
from dphist_pipeline.confidential.measurements import PrivateCounts
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.mechanisms.tables import Tables, law_of, shares_for

PROJECT = Path(__file__).resolve().parent.parent
LEVELS = ("block", "tract_group", "tract", "county", "state")  # the finest first, as in a spec
NAMES = ("age", "state_age", "county_age", "tract_age", "tract_group_age", "block_age")
AGES, BOXES = 10, 400


def places(blocks: int) -> pl.DataFrame:
    """For each block its code and the codes of what it lies in; numbers of children are uneven."""
    draws = np.random.Generator(np.random.PCG64(20))
    many = [max(2, round(blocks * part)) for part in (51e-6, 3143e-6, 0.085, 0.24)]
    groups: dict[str, np.ndarray] = {}
    above = np.arange(many[0])
    found = [above]
    for coarse, fine in zip(many, [*many[1:], blocks], strict=True):
        children = draws.gamma(1.0, size=coarse) + 0.05
        parent = np.sort(
            np.concatenate([np.arange(coarse), draws.choice(coarse, fine - coarse, p=children / children.sum())])
        )
        found = [one[parent] for one in found]
        found.append(np.arange(fine))
    for level, codes in zip(reversed(LEVELS), found, strict=True):
        groups[level] = np.char.add(level[0] if level != "tract_group" else "g", codes.astype(str))
    return pl.DataFrame({level: groups[level] for level in LEVELS})


def family_of(codes: pl.DataFrame) -> Family:
    """The six tables."""
    columns = {level: codes[level].to_list() for level in LEVELS}
    axes: list[Any] = []
    for number, level in enumerate(LEVELS):
        coarser = codes.unique(level, keep="first", maintain_order=True)
        groups = {name: tuple(coarser[name].to_list()) for name in LEVELS[number + 1 :]}
        axes.append(CategoricalAxis(level, "block", tuple(dict.fromkeys(columns[level])), False, groups))
    axes.append(BinnedAxis("age", "age", tuple(map(float, range(0, 101, 10)))))
    age = len(LEVELS)
    tables = ((age,), *((level, age) for level in reversed(range(age))))
    return Family(Domain(tuple(axes)), (*[0] * age, 1), NAMES, tables, (1.0,) * len(NAMES), 10_000_000)


def exact_counts(of: Family) -> dict[frozenset[int], np.ndarray]:
    """Invented counts of every table, and of every level without ages."""
    draws, (levels,) = np.random.Generator(np.random.PCG64(21)), of.trees
    age, finest = len(LEVELS), levels.axes[-1]
    counts = draws.poisson(draws.gamma(0.4, 25.0 / AGES, (of.domain.shape[finest], AGES))).astype(np.int64)
    found = {frozenset({finest, age}): counts}
    for level, parent in zip(reversed(levels.axes[:-1]), reversed(levels.parents), strict=True):
        up = [np.bincount(parent, counts[:, one], of.domain.shape[level]) for one in range(AGES)]
        counts = np.array(up, dtype=np.int64).T
        found[frozenset({level, age})] = counts
    found |= {axes - {age}: table.sum(axis=1) for axes, table in found.items()}
    return found | {frozenset({age}): counts.sum(axis=0), frozenset(): counts.sum()}


def strategies(of: Family) -> dict[str, dict[frozenset[int], Fraction]]:
    """What is measured, with which shares."""
    chosen, tables = shares_for(of), [frozenset(table) for table in of.tables]
    return {
        "chosen": dict(zip(chosen.marginals, chosen.parts, strict=True)),
        "equal_shares": {table: Fraction(1, len(tables)) for table in tables},
        "blocks_alone": {tables[-1]: Fraction(1)},
    }


def by_level(of: Family) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Variances, errors and coverage of each table; seconds, and the largest disagreement."""
    exact, began = exact_counts(of), time.perf_counter()
    shares = shares_for(of)
    chosen = time.perf_counter() - began
    laws = {
        name: law_of(of, {axes: 2 / float(part) ** 2 for axes, part in measured.items()})
        for name, measured in strategies(of).items()
    }
    began = time.perf_counter()
    made = Tables().release_family(
        of, [_behind_doors(of, axes, exact) for axes in shares.marginals], Budget(Fraction(1))
    )
    drawn = time.perf_counter() - began
    rows = []
    for name, table in zip(of.names, of.tables, strict=True):
        found = made.tables[name]
        cells, boxes = _held(found, exact[frozenset(table)])
        rows.append(
            {
                "table": name,
                "cells": found.cells,
                **{f"variance_{way}": law.variance_of_cell(frozenset(table)) for way, law in laws.items()},
                "squared_error": float(np.square(found.values - exact[frozenset(table)]).mean()),
                "cells_in_interval": cells,
                "boxes_in_interval": boxes,
            }
        )
    facts = {
        "measured": [
            {"marginal": " × ".join(of.domain.axes[axis].name for axis in sorted(axes)), "share": float(part)}
            for axes, part in zip(shares.marginals, shares.parts, strict=True)
        ],
        "seconds_to_choose": chosen,
        "seconds_to_draw_and_fit": drawn,
        "largest_disagreement": _disagreement(of, [made.tables[name].values for name in of.names]),
    }
    return rows, facts


def _behind_doors(of: Family, axes: frozenset[int], exact: dict[frozenset[int], np.ndarray]) -> PrivateCounts:
    return PrivateCounts(of.grid(axes), 1, lambda: np.atleast_1d(exact[axes]).ravel())


def _held(found: Estimate, exact: np.ndarray) -> tuple[float, float]:
    """The part of cells, and of drawn sums, whose interval holds the truth."""
    assert found.unbiased is not None
    draws, one = np.random.Generator(np.random.PCG64(22)), [np.zeros(1, dtype=np.int64)] * exact.ndim
    error = found.values - exact
    cells = float((np.abs(error) <= found.unbiased.half_width_of_box(one)).mean())
    held = 0
    for _ in range(BOXES):
        low, high = np.sort(draws.choice(AGES + 1, 2, replace=False))
        chosen = [np.arange(low, high)]
        if exact.ndim == 2:
            most = min(exact.shape[0], 1000)
            chosen.insert(0, np.sort(draws.choice(exact.shape[0], draws.integers(1, most + 1), replace=False)))
        held += abs(error[np.ix_(*chosen)].sum()) <= found.unbiased.half_width_of_box(chosen)
    return cells, held / BOXES


def _disagreement(of: Family, tables: list[np.ndarray]) -> float:
    """The largest difference of a sum that two neighbouring levels share, relative to the larger of sum and noise."""
    (levels,) = of.trees
    parents = [np.zeros(tables[1].shape[0], dtype=np.int64), *levels.parents]
    found = 0.0
    for coarse, fine, parent in zip([tables[0][None], *tables[1:-1]], tables[1:], parents, strict=True):
        up = np.array([np.bincount(parent, fine[:, age], coarse.shape[0]) for age in range(AGES)]).T
        found = max(found, float((np.abs(up - coarse) / np.maximum(1.0, np.abs(coarse))).max()))
    return found


def released(folder: Path, codes: pl.DataFrame, rows: int) -> dict[str, float]:
    """Seconds and gigabytes of `dphist release`, spec to published files."""
    folder.mkdir()
    (folder / "codes").mkdir()
    codes.write_csv(folder / "codes" / "blocks.csv")
    draws = np.random.Generator(np.random.PCG64(23))
    ages = np.floor(100 * draws.random(rows) * np.sqrt(draws.random(rows)))
    lives = codes["block"].gather(np.floor(codes.height * draws.random(rows) ** 1.5).astype(np.int64))
    pl.DataFrame({"block": lives, "age": ages.astype(np.int64)}).write_parquet(folder / "rows.parquet")
    attributes = {
        **{
            "release": "country",
            "source": str(folder / "rows.parquet"),
            "privacy_unit": "row",
            "neighbours": "add_remove",
        },
        **{"epsilon": 1, "account": "study", "mechanism": "tables"},
        "tables": {"list": [["age"], *([level, "age"] for level in reversed(LEVELS))]},
        "axes": [
            {"column": "block", "values_from": "codes/blocks.csv", "values_column": "block", "levels": [*LEVELS[1:]]},
            {"column": "age", "start": 0, "stop": 100, "width": 10},
        ],
    }
    spec = {"type": "dphist_pipeline.HistogramRelease", "attributes": attributes}
    (folder / "release.yaml").write_text(yaml.safe_dump(spec))
    run, store = ["-m", "dphist_pipeline"], ["--store", str(folder / "store")]
    timed([*run, "init", *store, "--code-lists", str(folder / "codes")], folder, "")
    account = ["--privacy-unit", "row", "--neighbours", "add_remove", "--total", "10"]
    timed([*run, "ledger", "open", "study", *account, "--source", str(folder / "rows.parquet"), *store], folder, "")
    return timed([*run, "release", str(folder / "release.yaml"), *store], folder, "")


def _shown(rows: list[dict[str, Any]], title: str) -> None:
    table = Table(*rows[0], title=title)
    for row in rows:
        table.add_row(*(f"{cell:,.4g}" if isinstance(cell, float) else str(cell) for cell in row.values()))
    Console(width=200).print(table)


def runs(given: argparse.Namespace, codes: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """A small release and the large one."""
    with tempfile.TemporaryDirectory() as base:
        for name, of, rows in (("small", places(100), 1000), ("country", codes, int(given.rows))):
            yield {"release": name, "blocks": of.height, "rows": rows, **released(Path(base) / name, of, rows)}


def main() -> None:
    """Runs everything, prints it, and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=float, default=1e6)
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "results" / "geography.json")
    given = parser.parse_args()
    codes = places(int(given.blocks))
    # First, since a process counts what its parent held when it began.
    whole = list(runs(given, codes))
    _shown(whole, "dphist release, spec to published files")
    rows, facts = by_level(family_of(codes))
    _shown(rows, "by level, variances in units of (sensitivity/epsilon)², one release at epsilon 1")
    print(json.dumps(facts, indent=2))
    given.output.parent.mkdir(exist_ok=True)
    given.output.write_text(json.dumps({"by_level": rows, **facts, "releases": whole}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
