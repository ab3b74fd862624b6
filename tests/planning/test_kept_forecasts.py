"""What `dphist forecast` tells held what happened on public sets: judged by what benchmarks/forecasts.py kept."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dphist_pipeline.workbench.planning._expected_errors import CELL, WIDER, WIDER_OF_ONE, Expected

PROJECT = Path(__file__).resolve().parents[2]
KEPT = json.loads((PROJECT / "docs/measured/forecasts.json").read_text(encoding="utf-8"))
SIMULATED = [case for case in KEPT["cases"] if not case["by_law"]]
SOURCES = ("shapes", "stand_in")


def told(case: dict[str, Any], source: str, place: int) -> Iterator[tuple[float, float]]:
    """The ranges that `forecast` tells: one by all invented shapes, or one by each earlier publication."""
    found = case["told"] if source == "shapes" else case["told_by_stand_in"]
    for errors in [found] if source == "shapes" else [{name: by_size} for name, by_size in found.items()]:
        asked = CELL if place == 0 else f"place {place}"
        by_name = {name: {asked: by_size[place]} for name, by_size in errors.items()}
        facts = KEPT["sets"][case["set"]]
        numbers = {asked: max(1, int(math.prod(facts["shape"]) / facts["cells"][place]))}
        yield Expected(case["mechanism"], Fraction(1), False, by_name, None, {}, {}, numbers).between(asked)


def held(source: str, kind: str, judges: bool) -> tuple[int, int]:
    """Ranges that hold the real error, and all of them; of the sets that chose nothing, or of all."""
    inside = of = 0
    for case in SIMULATED:
        if judges and case["set"] in KEPT["chosen_on"]:
            continue
        for place, real in enumerate(case["real"]):
            if (place == 0) == (kind == "cell"):
                for low, high in told(case, source, place):
                    inside, of = inside + (low <= real <= high), of + 1
    return inside, of


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("kind", ["cell", "sums"])
@pytest.mark.parametrize("judges", [True, False])
def test_ranges_hold_what_happens_in_95_percent(source: str, kind: str, judges: bool) -> None:
    inside, of = held(source, kind, judges)
    assert of > 100 and inside >= 0.95 * of, (inside, of)
    verdict = KEPT[source]["held_out" if judges else "all"][kind]
    assert (verdict["held"], verdict["of"]) == (inside, of)


def test_ranges_are_judged_by_what_forecast_has_now_and_with_each_set_left_out() -> None:
    assert (tuple(KEPT["wider"]), tuple(KEPT["wider_of_one"])) == (WIDER, WIDER_OF_ONE)
    for kind in ("cell", "sums"):
        assert KEPT["shapes"]["leave_one_out"][kind]["share"] >= 0.95
