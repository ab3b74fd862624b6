"""Is the default of a setting better than the paper's value, on which counts?

For every setting of a mechanism whose default is not the paper's, both are measured on the same public and invented
counts: squared error of a cell, or of random ranges and boxes where the mechanism is for those. Noise is really drawn.
The sentences in `dphist mechanisms NAME` tell how often the default had the lower mean error; a test compares them
with docs/measured/default_settings.json.

Writes JSON to benchmarks/results/. Some twenty minutes on a quiet machine.

    python benchmarks/default_settings.py [--runs 20] [--only NAME …] [--setting NAME …] [--keep]

`--keep` puts the rows in their places in docs/measured/default_settings.json, too.

Public sets: $DPHIST_DATA, else ../shared/data beside the checkout; without them, the invented ones alone.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

import dphist_pipeline as dph

PROJECT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DPHIST_DATA", PROJECT.parent / "shared" / "data"))
EPSILONS = ("1", "0.1", "0.01")
ASKED = 2000
KEPT = PROJECT / "docs/measured/default_settings.json"
PAPERS_DEPTH = "log2 of the cells"
Counts = NDArray[np.int64]
LINES = {
    "adult, capital loss": "adult_capital_loss_4096",
    "brazil, age": "brazil_age_101",
    "HEPTH": "hepth_4096",
    "INCOME": "income_4096",
    "LC-REQ": "lc_req_all_4096",
    "MDSALARY": "mdsalary_fa_4096",
    "MEDCOST": "medcost_4096",
    "Waitakere": "waitakere_meshblock_2006_1340",
}
GRIDS = {"adult, gain × loss": "adult_gain_loss_256x256", "gowalla": "gowalla_256x256", "cabs": "sf_cabs_start_256x256"}


class Pair(NamedTuple):
    """A default beside another value.

    Attributes:
        mechanism, setting: whose default.
        default, other: settings of both, as a spec writes them; what they share stands in both. A depth may be
            `PAPERS_DEPTH`.
        sets: kinds of counts.
        question: `cells`, or `ranges`, which are boxes over two axes.
    """

    mechanism: str
    setting: str
    default: dict[str, Any]
    other: dict[str, Any]
    sets: tuple[str, ...]
    question: str = "cells"


def pairs() -> Iterator[Pair]:
    """What is compared."""
    line, few, both = ("lines",), ("short lines",), ("lines", "grids")
    yield Pair("ahp", "order_share", {}, {"order_share": "1/2"}, line)
    yield Pair("ahp", "eta", {}, {"eta": 0.0}, line)
    yield Pair("ahp", "search", {}, {"search": "exact"}, line)
    yield Pair("dphr", "order_share", {}, {"order_share": "1/2"}, line)
    yield Pair("dphr", "order", {}, {"order": "exponential", "order_share": "1/3", "grouping_share": "1/3"}, few)
    spread = {"order": "exponential"}
    yield Pair("dphr", "order_share with exponential", spread, {**spread, "order_share": "1/3"}, few)
    yield Pair("sreb_gca", "order_share", {}, {"order_share": "17/20"}, line)
    yield Pair("grouping_smoothing", "order_share", {}, {"order_share": "17/20"}, line)
    yield Pair("noise_first", "penalty", {}, {"penalty": "auto"}, line)
    yield Pair("dpcube", "structure_share", {}, {"structure_share": "1/4"}, both)
    yield Pair("dpcube", "structure_share, boxes", {}, {"structure_share": "1/4"}, ("grids",), "ranges")
    noise = {"threshold": "{noise: 0.7}"}
    yield Pair("dpcube", "threshold", {}, noise, both)
    yield Pair("dpcube", "threshold, boxes", {}, noise, ("grids",), "ranges")
    yield Pair("dpcube", "estimation", {}, {"estimation": "least_squares"}, both)
    yield Pair("dawa", "structure_share", {}, {"structure_share": "1/4"}, both, "ranges")
    yield Pair("dawa", "joining", {}, {"joining": "0"}, both, "ranges")
    yield Pair("dawa", "fading", {}, {"fading": "1"}, both, "ranges")
    yield Pair("boost", "branching", {}, {"branching": 2}, both, "ranges")
    yield Pair("ihp", "centre", {}, {"centre": "mean"}, line)
    for depth in (4, 12):
        yield Pair("ihp", f"depth, {depth}", {}, {"depth": depth}, line)
        yield Pair("p_hpartition", f"depth, {depth}", {}, {"depth": depth}, line)
    yield Pair("p_hpartition", "depth, the paper's", {}, {"depth": PAPERS_DEPTH}, line)
    for depth in (5, 8):
        yield Pair("kd_hierarchy", f"depth, {depth}", {}, {"depth": depth}, both, "ranges")
    for share in ("1/4", "3/4"):
        yield Pair("ihp", f"structure_share, {share}", {}, {"structure_share": share}, line)
    yield Pair("p_hpartition", "centre", {}, {"centre": "mean"}, line)
    yield Pair("structure_first", "score", {}, {"score": "squared", "count_ceiling": 800}, few)
    yield Pair("kd_hierarchy", "structure_share", {}, {"structure_share": "1/2"}, ("grids",), "ranges")


def sets(kinds: tuple[str, ...]) -> Iterator[tuple[str, Counts]]:
    """Counts by name.

    Args:
        kinds: `lines` of up to 4,096 cells, `short lines` of up to 128, or `grids` of two axes.
    """
    for kind in kinds:
        files = GRIDS if kind == "grids" else LINES
        for name, file in files.items():
            if (DATA / f"{file}.parquet").is_file():
                yield name, _shorter(_read(file)) if kind == "short lines" else _read(file)
        for name, counts in _made(kind):
            yield name, counts


def _read(file: str) -> Counts:
    table = pl.read_parquet(DATA / f"{file}.parquet")
    if "bin" in table.columns:
        return table["count"].to_numpy().astype(np.int64)
    counts = np.zeros((256, 256), dtype=np.int64)
    axes = [column for column in table.columns if column != "count"]
    counts[tuple(table[axis].to_numpy() for axis in axes)] = table["count"].to_numpy()
    return counts


def _shorter(counts: Counts) -> Counts:
    """Neighbouring cells added up, so that at most 128 are left."""
    width = -(-counts.size // 128)
    return np.add.reduceat(counts, np.arange(0, counts.size, width))


def _made(kind: str) -> Iterator[tuple[str, Counts]]:
    """Invented counts: steps and a heavy tail in a fixed random order."""
    source = np.random.default_rng(1)
    if kind == "grids":
        yield "blocks", np.kron(source.integers(0, 200, (8, 8)), np.ones((16, 16), dtype=np.int64))
        return
    cells = 128 if kind == "short lines" else 1024
    yield "steps", np.repeat(source.integers(0, 500, cells // 32), 32)
    yield "heavy tail", source.permutation((20_000 / np.arange(1, cells + 1)).astype(np.int64))


def errors_of(counts: Counts, question: str) -> Callable[[NDArray[np.float64]], float]:
    """Gives the mean squared error of estimates: of a cell, or of the same random ranges or boxes each time."""
    if question == "cells":
        return lambda values: float(((values - counts) ** 2).mean())
    source = np.random.default_rng(2)
    ends = [np.sort(source.integers(0, side + 1, (ASKED, 2)), axis=1).T for side in counts.shape]

    def error(values: NDArray[np.float64]) -> float:
        off = values - counts
        for axis in range(off.ndim):
            off = np.insert(np.cumsum(off, axis=axis), 0, 0.0, axis=axis)
        if off.ndim == 1:
            sums = off[ends[0][1]] - off[ends[0][0]]
        else:
            (low, high), (left, right) = ends
            sums = off[high, right] - off[low, right] - off[high, left] + off[low, left]
        return float((sums**2).mean())

    return error


def mean_error(mechanism: str, settings: dict[str, Any], counts: Counts, epsilon: str, pair: Pair, runs: int) -> float:
    """The mean over some releases."""
    error = errors_of(counts, pair.question)
    if settings.get("depth") == PAPERS_DEPTH:
        settings = {**settings, "depth": (counts.size - 1).bit_length()}
    made = (
        dph.sanitize(counts, mechanism=mechanism, epsilon=epsilon, sensitivity=1, **settings).values
        for _ in range(runs)
    )
    return float(np.mean([error(values) for values in made]))


def measured(pair: Pair, runs: int) -> Iterator[dict[str, Any]]:
    """A row for every set and epsilon."""
    for name, counts in sets(pair.sets):
        for epsilon in EPSILONS:
            found = [mean_error(pair.mechanism, s, counts, epsilon, pair, runs) for s in (pair.default, pair.other)]
            yield {"set": name, "epsilon": float(epsilon), "default": found[0], "other": found[1]}


def summary(pair: Pair, runs: int) -> dict[str, Any]:
    """How often the default is better, and by how much: ratios of its error by the other's."""
    ratios = [row["default"] / max(row["other"], 1e-9) for row in measured(pair, runs)]
    return {
        "mechanism": pair.mechanism,
        "setting": pair.setting,
        "other": ", ".join(f"{key} {value}" for key, value in pair.other.items()),
        "question": pair.question,
        "better": sum(ratio < 1 for ratio in ratios),
        "of": len(ratios),
        "median ratio": float(np.median(ratios)),
        "least ratio": min(ratios),
        "largest ratio": max(ratios),
    }


def main() -> None:
    """Measures all pairs."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--runs", type=int, default=20)
    reader.add_argument("--only", nargs="+", metavar="MECHANISM", help="all when left out")
    reader.add_argument("--setting", nargs="+", help="all when left out")
    reader.add_argument("--keep", action="store_true", help="for the documentation")
    given = reader.parse_args()
    chosen = [
        pair
        for pair in pairs()
        if pair.mechanism in (given.only or [pair.mechanism])
        and pair.setting.split(",")[0] in (given.setting or [pair.setting.split(",")[0]])
    ]
    found = []
    for pair in chosen:
        found.append(summary(pair, given.runs))
        print(found[-1], flush=True)
    target = PROJECT / "benchmarks/results/default_settings.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(_written(given.runs, found), encoding="utf-8")
    if given.keep:
        held = json.loads(KEPT.read_text(encoding="utf-8"))["settings"]
        rows = {(row["mechanism"], row["setting"]): row for row in (*held, *found)}
        places = ((pair.mechanism, pair.setting) for pair in pairs())
        KEPT.write_text(_written(given.runs, [rows[place] for place in places if place in rows]), encoding="utf-8")


def _written(runs: int, found: list[dict[str, Any]]) -> str:
    return json.dumps({"runs": runs, "settings": found}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main()
