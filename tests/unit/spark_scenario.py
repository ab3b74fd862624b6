"""The cubes of some files by DuckDB and by an engine that speaks Spark Connect, under one key."""

from __future__ import annotations

import secrets
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from one_engine import one_engine
from source_scenario import Files, spec, written

from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.engines import spark
from dphist_pipeline.releasing._plans import plan_of

KEY = bytes(range(100, 132))


def counted_by_both(
    address: str, files: Files, at: str = "all", vouched: bool = False, **changes: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The cubes of some files by DuckDB and by an engine, under one key.

    Args:
        address: of the engine.
        files: by name.
        at: the period.
        vouched: whether text is counted though the engine would fail on some.
        changes: of the spec.
    """
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(secrets, "token_bytes", lambda size: KEY[:size]):
        base, run = written(Path(folder) / "office", files), Path(folder) / "run"
        run.mkdir()
        declared = spec(base, **changes)
        plan = plan_of(declared, declared.period_named(at))
        with one_engine():
            here = read_and_count(plan, run)
        own = mock.patch.object(spark, "SPARK", mock.Mock(fullmatch=lambda version: True) if vouched else spark.SPARK)
        with own:
            there: NDArray[np.int64] = np.load(spark.write_cube(plan, address, run))
        assert [path.name for path in run.rglob("*") if path.is_file()] == ["cube.npy"]
    return here, there
