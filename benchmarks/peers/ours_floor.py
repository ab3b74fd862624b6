"""What no contender can do without, in Polars alone: the first 3 rows of a person are counted. No noise: no release."""

from __future__ import annotations

from typing import Any

import numpy as np
from peer_task import Task, dense, run


def start() -> Any:
    import polars

    return polars


def release(pl: Any, task: Task) -> np.ndarray:
    rows = pl.scan_parquet(task.records)
    kept = rows.filter(pl.int_range(pl.len()).over("person") < task.bound)
    made = kept.group_by("a", "b").len().collect()
    return np.nan_to_num(dense(task.side, *(made[column].to_numpy() for column in ("a", "b", "len"))))


run(start, release)
