"""Data frames of every kind give the cube of the same rows in a file, under one key, whatever the rows hold."""

from __future__ import annotations

import secrets
import tempfile
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphist_pipeline as dph
import dphist_pipeline.integrations.polars
from dphist_pipeline.confidential import _bounding as bounding
from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused
from dphist_pipeline.releasing._plans import plan_of
from examples import mostly_soaked

ROWS = 600
KEY = bytes(range(bounding.KEY_BYTES))
SECRET = "Zacharias"
AXES: list[dict[str, Any]] = [
    {"column": "age", "start": 0, "stop": 30, "width": 10, "below": True, "above": True, "other": True},
    {"column": "ward", "values": ["surgery", "medicine", "12"], "other": True},
    {"column": "seen", "calendar": "day", "start": "2026-03-28", "stop": "2026-03-31", "other": True},
]
ZONE = "Europe/Brussels"
FIRST = datetime(2026, 3, 27, 22)  # near the night on which Brussels changes its clocks
TIMES = [FIRST + timedelta(minutes=30 * half_hours) for half_hours in range(0, 180)]
NUMBERS = [0.0, -0.0, 9.999999999999998, 10.0, 30.0, -1e-300, 1e308, float("inf"), float("nan"), None]
PERSONS: dict[str, tuple[list[Any], pa.DataType]] = {
    "text": (["é", "e\u0301", "É", " a", "a\u00a0", "a", "", "\0", "a\0b", "12", "x" * 99, None], pa.string()),
    "dictionary": (["é", "e\u0301", "", "a", "?", None], pa.dictionary(pa.int8(), pa.string())),
    "text view": (["é", "a long name of a person", "", None], pa.string_view()),
    "whole": ([-(2**63), 2**63 - 1, 0, 2**53, 2**53 + 1, None], pa.int64()),
    "unsigned": ([2**64 - 1, 0, 2**63, None], pa.uint64()),
    "float": ([0.0, -0.0, float("nan"), float("inf"), 0.1, 0.1 + 2**-56, None], pa.float64()),
    "decimal": ([Decimal("1.50"), Decimal("-0.01"), None], pa.decimal128(12, 2)),
}
SEEN: dict[str, Callable[[list[datetime | None]], pa.Array]] = {
    "local": lambda times: pa.array(times, pa.timestamp("us")),
    "nanoseconds": lambda times: pa.array(times, pa.timestamp("ns")),
    "zoned": lambda times: pa.array(times, pa.timestamp("us", "America/Sao_Paulo")),
    "zoned nanoseconds": lambda times: pa.array(times, pa.timestamp("ns", "Asia/Kathmandu")),
    "day": lambda times: pa.array([time and time.date() for time in times], pa.date32()),
    "text": lambda times: pa.array([time and f"{time.isoformat()}+05:45" for time in times]),
}
KINDS: dict[str, Callable[[pa.Table], Any]] = {
    "polars": pl.from_arrow,
    "lazy": lambda table: pl.from_arrow(table).lazy(),
    "narwhals": lambda table: nw.from_native(pl.from_arrow(table)).lazy(),
    "pandas": lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
    "arrow": lambda table: table,
    "stream": lambda table: table.to_reader(max_chunksize=7),
    "relation": lambda table: duckdb.connect().from_arrow(table),
}


def hostile(person: str, seen: str, rows: int = ROWS) -> pa.Table:
    """Rows of hostile values; nobody knows which."""
    draws = np.random.default_rng(rows)

    def drawn(values: Sequence[Any]) -> list[Any]:
        return [values[place] for place in draws.integers(0, len(values), rows)]

    persons, kind = PERSONS[person]
    names = pa.array(drawn(persons), pa.string()).dictionary_encode() if person == "dictionary" else None
    return pa.table(
        {
            "age": pa.array(drawn([*NUMBERS, 5.0, 15.0, 25.0]), pa.float64()),
            "person": names if names is not None else pa.array(drawn(persons), kind),
            "junk": pa.array(drawn([[1], None])),
            "ward": pa.array(drawn(["surgery", "Surgery", "medicine", "12", None]), pa.string()).dictionary_encode(),
            "seen": SEEN[seen](drawn([*TIMES, None])),
        }
    )


def by_file(table: pa.Table, **changes: Any) -> list[int]:
    """The cube of a file with these rows, as a release counts it."""
    declared = {
        **{"release": "frames", "source": "rows.parquet", "privacy_unit": "person", "max_rows_per_unit": 2},
        **{"neighbours": "add_remove", "epsilon": 1, "account": "tests", "mechanism": "geometric", "axes": AXES},
        **changes,
    }
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_bytes", lambda size: KEY)
        pq.write_table(table, Path(folder) / "rows.parquet")
        spec = dph.ReleaseSpec.from_attributes(declared, Path(folder))
        return read_and_count(plan_of(spec, spec.period_named("all")), Path(folder)).tolist()


def by_frame(frame: Any, axes: Sequence[Any] = AXES, unit: Any = "person", most: int = 2, **more: Any) -> list[int]:
    """The exact counts behind the measurements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_bytes", lambda size: KEY)
        counts = dph.count_cube(frame, axes, privacy_unit=unit, max_rows_per_unit=most, **more)
        return counts._PrivateCounts__load().tolist()  # type: ignore[attr-defined]


HELD = list(zip(PERSONS, [*SEEN, "nanoseconds"], strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "person", "seen"),
    mostly_soaked([(kind, *held) for kind in KINDS for held in HELD], range(0, len(KINDS) * len(HELD), len(HELD) + 1)),
)
def test_a_frame_gives_the_cube_of_its_file_whatever_it_holds(kind: str, person: str, seen: str) -> None:
    table = hostile(person, seen)
    expected = by_file(table.drop_columns("junk"), time_zone=ZONE, unit_normalise=["trim", "nfc"])
    assert by_frame(KINDS[kind](table), time_zone=ZONE, unit_normalise=["trim", "nfc"]) == expected
    assert sum(expected) > 2


def test_forms_of_names_decide_what_is_one_unit() -> None:
    table = pa.table({"person": ["é", "e\u0301", "É"], "age": [5.0] * 3})
    forms = {(): 3, ("nfc",): 2, ("nfc", "lower"): 1}
    assert {form: sum(by_frame(table, AXES[:1], most=1, unit_normalise=form)) for form in forms} == forms


@pytest.mark.parametrize(("kind", "unit"), [("arrow", "s"), ("arrow", "ms"), ("polars", "ms"), ("relation", "s")])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_coarse_times_are_read_and_impossible_ones_are_in_no_day(kind: str, unit: str, zone: str | None) -> None:
    seconds = int((datetime(2026, 3, 29, 12) - datetime(1970, 1, 1)).total_seconds())
    # In 64 bits, as many microseconds as there are in these wrap around to the time that is on the axis.
    numbers = [seconds, seconds + 2**58, seconds - 2**60, None] if unit == "s" else [seconds * 1000]
    numbers += [] if unit == "s" else [seconds * 1000 + 2**61, seconds * 1000 - 2**62, None]
    table = pa.table({"seen": pa.array(numbers, pa.int64()).view(pa.timestamp(unit, zone))})
    if (kind, zone) == ("relation", "UTC"):
        table = table.slice(0, 1)  # DuckDB itself cannot take the others from Arrow
    assert by_frame(KINDS[kind](table), AXES[2:], "row", 1) == [0, 1, 0, len(table) - 1]


@pytest.mark.slow
def test_types_that_files_cannot_hold_are_their_text() -> None:
    widest = duckdb.connect().sql("SELECT 340282366920938463463374607431768211455::UHUGEINT AS ward")
    assert by_frame(widest, [{"column": "ward", "values": [str(2**128 - 1)]}], "row", 1) == [1]
    wide = duckdb.connect().sql(
        "SELECT unnest([170141183460469231731687303715884105727, 1, 1])::HUGEINT AS person, 5 AS age"
    )
    assert sum(by_frame(wide, AXES[:1], most=1)) == 2
    wider = pl.DataFrame(
        {"person": [2**126, 2**126 + 1, 2**126], "age": [5, 5, 5]}, schema_overrides={"person": pl.Int128}
    )
    assert sum(by_frame(wider, AXES[:1], most=1)) == 2
    halves = pl.DataFrame({"age": [5.0, 15.0]}).cast(pl.Float16)
    assert by_frame(halves, AXES[:1], "row", 1) == [0, 1, 1, 0, 0, 0]
    assert by_frame(pa.table({"age": pa.array([5.0, 15.0], pa.float16())}), AXES[:1], "row", 1) == [0, 1, 1, 0, 0, 0]
    large = pa.array([Decimal(10) ** 60, Decimal(10) ** 60, Decimal(1)], pa.decimal256(70, 0))
    assert sum(by_frame(pa.table({"person": large, "age": [5] * 3}), AXES[:1], most=1)) == 2


@pytest.mark.slow
def test_one_missing_value_in_a_pandas_column_moves_no_other_row() -> None:
    axis = {"column": "ward", "values": ["1", "2", "true", "0.5", "1000000000000000"], "other": True}
    for values in ([1, 2, 10**15], [True, True, True], [0.5, 1.0, 2.0], ["1", "2", "true"]):
        whole = by_frame(pd.DataFrame({"ward": values}), [axis], "row", 1)
        assert whole[-1] == 0 and sum(whole) == 3
        assert by_frame(pd.DataFrame({"ward": [*values, None]}), [axis], "row", 1) == [*whole[:-1], 1]


def test_no_object_in_a_pandas_column_fails() -> None:
    class Stubborn:
        def __str__(self) -> str:
            raise ValueError(SECRET)

        def __eq__(self, other: object) -> bool:
            raise TypeError(SECRET)

    objects = [
        "surgery",
        b"surgery",
        "\ud800",
        b"\xff",
        Stubborn(),
        [1],
        {},
        Decimal("sNaN"),
        pd.NA,
        pd.NaT,
        None,
        12.0,
    ]
    frame = pd.DataFrame({"ward": pd.Series(objects, dtype=object), "person": pd.Series(objects, dtype=object)})
    assert by_frame(frame, AXES[1:2], "row", 1) == [2, 0, 1, 9]
    assert sum(by_frame(frame, AXES[1:2], most=1)) == 4  # surgery, 12.0, [1], {}; `?` may be anybody


CATEGORIES: dict[str, list[Any]] = {
    "whole numbers": [1, 2],
    "small whole numbers": [np.int8(1), np.int8(2)],
    "numbers without a sign": [np.uint64(1), np.uint64(2**63)],
    "floats": [1.0, 2.0],
    "halves": [0.5, 1.5],
    "floats of 32 bits": [np.float32(1), np.float32(0.1)],
    "truth": [True, False],
    "text": ["1", "2"],
    "bytes": [b"1", b"2"],
    "days": [date(2026, 1, 1), date(2026, 1, 2)],
    "times": [datetime(2026, 1, 1), datetime(2026, 1, 2, 3)],
    "times with an offset": [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, 3, tzinfo=UTC)],
    "decimals": [Decimal(1), Decimal("2.5")],
    "UUIDs": [uuid.UUID(int=1), uuid.UUID(int=2)],
}
ODD: list[Any] = [
    *("unknown", 3, 2**70, 0.25, "a\ud800", b"\xff", date(1, 1, 1), datetime(9999, 1, 1), 1j),
    *(datetime(2026, 1, 1, tzinfo=UTC), Decimal("1e80"), Decimal("NaN"), True, (1,), None),
]


def counts_of_categories(values: list[Any]) -> tuple[list[int], list[int]] | None:
    """The counts of a column of dtype `category` as an axis, and as a unit; None if pandas cannot make the column."""
    axis = {"column": "ward", "values": ["1", "2", "true", "0.5", "2026-01-01"], "other": True}
    try:
        made = pd.Series(values, dtype=object).astype("category")
    except (TypeError, ValueError, Warning):
        return None
    of_axis = by_frame(pd.DataFrame({"ward": made, "person": range(len(made))}), [axis], most=1)
    return of_axis, by_frame(pd.DataFrame({"ward": ["1"] * len(made), "person": made}), [axis], most=2)


def expect_no_other_row_moved(kind: str, odd: Any) -> None:
    before = counts_of_categories(CATEGORIES[kind] * 3)
    after = counts_of_categories([*CATEGORIES[kind] * 3, odd])
    assert before is not None
    for more in map(np.subtract, after or before, before):
        assert min(more) >= 0 and sum(more) <= 1


def test_one_text_among_categories_that_are_whole_numbers_moves_no_other_row() -> None:
    expect_no_other_row_moved("whole numbers", "unknown")


@pytest.mark.slow
@pytest.mark.parametrize("kind", CATEGORIES)
def test_one_more_record_of_any_kind_moves_no_other_in_a_column_of_categories(kind: str) -> None:
    for odd in ODD:
        expect_no_other_row_moved(kind, odd)


def test_categories_are_read_as_the_same_values_in_another_column() -> None:
    for values in ([5, 15, 25], [5.0, 0.25, 25.0], [np.float32(5), np.float32(15)]):
        plain = pd.DataFrame({"age": values, "person": values})
        assert by_frame(plain.astype("category"), AXES[:1]) == by_frame(plain, AXES[:1])
    days = pd.DataFrame({"seen": [datetime(2026, 3, 28, 23, 30), datetime(2026, 3, 30), None]})
    assert by_frame(days.astype("category"), AXES[2:], "row", 1) == by_frame(days, AXES[2:], "row", 1) == [1, 0, 1, 1]


def test_numbers_of_any_width_in_a_pandas_column_are_compared_as_text() -> None:
    axis = {"column": "ward", "values": ["1", "2", "0.5"], "other": True}
    for kind in ("float16", "float32", "complex64", "complex128", "Float32", "int8", "Sparse[float64]"):
        values = [1, 2, 2] if kind == "int8" else [1, 2, 0.5]
        frame = pd.DataFrame({"ward": pd.Series(values).astype(kind)})
        assert by_frame(frame, [axis], "row", 1) == ([1, 2, 0, 0] if kind == "int8" else [1, 1, 1, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_frame_gives_an_empty_cube(kind: str) -> None:
    assert sum(by_frame(KINDS[kind](hostile("text", "local").slice(0, 0)))) == 0


NAMES = ["^a.*$", "*", 'a"b', "code", "rowid"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["polars", "pandas", "arrow", "relation"])
def test_columns_of_a_frame_may_have_any_name(kind: str) -> None:
    table = pa.table({name: [float(number)] for number, name in enumerate(NAMES)})
    for number, name in enumerate(NAMES):
        axis = {"column": name, "name": "it", "start": 0, "stop": len(NAMES), "width": 1}
        assert by_frame(KINDS[kind](table), [axis], name, 1)[number] == 1


def test_no_row_is_computed_before_a_measurement_asks_and_then_once() -> None:
    computed: list[int] = []
    lazy = pl.LazyFrame({"age": [5.0]}).map_batches(lambda frame: computed.append(1) or frame)
    counts = lazy.dphist.count_cube(AXES[:1], privacy_unit="row")  # type: ignore[attr-defined]
    assert not computed and counts.domain.cells == 6
    for _ in range(2):
        dph.sanitize(counts, mechanism="boost", epsilon=1)
    assert len(computed) == 1


def test_a_polars_frame_counts_itself() -> None:
    frame = pl.DataFrame({"age": [5.0, 15.0], "person": ["a", "a"]})
    counts = frame.dphist.count_cube(AXES[:1], privacy_unit="person", max_rows_per_unit=3, neighbours="substitute")  # type: ignore[attr-defined]
    assert counts.sensitivity == 6
    assert dph.sanitize(counts, mechanism="geometric", epsilon=50).values.sum() == pytest.approx(2, abs=10)


def raising(frame: pl.DataFrame) -> pl.DataFrame:
    raise ValueError(SECRET)


@pytest.mark.parametrize(
    "frame",
    [
        lambda: pl.LazyFrame({"age": [SECRET]}).with_columns(pl.col("age").cast(pl.Int64)),
        lambda: pl.LazyFrame({"age": [1.0]}).map_batches(raising),
        lambda: duckdb.connect().sql(f"SELECT CAST('{SECRET}' AS INTEGER) AS age FROM range(3)"),
        lambda: pl.DataFrame({"age": [object()]}),
    ],
)
def test_what_an_engine_says_of_a_failure_is_withheld(frame: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SourceRefused) as refused:
        by_frame(frame(), AXES[:1], "row", 1)
    assert SECRET not in f"{refused.value}{capfd.readouterr()}"
    assert refused.value.__context__ is None and refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"axes": [{"column": "agee", "values": ["a"]}]}, "'agee' is not in the frame. Did you mean 'age'"),
        ({"unit": "persons"}, "'persons' is not in the frame. Did you mean 'person'"),
        ({"axes": [{"column": "junk", "values": ["a"]}]}, "has type BIGINT[], which cannot serve as a categorical"),
        ({"axes": [{"column": "age"}]}, "domain[0]: needs `values`, or `edges`"),
        ({"axes": []}, "domain: holds 0 items"),
        (
            {"axes": [{"column": "age", "start": 0, "stop": 10**8, "width": 1}]},
            "domain[0].width: makes more than 10,000,000 bins",
        ),
        ({"unit": []}, "privacy_unit: "),
        ({"most": 0}, "max_rows_per_unit: must be at least 1, not 0"),
        ({"most": None}, "max_rows_per_unit: must be a whole number, not nothing"),
        ({"unit": "row", "most": 2}, "max_rows_per_unit: must be 1, or left out"),
        ({"neighbours": "add"}, "neighbours: must be one of"),
        ({"unit_normalise": ["upper"]}, "unit_normalise[0]: must be one of"),
        ({"time_zone": "Mars/Olympus"}, "is a time zone that DuckDB does not know"),
    ],
)
def test_a_mistake_is_refused_by_its_name(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(dph.DphistError) as refused:
        by_frame(hostile("text", "local", rows=3), **changes)
    assert says in str(refused.value)


def test_what_is_no_data_frame_is_refused_at_once() -> None:
    for other in (3, "rows.parquet", {"age": [1]}, [1], np.zeros(3), None):
        with pytest.raises(TypeError, match=f"not {type(other).__name__}"):
            dph.count_cube(other, AXES[:1], privacy_unit="row")  # type: ignore[arg-type]


def test_a_column_that_is_there_twice_is_refused() -> None:
    frame = pd.DataFrame([[1.0, 2.0]], columns=["age", "age"])
    with pytest.raises(ColumnRefused, match="twice"):
        by_frame(frame, AXES[:1], "row", 1)


def test_nothing_of_a_frame_stays_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    by_frame(hostile("text", "local"))
    assert list(tmp_path.iterdir()) == []
