"""Does what `dphist forecast` tells hold what happens? Told errors beside real ones on public counts.

For every public set, epsilon and mechanism whose error depends on the counts, `forecast` is asked with the true number
of records and nothing else of the set; then the mechanism runs on the set itself. The table says in how many cases the
real error of a cell, and of boxes, lies in the told range, and how far above the others lie. No public set formed the
shapes that forecasts simulate. `--smooth` leaves the rough shapes out, to see what they are for.

Writes JSON to benchmarks/results/forecasts.json. Some ten minutes on two cores.

    python benchmarks/forecasts.py [--epsilon 1 0.1 …] [--releases 10] [--only NAME …] [--smooth] [--keep]

`--keep` writes docs/measured/forecasts.json, which the documentation shows.

Public sets: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from accuracy_sets import SETS, Counts, CountSet

from dphist_pipeline.domain import Domain
from dphist_pipeline.evaluation.contenders import Contender, choose_contenders
from dphist_pipeline.planning import stand_ins
from dphist_pipeline.planning._expected_errors import CELL, Forecaster, questions
from dphist_pipeline.planning.forecast import enough_repeats

PROJECT = Path(__file__).resolve().parent.parent
KEPT = PROJECT / "docs/measured/forecasts.json"
LARGEST = 70_000


def sets(only: list[str]) -> Iterator[tuple[str, Counts]]:
    """Public counts by name; those that are no larger than a forecast can simulate in seconds."""
    for name, found in SETS.items():
        if isinstance(found, CountSet) and (not only or name in only):
            counts = found.load()
            if counts.size <= LARGEST:
                yield name, counts


def measured(counts: Counts, epsilon: Fraction, releases: int, smooth: bool) -> Iterator[dict[str, Any]]:
    """A row for each mechanism whose error depends on counts: told and real errors, by cells in a box."""
    shape, records = counts.shape, int(counts.sum())
    shapes = stand_ins.declared_shapes(shape, records)
    if smooth:
        shapes = {name: made for name, made in shapes.items() if not name.startswith(stand_ins.ROUGH)}
    asked = questions(shape)
    told = Forecaster(shape, 1, asked, shapes, enough_repeats(counts.size))
    real = Forecaster(shape, 1, asked, {"real": counts}, releases)
    contenders, _ = choose_contenders(
        [], Domain.from_shape(shape), 1, [epsilon], first=Contender("geometric", "geometric")
    )
    for contender in contenders:
        expected = told.expected(contender, epsilon)
        if expected.by_law:
            continue
        happened = real.expected(contender, epsilon).errors["real"]
        for cells in (CELL, *(one.cells for one in asked)):
            low, high = expected.between(cells)
            yield {
                "mechanism": contender.written,
                "cells": cells,
                "told": [low, high],
                "real": happened[cells],
                "held": bool(happened[cells] <= high),
                "above": happened[cells] / high,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", nargs="+", default=["1", "0.1", "0.01"])
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--smooth", action="store_true")
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    rows = []
    for name, counts in sets(given.only):
        for epsilon in given.epsilon:
            for row in measured(counts, Fraction(epsilon), given.releases, given.smooth):
                rows.append({"set": name, "epsilon": epsilon, **row})
        print(name, summary([row for row in rows if row["set"] == name]), flush=True)
    found = {"releases": given.releases, "smooth": given.smooth, "summary": summary(rows), "rows": rows}
    target = KEPT if given.keep else PROJECT / "benchmarks/results/forecasts.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found["summary"], indent=1))


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """In how many cases the told range's upper end holds, of a cell and of boxes, and the worst ratio above it."""
    found: dict[str, Any] = {}
    for kind, chosen in (
        ("cell", [r for r in rows if r["cells"] == CELL]),
        ("boxes", [r for r in rows if r["cells"] != CELL]),
    ):
        held = sum(row["held"] for row in chosen)
        worst = max((row["above"] for row in chosen), default=math.nan)
        found[kind] = {"held": held, "of": len(chosen), "worst": round(worst, 2)}
    return found


if __name__ == "__main__":
    main()
