"""Counts of a Polars frame, sanitized; nothing is charged or published."""

from __future__ import annotations

from typing import Any

import numpy as np
from peer_task import Task, run


def start() -> Any:
    import duckdb  # noqa: F401 - loaded on first use otherwise
    import polars

    import dphist_pipeline as dph

    return dph.count_cube, dph.sanitize, polars


def release(started: Any, task: Task) -> np.ndarray:
    count_cube, sanitize, polars = started
    axes = [{"column": name, "start": 0, "stop": task.side, "width": 1} for name in ("a", "b")]
    frame = polars.scan_parquet(task.records)
    counts = count_cube(frame, axes, privacy_unit="person", max_rows_per_unit=task.bound)
    return sanitize(counts, mechanism="geometric", epsilon=task.epsilon).values


run(start, release)
