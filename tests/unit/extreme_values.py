"""The extremes of every type, in files of every layout, under specs that use one column in two ways."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused
from dphist_pipeline.releasing._frame_files import open_frame
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from examples import mostly_soaked

COPIES = 3
LOWEST, HIGHEST = -(2**63), 2**63 - 1
# Around -infinity, the first possible, before Christ, 1970, in the period, of the year 9999, the last ones, infinity.
_BEFORE_CHRIST, _IN_PERIOD, _YEAR_9999 = -719_565 - 400, 20_459, 2_932_896
_A_DAY = 86_400_000_000
_DAYS = [-(2**31), -(2**31) + 1, -(2**31) + 2, _BEFORE_CHRIST, 0, _IN_PERIOD, _YEAR_9999, 2**31 - 2, 2**31 - 1]
_MOMENTS = [
    *(LOWEST, LOWEST + 1, LOWEST + 2, LOWEST + 10**6, LOWEST + 300 * _A_DAY, _BEFORE_CHRIST * _A_DAY, 0),
    *(_IN_PERIOD * _A_DAY + 1, _YEAR_9999 * _A_DAY, HIGHEST - _A_DAY, HIGHEST - 1, HIGHEST),
]
_NANOSECONDS = [LOWEST, LOWEST + 1, LOWEST + 2, 0, _IN_PERIOD * _A_DAY * 1000 + 1, HIGHEST - 1, HIGHEST]
_FLOATS = [np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, 5.0, 1e-45, 3.4e38, -3.4e38]
_TEXTS = [
    *("", " ", "5", "surgery", "?", "nan", "-inf", "Infinity", "1e999", "-1e999", "1e-999", "9" * 400, "9" * 5000),
    *("0x10", "1_000", "2026-01-06", "2026-01-06 12:00:00+05", "infinity", "-infinity", "0044-03-15 (BC)"),
    *("9999-12-31 23:59:59.999999", "294247-01-10 04:00:54.775807", "290309-12-21 (BC) 00:00:00", "2026-01-06 24:00"),
    *("290309-12-22 (BC) 00:00:00+15", "5881580-07-10", "5877642-06-25 (BC)", "true", "İß e\u0301 \U0001f469"),
    "x" * ((1 << 20) + 1),
]


def _whole(kind: pa.DataType) -> pa.Array:
    ends = np.iinfo(kind.to_pandas_dtype())
    return pa.array([ends.min, ends.min + 1, 0, 5, ends.max - 1, ends.max, None], kind)


def _viewed(numbers: list[int], kind: pa.DataType) -> pa.Array:
    return pa.array([*numbers, None], pa.int32() if kind == pa.date32() else pa.int64()).view(kind)


def _decimals(digits: int, scale: int) -> pa.Array:
    largest = f"{'9' * (digits - scale)}.{'9' * scale}".rstrip(".") if digits > scale else f"0.{'9' * scale}"
    kind = pa.decimal128(digits, scale)
    return pa.array([largest, f"-{largest}", "0", "5" if digits > scale else "0.5", None]).cast(kind)


KINDS: dict[str, pa.Array] = {
    **{str(kind): _whole(kind) for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(kind): _whole(kind) for kind in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "float": pa.array([*_FLOATS, None], pa.float32()),
    "double": pa.array([*_FLOATS, 5e-324, 1.797e308, -1.797e308, 1e19, None], pa.float64()),
    **{
        f"decimal {digits}, {scale}": _decimals(digits, scale)
        for digits, scale in [(4, 2), (18, 0), (38, 10), (38, 38)]
    },
    "bool": pa.array([True, False, None]),
    "date": _viewed(_DAYS, pa.date32()),
    "time": _viewed(_MOMENTS, pa.timestamp("us")),
    "zoned time": _viewed(_MOMENTS, pa.timestamp("us", "UTC")),
    "nanoseconds": _viewed(_NANOSECONDS, pa.timestamp("ns")),
    "zoned nanoseconds": _viewed(_NANOSECONDS, pa.timestamp("ns", "UTC")),
    "text": pa.array([*_TEXTS, "a\0b", None], pa.string()),
    "bytes": pa.array([b"\xff\xfe", b"\xed\xa0\x80", b"5\xc3", b"5", None], pa.binary()).view(pa.string()),
    "uuid": pa.ExtensionArray.from_storage(
        pa.uuid(), pa.array([bytes(16), b"\xff" * 16, b"\x80" + bytes(15), None], pa.binary(16))
    ),
    "nothing": pa.nulls(3),
}

# Another width of the same numbers, of which `make soak` tries the others.
ALIKE = {"int8", "int16", "uint8", "uint16", "uint32", "float", "decimal 18, 0"}
SOME_KINDS = mostly_soaked(KINDS, [place for place, kind in enumerate(KINDS) if kind not in ALIKE])
USES = ("period", "calendar", "numeric", "category", "unit", "outcome")
PAIRS = tuple(combinations(USES, 2))
AXES: dict[str, dict[str, Any]] = {
    "calendar": {"column": "v", "calendar": "day", "start": "2026-01-05", "stop": "2026-01-12", "name": "days"},
    "numeric": {"column": "v", "start": 0, "stop": 30, "width": 3, "above": True, "below": True, "name": "numbers"},
    "category": {"column": "v", "values": ["5", "surgery", "true", "2026-01-06"], "name": "words"},
    "outcome": {"column": "made", "values": ["none", "5", "2026", "2"], "name": "outcomes"},
}
OUTCOMES = (
    "CASE WHEN TRY_CAST(v AS TIMESTAMP) IS NULL THEN coalesce(TRY_CAST(v AS VARCHAR), 'none') "
    "ELSE TRY_CAST(year(TRY_CAST(v AS TIMESTAMP)) AS VARCHAR) END",
    "TRY_CAST(length(TRY_CAST(date_trunc('week', TRY_CAST(v AS TIMESTAMPTZ)) AS VARCHAR)) AS VARCHAR)",
    "TRY_CAST(round(abs(TRY_CAST(v AS DOUBLE)) * 2 - 5, 2) AS VARCHAR)",
    "concat(TRY_CAST(TRY_CAST(v AS DATE) AS VARCHAR), lower(left(TRY_CAST(v AS VARCHAR), 3)))",
)
BASE: dict[str, Any] = {
    **{"release": "extremes", "privacy_unit": "person", "max_rows_per_unit": 1000, "neighbours": "add_remove"},
    **{"epsilon": 1, "account": "tests", "mechanism": "geometric", "time_zone": "America/Sao_Paulo"},
}


@dataclass(frozen=True)
class Layout:
    """How records are stored: the way there, and of a Parquet file its encoding."""

    path: str = "parquet"
    dictionary: bool = True
    statistics: bool = True
    rows_a_group: int = 1000


LAYOUTS = (
    *(Layout("parquet", *chosen) for chosen in product((True, False), (True, False), (1000, 4))),
    *(Layout("frame"), Layout("duckdb"), Layout("csv")),
)


def fits(kind: str, layout: Layout) -> bool:
    """Whether values of a kind can be stored so: CSV holds text alone, a database no text that is not UTF-8."""
    return {"csv": kind == "text", "duckdb": kind not in ("bytes", "nothing")}.get(layout.path, True)


def records(values: pa.Array, copies: int) -> pa.Table:
    """Rows of each value; DuckDB works on a dictionary where it is shorter than its column."""
    values = pa.concat_arrays([values] * copies)
    rows = len(values)
    plain = {"person": [f"p{row}" for row in range(rows)], "age": pa.array([5.0] * rows, pa.float64())}
    return pa.table({**plain, "v": values})


def ordinary(values: pa.Array) -> pa.Array:
    """Values of the same type without extremes: nulls."""
    return pa.nulls(len(values), values.type)


def spec_of(source: str, uses: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a spec that uses the column `v` so."""
    axes = [{**AXES[use], "other": True} for use in uses if use in AXES]
    changes: dict[str, Any] = {"source": source, "axes": axes or [{"column": "age", "start": 0, "stop": 9, "width": 3}]}
    if "period" in uses:
        changes |= {"period": "week", "period_column": "v"}
    if "unit" in uses:
        changes["privacy_unit"] = "v"
    if "outcome" in uses:
        changes["source_sql"] = "query.sql"
    if source.endswith("duckdb"):
        changes["source_table"] = "visits"
    return BASE | changes


def stored(folder: Path, table: pa.Table, layout: Layout) -> str:
    """Writes a table as a layout says, and gives the source's name."""
    written: Mapping[str, Any] = {
        **{"use_dictionary": layout.dictionary, "write_statistics": layout.statistics},
        "row_group_size": layout.rows_a_group,
    }
    if layout.path == "frame":
        opened = open_frame(table, ("v",))
        assert opened is not None
        opened.write(table.column_names, folder / "seen.parquet")
        return "seen.parquet"
    if layout.path == "csv":
        lines = [",".join("" if value is None else str(value) for value in row.values()) for row in table.to_pylist()]
        (folder / "seen.csv").write_bytes("\n".join([",".join(table.column_names), *lines, ""]).encode())
        return "seen.csv"
    pq.write_table(table, folder / "seen.parquet", **written)
    if layout.path == "duckdb":
        with duckdb.connect(str(folder / "seen.duckdb")) as made:
            made.execute(f"CREATE TABLE visits AS FROM read_parquet('{folder / 'seen.parquet'}')")
        return "seen.duckdb"
    return "seen.parquet"


def counted(
    values: pa.Array, uses: tuple[str, ...], layout: Layout, outcome: str = OUTCOMES[0], copies: int = COPIES
) -> list[int] | str:
    """The cube of some rows of each value; or what refuses the columns."""
    with tempfile.TemporaryDirectory() as made:
        folder, run = Path(made), Path(made, "run")
        run.mkdir()
        (folder / "query.sql").write_text(f"SELECT *, {outcome} AS made FROM source")
        fields = spec_of(stored(folder, records(values, copies), layout), uses)
        spec = ReleaseSpec.from_attributes(fields, folder)
        try:
            cube = read_and_count(plan_of(spec, spec.period_named("2026-01-05" if "period" in uses else "all")), run)
        except (ColumnRefused, SourceRefused) as refused:
            return str(refused)
    return [int(count) for count in cube]


def counted_alone(values: pa.Array, uses: tuple[str, ...], layout: Layout, outcome: str = OUTCOMES[0]) -> list[int]:
    """The sum of the cubes of each row alone."""
    cubes = [counted(values[place : place + 1], uses, layout, outcome, 1) for place in range(len(values))]
    return [int(total) * COPIES for total in np.sum(np.array(cubes), axis=0)]
