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

from dphist_pipeline.base.domain import Domain
from dphist_pipeline.workbench.evaluation.contenders import Contender, choose_contenders
from dphist_pipeline.workbench.evaluation.measuring import sanitize_with
from dphist_pipeline.workbench.planning import stand_ins
from dphist_pipeline.workbench.planning._expected_errors import (
    CELL,
    LITTLE,
    WIDER,
    WIDER_BY_FEW,
    WIDER_OF_ONE,
    Expected,
    Forecaster,
    QueryKind,
    questions,
)

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
# The least share of real errors that told ranges must hold where factors are chosen, and the factors to choose from.
WANTED, FACTORS = 0.97, (1.0, 1.25, 1.6, 2.0, 2.5, 3.2, 4.0, 5.0)
KINDS = (("cell", False), ("sums", True))
Errors = dict[str, list[float]]
Factors = tuple[float, float]
Case = dict[str, Any]
Runs = dict[tuple[str, str], list[Case]]


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


def even_errors(counts: Counts, asked: list[QueryKind]) -> list[float]:
    """Errors of a table of equal cells with the true total, of a cell and of each question."""
    even = counts.mean()
    gaps = [one.boxes.sums(counts) - one.boxes.cells * even for one in asked]
    return [float(f"{np.sqrt(np.mean(gap**2)):.4g}") for gap in ((counts - even).ravel(), *gaps)]


def ranges(case: dict[str, Any], place: int, source: str, wider: Factors) -> list[tuple[float, float]]:
    """Told ranges of a cell (place 0) or a question: one by all invented shapes, or one by each earlier publication."""
    if case["by_law"]:
        return [(case["told"]["any"][place],) * 2]
    found = case["told"].values() if source == "shapes" else case["told_by_stand_in"].values()
    ends = [[errors[place] for errors in found]] if source == "shapes" else [[errors[place]] for errors in found]
    down = up = wider[place > 0]
    if source != "shapes" and place > 0:
        down, up = WIDER_BY_FEW.get(case["numbers"][place - 1], (down, up))
    return [(min(one) / down, max(one) * up) for one in ends]


def numbers_of(found: dict[str, Any], case: Case) -> list[int]:
    """How many boxes without a common cell each question could have: its sums are so many numbers in a release."""
    facts = found["sets"][case["set"]]
    return [max(1, int(np.prod(facts["shape"]) / cells)) for cells in facts["cells"][1:]]


def held(cases: list[Case], source: str, wider: Factors, sums: bool) -> dict[str, Any]:
    """In how many cases the real error lies in the told range, and below its top; and how wide ranges are."""
    inside = below = of = 0
    widths, above = [], 0.0
    for case in cases:
        for place in range(1, len(case["real"])) if sums else range(1):
            for low, high in ranges(case, place, source, wider):
                real = case["real"][place]
                of, inside, below = of + 1, inside + (low <= real <= high), below + (real <= high)
                above = max(above, real / max(high, 1e-9))
                widths.append(high / max(low, 1e-9))
    return {
        **{"of": of, "held": inside, "share": round(inside / of, 4) if of else None, "below_top": below},
        **{"median_width": round(float(np.median(widths)), 1) if of else None, "worst_above": round(above, 2)},
    }


def least_factors(cases: list[Case], source: str) -> Factors:
    """The least factors of a list with which the ranges hold `WANTED` of the real errors of cells, and of sums."""
    found = []
    for sums in (False, True):
        shares = ((factor, held(cases, source, (factor, factor), sums)["share"]) for factor in FACTORS)
        found.append(next((factor for factor, share in shares if share >= WANTED), FACTORS[-1]))
    return found[0], found[1]


def strangers(cases: list[Case], name: str) -> list[Case]:
    """The cases of other sets, without those of the same people."""
    same = {name}.union(*(group for group in SAME_PEOPLE if name in group))
    return [case for case in cases if case["set"] not in same]


def left_out(cases: list[Case], source: str) -> dict[str, Any]:
    """Each set judged by the least factors that the other sets need."""
    parts: dict[str, list[int]] = {"cell": [0, 0], "sums": [0, 0]}
    for name in dict.fromkeys(case["set"] for case in cases):
        own, others = [case for case in cases if case["set"] == name], strangers(cases, name)
        if not others:
            continue
        wider = least_factors(others, source)
        for kind, sums in (("cell", False), ("sums", True)):
            one = held(own, source, wider, sums)
            parts[kind] = [parts[kind][0] + one["of"], parts[kind][1] + one["held"]]
    return {
        kind: {"of": of, "held": inside, "share": round(inside / max(of, 1), 4)} for kind, (of, inside) in parts.items()
    }


def judged(found: dict[str, Any]) -> dict[str, Any]:
    """Verdicts on ranges, on what is named the best, and on the best three, from what was measured."""
    simulated = [{**case, "numbers": numbers_of(found, case)} for case in found["cases"] if not case["by_law"]]
    judges = [case for case in simulated if case["set"] not in CHOSEN]
    verdicts: dict[str, Any] = {"chosen_on": [*CHOSEN], "wider": [*WIDER], "wider_of_one": [*WIDER_OF_ONE]}
    for source, wider in (("shapes", WIDER), ("stand_in", WIDER_OF_ONE)):
        verdicts[source] = {
            "all": {kind: held(simulated, source, wider, sums) for kind, sums in KINDS},
            "held_out": {kind: held(judges, source, wider, sums) for kind, sums in KINDS},
            "leave_one_out": left_out(simulated, source),
            "least_on_chosen": least_factors([case for case in simulated if case["set"] in CHOSEN], source),
        }
    by_run: dict[tuple[str, str], list[Case]] = {}
    for case in found["cases"]:
        by_run.setdefault((case["set"], case["epsilon"]), []).append(case)
    verdicts["best"] = {kind: best_named(found, by_run, sums) for kind, sums in KINDS}
    verdicts["best_three"] = {
        rule: best_three(found, by_run, rule) for rule in ("now", "middle of ranges", "top of ranges")
    }
    return verdicts


def real_error(case: Case, place: int) -> float:
    """The error in releases of the set, or by the law of the noise where that is exact."""
    return float(case["told"]["any"][place] if case["by_law"] else case["real"][place])


def tenth(found: dict[str, Any], name: str) -> int:
    """The place of the question that a recommendation for sums is for: about a tenth of the cells."""
    facts = found["sets"][name]
    wanted = np.prod(facts["shape"]) / 10
    return int(np.argmin([abs(cells - wanted) for cells in facts["cells"][1:]])) + 1


def best_named(found: dict[str, Any], by_run: Runs, sums: bool) -> dict[str, Any]:
    """How often one mechanism is called the best by the invented shapes, and how often none was nearer by a tenth."""
    named = right = 0
    for (name, _), cases in by_run.items():
        place = tenth(found, name) if sums else 0
        told = [ranges(case, place, "shapes", WIDER)[0] for case in cases]
        best = min(range(len(told)), key=lambda at: told[at][1])
        if all(low > told[best][1] for at, (low, _) in enumerate(told) if at != best):
            named += 1
            right += real_error(cases[best], place) <= 1.1 * min(real_error(case, place) for case in cases)
    return {"of": len(by_run), "named": named, "right": right}


def best_three(found: dict[str, Any], by_run: Runs, rule: str) -> dict[str, Any]:
    """The real errors of the three that a rule puts first, by the least of all; and how many tell next to nothing."""
    nearest: dict[str, list[float]] = {"cell": [], "sums": []}
    nothing = 0
    for (name, epsilon), cases in by_run.items():
        place = tenth(found, name)
        first = sorted(range(len(cases)), key=lambda at: _rank(found, cases, rule, place, epsilon)[at])[:3]
        for kind, at in (("cell", 0), ("sums", place)):
            errors = [real_error(case, at) for case in cases]
            nearest[kind].append(min(errors[one] for one in first) / max(min(errors), 1e-9))
        even = found["sets"][name]["even"]["real"][0]
        nothing += sum(real_error(cases[one], 0) >= LITTLE * even for one in first)
    told = {
        kind: {"mean": round(float(np.exp(np.mean(np.log(one)))), 3), "worst": round(max(one), 2)}
        for kind, one in nearest.items()
    }
    return {**told, "of": 3 * len(by_run), "tell_little": nothing}


def _rank(found: dict[str, Any], cases: list[Case], rule: str, place: int, epsilon: str) -> list[Any]:
    """Numbers that sort the mechanisms of a run; `now` is how `forecast` ranks them."""
    if rule != "now":
        ends = [ranges(case, 0, "shapes", WIDER)[0] for case in cases]
        return [low * high if rule == "middle of ranges" else high for low, high in ends]
    facts = found["sets"][cases[0]["set"]]
    shape, cells = tuple(facts["shape"]), facts["cells"]
    counts = stand_ins.declared_shapes(shape, facts["records"])
    forecaster = Forecaster(shape, 1, questions(shape), counts, 1)
    told = [
        Expected(
            case["mechanism"],
            Fraction(epsilon),
            case["by_law"],
            {name: dict(zip(cells, errors, strict=True)) for name, errors in case["told"].items()},
            *(None, {}, {}),
        )
        for case in cases
    ]
    return forecaster.ranks(told, [CELL, cells[place]], Fraction(epsilon))


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
    if given.again:
        found = json.loads(KEPT.read_text())
        KEPT.write_text(json.dumps({**found, **judged(found)}) + "\n")
        print(json.dumps(judged(found), indent=1))
        return
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
    found |= judged(found)
    for path in [target, *[KEPT] * given.keep]:
        path.write_text(json.dumps(found) + "\n")
    print(json.dumps(judged(found), indent=1))


if __name__ == "__main__":
    main()
