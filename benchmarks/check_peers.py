"""Are the rivals in `range_peers` those of their authors? Compares their errors with the errors of the authors' code.

`published_errors.json` beside the data has the mean squared errors of DPBench's own code on eight lines: of cells, of
2,000 ranges and of all prefixes, with standard errors. Prints, and writes as JSON, the ratio of ours to theirs for each
line, epsilon and workload, and by how many standard errors the two differ.

    python benchmarks/check_peers.py [--releases 40] [--to FILE]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from range_peers import PublishedDAWA, hierarchy
from ranges import DATA, PROJECT

from dphist_pipeline.workbench.evaluation.public_counts import read_counts

SAME = {"DAWA": "DAWA.25", "HB": "HB"}  # the names of the rivals, here and there
Reals = NDArray[np.float64]


def asked(cells: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The ranges that the published errors are of: the first cell, and the one behind the last."""
    draws = np.random.default_rng(5)
    first, second = draws.integers(0, cells, 2000), draws.integers(0, cells, 2000)
    return np.minimum(first, second), np.maximum(first, second) + 1


def errors_of(values: Reals, counts: Reals) -> tuple[float, float, float]:
    """The mean squared errors of cells, ranges and prefixes."""
    away = values - counts
    running = np.concatenate([[0.0], np.cumsum(away)])
    low, high = asked(counts.size)
    return tuple(float(np.mean(part**2)) for part in (away, running[high] - running[low], running[1:]))


def compared(name: str, published: dict[str, Any], releases: int) -> Iterator[dict[str, Any]]:
    """For each epsilon and rival on a line: our errors, theirs, and how far they differ."""
    counts = read_counts(str(DATA / f"{name}.parquet"))
    rivals = {"DAWA": PublishedDAWA(counts), "HB": lambda epsilon: hierarchy(counts, epsilon)}
    for epsilon, theirs in published.items():
        for rival, there in SAME.items():
            found = np.array([errors_of(rivals[rival](float(epsilon)), counts.astype(float)) for _ in range(releases)])
            ours, ours_error = found.mean(0), found.std(0, ddof=1) / releases**0.5
            cell, cell_error, ranges, ranges_error, prefixes, _ = theirs[there]
            yield {
                "set": name,
                "epsilon": float(epsilon),
                "rival": rival,
                "ours": dict(zip(("cells", "ranges", "prefixes"), ours.tolist(), strict=True)),
                "ratio": {"cells": ours[0] / cell, "ranges": ours[1] / ranges, "prefixes": ours[2] / prefixes},
                "standard_errors_apart": {
                    "cells": float(abs(ours[0] - cell) / np.hypot(ours_error[0], cell_error)),
                    "ranges": float(abs(ours[1] - ranges) / np.hypot(ours_error[1], ranges_error)),
                },
            }


def main() -> None:
    """Compares all lines."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--releases", type=int, default=40)
    arguments.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "checked_peers.json")
    chosen = arguments.parse_args()
    published = json.loads((DATA / "published_errors.json").read_text(encoding="utf-8"))["errors"]
    rows = []
    for name, by_epsilon in published.items():
        for row in compared(name, by_epsilon, chosen.releases):
            rows.append(row)
            ratios = "  ".join(f"{kind} {ratio:.2f}" for kind, ratio in row["ratio"].items())
            print(f"{name:32}{row['epsilon']:<6}{row['rival']:6}{ratios}", flush=True)
    chosen.to.parent.mkdir(parents=True, exist_ok=True)
    chosen.to.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
