"""OpenDP's queries on Polars: rows of a person are truncated, keys are joined, noise is of whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from peer_task import Task, dense, run


def start() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    return dp


def release(dp: Any, task: Task) -> np.ndarray:
    import polars as pl

    axis = pl.LazyFrame({"a": range(task.side)}, schema={"a": pl.Int64})
    context = dp.Context.compositor(
        data=pl.scan_parquet(task.records),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("person")),
        privacy_loss=dp.loss_of(epsilon=task.epsilon),
        split_evenly_over=1,
    )
    kept = context.query().truncate_per_group(task.bound)
    counted = kept.group_by("a", "b").agg(dp.len(signed=True).alias("n"))
    made = counted.with_keys(axis.join(axis.rename({"a": "b"}), how="cross")).release().collect()
    return dense(task.side, made["a"].to_numpy(), made["b"].to_numpy(), made["n"].to_numpy())


run(start, release)
