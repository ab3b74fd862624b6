"""What the releases of `accuracy.py` come to: ratios of errors by case, goals that are met or not, and a picture."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import vl_convert
from accuracy_sets import MADE, SETS
from chart_style import CONFIG

PROJECT = Path(__file__).resolve().parent.parent
SUMMARY = PROJECT / "docs/measured/accuracy.json"
PICTURE = PROJECT / "docs/pictures/accuracy.svg"
OURS = ("adaptive", "bayes")
MUCH, GOOD, LOST, ALMOST = 1000, 0.85, 1.3, 1.05  # the goals
LEAST_SHOWN, MOST_SHOWN = 0.1, 30.0
Row = dict[str, Any]


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


class Runs(NamedTuple):
    """All releases of a case.

    Attributes:
        records, cells: of the set.
        errors: by workload and mechanism, one for each run.
    """

    records: int
    cells: int
    errors: dict[str, dict[str, list[float]]]


def kept_lines(file: Path) -> Iterator[Row]:
    """All releases so far."""
    if file.exists():
        with file.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


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


def all_runs(file: Path) -> dict[Case, Runs]:
    """The releases, by case."""
    found: dict[Case, Runs] = {}
    for line in kept_lines(file):
        case = Case(*line["case"])
        runs = found.setdefault(case, Runs(line["records"], line["cells"], defaultdict(lambda: defaultdict(list))))
        for workload, error in line["errors"].items():
            runs.errors[workload][line["mechanism"]].append(error)
    return found


def rows_of(runs: dict[Case, Runs]) -> Iterator[Row]:
    """A row for each case and workload: ratios to the best published mechanism."""
    for case, (records, cells, errors) in runs.items():
        for workload, found in errors.items():
            published = {name: each for name, each in found.items() if name not in OURS and len(each) > 1}
            if not published or len(found["adaptive"]) < 2:
                continue
            ratios = {name: beside_best(each, published) for name, each in found.items() if len(each) > 1}
            yield {
                "set": case.counts,
                "tuned": SETS[case.counts].tuned,
                "order": "shuffled" if case.shuffled else "as it is",
                "epsilon": case.epsilon,
                "N·epsilon": float(records * Fraction(case.epsilon)),
                "cells": cells,
                "workload": workload,
                "runs": len(found["adaptive"]),
                "best published": ratios[OURS[0]].best,
                "error of the best": _short(float(np.mean(found[OURS[0]])) / ratios[OURS[0]].ratio),
                "standard error": _short(ratios[OURS[0]].standard_error),
                "ratios": {name: _short(ratio.ratio) for name, ratio in sorted(ratios.items())},
            }


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def group_of(row: Row) -> str:
    """Which sets a case counts with."""
    kind = "invented" if row["invented"] else "public, one axis" if row["axes"] == 1 else "public, more axes"
    return f"{kind}, {'tuned on' if row['tuned'] else 'others'}"


def goals(rows: Iterable[Row]) -> Iterator[Row]:
    """How `adaptive` does on cells, by group of sets."""
    groups = defaultdict(list)
    for row in rows:
        if row["workload"] == "cells":
            groups[group_of(row)].append((row["ratios"]["adaptive"], row["standard error"], row["N·epsilon"]))
    for name, found in sorted(groups.items(), reverse=True):
        large = [(ratio, error) for ratio, error, size in found if size >= MUCH]
        small = [ratio for ratio, _, size in found if size < MUCH]
        yield {
            "sets": name,
            "cases": len(found),
            "median": float(np.median([ratio for ratio, *_ in found])),
            "N·ε ≥ 1,000: cases": len(large),
            "largest": max((ratio for ratio, _ in large), default=0.0),
            "surely above 1.05": sum(ratio - 2 * error > ALMOST for ratio, error in large),
            "less: cases": len(small),
            "geometric mean": float(np.exp(np.mean(np.log(small)))) if small else 0.0,
            "mean": float(np.mean(small)) if small else 0.0,
            "largest of these": max(small, default=0.0),
            "above 1.3": sum(ratio > LOST for ratio in small),
        }


def picture(rows: list[Row]) -> alt.Chart:
    """Errors of a cell by that of the best published mechanism: a dot for each mechanism, set and epsilon."""
    shown = [row for row in rows if row["workload"] == "cells" and not row["invented"]]
    dots = [
        {
            "set": row["set"].replace("_", " ") + (" *" if row["tuned"] else ""),
            "ratio": min(MOST_SHOWN, max(LEAST_SHOWN, ratio)),
            "epsilon": f"ε = {float(Fraction(row['epsilon'])):g}",
            "who": name if name == "adaptive" else "others",
            "order": row["order"],
        }
        for row in shown
        for name, ratio in row["ratios"].items()
    ]
    scale = alt.Scale(type="log", domain=[LEAST_SHOWN, MOST_SHOWN], nice=False)
    axis = alt.Axis(values=[0.1, 0.3, 1, 3, 10, 30], format="~g")
    base = alt.Chart().encode(
        x=alt.X("ratio:Q", title="ratio", scale=scale, axis=axis),
        y=alt.Y("set:N", title=None, sort=None),
    )
    others = base.transform_filter("datum.who == 'others'").mark_tick(color="#b0b0b0", thickness=1, height=9)
    ours = base.transform_filter("datum.who == 'adaptive'").mark_point(filled=True, size=46, opacity=0.9)
    coloured = ours.encode(
        color=alt.Color("order:N", title="adaptive", sort=["as it is", "shuffled"]),
        shape=alt.Shape("order:N", sort=["as it is", "shuffled"], legend=None),
    )
    even = alt.Chart().mark_rule(color="#555555", strokeDash=[3, 3]).encode(x=alt.datum(1))
    layers = alt.layer(others, even, coloured, data=alt.Data(values=dots)).properties(width=210, height=alt.Step(22))
    facets = layers.facet(column=alt.Column("epsilon:N", title=None, sort=["ε = 1", "ε = 0.1", "ε = 0.01"]))
    return facets.properties(
        title="Errors of cells by that of the best published mechanism: adaptive, and all others as grey ticks"
    )


def write_summary(file: Path, to: Path | None) -> None:
    """Writes the summary of all releases, and the picture.

    Args:
        file: of the releases, a line each.
        to: the summary, with the picture beside it; None for the files of the docs.
    """
    runs = all_runs(file)
    axes = {name: SETS[name].load().ndim for name in {case.counts for case in runs}}
    rows = [{**row, "axes": axes[row["set"]], "invented": row["set"] in MADE} for row in rows_of(runs)]
    order = {name: place for place, name in enumerate(SETS)}
    rows.sort(key=lambda row: (order[row["set"]], row["order"], -float(Fraction(row["epsilon"])), row["workload"]))
    reached = list(goals(rows))
    lines = ",\n".join(f"  {json.dumps(row, ensure_ascii=False)}" for row in rows)
    head = json.dumps(reached, ensure_ascii=False, indent=1)
    summary, drawn = (to, to.with_suffix(".svg")) if to else (SUMMARY, PICTURE)
    summary.write_text(f'{{\n "goals": {head},\n "rows": [\n{lines}\n ]\n}}\n', encoding="utf-8")
    svg = vl_convert.vegalite_to_svg(json.loads(picture(rows).configure(**CONFIG).to_json()), allowed_base_urls=[])
    drawn.write_text(svg + "\n", encoding="utf-8")
    for row in reached:
        print(row)
    print(f"{len(rows)} rows in {summary}; {drawn}")
