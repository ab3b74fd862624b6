"""The generated parts of the page *Peers, side by side*."""

from __future__ import annotations

import json
from pathlib import Path

from hook_tables import shown, table

PEERS = Path(__file__).resolve().parent / "measured" / "peers.json"


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
