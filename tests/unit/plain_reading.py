"""What records mean, read plainly with Python's Decimal and datetime, and every way in which they reach a release.

Whoever adds a kind of column gives its Arrow type, a strategy of values, and what a value means; whoever adds a source
gives a function from a table to an outcome. An outcome is the cube, or the refusal that comes before any charge.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st
from source_scenario import spec

from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.reading.source import ColumnRefused
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.frames import as_file

Number = Decimal | Fraction
Outcome = list[int] | str
Axis = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of column: its Arrow type, the values of it that are tried, and the number that a value is, or none."""

    type: pa.DataType
    values: st.SearchStrategy[Any]
    means: Callable[[Any], Number | None]


def _short(width: type[np.floating]) -> Callable[[Any], Decimal | None]:
    def means(value: float) -> Decimal | None:
        number = Decimal(str(width(value)))
        return None if number.is_nan() else number

    return means


def _floats(width: type[np.floating]) -> st.SearchStrategy[Any]:
    """Floats near edges at tenths, and far from all."""
    near = st.integers(0, 500).map(lambda tenths: width(tenths / 10))
    beside = st.tuples(near, st.sampled_from([-np.inf, np.inf])).map(lambda pair: np.nextafter(*map(width, pair)))
    odd = st.sampled_from([width(odd) for odd in (-0.0, np.nan, np.inf, -np.inf, np.finfo(width).max, 1.1, 1 / 3)])
    return st.one_of(near, beside, odd)


def _decimals(scale: int) -> st.SearchStrategy[Any]:
    least = Decimal(1).scaleb(-scale)
    near = st.integers(0, 500).map(lambda tenths: Decimal(tenths) / 10)
    return st.tuples(near, st.integers(-1, 1)).map(lambda pair: (pair[0] + pair[1] * least).quantize(least))


def _ticks(a_second: int) -> st.SearchStrategy[int]:
    """Lengths of time near whole tenths of a day."""
    day = 86_400 * a_second
    return st.tuples(st.integers(0, 500), st.integers(-1, 1)).map(lambda pair: pair[0] * day // 10 + pair[1])


NUMBERS: dict[str, Kind] = {
    "float16": Kind(pa.float16(), _floats(np.float16), _short(np.float16)),
    "float32": Kind(pa.float32(), _floats(np.float32), _short(np.float32)),
    "float64": Kind(pa.float64(), _floats(np.float64), _short(np.float64)),
    "decimal": Kind(pa.decimal128(9, 2), _decimals(2), lambda value: value),
    "long decimal": Kind(pa.decimal128(38, 20), _decimals(20), lambda value: value),
    "narrow": Kind(pa.int8(), st.integers(-128, 127), Decimal),
    "whole": Kind(pa.int64(), st.one_of(st.integers(-9, 60), st.integers(-(2**53), 2**53)), Decimal),
}


def _length(unit: str, a_second: int) -> Kind:
    """A length of time, which means days; DuckDB writes milliseconds to Parquet, so there are no values between."""
    coarse = min(a_second, 10**3)
    values = _ticks(coarse).map(lambda ticks: ticks * (a_second // coarse))
    return Kind(pa.duration(unit), values, lambda ticks: Fraction(ticks, 86_400 * a_second))


LENGTHS = {unit: _length(unit, 10**power) for unit, power in {"s": 0, "ms": 3, "us": 6, "ns": 9}.items()}


def edges() -> st.SearchStrategy[list[str]]:
    """Rising edges at tenths, as a spec writes them."""
    tenths = st.lists(st.integers(0, 500), min_size=2, max_size=12, unique=True)
    return tenths.map(lambda some: [str(Decimal(tenth) / 10) for tenth in sorted(some)])


def binned_axes(**more: Any) -> st.SearchStrategy[Axis]:
    """Axes with and without equal widths, closed at either end."""
    even = st.sampled_from([{"start": 0, "stop": 50, "width": "0.1"}, {"start": "0.1", "stop": "2.1", "width": "0.2"}])
    bins = st.one_of(even, edges().map(lambda some: {"edges": some}))
    ends = st.fixed_dictionaries({"closed": st.sampled_from(["left", "right"]), "below": st.booleans()})
    fixed = {"column": "value", "above": True, "other": True, **more}
    return st.tuples(bins, ends).map(lambda parts: {**fixed, **parts[0], **parts[1]})


def binned(axis: Axis, numbers: Sequence[Number | None]) -> list[int]:
    """The cube along an axis of numbers by the plainest reading."""
    ends = [Fraction(edge) for edge in axis.get("edges", ())]
    if not ends:
        start, stop, width = (Fraction(axis[name]) for name in ("start", "stop", "width"))
        ends = [start + width * number for number in range(int((stop - start) / width) + 1)]
    below, bins = axis["below"], len(ends) - 1
    cube = [0] * (below + bins + 2)
    for number in numbers:
        if number is None:
            cube[-1] += 1
            continue
        if isinstance(number, Decimal) and number.is_infinite():
            place = len(ends) if number > 0 else 0
        else:
            place = (bisect_right if axis["closed"] == "left" else bisect_left)(ends, Fraction(number))
        cell = (0 if below else -1) if place == 0 else below + place - 1
        cube[cell] += 1
    return cube


def categories(values: Sequence[str], numbers: Sequence[Number | None]) -> list[int]:
    """The cube along an axis of categories that are numbers, with `other`."""
    places = {Decimal(text): place for place, text in enumerate(values)}
    cube = [0] * (len(values) + 1)
    for number in numbers:
        cube[len(values) if number is None else places.get(number, len(values))] += 1  # type: ignore[call-overload]
    return cube


def counted(folder: Path, axis: Axis, frame: Any = None, **fields: Any) -> Outcome:
    declared = spec(folder, axes=[axis], privacy_unit="row", max_rows_per_unit=1, **fields)
    run = folder / "run"
    run.mkdir()
    try:
        with as_file(plan_of(declared, declared.period_named("all")), frame, run) as plan:
            return [int(count) for count in read_and_count(plan, run)]
    except ColumnRefused as refused:
        return str(refused)


def _file(write: Callable[[pa.Table, Path], object]) -> Callable[[pa.Table, Axis], Outcome]:
    def count(table: pa.Table, axis: Axis) -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            write(table, Path(folder) / "rows.parquet")
            return counted(Path(folder), axis)

    return count


def _frame(make: Callable[[pa.Table], object]) -> Callable[[pa.Table, Axis], Outcome]:
    def count(table: pa.Table, axis: Axis) -> Outcome:
        with tempfile.TemporaryDirectory() as folder:
            return counted(Path(folder), axis, make(table), source="frame:rows")

    return count


def _database(table: pa.Table, axis: Axis) -> Outcome:
    with tempfile.TemporaryDirectory() as folder:
        with duckdb.connect(str(Path(folder) / "rows.duckdb")) as connection:
            connection.from_arrow(table).create("rows")
        return counted(Path(folder), axis, source="rows.duckdb", source_table="rows")


def _duckdb_file(table: pa.Table, file: Path) -> None:
    with duckdb.connect() as connection:
        connection.from_arrow(table).write_parquet(str(file))


# Of each library its own file and its own frame.
SOURCES: dict[str, Callable[[pa.Table, Axis], Outcome]] = {
    "arrow file": _file(pq.write_table),
    "polars file": _file(lambda table, file: pl.from_arrow(table).write_parquet(file)),  # type: ignore[union-attr]
    "pandas file": _file(lambda table, file: table.to_pandas().to_parquet(file)),
    "duckdb file": _file(_duckdb_file),
    "database": _database,
    "arrow frame": _frame(lambda table: table),
    "polars frame": _frame(pl.from_arrow),
    "lazy frame": _frame(lambda table: pl.from_arrow(table).lazy()),  # type: ignore[union-attr]
    "pandas frame": _frame(lambda table: table.to_pandas()),
    "duckdb frame": _frame(lambda table: duckdb.connect().from_arrow(table)),
}


def csv(texts: Sequence[str], axis: Axis, **fields: Any) -> Outcome:
    """The cube of a CSV file with one column of texts."""
    with tempfile.TemporaryDirectory() as folder:
        lines = "\n".join(["value;last", *(f"{text};" for text in texts), ""])
        (Path(folder) / "rows.csv").write_text(lines, "utf-8")
        return counted(Path(folder), axis, source="rows.csv", csv_delimiter=";", **fields)
