"""Folders called `column=value` whose column is that of the period: those outside of the period are not read."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_scenario import counted, refused

from dphist_pipeline.confidential.reading.source import SourceRefused

PEOPLE = pa.table({"person": [1, 2, 3], "age": [5, 15, 15]})


def without_pages(table: pa.Table) -> bytes:
    """A Parquet file whose columns can be read from its end, and no row of it."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    content = sink.getvalue().to_pybytes()
    end = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    return b"PAR1" + b"\xff" * (end - 4) + content[end:]


@pytest.mark.parametrize(
    ("column", "here", "elsewhere"),
    [
        ("day", "2026-03-02", "2026-03-09"),
        ("at", "2026-03-02 07%3A30", "2026-03-01T23%3A59"),
        ("day", "2026-03-08", "x"),
    ],
)
def test_files_of_folders_outside_the_period_are_not_read(column: str, here: str, elsewhere: str) -> None:
    files = {f"{column}={here}/a.parquet": PEOPLE, f"{column}={elsewhere}/a.parquet": without_pages(PEOPLE)}
    found = {"source": "*/*.parquet", "hive": True, "period": "week", "period_column": column}
    assert counted(files, at="2026-03-02", **found) == [1, 2, 0, 0, 0]
    refused(files, SourceRefused, source="*/*.parquet", hive=True)  # without periods, all are read
