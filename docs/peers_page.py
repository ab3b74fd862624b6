"""The generated parts of the page *Peers, side by side*."""

from __future__ import annotations

import json
from pathlib import Path

from hook_tables import shown, table

PEERS = Path(__file__).resolve().parent / "measured" / "peers.json"
WHOLE = PEERS.with_name("peers_whole.json")


def peers_runs() -> str:
    """The task by every contender and size: what it took, or why it ended."""
    head = ("rows", "cells", "contender", "start-up s", "release s", "processor s", "GB", "mean error of a cell")
    held = json.loads(PEERS.read_text(encoding="utf-8"))
    lines = []
    for run in held["runs"]:
        figures = [shown(run[key]) for key in ("start_up", "seconds", "processor", "gigabytes", "mean_absolute_error")]
        named = [shown(run["rows"]), shown(run["cells"]), f"`{run['contender']}`"]
        lines.append([*named, *([run["ended"], "", "", "", ""] if run["ended"] else figures)])
    return table(head, lines)


def peers_promises() -> str:
    """What every contender promises for the task."""
    held = json.loads(PEERS.read_text(encoding="utf-8"))["promises"]
    head = list(next(iter(held.values())))
    return table(["contender", *head], ([f"`{name}`", *(said[key] for key in head)] for name, said in held.items()))


def peers_ratios() -> str:
    """Processor time by that of `count_cube`, a call of this library, for the same rows and cells."""
    runs = [run for run in json.loads(PEERS.read_text(encoding="utf-8"))["runs"] if not run["ended"]]
    sizes = sorted({(run["rows"], run["cells"]) for run in runs})
    spent = {(run["contender"], run["rows"], run["cells"]): run["processor"] for run in runs}
    lines = []
    for name in dict.fromkeys(run["contender"] for run in runs):
        ratios = (spent.get((name, *size), 0) / spent["count_cube", *size] for size in sizes)
        lines.append([f"`{name}`", *(f"{ratio:.1f}" if ratio else "–" for ratio in ratios)])
    head = ("contender", *(f"{rows:,} rows, {cells:,} cells" for rows, cells in sizes))
    return table(head, lines)


def peers_whole() -> str:
    """Processor seconds of whole processes, from start to end, and how they relate to a release's."""
    runs = json.loads(WHOLE.read_text(encoding="utf-8"))["runs"]
    spent = {(run["contender"], run["rows"]): _whole(run) for run in runs if not run["ended"]}
    ended = {(run["contender"], run["rows"]): run["ended"] for run in runs if run["ended"]}
    sizes, lines = sorted({run["rows"] for run in runs}), []
    for name in dict.fromkeys(run["contender"] for run in runs):
        cells = []
        for rows in sizes:
            seconds = spent.get((name, rows))
            told = f"{seconds / spent['release', rows]:.2g}" if seconds else ""
            cells += [f"{seconds:.1f}", told] if seconds else [ended.get((name, rows), "–"), ""]
        lines.append([f"`{name}`", *cells])
    head = (part for rows in sizes for part in (f"{rows:,} rows: seconds", "by `release`'s"))
    return table(("contender", *head), lines)


def peers_memory() -> str:
    """How the memory of a call of this library relates to OpenDP's, at 10^7 rows."""
    held = {
        (run["contender"], run["cells"]): run["gigabytes"]
        for run in json.loads(PEERS.read_text(encoding="utf-8"))["runs"]
        if run["rows"] == 10**7 and not run["ended"]
    }
    parts = [f"{held['count_cube', cells] / held['opendp', cells]:.2f}" for name, cells in held if name == "opendp"]
    return f"- **Memory.** `count_cube` held {' and '.join(parts)} of the memory of OpenDP at 10⁷ rows."


def _whole(run: dict[str, float]) -> float:
    return run["start_up_processor"] + run["processor"]
