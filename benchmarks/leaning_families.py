"""Are whole tables of a family ever worse than the product of its single axes, or than a fit by mbi?

All pairs of public records along five to twelve axes, and all triples of some. From each release of the family, four
answers: `estimate`, `whole` (the population of whole records that is fitted to it), `product` (of its single axes, each
the best that the family tells, made non-negative), and, of pairs of sets whose grid is small enough, `mbi`: another
release at the same ε in equal parts, discrete Laplace noise on each cell, and a fit of all tables by mbi (private-pgm),
mirror descent of 1,000 steps, in an environment of its own that is made on first use. Measured on what is asked, and
on tables of one axis more, which are not: mean squared error of a cell by tables (each table counts alike) and by
cells, and the mean total variation. With the standard errors over releases, and of `whole` less `product`. The sets of
`HELD_OUT` chose nothing; the form of `shrink_towards` and the weight of untold tables were chosen while looking at the
others. Writes JSON, in which rows of families that were not asked stay.

    python benchmarks/leaning_families.py [SET ...] [--together 2 3] [--releases 10]
        [--output benchmarks/results/leaning_families.json]

Data: $DPHIST_DATA, else ../shared/data beside the checkout; R with its package survival.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from functools import reduce
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from record_sets import HELD_OUT, SETS, marginals_of
from tables import PROJECT
from whole_families import Marginal, behind, family_of

from dphist_pipeline.estimates.budget import Budget
from dphist_pipeline.estimates.estimate import Estimate
from dphist_pipeline.estimates.whole_families import fit_population
from dphist_pipeline.mechanisms.tables import Tables, shares_for
from dphist_pipeline.solvers.whole_counts.marginal_fit import on_simplex

MBI = "mbi==2.0.0"
HOME = PROJECT / "benchmarks" / "results" / "peers" / "mbi"
DRAWS = np.random.default_rng()
EPSILONS = ("0.1", "1")
# Sets of which all triples are asked, too: of few axes.
OF_THREE = ("nwtco", "mgus2", "nafld1", "gbsg", "california")
NAMES = {2: "pairs", 3: "triples", 4: "quadruples"}
MOST_UNTOLD = 60
MOST_CELLS_OF_MBI = 1 << 18
Axes = tuple[int, ...]


def errors(get: Marginal, exact: Marginal, asked: Sequence[Axes]) -> dict[str, float]:
    """Errors of some tables: squared, by tables and by cells, and total variation."""
    away = [(get(axes) - exact(axes)) for axes in asked]
    told, rows = [float(np.abs(get(axes)).sum()) for axes in asked], float(exact(asked[0]).sum())
    shares = [
        float(np.abs(get(axes) / max(total, 1.0) - exact(axes) / rows).sum() / 2)
        for axes, total in zip(asked, told, strict=True)
    ]
    return {
        "squared error by tables": float(np.mean([(gap**2).mean() for gap in away])),
        "squared error by cells": float(sum((gap**2).sum() for gap in away) / sum(gap.size for gap in away)),
        "total variation": float(np.mean(shares)),
    }


def product_of(made: dict[str, Estimate], tables: Sequence[Axes]) -> Marginal:
    """The product of single axes, each from the table that knows it best."""
    lines: dict[int, tuple[float, np.ndarray]] = {}
    for axes, table in zip(tables, made.values(), strict=True):
        for place, axis in enumerate(axes):
            other = [np.arange(1 if one == place else size) for one, size in enumerate(table.values.shape)]
            variance = table.unbiased.variance_of_sum(other) if table.unbiased else 1.0
            if axis not in lines or variance < lines[axis][0]:
                over = tuple(one for one in range(len(axes)) if one != place)
                lines[axis] = variance, table.values.sum(axis=over)
    total = max(1.0, float(round(lines[0][1].sum())))
    shares = {axis: on_simplex(line, total) / total for axis, (_, line) in lines.items()}
    return lambda axes: total * reduce(np.multiply.outer, [shares[axis] for axis in axes])


def environment() -> Path:
    """The interpreter that has mbi."""
    python = HOME / "bin" / "python"
    if not (HOME / "ready").exists():
        subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--prefer-binary", MBI], check=True)
        (HOME / "ready").touch()
    return python


def fitted_by_mbi(
    shape: Sequence[int], exact: Sequence[np.ndarray], tables: Sequence[tuple[int, ...]], epsilon: float
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Tables as measured in equal parts of ε, and fitted by mbi.

    Args:
        shape: positions along each axis of the grid.
        exact: counts of each table.
        tables: their axes.
        epsilon: of all tables together.
    """
    decay = np.exp(-epsilon / len(tables))
    noisy = [
        part.ravel() + DRAWS.geometric(1 - decay, part.size) - DRAWS.geometric(1 - decay, part.size) for part in exact
    ]
    given: dict[str, Any] = {"shape": shape, "tables": len(tables), "deviation": (2 * decay) ** 0.5 / (1 - decay)}
    given |= {f"axes_{number}": axes for number, axes in enumerate(tables)}
    given |= {f"noisy_{number}": part.astype(float) for number, part in enumerate(noisy)}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "noisy.npz"), Path(folder, "fitted.npz")
        np.savez(source, **given)
        subprocess.run([environment(), PROJECT / "benchmarks/peers/peer_mbi.py", source, target], check=True)
        held = np.load(target)
        fitted = [held[f"table_{number}"] for number in range(len(tables))]
    shaped = [[one.reshape(part.shape) for one, part in zip(made, exact, strict=True)] for made in (noisy, fitted)]
    return shaped[0], shaped[1]


def answers(codes: Sequence[np.ndarray], together: int, epsilon: str) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Who answers, of what, and with which errors; of one release of all tables of so many axes."""
    shape, exact = marginals_of(codes)
    asked: list[Axes] = list(combinations(range(len(shape)), together))
    untold: list[Axes] = list(combinations(range(len(shape)), together + 1))
    untold = untold[:: max(1, len(untold) // MOST_UNTOLD)]
    family = family_of(shape, together)
    private_counts = [behind(family, axes, exact) for axes in shares_for(family).marginals]
    made = dict(Tables().release_family(family, private_counts, Budget(Fraction(epsilon))).tables)
    told = dict(zip(asked, made.values(), strict=True))
    yield "estimate", NAMES[together], errors(lambda axes: told[axes].values, exact, asked)
    population = fit_population(made)

    def whole(axes: Axes) -> np.ndarray:
        sizes = [shape[axis] for axis in axes]
        cells = np.ravel_multi_index([population.places[:, axis] for axis in axes], sizes)
        return np.bincount(cells, population.rows, minlength=int(np.prod(sizes))).reshape(sizes)

    contenders: dict[str, Callable[[Axes], np.ndarray]] = {"whole": whole, "product": product_of(made, asked)}
    for name, get in contenders.items():
        yield name, NAMES[together], errors(get, exact, asked)
        yield name, f"{NAMES[together + 1]}, not asked", errors(get, exact, untold)
    if together == 2 and float(np.prod([float(size) for size in shape])) <= MOST_CELLS_OF_MBI:
        _, fitted = fitted_by_mbi(shape, [exact(pair) for pair in asked], asked, float(epsilon))
        other = dict(zip(asked, fitted, strict=True))
        yield "mbi", NAMES[together], errors(lambda axes: other[axes], exact, asked)


def compared(name: str, together: int, epsilon: str, releases: int) -> Iterator[dict[str, Any]]:
    """Means and standard errors over releases."""
    codes = (SETS | HELD_OUT)[name]()
    found: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(releases):
        for who, what, measures in answers(codes, together, epsilon):
            for measure, value in measures.items():
                found[what, measure][who].append(value)
    for (what, measure), values in found.items():
        row: dict[str, Any] = {"set": name, "held out": name in HELD_OUT, "rows": len(codes[0]), "axes": len(codes)}
        row |= {"epsilon": epsilon, "family": f"all {NAMES[together]}", "of": what, "measure": measure}
        row["releases"] = releases
        for who, line in values.items():
            row |= {who: float(np.mean(line)), f"{who}, standard error": _standard_error(line)}
        gaps = np.subtract(values["whole"], values["product"])
        row["whole less product, standard error"] = _standard_error(gaps)
        yield row


def _standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else 0.0


def main() -> None:
    """Measures sets at both epsilons, and writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", default=[*HELD_OUT, *SETS])
    parser.add_argument("--together", nargs="+", type=int, default=[2, 3], help="axes of a table")
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--output", type=Path, default=PROJECT / "benchmarks" / "results" / "leaning_families.json")
    asked = parser.parse_args()
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    held = json.loads(asked.output.read_text("utf-8"))["rows"] if asked.output.exists() else []
    facts: dict[str, Any] = {"measured": datetime.now(UTC).date().isoformat(), "mbi": MBI}
    every = [*((name, 2) for name in asked.sets), *((name, 3) for name in OF_THREE if name in asked.sets)]
    for name, together in every:
        if together not in asked.together:
            continue
        for epsilon in EPSILONS:
            made = list(compared(name, together, epsilon, asked.releases))
            held = [row for row in held if any(row[key] != made[0][key] for key in ("set", "epsilon", "family"))] + made
            asked.output.write_text(json.dumps(facts | {"rows": held}, indent=1) + "\n", encoding="utf-8")
            print(name, together, epsilon, flush=True)


if __name__ == "__main__":
    main()
