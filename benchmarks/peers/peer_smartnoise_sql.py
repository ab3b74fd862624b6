"""SmartNoise SQL on a pandas frame; keys are those that the records hold."""

from __future__ import annotations

from typing import Any

import numpy as np
from peer_task import Task, dense, run


def start() -> Any:
    import snsql

    return snsql


def release(snsql: Any, task: Task) -> np.ndarray:
    import pandas as pd

    keys = {name: {"type": "int"} for name in ("a", "b")}
    table = {
        "row_privacy": False,
        "max_ids": task.bound,
        "censor_dims": False,
        "clamp_counts": False,
        "person": {"type": "int", "private_id": True},
        **keys,
    }
    reader = snsql.from_df(
        pd.read_parquet(task.records),
        privacy=snsql.Privacy(epsilon=task.epsilon, delta=1e-9),
        metadata={"": {"office": {"visits": table}}},
    )
    _, *rows = reader.execute("SELECT a, b, COUNT(*) AS n FROM office.visits GROUP BY a, b")
    return dense(task.side, *zip(*rows, strict=True))


run(start, release)
