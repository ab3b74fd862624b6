"""A release as Parquet: every digit of every number, and in the file's metadata what the columns are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.answering.exports.rows import Exported


def write(exported: Exported, file: Path, facts: Mapping[str, str] | None = None) -> None:
    """Writes the file; `facts` stand beside the others in its metadata."""
    cells = _concatenated(list(exported.tables()))
    fields = [field.with_metadata({"comment": exported.columns[field.name]}) for field in cells.schema]
    audits = [one.audit for one in exported.publications]
    metadata = {
        "release": str(exported.audit["release"]),
        "columns": json.dumps(exported.columns),
        **{f"{name}s": ", ".join(str(audit[name]) for audit in audits) for name in ("period", "revision")},
        **(facts or {}),
    }
    pq.write_table(cells.cast(pa.schema(fields, metadata=metadata)), file, compression="zstd", version="2.6")


def _concatenated(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables as one; columns that differ in type, because a revision has other axes, become text."""
    kinds: dict[str, set[pa.DataType]] = {}
    for field in (field for table in tables for field in table.schema):
        if field.type != pa.null():
            kinds.setdefault(field.name, set()).add(field.type)
    types = {name: types.pop() if len(types) == 1 else pa.string() for name, types in kinds.items()}
    return pa.concat_tables(
        table.cast(pa.schema([field.with_type(types.get(field.name, pa.string())) for field in table.schema]))
        for table in tables
    )
