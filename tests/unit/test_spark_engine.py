"""Counting by an engine that speaks Spark Connect: the same cube and the same kept rows as by DuckDB, or a refusal."""

from __future__ import annotations

import gc
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_scenario import AGE, SECRET, Files, spec, written
from spark_scenario import counted_by_both
from spark_servers import sail

from dphist_pipeline.confidential.engines import spark
from dphist_pipeline.confidential.reading.source import ColumnRefused, SourceRefused
from dphist_pipeline.errors import DphistError
from dphist_pipeline.releasing._plans import plan_of

pytestmark = pytest.mark.outside

ROWS = 3000
LARGEST = 2**63 - 1
DAY = 86_400_000_000


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    with sail() as address:
        yield address


def table(rows: int = ROWS) -> pa.Table:
    """Invented rows; some persons have many more than others, and some rows have no person."""
    draw = np.random.default_rng(7)
    persons = (draw.pareto(1.0, rows) * 3).astype(np.int64) % 500
    numbers = draw.normal(10, 20, rows)
    numbers[::97] = np.nan
    numbers[1::97] = np.inf
    return pa.table(
        {
            "person": pa.array(persons, mask=draw.random(rows) < 0.05),
            "serial": np.arange(rows, dtype=np.int32),
            "age": draw.integers(-5, 60, rows).astype(np.int16),
            "weight": pa.array(numbers, mask=draw.random(rows) < 0.05),
            "ward": pa.array(draw.integers(0, 6, rows).astype(np.uint8), mask=draw.random(rows) < 0.05),
            "urgent": pa.array(draw.random(rows) < 0.3),
            "price": pa.array(draw.integers(0, 10**6, rows) * 0.01).cast(pa.decimal128(15, 2)),
            "heat": pa.array((350 + draw.integers(0, 70, rows)) / 10, pa.float32()),
            "came": pa.array(draw.integers(0, 400 * DAY, rows) + 18_262 * DAY).cast(pa.timestamp("us")),
        }
    )


def same(address: str, files: Files, **changes: Any) -> int:
    """Compares the cubes of both engines, and gives how many rows were kept."""
    here, there = counted_by_both(address, files, **changes)
    assert here.tolist() == there.tolist()
    return int(here.sum())


def test_numbers_categories_and_truth_values_are_counted_as_by_duckdb(engine: str) -> None:
    axes = [
        AGE,
        {"column": "weight", "edges": [-20, -1, 0.1, 0.25, 30], "closed": "right", "below": True, "above": True},
        {"column": "ward", "values": ["3", "0", "5.0"], "other": True},
        {"column": "urgent", "values": ["true"], "other": True},
        {"column": "price", "start": 0, "stop": "10000", "width": "0.5"},
    ]
    assert same(engine, {"a.parquet": table(), "b/c.parquet": table(10)}, source="**/*.parquet", axes=axes) > 500
    regular = [{"column": "weight", "start": "-30", "stop": "30", "width": "0.1", "above": True}]
    assert same(engine, {"a.parquet": table()}, axes=regular, privacy_unit="row", max_rows_per_unit=...) > 500
    for heat in ({"edges": [35, "36.6", "37.8", 42]}, {"start": 35, "stop": 42, "width": "0.1", "closed": "right"}):
        floats = {"axes": [{"column": "heat", "other": True, **heat}], "privacy_unit": "row", "max_rows_per_unit": ...}
        assert same(engine, {"a.parquet": table()}, **floats) == ROWS
    many = [{"column": "serial", "start": 0, "stop": ROWS, "width": 1}]  # more bins than stand in a list
    assert same(engine, {"a.parquet": table()}, axes=many, privacy_unit="row", max_rows_per_unit=...) == ROWS


def test_whole_numbers_of_every_width_are_counted_as_by_duckdb(engine: str, tmp_path: Path) -> None:
    """In files of DuckDB, too, which notes the width of each."""
    kinds = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"]
    columns = ", ".join(f"CAST(i % 100 AS {kind}) AS c_{kind.lower()}" for kind in kinds)
    file = tmp_path / "rows.parquet"
    duckdb.sql(f"COPY (SELECT i // 3 AS person, {columns} FROM range(1000) AS numbers(i)) TO '{file}'")
    axes = [{"column": f"c_{kind.lower()}", "start": 0, "stop": 50, "width": 25, "other": True} for kind in kinds]
    for files in ({"a.parquet": file.read_bytes()}, {"a.parquet": pq.read_table(file)}):
        assert same(engine, files, axes=axes, max_rows_per_unit=2) == 667


@pytest.mark.parametrize("bound", [1, 3, 50])
def test_the_kept_rows_of_every_unit_are_those_that_duckdb_keeps(engine: str, bound: int) -> None:
    cell_of_its_own = [{"column": "serial", "start": 0, "stop": ROWS, "width": 1}]
    assert same(engine, {"a.parquet": table()}, axes=cell_of_its_own, max_rows_per_unit=bound) < ROWS
    assert same(engine, {"a.parquet": table()}, axes=[AGE], max_rows_per_unit=bound) > 100


def test_units_of_several_columns_and_of_more_equal_rows_than_a_block(engine: str) -> None:
    equal = 3 * spark.BLOCK + 5
    rows = pa.table({"person": [7] * equal + [-(2**63)] * 9, "part": [1] * (equal + 9), "age": [5] * equal + [15] * 9})
    for unit in ("person", ["person", "part"]):
        assert same(engine, {"a.parquet": rows}, privacy_unit=unit, max_rows_per_unit=2000) == 2009


def test_times_that_are_huge_infinite_or_on_an_end_of_a_period_are_read_alike(engine: str) -> None:
    month = 18_262 * DAY
    micros = [0, -1, month, month - 1, month + 31 * DAY, LARGEST, -LARGEST, -LARGEST - 1, LARGEST - 1, 2**62, -(2**62)]
    days = [0, -1, 18_262, 18_261, 18_293, 2**31 - 1, -(2**31) + 1, -(2**31), 106_751_991, 106_751_992, -106_751_992]
    columns = {"local": pa.timestamp("us"), "zoned": pa.timestamp("us", "UTC")}
    held = {name: pa.array(micros, pa.int64()).cast(kind) for name, kind in columns.items()}
    held["day"] = pa.array(days, pa.int32()).cast(pa.date32())
    rows = {"a.parquet": pa.table({"person": range(len(days)), "age": [5] * len(days), **held})}
    for name in held:
        bins = {"column": name, "name": "bins", "calendar": "month", "start": "2019-11-01", "stop": "2020-03-01"}
        axes = [{**bins, "other": True}]
        assert same(engine, rows, axes=axes) == len(days)
        for zone in ("UTC", "America/New_York"):
            period = {"period": "month", "period_column": name, "time_zone": zone, "axes": [AGE]}
            assert 1 <= same(engine, rows, at="2020-01-01", **period) <= 2


def test_text_is_counted_alike_where_it_is_known_to_be_utf8(engine: str) -> None:
    names = [
        "ann",
        "ANN",
        "ann ",
        "",
        "é",
        "e\u0301",
        "?",
        "a?b",
        "x" * 64,
        "x" * 65,
        "sha256:ab",
        "日本",
        "a\0b",
        None,
    ]
    rows = pa.table({"person": names * 5, "age": [5] * 70, "ward": (names[::-1] * 5), "Ward`s .": names * 5})
    values = ["ann", "é", "日本", "x" * 65, "nothing"]
    ward = {"column": "ward", "values": values, "other": True}
    odd = {"column": "Ward`s .", "name": "odd", "values": ["ann"], "other": True}
    for unit in ("person", ["person", "ward"]):
        kept = same(engine, {"a.parquet": rows}, vouched=True, axes=[ward, odd], privacy_unit=unit, max_rows_per_unit=2)
        assert kept > 10


@contextmanager
def logged(said: io.StringIO) -> Iterator[None]:
    """Takes what PySpark logs: its own handlers write to the error output that they found when they were made."""
    handler, loggers = logging.StreamHandler(said), [logging.getLogger(name) for name in spark.LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    yield
    for logger in loggers:
        logger.removeHandler(handler)


def refused(address: str, files: Files, error: type[DphistError], **changes: Any) -> str:
    """What an engine refuses with; and that the message, the output and the run's folder hold nothing of the files."""
    base = written(Path(changes.pop("base")) / "office", files)
    declared = spec(base, **changes)
    said = io.StringIO()
    with pytest.raises(error) as caught, logged(said), redirect_stdout(said), redirect_stderr(said):
        spark.write_cube(plan_of(declared, declared.period_named("all")), address, base)
    assert caught.value.__context__ is None and caught.value.__cause__ is None
    assert SECRET not in str(caught.value) + repr(vars(caught.value)) + said.getvalue()
    assert not list(base.rglob("*.npy"))
    return str(caught.value)


@pytest.mark.parametrize("fails", [True, False])
def test_a_server_that_failed_is_asked_nothing_more(tmp_path: Path, fails: bool) -> None:
    """Its clean-up asked the dead server again, for ten minutes and more."""
    base, session = written(tmp_path / "office", column([3])), mock.MagicMock()
    plan = plan_of(declared := spec(base), declared.period_named("all"))
    counts = (np.zeros(plan.domain.cells, dtype=np.int64), 1)
    with (
        mock.patch.object(spark, "_session", return_value=session),
        mock.patch.object(spark, "_traits", return_value=(True, True)),
        mock.patch.object(spark, "_count_cells", side_effect=OSError("gone") if fails else None, return_value=counts),
    ):
        if fails:
            with pytest.raises(SourceRefused, match="its server went away"):
                spark.write_cube(plan, "sc://nowhere:1", tmp_path)
        else:
            spark.write_cube(plan, "sc://nowhere:1", tmp_path)
    assert session.catalog.dropTempView.called is not fails
    assert session.release_session_on_close is not fails and session.stop.called


def column(values: Any, kind: pa.DataType | None = None) -> Files:
    """A file of persons with a column `age` of some values."""
    return {"a.parquet": pa.table({"person": range(len(values)), "age": pa.array(values, kind)})}


@pytest.mark.parametrize(
    ("files", "changes", "told"),
    [
        (column(["3", SECRET]), {}, "column 'age' is of type string, and Spark reads exactly"),
        (column([3], pa.uint64()), {}, "another type (int64, int)"),
        (column([3], pa.decimal128(16, 2)), {}, "another type"),
        (column([3], pa.timestamp("ns")), {"axes": [{"column": "age", "calendar": "day"}]}, "another type"),
        (column([b"3"], pa.binary()), {}, "cannot serve as"),
        (
            column([3], pa.duration("us")),
            {"axes": [{"column": "age", "edges": [0, 9], "unit": "days"}]},
            "which Spark reads otherwise",
        ),
        (column([SECRET]), {"axes": [{"column": "age", "values": ["a?"]}]}, "has a category with ?"),
        (column([SECRET]), {"axes": [{"column": "age", "values": ["a"]}]}, "not UTF-8"),
        ({"a.parquet": pa.table({"person": [1.5], "age": [3]})}, {}, "column 'person' is of type double"),
        (
            {**column([3]), "b.parquet": pa.table({"person": [1], "age": pa.array([3], pa.int32())})},
            {},
            "differ in type",
        ),
        ({"_a.parquet": pa.table({"person": [1], "age": [3]})}, {}, "_ or . before its name"),
        ({"{a}.parquet": pa.table({"person": [1], "age": [3]})}, {}, "in its path"),
        ({"a.parquet": pa.table({"person": [1], "age": [3], "Age": [3]})}, {}, "two columns of one name"),
    ],
)
def test_what_engines_read_in_different_ways_is_refused(
    engine: str, tmp_path: Path, files: Files, changes: dict[str, Any], told: str
) -> None:
    for axis in changes.get("axes", []):
        axis.update({"start": "2020-01-01", "stop": "2020-03-01"} if "calendar" in axis else {})
    assert told in refused(engine, files, DphistError, base=tmp_path, **changes)


def test_days_of_another_zone_are_refused(engine: str, tmp_path: Path) -> None:
    axes = [{"column": "age", "calendar": "day", "start": "2020-01-01", "stop": "2020-03-01"}]
    rows = column([0], pa.date32())
    assert "time_zone: UTC" in refused(engine, rows, ColumnRefused, base=tmp_path, axes=axes, time_zone="Pacific/Apia")


def test_an_engine_with_another_arithmetic_counts_nothing(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "LAST_SHIFT", 32)
    assert "in another way than by DuckDB" in refused(engine, column([3]), SourceRefused, base=tmp_path)


def test_a_file_that_changes_while_it_is_read_counts_nothing(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = spark._count_cells

    def changing(*given: Any) -> Any:
        found = counted(*given)
        written(tmp_path / "office", column([3, 4]))
        return found

    monkeypatch.setattr(spark, "_count_cells", changing)
    assert "changed while it was read" in refused(engine, column([3]), SourceRefused, base=tmp_path)


def test_an_engine_that_leaves_rows_out_counts_nothing(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an engine does with files that it takes for hidden ones."""
    monkeypatch.setattr(spark, "files_of", lambda source, found=spark.files_of: found(source)[:1])
    files = {"a.parquet": column([3])["a.parquet"], "b.parquet": column([4])["a.parquet"]}
    footers = spark._footers
    monkeypatch.setattr(
        spark, "_footers", lambda files, where: footers([*files, files[0].with_name("b.parquet")], where)
    )
    assert "not the same for Spark as here" in refused(engine, files, SourceRefused, base=tmp_path)


def test_a_server_that_fails_or_is_not_there_says_nothing_of_records(engine: str, tmp_path: Path) -> None:
    """Text that is not UTF-8 fails in Sail, with the value's place in its message, and PySpark logs what fails."""
    broken = pa.array([f"{SECRET}\xff".encode("latin-1")], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 1, broken.buffers())
    files = {"a.parquet": pa.table({"person": [1], "age": text})}
    axes = [{"column": "age", "values": [SECRET]}]

    def logs(version: str) -> bool:
        """As PySpark does with failures of a server that sends the query's context."""
        for name in spark.LOGGERS:
            logging.getLogger(name).error(SECRET)
        return True

    with mock.patch.object(spark, "SPARK", mock.Mock(fullmatch=logs)):
        assert "could not be counted" in refused(engine, files, SourceRefused, base=tmp_path, axes=axes)
    assert not any(logging.getLogger(name).disabled for name in spark.LOGGERS[:2])
    assert "does not answer" in refused("sc://127.0.0.1:1", column([3]), SourceRefused, base=tmp_path)
    assert "no session is active" in refused("session", column([3]), SourceRefused, base=tmp_path)


def test_a_session_that_is_collected_later_closes_nothing_of_others(engine: str) -> None:
    """PySpark would shut down the threads of all sessions of the process, in the middle of another one's count."""
    reattach = pytest.importorskip("pyspark.sql.connect.client.reattach")
    gc.collect()
    closed: list[None] = []
    with mock.patch.object(reattach.ExecutePlanResponseReattachableIterator, "shutdown", lambda: closed.append(None)):
        for _ in range(2):
            same(engine, {"a.parquet": table(10)}, axes=[AGE])
            gc.collect()
    assert len(closed) == 2
