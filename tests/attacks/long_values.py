"""Files in which one value of every record is long, quickly made; the twin has short values in their place."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.releasing.stages import plan_of
from dphist_pipeline.spec.model import ReleaseSpec

PLAIN = {"person": "p", "age": "15", "ward": "surgery", "note": "n", "day": "2026-03-02"}
AGE = {"column": "age", "start": 0, "stop": 30, "width": 10, "above": True, "other": True}
WARD = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
KB, MB = 1000, 1_000_000


def long_texts(size: int, rows: int, letter: str = "x") -> pa.LargeStringArray:
    """`rows` texts of `size` times the letter."""
    ends = np.arange(rows + 1, dtype=np.int64) * size
    return pa.LargeStringArray.from_buffers(
        rows, pa.py_buffer(ends), pa.py_buffer(np.full(size * rows, ord(letter), np.uint8))
    )


def parquet(path: Path, column: str, size: int, groups: int = 3, rows: int = 1) -> Path:
    """Row groups of `rows` records with one long value each."""
    columns: dict[str, Any] = {name: pa.array([text] * rows, pa.large_string()) for name, text in PLAIN.items()}
    table = pa.table(columns | {column: long_texts(size, rows)})
    compact: dict[str, Any] = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
    with pq.ParquetWriter(path, table.schema, **compact) as writer:
        for _ in range(groups):
            writer.write_table(table)
    return path


def csv(path: Path, column: str, size: int, records: int = 3) -> Path:
    """Lines of records with one long value each, and a short record before each of them."""
    plain = ",".join(PLAIN.values())
    line = ",".join("x" * size if name == column else text for name, text in PLAIN.items())
    content = (",".join(PLAIN) + "\n" + f"{plain}\n{line}\n" * records).encode()
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    return path


def database(path: Path, column: str, size: int, records: int = 3) -> Path:
    """A table `visits` of records with one long value each."""
    values = {name: f"'{text}'" for name, text in PLAIN.items()} | {column: f"repeat('x', {size})"}
    with duckdb.connect(str(path), config={"threads": 1, "memory_limit": "4GB"}) as made:
        made.execute(f"CREATE TABLE visits ({', '.join(f'{name} VARCHAR' for name in PLAIN)})")
        for _ in range(records):
            made.execute(f"INSERT INTO visits SELECT {', '.join(values.values())}")
            made.execute("CHECKPOINT")
    return path


def declared(file: Path, **changes: Any) -> ReleaseSpec:
    """A spec over a file."""
    attributes = {
        **{"release": "admissions", "source": file.name, "privacy_unit": "person", "max_rows_per_unit": 1000},
        **{"neighbours": "add_remove", "epsilon": 1, "account": "tests", "mechanism": "geometric"},
        **{"axes": [AGE, WARD], "period": "week", "period_column": "day"},
        **({"source_table": "visits"} if file.suffix == ".duckdb" else {}),
        **changes,
    }
    return ReleaseSpec.from_attributes(
        {key: value for key, value in attributes.items() if value is not ...}, file.parent
    )


def cube(file: Path, **changes: Any) -> list[int]:
    """The cube of a file; nothing else is left in the run's folder."""
    spec = declared(file, **changes)
    with tempfile.TemporaryDirectory() as run:
        plan = plan_of(spec, spec.period_named("2026-03-02" if spec.period_column else "all"))
        counts = read_and_count(plan, Path(run))
        assert [path.name for path in Path(run).rglob("*") if path.is_file()] == ["cube.npy"]
    return [int(count) for count in counts]


def staged_units(file: Path, **changes: Any) -> list[str]:
    """The units of the staged rows."""
    spec = declared(file, **changes)
    with tempfile.TemporaryDirectory() as run:
        rows = stage_rows(plan_of(spec, spec.period_named("2026-03-02" if spec.period_column else "all")), Path(run))
        return pl.read_parquet(rows)["unit"].to_list()
