"""Do intervals of boxes that `adaptive_grid` tells rarely hold as often as they say?

Which boxes have an interval depends on noise: a sum is told where the two grids happen to have borders there. Every
release of small counts is asked for the same random boxes, large and small ones. Boxes are put together by how often
they were told. Boxes of one release share draws, so the standard error of a share is that of sums by release. JSON is
written after each batch.

    python benchmarks/rare_boxes.py [--releases 3000] [--boxes 60] [--batch 500] [--to FILE]
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass, field
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


@dataclass
class Measured:
    """What became of the boxes of one grid: in each release 1 where the interval held, 0 where not, else NaN."""

    name: str
    counts: Counts
    boxes: list[Box]
    answers: list[NDArray[np.float64]] = field(default_factory=list)

    def more(self, releases: int) -> None:
        """Makes more releases, and asks each of them for all boxes."""
        for _ in range(releases):
            made = dph.sanitize(self.counts, mechanism="adaptive_grid", epsilon=EPSILON, sensitivity=1)
            found = [held(made, self.counts, box) for box in self.boxes]
            self.answers.append(np.array([np.nan if one is None else float(one) for one in found]))

    def row(self) -> dict[str, Any]:
        """Coverage by how often boxes were told, and the boxes whose own interval leaves out 95 % from above."""
        answers, releases = np.array(self.answers), len(self.answers)
        told, hits = (~np.isnan(answers)).sum(axis=0), np.nansum(answers, axis=0).astype(int)
        often, parts = told / releases, []
        for low, high in pairwise(EDGES):
            some = (often > 0) & (often >= low) & (often < high)
            if not some.any():
                continue
            by_release = np.nansum(answers[:, some] - LEVEL, axis=1)
            asked_for = {"told_in": [low, min(1.0, high)], "boxes": int(some.sum())}
            asked_for["releases"] = int((~np.isnan(answers[:, some])).any(axis=1).sum())
            parts.append(asked_for | share(int(hits[some].sum()), int(told[some].sum()), by_release.var() * releases))
        low_ones = [
            {"box": self.boxes[place], "told": int(told[place]), "held": int(hits[place])}
            for place in range(len(self.boxes))
            if told[place] >= 20 and interval(int(hits[place]), int(told[place]))[1] < LEVEL
        ]
        least = int(np.argmin(np.where(told >= 100, hits / np.maximum(told, 1), 2.0)))
        facts = {"counts": self.name, "shape": list(self.counts.shape), "releases": releases, "boxes": len(self.boxes)}
        of_100 = {"box": self.boxes[least], "told": int(told[least]), "held": int(hits[least])}
        return {**facts, "parts": parts, "least_of_100": of_100, "below": low_ones}


def share(hits: int, told: int, variance: float) -> dict[str, Any]:
    """The share of intervals that hold, and its standard error from the variance of hits beyond those that are due."""
    error = round(float(variance) ** 0.5 / told, 5)
    return {"told": told, "hits": hits, "held": round(hits / told, 4), "standard_error": error}


def together(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Coverage by how often boxes were told, over all grids: releases of two grids share no draw."""
    found = []
    for low, high in pairwise(EDGES):
        parts = [part for row in rows for part in row["parts"] if part["told_in"] == [low, min(1.0, high)]]
        if parts:
            boxes, releases, told, hits = (
                sum(part[key] for part in parts) for key in ("boxes", "releases", "told", "hits")
            )
            variance = sum((part["standard_error"] * part["told"]) ** 2 for part in parts)
            found.append({"told_in": [low, min(1.0, high)], "boxes": boxes, "releases": releases})
            found[-1] |= share(hits, told, variance)
    return found


def main() -> None:
    """Measures all inputs in batches, and writes what is known after each."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--releases", type=int, default=3_000)
    arguments.add_argument("--boxes", type=int, default=60)
    arguments.add_argument("--batch", type=int, default=500)
    arguments.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "rare_boxes.json")
    chosen = arguments.parse_args()
    chosen.to.parent.mkdir(parents=True, exist_ok=True)
    grids = [Measured(name, counts, asked(counts.shape, chosen.boxes)) for name, counts in inputs().items()]
    for start in range(0, chosen.releases, chosen.batch):
        for grid in grids:
            grid.more(min(chosen.batch, chosen.releases - start))
        rows = [grid.row() for grid in grids]
        told = {"epsilon": EPSILON, "together": together(rows), "rows": rows}
        chosen.to.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        print(rows[0]["releases"], json.dumps(told["together"]), flush=True)


if __name__ == "__main__":
    main()
