"""How accurate is each mechanism on public counts, beside the best published mechanism?

Releases every set with every mechanism that serves it, as it is and with its cells shuffled, at several epsilons, so
many times each. Every release is a line of benchmarks/results/accuracy.jsonl, so a stopped run goes on where it was.
At the end, or with `--report`, all lines are condensed to docs/measured/accuracy.json for the page on accuracy.

    python benchmarks/accuracy.py [--sets income,sf_cabs] [--runs 20] [--mechanisms adaptive,bayes] [--as-they-are]

The best published mechanism is chosen for each run by the other runs, so luck in a run cannot choose it.

Data: $DPHIST_DATA, else ../shared/data beside the checkout; without them it says so and does nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from accuracy_sets import DATA, SETS, Counts
from numpy.typing import NDArray

import dphist_pipeline as dph
from dphist_pipeline import mechanisms
from dphist_pipeline.domain import Domain

PROJECT = Path(__file__).resolve().parent.parent
LINES = PROJECT / "benchmarks/results/accuracy.jsonl"
SUMMARY = PROJECT / "docs/measured/accuracy.json"
EPSILONS = ("1", "1/10", "1/100")
OURS = ("adaptive", "bayes")
FAMILIES = ("tables",)  # one grid is not what they are for
SHUFFLED_BY = 20_121_123
Error = Callable[[Counts, NDArray[np.float64]], float]


def cell_error(exact: Counts, values: NDArray[np.float64]) -> float:
    """Mean squared error of a cell."""
    return float(((values - exact) ** 2).mean())


# A workload's name, and its error on exact counts and released values of any shape.
WORKLOADS: dict[str, Error] = {"cells": cell_error}


class Case(NamedTuple):
    """One set of counts at one epsilon."""

    counts: str
    shuffled: bool
    epsilon: str


class Ratio(NamedTuple):
    """A mean error beside that of the best published mechanism, with the standard error of the ratio."""

    ratio: float
    standard_error: float
    best: str


def exact_counts(case: Case) -> Counts:
    """The counts of a case; the same order of cells each time if they are shuffled."""
    counts = SETS[case.counts].load()
    if case.shuffled:
        counts = np.random.default_rng(SHUFFLED_BY).permutation(counts.ravel()).reshape(counts.shape)
    return counts


def measure(case: Case, names: list[str], runs: int) -> None:
    """Adds the runs that a case lacks."""
    exact = exact_counts(case)
    held = defaultdict(int)
    for line in kept_lines():
        if Case(*line["case"]) == case and set(WORKLOADS) <= set(line["errors"]):
            held[line["mechanism"]] += 1
    for name in names:
        try:
            mechanisms.build(name, {}).check(Domain.from_shape(exact.shape), 1, Fraction(case.epsilon))
        except mechanisms.DomainRefused:
            continue
        with LINES.open("a", encoding="utf-8") as file:
            for _ in range(held[name], runs):
                start = time.perf_counter()
                values = dph.sanitize(exact, mechanism=name, epsilon=case.epsilon, sensitivity=1).values
                seconds = time.perf_counter() - start
                errors = {workload: error(exact, values) for workload, error in WORKLOADS.items()}
                facts = {"case": case, "mechanism": name, "errors": errors, "seconds": round(seconds, 4)}
                file.write(json.dumps({**facts, "records": int(exact.sum()), "cells": exact.size}) + "\n")


def kept_lines() -> Iterator[dict[str, Any]]:
    """All releases so far."""
    if LINES.exists():
        with LINES.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def beside_best(ours: list[float], published: dict[str, list[float]]) -> Ratio:
    """The ratio of mean errors, the best published mechanism being chosen for each run by the others."""
    runs = min(map(len, published.values()))
    table = np.array([errors[:runs] for errors in published.values()])
    others = table.sum(axis=1, keepdims=True) - table
    chosen = others.argmin(axis=0)
    best = table[chosen, np.arange(runs)]
    mean, of_best = float(np.mean(ours)), float(best.mean())
    parts = (np.std(part, ddof=1) / math.sqrt(len(part)) / np.mean(part) for part in (ours, best))
    name = list(published)[int(np.bincount(chosen).argmax())]
    return Ratio(mean / of_best, mean / of_best * math.hypot(*map(float, parts)), name)


def summary() -> dict[str, Any]:
    """What all releases say, by workload and case."""
    errors: dict[tuple[Case, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    facts: dict[Case, dict[str, Any]] = {}
    seconds: dict[tuple[Case, str], list[float]] = defaultdict(list)
    for line in kept_lines():
        case = Case(*line["case"])
        facts[case] = {"records": line["records"], "cells": line["cells"]}
        seconds[case, line["mechanism"]].append(line["seconds"])
        for workload, error in line["errors"].items():
            errors[case, workload][line["mechanism"]].append(error)
    rows = []
    for (case, workload), found in sorted(errors.items()):
        published = {name: runs for name, runs in found.items() if name not in OURS and len(runs) > 1}
        if not published or any(len(found[name]) < 2 for name in OURS):
            continue
        ratios = {name: beside_best(found[name], published) for name in OURS}
        rows.append(
            {
                **{f"{name} / best": _both(ratios[name]) for name in OURS},
                "best published": ratios[OURS[0]].best,
                "set": case.counts + (" (tuned on)" if SETS[case.counts].tuned else ""),
                "order": "shuffled" if case.shuffled else "as it is",
                "epsilon": case.epsilon,
                "N·epsilon": float(facts[case]["records"] * Fraction(case.epsilon)),
                "cells": facts[case]["cells"],
                "workload": workload,
                "runs": min(len(found[name]) for name in OURS),
                **{f"error of {name}": float(np.mean(found[name])) for name in (*OURS, ratios[OURS[0]].best)[:2]},
                "error of the best": float(np.mean(found[ratios[OURS[0]].best])),
                "seconds of adaptive": float(np.median(seconds[case, "adaptive"])),
            }
        )
    return {"rows": rows, **_verdicts(rows)}


def _both(ratio: Ratio) -> dict[str, float]:
    return {"mean": round(ratio.ratio, 4), "standard_error": round(ratio.standard_error, 4)}


def _verdicts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians and failures of `adaptive` on cells, over sets that it was tuned on and others."""
    found = {}
    for name, tuned in (("tuned", True), ("other", False)):
        some = [row for row in rows if row["workload"] == "cells" and row["set"].endswith("(tuned on)") == tuned]
        if not some:
            continue
        ratios = [row["adaptive / best"]["mean"] for row in some]
        large = [row for row in some if row["N·epsilon"] >= 1000]
        above = [
            row for row in large if row["adaptive / best"]["mean"] - 2 * row["adaptive / best"]["standard_error"] > 1.05
        ]
        small = [row["adaptive / best"]["mean"] for row in some if row["N·epsilon"] < 1000]
        found[f"{name}_sets"] = {
            "cases": len(some),
            "median ratio": float(np.median(ratios)),
            "largest ratio where N·epsilon is at least 1,000": max(
                (row["adaptive / best"]["mean"] for row in large), default=0.0
            ),
            "surely above 1.05 there": len(above),
            "largest ratio where it is less": max(small, default=0.0),
        }
    return found


def main() -> None:
    """Measures, and writes the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SETS), help="names, divided by commas")
    parser.add_argument("--epsilons", default=",".join(EPSILONS))
    parser.add_argument("--mechanisms", help="names; all if left out")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--as-they-are", action="store_true", help="leave out shuffled cells")
    parser.add_argument("--report", action="store_true", help="write the summary of what is there, measure nothing")
    asked = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: no data at {DATA}; set DPHIST_DATA to the folder that holds hepth_4096.parquet")
        return
    LINES.parent.mkdir(exist_ok=True)
    names = asked.mechanisms.split(",") if asked.mechanisms else [n for n in mechanisms.names() if n not in FAMILIES]
    orders = (False,) if asked.as_they_are else (False, True)
    cases = [
        Case(name, mixed, eps)
        for name in asked.sets.split(",")
        for mixed in orders
        for eps in asked.epsilons.split(",")
    ]
    for case in [] if asked.report else cases:
        print(f"{case.counts}, {'shuffled' if case.shuffled else 'as it is'}, epsilon {case.epsilon}", flush=True)
        measure(case, names, asked.runs)
    made = summary()
    SUMMARY.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    for name, facts in made.items():
        if isinstance(facts, dict):
            print(name, facts)
    print(f"{len(made['rows'])} rows in {SUMMARY.relative_to(PROJECT)}")


if __name__ == "__main__":
    main()
