"""Writes columns of a data frame to a Parquet file; nothing here fails on what a row holds.

Polars writes its own frames, as a stream. Everything else comes as Arrow batches, whose many types become the few types
that reading takes, row by row: a value that has no place there becomes null. Types that serve for nothing stay as they
are, for the reading to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from dphist_pipeline.sql_files import identifier

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

Names = Sequence[str]

BATCH_ROWS = 1 << 20
TO_MICROSECONDS = {"s": 1_000_000, "ms": 1_000}  # how many microseconds
LARGEST_TIME = (1 << 63) - 1
# Below this, every whole number has a float of its own.
WHOLE_FLOATS = 1 << 53
# DuckDB hands these over as decimals of 38 digits, which hold fewer numbers.
WIDE = ("HUGEINT", "UHUGEINT")


@dataclass(frozen=True)
class OpenFrame:
    """A data frame whose rows nobody has asked for yet.

    `names`: of its columns; the engine may look at a plan for that, and computes no row. `write`: into a new Parquet
    file.
    """

    names: Callable[[], Sequence[object]]
    write: Callable[[Names, Path], None]


def open_frame(frame: Any, categories: Collection[str] = ()) -> OpenFrame | None:
    """Opens a data frame of Polars or pandas, a DuckDB relation, or what Narwhals knows or gives Arrow; else None.

    `categories` are columns whose values are compared as text.
    """
    import narwhals as nw
    from narwhals import dependencies as known

    native = nw.to_native(frame, pass_through=True)
    if known.is_polars_dataframe(native) or known.is_polars_lazyframe(native):
        return _of_polars(native.lazy())
    if known.is_duckdb_relation(native):
        return _of_relation(native)
    if known.is_pandas_dataframe(native):
        return _of_pandas(native, categories)
    opened = nw.from_native(native, pass_through=True)
    if known.is_pandas_like_dataframe(native):
        return _of_pandas(opened.to_pandas(), categories)
    if isinstance(opened, nw.LazyFrame):
        return _of_lazy(opened)
    if not hasattr(native, "__arrow_c_stream__"):
        return None
    reader = pa.RecordBatchReader.from_stream(native)
    return OpenFrame(lambda: reader.schema.names, lambda names, file: _write(reader, names, file))


def _of_polars(frame: pl.LazyFrame) -> OpenFrame:
    import polars as pl
    from polars import selectors

    def plain(name: str, kind: pl.DataType) -> pl.Expr:
        column = selectors.by_name(name).as_expr()  # `pl.col` would take some names for patterns
        if kind in (pl.Int128, pl.UInt128):
            return column.cast(pl.String)
        if kind == pl.Float16:
            return column.cast(pl.Float32)
        if isinstance(kind, pl.Datetime) and kind.time_unit == "ms":
            most = LARGEST_TIME // TO_MICROSECONDS["ms"]
            possible = column.to_physical().is_between(-most, most)
            return pl.when(possible).then(column).cast(pl.Datetime("us", kind.time_zone)).alias(name)
        return column

    def write(names: Names, file: Path) -> None:
        kinds = frame.collect_schema()
        chosen = frame.select([plain(name, kinds[name]) for name in names])
        chosen.sink_parquet(file, compression="lz4", statistics=False)

    return OpenFrame(lambda: frame.collect_schema().names(), write)


def _of_relation(relation: duckdb.DuckDBPyRelation) -> OpenFrame:
    def write(names: Names, file: Path) -> None:
        kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
        columns = [
            f"CAST({column} AS VARCHAR) AS {column}" if kinds[name] in WIDE else column
            for name in names
            for column in [identifier(name)]
        ]
        _write(relation.project(", ".join(columns)).to_arrow_reader(BATCH_ROWS), names, file)

    return OpenFrame(lambda: relation.columns, write)


def _of_lazy(frame: Any) -> OpenFrame:
    """Of Narwhals, lazy: its engine computes the chosen columns at once, as one table in memory."""

    def write(names: Names, file: Path) -> None:
        _write(frame.select(*names).collect("pyarrow").to_native().to_reader(BATCH_ROWS), names, file)

    return OpenFrame(lambda: frame.collect_schema().names(), write)


def _of_pandas(frame: pd.DataFrame, categories: Collection[str]) -> OpenFrame:
    def write(names: Names, file: Path) -> None:
        columns = [_from_pandas(frame[name], name in categories) for name in names]
        _write(pa.Table.from_arrays(columns, list(names)).to_reader(BATCH_ROWS), names, file)

    return OpenFrame(lambda: list(frame.columns), write)


def _from_pandas(column: Any, category: bool) -> pa.Array | pa.ChunkedArray:
    """A column as Arrow, of a kind that rows of other people do not change.

    pandas makes whole numbers floats, and truth values objects, as soon as one is missing. So a float that is compared
    as text is written as a whole number where it is one, and every object as its own text. One more record may give the
    categories of a column another type, too, so they are their own text whatever that is.
    """
    if hasattr(column, "sparse"):
        column = column.sparse.to_dense()
    if hasattr(column, "cat"):  # of dtype `category`
        categories = pa.array([_text(value) for value in column.cat.categories], pa.large_string())
        return categories.take(pa.array(column.cat.codes, mask=column.isna()))
    if column.dtype == object or column.dtype.kind == "c" or getattr(column.dtype, "storage", "") == "python":
        return pa.array([_text(value) for value in column], pa.large_string())
    values = pa.array(column, from_pandas=True)
    if not (category and pa.types.is_floating(values.type)):
        return values
    doubles = values.cast(pa.float64())
    whole = pc.and_(pc.equal(doubles, pc.trunc(doubles)), pc.less(pc.abs(doubles), WHOLE_FLOATS))
    numbers = pc.if_else(whole, doubles, None).cast(pa.int64())
    return pc.coalesce(numbers.cast(pa.string()), values.cast(pa.string()))


def _text(value: Any) -> bytes | None:
    """An object of a pandas column as text; what is no Unicode becomes `?`, as undecodable bytes of files do."""
    try:
        if value is None or value != value:
            return None
        if type(value).__name__ in ("bool", "bool_"):
            return b"true" if value else b"false"
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace").replace("\ufffd", "?").encode()
        if isinstance(value, np.complexfloating | complex) and value.imag == 0:
            value = value.real  # one complex number makes all other numbers of a column complex
        if isinstance(value, float | np.floating) and abs(number := float(value)) < WHOLE_FLOATS:
            value = int(number) if number.is_integer() else value
        return str(value).encode("utf-8", "replace")
    except Exception:  # of any object's own code, `pandas.NA` among them
        return None


def _write(reader: pa.RecordBatchReader, names: Names, file: Path) -> None:
    kinds = {name: _plain_type(reader.schema.field(name).type) for name in names}
    schema = pa.schema(list(kinds.items()))
    with parquet.ParquetWriter(file, schema, write_statistics=False, store_schema=False) as writer:
        for batch in reader:
            columns = [_plain(batch.column(name), kind) for name, kind in kinds.items()]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """The type as which reading knows the values of a type; itself where reading has to refuse it."""
    is_type = pa.types
    if is_type.is_dictionary(kind) or is_type.is_run_end_encoded(kind):
        return _plain_type(kind.value_type)
    if is_type.is_timestamp(kind) and kind.unit in TO_MICROSECONDS:
        return pa.timestamp("us", kind.tz)
    if is_type.is_decimal32(kind) or is_type.is_decimal64(kind):
        return pa.decimal128(kind.precision, kind.scale)
    plain = {pa.string_view(): pa.string(), pa.float16(): pa.float32(), pa.date64(): pa.date32()}
    return pa.string() if is_type.is_decimal256(kind) else plain.get(kind, kind)


def _plain(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values as a plain type; null where they have no place in it."""
    if pa.types.is_dictionary(values.type):
        return _plain(values.dictionary_decode(), kind)
    if pa.types.is_run_end_encoded(values.type):
        return _plain(pc.run_end_decode(values), kind)
    if pa.types.is_timestamp(values.type) and values.type.unit in TO_MICROSECONDS:
        most = LARGEST_TIME // TO_MICROSECONDS[values.type.unit]
        numbers = values.cast(pa.int64())
        possible = pc.and_(pc.less_equal(numbers, most), pc.greater_equal(numbers, -most))
        values = pc.if_else(possible, values, None)
    return values if values.type == kind else values.cast(kind, safe=False)
