"""Puts public or synthetic records into the cells of a declared grid."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dphist_pipeline.applications.whole_release import application_refused
from dphist_pipeline.domain import Axis, BinnedAxis, CalendarAxis
from dphist_pipeline.errors import did_you_mean

NOWHERE = -1
Places = NDArray[np.int64]


def read_public(file: Path) -> pa.Table:
    """The rows of a public file.

    Args:
        file: CSV with a header, whose columns stay texts, or Parquet.

    Raises:
        Refused: another ending, or the file cannot be read.
    """
    reading = {".csv": "read_csv($file, all_varchar := true, header := true)", ".parquet": "read_parquet($file)"}
    if file.suffix.lower() not in reading:
        raise application_refused(f"the public records {file.name} must be a file that ends in .csv or .parquet")
    try:
        with duckdb.connect() as connection:
            query = f"FROM {reading[file.suffix.lower()]}"
            return connection.sql(query, params={"file": str(file)}).to_arrow_table()
    except duckdb.Error as error:
        problem = str(error).splitlines()[0]
    raise application_refused(f"the public records {file.name} cannot be read: {problem}")


def places_of(axes: Sequence[Axis], records: Any) -> list[Places]:
    """The position of each record along some axes, by the rules by which a release counts.

    Args:
        records: an Arrow table, or a frame of any engine that Arrow reads; a column is named as the axis, or as the
            column of the source.

    Returns:
        For each axis int64, shape (records,); `other` or `NOWHERE` for values that no bin holds.

    Raises:
        Refused: a column is missing.
    """
    table = records if isinstance(records, pa.Table | pa.RecordBatch) else pa.table(records)
    return [_places(axis, _column(table, axis)) for axis in axes]


def _column(table: Any, axis: Axis) -> Any:
    for name in (axis.name, axis.column):
        if name in table.column_names:
            column = table.column(name)
            return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    hint = did_you_mean(axis.name, table.column_names)
    raise application_refused(f"the records have no column '{axis.name}'. {hint}")


def _places(axis: Axis, values: Any) -> Places:
    nowhere = NOWHERE if axis.other_cell is None else axis.other_cell
    if not isinstance(axis, BinnedAxis):
        found = pc.index_in(_as_text(values), pa.array(axis.values, pa.string()))
        return np.asarray(pc.fill_null(found, nowhere).to_numpy(zero_copy_only=False), dtype=np.int64)
    numbers = _numbers(values, isinstance(axis, CalendarAxis))
    after = np.searchsorted(np.array(axis.edges), numbers, side="right" if axis.closed == "left" else "left")
    inside = (after > 0 if not axis.below else True) & (after < len(axis.edges) if not axis.above else True)
    return np.where(inside & np.isfinite(numbers), after - 1 + axis.below, nowhere).astype(np.int64)


def _as_text(values: Any) -> Any:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return values if pa.types.is_string(values.type) else values.cast(pa.string())


def _numbers(values: Any, days: bool) -> NDArray[np.float64]:
    """Values as doubles, days as numbers of days; nan for null and what does not parse."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        kind = "DATE" if days else "DOUBLE"
        with duckdb.connect() as connection:
            connection.register("given", pa.table({"value": values}))
            values = connection.sql(f"SELECT TRY_CAST(value AS {kind}) AS value FROM given").to_arrow_table()["value"]
    if days:
        values = values.cast(pa.date32()).cast(pa.int32())
    numbers: NDArray[np.float64] = values.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers
