"""PipelineDP on its local backend, which works through Python's own objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from peer_task import Task, dense, run


def start() -> Any:
    import pipeline_dp

    return pipeline_dp


def release(dp: Any, task: Task) -> np.ndarray:
    import pyarrow.parquet as pq

    table = pq.read_table(task.records)
    cells = table["a"].to_numpy() * task.side + table["b"].to_numpy()
    rows = list(zip(table["person"].to_pylist(), cells.tolist(), strict=True))
    accountant = dp.NaiveBudgetAccountant(total_epsilon=task.epsilon, total_delta=0)
    engine = dp.DPEngine(accountant, dp.LocalBackend())
    parameters = dp.AggregateParams(
        metrics=[dp.Metrics.COUNT], noise_kind=dp.NoiseKind.LAPLACE, max_contributions=task.bound
    )
    reading = dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0], partition_extractor=lambda row: row[1], value_extractor=lambda row: 0
    )
    made = engine.aggregate(rows, parameters, reading, public_partitions=list(range(task.side**2)))
    accountant.compute_budgets()
    released = dict(made)
    keys = np.fromiter(released, dtype=np.int64, count=len(released))
    return dense(task.side, keys // task.side, keys % task.side, [metrics.count for metrics in released.values()])


run(start, release)
