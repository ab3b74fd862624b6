"""How much nearer are the estimates of `multiscale` than least squares of the very sums that it drew?

On a line, least squares of its sums is what `workload` publishes. So both are compared release by release, and the
ratio of their errors is known far better than from releases of each: mean squared errors of 2,000 random ranges with
`workload: ranges`, and of 2,000 prefixes with `workload: prefixes`, and the ratio of the two with its standard error.
The constant of the step from the tree to the sums (`KEPT`) was chosen on the sets that are marked. The file is written
after each set; what it holds is not measured again.

    python benchmarks/same_draws.py [--releases 10] [--to FILE] [--sets NAME …]

Data: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from ranges import LINES, PROJECT, UNSEEN, counted, prefixes

import dphist_pipeline as dph
from dphist_pipeline.workbench.evaluation.workloads import random_boxes

TUNED = ("adult_capital_loss_4096", "income_4096", "lc_req_all_4096", "waitakere_meshblock_2006_1340")
EPSILONS = ("1", "0.1")


def compared(name: str, workload: str, epsilon: str, releases: int) -> dict[str, Any]:
    """Errors of both on the same draws."""
    counts = counted(name)
    asked = prefixes(counts.shape) if workload == "prefixes" else random_boxes(counts.shape, 2_000)
    exact, errors = asked.sums(counts), []
    for _ in range(releases):
        run = dph.sanitize(counts, mechanism="multiscale", epsilon=epsilon, sensitivity=1, workload=workload)
        both = run.values, run.unbiased.values
        errors.append([float(np.mean((asked.sums(values) - exact) ** 2)) for values in both])
    means, plain = np.array(errors).T
    ratio = means.mean() / plain.mean()
    return {
        "set": name,
        "used_for_a_constant": name in TUNED,
        "workload": workload,
        "epsilon": float(epsilon),
        "releases": releases,
        "multiscale": float(means.mean()),
        "least_squares": float(plain.mean()),
        "ratio": float(ratio),
        "standard_error": float(np.std(means - ratio * plain, ddof=1) / releases**0.5 / plain.mean()),
    }


def main() -> None:
    """Measures what is not yet in the file."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--releases", type=int, default=10)
    arguments.add_argument("--sets", nargs="+", default=[*UNSEEN, *LINES])
    arguments.add_argument("--workloads", nargs="+", default=["ranges", "prefixes"])
    arguments.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "same_draws.json")
    chosen = arguments.parse_args()
    rows = json.loads(chosen.to.read_text(encoding="utf-8")) if chosen.to.exists() else []
    there = {(row["set"], row["workload"], row["epsilon"]) for row in rows}
    for workload in chosen.workloads:
        for name in chosen.sets:
            for epsilon in EPSILONS:
                if (name, workload, float(epsilon)) not in there:
                    rows.append(compared(name, workload, epsilon, chosen.releases))
                    print(rows[-1], flush=True)
            chosen.to.parent.mkdir(parents=True, exist_ok=True)
            chosen.to.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
