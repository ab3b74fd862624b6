"""A folder of files, a spec over them, and the cube that comes of it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.errors import DphistError
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec

SECRET = "Zacharias"
AGE = {"column": "age", "start": 0, "stop": 30, "width": 10, "above": True, "other": True}
WARD = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
Files = Mapping[str, pa.Table | bytes]


def written(base: Path, files: Files) -> Path:
    """Writes tables as Parquet and bytes as they are, below a folder."""
    for name, content in files.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            pq.write_table(content, path)
    return base


def spec(base: Path, **changes: Any) -> ReleaseSpec:
    """A spec over `*.parquet` in a folder; `...` leaves a field out."""
    attributes = {
        **{"release": "admissions", "source": "*.parquet", "privacy_unit": "person", "max_rows_per_unit": 1000},
        **{"neighbours": "add_remove", "epsilon": 1, "account": "tests", "mechanism": "geometric", "axes": [AGE]},
        **changes,
    }
    given = {field: value for field, value in attributes.items() if value is not ...}
    return ReleaseSpec.from_attributes(given, base)


def counted(
    files: Files, at: str = "all", kinds: tuple[str, ...] = (), tries: bool = True, **changes: Any
) -> list[int]:
    """The cube of some files, whose unit was decided to hold some kinds; `tries`: as decisions about queries say."""
    with tempfile.TemporaryDirectory() as folder:
        base, run = written(Path(folder) / "office", files), Path(folder) / "run"
        run.mkdir()
        declared = spec(base, **changes)
        plan = plan_of(declared, declared.period_named(at))
        reading = replace(plan.source.reading, unit_kinds=kinds)
        cube = read_and_count(replace(plan, source=replace(plan.source, reading=reading, tries=tries)), run)
        assert [path.name for path in run.rglob("*") if path.is_file()] == ["cube.npy"]
    assert cube.dtype == np.int64 and cube.shape == (declared.domain.cells,)
    return [int(count) for count in cube]


def refused(files: Files, error: type[DphistError], **changes: Any) -> str:
    """What refuses the files: nothing out of them."""
    with pytest.raises(error) as caught:
        counted(files, **changes)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert SECRET not in str(caught.value) + repr(vars(caught.value))
    return str(caught.value)
