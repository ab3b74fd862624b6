"""How near are our mechanisms to the best published algorithm for ranges, prefixes and boxes?

On public sets of one and two axes, at three epsilons: the mean squared error of 2,000 random ranges or boxes, and of
prefixes (from the first cell; of grids, boxes with a corner there), over many releases. Our mechanisms through their
measurements, and the algorithms that DPBench compares, in `range_peers`, some not private as published. Sets that
were used to choose the defaults of `dawa` are marked. The file is written after each set; what it holds is not measured
again, and a mechanism or rival that it lacks is added to it.

    python benchmarks/ranges.py [--releases 20] [--to FILE] [--sets NAME …] [--again WHO …]

Data: $DPHIST_DATA, else ../shared/data beside the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from accuracy_sets import SETS
from numpy.typing import NDArray
from range_peers import peers_of

import dphist_pipeline as dph
from dphist_pipeline.workbench.evaluation.public_counts import read_counts
from dphist_pipeline.workbench.evaluation.workloads import Boxes, random_boxes

PROJECT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DPHIST_DATA", PROJECT.parent / "shared" / "data"))
LINES = (
    *("hepth_4096", "medcost_4096", "adult_capital_loss_4096", "income_4096", "lc_req_all_4096"),
    *("mdsalary_fa_4096", "waitakere_meshblock_2006_1340", "brazil_age_101"),
)
# Lines that no constant of a mechanism was chosen on, `multiscale` included.
UNSEEN = ("acs_income", "baltimore_salaries", "nyc_salaries")
GRIDS = ("adult_gain_loss_256x256", "gowalla_256x256", "lc_funded_income_256x256", "sf_cabs_start_256x256")
TUNED = ("hepth_4096", "medcost_4096", "adult_capital_loss_4096", "adult_gain_loss_256x256", "gowalla_256x256")
OURS = ("geometric", "boost", "workload", "dawa", "multiscale", "dpcube", "adaptive_grid")
EPSILONS = (1.0, 0.1, 0.01)
QUESTIONS = 2_000

Values = NDArray[Any]


def counted(name: str) -> Values:
    """The exact counts of a set."""
    if name in UNSEEN:
        return SETS[name].load()
    return read_counts(str(DATA / f"{name}.parquet"), (256, 256) if name in GRIDS else None)


def prefixes(shape: tuple[int, ...]) -> Boxes:
    """Boxes from the first cell to random ones."""
    high = np.random.Generator(np.random.PCG64(7)).integers(1, np.array(shape) + 1, (QUESTIONS, len(shape)))
    return Boxes(np.zeros_like(high), high)


def workloads(shape: tuple[int, ...]) -> dict[str, Boxes]:
    """The questions of each kind."""
    return {"ranges" if len(shape) == 1 else "boxes": random_boxes(shape, QUESTIONS), "prefixes": prefixes(shape)}


def ours(counts: Values, name: str) -> Callable[[float], Values]:
    """One of our mechanisms as a function of epsilon."""
    return lambda epsilon: dph.sanitize(counts, mechanism=name, epsilon=str(epsilon), sensitivity=1).values


def served(counts: Values) -> tuple[str, ...]:
    """Our mechanisms for so many axes."""
    return OURS if counts.ndim == 2 else OURS[:-1]


def everybody_on(counts: Values) -> dict[str, Callable[[float], Values]]:
    """Our mechanisms and the published algorithms."""
    return {mechanism: ours(counts, mechanism) for mechanism in served(counts)} | dict(peers_of(counts))


def measured(
    name: str, counts: Values, releases: int, everybody: dict[str, Callable[[float], Values]]
) -> Iterator[dict[str, Any]]:
    """For each epsilon and workload, the mean squared error of everybody, and its standard error."""
    asked = {kind: (boxes, boxes.sums(counts)) for kind, boxes in workloads(counts.shape).items()}
    for epsilon in EPSILONS:
        errors: dict[str, dict[str, list[float]]] = {kind: {} for kind in asked}
        for who, release in everybody.items():
            for _ in range(releases):
                values = np.asarray(release(epsilon), dtype=np.float64)
                for kind, (boxes, exact) in asked.items():
                    errors[kind].setdefault(who, []).append(float(np.mean((boxes.sums(values) - exact) ** 2)))
        for kind, found in errors.items():
            yield {
                "set": name,
                "used_for_defaults": name in TUNED,
                "axes": counts.ndim,
                "records": int(counts.sum()),
                "epsilon": epsilon,
                "workload": kind,
                "mse": {who: float(np.mean(each)) for who, each in found.items()},
                "standard_error": {who: float(np.std(each, ddof=1) / len(each) ** 0.5) for who, each in found.items()},
            }


def best_published(row: dict[str, Any]) -> str:
    """The published algorithm of the least error."""
    return min((who for who in row["mse"] if who not in OURS), key=lambda who: row["mse"][who])


def shown(rows: list[dict[str, Any]]) -> str:
    """A line for each case: the best published algorithm, and how many times its error ours have."""
    lines = []
    for row in rows:
        best = best_published(row)
        ratios = {who: error / row["mse"][best] for who, error in row["mse"].items()}
        parts = "  ".join(f"{who} {ratio:.2f}" for who, ratio in ratios.items())
        lines.append(f"{row['set']:32}{row['epsilon']:<6}{row['workload']:9} best {best:9} {parts}")
    return "\n".join(lines)


def main() -> None:
    """Measures what is not yet in the file, set by set."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--releases", type=int, default=20)
    arguments.add_argument("--sets", nargs="+", default=[*LINES, *UNSEEN, *GRIDS])
    arguments.add_argument("--to", type=Path, default=PROJECT / "benchmarks" / "results" / "ranges.json")
    arguments.add_argument("--again", nargs="+", default=[], help="measured again, whatever the file holds")
    chosen = arguments.parse_args()
    rows = json.loads(chosen.to.read_text(encoding="utf-8")) if chosen.to.exists() else []
    for name in chosen.sets:
        counts = counted(name)
        there = [row for row in rows if row["set"] == name]
        everybody = everybody_on(counts)
        lacking = [who for who in everybody if who in chosen.again or any(who not in row["mse"] for row in there)]
        if not there or lacking:
            asked = {who: everybody[who] for who in lacking} if there else everybody
            new = list(measured(name, counts, chosen.releases, asked))
            for row, more in zip(there, new, strict=True) if there else ():
                row["mse"] |= more["mse"]
                row["standard_error"] |= more["standard_error"]
            rows += [] if there else new
            print(shown(there or new), flush=True)
            chosen.to.parent.mkdir(parents=True, exist_ok=True)
            chosen.to.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
