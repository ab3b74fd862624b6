"""A release from spec to published files, with card, catalogue and ledger."""

from __future__ import annotations

from typing import Any

import numpy as np
from peer_task import Task, run


def start() -> Any:
    import duckdb  # noqa: F401 - loaded on first use otherwise
    import polars  # noqa: F401

    import dphist_pipeline as dph

    return dph.load_spec, dph.release


def release(started: Any, task: Task) -> np.ndarray:
    load_spec, release = started
    made = release(load_spec(task.folder / "spec.yaml", task.folder / "store"), task.folder / "store")
    return made.table["estimate"].to_numpy().reshape(task.side, task.side)


run(start, release)
