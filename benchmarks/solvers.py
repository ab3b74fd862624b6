"""How long do the solvers take beside `numpy.sort` of the same cells?

Runs every solver that should grow almost in step with its cells, compiled beforehand, in one process with
`numpy.sort(cells, axis=None)` in float64, the two in turns, and compares the best of several runs of each. All work in
one thread and are timed by the processor, which is the clock's time where nothing else runs. Cells are skewed, flat and
structured counts with discrete Laplace noise at ε = 1 and 0.1, drawn from NumPy's seeded generator: invented data,
whose seed may be known. Solvers of sorted values get the sorted cells; where a method has a price, both prices are run.
Above 15 sorts at the largest size, or growth above 13 for ten times the cells, is marked; a tree and a Haar transform
have as many leaves, rounded up to a power of two for the latter. Growth is that of times with emptied caches, as a
release finds them: run again and again, 10^5 cells stay in the processor's caches and 10^6 do not, which alone makes
copying them grow by more than 13. The growth of repeated runs stands beside it.

`numpy.sort` differs widely between processors: where its AVX-512 sort is slow (Zen 4), sorts by AVX2 take a tenth, and
    NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL" python benchmarks/solvers.py
compares with those. What was switched off stands in the JSON.

Then the sizes on which the papers measured, in milliseconds beside the papers' seconds, and with --large kd_boxes on
10^7 cells, each cube in a process of its own, whose peak memory is shown. Prints tables, and writes JSON to
benchmarks/results/.

    python benchmarks/solvers.py [--repeats 5] [--large] [--quick]
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import platform
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Column, Table

from dphist_pipeline.estimates.noisy import contrast_sizes
from dphist_pipeline.solvers.boxes.kd_boxes import kd_boxes
from dphist_pipeline.solvers.boxes.pruned_boxes import pruned_boxes
from dphist_pipeline.solvers.groups.closest_neighbours import closest_neighbours
from dphist_pipeline.solvers.groups.optimal_groups import optimal_groups
from dphist_pipeline.solvers.groups.relative_groups import relative_groups
from dphist_pipeline.solvers.groups.segmentation import v_optimal
from dphist_pipeline.solvers.groups.sorted_groups import greedy_groups
from dphist_pipeline.solvers.groups.value_groups import groups_by_value
from dphist_pipeline.solvers.trees.haar import inverse_haar
from dphist_pipeline.solvers.trees.regular_tree import branching_tree
from dphist_pipeline.solvers.trees.tree_consistency import consistent, consistent_cells

PROJECT = Path(__file__).resolve().parent.parent
SORTS, LARGE_SORTS, GROWTH = 15, 60, 13
CACHES = 2**27  # bytes that drive everything else out of them
EPSILONS = (1.0, 0.1)
ORDER_SHARE = 0.85  # of AHP and DPHR; the rest pays for the groups' sums
MAX_DEPTH = 40


@dataclass(frozen=True)
class Run:
    """One solver on one input: what is called, and which price it was given."""

    solver: str
    price: str
    call: Callable[[], object]


def noise(generator: np.random.Generator, epsilon: float, size: int) -> np.ndarray:
    """Discrete Laplace draws for a sensitivity of 1."""
    tail = 1 - math.exp(-epsilon)
    return (generator.geometric(tail, size) - generator.geometric(tail, size)).astype(float)


def variance(epsilon: float) -> float:
    """Of such a draw."""
    return 1 / (2 * math.sinh(epsilon / 2) ** 2)


def counts(kind: str, shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Exact counts: the same everywhere; a heavy tail; or 200 boxes laid over each other."""
    if kind == "flat":
        return np.full(shape, 50.0)
    if kind == "skewed":
        return np.floor(3 * generator.pareto(1.1, shape))
    cells = np.zeros(shape)
    for _ in range(200):
        ends = [sorted(generator.integers(0, side + 1, 2)) for side in shape]
        cells[tuple(slice(low, high) for low, high in ends)] += generator.integers(0, 50)
    return cells


def noisy(kind: str, shape: tuple[int, ...], epsilon: float) -> np.ndarray:
    """Counts and noise, drawn anew from the same seed."""
    generator = np.random.default_rng(7)
    return counts(kind, shape, generator) + noise(generator, epsilon, math.prod(shape)).reshape(shape)


def binary_tree(leaves: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Sums of every node over a line of leaves from the top, and each node's parent in the level above."""
    levels, parents = [leaves], []
    while levels[0].size > 1:
        parent = np.arange(levels[0].size) // 2
        parents.insert(0, parent)
        levels.insert(0, np.bincount(parent, weights=levels[0]))
    return levels, parents


def cube(cells: np.ndarray, axes: int) -> np.ndarray:
    """As many of the cells as a cube of that many axes holds."""
    side = round(cells.size ** (1 / axes))
    while side**axes > cells.size:
        side -= 1
    return cells[: side**axes].reshape((side,) * axes)


def of_cells(cells: np.ndarray, epsilon: float) -> Iterator[Run]:
    """Solvers of cells in their own order."""
    own, m = variance(epsilon), cells.size
    for name, price in (("2σ²", 2 * own), ("2σ²·ln m", 2 * own * max(1.0, math.log(m)))):
        yield Run("v_optimal", name, lambda price=price: v_optimal(cells, price))
    yield Run("closest_neighbours", "", lambda: closest_neighbours(cells, own))
    yield Run("groups_by_value", "", lambda: groups_by_value(cells, _one_group))
    levels, parents = binary_tree(cells)
    yield Run("consistent", "", lambda: consistent(levels, parents))
    tree, alike = branching_tree((m,), 2), [1.0] * len(levels)
    yield Run("consistent_cells", "", lambda: consistent_cells(tree, levels, alike))
    for axes in (1, 2):
        side = round(m ** (1 / axes))
        wavelet = np.resize(cells, [1 + sum(contrast_sizes(side))] * axes)
        yield Run(
            f"inverse Haar, {axes}-D",
            "",
            lambda axes=axes, side=side, wavelet=wavelet: inverse_haar(wavelet, [side] * axes),
        )
    for axes in (1, 2, 3):
        box = cube(cells, axes)
        yield Run(f"kd_boxes, {axes}-D", "", lambda box=box: kd_boxes(box, own, own, math.nan, MAX_DEPTH))
        yield Run(f"pruned_boxes, {axes}-D", "", lambda box=box: pruned_boxes(box, own, own, MAX_DEPTH))


def of_sorted_cells(cells: np.ndarray, epsilon: float) -> Iterator[Run]:
    """Solvers of sorted cells, at the prices of two shares: what is left after ordering, and half."""
    line = np.sort(cells)
    for name, share in (("0.15·ε", 1 - ORDER_SHARE), ("0.5·ε", 0.5)):
        scale = 1 / (share * epsilon)
        price = 2 * scale**2
        yield Run("optimal_groups", name, lambda price=price: optimal_groups(line, price))
        yield Run("greedy_groups", name, lambda price=price: greedy_groups(line, price))
        yield Run("relative_groups", name, lambda scale=scale: relative_groups(line, scale))


def runs_on(cells: np.ndarray, epsilon: float) -> list[Run]:
    """Every solver on one input."""
    return [*of_cells(cells, epsilon), *of_sorted_cells(cells, epsilon)]


def _one_group(line: np.ndarray) -> np.ndarray:
    return np.zeros(line.size, dtype=np.int64)


def seconds(call: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    before = time.process_time()
    call()
    return time.process_time() - before


def in_turns(first: Callable[[], object], second: Callable[[], object], repeats: int) -> tuple[float, float]:
    """The best seconds of each; quick calls are repeated more often, up to a fifth of a second in all."""
    best, done, spent = (math.inf, math.inf), 0, 0.0
    while done < repeats or (spent < 0.2 and done < 10 * repeats):
        now = seconds(first), seconds(second)
        best = (min(best[0], now[0]), min(best[1], now[1]))
        done, spent = done + 1, spent + sum(now)
    return best


def from_memory(call: Callable[[], object], emptying: np.ndarray, repeats: int) -> float:
    """The best seconds of a call that finds nothing in the caches."""
    best = math.inf
    for _ in range(repeats):
        emptying += 1.0
        best = min(best, seconds(call))
    return best


def measure(kind: str, epsilon: float, sizes: tuple[int, ...], repeats: int) -> list[dict[str, Any]]:
    """Every solver on one kind of cells, at every size; the sort and the solvers take turns."""
    results: list[dict[str, Any]] = []
    emptying = np.zeros(CACHES // 8)
    for size in sizes:
        cells = noisy(kind, (size,), epsilon)
        for run in runs_on(cells, epsilon):
            sort, own = in_turns(lambda cells=cells: np.sort(cells, axis=None), run.call, repeats)
            cold = from_memory(run.call, emptying, repeats)
            result = {"solver": run.solver, "price": run.price, "cells": size, "counts": kind, "epsilon": epsilon}
            results.append({**result, "seconds": own, "sort_seconds": sort, "sorts": own / sort, "cold_seconds": cold})
    return results


def compile_all() -> None:
    """Runs everything once, on few cells."""
    for run in runs_on(noisy("structured", (64,), 1.0), 1.0):
        run.call()


PAPERS = (
    # Paper, its data set, cells, its method and seconds, our solver. Of the two without seconds, neither gives any.
    ("CNFG, table 2, ε = 0.1", "PINCP", 15_551, "CNFG", 0.35566, "closest_neighbours"),
    ("CNFG, table 2, ε = 0.1", "GRNTP", 5_413, "CNFG", 0.10148, "closest_neighbours"),
    ("CNFG, table 2, ε = 0.1", "GASP", 648, "NoiseFirst", 1.02154, "v_optimal"),
    ("CNFG, table 2: not in an acceptable time", "PINCP", 15_551, "NoiseFirst", None, "v_optimal"),
    ("DPHR gives no times", "Waitakere", 7_725, "DPHR", None, "optimal_groups"),
    ("DPHR gives no times", "Social_Network", 11_342, "DPHR", None, "optimal_groups"),
    ("SReB_GCA gives no times", "Waitakere", 7_725, "SReB_GCA", None, "relative_groups"),
    ("SReB_GCA gives no times", "Social Network", 11_342, "SReB_GCA", None, "relative_groups"),
)


def measure_papers(repeats: int) -> list[dict[str, Any]]:
    """Skewed cells as many as the papers had: the slowest price of the solver that does a paper's work."""
    results = []
    for source, data, size, method, paper, solver in PAPERS:
        cells = noisy("skewed", (size,), 0.1)
        calls = [run.call for run in runs_on(cells, 0.1) if run.solver == solver]
        slowest = max(min(seconds(call) for _ in range(repeats)) for call in calls)
        result = {"paper": source, "data": data, "cells": size, "method": method, "paper_seconds": paper}
        results.append({**result, "solver": solver, "milliseconds": 1000 * slowest})
    return results


def _large(cells: int, axes: int, kind: str, epsilon: float) -> dict[str, Any]:
    side = round(cells ** (1 / axes))
    box, own = noisy(kind, (side,) * axes, epsilon), variance(epsilon)
    kd_boxes(np.arange(8.0).reshape(2, 2, 2), own, own, math.nan, MAX_DEPTH)
    whole = partial(kd_boxes, box, own, own, math.nan, MAX_DEPTH)
    sort, solver = in_turns(lambda: np.sort(box, axis=None), whole, 3)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    result = {"shape": [side] * axes, "counts": kind, "epsilon": epsilon, "seconds": solver}
    return {**result, "sort_seconds": sort, "sorts": solver / sort, "peak_gigabytes": gigabytes}


def measure_large(cells: int, console: Console) -> list[dict[str, Any]]:
    """kd_boxes on large cubes, each in a process of its own; its peak memory counts making and sorting the cells."""
    cases = [(cells, axes, kind, epsilon) for axes in (1, 2, 3) for kind in KINDS for epsilon in EPSILONS]
    results = []
    for case in track(cases, "kd_boxes, large", console=console):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            results.append(pool.submit(_large, *case).result())
    return results


TIMES = ("milliseconds", "sort_milliseconds", "growth", "warm_growth")
KINDS = ("skewed", "flat", "structured")


def verdict(within: bool | None) -> str:
    """The word in the last column; none for few cells, where a call costs more than its work."""
    return "–" if within is None else "within" if within else "[bold red]above[/]"


def summary(results: list[dict[str, Any]], judged: bool) -> list[dict[str, Any]]:
    """Per solver, price, counts and ε: sorts at every size, and growth from the first size to the last."""
    rows: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for result in results:
        key = tuple(result[name] for name in ("solver", "price", "counts", "epsilon"))
        rows.setdefault(key, []).append(result)
    return [
        {
            **dict(zip(("solver", "price", "counts", "epsilon"), key, strict=True)),
            "sorts": [result["sorts"] for result in row],
            "milliseconds": 1000 * row[-1]["seconds"],
            "sort_milliseconds": 1000 * row[-1]["sort_seconds"],
            "growth": row[-1]["cold_seconds"] / row[0]["cold_seconds"],
            "warm_growth": row[-1]["seconds"] / row[0]["seconds"],
            "within": (row[-1]["sorts"] <= SORTS and row[-1]["cold_seconds"] / row[0]["cold_seconds"] <= GROWTH)
            if judged
            else None,
        }
        for key, row in sorted(rows.items())
    ]


def show(report: dict[str, Any], console: Console) -> None:
    """The tables."""
    sizes = [f"sorts, {size:,}" for size in report["sizes"]]
    last = ("ms", "sort ms", "growth", "when warm", f"{SORTS} sorts, {GROWTH}×")
    names = (Column(name, no_wrap=True) for name in ("solver", "price", "counts", "ε"))
    table = Table(*names, *sizes, *last)
    for row in report["solvers"]:
        sorts = [f"{value:.1f}" for value in row["sorts"]]
        times = [f"{row[name]:.1f}" for name in TIMES]
        of = (row["solver"], row["price"], row["counts"], f"{row['epsilon']:g}")
        table.add_row(*of, *sorts, *times, verdict(row["within"]))
    console.print(table)
    table = Table("paper", "data", "cells", "method", "paper's seconds", "solver", "ms")
    for row in report["papers"]:
        paper = "–" if row["paper_seconds"] is None else f"{row['paper_seconds']:.3f}"
        table.add_row(
            row["paper"],
            row["data"],
            f"{row['cells']:,}",
            row["method"],
            paper,
            row["solver"],
            f"{row['milliseconds']:.2f}",
        )
    console.print(table)
    if not report["large"]:
        return
    table = Table("kd_boxes", "counts", "ε", "sorts", "seconds", "peak GB", f"{LARGE_SORTS} sorts, 2 GB")
    for row in report["large"]:
        within = row["sorts"] <= LARGE_SORTS and row["peak_gigabytes"] <= 2
        shape = " × ".join(str(side) for side in row["shape"])
        numbers = [f"{row['sorts']:.1f}", f"{row['seconds']:.2f}", f"{row['peak_gigabytes']:.2f}"]
        table.add_row(shape, row["counts"], f"{row['epsilon']:g}", *numbers, verdict(within))
    console.print(table)


def main() -> None:
    """Measures every solver and shows the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each, of which the best counts")
    parser.add_argument("--large", action="store_true", help="kd_boxes on 10^7 cells too: some minutes")
    parser.add_argument("--quick", action="store_true", help="few cells and two runs of each: seconds, no verdict")
    parser.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "solvers.json")
    arguments = parser.parse_args()
    sizes, repeats = ((300, 3_000), 2) if arguments.quick else ((100_000, 1_000_000), arguments.repeats)
    console = Console(stderr=True)
    compile_all()
    cases = [(kind, epsilon) for kind in KINDS for epsilon in EPSILONS]
    results = [
        result
        for kind, epsilon in track(cases, "solvers", console=console)
        for result in measure(kind, epsilon, sizes, repeats)
    ]
    report = {
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
        },
        "versions": {"numpy": np.__version__, "numba": numba.__version__},
        "switched_off": os.environ.get("NPY_DISABLE_CPU_FEATURES", ""),
        "sizes": sizes,
        "repeats": repeats,
        "solvers": summary(results, judged=not arguments.quick),
        "papers": measure_papers(repeats),
        "large": measure_large(10_000 if arguments.quick else 10_000_000, console) if arguments.large else [],
    }
    arguments.to.parent.mkdir(exist_ok=True)
    arguments.to.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    show(report, Console(width=150))
    print(f"JSON: {arguments.to}")


if __name__ == "__main__":
    main()
