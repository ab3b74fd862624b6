"""How accurate is each mechanism on public counts, beside the best published mechanism?

Releases every set with every mechanism that serves it, as it is and with its cells shuffled, at several epsilons, so
many times each. Every release is a line of benchmarks/results/accuracy.jsonl, so a stopped run goes on where it was.
At the end, or with `--report`, all lines are condensed to docs/measured/accuracy.json for the page on accuracy, and
docs/pictures/accuracy.svg is drawn; see accuracy_summary.py.

    python benchmarks/accuracy.py [--sets 'income;sf_cabs'] [--runs 20] [--mechanisms adaptive,bayes] [--as-they-are]

Data: $DPHIST_DATA, else ../shared/data beside the checkout; without them it says so and does nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
from accuracy_sets import DATA, MADE, SETS, Counts
from accuracy_summary import Case, kept_lines, write_summary
from numpy.typing import NDArray

import dphist_pipeline as dph
from dphist_pipeline import mechanisms
from dphist_pipeline.base.domain import Domain
from dphist_pipeline.workbench.evaluation.workloads import Boxes, random_boxes

PROJECT = Path(__file__).resolve().parent.parent
LINES = PROJECT / "benchmarks/results/accuracy.jsonl"
EPSILONS = ("1", "1/10", "1/100")
OTHERS = ("tables",)  # families of tables
SHUFFLED_BY = 20_121_123
QUESTIONS = 2_000


def errors(exact: Counts, values: NDArray[np.float64]) -> dict[str, float]:
    """The mean squared error of a cell, a random range (of more axes, a box) and a prefix, by name."""
    wrong = values - exact
    found = {"cells": float((wrong**2).mean())}
    for name, boxes in questions(exact.shape).items():
        found[name] = float((boxes.sums(wrong) ** 2).mean())
    return found


@cache
def questions(shape: tuple[int, ...]) -> dict[str, Boxes]:
    """Random ranges or boxes; and prefixes, i.e. ranges or boxes from the first cell to a random one."""
    high = np.random.Generator(np.random.PCG64(7)).integers(1, np.array(shape) + 1, (QUESTIONS, len(shape)))
    boxes = random_boxes(shape, QUESTIONS)
    return {"ranges" if len(shape) == 1 else "boxes": boxes, "prefixes": Boxes(np.zeros_like(high), high)}


def exact_counts(case: Case) -> Counts:
    """The counts of a case; the same order of cells each time if they are shuffled."""
    counts = SETS[case.counts].load()
    if case.shuffled:
        counts = np.random.default_rng(SHUFFLED_BY).permutation(counts.ravel()).reshape(counts.shape)
    return counts


def measure(case: Case, names: list[str], runs: int, lines: Path, held: dict[tuple[Case, str], int]) -> None:
    """Adds the runs that a case lacks.

    Args:
        lines: the file of all runs.
        held: how many runs there are already, by case and mechanism.
    """
    exact = exact_counts(case)
    for name in names:
        try:
            mechanisms.build(name, {}).check(Domain.from_shape(exact.shape), 1, Fraction(case.epsilon))
        except mechanisms.DomainRefused:
            continue
        with lines.open("a", encoding="utf-8") as file:
            for _ in range(held[case, name], runs):
                start = time.perf_counter()
                values = dph.sanitize(exact, mechanism=name, epsilon=case.epsilon, sensitivity=1).values
                seconds = time.perf_counter() - start
                facts = {"case": case, "mechanism": name, "errors": errors(exact, values), "seconds": round(seconds, 4)}
                file.write(json.dumps({**facts, "records": int(exact.sum()), "cells": exact.size}) + "\n")


def main() -> None:
    """Measures, and writes the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=";".join(SETS), help="names, divided by semicolons")
    parser.add_argument("--epsilons", default=",".join(EPSILONS))
    parser.add_argument("--mechanisms", help="names; all if left out")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--as-they-are", action="store_true", help="leave out shuffled cells")
    parser.add_argument("--report", action="store_true", help="write the summary of what is there, measure nothing")
    parser.add_argument("--lines", type=Path, default=LINES, help="the file of all runs")
    parser.add_argument("--to", type=Path, help="a file for the summary, and beside it the picture, instead of docs/")
    asked = parser.parse_args()
    if not (DATA.is_dir() or set(asked.sets.split(";")) <= set(MADE)):
        print(f"skipped: no data at {DATA}; set DPHIST_DATA to the folder that holds hepth_4096.parquet")
        return
    asked.lines.parent.mkdir(exist_ok=True)
    names = asked.mechanisms.split(",") if asked.mechanisms else [n for n in mechanisms.names() if n not in OTHERS]
    orders = (False,) if asked.as_they_are else (False, True)
    cases = [
        Case(name, mixed, eps)
        for name in asked.sets.split(";")
        for mixed in (orders if name not in MADE else (False,))
        for eps in (asked.epsilons.split(",") if name not in MADE else ("1/10",))
    ]
    held = Counter((Case(*line["case"]), line["mechanism"]) for line in kept_lines(asked.lines))
    for case in () if asked.report else cases:
        print(f"{case.counts}, {'shuffled' if case.shuffled else 'as it is'}, epsilon {case.epsilon}", flush=True)
        measure(case, names, asked.runs, asked.lines, held)
    write_summary(asked.lines, asked.to)


if __name__ == "__main__":
    main()
