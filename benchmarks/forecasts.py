"""Does what `dphist forecast` tells hold what happens? Told errors beside real ones on public counts.

For every public set, epsilon and mechanism whose error depends on the counts, `forecast` is asked with the true number
of records and nothing else of the set; then the mechanism runs on the set itself. The table says in how many cases the
real error of a cell, and of boxes, lies in the told range, and how many lie below its top; "before" is without the
two newer shapes and without widening. No public set formed a shape. The factors of widening were chosen while
looking at the sets of CHOSEN; the others judge them.

Writes JSON to benchmarks/results/forecasts.json. An hour on an idle core; `--without` leaves slow mechanisms out.

    python benchmarks/forecasts.py [--epsilon 1 0.1 …] [--releases 10] [--only NAME …] [--without NAME …] [--keep]

`--keep` writes docs/measured/forecasts.json.

Public sets: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from accuracy_sets import SETS, Counts, CountSet

from dphist_pipeline.domain import Domain
from dphist_pipeline.evaluation.contenders import Contender, choose_contenders
from dphist_pipeline.planning import stand_ins
from dphist_pipeline.planning._expected_errors import CELL, Expected, Forecaster, questions
from dphist_pipeline.planning.forecast import enough_repeats

PROJECT = Path(__file__).resolve().parent.parent
KEPT = PROJECT / "docs/measured/forecasts.json"
LARGEST = 70_000
SLOW, FEW = ("adaptive", "multiscale", "structure_first"), 3
NEWER = ("rough steep", "peak")
CHOSEN = ("adult_capital_loss", "lc_funded", "brazil_age", "acs_income", "income")
KINDS = ("held", "below_top", "held_before", "below_top_before")


def sets(only: list[str]) -> Iterator[tuple[str, Counts]]:
    """Public counts by name; those that are no larger than a forecast can simulate in seconds."""
    for name, found in SETS.items():
        if isinstance(found, CountSet) and (not only or name in only):
            counts = found.load()
            if counts.size <= LARGEST:
                yield name, counts


def measured(counts: Counts, epsilon: Fraction, releases: int, without: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row for each mechanism whose error depends on counts: told and real errors, by cells in a box."""
    shape, records = counts.shape, int(counts.sum())
    shapes = stand_ins.declared_shapes(shape, records)
    asked = questions(shape)
    told = Forecaster(shape, 1, asked, shapes, enough_repeats(counts.size))
    contenders, _ = choose_contenders(
        [], Domain.from_shape(shape), 1, [epsilon], first=Contender("geometric", "geometric")
    )
    for contender in contenders:
        if contender.written in without or told.by_law(contender, epsilon):
            continue
        expected = told.expected(contender, epsilon)
        times = min(releases, FEW) if contender.written in SLOW else releases
        happened = Forecaster(shape, 1, asked, {"real": counts}, times).expected(contender, epsilon).errors["real"]
        for cells in (CELL, *(one.cells for one in asked)):
            simulated = {name: errors[cells] for name, errors in expected.errors.items()}
            yield row_of(contender.written, cells, simulated, happened[cells], times)


def row_of(mechanism: str, cells: int | str, simulated: dict[str, float], real: float, times: int) -> dict[str, Any]:
    """Told and real errors of one question: the told range now, and as it was with six shapes, not widened."""
    told = Expected(
        mechanism, Fraction(1), False, {name: {cells: one} for name, one in simulated.items()}, None, {}, {}
    )
    low, high = told.between(cells)
    six = [error for name, error in simulated.items() if name not in NEWER]
    return {
        "mechanism": mechanism,
        "cells": cells,
        "told": [low, high],
        "real": real,
        "releases": times,
        "held": bool(low <= real <= high),
        "below_top": bool(real <= high),
        "held_before": bool(min(six) <= real <= max(six)),
        "below_top_before": bool(real <= max(six)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", nargs="+", default=["3", "1", "0.1"])
    parser.add_argument("--releases", type=int, default=10)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--without", nargs="+", default=[])
    parser.add_argument("--keep", action="store_true")
    given = parser.parse_args()
    rows = []
    for name, counts in sets(given.only):
        for epsilon in given.epsilon:
            for row in measured(counts, Fraction(epsilon), given.releases, given.without):
                rows.append({"set": name, "epsilon": epsilon, **row})
        print(name, summary([row for row in rows if row["set"] == name]), flush=True)
    found = {"releases": given.releases, "left_out": given.without, **summaries(rows), "rows": rows}
    target = KEPT if given.keep else PROJECT / "benchmarks/results/forecasts.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(summaries(rows), indent=1))


def summaries(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The summary of all sets, and of those on which no factor was chosen."""
    return {"summary": summary(rows), "held_out": summary([row for row in rows if row["set"] not in CHOSEN])}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """How many told ranges hold the real error, and how many tops do, of a cell and of boxes; before and now."""
    found: dict[str, Any] = {}
    for kind, chosen in (
        ("cell", [r for r in rows if r["cells"] == CELL]),
        ("boxes", [r for r in rows if r["cells"] != CELL]),
    ):
        kept = {name: sum(row[name] for row in chosen) for name in KINDS}
        wide = sorted(row["told"][1] / max(row["told"][0], 1e-9) for row in chosen)
        worst = max((row["real"] / row["told"][1] for row in chosen if row["told"][1]), default=math.nan)
        found[kind] = {"of": len(chosen), **kept, "median_width": round(wide[len(wide) // 2], 1) if wide else None}
        found[kind]["worst_above"] = round(worst, 2)
    return found


if __name__ == "__main__":
    main()
