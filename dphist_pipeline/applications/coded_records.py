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
from dphist_pipeline.base.domain import Axis, BandedAxis, BinnedAxis, ByText, CalendarAxis, CategoricalAxis
from dphist_pipeline.base.tidying import tidy
from dphist_pipeline.errors import did_you_mean, first_of

NOWHERE = -1
MOST_NAMED = 3
Places = NDArray[np.int64]


def read_public(file: Path) -> pa.Table:
    """The rows of a public file: CSV with a header, whose columns stay texts, or Parquet."""
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

    Of bands, a column holds the source's texts, or numbers as a release publishes them.

    Args:
        records: an Arrow table, or a frame of any engine that Arrow reads; a column is named as the axis, or as the
            column of the source.

    Returns:
        For each axis int64, shape (records,); `other` or `NOWHERE` for values that no bin holds.

    Raises:
        Refused: a column is missing, or no text of it is a band or a number.
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
    if isinstance(axis, CategoricalAxis):
        return _places_of_texts(axis, values, nowhere)
    assert isinstance(axis, BinnedAxis), "an amount has no whole counts"
    if isinstance(axis, BandedAxis) and _holds_text(values):
        places = _places_of_texts(axis, values, NOWHERE)
        numbers = _numbers(_as_text(values), days=False)
        if values.null_count < len(values) and (places == NOWHERE).all() and np.isnan(numbers).all():
            texts = first_of([repr(text) for text in axis.bands], MOST_NAMED)
            raise application_refused(
                f"no record has a band of axis '{axis.name}': its column holds texts, none of which is a number or "
                f"one of {texts}. Write bands as the source of the release does, or as numbers"
            )
        return np.where(places == NOWHERE, _places_of_numbers(axis, numbers, nowhere), places)
    return _places_of_numbers(axis, _numbers(values, isinstance(axis, CalendarAxis)), nowhere)


def _places_of_texts(axis: ByText, values: Any, nowhere: int) -> Places:
    """The positions of texts after `tidy`, each text looked up once."""
    encoded = _as_text(values).dictionary_encode()
    texts = axis.texts
    places = [texts.get(tidy(text, axis.tidy), nowhere) for text in encoded.dictionary.to_pylist()]
    which = pc.fill_null(encoded.indices, len(places)).to_numpy(zero_copy_only=False)
    positions: Places = np.array([*places, nowhere], dtype=np.int64)[which]
    return positions


def _places_of_numbers(axis: BinnedAxis, numbers: NDArray[np.float64], nowhere: int) -> Places:
    after = np.searchsorted(np.array(axis.edges), numbers, side="right" if axis.closed == "left" else "left")
    inside = (after > 0 if not axis.below else True) & (after < len(axis.edges) if not axis.above else True)
    return np.where(inside & np.isfinite(numbers), after - 1 + axis.below, nowhere).astype(np.int64)


def _holds_text(values: Any) -> bool:
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


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
