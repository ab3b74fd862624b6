"""From files to cube: the same numbers as a plain reading in Python, whatever the records hold."""

from __future__ import annotations

import logging
import secrets
import tempfile
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_engine import one_engine

from dphist_pipeline.confidential import _bounding as bounding
from dphist_pipeline.confidential.cube import read_and_count
from dphist_pipeline.confidential.reading.ingest import stage_rows
from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused
from dphist_pipeline.errors import DphistError
from dphist_pipeline.releasing._plans import plan_of
from dphist_pipeline.releasing.release_spec import ReleaseSpec
from examples import examples, mostly_soaked

Rows = Sequence[Mapping[str, Any]]

AGE = {"column": "age", "start": 0, "stop": 30, "width": 10, "above": True}
WARD = {"column": "ward", "values": ["surgery", "medicine"], "other": True}
SECRET = "Zacharias"
KEY = bytes(bounding.KEY_BYTES)


def spec(base: Path, **changes: Any) -> ReleaseSpec:
    attributes = {
        "release": "admissions",
        "source": "*.parquet",
        "privacy_unit": "person",
        "max_rows_per_unit": 1000,
        "neighbours": "add_remove",
        "epsilon": 1,
        "account": "tests",
        "mechanism": "geometric",
        "axes": [AGE, WARD],
        **changes,
    }
    given = {field: value for field, value in attributes.items() if value is not ...}
    return ReleaseSpec.from_attributes(given, base)


def counted(*files: pa.Table | bytes, at: str = "all", **changes: Any) -> np.ndarray:
    """The cube of some files, bytes being CSV."""
    with tempfile.TemporaryDirectory() as folder:
        base, run = Path(folder) / "office", Path(folder) / "run"
        base.mkdir()
        run.mkdir()
        for number, file in enumerate(files):
            if isinstance(file, bytes):
                (base / f"{number}.csv").write_bytes(file)
                changes["source"] = "*.csv"
            else:
                pq.write_table(file, base / f"{number}.parquet", row_group_size=5 + len(file) // 3)
        declared = spec(base, **changes)
        cube = read_and_count(plan_of(declared, declared.period_named(at)), run)
        assert [path.name for path in run.rglob("*") if path.is_file()] == ["cube.npy"]
    assert cube.dtype == np.int64 and cube.shape == (declared.domain.cells,)
    return cube


def people(**columns: Any) -> pa.Table:
    """Rows with a person, an age and a ward each, unless columns say otherwise."""
    rows = len(next(iter(columns.values())))
    return pa.table({"person": np.arange(rows), "age": [15.0] * rows, "ward": ["surgery"] * rows} | columns)


def cell(row: Mapping[str, Any]) -> tuple[int, int] | None:
    """The cell of a row on AGE and WARD; None where it is dropped."""
    if row["age"] is None or not row["age"] >= 0:
        return None
    ward = {"surgery": 0, "medicine": 1}.get(row["ward"], 2)
    return min(int(row["age"] // 10) if row["age"] < 30 else 3, 3), ward


def plainly_counted(rows: Rows) -> list[int]:
    """The cube of AGE and WARD, row by row, where no unit has more rows than it may keep."""
    found = Counter(cell(row) for row in rows if row["person"] is not None)
    return [found[age, ward] for age in range(4) for ward in range(3)]


ages = st.one_of(st.none(), st.floats(-5, 45), st.sampled_from([0.0, -0.0, 10.0, 30.0, float("nan"), float("inf")]))
wards = st.sampled_from(["surgery", "medicine", "Surgery", "surgery ", "", "ä?", None])
PERSONS = {
    "whole": st.sampled_from([-(2**63), 2**63 - 1, 0, 1, 2**53, 2**53 + 1]),
    "text": st.sampled_from(["", "a", "A", "a ", "ä", "0", "\0"]),
    "float": st.sampled_from([0.5, 1e308, 2.0**53, 0.1, 0.1 + 2**-56, float("inf")]),
    "decimal": st.sampled_from([Decimal("1.50"), Decimal("-0.01"), Decimal("99999999.99")]),
    "uuid": st.sampled_from([uuid.UUID(int=1), uuid.UUID(int=2**127)]),
}
ARROW = {"whole": pa.int64(), "text": pa.string(), "float": pa.float64(), "decimal": pa.decimal128(12, 2)}


def rows_of(kind: str) -> st.SearchStrategy[tuple[str, list[dict[str, Any]]]]:
    row = st.fixed_dictionaries({"person": PERSONS[kind] | st.none(), "age": ages, "ward": wards})
    return st.tuples(st.just(kind), st.lists(row, max_size=40))


tables = st.sampled_from(sorted(PERSONS)).flatmap(rows_of)


def arrow(rows: Rows, kind: str) -> pa.Table:
    persons = [row["person"] for row in rows]
    if kind == "uuid":
        storage = pa.array([person and person.bytes for person in persons], pa.binary(16))
        column = pa.ExtensionArray.from_storage(pa.uuid(), storage)
    else:
        column = pa.array(persons, ARROW[kind])
    age = pa.array([row["age"] for row in rows], pa.float64())
    return pa.table({"person": column, "age": age, "ward": pa.array([row["ward"] for row in rows], pa.string())})


def as_csv(rows: Rows) -> bytes:
    def field(value: Any) -> str:
        return "" if value is None else str(value)

    lines = [",".join(map(field, (row["person"], row["age"], row["ward"]))) for row in rows]
    return "\n".join(["person,age,ward", *lines]).encode()


@pytest.mark.slow
@examples(60)
@given(table=tables, cut=st.integers(0, 40))
def test_the_cube_is_that_of_a_plain_reading(table: tuple[str, Rows], cut: int):
    kind, rows = table
    files = [arrow(rows[:cut], kind), arrow(rows[cut:], kind).select(["ward", "person", "age"])]
    with one_engine():
        assert counted(*files).tolist() == plainly_counted(rows)


@pytest.mark.slow
@examples(25)
@given(table=rows_of("whole"), delimiter=st.sampled_from([",", ";", "\t"]))
def test_csv_gives_the_same_cube_as_parquet(table: tuple[str, Rows], delimiter: str):
    content = as_csv(table[1]).replace(b",", delimiter.encode())
    assert counted(content, csv_delimiter=delimiter).tolist() == plainly_counted(table[1])


def kept(rows: Rows, kind: str, max_rows: int, cut: int = 0) -> np.ndarray:
    """The cube of one file, or of two, under one fixed key."""
    files = [arrow(part, kind) for part in (rows[cut:], rows[:cut])]
    with pytest.MonkeyPatch.context() as patch, one_engine():
        patch.setattr(secrets, "token_bytes", lambda size: KEY)
        return counted(*files, max_rows_per_unit=max_rows)


@pytest.mark.slow
@examples(25)
@given(table=tables, max_rows=st.integers(1, 3), shuffle=st.randoms(use_true_random=False))
def test_people_neither_merge_nor_split_nor_move_each_other(table: tuple[str, Rows], max_rows: int, shuffle: Any):
    kind, rows = table
    cube = kept(rows, kind, max_rows)
    counting = [row for row in rows if row["person"] is not None and cell(row)]
    own = Counter(row["person"] for row in counting)
    assert cube.sum() == sum(min(number, max_rows) for number in own.values())
    assert kept(shuffle.sample(rows, len(rows)), kind, max_rows, cut=len(rows) // 2).tolist() == cube.tolist()
    for person in list(own)[:2]:
        alone = kept([row for row in rows if row["person"] == person], kind, max_rows)
        others = kept([row for row in rows if row["person"] != person], kind, max_rows)
        assert (alone + others).tolist() == cube.tolist()


def test_every_run_draws_a_key_of_its_own():
    table = people(person=np.repeat(range(200), 4), age=[5.0, 15.0, 25.0, 35.0] * 200)
    assert len({tuple(counted(table, max_rows_per_unit=2)) for _ in range(4)}) == 4


def undecodable(*values: bytes) -> pa.Array:
    """Text of any bytes, as a careless program writes it."""
    offsets = pa.array(np.cumsum([0, *map(len, values)]), pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), len(values), [None, offsets, pa.py_buffer(b"".join(values))])


def test_units_that_differ_in_bytes_alone_never_share_a_bound():
    one = counted(people(person=undecodable(b"a\xff", b"b")), max_rows_per_unit=1)
    two = counted(people(person=undecodable(b"a\xff", b"a\xfe", b"b")), max_rows_per_unit=1)
    assert one.sum() == two.sum() == 1


@pytest.mark.slow
def test_units_that_cannot_be_told_are_dropped():
    assert counted(people(person=pa.nulls(3, pa.string()))).sum() == 0
    assert counted(people(person=pa.nulls(3))).sum() == 0
    for told in ([1.0], [1.0, 2.0], [1.0, float("inf")]):
        assert counted(people(person=[float("nan"), float("nan"), *told])).sum() == len(told)
    assert counted(b"person,age,ward\n,15,surgery\nA,15,surgery").sum() == 1


def test_the_two_zeros_are_one_unit():
    assert counted(people(person=[0.0, -0.0, 0.0]), max_rows_per_unit=1).sum() == 1


def test_units_of_equal_value_in_files_of_other_widths_are_one_unit():
    narrow, wide = people(person=pa.array([1, 2], pa.int8())), people(person=pa.array([1, 2**64 - 1], pa.uint64()))
    assert counted(narrow, wide, max_rows_per_unit=1).sum() == 3


def test_with_rows_as_units_every_row_counts():
    assert counted(people(person=[1, 1, None]), privacy_unit="row", max_rows_per_unit=...).sum() == 3


ORDINARY = people(person=["a", "a", "b"])


@pytest.mark.parametrize(
    "table",
    [
        ORDINARY,
        ORDINARY.slice(0, 0),
        ORDINARY.slice(0, 1),
        people(person=pa.nulls(4), age=pa.nulls(4), ward=pa.nulls(4)),
        people(age=pa.nulls(4, pa.float64()), ward=pa.nulls(4, pa.string())),
        people(person=undecodable(b"\xff", b"\xc3\x28"), ward=undecodable(b"\xed\xa0\x80", b"\xff\xff")),
        people(age=["x", "", "\0", "1e999"], ward=undecodable(b"\xff", b"", b"\0", b"?")),
        people(person=np.zeros(10**6, dtype=np.int64)),
    ],
    ids=["ordinary", "empty", "one row", "untyped nulls", "nulls", "undecodable", "unparsable", "a million rows"],
)
def test_no_table_is_anything_but_ordinary(table: pa.Table, capfd: pytest.CaptureFixture[str], caplog: Any):
    caplog.set_level(logging.DEBUG)
    cube = counted(table, max_rows_per_unit=3)
    assert cube.shape == (12,) and cube.min() >= 0
    assert capfd.readouterr() == ("", "") and not caplog.records


@pytest.mark.parametrize("content", [b"", b"\xff,\xff,\xff\n", b"\0\n,,,,\n\r\r\n\n", b'"' * 99 + b"\n"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_no_csv_is_anything_but_ordinary(content: bytes, quote: str):
    assert counted(b"person,age,ward\n" + content, csv_quote=quote).sum() == 0


NAMES = ["value_0", "value_1", "place_0", "unit", "code", "staged", "categories_1", "files", "rowid", "select", "*"]
ODD_NAMES = [*NAMES, 'a"b', "a'b", "a.b", "$files", "{x}", "; DROP", "é日 ", "filename", "ROW"]


@pytest.mark.parametrize("name", mostly_soaked(ODD_NAMES, [0, 4, 6, 11, 14, 16]))
def test_columns_may_have_any_name(name: str):
    decoys = {decoy: [7.0, 7.0] for decoy in NAMES if decoy != name}
    axis = {"column": name, "name": "aged", "start": 0, "stop": 3, "width": 1}
    table = people(**{name: [1.5, 2.5]}, **decoys)
    assert counted(table, axes=[axis]).tolist() == [0, 1, 1]
    assert counted(people(**{name: [7, 7]}, **decoys), privacy_unit=name, max_rows_per_unit=1).sum() == 1


def test_ten_million_cells_are_counted():
    axes = [
        {"column": "age", "start": 0, "stop": 1000, "width": "0.1"},
        {"column": "person", "start": 0, "stop": 1000, "width": 1},
    ]
    cube = counted(people(age=[0.3, 999.95, 999.95]), axes=axes).reshape(10_000, 1000)
    assert cube.shape == (10_000, 1000) and cube.sum() == 3
    assert cube[3, 0] == cube[9999, 1] == cube[9999, 2] == 1


WEEKS = [
    ("UTC", "2026-03-02"),
    ("Europe/Brussels", "2026-03-23"),
    ("Europe/Brussels", "2026-10-19"),
    ("America/Sao_Paulo", "2018-10-29"),
    ("Asia/Kathmandu", "1985-12-30"),
    ("Pacific/Apia", "2011-12-26"),
]
KINDS = ["naive", "naive_ns", "aware", "aware_ns", "day", "text", "text with offset"]


def moments(wall: list[datetime], kind: str, zone: ZoneInfo) -> pa.Array:
    """Local times as a column of that kind."""
    instants = [moment.replace(tzinfo=zone).astimezone(UTC) for moment in wall]
    match kind:
        case "naive":
            return pa.array(wall, pa.timestamp("us"))
        case "naive_ns":
            return pa.array(wall, pa.timestamp("us")).cast(pa.timestamp("ns"))
        case "aware":
            return pa.array(instants, pa.timestamp("us", "UTC"))
        case "aware_ns":
            return pa.array(instants, pa.timestamp("us", "UTC")).cast(pa.timestamp("ns", "UTC"))
        case "day":
            return pa.array([moment.date() for moment in wall], pa.date32())
        case "text":
            return pa.array([moment.isoformat(sep=" ") for moment in wall])
        case _:
            return pa.array([moment.isoformat() for moment in instants])


def exists(moment: datetime, zone: ZoneInfo) -> bool:
    """Whether a clock in the zone ever shows this time, and shows it once."""
    folds = [moment.replace(tzinfo=zone, fold=fold) for fold in (0, 1)]
    there_and_back = [local.astimezone(UTC).astimezone(zone).replace(tzinfo=None) for local in folds]
    return there_and_back == [moment, moment] and folds[0].utcoffset() == folds[1].utcoffset()


steps = st.one_of(
    st.sampled_from([timedelta(0), timedelta(microseconds=1), timedelta(microseconds=-1), timedelta(hours=-1)]),
    st.timedeltas(timedelta(days=-9), timedelta(days=9)),
)


@pytest.mark.slow
@examples(60)
@given(week=st.sampled_from(WEEKS), kind=st.sampled_from(KINDS), offsets=st.lists(steps, min_size=1, max_size=12))
def test_a_week_holds_what_happened_between_its_local_midnights(
    week: tuple[str, str], kind: str, offsets: list[timedelta]
):
    name, first = week
    zone, start = ZoneInfo(name), date.fromisoformat(first)
    ends = [datetime.combine(start + timedelta(days=days), time()) for days in (0, 7)]
    wall = [end + offset for end in ends for offset in offsets]
    wall = [moment for moment in wall if exists(moment, zone)] or [ends[0] + timedelta(days=1, hours=12)]
    column = pa.concat_arrays([moments(wall, kind, zone), pa.nulls(1, moments(wall, kind, zone).type)])
    cell_a_row = {"column": "person", "start": 0, "stop": len(column), "width": 1}
    weekly = {"period": "week", "period_column": "seen", "time_zone": name, "axes": [cell_a_row]}
    within = [ends[0] <= moment < ends[1] for moment in wall]
    with one_engine():
        assert counted(people(seen=column), at=first, **weekly).tolist() == [*within, False]


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("first", ["1000-01-01", "2026-01-01", "2300-01-01", "9000-01-01"])
def test_no_time_stamp_fails(unit: str, zone: str | None, first: str):
    extremes = pa.array([-(2**63), -(2**63) + 1, 2**63 - 1, 2**63 - 2, None], pa.int64())
    table = people(seen=extremes.view(pa.timestamp(unit, zone)))
    assert yearly(table, first) == 0


@pytest.mark.parametrize(
    "column",
    [
        pa.array([-(2**31), -(2**31) + 1, 2**31 - 1], pa.int32()).view(pa.date32()),
        pa.array(["", "x", "infinity", "-infinity", "epoch", "24:00", "2026-02-30", "294247-01-10 04:00:54.775808"]),
        pa.array(["290309-12-22 (BC) 00:00:00", "2026-01-01 00:00+99:99", "2026-01-01 00:00 No/Where", "\0", "9" * 99]),
        undecodable(b"\xff", b"2026-01-01\xff", b"\xed\xa0\x80"),
        pa.nulls(2),
    ],
)
def test_no_day_and_no_text_fails_as_a_time(column: pa.Array):
    assert yearly(people(seen=column), "2026-01-01") == 0


def yearly(table: pa.Table, first: str) -> int:
    cube = counted(table, at=first, period="year", period_column="seen", time_zone="America/Sao_Paulo")
    return int(cube.sum())


def refused(table: pa.Table, error: type[DphistError], **changes: Any) -> str:
    with pytest.raises(error) as caught:
        counted(table, **changes)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert SECRET not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("column", ["person", "age", "ward"])
@pytest.mark.parametrize("values", [[{"a": SECRET}], [[SECRET]], [SECRET.encode()]], ids=["struct", "list", "blob"])
def test_columns_of_other_types_are_refused_without_a_value(column: str, values: list[Any]):
    assert f"column '{column}' has type" in refused(people(**{column: values}), ColumnRefused)


def test_missing_columns_are_refused_before_a_row_is_read():
    assert "column 'person'" in refused(ORDINARY.drop_columns("person"), ColumnRefused)
    assert "column 'seen'" in refused(ORDINARY, ColumnRefused, at="2026-03-02", period="week", period_column="seen")


def test_time_stamps_in_milliseconds_are_refused_since_one_may_fail_the_reader():
    stamps = pa.array([0, 2**63 - 1], pa.int64()).view(pa.timestamp("ms"))
    message = refused(people(seen=stamps), ColumnRefused, at="2026-03-02", period="week", period_column="seen")
    assert "TIMESTAMP_MS" in message and "micro- or nanoseconds" in message
    assert counted(people(seen=stamps)).sum() == 2


def test_a_damaged_page_is_refused_without_the_engines_words(tmp_path: Path):
    pq.write_table(people(person=[SECRET + str(number) for number in range(5000)]), tmp_path / "a.parquet")
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[200:400] = bytes(200)
    (tmp_path / "a.parquet").write_bytes(content)
    (tmp_path / "run").mkdir()
    declared = spec(tmp_path)
    with pytest.raises(SourceRefused) as caught:
        stage_rows(plan_of(declared, declared.period_named("all")), tmp_path / "run")
    assert str(caught.value) == (
        "source *.parquet: could not be read to its end: a damaged file, or no memory or disk left"
    )
    assert caught.value.__context__ is None and caught.value.__cause__ is None
