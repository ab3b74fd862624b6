"""Columns built from their bytes are those that Arrow would build."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import by_hand
import numpy as np
import pyarrow as pa
import pytest

from dphist_pipeline.publishing import parquet_tables
from dphist_pipeline.publishing.parquet_tables import batch_of, numbers, texts, texts_at

MISSING = np.array([True, False, False, True, False, False, False, False, True, False])


@pytest.mark.parametrize("kind", [np.float64, np.int64])
@pytest.mark.parametrize("size", [0, 1, 10])
def test_numbers_are_those_that_arrow_makes(kind: Any, size: int) -> None:
    values = (np.arange(2 * size, dtype=kind) * 3)[::2]
    for missing in (None, MISSING[:size], ~MISSING[:size], np.zeros(size, dtype=np.bool_)):
        made = numbers(values, missing)
        made.validate(full=True)
        assert made.equals(pa.array(values, mask=missing))


@pytest.mark.parametrize("values", [[], ["a"], [None], ["", "é漢", None, "a\x00b", "surgery"], [None, None, ""]])
def test_texts_are_those_that_arrow_makes(values: list[str | None]) -> None:
    made = texts(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, pa.string()))


@pytest.mark.parametrize("rows", [0, 1, 5, 12])
def test_few_and_many_taken_texts_are_those_that_arrow_takes(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values, places = ["surgery", None, "é漢", ""], np.arange(rows, dtype=np.intp) * 7 % 4
    for few in (0, rows):
        monkeypatch.setattr(parquet_tables, "FEW", few)
        made = texts_at(values, places)
        made.validate(full=True)
        assert made.equals(pa.array(values, pa.string()).take(pa.array(places)))


def test_rows_are_those_that_arrow_makes() -> None:
    schema = pa.schema([("name", pa.string()), ("whole", pa.int64()), ("real", pa.float64())])
    rows = [{"name": "a", "whole": 2**62, "real": 0.1}, {"name": None, "whole": None, "real": None}]
    for some in (rows, rows[:1], rows[1:]):
        assert batch_of(some, schema).equals(pa.RecordBatch.from_pylist(some, schema=schema))


@pytest.mark.slow
def test_a_publication_waits_for_neither_pandas_nor_altair() -> None:
    """Both are installed here, and each takes as long to import as it takes to publish 200 cells."""
    script = (
        "import sys, tempfile\nfrom pathlib import Path\nfrom by_hand import *\n"
        "publish(Path(tempfile.mkdtemp()), estimate([AGE, WARD]), [AGE, WARD])\n"
        "print([name for name in ('pandas', 'altair') if name in sys.modules])"
    )
    path = os.pathsep.join([str(Path(by_hand.__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=environment)
    assert done.stdout.endswith(b"[]\n")
