"""How far off are rates within groups of synthetic records, and which of them does `synthesize --report` mark?

All pairs of public records along five to twelve axes, as in `leaning_families`: the whole records of each release, as
`synthesize FAMILY` does. A rate is the share of a category within a group, which is one position of the
other axis of a pair. For groups by their true size: how many rates are outside the published interval of that rate by
more than one record, and of these, how many have a cell whose count is outside its own; how many true rates the
intervals leave out; how many rates are off by more than 10 points, and how many of these are marked: by their group,
whose rates are not known to 10 points, or by themselves. Standard errors are over releases. Writes JSON.

    python benchmarks/synthetic_rates.py [--releases 5] [--output benchmarks/results/synthetic_rates.json]

Data: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from record_sets import SETS, marginals_of
from tables import PROJECT
from whole_families import behind, family_of

from dphist_pipeline.applications._group_rates import GroupRates
from dphist_pipeline.applications.synthetic_report import KNOWN_TO
from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.noisy import NestedCells
from dphist_pipeline.estimates.whole_families import fit_population
from dphist_pipeline.mechanisms.tables import Tables, shares_for

EPSILONS = ("0.1", "1")
SIZES = (1, 30, 100, 300, 1_000, 10**9)
Tally = dict[int, Counter[str]]


def released(codes: Sequence[np.ndarray], epsilon: str) -> Tally:
    """What became of all rates of one release, by the true size of their groups."""
    shape, exact = marginals_of(codes)
    pairs = list(combinations(range(len(shape)), 2))
    family = family_of(shape, 2)
    private_counts = [behind(family, axes, exact) for axes in shares_for(family).marginals]
    made = Tables().release_family(family, private_counts, Budget(Fraction(epsilon))).tables
    population, found = fit_population(made), {size: Counter[str]() for size in SIZES[:-1]}
    for pair, table in zip(pairs, made.values(), strict=True):
        counts, true = (of.astype(np.float64) for of in (population.table(table.domain), exact(pair)))
        assert isinstance(table.unbiased, NestedCells)
        half, told = table.unbiased.half_width_of_cell(), table.unbiased.values
        cells = np.maximum(told - half - counts, counts - np.maximum(told + half, 0.0)) > 1
        for axis in (axis for axis in (0, 1) if true.shape[axis] > 1):
            for size, of in judged(counts, true, table.unbiased, axis, cells):
                found[size].update(of)
    return found


def judged(
    counts: np.ndarray, true: np.ndarray, unbiased: NestedCells, axis: int, cells: np.ndarray
) -> Iterator[tuple[int, Counter[str]]]:
    """Rates of the categories of an axis, by sizes of groups that have records and synthetic ones."""
    drawn, actual = (GroupRates.of(of, unbiased, axis) for of in (counts, true))
    rows, sizes = (np.broadcast_to(of.sum(axis=axis, keepdims=True), of.shape) for of in (counts, true))
    away = np.maximum(drawn.lower - drawn.rates, drawn.rates - drawn.upper)
    outside = away * rows > 1
    left_out = np.maximum(actual.lower - actual.rates, actual.rates - actual.upper) > 1e-9
    off = np.abs(drawn.rates - actual.rates) > 0.1
    unknown = np.broadcast_to(np.expand_dims(drawn.reach(axis) > KNOWN_TO, axis), counts.shape)
    facts = {"rates": np.ones(counts.shape, dtype=bool), "outside": outside, "outside, cell not": outside & ~cells}
    facts |= {"true rates left out": left_out, "in unknown groups": unknown, "off by 10 points": off}
    facts |= {"off, cell marked": off & cells, "off, marked": off & (unknown | outside)}
    for low, high in pairwise(SIZES):
        chosen = (rows > 0) & (sizes >= low) & (sizes < high)
        yield low, Counter({name: int((of & chosen).sum()) for name, of in facts.items()})


def compared(name: str, epsilon: str, releases: int) -> Iterator[dict[str, Any]]:
    """Sums over releases and the standard error of each share of the rates."""
    tallies = [released(SETS[name](), epsilon) for _ in range(releases)]
    for low, high in pairwise(SIZES):
        lines = [tally[low] for tally in tallies]
        if rates := sum(line["rates"] for line in lines):
            row: dict[str, Any] = {"set": name, "epsilon": epsilon, "records": [low, high]}
            row |= {what: sum(line[what] for line in lines) for what in lines[0]}
            shares = np.array([line["outside"] / max(line["rates"], 1) for line in lines])
            row["outside, share"] = round(row["outside"] / rates, 4)
            row["outside, standard error"] = round(float(shares.std(ddof=1) / releases**0.5), 4)
            yield row


def main() -> None:
    """Measures all sets at both epsilons, and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=5)
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "results" / "synthetic_rates.json")
    asked = parser.parse_args()
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for name in SETS:
        for epsilon in EPSILONS:
            for row in compared(name, epsilon, asked.releases):
                rows.append(row)
                print(json.dumps(row), flush=True)
            # Whatever was measured stays, however long the rest takes.
            asked.output.write_text(json.dumps({"releases": asked.releases, "rows": rows}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
