"""Do intervals of boxes that `adaptive_grid` tells rarely hold as often as they say?

Which boxes have an interval depends on noise: a sum is told where the two grids happen to have borders there. Every
release of small counts is asked for the same random boxes, large and small ones. Boxes are put together by how often
they were told. Boxes of one release share draws, so the standard error of a share is that of sums by release.

    python benchmarks/rare_boxes.py [--releases 3000] [--boxes 60] [--to FILE]
"""

from __future__ import annotations

import argparse
import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dphist_pipeline as dph
from dphist_pipeline.estimates.estimate import Estimate

PROJECT = Path(__file__).resolve().parent.parent
EPSILON, LEVEL = 1, 0.95
EDGES = (0.0, 0.01, 0.1, 0.5, 1.01)
Counts = NDArray[np.int64]
Box = tuple[tuple[int, int], ...]


def inputs() -> dict[str, Counts]:
    """Small grids: empty, one cluster, counts at which a box is cut or not by luck, a spike; and a line."""
    rows, columns = np.meshgrid(np.arange(24), np.arange(20), indexing="ij")
    cluster = np.rint(40 * np.exp(-((rows - 8) ** 2 + (columns - 12) ** 2) / 18)).astype(np.int64)
    spike = np.zeros((24, 20), dtype=np.int64)
    spike[5, 7] = 3_000
    return {
        "empty": np.zeros((20, 20), dtype=np.int64),
        "cluster": cluster,
        "at the border": np.where((rows // 2 + columns // 2) % 2, 3, 1).astype(np.int64),
        "spike": spike,
        "line": np.rint(30 * np.exp(-np.arange(60) / 12)).astype(np.int64),
    }


def asked(shape: tuple[int, ...], number: int) -> list[Box]:
    """Random boxes of all sizes, small ones, and single cells."""
    draws, found = np.random.default_rng(5), set[Box]()
    for turn in range(number):
        longest = [side if turn % 3 == 0 else max(1, min(side, 1 + turn % 3 * 2)) for side in shape]
        sides = [1 if turn % 6 == 5 else int(draws.integers(1, most + 1)) for most in longest]
        lows = [int(draws.integers(0, side - width + 1)) for side, width in zip(shape, sides, strict=True)]
        found.add(tuple((low, low + width) for low, width in zip(lows, sides, strict=True)))
    return sorted(found)


def held(made: Estimate, counts: Counts, box: Box) -> bool | None:
    """Whether the interval of a box holds its count; None without an interval."""
    answer = made.box(**{axis.name: ends for axis, ends in zip(made.domain.axes, box, strict=True)})
    if answer.ci_lower is None or answer.ci_upper is None or math.isnan(answer.ci_lower):
        return None
    return bool(answer.ci_lower <= counts[tuple(slice(*ends) for ends in box)].sum() <= answer.ci_upper)


def interval(hits: int, of: int, z: float = 4.0) -> tuple[float, float]:
    """Wilson's interval of a share, four standard errors: some 400 boxes are looked at."""
    middle, reach = (hits + z * z / 2) / (of + z * z), z * math.sqrt(hits * (of - hits) / of + z * z / 4) / (of + z * z)
    return round(middle - reach, 4), round(middle + reach, 4)


def measured(name: str, counts: Counts, releases: int, number: int) -> dict[str, Any]:
    """Coverage by how often boxes were told, and the boxes whose own interval leaves out 95 % from above."""
    boxes = asked(counts.shape, number)
    answers = np.full((releases, len(boxes)), np.nan)
    for release in range(releases):
        made = dph.sanitize(counts, mechanism="adaptive_grid", epsilon=EPSILON, sensitivity=1)
        for place, box in enumerate(boxes):
            found = held(made, counts, box)
            answers[release, place] = np.nan if found is None else found
    told, hits = (~np.isnan(answers)).sum(axis=0), np.nansum(answers, axis=0).astype(int)
    often, parts = told / releases, []
    for low, high in pairwise(EDGES):
        some = (often > 0) & (often >= low) & (often < high)
        if not some.any():
            continue
        by_release = np.nansum(answers[:, some] - LEVEL, axis=1)
        share = hits[some].sum() / told[some].sum()
        error = float(by_release.std() * releases**0.5 / told[some].sum())
        parts.append(
            {"told_in": [low, min(1.0, high)], "boxes": int(some.sum()), "told": int(told[some].sum())}
            | {"held": round(float(share), 4), "standard_error": round(error, 5)}
        )
    low_ones = [
        {"box": boxes[place], "told": int(told[place]), "held": int(hits[place])}
        for place in range(len(boxes))
        if told[place] >= 20 and interval(int(hits[place]), int(told[place]))[1] < LEVEL
    ]
    enough = told >= 100
    least = int(np.argmin(np.where(enough, hits / np.maximum(told, 1), 2.0)))
    return {
        **{"counts": name, "shape": list(counts.shape), "releases": releases, "boxes": len(boxes), "parts": parts},
        "least_of_100": {"box": boxes[least], "told": int(told[least]), "held": int(hits[least])},
        "below": low_ones,
    }


def main() -> None:
    """Measures all inputs."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--releases", type=int, default=3_000)
    arguments.add_argument("--boxes", type=int, default=60)
    arguments.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "rare_boxes.json")
    chosen = arguments.parse_args()
    rows = []
    for name, counts in inputs().items():
        rows.append(measured(name, counts, chosen.releases, chosen.boxes))
        print(json.dumps(rows[-1]), flush=True)
        chosen.to.parent.mkdir(parents=True, exist_ok=True)
        chosen.to.write_text(json.dumps({"epsilon": EPSILON, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
