"""Writes columns of a data frame to a Parquet file; nothing here fails on what a row holds.

Polars writes its own frames, as a stream. Everything else comes as Arrow batches, whose many types become the few types
that reading takes, row by row: a value that has no place there becomes null. Types that serve for nothing stay as they
are, for the reading to refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

from dphist_pipeline.base.declared_numbers import microseconds, plain_number
from dphist_pipeline.base.sql_files import identifier

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl

Names = Sequence[str]

BATCH_ROWS = 1 << 20
TO_MICROSECONDS = {"s": 1_000_000, "ms": 1_000}  # how many microseconds
LARGEST_TIME = (1 << 63) - 1
A_DAY = 86_400_000_000  # microseconds
MOST_DAYS = LARGEST_TIME // A_DAY - LARGEST_TIME // 1_000 // A_DAY - 1  # beside all nanoseconds that an interval has
# Below this, every whole number has a float of its own.
WHOLE_FLOATS = 1 << 53
LARGEST_DECIMAL = 100  # digits of a decimal object that is compared as a number
# DuckDB hands these over as decimals of 38 digits, which hold fewer numbers.
WIDE = ("HUGEINT", "UHUGEINT")


@dataclass(frozen=True)
class OpenFrame:
    """A data frame whose rows nobody has asked for yet.

    `names`: of its columns; the engine may look at a plan for that, and computes no row. `write`: into a new Parquet
    file. `objects`: the columns of objects, which are written as text, numbers among them.
    """

    names: Callable[[], Sequence[object]]
    write: Callable[[Names, Path], None]
    objects: Callable[[], Collection[object]] = tuple


def open_frame(frame: Any, categories: Collection[str] = ()) -> OpenFrame | None:
    """Opens a data frame of Polars or pandas, a DuckDB relation, or what Narwhals knows or gives Arrow; else None.

    `categories` are columns whose values are compared with categories.
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

    from dphist_pipeline.base.guarded_polars import guarded_polars

    def plain(name: str, kind: pl.DataType) -> pl.Expr:
        column = selectors.by_name(name).as_expr()  # `pl.col` would take some names for patterns
        if kind in (pl.Int128, pl.UInt128):
            return column.cast(pl.String)
        if isinstance(kind, pl.Datetime) and kind.time_unit == "ms":
            most = LARGEST_TIME // TO_MICROSECONDS["ms"]
            possible = column.to_physical().is_between(-most, most)
            return pl.when(possible).then(column).cast(pl.Datetime("us", kind.time_zone)).alias(name)
        return column

    def write(names: Names, file: Path) -> None:
        kinds = frame.collect_schema()
        chosen = frame.select([plain(name, kinds[name]) for name in names])
        with guarded_polars():
            chosen.sink_parquet(file, compression="lz4", statistics=False)

    return OpenFrame(lambda: frame.collect_schema().names(), write)


def _of_relation(relation: duckdb.DuckDBPyRelation) -> OpenFrame:
    def write(names: Names, file: Path) -> None:
        kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
        columns, lengths = [], dict[str, pa.DataType]()
        for name in names:
            column = identifier(name)
            if kinds[name] in WIDE:
                column = f"CAST({column} AS VARCHAR) AS {column}"
            elif kinds[name] == "INTERVAL":
                # DuckDB gives intervals to Arrow in nanoseconds, which is too much for some.
                column = f"TRY_CAST({microseconds(column)} AS BIGINT) AS {column}"
                lengths[name] = pa.duration("us")
            columns.append(column)
        _write(relation.project(", ".join(columns)).to_arrow_reader(BATCH_ROWS), names, file, lengths)

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

    def objects() -> set[object]:
        return {name for name, kind in frame.dtypes.items() if _is_of_objects(kind)}

    return OpenFrame(lambda: list(frame.columns), write, objects)


def _is_of_objects(kind: Any) -> bool:
    return str(kind) in ("object", "category") or getattr(kind, "storage", "") == "python"


def _from_pandas(column: Any, category: bool) -> pa.Array | pa.ChunkedArray:
    """A column as Arrow, of a kind that rows of other people do not change.

    pandas makes whole numbers floats, and truth values objects, as soon as one is missing. Categories are compared with
    both kinds of numbers alike, and every object is written as its own text; a decimal that is compared with categories
    as text that says the number alone. One more record may give the categories of a column another type, too, so they
    are their own text whatever that is.
    """
    if hasattr(column, "sparse"):
        column = column.sparse.to_dense()
    if hasattr(column, "cat"):  # of dtype `category`
        categories = pa.array([_text(value, category) for value in column.cat.categories], pa.large_string())
        return categories.take(pa.array(column.cat.codes, mask=column.isna()))
    if column.dtype.kind == "c" or _is_of_objects(column.dtype):
        return pa.array([_text(value, category) for value in column], pa.large_string())
    return pa.array(column, from_pandas=True)


def _text(value: Any, category: bool = False) -> bytes | None:
    """An object of a pandas column as text; what is no Unicode becomes `?`, as undecodable bytes of files do."""
    try:
        if value is None or value != value:
            return None
        if category and isinstance(value, Decimal) and abs(value.adjusted()) < LARGEST_DECIMAL:
            return plain_number(value).encode()
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


def _write(
    reader: pa.RecordBatchReader, names: Names, file: Path, known: Mapping[str, pa.DataType] | None = None
) -> None:
    """Writes columns; `known` are types that the reader has not."""
    kinds = {name: _plain_type(reader.schema.field(name).type) for name in names} | dict(known or {})
    schema = pa.schema(list(kinds.items()))
    # The file's Arrow schema tells lengths of time from whole numbers.
    with parquet.ParquetWriter(file, schema, write_statistics=False, store_schema=True) as writer:
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
    if pa.types.is_interval(kind):
        return pa.duration("us")
    plain = {pa.string_view(): pa.string(), pa.date64(): pa.date32()}
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
    if pa.types.is_interval(values.type):
        return _lengths_of_time(values)
    return values if values.type == kind else values.cast(kind, safe=False)


def _lengths_of_time(values: pa.Array) -> pa.Array:
    """Intervals of months, days and nanoseconds, in microseconds; null where there are months, or more than 64 bits."""
    stored = np.dtype([("months", "i4"), ("days", "i4"), ("nanoseconds", "i8")])
    parts = np.frombuffer(values.buffers()[1], stored)[values.offset : values.offset + len(values)]
    days, rest = parts["days"].astype(np.int64), parts["nanoseconds"] // 1_000
    possible = (parts["months"] == 0) & (np.abs(days) <= MOST_DAYS)
    known = possible & values.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(np.where(possible, days, 0) * A_DAY + rest, pa.duration("us"), mask=~known)
