"""A public folder with every kind of noise, and questions to its pages, made from the axes that the pages offer."""

from __future__ import annotations

import json
import random
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import reported
from answering_scenario import AXES, PERIODS, published_once
from by_hand import AGE, WARD
from derived_files import made_anew
from families_by_hand import publish_family
from test_best_tables import FAMILIES
from test_group_sums import AGE as AGES
from test_group_sums import ALONE, BESIDE, released

WEEKS = ("2026-03-02", "2026-03-09", "2026-03-23")
HOSTILE: dict[str, Any] = {
    "column": "kind",
    "values": ["it's", "two words", "null", "a;b", "5", "x, y", "all", "{n}", "é"],
    "labels": ["It's", "", "A & B", "", "five", "«q»", "", "", ""],
    "other": True,
}
Question = tuple[str, list[tuple[str, list[Any]]], str, str]


def days_of(period: str, days: int = 7) -> dict[str, str]:
    """The first day of a period, and the day after its last, as audits have them."""
    after = np.datetime64(period) + days
    return {"period_start": f"{period}T00:00:00+01:00", "period_end": f"{after}T00:00:00+01:00"}


def every_kind(folder: Path) -> Path:
    """Noisy cells, trees, weighted sums, groups alone and beside cells, reports, families with levels, odd names.

    One family has public figures, of the second week over two axes.
    """
    public = folder / "public"
    shutil.copytree(published_once().catalogue.parent / "weekly", public / "weekly")
    for mechanism in (*ALONE, *BESIDE):
        by_hand.publish(public, released(mechanism), [AGES], mechanism, "all")
    for name, axes in (("reports", [reported.AGE]), ("days", [reported.DAY])):
        for number, week in enumerate(WEEKS[:2]):
            encoding = reported.ENCODINGS[number]
            reported.publish(public, reported.estimate(axes, encoding, reports=2500 + number), axes, name, week)
    for name, (axes, tables) in FAMILIES.items():
        for seed, week in enumerate(WEEKS[:2]):
            publish_family(public, axes, tables, name, week, seed=seed)
    by_state = {"b": 610, "a": 790, "c": 5, "d": 0, "other": 200}
    by_sex = {"f": {state: figure // 3 for state, figure in by_state.items()}, "m": by_state}
    mets = [{"level": "state", "figures": by_state}, {"levels": ["sex", "state"], "figures": by_sex}]
    for seed, (week, met) in enumerate(zip(WEEKS[:2], mets, strict=True)):
        publish_family(public, *FAMILIES["levels"], "figures", week, seed=seed, invariants={"counts": "persons", **met})
    for number, week in enumerate(WEEKS):
        values = np.arange(30.0).reshape(3, 10) * 37 + number / 8
        made = by_hand.estimate([WARD, HOSTILE], values, scale=Fraction(3 + number // 2, 2), off=0.125 * number)
        by_hand.publish(public, made, [WARD, HOSTILE], "hostile", week, **days_of(week), title="<b>&")
    small = by_hand.estimate([AGE], np.array([0.5, -1.25, 2.5, 3.5, 0.0]), scale=Fraction(1, 5))
    by_hand.publish(public, small, [AGE], "small", "all")
    return made_anew(public)


def content_of(public: Path, release: str) -> dict[str, Any]:
    """What `release.js` tells."""
    text = (public / release / "picker/release.js").read_text()
    found: dict[str, Any] = json.loads(text.partition("\n")[2].removesuffix(");\n"))
    return found


def questions(public: Path, release: str, number: int) -> list[Question]:
    """Tables, boxes and periods, the same in every run."""
    draws, found = random.Random(f"{release} {number}"), []
    for table in content_of(public, release)["tables"]:
        periods = [period[0] for period in table["periods"]]
        found.append((table["name"], [], periods[0], periods[0]))
        for _ in range(number):
            first, last = sorted(draws.choices(range(len(periods)), k=2))
            last = first if draws.random() < 0.5 else last
            found.append((table["name"], _box(draws, table["axes"]), periods[first], periods[last]))
    return found


def _box(draws: random.Random, axes: list[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    box: list[tuple[str, list[Any]]] = []
    for axis in axes:
        if axis["binned"]:
            low, high = sorted(draws.choices(range(axis["size"] - axis["other"]), k=2))
            if draws.random() < 0.7:
                box.append((axis["name"], [axis["lower"][low], axis["upper"][high]]))
            continue
        for name, values in [(axis["name"], axis["values"]), *axis["levels"]]:
            if draws.random() < 0.5:
                many = draws.randint(1, len(set(values)))
                box.append((name, draws.sample(list(dict.fromkeys(values)), many)))
    return box


__all__ = ["AXES", "PERIODS"]
