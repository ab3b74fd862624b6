"""The task that every peer gets, and the clock around it; needs NumPy alone, because every environment has that.

A peer's script gives two functions: one that imports and starts what it needs, and one that makes the release.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

READY = "ready"  # a file that tells the clock outside that the start is over


@dataclass(frozen=True)
class Task:
    """A histogram over public keys `a` × `b`, both 0 to `side` - 1, of rows that belong to persons.

    Attributes:
        records: Parquet with the whole numbers `person`, `a` and `b`.
        side: values of `a` and of `b`.
        bound: how many rows of a person may count.
        epsilon: of the whole release, for adding or removing a person.
        folder: for files of this run.
    """

    records: Path
    side: int
    bound: int
    epsilon: float
    folder: Path


def run(start: Callable[[], Any], release: Callable[[Any, Task], np.ndarray]) -> None:
    """Runs a peer and leaves its released counts and its seconds in the task's folder.

    Args:
        start: imports the peer and starts its engine.
        release: reads, bounds, counts and adds noise; gives the released counts, shape (side, side).
    """
    records, side, bound, epsilon, folder, began = sys.argv[1:]
    task = Task(Path(records), int(side), int(bound), float(epsilon), Path(folder))
    started = start()
    ready = time.time()
    (task.folder / READY).touch()
    counts = release(started, task)
    done = time.time()
    np.save(task.folder / "counts.npy", np.asarray(counts, dtype=np.float64))
    seconds = {"start_up": ready - float(began), "release": done - ready}
    (task.folder / "seconds.json").write_text(json.dumps(seconds), encoding="utf-8")


def dense(side: int, a: Iterable[int], b: Iterable[int], counts: Iterable[float]) -> np.ndarray:
    """Counts in their cells; a cell that was not released is not a number."""
    found = np.full((side, side), np.nan)
    found[np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)] = np.asarray(counts, dtype=np.float64)
    return found
