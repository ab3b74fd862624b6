"""Tumult Analytics on Spark, on the processors of this machine."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
from peer_task import Task, dense, run


def start() -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession
    from tmlt import analytics

    settings = {"spark.driver.memory": "5g", "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "8"}
    builder = SparkSession.builder.master("local[*]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return analytics, builder.getOrCreate()


def release(started: Any, task: Task) -> np.ndarray:
    tmlt, spark = started
    whole = tmlt.PureDPBudget(task.epsilon)
    session = tmlt.Session.from_dataframe(
        privacy_budget=whole,
        source_id="visits",
        dataframe=spark.read.parquet(str(task.records)),
        protected_change=tmlt.AddRowsWithID("person"),
    )
    keys = tmlt.KeySet.from_dict({"a": list(range(task.side)), "b": list(range(task.side))})
    query = tmlt.QueryBuilder("visits").enforce(tmlt.MaxRowsPerID(task.bound)).groupby(keys).count()
    made = session.evaluate(query, whole).toPandas()
    return dense(task.side, made["a"], made["b"], made["count"])


run(start, release)
