"""Does what `dphist forecast` tells hold what happens? Told errors beside real ones on public counts.

For every public set, epsilon and mechanism, `forecast` is asked with the true number of records and nothing else of
the set; then the mechanism runs on it. The same mechanisms are asked with an earlier publication in the place of
invented shapes: counts of another period, drawn around those of the set, as each of some mechanisms publishes them.
Kept are all simulated and all real errors, of a cell and of boxes, so that every rule for ranges and for the best three
can be judged by what is kept.

Verdicts are strict. No public set formed a shape, the rule for ranges was chosen on the sets of CHOSEN, and the other
sets judge it; and each set is judged once more by factors that all sets but those with its people choose.

Writes JSON to benchmarks/results/forecasts.json, after each set. Half an hour on an idle core.

    python benchmarks/forecasts.py [--epsilon 1 0.1 …] [--releases 10] [--only NAME …] [--keep] [--again]

`--keep` writes docs/measured/forecasts.json; `--again` measures nothing, and judges what is kept there anew.

Public sets: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_sets import SETS, Counts, CountSet

from dphist_pipeline.domain import Domain
from dphist_pipeline.evaluation.contenders import Contender, choose_contenders
from dphist_pipeline.evaluation.measuring import sanitize_with
from dphist_pipeline.planning import stand_ins
from dphist_pipeline.planning._expected_errors import CELL, Forecaster, Question, questions

PROJECT = Path(__file__).resolve().parent.parent
KEPT = PROJECT / "docs/measured/forecasts.json"
LARGEST = 1_400
SLOW, FEW = ("adaptive", "multiscale", "structure_first"), 3
PUBLISHED_BY = ("geometric", "adaptive")
# The ten sets that were measured while shapes and factors were chosen; the other ones judge.
CHOSEN = (
    *("adult_capital_loss", "brazil_age", "income", "waitakere", "acs_income", "nyc_salaries", "adult_gain_loss"),
    *("taxi_zone_hour", "lc_funded", "brazil_homes"),
)
SAME_PEOPLE = (
    {"adult_capital_loss", "adult_gain_loss", "adult_people"},
    {"brazil_age", "brazil_homes"},
    {"lc_requests", "lc_funded"},
)
Errors = dict[str, list[float]]


def sets(only: list[str]) -> Iterator[tuple[str, Counts]]:
    """Public counts by name; neighbours along the longest axis are joined until there are at most `LARGEST` cells."""
    for name, found in SETS.items():
        if isinstance(found, CountSet) and (not only or name in only):
            counts = found.load()
            while counts.size > LARGEST:
                axis = int(np.argmax(counts.shape))
                counts = np.add.reduceat(counts, np.arange(0, counts.shape[axis], 2), axis=axis)
            yield name, counts


def measured(counts: Counts, epsilon: Fraction, releases: int) -> Iterator[dict[str, Any]]:
    """A row for each mechanism: errors by cells in a box, simulated on each of the shapes and stand-ins, and real."""
    shape, records = counts.shape, int(counts.sum())
    asked = questions(shape)
    shapes = stand_ins.declared_shapes(shape, records)
    plain = Contender("geometric", "geometric")
    contenders, _ = choose_contenders([], Domain.from_shape(shape), 1, [epsilon], first=plain)
    earlier = {name: _published(counts, name, epsilon) for name in PUBLISHED_BY}
    for contender in contenders:
        told = Forecaster(shape, 1, asked, shapes, 1).expected(contender, epsilon)
        row: dict[str, Any] = {"mechanism": contender.written, "by_law": told.by_law}
        if told.by_law:
            yield {**row, "told": _lists(told.errors)}
            continue
        times = min(releases, FEW) if contender.written in SLOW else releases
        real = Forecaster(shape, 1, asked, {"real": counts}, times).expected(contender, epsilon)
        before = Forecaster(shape, 1, asked, earlier, 1).expected(contender, epsilon)
        yield {
            **row,
            "told": _lists(told.errors),
            "told_by_stand_in": _lists(before.errors),
            "real": _lists(real.errors)["real"],
            "releases": times,
        }


def _published(counts: Counts, mechanism: str, epsilon: Fraction) -> Counts:
    """What a mechanism publishes of another period: as `stand_ins.read_publication` reads it."""
    period = np.random.default_rng(int(counts.sum())).poisson(counts).astype(np.int64)
    values = sanitize_with(period, Contender(mechanism, mechanism), epsilon).values
    return np.rint(values.clip(0, 2**40)).astype(np.int64)


def _lists(errors: Mapping[str, Mapping[int | str, float]]) -> Errors:
    return {name: [float(f"{one:.4g}") for one in by_size.values()] for name, by_size in errors.items()}


def even_errors(counts: Counts, asked: list[Question]) -> list[float]:
    """Errors of a table of equal cells with the true total, of a cell and of each question."""
    even = counts.mean()
    gaps = [one.boxes.sums(counts) - one.boxes.cells * even for one in asked]
    return [float(f"{np.sqrt(np.mean(gap**2)):.4g}") for gap in ((counts - even).ravel(), *gaps)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", nargs="+", default=["1", "0.1"])
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--again", action="store_true")
    given = parser.parse_args()
    target = PROJECT / "benchmarks/results/forecasts.json"
    target.parent.mkdir(exist_ok=True)
    found: dict[str, Any] = {"releases": given.releases, "sets": {}, "cases": []}
    start = time.process_time()
    for name, counts in sets(given.only):
        shape = counts.shape
        asked = questions(shape)
        shapes = stand_ins.declared_shapes(shape, int(counts.sum()))
        found["sets"][name] = {
            "shape": list(shape),
            "records": int(counts.sum()),
            "cells": [CELL, *(one.cells for one in asked)],
            "even": {key: even_errors(one, asked) for key, one in {"real": counts, **shapes}.items()},
        }
        for epsilon in given.epsilon:
            rows = measured(counts, Fraction(epsilon), given.releases)
            found["cases"] += [{"set": name, "epsilon": epsilon, **row} for row in rows]
            found["processor_seconds"] = round(time.process_time() - start)
            target.write_text(json.dumps(found) + "\n")
            print(name, epsilon, found["processor_seconds"], flush=True)
    if given.keep:
        KEPT.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
